/* Line diff (longest common subsequence by dynamic programming), after the common first and last
 * lines are removed. Implements mgl_text_diff of version.h. */
#include "autotune/kernels/versions/version.h"

#include "base/memory.h"

#include <string.h>

enum { CONTEXT = 3, MOST_CELLS = 16 << 20 /* a larger middle is printed as replaced */ };

typedef struct lines {
    const char **at; /* (count) */
    size_t *lengths; /* (count) without line ends */
    size_t count;
} lines;

static void free_lines(lines *l)
{
    mgl_free(l->at);
    mgl_free(l->lengths);
}

static bool split(const char *text, lines *out)
{
    size_t count = 0;
    for (const char *at = text; *at; at += strcspn(at, "\n"), at += *at == '\n')
        count++;
    *out = (lines){mgl_alloc_zero(count + 1, sizeof *out->at),
                   mgl_alloc_zero(count + 1, sizeof *out->lengths), 0};
    if (!out->at || !out->lengths)
        return false;
    for (const char *at = text; *at;) {
        size_t length = strcspn(at, "\n");
        out->at[out->count] = at;
        out->lengths[out->count++] = length;
        at += length + (at[length] == '\n');
    }
    return true;
}

static bool same(const lines *a, size_t i, const lines *b, size_t j)
{
    return a->lengths[i] == b->lengths[j] && !memcmp(a->at[i], b->at[j], a->lengths[i]);
}

/* State of the output. */
typedef struct edits {
    const lines *a, *b;
    mgl_text *out;
    size_t
        stood; /* number of common lines of `a` that are not printed yet; they end before `a_at` */
    size_t a_at;
    bool any; /* an edit was printed */
} edits;

static void put_line(edits *e, char mark, const lines *l, size_t i)
{
    mgl_text_append(e->out, &mark, 1);
    mgl_text_append(e->out, l->at[i], l->lengths[i]);
    mgl_text_put(e->out, "\n");
}

/* Prints the common lines between two edits; omits the middle of a long run. */
static void put_stood(edits *e, bool end)
{
    size_t first = e->any ? CONTEXT : 0, last = end ? 0 : CONTEXT;
    for (size_t i = 0; i < e->stood; i++) {
        size_t left = e->stood - i;
        if (i < first || left <= last)
            put_line(e, ' ', e->a, e->a_at - left);
        else if (i == first)
            mgl_text_put(e->out, "...\n");
    }
    e->stood = 0;
}

static void put_edit(edits *e, char mark, const lines *l, size_t i)
{
    put_stood(e, false);
    put_line(e, mark, l, i);
    e->any = true;
}

static void stand(edits *e)
{
    e->a_at++;
    e->stood++;
}

static void go(edits *e)
{
    put_edit(e, '-', e->a, e->a_at);
    e->a_at++;
}

/* Prints the middles: a's [first, a_end) and b's [first, b_end). `table` contains the length of
 * the longest common subsequence of each pair of suffixes; NULL: all lines are replaced. */
static void put_middle(edits *e, size_t first, size_t a_end, size_t b_end, const unsigned *table)
{
    size_t i = first, j = first, width = b_end - first + 1;
    while (i < a_end || j < b_end) {
        const unsigned *cell = table ? table + (i - first) * width + (j - first) : NULL;
        if (i < a_end && j < b_end && table && same(e->a, i, e->b, j)) {
            stand(e);
            i++, j++;
        } else if (i < a_end && (j == b_end || !table || cell[width] >= cell[1])) {
            go(e);
            i++;
        } else {
            put_edit(e, '+', e->b, j++);
        }
    }
}

static unsigned *make_table(const lines *a, const lines *b, size_t first, size_t a_end,
                            size_t b_end)
{
    size_t height = a_end - first + 1, width = b_end - first + 1;
    if (height > MOST_CELLS / width)
        return NULL;
    unsigned *table = mgl_alloc_zero(height * width, sizeof *table);
    for (size_t i = height - 1; table && i-- > 0;)
        for (size_t j = width - 1; j-- > 0;) {
            unsigned down = table[(i + 1) * width + j], right = table[i * width + j + 1];
            table[i * width + j] = same(a, first + i, b, first + j)
                                       ? table[(i + 1) * width + j + 1] + 1
                                   : down > right ? down
                                                  : right;
        }
    return table;
}

static void compare(const lines *a, const lines *b, mgl_text *out)
{
    edits e = {.a = a, .b = b, .out = out};
    size_t first = 0, a_end = a->count, b_end = b->count;
    while (first < a_end && first < b_end && same(a, first, b, first))
        first++;
    while (a_end > first && b_end > first && same(a, a_end - 1, b, b_end - 1))
        a_end--, b_end--;
    if (first == a_end && first == b_end)
        return;
    e.a_at = e.stood = first;
    unsigned *table = make_table(a, b, first, a_end, b_end);
    put_middle(&e, first, a_end, b_end, table);
    mgl_free(table);
    e.stood += a->count - a_end;
    e.a_at = a->count;
    put_stood(&e, true);
}

mgl_status mgl_text_diff(const char *a, const char *b, mgl_text *out, mgl_error *err)
{
    lines x = {0}, y = {0};
    bool good = split(a, &x) && split(b, &y);
    if (good)
        compare(&x, &y, out);
    free_lines(&x);
    free_lines(&y);
    return good && !out->failed ? MGL_OK : mgl_fail_memory(err, strlen(a));
}
