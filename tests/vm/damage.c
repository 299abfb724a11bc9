#include "damage.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { MOST_LINES = 256, MOST_ITEMS = 16, ITEM_BYTES = 80, HEAD_BYTES = 160 };

/* What follows the op of a task, in the order of the text. */
enum part { IN, TAPE, OUT, WAIT, SIGNAL, PARTS };
static const char *const words[PARTS] = {" in ", " tape ", " out ", " wait ", " signal "};

struct list {
    int count;
    char items[MOST_ITEMS][ITEM_BYTES];
};

struct line {
    bool task;
    char head[HEAD_BYTES]; /* the op of a task; else the whole line */
    struct list parts[PARTS];
};

struct schedule_text {
    int count;
    struct line lines[MOST_LINES];
};

/* ---- reading and printing ------------------------------------------------------------------- */

static void copy_string(char *to, const char *from, size_t room)
{
    size_t length = strlen(from);
    ck_assert_uint_lt(length, room);
    memcpy(to, from, length + 1);
}

/* The list between two words of a task's line, at ", ". */
static void read_list(struct list *to, const char *from, const char *end)
{
    while (from < end) {
        const char *comma = strstr(from, ", ");
        const char *stop = comma && comma < end ? comma : end;
        ck_assert_int_lt(to->count, MOST_ITEMS);
        ck_assert_int_lt(stop - from, ITEM_BYTES);
        memcpy(to->items[to->count++], from, (size_t)(stop - from));
        from = stop == end ? end : stop + 2;
    }
}

static void read_task(struct line *line, const char *text)
{
    const char *at = text + strcspn(text, " ");
    line->task = true;
    memcpy(line->head, text, (size_t)(at - text));
    for (enum part part = IN; part < PARTS; part++) {
        size_t length = strlen(words[part]);
        if (strncmp(at, words[part], length) != 0)
            continue;
        const char *end = at + strlen(at);
        for (int next = (int)part + 1; next < PARTS; next++) {
            const char *found = strstr(at, words[next]);
            end = found && found < end ? found : end;
        }
        read_list(&line->parts[part], at + length, end);
        at = end;
    }
}

schedule_text *schedule_text_read(const char *text)
{
    schedule_text *to = mgl_alloc_zero(1, sizeof *to);
    bool tasks = false;
    for (; *text; text += strcspn(text, "\n") + 1) {
        char line[4096];
        struct line *next = &to->lines[to->count++];
        size_t length = strcspn(text, "\n");
        ck_assert_int_lt(to->count, MOST_LINES);
        ck_assert_uint_lt(length, sizeof line);
        memcpy(line, text, length);
        line[length] = 0;
        bool queue = !strncmp(line, "queue ", 6);
        tasks = tasks || queue;
        if (tasks && !queue && length)
            read_task(next, line);
        else
            copy_string(next->head, line, HEAD_BYTES);
    }
    return to;
}

schedule_text *schedule_text_copy(const schedule_text *from)
{
    schedule_text *to = mgl_alloc(sizeof *to);
    to->count = from->count;
    memcpy(to->lines, from->lines, (size_t)from->count * sizeof *from->lines);
    return to;
}

void schedule_text_free(schedule_text *text)
{
    mgl_free(text);
}

void schedule_text_print(const schedule_text *text, mgl_text *to)
{
    for (int i = 0; i < text->count; i++) {
        const struct line *line = &text->lines[i];
        mgl_text_put(to, line->head);
        for (int part = 0; line->task && part < PARTS; part++)
            for (int j = 0; j < line->parts[part].count; j++) {
                mgl_text_put(to, j ? ", " : words[part]);
                mgl_text_put(to, line->parts[part].items[j]);
            }
        mgl_text_put(to, "\n");
    }
}

/* ---- drawing -------------------------------------------------------------------------------- */

/* splitmix64. */
static int draw(uint64_t *random, int below)
{
    uint64_t z = *random += 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return (int)(((z ^ z >> 31) >> 32) * (uint64_t)below >> 32);
}

/* The index of a line of that kind: `head` begins it, "" any; a task or not. Any task where all
 * clears are lost. */
static int draw_line(const schedule_text *t, uint64_t *random, const char *head, bool task)
{
    int seen = 0, chosen = -1;
    for (int i = 0; i < t->count; i++)
        if (t->lines[i].task == task && !strncmp(t->lines[i].head, head, strlen(head)) &&
            draw(random, ++seen) == 0)
            chosen = i;
    ck_assert(chosen >= 0 || *head);
    return chosen >= 0 ? chosen : draw_line(t, random, "", true);
}

/* A task; every other time a clear. */
static int draw_task(const schedule_text *t, uint64_t *random)
{
    return draw_line(t, random, draw(random, 2) ? "clear" : "", true);
}

/* A list that is not empty. */
static struct list *draw_list(schedule_text *t, uint64_t *random, bool edges)
{
    static const enum part regions[] = {IN, OUT, OUT, TAPE},
                           others[] = {WAIT, SIGNAL, WAIT, SIGNAL};
    for (;;) {
        enum part part = (edges ? others : regions)[draw(random, edges || draw(random, 8) ? 3 : 4)];
        int task = edges ? draw_line(t, random, "", true) : draw_task(t, random);
        if (t->lines[task].parts[part].count)
            return &t->lines[task].parts[part];
    }
}

static char *draw_item(schedule_text *t, uint64_t *random, bool edges)
{
    struct list *list = draw_list(t, random, edges);
    return list->items[draw(random, list->count)];
}

/* ---- lists ---------------------------------------------------------------------------------- */

static void drop_item(struct list *list, int index)
{
    for (int i = index + 1; i < list->count; i++)
        memcpy(list->items[i - 1], list->items[i], ITEM_BYTES);
    list->count--;
}

static void add_item(struct list *list, const char *item)
{
    if (list->count < MOST_ITEMS)
        copy_string(list->items[list->count++], item, ITEM_BYTES);
}

static void drop_line(schedule_text *t, int index)
{
    t->count--;
    memmove(&t->lines[index], &t->lines[index + 1], (size_t)(t->count - index) * sizeof *t->lines);
}

static void insert_line(schedule_text *t, int index, const struct line *line)
{
    if (t->count == MOST_LINES)
        return;
    memmove(&t->lines[index + 1], &t->lines[index], (size_t)(t->count - index) * sizeof *t->lines);
    t->lines[index] = *line;
    t->count++;
}

/* Replaces `length` bytes of a string by another string, where the room is enough. */
static void replace(char *at, size_t length, const char *by, size_t room)
{
    size_t rest = strlen(at + length) + 1, wanted = strlen(by);
    if (wanted + rest > room)
        return;
    memmove(at + wanted, at + length, rest);
    memcpy(at, by, wanted);
}

/* ---- damages of tasks ----------------------------------------------------------------------- */

static void drop_task(schedule_text *t, uint64_t *random)
{
    drop_line(t, draw_task(t, random));
}

static void double_task(schedule_text *t, uint64_t *random)
{
    int at = draw_task(t, random);
    struct line line = t->lines[at];
    insert_line(t, draw(random, 2) ? at : draw_task(t, random), &line);
}

static void swap_tasks(schedule_text *t, uint64_t *random)
{
    int at = draw_task(t, random), other = draw(random, 2) && at + 1 < t->count ? at + 1 : at - 1;
    struct line line = t->lines[at];
    if (!t->lines[other].task)
        return;
    t->lines[at] = t->lines[other];
    t->lines[other] = line;
}

/* To anywhere, or a few tasks up or down. */
static void move_task(schedule_text *t, uint64_t *random)
{
    int at = draw_task(t, random);
    struct line line = t->lines[at];
    drop_line(t, at);
    int near = at - 3 + draw(random, 7);
    bool stays = draw(random, 2) && near < t->count && t->lines[near].task;
    insert_line(t, stays ? near : draw_line(t, random, "", true), &line);
}

/* ---- damages of regions and edges ----------------------------------------------------------- */

static void drop_region(schedule_text *t, uint64_t *random)
{
    struct list *list = draw_list(t, random, false);
    drop_item(list, draw(random, 2) ? list->count - 1 : draw(random, list->count));
}

static void double_region(schedule_text *t, uint64_t *random)
{
    struct list *list = draw_list(t, random, false);
    add_item(list, list->items[draw(random, list->count)]);
}

/* A region of one clear goes to another. */
static void move_cleared(schedule_text *t, uint64_t *random)
{
    struct list *from = &t->lines[draw_line(t, random, "clear", true)].parts[OUT];
    struct list *to = &t->lines[draw_line(t, random, "clear", true)].parts[OUT];
    int item = from->count ? draw(random, from->count) : 0;
    if (!from->count || from == to)
        return;
    add_item(to, from->items[item]);
    drop_item(from, item);
}

/* The region between two tasks, or two of one, change places. */
static void swap_regions(schedule_text *t, uint64_t *random)
{
    char *a = draw_item(t, random, false), *b = draw_item(t, random, false), copy[ITEM_BYTES];
    memcpy(copy, a, ITEM_BYTES);
    memmove(a, b, ITEM_BYTES);
    memcpy(b, copy, ITEM_BYTES);
}

static void drop_edge(schedule_text *t, uint64_t *random)
{
    struct list *list = draw_list(t, random, true);
    drop_item(list, draw(random, list->count));
}

/* A wait or signal of one task for another one too, or in its place. */
static void add_edge(schedule_text *t, uint64_t *random)
{
    enum part part = draw(random, 2) ? WAIT : SIGNAL;
    struct list *from = &t->lines[draw_line(t, random, "", true)].parts[part];
    struct list *to = &t->lines[draw_line(t, random, "", true)].parts[part];
    if (!from->count)
        return;
    add_item(to, from->items[draw(random, from->count)]);
    if (from != to && draw(random, 4) == 0)
        drop_item(from, from->count - 1);
}

/* Another counter, the threshold as it is. */
static void change_counter(schedule_text *t, uint64_t *random)
{
    char *item = draw_item(t, random, true);
    const char *counter = t->lines[draw_line(t, random, "counter ", false)].head;
    replace(item, strcspn(item, ">"), counter + strlen("counter "), ITEM_BYTES);
}

/* ---- damages of flags and sets -------------------------------------------------------------- */

static void flip_flag(schedule_text *t, uint64_t *random)
{
    char *item = draw_item(t, random, false);
    bool flag = !strncmp(item, "flag ", 5);
    replace(item, flag ? 5 : 0, flag ? "" : "flag ", ITEM_BYTES);
}

static void change_sets(schedule_text *t, uint64_t *random)
{
    char *head = t->lines[draw_line(t, random, "buffer ", false)].head, text[32];
    char *sets = strstr(head, " sets ");
    snprintf(text, sizeof text, " sets %d", draw(random, 10));
    if (!strstr(head, " act "))
        return;
    replace(sets ? sets : head + strlen(head), sets ? strlen(sets) : 0, text,
            HEAD_BYTES - (size_t)((sets ? sets : head + strlen(head)) - head));
}

/* ---- damages of names and numbers ----------------------------------------------------------- */

static void retarget(schedule_text *t, uint64_t *random)
{
    char *item = draw_item(t, random, false), name[ITEM_BYTES];
    const char *other = draw_item(t, random, false);
    size_t flag = strncmp(item, "flag ", 5) ? 0 : 5, skip = strncmp(other, "flag ", 5) ? 0 : 5;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(other + skip, "["), other + skip);
    replace(item + flag, strcspn(item + flag, "["), name, ITEM_BYTES - flag);
}

/* Where the numbers of a string are, names left out: behind "[" or ">", and those of a tape. */
static int find_numbers(char *text, char **numbers, int most)
{
    int count = 0;
    for (char *at = text + strcspn(text, "[>@"); *at; at++)
        if (*at >= '0' && *at <= '9' && strchr("[,:+= ", at[-1]) && count < most)
            numbers[count++] = at;
    return count;
}

static void add_to(char *number, int64_t delta, size_t room)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", strtoll(number, NULL, 10) + (long long)delta);
    replace(number, strspn(number, "0123456789"), text, room);
}

static void change_threshold(schedule_text *t, uint64_t *random)
{
    char *numbers[1], *item = draw_item(t, random, true);
    if (find_numbers(item, numbers, 1))
        add_to(numbers[0], draw(random, 2) ? 1 : -1, ITEM_BYTES - (size_t)(numbers[0] - item));
}

/* One number of a region by a little, or both ends of a range. */
static void change_range(schedule_text *t, uint64_t *random)
{
    static const int deltas[] = {-16, -8, -4, -1, 1, 4, 8, 16};
    char *numbers[16], *item = draw_item(t, random, false);
    int count = find_numbers(item, numbers, 16), delta = deltas[draw(random, 8)];
    if (count == 0)
        return;
    int which = draw(random, count);
    bool shift = which > 0 && numbers[which][-1] == ':' && draw(random, 2);
    add_to(numbers[which], delta, ITEM_BYTES - (size_t)(numbers[which] - item));
    if (shift)
        add_to(numbers[which - 1], delta, ITEM_BYTES - (size_t)(numbers[which - 1] - item));
}

static void change_extent(schedule_text *t, uint64_t *random)
{
    static const int deltas[] = {-16, -4, -1, 1, 4, 16};
    char *numbers[16], *head = t->lines[draw_line(t, random, "buffer ", false)].head;
    int count = find_numbers(head, numbers, 16);
    if (count == 0)
        return;
    int which = draw(random, count);
    add_to(numbers[which], deltas[draw(random, 6)], HEAD_BYTES - (size_t)(numbers[which] - head));
}

const char *schedule_text_damage(schedule_text *text, uint64_t *random, bool *reshaped)
{
    static const struct {
        const char *name;
        void (*damage)(schedule_text *text, uint64_t *random);
        int weight;
        bool reshapes;
    } damages[] = {
        {"drop a task", drop_task, 2, false},
        {"double a task", double_task, 1, false},
        {"swap tasks", swap_tasks, 6, false},
        {"move a task", move_task, 6, false},
        {"move a cleared region", move_cleared, 4, false},
        {"drop a wait or signal", drop_edge, 3, false},
        {"add a wait or signal", add_edge, 4, false},
        {"change a counter", change_counter, 2, false},
        {"change a threshold", change_threshold, 2, false},
        {"flip a flag", flip_flag, 2, false},
        {"change sets", change_sets, 2, false},
        {"drop a region", drop_region, 2, true},
        {"double a region", double_region, 1, true},
        {"swap regions", swap_regions, 2, true},
        {"change a buffer", retarget, 2, true},
        {"change a range", change_range, 4, true},
        {"change an extent", change_extent, 1, true},
    };
    int total = 0, i = 0;
    for (size_t d = 0; d < sizeof damages / sizeof *damages; d++)
        total += damages[d].weight;
    for (int at = draw(random, total); at >= damages[i].weight; i++)
        at -= damages[i].weight;
    damages[i].damage(text, random);
    *reshaped = *reshaped || damages[i].reshapes;
    return damages[i].name;
}
