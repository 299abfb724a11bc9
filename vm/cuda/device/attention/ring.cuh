/*
 * Attention by tensor cores whose keys and values come through the ring: one row in one pass,
 * decoding for one sequence (MGL_KV_RING; roles/loader.cuh says how they get there,
 * attention/softmax.cuh how a tile is worked on). What has landed while the queries were
 * waited for, a ring full, is then read faster than memory could deliver it.
 *
 * Warp w takes positions [S w, S w + S), [S (w + W), ...), S being KV_SPAN: two strips, whose
 * keys are on one page and whose values are on the next. It looks at those pages alone, and lets go
 * of them for the warps that do not: behind the last one it waits until all have landed, and goes
 * page by page again, like the warps of a product.
 */
#ifndef MGL_DEVICE_ATTENTION_RING_CUH
#define MGL_DEVICE_ATTENTION_RING_CUH

#include "vm/cuda/device/attention/kv_rounds.cuh"
#include "vm/cuda/device/ring.cuh"

/* region: launch */
/* need shared: 0 */

/* region: macros */
/* What a warp attends to. */
struct ring_share {
    tile_lane l; /* what the lane has of a strip; its addresses are not used */
    u32 page;    /* of the keys of position 0 */
    int at;      /* the warp's next position */
    int count;   /* positions, */
    int stored; /* so many of them in the cache: the row's own is the last where the task appends */
};

/* region: device */
/* Number of the row's own position among those from `from` on; behind all where it is not attended
 * to. */
static __device__ __forceinline__ int own_behind(const ring_share &w, int from)
{
    return w.count > w.stored ? w.stored - from : (int)KV_SPAN;
}

/* Where position `at` is on a page. */
static __device__ __forceinline__ const u8 *on_page(u32 page, int at)
{
    return ring_memory() + page % MGL_RING * MGL_PAGE + at % PAGE_POSITIONS * POSITION_BYTES;
}

/* The keys of a strip: `row` is its first on the page. Those behind the stored ones do not count.
 */
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

/* The values likewise, of which `left` are stored; the others are 0. */
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

/* Scores of strip `n` of the span; of one that has none, nothing is attended to. */
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

/* Waits until a page has landed. Its own barrier tells as soon as the page before it in its frame
 * is known to have: the warp may not have looked at that one. */
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

/* Waits until all pages below `end` have landed: from there on the warp goes page by page again. */
static __device__ __forceinline__ void await_all(u32 end)
{
    while ((int)(end - load_shared_acquire(&own().landed)) > 0 && !own().lost)
        ;
    __syncwarp();
}

/* Lets go of a page, for all warps: each of the `users` that read it for some of them. `user`:
 * which of them this warp is. */
static __device__ __forceinline__ void free_page(const machine &m, u32 page, int user, int users)
{
    __syncwarp();
    if (m.lane < (user == 0 ? MGL_WARPS - users + 1 : 1))
        barrier_arrive(&own().empty[page % MGL_RING]);
}

/* The warp's next two strips. */
static __device__ __forceinline__ void attend_span(machine &m, const tile_pass &p,
                                                   const ring_share &w, tile_state &s)
{
    const int pair = w.at / PAGE_POSITIONS; /* of pages: keys, then values */
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

/* What a warp's machine has become: the page behind all of the attention's, and how long it waited
 * for pages. */
struct ring_news {
    u32 end, starved;
};

/* The attention of a task to many positions. Out of line, since its registers are not those of the
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

/* The attention of a task to few: each warp has all of its only strip before the queries are there.
 */
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
