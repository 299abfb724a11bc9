/*
 * Checks penalties against the formulas, implemented here independently in f64. See penalties.h.
 *
 * repetition_penalty   Hugging Face transformers, generation/logits_process.py,
 *                      RepetitionPenaltyLogitsProcessor: for each distinct id of input_ids (prompt
 *                      and reply), a score below 0 is multiplied by the penalty; any other score
 *                      is divided by it.
 * presence, frequency  OpenAI's API documentation, "Advanced usage: parameter details":
 *                      mu[j] -> mu[j] - c[j] * alpha_frequency - float(c[j] > 0) * alpha_presence,
 *                      where c[j] is how often token j was sampled.
 */
#include "penalties.h"

#include "fixture.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "instructions/sample/philox.h"
#include "instructions/sample/sampler.h"

enum { COUNT = 3, PROMPT = 5, NEW = 9, ROOM = 48 };

static uint64_t state_of; /* xorshift64 (Marsaglia 2003) */

static unsigned draw(unsigned end)
{
    state_of ^= state_of << 13;
    state_of ^= state_of >> 7;
    state_of ^= state_of << 17;
    return (unsigned)(state_of >> 33) % end;
}

static float draw_from(float lo, float hi)
{
    return lo + (hi - lo) * (float)draw(1000) / 1000.0f;
}

/* ---- the formulas ---------------------------------------------------------------------------- */

static bool has(const int32_t *ids, int count, int32_t id)
{
    for (int i = 0; i < count; i++)
        if (ids[i] == id)
            return true;
    return false;
}

static int times(const int32_t *ids, int count, int32_t id)
{
    int n = 0;
    for (int i = 0; i < count; i++)
        n += ids[i] == id;
    return n;
}

/* The penalized score of a token after prompt and `made` tokens of the reply. */
static double score(const mgl_vm_sequence *s, const int32_t *reply, int made, double logit, int id)
{
    double repeat = s->repeat_penalty == 0.0f ? 1.0 : (double)s->repeat_penalty;
    int sampled = times(reply, made, id);
    if (has(s->prompt, s->prompt_count, id) || sampled > 0)
        logit = logit < 0 ? logit * repeat : logit / repeat;
    return logit - sampled * (double)s->frequency_penalty -
           (sampled > 0 ? 1.0 : 0.0) * (double)s->presence_penalty;
}

/* The chosen token; -1: two are so close that f32 rounding may decide. */
static int choose(const mgl_vm_sequence *s, const int32_t *reply, int made, const float *logits,
                  int vocab)
{
    float *scores = mgl_alloc((size_t)vocab * sizeof *scores);
    int best = 0, near = 0;
    for (int i = 0; i < vocab; i++) {
        scores[i] = (float)score(s, reply, made, (double)logits[i], i);
        best = scores[i] > scores[best] ? i : best;
    }
    for (int i = 0; i < vocab; i++)
        near += fabsf(scores[i] - scores[best]) < 1e-5f;
    if (s->temperature > 0.0f)
        best = mgl_sampler_draw(
            scores, vocab, s->temperature, s->top_k, s->top_p, s->min_p,
            mgl_philox_token((unsigned)s->seed, (unsigned)(s->seed >> 32), (unsigned)made));
    mgl_free(scores);
    return near > 1 ? -1 : best;
}

/* ---- states ---------------------------------------------------------------------------------- */

/* Draws penalties of one kind, or of all. */
static void draw_penalties(int state, mgl_vm_sequence *s)
{
    const int kind = state % 4;
    if (kind == 0 || kind == 3)
        s->repeat_penalty = draw(2) ? draw_from(1.0f, 2.0f) : draw_from(0.5f, 1.0f);
    if (kind == 1 || kind == 3)
        s->presence_penalty = draw_from(-2.0f, 2.0f);
    if (kind == 2 || kind == 3)
        s->frequency_penalty = draw_from(-2.0f, 2.0f);
}

/* Few ids, so that prompt and reply share tokens. */
static mgl_vm_sequence draw_state(int state, int vocab, int32_t prompt[PROMPT + COUNT])
{
    mgl_vm_sequence s = {.prompt = prompt,
                         .prompt_count = PROMPT + state % COUNT,
                         .max_new = 1 + (int)draw(NEW),
                         .seed = (uint64_t)state};
    for (int i = 0; i < s.prompt_count; i++)
        prompt[i] = (int32_t)draw((unsigned)vocab);
    draw_penalties(state, &s);
    if (state % 3 == 2) {
        s.temperature = draw_from(0.3f, 2.0f);
        s.top_k = draw(2) ? 5 : 0;
        s.min_p = draw(2) ? 0.1f : 0.0f;
    }
    return s;
}

struct listener {
    mgl_vm_likelihood last;
};

static void hear(void *user, int sequence, const mgl_vm_likelihood *likelihood)
{
    (void)sequence;
    ((struct listener *)user)->last = *likelihood;
}

static mgl_vm_report run(mgl_vm *vm, const mgl_vm_request *request)
{
    mgl_error err;
    mgl_vm_report report;
    ok(mgl_vm_run(vm, request, &report, &err), err);
    return report;
}

/* The log-probability of a token under the raw logits. */
static double likelihood(const float *logits, int vocab, int id)
{
    double sum = 0;
    for (int i = 0; i < vocab; i++)
        sum += exp((double)logits[i]);
    return (double)logits[id] - log(sum);
}

/* Returns whether the state was decidable. */
static bool check_state(mgl_vm *vm, int state, float *logits)
{
    mgl_error err;
    struct listener l = {{0}};
    int32_t prompt[PROMPT + COUNT];
    const int vocab = vm->program->geometry.vocab;
    const mgl_vm_sequence s = draw_state(state, vocab, prompt);
    const mgl_vm_report report =
        run(vm, &(mgl_vm_request){
                    .sequences = &s, .count = 1, .on_likelihood = hear, .likely = 1, .user = &l});
    const int last = report.produced[0] - 1;
    ck_assert_int_eq(last + 1, s.max_new);
    ok(mgl_vm_get_logits(vm, logits, &err), err);
    const int wanted = choose(&s, report.output[0], last, logits, vocab);
    if (wanted < 0)
        return false;
    ck_assert_msg(report.output[0][last] == wanted, "state %d: token %d is %d, not %d", state, last,
                  (int)report.output[0][last], wanted);
    ck_assert_double_le(fabs((double)l.last.logprob - likelihood(logits, vocab, wanted)), 1e-4);
    return true;
}

/* ---- several at once ------------------------------------------------------------------------- */

static void check_batch(mgl_vm *vm, int count)
{
    int32_t prompts[COUNT][PROMPT + COUNT], together[COUNT][NEW];
    mgl_vm_sequence sequences[COUNT];
    for (int i = 0; i < count; i++) {
        sequences[i] = draw_state(3 + 4 * i, vm->program->geometry.vocab, prompts[i]);
        sequences[i].max_new = NEW;
    }
    if (count > 1) /* one without */
        sequences[1].repeat_penalty = sequences[1].presence_penalty =
            sequences[1].frequency_penalty = 0.0f;
    mgl_vm_report report = run(vm, &(mgl_vm_request){.sequences = sequences, .count = count});
    for (int i = 0; i < count; i++)
        memcpy(together[i], report.output[i], sizeof together[i]);
    for (int i = 0; i < count; i++) {
        report = run(vm, &(mgl_vm_request){.sequences = &sequences[i], .count = 1});
        ck_assert_mem_eq(report.output[0], together[i], sizeof together[i]);
    }
}

/* ---- stop texts, and what the cache holds ---------------------------------------------------- */

static bool is_fourth(void *user, int sequence, int32_t token)
{
    (void)sequence;
    (void)token;
    return ++*(int *)user == 4;
}

static void check_talk(mgl_vm *vm, mgl_vm *fresh)
{
    int32_t talk[ROOM] = {3, 1, 4, 1, 5};
    int length = 5, looked;
    for (int turn = 0; turn < 3; turn++) {
        mgl_vm_sequence s = {.prompt = talk,
                             .prompt_count = length,
                             .max_new = NEW,
                             .repeat_penalty = 1.7f,
                             .frequency_penalty = 0.5f};
        mgl_vm_request request = {.sequences = &s, .count = 1};
        int32_t wanted[NEW];
        memcpy(wanted, run(fresh, &request).output[0], sizeof wanted);
        s.reuse = true;
        request.is_stop = is_fourth;
        request.user = &looked;
        looked = 0;
        const mgl_vm_report report = run(vm, &request);
        ck_assert_int_eq(report.produced[0], 4);
        ck_assert_int_eq(report.state[0], MGL_STATE_STOPPED);
        ck_assert_int_eq(report.reused[0] > 0, turn > 0);
        ck_assert_mem_eq(report.output[0], wanted, 4 * sizeof *wanted);
        memcpy(talk + length, wanted, 4 * sizeof *wanted);
        length += 4;
        talk[length++] = turn;
    }
}

void check_penalties(mgl_vm *vm, mgl_vm *fresh, int count, int states)
{
    int decided = 0;
    float *logits = mgl_alloc((size_t)vm->program->geometry.vocab * sizeof *logits);
    state_of = 88172645463325252u;
    for (int state = 0; state < states; state++)
        decided += check_state(vm, state, logits);
    ck_assert_int_ge(decided, states - states / 20);
    mgl_free(logits);
    check_batch(vm, count);
    check_talk(vm, fresh);
}

void check_penalty_refused(mgl_vm *vm, mgl_vm_sequence sequence, const char *words)
{
    mgl_error err = {0};
    mgl_vm_report report;
    static const int32_t prompt[] = {3, 1, 4};
    sequence.prompt = prompt;
    sequence.prompt_count = 3;
    sequence.max_new = 1;
    const mgl_vm_request request = {.sequences = &sequence, .count = 1};
    ck_assert_int_eq(mgl_vm_run(vm, &request, &report, &err), MGL_BAD_INPUT);
    ck_assert_msg(strstr(err.message, words), "\"%s\" has not \"%s\"", err.message, words);
}
