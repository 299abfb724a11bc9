#include "cuda_checks.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "likely.h"
#include "penalties.h"
#include "rounding.h"
#include "schedule/step.h"
#include "schedule/ways.h"
#include "stops.h"
#include "vm/cuda/cuda.h"
#include "vm/cuda/machine.h"

void fill_prompt(int32_t *prompt, int count, int vocab, int seed)
{
    for (int i = 0; i < count; i++)
        prompt[i] =
            (int32_t)(((unsigned)i * 7919u + (unsigned)seed * 104729u + 13u) % (unsigned)vocab);
}

/* A model on both machines. */
struct pair {
    mgl_graph *graph;
    mgl_program *program, *other;
    mgl_vm *gpu, *cpu;
};

static struct pair open_pair(mgl_graph *graph, const device_options *options)
{
    struct pair p = {.graph = graph, .program = device_program(graph, options)};
    p.other = fixture_program(
        graph, &(fixture_options){.dtype = options->dtype, .capacity = CHECK_CAPACITY});
    p.gpu = device_vm(p.program, graph, options);
    p.cpu = fixture_vm(p.other, graph, false);
    return p;
}

static void close_pair(struct pair *p)
{
    mgl_vm_close(p->gpu);
    mgl_vm_close(p->cpu);
    mgl_program_free(p->program);
    mgl_program_free(p->other);
    mgl_graph_free(p->graph);
}

/* ---- logits -----------------------------------------------------------------------------------
 */

static double relative_l2(const float *a, const float *b, int n)
{
    double difference = 0.0, norm = 0.0;
    for (int i = 0; i < n; i++) {
        difference += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        norm += (double)b[i] * (double)b[i];
    }
    return sqrt(difference / norm);
}

/* How far the logits after a prompt are apart. */
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

void check_logits(const mgl_geometry *geometry, const device_options *wanted, int seed,
                  int prompt_count, int more)
{
    device_options options = *wanted;
    options.capacity = CHECK_CAPACITY;
    mgl_graph *graph = random_family(geometry, options.extras, 128, seed % 2, options.dtype, 11);
    struct pair p = open_pair(graph, &options);
    int32_t prompt[2 * CHECK_MOST], tokens[CHECK_MOST];
    double tolerance = options.dtype == MGL_F32 ? 2e-5 : 2e-2;
    fill_prompt(prompt, prompt_count, geometry->vocab, seed);
    double first = logits_apart(&p, prompt, prompt_count);
    /* the CPU's tokens as prompt, so that both machines are at the same place */
    device_greedy(p.cpu, prompt, prompt_count, prompt + prompt_count, more);
    double second = logits_apart(&p, prompt, prompt_count + more);
    printf("shape %d: logits differ by %.1e after the prompt, %.1e later\n", seed, first, second);
    ck_assert_double_le(first, tolerance);
    ck_assert_double_le(second, tolerance);
    if (options.dtype == MGL_F32) {
        device_greedy(p.gpu, prompt, prompt_count, tokens, more);
        ck_assert_mem_eq(tokens, prompt + prompt_count, (size_t)more * sizeof *tokens);
    }
    close_pair(&p);
}

/* ---- sampling ---------------------------------------------------------------------------------
 */

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

/* With f32 the logits are so near that a different token in a few dozen would be a bug. */
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

/* ---- batches ----------------------------------------------------------------------------------
 */

enum { RAGGED = 6, SCORED = 3 /* the one of them that is scored */ };

/* What came out together. */
struct answers {
    int32_t tokens[RAGGED][CHECK_MOST];
    float scores[CHECK_MOST];
};

static int run_together(mgl_vm *vm, const mgl_vm_sequence *sequences, struct answers *out)
{
    mgl_error err;
    mgl_vm_report report;
    const mgl_vm_request request = {.sequences = sequences, .count = RAGGED};
    ok(mgl_vm_run(vm, &request, &report, &err), err);
    for (int s = 0; s < RAGGED; s++) {
        ck_assert_int_eq(report.state[s], MGL_STATE_LENGTH);
        ck_assert_int_eq(report.produced[s], s == SCORED ? 0 : sequences[s].max_new);
        memcpy(out->tokens[s], report.output[s], (size_t)report.produced[s] * sizeof(int32_t));
    }
    memcpy(out->scores, report.score[SCORED],
           (size_t)sequences[SCORED].prompt_count * sizeof(float));
    return report.epochs;
}

/* How far two lists of scores are apart. */
static double scores_apart(const float *a, const float *b, int count)
{
    double most = 0.0;
    for (int i = 0; i < count; i++)
        most = fmax(most, fabs((double)a[i] - (double)b[i]));
    return most;
}

/* With splits, where a sum is cut depends on where the epoch starts. */
static void check_alone(mgl_vm *vm, const mgl_vm_sequence *sequence, const int32_t *tokens,
                        const float *scores, double tolerance)
{
    mgl_error err;
    mgl_vm_report report;
    ok(mgl_vm_run(vm, &(mgl_vm_request){.sequences = sequence, .count = 1}, &report, &err), err);
    ck_assert_mem_eq(tokens, report.output[0], (size_t)report.produced[0] * sizeof(int32_t));
    if (sequence->mode != MGL_VM_SCORE)
        return;
    const double apart = scores_apart(scores, report.score[0], sequence->prompt_count);
    printf("scores together and alone differ by %.1e of %.1e\n", apart, tolerance);
    ck_assert_double_le(apart, tolerance);
}

/* The CPU machine runs the same program, which rounds the same values. */
static void check_scores(const mgl_program *program, const mgl_graph *graph,
                         const mgl_vm_sequence *sequence, const float *scores)
{
    mgl_error err;
    mgl_vm_report report;
    mgl_vm *cpu = fixture_vm(program, graph, false);
    const double tolerance = rounding_of_scores(program, OTHER_MACHINE);
    ok(mgl_vm_run(cpu, &(mgl_vm_request){.sequences = sequence, .count = 1}, &report, &err), err);
    const double apart = scores_apart(scores, report.score[0], sequence->prompt_count);
    printf("scores differ from the CPU's by %.1e of %.1e\n", apart, tolerance);
    ck_assert_double_le(apart, tolerance);
    mgl_vm_close(cpu);
}

static const int lengths[RAGGED] = {1, 30, 7, 17, 2, 55};

/* Sequences of these lengths. */
static void ragged_sequences(int vocab, int most, int32_t prompts[RAGGED][CHECK_MOST],
                             mgl_vm_sequence *out)
{
    for (int s = 0; s < RAGGED; s++) {
        fill_prompt(prompts[s], lengths[s], vocab, s + 1);
        out[s] = (mgl_vm_sequence){.prompt = prompts[s],
                                   .prompt_count = lengths[s],
                                   .max_new = most - s,
                                   .mode = s == SCORED ? MGL_VM_SCORE : 0};
    }
}

/* What two ways that cut sums elsewhere may differ by. 5e-3 is what every program keeps that does
 * not round what queues exchange (`narrow`); where that is rounded, the roundings are counted. */
static double tolerance_of(const mgl_program *program, const device_options *options)
{
    const double counted = rounding_of_scores(program, SAME_MACHINE);
    if (options->splits <= 1)
        return 0.0;
    return options->narrow > 0 ? counted : fmin(counted, 5e-3);
}

void check_ragged(const mgl_geometry *geometry, const device_options *wanted, int most)
{
    device_options options = *wanted;
    options.capacity = CHECK_CAPACITY;
    options.sequences = RAGGED;
    mgl_graph *graph = random_family(geometry, options.extras, 128, true, MGL_BF16, 21);
    mgl_program *program = device_program(graph, &options);
    mgl_vm *vm = device_vm(program, graph, &options);
    int32_t prompts[RAGGED][CHECK_MOST];
    mgl_vm_sequence sequences[RAGGED];
    struct answers together;
    ragged_sequences(graph->geometry.vocab, most, prompts, sequences);
    run_together(vm, sequences, &together);
    for (int s = 0; s < RAGGED; s++)
        check_alone(vm, &sequences[s], together.tokens[s], together.scores,
                    tolerance_of(program, &options));
    check_scores(program, graph, &sequences[SCORED], together.scores);
    mgl_vm_close(vm);
    mgl_program_free(program);
    mgl_graph_free(graph);
}

void check_two_lists(const mgl_geometry *geometry, const device_options *wanted, int most)
{
    device_options options = *wanted;
    options.capacity = CHECK_CAPACITY;
    options.sequences = RAGGED;
    options.dtype = MGL_F32;
    mgl_graph *graph = random_family(geometry, options.extras, 128, true, MGL_BF16, 21);
    mgl_program *program = device_program(graph, &options);
    mgl_program *other = fixture_program(graph, &(fixture_options){.capacity = CHECK_CAPACITY,
                                                                   .sequences = RAGGED,
                                                                   .rows = program->limits.rows,
                                                                   .many = options.many});
    mgl_vm *gpu = device_vm(program, graph, &options), *cpu = fixture_vm(other, graph, false);
    int32_t prompts[RAGGED][CHECK_MOST];
    mgl_vm_sequence sequences[RAGGED];
    struct answers a = {0}, b = {0};
    ragged_sequences(graph->geometry.vocab, most, prompts, sequences);
    const int epochs = run_together(gpu, sequences, &a);
    ck_assert_int_eq(epochs, run_together(cpu, sequences, &b));
    ck_assert_mem_eq(a.tokens, b.tokens, sizeof a.tokens);
    for (int i = 0; i < lengths[SCORED]; i++)
        ck_assert_float_le(fabsf(a.scores[i] - b.scores[i]), 1e-4f);
    mgl_vm_close(gpu);
    mgl_vm_close(cpu);
    mgl_program_free(program);
    mgl_program_free(other);
    mgl_graph_free(graph);
}

/* ---- company ----------------------------------------------------------------------------------
 */

enum {
    COMPANY = 64,
    COMPANY_PROMPT = 5,
    COMPANY_NEW = 3,
    GUARDS = 2,    /* the first ones outlast the others, so that the second list has all of these */
    GUARD_NEW = 9, /* COMPANY_PROMPT + COMPANY_NEW epochs, and one more */
    COMPANY_SCORED = 3
};

struct company {
    int32_t prompts[COMPANY][COMPANY_PROMPT];
    mgl_vm_sequence sequences[COMPANY];
};

static void fill_company(struct company *c, int vocab, int count)
{
    for (int s = 0; s < count; s++) {
        const int length = 1 + (s * 7 + 3) % COMPANY_PROMPT;
        fill_prompt(c->prompts[s], length, vocab, s + 1);
        c->sequences[s] =
            (mgl_vm_sequence){.prompt = c->prompts[s],
                              .prompt_count = s == COMPANY_SCORED ? COMPANY_PROMPT : length,
                              .max_new = s < GUARDS ? GUARD_NEW : 1 + s % COMPANY_NEW,
                              .mode = s == COMPANY_SCORED ? MGL_VM_SCORE : 0,
                              .temperature = s >= GUARDS && s % 3 == 2 ? 0.9f : 0.0f,
                              .seed = (uint64_t)s};
    }
    fill_prompt(c->prompts[COMPANY_SCORED], COMPANY_PROMPT, vocab, COMPANY_SCORED + 1);
}

/* What a sequence got. */
struct reply_of_one {
    int32_t tokens[GUARD_NEW];
    int produced, state;
    float scores[COMPANY_PROMPT];
};

/* All in one launch, the last one first if `turned`. */
static void run_company(mgl_vm *vm, const struct company *c, int count, bool turned,
                        struct reply_of_one *out)
{
    mgl_error err;
    mgl_vm_report report;
    mgl_vm_sequence sequences[COMPANY];
    for (int s = 0; s < count; s++)
        sequences[turned ? count - 1 - s : s] = c->sequences[s];
    ok(mgl_vm_run(vm, &(mgl_vm_request){.sequences = sequences, .count = count}, &report, &err),
       err);
    for (int s = 0; s < count; s++) {
        const int at = turned ? count - 1 - s : s;
        out[s].produced = report.produced[at];
        out[s].state = report.state[at];
        ck_assert_int_le(out[s].produced, GUARD_NEW);
        memcpy(out[s].tokens, report.output[at], (size_t)out[s].produced * sizeof(int32_t));
        if (s == COMPANY_SCORED)
            memcpy(out[s].scores, report.score[at], sizeof out[s].scores);
    }
}

/* How far the best logit of the CPU machine is above that of `token`, after so many ids. */
static double best_above(mgl_vm *cpu, const int32_t *ids, int count, int token)
{
    mgl_error err;
    int32_t best;
    const int vocab = cpu->program->geometry.vocab;
    float *logits = mgl_alloc((size_t)vocab * sizeof *logits);
    device_greedy(cpu, ids, count, &best, 1);
    ok(mgl_vm_get_logits(cpu, logits, &err), err);
    const double above = (double)logits[best] - (double)logits[token];
    mgl_free(logits);
    return above;
}

/* Whether a greedy reply is the CPU machine's; where it is not, the first other token is as good.
 */
static bool is_as_alone(mgl_vm *cpu, const mgl_vm_sequence *sequence,
                        const struct reply_of_one *reply)
{
    int32_t ids[COMPANY_PROMPT + GUARD_NEW], wanted[GUARD_NEW];
    const int length = sequence->prompt_count;
    device_greedy(cpu, sequence->prompt, length, wanted, sequence->max_new);
    memcpy(ids, sequence->prompt, (size_t)length * sizeof *ids);
    memcpy(ids + length, wanted, (size_t)sequence->max_new * sizeof *ids);
    for (int i = 0; i < reply->produced; i++) {
        if (reply->tokens[i] == wanted[i])
            continue;
        ck_assert_double_lt(best_above(cpu, ids, length + i, reply->tokens[i]), 0.1);
        return false;
    }
    return true;
}

/* Every fifth one ends with the last token that it had, where that comes first. */
static void set_ends(struct company *c, int count, const struct reply_of_one *replies)
{
    for (int s = GUARDS; s < count; s++)
        if (s % 5 == 1 && s != COMPANY_SCORED) {
            c->sequences[s].ends = &replies[s].tokens[replies[s].produced - 1];
            c->sequences[s].end_count = 1;
        }
}

/* Tokens of a reply up to its end token. */
static int tokens_to_end(const mgl_vm_sequence *sequence, const struct reply_of_one *reply)
{
    int count = 0;
    while (sequence->end_count > 0 && reply->tokens[count] != *sequence->ends)
        count++;
    return sequence->end_count > 0 ? count + 1 : reply->produced;
}

void check_company(const mgl_geometry *geometry, const device_options *wanted, int count)
{
    static struct company c;
    static struct reply_of_one first[COMPANY], second[COMPANY];
    device_options options = *wanted;
    options.capacity = CHECK_CAPACITY;
    options.sequences = count;
    mgl_graph *graph = random_family(geometry, options.extras, 128, true, MGL_BF16, 21);
    struct pair p = open_pair(graph, &options);
    int apart = 0;
    ck_assert_int_eq(p.program->limits.rows, 1);
    fill_company(&c, geometry->vocab, count);
    run_company(p.gpu, &c, count, false, first);
    set_ends(&c, count, first);
    run_company(p.gpu, &c, count, true, second);
    for (int s = 0; s < count; s++) {
        if (s == COMPANY_SCORED)
            continue;
        ck_assert_int_eq(first[s].state, MGL_STATE_LENGTH);
        ck_assert_int_eq(first[s].produced, c.sequences[s].max_new);
        if (!(c.sequences[s].temperature > 0.0f))
            apart += !is_as_alone(p.cpu, &c.sequences[s], &first[s]);
        if (s < GUARDS)
            continue;
        ck_assert_int_eq(second[s].state,
                         c.sequences[s].end_count > 0 ? MGL_STATE_EOS : MGL_STATE_LENGTH);
        ck_assert_int_eq(second[s].produced, tokens_to_end(&c.sequences[s], &first[s]));
        ck_assert_mem_eq(first[s].tokens, second[s].tokens,
                         (size_t)second[s].produced * sizeof(int32_t));
    }
    printf("%d of %d replies have another token than the CPU's that is as good\n", apart, count);
    check_scores(p.program, graph, &c.sequences[COMPANY_SCORED], first[COMPANY_SCORED].scores);
    /* sums are in another order in epochs of few rows, so that the company may change last bits */
    if (options.many <= MGL_SLIM_ROWS)
        ck_assert_mem_eq(first[COMPANY_SCORED].scores, second[COMPANY_SCORED].scores,
                         sizeof first[COMPANY_SCORED].scores);
    check_scores(p.program, graph, &c.sequences[COMPANY_SCORED], second[COMPANY_SCORED].scores);
    close_pair(&p);
}

/* ---- a talk ----------------------------------------------------------------------------------
 */

enum { SAID = 3 }; /* tokens of a reply */

void check_talk(const mgl_geometry *geometry, const device_options *wanted, int turns)
{
    mgl_error err;
    device_options options = *wanted;
    int32_t talk[CHECK_CAPACITY], afresh[SAID], length = 0;
    options.capacity = CHECK_CAPACITY;
    options.dtype = MGL_F32;
    mgl_graph *graph = random_graph(geometry, CHECK_CAPACITY, true, MGL_F32, 23);
    mgl_program *program = device_program(graph, &options);
    mgl_vm *vm = device_vm(program, graph, &options), *fresh = device_vm(program, graph, &options);
    for (int turn = 0; turn < turns; turn++) {
        const int before = length, news = 1 + turn * 5 % 7;
        fill_prompt(talk + length, news, geometry->vocab, turn);
        length += news;
        mgl_vm_report report;
        mgl_vm_sequence sequence = {.prompt = talk, .prompt_count = length, .max_new = SAID};
        const mgl_vm_request request = {.sequences = &sequence, .count = 1};
        ok(mgl_vm_run(fresh, &request, &report, &err), err);
        memcpy(afresh, report.output[0], sizeof afresh);
        sequence.reuse = true;
        ok(mgl_vm_run(vm, &request, &report, &err), err);
        ck_assert_int_eq(report.reused[0], before ? before - 1 : 0);
        ck_assert_int_eq(report.written[0], length + SAID - 1);
        ck_assert_mem_eq(report.output[0], afresh, sizeof afresh);
        memcpy(talk + length, afresh, sizeof afresh);
        length += SAID;
    }
    mgl_vm_close(vm);
    mgl_vm_close(fresh);
    mgl_program_free(program);
    mgl_graph_free(graph);
}

/* ---- stop texts ------------------------------------------------------------------------------
 */

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

/* ---- capacities -------------------------------------------------------------------------------
 */

enum { SHARERS = 3 };

/* Tokens as they were handed out. */
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

/* Compiles the first time; later on it has to be the same kernel. */
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

/* ---- exchange ---------------------------------------------------------------------------------
 */

/* A reply and the logits behind it. */
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

/* ---- numbers ----------------------------------------------------------------------------------
 */

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

/* The middle one of three sequences has a token whose embedding is spoilt. */
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

/* ---- delays -----------------------------------------------------------------------------------
 */

/* What a launch makes. */
struct reply {
    int32_t tokens[CHECK_MOST];
    float *logits; /* (vocab) owned */
};

/* Of a prompt whose epochs are of all kinds that the program has: beside a second list for many
 * rows one of them and one of a few. */
static struct reply make_reply(mgl_vm *vm, int most)
{
    mgl_error err;
    int32_t prompt[CHECK_CAPACITY];
    int vocab = vm->program->geometry.vocab, many = vm->program->limits.many;
    int count = many > MGL_SLIM_ROWS && many + MGL_SLIM_TILE + most <= CHECK_CAPACITY
                    ? many + MGL_SLIM_TILE
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

/* ---- ends -------------------------------------------------------------------------------------
 */

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

/* ---- the watchdog -----------------------------------------------------------------------------
 */

enum { REPLY = 24 };

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

/* A short deadline, and no validator. */
static mgl_vm *open_unchecked(const mgl_program *program, const mgl_graph *graph)
{
    mgl_error err;
    mgl_vm *vm;
    mgl_vm_options open = {.kind = MGL_VM_CUDA, .unchecked = true, .deadline_ms = 500};
    ok(mgl_vm_open(program, graph, &open, &vm, &err), err);
    return vm;
}

/* A run that the watchdog ends in time, with these words. */
static void check_stopped(mgl_vm *vm, const int32_t *prompt, int count, const char *words,
                          double most_s)
{
    mgl_error err;
    mgl_vm_report report;
    mgl_vm_sequence sequence = {.prompt = prompt, .prompt_count = count, .max_new = REPLY};
    mgl_vm_request request = {.sequences = &sequence, .count = 1};
    double start = mgl_clock_s();
    ck_assert_int_eq(mgl_vm_run(vm, &request, &report, &err), MGL_WATCHDOG);
    ck_assert_double_le(mgl_clock_s() - start, most_s);
    ck_assert_msg(strstr(err.message, words) && strstr(err.message, "queue") &&
                      strstr(err.message, "wanted") && strstr(err.message, "seen"),
                  "%s", err.message);
    printf("%s: %s\n", err.where, err.message);
}

static void check_signal(const mgl_geometry *geometry, const device_options *wanted,
                         const char *counter, double most_s)
{
    const device_options options = *wanted;
    mgl_graph *graph = random_graph(geometry, 128, true, options.dtype, 4);
    mgl_program *good = device_program(graph, &options), *bad = device_program(graph, &options);
    int32_t prompt[CHECK_CAPACITY], tokens[REPLY], again[REPLY];
    const int count = options.many > MGL_SLIM_ROWS ? options.many : 3; /* or panels are slim */
    fill_prompt(prompt, count, graph->geometry.vocab, 1);
    remove_signal(options.many ? bad->many : bad, counter);
    mgl_vm *vm = open_unchecked(bad, graph);
    for (int i = 0; i < 2; i++)
        check_stopped(vm, prompt, count, counter, most_s);
    mgl_vm_close(vm);
    vm = device_vm(good, graph, &options);
    device_greedy(vm, prompt, count, tokens, REPLY);
    device_greedy(vm, prompt, count, again, REPLY);
    ck_assert_mem_eq(tokens, again, sizeof tokens);
    mgl_vm_close(vm);
    mgl_program_free(good);
    mgl_program_free(bad);
    mgl_graph_free(graph);
}

void check_deadlock(const char *counter, double most_s)
{
    check_signal(&small_model,
                 &(device_options){.dtype = MGL_F32, .capacity = CHECK_CAPACITY, .queues = 6},
                 counter, most_s);
}

void check_deadlock_of_many(const char *counter, double most_s)
{
    check_signal(
        &small_model,
        &(device_options){
            .dtype = MGL_F32, .capacity = CHECK_CAPACITY, .queues = 6, .rows = 2, .many = 8},
        counter, most_s);
}

void check_deadlock_of_panels(const mgl_geometry *geometry, const device_options *wanted,
                              const char *counter, double most_s)
{
    device_options options = *wanted;
    options.capacity = CHECK_CAPACITY;
    check_signal(geometry, &options, counter, most_s);
}

static void check_missing(const device_options *options, double most_s)
{
    mgl_graph *graph = random_graph(&small_model, 128, true, options->dtype, 4);
    mgl_program *bad = device_program(graph, options);
    int32_t prompt[3];
    fill_prompt(prompt, 3, graph->geometry.vocab, 1);
    int task = bad->task_count - 1;
    while (bad->tasks[task].op != MGL_OP_LINEAR_ADD)
        task--;
    bad->tasks[task].out.count = 1; /* the copy of the last layer's output is left out */
    mgl_vm *vm = open_unchecked(bad, graph);
    check_stopped(vm, prompt, 3, "words of x to be written", most_s);
    mgl_vm_close(vm);
    mgl_program_free(bad);
    mgl_graph_free(graph);
}

/* Of several rows, and of one, whose words are looked for before the task has begun. */
void check_missing_words(double most_s)
{
    device_options options = {
        .dtype = MGL_F32, .capacity = CHECK_CAPACITY, .queues = 6, .exchange = MGL_EXCHANGE_FLAGS};
    check_missing(&options, most_s);
    options.dtype = MGL_BF16;
    options.rows = 1;
    check_missing(&options, most_s);
}

/* Gives task `count` of queue 0 another op, in the machine's own memory. */
static void damage_op(mgl_vm *base, int count, int op)
{
    mgl_cuda_vm *vm = (mgl_cuda_vm *)base;
    mgl_device_queue queue;
    mgl_record record;
    mgl_error err;
    ok(mgl_cuda_enter(vm, &err), err);
    ck_assert_int_eq(vm->cu->copy_out(&queue, vm->queues, sizeof queue), 0);
    mgl_cu_address at = vm->records + queue.first;
    for (int i = 0; i < count; i++) {
        ck_assert_int_eq(vm->cu->copy_out(&record, at, sizeof record), 0);
        at = vm->records + record.next;
    }
    ck_assert_int_eq(vm->cu->copy_in(at, &op, sizeof op), 0);
    mgl_cuda_leave(vm);
}

void check_unknown_op(double most_s)
{
    enum { AT = 2, OP = 77 };
    device_options options = {.dtype = MGL_F32, .capacity = CHECK_CAPACITY, .queues = 3};
    mgl_graph *graph = random_graph(&small_model, 128, true, MGL_F32, 4);
    mgl_program *program = device_program(graph, &options);
    mgl_error err;
    mgl_vm_report report;
    int32_t prompt[3];
    fill_prompt(prompt, 3, graph->geometry.vocab, 1);
    mgl_vm_sequence sequence = {.prompt = prompt, .prompt_count = 3, .max_new = REPLY};
    mgl_vm_request request = {.sequences = &sequence, .count = 1};
    mgl_vm *vm = open_unchecked(program, graph);
    damage_op(vm, AT, OP);
    double start = mgl_clock_s();
    ck_assert_int_eq(mgl_vm_run(vm, &request, &report, &err), MGL_WATCHDOG);
    ck_assert_double_le(mgl_clock_s() - start, most_s);
    ck_assert_msg(strstr(err.message, "has no op 77, which queue 0 was to run as task"), "%s",
                  err.message);
    damage_op(vm, AT, (int)program->tasks[program->queues[0].tasks.first + AT].op);
    ok(mgl_vm_run(vm, &request, &report, &err), err);
    mgl_vm_close(vm);
    mgl_program_free(program);
    mgl_graph_free(graph);
}

void check_lost_page(double most_s)
{
    device_options options = {.dtype = MGL_F32,
                              .capacity = CHECK_CAPACITY,
                              .queues = 3,
                              .ring_pages = 3,
                              .page_bytes = 2048};
    mgl_graph *graph = random_graph(&small_model, 128, true, MGL_F32, 4);
    mgl_program *program = device_program(graph, &options);
    int32_t prompt[3];
    fill_prompt(prompt, 3, graph->geometry.vocab, 1);
    mgl_vm *vm = open_unchecked(program, graph);
    check_stopped(vm, prompt, 3, "of its tape", most_s);
    mgl_vm_close(vm);
    mgl_program_free(program);
    mgl_graph_free(graph);
}
