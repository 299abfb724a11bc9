/* What is sent to a language model: the texts of autotune/agents/prompts, filled. */
#ifndef MGL_AUTOTUNE_AGENTS_PROMPT_H
#define MGL_AUTOTUNE_AGENTS_PROMPT_H

#include "autotune/search/gate.h"
#include "vm/cuda/sources.h"

extern const mgl_cuda_source mgl_prompt_sources[]; /* made of autotune/agents/prompts */
extern const int mgl_prompt_source_count;

typedef struct mgl_prompt {
    const mgl_subject *subject;
    const char *device, *shape;
    const mgl_proposal *best; /* what the search stands on */
    int64_t best_number;      /* its trial; 0: the default */
    const char *history;      /* lines, shown as a terminal may have them */
    int64_t number;           /* of the request */
    uint64_t border;          /* that marks data: drawn, so that no data can forge it */
} mgl_prompt;

/* A text of the list, by its path; "": there is none. */
const char *mgl_prompt_find(const char *name);
/* A text, in which each {{name}} is what `put` appends for it. */
typedef void mgl_prompt_put_fn(const void *user, const char *name, size_t length, mgl_text *out);
void mgl_prompt_fill(const char *text, mgl_prompt_put_fn *put, const void *user, mgl_text *out);

const char *mgl_prompt_system(void); /* static storage */
void mgl_prompt_task(const mgl_prompt *prompt, mgl_text *out);

/* One line of history, of what became of a trial. */
void mgl_prompt_describe_trial(const mgl_subject *subject, const mgl_trial *trial, mgl_text *out);

#endif
