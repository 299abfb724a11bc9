/* Makes random models, programs and machines for tests. See fixture.h. */
#include "fixture.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"

const mgl_geometry small_model = {64, 2, 4, 2, 16, 96, 75, 1e-5f};
const mgl_geometry odd_model = {72, 2, 3, 1, 32, 500, 1213, 1e-5f};
const mgl_geometry tiny_model = {32, 2, 2, 1, 16, 40, 41, 1e-5f};

/* Parameters of a random model's weights. */
struct source {
    unsigned seed;
    int tensor; /* tensor of spoil_row; -1: none */
    int64_t row;
    float value;
};

/* Hashes four numbers (the finalizer of MurmurHash3, chained). */
static uint32_t mix(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    const uint32_t words[4] = {a, b, c, d};
    uint32_t h = 0x9E3779B9;
    for (int i = 0; i < 4; i++) {
        h = (h ^ words[i]) * 0x85EBCA6B;
        h = (h ^ h >> 13) * 0xC2B2AE35;
        h ^= h >> 16;
    }
    return h;
}

/* Elements of a row from a column on: uniform in +-2.5 / sqrt(inputs) for matrices, around 1 for
 * norms. */
static void random_values(const mgl_graph *graph, int tensor, int64_t row, int64_t column,
                          int64_t count, float *to)
{
    const mgl_tensor *t = &graph->tensors[tensor];
    const struct source *source = graph->reader;
    const bool spoiled = tensor == source->tensor && row == source->row;
    const float root = sqrtf((float)t->cols);
    for (int64_t i = 0; i < count; i++) {
        const uint32_t hash =
            mix(source->seed, (uint32_t)tensor, (uint32_t)row, (uint32_t)(column + i));
        const float unit = (float)hash * 0x1p-31f - 1.0f;
        to[i] = t->rank == 1 ? 1.0f + 0.3f * unit : unit * 2.5f / root;
        if (spoiled)
            to[i] = source->value;
    }
}

static mgl_status read_random(const mgl_graph *graph, int tensor, int64_t row, int64_t count,
                              void *to, mgl_error *err)
{
    enum { PIECE = 512 };
    float values[PIECE];
    (void)err;
    const mgl_tensor *t = &graph->tensors[tensor];
    char *out = to;
    for (int64_t r = 0; r < count; r++) {
        for (int64_t c = 0; c < t->cols; c += PIECE) {
            const int64_t n = t->cols - c < PIECE ? t->cols - c : PIECE;
            random_values(graph, tensor, row + r, c, n, values);
            mgl_convert(out, t->dtype, values, MGL_F32, (size_t)n);
            out += (size_t)n * mgl_dtype_size(t->dtype);
        }
    }
    return MGL_OK;
}

mgl_graph *random_graph(const mgl_geometry *geometry, int max_positions, bool tied, mgl_dtype dtype,
                        unsigned seed)
{
    return random_family(geometry, MGL_EXTRA_NONE, max_positions, tied, dtype, seed);
}

mgl_graph *random_family(const mgl_geometry *geometry, unsigned extras, int max_positions,
                         bool tied, mgl_dtype dtype, unsigned seed)
{
    mgl_error err;
    mgl_graph *graph;
    float inv_freq[128];
    for (int i = 0; i < geometry->head_dim / 2; i++)
        inv_freq[i] = powf(10000.0f, -2.0f * (float)i / (float)geometry->head_dim);
    ok(mgl_graph_build(geometry, extras, max_positions, tied, dtype, inv_freq, &graph, &err), err);
    struct source *source = mgl_alloc(sizeof *source);
    *source = (struct source){.seed = seed, .tensor = -1};
    graph->read = read_random;
    graph->reader = source;
    graph->close_reader = mgl_free;
    return graph;
}

void spoil_row(mgl_graph *graph, const char *tensor, int64_t row, float value)
{
    struct source *source = graph->reader;
    source->tensor = mgl_graph_find_tensor(graph, tensor);
    source->row = row;
    source->value = value;
    graph->any_numbers = true;
    ck_assert_int_ge(source->tensor, 0);
}

mgl_program *fixture_program(const mgl_graph *graph, const fixture_options *options)
{
    mgl_error err;
    mgl_program *program;
    mgl_schedule_config config;
    mgl_target target = {.arch = "cpu", .queues = options->queues ? options->queues : 1};
    mgl_lower_options lower = {.dtype = options->dtype,
                               .capacity =
                                   options->capacity ? options->capacity : graph->max_positions,
                               .sequences = options->sequences ? options->sequences : 1,
                               .penalties = options->penalties};
    mgl_schedule_config_default(&config);
    if (options->rows)
        config.rows = options->rows;
    config.splits = options->splits;
    config.merge = options->merge;
    config.share = options->share;
    config.unsplit = options->unsplit;
    config.exchange = options->exchange;
    config.second_rows = options->second_rows;
    config.gamma_scaled = options->gamma_scaled;
    ok(mgl_schedule_lower(graph, &target, &lower, &config, &program, &err), err);
    return program;
}

mgl_vm *fixture_vm(const mgl_program *program, const mgl_graph *graph, bool plain)
{
    mgl_error err;
    mgl_vm *vm;
    mgl_vm_options options = {.kind = MGL_VM_CPU, .plain = plain};
    ok(mgl_vm_open(program, graph, &options, &vm, &err), err);
    return vm;
}

void fixture_greedy(const mgl_graph *graph, const fixture_options *options, bool plain,
                    const int32_t *prompt, int prompt_count, int32_t *tokens, int count)
{
    mgl_error err;
    mgl_vm_report report;
    mgl_program *program = fixture_program(graph, options);
    mgl_vm *vm = fixture_vm(program, graph, plain);
    mgl_vm_sequence sequence = {.prompt = prompt, .prompt_count = prompt_count, .max_new = count};
    mgl_vm_request request = {.sequences = &sequence, .count = 1};
    ok(mgl_vm_run(vm, &request, &report, &err), err);
    ck_assert_int_eq(report.produced[0], count);
    memcpy(tokens, report.output[0], (size_t)count * sizeof *tokens);
    mgl_vm_close(vm);
    mgl_program_free(program);
}

int fixture_main(const char *name, TCase *tests)
{
    Suite *suite = suite_create(name);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
