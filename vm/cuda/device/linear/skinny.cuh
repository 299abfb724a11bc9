/*
 * The skinny variant of products of 16-bit weights: decoding. The input is flagged and has so few
 * rows that a block takes one MMA (mma_rows), and all rows fit in the activation buffer. The sums
 * and their order are those of sum_general (linear/linear.cuh). Sizes are compile-time constants,
 * nothing is loaded from local memory, and the loads of many blocks are in flight at once.
 * Consumers must be several times as fast as the stream of weights, to make up for the time in
 * which they wait for an edge.
 */
#ifndef MGL_DEVICE_LINEAR_SKINNY_CUH
#define MGL_DEVICE_LINEAR_SKINNY_CUH

#include "vm/cuda/device/linear/products.cuh"

/* region: launch */
/* need shared: 0 */

/* region: macros */
/* How a warp processes row groups of KB blocks. */
template <int KB> struct skinny_path {
    enum {
        MOST_HELD = 32,   /* blocks of a run whose activations stay in registers */
        MOST_LOADED = 16, /* blocks that a warp loads at once */
        MOST_GROUPS = 4   /* row groups that a warp loads at once, if they have landed */
    };
    static constexpr int RUN = (KB + MGL_WARPS - 1) / MGL_WARPS;
    static constexpr mgl_tape_order P = mgl_tape_order_of(KB, MGL_WARPS);
    /* all warps with blocks have the same number of blocks */
    static constexpr bool FULL = P.of_last == RUN;
    static constexpr bool HOLD = RUN <= MOST_HELD;
    /* blocks loaded at once: fewer if the activations of a long run take the registers */
    static constexpr int AT_ONCE = HOLD && RUN > MOST_LOADED ? MOST_LOADED / 2 : MOST_LOADED;
    /* a run is divided into parts of about equal size, each at most half a ring */
    static constexpr int HALF_RING = RING_BLOCKS / 2, IN_HALF = HALF_RING / MGL_WARPS;
    static constexpr int MOST = IN_HALF < AT_ONCE ? IN_HALF : AT_ONCE;
    static constexpr int PARTS = MOST < 1 ? RUN : (RUN + MOST - 1) / MOST;
    static constexpr int EACH = (RUN + PARTS - 1) / PARTS;

    /* Whether `groups` row groups can be loaded at once. */
    static constexpr bool fit(int groups)
    {
        return FULL && RUN * groups <= MOST_LOADED && KB * groups <= HALF_RING;
    }
    static constexpr int GROUPS = fit(MOST_GROUPS) ? MOST_GROUPS : fit(2) ? 2 : 1;
};

/* region: device */
/* ---- the input --------------------------------------------------------------------------------
 */

/* Whether every input consists of whole blocks, so that no lane is past the end of a row. */
enum {
    WHOLE_BLOCKS = MGL_HIDDEN % BLOCK_COLUMNS == 0 && MGL_ATTENDED % BLOCK_COLUMNS == 0 &&
                   MGL_FFN % BLOCK_COLUMNS == 0
};

/* Waits until the words of all lanes are written. Missing words are loaded again, all at once. All
 * lanes continue together, so that the following code is not executed twice. */
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

/* Stores four columns in the activation buffer as high and low parts, if `within`. gather_wide has
 * the same code in its loop: with a call, the compiler would order its loads differently. */
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

/* Copies this warp's run of the only row, in f32, to the activation buffer. Waits for the row, then
 * for the start barrier. A lane loads every 32nd word of four columns, so a load of the warp covers
 * whole memory sectors. The weights of the norm are loaded before the row; meanwhile() runs while
 * the loads of the row are in flight, and does work that needs no input.
 *
 * Returns this lane's sum of squares, in the order of the general variant. There a lane has all
 * eight columns of every 32nd chunk, and warp_sum adds the lanes. Here even lanes begin the sum of
 * a chunk and odd lanes complete it; words j and j + 1 belong to the chunks of lanes 16 apart. */
template <int KB, class MEANWHILE>
static __device__ __forceinline__ float gather_wide(machine &m, const input &in,
                                                    const MEANWHILE &meanwhile)
{
    constexpr int RUN = skinny_path<KB>::RUN, N = (RUN * 8 + 31) / 32;
    constexpr bool NORM = KB == blocks_of(MGL_HIDDEN); /* the input may have a norm */
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
        /* in a chunk, the even pairs come first, then the odd pairs */
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

/* Same for a row in 16 bits: a lane has every 32nd chunk of eight columns. */
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

/* Loads the maximum and the sum of a partial. The two words after them are unused and take no
 * registers. */
static __device__ __forceinline__ uint4 load_weight(const float *at, u64 policy)
{
    const uint4 words = load_words(at, policy);
    return make_uint4(words.x, words.y, 0, 0);
}

/* Issues the loads of a lane's words of PARTS_AHEAD partials, from partial i of those in use on. */
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

/* Waits until these words are written. Missing words are loaded again, all at once. */
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

/* Same for the only row of merge_add: each lane merges the splits of the words that it stores. The
 * partials of all its words are loaded at once, PARTS_AHEAD splits at a time. */
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
    int place[N]; /* index of a word in the partials of a split; -1: past the end of the row */
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

/* Selects the function for the input. Inlined by hand into its only caller, it would cause register
 * spills in kernels for batches. */
template <int KB, class MEANWHILE>
static __device__ __forceinline__ float gather_skinny(machine &m, const input &in,
                                                      const MEANWHILE &meanwhile)
{
    if (MERGES && KB == blocks_of(MGL_ATTENDED) && in.merges)
        return gather_parts<KB>(m, in, meanwhile);
    return in.x.dtype == DTYPE_F32 ? gather_wide<KB>(m, in, meanwhile)
                                   : gather_half<KB>(m, in, meanwhile);
}

/* Writes this warp's sum of squares of an early input, and signals that. */
static __device__ __forceinline__ void tell_squares(const machine &m, float squares)
{
    write_squares(m, 0, squares);
    if (m.lane == 0)
        barrier_arrive(&own().squares_full);
}

/* ---- products ---------------------------------------------------------------------------------
 */

/* Position of a warp on the tape and in the partial-sum buffers, and constants of a task. */
struct skinny_state {
    u32 at;         /* bytes from the ring's start to this lane's part of the next row group */
    u32 block;      /* first block of the next row group, in the tape of the epoch */
    u32 frame;      /* ring frame of page m.freed */
    u32 seen;       /* last value of the landing warp's word: lower pages have landed */
    u32 place;      /* index in a partial-sum buffer of this lane's sum of row group 0 */
    u32 stride;     /* floats from one row group to the next */
    int left;       /* row groups already stored in the current buffer */
    bool low;       /* the input is split into high and low parts */
    bool leaves;    /* this lane's sum belongs to an existing row */
    const uint2 *x; /* this lane's part of the run in the activation buffer */
};

static __device__ __forceinline__ u32 page_above(const machine &m, u32 block)
{
    return m.base + (block + PAGE_BLOCKS - 1) / PAGE_BLOCKS;
}

/* Whether all pages below `end` have landed, by the values of the landing warp's word that the
 * lanes have read. */
static __device__ __forceinline__ bool has_landed(skinny_state &st, u32 end)
{
    if (__all_sync(0xFFFFFFFFu, (int)(end - st.seen) <= 0))
        return true;
    st.seen = load_shared_acquire(&own().landed);
    return __all_sync(0xFFFFFFFFu, (int)(end - st.seen) <= 0);
}

/* Waits until all pages below `end` have landed. */
static __device__ __forceinline__ void wait_landed(machine &m, skinny_state &st, u32 end)
{
    if (has_landed(st, end))
        return;
    m.known = max(m.known, m.freed); /* freed pages have landed */
    ring_wait(m, end);
}

/* Frees the pages below `page` for this warp. They have landed and are at most as many as the ring
 * has frames. */
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

/* Loads blocks [FROM, FROM + N) of the runs of G row groups. They have landed, and st.at is the
 * offset of the first one. */
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

/* Multiplies these blocks and adds the products to the sums. */
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

/* Multiplies the parts of a run one after the other, when each has landed. The pages of a part are
 * freed as soon as its blocks are in registers, except for a page on which the next part begins. */
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

/* Writes the sums of G row groups to the current partial-sum buffer. `room`: the buffer is known to
 * be empty. Passes the buffer to the epilogue if it has `each` row groups or these are the `last`.
 */
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
            ; /* each wait of the epilogue has a deadline */
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

/* Sets the position of the warp to the start of segment `seg`. */
static __device__ __forceinline__ void begin_segment(const machine &m, skinny_state &st,
                                                     const mgl_device_segment &seg)
{
    st.block = seg.block;
    st.at = ring_spot(m, seg.block + m.warp) * MGL_BLOCK_BYTES + m.lane * 16;
}

/* Initializes the state for a task. Needs nothing of the input, which may not be written yet. */
template <int KB>
static __device__ __forceinline__ skinny_state begin_task(const machine &m, const input &in)
{
    const int count = in.count, each = psum_groups(count);
    const column mine = column_of(m.lane, in.low);
    const int row = min(mine.row, count - 1) + (mine.low ? count : 0);
    const int result = in.low ? (m.lane & 3) >> 1 : m.lane & 3; /* the row of this lane's sums */
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

/* Runs the task in a warp without blocks: its sums and sums of squares are zeros. */
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

/* Runs the whole task: copies the input to the activation buffer and from there to registers, then
 * computes the row groups of all segments, up to GROUPS at once if they have landed. */
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
