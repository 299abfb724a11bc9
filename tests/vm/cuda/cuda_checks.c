/*
 * Implements the checks of the CUDA machine: logits, sampling, replies, capacities, exchanged
 * programs and delays. See cuda_checks.h.
 */
#include "tests/vm/cuda/cuda_checks.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "schedule/variant_shapes.h"
#include "tests/vm/cuda/rounding.h"
#include "tests/vm/likely.h"
#include "tests/vm/penalties.h"
#include "tests/vm/scaled_model.h"
#include "tests/vm/stops.h"
#include "vm/cuda/cuda.h"
#include "vm/cuda/machine.h"

void fill_prompt(int32_t *prompt, int count, int vocab, int seed)
{
    for (int i = 0; i < count; i++)
        prompt[i] =
            (int32_t)(((unsigned)i * 7919u + (unsigned)seed * 104729u + 13u) % (unsigned)vocab);
}

struct pair open_pair(mgl_graph *graph, const device_options *options)
{
    struct pair p = {.graph = graph, .program = device_program(graph, options)};
    p.other = fixture_program(
        graph, &(fixture_options){.dtype = options->dtype, .capacity = CHECK_CAPACITY});
    p.gpu = device_vm(p.program, graph, options);
    p.cpu = fixture_vm(p.other, graph, false);
    return p;
}

void close_pair(struct pair *p)
{
    mgl_vm_close(p->gpu);
    mgl_vm_close(p->cpu);
    mgl_program_free(p->program);
    mgl_program_free(p->other);
    mgl_graph_free(p->graph);
}

/* ---- logits ---------------------------------------------------------------------------------- */

static double relative_l2(const float *a, const float *b, int n)
{
    double difference = 0.0, norm = 0.0;
    for (int i = 0; i < n; i++) {
        difference += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        norm += (double)b[i] * (double)b[i];
    }
    return sqrt(difference / norm);
}

/* The difference of the logits of both machines after a prompt. */
static double logits_apart(const struct pair *p, const int32_t *prompt, int count)
{
    mgl_error err;
    int32_t token;
    int vocab = p->graph->geometry.vocab;
    float *a = mgl_alloc((size_t)vocab * sizeof *a), *b = mgl_alloc((size_t)vocab * sizeof *b);
    device_greedy(p->gpu, prompt, count, &token, 1);
    ok(mgl_vm_get_logits(p->gpu, a, &err), err);
    device_greedy(p->cpu, prompt, count, &token, 1);
    ok(mgl_vm_get_logits(p->cpu, b, &err), err);
    double apart = relative_l2(a, b, vocab);
    mgl_free(a);
    mgl_free(b);
    return apart;
}

/* The pair of check_logits and check_prompts. */
static struct pair open_random_pair(const mgl_geometry *geometry, const device_options *wanted,
                                    int seed)
{
    device_options options = *wanted;
    options.capacity = CHECK_CAPACITY;
    mgl_graph *graph = random_family(geometry, options.extras, 128, seed % 2, options.dtype, 11);
    if (mgl_weight_format_is_scaled(options.scaled))
        quantize_matrices(graph, options.scaled, true, false);
    if (options.reordered)
        reorder_matrices(graph, true);
    return open_pair(graph, &options);
}

static double tolerance_of(const device_options *options)
{
    return options->dtype == MGL_F32 ? 2e-5 : 2e-2;
}

void check_logits(const mgl_geometry *geometry, const device_options *options, int seed,
                  int prompt_count, int more)
{
    struct pair p = open_random_pair(geometry, options, seed);
    int32_t prompt[2 * CHECK_MOST], tokens[CHECK_MOST];
    double tolerance = tolerance_of(options);
    fill_prompt(prompt, prompt_count, geometry->vocab, seed);
    double first = logits_apart(&p, prompt, prompt_count);
    /* the CPU's tokens are the prompt, so that both machines have the same positions */
    device_greedy(p.cpu, prompt, prompt_count, prompt + prompt_count, more);
    double second = logits_apart(&p, prompt, prompt_count + more);
    printf("shape %d: logits differ by %.1e after the prompt, %.1e later\n", seed, first, second);
    ck_assert_double_le(first, tolerance);
    ck_assert_double_le(second, tolerance);
    if (options->dtype == MGL_F32) {
        device_greedy(p.gpu, prompt, prompt_count, tokens, more);
        ck_assert_mem_eq(tokens, prompt + prompt_count, (size_t)more * sizeof *tokens);
    }
    close_pair(&p);
}

void check_prompts(const mgl_geometry *geometry, const device_options *options, int seed, int times)
{
    static const int sizes[] = {8, 16, 24, 37, 64, 65, 80, CHECK_CAPACITY - 1};
    mgl_error err;
    int32_t prompt[CHECK_CAPACITY], token;
    const int vocab = geometry->vocab;
    const size_t bytes = (size_t)vocab * sizeof(float);
    struct pair p = open_random_pair(geometry, options, seed);
    float *first = mgl_alloc(bytes), *again = mgl_alloc(bytes);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        fill_prompt(prompt, sizes[i], vocab, seed + (int)i);
        double apart = logits_apart(&p, prompt, sizes[i]);
        printf("prompt of %d tokens: logits differ by %.1e\n", sizes[i], apart);
        ck_assert_double_le(apart, 1.5 * tolerance_of(options)); /* largest of several */
        ok(mgl_vm_get_logits(p.gpu, first, &err), err);
        for (int n = 1; n < times; n++) {
            device_greedy(p.gpu, prompt, sizes[i], &token, 1);
            ok(mgl_vm_get_logits(p.gpu, again, &err), err);
            ck_assert_mem_eq(again, first, bytes);
        }
    }
    mgl_free(first);
    mgl_free(again);
    close_pair(&p);
}

/* ---- sampling -------------------------------------------------------------------------------- */

static void sampled(mgl_vm *vm, mgl_vm_sequence *sequence, uint64_t seed, int32_t *tokens)
{
    mgl_error err;
    mgl_vm_report report;
    sequence->seed = seed;
    ok(mgl_vm_run(vm, &(mgl_vm_request){.sequences = sequence, .count = 1}, &report, &err), err);
    ck_assert_int_eq(report.produced[0], sequence->max_new);
    memcpy(tokens, report.output[0], (size_t)sequence->max_new * sizeof *tokens);
}

static void check_draws(const struct pair *p, mgl_vm_sequence *sequence)
{
    int32_t a[CHECK_MOST], b[CHECK_MOST];
    size_t bytes = (size_t)sequence->max_new * sizeof *a;
    sampled(p->gpu, sequence, 42, a);
    sampled(p->gpu, sequence, 42, b);
    ck_assert_mem_eq(a, b, bytes);
    sampled(p->cpu, sequence, 42, b);
    ck_assert_mem_eq(a, b, bytes);
    sampled(p->gpu, sequence, 43, b);
    if (sequence->top_k != 1 && sequence->top_p != 0.01f)
        ck_assert_mem_ne(a, b, bytes);
}

/* In f32 the logits are so close that a different token in a few dozen would be an error. */
void check_sampling(int settings, int most)
{
    static const struct {
        float temperature;
        int top_k;
        float top_p, min_p;
    } all[CHECK_SETTINGS] = {{1.0f, 0, 0.0f, 0.0f}, {1.1f, 50, 0.95f, 0.3f}, {1.4f, 0, 0.0f, 0.02f},
                             {0.7f, 5, 0.0f, 0.0f}, {1.3f, 0, 0.8f, 0.0f},   {1.0f, 40, 0.9f, 0.0f},
                             {2.0f, 1, 0.5f, 0.0f}, {0.5f, 0, 0.01f, 0.0f}};
    device_options options = {.dtype = MGL_F32, .capacity = CHECK_CAPACITY};
    struct pair p = open_pair(random_graph(&odd_model, 128, false, MGL_F32, 5), &options);
    int32_t prompt[5];
    fill_prompt(prompt, 5, p.graph->geometry.vocab, 3);
    for (int i = 0; i < settings; i++)
        check_draws(&p, &(mgl_vm_sequence){.prompt = prompt,
                                           .prompt_count = 5,
                                           .max_new = most,
                                           .temperature = all[i].temperature,
                                           .top_k = all[i].top_k,
                                           .top_p = all[i].top_p,
                                           .min_p = all[i].min_p});
    close_pair(&p);
}

/* ---- a conversation -------------------------------------------------------------------------- */

enum { SAID = 3 }; /* tokens of a reply */

/* A conversation of this number of turns, each with up to `most` new tokens. `vm` reuses its cache,
 * `fresh` does not: the tokens are equal. `least`: the least of the reader of `vm`; CHECK_CAPACITY:
 * it has none. `talk`: the conversation; returns its length. */
static int32_t converse(mgl_vm *vm, mgl_vm *fresh, int turns, int most, int32_t least,
                        int32_t talk[CHECK_CAPACITY])
{
    mgl_error err;
    int32_t afresh[SAID], length = 0;
    for (int turn = 0; turn < turns; turn++) {
        const int reused = length ? length - 1 : 0, news = 1 + turn * 5 % most;
        fill_prompt(talk + length, news, vm->program->geometry.vocab, turn);
        length += news;
        mgl_vm_report report;
        mgl_vm_sequence sequence = {.prompt = talk, .prompt_count = length, .max_new = SAID};
        const mgl_vm_request request = {.sequences = &sequence, .count = 1};
        ok(mgl_vm_run(fresh, &request, &report, &err), err);
        memcpy(afresh, report.output[0], sizeof afresh);
        sequence.reuse = true;
        ok(mgl_vm_run(vm, &request, &report, &err), err);
        ck_assert_int_eq(report.reused[0], reused);
        ck_assert_int_eq(report.written[0], length + SAID - 1);
        ck_assert_int_eq(report.launches, length - reused > least ? 2 : 1);
        ck_assert_mem_eq(report.output[0], afresh, sizeof afresh);
        memcpy(talk + length, afresh, sizeof afresh);
        length += SAID;
    }
    return length;
}

void check_talk(const mgl_geometry *geometry, const device_options *wanted, int turns)
{
    int32_t talk[CHECK_CAPACITY];
    device_options options = *wanted;
    options.capacity = CHECK_CAPACITY;
    options.dtype = MGL_F32;
    mgl_graph *graph = random_graph(geometry, CHECK_CAPACITY, true, MGL_F32, 23);
    mgl_program *program = device_program(graph, &options);
    mgl_vm *vm = device_vm(program, graph, &options), *fresh = device_vm(program, graph, &options);
    converse(vm, fresh, turns, 7, CHECK_CAPACITY, talk);
    mgl_vm_close(vm);
    mgl_vm_close(fresh);
    mgl_program_free(program);
    mgl_graph_free(graph);
}

void check_owner(const mgl_geometry *geometry, const device_options *wanted, int turns)
{
    enum { LEAST = 3 };
    mgl_error err;
    mgl_vm *reader;
    mgl_vm_report report;
    atomic_int abort = 1;
    int32_t talk[CHECK_CAPACITY];
    device_options options = *wanted, of_reader = *wanted;
    options.capacity = of_reader.capacity = CHECK_CAPACITY;
    options.dtype = of_reader.dtype = MGL_F32;
    options.second_rows = 0;
    mgl_graph *graph = random_graph(geometry, CHECK_CAPACITY, true, MGL_F32, 23);
    mgl_program *program = device_program(graph, &options);
    mgl_program *two_lists = device_program(graph, &of_reader);
    mgl_vm *vm = device_vm(program, graph, &options), *fresh = device_vm(program, graph, &options);
    const mgl_vm_options open = {
        .kind = MGL_VM_CUDA, .delay_seed = options.delay_seed, .owner = vm};
    ok(mgl_vm_open(two_lists, graph, &open, &reader, &err), err);
    mgl_vm_set_reader(vm, reader, LEAST);
    const int32_t length = converse(vm, fresh, turns, 17, LEAST, talk);
    const mgl_vm_sequence sequence = {.prompt = talk, .prompt_count = length, .max_new = SAID};
    /* if the reader's launch is aborted, there is no second one */
    ok(mgl_vm_run(vm, &(mgl_vm_request){.sequences = &sequence, .count = 1, .abort = &abort},
                  &report, &err),
       err);
    ck_assert_int_eq(report.launches, 1);
    ck_assert_int_eq(report.state[0], MGL_STATE_ABORTED);
    ck_assert_int_eq(report.produced[0], 0);
    mgl_vm_close(reader);
    mgl_vm_close(vm);
    mgl_vm_close(fresh);
    mgl_program_free(two_lists);
    mgl_program_free(program);
    mgl_graph_free(graph);
}

/* ---- stop texts ------------------------------------------------------------------------------ */

void check_device_stops(const mgl_geometry *geometry, const device_options *wanted)
{
    device_options options = *wanted;
    options.capacity = CHECK_CAPACITY;
    options.dtype = MGL_F32;
    mgl_graph *graph = random_graph(geometry, CHECK_CAPACITY, true, MGL_F32, 31);
    mgl_program *program = device_program(graph, &options);
    mgl_vm *vm = device_vm(program, graph, &options), *fresh = device_vm(program, graph, &options);
    check_stops(vm, fresh, options.sequences < 3 ? 1 : 3);
    mgl_vm_close(vm);
    mgl_vm_close(fresh);
    mgl_program_free(program);
    mgl_graph_free(graph);
}

void check_device_penalties(const mgl_geometry *geometry, const device_options *wanted, int states)
{
    device_options options = *wanted;
    options.capacity = CHECK_CAPACITY;
    options.dtype = MGL_F32;
    options.penalties = true;
    mgl_graph *graph = random_graph(geometry, CHECK_CAPACITY, true, MGL_F32, 31);
    mgl_program *program = device_program(graph, &options);
    mgl_vm *vm = device_vm(program, graph, &options), *fresh = device_vm(program, graph, &options);
    check_penalties(vm, fresh, options.sequences < 3 ? 1 : 3, states);
    mgl_vm_close(vm);
    mgl_vm_close(fresh);
    mgl_program_free(program);
    mgl_graph_free(graph);
}

void check_device_likely(const mgl_geometry *geometry, const device_options *wanted)
{
    device_options options = *wanted;
    options.capacity = CHECK_CAPACITY;
    options.dtype = MGL_F32;
    mgl_graph *graph = random_graph(geometry, CHECK_CAPACITY, true, MGL_F32, 31);
    mgl_program *program = device_program(graph, &options);
    mgl_vm *vm = device_vm(program, graph, &options);
    check_likely(vm, options.sequences < 3 ? 1 : 3);
    mgl_vm_close(vm);
    mgl_program_free(program);
    mgl_graph_free(graph);
}

/* ---- capacities ------------------------------------------------------------------------------ */

enum { SHARERS = 3 };

/* Tokens as delivered. */
struct heard {
    int32_t tokens[SHARERS][CHECK_MOST];
    int count[SHARERS];
};

static bool hear(void *user, int sequence, int32_t token)
{
    struct heard *heard = user;
    heard->tokens[sequence][heard->count[sequence]++] = token;
    return true;
}

static void check_heard(mgl_vm *vm, const mgl_vm_sequence *sequences, struct heard *out)
{
    mgl_error err;
    mgl_vm_report report;
    const mgl_vm_request request = {
        .sequences = sequences, .count = SHARERS, .on_token = hear, .user = out};
    *out = (struct heard){0};
    ok(mgl_vm_run(vm, &request, &report, &err), err);
    for (int s = 0; s < SHARERS; s++) {
        ck_assert_int_eq(out->count[s], sequences[s].max_new);
        ck_assert_int_eq(report.produced[s], sequences[s].max_new);
        ck_assert_mem_eq(report.output[s], out->tokens[s],
                         (size_t)sequences[s].max_new * sizeof(int32_t));
    }
}

/* Compiles at the first call; later calls must have the same kernel. */
static void share_kernel(const mgl_program *program, mgl_vm_kernel *kernel, mgl_cuda_image *image)
{
    static char arch[16], first[MGL_SHA256_HEX], next[MGL_SHA256_HEX];
    mgl_error err;
    mgl_target live;
    ok(mgl_cuda_live_target(0, &live, &err), err);
    snprintf(arch, sizeof arch, "%s", live.arch);
    mgl_cuda_kernel_key(program, arch, 0, next);
    if (kernel->bytes) {
        ck_assert_str_eq(next, first);
        return;
    }
    memcpy(first, next, sizeof first);
    ok(mgl_cuda_compile(program, arch, 0, NULL, image, &err), err);
    *kernel = (mgl_vm_kernel){arch, first, image->bytes, image->length};
}

static void check_capacity(const mgl_graph *graph, int capacity, int most, mgl_vm_kernel *kernel,
                           mgl_cuda_image *image)
{
    mgl_error err;
    mgl_vm *vm;
    int32_t prompts[SHARERS][CHECK_MOST];
    mgl_vm_sequence sequences[SHARERS];
    struct heard gpu, cpu;
    const device_options options = {
        .dtype = MGL_F32, .capacity = capacity, .sequences = SHARERS, .splits = 1};
    mgl_program *program = device_program(graph, &options);
    mgl_program *other = fixture_program(
        graph, &(fixture_options){.dtype = MGL_F32, .capacity = capacity, .sequences = SHARERS});
    share_kernel(program, kernel, image);
    ok(mgl_vm_open(program, graph,
                   &(mgl_vm_options){.kind = MGL_VM_CUDA, .kernels = kernel, .kernel_count = 1},
                   &vm, &err),
       err);
    for (int s = 0; s < SHARERS; s++) {
        sequences[s] =
            (mgl_vm_sequence){.prompt = prompts[s], .prompt_count = 3 + 2 * s, .max_new = most - s};
        fill_prompt(prompts[s], sequences[s].prompt_count, graph->geometry.vocab, s + 1);
    }
    check_heard(vm, sequences, &gpu);
    mgl_vm_close(vm);
    vm = fixture_vm(other, graph, false);
    check_heard(vm, sequences, &cpu);
    mgl_vm_close(vm);
    ck_assert_mem_eq(&gpu, &cpu, sizeof gpu);
    mgl_program_free(program);
    mgl_program_free(other);
}

void check_capacities(const mgl_geometry *geometry, int most)
{
    mgl_vm_kernel kernel = {0};
    mgl_cuda_image image = {0};
    mgl_graph *graph = random_graph(geometry, 128, false, MGL_F32, 5);
    check_capacity(graph, most + 7, most, &kernel, &image);
    check_capacity(graph, CHECK_CAPACITY, most, &kernel, &image);
    mgl_cuda_image_clear(&image);
    mgl_graph_free(graph);
}

/* ---- exchange -------------------------------------------------------------------------------- */

/* A reply and the logits after it. */
struct answer {
    int32_t tokens[CHECK_MOST];
    float *logits; /* (vocab) */
};

static void get_answer(mgl_vm *vm, int most, struct answer *out)
{
    mgl_error err;
    int32_t prompt[9];
    fill_prompt(prompt, 9, vm->program->geometry.vocab, 6);
    device_greedy(vm, prompt, 9, out->tokens, most);
    out->logits = mgl_alloc((size_t)vm->program->geometry.vocab * sizeof *out->logits);
    ck_assert_ptr_nonnull(out->logits);
    ok(mgl_vm_get_logits(vm, out->logits, &err), err);
}

static void check_answer(mgl_vm *vm, int most, const struct answer *wanted)
{
    struct answer answer;
    get_answer(vm, most, &answer);
    ck_assert_mem_eq(answer.tokens, wanted->tokens, (size_t)most * sizeof *answer.tokens);
    ck_assert_mem_eq(answer.logits, wanted->logits,
                     (size_t)vm->program->geometry.vocab * sizeof *answer.logits);
    mgl_free(answer.logits);
}

void check_same_answer(const mgl_graph *graph, const mgl_program *a, const mgl_program *b, int most)
{
    struct answer answer;
    const device_options options = {0};
    mgl_vm *vm = device_vm(a, graph, &options);
    get_answer(vm, most, &answer);
    mgl_vm_close(vm);
    vm = device_vm(b, graph, &options);
    check_answer(vm, most, &answer);
    mgl_vm_close(vm);
    mgl_free(answer.logits);
}

/* Reads every tape and table back from the device. */
static void check_device_bytes(mgl_vm *base, const mgl_graph *graph)
{
    mgl_error err;
    mgl_cuda_vm *vm = (mgl_cuda_vm *)base;
    mgl_weights *weights;
    ok(mgl_weights_pack(base->program, graph, &weights, &err), err);
    ok(mgl_cuda_enter(vm, &err), err);
    for (int part = 0; part < mgl_weights_parts(base->program); part++) {
        size_t bytes = weights->sizes[part];
        char *wanted = mgl_alloc(bytes + 1), *there = mgl_alloc(bytes + 1);
        ok(mgl_weights_write(weights, part, wanted, NULL, &err), err);
        if (bytes > 0)
            ck_assert_int_eq(vm->cu->copy_out(there, mgl_cuda_part_address(vm, part), bytes), 0);
        ck_assert_msg(memcmp(there, wanted, bytes) == 0, "part %d is not the packer's", part);
        mgl_free(wanted);
        mgl_free(there);
    }
    mgl_cuda_leave(vm);
    mgl_weights_close(weights);
}

void check_exchange(const mgl_graph *graph, const device_options *a, const device_options *b,
                    int turns, int most)
{
    mgl_error err;
    mgl_vm *vm;
    const device_options *const options[2] = {a, b};
    mgl_program *programs[2];
    struct answer wanted[2];
    for (int i = 0; i < 2; i++) {
        programs[i] = device_program(graph, options[i]);
        vm = device_vm(programs[i], graph, options[i]);
        get_answer(vm, most, &wanted[i]);
        mgl_vm_close(vm);
    }
    vm = device_vm(programs[0], graph, a);
    for (int turn = 1; turn <= turns; turn++) {
        ok(mgl_vm_exchange(vm, programs[turn % 2], graph, &err), err);
        check_device_bytes(vm, graph);
        check_answer(vm, most, &wanted[turn % 2]);
    }
    mgl_vm_close(vm);
    for (int i = 0; i < 2; i++) {
        mgl_program_free(programs[i]);
        mgl_free(wanted[i].logits);
    }
}

/* ---- numbers --------------------------------------------------------------------------------- */

enum { SPOILT = 7 /* token */ };

/* One NaN among the logits. */
static void check_spoilt_logit(const mgl_geometry *geometry, const device_options *options)
{
    mgl_graph *graph = random_graph(geometry, 128, false, options->dtype, 5);
    spoil_row(graph, "lm_head.weight", SPOILT, NAN);
    struct pair p = open_pair(graph, options);
    mgl_vm *const machines[] = {p.gpu, p.cpu};
    mgl_error errs[2];
    int32_t prompt[5];
    fill_prompt(prompt, 5, geometry->vocab, 3);
    for (int drawn = 0; drawn < 2; drawn++) {
        mgl_vm_sequence sequence = {.prompt = prompt,
                                    .prompt_count = 5,
                                    .max_new = 3,
                                    .temperature = drawn ? 0.8f : 0.0f,
                                    .top_k = 9,
                                    .top_p = 0.9f};
        for (int i = 0; i < 2; i++) {
            mgl_vm_report report;
            struct heard heard = {0};
            const mgl_vm_request request = {
                .sequences = &sequence, .count = 1, .on_token = hear, .user = &heard};
            ck_assert_int_eq(mgl_vm_run(machines[i], &request, &report, &errs[i]), MGL_BAD_INPUT);
            ck_assert_int_eq(report.state[0], MGL_STATE_NOT_A_NUMBER);
            ck_assert_int_eq(report.produced[0], 0);
            ck_assert_int_eq(heard.count[0], 0);
        }
        ck_assert_str_eq(errs[0].message, errs[1].message);
    }
    close_pair(&p);
}

/* The middle one of three sequences has a token with a NaN embedding. */
static mgl_status run_around(const mgl_geometry *geometry, const device_options *options,
                             bool spoil, struct heard *out, mgl_error *err)
{
    mgl_vm_report report;
    int32_t prompts[SHARERS][4];
    mgl_vm_sequence sequences[SHARERS];
    mgl_graph *graph = random_graph(geometry, 128, false, options->dtype, 5);
    if (spoil)
        spoil_row(graph, "model.embed_tokens.weight", SPOILT, NAN);
    mgl_program *program = device_program(graph, options);
    mgl_vm *vm = device_vm(program, graph, options);
    for (int s = 0; s < SHARERS; s++) {
        sequences[s] = (mgl_vm_sequence){.prompt = prompts[s],
                                         .prompt_count = 2 + s,
                                         .max_new = 4,
                                         .temperature = s == 2 ? 1.0f : 0.0f};
        fill_prompt(prompts[s], 2 + s, geometry->vocab, s + 1);
        for (int i = 0; i < 2 + s; i++)
            prompts[s][i] += prompts[s][i] == SPOILT;
    }
    prompts[1][0] = SPOILT;
    const mgl_vm_request request = {
        .sequences = sequences, .count = SHARERS, .on_token = hear, .user = out};
    mgl_status status = mgl_vm_run(vm, &request, &report, err);
    for (int s = 0; s < SHARERS && spoil; s++)
        ck_assert_int_eq(report.state[s], s == 1 ? MGL_STATE_NOT_A_NUMBER : MGL_STATE_LENGTH);
    mgl_vm_close(vm);
    mgl_program_free(program);
    mgl_graph_free(graph);
    return status;
}

void check_numbers(const mgl_geometry *geometry, const device_options *wanted)
{
    mgl_error err;
    struct heard clean = {0}, spoilt = {0};
    device_options options = *wanted;
    options.capacity = CHECK_CAPACITY;
    check_spoilt_logit(geometry, &options);
    if (options.rows == 1)
        return;
    options.sequences = SHARERS;
    ok(run_around(geometry, &options, false, &clean, &err), err);
    ck_assert_int_eq(run_around(geometry, &options, true, &spoilt, &err), MGL_BAD_INPUT);
    ck_assert_str_eq(err.where, "sequence 1");
    ck_assert_int_eq(spoilt.count[1], 0);
    for (int s = 0; s < SHARERS; s += 2)
        ck_assert_mem_eq(spoilt.tokens[s], clean.tokens[s], sizeof clean.tokens[s]);
}

/* ---- delays ---------------------------------------------------------------------------------- */

/* Results of a launch. */
struct reply {
    int32_t tokens[CHECK_MOST];
    float *logits; /* (vocab) owned */
};

/* A prompt with all kinds of epochs of the program: with a second list for many rows, one of its
 * epochs and one of few rows. */
static struct reply make_reply(mgl_vm *vm, int most)
{
    mgl_error err;
    int32_t prompt[CHECK_CAPACITY];
    int vocab = vm->program->geometry.vocab, second_rows = vm->program->limits.second_rows;
    int count =
        second_rows > MGL_SMALL_M_ROWS && second_rows + MGL_SMALL_M_TILE + most <= CHECK_CAPACITY
            ? second_rows + MGL_SMALL_M_TILE
            : 5;
    struct reply reply = {.logits = mgl_alloc((size_t)vocab * sizeof *reply.logits)};
    fill_prompt(prompt, count, vocab, 6);
    device_greedy(vm, prompt, count, reply.tokens, most);
    ok(mgl_vm_get_logits(vm, reply.logits, &err), err);
    return reply;
}

static void check_same_reply(mgl_vm *vm, const struct reply *wanted, int most)
{
    struct reply reply = make_reply(vm, most);
    ck_assert_mem_eq(reply.tokens, wanted->tokens, (size_t)most * sizeof *reply.tokens);
    ck_assert_mem_eq(reply.logits, wanted->logits,
                     (size_t)vm->program->geometry.vocab * sizeof *reply.logits);
    mgl_free(reply.logits);
}

void check_delays(const mgl_geometry *geometry, const device_options *wanted, int launches,
                  int most)
{
    device_options options = *wanted;
    options.capacity = CHECK_CAPACITY;
    mgl_graph *graph = random_graph(geometry, 128, true, MGL_BF16, 31);
    mgl_program *program = device_program(graph, &options);
    mgl_vm *vm = device_vm(program, graph, &options);
    struct reply reply = make_reply(vm, most);
    mgl_vm_close(vm);
    options.delay_seed = 1;
    vm = device_vm(program, graph, &options);
    for (int i = 0; i < launches; i++)
        check_same_reply(vm, &reply, most);
    mgl_free(reply.logits);
    mgl_vm_close(vm);
    mgl_program_free(program);
    mgl_graph_free(graph);
}

/* ---- ends ------------------------------------------------------------------------------------ */

void check_end_token(int most)
{
    mgl_error err;
    mgl_vm_report report;
    device_options options = {.dtype = MGL_F32, .capacity = CHECK_CAPACITY};
    mgl_graph *graph = random_graph(&small_model, 128, true, MGL_F32, 8);
    mgl_program *program = device_program(graph, &options);
    mgl_vm *vm = device_vm(program, graph, &options);
    int32_t prompt[3], tokens[CHECK_MOST];
    const int32_t *end = &tokens[most / 2 - 3];
    fill_prompt(prompt, 3, graph->geometry.vocab, 2);
    device_greedy(vm, prompt, 3, tokens, most);
    int first = 0;
    while (tokens[first] != *end)
        first++;
    mgl_vm_sequence sequence = {
        .prompt = prompt, .prompt_count = 3, .max_new = most, .ends = end, .end_count = 1};
    ok(mgl_vm_run(vm, &(mgl_vm_request){.sequences = &sequence, .count = 1}, &report, &err), err);
    ck_assert_int_eq(report.state[0], MGL_STATE_EOS);
    ck_assert_int_eq(report.produced[0], first + 1);
    mgl_vm_close(vm);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
