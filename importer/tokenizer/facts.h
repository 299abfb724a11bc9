/* Properties of a tokenizer that the verb `info` prints. */
#ifndef MGL_IMPORTER_TOKENIZER_FACTS_H
#define MGL_IMPORTER_TOKENIZER_FACTS_H

#include "megalith.h"

#include <stddef.h>

typedef struct mgl_tokenizer_facts {
    size_t ids;       /* of the vocabulary, see mgl_tokenizer_size */
    size_t added;     /* added tokens */
    size_t model_ids; /* of the model's vocabulary by config.json; 0: not known */
    bool llama;       /* the class LlamaTokenizer replaced parts of tokenizer.json */
    bool truncation;  /* tokenizer.json requests it; ignored */
    bool padding;     /* likewise */
} mgl_tokenizer_facts;

mgl_tokenizer_facts mgl_tokenizer_get_facts(const mgl_tokenizer *tokenizer);

#endif
