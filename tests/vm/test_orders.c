/*
 * Quantized checkpoints with reordered columns (g_idx of desc_act, weight_g_idx of actorder
 * "group") on the CPU VM. Each checkpoint is compared with a twin, which stores the decoded weights
 * in f32, with the columns in their stored order. Greedy tokens and the likelihood of a text must
 * agree.
 */
#include "fixture.h"

#include "base/file.h"
#include "base/memory.h"
#include "importer/checkpoint.h"
#include "tests/importer/quantized/models.h"
#include "tests/scratch.h"
#include "validator/validator.h"
#include "vm/cuda/encode.h"
#include "vm/image.h"
#include "vm/weights.h"

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
    {"gptq-all",
     {.config = GPTQ_BITS("4"),
      .layout = GPTQ,
      .bits = 4,
      .group = 32,
      .rows = 1,
      .scales = "F16",
      .zeros = true,
      .zero_offset = 1,
      .order = true,
      .same_order = true,
      .reorder = ""}},
    {"gptq-8-bits-all-differ",
     {.config = GPTQ_BITS("8"),
      .layout = GPTQ,
      .bits = 8,
      .group = 32,
      .rows = 1,
      .scales = "F16",
      .zero_offset = 1,
      .order = true,
      .head = true,
      .reorder = ""}},
    {"gptq-fused-all",
     {.config = GPTQ_BITS("4"),
      .layout = GPTQ,
      .bits = 4,
      .group = 32,
      .rows = 1,
      .scales = "F16",
      .zeros = true,
      .zero_offset = 1,
      .order = true,
      .family = "phi3",
      .reorder = ""}},
    {"gptq-interleaved-all",
     {.config = GPTQ_BITS("4"),
      .layout = GPTQ,
      .bits = 4,
      .group = 32,
      .rows = 1,
      .scales = "F16",
      .zeros = true,
      .zero_offset = 1,
      .order = true,
      .family = "helium",
      .more_config = "\"head_dim\": 16",
      .reorder = ""}},
    {"ct-all",
     {.config = GROUPS,
      .layout = PACKED,
      .bits = 4,
      .group = 32,
      .rows = 1,
      .scales = "BF16",
      .zeros = true,
      .order = true,
      .reorder = ""}},
    {"ct-o",
     {.config = GROUPS,
      .layout = PACKED,
      .bits = 4,
      .group = 32,
      .rows = 1,
      .scales = "F32",
      .order = true,
      .reorder = "o_proj"}},
};
enum { CASES = sizeof cases / sizeof *cases, RELABELED = 4 /* only down is reordered */ };

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

/* The recipe of the twin: the decoded weights in f32. */
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

/* The rows of gate and up, and the columns of down, have the order of the groups. The values are
 * those of the stored matrices. */
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

/* ---- maps that change nothing ---------------------------------------------------------------- */

/* Some quantizers write a map of zeros if desc_act is off. This map reorders nothing. */
START_TEST(a_map_of_zeros_changes_nothing)
{
    recipe r = cases[1].recipe;
    r.reorder = NULL;
    r.zero_map = true;
    fixture_options options = {.dtype = MGL_F32};
    compare(&r, "zeros", &options, false);
}
END_TEST

/* ---- programs with column maps --------------------------------------------------------------- */

enum { ALL = RELABELED, DIFFERENT };

/* Epochs of many rows, splits of attention that are merged in step o, and gamma-scaled inputs. */
START_TEST(other_schedules_agree)
{
    static const fixture_options options[] = {
        {.dtype = MGL_F32, .queues = 3, .rows = 4, .second_rows = 16, .sequences = 2},
        {.dtype = MGL_F32,
         .queues = 2,
         .splits = 3,
         .exchange = MGL_EXCHANGE_FLAGS,
         .merge = MGL_MERGE_IN_O},
        {.dtype = MGL_F32,
         .queues = 3,
         .rows = 4,
         .second_rows = 16,
         .sequences = 2,
         .gamma_scaled = MGL_GAMMA_YES}};
    compare(&cases[ALL].recipe, "equal maps", &options[_i], false);
    compare(&cases[DIFFERENT].recipe, "different maps", &options[_i], false);
}
END_TEST

/* `read` delivers the columns as they are stored, and read_codes sorted by group. */
START_TEST(columns_are_read_in_both_orders)
{
    static const char name[] = "model.layers.0.self_attn.o_proj.";
    static float numbers[64 * 64], scales[64 * 2];
    static uint8_t codes[64 * 64], zeros[64 * 2];
    const recipe *r = &cases[ALL].recipe;
    const mgl_quantized_rows rows = {codes, scales, zeros, NULL};
    mgl_error err;
    model m;
    open_model(&m, r, &(fixture_options){.dtype = MGL_F32}, false);
    const mgl_graph *graph = m.checkpoint->graph;
    const int index = mgl_graph_find_tensor(graph, "model.layers.0.self_attn.o_proj.weight");
    const mgl_tensor *t = &graph->tensors[index];
    ck_assert(t->reordered && t->order && t->quantized.zeros);
    ok(graph->read(graph, index, 0, 64, numbers, &err), err);
    ok(graph->read_codes(graph, index, 0, 64, &rows, &err), err);
    for (int64_t n = 0; n < 64; n++)
        for (int64_t i = 0; i < 64; i++) {
            const int64_t k = t->order[i], g = sorted_column(r, name, k) / 32;
            ck_assert_int_eq(g, i / 32);
            ck_assert(i % 32 == 0 || t->order[i - 1] < k);
            ck_assert(codes[n * 64 + i] == drawn_code(r, name, n, k));
            ck_assert(scales[n * 2 + g] == drawn_scale(r, name, n, 32 * g));
            ck_assert(zeros[n * 2 + g] == drawn_zero(r, name, n, 32 * g));
            ck_assert(numbers[n * 64 + k] == drawn_number(r, name, n, k));
        }
    close_model(&m);
}
END_TEST

START_TEST(the_text_form_keeps_the_map)
{
    mgl_error err;
    mgl_program *back;
    mgl_text text = {0};
    model m;
    open_model(&m, &cases[ALL].recipe, &(fixture_options){.dtype = MGL_F32}, false);
    mgl_schedule_print(m.program, &text);
    ck_assert_ptr_nonnull(strstr(text.bytes, "buffer l0.o_order const i32 [64] order l0.o\n"));
    ck_assert(!strstr(text.bytes, "down_order"));
    ok(mgl_schedule_parse(text.bytes, text.length, "text", &back, &err), err);
    ck_assert(mgl_program_equal(m.program, back));
    mgl_text_clear(&text);
    mgl_program_free(back);
    close_model(&m);
}
END_TEST

/* A compiled model keeps the maps: its program is valid and generates the same tokens. */
START_TEST(a_compiled_model_keeps_the_maps)
{
    static const char config[] = "/config.json";
    char path[80], *text;
    size_t length;
    uint64_t bytes;
    int32_t tokens[NEW], wanted[NEW];
    mgl_error err;
    mgl_image *image;
    mgl_verdict verdict;
    model m, compiled = {0};
    open_model(&m, &cases[DIFFERENT].recipe, &(fixture_options){.dtype = MGL_F32}, false);
    generate(&m, wanted);
    snprintf(path, sizeof path, "%s%s", m.checkpoint->folder, config);
    ok(mgl_file_read(path, 1 << 20, &text, &length, &err), err);
    const mgl_image_file file = {config + 1, text, length};
    const mgl_image_content content = {
        .program = m.program, .graph = m.checkpoint->graph, .files = &file, .file_count = 1};
    snprintf(path, sizeof path, "%s/m.mega", scratch);
    ok(mgl_image_write(path, &content, &bytes, &err), err);
    close_model(&m);

    ok(mgl_import(path, &compiled.checkpoint, &err), err);
    ok(mgl_image_open(path, &image, &err), err);
    ok(mgl_validator_check(image->program, compiled.checkpoint->graph, &verdict, &err), err);
    ck_assert(verdict.accepted);
    mgl_verdict_clear(&verdict);
    const mgl_vm_options options = {.kind = MGL_VM_CPU, .weights = image->weights};
    ok(mgl_vm_open(image->program, compiled.checkpoint->graph, &options, &compiled.vm, &err), err);
    generate(&compiled, tokens);
    ck_assert_mem_eq(tokens, wanted, sizeof tokens);
    close_model(&compiled);
    mgl_image_close(image);
    mgl_free(text);
}
END_TEST

/* ---- what is rejected ------------------------------------------------------------------------ */

static bool has_code(const mgl_program *program, const mgl_graph *graph, int code)
{
    mgl_error err;
    mgl_verdict verdict;
    bool found = false;
    ok(mgl_validator_check(program, graph, &verdict, &err), err);
    for (int i = 0; i < verdict.count; i++)
        found |= verdict.diagnostics[i].code == code;
    ck_assert(found || verdict.accepted);
    mgl_verdict_clear(&verdict);
    return found;
}

/* The buffer of the column map of o. */
static mgl_buffer *find_map(mgl_program *p)
{
    for (int i = 0; i < p->buffer_count; i++)
        if (!strcmp(p->buffers[i].name, "l0.o_order"))
            return &p->buffers[i];
    ck_abort_msg("no map");
}

START_TEST(the_validator_checks_maps)
{
    model m, twin;
    const recipe of_twin = twin_of(&cases[ALL].recipe);
    const fixture_options options = {.dtype = MGL_F32};
    open_model(&m, &cases[ALL].recipe, &options, false);
    open_model(&twin, &of_twin, &options, false);
    mgl_graph *graph = m.checkpoint->graph;
    mgl_buffer *map = find_map(m.program);
    mgl_program_tensor *o = &m.program->tensors[map->tensor];
    const mgl_buffer good = *map;
    const mgl_weight_format format = o->format;
    const int order = o->order;
    ck_assert(!has_code(m.program, graph, 711));
    ck_assert(!has_code(twin.program, graph, 711)); /* decoded to f32 */

    map->extents[0].count = 32;
    ck_assert(has_code(m.program, graph, 104));
    *map = good;
    map->dtype = MGL_F32;
    ck_assert(has_code(m.program, graph, 104));
    *map = good;
    map->tensor--; /* v has a map of its own */
    ck_assert(has_code(m.program, graph, 105));
    *map = good;
    o->format = mgl_weight_format_of(MGL_F32);
    ck_assert(has_code(m.program, graph, 104));
    o->format = format;
    o->order = order - 1;
    ck_assert(has_code(m.program, graph, 105));
    o->order = order;

    mgl_tensor *t = &graph->tensors[mgl_graph_find_tensor(graph, o->checkpoint)];
    t->reordered = false;
    ck_assert(has_code(m.program, graph, 711));
    t->reordered = true;
    *map = (mgl_buffer){.name = map->name,
                        .space = MGL_SPACE_CONST,
                        .rank = 1,
                        .extents = {{MGL_FIXED, t->rows}},
                        .source = MGL_SOURCE_NONE,
                        .tensor = -1,
                        .sets = 1};
    o->order = -1;
    ck_assert(has_code(m.program, graph, 104));
    *map = good;
    o->order = order;
    ck_assert(!has_code(m.program, graph, 711));
    close_model(&m);
    close_model(&twin);
}
END_TEST

/* The validator rejects a program without the map of a tensor whose columns are reordered. */
START_TEST(a_map_is_needed)
{
    model m;
    open_model(&m, &cases[ALL].recipe, &(fixture_options){.dtype = MGL_F32}, false);
    mgl_graph *graph = m.checkpoint->graph;
    const int o = mgl_graph_find_tensor(graph, "model.layers.0.self_attn.o_proj.weight");
    graph->tensors[o].reordered = false;
    mgl_program *without = fixture_program(graph, &(fixture_options){.dtype = MGL_F32});
    graph->tensors[o].reordered = true;
    ck_assert(has_code(without, graph, 711));
    mgl_program_free(without);
    close_model(&m);
}
END_TEST

START_TEST(a_map_that_is_no_permutation_is_rejected)
{
    static const int32_t values[] = {-1, 64, INT32_MAX, INT32_MIN, 5};
    int32_t order[64];
    mgl_error err;
    mgl_vm *vm;
    model m;
    open_model(&m, &cases[ALL].recipe, &(fixture_options){.dtype = MGL_F32}, false);
    mgl_graph *graph = m.checkpoint->graph;
    mgl_tensor *t =
        &graph->tensors[mgl_graph_find_tensor(graph, "model.layers.0.self_attn.o_proj.weight")];
    const int32_t *const stored = t->order;
    memcpy(order, stored, sizeof order);
    order[order[7] == 5 ? 8 : 7] = values[_i];
    t->order = order;
    const mgl_vm_options options = {.kind = MGL_VM_CPU};
    ck_assert_int_eq(mgl_vm_open(m.program, graph, &options, &vm, &err), MGL_BAD_INPUT);
    ck_assert_str_eq(err.where, "l0.o_order");
    ck_assert_ptr_nonnull(strstr(err.message, "not a permutation of the columns"));
    t->order = stored;
    close_model(&m);
}
END_TEST

/* Packs the weights of a model and checks its column maps, as the CUDA machine does. */
static mgl_status check_maps(const model *m, mgl_error *err)
{
    mgl_weights *weights;
    ok(mgl_weights_pack(m->program, m->checkpoint->graph, &weights, err), *err);
    const mgl_status status = mgl_weights_check_orders(weights, err);
    mgl_weights_close(weights);
    return status;
}

/* Checks that the maps are rejected. `where`: the buffer or tensor of the message. */
static void check_rejected(const model *m, const char *where, const char *message)
{
    mgl_error err = {0};
    ck_assert_int_eq(check_maps(m, &err), MGL_BAD_INPUT);
    ck_assert_str_eq(err.where, where);
    ck_assert_msg(strstr(err.message, message), "%s", err.message);
}

/* Maps with too few and too many columns, maps that are no permutation, and two maps in a task. */
START_TEST(the_cuda_machine_checks_maps)
{
    static const int32_t values[] = {-1, 64, INT32_MAX, INT32_MIN, 5};
    static const int64_t lengths[] = {0, 1, 32, 63, 65, 128};
    int32_t order[64];
    mgl_error err = {0};
    model m;
    open_model(&m, &cases[ALL].recipe, &(fixture_options){.dtype = MGL_F32}, false);
    const mgl_graph *graph = m.checkpoint->graph;
    mgl_buffer *map = find_map(m.program);
    ok(check_maps(&m, &err), err);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        map->extents[0].count = lengths[i];
        check_rejected(&m, "l0.o_order", "does not have one i32 for each column");
    }
    map->extents[0].count = 64;
    mgl_tensor *o =
        &graph->tensors[mgl_graph_find_tensor(graph, "model.layers.0.self_attn.o_proj.weight")];
    const int32_t *stored = o->order;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        memcpy(order, stored, sizeof order);
        order[order[7] == 5 ? 8 : 7] = values[i];
        o->order = order;
        check_rejected(&m, "l0.o_order", "not a permutation of the columns");
    }
    o->order = stored;
    mgl_tensor *k =
        &graph->tensors[mgl_graph_find_tensor(graph, "model.layers.0.self_attn.k_proj.weight")];
    stored = k->order;
    memcpy(order, stored, sizeof order);
    order[0] = stored[1];
    order[1] = stored[0];
    k->order = order;
    check_rejected(&m, "l0.k", "different column maps");
    k->order = stored;
    ok(check_maps(&m, &err), err);
    close_model(&m);
}
END_TEST

/* The CUDA machine runs relabeled models, and models with column maps by the general variant. */
START_TEST(cuda_takes_maps)
{
    const mgl_target target = {.arch = "sm_90a", .queues = 4, .shared_bytes = 232448};
    const mgl_lower_options lower = {.dtype = MGL_BF16, .capacity = 64, .sequences = 1};
    mgl_schedule_config config;
    mgl_program *program;
    mgl_error err = {0};
    model m;
    open_model(&m, &cases[_i ? ALL : 0].recipe, &(fixture_options){.dtype = MGL_F32}, false);
    mgl_schedule_config_default(&config);
    ok(mgl_schedule_lower(m.checkpoint->graph, &target, &lower, &config, &program, &err), err);
    ok(mgl_cuda_check_program(program, &err), err);
    for (int i = 0; i < program->task_count; i++) {
        const mgl_run *segments = &program->tasks[i].segments;
        for (int j = segments->first; j < segments->first + segments->count; j++)
            if (program->tensors[program->segments[j].tensor].order >= 0)
                ck_assert_int_eq(program->tasks[i].variant, MGL_VARIANT_GENERAL);
    }
    mgl_program_free(program);
    close_model(&m);
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
    tcase_add_loop_test(tests, gate_and_up_are_relabeled, 0, RELABELED);
    tcase_add_test(tests, a_map_of_zeros_changes_nothing);
    tcase_add_loop_test(tests, other_schedules_agree, 0, 3);
    tcase_add_test(tests, columns_are_read_in_both_orders);
    tcase_add_test(tests, the_text_form_keeps_the_map);
    tcase_add_test(tests, a_compiled_model_keeps_the_maps);
    tcase_add_test(tests, the_validator_checks_maps);
    tcase_add_test(tests, a_map_is_needed);
    tcase_add_loop_test(tests, a_map_that_is_no_permutation_is_rejected, 0, 5);
    tcase_add_test(tests, the_cuda_machine_checks_maps);
    tcase_add_loop_test(tests, cuda_takes_maps, 0, 2);
    return fixture_main("orders of columns", tests);
}
