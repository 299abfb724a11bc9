/*
 * Reference of sample: the decisions at the end of an epoch. A row that wants a sample gets the
 * best of its parts (greedy) or a draw (instructions/sample/sampler.h). A row that wants a score
 * gets logit[t] - (max + log(sum of exp(logit - max))) of the prompt's next token t; exp in f32,
 * sum and log in f64, in id order. If the host asks for the most likely tokens, their
 * log-probabilities are computed in the same way. Then schedule/step.h advances the sequences. A
 * row whose best logit is not finite gets no token. If the host aborts the launch, no token is
 * taken. With penalties, the best and the draw use the penalized logits, and tokens are counted.
 */
#include "instructions/reference/reference.h"
#include "instructions/sample/draw_row.h"

#include <math.h>

#include "instructions/sample/sampler.h"

/* The regions of a sample task, as pointers. */
struct sampling {
    const float *logits; /* (rows, vocab) */
    const float *drawn;  /* (rows, vocab) logits for draws, penalized if the task has penalties */
    const float *values; /* (rows, parts) */
    const int32_t *ids;  /* (rows, id_count): one for each part, then the drawn token if there is
                            a draw task */
    const int32_t *prompt;
    int32_t *control, *table, *sequences, *output;
    int32_t *counts; /* (sequences, vocab); NULL: no penalties */
    float *score;
    int vocab, parts, id_count, sequence_count, capacity;
};

static struct sampling regions_of(const mgl_call *call)
{
    const mgl_buffer *best = mgl_call_buffer(call, MGL_CALL(call, sample, best_value));
    const mgl_buffer *sequence = mgl_call_buffer(call, MGL_CALL(call, sample, sequence));
    const mgl_region *counts = MGL_CALL(call, sample, counts);
    return (struct sampling){
        .logits = mgl_call_at(call, MGL_CALL(call, sample, logits)),
        .drawn = mgl_call_at(call, counts ? MGL_CALL(call, sample, penalized)
                                          : MGL_CALL(call, sample, logits)),
        .counts = counts ? mgl_call_at(call, counts) : NULL,
        .values = mgl_call_at(call, MGL_CALL(call, sample, best_value)),
        .ids = mgl_call_at(call, MGL_CALL(call, sample, best_id)),
        .prompt = mgl_call_at(call, MGL_CALL(call, sample, prompt)),
        .control = mgl_call_at(call, MGL_CALL(call, sample, control)),
        .table = mgl_call_at(call, MGL_CALL(call, sample, table)),
        .sequences = mgl_call_at(call, MGL_CALL(call, sample, sequence_next)),
        .output = mgl_call_at(call, MGL_CALL(call, sample, output)),
        .score = mgl_call_at(call, MGL_CALL(call, sample, score)),
        .vocab = (int)mgl_call_buffer(call, MGL_CALL(call, sample, logits))->extents[1].count,
        .parts = (int)best->extents[1].count,
        .id_count = (int)mgl_call_buffer(call, MGL_CALL(call, sample, best_id))->extents[1].count,
        .sequence_count = (int)sequence->extents[0].count,
        .capacity = (int)mgl_call_buffer(call, MGL_CALL(call, sample, prompt))->extents[1].count,
    };
}

/* The best of a row's parts: largest key, lowest id. MGL_NO_TOKEN if the best is not finite. */
static int greedy(const struct sampling *s, int row)
{
    const float *values = s->values + (int64_t)row * s->parts;
    const int32_t *ids = s->ids + (int64_t)row * s->id_count;
    int best = 0;
    for (int i = 1; i < s->parts; i++) {
        unsigned key = mgl_sampler_key(values[i]), top = mgl_sampler_key(values[best]);
        if (key > top || (key == top && ids[i] < ids[best]))
            best = i;
    }
    return mgl_sampler_is_finite(mgl_sampler_key(values[best])) ? ids[best] : MGL_NO_TOKEN;
}

static int choose(const struct sampling *s, int row, const int32_t *sequence)
{
    const int best = greedy(s, row);
    if (!mgl_is_drawn(sequence) || best == MGL_NO_TOKEN)
        return best;
    if (s->id_count > s->parts)
        return s->ids[(int64_t)row * s->id_count + s->parts];
    return mgl_draw_row(s->drawn + (int64_t)row * s->vocab, s->vocab, sequence);
}

/* The log of the sum of exponentials. */
static double log_sum(const float *logits, int vocab)
{
    float max = logits[0];
    double sum = 0.0;
    for (int i = 1; i < vocab; i++)
        max = logits[i] > max ? logits[i] : max;
    for (int i = 0; i < vocab; i++)
        sum += (double)expf(logits[i] - max);
    return (double)max + log(sum);
}

static float log_probability(const float *logits, int vocab, int token)
{
    return (float)((double)logits[token] - log_sum(logits, vocab));
}

/* The token ranked next after `last`; last = -1: the first. */
static int next_likely(const float *logits, int vocab, int last)
{
    int best = -1;
    for (int i = 0; i < vocab; i++) {
        unsigned key = mgl_sampler_key(logits[i]);
        bool behind = last < 0 || key < mgl_sampler_key(logits[last]) ||
                      (key == mgl_sampler_key(logits[last]) && i > last);
        if (behind && (best < 0 || key > mgl_sampler_key(logits[best])))
            best = i;
    }
    return best;
}

/* Reports the log-probabilities of row r's token and of the most likely tokens. */
static void tell_likely(const mgl_call *call, const struct sampling *s, int r, int token)
{
    const int32_t *row = mgl_call_table(call, r);
    const float *logits = s->logits + (int64_t)r * s->vocab;
    const int count = call->asked[MGL_ASKED_LIKELY], index = row[MGL_TABLE_SEQUENCE];
    const int produced = s->sequences[index * MGL_SEQUENCE_WORDS + MGL_SEQUENCE_PRODUCED];
    int32_t *to = call->likely + ((int64_t)index * s->capacity + produced) * (1 + 2 * count);
    double sum = log_sum(logits, s->vocab);
    to[MGL_LIKELY_OWN] = mgl_sampler_word((float)((double)logits[token] - sum));
    for (int i = 0, id = -1; i < count && i < s->vocab; i++) {
        id = next_likely(logits, s->vocab, id);
        to[MGL_LIKELY_IDS + i] = id + 1;
        to[MGL_LIKELY_IDS + count + i] = mgl_sampler_word((float)((double)logits[id] - sum));
    }
}

void mgl_reference_sample(const mgl_call *call)
{
    struct sampling s = regions_of(call);
    for (int r = 0; r < call->epoch->rows && !call->asked[MGL_ASKED_ABORT]; r++) {
        const int32_t *row = mgl_call_table(call, r);
        int index = row[MGL_TABLE_SEQUENCE], next = row[MGL_TABLE_POSITION] + 1;
        const int32_t *sequence = s.sequences + index * MGL_SEQUENCE_WORDS;
        if (row[MGL_TABLE_WANT] == MGL_WANT_SAMPLE) {
            int token = choose(&s, r, sequence);
            if (call->asked[MGL_ASKED_LIKELY] && token != MGL_NO_TOKEN)
                tell_likely(call, &s, r, token);
            if (s.counts && token != MGL_NO_TOKEN)
                s.counts[(int64_t)index * s.vocab + token]++;
            mgl_step_take(call->epoch->table, s.sequences, s.output, s.capacity, r, token);
        } else if (row[MGL_TABLE_WANT] == MGL_WANT_SCORE)
            s.score[index * s.capacity + next] = log_probability(
                s.logits + (int64_t)r * s.vocab, s.vocab, s.prompt[index * s.capacity + next]);
    }
    mgl_step_next(s.control, s.table, s.sequences, s.prompt, s.output, s.sequence_count,
                  mgl_limits_first_rows(&call->program->limits), call->program->limits.second_rows,
                  s.capacity, call->epoch->epoch + 1, call->asked);
}
