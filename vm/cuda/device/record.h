/*
 * The interface of host and kernel: one launch block, one entry per queue, and a queue's tasks as
 * records of variable length, one after the other:
 *
 *     mgl_record | operands (in, then out, then extra) | segments | biases | row factors | waits
 *     | signals (u32), padded | clears
 *
 * The host writes the records (vm/cuda/), and the controller reads them. A record holds the offset
 * and length of the next one, so that the next one can be fetched during the current task. The last
 * record of a queue names the first. The regions that a `clear` resets are in the record of the
 * previous task. If there is no previous task, or its record has no room, or the `clear` has edges,
 * the `clear` has its own record without operands. Plain C that NVRTC compiles too: no includes,
 * and the same layout on both sides.
 *
 * In a program with two lists a queue has two consecutive entries, one for each list. The records
 * of each list are a run of their own with at least MGL_LEAST_RECORDS records: the list of the next
 * epoch is known when an epoch's second task is current, and records are fetched that far ahead.
 * Clears of nothing pad shorter runs.
 */
#ifndef MGL_VM_CUDA_RECORD_H
#define MGL_VM_CUDA_RECORD_H

enum {
    MGL_RECORD_BYTES = 1024, /* the longest record: the room for one in shared memory */
    MGL_LEAST_RECORDS = 4,   /* of a queue in each of two lists */
    MGL_COUNTER_WORDS = 32   /* u32s from one counter to the next: each has its own line of 128
                                bytes */
};

/* Bytes that a kernel with scaled weights reserves at the end of the activation buffer: a float for
 * each row and each of `warps` warps, by which the warp multiplies its sums of the row
 * (linear/scaled_input.cuh). */
#define MGL_CUDA_RANGE_BYTES(rows, warps) (((rows) * (warps)*4 + 127) / 128 * 128)

/* Kinds of inputs of products whose weights have at most 16 bits. HALF: 16-bit values. PARTS:
 * values that need more than 16 bits (mgl_product_is_parted), as high and low parts, or as digits
 * if the codes are integers. DIGITS: 16-bit values that are converted to digits
 * (mgl_product_takes_digits). */
enum { MGL_INPUT_HALF, MGL_INPUT_PARTS, MGL_INPUT_DIGITS };

/* The index of the bit of an input in the bit set of the inputs of tasks. width: 0 for a hidden
 * row, 1 for the output of attention, 2 for others. kind: MGL_INPUT_... */
#define MGL_CUDA_INPUT(width, kind) ((width)*3 + (kind))

/* The rows of a range: all of them, the unsplit or the split ones. A kind of rows of program.h
 * (MGL_ROWS_...) is one less. */
enum { MGL_KV_ALL, MGL_KV_UNSPLIT, MGL_KV_SPLIT };

/* A region, resolved: address of its first element, strides in elements. Ranges that are symbols
 * (rows, positions) begin at 0 and count the whole extent. */
typedef struct mgl_device_operand {
    unsigned long long at;
    long long stride0;            /* of dimension 0; the other strides fit 32 bits */
    unsigned long long set_bytes; /* from one set to the next */
    int stride1, stride2;         /* of dimensions 1 and 2 */
    int count[3];                 /* elements of the first three ranges */
    int first0, extent0;          /* dimension 0: the range's start, the buffer's extent
                                     (splits); of a share of the rows: the number of the share
                                     and the number of shares */
    int first1;                   /* dimension 1: the range's start (vocabulary). If a dimension is
                                     that of the rows, first0 or first1 is MGL_KV_..., except for
                                     shares */
    unsigned char dtype;          /* mgl_dtype */
    unsigned char flag;           /* a flag region */
    unsigned char sets;           /* epoch e uses set e mod sets */
    unsigned char paged; /* the region is paged (schedule/pages.h): `at` is the buffer's start,
                            and the range begins at column first1 */
} mgl_device_operand;

/* The part of one region that a `clear` resets: a run of bytes in each row, repeated for each index
 * of the dimension before the rows. */
typedef struct mgl_device_clear {
    unsigned long long at, set_bytes;
    unsigned long long outer_bytes; /* from an index of that dimension to the next */
    unsigned outer;                 /* extent of that dimension; 1 without such a dimension */
    unsigned row_bytes;             /* from row to row */
    unsigned bytes;                 /* of a row's run; a multiple of 16 */
    unsigned short sets;
    unsigned short kinds; /* bits 1 << MGL_KV_...: the rows with which tasks write the buffer */
} mgl_device_clear;

/* A segment, in blocks of 512 bytes. */
typedef struct mgl_device_segment {
    unsigned block; /* its first block, from the start of the queue's tape */
    int kblocks;    /* of a row group */
    int groups;     /* row groups; of two interleaved tensors: both counted */
    int rows;       /* output columns: the last row group may be partly padding */
    int columns;    /* of a row, padding not counted */
    unsigned end;   /* page at which the tape continues after the segment */
} mgl_device_segment;

/* The biases, or the row factors, of columns [end of the previous vector, end) of a product's
 * output. If two tensors are interleaved, each tensor has a vector of its own. */
typedef struct mgl_device_vector {
    unsigned long long at; /* f32: address that the value of output column 0 would have */
    int end, unused;
} mgl_device_vector;

typedef struct mgl_device_wait {
    unsigned counter, threshold, per_epoch; /* value >= epoch * per_epoch + threshold */
    unsigned per_other; /* with two lists: plus this for each earlier epoch of the other list */
} mgl_device_wait;

typedef struct mgl_record {
    int op;              /* mgl_op */
    int task;            /* number in the program, for reports */
    unsigned next;       /* byte offset of the list's next record */
    unsigned next_bytes; /* its length */
    int outputs;         /* operands that are outputs; optional ones may be missing */
    int segments, waits, signals, clears;
    unsigned segment_at, wait_at, signal_at, clear_at; /* byte offsets in the record */
    unsigned kv_page; /* of attention: its keys and values come before this page of the tape */
    union {
        unsigned kv_again; /* of attention: 1: the rest of the page before follows as its own page;
                              see roles/loader.cuh */
        unsigned format;   /* of a product: 0: weights of MGL_WEIGHT; else the number of a scaled
                              format (linear/formats.cuh) */
    };
    unsigned char variant; /* mgl_variant */
    /* of a product: largest row counts of the skinny variant and of the batch variant, which begins
     * at MGL_BATCH_LEAST() rows; other row counts run as general */
    unsigned char skinny_rows, batch_rows;
    unsigned char biases; /* count; after the segments, at the next multiple of 16 bytes. If the
                             weights have row factors, these follow: a vector for each tensor,
                             then a vector with the address 0. Other scaled weights have one more
                             vector: the column map, or the address 0 */
} mgl_record;

typedef struct mgl_device_queue {
    unsigned long long tape; /* address */
    unsigned pages;          /* of the tape */
    unsigned first;          /* byte offset of its first record */
    unsigned first_bytes;
    unsigned tasks;
    unsigned kv_count; /* number of its attentions (mgl_device_kv), */
    unsigned kv_at;    /* at this byte offset in the records; in a second list whose products are
                          panels, number and offset of mgl_device_panel */
} mgl_device_queue;

/* An attention of a queue, for the loader (MGL_KV_RING). */
typedef struct mgl_device_kv {
    unsigned long long keys, values; /* of its kv head, at position 0 */
    unsigned stop;                   /* the block of the tape before which the attention comes */
    unsigned split, splits;          /* its share of the earlier positions */
    unsigned rows;                   /* the rows that it attends with: MGL_KV_... */
} mgl_device_kv;

/* A product with panels, for the loader (MGL_PANELS); or an attention of rows, which uses KV
 * buffers. */
typedef struct mgl_device_panel {
    unsigned long long tape;  /* address of its first block */
    unsigned groups, kblocks; /* row groups, of kblocks blocks each, consecutive; 0 for attention */
    unsigned heads;           /* 1: the product computes logits, of the rows that want them */
    unsigned scales;          /* blocks of scales before the k blocks of a row group */
    unsigned scaled;          /* 1: the weights have a scaled format */
    unsigned unused;
} mgl_device_panel;

/* Words between host and kernel while it runs (pinned). */
enum {
    MGL_HOST_ABORT,   /* set by the host: the first of the words MGL_ASKED_... of schedule/step.h */
    MGL_HOST_SAMPLED, /* written by sample: the row that it sampled last + 1; 0: none yet; with
                         two lists plus MGL_HOST_SECOND in the second list */
    MGL_HOST_EXPIRED, /* the queue whose watchdog expired first + 1; 0: none */
    MGL_HOST_STOPPED, /* set by the host: the rest of these words */
    MGL_HOST_WORDS = 8,
    MGL_HOST_SECOND = 1 << 16
};

/* The index of the host word that corresponds to word MGL_ASKED_... of sample. */
#define MGL_HOST_ASKED(word) ((word) ? MGL_HOST_STOPPED - 1 + (word) : MGL_HOST_ABORT)

/* A queue's report: what the queue waited for when it gave up, or that a task has an op or a
 * variant that the kernel does not contain. There is one report per queue (pinned), so that the
 * host can distinguish the wait that caused the stop from waits that depend on it. */
enum {
    MGL_REPORT_KIND, /* MGL_REPORT_...; 0: no report */
    MGL_REPORT_TASK,
    MGL_REPORT_COUNTER, /* or the page of the ring, or the operand's number, or the unsupported
                           op or variant */
    MGL_REPORT_WANTED,
    MGL_REPORT_SEEN,
    MGL_REPORT_EPOCH,
    MGL_REPORT_WORDS = 8
};
enum {
    MGL_REPORT_NONE,
    MGL_REPORT_WAIT,
    MGL_REPORT_RING,
    MGL_REPORT_FLAG,
    MGL_REPORT_OP,
    MGL_REPORT_VARIANT
};

/* Times of a task's stages in an epoch: %globaltimer in ns, low halves. 0: never. */
typedef struct mgl_device_event {
    unsigned epoch;     /* epoch + 1, counted over both lists */
    unsigned begin;     /* the queue came to the task */
    unsigned go;        /* its counters were reached */
    unsigned input;     /* consumer warp 0 had its share of the input */
    unsigned products;  /* and had finished its last product, or all of a task without a tape */
    unsigned end;       /* outputs written */
    unsigned starved;   /* ns that consumer warp 0 waited for the tape, */
    unsigned act_tiles; /* and for activations of panels */
    unsigned ahead;     /* pages that had landed and were not yet freed, at time `input` */
} mgl_device_event;

typedef struct mgl_device_launch {
    unsigned long long queues;      /* mgl_device_queue (queues) */
    unsigned long long records;     /* bytes */
    unsigned long long counters;    /* u32 (counters, MGL_COUNTER_WORDS), 0 at the start */
    unsigned long long stopped;     /* u32; 1: a watchdog has expired, all queues leave */
    unsigned long long host;        /* pinned i32 (MGL_HOST_WORDS) */
    unsigned long long reports;     /* pinned i32 (queues, MGL_REPORT_WORDS) */
    unsigned long long stream;      /* pinned i32 (sequences, capacity): token + 1 */
    unsigned long long deadline_ns; /* of one wait */
    unsigned long long trace;       /* mgl_device_event (trace_epochs, tasks), 0: none */
    unsigned trace_epochs, tasks;   /* epoch e has row e mod trace_epochs; tasks of the first
                                       list, then of the second, in the order of the records */
    unsigned sequences, capacity;   /* of the program: the extents of `stream`, of prompt and
                                       output */
    unsigned pending;    /* pages of a ring in flight while an edge is waited for, at most */
    unsigned delay_seed; /* of device/delay.cuh */
} mgl_device_launch;

#endif
