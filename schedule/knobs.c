/* Implements knobs.h: the table of knobs, generated from config.def, and access by index and
 * name. */
#include "schedule/knobs.h"
#include "base/aliases.h"

#include <stdio.h>
#include <string.h>

enum { SET, OPEN };
#define FIELD(name) offsetof(mgl_schedule_config, name)

static const mgl_knob_row rows[] = {
#define MGL_KNOB(key, may_be_open, least, most, of, value, text)                                   \
    {.name = #key,                                                                                 \
     .what = text,                                                                                 \
     .open = may_be_open,                                                                          \
     .changes_format = FIELD(key) == FIELD(exchange_precision),                                    \
     .lowest = least,                                                                              \
     .highest = most,                                                                              \
     .multiple = of,                                                                               \
     .preset = value,                                                                              \
     .field = FIELD(key)},
#define MGL_KNOB_STEP(id, key, text)
#include "schedule/config.def"
#undef MGL_KNOB
#undef MGL_KNOB_STEP
#define MGL_KNOB(key, may_be_open, least, most, of, value, text)
#define MGL_KNOB_STEP(id, key, text)                                                               \
    {.name = "queues." key ".first",                                                               \
     .what = "the first queue that has " text,                                                     \
     .highest = MGL_MAX_QUEUES - 1,                                                                \
     .multiple = 1,                                                                                \
     .field = FIELD(queues) + 2 * sizeof(int) * MGL_STEP_##id},                                    \
        {.name = "queues." key ".count",                                                           \
         .what = "how many queues have " text "; 0: chosen",                                       \
         .open = OPEN,                                                                             \
         .highest = MGL_MAX_QUEUES,                                                                \
         .multiple = 1,                                                                            \
         .field = FIELD(queues) + 2 * sizeof(int) * MGL_STEP_##id + sizeof(int)},
#include "schedule/config.def"
#undef MGL_KNOB
#undef MGL_KNOB_STEP
};
_Static_assert(sizeof rows / sizeof *rows == MGL_KNOB_ROWS, "a row for each number of a config");

const mgl_knob_row *mgl_knob_row_get(int knob)
{
    return &rows[knob];
}

int mgl_knob_count(void)
{
    return MGL_KNOB_ROWS;
}

const char *mgl_knob_name(int knob)
{
    return rows[knob].name;
}

int mgl_knob_find(const char *name)
{
    for (int i = 0; i < MGL_KNOB_ROWS; i++)
        if (!strcmp(rows[i].name, name))
            return i;
    const char *renamed = mgl_alias_new(MGL_ALIAS_KNOB, name, strlen(name));
    return renamed ? mgl_knob_find(renamed) : -1;
}

int mgl_knob_get(const mgl_schedule_config *config, int knob)
{
    return *(const int *)(const void *)((const char *)config + rows[knob].field);
}

void mgl_knob_set(mgl_schedule_config *config, int knob, int value)
{
    *(int *)(void *)((char *)config + rows[knob].field) = value;
}

mgl_status mgl_knob_check(int knob, int64_t value, const char *where, mgl_error *err)
{
    const mgl_knob_row *row = &rows[knob];
    char multiple[40] = "a whole number";
    if (value >= row->lowest && value <= row->highest && value % row->multiple == 0)
        return MGL_OK;
    if (row->open && value == 0)
        return MGL_OK;
    if (row->multiple > 1)
        snprintf(multiple, sizeof multiple, "a multiple of %d", row->multiple);
    return mgl_fail(err, MGL_BAD_INPUT, where, "must be %s%s between %d and %d, not %lld",
                    row->open ? "0 or " : "", multiple, row->lowest, row->highest,
                    (long long)value);
}
