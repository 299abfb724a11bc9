/* The list of `eval --compare`: formats by name, and paths of checkpoints. */
#ifndef MGL_CLI_GENERATE_COMPARE_LIST_H
#define MGL_CLI_GENERATE_COMPARE_LIST_H

#include "quantize/quantize.h"

/* The names of formats, for help and errors. */
#define MGL_CLI_COMPARED_FORMATS                                                                   \
    "f32, bf16, f16, int8, int4, fp8; after int8, int4 or fp8: -gN (N columns share a scale, a "   \
    "multiple of 16 up to 1024), -row (a row shares a scale), -asym (int8 and int4: zero "         \
    "points), -head8, "                                                                            \
    "-head4 or -headfp8, and the name of a --method of `quantize`: -clip, -gptq"

/* An item of the list. */
typedef struct mgl_cli_compared {
    char *name;        /* owned: as in the list */
    const char *dtype; /* f32, bf16 and f16: the number format of the model; else NULL */
    bool is_path;
    mgl_quantize_request request; /* if neither */
    char *path;                   /* owned: where the checkpoint of a path is; else NULL */
} mgl_cli_compared;

typedef struct mgl_cli_compare_list {
    mgl_cli_compared *items; /* (count) */
    size_t count, capacity;
} mgl_cli_compare_list;

/* Parses a list separated by commas. A name with a slash, or a name of no format that is a file or
 * folder, is a path. MGL_USAGE: an unknown format. Release with mgl_cli_compare_list_clear, also
 * after a failure. */
mgl_status mgl_cli_compare_list_parse(const char *text, mgl_cli_compare_list *out, mgl_error *err);
void mgl_cli_compare_list_clear(mgl_cli_compare_list *list);

#endif
