/* Finds the config group of a module. See quantization.h. */
#include "importer/quantized/quantization.h"

#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

/* A pattern that backtracks longer than this does not match. */
enum { MATCH_LIMIT = 100 * 1000 };

static pcre2_code *compile(const char *expression)
{
    int problem;
    PCRE2_SIZE at;
    return pcre2_compile((PCRE2_SPTR)expression, PCRE2_ZERO_TERMINATED,
                         PCRE2_ANCHORED | PCRE2_NEVER_BACKSLASH_C, &problem, &at, NULL);
}

bool mgl_module_pattern_valid(const char *expression)
{
    pcre2_code *code = compile(expression);
    pcre2_code_free(code);
    return code != NULL;
}

bool mgl_module_matches(const char *expression, const char *name)
{
    pcre2_code *code = compile(expression);
    pcre2_match_data *data = code ? pcre2_match_data_create(1, NULL) : NULL;
    pcre2_match_context *context = data ? pcre2_match_context_create(NULL) : NULL;
    bool matches = false;
    if (context) {
        pcre2_set_match_limit(context, MATCH_LIMIT);
        matches = pcre2_match(code, (PCRE2_SPTR)name, strlen(name), 0, 0, data, context) >= 0;
    }
    pcre2_match_context_free(context);
    pcre2_match_data_free(data);
    pcre2_code_free(code);
    return matches;
}

/* How a target selects a module. In compressed-tensors a name precedes a pattern, and a pattern
 * precedes a class. */
enum rank { NO_MATCH, BY_CLASS, BY_PATTERN, BY_NAME };

static enum rank match_target(const char *target, const char *name, const char *class_name)
{
    if (!strncmp(target, "re:", 3))
        return mgl_module_matches(target + 3, name) ? BY_PATTERN : NO_MATCH;
    if (!strcmp(target, name))
        return BY_NAME;
    return !strcmp(target, class_name) ? BY_CLASS : NO_MATCH;
}

static bool is_ignored(const mgl_quantization *q, const char *name, const char *class_name)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, q->ignore)
    {
        const char *entry = cJSON_IsString(item) ? item->valuestring : "";
        if (q->ignore_parts ? entry[0] && strstr(name, entry) != NULL
                            : match_target(entry, name, class_name) != NO_MATCH)
            return true;
    }
    return false;
}

static enum rank match_group(const mgl_quantization_group *group, const char *name,
                             const char *class_name)
{
    enum rank best = !group->targets && !strcmp(class_name, "Linear") ? BY_CLASS : NO_MATCH;
    const cJSON *item;
    cJSON_ArrayForEach(item, group->targets)
    {
        const enum rank rank =
            cJSON_IsString(item) ? match_target(item->valuestring, name, class_name) : NO_MATCH;
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
    if (is_ignored(q, stored, class_name) || is_ignored(q, canonical, class_name))
        return NULL;
    for (size_t i = 0; i < q->count; i++) {
        const enum rank a = match_group(&q->groups[i], stored, class_name);
        const enum rank b = match_group(&q->groups[i], canonical, class_name);
        const enum rank rank = a > b ? a : b;
        if (rank > best) {
            best = rank;
            found = &q->groups[i];
        }
    }
    return found && !found->plain ? found : NULL;
}
