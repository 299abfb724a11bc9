/* Splits a schedule text into its parts and joins them again. See damage_parts.h. */
#include "damage_parts.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static const char *const words[PARTS] = {" in ", " tape ", " out ", " wait ", " signal "};

/* ---- reading and printing -------------------------------------------------------------------- */

void copy_string(char *to, const char *from, size_t room)
{
    size_t length = strlen(from);
    ck_assert_uint_lt(length, room);
    memcpy(to, from, length + 1);
}

/* Splits the list between two words of a task's line at ", ". */
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
        tasks = (tasks || queue) && strcmp(line, "second") != 0;
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

/* ---- drawing --------------------------------------------------------------------------------- */

/* splitmix64. */
int damage_draw(uint64_t *random, int below)
{
    uint64_t z = *random += 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return (int)(((z ^ z >> 31) >> 32) * (uint64_t)below >> 32);
}

int draw_line(const schedule_text *t, uint64_t *random, const char *head, bool task)
{
    int seen = 0, chosen = -1;
    for (int i = 0; i < t->count; i++)
        if (t->lines[i].task == task && !strncmp(t->lines[i].head, head, strlen(head)) &&
            damage_draw(random, ++seen) == 0)
            chosen = i;
    ck_assert(chosen >= 0 || *head);
    return chosen >= 0 ? chosen : draw_line(t, random, "", true);
}

int draw_task(const schedule_text *t, uint64_t *random)
{
    return draw_line(t, random, damage_draw(random, 2) ? "clear" : "", true);
}

struct list *draw_list(schedule_text *t, uint64_t *random, bool edges)
{
    static const enum part regions[] = {IN, OUT, OUT, TAPE},
                           others[] = {WAIT, SIGNAL, WAIT, SIGNAL};
    for (;;) {
        enum part part =
            (edges ? others
                   : regions)[damage_draw(random, edges || damage_draw(random, 8) ? 3 : 4)];
        int task = edges ? draw_line(t, random, "", true) : draw_task(t, random);
        if (t->lines[task].parts[part].count)
            return &t->lines[task].parts[part];
    }
}

char *draw_item(schedule_text *t, uint64_t *random, bool edges)
{
    struct list *list = draw_list(t, random, edges);
    return list->items[damage_draw(random, list->count)];
}

/* ---- lists ----------------------------------------------------------------------------------- */

void drop_item(struct list *list, int index)
{
    for (int i = index + 1; i < list->count; i++)
        memcpy(list->items[i - 1], list->items[i], ITEM_BYTES);
    list->count--;
}

void add_item(struct list *list, const char *item)
{
    if (list->count < MOST_ITEMS)
        copy_string(list->items[list->count++], item, ITEM_BYTES);
}

void drop_line(schedule_text *t, int index)
{
    t->count--;
    memmove(&t->lines[index], &t->lines[index + 1], (size_t)(t->count - index) * sizeof *t->lines);
}

void insert_line(schedule_text *t, int index, const struct line *line)
{
    if (t->count == MOST_LINES)
        return;
    memmove(&t->lines[index + 1], &t->lines[index], (size_t)(t->count - index) * sizeof *t->lines);
    t->lines[index] = *line;
    t->count++;
}

void swap_lines(schedule_text *t, int a, int b)
{
    const struct line line = t->lines[a];
    t->lines[a] = t->lines[b];
    t->lines[b] = line;
}

int find_second(const schedule_text *t)
{
    int i = 0;
    while (i < t->count && (t->lines[i].task || strcmp(t->lines[i].head, "second") != 0))
        i++;
    return i;
}

void replace(char *at, size_t length, const char *by, size_t room)
{
    size_t rest = strlen(at + length) + 1, wanted = strlen(by);
    if (wanted + rest > room)
        return;
    memmove(at + wanted, at + length, rest);
    memcpy(at, by, wanted);
}

/* ---- names and numbers ----------------------------------------------------------------------- */

int find_numbers(char *text, char **numbers, int most)
{
    int count = 0;
    for (char *at = text + strcspn(text, "[>@"); *at; at++)
        if (*at >= '0' && *at <= '9' && strchr("[,:+= ", at[-1]) && count < most)
            numbers[count++] = at;
    return count;
}

void add_to(char *number, int64_t delta, size_t room)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", strtoll(number, NULL, 10) + (long long)delta);
    replace(number, strspn(number, "0123456789"), text, room);
}

char *find_behind(schedule_text *t, const char *begin, const char *word, size_t *room)
{
    for (int i = 0; i < t->count; i++) {
        char *head = t->lines[i].head;
        char *at = strncmp(head, begin, strlen(begin)) ? NULL : strstr(head, word);
        if (at) {
            *room = HEAD_BYTES - (size_t)(at + strlen(word) - head);
            return at + strlen(word);
        }
    }
    return NULL;
}

void change_word(schedule_text *t, const char *begin, const char *word, const char *by)
{
    size_t room;
    char *at = find_behind(t, begin, word, &room);
    if (at)
        replace(at, strcspn(at, " "), by, room);
}
