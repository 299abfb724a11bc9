/*
 * Launch code shared by both machines: finds the io buffers, checks a request, writes the first row
 * table, and delivers tokens to the caller's callbacks. Independent of the machine. vm/cpu and
 * vm/cuda call it; the interface is in vm.h.
 */
#include "vm/vm.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/format.h"
#include "instructions/sample/penalties.h"

mgl_status mgl_vm_check_usable(const mgl_vm *vm, mgl_error *err)
{
    if (!vm->lost)
        return MGL_OK;
    return mgl_fail(err, MGL_DEVICE, NULL,
                    "the machine has no program: the device failed while another one was put on "
                    "it; open the machine again");
}

/* The first task with this op, or NULL. */
static const mgl_task *find_task(const mgl_program *program, mgl_op op)
{
    for (int i = 0; i < program->task_count; i++)
        if (program->tasks[i].op == op)
            return &program->tasks[i];
    return NULL;
}

mgl_status mgl_vm_find_io(const mgl_program *program, mgl_vm_io *out, mgl_error *err)
{
    const mgl_task *sample = find_task(program, MGL_OP_SAMPLE);
    const mgl_op_info *info = mgl_op_get(MGL_OP_SAMPLE);
    if (!sample || sample->in.count < info->in_count || sample->out.count < info->out_least)
        return mgl_fail(err, MGL_BAD_INPUT, NULL, "the program has no complete sample task");
    const mgl_region *counts = mgl_task_operand(program, sample, MGL_OPERAND(sample, counts));
#define BUFFER(name) mgl_task_operand(program, sample, MGL_OPERAND(sample, name))->buffer
    *out = (mgl_vm_io){.logits = BUFFER(logits),
                       .best_value = BUFFER(best_value),
                       .best_id = BUFFER(best_id),
                       .sequence = BUFFER(sequence),
                       .prompt = BUFFER(prompt),
                       .control = BUFFER(control),
                       .table = BUFFER(table),
                       .output = BUFFER(output),
                       .score = BUFFER(score),
                       .counts = counts ? counts->buffer : -1};
#undef BUFFER
    return MGL_OK;
}

/* ---- start of a launch ---------------------------------------------------------------------- */

static mgl_status check_prompt(const mgl_program *program, const mgl_vm_sequence *sequence,
                               const char *where, mgl_error *err)
{
    bool scores = sequence->mode == MGL_VM_SCORE;
    int capacity = program->limits.capacity, least = scores ? 2 : 1;
    if (!sequence->prompt || sequence->prompt_count < least)
        return mgl_fail(err, MGL_BAD_INPUT, where, "the prompt has %d tokens; it needs at least %d",
                        sequence->prompt_count, least);
    if (sequence->start < 0 || sequence->start > capacity)
        return mgl_fail(err, MGL_BAD_INPUT, where,
                        "the prompt starts at position %d; the capacity is %d positions",
                        sequence->start, capacity);
    if (sequence->prompt_count > capacity - sequence->start)
        return mgl_fail(err, MGL_BAD_INPUT, where,
                        "the prompt has %d tokens from position %d on, but the capacity is %d "
                        "positions",
                        sequence->prompt_count, sequence->start, capacity);
    int room = capacity - sequence->start - sequence->prompt_count;
    if (sequence->mode == MGL_VM_GENERATE && (sequence->max_new < 1 || sequence->max_new > room))
        return mgl_fail(err, MGL_BAD_INPUT, where,
                        "%d new tokens after a prompt of %d at position %d: there must be at least "
                        "one, and the capacity is %d positions",
                        sequence->max_new, sequence->prompt_count, sequence->start, capacity);
    for (int i = 0; i < sequence->prompt_count; i++)
        if (sequence->prompt[i] < 0 || sequence->prompt[i] >= program->geometry.vocab)
            return mgl_fail(err, MGL_BAD_INPUT, where,
                            "token %d of the prompt is %d; ids are 0 to %d", i, sequence->prompt[i],
                            program->geometry.vocab - 1);
    return MGL_OK;
}

static mgl_status check_sampling(const mgl_vm_sequence *sequence, const char *where, mgl_error *err)
{
    if (!(sequence->temperature >= 0.0f) || !isfinite(sequence->temperature))
        return mgl_fail(err, MGL_BAD_INPUT, where, "the temperature is %g; it must be 0 or more",
                        (double)sequence->temperature);
    if (!(sequence->top_p >= 0.0f && sequence->top_p <= 1.0f))
        return mgl_fail(err, MGL_BAD_INPUT, where, "top-p is %g; it must be from 0 to 1",
                        (double)sequence->top_p);
    if (!(sequence->min_p >= 0.0f && sequence->min_p <= 1.0f))
        return mgl_fail(err, MGL_BAD_INPUT, where, "min-p is %g; it must be from 0 to 1",
                        (double)sequence->min_p);
    if (sequence->top_k < 0)
        return mgl_fail(err, MGL_BAD_INPUT, where, "top-k is %d; it must be 0 or more",
                        sequence->top_k);
    if (sequence->end_count < 0 || sequence->end_count > MGL_MAX_ENDS)
        return mgl_fail(err, MGL_BAD_INPUT, where, "%d end tokens; there may be at most %d",
                        sequence->end_count, MGL_MAX_ENDS);
    return MGL_OK;
}

static mgl_status check_penalties(const mgl_program *program, const mgl_vm_sequence *sequence,
                                  const char *where, mgl_error *err)
{
    const float repeat = sequence->repeat_penalty;
    const float others[2] = {sequence->presence_penalty, sequence->frequency_penalty};
    if (repeat != 0.0f && !(repeat >= MGL_LEAST_REPEAT && repeat <= MGL_MOST_REPEAT))
        return mgl_fail(err, MGL_BAD_INPUT, where,
                        "the repeat penalty is %g; it must be from %g to %g, and 1 is none",
                        (double)repeat, (double)MGL_LEAST_REPEAT, (double)MGL_MOST_REPEAT);
    for (int i = 0; i < 2; i++)
        if (!(others[i] >= -MGL_MOST_PENALTY && others[i] <= MGL_MOST_PENALTY))
            return mgl_fail(err, MGL_BAD_INPUT, where,
                            "the %s penalty is %g; it must be from %g to %g",
                            i ? "frequency" : "presence", (double)others[i],
                            (double)-MGL_MOST_PENALTY, (double)MGL_MOST_PENALTY);
    if (!mgl_vm_is_penalized(sequence))
        return MGL_OK;
    if (!mgl_program_has_penalties(program))
        return mgl_fail(err, MGL_BAD_INPUT, where,
                        "the program counts no tokens, so there can be no penalties; lower or "
                        "compile the model again with --penalties");
    if (repeat != 0.0f && repeat != 1.0f && sequence->before_count < sequence->start)
        return mgl_fail(err, MGL_BAD_INPUT, where,
                        "a repeat penalty needs the %d tokens before the prompt, and %d are given",
                        sequence->start, sequence->before_count);
    return MGL_OK;
}

void mgl_vm_count_prompt(const mgl_vm_sequence *sequence, int32_t *counts)
{
    const int32_t output = sequence->before_count - sequence->before_output;
    for (int32_t i = 0; i < output; i++)
        counts[sequence->before[i]] |= MGL_COUNT_PROMPT;
    for (int32_t i = output; i < sequence->before_count; i++)
        counts[sequence->before[i]]++;
    for (int32_t i = 0; i < sequence->prompt_count; i++)
        counts[sequence->prompt[i]] |= MGL_COUNT_PROMPT;
}

static int32_t float_bits(float value)
{
    int32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Minimum temperature. Dividing logits by less could make several of them infinite, and so equal.
 * The draw equals greedy decoding long before. */
static const float least_temperature = 1e-30f;

/* Writes the words of one sequence. The prompt is stored at its cache positions, so that positions
 * before `start` count as prompt that has been read. */
static void write_sequence(const mgl_vm_sequence *sequence, int32_t *q)
{
    static const int modes[] = {[MGL_VM_GENERATE] = MGL_WANT_SAMPLE,
                                [MGL_VM_SCORE] = MGL_WANT_SCORE,
                                [MGL_VM_FILL] = MGL_WANT_NOTHING};
    float temperature = sequence->temperature < least_temperature ? 0.0f : sequence->temperature;
    q[MGL_SEQUENCE_STATE] = MGL_STATE_RUNNING;
    q[MGL_SEQUENCE_MODE] = modes[sequence->mode];
    q[MGL_SEQUENCE_PROMPT] = sequence->start + sequence->prompt_count;
    q[MGL_SEQUENCE_LENGTH] = sequence->start;
    q[MGL_SEQUENCE_MAX_NEW] = sequence->mode == MGL_VM_GENERATE ? sequence->max_new : 0;
    q[MGL_SEQUENCE_SEED_LO] = (int32_t)(uint32_t)sequence->seed;
    q[MGL_SEQUENCE_SEED_HI] = (int32_t)(uint32_t)(sequence->seed >> 32);
    q[MGL_SEQUENCE_TEMPERATURE] = float_bits(temperature);
    q[MGL_SEQUENCE_TOP_K] = sequence->top_k;
    q[MGL_SEQUENCE_TOP_P] = float_bits(sequence->top_p);
    q[MGL_SEQUENCE_MIN_P] = float_bits(sequence->min_p);
    q[MGL_SEQUENCE_REPEAT] =
        float_bits(sequence->repeat_penalty == 0.0f ? 1.0f : sequence->repeat_penalty);
    q[MGL_SEQUENCE_PRESENCE] = float_bits(sequence->presence_penalty);
    q[MGL_SEQUENCE_FREQUENCY] = float_bits(sequence->frequency_penalty);
    q[MGL_SEQUENCE_ENDS] = sequence->end_count;
    for (int i = 0; i < sequence->end_count; i++)
        q[MGL_SEQUENCE_END + i] = sequence->ends[i];
}

mgl_status mgl_vm_prepare(const mgl_program *program, const mgl_vm_request *request,
                          int32_t *control, int32_t *table, int32_t *sequences, int32_t *prompt,
                          mgl_error *err)
{
    const mgl_limits *limits = &program->limits;
    if (request->count < 1 || request->count > limits->sequences)
        return mgl_fail(err, MGL_BAD_INPUT, "sequences", "is %d; this program runs %s%d",
                        request->count, mgl_up_to((size_t)limits->sequences), limits->sequences);
    if (request->likely < 0 || request->likely > MGL_MOST_LIKELY)
        return mgl_fail(err, MGL_BAD_INPUT, "likely", "is %d, and may be at most %d",
                        request->likely, MGL_MOST_LIKELY);
    size_t rows = (size_t)mgl_limits_most(limits), count = (size_t)limits->sequences;
    size_t capacity = (size_t)limits->capacity;
    memset(control, 0, MGL_CONTROL_WORDS * sizeof *control);
    memset(table, 0, rows * MGL_TABLE_WORDS * sizeof *table);
    memset(sequences, 0, count * MGL_SEQUENCE_WORDS * sizeof *sequences);
    memset(prompt, 0, count * capacity * sizeof *prompt);
    for (int s = 0; s < request->count; s++) {
        const mgl_vm_sequence *sequence = &request->sequences[s];
        char where[32];
        snprintf(where, sizeof where, "sequence %d", s);
        mgl_status status = check_prompt(program, sequence, where, err);
        if (!status)
            status = check_sampling(sequence, where, err);
        if (!status)
            status = check_penalties(program, sequence, where, err);
        if (status)
            return status;
        write_sequence(sequence, sequences + s * MGL_SEQUENCE_WORDS);
        memcpy(prompt + (size_t)s * capacity + sequence->start, sequence->prompt,
               (size_t)sequence->prompt_count * sizeof *prompt);
    }
    control[MGL_CONTROL_NEXT] = mgl_step_list(mgl_step_demand(sequences, limits->sequences),
                                              limits->rows, limits->second_rows);
    const int32_t asked[MGL_ASKED_WORDS] = {0};
    /* No sequence has produced a token: the output is not read. */
    mgl_step_next(control, table, sequences, prompt, prompt, limits->sequences, limits->rows,
                  limits->second_rows, limits->capacity, 0, asked);
    MGL_ASSERT(control[MGL_CONTROL_ROWS] >= request->count &&
               control[MGL_CONTROL_ROWS] <= mgl_limits_most(limits));
    return MGL_OK;
}

/* ---- progress ------------------------------------------------------------------------------- */

void mgl_vm_tell_prompt(const mgl_vm_request *request, const int32_t *sequences, uint64_t *told)
{
    uint64_t done = 0, total = 0;
    if (!request->on_stage)
        return;
    for (int s = 0; s < request->count; s++) {
        const int32_t *q = sequences + s * MGL_SEQUENCE_WORDS;
        int32_t end = q[MGL_SEQUENCE_PROMPT], start = request->sequences[s].start;
        int32_t length = q[MGL_SEQUENCE_LENGTH] < end ? q[MGL_SEQUENCE_LENGTH] : end;
        done += (uint64_t)(length - start);
        total += (uint64_t)(end - start);
    }
    if (done > *told)
        request->on_stage(request->stage_user, MGL_STAGE_PROMPT, done, total);
    *told = done > *told ? done : *told;
}

/* ---- delivery of tokens --------------------------------------------------------------------- */

bool mgl_vm_is_stopped(const mgl_vm_delivery *delivery, int sequence)
{
    uint32_t mask = (uint32_t)delivery->asked[MGL_ASKED_STOPPED + sequence / 32];
    return mask >> sequence % 32 & 1;
}

static void stop(mgl_vm_delivery *delivery, int sequence)
{
    int32_t *word = &delivery->asked[MGL_ASKED_STOPPED + sequence / 32];
    *word = (int32_t)((uint32_t)*word | UINT32_C(1) << sequence % 32);
}

mgl_vm_delivery mgl_vm_begin_delivery(const mgl_program *program, const mgl_vm_request *request)
{
    int vocab = program->geometry.vocab;
    return (mgl_vm_delivery){.asked[MGL_ASKED_LIKELY] = request->likely,
                             .likely = request->likely < vocab ? request->likely : vocab};
}

size_t mgl_vm_likely_words(const mgl_vm_request *request)
{
    return request->likely ? 1 + 2 * (size_t)request->likely : 0;
}

static float word_float(int32_t word)
{
    float value;
    memcpy(&value, &word, sizeof value);
    return value == 0.0f ? 0.0f : value;
}

static void tell_likelihood(const mgl_vm_delivery *delivery, const mgl_vm_request *request,
                            int sequence, int32_t token, const volatile int32_t *words)
{
    mgl_vm_likelihood told = {
        .token = token, .logprob = word_float(words[MGL_LIKELY_OWN]), .count = delivery->likely};
    for (int i = 0; i < told.count; i++) {
        told.ids[i] = words[MGL_LIKELY_IDS + i] - 1;
        told.logprobs[i] = word_float(words[MGL_LIKELY_IDS + request->likely + i]);
    }
    request->on_likelihood(request->user, sequence, &told);
}

void mgl_vm_give(mgl_vm_delivery *delivery, const mgl_vm_request *request, int sequence,
                 int32_t token, const volatile int32_t *likely)
{
    delivery->given[sequence]++;
    if (delivery->first_s == 0)
        delivery->first_s = mgl_clock_s();
    if (request->is_stop && request->is_stop(request->user, sequence, token))
        stop(delivery, sequence);
    if (likely && request->on_likelihood)
        tell_likelihood(delivery, request, sequence, token, likely);
    if (request->on_token && !delivery->asked[MGL_ASKED_ABORT] &&
        !request->on_token(request->user, sequence, token))
        delivery->asked[MGL_ASKED_ABORT] = 1;
}

void mgl_vm_cut_stopped(const mgl_vm_delivery *delivery, const mgl_vm_request *request,
                        mgl_vm_report *report)
{
    for (int s = 0; s < request->count; s++) {
        if (!mgl_vm_is_stopped(delivery, s))
            continue;
        const mgl_vm_sequence *sequence = &request->sequences[s];
        int32_t given = delivery->given[s];
        int32_t behind =
            sequence->start + sequence->prompt_count + given - 1; /* positions written after any
                                                                     reply of this length */
        report->state[s] = MGL_STATE_STOPPED;
        report->produced[s] = given;
        report->written[s] = report->written[s] < behind ? report->written[s] : behind;
    }
}
