/* Generates schedules that are expensive to prove. See slow_texts.h. */
#include "slow_texts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BASE = 1 << 16 };

/* ---- the base text --------------------------------------------------------------------------- */

static char base[MOST_BASE];

static void read_base(void)
{
    FILE *file = fopen(MGL_SOURCE_DIR "/tests/validator/cases/accept_flags.mls", "r");
    size_t length = file ? fread(base, 1, sizeof base - 1, file) : 0;
    if (file)
        fclose(file);
    if (length == 0) {
        fprintf(stderr, "accept_flags.mls cannot be read\n");
        exit(1);
    }
    base[length] = 0;
}

/* Appends the base text from *at up to `mark`, which must follow, and advances *at. */
static void put_until(mgl_text *to, const char **at, const char *mark)
{
    const char *end = strstr(*at, mark);
    if (!end) {
        fprintf(stderr, "accept_flags.mls has no \"%s\"\n", mark);
        exit(1);
    }
    mgl_text_append(to, *at, (size_t)(end - *at));
    *at = end;
}

/* ---- anti-diagonals of clears ---------------------------------------------------------------- */

enum { REGIONS_OF_CLEAR = 8 };

typedef void put_region(mgl_text *to, int i, int count);

/* Regions long in one dimension and one row in the other: even ones on the diagonal and odd ones on
 * the anti-diagonal. The bounds of every run of them are wide, and no two overlap. */
static int place(int i, int count)
{
    return i % 2 ? count - 1 - i / 2 : i / 2;
}

static void put_columns(mgl_text *to, int i, int count)
{
    int at = 8 * place(i, count);
    mgl_text_format(to, "d[:rows,%d:%d,%d:%d]", i, count, at, at + 8);
}

static void put_planes(mgl_text *to, int i, int count)
{
    int at = place(i, count);
    mgl_text_format(to, "d[:rows,%d:%d,%d:%d,0:8]", i, count, at, at + 1);
}

/* Staircase: row i starts at column i, and is shortened at its end, in a column that varies. */
static void put_steps(mgl_text *to, int i, int count)
{
    int at = 8 * place(i, count);
    mgl_text_format(to, "d[%d:%d,:rows,%d:%d]", i / 2, count - i / 2, at, at + 8);
}

static void write_clears(mgl_text *to, int count, const char *extents, put_region *put)
{
    const char *at = base;
    put_until(to, &at, "\ncounter head");
    mgl_text_format(to, "buffer d act bf16 %s sets 2\n", extents);
    put_until(to, &at, "head in flag x[:rows,0:16], g[0:16] tape head[0:16");
    for (int i = 0; i < count; i++) {
        mgl_text_put(to, i % REGIONS_OF_CLEAR ? ", " : i ? "\nclear out " : "clear out ");
        put(to, i, count);
    }
    mgl_text_put(to, "\n");
    mgl_text_put(to, at);
}

static void write_columns(mgl_text *to, int count)
{
    char extents[80];
    snprintf(extents, sizeof extents, "[rows,%d,%d]", count, 8 * count);
    write_clears(to, count, extents, put_columns);
}

static void write_planes(mgl_text *to, int count)
{
    char extents[80];
    snprintf(extents, sizeof extents, "[rows,%d,%d,8]", count, count);
    write_clears(to, count, extents, put_planes);
}

static void write_steps(mgl_text *to, int count)
{
    char extents[80];
    snprintf(extents, sizeof extents, "[%d,rows,%d]", count, 8 * count);
    write_clears(to, count, extents, put_steps);
}

/* ---- many queues ----------------------------------------------------------------------------- */

enum { QUEUES = 256 };

typedef void put_counters(mgl_text *to, int count);
typedef void put_tasks(mgl_text *to, int queue, int count);

/* The base text with 256 queues. The added queues signal `done` once each, and sample waits for
 * all. */
static void write_queues(mgl_text *to, int count, const char *buffers, put_counters *counters,
                         put_tasks *tasks)
{
    const char *at = base;
    put_until(to, &at, "target");
    mgl_text_format(to, "target sm_90a queues %d shared 232448", QUEUES);
    at = strchr(at, '\n');
    put_until(to, &at, "\ncounter head");
    mgl_text_put(to, buffers);
    put_until(to, &at, "\nqueue 0");
    mgl_text_put(to, "counter done\n");
    counters(to, count);
    put_until(to, &at, " wait head>=2");
    mgl_text_format(to, " wait head>=2, done>=%d", QUEUES - 2);
    at += strlen(" wait head>=2");
    mgl_text_put(to, at);
    for (int q = 2; q < QUEUES; q++) {
        mgl_text_format(to, "\nqueue %d tape 0 pad 0\n", q);
        mgl_text_put(to, "enter in control[0:8], table[0:4,0:4] wait sampled>=0\n");
        tasks(to, q, count);
    }
}

enum { NESTED = 136, MIDDLE = 15 }; /* slices of up to 16 columns that hold column 15 */

/* Slice `i` of them: from column *lo to *hi. */
static void nest(int i, int *lo, int *hi)
{
    for (*lo = 0, i %= NESTED; i > *lo; i -= ++*lo)
        ;
    *hi = MIDDLE + 1 + i;
}

/* Slices that all overlap, each written by every queue in turn. */
static void put_users(mgl_text *to, int queue, int count)
{
    for (int i = 0; i < count; i++) {
        int lo, hi;
        nest(i, &lo, &hi);
        mgl_text_format(to, "embed in embedding[0:40,0:%d] out z[:rows,%d:%d]", hi - lo, lo, hi);
        if (i == 0 && queue > 2)
            mgl_text_format(to, " wait c%d>=1", queue - 1);
        if (i == count - 1 && queue < QUEUES - 1)
            mgl_text_format(to, " signal done, c%d", queue);
        else if (i == count - 1)
            mgl_text_put(to, " signal done");
        mgl_text_put(to, "\n");
    }
}

static void put_shared_counters(mgl_text *to, int count)
{
    (void)count;
    for (int q = 2; q < QUEUES; q++)
        mgl_text_format(to, "counter c%d\n", q);
}

static void write_users(mgl_text *to, int count)
{
    write_queues(to, count, "buffer z act f32 [rows,32]\n", put_shared_counters, put_users);
}

/* A task on a queue's own column, followed by `edges`. */
static void put_own(mgl_text *to, int queue)
{
    mgl_text_format(to, "embed in embedding[0:40,0:1] out z[:rows,%d:%d]", queue, queue + 1);
}

#define OWN_COLUMNS "buffer z act f32 [rows,256]\n"

/* Each task waits for a task of the previous queue, so no two have the same clock. The last waits
 * for some of the signals of a counter, so all clocks are computed twice. */
static void put_staircase(mgl_text *to, int queue, int count)
{
    for (int i = 0; i < count; i++) {
        put_own(to, queue);
        if (queue > 2)
            mgl_text_format(to, " wait c%d_%d>=1", queue - 1, i);
        if (queue == QUEUES - 1 && i == count - 1)
            mgl_text_put(to, ", done>=1");
        mgl_text_format(to, " signal c%d_%d%s\n", queue, i, i == count - 1 ? ", done" : "");
    }
}

static void put_counters_of_tasks(mgl_text *to, int count)
{
    for (int q = 2; q < QUEUES; q++)
        for (int i = 0; i < count; i++)
            mgl_text_format(to, "counter c%d_%d\n", q, i);
}

static void write_staircase(mgl_text *to, int count)
{
    write_queues(to, count, OWN_COLUMNS, put_counters_of_tasks, put_staircase);
}

static void put_one_counter(mgl_text *to, int count)
{
    (void)count;
    mgl_text_put(to, "counter c\n");
}

/* Queue 2 signals one counter many times, and all others wait for the last signal. */
static void put_signals(mgl_text *to, int queue, int count)
{
    for (int i = 0; i < count && queue == 2; i++) {
        put_own(to, queue);
        mgl_text_put(to, " signal c\n");
    }
    put_own(to, queue);
    if (queue > 2)
        mgl_text_format(to, " wait c>=%d", count);
    mgl_text_put(to, " signal done\n");
}

static void write_signals(mgl_text *to, int count)
{
    write_queues(to, count, OWN_COLUMNS, put_one_counter, put_signals);
}

/* Thresholds below the number of signals: the proof must find which signals are always included. */
static void put_partial(mgl_text *to, int queue, int count)
{
    for (int i = 0; i < count && queue % 2 == 0; i++) {
        put_own(to, queue);
        mgl_text_put(to, " signal c\n");
    }
    put_own(to, queue);
    if (queue % 2)
        mgl_text_format(to, " wait c>=%d", count);
    mgl_text_put(to, " signal done\n");
}

static void write_partial(mgl_text *to, int count)
{
    write_queues(to, count, OWN_COLUMNS, put_one_counter, put_partial);
}

/* A task that waits for the same value many times. */
static void put_waits(mgl_text *to, int queue, int count)
{
    put_own(to, queue);
    mgl_text_put(to, queue < 130 ? " signal c\n" : " wait c>=128");
    for (int i = 1; i < count && queue >= 130; i++)
        mgl_text_put(to, ", c>=128");
    mgl_text_put(to, queue < 130 ? "" : "\n");
    put_own(to, queue);
    mgl_text_put(to, queue == 255 ? " wait c>=1 signal done\n" : " signal done\n");
}

static void write_waits(mgl_text *to, int count)
{
    write_queues(to, count, OWN_COLUMNS, put_one_counter, put_waits);
}

/* ---- the list -------------------------------------------------------------------------------- */

const slow_kind slow_kinds[] = {
    {"columns", write_columns, 90000}, {"planes", write_planes, 80000},
    {"steps", write_steps, 90000},     {"users", write_users, 10 * NESTED},
    {"ladder", write_staircase, 2000}, {"signals", write_signals, 700000},
    {"partial", write_partial, 128},   {"waits", write_waits, 50000},
};
const int slow_kind_count = sizeof slow_kinds / sizeof *slow_kinds;

void slow_write(const slow_kind *kind, int count, mgl_text *to)
{
    if (!base[0])
        read_base();
    kind->write(to, count);
}
