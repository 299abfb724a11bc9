/*
 * Damages of several places at once, which preserve more of a schedule's order: counters are
 * exchanged in a whole list, thresholds follow the remaining signals, queues exchange their tasks,
 * and a product is split in two.
 */
#include "damage_parts.h"

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- counters -------------------------------------------------------------------------------- */

static bool names_counter(const char *item, const char *counter)
{
    return mgl_text_is(item, strcspn(item, ">"), counter);
}

static const char *draw_counter(const schedule_text *t, uint64_t *random)
{
    return t->lines[draw_line(t, random, "counter ", false)].head + strlen("counter ");
}

static int count_signals(const schedule_text *t, int first, int end, const char *wait)
{
    int count = 0;
    for (int i = first; i < end; i++)
        for (int j = 0; t->lines[i].task && j < t->lines[i].parts[SIGNAL].count; j++)
            count += names_counter(wait, t->lines[i].parts[SIGNAL].items[j]);
    return count;
}

/* Sets the threshold of each wait, except 0, to the number of signals in its list. */
void mend_thresholds(schedule_text *t, uint64_t *random)
{
    const int begin = find_second(t);
    (void)random;
    for (int i = 0; i < t->count; i++)
        for (int j = 0; t->lines[i].task && j < t->lines[i].parts[WAIT].count; j++) {
            char *item = t->lines[i].parts[WAIT].items[j], *number = strstr(item, ">="), text[32];
            if (!number || atoi(number + 2) == 0)
                continue;
            snprintf(text, sizeof text, ">=%d",
                     count_signals(t, i < begin ? 0 : begin, i < begin ? begin : t->count, item));
            replace(number, strlen(number), text, ITEM_BYTES - (size_t)(number - item));
        }
}

/* Replaces one counter by another in all of a list, or of both. */
void rename_counter(schedule_text *t, uint64_t *random)
{
    const char *from = draw_counter(t, random), *to = draw_counter(t, random);
    const int begin = find_second(t), lists = damage_draw(random, 3);
    const int first = lists == 2 ? begin : 0, end = lists == 1 ? begin : t->count;
    for (int i = first; i < end; i++)
        for (int part = WAIT; t->lines[i].task && part <= SIGNAL; part++)
            for (int j = 0; j < t->lines[i].parts[part].count; j++) {
                char *item = t->lines[i].parts[part].items[j];
                if (names_counter(item, from))
                    replace(item, strlen(from), to, ITEM_BYTES);
            }
    if (damage_draw(random, 2))
        mend_thresholds(t, random);
}

void move_and_mend(schedule_text *t, uint64_t *random)
{
    move_task(t, random);
    mend_thresholds(t, random);
}

void add_and_mend(schedule_text *t, uint64_t *random)
{
    add_edge(t, random);
    mend_thresholds(t, random);
}

void drop_and_mend(schedule_text *t, uint64_t *random)
{
    drop_edge(t, random);
    mend_thresholds(t, random);
}

/* ---- queues ---------------------------------------------------------------------------------- */

struct span {
    int first, end; /* lines */
};

/* The tasks of a random queue of a list; none if the list has no queue. */
static struct span draw_queue(const schedule_text *t, uint64_t *random, int first, int end)
{
    struct span queue = {0, 0};
    int seen = 0;
    for (int i = first; i < end; i++)
        if (!strncmp(t->lines[i].head, "queue ", 6) && damage_draw(random, ++seen) == 0)
            queue = (struct span){i + 1, i + 1};
    while (queue.end > 0 && queue.end < end && t->lines[queue.end].task)
        queue.end++;
    return queue;
}

static void move_line(schedule_text *t, int from, int to)
{
    const struct line line = t->lines[from];
    drop_line(t, from);
    insert_line(t, to, &line);
}

/* Exchanges a task of two queues of a list, at the same index, or all of their tasks. */
void swap_queues(schedule_text *t, uint64_t *random)
{
    const int begin = find_second(t);
    const bool second = begin < t->count && damage_draw(random, 3);
    const int first = second ? begin : 0, end = second ? t->count : begin;
    struct span a = draw_queue(t, random, first, end), b = draw_queue(t, random, first, end);
    if (a.first > b.first) {
        const struct span lower = b;
        b = a;
        a = lower;
    }
    const int of_a = a.end - a.first, of_b = b.end - b.first, both = of_a < of_b ? of_a : of_b;
    if (a.first == b.first || both == 0)
        return;
    if (damage_draw(random, 2)) {
        const int place = damage_draw(random, both);
        swap_lines(t, a.first + place, b.first + place);
        return;
    }
    for (int i = 0; i < both; i++)
        swap_lines(t, a.first + i, b.first + i);
    for (int i = both; i < of_a; i++)
        move_line(t, a.first + both, b.end - 1);
    for (int i = both; i < of_b; i++)
        move_line(t, b.first + i, a.first + i);
}

/* ---- tasks in two ---------------------------------------------------------------------------- */

/* Reads "0:32": two numbers, and the end of the text. */
struct range {
    long low, high;
    char *end;
};

static struct range read_range(char *at)
{
    struct range range;
    range.low = range.high = strtol(at, &range.end, 10);
    if (range.end > at && *range.end == ':')
        range.high = strtol(range.end + 1, &range.end, 10);
    return range;
}

/* The last range of a region, or the first of a segment; NULL: none. */
static char *find_rows(char *item, bool segment)
{
    char *bracket = strchr(item, '['), *comma = strrchr(item, ',');
    if (!bracket)
        return NULL;
    return segment || !comma ? bracket + 1 : comma + 1;
}

/* Cuts a range of that width to [first, end). */
static void keep_between(char *item, bool segment, long width, long first, long end)
{
    char text[64], *at = find_rows(item, segment);
    const struct range range = at ? read_range(at) : (struct range){0, 0, NULL};
    if (range.high - range.low != width)
        return;
    snprintf(text, sizeof text, "%ld:%ld", range.low + first, range.low + end);
    replace(at, (size_t)(range.end - at), text, ITEM_BYTES - (size_t)(at - item));
}

/* Cuts a product to the weight rows [first, end): its segment, its outputs, its residual and its
 * biases. */
static void keep_rows(struct line *task, long width, long first, long end)
{
    keep_between(task->parts[TAPE].items[0], true, width, first, end);
    for (int i = 1; i < task->parts[IN].count; i++)
        if (strchr(task->parts[IN].items[i], ',') || is_extra(task->parts[IN].items[i]))
            keep_between(task->parts[IN].items[i], false, width, first, end);
    for (int i = 0; i < task->parts[OUT].count; i++)
        keep_between(task->parts[OUT].items[i], false, width, first, end);
}

/* Moves the start of a segment by this number of weight rows; segments of the second list state no
 * place. */
static void move_segment(schedule_text *t, char *segment, long rows)
{
    size_t room;
    char *place = strrchr(segment, '+'), *columns = strchr(segment, ',');
    const char *type = find_behind(t, "types ", " weights ", &room);
    if (!place || !columns || !type)
        return;
    const struct range range = read_range(columns + 1);
    const long bytes = strncmp(type, "f32", 3) ? 2 : 4, parts = strstr(segment, "g8x2") ? 2 : 1;
    add_to(place + 1, rows * (range.high - range.low) * bytes * parts,
           ITEM_BYTES - (size_t)(place + 1 - segment));
}

/* Splits a product of one segment into two consecutive tasks. */
void split_task(schedule_text *t, uint64_t *random)
{
    const int at = draw_varied(t, random);
    const long cut = 8 * (1 + damage_draw(random, 8));
    struct line *task = &t->lines[at];
    char *rows = task->parts[TAPE].count == 1 ? find_rows(task->parts[TAPE].items[0], true) : NULL;
    const struct range range = rows ? read_range(rows) : (struct range){0, 0, NULL};
    const long width = range.high - range.low;
    if (cut >= width)
        return;
    struct line second = *task;
    keep_rows(task, width, 0, cut);
    keep_rows(&second, width, cut, width);
    move_segment(t, second.parts[TAPE].items[0], cut);
    insert_line(t, at + 1, &second);
    mend_thresholds(t, random);
}
