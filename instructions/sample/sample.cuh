/*
 * sample: the next token of each row that wants one, scores, and the next row table. The consumers
 * run consume_sample.
 *
 * Greedy sampling uses one warp for a row, over the parts of head. Draws use the whole block, row
 * by row (draw_row.cuh). A score is logit - (max + log(sum of exp(logit - max))), sum and log in
 * f64. Then one warp advances the sequences (schedule/step.h), on a copy in shared memory. A row
 * whose best logit is not finite gets no token; the parts give the best logit of drawn rows too.
 * With one list, a lane handles one row and one sequence, and fills the sequence's rows. With two
 * lists, a lane handles every 32nd row and sequence, and all threads fill rows: there are more
 * rows, and one prompt may have most of them. The next table then replaces this epoch's table.
 */
#include "instructions/draw/draw.cuh"

/* Maximum sequences of the compiled code; a program has at most as many sequences as rows. */
enum {
    MOST_SEQUENCES = !MGL_MANY_SEQUENCES ? 1
                     : MGL_ROWS < 64     ? MGL_ROWS
                                         : 64 /* bits of the host's masks */
};

/* Layout of the partial-sum memory in sample. */
struct sampling {
    union { /* at offset 0: own_drawing() */
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
    u32 best[MGL_ROWS];         /* key of a row's best logit */
    u32 lowest[MGL_ROWS];       /* least key of its parts' bests */
    int asked[MGL_ASKED_WORDS]; /* requests of the host */
    float tops[MGL_WARPS];
    double logs[MGL_WARPS];
};
static_assert(sizeof(sampling) <= MGL_PARTIAL_BYTES, "sample needs more room than there is");

/* The largest logit of a row, and the log of the sum of exponentials. */
struct row_sum {
    float top;
    double log;
};

/* Computes both, in every thread. */
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

/* The logits for draws. */
static __device__ __forceinline__ const mgl_device_operand &drawn_from(const machine &m)
{
#if MGL_PENALTIES
    return operand(m, MGL_OPERAND(sample, penalized));
#else
    return operand(m, MGL_OPERAND(sample, logits));
#endif
}

/* Whether `draw` tasks have drawn the tokens, which then follow the parts' ids. */
static __device__ __forceinline__ bool has_draws(const machine &m)
{
    return operand(m, MGL_OPERAND(sample, best_id)).count[1] >
           operand(m, MGL_OPERAND(sample, best_value)).count[1];
}

/* Draws tokens for rows with a temperature, unless draw tasks did, and computes scores: the
 * block handles row after row. */
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

/* Finds the best of every row that wants a token, which is the token if the row is not drawn;
 * copies tokens that `draw` has drawn. */
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

/* Puts the `count` best of a row's logits into s.likely, unordered: those above the cut, and the
 * first of the ties. `top`: the best logit. */
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

/* The rank of number `n` among them. */
static __device__ int rank_of(const sampling &s, int n, int count)
{
    int rank = 0;
#pragma unroll 1
    for (int i = 0; i < count; i++)
        rank += s.likely.keys[i] > s.likely.keys[n] ||
                (s.likely.keys[i] == s.likely.keys[n] && s.likely.ids[i] < s.likely.ids[n]);
    return rank;
}

/* Number of sequences of the launch. */
static __device__ __forceinline__ int sequence_count()
{
    return MGL_MANY_SEQUENCES ? (int)own().launch.sequences : 1;
}

/* Words of each sequence in prompt, output and stream. */
static __device__ __forceinline__ int capacity()
{
    return (int)own().launch.capacity;
}

/* Counts a token of a sequence, for penalties. */
static __device__ __forceinline__ void count_token(const machine &m, int index, int token)
{
#if MGL_PENALTIES
    if (token != MGL_NO_TOKEN)
        ((int *)row_of(operand(m, MGL_OPERAND(sample, counts)), index))[token]++;
#endif
}

/* The token chosen for row r; none if its logits are not finite. */
static __device__ __forceinline__ int token_of(const sampling &s, int r)
{
    return mgl_sampler_is_finite(s.best[r]) ? max(0, min(s.chosen[r], MGL_VOCAB - 1))
                                            : (int)MGL_NO_TOKEN;
}

/* Reports to the host the log-probabilities of the chosen and the most likely tokens, after the
 * stream's words in memory, before the step. The words may arrive in any order, even after the
 * token's word: none is 0. */
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

/* Takes the chosen token of a row that wants one, and records it for the host. */
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
    own().told[r] = {index * capacity() + produced, token + 1}; /* MGL_NO_TOKEN gives 0: nothing */
}

/* Exclusive prefix sum over lanes, with one lane for each sequence. */
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

/* Maximum rows of the next epoch: of the only list, or of the list chosen one epoch ago. */
static __device__ __forceinline__ int most_rows()
{
#if MGL_LISTS
    return own().control[MGL_CONTROL_NEXT] ? MGL_ROWS : MGL_FEW;
#else
    return MGL_ROWS;
#endif
}

#if MGL_LISTS

/* Ends completed sequences. Returns the number of running sequences. */
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

/* Assigns rows of the next table to sequence `at`: writes their sequence and position. */
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

/* Takes the chosen tokens, distributes the rows of the next epoch and chooses the list of the
 * epoch after it, as mgl_step_next does. Run by one warp: a lane handles every 32nd row (no two
 * sampled rows belong to one sequence), then every 32nd sequence. */
static __device__ void step(const machine &m, sampling &s)
{
    int first = 0, before = 0, demand = 0; /* sums over the sequences of earlier rounds */
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
    s.control[MGL_CONTROL_NEXT] = mgl_step_list(demand, MGL_FEW, MGL_ROWS);
}

/* Fills a row of the next table that has its sequence and position. The sequence's length has
 * already advanced, so the row uses a copy with its own position. */
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

/* Fills the rows of the next table, one thread a row, and stores them for other queues. */
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

/* Takes the chosen tokens and makes the next epoch's table as mgl_step_next does. Run by one
 * warp: a lane handles one row (no two sampled rows belong to one sequence), then one sequence. */
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

/* Copies a few words with all threads. */
static __device__ void copy_words(const machine &m, int *to, const int *from, int count)
{
#pragma unroll 1
    for (int i = thread_of(m); i < count; i += THREADS)
        to[i] = from[i];
}

/* Not inlined, to keep its registers separate from those of the main loop. */
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
    const int word = THREADS - 1 - thread_of(m); /* word of the host's requests; the reversed
                                                    index puts all loads in one warp */
    int asked = 0; /* host memory is slow: the load overlaps with choose_greedy */
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
