/*
 * What a block has in shared memory: its own part (struct shared), the activation buffer, the ring.
 * And what each thread knows of the block (struct machine).
 *
 * In a product each consumer warp has a run of the columns, reads that share of the input and
 * leaves partial sums of 8 weight rows at a time in a slot; the epilogue takes them from there. No
 * barrier of the block stands in that path: slots, ring and `go` are mbarriers.
 *
 * Queue order. A task leaves nothing, in memory or in what its block shares, before the task before
 * it has ended (`go`), outputs written: so a queue's tasks follow one another, whoever executes
 * them. Flagged words alone are read earlier, as soon as the task is known: each tells for itself.
 *
 * Memory model. Counters: a task's stores, then the mbarrier by which its warps report to the
 * epilogue, then the epilogue's word to the controller (a release), then the controller's gpu fence
 * and add (a release); a waiting controller polls with ld.acquire.gpu, then its word to the
 * epilogue, then `go`. So everything before a signal is visible to every thread of a task that
 * waited for the signal. Flags: words of all ones are not written yet; they are stored and polled
 * with relaxed accesses at gpu scope, each word tells for itself, and nothing else is concluded
 * from it. All loads of data are plain or relaxed ones, never non-coherent ones (no __ldg, no
 * __restrict__ on what a task of this epoch writes): the acquire does not reach those.
 *
 * Leaving. A block leaves whole, between two tasks, by the controller's decision. A wait that gives
 * up (the watchdog, here or elsewhere) sets `dead`; the task then runs on, on whatever is in
 * memory, through all its barriers, touches no address that it would not have touched anyway, and
 * nothing is signalled.
 *
 * Constants that the host defines: what the shape of the code depends on. MGL_ROWS (of the longest
 * epoch), MGL_LISTS (1: the program has two task lists), MGL_FIRST_ROWS (rows of the first list),
 * MGL_SEVERAL_SEQUENCES (1: a launch may have more than one), MGL_HIDDEN, MGL_ATTENDED (columns of
 * attention's output), MGL_FFN, MGL_HEADS (of one kv head), MGL_HEAD_DIM, MGL_VOCAB, MGL_EPS_BITS,
 * MGL_WEIGHT (the dtype that weights are decoded to), MGL_EMBEDDING and MGL_CACHE (dtypes),
 * MGL_PAGE, MGL_RING, MGL_FLIGHT, MGL_PREFETCH (pages), MGL_WARPS, MGL_ACTIVATION_BYTES, MGL_SHARED
 * (bytes that struct shared may have), MGL_SHARED_AT (the shared address of the block's memory; 0:
 * the compiler knows), MGL_VARIANTS_PRODUCT, MGL_VARIANTS_ATTENTION and
 * MGL_VARIANTS_PANEL (which variants the program's tasks name, a bit each: ops.cuh; and so
 * MGL_VARIANTS_ATTEND_ROWS), MGL_WARPGROUPS (1: the second list's panels are multiplied by
 * warpgroups), MGL_KV_RING
 * (1: attention has its keys and values from the ring), MGL_BIAS (1: products may have biases),
 * MGL_QK_NORM (1: attention norms the heads of q and k), MGL_MERGE_ADD (1: o merges attention's
 * splits), MGL_DRAWS (1: tasks draw tokens), MGL_PENALTIES (1: head and sample have what penalties
 * need), MGL_SHARE (of the program's limits), MGL_TRACE (1: tasks leave events), MGL_DELAYS (1:
 * random delays, see delay.cuh).
 *
 * What a launch can be told is no constant, or each length of a prompt would have a kernel of its
 * own: sequences, capacity and the pages that may be on their way while an edge is waited for stand
 * in mgl_device_launch, strides and splits in the records. Of the capacity a kernel has nothing but
 * the variant of its attention: whether a split may have more positions than registers have room
 * for.
 */
#ifndef MGL_DEVICE_SHARED_CUH
#define MGL_DEVICE_SHARED_CUH

#define MGL_STEP_FN           static __device__
#define MGL_SAMPLER_FN        static __device__
#define MGL_SAMPLER_TABLE     static __device__ const
#define MGL_PHILOX_FN         static __device__
#define MGL_PENALTIES_FN      static __device__
#define MGL_VARIANT_SHAPES_FN static __device__ constexpr
#define MGL_TAPE_FN           static __device__ __forceinline__ constexpr
#define MGL_PAGE_FN           static __device__ __forceinline__
#define MGL_FLOAT_BITS        __float_as_uint
#define MGL_BITS_FLOAT        __uint_as_float
#define MGL_HIGH_WORD         __umulhi

/* Whether the second list's products are panels. */
#define MGL_PANELS (MGL_VARIANTS_PANEL != 0)
/* Whether its attention shares rows. */
#define MGL_ATTEND_ROWS (MGL_VARIANTS_ATTEND_ROWS != 0)

/* Whether consumers may know a task before its counters are there (ops.def). */
#define PREISSUED_TASKS (MGL_PANELS || MGL_ATTEND_ROWS)

/* Whether any op may have pages. */
#define VIEWS_PAGED (MGL_PANELS && !MGL_ATTEND_ROWS)

#include "instructions/operands.h"
#if MGL_PENALTIES
#include "instructions/sample/penalties.h"
#endif
#include "instructions/sample/philox.h"
#include "instructions/sample/sampler.h"
#include "schedule/pages.h"
#include "schedule/step.h"
#include "schedule/variant_shapes.h"
#include "vm/cuda/device/objects.h"
#include "vm/cuda/device/ptx.cuh"
#include "vm/cuda/device/record.h"

#ifndef INFINITY
#define INFINITY __int_as_float(0x7F800000)
#endif

enum {
    THREADS = MGL_WARPS * 32,                       /* consumers */
    BLOCK_THREADS = THREADS + MGL_OTHER_WARPS * 32, /* the other roles stand behind them */
    EPILOGUE = MGL_WARPS,                           /* warp number */
    LOADER = MGL_WARPS + 1,
    LANDING = MGL_WARPS + 2,
    CONTROLLER = MGL_WARPS + 3,
    PAGE_BLOCKS = MGL_PAGE / MGL_BLOCK_BYTES,
    PARTIALS = MGL_PARTIAL_BYTES / 4,
    POLLS = 256, /* of memory between looks at the clock */
    /* rows that there is machine code for */
    LISTS = MGL_LISTS ? 2 : 1,
    PRODUCT_ROWS = MGL_PANELS ? MGL_FIRST_ROWS : MGL_ROWS, /* of products that the epilogue ends */
    MOST_ROWS = PRODUCT_ROWS <= 1   ? 1
                : PRODUCT_ROWS <= 8 ? 8
                                    : 16,
    PSUM_COUNT = MGL_WARPS * MGL_ROW_GROUP * MOST_ROWS * 8 <= PARTIALS ? 4 : 2,
    PSUM = PARTIALS / PSUM_COUNT, /* partial sums of some row groups: (warp, row group, row, 8) */
    /* the record of the task before (its clears) or the furthest ahead, of the task at hand, of the
     * next two */
    RECORDS = 4
};
static_assert(MGL_WARPS * MGL_ROW_GROUP * MOST_ROWS <= PSUM,
              "a slot must have room for a row group");

#if MGL_PANELS

/* How the second list's products share the block's memory: see roles/panel_loader.cuh. */
enum {
    PANEL_TILE = 8,                                        /* activation rows of an MMA */
    PANEL_ROWS = MGL_PANEL_ROOM(MGL_ROWS, MGL_WARPGROUPS), /* of activations */
    ROW_TILES = PANEL_ROWS / PANEL_TILE,
    PANEL_PARTS = MGL_WARPS / 2, /* columns of a panel: of four row groups each */
    PANEL_GROUPS = MGL_PANEL_GROUPS(MGL_WARPS),
    COLUMN_GROUPS = PANEL_GROUPS / PANEL_PARTS,
    /* row groups of a column of a team, or of a warpgroup; those of which a warp has sums */
    OWN_GROUPS = MGL_WARPGROUPS ? MGL_WARPGROUP_GROUPS : MGL_PANEL_OWN_GROUPS,
    /* warps of a team that have the same row groups, where these are more than two: each has sums
     * of two tiles of them by 8 of rows at most (linear/warp_teams.cuh) */
    TEAM_HALVES = !MGL_WARPGROUPS && ROW_TILES > 8 ? 2 : 1,
    WARP_GROUPS = MGL_WARPGROUPS ? 2 : MGL_PANEL_OWN_GROUPS,
    TURN_BLOCKS = MGL_WARPGROUPS ? MGL_WARPGROUP_BLOCKS : 1, /* k blocks that take turns */
    PANEL_PAGES = MGL_PANEL_PAGES(MGL_RING, MGL_ROWS),
    ACT_TILE_BLOCKS = MGL_PANEL_ACT_TILE_BLOCKS(MGL_ROWS, MGL_WARPGROUPS),
    ACT_TILE_BYTES = ACT_TILE_BLOCKS * PANEL_ROWS * MGL_PANEL_ROW_BYTES,
    /* what a task keeps of its activation rows, before the trays: scales, and per column a word or
     * two. Warpgroups want trays at multiples of two atoms of eight rows. */
    ROW_STATS = PANEL_ROWS * 4 * (1 + 2 * PANEL_PARTS),
    ATOMS = 2 * 8 * MGL_PANEL_ROW_BYTES,
    PANEL_ROW_STATS = MGL_WARPGROUPS
                          ? (MGL_SHARED + ROW_STATS + ATOMS - 1) / ATOMS * ATOMS - MGL_SHARED
                          : ROW_STATS,
    ACT_TILE_ROOM = MGL_ACTIVATION_BYTES - PANEL_ROW_STATS + (MGL_RING - PANEL_PAGES) * MGL_PAGE,
    ACT_TILES = ACT_TILE_ROOM / ACT_TILE_BYTES < MGL_PANEL_MOST_ACT_TILES
                    ? ACT_TILE_ROOM / ACT_TILE_BYTES
                    : MGL_PANEL_MOST_ACT_TILES
};

/* Lanes of the epilogue that fill a place for trays: as many as there are for all, in powers of 2;
 * more than a tray has k blocks have nothing to do. */
static constexpr int act_tile_lanes()
{
    int lanes = 1;
    while (2 * lanes * ACT_TILES <= 32)
        lanes *= 2;
    return lanes;
}

enum { ACT_TILE_LANES = act_tile_lanes() };
static_assert(PANEL_GROUPS <= 32, "a lane for each page of a piece");
static_assert(!MGL_WARPGROUPS || PAGE_BLOCKS >= 2 * ACT_TILE_BLOCKS,
              "two row groups of a warp are on one page");
static_assert(MGL_WARPS % (MGL_WARPGROUPS ? MGL_WARPGROUP_WARPS : 2) == 0 &&
                  MGL_ACTIVATION_BYTES >= PANEL_ROW_STATS && ACT_TILES >= 2 &&
                  PAGE_BLOCKS >= ACT_TILE_BLOCKS &&
                  (PANEL_PAGES - 1) * mgl_panel_per(ACT_TILE_BLOCKS, PAGE_BLOCKS, MGL_WARPGROUPS) >=
                      PANEL_GROUPS,
              "panels need more room than there is");

/* Epochs of up to SMALL_M_ROWS rows have slim panels (linear/small_m.cuh), if a page has room for a
 * block of each warp, the ring for pages enough, and the trays for what the warps leave: a tile of
 * 8 by 8 sums is 256 bytes. */
enum {
    SMALL_M_TILE = MGL_SMALL_M_TILE, /* activation rows of an MMA that has them as rows */
    /* row groups of a panel of one tile of rows; of two half as many */
    SMALL_M_GROUPS = mgl_small_m_groups(MGL_WARPS),
    SMALL_M_BLOCKS = PAGE_BLOCKS / MGL_WARPS, /* of each warp that a page has room for */
    /* blocks of each warp on a page: SMALL_M_TURNS k blocks of some row groups */
    SMALL_M_PER = SMALL_M_BLOCKS < 1                ? 1
                  : SMALL_M_BLOCKS < SMALL_M_GROUPS ? SMALL_M_BLOCKS
                                                    : SMALL_M_GROUPS,
    SMALL_M_TURNS = mgl_small_m_turns(SMALL_M_PER),
    SMALL_M_PAGE_GROUPS = SMALL_M_PER / SMALL_M_TURNS,
    /* bytes of each warp where trays would be; what it needs for its sums, or for the activations
     * of a group, whichever is more */
    SMALL_M_AREA = ACT_TILES * ACT_TILE_BYTES / MGL_WARPS / 512 * 512,
    SMALL_M_NEED = 512 * (SMALL_M_GROUPS > 8 ? SMALL_M_GROUPS : 8),
    /* of two tiles a page's k blocks are multiplied in turn, for all row groups */
    SMALL_M_AT_ONCE = SMALL_M_TURNS == 1 || PANEL_PAGES * SMALL_M_PAGE_GROUPS >= SMALL_M_GROUPS / 2,
    SMALL_M_FITS = SMALL_M_AT_ONCE && SMALL_M_BLOCKS > 0 && SMALL_M_AREA >= SMALL_M_NEED,
    SMALL_M_ROWS = SMALL_M_FITS ? MGL_SMALL_M_ROWS : 0
};

/* Narrow panels (linear/small_n.cuh): tiles of 8 rows that a warp has, and row groups, or 0:
 * there are none. What warps leave takes as much as what those of slim panels do. */
enum {
    SMALL_N_ROWS = MGL_SMALL_N_ROWS,
    SMALL_N_TILES = SMALL_N_ROWS / PANEL_TILE,
    SMALL_N_GROUPS =
        SMALL_M_FITS && SMALL_M_GROUPS >= SMALL_N_TILES ? SMALL_M_GROUPS * 2 / SMALL_N_TILES : 0
};

/* The same memory in a task of attention/flash.cuh: what the warps leave, then trays with the keys
 * and the values of some positions (attention/kv_buffers.cuh). */
enum {
    KV_PARTIAL_BYTES = MGL_WARPS * 1024 * (MGL_HEAD_DIM <= 64 ? 2 : 1),
    KV_ROOM = MGL_ATTEND_ROWS
                  ? MGL_ACTIVATION_BYTES - KV_PARTIAL_BYTES + (MGL_RING - PANEL_PAGES) * MGL_PAGE
                  : 0
};

/* Positions of a tray: 64 of short heads, or fewer where two trays have no room for so many; whole
 * tiles of 16. */
static constexpr int kv_buffer_positions()
{
    int tiles = 16384 / (4 * MGL_HEAD_DIM) / 16;
    while (tiles > 1 && 2 * tiles * 16 * 4 * MGL_HEAD_DIM > KV_ROOM)
        tiles /= 2;
    return tiles * 16;
}

enum {
    KV_BUFFER_POSITIONS = kv_buffer_positions(),
    KV_BUFFER_BYTES = KV_BUFFER_POSITIONS * 4 * MGL_HEAD_DIM,
    /* one at least, which flash's needs say; 0 without that attention */
    KV_BUFFERS = KV_ROOM / KV_BUFFER_BYTES < MGL_PANEL_MOST_ACT_TILES ? KV_ROOM / KV_BUFFER_BYTES
                                                                      : MGL_PANEL_MOST_ACT_TILES,
    KV_BUFFER_SLOTS = KV_BUFFERS > 0 ? KV_BUFFERS : 1
};
static_assert(!MGL_ATTEND_ROWS || (KV_BUFFERS >= 1 && KV_BUFFERS * KV_BUFFER_BYTES <= KV_ROOM),
              "trays of keys and values stand behind what the warps leave");

#else

enum { KV_BUFFERS = 0 };

#endif

/* A (rows, columns) region as a task uses it: taken from its operand once, before there is haste.
 */
struct view {
    u8 *at;           /* the first element, in the set that this epoch uses */
    long long stride; /* bytes from row to row */
    int dtype;
    bool flag;
#if VIEWS_PAGED
    bool paged;  /* it lies in pages: `at` is the buffer's start, */
    int first;   /* and it begins at this column, */
    int columns; /* of so many; */
    int rows;    /* of a k block */
#endif
};

/* The same of activations that the second list exchanges. Where its attention is another family's
 * than the first list's, no other op has pages (mgl_cuda_check_program). */
#if VIEWS_PAGED
typedef view paged_view;
#else
struct paged_view : view {
    bool paged;
    int first, columns, rows;
};
#endif

/* The input of a task with a tape; the consumers take a copy in one go. */
struct alignas(16) input {
    view x;
    const float *g; /* RMSNorm's weight, NULL for none */
    const int *map; /* (count) which rows; NULL: 0, 1, ... */
    int columns;
    int kblocks;   /* of a weight row */
    int count;     /* rows to work on */
    int row_bytes; /* of a row in the activation buffer; low parts stand behind all high parts */
    int segments;  /* of the task */
    u32 end;       /* page of the epoch's tape at which the task is done with it */
    bool vector;   /* rows begin at, and have whole, multiples of 16 bytes */
    bool low;      /* split into high and low parts */
    bool buffered; /* in the activation buffer, normalised and rounded */
    bool skinny;   /* the product goes the skinny way, */
    bool batch;    /* or the batch way; neither: the general one */
    bool flows;    /* it is skinny, and has one row: its flagged words are read before `go` */
    bool early;    /* and a norm: the squares come before the sums */
    bool merges;   /* x are partials of attention's splits, merged while they are read */
};

/* Keys or values of one kv head: (sequences, positions, head_dim). */
struct cache_view {
    u8 *at;
    long long sequence; /* elements from one to the next */
    int position;
};

/* What a task attends to. This epoch's k and v are operands 1 and 2 where it appends. */
struct attention {
    view q, k_new, v_new;
    view y; /* the output, where it is attention's */
    const float *rope;
    int rope_stride;   /* floats */
    cache_view k, v;   /* to append to as well */
    int split, splits; /* its share of the earlier positions */
    bool now;          /* this epoch's rows too: it appends */
    int part;          /* number of the operand, where the output is the split's partial; else 0 */
};

/* What stands in an instruction slot: the task, as the controller makes it known. */
struct alignas(16) instruction_slot {
    u32 record; /* of the task */
    int op;
    u32 epoch, base;
};

#if MGL_PANELS
/* A panel_shape (linear/panel_shape.cuh). */
struct alignas(8) cached_shape {
    u8 groups, piece, per, pages, columns, halves, shares;
};
#endif

/* What the host is to be told of a sampled token. */
struct news {
    int at;    /* of the stream */
    int token; /* + 1; 0: nothing */
};

/* Shared memory of a block: this in MGL_SHARED bytes, then the activation buffer, then the ring. */
struct shared {
    /* the kernel's argument: as a pointer in each thread it would be spilled */
    mgl_device_launch launch;

    /* mbarriers */
    u64 full[MGL_RING];         /* the page of the frame has landed */
    u64 empty[MGL_RING];        /* no consumer warp needs it any more */
    u64 psum_full[PSUM_COUNT];  /* every consumer warp has left its partial sums */
    u64 psum_empty[PSUM_COUNT]; /* the epilogue has taken them */
    u64 announced[2];           /* the task of the instruction slot is made known */
    u64 start;                  /* the task before it has ended */
    u64 body;                   /* every consumer warp is done with a task that has no slots */
    u64 done;                   /* the same for the controller, of those that are known early */
    u64 squares_full;           /* every consumer warp has left its `sums` of an early input */
#if MGL_PANELS
    u64 page_full[PANEL_PAGES]; /* of the second list's weights, as `full` and `empty` */
    u64 page_empty[PANEL_PAGES];
    u64 act_tile_full[ACT_TILES]; /* the tray's activations have landed */
    u64 act_tile_empty[ACT_TILES];
    u64 kv_buffer_full[KV_BUFFER_SLOTS]; /* the same of keys and values */
    u64 kv_buffer_empty[KV_BUFFER_SLOTS];
#endif

    /* words between the roles */
    volatile u32 pending;   /* an edge is waited for: fewer bytes in flight */
    volatile u32 demanded;  /* pages below are those of the task at hand, which has its input */
    volatile u32 prepared;  /* by the controller: tasks that may begin */
    volatile u32 finished;  /* by the epilogue: tasks that have ended */
    volatile int leave;     /* by the controller, before `known`: the block leaves */
    volatile int dead;      /* a wait gave up: what the task makes is worth nothing */
    u32 reported;           /* the block's report says why */
    volatile int stop;      /* tells loader and landing warp to leave */
    volatile int lost;      /* the loader has given up: no page will land any more */
    volatile u32 landed;    /* by the landing warp: pages, all below have landed */
    volatile u32 begun[16]; /* (warp) tasks that it has begun */
    volatile u32 end[16];   /* (warp) page at which the task at hand is done with the tape */

    instruction_slot instruction[2]; /* the task at hand and the next */
#if PREISSUED_TASKS
    volatile u32 opened[2]; /* and whether the controller opens it, */
    volatile u32 signalled; /* which has signalled the ends of so many tasks */
    volatile u32 reached;   /* by the epilogue: the last early task that it has come to, + 1 */
#endif
    alignas(16) float partial[PARTIALS]; /* (SLOTS, SLOT); attention and sample have other uses */
    uint4 record[RECORDS][MGL_RECORD_BYTES / 16];
    float sums[PRODUCT_ROWS * MGL_WARPS]; /* (row, warp) sums of squares */
    u32 early;                            /* early inputs so far; the epilogue's */
    int control[MGL_CONTROL_WORDS];
    int table[MGL_ROWS * MGL_TABLE_WORDS];

    /* what the controller has prepared of the tasks of the instruction slots: a thread would keep
     * these values in registers, or in local memory, whose loads go to L2 here */
    input in[2];
    attention att;

    /* earlier positions of the next attention of one row, or of the one at hand, for the loader */
    volatile u64 kv_keys, kv_values; /* addresses, */
    volatile u32 kv_bytes;           /* so many bytes of each, */
    volatile u32 kv_stretch;         /* so many of them that the warps want at a time */
    volatile u32 kv_shift;  /* KV_RING: pages by which what is behind it on the tape comes later */
    volatile u32 entered;   /* KV_RING: epochs so far, */
    volatile u32 kv_first;  /* and the position of the launch's first row */
    volatile u32 kv_number; /* of what stands here; odd while that is written */
    volatile u32 kv_used;   /* stretches that the warps have asked for themselves */

#if MGL_LISTS
    volatile u32 psums_at[16];                /* (warp) of machine, behind its last product, */
    volatile u32 landed_at[16], freed_at[16]; /* and behind attention by the ring */
    u32 first[LISTS], first_bytes[LISTS];     /* (list) its first record: where, and how long */
    volatile u32 others; /* epochs so far of the list that is not at hand, for reports */
#endif
#if MGL_ATTEND_ROWS
    volatile int unit_at[16][4]; /* (warp) the unit that it attends to (attention/flash.cuh) */
#endif
#if MGL_PANELS
    volatile u32 listed;          /* epochs whose list is known, */
    volatile u32 list[4];         /* (epoch % 4) which is this, */
    volatile u32 heads[4];        /* and, of an epoch that has begun, whether rows want logits, */
    volatile u32 small_m[4];      /* and row groups of its slim panels, or 0: of wide tasks, and, 16
                                  bits up, of narrow ones */
    volatile u32 switched;        /* by the loader: what the first list had is let go of */
    volatile u32 stream_epoch;    /* by the loader: the epoch of the second list at hand, + 1, */
    volatile u32 stream_from[4];  /* and (epoch % 4) the number of its first page */
    volatile u32 paneled;         /* by the epilogue: tasks with trays that have ended */
    volatile u32 act_tile_filled; /* phases of the trays that it has asked for: see act_tile_walk */
    volatile int group_at[16];    /* (warp) the row group from which on its slim panel is */
    volatile u32 page_at[16]; /* (warp) pages of the second list's weights that it is done with, */
    volatile u32 act_tile_used[16]; /* (warp) and phases of the trays */
    volatile u32 kv_buffer_next;    /* trays of keys and values that the epilogue has asked for, */
    volatile u32 kv_buffer_at[16];  /* and (warp) those that it is done with */
#endif

#if MGL_PANELS
    cached_shape shapes[PANEL_GROUPS]; /* (row groups - 1) of panels */
#endif

    news told[MGL_ROWS];  /* (row) by sample; the controller passes it on to the host */
    int wanted[MGL_ROWS]; /* rows that want logits, in order */
    int wanted_count;
#if MGL_PANELS
    int tiles[PANEL_ROWS / PANEL_TILE]; /* of rows, of which some want logits, in order */
    int tile_count;
#endif
#if MGL_TRACE
    volatile u32 input, products, starved, act_tiles,
        ahead;                /* of consumer warp 0 in the task at hand */
    volatile u32 ended;       /* when the task before did */
    mgl_device_event seen[3]; /* of the instruction slots, and of a task without consumers */
#endif
#if MGL_DELAYS
    u32 delay_seed;
    volatile u32 delays[BLOCK_THREADS / 32]; /* (warp) calls of delay() so far */
#endif
};

static_assert(sizeof(shared) <= MGL_SHARED, "the block's own shared memory is too small");

extern __shared__ __align__(1024) u8 launched_memory[];

/* Where it begins: behind the 1 KB that the system has of each block. Said as a number where that
 * is known (MGL_SHARED_AT), since the compiler makes it of the block's place in its cluster
 * otherwise, anew at each use; the kernel looks whether it is true. */
#if MGL_SHARED_AT && defined(__CUDACC_RTC__)
#define block_memory ((u8 *)__cvta_shared_to_generic(MGL_SHARED_AT))
static __device__ __forceinline__ void look_for_memory()
{
    if (shared_address(launched_memory) != MGL_SHARED_AT)
        __trap();
}
#else
#ifndef block_memory
#define block_memory launched_memory
#endif
static __device__ __forceinline__ void look_for_memory() {}
#endif

/* The three parts. Named like this rather than by pointers, so that the compiler sees what memory
 * it is. */
static __device__ __forceinline__ shared &own()
{
    return *(shared *)block_memory;
}

static __device__ __forceinline__ u8 *activation_buffer() /* MGL_ACTIVATION_BYTES bytes */
{
    return block_memory + MGL_SHARED;
}

static __device__ __forceinline__ u8 *ring_memory() /* (MGL_RING, MGL_PAGE) */
{
    return block_memory + MGL_SHARED + MGL_ACTIVATION_BYTES;
}

#if MGL_PANELS
static __device__ __forceinline__ u8 *act_tile_memory() /* (TRAYS, ACT_TILE_BYTES) */
{
    return activation_buffer() + PANEL_ROW_STATS;
}

static __device__ __forceinline__ u8 *kv_buffer_memory() /* (KV_BUFFERS, KV_BUFFER_BYTES) */
{
    return activation_buffer() + KV_PARTIAL_BYTES;
}

static __device__ __forceinline__ u8 *page_memory() /* (PANEL_PAGES, MGL_PAGE) */
{
    return ring_memory() + (MGL_RING - PANEL_PAGES) * MGL_PAGE;
}
#endif

/* Threads of one block, in their own words. Passed by value where a function is not inlined, so
 * that it stays in registers. */
struct machine {
    u32 record;      /* of the task at hand: number in own().record */
    u32 epoch;       /* with two lists: of those of the list at hand */
    u32 base;        /* page at which the tape of this epoch starts, counted over all epochs */
    u32 known;       /* pages below this one have landed, as far as this warp knows; see ring.cuh */
    u32 freed;       /* pages below this one are not needed any more by this warp */
    u32 instruction; /* slot of the task: 0 or 1 */
#if MGL_LISTS
    u32 list, others; /* the list at hand, and epochs of the other one so far; the controller's */
#endif
#if MGL_TRACE
    u32 starved; /* ns, of the task at hand */
#endif
    u32 psums; /* slots used so far, over all tasks: which one, and which phase of it */
    int warp, lane;
};

/* Asks anew who this thread is: a value that lived through all tasks would be kept in local memory.
 */
static __device__ __forceinline__ void know_thread(machine &m)
{
    const u32 thread = thread_index();
    m.warp = (int)(thread / 32);
    m.lane = (int)(thread % 32);
}

/* The consumer thread and its task, asked anew, for the same reason. */
static __device__ __forceinline__ machine machine_now()
{
    machine m = {};
    know_thread(m);
    m.instruction = (own().begun[m.warp] - 1) & 1;
    m.record = own().instruction[m.instruction].record;
    m.epoch = own().instruction[m.instruction].epoch;
    return m;
}

/* Its number in the block; for consumers, among them. */
static __device__ __forceinline__ int thread_of(const machine &m)
{
    return m.warp * 32 + m.lane;
}

/* Of the consumers alone. */
static __device__ __forceinline__ void consumer_barrier()
{
    named_barrier<(int)THREADS>();
}

/* The slot of the task at hand, which is asked for anew where the compiler would keep it in local
 * memory. */
static __device__ __forceinline__ u32 instruction_now(const machine &m)
{
    return MGL_LISTS ? (own().begun[thread_index() / 32] - 1) & 1 : m.instruction;
}

/* Waits until the task before has ended: activation buffer, squares and slots are this task's. */
static __device__ __forceinline__ void wait_start(const machine &m)
{
    const u32 parity = instruction_now(m);
    while (!barrier_passed(&own().start, parity))
        ; /* the controller has a clock in each of its waits, and so have the consumers */
    __syncwarp();
}

#endif
