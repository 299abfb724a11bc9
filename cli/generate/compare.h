/* Declares `eval --compare`: how much the distributions of formats and checkpoints differ from
 * those of the model in f32. */
#ifndef MGL_CLI_GENERATE_COMPARE_H
#define MGL_CLI_GENERATE_COMPARE_H

#include "cli/generate/compare_list.h"
#include "cli/generate/corpus.h"

enum {
    MGL_CLI_GREEDY_TOKENS = 64, /* default length of greedy replies */
    MGL_CLI_GREEDY_PROMPT = 16, /* tokens of a text that are the prompt of its reply */
    MGL_CLI_GREEDY_TEXTS = 64   /* the first texts have replies */
};

/* What to compare. */
typedef struct mgl_cli_compare {
    const char *model, *path; /* the argument MODEL, and where it was found */
    const mgl_cli_compare_list *list;
    const mgl_cli_corpus *corpus;
    const char *source;    /* name of the texts in errors */
    mgl_open_options open; /* its dtype: of quantized formats and paths */
    size_t stride;         /* 0: none */
    int greedy;            /* tokens of a reply */
    bool json, quiet;
} mgl_cli_compare;

/* Compares all items of the list with the model in f32 and prints the table or the object. At most
 * two models are open at a time. */
mgl_status mgl_cli_compare_run(const mgl_cli_compare *compare, mgl_error *err);

#endif
