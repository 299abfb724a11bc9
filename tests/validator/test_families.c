/*
 * Tests of MG106, MG109 and MG7xx for biases and norms of q and k: the lowered program of a model
 * with all of them is accepted, and near misses are rejected.
 */
#include "support.h"

enum { QUEUES = 3, SPLITS = 3 };

static const mgl_geometry geometry = {.hidden = 16,
                                      .layers = 2,
                                      .heads = 4,
                                      .kv_heads = 2,
                                      .head_dim = 8,
                                      .ffn = 24,
                                      .vocab = 40,
                                      .eps = 1e-5f};

static mgl_graph *family_graph(unsigned extras)
{
    static const float inv_freq[4] = {1};
    mgl_graph *graph = NULL;
    mgl_error err = {0};
    ck_assert_int_eq(mgl_graph_build(&geometry, extras, 64, false, MGL_F32, inv_freq, &graph, &err),
                     MGL_OK);
    return graph;
}

enum {
    ALL = MGL_EXTRA_QKV_BIAS | MGL_EXTRA_O_BIAS | MGL_EXTRA_MLP_BIAS | MGL_EXTRA_QK_NORM,
};

START_TEST(what_lowering_makes_is_accepted)
{
    static const unsigned families[] = {MGL_EXTRA_NONE,     MGL_EXTRA_QKV_BIAS,
                                        MGL_EXTRA_QK_NORM,  MGL_EXTRA_QKV_BIAS | MGL_EXTRA_O_BIAS,
                                        MGL_EXTRA_MLP_BIAS, ALL};
    char codes[256];
    mgl_graph *graph = family_graph(families[_i]);
    for (int splits = 1; splits <= SPLITS; splits += 2)
        for (int exchange = 1; exchange <= 2; exchange++) {
            mgl_program *program = lowered_with(graph, QUEUES, splits, exchange, MGL_F32);
            mgl_verdict verdict = verdict_of(program, graph);
            ck_assert_str_eq(codes_of(&verdict, codes, sizeof codes), "accept");
            ck_assert(verdict.meaning_checked);
            mgl_verdict_clear(&verdict);
            mgl_program_free(program);
        }
    mgl_graph_free(graph);
}
END_TEST

/* A program for one model is rejected for a model with more or fewer biases and norms. */
START_TEST(another_family_is_another_model)
{
    static const unsigned families[] = {MGL_EXTRA_NONE, MGL_EXTRA_QKV_BIAS, MGL_EXTRA_QK_NORM,
                                        MGL_EXTRA_O_BIAS, MGL_EXTRA_MLP_BIAS};
    enum { COUNT = sizeof families / sizeof *families };
    mgl_graph *graphs[COUNT];
    for (int i = 0; i < COUNT; i++)
        graphs[i] = family_graph(families[i]);
    for (int i = 0; i < COUNT; i++) {
        mgl_program *program = lowered(graphs[i], QUEUES, _i);
        for (int j = 0; j < COUNT; j++) {
            mgl_verdict verdict = verdict_of(program, graphs[j]);
            ck_assert_int_eq(verdict.accepted, i == j);
            mgl_verdict_clear(&verdict);
        }
        mgl_program_free(program);
    }
    for (int i = 0; i < COUNT; i++)
        mgl_graph_free(graphs[i]);
}
END_TEST

/* ---- near misses ----------------------------------------------------------------------------- */

static int find_buffer(const mgl_program *program, const char *name)
{
    for (int i = 0; i < program->buffer_count; i++)
        if (!strcmp(program->buffers[i].name, name))
            return i;
    ck_abort_msg("no buffer %s", name);
}

/* The first region of that buffer that a task with that op reads; -1: none. */
static int find_region(const mgl_program *program, const char *buffer, mgl_op op)
{
    const int wanted = find_buffer(program, buffer);
    for (int t = 0; t < program->task_count; t++)
        for (int i = 0; i < program->tasks[t].in.count && program->tasks[t].op == op; i++)
            if (program->regions[program->tasks[t].in.first + i].buffer == wanted)
                return program->tasks[t].in.first + i;
    return -1;
}

static const struct {
    const char *buffer; /* an input of the op */
    mgl_op op;
    const char *becomes; /* NULL: the operand is left out */
    int splits;
    const char *codes;
} misses[] = {
    /* left out */
    {"l0.q_g", MGL_OP_ATTEND, NULL, 1, "MG109"},
    {"l0.k_g", MGL_OP_ATTEND, NULL, 1, "MG109"},
    {"l1.q_g", MGL_OP_ATTEND_PAST, NULL, 3, "MG706"},
    {"l1.k_g", MGL_OP_ATTEND_TAIL, NULL, 3, "MG109"},
    {"l0.o_b", MGL_OP_LINEAR_ADD, NULL, 1, "MG703"},
    {"l1.down_b", MGL_OP_LINEAR_ADD, NULL, 1, "MG703"},
    {"l0.gate_b", MGL_OP_NORM_SWIGLU, NULL, 1, "MG109"},
    {"l0.up_b", MGL_OP_NORM_SWIGLU, NULL, 1, "MG109"},
    /* operand of another layer */
    {"l0.q_g", MGL_OP_ATTEND, "l1.q_g", 1, "MG703"},
    {"l1.k_g", MGL_OP_ATTEND, "l0.k_g", 1, "MG703"},
    {"l0.q_g", MGL_OP_ATTEND_PAST, "l1.q_g", 3, "MG703"},
    {"l0.k_g", MGL_OP_ATTEND_TAIL, "l1.k_g", 3, "MG703"},
    {"l0.q_b", MGL_OP_NORM_LINEAR, "l1.q_b", 1, "MG703"},
    {"l1.k_b", MGL_OP_NORM_LINEAR, "l0.k_b", 1, "MG703"},
    {"l0.o_b", MGL_OP_LINEAR_ADD, "l1.o_b", 1, "MG703"},
    {"l1.up_b", MGL_OP_NORM_SWIGLU, "l0.up_b", 1, "MG703"},
    /* operand of another tensor of the layer */
    {"l0.q_g", MGL_OP_ATTEND, "l0.k_g", 1, "MG703"},
    {"l0.q_g", MGL_OP_ATTEND_PAST, "l0.k_g", 3, "MG703"},
    {"l0.k_b", MGL_OP_NORM_LINEAR, "l0.v_b", 1, "MG703"},
    {"l0.o_b", MGL_OP_LINEAR_ADD, "l0.down_b", 1, "MG703"},
    {"l1.gate_b", MGL_OP_NORM_SWIGLU, "l1.up_b", 1, "MG703"},
    /* a norm instead of a bias */
    {"l0.o_b", MGL_OP_LINEAR_ADD, "l0.attn_g", 1, "MG703"},
};

START_TEST(near_misses_are_rejected)
{
    char codes[256];
    mgl_graph *graph = family_graph(ALL);
    mgl_program *program = lowered(graph, QUEUES, misses[_i].splits);
    const int region = find_region(program, misses[_i].buffer, misses[_i].op);
    ck_assert_int_ge(region, 0);
    if (misses[_i].becomes)
        program->regions[region].buffer = find_buffer(program, misses[_i].becomes);
    mgl_program *edited =
        copy_without(program, misses[_i].becomes ? NO_PIECE : PIECE_REGION, region);
    mgl_verdict verdict = verdict_of(edited, graph);
    ck_assert_msg(!strcmp(codes_of(&verdict, codes, sizeof codes), misses[_i].codes),
                  "%s %s: %s, not %s", misses[_i].buffer,
                  misses[_i].becomes ? misses[_i].becomes : "left out", codes, misses[_i].codes);
    mgl_verdict_clear(&verdict);
    mgl_program_free(edited);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("families");
    TCase *cases = tcase_create("families");
    tcase_add_loop_test(cases, what_lowering_makes_is_accepted, 0, 6);
    tcase_add_loop_test(cases, another_family_is_another_model, 1, 3);
    tcase_add_loop_test(cases, near_misses_are_rejected, 0, (int)(sizeof misses / sizeof *misses));
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
