/*
 * Finished parts of a calibrated quantization: files in a folder inside the new model folder, so
 * that an interrupted run can continue. A part holds the codes, scales and zero points of some
 * matrices. The file `command` identifies the command; a run with other settings or another model
 * is rejected. Called by calibrate.c, write.c and quantize.c.
 */
#ifndef MGL_QUANTIZE_CALIBRATE_RESULTS_H
#define MGL_QUANTIZE_CALIBRATE_RESULTS_H

#include "quantize/plan.h"

typedef struct mgl_results mgl_results;

/* The codes of a matrix, as mgl_round_row writes them. */
typedef struct mgl_matrix_codes {
    uint8_t *codes; /* owned (rows, columns) */
    float *scales;  /* owned (rows, groups) */
    uint8_t *zeros; /* owned (rows, groups); NULL: the format has none */
} mgl_matrix_codes;

/* Opens the results for a new model folder, and the parts of an earlier run with the same command.
 * MGL_BAD_INPUT: the parts are of another command. Release with mgl_results_close. */
mgl_status mgl_results_open(const mgl_quantize_plan *plan, const mgl_quantize_request *request,
                            const char *folder, mgl_results **out, mgl_error *err);
void mgl_results_close(mgl_results *results); /* NULL is fine */

/* Finds a finished part with the matrices `sources` (count), stored tensors of the plan. */
mgl_status mgl_results_find(mgl_results *results, int part, const int *sources, int count,
                            bool *found, mgl_error *err);
/* Writes a part. `codes` is indexed by stored tensor. */
mgl_status mgl_results_put(mgl_results *results, int part, const int *sources, int count,
                           const mgl_matrix_codes *codes, mgl_error *err);
/* Reads rows of a matrix of a finished part. Thread safe. */
mgl_status mgl_results_get(const mgl_results *results, int source, int64_t row, int64_t count,
                           const mgl_matrix_codes *to, mgl_error *err);

/* Reads and writes the measured numbers (count) of another file of the folder. */
mgl_status mgl_results_find_numbers(mgl_results *results, const char *name, double *numbers,
                                    size_t count, bool *found, mgl_error *err);
mgl_status mgl_results_put_numbers(mgl_results *results, const char *name, const double *numbers,
                                   size_t count, mgl_error *err);

/* The number of files that this run has added. */
int mgl_results_added(const mgl_results *results);
/* Whether a file of the folder was finished. */
bool mgl_results_any(const mgl_results *results);
/* Removes the files and the folder. */
void mgl_results_remove(mgl_results *results);

#endif
