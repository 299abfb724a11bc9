/* Kernel sources with changed comments: the same tokens in a different text. */
#ifndef MGL_TESTS_VM_CUDA_REWORDED_H
#define MGL_TESTS_VM_CUDA_REWORDED_H

#include "vm/cuda/sources.h"

/* Changes of comments: each is left out, has other words, has more lines, or stays, with more
 * comments at all blanks and line ends. */
enum { COMMENTS_LEFT_OUT, COMMENTS_REWORDED, COMMENTS_LENGTHENED, COMMENTS_ADDED, REWORDINGS };

/* Release with mgl_free. */
char *reword(const char *text, int how);

/* All built-in sources, reworded; the same storage for each call. */
const mgl_cuda_source *reword_sources(int how);

#endif
