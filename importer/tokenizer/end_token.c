/* Reads the end token of a model's chats from tokenizer_config.json, and finds its id. See
 * checkpoint.h. */
#include "importer/checkpoint.h"

#include "base/memory.h"
#include "importer/model_files.h"
#include "importer/tokenizer/tokenizer.h"

#include <string.h>

enum { MAX_CONFIG = 64 << 20 }; /* bytes of the largest tokenizer_config.json */

mgl_status mgl_end_token_read(const mgl_checkpoint *checkpoint, char **out, mgl_error *err)
{
    mgl_model_files files;
    mgl_json json = {0};
    *out = NULL;
    mgl_status status = mgl_model_files_open(checkpoint->folder, &files, err);
    if (!status)
        status = mgl_model_files_parse(&files, MGL_MEGA_TOKENIZER_CONFIG, MAX_CONFIG, false,
                                       mgl_json_parse_python, &json, err);
    mgl_model_files_close(&files);
    const cJSON *token = cJSON_IsObject(json.root) ? mgl_json_member(json.root, "eos_token") : NULL;
    const cJSON *text = cJSON_IsObject(token) ? mgl_json_member(token, "content") : token;
    if (!status && cJSON_IsString(text)) {
        *out = mgl_strdup(text->valuestring);
        status = *out ? MGL_OK : mgl_fail_memory(err, strlen(text->valuestring));
    } else if (!status && token && !cJSON_IsNull(token)) {
        status = mgl_fail(err, MGL_BAD_INPUT, json.file,
                          "eos_token must be a text, or an object whose content is a text");
    }
    mgl_json_clear(&json);
    return status;
}

int32_t mgl_end_token_find(const mgl_tokenizer *tokenizer, const char *text)
{
    const mgl_added *added = &tokenizer->added;
    for (size_t i = 0; i < added->count; i++)
        if (!strcmp(added->tokens[i].content, text))
            return added->tokens[i].id;
    return mgl_vocab_find(&tokenizer->bpe.vocab, text, strlen(text));
}
