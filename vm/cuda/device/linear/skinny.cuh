/*
 * The skinny way through a product of 16-bit weights, for flagged input of so few rows that a block
 * takes one MMA (mma_rows) and all of them fit the activation buffer: what decoding does. The same
 * sums in the same order as sum_general makes (linear/linear.cuh), but with everything that can be
 * known when the kernel is compiled known, no loads from local memory, and the loads of many blocks
 * on their way at once: consumers have to be several times as fast as the stream, or what they lost
 * while they waited for an edge is lost.
 */
#ifndef MGL_DEVICE_LINEAR_SKINNY_CUH
#define MGL_DEVICE_LINEAR_SKINNY_CUH

#include "vm/cuda/device/linear/products.cuh"

/* region: launch */
/* need shared: 0 */

/* region: macros */
/* How a warp goes through the row groups of KB blocks. */
template <int KB> struct skinny_path {
    enum {
        MOST_HELD = 32,   /* blocks of a run whose activations stay in registers */
        MOST_LOADED = 16, /* blocks of a warp that are loaded at once, */
        MOST_GROUPS = 4   /* or row groups, if that many have landed */
    };
    static constexpr int RUN = (KB + MGL_WARPS - 1) / MGL_WARPS;
    static constexpr mgl_tape_order P = mgl_tape_order_of(KB, MGL_WARPS);
    /* every warp that has blocks has as many */
    static constexpr bool FULL = P.of_last == RUN;
    static constexpr bool HOLD = RUN <= MOST_HELD;
    /* blocks at once: what is held takes the registers of a long run */
    static constexpr int AT_ONCE = HOLD && RUN > MOST_LOADED ? MOST_LOADED / 2 : MOST_LOADED;
    /* a run in parts of about the same size, none more than half a ring */
    static constexpr int HALF_RING = RING_BLOCKS / 2, IN_HALF = HALF_RING / MGL_WARPS;
    static constexpr int MOST = IN_HALF < AT_ONCE ? IN_HALF : AT_ONCE;
    static constexpr int PARTS = MOST < 1 ? RUN : (RUN + MOST - 1) / MOST;
    static constexpr int EACH = (RUN + PARTS - 1) / PARTS;

    /* Whether so many row groups at once are not too many. */
    static constexpr bool fit(int groups)
    {
        return FULL && RUN * groups <= MOST_LOADED && KB * groups <= HALF_RING;
    }
    static constexpr int GROUPS = fit(MOST_GROUPS) ? MOST_GROUPS : fit(2) ? 2 : 1;
};

/* region: device */
/* ---- the input --------------------------------------------------------------------------------
 */

/* Whether every input has whole blocks only: then no lane is past a row's end. */
enum {
    WHOLE_BLOCKS = MGL_HIDDEN % BLOCK_COLUMNS == 0 && MGL_ATTENDED % BLOCK_COLUMNS == 0 &&
                   MGL_FFN % BLOCK_COLUMNS == 0
};

/* Waits for a lane's words: those that are not written are asked for again, all at once. All lanes
 * go on together: what follows is not to be gone through twice. */
template <int N>
static __device__ __forceinline__ void poll_row(const machine &m, uint4 *words, const u8 *from,
                                                u64 policy)
{
    await_flags<WHOLE_WARP>(m, MGL_PRODUCT_INPUT, [&] {
        bool missing = false;
#pragma unroll
        for (int i = 0; i < N; i++)
            missing = missing || !is_written(words[i]);
        if (!__any_sync(0xFFFFFFFFu, missing))
            return true;
#pragma unroll
        for (int i = 0; i < N; i++)
            if (!is_written(words[i]))
                words[i] = load_words(from + i * 512, policy);
        return false;
    });
}

/* Leaves four columns at their place in the activation buffer, in two parts, if the row is so long,
 * as gather_wide does in its loop: with a call there, its loads stand in another order. */
static __device__ __forceinline__ void write_wide(const input &in, u32 *to, bool within,
                                                  const float *v)
{
    const u32 high[2] = {pack_pair(MGL_WEIGHT, v[0], v[1]), pack_pair(MGL_WEIGHT, v[2], v[3])};
    float rest[8];
    unpack_half(make_uint4(high[0], high[1], 0, 0), rest);
    const u32 low[2] = {pack_pair(MGL_WEIGHT, v[0] - rest[0], v[1] - rest[1]),
                        pack_pair(MGL_WEIGHT, v[2] - rest[2], v[3] - rest[3])};
    if (within) {
        to[0] = high[0];
        to[2] = high[1];
        to = (u32 *)((u8 *)to + in.row_bytes);
        to[0] = low[0];
        to[2] = low[1];
    }
}

/* This warp's run of the only row, in f32, to the activation buffer: waits for the row, then for
 * `go`. A lane has every 32nd word of four columns, so that a look of the warp takes whole sectors.
 * The norm's weights are on their way before the first look, and while that is on its way,
 * meanwhile() does what needs no input. The result is this lane's sum of squares: the sum that
 * general rows have, where a lane has all eight columns of every 32nd chunk and warp_sum adds up
 * the lanes. Here even lanes begin the sum of a chunk and odd lanes end it; words j and j + 1 are
 * the chunks of lanes 16 apart. */
template <int KB, class MEANWHILE>
static __device__ __forceinline__ float gather_wide(machine &m, const input &in,
                                                    const MEANWHILE &meanwhile)
{
    constexpr int RUN = skinny_path<KB>::RUN, N = (RUN * 8 + 31) / 32;
    constexpr bool NORM = KB == blocks_of(MGL_HIDDEN); /* may have one */
    constexpr bool WHOLE = WHOLE_BLOCKS && skinny_path<KB>::FULL && RUN * 8 % 32 == 0;
    const int first = m.warp * RUN * 8 + m.lane, end = min((m.warp + 1) * RUN * 8, in.columns / 4);
    const int blocks_end = min((m.warp + 1) * RUN, KB) * 8;
    const u8 *from = in.x.at + mapped(in, 0) * in.x.stride + first * 16;
    const u64 policy = keep_policy();
    uint4 words[N];
    float4 g[NORM ? N : 1];
#pragma unroll
    for (int j = 0; j < N; j++) {
        const bool real = WHOLE || first + 32 * j < end;
        if (NORM) {
            g[NORM ? j : 0] = make_float4(1.0f, 1.0f, 1.0f, 1.0f);
            if (in.g && real)
                g[NORM ? j : 0] = ((const float4 *)in.g)[first + 32 * j];
        }
        words[j] = make_uint4(0, 0, 0, 0);
        if (real)
            words[j] = load_words(from + j * 512, policy);
    }
    meanwhile();
    poll_row<N>(m, words, from, policy);
    wait_start(m);
    const bool odd = m.lane & 1;
    float squares[2] = {};
#pragma unroll
    for (int j = 0; j < N; j++) {
        float v[4];
        format<DTYPE_F32>::unpack(words[j], v);
        if (NORM) {
            const float4 weight = g[NORM ? j : 0];
            const float factor[4] = {weight.x, weight.y, weight.z, weight.w};
            float sum = squares[j & 1];
            if (j >= 2)
                sum = __shfl_xor_sync(0xFFFFFFFFu, sum, 1);
            for (int half = 0; half < 2; half++) {
                float added = sum;
#pragma unroll
                for (int k = 0; k < 4; k++)
                    added = fmaf(v[k], v[k], added);
                sum = half == 0 ? __shfl_xor_sync(0xFFFFFFFFu, added, 1) : added;
            }
            squares[j & 1] = sum;
#pragma unroll
            for (int k = 0; k < 4; k++)
                v[k] *= factor[k];
        }
        const u32 high[2] = {pack_pair(MGL_WEIGHT, v[0], v[1]), pack_pair(MGL_WEIGHT, v[2], v[3])};
        float rest[8];
        unpack_half(make_uint4(high[0], high[1], 0, 0), rest);
        const u32 low[2] = {pack_pair(MGL_WEIGHT, v[0] - rest[0], v[1] - rest[1]),
                            pack_pair(MGL_WEIGHT, v[2] - rest[2], v[3] - rest[3])};
        /* in a chunk, the even pairs and then the odd ones */
        u32 *to = (u32 *)activation_buffer() + (first + 32 * j) / 2 * 4 + odd;
        if (WHOLE || first + 32 * j < blocks_end) {
            to[0] = high[0];
            to[2] = high[1];
            to = (u32 *)((u8 *)to + in.row_bytes);
            to[0] = low[0];
            to[2] = low[1];
        }
    }
    return odd ? squares[0] + squares[1] : 0.0f;
}

/* The same of a row in 16 bits: a lane has every 32nd chunk of eight columns. */
template <int KB, class MEANWHILE>
static __device__ __forceinline__ float gather_half(machine &m, const input &in,
                                                    const MEANWHILE &meanwhile)
{
    constexpr int RUN = skinny_path<KB>::RUN, N = (RUN * 4 + 31) / 32;
    constexpr bool NORM = KB == blocks_of(MGL_HIDDEN);
    constexpr bool WHOLE = WHOLE_BLOCKS && skinny_path<KB>::FULL && RUN * 4 % 32 == 0;
    const int first = m.warp * RUN * 4 + m.lane, end = min((m.warp + 1) * RUN * 4, in.columns / 8);
    const int blocks_end = min((m.warp + 1) * RUN, KB) * 4;
    const u8 *from = in.x.at + mapped(in, 0) * in.x.stride + first * 16;
    const u64 policy = keep_policy();
    uint4 words[N];
    weights g[NORM ? N : 1] = {};
#pragma unroll
    for (int i = 0; i < N; i++) {
        const bool real = WHOLE || first + 32 * i < end;
        if (NORM && in.g && real)
            g[NORM ? i : 0] = {((const float4 *)in.g)[(first + 32 * i) * 2],
                               ((const float4 *)in.g)[(first + 32 * i) * 2 + 1]};
        words[i] = make_uint4(0, 0, 0, 0);
        if (real)
            words[i] = load_words(from + i * 512, policy);
    }
    meanwhile();
    poll_row<N>(m, words, from, policy);
    wait_start(m);
    float squares = 0.0f;
#pragma unroll
    for (int i = 0; i < N; i++) {
        const chunk c = chunk_of(NORM && in.g, in.low, false, words[i], make_uint4(0, 0, 0, 0),
                                 g[NORM ? i : 0], &squares);
        uint4 *to = (uint4 *)activation_buffer() + first + 32 * i;
        if (WHOLE || first + 32 * i < blocks_end) {
            *to = c.high;
            if (in.low)
                *(uint4 *)((u8 *)to + in.row_bytes) = c.low;
        }
    }
    return squares;
}

/* Max and sum; the two words behind them are not looked at, and take no registers. */
static __device__ __forceinline__ uint4 load_weight(const float *at, u64 policy)
{
    const uint4 words = load_words(at, policy);
    return make_uint4(words.x, words.y, 0, 0);
}

/* Partials on their way: number i and the next ones of those that are used, of a lane's words. */
template <int N>
static __device__ __forceinline__ void load_parts(const part_row &p, int i, const int *place,
                                                  next_parts *to, u64 policy)
{
#pragma unroll
    for (int j = 0; j < PARTS_AHEAD; j++) {
        const float *from = part_at(p, i + j);
#pragma unroll
        for (int n = 0; n < N; n++) {
            to[n].value[j][0] = make_uint4(0, 0, 0, 0);
            to[n].weight[j] = make_uint4(__float_as_uint(-INFINITY), 0, 0, 0);
            if (i + j < p.used && place[n] >= 0) {
                to[n].value[j][0] = load_words(from + place[n], policy);
                to[n].weight[j] = load_weight(from + weight_place(place[n]), policy);
            }
        }
    }
}

/* Waits for them: those that are not written are asked for again, all at once. */
template <int N>
static __device__ __forceinline__ void poll_parts(const machine &m, const part_row &p, int i,
                                                  const int *place, next_parts *words, u64 policy)
{
    await_flags<WHOLE_WARP>(m, MGL_PRODUCT_INPUT, [&] {
        bool missing = false;
#pragma unroll
        for (int j = 0; j < PARTS_AHEAD; j++)
#pragma unroll
            for (int n = 0; n < N; n++)
                missing =
                    missing || !is_written(words[n].value[j][0]) || !is_written(words[n].weight[j]);
        if (!__any_sync(0xFFFFFFFFu, missing))
            return true;
#pragma unroll
        for (int j = 0; j < PARTS_AHEAD; j++) {
            const float *from = part_at(p, i + j);
#pragma unroll
            for (int n = 0; n < N; n++) {
                if (!is_written(words[n].value[j][0]))
                    words[n].value[j][0] = load_words(from + place[n], policy);
                if (!is_written(words[n].weight[j]))
                    words[n].weight[j] = load_weight(from + weight_place(place[n]), policy);
            }
        }
        return false;
    });
}

/* The only row of merge_add, likewise: each lane merges the words that it leaves. The partials of
 * all its words are on their way at once, PARTS_AHEAD splits at a time. */
template <int KB, class MEANWHILE>
static __device__ __forceinline__ float gather_parts(machine &m, const input &in,
                                                     const MEANWHILE &meanwhile)
{
    constexpr int RUN = skinny_path<KB>::RUN, N = (RUN * 8 + 31) / 32;
    constexpr bool WHOLE = WHOLE_BLOCKS && skinny_path<KB>::FULL && RUN * 8 % 32 == 0;
    const int first = m.warp * RUN * 8 + m.lane, end = min((m.warp + 1) * RUN * 8, in.columns / 4);
    const int blocks_end = min((m.warp + 1) * RUN, KB) * 8;
    const part_row from = parts_of(m, 0);
    const u64 policy = keep_policy();
    merged all[N];
    int place[N]; /* of a word in a split's partials, in floats; -1: the row has no such word */
#pragma unroll
    for (int n = 0; n < N; n++) {
        const int column = (first + 32 * n) * 4;
        const bool real = WHOLE || first + 32 * n < end;
        place[n] = real ? column / HEAD_DIM * (HEAD_DIM + 4) + column % HEAD_DIM : -1;
        all[n] = nothing_merged();
    }
    for (int i = 0; i < from.used; i += PARTS_AHEAD) {
        next_parts words[N];
        load_parts<N>(from, i, place, words, policy);
        poll_parts<N>(m, from, i, place, words, policy);
#pragma unroll
        for (int n = 0; n < N; n++)
            add_next(all[n], words[n]);
    }
    meanwhile();
    wait_start(m);
#pragma unroll
    for (int n = 0; n < N; n++) {
        const float inverse = place[n] < 0 ? 0.0f : reciprocal(all[n].sum);
        float v[4];
#pragma unroll
        for (int j = 0; j < 4; j++)
            v[j] = all[n].value[0][j] * inverse;
        u32 *to = (u32 *)activation_buffer() + (first + 32 * n) / 2 * 4 + (m.lane & 1);
        write_wide(in, to, WHOLE || first + 32 * n < blocks_end, v);
    }
    return 0.0f;
}

/* A function of its own, though it has one caller: written there, kernels for batches spill. */
template <int KB, class MEANWHILE>
static __device__ __forceinline__ float gather_skinny(machine &m, const input &in,
                                                      const MEANWHILE &meanwhile)
{
    if (MERGES && KB == blocks_of(MGL_ATTENDED) && in.merges)
        return gather_parts<KB>(m, in, meanwhile);
    return in.x.dtype == DTYPE_F32 ? gather_wide<KB>(m, in, meanwhile)
                                   : gather_half<KB>(m, in, meanwhile);
}

/* Leaves this warp's squares of an early input, and says so. */
static __device__ __forceinline__ void tell_squares(const machine &m, float squares)
{
    write_squares(m, 0, squares);
    if (m.lane == 0)
        barrier_arrive(&own().squares_full);
}

/* ---- products ---------------------------------------------------------------------------------
 */

/* Where a warp stands on the tape and in the slots, and what does not change within a task. */
struct skinny_state {
    u32 at;      /* bytes from the ring's start to this lane's part of the next row group */
    u32 block;   /* of the epoch's tape: the next row group's first */
    u32 frame;   /* of the ring: that of page m.freed */
    u32 seen;    /* pages below have landed: the landing warp's word, as it was */
    u32 place;   /* floats from a slot's start to where this lane leaves its sum of row group 0 */
    u32 stride;  /* and from one row group to the next */
    int left;    /* row groups that are in the slot at hand */
    bool low;    /* the input is split into high and low parts */
    bool leaves; /* this lane's sum is a row's */
    const uint2 *x; /* this lane's part of the run in the activation buffer */
};

static __device__ __forceinline__ u32 page_above(const machine &m, u32 block)
{
    return m.base + (block + PAGE_BLOCKS - 1) / PAGE_BLOCKS;
}

/* Whether all pages below `end` have landed, as the landing warp's word has it: what every lane has
 * read. */
static __device__ __forceinline__ bool has_landed(skinny_state &st, u32 end)
{
    if (__all_sync(0xFFFFFFFFu, (int)(end - st.seen) <= 0))
        return true;
    st.seen = load_shared_acquire(&own().landed);
    return __all_sync(0xFFFFFFFFu, (int)(end - st.seen) <= 0);
}

/* The same, waiting for it. */
static __device__ __forceinline__ void wait_landed(machine &m, skinny_state &st, u32 end)
{
    if (has_landed(st, end))
        return;
    m.known = max(m.known, m.freed); /* what is let go of has landed */
    ring_wait(m, end);
}

/* This warp needs no page below `page` any more; there are no more of them than the ring has, and
 * they have landed. */
static __device__ __forceinline__ void free_skinny_page(machine &m, skinny_state &st, u32 page)
{
    const u32 pages = page - m.freed;
    __syncwarp();
    for (u32 i = m.lane; i < pages; i += 32) {
        barrier_arrive(&own().empty[min(st.frame + i, st.frame + i - MGL_RING)]);
        if (MGL_RING <= 32)
            break;
    }
    st.frame = min(st.frame + pages, st.frame + pages - MGL_RING);
    m.freed = page;
}

/* Blocks [FROM, FROM + N) of the runs of G row groups; they have landed, and st.at is at the first.
 */
template <int KB, int G, int FROM, int N>
static __device__ __forceinline__ void load_blocks(const skinny_state &st, int blocks,
                                                   uint4 (*w)[N])
{
    constexpr mgl_tape_order P = skinny_path<KB>::P;
    constexpr int START = mgl_tape_place(P, 0, FROM);
#pragma unroll
    for (int u = 0; u < G; u++)
#pragma unroll
        for (int i = 0; i < N; i++)
            if (skinny_path<KB>::FULL || FROM + i < blocks)
                w[u][i] =
                    *(const uint4 *)(ring_memory() +
                                     within_ring(st.at +
                                                 (u * KB + mgl_tape_place(P, 0, FROM + i) - START) *
                                                     MGL_BLOCK_BYTES));
}

/* Adds them. */
template <int KB, int G, int FROM, int N>
static __device__ __forceinline__ void add_blocks(const skinny_state &st, const uint2 *held,
                                                  int blocks, const uint4 (*w)[N], sums *s)
{
#pragma unroll
    for (int i = 0; i < N; i++)
#pragma unroll
        for (int u = 0; u < G; u++)
            if (skinny_path<KB>::FULL || FROM + i < blocks)
                mma(s[u].c[(FROM + i) & 1], w[u][i],
                    skinny_path<KB>::HOLD ? held[skinny_path<KB>::HOLD ? FROM + i : 0]
                                          : st.x[(FROM + i) * 8]);
}

/* Whether the slot at hand is empty: asked before there is something to leave. */
static __device__ __forceinline__ bool has_room(const machine &m)
{
    return barrier_tested(&own().psum_empty[m.psums % PSUM_COUNT], (m.psums / PSUM_COUNT + 1) & 1);
}

/* The parts of a run, one after the other, each once it has landed. Its pages are let go of as soon
 * as they are in registers, but for one that the next part begins on. */
template <int KB, int PART = 0>
static __device__ __forceinline__ void add_parts(machine &m, skinny_state &st, const uint2 *held,
                                                 int blocks, sums *s)
{
    typedef skinny_path<KB> W;
    constexpr int FROM = PART * W::EACH, N = W::RUN - FROM < W::EACH ? W::RUN - FROM : W::EACH;
    constexpr int END = FROM + N == W::RUN ? KB : mgl_tape_place(W::P, 0, FROM + N);
    wait_landed(m, st, page_above(m, st.block + END));
    uint4 w[1][N] = {};
    load_blocks<KB, 1, FROM, N>(st, blocks, w);
    st.seen = load_shared_acquire(&own().landed);
    st.at = within_ring(st.at + (END - mgl_tape_place(W::P, 0, FROM)) * MGL_BLOCK_BYTES);
    free_skinny_page(m, st, m.base + (st.block + END) / PAGE_BLOCKS);
    add_blocks<KB, 1, FROM, N>(st, held, blocks, w, s);
    if constexpr (FROM + N < W::RUN)
        add_parts<KB, PART + 1>(m, st, held, blocks, s);
}

/* Leaves the sums of G row groups in the slot at hand, which is empty if `room`, and passes that on
 * when `each` are in it, or these are the `last`. */
template <int G>
static __device__ __forceinline__ void write_sums(machine &m, skinny_state &st, const sums *s,
                                                  int each, bool room, bool last)
{
    float total[G];
#pragma unroll
    for (int u = 0; u < G; u++) {
        total[u] = (s[u].c[0][0] + s[u].c[1][0]) + (s[u].c[0][3] + s[u].c[1][3]);
        const float other = __shfl_xor_sync(0xFFFFFFFFu, total[u], 1);
        total[u] = st.low ? total[u] + other : total[u];
    }
    const u32 psum = m.psums % PSUM_COUNT, parity = (m.psums / PSUM_COUNT + 1) & 1;
    float *to = own().partial + psum * PSUM + st.place + st.left * st.stride;
    if (!room)
        while (!barrier_passed(&own().psum_empty[psum], parity))
            ; /* the epilogue has a clock in each of its waits */
    if (st.leaves) {
#pragma unroll
        for (int u = 0; u < G; u++)
            to[u * st.stride] = total[u];
    }
    st.left += G;
    const bool full = st.left == each || last;
    __syncwarp();
    if (full && m.lane == 0)
        barrier_arrive(&own().psum_full[psum]);
    m.psums += full;
    st.left = full ? 0 : st.left;
}

/* Where the warp stands before segment `seg`. */
static __device__ __forceinline__ void begin_segment(const machine &m, skinny_state &st,
                                                     const mgl_device_segment &seg)
{
    st.block = seg.block;
    st.at = ring_spot(m, seg.block + m.warp) * MGL_BLOCK_BYTES + m.lane * 16;
}

/* The same before the task: all that does not depend on the input, which is still to come. */
template <int KB>
static __device__ __forceinline__ skinny_state begin_task(const machine &m, const input &in)
{
    const int count = in.count, each = psum_groups(count);
    const column mine = column_of(m.lane, in.low);
    const int row = min(mine.row, count - 1) + (mine.low ? count : 0);
    const int result = in.low ? (m.lane & 3) >> 1 : m.lane & 3; /* row of this lane's sums */
    skinny_state st;
    begin_segment(m, st, segment(m, 0));
    st.x = (const uint2 *)(activation_buffer() + row * in.row_bytes) +
           (m.warp * skinny_path<KB>::RUN * 4 + (m.lane & 3)) * 2 + mine.odd;
    st.low = in.low;
    st.leaves = result < count && !(in.low && (m.lane & 1));
    st.stride = MGL_ROW_GROUP * psum_rows(count);
    st.place = m.warp * each * st.stride + result * MGL_ROW_GROUP + (m.lane >> 2);
    st.left = 0;
    st.frame = m.freed % MGL_RING;
    st.seen = load_shared_acquire(&own().landed);
    return st;
}

/* A warp without blocks: its sums, and its sums of squares, are zeros. */
static __device__ __forceinline__ void skip_skinny(machine &m, const input &in)
{
    if (in.flows)
        wait_start(m);
    if (in.early) {
        tell_squares(m, 0.0f);
    } else {
        for (int j = 0; j < in.count && in.g; j++)
            write_squares(m, j, 0.0f);
    }
    for (int i = 0; i < in.segments; i++)
        skip_groups(m, in, segment(m, i));
}

/* The whole task: the input into the activation buffer, from there into registers, and the row
 * groups of all segments, as many at once as have landed. */
template <int KB> static __device__ __forceinline__ void consume_skinny(machine &m, const input &in)
{
    typedef skinny_path<KB> W;
    constexpr int G = W::GROUPS;
    if (m.warp >= W::P.warps)
        return skip_skinny(m, in);
    const int blocks = W::FULL || m.warp + 1 < W::P.warps ? W::RUN : W::P.of_last;
    const int each = psum_groups(in.count);
    skinny_state st;
    int groups = 0;
    const auto meanwhile = [&] {
        st = begin_task<KB>(m, in);
        groups = segment(m, 0).groups;
    };
    float squares = 0.0f;
    if (PRODUCT_ROWS == 1 || in.count == 1) {
        squares = gather_skinny<KB>(m, in, meanwhile);
    } else {
        meanwhile();
        gather_run(m, in);
    }
    __syncwarp();
    uint2 held[W::HOLD ? W::RUN : 1];
    if (W::HOLD) {
#pragma unroll
        for (int b = 0; b < W::RUN; b++)
            held[W::HOLD ? b : 0] = st.x[(W::FULL || b < blocks ? b : 0) * 8];
    }
    if (in.early)
        tell_squares(m, squares);
    input_is_there(m, m.base + in.end);
    for (int i = 0;; groups = segment(m, i).groups) {
        while (groups > 0) {
            if (G > 1 && min(groups, each - st.left) >= G &&
                has_landed(st, page_above(m, st.block + G * KB))) {
                uint4 w[G][W::RUN];
                load_blocks<KB, G, 0, W::RUN>(st, W::RUN, w);
                st.seen = load_shared_acquire(&own().landed);
                st.block += G * KB;
                st.at = within_ring(st.at + G * KB * MGL_BLOCK_BYTES);
                free_skinny_page(m, st, m.base + st.block / PAGE_BLOCKS);
                const bool room = has_room(m);
                sums s[G] = {};
                add_blocks<KB, G, 0, W::RUN>(st, held, W::RUN, w, s);
                groups -= G;
                write_sums<G>(m, st, s, each, room, groups == 0);
                continue;
            }
            sums s[1] = {};
            add_parts<KB>(m, st, held, blocks, s);
            const bool room = has_room(m);
            st.block += KB;
            groups--;
            write_sums<1>(m, st, s, each, room, groups == 0);
        }
        if (++i == in.segments)
            return;
        begin_segment(m, st, segment(m, i));
    }
}

/* region: end */

#endif
