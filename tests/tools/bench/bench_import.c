/*
 * Measures how fast one thread reads the codes, scales and zero points of a quantized model, in
 * parts of about 1 MB of codes, as the packers do. Prints a JSON object: bytes as stored, and the
 * best of all rounds.
 *
 *     bench_import FOLDER [ROUNDS]
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "importer/checkpoint.h"

enum { PART = 1 << 20, ROUNDS = 5 };

static void fail(const mgl_error *err)
{
    fprintf(stderr, "bench_import: %s: %s\n", err->where, err->message);
    exit(2);
}

/* Reads a matrix. */
static void read_matrix(const mgl_graph *graph, int index)
{
    const mgl_tensor *t = &graph->tensors[index];
    const int64_t groups = mgl_weight_format_groups(t->quantized, t->cols);
    const int64_t most = PART / t->cols / 8 * 8 > 8 ? PART / t->cols / 8 * 8 : 8;
    mgl_quantized_rows to = {malloc((size_t)(most * t->cols)), malloc((size_t)(most * groups) * 4),
                             t->quantized.zeros ? malloc((size_t)(most * groups)) : NULL, NULL};
    mgl_error err;
    for (int64_t row = 0; row < t->rows; row += most) {
        const int64_t count = t->rows - row < most ? t->rows - row : most;
        if (graph->read_codes(graph, index, row, count, &to, &err))
            fail(&err);
    }
    free(to.codes);
    free(to.scales);
    free(to.zeros);
}

int main(int count, char **arguments)
{
    const int rounds = count > 2 ? atoi(arguments[2]) : ROUNDS;
    mgl_checkpoint *checkpoint;
    mgl_error err;
    double best = 0;
    uint64_t bytes = 0, parameters = 0;
    if (count < 2 || rounds < 1) {
        fprintf(stderr, "usage: bench_import FOLDER [ROUNDS]\n");
        return 1;
    }
    if (mgl_import(arguments[1], &checkpoint, &err))
        fail(&err);
    const mgl_graph *graph = checkpoint->graph;
    for (int round = 0; round < rounds; round++) {
        const double start = mgl_clock_s();
        bytes = parameters = 0;
        for (int i = 0; i < graph->tensor_count; i++) {
            if (!mgl_tensor_is_quantized(&graph->tensors[i]))
                continue;
            read_matrix(graph, i);
            bytes += mgl_checkpoint_tensor_bytes(checkpoint, i);
            parameters += (uint64_t)(graph->tensors[i].rows * graph->tensors[i].cols);
        }
        const double seconds = mgl_clock_s() - start;
        best = round == 0 || seconds < best ? seconds : best;
    }
    printf("{\"bytes\": %" PRIu64 ", \"parameters\": %" PRIu64 ", \"seconds\": %.6f, "
           "\"gigabytes_per_second\": %.3f}\n",
           bytes, parameters, best, (double)bytes / best / 1e9);
    mgl_checkpoint_close(checkpoint);
    return 0;
}
