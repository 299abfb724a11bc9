/*
 * The program: a DAG of tasks with queues, regions, counters and tapes. Lowering and the text
 * parser build a program. The validator proves it, the cost model prices it, and the CPU VM and the
 * CUDA VM run it. A program is plain data: arrays and indices, so that every reader sees all of it.
 *
 * All tasks are in one array, queue after queue, in the order in which each queue runs them.
 * Regions, segments, waits and signals have arrays of their own; a task holds its index range in
 * each. The program owns all names.
 *
 * A program has one task list or two. The first list serves epochs of few rows, the second list
 * serves epochs of many rows. The row table of an epoch selects the list for all queues.
 * The second list is an mgl_program of its own. Its declarations start with all declarations of the
 * first list, at the same indices. Both lists share the memory of tensors, const buffers, kv
 * buffers, counters, and the io buffers that carry state from epoch to epoch. Buffers with rows
 * belong to the list that declares them. The second list has no tapes: each of its segments is a
 * part of a segment of the first list.
 */
#ifndef MGL_SCHEDULE_PROGRAM_H
#define MGL_SCHEDULE_PROGRAM_H

#include "base/dtype.h"
#include "base/error.h"
#include "base/sha256.h"
#include "importer/graph.h"
#include "instructions/ops.h"
#include "schedule/formats.h"
#include "schedule/tape.h"

enum {
    MGL_MAX_RANK = 4,
    MGL_MAX_ROWS = 16,         /* rows of an epoch of the first list; in a program with one list
                                  also the sequences of a launch */
    MGL_MAX_SECOND_ROWS = 128, /* rows of an epoch of the second list */
    MGL_MAX_SEQUENCES = 64,    /* sequences of a launch of a program with two lists */
    MGL_MAX_QUEUES = 256,
    MGL_MAX_SPLITS = 64,
    MGL_MAX_CAPACITY = 1 << 20,  /* positions of a sequence */
    MGL_SHARED_RESERVED = 24576, /* bytes of shared memory that the CUDA VM keeps for itself */
    MGL_SHARED_SECOND = 4096,    /* further bytes for a row table of more than MGL_MAX_ROWS rows */
};

/* Selects the code that runs a task: one of the variants of its op (schedule/variants.h). */
typedef enum mgl_variant {
    MGL_VARIANT_GENERAL,
#define MGL_VARIANT(id, ...) MGL_VARIANT_##id,
#include "schedule/variants.def"
    MGL_VARIANT_COUNT
} mgl_variant;

/* An extent is a number, or a symbol whose value comes from the limits of the program. */
typedef enum mgl_symbol {
    MGL_FIXED,
    MGL_ROWS,      /* limits.rows; a region writes [:rows], the rows of this epoch */
    MGL_SEQUENCES, /* limits.sequences */
    MGL_CAPACITY   /* limits.capacity */
} mgl_symbol;

typedef struct mgl_extent {
    mgl_symbol symbol;
    int64_t count; /* the resolved number, for symbols too */
} mgl_extent;

/* Where the host gets the bytes of a const buffer. */
typedef enum mgl_source {
    MGL_SOURCE_NONE,
    MGL_SOURCE_TENSOR, /* the tensor, converted to the buffer's dtype */
    MGL_SOURCE_ROPE,   /* (capacity, head_dim): cos (head_dim/2), then sin (head_dim/2) */
    MGL_SOURCE_SCALES, /* (rows) f32: the row factors of the tensor, as its scales in the file */
    MGL_SOURCE_ORDER   /* (cols) i32: the column map of the tensor, a permutation: column i of its
                          segments is column map[i] of the tensor */
} mgl_source;

/* Whether a source is a tensor or a part of one. */
static inline bool mgl_source_has_tensor(mgl_source source)
{
    return source == MGL_SOURCE_TENSOR || source == MGL_SOURCE_SCALES || source == MGL_SOURCE_ORDER;
}

typedef struct mgl_buffer {
    const char *name;
    mgl_space space;
    mgl_dtype dtype;
    int rank;
    mgl_extent extents[MGL_MAX_RANK];
    mgl_source source;
    int tensor; /* with MGL_SOURCE_TENSOR, MGL_SOURCE_SCALES and MGL_SOURCE_ORDER, else -1 */
    int sets;   /* copies of a flagged buffer: epoch e uses set e mod sets; 1 without flags */
    bool paged; /* stored in activation pages (schedule/pages.h) */
    int line;   /* line in the text form; 0 if lowered */
} mgl_buffer;

typedef struct mgl_program_tensor {
    const char *name;         /* name in the text form */
    const char *checkpoint;   /* name in the checkpoint */
    mgl_weight_format format; /* format on the tape */
    int64_t rows, cols;       /* rank 1 has rows = 1 */
    int rank;
    int factors; /* index of the const buffer of its row factors; -1: none. Set when the buffer is
                    declared */
    int order;   /* index of the const buffer of its column map; -1: its columns are not reordered.
                    Set when the buffer is declared */
    int line;
} mgl_program_tensor;

typedef struct mgl_counter {
    const char *name;
    int line;
} mgl_counter;

typedef enum mgl_range_kind {
    MGL_RANGE_FIXED,   /* [lo:hi) */
    MGL_RANGE_ROWS,    /* [:rows] */
    MGL_RANGE_PAST,    /* [:pos]  positions written in earlier epochs */
    MGL_RANGE_NOW,     /* [pos]   positions of this epoch's rows; [pos unsplit], [pos split]: of the
                          rows of one kind only */
    MGL_RANGE_SHARE,   /* [:rows i/n] share i of n of the rows of this epoch (mgl_row_share) */
    MGL_RANGE_ROW_KIND /* [:rows unsplit] rows of sequences that have at most limits.unsplit
                          positions from earlier epochs; [:rows split] the other rows */
} mgl_range_kind;

/* The kinds of rows of an epoch, and their number. All rows of a sequence are of one kind. */
enum { MGL_ROWS_UNSPLIT, MGL_ROWS_SPLIT, MGL_ROWS_KINDS };

typedef struct mgl_range {
    mgl_range_kind kind;
    int64_t lo, hi; /* MGL_RANGE_FIXED: bounds; MGL_RANGE_SHARE: i and n; MGL_RANGE_ROW_KIND, and
                       MGL_RANGE_NOW of one kind of rows: the kind (MGL_ROWS_UNSPLIT or
                       MGL_ROWS_SPLIT) and MGL_ROWS_KINDS; else 0 */
} mgl_range;

/* Whether the range has the rows of one kind only. `lo` is the kind. */
static inline bool mgl_range_has_row_kind(const mgl_range *range)
{
    return range->kind == MGL_RANGE_ROW_KIND || (range->kind == MGL_RANGE_NOW && range->hi > 0);
}

/* Whether the range is one of several disjoint parts of the epoch's rows: part `lo` of `hi`. All
 * rows (MGL_RANGE_ROWS) are no such part. */
static inline bool mgl_range_is_part_of_rows(const mgl_range *range)
{
    return range->kind == MGL_RANGE_SHARE || mgl_range_has_row_kind(range);
}

/* Whether the range uses lo and hi. */
static inline bool mgl_range_has_numbers(const mgl_range *range)
{
    return range->kind == MGL_RANGE_FIXED || mgl_range_is_part_of_rows(range);
}

/* The word after `:rows` or `pos` in the text form of a range with one kind of rows. */
static inline const char *mgl_row_kind_name(const mgl_range *range)
{
    return range->lo == MGL_ROWS_SPLIT ? "split" : "unsplit";
}

/* Whether two ranges are different parts of the same division of the rows, and so disjoint. */
static inline bool mgl_ranges_are_disjoint_parts(const mgl_range *a, const mgl_range *b)
{
    return a->kind == b->kind && mgl_range_is_part_of_rows(a) && a->hi == b->hi && a->lo != b->lo;
}

typedef struct mgl_region {
    int buffer;
    bool flag; /* a flag edge: each word encodes whether it was written */
    mgl_range ranges[MGL_MAX_RANK];
} mgl_region;

/* Indices of a region in dimension `dim`. */
static inline int64_t mgl_region_width(const mgl_region *region, int dim)
{
    return region->ranges[dim].hi - region->ranges[dim].lo;
}

/* A part of the queue's tape: rows [row_lo, row_hi), columns [col_lo, col_hi) of one tensor, or
 * of two. row_lo is a multiple of MGL_ROW_GROUP. row_hi is a multiple too, or the end of the
 * tensor. */
typedef struct mgl_segment {
    int tensor, tensor2; /* tensor2: -1 except with MGL_LAYOUT_G8X2 */
    mgl_layout layout;
    int64_t row_lo, row_hi, col_lo, col_hi;
    int64_t offset; /* bytes from the start of the queue's tape; 0 in the second list */
} mgl_segment;

/* Waits until all signals of earlier epochs and `threshold` signals of this epoch have arrived.
 * In a program with one list, epoch e waits for the value e P + threshold, with P signals an
 * epoch. */
typedef struct mgl_wait {
    int counter;
    int64_t threshold;
} mgl_wait;

typedef struct mgl_run {
    int first, count;
} mgl_run;

typedef struct mgl_task {
    mgl_op op;
    mgl_variant variant;
    mgl_run in, out;  /* range of regions */
    mgl_run segments; /* range of segments */
    mgl_run waits;    /* range of waits */
    mgl_run signals;  /* range of signals */
    int line;         /* line in the text form; 0 if lowered */
} mgl_task;

typedef struct mgl_queue {
    mgl_run tasks;
    int64_t
        tape_bytes;   /* segments and padding; a multiple of the page size; 0 in the second list */
    int64_t tape_pad; /* the part of tape_bytes that is declared padding at the end */
    int line;
} mgl_queue;

typedef struct mgl_target {
    char arch[16];        /* "sm_90a", "cpu" */
    int queues;           /* SMs in use; each runs one block, all blocks are co-resident */
    int64_t shared_bytes; /* shared memory limit of a block; 0: no limit */
} mgl_target;

typedef struct mgl_limits {
    int rows;      /* rows of an epoch of this list: at most MGL_MAX_ROWS, in the second list 128 */
    int sequences; /* sequences of a launch, at most the rows of the longest epoch */
    int capacity;  /* positions of a sequence */
    int second_rows; /* rows of an epoch of the second list; 0: no second list */
    int first_rows;  /* in the second list: rows of an epoch of the first list; else 0 */
    int share;       /* split attention uses one more split for each `share` earlier positions (see
                        mgl_split_positions in schedule/variant_shapes.h); 0: it uses all splits */
    int unsplit;     /* rows of sequences with at most this many positions from earlier epochs are
                        the unsplit rows; 0: the program has no kinds of rows */
} mgl_limits;

/* Rows of the longest epoch. */
static inline int mgl_limits_most(const mgl_limits *limits)
{
    return limits->second_rows > limits->rows ? limits->second_rows : limits->rows;
}

/* Bytes of shared memory that the CUDA VM keeps for itself if the longest epoch has `rows` rows. */
static inline int mgl_shared_reserved(int rows)
{
    return MGL_SHARED_RESERVED + (rows > MGL_MAX_ROWS ? MGL_SHARED_SECOND : 0);
}

/* Maximum rows of an epoch of the first list. */
static inline int mgl_limits_first_rows(const mgl_limits *limits)
{
    return limits->first_rows > 0 ? limits->first_rows : limits->rows;
}

enum {
    MGL_PENDING_BYTES = 32768, /* exec.pending_bytes of a text form without that field */
    /* limits of the fields of mgl_exec */
    MGL_MAX_PAGE_BYTES = 65536,
    MGL_MIN_PAGES = 2, /* pages of the ring */
    MGL_MAX_PAGES = 64,
    MGL_MAX_WARPS = 16,
    MGL_STAGE_UNIT = 1024, /* the stage is a multiple of this */
    MGL_MAX_STAGE_BYTES = 131072,
    MGL_MAX_STREAM_BYTES = 1 << 20 /* limit for each of flight, pending and prefetch */
};

/* How the CUDA VM streams tapes; the CPU VM ignores it. */
typedef struct mgl_exec {
    int page_bytes; /* bytes of a ring page; a multiple of MGL_BLOCK_BYTES */
    int ring_pages;
    int warps;          /* consumer warps */
    int stage_bytes;    /* shared memory for activations */
    int flight_bytes;   /* maximum bytes of the tape in flight to the ring */
    int pending_bytes;  /* the same while the queue waits for an edge */
    int prefetch_bytes; /* bytes prefetched into the L2 cache ahead of the ring; 0: none */
} mgl_exec;

enum { MGL_MAX_SETS = 8 }; /* sets of a flagged buffer */

enum { MGL_TUNED_NAME = 64 }; /* maximum bytes in the name of a tuned entry */

typedef struct mgl_program {
    mgl_target target;
    mgl_geometry geometry;
    mgl_limits limits;
    mgl_exec exec;
    mgl_dtype weight_dtype;    /* matrices on tapes; f32 on a CPU: each matrix has its own */
    mgl_dtype embedding_dtype; /* the embedding table; f32 on a CPU: any */
    mgl_dtype exchange_dtype;  /* values that queues exchange, besides f32 */
    mgl_dtype kv_dtype;        /* of the KV buffers */
    char
        tuned[MGL_TUNED_NAME + 1]; /* the tuned entry used for lowering (schedule/tuned/tuned.h), or
                                      ""; only records the origin */
    char tuned_digest[MGL_SHA256_HEX]; /* mgl_tuned_digest of that entry, or "" */
    mgl_program_tensor *tensors;
    mgl_buffer *buffers;
    mgl_counter *counters;
    mgl_queue *queues;
    mgl_task *tasks;
    mgl_region *regions;
    mgl_segment *segments;
    mgl_wait *waits;
    int *signals; /* indices of counters */
    int tensor_count, buffer_count, counter_count, queue_count, task_count, region_count,
        segment_count, wait_count, signal_count;
    struct mgl_program *second;      /* the second list; NULL: the program has one list */
    bool is_second;                  /* this is the second list of another program */
    struct mgl_program_store *store; /* capacities of the arrays, and the names */
} mgl_program;

mgl_status mgl_program_new(mgl_program **out, mgl_error *err);
void mgl_program_free(mgl_program *program); /* NULL is fine */

/* Builders. Each appends one item and returns its index, or -1 if memory ran out. The failure is
 * sticky: call mgl_program_failed once at the end. Names are copied. A task is appended to the
 * newest queue. Regions, segments and edges are appended to the newest task; all `in` regions
 * come before all `out` regions. */
int mgl_program_add_tensor(mgl_program *program, const char *name, const char *checkpoint,
                           mgl_weight_format format, int rank, int64_t rows, int64_t cols);
int mgl_program_add_buffer(mgl_program *program, const mgl_buffer *buffer); /* name is copied */
int mgl_program_add_counter(mgl_program *program, const char *name);
int mgl_program_add_queue(mgl_program *program);
int mgl_program_add_task(mgl_program *program, mgl_op op);
void mgl_program_set_variant(mgl_program *program, mgl_variant variant); /* of the newest task */
int mgl_program_add_in(mgl_program *program, const mgl_region *region);
int mgl_program_add_out(mgl_program *program, const mgl_region *region);
int mgl_program_add_segment(mgl_program *program, const mgl_segment *segment);
int mgl_program_add_wait(mgl_program *program, int counter, int64_t threshold);
int mgl_program_add_signal(mgl_program *program, int counter);
bool mgl_program_failed(const mgl_program *program);
/* Declares the tensors, buffers and counters of `from`, in their order. */
void mgl_program_declare_all(mgl_program *program, const mgl_program *from);
/* Adds the second list. It copies the settings of the first list, with `limits.second_rows` rows,
 * and all declarations made so far. The first list must have made all its declarations. */
mgl_status mgl_program_add_second(mgl_program *program, mgl_error *err);
/* The list with all declarations: the second list if the program has one. */
static inline const mgl_program *mgl_program_whole(const mgl_program *program)
{
    return program->second ? program->second : program;
}

/* Whether the sample task of either list counts tokens for repetition penalties. */
bool mgl_program_has_penalties(const mgl_program *program);

/* Whether the program accepts a matrix of this format on a tape: a scaled format or the program's
 * dtype; on a CPU also f32 and, in an f32 program, any format, because its products convert the
 * weights that they read. */
bool mgl_program_takes_format(const mgl_program *program, mgl_weight_format format);
/* The same for gathering rows from a table of this dtype, such as the embedding; a CPU always
 * accepts f32. */
bool mgl_program_takes_table(const mgl_program *program, mgl_dtype dtype);
/* Sets the dtype of weights, embedding, exchanged values and cache to one dtype. */
void mgl_program_set_dtype(mgl_program *program, mgl_dtype dtype);
/* Whether all of these have that dtype. */
bool mgl_program_is_all(const mgl_program *program, mgl_dtype dtype);

/* Turns a region that a task writes into the region that the task's queue must clear. The queue
 * that writes the split rows clears all rows, so a region of split rows becomes one of all rows.
 * Returns false if the queue has nothing to clear: the region is not flagged, or it has the unsplit
 * rows. */
bool mgl_region_to_clear(mgl_region *region);

/* If region b continues region a in exactly one dimension, extends a by b and returns true. */
bool mgl_region_join(mgl_region *a, const mgl_region *b);
/* Whether two regions of a buffer overlap. Ranges that are not fixed count as the whole
 * dimension, except that different shares of the same number of shares are disjoint. */
bool mgl_regions_meet(const mgl_region *a, const mgl_region *b, int rank);

/* Whether all fields are equal. Names compare by their characters, floats bitwise. Line numbers
 * of the text form are ignored. */
bool mgl_program_equal(const mgl_program *a, const mgl_program *b);

/* Whether two declarations are equal, apart from their line. */
bool mgl_program_same_tensor(const mgl_program_tensor *a, const mgl_program_tensor *b);
bool mgl_program_same_buffer(const mgl_buffer *a, const mgl_buffer *b);

/* ---- operands of a task ---------------------------------------------------------------------- */

/* Number of biases of a product: its extra inputs. The extra inputs of a head are no biases. */
static inline int mgl_task_biases(const mgl_task *task)
{
    const bool none = task->segments.count == 0 || mgl_op_heads(task->op);
    return none ? 0 : task->in.count - mgl_op_get(task->op)->in_count;
}

/* The index of an operand (MGL_OPERAND) among the task's regions, inputs first, then outputs. -1
 * if the task omits the operand. */
static inline int mgl_task_place(const mgl_task *task, int operand)
{
    const mgl_op_info *op = mgl_op_get(task->op);
    const int out = operand - op->in_count, extra = out - op->out_count;
    if (out < 0)
        return operand;
    if (extra < 0)
        return out < task->out.count ? task->in.count + out : -1;
    return op->in_count + extra < task->in.count ? op->in_count + extra : -1;
}

/* The operand at an index: the inverse of mgl_task_place. */
static inline int mgl_task_operand_at(const mgl_task *task, int place)
{
    const mgl_op_info *op = mgl_op_get(task->op);
    if (place < op->in_count)
        return place;
    return place < task->in.count ? place + op->out_count : place - task->in.count + op->in_count;
}

/* The region of an operand; NULL if the task omits it. */
static inline mgl_region *mgl_task_operand(const mgl_program *program, const mgl_task *task,
                                           int operand)
{
    const int place = mgl_task_place(task, operand);
    return place < 0 ? NULL : &program->regions[task->in.first + place];
}

/* The region of the first output. */
static inline mgl_region *mgl_task_result(const mgl_program *program, const mgl_task *task)
{
    return &program->regions[task->out.first];
}

/* Columns that a product multiplies: the columns of its input, or of all heads that it merges. */
static inline int64_t mgl_task_inputs(const mgl_program *program, const mgl_task *task)
{
    const mgl_region *in = mgl_task_operand(program, task, MGL_PRODUCT_INPUT);
    const mgl_range *range = &in->ranges[task->op == MGL_OP_MERGE_ADD ? 2 : 1];
    const int64_t each = task->op == MGL_OP_MERGE_ADD ? program->geometry.head_dim : 1;
    return (range->hi - range->lo) * each;
}

/* ---- geometry of the tape -------------------------------------------------------------------- */

/* The format of a segment's weights. Both tensors of a segment have the same format. */
static inline mgl_weight_format mgl_segment_format(const mgl_program *program,
                                                   const mgl_segment *segment)
{
    return program->tensors[segment->tensor].format;
}
/* k blocks in one row of a segment. */
int64_t mgl_segment_blocks(const mgl_program *program, const mgl_segment *segment);
/* Bytes of a row group of one tensor of the segment. */
int64_t mgl_segment_group_bytes(const mgl_program *program, const mgl_segment *segment);
/* Bytes of a segment: row groups x bytes of a row group x tensors. */
int64_t mgl_segment_bytes(const mgl_program *program, const mgl_segment *segment);
/* Rows of a segment that become output columns: row_hi - row_lo. */
int64_t mgl_segment_rows(const mgl_segment *segment);

#endif
