/* A parsed schedule text, and helpers that its damages (damage.def) share. */
#ifndef MGL_TESTS_VM_DAMAGE_PARTS_H
#define MGL_TESTS_VM_DAMAGE_PARTS_H

#include "damage.h"

#include <stdbool.h>

enum { MOST_LINES = 400, MOST_ITEMS = 16, ITEM_BYTES = 80, HEAD_BYTES = 160 };

/* The lists after the op of a task, in text order. */
enum part { IN, TAPE, OUT, WAIT, SIGNAL, PARTS };

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

/* ---- damages --------------------------------------------------------------------------------- */

#define DAMAGE(function, name, weight, reshapes, kind)                                             \
    void function(schedule_text *t, uint64_t *random);
#include "damage.def"

/* ---- drawing --------------------------------------------------------------------------------- */

#define DRAW_OF(list) list[damage_draw(random, (int)(sizeof list / sizeof *list))]

/* A random line of that kind: it begins with `head` ("": any), and is a task or not. Any task if
 * all clears are gone. */
int draw_line(const schedule_text *t, uint64_t *random, const char *head, bool task);

/* A random task; every other time a clear. */
int draw_task(const schedule_text *t, uint64_t *random);

/* A random product or attention; any task if there is none. */
int draw_varied(const schedule_text *t, uint64_t *random);

/* A random non-empty list, and an item of one: of waits and signals, or of regions and tapes. */
struct list *draw_list(schedule_text *t, uint64_t *random, bool edges);
char *draw_item(schedule_text *t, uint64_t *random, bool edges);

/* ---- lists ----------------------------------------------------------------------------------- */

void drop_item(struct list *list, int index);
void add_item(struct list *list, const char *item); /* if there is space, like the other
                                                       functions */
void drop_line(schedule_text *t, int index);
void insert_line(schedule_text *t, int index, const struct line *line);
void swap_lines(schedule_text *t, int a, int b);

/* The start of the second list, or the end of the text. */
int find_second(const schedule_text *t);

/* ---- names and numbers ----------------------------------------------------------------------- */

void copy_string(char *to, const char *from, size_t room);

/* Replaces `length` bytes of a string by another string, if there is enough space. */
void replace(char *at, size_t length, const char *by, size_t room);

/* Finds the numbers of a string that are not part of a name: after "[" or ">", and those of a
 * tape. */
int find_numbers(char *text, char **numbers, int most);
void add_to(char *number, int64_t delta, size_t room);

/* The text after a word of the line that begins with that word; NULL: none. */
char *find_behind(schedule_text *t, const char *begin, const char *word, size_t *room);
void change_word(schedule_text *t, const char *begin, const char *word, const char *by);

/* Whether a region is an operand that only some families have. */
bool is_extra(const char *item);

#endif
