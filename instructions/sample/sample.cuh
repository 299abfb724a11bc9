/*
 * sample: the next token of each row that wants one, scores, the next row table. Consumers:
 * consume_sample.
 *
 * Greedy: one warp a row over the parts of head. Sampling: draw_row.cuh, one row after the other. A
 * score is logit - (max + log(sum of exp(logit - max))), sum and log in f64. Then one warp moves
 * the sequences on (schedule/step.h), on a copy in shared memory: those without a token whose best
 * logit, which the parts tell of a drawn row too, is no finite number. With one list a lane has a
 * row and a sequence, and fills the rows of the sequence. With two lists a lane has every 32nd, and
 * all threads fill rows: there are more of them, and a prompt may have most. The next table then
 * stands in the place of this epoch's.
 */
#include "instructions/draw/draw.cuh"

/* Sequences that there is machine code for; a program has no more of them than rows. */
enum {
    MOST_SEQUENCES = !MGL_SEVERAL_SEQUENCES ? 1
                     : MGL_ROWS < 64        ? MGL_ROWS
                                            : 64 /* what the host has bits for (schedule/step.h) */
};

/* The room for partial sums, as sample uses it. */
struct sampling {
    union { /* first: own_drawing() */
        drawing draw;
        struct {
            u32 keys[MGL_MOST_LIKELY];
            int ids[MGL_MOST_LIKELY];
            u32 found;
            int lowest[MGL_WARPS];
        } likely;
    };
    int sequences[MOST_SEQUENCES * MGL_SEQUENCE_WORDS];
    int control[MGL_CONTROL_WORDS];
#if !MGL_LISTS
    int table[MGL_ROWS * MGL_TABLE_WORDS];
#endif
    int chosen[MGL_ROWS];
    u32 best[MGL_ROWS];         /* key of a row's best logit, */
    u32 lowest[MGL_ROWS];       /* and the least of those of its parts */
    int asked[MGL_ASKED_WORDS]; /* by the host */
    float tops[MGL_WARPS];
    double logs[MGL_WARPS];
};
static_assert(sizeof(sampling) <= MGL_PARTIAL_BYTES, "sample needs more room than there is");

/* What the exponentials of a row are of: the largest logit, and the logarithm of their sum. */
struct row_sum {
    float top;
    double log;
};

/* In every thread. */
static __device__ __noinline__ row_sum log_sum(const machine m, const float *logits)
{
    sampling &s = *(sampling *)own().partial;
    const values v = values_of(logits, MGL_VOCAB, 1.0f, 0.0f);
    float top = -INFINITY;
    double sum = 0.0;
    each_four<6>(v, [&](const float4 &x, int) {
        top = fmaxf(fmaxf(fmaxf(top, x.x), fmaxf(x.y, x.z)), x.w);
    });
    top = warp_max(top);
    if (m.lane == 0)
        s.tops[m.warp] = top;
    consumer_barrier();
    for (int w = 0; w < MGL_WARPS; w++)
        top = fmaxf(top, s.tops[w]);
    each_four<4>(v, [&](const float4 &x, int id) {
#pragma unroll
        for (int n = 0; n < 4; n++)
            if (ROWS_ARE_VECTORS || id + n < MGL_VOCAB)
                sum += (double)expf(part_of(x, n) - top);
    });
    for (int offset = 16; offset > 0; offset >>= 1)
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, offset);
    if (m.lane == 0)
        s.logs[m.warp] = sum;
    consumer_barrier();
    sum = 0.0;
    for (int w = 0; w < MGL_WARPS; w++)
        sum += s.logs[w];
    consumer_barrier();
    return {top, (double)top + log(sum)};
}

/* What tokens are drawn from. */
static __device__ __forceinline__ const mgl_device_operand &drawn_from(const machine &m)
{
#if MGL_PENALTIES
    return operand(m, MGL_OPERAND(sample, penalized));
#else
    return operand(m, MGL_OPERAND(sample, logits));
#endif
}

/* Whether `draw` has drawn the tokens: they stand behind the parts' ids. */
static __device__ __forceinline__ bool has_draws(const machine &m)
{
    return operand(m, MGL_OPERAND(sample, best_id)).count[1] >
           operand(m, MGL_OPERAND(sample, best_value)).count[1];
}

/* Tokens for rows that are sampled with a temperature, if nobody has drawn them, and scores: the
 * block, row after row. */
static __device__ __noinline__ void draw_and_score(const machine m)
{
    sampling &s = *(sampling *)own().partial;
    const mgl_device_operand &logits = operand(m, MGL_OPERAND(sample, logits)),
                             &prompt = operand(m, MGL_OPERAND(sample, prompt));
    const mgl_device_operand &score = operand(m, MGL_OPERAND(sample, score)),
                             &parts = operand(m, MGL_OPERAND(sample, best_value));
    for (int r = 0; r < rows_of(m); r++) {
        const int *row = own().table + r * MGL_TABLE_WORDS;
        int index = row[MGL_TABLE_SEQUENCE], next = row[MGL_TABLE_POSITION] + 1;
        const int *sequence = s.sequences + index * MGL_SEQUENCE_WORDS;
        if (row[MGL_TABLE_WANT] == MGL_WANT_SCORE) {
            int target = ((const int *)row_of(prompt, index))[next];
            double sum = log_sum(m, row_of(logits, r)).log;
            if (thread_of(m) == 0)
                row_of(score, index)[next] = (float)((double)row_of(logits, r)[target] - sum);
        } else if (row[MGL_TABLE_WANT] == MGL_WANT_SAMPLE && is_drawn(sequence) && !has_draws(m)) {
            int token = draw_row(row_of(drawn_from(m), r), row_of(parts, r), parts.count[1],
                                 sequence, s.best[r], s.lowest[r], random_of(sequence));
            if (thread_of(m) == 0)
                s.chosen[r] = token;
        }
    }
    consumer_barrier();
}

/* The best of every row that wants a token, which is the token of those that are not drawn; and
 * what `draw` has drawn. */
static __device__ void choose_greedy(const machine &m, sampling &s)
{
    const mgl_device_operand &values = operand(m, MGL_OPERAND(sample, best_value)),
                             &ids = operand(m, MGL_OPERAND(sample, best_id));
#pragma unroll 1
    for (int r = m.warp; r < rows_of(m); r += MGL_WARPS) {
        const int *row = own().table + r * MGL_TABLE_WORDS;
        const int *sequence = s.sequences + row[MGL_TABLE_SEQUENCE] * MGL_SEQUENCE_WORDS;
        if (row[MGL_TABLE_WANT] != MGL_WANT_SAMPLE)
            continue;
        const best_parts best = find_best(values, &ids, r);
        if (m.lane != 0)
            continue;
        s.best[r] = best.best;
        s.lowest[r] = best.lowest;
        if (!is_drawn(sequence))
            s.chosen[r] = best.id;
        else if (has_draws(m))
            s.chosen[r] = ((const int *)row_of(ids, r))[values.count[1]];
    }
}

/* The lowest id above `last` whose logit has that key, in every thread. */
static __device__ int next_tied(const machine &m, sampling &s, const float *logits, u32 key,
                                int last)
{
    int lowest = 0x7FFFFFFF;
#pragma unroll 1
    for (int i = thread_of(m); i < MGL_VOCAB; i += THREADS)
        if (i > last && mgl_sampler_key(logits[i]) == key)
            lowest = min(lowest, i);
    lowest = __reduce_min_sync(0xFFFFFFFFu, lowest);
    if (m.lane == 0)
        s.likely.lowest[m.warp] = lowest;
    consumer_barrier();
    for (int w = 0; w < MGL_WARPS; w++)
        lowest = min(lowest, s.likely.lowest[w]);
    consumer_barrier();
    return lowest;
}

/* Has the `count` best of a row's logits, the best being `top`, in s.likely, in no order: those
 * above the cut, and the first of the tied. */
static __device__ void find_likely(const machine &m, sampling &s, const float *logits, float top,
                                   int count)
{
    const values v = values_of(logits, MGL_VOCAB, 1.0f, top);
    if (thread_of(m) == 0) {
        s.draw.row = v;
        s.draw.width = WIDEST_BIN;
        s.draw.cut = {0, 0};
    }
    select_cut((u64)count, 0.0f, false);
    const mgl_sampler_cut cut = s.draw.cut;
    consumer_barrier();
    if (thread_of(m) == 0)
        s.likely.found = 0;
    consumer_barrier();
    each_four<2>(v, [&](const float4 &x, int id) {
#pragma unroll 1
        for (int n = 0; n < 4; n++) {
            const u32 key = mgl_sampler_key(part_of(x, n));
            if (key <= cut.key || (!ROWS_ARE_VECTORS && id + n >= MGL_VOCAB))
                continue;
            const u32 at = atomicAdd(&s.likely.found, 1u);
            s.likely.keys[at] = key;
            s.likely.ids[at] = id + n;
        }
    });
    for (int at = count - (int)cut.ties, last = -1; at < count; at++) {
        last = next_tied(m, s, logits, cut.key, last);
        if (thread_of(m) == 0) {
            s.likely.keys[at] = cut.key;
            s.likely.ids[at] = last;
        }
    }
    consumer_barrier();
}

/* How many of them rank before number `n`. */
static __device__ int rank_of(const sampling &s, int n, int count)
{
    int rank = 0;
#pragma unroll 1
    for (int i = 0; i < count; i++)
        rank += s.likely.keys[i] > s.likely.keys[n] ||
                (s.likely.keys[i] == s.likely.keys[n] && s.likely.ids[i] < s.likely.ids[n]);
    return rank;
}

/* Sequences of the launch. */
static __device__ __forceinline__ int sequence_count()
{
    return MGL_SEVERAL_SEQUENCES ? (int)own().launch.sequences : 1;
}

/* Words that each of them has of prompt, output and stream. */
static __device__ __forceinline__ int capacity()
{
    return (int)own().launch.capacity;
}

/* Counts a token of a sequence. */
static __device__ __forceinline__ void count_token(const machine &m, int index, int token)
{
#if MGL_PENALTIES
    if (token != MGL_NO_TOKEN)
        ((int *)row_of(operand(m, MGL_OPERAND(sample, counts)), index))[token]++;
#endif
}

/* The token that row r was given; of one whose logits are no numbers, none. */
static __device__ __forceinline__ int token_of(const sampling &s, int r)
{
    return mgl_sampler_is_finite(s.best[r]) ? max(0, min(s.chosen[r], MGL_VOCAB - 1))
                                            : (int)MGL_NO_TOKEN;
}

/* Tells the host how likely the chosen tokens are, and the likeliest: behind the stream, before the
 * step. The words may land in any order, and behind the token's: none of them is 0. */
static __device__ __noinline__ void tell_likely(machine m)
{
    sampling &s = *(sampling *)own().partial;
    const mgl_device_operand &rows = operand(m, MGL_OPERAND(sample, logits));
    const int asked = s.asked[MGL_ASKED_LIKELY], count = min(asked, MGL_VOCAB);
    for (int r = 0; r < rows_of(m); r++) {
        const int *row = own().table + r * MGL_TABLE_WORDS;
        const int index = row[MGL_TABLE_SEQUENCE], token = token_of(s, r);
        if (row[MGL_TABLE_WANT] != MGL_WANT_SAMPLE || token == MGL_NO_TOKEN)
            continue;
        const float *logits = row_of(rows, r);
        const row_sum all = log_sum(m, logits);
        const double sum = all.log;
        find_likely(m, s, logits, all.top, count);
        const int produced = s.sequences[index * MGL_SEQUENCE_WORDS + MGL_SEQUENCE_PRODUCED];
        const long long at = (long long)index * capacity() + produced;
        int *to = (int *)own().launch.stream + (long long)sequence_count() * capacity() +
                  at * (1 + 2 * asked);
        const int n = thread_of(m);
        if (n < count) {
            const int rank = rank_of(s, n, count), id = s.likely.ids[n];
            store_system(to + MGL_LIKELY_IDS + rank, id + 1);
            store_system(to + MGL_LIKELY_IDS + asked + rank,
                         mgl_sampler_word((float)((double)logits[id] - sum)));
        }
        if (n == 0)
            store_system(to + MGL_LIKELY_OWN,
                         mgl_sampler_word((float)((double)logits[token] - sum)));
        consumer_barrier();
    }
}

/* Takes the chosen token of a row, if it wants one, and leaves word of it for the host. */
static __device__ void take_token(const machine &m, sampling &s, int r)
{
    const int *row = own().table + r * MGL_TABLE_WORDS;
    own().told[r].token = 0;
    if (s.asked[MGL_ASKED_ABORT] || row[MGL_TABLE_WANT] != MGL_WANT_SAMPLE)
        return;
    int index = row[MGL_TABLE_SEQUENCE], token = token_of(s, r);
    int produced = s.sequences[index * MGL_SEQUENCE_WORDS + MGL_SEQUENCE_PRODUCED];
    mgl_step_take(own().table, s.sequences, (int *)operand(m, MGL_OPERAND(sample, output)).at,
                  capacity(), r, token);
    count_token(m, index, token);
    own().told[r] = {index * capacity() + produced, token + 1}; /* 0: nothing, of MGL_NO_TOKEN */
}

/* The sum of what the lanes before this one have; a lane for each sequence. */
static __device__ int sum_before(const machine &m, int value)
{
    int sum = 0;
#pragma unroll
    for (int lane = 0; lane < (MOST_SEQUENCES < 32 ? (int)MOST_SEQUENCES : 32); lane++) {
        int other = __shfl_sync(0xFFFFFFFFu, value, lane);
        sum += lane < m.lane ? other : 0;
    }
    return sum;
}

/* Rows that the next epoch may have: of one list, or of the one that was chosen before. */
static __device__ __forceinline__ int most_rows()
{
#if MGL_LISTS
    return own().control[MGL_CONTROL_NEXT] ? MGL_ROWS : MGL_FIRST_ROWS;
#else
    return MGL_ROWS;
#endif
}

#if MGL_LISTS

/* Has those that are done end; how many sequences run. */
static __device__ int end_sequences(const machine &m, sampling &s)
{
    int running = 0;
    for (int from = 0; from < sequence_count(); from += 32) {
        const int at = from + m.lane;
        const bool runs =
            at < sequence_count() &&
            mgl_step_runs(s.sequences + at * MGL_SEQUENCE_WORDS, mgl_step_asked(s.asked, at));
        running += __popc(__ballot_sync(0xFFFFFFFFu, runs));
    }
    return running;
}

/* Gives sequence `at` its rows of the next table: their sequence and position. */
static __device__ void place_rows(int *sequence, int at, int first, int rows)
{
    const int position = sequence[MGL_SEQUENCE_LENGTH];
    int *row = own().table + first * MGL_TABLE_WORDS;
    for (int n = 0; n < rows; n++, row += MGL_TABLE_WORDS) {
        row[MGL_TABLE_SEQUENCE] = at;
        row[MGL_TABLE_POSITION] = position + n;
    }
    sequence[MGL_SEQUENCE_LENGTH] = position + rows;
}

/* Takes the chosen tokens, deals the rows of the next epoch and chooses the list behind it, as
 * mgl_step_next does; one warp, a lane for every 32nd row (of which no two that are sampled belong
 * to one sequence) and then for every 32nd sequence. */
static __device__ void step(const machine &m, sampling &s)
{
    int first = 0, before = 0, demand = 0; /* of the sequences before those at hand */
    for (int r = m.lane; r < rows_of(m); r += 32)
        take_token(m, s, r);
    __syncwarp();
    const int spare = most_rows() - end_sequences(m, s);
    for (int from = 0; from < sequence_count(); from += 32) {
        const int at = min(from + m.lane, sequence_count() - 1);
        int *q = s.sequences + at * MGL_SEQUENCE_WORDS;
        const bool runs =
            from + m.lane < sequence_count() && q[MGL_SEQUENCE_STATE] == MGL_STATE_RUNNING;
        const int more = runs ? mgl_step_more(q) : 0;
        const int share = mgl_step_share(more, before + sum_before(m, more), spare);
        const int rows = runs ? 1 + share : 0;
        const int place = first + sum_before(m, rows);
        if (rows > 0)
            place_rows(q, at, place, rows);
        first += (int)__reduce_add_sync(0xFFFFFFFFu, (u32)rows);
        before += (int)__reduce_add_sync(0xFFFFFFFFu, (u32)more);
        demand += (int)__reduce_add_sync(0xFFFFFFFFu, runs ? 1 + (u32)mgl_step_more(q) : 0);
    }
    if (!is_first_lane())
        return;
    mgl_step_enter(s.control, first, own().control[MGL_CONTROL_EPOCH] + 1);
    s.control[MGL_CONTROL_LIST] = own().control[MGL_CONTROL_NEXT];
    s.control[MGL_CONTROL_NEXT] = mgl_step_list(demand, MGL_FIRST_ROWS, MGL_ROWS);
}

/* Fills a row of the next table that has its sequence and position. The sequence has gone on
 * beyond it: the row's is a copy, where it was. */
static __device__ void fill_row(const machine &m, const sampling &s, int *row)
{
    const int at = row[MGL_TABLE_SEQUENCE];
    const int *prompt = (const int *)operand(m, MGL_OPERAND(sample, prompt)).at,
              *output = (const int *)operand(m, MGL_OPERAND(sample, output)).at;
    int q[MGL_SEQUENCE_WORDS];
#pragma unroll
    for (int i = 0; i < MGL_SEQUENCE_WORDS; i++)
        q[i] = s.sequences[at * MGL_SEQUENCE_WORDS + i];
    q[MGL_SEQUENCE_LENGTH] = row[MGL_TABLE_POSITION];
    mgl_step_row(row, q, at, prompt + at * capacity(), output + at * capacity());
}

/* Fills the rows of the next table, a thread each, and hands them on. */
static __device__ void write_table(const machine &m, const sampling &s)
{
    int *to = (int *)operand(m, MGL_OPERAND(sample, table)).at;
    for (int r = thread_of(m); r < s.control[MGL_CONTROL_ROWS]; r += THREADS) {
        int *row = own().table + r * MGL_TABLE_WORDS;
        fill_row(m, s, row);
        for (int i = 0; i < MGL_TABLE_WORDS; i++)
            to[r * MGL_TABLE_WORDS + i] = row[i];
    }
}

#else

/* Takes the chosen tokens and makes the next epoch's table as mgl_step_next does; one warp, a lane
 * for each row (of which no two that are sampled belong to one sequence) and then for each
 * sequence. */
static __device__ void step(const machine &m, sampling &s)
{
    if (m.lane < rows_of(m))
        take_token(m, s, m.lane);
    __syncwarp();
    const int count = sequence_count(), at = min(m.lane, count - 1), from = at * capacity();
    int *q = s.sequences + at * MGL_SEQUENCE_WORDS;
    const bool runs = m.lane < count && mgl_step_runs(q, mgl_step_asked(s.asked, at));
    const int more = runs ? mgl_step_more(q) : 0, before = sum_before(m, more);
    const int spare = most_rows() - __popc(__ballot_sync(0xFFFFFFFFu, runs));
    const int rows = runs ? 1 + mgl_step_share(more, before, spare) : 0;
    const int first = sum_before(m, rows);
#pragma unroll 1
    for (int n = 0; n < rows; n++)
        mgl_step_row(s.table + (first + n) * MGL_TABLE_WORDS, q, at,
                     (const int *)operand(m, MGL_OPERAND(sample, prompt)).at + from,
                     (const int *)operand(m, MGL_OPERAND(sample, output)).at + from);
    if (m.lane == count - 1)
        mgl_step_enter(s.control, first + rows, (int)m.epoch + 1);
}

#endif

/* A few words, by all threads. */
static __device__ void copy_words(const machine &m, int *to, const int *from, int count)
{
#pragma unroll 1
    for (int i = thread_of(m); i < count; i += THREADS)
        to[i] = from[i];
}

/* Out of line: its registers are not those of the loop. */
FAR void sample_apart(machine m);

#if IN_OBJECT(SAMPLE)

FAR void sample_apart(machine m)
{
#if MGL_DRAWS
    if (task_of(m)->op == OP_DRAW)
        return draw_share(m);
#endif
    sampling &s = *(sampling *)own().partial;
    copy_words(m, s.sequences, (const int *)operand(m, MGL_OPERAND(sample, sequence)).at,
               sequence_count() * MGL_SEQUENCE_WORDS);
#if !MGL_LISTS
    copy_words(m, s.table, own().table, MGL_ROWS * MGL_TABLE_WORDS);
#endif
#pragma unroll 1
    for (int i = thread_of(m); i < MGL_CONTROL_WORDS; i += THREADS)
        s.control[i] = 0;
    consumer_barrier();
    const int word = THREADS - 1 - thread_of(m); /* of what the host says: one load of one warp */
    int asked = 0; /* the host's memory is far away: what it says is asked for, and meanwhile ... */
    if (word < MGL_ASKED_WORDS)
        asked = load_system((const int *)own().launch.host + MGL_HOST_ASKED(word));
    choose_greedy(m, s);
    if (word < MGL_ASKED_WORDS)
        s.asked[word] = asked;
    consumer_barrier();
    draw_and_score(m);
    if (s.asked[MGL_ASKED_LIKELY])
        tell_likely(m);
    if (m.warp == 0)
        step(m, s);
    consumer_barrier();
    copy_words(m, (int *)operand(m, MGL_OPERAND(sample, control)).at, s.control, MGL_CONTROL_WORDS);
#if MGL_LISTS
    write_table(m, s);
#else
    copy_words(m, (int *)operand(m, MGL_OPERAND(sample, table)).at, s.table,
               MGL_ROWS * MGL_TABLE_WORDS);
#endif
    copy_words(m, (int *)operand(m, MGL_OPERAND(sample, sequence_next)).at, s.sequences,
               sequence_count() * MGL_SEQUENCE_WORDS);
}

#endif

static __device__ __forceinline__ void consume_sample(machine &m)
{
    wait_start(m);
    sample_apart(m);
}
