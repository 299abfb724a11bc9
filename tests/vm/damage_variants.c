/* Damages of kernel variants, and of the conditions for which they were chosen. */
#include "damage_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schedule/variants.h"

/* ---- damages of variants --------------------------------------------------------------------- */

/* The family of a task's op; MGL_FAMILY_COUNT: not a task. */
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

int draw_varied(const schedule_text *t, uint64_t *random)
{
    int seen = 0, chosen = -1;
    for (int i = 0; i < t->count; i++)
        if (has_variants(&t->lines[i]) && damage_draw(random, ++seen) == 0)
            chosen = i;
    return chosen >= 0 ? chosen : draw_line(t, random, "", true);
}

/* A random variant, usually of the family. MGL_VARIANT_GENERAL has no name in the text. */
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

/* Adds a variant's suffix, removes it, or replaces it. */
void name_variant(schedule_text *t, uint64_t *random)
{
    struct line *line = &t->lines[draw_varied(t, random)];
    name(line, draw_variant(family_of(line), random));
}

/* Changes all tasks of the op, or of the family. */
void name_variants(schedule_text *t, uint64_t *random)
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

void swap_variants(schedule_text *t, uint64_t *random)
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

/* ---- damages of what variants were chosen for ------------------------------------------------ */

/* Words of the exec line, with possible numbers. */
typedef struct exec_choice {
    const char *word;
    const char *numbers[16];
} exec_choice;

static void change_exec_word(schedule_text *t, uint64_t *random, const exec_choice *choice)
{
    int count = 0;
    while (count < 16 && choice->numbers[count])
        count++;
    change_word(t, "exec ", choice->word, choice->numbers[damage_draw(random, count)]);
}

void change_exec(schedule_text *t, uint64_t *random)
{
    static const exec_choice choices[] = {
        {" warps ", {"1", "2", "3", "4", "5", "8", "16"}},
        {" ring ", {"2", "3", "4", "5", "8", "11", "16", "40", "64"}},
        {" stage ", {"1024", "2048", "4096", "8192", "9216", "16384", "32768"}},
        {" page ", {"2048", "2560", "4096", "8192", "16384"}},
        {" flight ", {"2048", "8192", "65536"}},
        {" pending ", {"2048", "8192", "65536"}}};
    change_exec_word(t, random, &DRAW_OF(choices));
}

/* Values for gamma-scaled products of a second list: large stages, and suitable rings. */
void change_ring(schedule_text *t, uint64_t *random)
{
    static const exec_choice choices[] = {
        {" ring ", {"4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "16", "20"}},
        {" stage ",
         {"16384", "32768", "49152", "65536", "98304", "110592", "126976", "130048", "131072",
          "147456", "163840"}},
        {" warps ",
         {"1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16"}},
        {" page ", {"1024", "2048", "4096", "8192", "16384"}},
        {" flight ", {"0", "1", "512", "2048", "8192", "65536", "1048576", "1073741824"}},
        {" prefetch ", {"0", "1", "512", "2048", "8192", "65536", "1048576", "1073741824"}}};
    change_exec_word(t, random, &DRAW_OF(choices));
}

/* Changes a limit, and the row tables with it. */
static void change_limit(schedule_text *t, const char *word, const char *rows, bool tables)
{
    size_t room;
    change_word(t, "limits ", word, rows);
    char *extent = tables ? find_behind(t, "buffer table ", " i32 [", &room) : NULL;
    if (extent)
        replace(extent, strcspn(extent, ","), rows, room);
    for (int i = 0; i < t->count; i++)
        for (int part = 0; tables && part < PARTS; part++)
            for (int j = 0; j < t->lines[i].parts[part].count; j++) {
                char *item = t->lines[i].parts[part].items[j];
                if (!strncmp(item, "table[0:", 8))
                    replace(item + 8, strcspn(item + 8, ","), rows, ITEM_BYTES - 8);
            }
}

void change_rows(schedule_text *t, uint64_t *random)
{
    static const char *const all[] = {"1", "2", "3", "4", "5", "8", "9", "16"};
    const char *rows = DRAW_OF(all);
    change_limit(t, " rows ", rows, damage_draw(random, 4));
}

void change_many(schedule_text *t, uint64_t *random)
{
    static const char *const all[] = {"1",  "2",  "4",  "5",  "6",  "7",   "8",  "9",
                                      "15", "16", "17", "24", "31", "32",  "33", "40",
                                      "48", "63", "64", "65", "96", "127", "128"};
    const char *rows = DRAW_OF(all);
    if (find_second(t) < t->count)
        change_limit(t, " second_rows ", rows, damage_draw(random, 8));
}

void change_share_limit(schedule_text *t, uint64_t *random)
{
    static const char *const all[] = {"0", "1", "2", "3", "7", "8", "16", "255", "256", "1000"};
    change_word(t, "limits ", " share ", DRAW_OF(all));
}

void change_unsplit_limit(schedule_text *t, uint64_t *random)
{
    static const char *const all[] = {"0", "1", "2", "3", "4", "5", "7", "9", "10", "1000"};
    change_word(t, "limits ", " unsplit ", DRAW_OF(all));
}

void toggle_paged(schedule_text *t, uint64_t *random)
{
    char *head = t->lines[draw_line(t, random, "buffer ", false)].head;
    char *paged = strstr(head, " paged"), *end = head + strlen(head);
    if (paged)
        replace(paged, strlen(" paged"), "", HEAD_BYTES - (size_t)(paged - head));
    else if (strstr(head, " act "))
        replace(end, 0, " paged", HEAD_BYTES - (size_t)(end - head));
}

void change_target(schedule_text *t, uint64_t *random)
{
    static const char *const archs[] = {"sm_80", "sm_89", "sm_90", "sm_90a", "cpu"};
    static const char *const shared[] = {"49152", "65536", "101376", "166912", "232448"};
    if (damage_draw(random, 3))
        change_word(t, "target", " ", DRAW_OF(archs));
    else
        change_word(t, "target", " shared ", DRAW_OF(shared));
}

/* Replaces one format by another, once or everywhere, in one line or in all. */
void change_formats(schedule_text *t, uint64_t *random)
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

/* Changes a number of a region or segment of a product or an attention. */
void change_shape(schedule_text *t, uint64_t *random)
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

/* ---- damages of biases and norms of q and k -------------------------------------------------- */

bool is_extra(const char *item)
{
    return strstr(item, "_b[") || strstr(item, ".q_g[") || strstr(item, ".k_g[");
}

/* The last bias or norm among a task's inputs; -1: none. */
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

/* Removes the last bias or norm of a task, or all of a task, or of all tasks of its op. */
void drop_extras(schedule_text *t, uint64_t *random)
{
    int at = draw_with_extra(t, random), how = damage_draw(random, 3);
    for (int i = 0; at >= 0 && i < t->count; i++) {
        struct line *line = &t->lines[i];
        bool same = how == 2 && line->task && !strcmp(line->head, t->lines[at].head) && i != at;
        for (int n = 0; (i == at || same) && find_extra(line) >= 0 && (how || n == 0); n++)
            drop_item(&line->parts[IN], find_extra(line));
    }
}

/* Copies or moves a bias or norm to another task, or exchanges two. */
void move_extra(schedule_text *t, uint64_t *random)
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

/* Adds a constant vector to the inputs of a product or an attention, or replaces one. */
void add_extra(schedule_text *t, uint64_t *random)
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
