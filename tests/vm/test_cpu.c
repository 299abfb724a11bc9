/*
 * Tests of the CPU VM: one program gives the same tokens for every division into queues, splits and
 * batches, on both paths.
 */
#include "fixture.h"

#include "base/memory.h"

#include <math.h>
#include <string.h>

#include "schedule/step.h"

enum { NEW = 24 };
static const int32_t prompt[] = {3,  1, 40, 7,  7,  22, 9, 13, 30, 2,
                                 11, 5, 28, 36, 19, 8,  4, 1,  33, 6};
enum { PROMPT = sizeof prompt / sizeof *prompt };

static void check_same(const mgl_graph *graph, const fixture_options *options, bool plain,
                       const int32_t *wanted)
{
    int32_t tokens[NEW];
    fixture_greedy(graph, options, plain, prompt, PROMPT, tokens, NEW);
    for (int i = 0; i < NEW; i++)
        ck_assert_msg(tokens[i] == wanted[i],
                      "queues %d splits %d plain %d: token %d is %d, not %d", options->queues,
                      options->splits, plain, i, tokens[i], wanted[i]);
}

static const mgl_geometry *const models[] = {&small_model, &odd_model, &tiny_model};

START_TEST(queues_and_paths_agree)
{
    static const int queues[] = {1, 2, 3, 7, 16, 132};
    mgl_graph *graph = random_graph(models[_i], 64, _i != 1, MGL_F32, 7);
    int32_t wanted[NEW];
    fixture_greedy(graph, &(fixture_options){.dtype = MGL_F32}, true, prompt, PROMPT, wanted, NEW);
    for (size_t i = 0; i < sizeof queues / sizeof *queues; i++)
        for (int plain = 0; plain < 2; plain++)
            check_same(graph, &(fixture_options){.queues = queues[i], .dtype = MGL_F32}, plain,
                       wanted);
    mgl_graph_free(graph);
}
END_TEST

START_TEST(splits_agree)
{
    mgl_graph *graph = random_graph(&small_model, 64, true, MGL_F32, 8);
    int32_t wanted[NEW];
    fixture_greedy(graph, &(fixture_options){.splits = 1}, true, prompt, PROMPT, wanted, NEW);
    for (int splits = 2; splits <= 64; splits = splits * 3 - 2)
        for (int queues = 1; queues < 10; queues += 4)
            check_same(graph, &(fixture_options){.queues = queues, .splits = splits}, splits % 2,
                       wanted);
    mgl_graph_free(graph);
}
END_TEST

START_TEST(prompt_chunks_agree)
{
    mgl_graph *graph = random_graph(&small_model, 64, true, MGL_F32, 9);
    int32_t wanted[NEW];
    fixture_greedy(graph, &(fixture_options){.rows = 1}, true, prompt, PROMPT, wanted, NEW);
    for (int rows = 2; rows <= 16; rows++)
        check_same(graph, &(fixture_options){.rows = rows, .queues = 2}, rows % 2, wanted);
    mgl_graph_free(graph);
}
END_TEST

/* Logits after a prompt of 17 tokens. */
static void logits_of(const mgl_graph *graph, mgl_dtype dtype, bool plain, float *logits)
{
    mgl_error err;
    mgl_vm_report report;
    mgl_program *program = fixture_program(graph, &(fixture_options){.dtype = dtype, .queues = 3});
    mgl_vm *vm = fixture_vm(program, graph, plain);
    mgl_vm_sequence sequence = {.prompt = prompt, .prompt_count = 17, .max_new = 1};
    ok(mgl_vm_run(vm, &(mgl_vm_request){.sequences = &sequence, .count = 1}, &report, &err), err);
    ok(mgl_vm_get_logits(vm, logits, &err), err);
    mgl_vm_close(vm);
    mgl_program_free(program);
}

/* The fast path only changes the order of f32 sums: a tolerance of 1e-4 of the logits' magnitude is
 * far above that effect for two layers, and far below any error. In bf16 and f16, a cached value
 * may also round to its neighbor. */
START_TEST(fast_path_has_the_plain_logits)
{
    static const float tolerance[] = {1e-4f, 2e-2f, 4e-3f}; /* f32, bf16, f16 */
    for (mgl_dtype dtype = MGL_F32; dtype <= MGL_F16; dtype++) {
        mgl_graph *graph = random_graph(models[_i], 64, true, dtype, 10);
        float plain[1213], fast[1213], size = 0.0f, error = 0.0f;
        logits_of(graph, dtype, true, plain);
        logits_of(graph, dtype, false, fast);
        for (int i = 0; i < models[_i]->vocab; i++) {
            size = fmaxf(size, fabsf(plain[i]));
            error = fmaxf(error, fabsf(plain[i] - fast[i]));
        }
        ck_assert_float_gt(size, 0.1f);
        ck_assert_msg(error <= tolerance[dtype] * size, "%s: error %g of %g", mgl_dtype_name(dtype),
                      (double)error, (double)size);
        mgl_graph_free(graph);
    }
}
END_TEST

/* Logits after a prompt of 17 tokens, with this number of threads; weights in the graph's
 * format. */
static void logits_by_threads(const mgl_graph *graph, int threads, int queues, float *logits)
{
    mgl_error err;
    mgl_vm *vm;
    mgl_vm_facts facts;
    mgl_vm_report report;
    mgl_program *program = fixture_program(graph, &(fixture_options){.queues = queues});
    const mgl_vm_options options = {.kind = MGL_VM_CPU, .threads = threads};
    ok(mgl_vm_open(program, graph, &options, &vm, &err), err);
    mgl_vm_get_facts(vm, &facts);
    ck_assert_int_eq(facts.threads, threads);
    mgl_vm_sequence sequence = {.prompt = prompt, .prompt_count = 17, .max_new = 1};
    ok(mgl_vm_run(vm, &(mgl_vm_request){.sequences = &sequence, .count = 1}, &report, &err), err);
    ok(mgl_vm_get_logits(vm, logits, &err), err);
    mgl_vm_close(vm);
    mgl_program_free(program);
}

/* The division of the work has no effect: threads and queues. */
START_TEST(no_bit_depends_on_the_threads)
{
    mgl_graph *graph = random_graph(&odd_model, 64, true, (mgl_dtype)_i, 10);
    float one[1213], many[1213];
    logits_by_threads(graph, 1, 1, one);
    for (int threads = 2; threads < 6; threads++) {
        logits_by_threads(graph, threads, threads % 2 ? 1 : 3, many);
        ck_assert_mem_eq(one, many, sizeof one);
    }
    mgl_graph_free(graph);
}
END_TEST

/* In f32, a matrix is on the tape in the checkpoint's format, and needs no other memory. */
START_TEST(weights_keep_their_format)
{
    static const size_t sizes[] = {4, 2, 2}; /* f32, bf16, f16 */
    mgl_vm_facts facts;
    mgl_graph *graph = random_graph(&small_model, 64, true, (mgl_dtype)_i, 10);
    mgl_program *program = fixture_program(graph, &(fixture_options){0});
    mgl_vm *vm = fixture_vm(program, graph, false);
    size_t matrices = 0, norms = 0;
    for (int i = 0; i < graph->tensor_count; i++) {
        const mgl_tensor *t = &graph->tensors[i];
        *(t->rank == 2 ? &matrices : &norms) += (size_t)(t->rows * t->cols);
    }
    ck_assert(mgl_program_is_all(program, MGL_F32));
    mgl_vm_get_facts(vm, &facts);
    /* padding of rows and columns to whole blocks, and the rope table */
    ck_assert_uint_ge(facts.memory_bytes, matrices * sizes[_i] + norms * 4);
    ck_assert_uint_le(facts.memory_bytes, matrices * sizes[_i] * 5 / 4 + norms * 4 + 64 * 16 * 4 +
                                              (size_t)program->exec.page_bytes);
    mgl_vm_close(vm);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

/* Logits of a program after a prompt, on a machine opened for it. */
static void prompt_logits(const mgl_program *program, const mgl_graph *graph, float *logits)
{
    mgl_error err;
    mgl_vm_report report;
    mgl_vm *vm = fixture_vm(program, graph, false);
    mgl_vm_sequence sequence = {.prompt = prompt, .prompt_count = 17, .max_new = 1};
    ok(mgl_vm_run(vm, &(mgl_vm_request){.sequences = &sequence, .count = 1}, &report, &err), err);
    ok(mgl_vm_get_logits(vm, logits, &err), err);
    mgl_vm_close(vm);
}

static mgl_buffer *buffer_of(const mgl_program *program, const char *name)
{
    for (int i = 0; i < program->buffer_count; i++)
        if (!strcmp(program->buffers[i].name, name))
            return &program->buffers[i];
    ck_abort_msg("no buffer is called %s", name);
    return NULL;
}

/* f32 tables hold the bf16 values: only the table is wider, and no bit of the logits changes. */
START_TEST(the_embedding_has_a_format_of_its_own)
{
    float wanted[1213], found[1213];
    mgl_graph *graph = random_graph(&odd_model, 64, false, MGL_BF16, 10);
    mgl_program *program = fixture_program(graph, &(fixture_options){.dtype = MGL_BF16});
    prompt_logits(program, graph, wanted);
    mgl_buffer *table = buffer_of(program, "embedding");
    program->embedding_dtype = table->dtype = MGL_F32;
    program->tensors[table->tensor].format = mgl_weight_format_of(MGL_F32);
    prompt_logits(program, graph, found);
    ck_assert_mem_eq(wanted, found, sizeof wanted);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

/* FFN activations in 16 bits with weights in f32: rounded, and almost equal. */
START_TEST(the_exchange_has_a_dtype_of_its_own)
{
    float wanted[1213], found[1213], most = 0;
    mgl_graph *graph = random_graph(&odd_model, 64, false, MGL_F32, 10);
    mgl_program *program = fixture_program(graph, &(fixture_options){0});
    prompt_logits(program, graph, wanted);
    program->exchange_dtype = buffer_of(program, "h")->dtype = MGL_F16;
    prompt_logits(program, graph, found);
    for (int i = 0; i < 1213; i++)
        most = fmaxf(most, fabsf(found[i] - wanted[i]));
    ck_assert_float_gt(most, 0);
    ck_assert_float_lt(most, 0.02f);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

/* If memory is too small, the error has both numbers, and nothing is allocated. */
START_TEST(memory_that_is_missing_is_told)
{
    mgl_error err;
    mgl_vm *vm;
    mgl_graph *graph = random_graph(&small_model, 64, true, MGL_BF16, 10);
    mgl_program *program = fixture_program(graph, &(fixture_options){0});
    const mgl_vm_options options = {.kind = MGL_VM_CPU};
    mgl_memory_pretend(100000);
    mgl_status status = mgl_vm_open(program, graph, &options, &vm, &err);
    mgl_memory_pretend(0);
    ck_assert_int_eq(status, MGL_NO_MEMORY);
    ck_assert_msg(strstr(err.message, "are needed, and the system has 0.0 GB"), "%s", err.message);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

/* Several sequences of different lengths in one launch have the results of single runs. */
START_TEST(ragged_batch_equals_each_alone)
{
    enum { SEQUENCES = 5 };
    mgl_error err;
    mgl_vm_report report;
    mgl_graph *graph = random_graph(&small_model, 64, true, MGL_F32, 11);
    mgl_vm_sequence sequences[SEQUENCES];
    int32_t wanted[SEQUENCES][NEW];
    for (int s = 0; s < SEQUENCES; s++) {
        sequences[s] = (mgl_vm_sequence){
            .prompt = prompt + s, .prompt_count = 1 + s * 4 - (s > 3), .max_new = NEW - 3 * s};
        fixture_greedy(graph, &(fixture_options){0}, true, sequences[s].prompt,
                       sequences[s].prompt_count, wanted[s], sequences[s].max_new);
    }
    fixture_options options = {.queues = 3, .rows = 5 + _i * 4, .sequences = SEQUENCES};
    mgl_program *program = fixture_program(graph, &options);
    mgl_vm *vm = fixture_vm(program, graph, _i % 2);
    for (int again = 0; again < 2; again++) {
        ok(mgl_vm_run(vm, &(mgl_vm_request){.sequences = sequences, .count = SEQUENCES}, &report,
                      &err),
           err);
        for (int s = 0; s < SEQUENCES; s++) {
            ck_assert_int_eq(report.produced[s], sequences[s].max_new);
            ck_assert_int_eq(report.state[s], MGL_STATE_LENGTH);
            ck_assert_mem_eq(report.output[s], wanted[s],
                             (size_t)sequences[s].max_new * sizeof **wanted);
        }
    }
    mgl_vm_close(vm);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

/* A score is the log-softmax of the logits in generation; scoring and generating can be mixed. */
START_TEST(scores_are_the_log_probabilities)
{
    enum { COUNT = 19 };
    mgl_error err;
    mgl_vm_report report;
    mgl_graph *graph = random_graph(&small_model, 64, true, MGL_F32, 12);
    mgl_program *program =
        fixture_program(graph, &(fixture_options){.queues = 2, .sequences = 2, .rows = 4});
    mgl_vm *vm = fixture_vm(program, graph, false);
    mgl_vm_sequence sequences[2] = {
        {.mode = MGL_VM_SCORE, .prompt = prompt, .prompt_count = COUNT},
        {.prompt = prompt + 3, .prompt_count = 5, .max_new = 4},
    };
    float score[COUNT], logits[75];
    ok(mgl_vm_run(vm, &(mgl_vm_request){.sequences = sequences, .count = 2}, &report, &err), err);
    ck_assert_int_eq(report.state[0], MGL_STATE_LENGTH);
    ck_assert_int_eq(report.produced[0], 0);
    ck_assert_int_eq(report.produced[1], 4);
    memcpy(score, report.score[0], sizeof score);
    ck_assert_float_eq(score[0], 0.0f);
    for (int i = 1; i < COUNT; i++) {
        mgl_vm_sequence one = {.prompt = prompt, .prompt_count = i, .max_new = 1};
        double sum = 0.0;
        ok(mgl_vm_run(vm, &(mgl_vm_request){.sequences = &one, .count = 1}, &report, &err), err);
        ok(mgl_vm_get_logits(vm, logits, &err), err);
        for (int j = 0; j < 75; j++)
            sum += exp((double)logits[j]);
        ck_assert_double_eq_tol((double)score[i], (double)logits[prompt[i]] - log(sum), 1e-4);
    }
    mgl_vm_close(vm);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

/* ---- ends ------------------------------------------------------------------------------------ */

struct stopping {
    int seen, stop_after;
    atomic_int abort;
};

static bool count_tokens(void *user, int sequence, int32_t token)
{
    struct stopping *s = user;
    ck_assert_int_eq(sequence, 0);
    ck_assert_int_ge(token, 0);
    return ++s->seen != s->stop_after;
}

static bool raise_abort(void *user, int sequence, int32_t token)
{
    struct stopping *s = user;
    (void)sequence, (void)token;
    s->abort = ++s->seen == s->stop_after;
    return true;
}

START_TEST(stops_when_asked)
{
    mgl_error err;
    mgl_vm_report report;
    mgl_graph *graph = random_graph(&small_model, 64, true, MGL_F32, 13);
    mgl_program *program = fixture_program(graph, &(fixture_options){.queues = 2});
    mgl_vm *vm = fixture_vm(program, graph, false);
    mgl_vm_sequence sequence = {.prompt = prompt, .prompt_count = 4, .max_new = NEW};
    struct stopping s = {.stop_after = 5};
    mgl_vm_request request = {.sequences = &sequence, .count = 1, .user = &s};
    request.on_token = _i ? raise_abort : count_tokens;
    request.abort = _i ? &s.abort : NULL;
    ok(mgl_vm_run(vm, &request, &report, &err), err);
    ck_assert_int_eq(report.state[0], MGL_STATE_ABORTED);
    ck_assert_int_eq(report.produced[0], 5);
    ck_assert_int_eq(s.seen, 5);
    /* the logits are those of the last token, not of the abandoned epoch */
    float logits[75];
    int best = 0;
    ok(mgl_vm_get_logits(vm, logits, &err), err);
    for (int i = 1; i < 75; i++)
        best = logits[i] > logits[best] ? i : best;
    ck_assert_int_eq(best, report.output[0][4]);
    request = (mgl_vm_request){.sequences = &sequence, .count = 1};
    ok(mgl_vm_run(vm, &request, &report, &err), err);
    ck_assert_int_eq(report.produced[0], NEW);
    mgl_vm_close(vm);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

START_TEST(ends_at_an_end_token)
{
    mgl_error err;
    mgl_vm_report report;
    mgl_graph *graph = random_graph(&small_model, 64, true, MGL_F32, 14);
    int32_t wanted[NEW];
    fixture_greedy(graph, &(fixture_options){0}, true, prompt, 4, wanted, NEW);
    int first = 0;
    while (wanted[first] != wanted[9])
        first++;
    mgl_program *program = fixture_program(graph, &(fixture_options){.queues = 3});
    mgl_vm *vm = fixture_vm(program, graph, false);
    int32_t ends[] = {74, wanted[9]};
    if (ends[0] == wanted[9])
        ends[0] = 73;
    mgl_vm_sequence sequence = {
        .prompt = prompt, .prompt_count = 4, .max_new = NEW, .ends = ends, .end_count = 2};
    ok(mgl_vm_run(vm, &(mgl_vm_request){.sequences = &sequence, .count = 1}, &report, &err), err);
    ck_assert_int_eq(report.state[0], MGL_STATE_EOS);
    ck_assert_int_eq(report.output[0][report.produced[0] - 1], wanted[9]);
    ck_assert_int_le(report.produced[0], first + 1);
    mgl_vm_close(vm);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

START_TEST(fills_the_capacity_and_no_more)
{
    mgl_error err;
    mgl_vm_report report;
    mgl_graph *graph = random_graph(&small_model, 64, true, MGL_F32, 15);
    mgl_program *program =
        fixture_program(graph, &(fixture_options){.queues = 2, .capacity = 20, .splits = 2});
    mgl_vm *vm = fixture_vm(program, graph, false);
    for (int count = 1; count < 20; count++) {
        mgl_vm_sequence sequence = {.prompt = prompt, .prompt_count = count, .max_new = 20 - count};
        mgl_vm_request request = {.sequences = &sequence, .count = 1};
        ok(mgl_vm_run(vm, &request, &report, &err), err);
        ck_assert_int_eq(report.produced[0], 20 - count);
        sequence.max_new++;
        ck_assert_int_eq(mgl_vm_run(vm, &request, &report, &err), MGL_BAD_INPUT);
    }
    mgl_vm_sequence whole = {.mode = MGL_VM_SCORE, .prompt = prompt, .prompt_count = 20};
    ok(mgl_vm_run(vm, &(mgl_vm_request){.sequences = &whole, .count = 1}, &report, &err), err);
    ck_assert_float_lt(report.score[0][19], 0.0f);
    mgl_vm_close(vm);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

/* With such a temperature, all positive logits become infinite, and equal. */
START_TEST(the_lowest_temperatures_are_greedy)
{
    mgl_error err;
    mgl_vm_report report;
    int32_t greedy[8];
    mgl_graph *graph = random_graph(&small_model, 64, true, MGL_F32, 16);
    mgl_program *program = fixture_program(graph, &(fixture_options){0});
    mgl_vm *vm = fixture_vm(program, graph, false);
    mgl_vm_sequence sequence = {.prompt = prompt, .prompt_count = 4, .max_new = 8};
    mgl_vm_request request = {.sequences = &sequence, .count = 1};
    ok(mgl_vm_run(vm, &request, &report, &err), err);
    memcpy(greedy, report.output[0], sizeof greedy);
    for (int i = 0; i < 8; i++) {
        sequence.temperature = i % 2 ? 1e-45f : 1e-30f;
        sequence.seed = (uint64_t)i;
        ok(mgl_vm_run(vm, &request, &report, &err), err);
        ck_assert_int_eq(memcmp(greedy, report.output[0], sizeof greedy), 0);
    }
    mgl_vm_close(vm);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

/* Seeds that differ only in their upper half. */
START_TEST(a_seed_has_64_bits)
{
    mgl_error err;
    mgl_vm_report report;
    int32_t tokens[2][16];
    mgl_graph *graph = random_graph(&small_model, 64, true, MGL_F32, 16);
    mgl_program *program = fixture_program(graph, &(fixture_options){0});
    mgl_vm *vm = fixture_vm(program, graph, false);
    for (int i = 0; i < 2; i++) {
        mgl_vm_sequence sequence = {.prompt = prompt,
                                    .prompt_count = 4,
                                    .max_new = 16,
                                    .temperature = 2.0f,
                                    .seed = (uint64_t)i << 32};
        mgl_vm_request request = {.sequences = &sequence, .count = 1};
        ok(mgl_vm_run(vm, &request, &report, &err), err);
        memcpy(tokens[i], report.output[0], sizeof tokens[i]);
    }
    ck_assert_int_ne(memcmp(tokens[0], tokens[1], sizeof tokens[0]), 0);
    mgl_vm_close(vm);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

/* The logits are those of the last sequence that was sampled, not of the first. */
START_TEST(logits_are_of_the_last_row)
{
    mgl_error err;
    mgl_vm_report report;
    float both[75], alone[75];
    mgl_graph *graph = random_graph(&small_model, 64, true, MGL_F32, 16);
    mgl_program *program = fixture_program(graph, &(fixture_options){.sequences = 2});
    mgl_vm *vm = fixture_vm(program, graph, false);
    mgl_vm_sequence two[2] = {{.prompt = prompt, .prompt_count = 4, .max_new = 3},
                              {.prompt = prompt + 4, .prompt_count = 4, .max_new = 3}};
    ok(mgl_vm_run(vm, &(mgl_vm_request){.sequences = two, .count = 2}, &report, &err), err);
    ok(mgl_vm_get_logits(vm, both, &err), err);
    ok(mgl_vm_run(vm, &(mgl_vm_request){.sequences = &two[1], .count = 1}, &report, &err), err);
    ok(mgl_vm_get_logits(vm, alone, &err), err);
    for (int i = 0; i < 75; i++)
        ck_assert_float_eq_tol(both[i], alone[i], 1e-4f);
    mgl_vm_close(vm);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

static mgl_status on_cpu_only(void *user, const mgl_program *program, const mgl_vm_places *places,
                              mgl_error *err)
{
    (void)user, (void)program, (void)places, (void)err;
    return MGL_OK;
}

/* The CPU has no device memory, so a `fill` is rejected. */
START_TEST(rejects_weights_made_in_place)
{
    mgl_error err;
    mgl_vm *vm = NULL;
    mgl_graph *graph = random_graph(&small_model, 64, true, MGL_F32, 16);
    mgl_program *program = fixture_program(graph, &(fixture_options){0});
    mgl_vm_options options = {.kind = MGL_VM_CPU, .fill = on_cpu_only};
    ck_assert_int_eq(mgl_vm_open(program, graph, &options, &vm, &err), MGL_USAGE);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

/* A launch continues from the cache of earlier ones: the same tokens as one launch for all. Two
 * sequences at different positions, on both paths. */
START_TEST(a_launch_continues_from_the_cache)
{
    enum { FIRST = 5, SECOND = 7 };
    mgl_error err;
    mgl_vm_report report;
    int32_t wanted[2][FIRST + SECOND], last[2];
    mgl_graph *graph = random_graph(&small_model, 64, true, MGL_F32, 16);
    mgl_program *program = fixture_program(
        graph, &(fixture_options){.queues = 2, .sequences = 2, .rows = 4, .splits = 2});
    mgl_vm *vm = fixture_vm(program, graph, _i == 1);
    mgl_vm_sequence two[2] = {{.prompt = prompt, .prompt_count = 3, .max_new = FIRST + SECOND},
                              {.prompt = prompt + 4, .prompt_count = 9, .max_new = FIRST + SECOND}};
    mgl_vm_request request = {.sequences = two, .count = 2};
    ok(mgl_vm_run(vm, &request, &report, &err), err);
    for (int s = 0; s < 2; s++)
        memcpy(wanted[s], report.output[s], sizeof wanted[s]);
    two[0].max_new = two[1].max_new = FIRST;
    ok(mgl_vm_run(vm, &request, &report, &err), err);
    for (int s = 0; s < 2; s++) {
        /* the last token was chosen, but is not in the cache yet */
        last[s] = report.output[s][FIRST - 1];
        two[s] = (mgl_vm_sequence){.prompt = &last[s],
                                   .prompt_count = 1,
                                   .start = two[s].prompt_count + FIRST - 1,
                                   .max_new = SECOND};
    }
    ok(mgl_vm_run(vm, &request, &report, &err), err);
    for (int s = 0; s < 2; s++) {
        ck_assert_int_eq(report.produced[s], SECOND);
        ck_assert_mem_eq(report.output[s], wanted[s] + FIRST, SECOND * sizeof **wanted);
    }
    mgl_vm_close(vm);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

/* A prompt of several tokens after cached positions is read in chunks like any other, and may fill
 * the cache. */
START_TEST(a_prompt_continues_from_the_cache)
{
    enum { COUNT = 11, CUT = 4, REST = 64 - COUNT };
    mgl_error err;
    mgl_vm_report report;
    int32_t wanted[REST];
    mgl_graph *graph = random_graph(&small_model, 64, true, MGL_F32, 16);
    mgl_program *program = fixture_program(graph, &(fixture_options){.queues = 2, .rows = 3});
    mgl_vm *vm = fixture_vm(program, graph, false);
    mgl_vm_sequence sequence = {.prompt = prompt, .prompt_count = COUNT, .max_new = REST};
    mgl_vm_request request = {.sequences = &sequence, .count = 1};
    ok(mgl_vm_run(vm, &request, &report, &err), err);
    memcpy(wanted, report.output[0], sizeof wanted);
    sequence = (mgl_vm_sequence){.prompt = prompt, .prompt_count = CUT, .max_new = 1};
    ok(mgl_vm_run(vm, &request, &report, &err), err);
    sequence = (mgl_vm_sequence){
        .prompt = prompt + CUT, .prompt_count = COUNT - CUT, .start = CUT, .max_new = REST};
    ok(mgl_vm_run(vm, &request, &report, &err), err);
    ck_assert_mem_eq(report.output[0], wanted, sizeof wanted);
    mgl_vm_close(vm);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

START_TEST(rejects_what_makes_no_sense)
{
    static const int32_t far[] = {1, 75}, below[] = {-1};
    static const mgl_vm_sequence bad[] = {
        {.prompt = prompt, .prompt_count = 0, .max_new = 1},
        {.prompt = prompt, .prompt_count = 2, .max_new = 0},
        {.prompt = prompt, .prompt_count = 65, .max_new = 1},
        {.prompt = prompt, .prompt_count = 2, .max_new = INT32_MAX},
        {.mode = MGL_VM_SCORE, .prompt = prompt, .prompt_count = 1},
        {.prompt = far, .prompt_count = 2, .max_new = 1},
        {.prompt = below, .prompt_count = 1, .max_new = 1},
        {.prompt = prompt, .prompt_count = 1, .max_new = 1, .temperature = -1.0f},
        {.prompt = prompt, .prompt_count = 1, .max_new = 1, .temperature = NAN},
        {.prompt = prompt, .prompt_count = 1, .max_new = 1, .top_p = 1.5f},
        {.prompt = prompt, .prompt_count = 1, .max_new = 1, .top_k = -1},
        {.prompt = prompt, .prompt_count = 1, .max_new = 1, .end_count = 17},
        {.prompt = prompt, .prompt_count = 1, .max_new = 1, .start = -1},
        {.prompt = prompt, .prompt_count = 1, .max_new = 1, .start = 63},
        {.prompt = prompt, .prompt_count = 1, .max_new = 1, .start = INT32_MAX},
        {.mode = MGL_VM_SCORE, .prompt = prompt, .prompt_count = 2, .start = 63},
    };
    mgl_error err;
    mgl_vm_report report;
    mgl_graph *graph = random_graph(&small_model, 64, true, MGL_F32, 16);
    mgl_program *program = fixture_program(graph, &(fixture_options){0});
    mgl_vm *vm = fixture_vm(program, graph, false);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        mgl_vm_request request = {.sequences = &bad[i], .count = 1};
        ck_assert_int_eq(mgl_vm_run(vm, &request, &report, &err), MGL_BAD_INPUT);
        ck_assert_str_eq(err.where, "sequence 0");
    }
    float logits[75];
    ck_assert_int_eq(mgl_vm_get_logits(vm, logits, &err), MGL_USAGE);
    mgl_vm_sequence two[2] = {{.prompt = prompt, .prompt_count = 1, .max_new = 1}};
    ck_assert_int_eq(mgl_vm_run(vm, &(mgl_vm_request){.sequences = two, .count = 2}, &report, &err),
                     MGL_BAD_INPUT);
    mgl_vm_close(vm);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

/* ---- flags ----------------------------------------------------------------------------------- */

/* Logits after a prompt of 17 tokens in chunks of 5: four epochs. */
static void exchanged_logits(const mgl_graph *graph, fixture_options options, bool plain,
                             float *logits)
{
    mgl_error err;
    mgl_vm_report report;
    options.rows = 5;
    mgl_program *program = fixture_program(graph, &options);
    mgl_vm *vm = fixture_vm(program, graph, plain);
    mgl_vm_sequence sequence = {.prompt = prompt, .prompt_count = 17, .max_new = 1};
    ok(mgl_vm_run(vm, &(mgl_vm_request){.sequences = &sequence, .count = 1}, &report, &err), err);
    ok(mgl_vm_get_logits(vm, logits, &err), err);
    mgl_vm_close(vm);
    mgl_program_free(program);
}

/* In f32 nothing is rounded: the same bits as with counters, for any division of the work. */
START_TEST(flags_have_the_bits_of_counters)
{
    static const int queues[] = {1, 2, 3, 7, 16, 132};
    mgl_graph *graph = random_graph(models[_i], 64, _i != 1, MGL_F32, 20);
    size_t bytes = (size_t)models[_i]->vocab * sizeof(float);
    float wanted[1213], found[1213];
    for (int splits = 1; splits <= 3; splits += 2) {
        fixture_options options = {.dtype = MGL_F32, .splits = splits};
        exchanged_logits(graph, options, true, wanted);
        options.exchange = MGL_EXCHANGE_FLAGS;
        for (size_t i = 0; i < sizeof queues / sizeof *queues; i++) {
            options.queues = queues[i];
            exchanged_logits(graph, options, true, found);
            ck_assert_mem_eq(found, wanted, bytes);
        }
    }
    mgl_graph_free(graph);
}
END_TEST

/* In 16 bits the exchanged values are rounded, as the weights are. */
START_TEST(flags_have_close_logits)
{
    static const float tolerance[] = {1e-4f, 2e-2f, 4e-3f}; /* f32, bf16, f16 */
    const mgl_geometry *model = _i ? &tiny_model : &small_model;
    for (mgl_dtype dtype = MGL_F32; dtype <= MGL_F16; dtype++) {
        mgl_graph *graph = random_graph(model, 64, true, dtype, 21);
        float counters[75], flags[75], size = 0.0f, error = 0.0f;
        fixture_options options = {.dtype = dtype, .queues = 3, .splits = 2};
        exchanged_logits(graph, options, true, counters);
        options.exchange = MGL_EXCHANGE_FLAGS;
        exchanged_logits(graph, options, false, flags);
        for (int i = 0; i < model->vocab; i++) {
            size = fmaxf(size, fabsf(counters[i]));
            error = fmaxf(error, fabsf(counters[i] - flags[i]));
        }
        ck_assert_float_gt(size, 0.1f);
        ck_assert_msg(error <= tolerance[dtype] * size, "%s: error %g of %g", mgl_dtype_name(dtype),
                      (double)error, (double)size);
        mgl_graph_free(graph);
    }
}
END_TEST

/* Alternating epochs of many and few rows: values that one leaves in a set must not reach the
 * next. */
START_TEST(a_ragged_batch_with_flags)
{
    enum { SEQUENCES = 3 };
    mgl_error err;
    mgl_vm_report report;
    mgl_graph *graph = random_graph(&small_model, 64, true, MGL_F32, 22);
    fixture_options options = {.queues = 3, .rows = 6, .sequences = SEQUENCES, .splits = 1 + _i};
    mgl_vm_sequence sequences[SEQUENCES];
    int32_t wanted[SEQUENCES][NEW];
    for (int s = 0; s < SEQUENCES; s++) {
        sequences[s] = (mgl_vm_sequence){
            .prompt = prompt + s, .prompt_count = 1 + s * 8, .max_new = NEW - 10 * s};
        fixture_greedy(graph, &(fixture_options){0}, true, sequences[s].prompt,
                       sequences[s].prompt_count, wanted[s], sequences[s].max_new);
    }
    options.exchange = MGL_EXCHANGE_FLAGS;
    mgl_program *program = fixture_program(graph, &options);
    mgl_vm *vm = fixture_vm(program, graph, _i % 2);
    for (int again = 0; again < 2; again++) {
        ok(mgl_vm_run(vm, &(mgl_vm_request){.sequences = sequences, .count = SEQUENCES}, &report,
                      &err),
           err);
        for (int s = 0; s < SEQUENCES; s++)
            ck_assert_mem_eq(report.output[s], wanted[s],
                             (size_t)sequences[s].max_new * sizeof **wanted);
    }
    mgl_vm_close(vm);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("cpu");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, queues_and_paths_agree, 0, 3);
    tcase_add_test(tests, splits_agree);
    tcase_add_test(tests, prompt_chunks_agree);
    tcase_add_loop_test(tests, fast_path_has_the_plain_logits, 0, 3);
    tcase_add_loop_test(tests, no_bit_depends_on_the_threads, MGL_F32, MGL_F16 + 1);
    tcase_add_loop_test(tests, weights_keep_their_format, MGL_F32, MGL_F16 + 1);
    tcase_add_test(tests, the_embedding_has_a_format_of_its_own);
    tcase_add_test(tests, the_exchange_has_a_dtype_of_its_own);
    tcase_add_test(tests, memory_that_is_missing_is_told);
    tcase_add_loop_test(tests, ragged_batch_equals_each_alone, 0, 3);
    tcase_add_test(tests, scores_are_the_log_probabilities);
    tcase_add_loop_test(tests, stops_when_asked, 0, 2);
    tcase_add_test(tests, ends_at_an_end_token);
    tcase_add_test(tests, fills_the_capacity_and_no_more);
    tcase_add_test(tests, rejects_weights_made_in_place);
    tcase_add_loop_test(tests, a_launch_continues_from_the_cache, 0, 2);
    tcase_add_test(tests, a_prompt_continues_from_the_cache);
    tcase_add_test(tests, rejects_what_makes_no_sense);
    tcase_add_test(tests, the_lowest_temperatures_are_greedy);
    tcase_add_test(tests, a_seed_has_64_bits);
    tcase_add_test(tests, logits_are_of_the_last_row);
    tcase_add_loop_test(tests, flags_have_the_bits_of_counters, 0, 3);
    tcase_add_loop_test(tests, flags_have_close_logits, 0, 2);
    tcase_add_loop_test(tests, a_ragged_batch_with_flags, 0, 2);
    return fixture_main("cpu", tests);
}
