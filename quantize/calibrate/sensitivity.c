/*
 * Mixed precision: measures the squared output error of each matrix of the layers with 4 and with
 * 8 bits, relative to its squared output, in a forward pass with the original weights. The matrices
 * that gain most for each additional byte get 8 bits, in a greedy order, as many as the limit of
 * bits for each weight allows. q, k and v of a layer get the same bits, and so do gate and up,
 * because kernels fuse their products. Implements mgl_calibrate_choose of calibrate.h.
 */
#include "base/memory.h"
#include "quantize/calibrate/calibrate.h"
#include "quantize/calibrate/calibration.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A candidate for 8 bits: the matrices whose products a kernel fuses, or a single matrix. */
typedef struct candidate {
    int first;    /* index of the source of its first matrix */
    double gain;  /* reduction of the sum of the relative squared errors */
    double bytes; /* additional bytes of 8-bit codes */
} candidate;

/* Returns the first of the matrices that a kernel fuses with matrix `source`, by name. Returns
 * `source` if the kernel fuses no other matrix with it. */
static int first_fused(const mgl_safetensors *files, int source)
{
    static const struct {
        const char *name, *first; /* of equal length */
    } fused[] = {{".q_proj.weight", ".k_proj.weight"},
                 {".v_proj.weight", ".k_proj.weight"},
                 {".up_proj.weight", ".gate_proj.weight"}};
    const char *name = files->tensors.items[source].name;
    const size_t length = strlen(name);
    for (size_t i = 0; i < sizeof fused / sizeof *fused; i++) {
        const size_t end = strlen(fused[i].name);
        if (length < end || strcmp(name + length - end, fused[i].name) != 0)
            continue;
        char first[MGL_MODULE_NAME];
        const int written =
            snprintf(first, sizeof first, "%.*s%s", (int)(length - end), name, fused[i].first);
        const int found = (size_t)written < sizeof first ? mgl_safetensors_find(files, first) : -1;
        return found < 0 ? source : found;
    }
    return source;
}

static double count_bytes(const mgl_stored_tensor *t, mgl_weight_format f)
{
    return (double)mgl_matrix_bytes(f, t->shape[0], t->shape[1]);
}

/* Orders candidates by descending gain for each byte, then by name: sources are sorted by name. */
static int compare(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    const double first = x->bytes > 0 ? x->gain / x->bytes : 0;
    const double second = y->bytes > 0 ? y->gain / y->bytes : 0;
    if (first != second)
        return first > second ? -1 : 1;
    return x->first < y->first ? -1 : 1;
}

static bool is_candidate(const mgl_planned_source *source)
{
    return source->quantized && !source->is_head;
}

/* Gives 8 bits to matrices while the mean stays within `limit` bits. */
static mgl_status choose(mgl_quantize_plan *plan, const double *errors, double limit,
                         mgl_error *err)
{
    const size_t count = plan->files->tensors.count;
    candidate *list = mgl_alloc_zero(count, sizeof *list);
    double weights = 0, bytes = 0;
    if (!list)
        return mgl_fail_memory(err, count * sizeof *list);
    for (size_t i = 0; i < count; i++) {
        const mgl_stored_tensor *t = &plan->files->tensors.items[i];
        mgl_weight_format f = plan->sources[i].format;
        list[i].first = (int)i;
        if (!is_candidate(&plan->sources[i]))
            continue;
        candidate *k = &list[first_fused(plan->files, (int)i)];
        const double *e = errors + 3 * i, low = count_bytes(t, f);
        f.code = MGL_CODE_INT8;
        k->gain += e[2] > 0 ? (e[0] - e[1]) / e[2] : 0;
        k->bytes += count_bytes(t, f) - low;
        weights += (double)t->shape[0] * (double)t->shape[1];
        bytes += low;
    }
    qsort(list, count, sizeof *list, compare);
    for (size_t i = 0; i < count; i++) {
        if (list[i].bytes == 0 || bytes + list[i].bytes > limit * weights / 8)
            continue;
        bytes += list[i].bytes;
        for (size_t j = 0; j < count; j++)
            if (is_candidate(&plan->sources[j]) &&
                first_fused(plan->files, (int)j) == list[i].first)
                plan->sources[j].format.code = MGL_CODE_INT8;
    }
    mgl_free(list);
    return MGL_OK;
}

/* Checks that 4 bits with the scales are within `limit` bits. */
static mgl_status check_limit(const mgl_quantize_plan *plan, double limit, mgl_error *err)
{
    double weights = 0, bytes = 0;
    for (size_t i = 0; i < plan->files->tensors.count; i++) {
        const mgl_stored_tensor *t = &plan->files->tensors.items[i];
        if (!is_candidate(&plan->sources[i]))
            continue;
        weights += (double)t->shape[0] * (double)t->shape[1];
        bytes += count_bytes(t, plan->sources[i].format);
    }
    if (8 * bytes <= limit * weights)
        return MGL_OK;
    return mgl_fail(err, MGL_BAD_INPUT, NULL,
                    "%.3f bits for each weight are not possible: 4 bits with these scales are "
                    "%.3f; give a larger --bits-per-weight or a larger --group",
                    limit, 8 * bytes / weights);
}

mgl_status mgl_calibrate_choose(mgl_quantize_plan *plan, const mgl_quantize_request *request,
                                mgl_results *results, mgl_error *err)
{
    const size_t count = mgl_calibrate_numbers(plan);
    double *errors = mgl_alloc_zero(count, sizeof *errors);
    bool found = false;
    mgl_status status = errors ? check_limit(plan, request->bits_per_weight, err)
                               : mgl_fail_memory(err, count * sizeof *errors);
    if (!status)
        status =
            mgl_results_find_numbers(results, MGL_CALIBRATE_NUMBERS, errors, count, &found, err);
    if (!status && !(errors[count - 1] > DBL_MAX)) {
        status = mgl_calibrate_measure(plan, request, results, errors, err);
        errors[count - 1] = INFINITY; /* all parts */
        if (!status)
            status = mgl_results_put_numbers(results, MGL_CALIBRATE_NUMBERS, errors, count, err);
    }
    if (!status)
        status = choose(plan, errors, request->bits_per_weight, err);
    mgl_free(errors);
    return status;
}
