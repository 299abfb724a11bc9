/* Makes programs and applies moves for the tests of moves. See moving.h. */
#include "moving.h"

const shape three = {{64, 3, 4, 2, 16, 96, 131, 1e-5F}, true};
static const shape small = {{576, 4, 9, 3, 64, 1536, 49152, 1e-5F}, true};

static const struct variant {
    const shape *shape;
    int queues, sequences, splits, exchange;
} variants[] = {
    {&three, 5, 1, 1, 1},   {&three, 5, 1, 3, 1},     {&three, 5, 1, 1, 2}, {&three, 5, 1, 3, 2},
    {&three, 16, 8, 2, 1},  {&three, 16, 8, 2, 2},    {&three, 1, 1, 1, 1}, {&three, 1, 1, 2, 2},
    {&small, 132, 1, 0, 2}, {&billion, 132, 8, 0, 2}, {&even, 9, 1, 0, 0},
};
_Static_assert(sizeof variants / sizeof *variants == MOVED_VARIANTS, "all of them");

mgl_graph *graph;
mgl_program *program;

void start(int variant)
{
    const struct variant *v = &variants[variant];
    mgl_schedule_config config;
    mgl_schedule_config_default(&config);
    config.splits = v->splits;
    config.exchange = v->exchange;
    graph = graph_of(v->shape);
    program = lowered_for(v->sequences, graph, v->queues, &config, 512);
}

void finish(void)
{
    mgl_program_free(program);
    mgl_graph_free(graph);
}

mgl_moves moves_of(const char *text)
{
    mgl_moves moves;
    mgl_error err = {0};
    mgl_status status = mgl_moves_parse(text, strlen(text), "test.moves", &moves, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
    return moves;
}
