/*
 * The in-memory tokenizer: tokenizer.json and the files beside it, compiled. Behind the public
 * API's mgl_tokenizer. The steps of encoding and decoding:
 *
 *     text -> added tokens (raw) -> normalizer -> added tokens (normalized) -> splitter -> BPE
 *          -> template (the tokenizer's own special tokens) -> ids
 *     ids  -> tokens -> decoder -> text
 *
 * Behavior follows Hugging Face's tokenizers 0.23, and Transformers 5.24 for the files beside
 * tokenizer.json (declared.h, class.h). `truncation` and `padding` of tokenizer.json are ignored:
 * no text is truncated or padded. Transformers does neither unless a call requests it.
 */
#ifndef MGL_IMPORTER_TOKENIZER_TOKENIZER_H
#define MGL_IMPORTER_TOKENIZER_TOKENIZER_H

#include "importer/tokenizer/added.h"
#include "importer/tokenizer/bpe.h"
#include "importer/tokenizer/class.h"
#include "importer/tokenizer/declared.h"
#include "importer/tokenizer/decode.h"
#include "importer/tokenizer/facts.h"
#include "importer/tokenizer/normalize.h"
#include "importer/tokenizer/split.h"
#include "importer/tokenizer/workspace.h"

#define MGL_TEMPLATE_TEXT (-1) /* in a template: placeholder for the ids of the text */

struct mgl_tokenizer {
    char *file; /* for messages */
    mgl_added added;
    mgl_normalizer normalizer;
    mgl_splitter splitter;
    mgl_bpe bpe;
    mgl_decoder decoder;
    mgl_id_list plain, special; /* templates: ids and MGL_TEMPLATE_TEXT */
    uint32_t *added_by_id;      /* (added_ids) index into added.tokens + 1, 0 for none */
    size_t added_ids;
    int32_t last_id;     /* the largest id of a token; -1: there are no tokens */
    int32_t model_vocab; /* from config.json: ids from here on are errors; 0: not known */
    bool llama, truncation, padding; /* see facts.h */
    mgl_workspaces *workspaces;      /* the only member that encoding changes */
};

/* Each function fills a part of a tokenizer from its value in the file (NULL if missing or
 * null). `file` and `workspaces` are already set; the rest starts as zero. */
mgl_status mgl_tokenizer_load_normalizer(mgl_tokenizer *tokenizer, const mgl_json *json,
                                         const cJSON *value, mgl_error *err);
mgl_status mgl_tokenizer_load_splitter(mgl_tokenizer *tokenizer, const mgl_json *json,
                                       const cJSON *value, mgl_error *err);
mgl_status mgl_tokenizer_load_decoder(mgl_tokenizer *tokenizer, const mgl_json *json,
                                      const cJSON *value, mgl_error *err);
mgl_status mgl_tokenizer_load_template(mgl_tokenizer *tokenizer, const mgl_json *json,
                                       const cJSON *value, mgl_error *err);
mgl_status mgl_tokenizer_load_model(mgl_tokenizer *tokenizer, const mgl_json *json,
                                    const cJSON *value, mgl_error *err);
mgl_status mgl_tokenizer_load_added(mgl_tokenizer *tokenizer, const mgl_json *json,
                                    const cJSON *value, const mgl_declared *declared,
                                    mgl_error *err);

/* Takes a workspace for this tokenizer. Return it with mgl_workspaces_give. */
mgl_status mgl_tokenizer_take_workspace(const mgl_tokenizer *tokenizer, mgl_workspace **out,
                                        mgl_error *err);

/* Returns the text of an id for the decoder, not 0-terminated, or NULL if the id has no token.
 * *special: decoding omits it as a special token. */
const char *mgl_tokenizer_text_of(const mgl_tokenizer *tokenizer, int32_t id, size_t *length,
                                  bool *special);
/* Returns MGL_BAD_INPUT: the id is outside the vocabulary. */
mgl_status mgl_tokenizer_fail_id(const mgl_tokenizer *tokenizer, int32_t id, mgl_error *err);

/* Makes a tokenizer from parsed files; tokenizer.json must exist. Release *out with
 * mgl_tokenizer_close. */
mgl_status mgl_tokenizer_make(const mgl_tokenizer_files *files, mgl_tokenizer **out,
                              mgl_error *err);

/* Parses tokenizer.json alone, from memory, as Hugging Face's tokenizers do. Release *out with
 * mgl_tokenizer_close. */
mgl_status mgl_tokenizer_parse(const char *text, size_t length, const char *file,
                               mgl_tokenizer **out, mgl_error *err);

#endif
