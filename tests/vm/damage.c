#include "damage.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "schedule/variants.h"

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
        tasks = (tasks || queue) && strcmp(line, "many") != 0;
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
int damage_draw(uint64_t *random, int below)
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
            damage_draw(random, ++seen) == 0)
            chosen = i;
    ck_assert(chosen >= 0 || *head);
    return chosen >= 0 ? chosen : draw_line(t, random, "", true);
}

/* A task; every other time a clear. */
static int draw_task(const schedule_text *t, uint64_t *random)
{
    return draw_line(t, random, damage_draw(random, 2) ? "clear" : "", true);
}

/* A list that is not empty. */
static struct list *draw_list(schedule_text *t, uint64_t *random, bool edges)
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

static char *draw_item(schedule_text *t, uint64_t *random, bool edges)
{
    struct list *list = draw_list(t, random, edges);
    return list->items[damage_draw(random, list->count)];
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
    insert_line(t, damage_draw(random, 2) ? at : draw_task(t, random), &line);
}

static void swap_tasks(schedule_text *t, uint64_t *random)
{
    int at = draw_task(t, random),
        other = damage_draw(random, 2) && at + 1 < t->count ? at + 1 : at - 1;
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
    int near = at - 3 + damage_draw(random, 7);
    bool stays = damage_draw(random, 2) && near < t->count && t->lines[near].task;
    insert_line(t, stays ? near : draw_line(t, random, "", true), &line);
}

/* ---- damages of regions and edges ----------------------------------------------------------- */

static void drop_region(schedule_text *t, uint64_t *random)
{
    struct list *list = draw_list(t, random, false);
    drop_item(list, damage_draw(random, 2) ? list->count - 1 : damage_draw(random, list->count));
}

static void double_region(schedule_text *t, uint64_t *random)
{
    struct list *list = draw_list(t, random, false);
    add_item(list, list->items[damage_draw(random, list->count)]);
}

/* A region of one clear goes to another. */
static void move_cleared(schedule_text *t, uint64_t *random)
{
    struct list *from = &t->lines[draw_line(t, random, "clear", true)].parts[OUT];
    struct list *to = &t->lines[draw_line(t, random, "clear", true)].parts[OUT];
    int item = from->count ? damage_draw(random, from->count) : 0;
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
    drop_item(list, damage_draw(random, list->count));
}

/* A wait or signal of one task for another one too, or in its place. */
static void add_edge(schedule_text *t, uint64_t *random)
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
    snprintf(text, sizeof text, " sets %d", damage_draw(random, 10));
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
    char *numbers[1] = {NULL}, *item = draw_item(t, random, true);
    if (find_numbers(item, numbers, 1))
        add_to(numbers[0], damage_draw(random, 2) ? 1 : -1,
               ITEM_BYTES - (size_t)(numbers[0] - item));
}

/* Another share of the rows, where the region has one: of so many, or of others, or all rows. */
static bool change_share(char *item, uint64_t *random)
{
    char *at = strstr(item, "[:rows "), share[32] = "";
    if (!at || damage_draw(random, 2))
        return false;
    at += strlen("[:rows");
    const int shares = damage_draw(random, 2) ? atoi(strchr(at, '/') + 1) : damage_draw(random, 4);
    if (shares > 0)
        snprintf(share, sizeof share, " %d/%d", damage_draw(random, shares), shares);
    replace(at, strcspn(at, ","), share, ITEM_BYTES - (size_t)(at - item));
    return true;
}

/* One number of a region by a little, or both ends of a range; or a share of the rows. */
static void change_range(schedule_text *t, uint64_t *random)
{
    static const int deltas[] = {-16, -8, -4, -1, 1, 4, 8, 16};
    char *numbers[16], *item = draw_item(t, random, false);
    if (change_share(item, random))
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

static void change_extent(schedule_text *t, uint64_t *random)
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

/* ---- damages of variants --------------------------------------------------------------------- */

/* The family of a task's op; MGL_FAMILY_COUNT: of a line that is none. */
static mgl_family family_of(const struct line *line)
{
    mgl_op op;
    return line->task && mgl_op_parse(line->head, strcspn(line->head, "."), &op)
               ? mgl_op_get(op)->family
               : MGL_FAMILY_COUNT;
}

static bool has_variants(const struct line *line)
{
    mgl_family family = family_of(line);
    return family == MGL_FAMILY_PRODUCT || family == MGL_FAMILY_ATTENTION;
}

/* A product or an attention; any task where there is none. */
static int draw_varied(const schedule_text *t, uint64_t *random)
{
    int seen = 0, chosen = -1;
    for (int i = 0; i < t->count; i++)
        if (has_variants(&t->lines[i]) && damage_draw(random, ++seen) == 0)
            chosen = i;
    return chosen >= 0 ? chosen : draw_line(t, random, "", true);
}

/* A variant, mostly one of the family; MGL_VARIANT_GENERAL, whose name is left out, too. */
static mgl_variant draw_variant(mgl_family family, uint64_t *random)
{
    for (bool any = damage_draw(random, 16) == 0;;) {
        mgl_variant variant = (mgl_variant)damage_draw(random, MGL_VARIANT_COUNT);
        if (any || variant == MGL_VARIANT_GENERAL || mgl_variant_get(variant)->family == family)
            return variant;
    }
}

static void name(struct line *line, mgl_variant variant)
{
    char *dot = line->head + strcspn(line->head, ".");
    *dot = 0;
    if (variant != MGL_VARIANT_GENERAL)
        snprintf(dot, (size_t)(line->head + HEAD_BYTES - dot), ".%s",
                 mgl_variant_get(variant)->name);
}

/* Adds a suffix, removes it, or names another. */
static void name_variant(schedule_text *t, uint64_t *random)
{
    struct line *line = &t->lines[draw_varied(t, random)];
    name(line, draw_variant(family_of(line), random));
}

/* All tasks of the op, or of the family. */
static void name_variants(schedule_text *t, uint64_t *random)
{
    const struct line drawn = t->lines[draw_varied(t, random)];
    const mgl_family family = family_of(&drawn);
    const mgl_variant variant = draw_variant(family, random);
    const size_t length = strcspn(drawn.head, ".");
    bool all = damage_draw(random, 2);
    for (int i = 0; i < t->count; i++) {
        struct line *line = &t->lines[i];
        bool same = strcspn(line->head, ".") == length && !memcmp(line->head, drawn.head, length);
        if (has_variants(line) && (all ? family_of(line) == family : same))
            name(line, variant);
    }
}

static void swap_variants(schedule_text *t, uint64_t *random)
{
    char *a = t->lines[draw_varied(t, random)].head, *b = t->lines[draw_varied(t, random)].head;
    char suffix[HEAD_BYTES];
    if (a == b)
        return;
    a += strcspn(a, ".");
    b += strcspn(b, ".");
    copy_string(suffix, a, sizeof suffix);
    copy_string(a, b, HEAD_BYTES / 2);
    copy_string(b, suffix, HEAD_BYTES / 2);
}

/* ---- damages of what variants were chosen for -------------------------------------------------
 */

/* The line that begins so, and what stands behind a word of it; NULL: there is none. */
static char *find_behind(schedule_text *t, const char *begin, const char *word, size_t *room)
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

static void change_word(schedule_text *t, const char *begin, const char *word, const char *by)
{
    size_t room;
    char *at = find_behind(t, begin, word, &room);
    if (at)
        replace(at, strcspn(at, " "), by, room);
}

#define DRAW_OF(list) list[damage_draw(random, (int)(sizeof list / sizeof *list))]

static void change_exec(schedule_text *t, uint64_t *random)
{
    static const char *const warps[] = {"1", "2", "3", "4", "5", "8", "16"};
    static const char *const rings[] = {"2", "3", "4", "5", "8", "11", "16", "40", "64"};
    static const char *const stages[] = {"1024", "2048", "4096", "8192", "9216", "16384", "32768"};
    static const char *const pages[] = {"2048", "2560", "4096", "8192", "16384"};
    static const char *const bytes[] = {"2048", "8192", "65536"};
    switch (damage_draw(random, 8)) {
    case 0:
    case 1:
        change_word(t, "exec ", " warps ", DRAW_OF(warps));
        break;
    case 2:
    case 3:
        change_word(t, "exec ", " ring ", DRAW_OF(rings));
        break;
    case 4:
    case 5:
        change_word(t, "exec ", " stage ", DRAW_OF(stages));
        break;
    case 6:
        change_word(t, "exec ", " page ", DRAW_OF(pages));
        break;
    default:
        change_word(t, "exec ", damage_draw(random, 2) ? " flight " : " pending ", DRAW_OF(bytes));
    }
}

/* The limit, and mostly the row tables with it. */
static void change_rows(schedule_text *t, uint64_t *random)
{
    static const char *const all[] = {"1", "2", "3", "4", "5", "8", "9", "16"};
    const char *rows = DRAW_OF(all);
    change_word(t, "limits ", " rows ", rows);
    if (damage_draw(random, 4) == 0)
        return;
    size_t room;
    char *extent = find_behind(t, "buffer table ", " i32 [", &room);
    if (extent)
        replace(extent, strcspn(extent, ","), rows, room);
    for (int i = 0; i < t->count; i++)
        for (int part = 0; part < PARTS; part++)
            for (int j = 0; j < t->lines[i].parts[part].count; j++) {
                char *item = t->lines[i].parts[part].items[j];
                if (!strncmp(item, "table[0:", 8))
                    replace(item + 8, strcspn(item + 8, ","), rows, ITEM_BYTES - 8);
            }
}

static void change_target(schedule_text *t, uint64_t *random)
{
    static const char *const archs[] = {"sm_80", "sm_89", "sm_90", "sm_90a", "cpu"};
    static const char *const shared[] = {"49152", "65536", "101376", "166912", "232448"};
    if (damage_draw(random, 3))
        change_word(t, "target", " ", DRAW_OF(archs));
    else
        change_word(t, "target", " shared ", DRAW_OF(shared));
}

/* One format for another, once or throughout, in one line or in all. */
static void change_formats(schedule_text *t, uint64_t *random)
{
    static const char *const formats[] = {" bf16", " f16", " f32"};
    const char *from = DRAW_OF(formats), *to = DRAW_OF(formats);
    bool all = damage_draw(random, 2), throughout = all || damage_draw(random, 2);
    const char *begin = damage_draw(random, 2) ? "types " : "buffer ";
    int line = draw_line(t, random, begin, false);
    for (int i = 0; i < t->count; i++) {
        char *head = t->lines[i].head;
        if (t->lines[i].task || (!all && i != line) || !strncmp(head, "counter ", 8))
            continue;
        for (char *at = head; (at = strstr(at, from)) != NULL; at += strlen(to)) {
            replace(at, strlen(from), to, HEAD_BYTES - (size_t)(at - head));
            if (!throughout)
                break;
        }
    }
}

/* A number of a region or segment of a product or an attention. */
static void change_shape(schedule_text *t, uint64_t *random)
{
    static const int deltas[] = {-64, -32, -16, -8, 8, 16, 32, 64};
    static const enum part parts[] = {IN, OUT, TAPE};
    char *numbers[16] = {NULL};
    struct list *list = &t->lines[draw_varied(t, random)].parts[DRAW_OF(parts)];
    char *item = list->items[list->count ? damage_draw(random, list->count) : 0];
    int count = list->count ? find_numbers(item, numbers, 16) : 0;
    if (count == 0)
        return;
    int which = damage_draw(random, count);
    add_to(numbers[which], DRAW_OF(deltas), ITEM_BYTES - (size_t)(numbers[which] - item));
}

/* ---- damages of biases and norms of q and k ---------------------------------------------------
 */

/* Whether a region is an operand that families have and others do not. */
static bool is_extra(const char *item)
{
    return strstr(item, "_b[") || strstr(item, ".q_g[") || strstr(item, ".k_g[");
}

/* The last input of a task that is one; -1: it has none. */
static int find_extra(const struct line *line)
{
    int i = line->parts[IN].count - 1;
    while (i >= 0 && !is_extra(line->parts[IN].items[i]))
        i--;
    return i;
}

static int draw_with_extra(const schedule_text *t, uint64_t *random)
{
    int seen = 0, chosen = -1;
    for (int i = 0; i < t->count; i++)
        if (t->lines[i].task && find_extra(&t->lines[i]) >= 0 && damage_draw(random, ++seen) == 0)
            chosen = i;
    return chosen;
}

/* The last one of a task, or all of a task, or all of all tasks of its op. */
static void drop_extras(schedule_text *t, uint64_t *random)
{
    int at = draw_with_extra(t, random), how = damage_draw(random, 3);
    for (int i = 0; at >= 0 && i < t->count; i++) {
        struct line *line = &t->lines[i];
        bool same = how == 2 && line->task && !strcmp(line->head, t->lines[at].head) && i != at;
        for (int n = 0; (i == at || same) && find_extra(line) >= 0 && (how || n == 0); n++)
            drop_item(&line->parts[IN], find_extra(line));
    }
}

/* One of a task goes to another, too or in its place; or two change places. */
static void move_extra(schedule_text *t, uint64_t *random)
{
    int at = draw_with_extra(t, random), other = draw_with_extra(t, random);
    if (at < 0)
        return;
    struct list *from = &t->lines[at].parts[IN], *to = &t->lines[other].parts[IN];
    char *a = from->items[find_extra(&t->lines[at])], *b = to->items[find_extra(&t->lines[other])];
    char copy[ITEM_BYTES];
    memcpy(copy, a, ITEM_BYTES);
    switch (damage_draw(random, 3)) {
    case 0:
        memmove(a, b, ITEM_BYTES);
        memcpy(b, copy, ITEM_BYTES);
        break;
    case 1:
        drop_item(from, find_extra(&t->lines[at]));
        add_item(to, copy);
        break;
    default:
        add_item(&t->lines[draw_varied(t, random)].parts[IN], copy);
    }
}

/* A constant vector as one more input of a product or an attention, or in the place of one. */
static void add_extra(schedule_text *t, uint64_t *random)
{
    char item[ITEM_BYTES];
    const char *buffer = t->lines[draw_line(t, random, "buffer ", false)].head + strlen("buffer ");
    const char *extent = strstr(buffer, " const f32 [");
    int at = draw_with_extra(t, random);
    if (!extent || strchr(extent, ','))
        return;
    snprintf(item, sizeof item, "%.*s[0:%d]", (int)strcspn(buffer, " "), buffer,
             atoi(extent + strlen(" const f32 [")));
    if (at >= 0 && damage_draw(random, 2))
        copy_string(t->lines[at].parts[IN].items[find_extra(&t->lines[at])], item, ITEM_BYTES);
    else
        add_item(&t->lines[draw_varied(t, random)].parts[IN], item);
}

/* ---- the list -------------------------------------------------------------------------------- */

static const struct damage {
    const char *name;
    void (*damage)(schedule_text *text, uint64_t *random);
    int weight;
    bool reshapes;
    damage_kind kind;
} damages[] = {
    {"drop a task", drop_task, 2, false, DAMAGE_WORK},
    {"double a task", double_task, 1, false, DAMAGE_WORK},
    {"swap tasks", swap_tasks, 6, false, DAMAGE_WORK},
    {"move a task", move_task, 6, false, DAMAGE_WORK},
    {"move a cleared region", move_cleared, 4, false, DAMAGE_WORK},
    {"drop a wait or signal", drop_edge, 3, false, DAMAGE_WORK},
    {"add a wait or signal", add_edge, 4, false, DAMAGE_WORK},
    {"change a counter", change_counter, 2, false, DAMAGE_WORK},
    {"change a threshold", change_threshold, 2, false, DAMAGE_WORK},
    {"flip a flag", flip_flag, 2, false, DAMAGE_WORK},
    {"change sets", change_sets, 2, false, DAMAGE_WORK},
    {"drop a region", drop_region, 2, true, DAMAGE_WORK},
    {"double a region", double_region, 1, true, DAMAGE_WORK},
    {"swap regions", swap_regions, 2, true, DAMAGE_WORK},
    {"change a buffer", retarget, 2, true, DAMAGE_WORK},
    {"change a range", change_range, 4, true, DAMAGE_WORK},
    {"change an extent", change_extent, 1, true, DAMAGE_WORK},
    {"name a variant", name_variant, 8, false, DAMAGE_VARIANTS},
    {"name a variant of all alike", name_variants, 6, false, DAMAGE_VARIANTS},
    {"swap variants", swap_variants, 3, false, DAMAGE_VARIANTS},
    {"change the exec line", change_exec, 4, true, DAMAGE_VARIANTS},
    {"change rows", change_rows, 3, true, DAMAGE_VARIANTS},
    {"change the target", change_target, 2, true, DAMAGE_VARIANTS},
    {"change formats", change_formats, 3, true, DAMAGE_VARIANTS},
    {"change a shape", change_shape, 3, true, DAMAGE_VARIANTS},
    {"drop biases or norms", drop_extras, 2, true, DAMAGE_VARIANTS},
    {"move a bias or norm", move_extra, 2, true, DAMAGE_VARIANTS},
    {"add a bias or norm", add_extra, 2, true, DAMAGE_VARIANTS},
};
enum { DAMAGES = sizeof damages / sizeof *damages };

const char *schedule_text_damage(schedule_text *text, damage_kind kind, uint64_t *random,
                                 bool *reshaped)
{
    int total = 0, i = -1;
    for (int d = 0; d < DAMAGES; d++)
        total += damages[d].kind == kind ? damages[d].weight : 0;
    for (int at = damage_draw(random, total); at >= 0;)
        at -= damages[++i].kind == kind ? damages[i].weight : 0;
    damages[i].damage(text, random);
    *reshaped = *reshaped || damages[i].reshapes;
    return damages[i].name;
}
