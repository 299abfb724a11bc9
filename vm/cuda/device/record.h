/*
 * What the host hands to the kernel: one launch block, one entry a queue, and a queue's tasks as
 * records of variable length, one behind the other:
 *
 *     mgl_record | operands (in, then out, then extra) | segments | biases | waits
 *     | signals (u32), padded | clears
 *
 * A record knows where the next one is and how long, so that it can be fetched while this one is
 * worked on; the last one of a queue names the first. What a `clear` resets stands in the record of
 * the task before it. Where there is no such, or no room in it, or the `clear` has edges, it stands
 * in a record of its own, without operands. Plain C that NVRTC compiles too: no includes, and the
 * same layout on both sides.
 *
 * Where a program has two lists, a queue has two entries, one behind the other: that of the first
 * list, and that of the second, whose records are a run of their own. Each run then has at least
 * MGL_LEAST_RECORDS records: the list behind an epoch is known when its second task is at hand, and
 * records are fetched that far ahead. What lacks is made up by clears of nothing.
 */
#ifndef MGL_VM_CUDA_RECORD_H
#define MGL_VM_CUDA_RECORD_H

enum {
    MGL_RECORD_BYTES = 1024, /* the longest record: what shared memory keeps for one */
    MGL_LEAST_RECORDS = 4,   /* of a queue in each of two lists */
    MGL_COUNTER_WORDS = 32   /* u32s from one counter to the next: a line of 128 bytes each */
};

/* A region, resolved: address of its first element, strides in elements. Ranges that are symbols
 * (rows, positions) begin at 0 and count the whole extent. */
typedef struct mgl_device_operand {
    unsigned long long at;
    long long stride0;            /* of dimension 0; the others' fit 32 bits */
    unsigned long long set_bytes; /* from one set to the next */
    int stride1, stride2;         /* of dimensions 1 and 2 */
    int count[3];                 /* elements of the first three ranges */
    int first0, extent0;          /* dimension 0: the range's start, the buffer's extent (splits);
                                     of a share of the rows, which and of how many */
    int first1;                   /* dimension 1: the range's start (vocabulary) */
    unsigned char dtype;          /* mgl_dtype */
    unsigned char flag;           /* a flag region */
    unsigned char sets;           /* epoch e uses set e mod sets */
    unsigned char paged; /* it lies in pages (schedule/pages.h): `at` is the buffer's start,
                            and the range begins at column first1 */
} mgl_device_operand;

/* What a `clear` resets of one region: one run of bytes for each row, and all that for each index
 * of the dimension in front of the rows. */
typedef struct mgl_device_clear {
    unsigned long long at, set_bytes;
    unsigned long long outer_bytes; /* from one such index to the next */
    unsigned outer;                 /* how many there are; 1 without such a dimension */
    unsigned row_bytes;             /* from row to row */
    unsigned bytes;                 /* of a row's run; a multiple of 16 */
    unsigned sets;
} mgl_device_clear;

/* A segment, in blocks of 512 bytes. */
typedef struct mgl_device_segment {
    unsigned block; /* its first, from the start of the queue's tape */
    int kblocks;    /* of a row group */
    int groups;     /* row groups; of two tensors in turn: both counted */
    int rows;       /* output columns: the last row group may be partly padding */
    int columns;    /* of a row, padding not counted */
    unsigned end;   /* page at which the tape goes on behind it */
} mgl_device_segment;

/* The bias of columns [the end of the one before, end) of a product's output; of two tensors in
 * turn, that of one of them. */
typedef struct mgl_device_bias {
    unsigned long long at; /* f32: where column 0 of the output would have its own */
    int end, unused;
} mgl_device_bias;

typedef struct mgl_device_wait {
    unsigned counter, threshold, per_epoch; /* value >= epoch * per_epoch + threshold */
    unsigned per_other; /* with two lists: and so many for each epoch of the other list before */
} mgl_device_wait;

typedef struct mgl_record {
    int op;              /* mgl_op */
    int task;            /* of the program: for the report */
    unsigned next;       /* byte offset of the list's next record */
    unsigned next_bytes; /* its length */
    int outputs;         /* operands that are outputs: the optional ones may be missing */
    int segments, waits, signals, clears;
    unsigned segment_at, wait_at, signal_at, clear_at; /* byte offsets in the record */
    unsigned kv_page; /* of attention: the page of the tape before which its keys and values come */
    unsigned kv_again;     /* 1: then the page before that once more; see roles/loader.cuh */
    unsigned char variant; /* mgl_variant */
    /* of a product: it runs as skinny up to so many rows, else as a batch from MGL_BATCH_LEAST up
     * to so many, else as general */
    unsigned char skinny_rows, batch_rows;
    unsigned char biases; /* behind the segments, at the next multiple of 16 bytes */
} mgl_record;

typedef struct mgl_device_queue {
    unsigned long long tape; /* address */
    unsigned pages;          /* of the tape */
    unsigned first;          /* byte offset of its first record */
    unsigned first_bytes;
    unsigned tasks;
    unsigned kv_count; /* its attentions: mgl_device_kv, */
    unsigned kv_at;    /* at this byte offset among the records; or, of a second list whose products
                          are panels, those: mgl_device_panel */
} mgl_device_queue;

/* An attention of a queue, as the loader knows it (MGL_KV_RING). */
typedef struct mgl_device_kv {
    unsigned long long keys, values; /* of its kv head, position 0 */
    unsigned stop;                   /* the block of the tape before which it stands */
    unsigned split, splits;          /* its share of the earlier positions */
    unsigned unused;
} mgl_device_kv;

/* A product by panels, as the loader knows it (MGL_PANELS); or an attention of rows, of which it
 * knows that it has trays as well. */
typedef struct mgl_device_panel {
    unsigned long long tape;  /* address of its first block */
    unsigned groups, kblocks; /* row groups, of so many blocks each, one behind the other; none */
    unsigned heads;           /* 1: it makes logits, of the rows that want them */
    unsigned unused[3];
} mgl_device_panel;

/* Words between host and kernel while it runs (pinned). */
enum {
    MGL_HOST_ABORT,   /* set by the host: the first of the words MGL_ASKED_... of schedule/step.h */
    MGL_HOST_SAMPLED, /* by sample: the row that it sampled last + 1; 0: none yet; with two lists
                         MGL_HOST_SECOND more in the second */
    MGL_HOST_EXPIRED, /* the queue whose watchdog spoke first + 1; 0: none did */
    MGL_HOST_STOPPED, /* set by the host: the rest of these words */
    MGL_HOST_WORDS = 8,
    MGL_HOST_SECOND = 1 << 16
};

/* The word of the host that word MGL_ASKED_... of sample is. */
#define MGL_HOST_ASKED(word) ((word) ? MGL_HOST_STOPPED - 1 + (word) : MGL_HOST_ABORT)

/* What a queue was waiting for when it gave up, or that it had a task of an op or a variant that
 * the kernel does not have: one report a queue (pinned), so that the host can tell the wait that is
 * to blame from those that only waited for the one to blame. */
enum {
    MGL_REPORT_KIND, /* MGL_REPORT_...; 0: it did not wait */
    MGL_REPORT_TASK,
    MGL_REPORT_COUNTER, /* or the page of the ring, or the operand's number, or the op or variant
                           that nobody knows */
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

/* What a task of an epoch did when: times of %globaltimer in ns, low halves. 0: never. */
typedef struct mgl_device_event {
    unsigned epoch;     /* + 1, of both lists together */
    unsigned begin;     /* the queue turned to it */
    unsigned go;        /* its counters were there */
    unsigned input;     /* consumer warp 0 had its share of the input */
    unsigned products;  /* and had done its last product, or all of a task without tape */
    unsigned end;       /* outputs written */
    unsigned starved;   /* ns that consumer warp 0 waited for the tape, */
    unsigned act_tiles; /* and for activations of panels */
    unsigned ahead;     /* pages that had landed and were not yet needed, at `input` */
} mgl_device_event;

typedef struct mgl_device_launch {
    unsigned long long queues;      /* mgl_device_queue (queues) */
    unsigned long long records;     /* bytes */
    unsigned long long counters;    /* u32 (counters, MGL_COUNTER_WORDS), 0 at the start */
    unsigned long long stopped;     /* u32: a watchdog has spoken, everybody leaves */
    unsigned long long host;        /* pinned i32 (MGL_HOST_WORDS) */
    unsigned long long reports;     /* pinned i32 (queues, MGL_REPORT_WORDS) */
    unsigned long long stream;      /* pinned i32 (sequences, capacity): token + 1 */
    unsigned long long deadline_ns; /* of one wait */
    unsigned long long trace;       /* mgl_device_event (trace_epochs, tasks), 0: none */
    unsigned trace_epochs, tasks;   /* epoch e has row e mod trace_epochs; tasks of the first list
                                       with those of the second behind them, as records have them */
    unsigned sequences, capacity;   /* of the program: the extents of `stream`, prompt and output */
    unsigned pending;    /* pages of a ring that may be on their way while an edge is waited for */
    unsigned delay_seed; /* of device/delay.cuh */
} mgl_device_launch;

#endif
