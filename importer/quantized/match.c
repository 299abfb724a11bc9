/* Lists of modules, and the config group of a module. See quantization.h. */
#include "importer/quantized/quantization.h"

#include "base/memory.h"

#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

/* A pattern that backtracks longer than this does not match. */
enum { MATCH_LIMIT = 100 * 1000 };

struct mgl_pattern {
    pcre2_code *code;
    pcre2_match_data *data;
    pcre2_match_context *context;
};

static void free_pattern(struct mgl_pattern *pattern)
{
    if (!pattern)
        return;
    pcre2_match_context_free(pattern->context);
    pcre2_match_data_free(pattern->data);
    pcre2_code_free(pattern->code);
    mgl_free(pattern);
}

/* Compiles an expression. *valid: it is valid. Returns NULL if memory runs out, or if it is not. */
static struct mgl_pattern *compile(const char *expression, bool *valid)
{
    int problem = 0;
    PCRE2_SIZE at;
    struct mgl_pattern *pattern = mgl_alloc_zero(1, sizeof *pattern);
    *valid = true;
    if (!pattern)
        return NULL;
    pattern->code = pcre2_compile((PCRE2_SPTR)expression, PCRE2_ZERO_TERMINATED,
                                  PCRE2_ANCHORED | PCRE2_NEVER_BACKSLASH_C, &problem, &at, NULL);
    pattern->data = pattern->code ? pcre2_match_data_create(1, NULL) : NULL;
    pattern->context = pattern->data ? pcre2_match_context_create(NULL) : NULL;
    if (pattern->context) {
        pcre2_set_match_limit(pattern->context, MATCH_LIMIT);
        return pattern;
    }
    *valid = pattern->code || problem == PCRE2_ERROR_HEAP_FAILED;
    free_pattern(pattern);
    return NULL;
}

/* Whether the name of a module matches the pattern at its start, as re.match of Python. */
static bool matches(const struct mgl_pattern *pattern, const char *name)
{
    return pcre2_match(pattern->code, (PCRE2_SPTR)name, strlen(name), 0, 0, pattern->data,
                       pattern->context) >= 0;
}

/* ---- lists of modules ------------------------------------------------------------------------ */

mgl_status mgl_module_list_add(mgl_module_list *list, const char *name, bool *valid, mgl_error *err)
{
    struct mgl_pattern *pattern = NULL;
    *valid = true;
    if (!mgl_grow((void **)&list->items, &list->capacity, list->count, sizeof *list->items))
        return mgl_fail_memory(err, sizeof *list->items);
    if (!strncmp(name, "re:", 3) && !(pattern = compile(name + 3, valid)))
        return *valid ? mgl_fail_memory(err, sizeof *pattern) : MGL_OK;
    list->items[list->count++] = (mgl_module_entry){name, pattern};
    return MGL_OK;
}

void mgl_module_list_clear(mgl_module_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free_pattern(list->items[i].pattern);
    mgl_free(list->items);
    *list = (mgl_module_list){0};
}

/* ---- groups ---------------------------------------------------------------------------------- */

/* How a target selects a module. In compressed-tensors a name precedes a pattern, and a pattern
 * precedes a class. */
enum rank { NO_MATCH, BY_CLASS, BY_PATTERN, BY_NAME };

static enum rank match_target(const mgl_module_entry *target, const char *name,
                              const char *class_name)
{
    if (target->pattern)
        return matches(target->pattern, name) ? BY_PATTERN : NO_MATCH;
    if (!strcmp(target->name, name))
        return BY_NAME;
    return !strcmp(target->name, class_name) ? BY_CLASS : NO_MATCH;
}

static bool is_ignored(const mgl_quantization *q, const char *name, const char *class_name)
{
    for (size_t i = 0; i < q->ignore.count; i++) {
        const mgl_module_entry *entry = &q->ignore.items[i];
        if (q->ignore_parts ? entry->name[0] && strstr(name, entry->name) != NULL
                            : match_target(entry, name, class_name) != NO_MATCH)
            return true;
    }
    return false;
}

static enum rank match_group(const mgl_quantization_group *group, const char *name,
                             const char *class_name)
{
    enum rank best = !group->targets.stands && !strcmp(class_name, "Linear") ? BY_CLASS : NO_MATCH;
    for (size_t i = 0; i < group->targets.count; i++) {
        const enum rank rank = match_target(&group->targets.items[i], name, class_name);
        if (rank > best)
            best = rank;
    }
    return best;
}

const mgl_quantization_group *mgl_quantization_find(const mgl_quantization *q, const char *stored,
                                                    const char *canonical, const char *class_name)
{
    const mgl_quantization_group *found = NULL;
    enum rank best = NO_MATCH;
    const bool differ = strcmp(stored, canonical) != 0;
    if (is_ignored(q, stored, class_name) || (differ && is_ignored(q, canonical, class_name)))
        return NULL;
    for (size_t i = 0; i < q->count; i++) {
        const enum rank a = match_group(&q->groups[i], stored, class_name);
        const enum rank b = differ ? match_group(&q->groups[i], canonical, class_name) : a;
        const enum rank rank = a > b ? a : b;
        if (rank > best) {
            best = rank;
            found = &q->groups[i];
        }
    }
    return found && !found->plain ? found : NULL;
}
