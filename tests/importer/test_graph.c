/* Tests of the graph of a Llama decoder: its nodes in order, its tensors by name and shape, and
 * lookups. */
#include "base/memory.h"
#include "importer/graph.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* All numbers differ, so that a mix-up is detected. */
static const mgl_geometry geometry = {.hidden = 24,
                                      .layers = 2,
                                      .heads = 6,
                                      .kv_heads = 3,
                                      .head_dim = 8,
                                      .ffn = 40,
                                      .vocab = 99,
                                      .eps = 1e-5f};
static const float frequencies[4] = {1, 0.5f, 0.25f, 0.125f};

static mgl_graph *build(bool tied)
{
    mgl_graph *graph = NULL;
    mgl_error err = {0};
    ck_assert_int_eq(
        mgl_graph_build_llama(&geometry, 512, tied, MGL_BF16, frequencies, &graph, &err), MGL_OK);
    return graph;
}

START_TEST(test_facts)
{
    mgl_graph *graph = build(false);
    ck_assert_int_eq(graph->geometry.ffn, 40);
    ck_assert_int_eq(graph->max_positions, 512);
    ck_assert_int_eq(graph->dtype, MGL_BF16);
    ck_assert(!graph->tied);
    ck_assert_mem_eq(graph->inv_freq, frequencies, sizeof frequencies);
    ck_assert(!graph->read);
    mgl_graph_free(graph);
    mgl_graph_free(NULL);
}
END_TEST

static const struct {
    const char *name;
    int rank, rows, cols;
} wanted_tensors[] = {
    {"model.embed_tokens.weight", 2, 99, 24},
    {"model.layers.1.input_layernorm.weight", 1, 1, 24},
    {"model.layers.1.self_attn.q_proj.weight", 2, 48, 24},
    {"model.layers.1.self_attn.k_proj.weight", 2, 24, 24},
    {"model.layers.1.self_attn.v_proj.weight", 2, 24, 24},
    {"model.layers.1.self_attn.o_proj.weight", 2, 24, 48},
    {"model.layers.1.post_attention_layernorm.weight", 1, 1, 24},
    {"model.layers.1.mlp.gate_proj.weight", 2, 40, 24},
    {"model.layers.1.mlp.up_proj.weight", 2, 40, 24},
    {"model.layers.1.mlp.down_proj.weight", 2, 24, 40},
    {"model.norm.weight", 1, 1, 24},
    {"lm_head.weight", 2, 99, 24},
};

START_TEST(test_tensors)
{
    mgl_graph *graph = build(false);
    int index = mgl_graph_find_tensor(graph, wanted_tensors[_i].name);
    ck_assert_int_ge(index, 0);
    const mgl_tensor *tensor = &graph->tensors[index];
    ck_assert_int_eq(tensor->rank, wanted_tensors[_i].rank);
    ck_assert_int_eq(tensor->rows, wanted_tensors[_i].rows);
    ck_assert_int_eq(tensor->cols, wanted_tensors[_i].cols);
    ck_assert_int_eq(tensor->dtype, MGL_BF16);
    mgl_graph_free(graph);
}
END_TEST

START_TEST(test_counts)
{
    mgl_graph *graph = build(_i);
    ck_assert_int_eq(graph->tensor_count, 2 * 9 + 3 - _i);
    ck_assert_int_eq(graph->node_count, 2 * 13 + 5);
    ck_assert_int_eq(mgl_graph_find_tensor(graph, "lm_head.weight") < 0, _i);
    ck_assert_int_eq(mgl_graph_find_tensor(graph, "model.layers.2.mlp.up_proj.weight"), -1);
    mgl_graph_free(graph);
}
END_TEST

/* Inputs precede their nodes, their number depends on the kind, and each node can be found. */
START_TEST(test_nodes)
{
    static const int inputs[] = {
#define MGL_X(id, name, count, meaning) count,
        MGL_NODE_KINDS(MGL_X)
#undef MGL_X
    };
    mgl_graph *graph = build(true);
    for (int i = 0; i < graph->node_count; i++) {
        const mgl_node *node = &graph->nodes[i];
        for (int j = 0; j < 3; j++)
            ck_assert_int_eq(node->in[j] >= 0, j < inputs[node->kind]);
        for (int j = 0; j < 3; j++)
            ck_assert_int_lt(node->in[j], i);
        ck_assert_int_eq(mgl_graph_find(graph, node->kind, node->in, node->tensor), i);
    }
    ck_assert_int_eq(graph->output, graph->node_count - 1);
    ck_assert_int_eq(mgl_graph_find(graph, MGL_NODE_ADD, (int[]){0, 0, -1}, -1), -1);
    ck_assert_str_eq(mgl_node_kind_name(graph->nodes[graph->output].kind), "sample");
    mgl_graph_free(graph);
}
END_TEST

/* Follows the header's formulas from the logits back to the tokens, through one layer. */
START_TEST(test_wiring)
{
    mgl_graph *graph = build(_i);
    const mgl_node *n = graph->nodes;
    const mgl_node *head = &n[n[graph->output].in[0]], *norm = &n[head->in[0]];
    const mgl_node *out = &n[norm->in[0]], *down = &n[out->in[1]], *sum = &n[out->in[0]];
    const mgl_node *swiglu = &n[down->in[0]], *gate = &n[swiglu->in[0]], *up = &n[swiglu->in[1]];
    const mgl_node *o = &n[sum->in[1]], *attention = &n[o->in[0]], *q = &n[attention->in[0]];
    ck_assert_str_eq(graph->tensors[head->tensor].name,
                     _i ? "model.embed_tokens.weight" : "lm_head.weight");
    ck_assert_int_eq(head->width, 99);
    ck_assert_str_eq(graph->tensors[norm->tensor].name, "model.norm.weight");
    ck_assert_int_eq(norm->layer, -1);
    ck_assert_int_eq(out->kind, MGL_NODE_ADD);
    ck_assert_int_eq(out->layer, 1);
    ck_assert_str_eq(graph->tensors[down->tensor].name, "model.layers.1.mlp.down_proj.weight");
    ck_assert_int_eq(swiglu->kind, MGL_NODE_SWIGLU);
    ck_assert_int_eq(swiglu->width, 40);
    ck_assert_str_eq(graph->tensors[gate->tensor].name, "model.layers.1.mlp.gate_proj.weight");
    ck_assert_str_eq(graph->tensors[up->tensor].name, "model.layers.1.mlp.up_proj.weight");
    ck_assert_int_eq(gate->in[0], up->in[0]);
    ck_assert_ptr_eq(&n[n[gate->in[0]].in[0]], sum);
    ck_assert_int_eq(attention->kind, MGL_NODE_ATTENTION);
    ck_assert_int_eq(attention->width, 48);
    ck_assert_int_eq(n[attention->in[1]].width, 24);
    ck_assert_str_eq(graph->tensors[n[attention->in[2]].tensor].name,
                     "model.layers.1.self_attn.v_proj.weight");
    ck_assert_int_eq(n[q->in[0]].in[0], sum->in[0]);
    ck_assert_int_eq(n[sum->in[0]].layer, 0);
    mgl_graph_free(graph);
}
END_TEST

START_TEST(test_memory)
{
    mgl_graph *graph = NULL;
    mgl_error err;
    mgl_status status = MGL_NO_MEMORY;
    uint64_t n = 0;
    while (status == MGL_NO_MEMORY) {
        mgl_alloc_fail_at(++n, false);
        status = mgl_graph_build_llama(&geometry, 512, false, MGL_F32, frequencies, &graph, &err);
    }
    mgl_alloc_fail_at(0, false);
    ck_assert_int_eq(status, MGL_OK);
    ck_assert_uint_gt(n, 20);
    mgl_graph_free(graph);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("graph");
    TCase *cases = tcase_create("graph");
    tcase_add_test(cases, test_facts);
    tcase_add_loop_test(cases, test_tensors, 0, sizeof wanted_tensors / sizeof *wanted_tensors);
    tcase_add_loop_test(cases, test_counts, 0, 2);
    tcase_add_test(cases, test_nodes);
    tcase_add_loop_test(cases, test_wiring, 0, 2);
    tcase_add_test(cases, test_memory);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
