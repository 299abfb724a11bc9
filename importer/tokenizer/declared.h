/*
 * Tokens that the files beside tokenizer.json declare. The rules are those of Transformers 5.24
 * (PreTrainedTokenizerBase._from_pretrained and TokenizersBackend.__init__):
 *
 * - added_tokens_decoder of tokenizer_config.json comes first, in the order of its ids. If the key
 *   is missing, added_tokens.json and the tokens of tokenizer.json itself take its place, and
 *   special_tokens_map.json overrides the keys of tokenizer_config.json. If the key exists, neither
 *   of the two other files is read.
 * - Then come the named tokens (bos_token, eos_token, ..., any other key that ends in _token, and
 *   the members of an object extra_special_tokens), and the tokens of a list
 *   extra_special_tokens or additional_special_tokens, unless they are added tokens already.
 *
 * A token that is in the vocabulary has the id of the vocabulary. Any other new token gets the next
 * free id; the ids in the files decide nothing but the order. The flags of a token that is an added
 * token already are replaced.
 */
#ifndef MGL_IMPORTER_TOKENIZER_DECLARED_H
#define MGL_IMPORTER_TOKENIZER_DECLARED_H

#include "importer/tokenizer/files.h"

typedef struct mgl_declared_token {
    const char *content; /* in the JSON of the file */
    bool single_word, lstrip, rstrip, normalized, special;
    bool normalized_given; /* otherwise a token is normalized if it is not special */
} mgl_declared_token;

typedef struct mgl_declared {
    mgl_declared_token *tokens; /* (count), in the order in which they are added */
    size_t count, capacity;
} mgl_declared;

/* `llama`: for the class LlamaTokenizer, which has defaults for three named tokens, and ignores the
 * added tokens of tokenizer.json. The tokens live as long as `files`. Clear *out also after a
 * failure. */
mgl_status mgl_declared_read(const mgl_tokenizer_files *files, bool llama, mgl_declared *out,
                             mgl_error *err);
void mgl_declared_clear(mgl_declared *declared);

#endif
