/* Damages of the tasks and their order. */
#include "damage_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- damages of tasks ------------------------------------------------------------------------ */

void drop_task(schedule_text *t, uint64_t *random)
{
    drop_line(t, draw_task(t, random));
}

void double_task(schedule_text *t, uint64_t *random)
{
    int at = draw_task(t, random);
    struct line line = t->lines[at];
    insert_line(t, damage_draw(random, 2) ? at : draw_task(t, random), &line);
}

/* Writes the rows of a kind in place of those of all outputs of a task, and of its input of partial
 * results. */
static void set_rows(struct line *line, const char *rows)
{
    for (int part = 0; part < PARTS; part++)
        for (int i = 0; i < line->parts[part].count; i++) {
            char *item = line->parts[part].items[i], *at = strstr(item, ":rows");
            if (part != OUT && !strstr(item, "part["))
                continue;
            if (!at && strstr(item, ",pos"))
                at = strstr(item, ",pos") - 1;
            if (at) {
                at += strlen(":rows");
                replace(at, strcspn(at, ",]"), rows, ITEM_BYTES - (size_t)(at - item));
            }
        }
}

/* Replaces a task by one of the unsplit rows and one of the split rows. */
void divide_task(schedule_text *t, uint64_t *random)
{
    const int at = draw_task(t, random);
    struct line line = t->lines[at];
    const int first = damage_draw(random, 2);
    set_rows(&t->lines[at], first ? " unsplit" : " split");
    set_rows(&line, first ? " split" : " unsplit");
    insert_line(t, at + 1, &line);
}

void swap_tasks(schedule_text *t, uint64_t *random)
{
    int at = draw_task(t, random),
        other = damage_draw(random, 2) && at + 1 < t->count ? at + 1 : at - 1;
    if (t->lines[other].task)
        swap_lines(t, at, other);
}

/* Moves a task anywhere, or a few tasks up or down. */
void move_task(schedule_text *t, uint64_t *random)
{
    int at = draw_task(t, random);
    struct line line = t->lines[at];
    drop_line(t, at);
    int near = at - 3 + damage_draw(random, 7);
    bool stays = damage_draw(random, 2) && near < t->count && t->lines[near].task;
    insert_line(t, stays ? near : draw_line(t, random, "", true), &line);
}

/* ---- damages of regions and edges ------------------------------------------------------------ */

void drop_region(schedule_text *t, uint64_t *random)
{
    struct list *list = draw_list(t, random, false);
    drop_item(list, damage_draw(random, 2) ? list->count - 1 : damage_draw(random, list->count));
}

void double_region(schedule_text *t, uint64_t *random)
{
    struct list *list = draw_list(t, random, false);
    add_item(list, list->items[damage_draw(random, list->count)]);
}

/* Moves a region of one clear to another. */
void move_cleared(schedule_text *t, uint64_t *random)
{
    struct list *from = &t->lines[draw_line(t, random, "clear", true)].parts[OUT];
    struct list *to = &t->lines[draw_line(t, random, "clear", true)].parts[OUT];
    int item = from->count ? damage_draw(random, from->count) : 0;
    if (!from->count || from == to)
        return;
    add_item(to, from->items[item]);
    drop_item(from, item);
}

/* Exchanges a region of two tasks, or two regions of one task. */
void swap_regions(schedule_text *t, uint64_t *random)
{
    char *a = draw_item(t, random, false), *b = draw_item(t, random, false), copy[ITEM_BYTES];
    memcpy(copy, a, ITEM_BYTES);
    memmove(a, b, ITEM_BYTES);
    memcpy(b, copy, ITEM_BYTES);
}

void drop_edge(schedule_text *t, uint64_t *random)
{
    struct list *list = draw_list(t, random, true);
    drop_item(list, damage_draw(random, list->count));
}

/* Copies or moves a wait or signal to another task. */
void add_edge(schedule_text *t, uint64_t *random)
{
    enum part part = damage_draw(random, 2) ? WAIT : SIGNAL;
    struct list *from = &t->lines[draw_line(t, random, "", true)].parts[part];
    struct list *to = &t->lines[draw_line(t, random, "", true)].parts[part];
    if (!from->count)
        return;
    add_item(to, from->items[damage_draw(random, from->count)]);
    if (from != to && damage_draw(random, 4) == 0)
        drop_item(from, from->count - 1);
}

/* Replaces the counter and keeps the threshold. */
void change_counter(schedule_text *t, uint64_t *random)
{
    char *item = draw_item(t, random, true);
    const char *counter = t->lines[draw_line(t, random, "counter ", false)].head;
    replace(item, strcspn(item, ">"), counter + strlen("counter "), ITEM_BYTES);
}

/* ---- damages of flags and sets --------------------------------------------------------------- */

void flip_flag(schedule_text *t, uint64_t *random)
{
    char *item = draw_item(t, random, false);
    bool flag = !strncmp(item, "flag ", 5);
    replace(item, flag ? 5 : 0, flag ? "" : "flag ", ITEM_BYTES);
}

void change_sets(schedule_text *t, uint64_t *random)
{
    char *head = t->lines[draw_line(t, random, "buffer ", false)].head, text[32];
    char *sets = strstr(head, " sets ");
    snprintf(text, sizeof text, " sets %d", damage_draw(random, 10));
    if (!strstr(head, " act "))
        return;
    replace(sets ? sets : head + strlen(head), sets ? strlen(sets) : 0, text,
            HEAD_BYTES - (size_t)((sets ? sets : head + strlen(head)) - head));
}

/* ---- damages of names and numbers ------------------------------------------------------------ */

void retarget(schedule_text *t, uint64_t *random)
{
    char *item = draw_item(t, random, false), name[ITEM_BYTES];
    const char *other = draw_item(t, random, false);
    size_t flag = strncmp(item, "flag ", 5) ? 0 : 5, skip = strncmp(other, "flag ", 5) ? 0 : 5;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(other + skip, "["), other + skip);
    replace(item + flag, strcspn(item + flag, "["), name, ITEM_BYTES - flag);
}

void change_threshold(schedule_text *t, uint64_t *random)
{
    char *numbers[1] = {NULL}, *item = draw_item(t, random, true);
    if (find_numbers(item, numbers, 1))
        add_to(numbers[0], damage_draw(random, 2) ? 1 : -1,
               ITEM_BYTES - (size_t)(numbers[0] - item));
}

/* Changes the rows of a region to all rows, the unsplit or the split rows, or a share i/n. Returns
 * false if the region has no rows, or if it has all rows and `any` is false. */
static bool change_part_of_rows(char *item, bool any, uint64_t *random)
{
    static const char *const parts[] = {"", " split", " unsplit"};
    char *at = strstr(item, ":rows"), part[32];
    if (!at && strstr(item, ",pos"))
        at = strstr(item, ",pos") - 1;
    if (!at || (!any && at[strlen(":rows")] != ' '))
        return false;
    at += strlen(":rows");
    snprintf(part, sizeof part, "%s", DRAW_OF(parts));
    const char *slash = memchr(at, '/', strcspn(at, ",]"));
    const int shares = slash && damage_draw(random, 2) ? atoi(slash + 1) : damage_draw(random, 4);
    if (shares > 0 && (slash || damage_draw(random, 8) == 0))
        snprintf(part, sizeof part, " %d/%d", damage_draw(random, shares), shares);
    replace(at, strcspn(at, ",]"), part, ITEM_BYTES - (size_t)(at - item));
    return true;
}

void change_rows_of(schedule_text *t, uint64_t *random)
{
    enum { DRAWS = 40 }; /* few regions have kinds of rows */
    char *item = draw_item(t, random, false);
    const bool any = damage_draw(random, 4) == 0;
    for (int i = 0; i < DRAWS && !any && !strstr(item, "split"); i++)
        item = draw_item(t, random, false);
    change_part_of_rows(item, any, random);
}

/* Changes one number of a region a little, or both ends of a range; or the rows of the region. */
void change_range(schedule_text *t, uint64_t *random)
{
    static const int deltas[] = {-16, -8, -4, -1, 1, 4, 8, 16};
    char *numbers[16], *item = draw_item(t, random, false);
    if (damage_draw(random, 2) && change_part_of_rows(item, false, random))
        return;
    int count = find_numbers(item, numbers, 16), delta = deltas[damage_draw(random, 8)];
    if (count == 0)
        return;
    int which = damage_draw(random, count);
    bool shift = which > 0 && numbers[which][-1] == ':' && damage_draw(random, 2);
    add_to(numbers[which], delta, ITEM_BYTES - (size_t)(numbers[which] - item));
    if (shift)
        add_to(numbers[which - 1], delta, ITEM_BYTES - (size_t)(numbers[which - 1] - item));
}

void change_extent(schedule_text *t, uint64_t *random)
{
    static const int deltas[] = {-16, -4, -1, 1, 4, 16};
    char *numbers[16], *head = t->lines[draw_line(t, random, "buffer ", false)].head;
    int count = find_numbers(head, numbers, 16);
    if (count == 0)
        return;
    int which = damage_draw(random, count);
    add_to(numbers[which], deltas[damage_draw(random, 6)],
           HEAD_BYTES - (size_t)(numbers[which] - head));
}
