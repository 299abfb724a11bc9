/*
 * Layout of a block's shared memory: struct shared (MGL_SHARED bytes), then the activation buffer,
 * then the ring. Also struct machine, the state that each thread keeps about its block. Every
 * device file includes this header.
 *
 * Products use warp specialization. Each consumer warp multiplies a run of the columns and writes
 * partial sums of 8 weight rows at a time to a partial-sum buffer. The epilogue warp adds up the
 * buffer. This path has no block barrier: partial-sum buffers, ring and `start` are mbarriers.
 *
 * Queue order. A task writes nothing, neither to global memory nor to memory that the block shares,
 * before the previous task has ended and has written its outputs (`start`). So the tasks of a queue
 * follow one another, whichever warps execute them. The only exception: flagged words are read as
 * soon as the task is announced, because each word encodes whether it was written.
 *
 * Memory model. Counters form this chain: the stores of a task; the mbarrier by which its warps
 * report to the epilogue; the store of `finished` by the epilogue (a release); the gpu fence and
 * the add by the controller (a release). A waiting controller polls with ld.acquire.gpu; then it
 * stores `prepared` for the epilogue; then the epilogue opens `start`. So everything before a
 * signal is visible to every thread of a task that waited for the signal. Flags: a word of all ones
 * is not written yet. Flag words are stored and polled with relaxed accesses at gpu scope. Each
 * word orders only itself. All loads of data are plain or relaxed, never non-coherent: no __ldg,
 * and no __restrict__ on memory that a task of this epoch writes. The acquire does not cover
 * non-coherent loads.
 *
 * Leaving. All warps of a block leave together, between two tasks, when the controller decides. A
 * wait that gives up (the watchdog, of this block or of another) sets `dead`. The task then runs to
 * its end through all its barriers with whatever data is in memory. The task accesses the same
 * addresses as always, and the controller sends no signal.
 *
 * Constants that the host defines, because the shape of the code depends on them: MGL_ROWS (rows of
 * the longest epoch), MGL_LISTS (1: the program has two task lists), MGL_FEW (rows of the
 * first list), MGL_MANY_SEQUENCES (1: a launch may have more than one), MGL_HIDDEN, MGL_ATTENDED
 * (columns of attention's output), MGL_FFN, MGL_HEADS (query heads of one kv head), MGL_HEAD_DIM,
 * MGL_VOCAB, MGL_EPS_BITS, MGL_WEIGHT (the dtype that weights are decoded to), MGL_EMBEDDING and
 * MGL_CACHE (dtypes), MGL_SCALED (the number of scaled weight formats) and, for each of these,
 * MGL_FORMAT_1 and so on (linear/formats.cuh), MGL_PAGE, MGL_RING, MGL_FLIGHT, MGL_PREFETCH
 * (pages), MGL_WARPS, MGL_ACTIVATION_BYTES, MGL_SHARED (bytes reserved for struct shared),
 * MGL_SHARED_AT (the shared address of the block's memory; 0: the compiler finds it),
 * MGL_VARIANTS_PRODUCT, MGL_VARIANTS_ATTENTION, MGL_VARIANTS_PANEL and MGL_VARIANTS_ATTEND_ROWS
 * (the variants that the program's tasks name, a bit each: ops.cuh), MGL_WARPGROUPS (1: warpgroups
 * multiply the second list's panels), MGL_KV_RING (1: attention reads its keys and values from the
 * ring), MGL_BIAS (1: products may have biases), MGL_QK_NORM (1: attention normalizes the heads of
 * q and k), MGL_MERGE_ADD (1: o merges attention's splits), MGL_DRAWS (1: tasks draw tokens),
 * MGL_PENALTIES (1: head and sample support penalties), MGL_SHARE and MGL_UNSPLIT (of the
 * program's limits), MGL_TRACE (1: tasks record events), MGL_DELAYS (1: random delays, see
 * delay.cuh).
 *
 * Launch parameters are not constants; otherwise each prompt length would need its own kernel.
 * Sequences, capacity and the pages in flight while an edge is waited for are in mgl_device_launch.
 * Strides and splits are in the records. A kernel depends on the capacity only through the variant
 * of its attention: whether a split may have more positions than the registers can hold.
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

/* Whether the second list's products run as panels. */
#define MGL_PANELS (MGL_VARIANTS_PANEL != 0)
/* Whether the second list's attention splits the rows of an epoch into shares (attend_rows). */
#define MGL_ATTEND_ROWS (MGL_VARIANTS_ATTEND_ROWS != 0)

/* Whether a task may be announced to the consumers before its counters are reached (the pre-issued
 * families of ops.def). */
#define PREISSUED_TASKS (MGL_PANELS || MGL_ATTEND_ROWS)

/* Whether any op may have paged operands. */
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
    BLOCK_THREADS = THREADS + MGL_OTHER_WARPS * 32, /* the warps of the other roles follow */
    EPILOGUE = MGL_WARPS,                           /* warp number */
    LOADER = MGL_WARPS + 1,
    LANDING = MGL_WARPS + 2,
    CONTROLLER = MGL_WARPS + 3,
    PAGE_BLOCKS = MGL_PAGE / MGL_BLOCK_BYTES,
    PARTIALS = MGL_PARTIAL_BYTES / 4,
    POLLS = 256, /* of memory between two checks of the clock */
    /* row counts that machine code exists for */
    LISTS = MGL_LISTS ? 2 : 1,
    PRODUCT_ROWS = MGL_PANELS ? MGL_FEW : MGL_ROWS, /* of products that the epilogue
                                                              finishes */
    MOST_ROWS = PRODUCT_ROWS <= 1   ? 1
                : PRODUCT_ROWS <= 8 ? 8
                                    : 16,
    PSUM_COUNT = MGL_WARPS * MGL_ROW_GROUP * MOST_ROWS * 8 <= PARTIALS ? 4 : 2,
    PSUM = PARTIALS / PSUM_COUNT, /* partial sums of some row groups: (warp, row group, row, 8) */
    /* records of the previous task (for its clears) or of the task furthest ahead, of the current
     * task, and of the next two */
    RECORDS = 4
};
static_assert(MGL_WARPS * MGL_ROW_GROUP * MOST_ROWS <= PSUM,
              "a slot must have room for a row group");

#if MGL_PANELS

/* How the second list's products divide the block's shared memory: see roles/panel_loader.cuh. */
enum {
    PANEL_TILE = 8,                                        /* activation rows of an MMA */
    PANEL_ROWS = MGL_PANEL_ROOM(MGL_ROWS, MGL_WARPGROUPS), /* of activations */
    ROW_TILES = PANEL_ROWS / PANEL_TILE,
    PANEL_PARTS = MGL_WARPS / 2, /* warp columns of a panel: each has COLUMN_GROUPS row groups */
    PANEL_GROUPS = MGL_PANEL_GROUPS(MGL_WARPS),
    COLUMN_GROUPS = PANEL_GROUPS / PANEL_PARTS,
    /* row groups of a column of a warp team, or of a warpgroup; WARP_GROUPS: row groups that one
     * warp holds sums of */
    OWN_GROUPS = MGL_WARPGROUPS ? MGL_WARPGROUP_GROUPS : MGL_PANEL_OWN_GROUPS,
    /* warps of a team that share the same row groups, in panels of more than two row groups: each
     * warp has registers for the sums of at most two tiles of row groups by 8 tiles of rows
     * (linear/warp_teams.cuh) */
    TEAM_HALVES = !MGL_WARPGROUPS && ROW_TILES > 8 ? 2 : 1,
    WARP_GROUPS = MGL_WARPGROUPS ? 2 : MGL_PANEL_OWN_GROUPS,
    TURN_BLOCKS = MGL_WARPGROUPS ? MGL_WARPGROUP_BLOCKS : 1, /* k blocks that are processed in
                                                                turn */
    PANEL_PAGES = MGL_PANEL_PAGES(MGL_RING, MGL_ROWS),
    ACT_TILE_BLOCKS = MGL_PANEL_ACT_TILE_BLOCKS(MGL_ROWS, MGL_WARPGROUPS),
    ACT_TILE_BYTES = ACT_TILE_BLOCKS * PANEL_ROWS * MGL_PANEL_ROW_BYTES,
    /* what a task keeps for its activation rows before the activation tiles: the RMS scales, and
     * per warp column a word or two. Warpgroups need activation tiles at multiples of two swizzle
     * atoms of eight rows. */
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

/* Lanes of the epilogue that fill one activation tile: the largest power of 2 for which all tiles
 * together use at most 32 lanes. Lanes beyond the number of k blocks of a tile are idle. */
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

/* Epochs of up to SMALL_M_ROWS rows use small-M panels (linear/small_m.cuh) if three conditions
 * hold: a page has room for a block of each warp, the ring for enough pages, and the activation
 * tiles for the partial sums that warps exchange. A tile of 8 by 8 sums takes 256 bytes. */
enum {
    SMALL_M_TILE = MGL_SMALL_M_TILE, /* activation rows of an MMA, in which they are the rows */
    /* row groups of a panel with one tile of rows; half as many with two tiles */
    SMALL_M_GROUPS = mgl_small_m_groups(MGL_WARPS),
    SMALL_M_BLOCKS = PAGE_BLOCKS / MGL_WARPS, /* blocks of each warp that fit a page */
    /* blocks of each warp on a page: SMALL_M_TURNS k blocks of some row groups */
    SMALL_M_PER = SMALL_M_BLOCKS < 1                ? 1
                  : SMALL_M_BLOCKS < SMALL_M_GROUPS ? SMALL_M_BLOCKS
                                                    : SMALL_M_GROUPS,
    SMALL_M_TURNS = mgl_small_m_turns(SMALL_M_PER),
    SMALL_M_PAGE_GROUPS = SMALL_M_PER / SMALL_M_TURNS,
    /* bytes of each warp in the memory of the activation tiles; the bytes that the warp needs for
     * its sums or for the activations of a group, whichever is more */
    SMALL_M_AREA = ACT_TILES * ACT_TILE_BYTES / MGL_WARPS / 512 * 512,
    SMALL_M_NEED = 512 * (SMALL_M_GROUPS > 8 ? SMALL_M_GROUPS : 8),
    /* with two tiles, a page's k blocks are multiplied in turn, for all row groups */
    SMALL_M_AT_ONCE = SMALL_M_TURNS == 1 || PANEL_PAGES * SMALL_M_PAGE_GROUPS >= SMALL_M_GROUPS / 2,
    SMALL_M_FITS = SMALL_M_AT_ONCE && SMALL_M_BLOCKS > 0 && SMALL_M_AREA >= SMALL_M_NEED,
    SMALL_M_ROWS = SMALL_M_FITS ? MGL_SMALL_M_ROWS : 0
};

/* Small-N panels (linear/small_n.cuh): tiles of 8 rows of a warp, and row groups (0: no small-N
 * panels). The partial sums that warps exchange take as much memory as those of small-M panels. */
enum {
    SMALL_N_ROWS = MGL_SMALL_N_ROWS,
    SMALL_N_TILES = SMALL_N_ROWS / PANEL_TILE,
    SMALL_N_GROUPS =
        SMALL_M_FITS && SMALL_M_GROUPS >= SMALL_N_TILES ? SMALL_M_GROUPS * 2 / SMALL_N_TILES : 0
};

/* The same memory in a task of attention/flash.cuh: first the partial results of the warps, then KV
 * buffers, each with the keys and the values of some positions (attention/kv_buffers.cuh). */
enum {
    KV_PARTIAL_BYTES = MGL_WARPS * 1024 * (MGL_HEAD_DIM <= 64 ? 2 : 1),
    KV_ROOM = MGL_ATTEND_ROWS
                  ? MGL_ACTIVATION_BYTES - KV_PARTIAL_BYTES + (MGL_RING - PANEL_PAGES) * MGL_PAGE
                  : 0
};

/* Positions of a KV buffer: 16384 / (4 head_dim), rounded down to tiles of 16 positions, halved
 * until two buffers fit KV_ROOM. */
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
    /* at least 1, which the needs of flash ensure (variants.def); 0 without that attention */
    KV_BUFFERS = KV_ROOM / KV_BUFFER_BYTES < MGL_PANEL_MOST_ACT_TILES ? KV_ROOM / KV_BUFFER_BYTES
                                                                      : MGL_PANEL_MOST_ACT_TILES,
    KV_BUFFER_SLOTS = KV_BUFFERS > 0 ? KV_BUFFERS : 1
};
static_assert(!MGL_ATTEND_ROWS || (KV_BUFFERS >= 1 && KV_BUFFERS * KV_BUFFER_BYTES <= KV_ROOM),
              "trays of keys and values stand behind what the warps leave");

#else

enum { KV_BUFFERS = 0 };

#endif

/* A (rows, columns) region as a task uses it. The controller makes the view from the operand once,
 * ahead of the task. */
struct view {
    u8 *at;           /* the first element, in the set of this epoch */
    long long stride; /* bytes from a row to the next */
    int dtype;
    bool flag;
#if VIEWS_PAGED
    bool paged;  /* the region is paged: `at` is the buffer's start, */
    int first;   /* its first column, */
    int columns; /* columns of the buffer, */
    int rows;    /* rows of a k block */
#endif
};

/* A view of activations that the second list exchanges. If the second list's attention is of
 * another family than the first list's, no other op has paged operands (mgl_cuda_check_program). */
#if VIEWS_PAGED
typedef view paged_view;
#else
struct paged_view : view {
    bool paged;
    int first, columns, rows;
};
#endif

/* The input of a task with a tape. The consumers copy the struct as a whole. */
struct alignas(16) input {
    view x;
    const float *g; /* RMSNorm's weight; NULL: no norm */
    const int *map; /* (count) row numbers; NULL: 0, 1, ... */
    int columns;
    int kblocks;   /* of a weight row */
    int count;     /* rows to work on */
    int row_bytes; /* of a row in the activation buffer; the low parts of all rows follow the
                      high parts */
    int segments;  /* of the task */
    u32 end;       /* first page of the epoch's tape after the task's last segment */
    bool vector;   /* rows begin at multiples of 16 bytes, and their length is such a multiple */
    bool low;      /* it has high and low parts, or digits (linear/scaled_input.cuh) */
    bool buffered; /* in the activation buffer, normalized and rounded */
    bool skinny;   /* the product runs as the skinny variant, */
    bool batch;    /* or as the batch variant; neither: the general variant */
    bool flows;    /* skinny with one row: flagged words are read before `start` */
    bool early;    /* and with a norm: the squares are available before the sums */
    bool merges;   /* x holds partials of attention's splits, which are merged as they are read */
#if MGL_SCALED
    int format;            /* the weight format: 0 or the number of a scaled format */
    int parts;             /* of 32 columns in a k block */
    const int *column_map; /* (columns) column i of the weights is column column_map[i] of the
                               input; NULL: i */
#endif
};

/* Keys or values of one kv head: (sequences, positions, head_dim). */
struct cache_view {
    u8 *at;
    long long sequence; /* elements from a sequence to the next */
    int position;
};

/* What a task attends to. This epoch's k and v are operands 1 and 2 of ops that append. */
struct attention {
    view q, k_new, v_new;
    view y; /* attention's output, if the op writes it */
    const float *rope;
    int rope_stride;   /* floats */
    cache_view k, v;   /* the op may also append to these */
    int split, splits; /* the share of the earlier positions */
    bool now;          /* the op also attends to this epoch's rows and appends them */
    int part;          /* operand number of the output if that is the split's partial; else 0 */
    int rows;          /* the rows that the op attends with: MGL_KV_... */
};

/* An instruction slot: the task as the controller announces it. */
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

/* What the controller sends to the host about a sampled token. */
struct news {
    int at;    /* index in the stream */
    int token; /* token + 1; 0: nothing to send */
};

/* Shared memory of a block: this struct in MGL_SHARED bytes, then the activation buffer, then the
 * ring. */
struct shared {
    /* a copy of the kernel's argument: a pointer in each thread would be spilled */
    mgl_device_launch launch;

    /* mbarriers */
    u64 full[MGL_RING];         /* the page of the frame has landed */
    u64 empty[MGL_RING];        /* no consumer warp needs the page any more */
    u64 psum_full[PSUM_COUNT];  /* every consumer warp has written its partial sums */
    u64 psum_empty[PSUM_COUNT]; /* the epilogue has read them */
    u64 announced[2];           /* the task of the instruction slot is announced */
    u64 start;                  /* the start barrier: the previous task has ended */
    u64 body;                   /* every consumer warp is done with a task that uses no
                                   partial-sum buffers */
    u64 done;                   /* the same for the controller, for pre-issued tasks */
    u64 squares_full;           /* every consumer warp has written its `sums` of an early input */
#if MGL_PANELS
    u64 page_full[PANEL_PAGES]; /* of the second list's weights, like `full` and `empty` */
    u64 page_empty[PANEL_PAGES];
    u64 act_tile_full[ACT_TILES]; /* the activation tile has landed */
    u64 act_tile_empty[ACT_TILES];
    u64 kv_buffer_full[KV_BUFFER_SLOTS]; /* the same for KV buffers */
    u64 kv_buffer_empty[KV_BUFFER_SLOTS];
#endif

    /* words between the roles */
    volatile u32 pending;   /* an edge is waited for: the loader keeps fewer bytes in flight */
    volatile u32 demanded;  /* pages below belong to the current task, whose input is there */
    volatile u32 prepared;  /* written by the controller: tasks that may begin */
    volatile u32 finished;  /* written by the epilogue: tasks that have ended */
    volatile int leave;     /* written by the controller before it announces: the block leaves */
    volatile int dead;      /* a wait gave up: the task's results are invalid */
    u32 reported;           /* 1: the block has written its report */
    volatile int stop;      /* loader and landing warp leave */
    volatile int lost;      /* the loader has given up: no more pages land */
    volatile u32 landed;    /* written by the landing warp: all pages below have landed */
    volatile u32 begun[16]; /* (warp) tasks that the warp has begun */
    volatile u32 end[16];   /* (warp) first page of the tape after the current task */

    instruction_slot instruction[2]; /* the current task and the next */
#if PREISSUED_TASKS
    volatile u32 opened[2]; /* (instruction slot) 1: the controller opens `start` */
    volatile u32 signalled; /* tasks whose ends the controller has signaled */
    volatile u32 reached;   /* written by the epilogue: the last pre-issued task that it has
                               reached, + 1 */
#endif
    alignas(16) float partial[PARTIALS]; /* (PSUM_COUNT, PSUM); attention and sample use it in
                                            other ways */
    uint4 record[RECORDS][MGL_RECORD_BYTES / 16];
    float sums[PRODUCT_ROWS * MGL_WARPS]; /* (row, warp) sums of squares */
    u32 early;                            /* early inputs so far; used by the epilogue only */
    int control[MGL_CONTROL_WORDS];
    int table[MGL_ROWS * MGL_TABLE_WORDS];

    /* what the controller has prepared for the tasks of the instruction slots. In a thread these
     * values would take registers, or local memory, whose loads go to L2 here. */
    input in[2];
    attention att;

    /* for the loader: the earlier positions of the current or the next attention of one row */
    volatile u64 kv_keys, kv_values; /* addresses of the keys and of the values */
    volatile u32 kv_bytes;           /* bytes of each */
    u32 rows_kinds;                  /* of the epoch, if MGL_UNSPLIT > 0: bit MGL_KV_UNSPLIT or
                                        MGL_KV_SPLIT is set if the epoch has such rows; bit
                                        MGL_KV_ALL is always set */
    volatile u32 kv_stretch;         /* bytes of each that the warps read at a time */
    volatile u32 kv_shift;  /* KV_RING: pages that attention inserts before the rest of the tape */
    volatile u32 entered;   /* KV_RING: epochs so far */
    volatile u32 kv_first;  /* KV_RING: the position of the launch's first row */
    volatile u32 kv_number; /* version of these fields (seqlock); odd while they are written */
    volatile u32 kv_used;   /* stretches that the warps have loaded themselves */

#if MGL_LISTS
    volatile u32 psums_at[16];                /* (warp) `psums` of its machine after its last
                                                 product */
    volatile u32 landed_at[16], freed_at[16]; /* (warp) `known` and `freed`, also after attention
                                                 through the ring */
    u32 first[LISTS], first_bytes[LISTS];     /* (list) offset and bytes of its first record */
    volatile u32 others;                      /* epochs so far of the other list, for reports */
#endif
#if MGL_ATTEND_ROWS
    volatile int unit_at[16][4]; /* (warp) the unit that the warp attends to
                                    (attention/flash.cuh) */
#endif
#if MGL_PANELS
    volatile u32 listed;          /* epochs whose list is decided */
    volatile u32 list[4];         /* (epoch % 4) the list of the epoch */
    volatile u32 heads[4];        /* (epoch % 4) of an epoch that has begun: whether rows want
                                     logits */
    volatile u32 small_m[4];      /* (epoch % 4) row groups of the epoch's small-M panels, or 0:
                                     low half for wide tasks, high 16 bits for small-N tasks */
    volatile u32 switched;        /* written by the loader: the memory of the first list is free */
    volatile u32 stream_epoch;    /* written by the loader: the current epoch of the second list
                                     + 1 */
    volatile u32 stream_from[4];  /* (epoch % 4) the number of the epoch's first page */
    volatile u32 paneled;         /* written by the epilogue: tasks with activation tiles or KV
                                     buffers that have ended */
    volatile u32 act_tile_filled; /* phases of the activation tiles that the epilogue has
                                     requested: see act_tile_walk */
    volatile int group_at[16];    /* (warp) the first row group of its small-M panel */
    volatile u32 page_at[16];     /* (warp) pages of the second list's weights that the warp has
                                     freed */
    volatile u32 act_tile_used[16]; /* (warp) phases of the activation tiles */
    volatile u32 kv_buffer_next;    /* KV buffers that the epilogue has requested */
    volatile u32 kv_buffer_at[16];  /* (warp) KV buffers that the warp has freed */
#endif

#if MGL_PANELS
    cached_shape shapes[PANEL_GROUPS]; /* (row groups - 1) the shape of a panel */
#endif

    news told[MGL_ROWS];  /* (row) written by sample; the controller sends it to the host */
    int wanted[MGL_ROWS]; /* rows that want logits, in order */
    int wanted_count;
#if MGL_PANELS
    int tiles[PANEL_ROWS / PANEL_TILE]; /* tiles of rows in which some row wants logits, in order */
    int tile_count;
#endif
#if MGL_TRACE
    volatile u32 input, products, starved, act_tiles,
        ahead;                /* times of consumer warp 0 in the current task */
    volatile u32 ended;       /* when the previous task ended */
    mgl_device_event seen[3]; /* events of the instruction slots, and of a task without consumers */
#endif
#if MGL_DELAYS
    u32 delay_seed;
    volatile u32 delays[BLOCK_THREADS / 32]; /* (warp) calls of delay() so far */
#endif
};

static_assert(sizeof(shared) <= MGL_SHARED, "the block's own shared memory is too small");

extern __shared__ __align__(1024) u8 launched_memory[];

/* Start of the shared memory: after the 1 KB that the system reserves in each block. MGL_SHARED_AT
 * gives the address as a number if the host knows it; otherwise the compiler computes the address
 * from the block's place in its cluster at each use. The kernel checks the number. */
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

/* The three parts. Functions instead of pointers, so that the compiler sees that the memory is
 * shared memory. */
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
static __device__ __forceinline__ u8 *act_tile_memory() /* (ACT_TILES, ACT_TILE_BYTES) */
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

/* State of a thread of a block. Passed by value to functions that are not inlined, so that it stays
 * in registers. */
struct machine {
    u32 record;      /* of the current task: index in own().record */
    u32 epoch;       /* with two lists: counted in the current list */
    u32 base;        /* page at which this epoch's tape starts, counted over all epochs */
    u32 known;       /* this warp has seen that the pages below have landed; see ring.cuh */
    u32 freed;       /* this warp has freed the pages below */
    u32 instruction; /* instruction slot of the task: 0 or 1 */
#if MGL_LISTS
    u32 list, others; /* the current list, and epochs of the other list so far; used by the
                         controller */
#endif
#if MGL_TRACE
    u32 starved; /* ns, in the current task */
#endif
    u32 psums; /* partial-sum buffers used so far, over all tasks: gives the buffer and its phase */
    int warp, lane;
};

/* Reads the thread's warp and lane again. The compiler would keep a value that lives through all
 * tasks in local memory. */
static __device__ __forceinline__ void know_thread(machine &m)
{
    const u32 thread = thread_index();
    m.warp = (int)(thread / 32);
    m.lane = (int)(thread % 32);
}

/* The consumer thread and its task, read again for the same reason. */
static __device__ __forceinline__ machine machine_now()
{
    machine m = {};
    know_thread(m);
    m.instruction = (own().begun[m.warp] - 1) & 1;
    m.record = own().instruction[m.instruction].record;
    m.epoch = own().instruction[m.instruction].epoch;
    return m;
}

/* The thread's number in the block, which for consumers is the number among the consumers. */
static __device__ __forceinline__ int thread_of(const machine &m)
{
    return m.warp * 32 + m.lane;
}

/* Barrier of the consumers only. */
static __device__ __forceinline__ void consumer_barrier()
{
    named_barrier<(int)THREADS>();
}

/* The instruction slot of the current task. Read again if the compiler would keep it in local
 * memory. */
static __device__ __forceinline__ u32 instruction_now(const machine &m)
{
    return MGL_LISTS ? (own().begun[thread_index() / 32] - 1) & 1 : m.instruction;
}

/* Waits until the previous task has ended: then the activation buffer, the squares and the
 * partial-sum buffers belong to this task. */
static __device__ __forceinline__ void wait_start(const machine &m)
{
    const u32 parity = instruction_now(m);
    while (!barrier_passed(&own().start, parity))
        ; /* each wait of the controller and of the consumers has a deadline */
    __syncwarp();
}

#endif
