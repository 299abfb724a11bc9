/* Runs of the CUDA machine: against the CPU machine on random models of many shapes, repeated, sampled,
 * cancelled, ragged, and stopped by the watchdog. */
#include "cuda_support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "schedule/step.h"
#include "vm/cuda/cuda.h"

/* ---- against the CPU machine ---------------------------------------------------------------- */

static const mgl_geometry multi_query = {96, 3, 6, 1, 32, 200, 333, 1e-5f};
static const mgl_geometry wide_heads = {256, 2, 4, 4, 128, 512, 700, 1e-6f};
static const mgl_geometry narrow_heads = {80, 2, 4, 2, 20, 104, 130, 1e-5f};

static const struct shape {
    const mgl_geometry *geometry;
    device_options options;
} shapes[] = {
    {&small_model, {.dtype = MGL_F32}},
    {&small_model, {.dtype = MGL_F32, .queues = 1}},
    {&small_model, {.dtype = MGL_F32, .queues = 3, .splits = 4}},
    {&odd_model, {.dtype = MGL_F32}},
    {&odd_model, {.dtype = MGL_F32, .queues = 16, .warps = 16, .rows = 16, .ring_pages = 2}},
    {&odd_model, {.dtype = MGL_F32, .queues = 5, .warps = 1, .rows = 3, .page_bytes = 2048}},
    {&tiny_model, {.dtype = MGL_F32, .queues = 2, .ring_pages = 2, .page_bytes = 2048}},
    {&multi_query, {.dtype = MGL_F32, .splits = 2}},
    {&wide_heads, {.dtype = MGL_F32, .warps = 16}},
    {&wide_heads, {.dtype = MGL_F32, .queues = 40, .splits = 5, .warps = 3}},
    {&narrow_heads, {.dtype = MGL_F32, .stage_bytes = 1024}},
    {&narrow_heads, {.dtype = MGL_BF16}},
    {&odd_model, {.dtype = MGL_BF16, .queues = 9}},
    {&odd_model, {.dtype = MGL_F16, .queues = 9, .splits = 2}},
    {&wide_heads, {.dtype = MGL_F16}},
};

enum { PROMPT = 37, NEW = 24, CAPACITY = 96 };

static void fill_prompt(int32_t *prompt, int count, int vocab, int seed)
{
    for (int i = 0; i < count; i++)
        prompt[i] =
            (int32_t)(((unsigned)i * 7919u + (unsigned)seed * 104729u + 13u) % (unsigned)vocab);
}

static double relative_l2(const float *a, const float *b, int n)
{
    double difference = 0.0, norm = 0.0;
    for (int i = 0; i < n; i++) {
        difference += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        norm += (double)b[i] * (double)b[i];
    }
    return sqrt(difference / norm);
}

/* Logits after the prompt, and after NEW tokens more, on both machines. */
START_TEST(logits_are_the_cpus)
{
    mgl_error err;
    device_options options = shapes[_i].options;
    options.capacity = CAPACITY;
    mgl_graph *graph = random_graph(shapes[_i].geometry, 128, _i % 2, options.dtype, 11);
    int vocab = graph->geometry.vocab;
    mgl_program *program = device_program(graph, &options);
    mgl_program *other =
        fixture_program(graph, &(fixture_options){.dtype = options.dtype, .capacity = CAPACITY});
    mgl_vm *gpu = device_vm(program, graph, &options), *cpu = fixture_vm(other, graph, false);
    int32_t prompt[PROMPT + NEW], tokens[NEW], cpu_tokens[NEW];
    float *a = mgl_alloc((size_t)vocab * sizeof *a), *b = mgl_alloc((size_t)vocab * sizeof *b);
    double tolerance = options.dtype == MGL_F32 ? 2e-5 : 2e-2;
    fill_prompt(prompt, PROMPT, vocab, _i);
    device_greedy(cpu, prompt, PROMPT, cpu_tokens, NEW);
    device_greedy(gpu, prompt, PROMPT, tokens, 1);
    ok(mgl_vm_get_logits(gpu, a, &err), err);
    device_greedy(cpu, prompt, PROMPT, tokens, 1);
    ok(mgl_vm_get_logits(cpu, b, &err), err);
    double first = relative_l2(a, b, vocab);
    /* the CPU's tokens as prompt, so that both machines are at the same place */
    memcpy(prompt + PROMPT, cpu_tokens, sizeof cpu_tokens);
    device_greedy(gpu, prompt, PROMPT + NEW, tokens, 1);
    ok(mgl_vm_get_logits(gpu, a, &err), err);
    device_greedy(cpu, prompt, PROMPT + NEW, tokens, 1);
    ok(mgl_vm_get_logits(cpu, b, &err), err);
    double second = relative_l2(a, b, vocab);
    printf("shape %d: logits differ by %.1e after the prompt, %.1e later\n", _i, first, second);
    ck_assert_double_le(first, tolerance);
    ck_assert_double_le(second, tolerance);
    if (options.dtype == MGL_F32) {
        device_greedy(gpu, prompt, PROMPT, tokens, NEW);
        ck_assert_mem_eq(tokens, cpu_tokens, sizeof tokens);
    }
    mgl_free(a);
    mgl_free(b);
    mgl_vm_close(gpu);
    mgl_vm_close(cpu);
    mgl_program_free(program);
    mgl_program_free(other);
    mgl_graph_free(graph);
}
END_TEST

/* ---- one model, many runs ------------------------------------------------------------------- */

enum { LONG = 1000, LONG_CAPACITY = 1024 };

/* The whole record of a reply: tokens and the last logits. */
static uint64_t fingerprint(mgl_vm *vm, const mgl_vm_sequence *sequence, float *logits, int vocab)
{
    mgl_error err;
    mgl_vm_report report;
    uint64_t hash = 14695981039346656037ull; /* FNV-1a */
    ok(mgl_vm_run(vm, &(mgl_vm_request){.sequences = sequence, .count = 1}, &report, &err), err);
    ck_assert_int_eq(report.launches, 1);
    ck_assert_int_eq(report.produced[0], sequence->max_new);
    ok(mgl_vm_get_logits(vm, logits, &err), err);
    const unsigned char *parts[2] = {(const unsigned char *)report.output[0],
                                     (const unsigned char *)logits};
    size_t bytes[2] = {(size_t)sequence->max_new * sizeof(int32_t), (size_t)vocab * sizeof(float)};
    for (int p = 0; p < 2; p++)
        for (size_t i = 0; i < bytes[p]; i++)
            hash = (hash ^ parts[p][i]) * 1099511628211ull;
    return hash;
}

/* Ten launches of 1,000 tokens, end tokens ignored, twice: the same bits. */
START_TEST(long_replies_are_bit_identical)
{
    golden_model m;
    float logits[1024];
    uint64_t hashes[2][10];
    open_device_model(&m, "tales-5m",
                      &(device_options){.dtype = MGL_BF16, .capacity = LONG_CAPACITY});
    int32_t prompt[10][4];
    double start = mgl_clock_s();
    for (int run = 0; run < 2; run++)
        for (int i = 0; i < 10; i++) {
            fill_prompt(prompt[i], 4, 900, i);
            mgl_vm_sequence sequence = {.prompt = prompt[i], .prompt_count = 4, .max_new = LONG};
            sequence.temperature = i % 2 ? 0.9f : 0.0f;
            sequence.seed = (uint64_t)i;
            hashes[run][i] = fingerprint(m.vm, &sequence, logits, 913);
        }
    printf("20 launches of %d tokens: %.1f us a token\n", LONG,
           (mgl_clock_s() - start) * 1e6 / 20 / (double)LONG);
    ck_assert_mem_eq(hashes[0], hashes[1], sizeof hashes[0]);
    for (int i = 1; i < 10; i++)
        ck_assert_uint_ne(hashes[0][i], hashes[0][0]);
    golden_close(&m);
}
END_TEST

static void sampled(mgl_vm *vm, mgl_vm_sequence *sequence, uint64_t seed, int32_t *tokens)
{
    mgl_error err;
    mgl_vm_report report;
    sequence->seed = seed;
    ok(mgl_vm_run(vm, &(mgl_vm_request){.sequences = sequence, .count = 1}, &report, &err), err);
    ck_assert_int_eq(report.produced[0], sequence->max_new);
    memcpy(tokens, report.output[0], (size_t)sequence->max_new * sizeof *tokens);
}

/* The same seed gives the same tokens, another seed others, and both machines draw alike: with f32
 * the logits are so near that a different token in a few dozen would be a bug. */
START_TEST(sampling_is_the_cpus)
{
    static const struct {
        float temperature;
        int top_k;
        float top_p;
    } settings[] = {{1.0f, 0, 0.0f},  {0.7f, 5, 0.0f}, {1.3f, 0, 0.8f},
                    {1.0f, 40, 0.9f}, {2.0f, 1, 0.5f}, {0.5f, 0, 0.01f}};
    device_options options = {.dtype = MGL_F32, .capacity = CAPACITY};
    mgl_graph *graph = random_graph(&odd_model, 128, false, MGL_F32, 5);
    mgl_program *program = device_program(graph, &options);
    mgl_program *other =
        fixture_program(graph, &(fixture_options){.dtype = MGL_F32, .capacity = CAPACITY});
    mgl_vm *gpu = device_vm(program, graph, &options), *cpu = fixture_vm(other, graph, false);
    int32_t prompt[5], a[NEW], b[NEW], c[NEW];
    fill_prompt(prompt, 5, graph->geometry.vocab, 3);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        mgl_vm_sequence sequence = {.prompt = prompt,
                                    .prompt_count = 5,
                                    .max_new = NEW,
                                    .temperature = settings[i].temperature,
                                    .top_k = settings[i].top_k,
                                    .top_p = settings[i].top_p};
        sampled(gpu, &sequence, 42, a);
        sampled(gpu, &sequence, 42, b);
        ck_assert_mem_eq(a, b, sizeof a);
        sampled(cpu, &sequence, 42, b);
        ck_assert_mem_eq(a, b, sizeof a);
        sampled(gpu, &sequence, 43, c);
        if (settings[i].top_k != 1 && settings[i].top_p != 0.01f)
            ck_assert_mem_ne(a, c, sizeof a);
    }
    mgl_vm_close(gpu);
    mgl_vm_close(cpu);
    mgl_program_free(program);
    mgl_program_free(other);
    mgl_graph_free(graph);
}
END_TEST

/* Sequences of different lengths in one launch, generated and scored: each as if it were alone. */
START_TEST(ragged_sequences_are_as_alone)
{
    static const int lengths[] = {1, 30, 7, 17, 2, 55};
    enum { COUNT = 6, TOKENS = 20 };
    mgl_error err;
    mgl_vm_report report;
    device_options options = {.dtype = _i ? MGL_BF16 : MGL_F32,
                              .capacity = CAPACITY,
                              .sequences = COUNT,
                              .splits = _i + 1};
    mgl_graph *graph = random_graph(&small_model, 128, true, MGL_BF16, 21);
    mgl_program *program = device_program(graph, &options);
    mgl_vm *vm = device_vm(program, graph, &options);
    int32_t prompts[COUNT][64], together[COUNT][TOKENS];
    float scores[64];
    mgl_vm_sequence sequences[COUNT];
    for (int s = 0; s < COUNT; s++) {
        fill_prompt(prompts[s], lengths[s], graph->geometry.vocab, s + 1);
        sequences[s] = (mgl_vm_sequence){
            .prompt = prompts[s], .prompt_count = lengths[s], .max_new = TOKENS - s};
    }
    sequences[3].mode = MGL_VM_SCORE;
    ok(mgl_vm_run(vm, &(mgl_vm_request){.sequences = sequences, .count = COUNT}, &report, &err),
       err);
    ck_assert_int_eq(report.produced[3], 0);
    memcpy(scores, report.score[3], (size_t)lengths[3] * sizeof *scores);
    for (int s = 0; s < COUNT; s++) {
        ck_assert_int_eq(report.state[s], MGL_STATE_LENGTH);
        ck_assert_int_eq(report.produced[s], s == 3 ? 0 : TOKENS - s);
        memcpy(together[s], report.output[s], (size_t)report.produced[s] * sizeof(int32_t));
    }
    for (int s = 0; s < COUNT; s++) {
        ok(mgl_vm_run(vm, &(mgl_vm_request){.sequences = &sequences[s], .count = 1}, &report, &err),
           err);
        ck_assert_mem_eq(together[s], report.output[0],
                         (size_t)report.produced[0] * sizeof(int32_t));
        /* with splits, where a sum is cut depends on where the epoch starts */
        for (int i = 0; s == 3 && i < lengths[3]; i++)
            ck_assert_float_le(fabsf(scores[i] - report.score[0][i]), _i ? 5e-3f : 0.0f);
    }
    mgl_vm_close(vm);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

struct listener {
    int tokens, most;
    atomic_int abort;
    int32_t heard[LONG];
    bool refuse; /* end by the return value, else by the abort word */
};

static bool hear(void *user, int sequence, int32_t token)
{
    struct listener *l = user;
    ck_assert_int_eq(sequence, 0);
    ck_assert_int_lt(l->tokens, LONG);
    l->heard[l->tokens++] = token;
    if (l->tokens < l->most)
        return true;
    l->abort = !l->refuse;
    return !l->refuse;
}

/* Tokens come while the kernel runs, all of them and in order; either way of asking ends the reply
 * early, and the machine runs again. */
START_TEST(a_reply_can_be_ended)
{
    static struct listener l;
    mgl_error err;
    mgl_vm_report report;
    golden_model m;
    int32_t prompt[4];
    open_device_model(&m, "tales-5m",
                      &(device_options){.dtype = MGL_BF16, .capacity = LONG_CAPACITY});
    fill_prompt(prompt, 4, 900, 1);
    for (int i = 0; i < 3; i++) {
        mgl_vm_sequence sequence = {.prompt = prompt, .prompt_count = 4, .max_new = LONG};
        mgl_vm_request request = {
            .sequences = &sequence, .count = 1, .on_token = hear, .user = &l, .abort = &l.abort};
        l = (struct listener){.most = i < 2 ? 20 : LONG + 1, .refuse = i == 0};
        ok(mgl_vm_run(m.vm, &request, &report, &err), err);
        ck_assert_int_eq(report.launches, 1);
        printf("%d tokens heard, %d made\n", l.tokens, report.produced[0]);
        if (i < 2) {
            ck_assert_int_eq(report.state[0], MGL_STATE_ABORTED);
            ck_assert_int_ge(report.produced[0], 20);
            ck_assert_int_lt(report.produced[0], LONG);
        } else {
            ck_assert_int_eq(report.state[0], MGL_STATE_LENGTH);
            ck_assert_int_eq(l.tokens, LONG);
        }
        ck_assert_int_le(l.tokens, report.produced[0]);
        ck_assert_mem_eq(l.heard, report.output[0], (size_t)l.tokens * sizeof(int32_t));
    }
    golden_close(&m);
}
END_TEST

START_TEST(an_end_token_ends_a_reply)
{
    mgl_error err;
    mgl_vm_report report;
    device_options options = {.dtype = MGL_F32, .capacity = CAPACITY};
    mgl_graph *graph = random_graph(&small_model, 128, true, MGL_F32, 8);
    mgl_program *program = device_program(graph, &options);
    mgl_vm *vm = device_vm(program, graph, &options);
    int32_t prompt[3], tokens[NEW];
    fill_prompt(prompt, 3, graph->geometry.vocab, 2);
    device_greedy(vm, prompt, 3, tokens, NEW);
    int first = 0;
    while (tokens[first] != tokens[9])
        first++;
    mgl_vm_sequence sequence = {
        .prompt = prompt, .prompt_count = 3, .max_new = NEW, .ends = &tokens[9], .end_count = 1};
    ok(mgl_vm_run(vm, &(mgl_vm_request){.sequences = &sequence, .count = 1}, &report, &err), err);
    ck_assert_int_eq(report.state[0], MGL_STATE_EOS);
    ck_assert_int_eq(report.produced[0], first + 1);
    mgl_vm_close(vm);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

/* ---- the watchdog --------------------------------------------------------------------------- */

/* Takes away the last signal of a counter. The sample's is the epoch edge, which without any signal
 * would not wait at all: there the first wait asks for one that does not come. */
static void remove_signal(mgl_program *program, const char *counter)
{
    for (int t = program->task_count - 1; t >= 0; t--) {
        mgl_task *task = &program->tasks[t];
        for (int i = 0; i < task->signals.count; i++) {
            int *signal = &program->signals[task->signals.first + i];
            if (strcmp(program->counters[*signal].name, counter) != 0)
                continue;
            *signal = program->signals[task->signals.first + task->signals.count - 1];
            task->signals.count--;
            for (int w = 0; w < program->wait_count && !strcmp(counter, "sampled"); w++)
                program->waits[w].threshold += program->waits[w].threshold == 0;
            return;
        }
    }
}

/* A program without one of its signals, launched past the validator: ends in time, says who waited
 * for what, and the process goes on. */
START_TEST(a_deadlock_is_reported)
{
    static const char *const victims[] = {"l0.qkv", "l1.attend", "head", "sampled", "embedded"};
    mgl_error err;
    mgl_vm_report report;
    device_options options = {.dtype = MGL_F32, .capacity = CAPACITY, .queues = 6};
    mgl_graph *graph = random_graph(&small_model, 128, true, MGL_F32, 4);
    mgl_program *good = device_program(graph, &options), *bad = device_program(graph, &options);
    mgl_vm *vm;
    mgl_vm_options open = {.kind = MGL_VM_CUDA, .unchecked = true, .deadline_ms = 500};
    int32_t prompt[3], tokens[NEW], again[NEW];
    fill_prompt(prompt, 3, graph->geometry.vocab, 1);
    remove_signal(bad, victims[_i]);
    ok(mgl_vm_open(bad, graph, &open, &vm, &err), err);
    mgl_vm_sequence sequence = {.prompt = prompt, .prompt_count = 3, .max_new = NEW};
    mgl_vm_request request = {.sequences = &sequence, .count = 1};
    for (int i = 0; i < 2; i++) {
        double start = mgl_clock_s();
        ck_assert_int_eq(mgl_vm_run(vm, &request, &report, &err), MGL_WATCHDOG);
        ck_assert_double_le(mgl_clock_s() - start, 2.0);
        ck_assert_msg(strstr(err.message, victims[_i]) && strstr(err.message, "queue") &&
                          strstr(err.message, "wanted") && strstr(err.message, "seen"),
                      "%s", err.message);
    }
    printf("%s: %s\n", err.where, err.message);
    mgl_vm_close(vm);
    vm = device_vm(good, graph, &options);
    device_greedy(vm, prompt, 3, tokens, NEW);
    device_greedy(vm, prompt, 3, again, NEW);
    ck_assert_mem_eq(tokens, again, sizeof tokens);
    mgl_vm_close(vm);
    mgl_program_free(good);
    mgl_program_free(bad);
    mgl_graph_free(graph);
}
END_TEST

/* The same with flags: words that nobody writes. */
START_TEST(words_that_do_not_come_are_reported)
{
    mgl_error err;
    mgl_vm_report report;
    device_options options = {
        .dtype = MGL_F32, .capacity = CAPACITY, .queues = 6, .exchange = MGL_EXCHANGE_FLAGS};
    mgl_graph *graph = random_graph(&small_model, 128, true, MGL_F32, 4);
    mgl_program *bad = device_program(graph, &options);
    mgl_vm *vm;
    mgl_vm_options open = {.kind = MGL_VM_CUDA, .unchecked = true, .deadline_ms = 500};
    int32_t prompt[3];
    fill_prompt(prompt, 3, graph->geometry.vocab, 1);
    int task = bad->task_count - 1;
    while (bad->tasks[task].op != MGL_OP_LINEAR_ADD)
        task--;
    bad->tasks[task].out.count = 1; /* the copy of the last layer's output is left out */
    ok(mgl_vm_open(bad, graph, &open, &vm, &err), err);
    mgl_vm_sequence sequence = {.prompt = prompt, .prompt_count = 3, .max_new = NEW};
    mgl_vm_request request = {.sequences = &sequence, .count = 1};
    double start = mgl_clock_s();
    ck_assert_int_eq(mgl_vm_run(vm, &request, &report, &err), MGL_WATCHDOG);
    ck_assert_double_le(mgl_clock_s() - start, 2.0);
    ck_assert_msg(strstr(err.message, "words of x to be written"), "%s", err.message);
    mgl_vm_close(vm);
    mgl_program_free(bad);
    mgl_graph_free(graph);
}
END_TEST

/* What cannot be resident at once is refused with numbers, not launched. */
START_TEST(too_many_queues_are_refused)
{
    mgl_error err;
    mgl_vm *vm;
    mgl_target live;
    ok(mgl_cuda_live_target(0, &live, &err), err);
    if (live.queues >= MGL_MAX_QUEUES)
        return;
    device_options options = {.dtype = MGL_F32, .capacity = CAPACITY, .queues = live.queues + 1};
    mgl_graph *graph = random_graph(&small_model, 128, true, MGL_F32, 4);
    mgl_program *program = device_program(graph, &options);
    mgl_vm_options open = {.kind = MGL_VM_CUDA, .unchecked = true};
    ck_assert_int_eq(mgl_vm_open(program, graph, &open, &vm, &err), MGL_DEVICE);
    ck_assert_msg(strstr(err.message, "queues"), "%s", err.message);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
END_TEST

int main(void)
{
    int skip = skip_without_device("cuda_run");
    if (skip)
        return skip;
    TCase *tests = tcase_create("cuda_run");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, logits_are_the_cpus, 0, (int)(sizeof shapes / sizeof *shapes));
    tcase_add_test(tests, sampling_is_the_cpus);
    tcase_add_loop_test(tests, ragged_sequences_are_as_alone, 0, 2);
    tcase_add_test(tests, an_end_token_ends_a_reply);
    tcase_add_test(tests, a_reply_can_be_ended);
    tcase_add_loop_test(tests, a_deadlock_is_reported, 0, 5);
    tcase_add_test(tests, words_that_do_not_come_are_reported);
    tcase_add_test(tests, too_many_queues_are_refused);
    tcase_add_test(tests, long_replies_are_bit_identical);
    return fixture_main("cuda_run", tests);
}
