/*
 * The short way through a product of 16-bit weights, for flagged input of so few rows that a block takes
 * one MMA (mma_rows) and all of them fit the stage: what decoding does. The same sums in the same order
 * as sum_any makes (device/linear.cuh), but with everything that can be known when the kernel is
 * compiled known, no loads from local memory, and the loads of many blocks on their way at once:
 * consumers have to be several times as fast as the stream, or what they lost while they
 * waited for an edge is lost.
 */
#ifndef MGL_DEVICE_FEW_CUH
#define MGL_DEVICE_FEW_CUH

#include "vm/cuda/device/linear.cuh"

enum {
    HELD = 32, /* blocks of a run whose activations stay in registers */
    SPAN = 16, /* blocks of a warp that are loaded at once, at most, */
    BROAD = 4  /* or row groups, if that many have landed */
};

/* How a warp goes through the row groups of KB blocks. */
template <int KB> struct way {
    static constexpr int RUN = (KB + MGL_WARPS - 1) / MGL_WARPS;
    static constexpr places P = places_of(KB);
    /* every warp that has blocks has as many */
    static constexpr bool FULL = P.of_last == RUN;
    static constexpr bool HOLD = RUN <= HELD;
    /* a run in parts of about the same size, none more than half a ring */
    static constexpr int MOST =
        RING_BLOCKS / 2 / MGL_WARPS < SPAN ? RING_BLOCKS / 2 / MGL_WARPS : SPAN;
    static constexpr int PARTS = MOST < 1 ? RUN : (RUN + MOST - 1) / MOST;
    static constexpr int EACH = (RUN + PARTS - 1) / PARTS;
    /* row groups at once, where their blocks are few */
    static constexpr int GROUPS = FULL && RUN * BROAD <= SPAN && KB * BROAD <= RING_BLOCKS / 2
                                      ? BROAD
                                  : FULL && RUN * 2 <= SPAN && KB * 2 <= RING_BLOCKS / 2 ? 2
                                                                                         : 1;
    /* 16-byte words of the input that a lane fetches */
    static constexpr int CHUNKS = (RUN * 4 + 31) / 32;
};

/* ---- the input -------------------------------------------------------------------------------- */

/* This warp's run of the only row: polls all of a lane's words until they are written, and stages them;
 * the sum of their squares, of this lane. WIDE: the input is f32. The norm's weights are on their way before the
 * first look, and while that is on its own, meanwhile() does what needs no input. */
template <int KB, bool WIDE, class MEANWHILE>
static __device__ __forceinline__ float gather_few(machine &m, const input &in,
                                                   const MEANWHILE &meanwhile)
{
    constexpr int N = way<KB>::CHUNKS, RUN = way<KB>::RUN, BYTES = WIDE ? 32 : 16;
    const int first = m.warp * RUN * 4 + m.lane, end = min((m.warp + 1) * RUN * 4, in.columns / 8);
    const u8 *from = in.x.at + mapped(in, 0) * in.x.stride + first * BYTES;
    const u64 policy = keep_policy();
    uint4 raw[N], more[WIDE ? N : 1];
    constexpr bool NORM = KB == blocks_of(MGL_HIDDEN); /* may have one */
    float4 g[NORM ? 2 * N : 2];
#pragma unroll
    for (int i = 0; i < N; i++) {
        const bool real = first + 32 * i < end;
        const int at = NORM ? 2 * i : 0;
        g[at] = g[at + 1] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (NORM && in.g && real) {
            g[at] = ((const float4 *)in.g)[(first + 32 * i) * 2];
            g[at + 1] = ((const float4 *)in.g)[(first + 32 * i) * 2 + 1];
        }
        raw[i] = more[WIDE ? i : 0] = make_uint4(0, 0, 0, 0);
        if (real)
            raw[i] = load_words(from + 32 * i * BYTES, policy);
        if (WIDE && real)
            more[WIDE ? i : 0] = load_words(from + 32 * i * BYTES + 16, policy);
    }
    meanwhile();
    u64 since = 0;
    for (u32 n = 1;; n++) {
        bool missing = false;
#pragma unroll
        for (int i = 0; i < N; i++)
            missing = missing || !is_written(raw[i]) || (WIDE && !is_written(more[WIDE ? i : 0]));
        if (!missing)
            break;
#pragma unroll
        for (int i = 0; i < N; i++)
            if (!is_written(raw[i]))
                raw[i] = load_words(from + 32 * i * BYTES, policy);
#pragma unroll
        for (int i = 0; i < (WIDE ? N : 0); i++)
            if (!is_written(more[i]))
                more[i] = load_words(from + 32 * i * BYTES + 16, policy);
        if (n % POLLS == 0 && !(since = look_at_clock(m.launch, since, MGL_REPORT_FLAG,
                                                      task_of(m)->task, m.epoch, 0, 1, 0)))
            break;
    }
    float squares = 0.0f;
#pragma unroll
    for (int i = 0; i < N; i++) {
        if (first + 32 * i >= min((m.warp + 1) * RUN, KB) * 4)
            break;
        weights factor = {g[NORM ? 2 * i : 0], g[NORM ? 2 * i + 1 : 1]};
        chunk c =
            chunk_of(NORM && in.g, in.low, WIDE, raw[i], more[WIDE ? i : 0], factor, &squares);
        uint4 *to = (uint4 *)stage_memory() + first + 32 * i;
        *to = c.high;
        if (in.low)
            *(uint4 *)((u8 *)to + in.row_bytes) = c.low;
    }
    return squares;
}

template <int KB, class MEANWHILE>
static __device__ __forceinline__ float gather_row_few(machine &m, const input &in,
                                                       const MEANWHILE &meanwhile)
{
    return in.x.dtype == DTYPE_F32 ? gather_few<KB, true>(m, in, meanwhile)
                                   : gather_few<KB, false>(m, in, meanwhile);
}

/* ---- products --------------------------------------------------------------------------------- */

/* What does not change within a task, and where the warp stands. */
struct stand {
    u32 at; /* bytes from the ring's start to this lane's part of the next row group, < the ring's */
    u32 block;  /* of the epoch's tape: the next row group's first */
    u32 place;  /* floats from a slot's start to where this lane leaves its sum of row group 0 */
    u32 stride; /* and from one row group to the next */
    bool low, leaves;
    bool owes;      /* the only row's sum of squares, of this lane, is still to be left */
    float squares;  /* beside the first products, which take as long */
    const uint2 *x; /* this lane's part of the staged run */
};

enum { RING_BYTES = MGL_RING * MGL_PAGE };

static __device__ __forceinline__ u32 wrapped(u32 at)
{
    return min(at, at - RING_BYTES); /* unsigned: the difference is huge where there is none */
}

static __device__ __forceinline__ u32 page_above(const machine &m, u32 block)
{
    return m.base + (block + PAGE_BLOCKS - 1) / PAGE_BLOCKS;
}

/* Adds blocks [FROM, FROM + N) of the runs of G row groups; they have landed, and st.at is at the first. */
template <int KB, int G, int FROM, int N>
static __device__ __forceinline__ void add_blocks(const stand &st, const uint2 *held, int blocks,
                                                  sums *s)
{
    constexpr places P = way<KB>::P;
    constexpr int START = place_of(P, 0, FROM);
    uint4 w[G][N];
#pragma unroll
    for (int u = 0; u < G; u++)
#pragma unroll
        for (int i = 0; i < N; i++)
            if (way<KB>::FULL || FROM + i < blocks)
                w[u][i] =
                    *(const uint4 *)(ring_memory() +
                                     wrapped(st.at + (u * KB + place_of(P, 0, FROM + i) - START) *
                                                         BLOCK_BYTES));
#pragma unroll
    for (int i = 0; i < N; i++)
#pragma unroll
        for (int u = 0; u < G; u++)
            if (way<KB>::FULL || FROM + i < blocks)
                mma(s[u].c[(FROM + i) & 1], w[u][i],
                    way<KB>::HOLD ? held[way<KB>::HOLD ? FROM + i : 0] : st.x[(FROM + i) * 8]);
}

/* The parts of a run, one after the other, each once it has landed; its pages are let go of behind it, but
 * for one that the next part begins on. */
template <int KB, int PART = 0>
static __device__ __forceinline__ void add_parts(machine &m, stand &st, const uint2 *held,
                                                 int blocks, sums *s)
{
    typedef way<KB> W;
    constexpr int FROM = PART * W::EACH, N = W::RUN - FROM < W::EACH ? W::RUN - FROM : W::EACH;
    constexpr int END = FROM + N == W::RUN ? KB : place_of(W::P, 0, FROM + N);
    ring_wait(m, page_above(m, st.block + END));
    add_blocks<KB, 1, FROM, N>(st, held, blocks, s);
    st.at = wrapped(st.at + (END - place_of(W::P, 0, FROM)) * BLOCK_BYTES);
    ring_free(m, m.base + (st.block + END) / PAGE_BLOCKS);
    if constexpr (FROM + N < W::RUN)
        add_parts<KB, PART + 1>(m, st, held, blocks, s);
}

/* Leaves the sums of G row groups, the first of them number g of the segment. */
template <int G>
static __device__ __forceinline__ void leave_sums(machine &m, stand &st, const sums *s, int g,
                                                  int each, bool last)
{
    if (st.owes)
        leave_squares(m, 0, st.squares);
    st.owes = false;
    float total[G];
#pragma unroll
    for (int u = 0; u < G; u++) {
        total[u] = (s[u].c[0][0] + s[u].c[1][0]) + (s[u].c[0][3] + s[u].c[1][3]);
        if (st.low)
            total[u] += __shfl_xor_sync(0xFFFFFFFFu, total[u], 1);
    }
    const u32 slot = m.slot % SLOTS, use = m.slot / SLOTS, in_slot = g & (each - 1);
    if (in_slot == 0)
        while (use > 0 && !barrier_passed(&own().slot_empty[slot], (use - 1) & 1))
            ; /* the epilogue has a clock in each of its waits */
    float *to = own().partial + slot * SLOT + st.place + in_slot * st.stride;
    if (st.leaves) {
#pragma unroll
        for (int u = 0; u < G; u++)
            to[u * st.stride] = total[u];
    }
    if (in_slot + G == each || last) {
        __syncwarp();
        if (m.lane == 0)
            barrier_arrive(&own().slot_full[slot]);
        m.slot++;
    }
}

/* G row groups at once: they have landed. */
template <int KB, int G>
static __device__ __forceinline__ void sum_groups(machine &m, stand &st, const uint2 *held, int g,
                                                  int each, bool last)
{
    sums s[G] = {};
    add_blocks<KB, G, 0, way<KB>::RUN>(st, held, way<KB>::RUN, s);
    st.block += G * KB;
    st.at = wrapped(st.at + G * KB * BLOCK_BYTES);
    ring_free(m, m.base + st.block / PAGE_BLOCKS);
    leave_sums<G>(m, st, s, g, each, last);
}

/* The row groups of one segment, as many at once as have landed. */
template <int KB>
static __device__ __forceinline__ void sum_few(machine &m, stand &st, const uint2 *held, int blocks,
                                               int groups, int each)
{
    typedef way<KB> W;
    for (int g = 0; g < groups;) {
        const int room = min(groups - g, each - (g & (each - 1)));
        if (W::GROUPS > 1 && room >= W::GROUPS) {
            ring_see(m, page_above(m, st.block + W::GROUPS * KB));
            if ((int)(page_above(m, st.block + W::GROUPS * KB) - m.known) <= 0) {
                sum_groups<KB, W::GROUPS>(m, st, held, g, each, g + W::GROUPS == groups);
                g += W::GROUPS;
                continue;
            }
        }
        sums s[1] = {};
        add_parts<KB>(m, st, held, blocks, s);
        st.block += KB;
        leave_sums<1>(m, st, s, g, each, g + 1 == groups);
        g++;
    }
}

/* Where the warp stands before segment `seg`. */
static __device__ __forceinline__ void begin_segment(const machine &m, stand &st,
                                                     const mgl_device_segment &seg)
{
    st.block = seg.block;
    st.at = ring_spot(m, seg.block + m.warp) * BLOCK_BYTES + m.lane * 16;
}

/* The same before the task: all that does not depend on the input, which is still to come. */
template <int KB>
static __device__ __forceinline__ stand begin_task(const machine &m, const input &in)
{
    const int count = in.count, each = slot_groups(count);
    const column mine = column_of(m.lane, in.low);
    const int row = min(mine.row, count - 1) + (mine.low ? count : 0);
    const int result = in.low ? (m.lane & 3) >> 1 : m.lane & 3; /* row of this lane's sums */
    stand st;
    begin_segment(m, st, segment(m, 0));
    st.x = (const uint2 *)(stage_memory() + row * in.row_bytes) +
           (m.warp * way<KB>::RUN * 4 + (m.lane & 3)) * 2 + mine.odd;
    st.low = in.low;
    st.leaves = result < count && !(in.low && (m.lane & 1));
    st.stride = GROUP_ROWS * slot_rows(count);
    st.place = m.warp * each * st.stride + result * GROUP_ROWS + (m.lane >> 2);
    st.owes = in.g != nullptr;
    st.squares = 0.0f;
    return st;
}

/* The whole task. */
template <int KB> static __device__ __forceinline__ void consume_few(machine &m, const input &in)
{
    typedef way<KB> W;
    const int blocks = W::FULL || m.warp + 1 < W::P.warps ? W::RUN : W::P.of_last;
    const int each = slot_groups(in.count);
    stand st;
    int groups = 0;
    const auto meanwhile = [&] {
        st = begin_task<KB>(m, in);
        groups = segment(m, 0).groups;
        ring_see(m, page_above(m, st.block + W::GROUPS * KB));
    };
    if (in.count == 1) {
        const float squares = gather_row_few<KB>(m, in, meanwhile);
        st.squares = squares; /* which meanwhile() sets as well */
    } else {
        meanwhile();
        st.owes = false;
        gather_run(m, in);
    }
    __syncwarp();
    uint2 held[W::HOLD ? W::RUN : 1];
    if (W::HOLD) {
#pragma unroll
        for (int b = 0; b < W::RUN; b++)
            held[W::HOLD ? b : 0] = st.x[(W::FULL || b < blocks ? b : 0) * 8];
    }
    input_is_there(m);
    for (int i = 0;; groups = segment(m, i).groups) {
        sum_few<KB>(m, st, held, blocks, groups, each);
        if (++i == in.segments)
            return;
        begin_segment(m, st, segment(m, i));
    }
}

template <int KB>
static __device__ __forceinline__ void consume_few_or_pass(machine &m, const input &in)
{
    if (m.warp < way<KB>::P.warps)
        return consume_few<KB>(m, in);
    for (int j = 0; j < in.count && in.g; j++)
        leave_squares(m, j, 0.0f);
    for (int i = 0; i < in.segments; i++)
        pass_groups(m, in, segment(m, i));
}

/* The consumers' part of a product. Once a warp has left its last sums, the epilogue may go on, and the
 * task's record be gone: what is needed later is taken before. */
static __device__ __forceinline__ void consume_linear(machine &m)
{
    constexpr int HIDDEN = blocks_of(MGL_HIDDEN), WIDE = blocks_of(MGL_WIDE),
                  FFN = blocks_of(MGL_FFN);
    const input in = own().in[m.which];
    own().end[m.warp] = m.base + in.end;
    if (!MAY_BE_FEW || !in.few) {
        gather(m, in);
        m = sum_all(m);
    } else if (in.kblocks == HIDDEN) {
        consume_few_or_pass<HIDDEN>(m, in);
    } else if (WIDE != HIDDEN && in.kblocks == WIDE) {
        consume_few_or_pass<WIDE>(m, in);
    } else if (FFN != HIDDEN && FFN != WIDE) {
        consume_few_or_pass<FFN>(m, in);
    }
    ring_done(m, own().end[m.warp]);
}

#endif
