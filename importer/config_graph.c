/* Builds the graph of a config (config.h): the geometry's graph and rope's frequencies. */
#include "base/memory.h"
#include "importer/config.h"

/* Adds the frequencies for longer sequences, if they differ. */
static mgl_status add_long_frequencies(const mgl_rope *rope, mgl_graph *graph, mgl_error *err)
{
    const int32_t head_dim = graph->geometry.head_dim;
    const size_t half = (size_t)head_dim / 2;
    graph->rope_scale = (float)rope->attention_factor;
    if (rope->type != MGL_ROPE_LONGROPE)
        return MGL_OK;
    graph->long_inv_freq = mgl_alloc_zero(half, sizeof *graph->long_inv_freq);
    if (!graph->long_inv_freq)
        return mgl_fail_memory(err, half * sizeof *graph->long_inv_freq);
    mgl_rope_frequencies(rope, head_dim, true, graph->long_inv_freq);
    graph->short_positions = (int32_t)rope->original_max_positions;
    return MGL_OK;
}

mgl_status mgl_config_build_graph(const mgl_config *config, mgl_dtype dtype, mgl_graph **out,
                                  mgl_error *err)
{
    *out = NULL;
    size_t half = (size_t)config->geometry.head_dim / 2;
    float *frequencies = mgl_alloc_zero(half, sizeof *frequencies);
    if (!frequencies)
        return mgl_fail_memory(err, half * sizeof *frequencies);
    mgl_rope_frequencies(&config->rope, config->geometry.head_dim, false, frequencies);
    mgl_graph *graph = NULL;
    mgl_status status = mgl_graph_build(&config->geometry, config->extras, config->max_positions,
                                        config->tied, dtype, frequencies, &graph, err);
    mgl_free(frequencies);
    if (!status) {
        graph->window = config->window;
        status = add_long_frequencies(&config->rope, graph, err);
    }
    if (status)
        mgl_graph_free(graph);
    else
        *out = graph;
    return status;
}
