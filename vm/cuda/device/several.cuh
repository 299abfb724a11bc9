/*
 * Products of 16-bit weights for 3 to 8 rows (5 to 8 without low parts) of flagged input: what a batch
 * decodes with. The same sums in the same order as sum_any makes (device/linear.cuh); what differs is how the
 * input gets to the tensor cores.
 *
 * Of a block of 32 columns an MMA's B operand has in lane l, with n = l / 4 and q = l % 4, the even words (n even)
 * or the odd ones (n odd) of 16 bytes q of row n / 2; a second MMA has rows 4 to 7, and two more the low parts.
 * So lane l asks memory for half of its 16 bytes of rows n / 2 and n / 2 + 4, converts it, and has one word
 * exchanged with lane l ^ 4: then it holds its part of the operands, and nobody else ever needs it. The blocks of a
 * run that registers have room for stay there; those of longer runs stand in the stage, each lane's in its own
 * places, 16 bytes of each lane side by side: no row of the input stands there as a row.
 *
 * Before a warp asks for all that, it waits for half of one row: the others are written at about the same
 * time, and 8 rows' words asked for again and again would fill the ways to L2.
 */
#ifndef MGL_DEVICE_SEVERAL_CUH
#define MGL_DEVICE_SEVERAL_CUH

#include "vm/cuda/device/linear.cuh"

enum {
    SEVERAL_ROWS = 8,
    SEVERAL_WORDS = 64, /* registers of a lane for input */
    SEVERAL_BLOCKS = 8, /* of a warp that are loaded at once, at most */
    ENOUGH_LANES = 16,  /* whose words of one row are there when all rows are asked for */
    MAY_BE_SEVERAL = MAY_BE_FEW && MGL_ROWS > 2
};

/* How a warp goes through row groups of KB blocks. */
template <int KB, bool LOW> struct course {
    static constexpr int RUN = (KB + MGL_WARPS - 1) / MGL_WARPS;
    static constexpr places P = places_of(KB);
    static constexpr int PARTS = LOW ? 2 : 1; /* 16 bytes each, of a lane and block */
    /* blocks whose input is asked for at once, and as many stay in registers: the last ones of the run */
    static constexpr int ASKED = SEVERAL_WORDS / (4 * PARTS);
    static constexpr int HELD = RUN < ASKED ? RUN : ASKED;
    static constexpr int STAGED = RUN - HELD; /* the others */
    static constexpr int FACTORS =
        LOW ? RUN * BLOCK_COLUMNS * 4 : 0; /* bytes: the norm's weights */
    static constexpr int BYTES =
        STAGED * PARTS * BLOCK_BYTES + FACTORS;             /* of a warp, in the stage */
    static constexpr int FIT = RING_BLOCKS / 2 / MGL_WARPS; /* blocks of a warp in half a ring */
    static constexpr int MOST = FIT < SEVERAL_BLOCKS ? FIT : SEVERAL_BLOCKS;
    static constexpr int STEPS = MOST < 1 ? 1 : (RUN + MOST - 1) / MOST;
    static constexpr int EACH = (RUN + STEPS - 1) / STEPS;
    /* every warp that has blocks has as many */
    static constexpr bool FITS = MAY_BE_SEVERAL && P.of_last == RUN && BYTES * P.warps <= MGL_STAGE;
};

/* ---- the input -------------------------------------------------------------------------------- */

/* This lane's part of the input. */
struct lane_rows {
    const u8 *at[2];     /* rows n / 2 and n / 2 + 4: of block 0 of the run */
    bool odd;            /* n is */
    float squares[2][8]; /* of the two rows: sums of each eighth block so far, in odd lanes */
};

/* 16 bytes of f32 or 8 of 16-bit values. */
template <bool WIDE> struct quarter {
    u32 word[WIDE ? 4 : 2];
};

static __device__ __forceinline__ void load_quarter(const u8 *at, u64 policy, quarter<true> &to)
{
    const uint4 v = load_words(at, policy);
    to = {v.x, v.y, v.z, v.w};
}

static __device__ __forceinline__ void load_quarter(const u8 *at, u64 policy, quarter<false> &to)
{
    const uint2 v = load_two_words(at, policy);
    to = {v.x, v.y};
}

/* The largest word: all ones if one of them is. Asked of many words, this takes no branches. */
template <bool WIDE> static __device__ __forceinline__ u32 largest(const quarter<WIDE> &q)
{
    const u32 first = max(q.word[0], q.word[1]);
    return WIDE ? max(first, max(q.word[WIDE ? 2 : 0], q.word[WIDE ? 3 : 1])) : first;
}

/* Whether this warp's wait for flagged words is in vain: all lanes say the same. */
static __device__ __forceinline__ bool all_give_up(const machine &m, u64 &since)
{
    since = look_at_clock(since, MGL_REPORT_FLAG, task_of(m)->task, m.epoch, 0, 1, 0);
    return __any_sync(0xFFFFFFFFu, since == 0);
}

/* Waits until most lanes find their words of one row of this warp's run; the rest is on its way. */
template <int KB, bool WIDE>
static __device__ __forceinline__ void wait_row(const machine &m, const input &in, int row)
{
    constexpr int WORDS = (KB + MGL_WARPS - 1) / MGL_WARPS * (WIDE ? 8 : 4), N = (WORDS + 31) / 32;
    const u8 *at = in.x.at + mapped(in, row) * in.x.stride + (m.warp * WORDS + m.lane) * 16;
    const u64 policy = keep_policy();
    u64 since = 0;
    for (u32 n = 1;; n++) {
        u32 most = 0;
        uint4 w[N] = {};
#pragma unroll
        for (int i = 0; i < N; i++)
            if (WORDS % 32 == 0 || m.lane + 32 * i < WORDS)
                w[i] = load_words(at + 32 * 16 * i, policy);
#pragma unroll
        for (int i = 0; i < N; i++)
            most = max(most, max(max(w[i].x, w[i].y), max(w[i].z, w[i].w)));
        if (__popc(__ballot_sync(0xFFFFFFFFu, most != 0xFFFFFFFFu)) >= ENOUGH_LANES)
            return;
        if (n % POLLS == 0 && all_give_up(m, since))
            return;
    }
}

/* Looks again for all that is missing, until it is there. The words of block i and row h are at
 * x.at[h] + (first + i) * BYTES. */
template <int N, bool WIDE>
static __device__ __forceinline__ void poll_blocks(const machine &m, const lane_rows &x, int first,
                                                   quarter<WIDE> (*raw)[2])
{
    constexpr int BYTES = WIDE ? 128 : 64;
    const u64 policy = keep_policy();
    u64 since = 0;
    for (u32 n = 1;; n++) {
        u32 most = 0;
#pragma unroll
        for (int i = 0; i < 2 * N; i++)
            most = max(most, largest(raw[i / 2][i % 2]));
        if (__all_sync(0xFFFFFFFFu, most != 0xFFFFFFFFu))
            return;
#pragma unroll
        for (int i = 0; i < 2 * N; i++)
            if (largest(raw[i / 2][i % 2]) == 0xFFFFFFFFu)
                load_quarter(x.at[i % 2] + (first + i / 2) * BYTES, policy, raw[i / 2][i % 2]);
        if (n % POLLS == 0 && all_give_up(m, since))
            return;
    }
}

/* A lane's two words of the operand from the two that it has of a row's 16 bytes: the first two (n even), or
 * the last two. The neighbour that shares them has the other two. */
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

/* Makes this lane's operands of block b from its values of both rows. Those of high parts first. g: the
 * norm's weights, if there is one. */
template <bool NORM>
static __device__ __forceinline__ void make_operands(lane_rows &x, int b, const float4 &g,
                                                     const quarter<true> *raw, uint4 *to)
{
    uint2 high[2], low[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
        float v[4];
        format<DTYPE_F32>::unpack(
            make_uint4(raw[h].word[0], raw[h].word[1], raw[h].word[2], raw[h].word[3]), v);
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

template <bool NORM>
static __device__ __forceinline__ void make_operands(lane_rows &x, int, const float4 &,
                                                     const quarter<false> *raw, uint4 *to)
{
    uint2 words[2];
#pragma unroll
    for (int h = 0; h < 2; h++)
        words[h] = exchanged(x.odd, make_uint2(raw[h].word[0], raw[h].word[1]));
    to[0] = of_both_rows(words);
}

/* A warp's part of the stage. */
template <class COURSE> static __device__ __forceinline__ u8 *stage_of(const machine &m)
{
    return stage_memory() + m.warp * COURSE::BYTES;
}

/* This lane's operands of block b, which is one of those in the stage. */
template <class COURSE>
static __device__ __forceinline__ uint4 *staged_operand(const machine &m, int b, int part)
{
    return (uint4 *)(stage_of<COURSE>(m) + (b * COURSE::PARTS + part) * BLOCK_BYTES) + m.lane;
}

/* The norm's weights of this warp's run, in the stage. */
template <class COURSE> static __device__ __forceinline__ float4 *factors_of(const machine &m)
{
    return (float4 *)(stage_of<COURSE>(m) + COURSE::STAGED * COURSE::PARTS * BLOCK_BYTES);
}

/* What a lane asks for of them: before the rows, which are waited for longer. */
template <class COURSE> struct factors {
    enum { COUNT = COURSE::FACTORS / 16, N = (COUNT + 31) / 32 };
    float4 g[N > 0 ? N : 1];
};

template <class COURSE>
static __device__ __forceinline__ void ask_factors(const machine &m, const input &in,
                                                   factors<COURSE> &f)
{
#pragma unroll
    for (int i = 0; i < factors<COURSE>::N; i++) {
        const int number = m.lane + 32 * i;
        f.g[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (in.g && (factors<COURSE>::COUNT % 32 == 0 || number < factors<COURSE>::COUNT))
            f.g[i] = ((const float4 *)in.g)[m.warp * factors<COURSE>::COUNT + number];
    }
}

template <class COURSE>
static __device__ __forceinline__ void stage_factors(const machine &m, const factors<COURSE> &f)
{
#pragma unroll
    for (int i = 0; i < factors<COURSE>::N; i++)
        if (factors<COURSE>::COUNT % 32 == 0 || m.lane + 32 * i < factors<COURSE>::COUNT)
            factors_of<COURSE>(m)[m.lane + 32 * i] = f.g[i];
    __syncwarp();
}

/* Makes this lane's operands of N blocks, the first of them number FROM: to `held` if HOLDS, or to the stage. */
template <class COURSE, bool NORM, bool HOLDS, int FROM, int N, bool WIDE>
static __device__ __forceinline__ void convert_blocks(const machine &m, lane_rows &x,
                                                      const quarter<WIDE> (*raw)[2], uint4 *held)
{
    constexpr int PARTS = COURSE::PARTS;
    const float4 *g = factors_of<COURSE>(m) + FROM * 8 + (m.lane & 3) * 2 + (m.lane >> 2 & 1);
#pragma unroll
    for (int i = 0; i < N; i++) {
        uint4 made[PARTS];
        make_operands<NORM>(x, FROM + i, NORM ? g[i * 8] : float4(), raw[i], made);
#pragma unroll
        for (int k = 0; k < PARTS; k++)
            if (HOLDS)
                held[i * PARTS + k] = made[k];
            else
                *staged_operand<COURSE>(m, FROM + i, k) = made[k];
    }
}

/* Blocks FROM and on of this warp's run: the last ones to `held`, the others to the stage. */
template <int KB, bool LOW, int FROM = 0>
static __device__ __forceinline__ void gather_blocks(const machine &m, lane_rows &x, bool norm,
                                                     uint4 *held)
{
    typedef course<KB, LOW> C;
    constexpr bool HOLDS = FROM == C::STAGED;
    constexpr int REST = HOLDS ? C::HELD : C::STAGED - FROM, BYTES = LOW ? 128 : 64;
    constexpr int N = REST < C::ASKED ? REST : C::ASKED;
    const u64 policy = keep_policy();
    quarter<LOW> raw[N][2];
#pragma unroll
    for (int i = 0; i < 2 * N; i++)
        load_quarter(x.at[i % 2] + (FROM + i / 2) * BYTES, policy, raw[i / 2][i % 2]);
    poll_blocks<N, LOW>(m, x, FROM, raw);
    if (LOW && norm)
        convert_blocks<C, LOW, HOLDS, FROM, N>(m, x, raw, held);
    else
        convert_blocks<C, false, HOLDS, FROM, N>(m, x, raw, held);
    if constexpr (!HOLDS)
        gather_blocks<KB, LOW, FROM + N>(m, x, norm, held);
}

/* Leaves this warp's sums of squares: added up over its 16 bytes as warp_sum adds those of few rows. */
static __device__ __forceinline__ void leave_all_squares(const machine &m, const lane_rows &x,
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

/* This warp's run of all rows. Rows past the last repeat it. */
template <int KB, bool LOW>
static __device__ __forceinline__ void gather_several(const machine &m, const input &in,
                                                      uint4 *held)
{
    typedef course<KB, LOW> C;
    constexpr int SIZE = LOW ? 4 : 2;
    const int odd = m.lane >> 2 & 1;
    const int column = m.warp * C::RUN * BLOCK_COLUMNS + (m.lane & 3) * 8 + odd * 4;
    factors<C> f;
    lane_rows x = {};
    ask_factors(m, in, f);
    x.odd = odd != 0;
#pragma unroll
    for (int h = 0; h < 2; h++)
        x.at[h] = in.x.at + mapped(in, min(m.lane / 8 + 4 * h, in.count - 1)) * in.x.stride +
                  column * SIZE;
    wait_row<KB, LOW>(m, in, in.count - 1);
    stage_factors(m, f);
    const bool norm =
        __any_sync(0xFFFFFFFFu, in.g != nullptr); /* as the compiler knows it: of all */
    gather_blocks<KB, LOW>(m, x, norm, held);
    if (LOW && norm)
        leave_all_squares(m, x, in.count);
}

/* ---- products --------------------------------------------------------------------------------- */

/* Where a warp stands on the tape, and in the slots. */
struct position {
    u32 block;  /* of the epoch's tape: the next row group's first */
    u32 at;     /* bytes from the ring's start to this lane's part of the warp's next block */
    int each;   /* row groups of a slot */
    int left;   /* that are in the slot at hand */
    int stride; /* floats from one row group to the next */
    int place;  /* floats from a slot's start to where this lane leaves its sum of the first row */
    bool leaves[2]; /* there are rows of its two sums */
};

static __device__ __forceinline__ u32 within_ring(u32 at)
{
    const u32 bytes = MGL_RING * MGL_PAGE;
    return min(at, at - bytes); /* unsigned: the difference is huge where there is none */
}

/* Adds blocks FROM and on of the runs, each step of them once it has landed; its pages are let go of as soon as
 * they are in registers. */
template <int KB, bool LOW, int FROM = 0>
static __device__ __forceinline__ void add_several(machine &m, position &p, const uint4 *held,
                                                   sums *s)
{
    typedef course<KB, LOW> C;
    constexpr int N = C::RUN - FROM < C::EACH ? C::RUN - FROM : C::EACH;
    constexpr int BLOCKS = N * C::P.warps, END = FROM * C::P.warps + BLOCKS;
    ring_wait(m, m.base + (p.block + END + PAGE_BLOCKS - 1) / PAGE_BLOCKS);
    uint4 w[N];
#pragma unroll
    for (int i = 0; i < N; i++)
        w[i] = *(const uint4 *)(ring_memory() + within_ring(p.at + i * C::P.warps * BLOCK_BYTES));
    p.at = within_ring(p.at + BLOCKS * BLOCK_BYTES);
    ring_free(m, m.base + (p.block + END) / PAGE_BLOCKS);
#pragma unroll
    for (int i = 0; i < N; i++)
#pragma unroll
        for (int k = 0; k < C::PARTS; k++) {
            const int b = FROM + i;
            const uint4 x = b < C::STAGED
                                ? *staged_operand<C>(m, b, k)
                                : held[(b < C::STAGED ? 0 : b - C::STAGED) * C::PARTS + k];
            mma(s[2 * k].c[b & 1], w[i], make_uint2(x.x, x.y));
            mma(s[2 * k + 1].c[b & 1], w[i], make_uint2(x.z, x.w));
        }
    if constexpr (FROM + N < C::RUN)
        add_several<KB, LOW, FROM + N>(m, p, held, s);
}

static __device__ __forceinline__ float total_of(const sums &s)
{
    return (s.c[0][0] + s.c[1][0]) + (s.c[0][3] + s.c[1][3]);
}

/* Leaves the sums of a row group in the slot at hand, and passes that on when it is full, or they are the
 * segment's last. */
template <bool LOW>
static __device__ __forceinline__ void leave_several(machine &m, position &p, const sums *s,
                                                     bool last)
{
    const u32 slot = m.slot % SLOTS, use = m.slot / SLOTS;
    float *to = own().partial + slot * SLOT + p.left * p.stride + p.place;
    float total[2];
#pragma unroll
    for (int h = 0; h < 2; h++)
        total[h] = LOW ? total_of(s[h]) + total_of(s[LOW ? 2 + h : h]) : total_of(s[h]);
    if (p.left == 0)
        while (use > 0 && !barrier_passed(&own().slot_empty[slot], (use - 1) & 1))
            ; /* the epilogue has a clock in each of its waits */
#pragma unroll
    for (int h = 0; h < 2; h++)
        if (p.leaves[h])
            to[h * 4 * GROUP_ROWS] = total[h];
    if (++p.left < p.each && !last)
        return;
    __syncwarp();
    if (m.lane == 0)
        barrier_arrive(&own().slot_full[slot]);
    m.slot++;
    p.left = 0;
}

static __device__ __forceinline__ position begin_several(const machine &m, int count)
{
    position p = {};
    p.each = slot_groups(count);
    p.stride = GROUP_ROWS * slot_rows(count);
    p.place = m.warp * p.each * p.stride + (m.lane & 3) * GROUP_ROWS + (m.lane >> 2);
    p.leaves[0] = (m.lane & 3) < count;
    p.leaves[1] = (m.lane & 3) + 4 < count;
    return p;
}

/* All row groups of a task. Behind the last sums the task's record may be gone. */
template <int KB, bool LOW> static __device__ __noinline__ machine sum_several(machine m)
{
    typedef course<KB, LOW> C;
    const input &in = own().in[m.which];
    const int segments = in.segments;
    uint4 held[C::HELD * C::PARTS];
    gather_several<KB, LOW>(m, in, held);
    position p = begin_several(m, in.count);
    input_is_there(m, in);
    m.known = (int)(m.freed - m.known) > 0 ? m.freed : m.known; /* what is let go of has landed */
    for (int i = 0; i < segments; i++) {
        const int groups = segment(m, i).groups;
        p.block = segment(m, i).block;
        p.at = ring_spot(m, p.block + m.warp) * BLOCK_BYTES + m.lane * 16;
        for (int g = 0; g < groups; g++) {
            sums s[2 * C::PARTS] = {};
            add_several<KB, LOW>(m, p, held, s);
            p.block += KB;
            leave_several<LOW>(m, p, s, g + 1 == groups);
        }
    }
    return m;
}

/* A warp without blocks. */
static __device__ __noinline__ machine pass_several(machine m)
{
    const input in = own().in[m.which];
    if (in.g && m.lane < in.count)
        own().sums[m.lane * MGL_WARPS + m.warp] = 0.0f;
    input_is_there(m, in);
    for (int i = 0; i < in.segments; i++)
        pass_groups(m, in, segment(m, i));
    return m;
}

/* Whether a task's blocks are KB, and its rows of that kind. */
template <int KB, bool LOW> static __device__ __forceinline__ bool fits(const input &in)
{
    return course<KB, LOW>::FITS && in.kblocks == KB && in.low == LOW &&
           LOW == (in.x.dtype == DTYPE_F32);
}

enum {
    HIDDEN_BLOCKS = blocks_of(MGL_HIDDEN),
    WIDE_BLOCKS = blocks_of(MGL_WIDE),
    FFN_BLOCKS = blocks_of(MGL_FFN)
};

/* Whether a task is one of several rows. */
static __device__ __forceinline__ bool is_several(const input &in)
{
    return MAY_BE_SEVERAL && in.x.flag && in.vector && in.columns % BLOCK_COLUMNS == 0 &&
           in.count > mma_rows(in.low) && in.count <= SEVERAL_ROWS &&
           (fits<HIDDEN_BLOCKS, true>(in) || fits<WIDE_BLOCKS, true>(in) ||
            fits<WIDE_BLOCKS, false>(in) || fits<FFN_BLOCKS, false>(in));
}

/* Does the task if it is of that kind. */
template <int KB, bool LOW>
static __device__ __forceinline__ void try_several(machine &m, const input &in)
{
    if constexpr (course<KB, LOW>::FITS)
        if (fits<KB, LOW>(in))
            m = m.warp < course<KB, LOW>::P.warps ? sum_several<KB, LOW>(m) : pass_several(m);
}

/* The task, if it is_several. */
static __device__ __noinline__ machine consume_several(machine m)
{
    const input in = own().in[m.which];
    try_several<HIDDEN_BLOCKS, true>(m, in);
    if constexpr (WIDE_BLOCKS != HIDDEN_BLOCKS)
        try_several<WIDE_BLOCKS, true>(m, in);
    try_several<WIDE_BLOCKS, false>(m, in);
    if constexpr (FFN_BLOCKS != WIDE_BLOCKS)
        try_several<FFN_BLOCKS, false>(m, in);
    return m;
}

#endif
