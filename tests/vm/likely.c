/* Checks log-probabilities of generated tokens. See likely.h. */
#include "likely.h"

#include "fixture.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"

enum { COUNT = 3, PROMPT = 5, NEW = 6 };

static const int32_t prompt[PROMPT + COUNT] = {3, 1, 4, 1, 5, 9, 2, 6};

/* Log-probabilities reported for each sequence. */
struct listener {
    int count[COUNT];
    mgl_vm_likelihood told[COUNT][NEW];
};

static void hear(void *user, int sequence, const mgl_vm_likelihood *likelihood)
{
    struct listener *l = user;
    l->told[sequence][l->count[sequence]++] = *likelihood;
}

static mgl_vm_sequence sequence_of(int s, int most)
{
    return (mgl_vm_sequence){.prompt = prompt,
                             .prompt_count = PROMPT + s,
                             .max_new = most,
                             .temperature = s == 1 ? 1.3f : 0.0f,
                             .seed = 8};
}

static mgl_vm_report run(mgl_vm *vm, const mgl_vm_sequence *sequences, int count, int likely,
                         struct listener *l)
{
    mgl_error err;
    mgl_vm_report report;
    *l = (struct listener){0};
    mgl_vm_request request = {
        .sequences = sequences, .count = count, .on_likelihood = hear, .likely = likely, .user = l};
    ok(mgl_vm_run(vm, &request, &report, &err), err);
    for (int s = 0; s < count; s++)
        ck_assert_int_eq(l->count[s], likely ? report.produced[s] : 0);
    return report;
}

/* The number of tokens that are more likely than `id`, or equally likely with a lower id. */
static int rank_of(const float *logits, int vocab, int id)
{
    int rank = 0;
    for (int i = 0; i < vocab; i++)
        rank += logits[i] > logits[id] || (logits[i] == logits[id] && i < id);
    return rank;
}

static void check_told(const mgl_vm_likelihood *told, int32_t token, int count, const float *logits,
                       int vocab)
{
    double sum = 0;
    for (int i = 0; i < vocab; i++)
        sum += exp((double)logits[i]);
    ck_assert_int_eq(told->token, token);
    ck_assert_int_eq(told->count, count < vocab ? count : vocab);
    ck_assert_double_le(fabs((double)told->logprob - ((double)logits[token] - log(sum))), 1e-5);
    for (int i = 0; i < told->count; i++) {
        double wanted = (double)logits[told->ids[i]] - log(sum);
        ck_assert_int_eq(rank_of(logits, vocab, told->ids[i]), i);
        ck_assert_double_le(fabs((double)told->logprobs[i] - wanted), 1e-5);
    }
}

/* Checks the last token of replies of 1, 2, ... tokens, whose logits are available. */
static void check_alone(mgl_vm *vm, int s)
{
    static const int asked[] = {1, 20, 5};
    mgl_error err;
    struct listener l;
    const int vocab = vm->program->geometry.vocab;
    float *logits = mgl_alloc((size_t)vocab * sizeof *logits);
    for (int most = 1; most <= 3; most++) {
        mgl_vm_sequence sequence = sequence_of(s, most);
        mgl_vm_report report = run(vm, &sequence, 1, asked[most - 1], &l);
        ok(mgl_vm_get_logits(vm, logits, &err), err);
        check_told(&l.told[0][most - 1], report.output[0][most - 1], asked[most - 1], logits,
                   vocab);
    }
    mgl_free(logits);
}

/* Scores the reply after its prompt. */
static void check_scores(mgl_vm *vm, int s, const int32_t *reply, const mgl_vm_likelihood *told)
{
    mgl_error err;
    mgl_vm_report report;
    int32_t all[PROMPT + COUNT + NEW];
    int length = PROMPT + s;
    memcpy(all, prompt, (size_t)length * sizeof *all);
    memcpy(all + length, reply, NEW * sizeof *all);
    mgl_vm_sequence score = {.mode = MGL_VM_SCORE, .prompt = all, .prompt_count = length + NEW};
    ok(mgl_vm_run(vm, &(mgl_vm_request){.sequences = &score, .count = 1}, &report, &err), err);
    for (int i = 0; i < NEW; i++)
        ck_assert_float_le(fabsf(report.score[0][length + i] - told[i].logprob), 1e-4f);
}

void check_likely(mgl_vm *vm, int count)
{
    struct listener together, alone;
    int32_t replies[COUNT][NEW];
    mgl_vm_sequence sequences[COUNT];
    for (int s = 0; s < count; s++)
        sequences[s] = sequence_of(s, NEW);
    mgl_vm_report report = run(vm, sequences, count, 7, &together);
    for (int s = 0; s < count; s++)
        memcpy(replies[s], report.output[s], sizeof replies[s]);
    for (int s = 0; s < count; s++) {
        run(vm, &sequences[s], 1, 7, &alone);
        for (int i = 0; i < NEW; i++)
            ck_assert_mem_eq(alone.told[0][i].ids, together.told[s][i].ids, 7 * sizeof(int32_t));
        check_scores(vm, s, replies[s], alone.told[0]);
        check_alone(vm, s);
    }
    run(vm, sequences, count, 0, &alone);
}
