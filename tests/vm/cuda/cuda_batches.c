/* Checks of the CUDA machine with several sequences in a launch. See cuda_checks.h. */
#include "base/memory.h"
#include "schedule/step.h"
#include "schedule/variant_shapes.h"
#include "tests/vm/cuda/cuda_checks.h"
#include "tests/vm/cuda/rounding.h"
#include <stdio.h>
#include <string.h>

/* ---- batches --------------------------------------------------------------------------------- */

enum { RAGGED = 6, SCORED = 3 /* index of the scored sequence */ };

/* Results of a launch with several sequences. */
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

/* The largest difference of two lists of scores. */
static double scores_apart(const float *a, const float *b, int count)
{
    double most = 0.0;
    for (int i = 0; i < count; i++)
        most = fmax(most, fabs((double)a[i] - (double)b[i]));
    return most;
}

/* With splits, the division of a sum depends on the start of the epoch. */
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

/* Makes sequences of these lengths. */
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

/* The maximum difference of two computations that divide sums differently: 5e-3 for programs that
 * do not round exchanged values (exchange_precision); otherwise the bound counts the roundings. */
static double tolerance_of(const mgl_program *program, const device_options *options)
{
    const double counted = rounding_of_scores(program, SAME_MACHINE);
    if (options->splits <= 1)
        return 0.0;
    return options->exchange_precision > 0 ? counted : fmin(counted, 5e-3);
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
    mgl_program *other =
        fixture_program(graph, &(fixture_options){.capacity = CHECK_CAPACITY,
                                                  .sequences = RAGGED,
                                                  .rows = program->limits.rows,
                                                  .second_rows = options.second_rows});
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

/* ---- neighbors ------------------------------------------------------------------------------- */

enum {
    NEIGHBORS = 64,
    NEIGHBORS_PROMPT = 5,
    NEIGHBORS_NEW = 3,
    GUARDS = 2,    /* the first ones last longer than the others, so that the second list runs all
                      of these */
    GUARD_NEW = 9, /* NEIGHBORS_PROMPT + NEIGHBORS_NEW epochs, and one more */
    NEIGHBORS_SCORED = 3
};

struct neighbors {
    int32_t prompts[NEIGHBORS][NEIGHBORS_PROMPT];
    mgl_vm_sequence sequences[NEIGHBORS];
};

static void fill_neighbors(struct neighbors *c, int vocab, int count)
{
    for (int s = 0; s < count; s++) {
        const int length = 1 + (s * 7 + 3) % NEIGHBORS_PROMPT;
        fill_prompt(c->prompts[s], length, vocab, s + 1);
        c->sequences[s] =
            (mgl_vm_sequence){.prompt = c->prompts[s],
                              .prompt_count = s == NEIGHBORS_SCORED ? NEIGHBORS_PROMPT : length,
                              .max_new = s < GUARDS ? GUARD_NEW : 1 + s % NEIGHBORS_NEW,
                              .mode = s == NEIGHBORS_SCORED ? MGL_VM_SCORE : 0,
                              .temperature = s >= GUARDS && s % 3 == 2 ? 0.9f : 0.0f,
                              .seed = (uint64_t)s};
    }
    fill_prompt(c->prompts[NEIGHBORS_SCORED], NEIGHBORS_PROMPT, vocab, NEIGHBORS_SCORED + 1);
}

/* Results of a sequence. */
struct reply_of_one {
    int32_t tokens[GUARD_NEW];
    int produced, state;
    float scores[NEIGHBORS_PROMPT];
};

/* Runs all in one launch, in reverse order if `turned`. */
static void run_neighbors(mgl_vm *vm, const struct neighbors *c, int count, bool reversed,
                          struct reply_of_one *out)
{
    mgl_error err;
    mgl_vm_report report;
    mgl_vm_sequence sequences[NEIGHBORS];
    for (int s = 0; s < count; s++)
        sequences[reversed ? count - 1 - s : s] = c->sequences[s];
    ok(mgl_vm_run(vm, &(mgl_vm_request){.sequences = sequences, .count = count}, &report, &err),
       err);
    for (int s = 0; s < count; s++) {
        const int at = reversed ? count - 1 - s : s;
        out[s].produced = report.produced[at];
        out[s].state = report.state[at];
        ck_assert_int_le(out[s].produced, GUARD_NEW);
        memcpy(out[s].tokens, report.output[at], (size_t)out[s].produced * sizeof(int32_t));
        if (s == NEIGHBORS_SCORED)
            memcpy(out[s].scores, report.score[at], sizeof out[s].scores);
    }
}

/* The difference of the CPU machine's best logit and that of `token`, after these ids. */
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

/* Whether a greedy reply equals the CPU machine's, or its first different token is about equally
 * likely. */
static bool is_as_alone(mgl_vm *cpu, const mgl_vm_sequence *sequence,
                        const struct reply_of_one *reply)
{
    int32_t ids[NEIGHBORS_PROMPT + GUARD_NEW], wanted[GUARD_NEW];
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

/* Every fifth sequence gets its last token as end token, at that token's first occurrence. */
static void set_ends(struct neighbors *c, int count, const struct reply_of_one *replies)
{
    for (int s = GUARDS; s < count; s++)
        if (s % 5 == 1 && s != NEIGHBORS_SCORED) {
            c->sequences[s].ends = &replies[s].tokens[replies[s].produced - 1];
            c->sequences[s].end_count = 1;
        }
}

/* The number of tokens of a reply up to its end token. */
static int tokens_to_end(const mgl_vm_sequence *sequence, const struct reply_of_one *reply)
{
    int count = 0;
    while (sequence->end_count > 0 && reply->tokens[count] != *sequence->ends)
        count++;
    return sequence->end_count > 0 ? count + 1 : reply->produced;
}

void check_neighbors(const mgl_geometry *geometry, const device_options *wanted, int count)
{
    static struct neighbors c;
    static struct reply_of_one first[NEIGHBORS], second[NEIGHBORS];
    device_options options = *wanted;
    options.capacity = CHECK_CAPACITY;
    options.sequences = count;
    mgl_graph *graph = random_family(geometry, options.extras, 128, true, MGL_BF16, 21);
    struct pair p = open_pair(graph, &options);
    int apart = 0;
    ck_assert_int_eq(p.program->limits.rows, 1);
    fill_neighbors(&c, geometry->vocab, count);
    run_neighbors(p.gpu, &c, count, false, first);
    set_ends(&c, count, first);
    run_neighbors(p.gpu, &c, count, true, second);
    for (int s = 0; s < count; s++) {
        if (s == NEIGHBORS_SCORED)
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
    check_scores(p.program, graph, &c.sequences[NEIGHBORS_SCORED], first[NEIGHBORS_SCORED].scores);
    /* epochs of few rows add in another order, so neighbors may change the last bits */
    if (options.second_rows <= MGL_SMALL_M_ROWS)
        ck_assert_mem_eq(first[NEIGHBORS_SCORED].scores, second[NEIGHBORS_SCORED].scores,
                         sizeof first[NEIGHBORS_SCORED].scores);
    check_scores(p.program, graph, &c.sequences[NEIGHBORS_SCORED], second[NEIGHBORS_SCORED].scores);
    close_pair(&p);
}
