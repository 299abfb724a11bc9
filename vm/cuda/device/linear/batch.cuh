/*
 * The batch variant of products of 16-bit weights: batched decoding with 3 to 8 rows of flagged
 * input. (4 rows without low parts use the skinny variant if the activation buffer has room.) The
 * sums and their order are those of sum_general (linear/linear.cuh). The difference is how the
 * input reaches the tensor cores.
 *
 * Consider a block of 32 columns and lane l, with n = l / 4 and q = l % 4. Quarter q of a row in 16
 * bits has 16 bytes, which are four words. The B operand of an MMA has two of them in lane l: words
 * 0 and 2, whose products are rows 0 to 7 of the sums, or words 1 and 3, whose products are rows 8
 * to 15.
 *
 *   16-bit input  lane l loads quarter q of row n. One MMA uses words 0 and 2 of all 8 rows,
 * another MMA words 1 and 3. Each lane has loaded its own operands. f32 input     lane l loads one
 * half of quarter q of rows n / 2 and n / 2 + 4: the first half if n is even, else the second. So
 * the loads of a warp are whole memory sectors. The lane converts the values and exchanges a word
 * with lane l ^ 4. Then it has words 0 and 2 (n even) or 1 and 3 (n odd). One MMA multiplies rows 0
 * to 3, another rows 4 to 7, and two more multiply the low parts.
 *
 * Operands are never shared between lanes. The last blocks of a run stay in registers. The blocks
 * before them, in long runs, are stored in the activation buffer: for each block, the 16 bytes of
 * all lanes in order of the lanes. The rows of the input are not contiguous there.
 *
 * A warp first waits until half of one row is written. The other rows are written at about the same
 * time, and polling the words of 8 rows would saturate the path to L2. Then the run is processed in
 * turns with double buffering: while one turn is converted, the loads of the next are in flight.
 */
#ifndef MGL_DEVICE_LINEAR_BATCH_CUH
#define MGL_DEVICE_LINEAR_BATCH_CUH

#include "vm/cuda/device/linear/products.cuh"

/* region: launch */
/* need shared: 0 */

/* region: macros */
enum {
    BATCH_BLOCKS = 8, /* maximum blocks that a warp loads at once */
    ENOUGH_LANES = 16 /* lanes that must find their words of one row before all rows are loaded */
};

/* How a warp gathers its run of a row of BLOCKS blocks of 32 columns. SPLIT: the input is f32 and
 * has two parts. TO_SCALE: the weights are scaled, so the whole run is divided by a power of two
 * before it becomes f16 (linear/scaled_batch.cuh). */
template <int BLOCKS, bool SPLIT, bool TO_SCALE> struct batch_run {
    static constexpr int RUN = (BLOCKS + MGL_WARPS - 1) / MGL_WARPS;
    static constexpr bool LOW = SPLIT, SCALED = TO_SCALE;
    static constexpr int PARTS = LOW ? 2 : 1; /* operands of 16 bytes for each lane and block */
    /* blocks whose input is in flight at once */
    static constexpr int ASKED = MGL_BATCH_ASKED(PARTS);
    /* blocks whose input stays in registers: the last ones of the run */
    static constexpr int HELD = RUN < MGL_BATCH_HELD(PARTS) ? RUN : MGL_BATCH_HELD(PARTS);
    static constexpr int BUFFERED = RUN - HELD; /* the other blocks */
    /* blocks that are awaited and converted in one turn; the first turn may have fewer */
    static constexpr int TURN = ASKED / 2;
    static constexpr int TURNS = (RUN + TURN - 1) / TURN;
    static constexpr int FACTORS =
        LOW ? RUN * BLOCK_COLUMNS * 4 : 0; /* bytes: the norm's weights */
    static constexpr int BYTES =
        BUFFERED * PARTS * MGL_BLOCK_BYTES + FACTORS; /* bytes of a warp in the activation buffer */

    /* The first block of a turn; from(TURNS) is the end of the run. */
    static constexpr int from(int turn)
    {
        return turn <= 0 ? 0 : turn >= TURNS ? RUN : RUN - (TURNS - turn) * TURN;
    }
};

/* How a warp loads a run of RUN blocks of weights of a row group. ROOM: blocks that registers have
 * room for. */
template <int RUN, int ROOM> struct batch_steps {
    static constexpr int FIT = RING_BLOCKS / 2 / MGL_WARPS; /* blocks of a warp in half a ring */
    static constexpr int MOST = FIT < ROOM ? FIT : ROOM;
    static constexpr int STEPS = MOST < 1 ? 1 : (RUN + MOST - 1) / MOST;
    static constexpr int EACH = (RUN + STEPS - 1) / STEPS; /* blocks that are loaded at once */
};

/* How a warp processes row groups of KB blocks of 16-bit weights. */
template <int KB, bool LOW> struct batch_path : batch_run<KB, LOW, false> {
    typedef batch_run<KB, LOW, false> input_run;
    static constexpr mgl_tape_order P = mgl_tape_order_of(KB, MGL_WARPS);
    static constexpr int EACH = batch_steps<input_run::RUN, BATCH_BLOCKS>::EACH;
    /* all warps with blocks have the same number of blocks */
    static constexpr bool FITS = BATCH_PATH && P.of_last == input_run::RUN &&
                                 input_run::BYTES * P.warps <= MGL_ACTIVATION_BYTES;
};

/* region: device */
/* ---- the input --------------------------------------------------------------------------------
 */

/* This lane's part of the input. */
struct lane_rows {
    const u8 *at[2]; /* address of its bytes of block 0 of the run, for one row, or for two (f32) */
    bool odd;        /* n is odd */
    u32 most[2];     /* scaled weights: bits of the largest absolute value of the two rows */
    float squares[2][8]; /* sums of squares of the two rows: [b] of blocks b, b + 8, ...; in odd
                            lanes */
};

/* The words that a lane loads of a block. */
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

/* Waits until at least ENOUGH_LANES lanes find their words of one row of this warp's run. */
template <class C>
static __device__ __forceinline__ void wait_row(const machine &m, const input &in, int row)
{
    constexpr int WORDS = C::RUN * (C::LOW ? 8 : 4), N = (WORDS + 31) / 32;
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

/* Loads again the words that were not written, of N blocks from block `from` on. */
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

/* Waits until all words of turn T are written. Loads missing words of the next turn again too. */
template <class C, int T>
static __device__ __forceinline__ void await_turn(const machine &m, const lane_rows &x,
                                                  piece<C::LOW> *now, piece<C::LOW> *next)
{
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

/* Exchanges words with lane l ^ 4. Before, a lane has the first two words (n even) or the last two
 * of the four words of a quarter. Afterwards it has words 0 and 2, or 1 and 3. */
static __device__ __forceinline__ uint2 exchanged(bool odd, uint2 mine)
{
    const u32 other = __shfl_xor_sync(0xFFFFFFFFu, odd ? mine.x : mine.y, 4);
    return odd ? make_uint2(other, mine.y) : make_uint2(mine.x, other);
}

/* Adds the squares of four values to the sum of the previous blocks. The values of a quarter are
 * added in order, as in the skinny variant: first by the even lane, then by the odd lane. */
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

template <int DTYPE> static __device__ __forceinline__ float first_of(u32 pair)
{
    return DTYPE == DTYPE_F16 ? f16_float(pair & 0xFFFFu) : bf16_float(pair & 0xFFFFu);
}

template <int DTYPE> static __device__ __forceinline__ float second_of(u32 pair)
{
    return DTYPE == DTYPE_F16 ? f16_float(pair >> 16) : __uint_as_float(pair & 0xFFFF0000u);
}

/* Splits four values into high parts of the 16-bit dtype and the rounding errors (low parts). */
template <int DTYPE>
static __device__ __forceinline__ void split_four(const float *v, uint2 &high, uint2 &low)
{
    high = make_uint2(pack_pair(DTYPE, v[0], v[1]), pack_pair(DTYPE, v[2], v[3]));
    low = make_uint2(
        pack_pair(DTYPE, v[0] - first_of<DTYPE>(high.x), v[1] - second_of<DTYPE>(high.x)),
        pack_pair(DTYPE, v[2] - first_of<DTYPE>(high.y), v[3] - second_of<DTYPE>(high.y)));
}

static __device__ __forceinline__ uint4 of_both_rows(const uint2 *v)
{
    return make_uint4(v[0].x, v[0].y, v[1].x, v[1].y);
}

/* Splits this lane's values of one row into words of operands. */
template <int DTYPE>
static __device__ __forceinline__ void split_row(bool odd, const float *v, uint2 &high, uint2 &low)
{
    split_four<DTYPE>(v, high, low);
    high = exchanged(odd, high);
    low = exchanged(odd, low);
}

/* The largest of `most` and the absolute values of N floats, as bits. */
template <int N> static __device__ __forceinline__ u32 largest_value(u32 most, const float *v)
{
#pragma unroll
    for (int i = 0; i < N; i++)
        most = max(most, __float_as_uint(v[i]) & 0x7FFFFFFFu);
    return most;
}

/* Converts this lane's values of both rows of block b to operands, high parts first. g: the weights
 * of the norm, if there is one. For scaled weights, the values stay f32. */
template <class C, bool NORM>
static __device__ __forceinline__ void make_operands(lane_rows &x, int b, const float4 &g,
                                                     const piece<true> &raw, uint4 *to)
{
    uint2 high[2], low[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
        float v[4];
        format<DTYPE_F32>::unpack(raw.words[h], v);
        if (NORM) {
            /* scaled weights: the sums of the quarters of a lane are added */
            const float before = x.squares[h][b % 8];
            const float sum = add_squares(C::SCALED || b < 8, before, v);
            x.squares[h][b % 8] = C::SCALED && b >= 8 ? before + sum : sum;
            v[0] *= g.x;
            v[1] *= g.y;
            v[2] *= g.z;
            v[3] *= g.w;
        }
        if (C::SCALED) {
            x.most[h] = largest_value<4>(x.most[h], v);
            to[h] = make_uint4(__float_as_uint(v[0]), __float_as_uint(v[1]), __float_as_uint(v[2]),
                               __float_as_uint(v[3]));
        } else {
            split_row<MGL_WEIGHT>(x.odd, v, high[h], low[h]);
        }
    }
    if (!C::SCALED) {
        to[0] = of_both_rows(high);
        to[1] = of_both_rows(low);
    }
}

/* Same for 16-bit input: the words of the first MMA come first. */
template <class C, bool NORM>
static __device__ __forceinline__ void make_operands(lane_rows &x, int, const float4 &,
                                                     const piece<false> &raw, uint4 *to)
{
    to[0] = middle_swapped(raw.words[0]);
    if (C::SCALED) {
        float v[8];
        unpack_half(raw.words[0], v);
        x.most[0] = largest_value<8>(x.most[0], v);
    }
}

/* A warp's part of the activation buffer. */
template <class C> static __device__ __forceinline__ u8 *buffer_of(const machine &m)
{
    return activation_buffer() + m.warp * C::BYTES;
}

/* This lane's operands of block b, which is in the activation buffer. */
template <class C>
static __device__ __forceinline__ uint4 *buffered_operand(const machine &m, int b, int part)
{
    return (uint4 *)(buffer_of<C>(m) + (b * C::PARTS + part) * MGL_BLOCK_BYTES) + m.lane;
}

/* The norm's weights of this warp's run, in the activation buffer. */
template <class C> static __device__ __forceinline__ float4 *factors_of(const machine &m)
{
    return (float4 *)(buffer_of<C>(m) + C::BUFFERED * C::PARTS * MGL_BLOCK_BYTES);
}

/* The weights that a lane loads. They are loaded before the rows, for which the wait is longer. */
template <class C> struct factors {
    enum { COUNT = C::FACTORS / 16, N = (COUNT + 31) / 32 };
    float4 g[N > 0 ? N : 1];
};

template <class C>
static __device__ __forceinline__ void ask_factors(const machine &m, const input &in, factors<C> &f)
{
#pragma unroll
    for (int i = 0; i < factors<C>::N; i++) {
        const int number = m.lane + 32 * i;
        f.g[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (in.g && (factors<C>::COUNT % 32 == 0 || number < factors<C>::COUNT))
            f.g[i] = ((const float4 *)in.g)[m.warp * factors<C>::COUNT + number];
    }
}

template <class C>
static __device__ __forceinline__ void buffer_factors(const machine &m, const factors<C> &f)
{
#pragma unroll
    for (int i = 0; i < factors<C>::N; i++)
        if (factors<C>::COUNT % 32 == 0 || m.lane + 32 * i < factors<C>::COUNT)
            factors_of<C>(m)[m.lane + 32 * i] = f.g[i];
    __syncwarp();
}

/* Converts N blocks from block FROM on to operands. The last blocks of the run go to `held`, the
 * others to the activation buffer. */
template <class C, bool NORM, int FROM, int N, bool WIDE>
static __device__ __forceinline__ void convert_blocks(const machine &m, lane_rows &x,
                                                      const piece<WIDE> *raw, uint4 *held)
{
    constexpr int PARTS = C::PARTS;
    const float4 *g = factors_of<C>(m) + FROM * 8 + (m.lane & 3) * 2 + (m.lane >> 2 & 1);
#pragma unroll
    for (int i = 0; i < N; i++) {
        const int b = FROM + i;
        uint4 made[PARTS];
        make_operands<C, NORM>(x, b, NORM ? g[i * 8] : float4(), raw[i], made);
#pragma unroll
        for (int k = 0; k < PARTS; k++)
            if (b >= C::BUFFERED)
                held[(b < C::BUFFERED ? 0 : b - C::BUFFERED) * PARTS + k] = made[k];
            else
                *buffered_operand<C>(m, b, k) = made[k];
    }
}

/* Issues the loads of turn T. */
template <class C, int T>
static __device__ __forceinline__ void ask_turn(const lane_rows &x, piece<C::LOW> *to)
{
    constexpr int FROM = C::from(T), END = C::from(T + 1);
    const u64 policy = keep_policy();
#pragma unroll
    for (int i = 0; i < END - FROM; i++)
        load_piece(x, FROM + i, policy, to[i]);
}

/* Processes turn T and the following turns. The loads of turns T and T + 1 have been issued. */
template <class C, bool NORM, int T = 0>
static __device__ __forceinline__ void
gather_turns(const machine &m, lane_rows &x, piece<C::LOW> *now, piece<C::LOW> *next, uint4 *held)
{
    constexpr int FROM = C::from(T), N = C::from(T + 1) - FROM;
    await_turn<C, T>(m, x, now, next);
    convert_blocks<C, NORM, FROM, N>(m, x, now, held);
    ask_turn<C, T + 2>(x, now);
    if constexpr (T + 1 < C::TURNS)
        gather_turns<C, NORM, T + 1>(m, x, next, now, held);
}

/* Processes all turns. The weights of the norm are stored in the activation buffer while the first
 * loads are in flight. */
template <class C, bool NORM>
static __device__ __forceinline__ void gather_blocks(const machine &m, lane_rows &x,
                                                     const factors<C> &f, uint4 *held)
{
    piece<C::LOW> first[C::TURN], second[C::TURN];
    ask_turn<C, 0>(x, first);
    ask_turn<C, 1>(x, second);
    if (NORM)
        buffer_factors(m, f);
    gather_turns<C, NORM>(m, x, first, second, held);
}

/* Writes this warp's sums of squares. The order of summation is that of warp_sum in the skinny
 * variant. */
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

/* Addresses of this lane's bytes of the run. Rows past the end repeat the last row. */
template <class C>
static __device__ __forceinline__ lane_rows lane_rows_of(const machine &m, const input &in)
{
    constexpr bool LOW = C::LOW;
    const int n = m.lane >> 2, odd = n & 1, quarter = (m.lane & 3) * 8;
    const int column = m.warp * C::RUN * BLOCK_COLUMNS + quarter;
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

/* Loads and converts this warp's run of all rows. */
template <class C>
static __device__ __forceinline__ lane_rows gather_batch(const machine &m, const input &in,
                                                         uint4 *held)
{
    factors<C> f;
    ask_factors(m, in, f);
    lane_rows x = lane_rows_of<C>(m, in);
    const bool norm =
        __any_sync(0xFFFFFFFFu, in.g != nullptr); /* known to the compiler as warp-uniform */
    wait_row<C>(m, in, in.count - 1);
    if (C::LOW && norm) {
        gather_blocks<C, C::LOW>(m, x, f, held);
        write_all_squares(m, x, in.count);
    } else {
        gather_blocks<C, false>(m, x, f, held);
    }
    return x;
}

/* ---- products ---------------------------------------------------------------------------------
 */

/* Position of a warp on the tape and in the partial-sum buffers. */
struct position {
    u32 block;      /* first block of the next row group, in the tape of the epoch */
    u32 at;         /* bytes from the ring's start to this lane's part of the warp's next block */
    int each;       /* row groups in a partial-sum buffer */
    int left;       /* row groups already stored in the current buffer */
    u32 seen;       /* last value of the landing warp's word: lower pages have landed */
    int stride;     /* floats from one row group to the next */
    int place;      /* index in a buffer of this lane's sum of the first row */
    bool leaves[2]; /* whether its two sums belong to existing rows */
};

/* Waits until all pages below `end` have landed. In most cases the last read of the landing warp's
 * word already shows that. */
static __device__ __forceinline__ void await_pages(machine &m, const position &p, u32 end)
{
    if (__all_sync(0xFFFFFFFFu, (int)(end - p.seen) <= 0))
        return;
    m.known = (int)(m.freed - m.known) > 0 ? m.freed : m.known; /* freed pages have landed */
    ring_wait(m, end);
}

/* Multiplies the blocks of the run from block FROM on, EACH at a time, when their pages have
 * landed. Pages are freed as soon as their blocks are in registers. */
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

/* The row of this lane's sum h: q + 4 h with f32 input, 2 q + h with 16-bit input. */
template <bool LOW> static __device__ __forceinline__ int row_of_sums(const machine &m, int h)
{
    const int quarter = m.lane & 3;
    return LOW ? quarter + 4 * h : 2 * quarter + h;
}

/* Adds the products of words 0 and 2 (element `even` of this lane's MMA results) and of words 1 and
 * 3 (element `odd`). */
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

/* Writes the sums of a row group to the current partial-sum buffer. Passes the buffer to the
 * epilogue if it is full or the row group is the last of the segment. sum(h): this lane's sum h. */
template <bool LOW, class SUM>
static __device__ __forceinline__ void write_batch(machine &m, position &p, const SUM &sum,
                                                   bool last)
{
    const u32 psum = m.psums % PSUM_COUNT, use = m.psums / PSUM_COUNT;
    float *to = own().partial + psum * PSUM + p.left * p.stride + p.place;
    float total[2];
#pragma unroll
    for (int h = 0; h < 2; h++)
        total[h] = sum(h);
    if (p.left == 0)
        while (use > 0 && !barrier_passed(&own().psum_empty[psum], (use - 1) & 1))
            ; /* each wait of the epilogue has a deadline */
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

/* Computes all row groups of a task. The record of the task may be overwritten after the last sums
 * are written. */
template <int KB, bool LOW> NEAR_OR_INLINE machine sum_batch(machine m)
{
    typedef batch_path<KB, LOW> C;
    const input &in = own().in[m.instruction];
    uint4 held[C::HELD * C::PARTS];
    gather_batch<C>(m, in, held);
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
            write_batch<LOW>(
                m, p, [&](int h) { return total_of<LOW>(s, h); }, g + 1 == groups);
        }
    }
    return m;
}

/* Runs the task in a warp without blocks. */
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

/* Whether a task has row groups of KB blocks and input of this kind. */
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

/* Runs the task if it is of this kind. */
template <int KB, bool LOW>
static __device__ __forceinline__ void try_batch(machine &m, const input &in)
{
    if constexpr (batch_path<KB, LOW>::FITS)
        if (fits<KB, LOW>(in))
            m = m.warp < batch_path<KB, LOW>::P.warps ? sum_batch<KB, LOW>(m) : skip_batch(m);
}

/* Runs the task if it uses the batch variant. */
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
