/*
 * Decode attention on tensor cores with keys and values from the ring buffer in shared memory: one
 * row in one pass, for one sequence (MGL_KV_RING). roles/loader.cuh describes how the pages are
 * filled, attention/softmax.cuh how a tile is processed. The pages that have landed while the
 * queries were awaited, up to a full ring, are then read faster than global memory could deliver
 * them.
 *
 * Consumer warp w processes positions [S w, S w + S), [S (w + W), ...), S being KV_SPAN: two KV
 * tiles, whose keys are on one page and whose values are on the next. A warp waits (`full`) only
 * for the pages that it reads, and frees them (`empty`) on behalf of warps that do not read them.
 * After the last page it waits until all have landed and continues page by page, like the warps of
 * a product.
 */
#ifndef MGL_DEVICE_ATTENTION_RING_CUH
#define MGL_DEVICE_ATTENTION_RING_CUH

#include "vm/cuda/device/attention/kv_rounds.cuh"
#include "vm/cuda/device/ring.cuh"

/* region: launch */
/* need shared: 0 */

/* region: macros */
/* A warp's share of the positions. */
struct ring_share {
    tile_lane l; /* the lane's layout of a KV tile; its addresses are not used */
    u32 page;    /* page of the keys of position 0 */
    int at;      /* the warp's next position */
    int count;   /* positions, */
    int stored;  /* of which so many are in the cache: the row's own is the last one of a task
                    that appends */
};

/* region: device */
/* Number of the row's own position, counted from `from`; KV_SPAN if the task does not attend to it.
 */
static __device__ __forceinline__ int own_behind(const ring_share &w, int from)
{
    return w.count > w.stored ? w.stored - from : (int)KV_SPAN;
}

/* Address of position `at` on a page. */
static __device__ __forceinline__ const u8 *on_page(u32 page, int at)
{
    return ring_memory() + page % MGL_RING * MGL_PAGE + at % PAGE_POSITIONS * POSITION_BYTES;
}

/* Reads the keys of a KV tile; `row` is its first position on the page. Keys after the stored ones
 * are masked later. */
static __device__ __forceinline__ void read_keys(const tile_lane &l, const u8 *row, tile_vectors &b)
{
    const u8 *at = row + l.key * POSITION_BYTES + l.d_key * 2;
#pragma unroll
    for (int i = 0; i < KEYS; i++) {
        const tile_vector v = key_vector(i);
        b.at[i] = make_uint4(0, 0, 0, 0);
        if (v.whole || 32 * v.chunk + l.d_key < HEAD_DIM)
            b.at[i] = *(const uint4 *)(at + key_place(l, v));
    }
}

/* Reads the values likewise. `left` of them are stored; the others are 0. */
static __device__ __forceinline__ void read_values(const tile_lane &l, const u8 *row, int left,
                                                   tile_vectors &b)
{
    const u8 *at = row + l.value * POSITION_BYTES + l.d_value * 2;
    const bool all = left >= KV_TILE;
#pragma unroll
    for (int i = 0; i < VALUES; i++) {
        const tile_vector v = value_vector(i);
        b.at[i] = make_uint4(0, 0, 0, 0);
        if ((all || v.position < left - l.value) &&
            (v.whole || 64 * v.chunk + l.d_value < HEAD_DIM))
            b.at[i] = *(const uint4 *)(at + value_place(l, v));
    }
}

/* Computes the scores of KV tile `n` of the span. Positions that do not exist are masked. */
static __device__ __forceinline__ void score_kv_tile(const machine &m, const tile_pass &p,
                                                     const ring_share &w, int n, float (*scores)[2])
{
    const int from = w.at + n * KV_TILE, number = own_behind(w, from);
    tile_vectors keys = {};
    if (from < w.stored)
        read_keys(w.l, on_page(w.page + w.at / PAGE_POSITIONS * 2, from), keys);
    if (number >= 0 && number < KV_TILE)
        add_own_key(w.l, p.row, number, keys);
    score_tiles(m, p, keys, w.count - from - w.l.key, scores);
}

static __device__ __forceinline__ void fetch_values(const tile_pass &p, const ring_share &w, int n,
                                                    tile_vectors &values)
{
    const int from = w.at + n * KV_TILE, number = own_behind(w, from);
    read_values(w.l, on_page(w.page + w.at / PAGE_POSITIONS * 2 + 1, from), w.stored - from,
                values);
    if (number >= 0 && number < KV_TILE)
        add_own_value(w.l, p.row, number, values);
}

/* Waits until a page has landed. The page's own barrier is valid only after the previous page of
 * the same frame has landed, which the warp may not have waited for. So the warp first checks
 * `landed`. */
static __device__ __forceinline__ void await_page(machine &m, u32 page)
{
    const u32 since = trace_clock();
    int behind = MGL_RING;
    while (behind >= MGL_RING && !own().lost)
        behind = (int)(page - load_shared_acquire(&own().landed));
    while (behind >= 0 && !barrier_passed(&own().full[page % MGL_RING], parity_of(page)) &&
           !own().lost)
        ;
    __syncwarp();
    trace_starved(m, since);
}

/* Waits until all pages below `end` have landed. From there on the warp visits page by page again.
 */
static __device__ __forceinline__ void await_all(u32 end)
{
    while ((int)(end - load_shared_acquire(&own().landed)) > 0 && !own().lost)
        ;
    __syncwarp();
}

/* Frees a page for all warps: each of its `users` warps also arrives for some of the others.
 * `user`: the number of this warp among them. */
static __device__ __forceinline__ void free_page(const machine &m, u32 page, int user, int users)
{
    __syncwarp();
    if (m.lane < (user == 0 ? MGL_WARPS - users + 1 : 1))
        barrier_arrive(&own().empty[page % MGL_RING]);
}

/* Processes the warp's next two KV tiles. */
static __device__ __forceinline__ void attend_span(machine &m, const tile_pass &p,
                                                   const ring_share &w, tile_state &s)
{
    const int pair = w.at / PAGE_POSITIONS; /* pair of pages: keys, then values */
    const int user = w.at % PAGE_POSITIONS / KV_SPAN;
    const int users =
        min((w.count - pair * PAGE_POSITIONS + KV_SPAN - 1) / KV_SPAN, PAGE_POSITIONS / KV_SPAN);
    const u32 page = w.page + pair * 2;
    const bool on_pages = w.stored > pair * PAGE_POSITIONS;
    const bool second = w.count - w.at > KV_TILE;
    float first[TILES][2], last[TILES][2];
    tile_vectors values[2];
    if (on_pages)
        await_page(m, page);
    score_kv_tile(m, p, w, 0, first);
    float top = lane_max(s.max, first);
    if (second) {
        score_kv_tile(m, p, w, 1, last);
        top = lane_max(top, last);
    }
    if (on_pages) {
        free_page(m, page, user, users);
        await_page(m, page + 1);
    }
    raise_state(s, head_max(top));
    fetch_values(p, w, 0, values[0]);
    if (second)
        fetch_values(p, w, 1, values[1]);
    if (on_pages)
        free_page(m, page + 1, user, users);
    add_values(s, first, values[0]);
    if (second)
        add_values(s, last, values[1]);
}

/* The changes to a warp's machine: the page after all pages of the attention, and the time that it
 * waited for pages. */
struct ring_news {
    u32 end, starved;
};

/* Attention of a task with many positions. Out of line, because it needs more registers than the
 * products' loop. */
NEAR_OR_INLINE ring_news attend_ring(machine m)
{
    const tile_pass p = pass_at(0);
    const u64 policy = keep_policy();
    const positions at = positions_of(m, 0);
    ring_share w = {
        {}, m.base + task_of(m)->kv_page, m.warp * KV_SPAN, at.end - at.lo, at.hi - at.lo};
    const u32 end = w.page + kv_pages((u32)w.stored);
    const int active = min((w.count + KV_SPAN - 1) / KV_SPAN, MGL_WARPS);
    quad quads[ROUNDS];
    load_quads<true>(m, p, quads, policy);
    const bool written = await_quads<true>(m, p, quads, policy);
    wait_start(m);
    write_quads<true>(m, p, quads);
    consumer_barrier();
    input_is_there(m, end);
    place_lane(m, w.l);
    swizzle_lane(w.l, at.lo);
    tile_state s = empty_state();
    for (; w.at < w.count; w.at += MGL_WARPS * KV_SPAN)
        attend_span(m, p, w, s);
    tile_result result = result_of(s);
    finish_pass<true>(m, p, plain_output_of(m, p), active, result, policy);
    append_quads(m, p);
    await_all(end);
    if (!written)
        report_missing(m);
    return {end, trace_starved_of(m)};
}

/* Attention of a task with few positions: each warp has all of its only KV tile before the queries
 * are there. */
NEAR_OR_INLINE void attend_registers(machine m)
{
    const tile_pass p = pass_at(0);
    const u64 policy = keep_policy();
    const positions at = positions_of(m, 0);
    quad quads[ROUNDS];
    tile_one v;
    load_quads<true>(m, p, quads, policy);
    const tile_share w = share_of(m, p, at);
    load_keys(w.l, 0, w.stored, v.first);
    load_values(w.l, 0, w.stored, v.values);
    const bool written = await_quads<true>(m, p, quads, policy);
    wait_start(m);
    write_quads<true>(m, p, quads);
    consumer_barrier();
    input_is_there(m, m.freed);
    tile_result result = result_of(w.left > 0 ? attend_kv_tile(m, p, w, v) : empty_state());
    finish_pass<true>(m, p, plain_output_of(m, p), active_warps(at.end - at.lo), result, policy);
    append_quads(m, p);
    if (!written)
        report_missing(m);
}

/* region: end */

#endif
