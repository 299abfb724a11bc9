/*
 * L2 prefetch of the loader, ahead of the ring. While the ring is full, the next pages of the tape
 * are prefetched. Keys and values of earlier positions come before them: those that the current or
 * the next attention reads, piece by piece in the order of their use. loader.cuh and
 * panel_loader.cuh call these functions. Also defines `stream`, the loader's state.
 */
#ifndef MGL_DEVICE_ROLES_AHEAD_CUH
#define MGL_DEVICE_ROLES_AHEAD_CUH

#include "vm/cuda/device/attention/kv_pages.cuh"
#include "vm/cuda/device/ring.cuh"

enum {
    PREFETCH_RATE =
        16, /* bytes per cycle of the SM that are prefetched into L2: below the stream's rate */
    AHEAD_BYTES = 262144, /* bytes of keys and values that are prefetched ahead of attention's
                             warps, at most */
    AHEAD_PIECE = 4096,   /* bytes of one prefetch, at most */
    AHEAD_NS = 50         /* the loader's sleep in between */
};

/* Without KV_RING: the loader's state of an attention's keys and values. It prefetches them stretch
 * by stretch: the keys of the first positions, the values of the same positions, the keys of the
 * next ones. */
struct kv_stream {
    u64 keys, values;  /* addresses, */
    u32 bytes;         /* bytes of each */
    u32 stretch_bytes; /* bytes of a stretch */
    u32 number;        /* own().kv_number of these values */
    u32 stretch;       /* number of the current stretch: keys if even, */
    u32 begin;         /* its first byte; `bytes` or more: nothing is left */
    u32 at;            /* the next byte to prefetch */
};

/* With KV_RING: the loader's progress through the attentions of its queue. */
struct ring_stream {
    const mgl_device_kv *stops; /* the attentions, in order, */
    u32 stop_count;             /* their number */
    u32 from;                   /* block at which the next copy of the current tape page begins */
    u32 epoch;                  /* epoch of the next attention, */
    u32 stop;                   /* and its number */
    mgl_device_kv next, behind; /* the next attention and the one after it: `stop` is ~0 if there is
                                   none */
    bool begun;                 /* the next attention's epoch has begun: the following fields are
                                   valid */
    const u8 *keys, *values;    /* addresses of its keys and values */
    u32 bytes;                  /* bytes of each */
    u32 pages;                  /* pages of both together */
    u32 copied;                 /* pages that are in the ring or in flight */
    u32 asked;                  /* pages that were prefetched into L2 */
    u32 fenced;                 /* epochs whose cache the copies may read (proxy fence done) */
};

/* The loader's state. */
struct stream {
    const u8 *tape;
    u32 pages;       /* of the tape */
    u32 pending;     /* pages in flight while the queue waits for an edge, at most */
    ring_place next; /* the page to copy, */
    u32 at;          /* and its number on the tape */
    u32 fetched;     /* pages of the tape that were prefetched, from `at` on */
    u32 fetch_at;    /* the page after them */
    u32 fetch_time;  /* cycle of the last prefetch, */
    u32 fetch_bytes; /* and its bytes */
    kv_stream kv;
    ring_stream ring;
    u32 polls; /* failed polls for the next page */
    u64 since; /* time of the first check of the clock; 0: none yet */
};

static __device__ __forceinline__ u32 next_on_tape(const stream &t, u32 at)
{
    return at + 1 == t.pages ? 0 : at + 1;
}

/* Whether the value is true in all lanes of the loader, which is a single thread with bulk copies.
 */
static __device__ __forceinline__ bool all_say(bool value)
{
    return MGL_BULK_COPY ? value : __all_sync(0xFFFFFFFFu, value);
}

/* Whether the loader may prefetch more. The rate is limited to 1 / `share` of the stream's
 * bandwidth; otherwise exchanged activations would wait behind the prefetches. */
static __device__ __forceinline__ bool may_fetch(const stream &t, u32 share)
{
    return all_say(cycles() - t.fetch_time >= t.fetch_bytes / PREFETCH_RATE * share);
}

static __device__ __forceinline__ void note_fetch(stream &t, u32 bytes)
{
    t.fetch_time = cycles();
    t.fetch_bytes = bytes;
}

/* Prefetches the page after those that are prefetched, when the ring is full. */
static __device__ __forceinline__ void prefetch(const machine &m, stream &t)
{
    if (!may_fetch(t, 1))
        return;
    if (t.fetched == 0)
        t.fetch_at = t.at;
    if (t.fetched >= MGL_PREFETCH || t.fetch_at >= t.pages)
        return;
    prefetch_page(m.lane, t.tape + (size_t)t.fetch_at * MGL_PAGE);
    t.fetched++;
    t.fetch_at = next_on_tape(t, t.fetch_at);
    note_fetch(t, MGL_PAGE);
}

#if MGL_KV_RING

/* Finds the earlier positions of the next attention if its epoch has begun; there are none if the
 * epoch's row is not of the kind that the attention attends with. Returns whether the epoch has
 * begun. */
static __device__ __forceinline__ bool see_kv(ring_stream &r)
{
    if (r.begun || r.stop >= r.stop_count)
        return r.begun;
    if ((int)(load_shared_acquire(&own().entered) - r.epoch) <= 0)
        return false;
    if (r.fenced != r.epoch + 1) /* the copies read what generic stores wrote */
        fence_bulk_reads();
    r.fenced = r.epoch + 1;
    int lo, hi;
    const int first = (int)(own().kv_first + r.epoch);
    mgl_split_positions(first, (int)r.next.split, (int)r.next.splits, MGL_SHARE, &lo, &hi);
    if (MGL_UNSPLIT > 0 && r.next.rows != MGL_KV_ALL &&
        (r.next.rows == MGL_KV_UNSPLIT) != (first <= MGL_UNSPLIT))
        lo = hi = 0;
    r.keys = (const u8 *)r.next.keys + (size_t)(u32)lo * POSITION_BYTES;
    r.values = (const u8 *)r.next.values + (size_t)(u32)lo * POSITION_BYTES;
    r.bytes = (u32)(hi - lo) * POSITION_BYTES;
    r.pages = kv_pages((u32)(hi - lo));
    r.copied = r.asked = 0;
    r.begun = true;
    return true;
}

/* Address and bytes of page number `page` of the attention's keys and values. */
static __device__ __forceinline__ const u8 *kv_page_at(const ring_stream &r, u32 page, u32 *bytes)
{
    const u32 begin = page / 2 * (PAGE_POSITIONS * POSITION_BYTES);
    *bytes = min((u32)PAGE_POSITIONS * POSITION_BYTES, r.bytes - begin);
    return (page % 2 ? r.values : r.keys) + begin;
}

/* Prefetches keys and values that the ring has no room for yet, if their turn has come, up to
 * AHEAD_BYTES ahead. Returns false if there is nothing to prefetch. */
static __device__ __forceinline__ bool ask_ahead(stream &t, u32 share)
{
    ring_stream &r = t.ring;
    /* earlier bytes of the tape come first */
    if (r.next.stop - t.at * PAGE_BLOCKS >= (t.fetched + 1) * PAGE_BLOCKS || !see_kv(r))
        return false;
    r.asked = max(r.asked, r.copied);
    if (r.asked >= r.pages || (r.asked - r.copied) * MGL_PAGE >= AHEAD_BYTES)
        return false;
    if (may_fetch(t, share)) {
        u32 bytes;
        const u8 *from = kv_page_at(r, r.asked, &bytes);
        prefetch_bytes((u64)from, bytes);
        note_fetch(t, bytes);
        r.asked++;
    }
    return true;
}

#elif MGL_BULK_COPY

/* Reads the block's announcement of the next attention (seqlock read). If it changes meanwhile, a
 * later call reads it. */
static __device__ __forceinline__ void see_kv(kv_stream &kv)
{
    const u32 number = load_shared_acquire(&own().kv_number);
    if (number == kv.number || number % 2 != 0)
        return;
    const kv_stream seen = {
        own().kv_keys, own().kv_values, own().kv_bytes, own().kv_stretch, number, 0, 0, 0};
    if (load_shared_acquire(&own().kv_number) == number)
        kv = seen;
}

static __device__ __forceinline__ void next_stretch(kv_stream &kv)
{
    if (kv.stretch % 2 != 0)
        kv.begin += kv.stretch_bytes;
    kv.stretch++;
    kv.at = kv.begin;
}

/* Prefetches the next piece of the current stretch. */
static __device__ __forceinline__ void ask_piece(stream &t)
{
    kv_stream &kv = t.kv;
    const u32 end = min(kv.begin + kv.stretch_bytes, kv.bytes);
    const u32 bytes = min((u32)AHEAD_PIECE, end - kv.at);
    prefetch_bytes((kv.stretch % 2 ? kv.values : kv.keys) + kv.at, bytes);
    note_fetch(t, bytes);
    kv.at += bytes;
    if (kv.at == end)
        next_stretch(kv);
}

/* Prefetches keys and values, up to AHEAD_BYTES ahead of the warps. Returns false if there is
 * nothing to prefetch. */
static __device__ __forceinline__ bool ask_ahead(stream &t, u32 share)
{
    kv_stream &kv = t.kv;
    see_kv(kv);
    if (kv.begin >= kv.bytes)
        return false;
    const u32 used = load_shared_acquire(&own().kv_used);
    if ((int)(kv.stretch - used) < 0)
        next_stretch(kv);
    else if ((kv.stretch - used) * kv.stretch_bytes >= AHEAD_BYTES)
        return false;
    else if (may_fetch(t, share))
        ask_piece(t);
    return true;
}

#else

static __device__ __forceinline__ bool ask_ahead(stream &, u32)
{
    return false;
}

#endif

#endif
