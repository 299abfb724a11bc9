/*
 * Quantized checkpoints with reordered columns (g_idx of desc_act, weight_g_idx of actorder
 * "group") on the CPU VM. Each is compared with a twin: the same numbers in f32, in the order of
 * the columns. Greedy tokens and the likelihood of a text must agree.
 */
#include "fixture.h"

#include "importer/checkpoint.h"
#include "tests/importer/quantized/models.h"
#include "tests/scratch.h"

#include <math.h>

enum { VOCAB = 64, NEW = 24, TEXT = 40 };

static char scratch[] = "/tmp/megalith-orders-XXXXXX";

#define GROUPS                                                                                     \
    "{\"quant_method\": \"compressed-tensors\", \"format\": \"pack-quantized\", "                  \
    "\"config_groups\": {\"a\": {\"targets\": [\"Linear\"], \"weights\": {\"num_bits\": 4, "       \
    "\"type\": \"int\", \"strategy\": \"group\", \"group_size\": 32, \"symmetric\": false, "       \
    "\"actorder\": \"group\"}}}}"
#define GPTQ_BITS(bits)                                                                            \
    "{\"quant_method\": \"gptq\", \"bits\": " bits                                                 \
    ", \"group_size\": 32, \"sym\": false, \"desc_act\": true}"

static const struct {
    const char *name;
    recipe recipe;
} cases[] = {
    {"ct-down",
     {.config = GROUPS,
      .layout = PACKED,
      .bits = 4,
      .group = 32,
      .rows = 1,
      .scales = "F16",
      .zeros = true,
      .order = true,
      .reorder = "down_proj"}},
    {"gptq-down",
     {.config = GPTQ_BITS("4"),
      .layout = GPTQ,
      .bits = 4,
      .group = 32,
      .rows = 1,
      .scales = "F16",
      .zeros = true,
      .zero_offset = 1,
      .order = true,
      .reorder = "down_proj"}},
    {"gptq-8-bits-biases",
     {.config = GPTQ_BITS("8"),
      .layout = GPTQ,
      .bits = 8,
      .group = 32,
      .rows = 1,
      .scales = "F16",
      .zeros = true,
      .zero_offset = 1,
      .order = true,
      .mlp_bias = true,
      .more_config = "\"mlp_bias\": true",
      .reorder = "down_proj"}},
    {"gptq-fused",
     {.config = GPTQ_BITS("4"),
      .layout = GPTQ,
      .bits = 4,
      .group = 32,
      .rows = 1,
      .scales = "F16",
      .zero_offset = 1,
      .order = true,
      .family = "phi3",
      .reorder = "down_proj"}},
};
enum { CASES = sizeof cases / sizeof *cases };

/* ---- a model on a machine -------------------------------------------------------------------- */

typedef struct model {
    mgl_checkpoint *checkpoint;
    mgl_program *program;
    mgl_vm *vm;
} model;

static void open_model(model *m, const recipe *r, const fixture_options *options, bool plain)
{
    char folder[80];
    mgl_error err = {0};
    static int number;
    snprintf(folder, sizeof folder, "%s/m%d", scratch, number++);
    ck_assert(write_quantized(r, NULL, folder));
    ok(mgl_import(folder, &m->checkpoint, &err), err);
    m->program = fixture_program(m->checkpoint->graph, options);
    m->vm = fixture_vm(m->program, m->checkpoint->graph, plain);
}

static void close_model(model *m)
{
    mgl_vm_close(m->vm);
    mgl_program_free(m->program);
    mgl_checkpoint_close(m->checkpoint);
}

/* The same numbers in f32. */
static recipe twin_of(const recipe *r)
{
    recipe twin = *r;
    twin.layout = NUMBERS;
    twin.config = NULL;
    return twin;
}

static void generate(const model *m, int32_t tokens[NEW])
{
    static const int32_t prompt[] = {1, 17, 5, 60};
    mgl_error err;
    mgl_vm_report report;
    mgl_vm_sequence sequence = {.prompt = prompt, .prompt_count = 4, .max_new = NEW};
    mgl_vm_request request = {.sequences = &sequence, .count = 1};
    ok(mgl_vm_run(m->vm, &request, &report, &err), err);
    ck_assert_int_eq(report.produced[0], NEW);
    memcpy(tokens, report.output[0], NEW * sizeof *tokens);
}

/* The negative log-likelihood of a text, in f64 from the logits. */
static double likelihood(const model *m)
{
    static float logits[(TEXT - 1) * VOCAB];
    int32_t ids[TEXT];
    mgl_error err;
    double nll = 0;
    for (int i = 0; i < TEXT; i++)
        ids[i] = (i * 37 + i * i * 5 + 1) % VOCAB;
    ok(mgl_vm_score_logits(m->vm, ids, TEXT, 0, NULL, logits, &err), err);
    for (int i = 0; i < TEXT - 1; i++) {
        double sum = 0, most = -INFINITY;
        for (int v = 0; v < VOCAB; v++)
            most = fmax(most, (double)logits[i * VOCAB + v]);
        for (int v = 0; v < VOCAB; v++)
            sum += exp((double)logits[i * VOCAB + v] - most);
        nll -= (double)logits[i * VOCAB + ids[i + 1]] - most - log(sum);
    }
    return nll;
}

static void compare(const recipe *r, const char *name, const fixture_options *options, bool plain)
{
    const recipe of_twin = twin_of(r);
    int32_t tokens[NEW], wanted[NEW];
    model m, twin;
    open_model(&m, r, options, plain);
    open_model(&twin, &of_twin, options, plain);
    for (int i = 0; i < m.program->segment_count; i++) {
        const mgl_program_tensor *t = &m.program->tensors[m.program->segments[i].tensor];
        ck_assert(strstr(t->name, "embed") || mgl_weight_format_is_scaled(t->format));
    }
    generate(&m, tokens);
    generate(&twin, wanted);
    ck_assert_mem_eq(tokens, wanted, sizeof tokens);
    const double nll = likelihood(&m), other = likelihood(&twin);
    ck_assert_msg(fabs(nll / other - 1) < 1e-6, "%s: nll %.9f, not %.9f", name, nll, other);
    close_model(&m);
    close_model(&twin);
}

START_TEST(tokens_and_likelihood_are_equal)
{
    fixture_options options = {.dtype = MGL_F32, .queues = 3, .rows = 4};
    compare(&cases[_i].recipe, cases[_i].name, &options, false);
}
END_TEST

START_TEST(the_reference_ops_agree)
{
    fixture_options options = {.dtype = MGL_F32, .queues = 2};
    compare(&cases[_i].recipe, cases[_i].name, &options, true);
}
END_TEST

/* ---- relabeled rows ------------------------------------------------------------------------- */

/* The stored columns of down, sorted by group. */
static void sort_columns(const recipe *r, int64_t order[128])
{
    int64_t count = 0;
    for (int64_t g = 0; g < 128 / r->group; g++)
        for (int64_t k = 0; k < 128; k++)
            if (sorted_column(r, "model.layers.0.mlp.down_proj.", k) / r->group == g)
                order[count++] = k;
    ck_assert_int_eq(count, 128);
}

/* Gate, up and their biases have the rows, and down the columns, in the order of the groups. The
 * values are the stored ones. */
START_TEST(gate_and_up_are_relabeled)
{
    const recipe *r = &cases[_i].recipe;
    const bool fused = r->family != NULL;
    int64_t order[128];
    static float numbers[128 * 128];
    model m;
    mgl_error err;
    fixture_options options = {.dtype = MGL_F32};
    open_model(&m, r, &options, false);
    sort_columns(r, order);
    const mgl_graph *graph = m.checkpoint->graph;
    for (int up = 0; up < 2; up++) {
        const char *stored = fused ? "model.layers.0.mlp.gate_up_proj."
                             : up  ? "model.layers.0.mlp.up_proj."
                                   : "model.layers.0.mlp.gate_proj.";
        const int index = mgl_graph_find_tensor(graph, up ? "model.layers.0.mlp.up_proj.weight"
                                                          : "model.layers.0.mlp.gate_proj.weight");
        ok(graph->read(graph, index, 3, 125, numbers + 3 * 64, &err), err);
        for (int64_t n = 3; n < 128; n++)
            for (int64_t k = 0; k < 64; k++)
                ck_assert(numbers[n * 64 + k] ==
                          drawn_number(r, stored, order[n] + (fused && up ? 128 : 0), k));
    }
    const int down = mgl_graph_find_tensor(graph, "model.layers.0.mlp.down_proj.weight");
    ok(graph->read(graph, down, 0, 64, numbers, &err), err);
    for (int64_t n = 0; n < 64; n++)
        for (int64_t k = 0; k < 128; k++)
            ck_assert(numbers[n * 128 + k] ==
                      drawn_number(r, "model.layers.0.mlp.down_proj.", n, order[k]));
    close_model(&m);
}
END_TEST

/* ---- maps that change nothing, and maps that are not supported ------------------------------- */

/* All entries are 0, as some programs write without desc_act: the map stands for no map. */
START_TEST(a_map_of_zeros_changes_nothing)
{
    recipe r = cases[1].recipe;
    r.reorder = NULL;
    r.zero_map = true;
    fixture_options options = {.dtype = MGL_F32};
    compare(&r, "zeros", &options, false);
}
END_TEST

static void make(void)
{
    scratch_make(scratch);
}

static void discard(void)
{
    scratch_remove(scratch);
}

int main(void)
{
    TCase *tests = tcase_create("orders");
    tcase_add_checked_fixture(tests, make, discard);
    tcase_add_loop_test(tests, tokens_and_likelihood_are_equal, 0, CASES);
    tcase_add_loop_test(tests, the_reference_ops_agree, 0, CASES);
    tcase_add_loop_test(tests, gate_and_up_are_relabeled, 0, CASES);
    tcase_add_test(tests, a_map_of_zeros_changes_nothing);
    return fixture_main("orders of columns", tests);
}
