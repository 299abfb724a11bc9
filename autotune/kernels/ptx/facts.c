/* Implements facts.h. The list is merged after every MERGE_AT new rows, which bounds its memory. */
#include "autotune/kernels/ptx/facts.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

enum { MERGE_AT = 1 << 16 }; /* unmerged rows before the next merge */

static int compare_rows(const void *a, const void *b)
{
    const mgl_ptx_fact *left = a, *right = b;
    int order = strcmp(left->feature, right->feature);
    return order ? order : strcmp(left->value, right->value);
}

static void merge_into(mgl_ptx_fact *to, mgl_ptx_fact *from)
{
    if (*to->value)
        to->count += from->count;
    else if (from->count > to->count)
        to->count = from->count;
    mgl_free(from->feature);
}

void mgl_ptx_facts_merge(mgl_ptx_facts *facts)
{
    size_t kept = 0;
    if (facts->count)
        qsort(facts->rows, facts->count, sizeof *facts->rows, compare_rows);
    for (size_t i = 0; i < facts->count; i++)
        if (kept && !compare_rows(&facts->rows[kept - 1], &facts->rows[i]))
            merge_into(&facts->rows[kept - 1], &facts->rows[i]);
        else
            facts->rows[kept++] = facts->rows[i];
    facts->count = kept;
    facts->merge_at = kept + MERGE_AT;
}

void mgl_ptx_facts_add(mgl_ptx_facts *facts, const char *feature, const char *value, int64_t count)
{
    size_t first = strlen(feature) + 1, second = strlen(value) + 1;
    if (facts->count && facts->count >= facts->merge_at)
        mgl_ptx_facts_merge(facts);
    char *text = mgl_alloc(first + second);
    if (!text ||
        !mgl_grow((void **)&facts->rows, &facts->capacity, facts->count, sizeof *facts->rows)) {
        facts->failed = true;
        mgl_free(text);
        return;
    }
    memcpy(text, feature, first);
    memcpy(text + first, value, second);
    facts->rows[facts->count++] = (mgl_ptx_fact){text, text + first, count};
    if (!facts->merge_at)
        facts->merge_at = MERGE_AT;
}

void mgl_ptx_facts_clear(mgl_ptx_facts *facts)
{
    for (size_t i = 0; i < facts->count; i++)
        mgl_free(facts->rows[i].feature);
    mgl_free(facts->rows);
    *facts = (mgl_ptx_facts){0};
}
