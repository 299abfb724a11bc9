/* Implements divergence.h. */
#include "tests/quantize/divergence.h"

#include "quantize/calibrate/forward.h"

#include <math.h>
#include <stdlib.h>

mgl_status whole_model_load(const mgl_graph *graph, whole_model *out, mgl_error *err)
{
    mgl_status status = MGL_OK;
    *out = (whole_model){.graph = graph};
    out->weights = calloc((size_t)graph->tensor_count, sizeof *out->weights);
    for (int i = 0; i < graph->tensor_count && !status; i++) {
        const mgl_tensor *t = &graph->tensors[i];
        const int64_t rows = t->rank == 1 ? 1 : t->rows;
        const size_t count = (size_t)(rows * t->cols);
        char *stored = malloc(count * sizeof(float));
        out->weights[i] = malloc(count * sizeof(float));
        status = graph->read(graph, i, 0, rows, stored, err);
        if (!status)
            mgl_convert(out->weights[i], MGL_F32, stored, t->dtype, count);
        free(stored);
    }
    for (int i = 0; i < graph->node_count; i++) {
        if (graph->nodes[i].kind == MGL_NODE_EMBED)
            out->first = i + 1;
        if (graph->nodes[i].kind == MGL_NODE_SAMPLE)
            out->head = graph->nodes[i].in[0];
    }
    return status;
}

void whole_model_clear(whole_model *model)
{
    for (int i = 0; i < model->graph->tensor_count; i++)
        free(model->weights[i]);
    free(model->weights);
}

static void log_softmax(float *x, int count)
{
    double most = (double)x[0], sum = 0;
    for (int i = 1; i < count; i++)
        most = (double)x[i] > most ? (double)x[i] : most;
    for (int i = 0; i < count; i++)
        sum += exp((double)x[i] - most);
    for (int i = 0; i < count; i++)
        x[i] = (float)((double)x[i] - most - log(sum));
}

mgl_status whole_model_run(const whole_model *model, const mgl_blas *blas, const int32_t *ids,
                           size_t count, float **out, mgl_error *err)
{
    const size_t hidden = (size_t)model->graph->geometry.hidden;
    const size_t vocab = (size_t)model->graph->geometry.vocab;
    float *state = malloc(count * hidden * sizeof *state), *scratch = NULL;
    const float *logits = NULL;
    mgl_forward forward = {0};
    *out = NULL;
    mgl_status status =
        mgl_forward_make(blas, model->graph, model->weights, (int)count, &forward, err);
    if (!status)
        status = mgl_forward_embed(model->graph, ids, count, state, err);
    if (!status) {
        scratch = malloc(mgl_forward_scratch(&forward, model->first, model->head) * sizeof(float));
        status = mgl_forward_run(&forward, model->first, model->head, state, (int)count, scratch,
                                 &logits, err);
    }
    if (!status) {
        *out = malloc(count * vocab * sizeof(float));
        for (size_t r = 0; r < count; r++) {
            for (size_t i = 0; i < vocab; i++)
                (*out)[r * vocab + i] = logits[r * vocab + i];
            log_softmax(*out + r * vocab, (int)vocab);
        }
    }
    mgl_forward_clear(&forward);
    free(scratch);
    free(state);
    return status;
}
