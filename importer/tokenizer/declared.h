/*
 * Declared tokens: added tokens that the files beside tokenizer.json declare. The rules are those
 * of Transformers 5.24 (PreTrainedTokenizerBase._from_pretrained and TokenizersBackend.__init__):
 *
 * - First comes added_tokens_decoder of tokenizer_config.json, in the order of its ids. If the key
 *   exists, the other two files are not read. If the key is missing, added_tokens.json and the
 *   added tokens of tokenizer.json are used instead, and special_tokens_map.json overrides the
 *   keys of tokenizer_config.json.
 * - Then come the named tokens: bos_token, eos_token, ..., any other key that ends in _token, and
 *   the members of an object extra_special_tokens. Then come the tokens of a list
 *   extra_special_tokens or additional_special_tokens. Tokens that are already added tokens are
 *   skipped.
 *
 * A token in the vocabulary has its id there. Any other new token gets the next free id; the ids in
 * the files only define the order. If a token is already an added token, its flags are replaced.
 */
#ifndef MGL_IMPORTER_TOKENIZER_DECLARED_H
#define MGL_IMPORTER_TOKENIZER_DECLARED_H

#include "importer/tokenizer/files.h"

typedef struct mgl_declared_token {
    const char *content; /* points into the JSON of the file */
    bool single_word, lstrip, rstrip, normalized, special;
    bool normalized_given; /* if false, a token is normalized unless it is special */
} mgl_declared_token;

typedef struct mgl_declared {
    mgl_declared_token *tokens; /* (count), in the order of adding */
    size_t count, capacity;
} mgl_declared;

/* `llama`: use the rules of the class LlamaTokenizer, which has defaults for three named tokens
 * and ignores the added tokens of tokenizer.json. The tokens point into `files`. Clear *out also
 * after a failure. */
mgl_status mgl_declared_read(const mgl_tokenizer_files *files, bool llama, mgl_declared *out,
                             mgl_error *err);
void mgl_declared_clear(mgl_declared *declared);

#endif
