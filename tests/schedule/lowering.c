/* Makes the models and lowers them for the tests of lowering. See lowering.h. */
#include "lowering.h"

#include <stdio.h>

#include "eval/synthetic.h"

/*                    hidden layers heads kv_heads head_dim ffn vocab eps */
const shape even = {{64, 1, 4, 2, 16, 96, 41, 1e-5F}, true};
const shape billion = {{2048, 16, 32, 8, 64, 8192, 128256, 1e-5F}, true};

mgl_graph *graph_of(const shape *s)
{
    return family_of(s, MGL_EXTRA_NONE);
}

mgl_graph *family_of(const shape *s, unsigned extras)
{
    static const float inv_freq[128] = {1};
    mgl_graph *graph = NULL;
    mgl_error err = {0};
    mgl_status status =
        mgl_graph_build(&s->geometry, extras, 4096, s->tied, MGL_BF16, inv_freq, &graph, &err);
    ck_assert_msg(status == MGL_OK, "%s", err.message);
    return graph;
}

mgl_graph *open_graph(mgl_config *config)
{
    mgl_error err;
    mgl_graph *graph;
    config->geometry.layers = 2;
    config->max_positions = 32768;
    mgl_status status = mgl_synthetic_open(config, 1, &graph, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
    return graph;
}

mgl_target target_of(const char *text)
{
    mgl_target target;
    ck_assert_int_eq(mgl_target_parse(text, &target, NULL), MGL_OK);
    return target;
}

mgl_schedule_config preset(void)
{
    mgl_schedule_config config;
    mgl_schedule_config_default(&config);
    config.exchange = MGL_EXCHANGE_COUNTERS;
    return config;
}

mgl_program *lowered_for(int sequences, const mgl_graph *graph, int queues,
                         const mgl_schedule_config *config, int capacity)
{
    char name[32];
    mgl_program *program = NULL;
    mgl_error err = {0};
    snprintf(name, sizeof name, "sm_90a:%d", queues);
    mgl_target target = target_of(name);
    mgl_lower_options options = {.dtype = MGL_BF16, .capacity = capacity, .sequences = sequences};
    mgl_status status = mgl_schedule_lower(graph, &target, &options, config, &program, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
    return program;
}

mgl_program *lowered(const mgl_graph *graph, int queues, const mgl_schedule_config *config,
                     int capacity)
{
    return lowered_for(2, graph, queues, config, capacity);
}

bool has_flags(const mgl_program *p)
{
    bool found = false;
    for (int i = 0; i < p->region_count; i++)
        found = found || p->regions[i].flag;
    return found;
}
