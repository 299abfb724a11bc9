/*
 * The canonical text of a source of the kernel. Keys of compiled kernels and digests of measured
 * kernels are hashes of canonical texts, so comments and layout never change a key.
 *
 * The library embeds the full sources, with comments, and NVRTC compiles the full sources:
 * - A diagnostic of NVRTC then names the line that a person reads in the file or in a candidate.
 * - People and language models that edit a micro-kernel need its comments.
 * - NVRTC discards comments itself, and the result contains no line numbers: kernels are compiled
 *   without -lineinfo, and no source uses __LINE__ (the scan of candidates rejects the name). So
 *   equal canonical texts give equal PTX.
 */
#ifndef MGL_VM_CUDA_CANONICAL_H
#define MGL_VM_CUDA_CANONICAL_H

#include "base/sha256.h"
#include "base/text.h"
#include "vm/cuda/sources.h"

/* Appends the preprocessing tokens of `text` (C++17 plus CUDA's `<<<`), separated by a space. Each
 * directive has its own line. Comments are removed, and continued lines are joined. Two texts have
 * the same canonical form exactly if they have the same tokens. No space precedes the parameters of
 * `#define F(x)`, to distinguish it from `#define F (x)`. */
void mgl_cuda_canonical(const char *text, mgl_text *out);

/* SHA-256 of the canonical text of a source. A built-in source is hashed once. */
void mgl_cuda_source_digest(const mgl_cuda_source *source, unsigned char out[MGL_SHA256_BYTES]);

#endif
