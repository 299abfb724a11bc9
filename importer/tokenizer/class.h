/*
 * The class of the tokenizer in Transformers. tokenizer.json defines the tokenizer, with one
 * exception as in Transformers 5: the class LlamaTokenizer replaces the file's normalizer,
 * pre-tokenizer and decoder by its own. Its parts prepend the space once before the text, not
 * after every added token. Called by tokenizer.c.
 */
#ifndef MGL_IMPORTER_TOKENIZER_CLASS_H
#define MGL_IMPORTER_TOKENIZER_CLASS_H

#include "importer/tokenizer/files.h"

typedef struct mgl_tokenizer_class {
    bool llama;         /* the exception applies; the next field is used only then */
    const char *scheme; /* Metaspace's prepend_scheme */
} mgl_tokenizer_class;

/* Reads the class. Rejects options of tokenizer_config.json that change ids or texts and are not
 * supported. */
mgl_status mgl_tokenizer_class_read(const mgl_tokenizer_files *files, mgl_tokenizer_class *out,
                                    mgl_error *err);

/* Returns, as JSON, the class LlamaTokenizer's own parts, which replace those of tokenizer.json. */
mgl_status mgl_tokenizer_class_parts(const mgl_tokenizer_class *class, const char *file,
                                     mgl_json *out, mgl_error *err);

#endif
