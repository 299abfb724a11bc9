/* Builds the requests to a language model from templates: autotune/agents/prompts for the chat
 * proposer (chat.c), and autotune/kernels/methods/prompts for edits of micro-kernels (edit_span.c).
 * Both callers fill in the parts of a template. */
#ifndef MGL_AUTOTUNE_AGENTS_PROMPT_H
#define MGL_AUTOTUNE_AGENTS_PROMPT_H

#include "autotune/candidates/gate.h"
#include "vm/cuda/sources.h"

extern const mgl_cuda_source mgl_prompt_sources[]; /* generated from both folders */
extern const int mgl_prompt_source_count;

typedef struct mgl_prompt {
    const mgl_subject *subject;
    const char *device, *shape;
    const mgl_proposal *best; /* the current base of the search */
    int64_t best_number;      /* number of its trial; 0: the default */
    const char *history;      /* lines, safe for a terminal */
    int64_t number;           /* number of the request */
    uint64_t border;          /* delimiter of quoted data; random, so that data cannot forge it */
} mgl_prompt;

/* A template by its path; "": none. */
const char *mgl_prompt_find(const char *name);
/* Fills a template: replaces each {{name}} by the text that `put` appends for this name. */
typedef void mgl_prompt_put_fn(const void *user, const char *name, size_t length, mgl_text *out);
void mgl_prompt_fill(const char *text, mgl_prompt_put_fn *put, const void *user, mgl_text *out);

const char *mgl_prompt_system(void); /* static storage */
void mgl_prompt_task(const mgl_prompt *prompt, mgl_text *out);

/* One history line: the outcome of a trial. */
void mgl_prompt_describe_trial(const mgl_subject *subject, const mgl_trial *trial, mgl_text *out);

#endif
