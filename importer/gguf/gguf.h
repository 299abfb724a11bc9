/*
 * A GGUF file as a model: its metadata gives the files of a model in Hugging Face layout
 * (config.json and the files of the tokenizer), and its tensors are listed like those of
 * safetensors. So the rest of the importer, and `compile`, read such a model as any other. Used by
 * model_files.c and checkpoint.c.
 *
 * Tensors keep their names ("blk.0.attn_q.weight"; see naming.c), shapes and order of rows.
 */
#ifndef MGL_IMPORTER_GGUF_GGUF_H
#define MGL_IMPORTER_GGUF_GGUF_H

#include "importer/family.h"
#include "importer/gguf/container.h"
#include "importer/safetensors.h"

/* Writes the file of this name into *out, which stays empty if the model has no such file. A model
 * that cannot be represented is rejected. Release *out with mgl_text_clear, also after a failure.
 */
mgl_status mgl_gguf_write_file(const mgl_gguf *gguf, const char *name, mgl_text *out,
                               mgl_error *err);
/* Returns whether the file of this name exists. */
bool mgl_gguf_has_file(const mgl_gguf *gguf, const char *name);

/* The order of the rows of q and k in the tensors: those of llama are permuted. */
mgl_rope_pairs mgl_gguf_rope_pairs(const mgl_gguf *gguf);

/* Maps the file again, and lists its tensors, except those that config.json contains
 * (rope_freqs.weight). Release with mgl_safetensors_close. */
mgl_status mgl_gguf_open_tensors(const mgl_gguf *gguf, mgl_safetensors **out, mgl_error *err);

/* Parts of gguf.c. */
mgl_status mgl_gguf_write_config(const mgl_gguf *gguf, mgl_text *out, mgl_error *err);
mgl_status mgl_gguf_write_tokenizer(const mgl_gguf *gguf, mgl_text *out, mgl_error *err);
mgl_status mgl_gguf_write_tokenizer_config(const mgl_gguf *gguf, mgl_text *out, mgl_error *err);

#endif
