/* Lists of prompts for `megalith run --prompts`, and readers of their results. */
#ifndef MGL_TESTS_CLI_LIST_H
#define MGL_TESTS_CLI_LIST_H

#include "command.h"

#include <check.h>
#include <string.h>

typedef struct refusal {
    const char *list, *message;
} refusal;

static inline command_result run_list(const char *list, const char *flags)
{
    return command_runf("run %s --device cpu --prompts %s %s", model_path("tales-5m"),
                        scratch_file("prompts.json", list), flags);
}

static inline const cJSON *output_at(const mgl_json *json, int i)
{
    const cJSON *output = cJSON_GetArrayItem(json_at(json, "outputs"), i);
    ck_assert_ptr_nonnull(output);
    return output;
}

static inline const char *text_of(const cJSON *output, const char *key)
{
    const cJSON *text = mgl_json_member(output, key);
    ck_assert(cJSON_IsString(text));
    return text->valuestring;
}

static inline int tokens_of(const cJSON *output)
{
    return cJSON_GetArraySize(mgl_json_member(output, "output_ids"));
}

static inline void check_same(const cJSON *a, const cJSON *b)
{
    static const char *const keys[] = {"prompt_ids", "output_ids", "text", "stop", "seed"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        ck_assert_msg(cJSON_Compare(mgl_json_member(a, keys[i]), mgl_json_member(b, keys[i]), true),
                      "%s differs", keys[i]);
}

/* A list with `count` copies of `text`. */
static inline void make_list(char *list, int count)
{
    strcpy(list, "[\"Once\"");
    for (int i = 1; i < count; i++)
        strcat(list, ",\"Once\"");
    strcat(list, "]");
}

#endif
