/* Damages of the weight formats of tensors, and of the buffers of their scales and column maps. */
#include "damage_parts.h"

#include <stdio.h>
#include <string.h>

/* Where the format of a tensor's line is, and its length; NULL: the line is no matrix. */
static char *find_format(struct line *line, size_t *length)
{
    char *name = line->head + strlen("tensor "), *format = strchr(name, ' ');
    char *end = format ? strstr(format, " [") : NULL;
    if (strncmp(line->head, "tensor ", strlen("tensor ")) != 0 || !end || !strchr(end, ','))
        return NULL;
    *length = (size_t)(end - format - 1);
    return format + 1;
}

/* A matrix; -1: there is none. */
static int draw_matrix(schedule_text *t, uint64_t *random)
{
    int seen = 0, chosen = -1;
    size_t length;
    for (int i = 0; i < t->count; i++)
        if (find_format(&t->lines[i], &length) && damage_draw(random, ++seen) == 0)
            chosen = i;
    return chosen;
}

/* The name of the tensor in the line of a buffer of scales or a column map; NULL: another line. */
static char *tensor_of(const struct line *line)
{
    static const char *const sources[] = {" scales ", " order "};
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        char *at = strncmp(line->head, "buffer ", 7) ? NULL : strstr(line->head, sources[i]);
        if (at)
            return at + strlen(sources[i]);
    }
    return NULL;
}

/* A buffer of scales, or a column map; -1: there is none. */
static int draw_scales(const schedule_text *t, uint64_t *random)
{
    int seen = 0, chosen = -1;
    for (int i = 0; i < t->count; i++)
        if (tensor_of(&t->lines[i]) && damage_draw(random, ++seen) == 0)
            chosen = i;
    return chosen;
}

void change_weight_format(schedule_text *t, uint64_t *random)
{
    static const char *const formats[] = {"f32",
                                          "bf16",
                                          "int8 row f32",
                                          "int8 row bf16",
                                          "int8 tensor f32",
                                          "int8 row f32 zeros",
                                          "int8 group 32 f16",
                                          "int4 group 16 f16",
                                          "int4 group 32 f16",
                                          "int4 group 32 bf16",
                                          "int4 group 32 f16 zeros",
                                          "int4 row f16",
                                          "uint4 group 32 f16",
                                          "uint4 row f16",
                                          "e4m3 row f32",
                                          "e4m3 block 16 32 f32"};
    const int i = draw_matrix(t, random);
    size_t length;
    if (i < 0)
        return;
    char *at = find_format(&t->lines[i], &length);
    replace(at, length, DRAW_OF(formats), (size_t)(t->lines[i].head + HEAD_BYTES - at));
}

void swap_weight_formats(schedule_text *t, uint64_t *random)
{
    const int a = draw_matrix(t, random), b = draw_matrix(t, random);
    char first[HEAD_BYTES], second[HEAD_BYTES];
    size_t length;
    if (a < 0 || b < 0)
        return;
    char *at = find_format(&t->lines[a], &length);
    snprintf(first, sizeof first, "%.*s", (int)length, at);
    at = find_format(&t->lines[b], &length);
    snprintf(second, sizeof second, "%.*s", (int)length, at);
    replace(at, length, first, (size_t)(t->lines[b].head + HEAD_BYTES - at));
    at = find_format(&t->lines[a], &length);
    replace(at, length, second, (size_t)(t->lines[a].head + HEAD_BYTES - at));
}

void drop_scales(schedule_text *t, uint64_t *random)
{
    const int i = draw_scales(t, random);
    if (i >= 0)
        drop_line(t, i);
}

void swap_scales(schedule_text *t, uint64_t *random)
{
    const int a = draw_scales(t, random), b = draw_scales(t, random);
    char first[HEAD_BYTES], second[HEAD_BYTES];
    if (a < 0 || b < 0)
        return;
    copy_string(first, tensor_of(&t->lines[a]), sizeof first);
    copy_string(second, tensor_of(&t->lines[b]), sizeof second);
    copy_string(tensor_of(&t->lines[a]), second, HEAD_BYTES / 2);
    copy_string(tensor_of(&t->lines[b]), first, HEAD_BYTES / 2);
}

/* Adds a second buffer for a tensor, or a first buffer for a tensor that needs none. */
void add_scales(schedule_text *t, uint64_t *random)
{
    const int i = draw_matrix(t, random);
    struct line line = {0};
    const bool order = damage_draw(random, 2);
    long rows = 0, columns = 0;
    char name[HEAD_BYTES] = "";
    if (i < 0 || sscanf(t->lines[i].head, "tensor %79s", name) != 1)
        return;
    sscanf(strstr(t->lines[i].head, " [") + 2, "%ld,%ld", &rows, &columns);
    snprintf(line.head, sizeof line.head, "buffer more%d const %s [%ld] %s %.60s",
             damage_draw(random, 100), order ? "i32" : "f32", order ? columns : rows,
             order ? "order" : "scales", name);
    insert_line(t, i + 1 + damage_draw(random, t->count - i - 1) % 8, &line);
}
