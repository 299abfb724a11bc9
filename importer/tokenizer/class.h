/*
 * The tokenizer's class. tokenizer.json decides, with one exception that follows Transformers 5:
 * LlamaTokenizer replaces normalizer, pre-tokenizer and decoder of the file by its own, in which
 * the space before a text is prepended once, not behind every added token.
 */
#ifndef MGL_IMPORTER_TOKENIZER_CLASS_H
#define MGL_IMPORTER_TOKENIZER_CLASS_H

#include "importer/tokenizer/files.h"

typedef struct mgl_tokenizer_class {
    bool llama;         /* the exception applies; the rest is for it */
    const char *scheme; /* Metaspace's prepend_scheme */
} mgl_tokenizer_class;

/* Also rejects options of tokenizer_config.json that change ids or texts and are not supported. */
mgl_status mgl_tokenizer_class_read(const mgl_tokenizer_files *files, mgl_tokenizer_class *out,
                                    mgl_error *err);

/* The parts of tokenizer.json that the class LlamaTokenizer puts in place of those of the file. */
mgl_status mgl_tokenizer_class_parts(const mgl_tokenizer_class *class, const char *file,
                                     mgl_json *out, mgl_error *err);

#endif
