/*
 * Mixed precision: measures the squared output error of each matrix of the layers with 4 and with
 * 8 bits, relative to its squared output, in a forward pass with the original weights. The matrices
 * that gain most for each additional byte get 8 bits, in a greedy order, as many as the limit of
 * bits for each weight allows. Implements mgl_calibrate_choose of calibrate.h.
 */
#include "base/memory.h"
#include "quantize/calibrate/calibrate.h"
#include "quantize/calibrate/calibration.h"

#include <stdlib.h>

#define NUMBERS "sensitivity"

/* A matrix that may get 8 bits. */
typedef struct candidate {
    int source;
    double gain;  /* of the relative squared error, for each additional byte */
    double bytes; /* additional */
} candidate;

static double count_bytes(const mgl_stored_tensor *t, mgl_weight_format f)
{
    const double rows = (double)t->shape[0], columns = (double)t->shape[1];
    const double groups = rows * (double)mgl_weight_format_groups(f, t->shape[1]);
    const double bits = mgl_weight_code_get(f.code)->bits;
    return rows * columns * bits / 8 +
           groups * ((double)mgl_dtype_size(f.scales) + (f.zeros ? bits / 8 : 0));
}

/* Descending by gain, then by name: sources are sorted by name. */
static int compare(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->gain != y->gain)
        return x->gain > y->gain ? -1 : 1;
    return x->source < y->source ? -1 : 1;
}

/* Gives 8 bits to matrices while the mean stays within `limit` bits. */
static mgl_status choose(mgl_quantize_plan *plan, const double *errors, double limit,
                         mgl_error *err)
{
    const size_t count = plan->files->tensors.count;
    candidate *list = mgl_alloc_zero(count, sizeof *list);
    size_t candidates = 0;
    double weights = 0, bytes = 0;
    if (!list)
        return mgl_fail_memory(err, count * sizeof *list);
    for (size_t i = 0; i < count; i++) {
        const mgl_stored_tensor *t = &plan->files->tensors.items[i];
        mgl_weight_format f = plan->sources[i].format;
        if (!plan->sources[i].quantized || plan->sources[i].is_head)
            continue;
        candidate *k = &list[candidates++];
        const double *e = errors + 3 * i, low = count_bytes(t, f);
        f.code = MGL_CODE_INT8;
        *k = (candidate){.source = (int)i, .bytes = count_bytes(t, f) - low};
        k->gain = e[2] > 0 ? (e[0] - e[1]) / e[2] / k->bytes : 0;
        weights += (double)t->shape[0] * (double)t->shape[1];
        bytes += low;
    }
    const double least = weights > 0 ? 8 * bytes / weights : 0;
    qsort(list, candidates, sizeof *list, compare);
    for (size_t i = 0; i < candidates; i++)
        if (bytes + list[i].bytes <= limit * weights / 8) {
            bytes += list[i].bytes;
            plan->sources[list[i].source].format.code = MGL_CODE_INT8;
        }
    mgl_free(list);
    if (least > limit)
        return mgl_fail(err, MGL_BAD_INPUT, NULL,
                        "%.3f bits for each weight are not possible: 4 bits with these scales are "
                        "%.3f; give a larger --bits-per-weight or a larger --group",
                        limit, least);
    return MGL_OK;
}

mgl_status mgl_calibrate_choose(mgl_quantize_plan *plan, const mgl_quantize_request *request,
                                mgl_results *results, mgl_error *err)
{
    const size_t count = 3 * plan->files->tensors.count;
    double *errors = mgl_alloc_zero(count, sizeof *errors);
    bool found = false;
    mgl_status status = errors ? MGL_OK : mgl_fail_memory(err, count * sizeof *errors);
    if (!status)
        status = mgl_results_find_numbers(results, NUMBERS, errors, count, &found, err);
    if (!status && !found)
        status = mgl_calibrate_measure(plan, request, results, errors, err);
    if (!status && !found)
        status = mgl_results_put_numbers(results, NUMBERS, errors, count, err);
    if (!status)
        status = choose(plan, errors, request->bits_per_weight, err);
    mgl_free(errors);
    return status;
}
