/*
 * Products of 16-bit weights for 3 to 8 rows of flagged input that do not go the skinny way (which
 * 4 rows do without low parts, if the activation buffer has room): what a batch decodes with. The
 * same sums in the same order as sum_general makes (linear/linear.cuh); what differs is how the
 * input gets to the tensor cores.
 *
 * Of a block of 32 columns an MMA's B operand has in lane l, with n = l / 4 and q = l % 4, two
 * words of the four that 16 bytes q of a row are in 16 bits: words 0 and 2, whose products are rows
 * 0 to 7 of the sums, or words 1 and 3, whose are rows 8 to 15.
 *
 *   16-bit input  lane l asks memory for 16 bytes q of row n. One MMA has words 0 and 2 of all 8
 *                 rows, another words 1 and 3: each lane has the operands of its own.
 *   f32 input     lane l asks for half of 16 bytes q (the first, n even, or the second: whole
 *                 sectors of memory) of rows n / 2 and n / 2 + 4, converts them, and has one word
 *                 exchanged with lane l ^ 4: then it has words 0 and 2 (n even) or 1 and 3. One MMA
 *                 has rows 0 to 3, another rows 4 to 7, and two more the low parts.
 *
 * Nobody else ever needs a lane's part of the operands. The blocks of a run that registers have
 * room for stay there; those of longer runs stand in the activation buffer, each lane's in its own
 * places, 16 bytes of each lane side by side: no row of the input stands there as a row.
 *
 * Before a warp asks for all that, it waits for half of one row: the others are written at about
 * the same time, and 8 rows' words asked for again and again would fill the ways to L2. Two parts
 * of the run are on their way at once: while one is converted, the next one comes.
 */
#ifndef MGL_DEVICE_LINEAR_BATCH_CUH
#define MGL_DEVICE_LINEAR_BATCH_CUH

#include "vm/cuda/device/linear/products.cuh"

/* region: launch */
/* need shared: 0 */

/* region: macros */
enum {
    BATCH_BLOCKS = 8, /* of a warp that are loaded at once, at most */
    ENOUGH_LANES = 16 /* whose words of one row are there when all rows are asked for */
};

/* How a warp goes through row groups of KB blocks. */
template <int KB, bool LOW> struct batch_path {
    static constexpr int RUN = (KB + MGL_WARPS - 1) / MGL_WARPS;
    static constexpr mgl_tape_order P = mgl_tape_order_of(KB, MGL_WARPS);
    static constexpr int PARTS = LOW ? 2 : 1; /* 16 bytes each, of a lane and block */
    /* blocks whose input is on its way at once */
    static constexpr int ASKED = MGL_BATCH_ASKED(PARTS);
    /* and whose stays in registers: the last ones of the run */
    static constexpr int HELD = RUN < MGL_BATCH_HELD(PARTS) ? RUN : MGL_BATCH_HELD(PARTS);
    static constexpr int BUFFERED = RUN - HELD; /* the others */
    /* blocks that are waited for and converted in one turn: all turns but the first have as many */
    static constexpr int TURN = ASKED / 2;
    static constexpr int TURNS = (RUN + TURN - 1) / TURN;
    static constexpr int FACTORS =
        LOW ? RUN * BLOCK_COLUMNS * 4 : 0; /* bytes: the norm's weights */
    static constexpr int BYTES =
        BUFFERED * PARTS * MGL_BLOCK_BYTES + FACTORS; /* of a warp, in the activation buffer */
    static constexpr int FIT = RING_BLOCKS / 2 / MGL_WARPS; /* blocks of a warp in half a ring */
    static constexpr int MOST = FIT < BATCH_BLOCKS ? FIT : BATCH_BLOCKS;
    static constexpr int STEPS = MOST < 1 ? 1 : (RUN + MOST - 1) / MOST;
    static constexpr int EACH = (RUN + STEPS - 1) / STEPS;

    /* The first block of a turn; of number TURNS the end. */
    static constexpr int from(int turn)
    {
        return turn <= 0 ? 0 : turn >= TURNS ? RUN : RUN - (TURNS - turn) * TURN;
    }

    /* every warp that has blocks has as many */
    static constexpr bool FITS =
        BATCH_PATH && P.of_last == RUN && BYTES * P.warps <= MGL_ACTIVATION_BYTES;
};

/* region: device */
/* ---- the input --------------------------------------------------------------------------------
 */

/* This lane's part of the input. */
struct lane_rows {
    const u8 *at[2];     /* its bytes of block 0 of the run: of one row, or (f32) of two */
    bool odd;            /* n is */
    float squares[2][8]; /* of the two rows: sums of each eighth block so far, in odd lanes */
};

/* What a lane asks memory for of a block. */
template <bool WIDE> struct piece {
    enum {
        COUNT = WIDE ? 2 : 1,
        BYTES = WIDE ? 128 : 64 /* from one block to the next */
    };
    uint4 words[COUNT];
};

template <bool WIDE>
static __device__ __forceinline__ void load_piece(const lane_rows &x, int b, u64 policy,
                                                  piece<WIDE> &to)
{
#pragma unroll
    for (int h = 0; h < piece<WIDE>::COUNT; h++)
        to.words[h] = load_words(x.at[h] + b * piece<WIDE>::BYTES, policy);
}

template <int N, bool WIDE> static __device__ __forceinline__ u32 largest(const piece<WIDE> *p)
{
    u32 most = 0;
#pragma unroll
    for (int i = 0; i < N; i++)
#pragma unroll
        for (int h = 0; h < piece<WIDE>::COUNT; h++)
            most = max(most, largest(p[i].words[h]));
    return most;
}

/* Waits until most lanes find their words of one row of this warp's run; the rest is on its way. */
template <int KB, bool WIDE>
static __device__ __forceinline__ void wait_row(const machine &m, const input &in, int row)
{
    constexpr int WORDS = (KB + MGL_WARPS - 1) / MGL_WARPS * (WIDE ? 8 : 4), N = (WORDS + 31) / 32;
    const u8 *at = in.x.at + mapped(in, row) * in.x.stride + (m.warp * WORDS + m.lane) * 16;
    const u64 policy = keep_policy();
    await_flags<WHOLE_WARP>(m, MGL_PRODUCT_INPUT, [&] {
        u32 most = 0;
        uint4 w[N] = {};
#pragma unroll
        for (int i = 0; i < N; i++)
            if (WORDS % 32 == 0 || m.lane + 32 * i < WORDS)
                w[i] = load_words(at + 32 * 16 * i, policy);
#pragma unroll
        for (int i = 0; i < N; i++)
            most = max(most, largest(w[i]));
        return __popc(__ballot_sync(0xFFFFFFFFu, most != 0xFFFFFFFFu)) >= ENOUGH_LANES;
    });
}

/* Asks again for what is missing of N blocks, the first of them number `from`. */
template <int N, bool WIDE>
static __device__ __forceinline__ void ask_again(const lane_rows &x, int from, u64 policy,
                                                 piece<WIDE> *p)
{
#pragma unroll
    for (int i = 0; i < N; i++)
#pragma unroll
        for (int h = 0; h < piece<WIDE>::COUNT; h++)
            if (largest(p[i].words[h]) == 0xFFFFFFFFu)
                p[i].words[h] = load_words(x.at[h] + (from + i) * piece<WIDE>::BYTES, policy);
}

/* Waits until all blocks of turn T are there; what is missing of the next turn's is asked for again
 * as well. */
template <int KB, bool LOW, int T>
static __device__ __forceinline__ void await_turn(const machine &m, const lane_rows &x,
                                                  piece<LOW> *now, piece<LOW> *next)
{
    typedef batch_path<KB, LOW> C;
    constexpr int FROM = C::from(T), MIDDLE = C::from(T + 1), END = C::from(T + 2);
    const u64 policy = keep_policy();
    await_flags<WHOLE_WARP>(m, MGL_PRODUCT_INPUT, [&] {
        if (__all_sync(0xFFFFFFFFu, largest<MIDDLE - FROM>(now) != 0xFFFFFFFFu))
            return true;
        ask_again<MIDDLE - FROM>(x, FROM, policy, now);
        ask_again<END - MIDDLE>(x, MIDDLE, policy, next);
        return false;
    });
}

/* A lane's two words of the operand from the two that it has of a row's 16 bytes: the first two (n
 * even), or the last two. The neighbour that shares them has the other two. */
static __device__ __forceinline__ uint2 exchanged(bool odd, uint2 mine)
{
    const u32 other = __shfl_xor_sync(0xFFFFFFFFu, odd ? mine.x : mine.y, 4);
    return odd ? make_uint2(other, mine.y) : make_uint2(mine.x, other);
}

/* Adds the squares of four values to those of the blocks before. A row's 16 bytes are added up from
 * the first value to the last, as few rows' are: first by the even lane, then by the odd one. */
static __device__ __forceinline__ float add_squares(bool begins, float before, const float *v)
{
    float sum = begins ? 0.0f : __shfl_xor_sync(0xFFFFFFFFu, before, 4);
#pragma unroll
    for (int i = 0; i < 4; i++)
        sum = fmaf(v[i], v[i], sum);
    sum = __shfl_xor_sync(0xFFFFFFFFu, sum, 4);
#pragma unroll
    for (int i = 0; i < 4; i++)
        sum = fmaf(v[i], v[i], sum);
    return sum;
}

static __device__ __forceinline__ float first_of(u32 pair)
{
    return MGL_WEIGHT == DTYPE_F16 ? f16_float(pair & 0xFFFFu) : bf16_float(pair & 0xFFFFu);
}

static __device__ __forceinline__ float second_of(u32 pair)
{
    return MGL_WEIGHT == DTYPE_F16 ? f16_float(pair >> 16) : __uint_as_float(pair & 0xFFFF0000u);
}

/* Four values rounded, and what that took from them. */
static __device__ __forceinline__ void split_four(const float *v, uint2 &high, uint2 &low)
{
    high = make_uint2(pack_pair(MGL_WEIGHT, v[0], v[1]), pack_pair(MGL_WEIGHT, v[2], v[3]));
    low = make_uint2(pack_pair(MGL_WEIGHT, v[0] - first_of(high.x), v[1] - second_of(high.x)),
                     pack_pair(MGL_WEIGHT, v[2] - first_of(high.y), v[3] - second_of(high.y)));
}

static __device__ __forceinline__ uint4 of_both_rows(const uint2 *v)
{
    return make_uint4(v[0].x, v[0].y, v[1].x, v[1].y);
}

/* Makes this lane's operands of block b from its values of both rows. Those of high parts first. g:
 * the norm's weights, if there is one. */
template <bool NORM>
static __device__ __forceinline__ void make_operands(lane_rows &x, int b, const float4 &g,
                                                     const piece<true> &raw, uint4 *to)
{
    uint2 high[2], low[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
        float v[4];
        format<DTYPE_F32>::unpack(raw.words[h], v);
        if (NORM) {
            x.squares[h][b % 8] = add_squares(b < 8, x.squares[h][b % 8], v);
            v[0] *= g.x;
            v[1] *= g.y;
            v[2] *= g.z;
            v[3] *= g.w;
        }
        split_four(v, high[h], low[h]);
        high[h] = exchanged(x.odd, high[h]);
        low[h] = exchanged(x.odd, low[h]);
    }
    to[0] = of_both_rows(high);
    to[1] = of_both_rows(low);
}

/* The same of 16 bits: the words of the first MMA first. */
template <bool NORM>
static __device__ __forceinline__ void make_operands(lane_rows &, int, const float4 &,
                                                     const piece<false> &raw, uint4 *to)
{
    to[0] = middle_swapped(raw.words[0]);
}

/* A warp's part of the activation buffer. */
template <class STREAM_LAYOUT> static __device__ __forceinline__ u8 *buffer_of(const machine &m)
{
    return activation_buffer() + m.warp * STREAM_LAYOUT::BYTES;
}

/* This lane's operands of block b, which is one of those in the activation buffer. */
template <class STREAM_LAYOUT>
static __device__ __forceinline__ uint4 *buffered_operand(const machine &m, int b, int part)
{
    return (uint4 *)(buffer_of<STREAM_LAYOUT>(m) +
                     (b * STREAM_LAYOUT::PARTS + part) * MGL_BLOCK_BYTES) +
           m.lane;
}

/* The norm's weights of this warp's run, in the activation buffer. */
template <class STREAM_LAYOUT>
static __device__ __forceinline__ float4 *factors_of(const machine &m)
{
    return (float4 *)(buffer_of<STREAM_LAYOUT>(m) +
                      STREAM_LAYOUT::BUFFERED * STREAM_LAYOUT::PARTS * MGL_BLOCK_BYTES);
}

/* What a lane asks for of them: before the rows, which are waited for longer. */
template <class STREAM_LAYOUT> struct factors {
    enum { COUNT = STREAM_LAYOUT::FACTORS / 16, N = (COUNT + 31) / 32 };
    float4 g[N > 0 ? N : 1];
};

template <class STREAM_LAYOUT>
static __device__ __forceinline__ void ask_factors(const machine &m, const input &in,
                                                   factors<STREAM_LAYOUT> &f)
{
#pragma unroll
    for (int i = 0; i < factors<STREAM_LAYOUT>::N; i++) {
        const int number = m.lane + 32 * i;
        f.g[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (in.g &&
            (factors<STREAM_LAYOUT>::COUNT % 32 == 0 || number < factors<STREAM_LAYOUT>::COUNT))
            f.g[i] = ((const float4 *)in.g)[m.warp * factors<STREAM_LAYOUT>::COUNT + number];
    }
}

template <class STREAM_LAYOUT>
static __device__ __forceinline__ void buffer_factors(const machine &m,
                                                      const factors<STREAM_LAYOUT> &f)
{
#pragma unroll
    for (int i = 0; i < factors<STREAM_LAYOUT>::N; i++)
        if (factors<STREAM_LAYOUT>::COUNT % 32 == 0 ||
            m.lane + 32 * i < factors<STREAM_LAYOUT>::COUNT)
            factors_of<STREAM_LAYOUT>(m)[m.lane + 32 * i] = f.g[i];
    __syncwarp();
}

/* Makes this lane's operands of N blocks, the first of them number FROM: the last blocks of the run
 * go to `held`, the others to the activation buffer. */
template <class STREAM_LAYOUT, bool NORM, int FROM, int N, bool WIDE>
static __device__ __forceinline__ void convert_blocks(const machine &m, lane_rows &x,
                                                      const piece<WIDE> *raw, uint4 *held)
{
    constexpr int PARTS = STREAM_LAYOUT::PARTS;
    const float4 *g =
        factors_of<STREAM_LAYOUT>(m) + FROM * 8 + (m.lane & 3) * 2 + (m.lane >> 2 & 1);
#pragma unroll
    for (int i = 0; i < N; i++) {
        const int b = FROM + i;
        uint4 made[PARTS];
        make_operands<NORM>(x, b, NORM ? g[i * 8] : float4(), raw[i], made);
#pragma unroll
        for (int k = 0; k < PARTS; k++)
            if (b >= STREAM_LAYOUT::BUFFERED)
                held[(b < STREAM_LAYOUT::BUFFERED ? 0 : b - STREAM_LAYOUT::BUFFERED) * PARTS + k] =
                    made[k];
            else
                *buffered_operand<STREAM_LAYOUT>(m, b, k) = made[k];
    }
}

/* Asks for the blocks of turn T. */
template <int KB, bool LOW, int T>
static __device__ __forceinline__ void ask_turn(const lane_rows &x, piece<LOW> *to)
{
    constexpr int FROM = batch_path<KB, LOW>::from(T), END = batch_path<KB, LOW>::from(T + 1);
    const u64 policy = keep_policy();
#pragma unroll
    for (int i = 0; i < END - FROM; i++)
        load_piece(x, FROM + i, policy, to[i]);
}

/* Turn T and those behind it; T and the next are on their way. */
template <int KB, bool LOW, bool NORM, int T = 0>
static __device__ __forceinline__ void gather_turns(const machine &m, lane_rows &x, piece<LOW> *now,
                                                    piece<LOW> *next, uint4 *held)
{
    typedef batch_path<KB, LOW> C;
    constexpr int FROM = C::from(T), N = C::from(T + 1) - FROM;
    await_turn<KB, LOW, T>(m, x, now, next);
    convert_blocks<C, NORM, FROM, N>(m, x, now, held);
    ask_turn<KB, LOW, T + 2>(x, now);
    if constexpr (T + 1 < C::TURNS)
        gather_turns<KB, LOW, NORM, T + 1>(m, x, next, now, held);
}

/* All turns. The norm's weights go to the activation buffer while the first are on their way. */
template <int KB, bool LOW, bool NORM>
static __device__ __forceinline__ void
gather_blocks(const machine &m, lane_rows &x, const factors<batch_path<KB, LOW>> &f, uint4 *held)
{
    piece<LOW> first[batch_path<KB, LOW>::TURN], second[batch_path<KB, LOW>::TURN];
    ask_turn<KB, LOW, 0>(x, first);
    ask_turn<KB, LOW, 1>(x, second);
    if (NORM)
        buffer_factors(m, f);
    gather_turns<KB, LOW, NORM>(m, x, first, second, held);
}

/* Leaves this warp's sums of squares: added up over its 16 bytes as warp_sum adds those of few
 * rows. */
static __device__ __forceinline__ void write_all_squares(const machine &m, const lane_rows &x,
                                                         int count)
{
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const float *s = x.squares[h];
        float sum = ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 2);
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 1);
        const int row = m.lane / 8 + 4 * h;
        if (m.lane % 8 == 4 && row < count)
            own().sums[row * MGL_WARPS + m.warp] = sum;
    }
}

/* Where this lane's bytes of the run begin. Rows past the last repeat it. */
template <int KB, bool LOW>
static __device__ __forceinline__ lane_rows lane_rows_of(const machine &m, const input &in)
{
    const int n = m.lane >> 2, odd = n & 1, quarter = (m.lane & 3) * 8;
    const int column = m.warp * batch_path<KB, LOW>::RUN * BLOCK_COLUMNS + quarter;
    lane_rows x = {};
    x.odd = odd != 0;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int row = min(LOW ? n / 2 + 4 * h : n, in.count - 1);
        x.at[h] =
            in.x.at + mapped(in, row) * in.x.stride + (LOW ? (column + odd * 4) * 4 : column * 2);
    }
    return x;
}

/* This warp's run of all rows. */
template <int KB, bool LOW>
static __device__ __forceinline__ void gather_batch(const machine &m, const input &in, uint4 *held)
{
    factors<batch_path<KB, LOW>> f;
    ask_factors(m, in, f);
    lane_rows x = lane_rows_of<KB, LOW>(m, in);
    const bool norm =
        __any_sync(0xFFFFFFFFu, in.g != nullptr); /* as the compiler knows it: of all */
    wait_row<KB, LOW>(m, in, in.count - 1);
    if (LOW && norm) {
        gather_blocks<KB, LOW, LOW>(m, x, f, held);
        write_all_squares(m, x, in.count);
    } else {
        gather_blocks<KB, LOW, false>(m, x, f, held);
    }
}

/* ---- products ---------------------------------------------------------------------------------
 */

/* Where a warp stands on the tape, and in the slots. */
struct position {
    u32 block;  /* of the epoch's tape: the next row group's first */
    u32 at;     /* bytes from the ring's start to this lane's part of the warp's next block */
    int each;   /* row groups of a slot */
    int left;   /* that are in the slot at hand */
    u32 seen;   /* pages below have landed: the landing warp's word, as it was */
    int stride; /* floats from one row group to the next */
    int place;  /* floats from a slot's start to where this lane leaves its sum of the first row */
    bool leaves[2]; /* there are rows of its two sums */
};

/* Waits until all pages below `end` have landed, most often by what was seen while the blocks
 * before them were worked on. */
static __device__ __forceinline__ void await_pages(machine &m, const position &p, u32 end)
{
    if (__all_sync(0xFFFFFFFFu, (int)(end - p.seen) <= 0))
        return;
    m.known = (int)(m.freed - m.known) > 0 ? m.freed : m.known; /* what is let go of has landed */
    ring_wait(m, end);
}

/* Adds blocks FROM and on of the runs, so many at once, when these have landed; its pages are let
 * go of as soon as they are in registers. */
template <int KB, bool LOW, int FROM = 0>
static __device__ __forceinline__ void add_batch(machine &m, position &p, const uint4 *held,
                                                 sums *s)
{
    typedef batch_path<KB, LOW> C;
    constexpr int N = C::RUN - FROM < C::EACH ? C::RUN - FROM : C::EACH;
    constexpr int BLOCKS = N * C::P.warps, END = FROM * C::P.warps + BLOCKS;
    await_pages(m, p, m.base + (p.block + END + PAGE_BLOCKS - 1) / PAGE_BLOCKS);
    uint4 w[N];
#pragma unroll
    for (int i = 0; i < N; i++)
        w[i] =
            *(const uint4 *)(ring_memory() + within_ring(p.at + i * C::P.warps * MGL_BLOCK_BYTES));
    p.seen = load_shared_acquire(&own().landed);
    p.at = within_ring(p.at + BLOCKS * MGL_BLOCK_BYTES);
    ring_free(m, m.base + (p.block + END) / PAGE_BLOCKS);
#pragma unroll
    for (int i = 0; i < N; i++)
#pragma unroll
        for (int k = 0; k < C::PARTS; k++) {
            const int b = FROM + i;
            const uint4 x = b < C::BUFFERED
                                ? *buffered_operand<C>(m, b, k)
                                : held[(b < C::BUFFERED ? 0 : b - C::BUFFERED) * C::PARTS + k];
            mma(s[2 * k].c[b & 1], w[i], make_uint2(x.x, x.y));
            mma(s[2 * k + 1].c[b & 1], w[i], make_uint2(x.z, x.w));
        }
    if constexpr (FROM + N < C::RUN)
        add_batch<KB, LOW, FROM + N>(m, p, held, s);
}

/* The sums of a lane's rows: q and q + 4 of f32 input, 2 q and 2 q + 1 of 16 bits. */
template <bool LOW> static __device__ __forceinline__ int row_of_sums(const machine &m, int h)
{
    const int quarter = m.lane & 3;
    return LOW ? quarter + 4 * h : 2 * quarter + h;
}

/* The sum of words 0 and 2, which is column `even` of an MMA's in this lane, and that of words 1
 * and 3. */
static __device__ __forceinline__ float total_of(const sums &first, int even, const sums &second,
                                                 int odd)
{
    return (first.c[0][even] + first.c[1][even]) + (second.c[0][odd] + second.c[1][odd]);
}

template <bool LOW> static __device__ __forceinline__ float total_of(const sums *s, int h)
{
    if (LOW)
        return total_of(s[h], 0, s[h], 3) + total_of(s[LOW ? 2 + h : h], 0, s[LOW ? 2 + h : h], 3);
    return total_of(s[0], h, s[1], 2 + h);
}

/* Leaves the sums of a row group in the slot at hand, and passes that on when it is full, or they
 * are the segment's last. */
template <bool LOW>
static __device__ __forceinline__ void write_batch(machine &m, position &p, const sums *s,
                                                   bool last)
{
    const u32 psum = m.psums % PSUM_COUNT, use = m.psums / PSUM_COUNT;
    float *to = own().partial + psum * PSUM + p.left * p.stride + p.place;
    float total[2];
#pragma unroll
    for (int h = 0; h < 2; h++)
        total[h] = total_of<LOW>(s, h);
    if (p.left == 0)
        while (use > 0 && !barrier_passed(&own().psum_empty[psum], (use - 1) & 1))
            ; /* the epilogue has a clock in each of its waits */
#pragma unroll
    for (int h = 0; h < 2; h++)
        if (p.leaves[h])
            to[h * (LOW ? 4 : 1) * MGL_ROW_GROUP] = total[h];
    if (++p.left < p.each && !last)
        return;
    __syncwarp();
    if (m.lane == 0)
        barrier_arrive(&own().psum_full[psum]);
    m.psums++;
    p.left = 0;
}

template <bool LOW>
static __device__ __forceinline__ position begin_batch(const machine &m, int count)
{
    position p = {};
    p.each = psum_groups(count);
    p.stride = MGL_ROW_GROUP * psum_rows(count);
    p.place = m.warp * p.each * p.stride + row_of_sums<LOW>(m, 0) * MGL_ROW_GROUP + (m.lane >> 2);
    p.leaves[0] = row_of_sums<LOW>(m, 0) < count;
    p.leaves[1] = row_of_sums<LOW>(m, 1) < count;
    p.seen = m.freed;
    return p;
}

/* All row groups of a task. Behind the last sums the task's record may be gone. */
template <int KB, bool LOW> NEAR_OR_INLINE machine sum_batch(machine m)
{
    typedef batch_path<KB, LOW> C;
    const input &in = own().in[m.instruction];
    uint4 held[C::HELD * C::PARTS];
    gather_batch<KB, LOW>(m, in, held);
    const int segments = in.segments;
    position p = begin_batch<LOW>(m, in.count);
    input_is_there(m, m.base + in.end);
    for (int i = 0; i < segments; i++) {
        const int groups = segment(m, i).groups;
        p.block = segment(m, i).block;
        p.at = ring_spot(m, p.block + m.warp) * MGL_BLOCK_BYTES + m.lane * 16;
        for (int g = 0; g < groups; g++) {
            sums s[2 * C::PARTS] = {};
            add_batch<KB, LOW>(m, p, held, s);
            p.block += KB;
            write_batch<LOW>(m, p, s, g + 1 == groups);
        }
    }
    return m;
}

/* A warp without blocks. */
NEAR_OR_INLINE machine skip_batch(machine m)
{
    const input in = own().in[m.instruction];
    if (in.g && m.lane < in.count)
        own().sums[m.lane * MGL_WARPS + m.warp] = 0.0f;
    input_is_there(m, m.base + in.end);
    for (int i = 0; i < in.segments; i++)
        skip_groups(m, in, segment(m, i));
    return m;
}

/* Whether a task's blocks are KB, and its rows of that kind. */
template <int KB, bool LOW> static __device__ __forceinline__ bool fits(const input &in)
{
    return batch_path<KB, LOW>::FITS && in.kblocks == KB && in.low == LOW &&
           LOW == (in.x.dtype == DTYPE_F32);
}

enum {
    HIDDEN_BLOCKS = blocks_of(MGL_HIDDEN),
    ATTENDED_BLOCKS = blocks_of(MGL_ATTENDED),
    FFN_BLOCKS = blocks_of(MGL_FFN)
};

/* Does the task if it is of that kind. */
template <int KB, bool LOW>
static __device__ __forceinline__ void try_batch(machine &m, const input &in)
{
    if constexpr (batch_path<KB, LOW>::FITS)
        if (fits<KB, LOW>(in))
            m = m.warp < batch_path<KB, LOW>::P.warps ? sum_batch<KB, LOW>(m) : skip_batch(m);
}

/* The task, if it goes the batch way. */
NEAR_OR_INLINE machine consume_batch(machine m)
{
    const input in = own().in[m.instruction];
    try_batch<HIDDEN_BLOCKS, true>(m, in);
    if constexpr (ATTENDED_BLOCKS != HIDDEN_BLOCKS)
        try_batch<ATTENDED_BLOCKS, true>(m, in);
    try_batch<ATTENDED_BLOCKS, false>(m, in);
    if constexpr (FFN_BLOCKS != ATTENDED_BLOCKS)
        try_batch<FFN_BLOCKS, false>(m, in);
    return m;
}

/* region: end */

#endif
