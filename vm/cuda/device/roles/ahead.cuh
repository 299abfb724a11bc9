/*
 * What the loader asks L2 for ahead of the ring: the next pages of the tape while the ring is full,
 * and before them the keys and values of earlier positions that the next attention, or the one at
 * hand, will read: piece by piece, in the order of their use.
 */
#ifndef MGL_DEVICE_ROLES_AHEAD_CUH
#define MGL_DEVICE_ROLES_AHEAD_CUH

#include "vm/cuda/device/attention/kv_pages.cuh"
#include "vm/cuda/device/ring.cuh"

enum {
    PREFETCH_RATE =
        16, /* bytes in a cycle of the SM that L2 is asked for: less than the stream's */
    AHEAD_BYTES =
        262144,         /* of keys and values, that L2 is asked for before attention's warps ask, */
    AHEAD_PIECE = 4096, /* and at once, at most */
    AHEAD_NS = 50       /* the loader's sleep meanwhile */
};

/* Without KV_RING: what the loader knows of an attention's keys and values. It asks for them
 * stretch by stretch: the keys of the first positions, their values, the keys of the next ones. */
struct kv_stream {
    u64 keys, values;  /* addresses, */
    u32 bytes;         /* of each */
    u32 stretch_bytes; /* of the keys, or of the values, that are asked for in turn */
    u32 number;        /* own().kv_number of all that */
    u32 stretch;       /* number of the one at hand: keys if even, */
    u32 begin;         /* its first byte; nothing is left from `bytes` on */
    u32 at;            /* the next byte to ask for */
};

/* With KV_RING: the loader among the attentions of its queue. */
struct ring_stream {
    const mgl_device_kv *stops; /* the attentions, in order, */
    u32 stop_count;             /* so many */
    u32 from;                   /* block from which on the page of the tape at hand is to come */
    u32 epoch;                  /* of the next attention, */
    u32 stop;                   /* and its number */
    mgl_device_kv next,
        behind;              /* the next and the one behind it: `stop` is ~0 where there is none */
    bool begun;              /* the next attention's epoch has begun: the following is known */
    const u8 *keys, *values; /* what it reads: addresses, */
    u32 bytes;               /* of each, */
    u32 pages;               /* of both together */
    u32 copied;              /* pages that are in the ring or on their way there */
    u32 asked;               /* pages that L2 was asked for */
    u32 fenced;              /* epochs whose cache the copies may read */
};

/* Where the loader stands. */
struct stream {
    const u8 *tape;
    u32 pages;       /* of the tape */
    u32 pending;     /* pages that may be on their way while the queue waits for an edge */
    ring_place next; /* the page to copy, */
    u32 at;          /* and its number on the tape */
    u32 fetched;     /* pages of the tape that L2 was asked for, from `at` on */
    u32 fetch_at;    /* the page behind them */
    u32 fetch_time;  /* cycle in which L2 was asked last, */
    u32 fetch_bytes; /* and for how much */
    kv_stream kv;
    ring_stream ring;
    u32 polls; /* in vain, for the next page, */
    u64 since; /* and the time of the first look at the clock; 0: there was none */
};

static __device__ __forceinline__ u32 next_on_tape(const stream &t, u32 at)
{
    return at + 1 == t.pages ? 0 : at + 1;
}

/* Whether all lanes of the loader say so: it is one thread where one is enough. */
static __device__ __forceinline__ bool all_say(bool value)
{
    return MGL_BULK_COPY ? value : __all_sync(0xFFFFFFFFu, value);
}

/* Whether L2 may be asked for more: not faster than the stream could deliver (of its bytes, one in
 * `share`), or what is exchanged would wait behind it. */
static __device__ __forceinline__ bool may_fetch(const stream &t, u32 share)
{
    return all_say(cycles() - t.fetch_time >= t.fetch_bytes / PREFETCH_RATE * share);
}

static __device__ __forceinline__ void note_fetch(stream &t, u32 bytes)
{
    t.fetch_time = cycles();
    t.fetch_bytes = bytes;
}

/* Asks the page behind those that L2 was asked for, when the ring is full. */
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

/* Takes what the next attention has of earlier positions, if its epoch has begun. */
static __device__ __forceinline__ bool see_kv(ring_stream &r)
{
    if (r.begun || r.stop >= r.stop_count)
        return r.begun;
    if ((int)(load_shared_acquire(&own().entered) - r.epoch) <= 0)
        return false;
    if (r.fenced != r.epoch + 1) /* stores wrote what the copies read */
        fence_bulk_reads();
    r.fenced = r.epoch + 1;
    int lo, hi;
    mgl_split_positions((int)(own().kv_first + r.epoch), (int)r.next.split, (int)r.next.splits,
                        MGL_SHARE, &lo, &hi);
    r.keys = (const u8 *)r.next.keys + (size_t)(u32)lo * POSITION_BYTES;
    r.values = (const u8 *)r.next.values + (size_t)(u32)lo * POSITION_BYTES;
    r.bytes = (u32)(hi - lo) * POSITION_BYTES;
    r.pages = kv_pages((u32)(hi - lo));
    r.copied = r.asked = 0;
    r.begun = true;
    return true;
}

/* Where page number `page` of its keys and values is in memory, and how many bytes it has. */
static __device__ __forceinline__ const u8 *kv_page_at(const ring_stream &r, u32 page, u32 *bytes)
{
    const u32 begin = page / 2 * (PAGE_POSITIONS * POSITION_BYTES);
    *bytes = min((u32)PAGE_POSITIONS * POSITION_BYTES, r.bytes - begin);
    return (page % 2 ? r.values : r.keys) + begin;
}

/* Asks L2 for those keys and values that the ring has no room for yet, where it is time, unless
 * that is far enough ahead; false: there is nothing to ask for. */
static __device__ __forceinline__ bool ask_ahead(stream &t, u32 share)
{
    ring_stream &r = t.ring;
    /* what is on the tape before comes first */
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

/* Takes what the block has of the next attention; if that changes meanwhile, another time. */
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

/* Asks for the next piece of the stretch at hand. */
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

/* Asks for keys and values, where it is time, unless that is far enough ahead; false: there is
 * nothing to ask for. */
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
