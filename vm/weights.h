/*
 * Packed weights of a program as pieces of about 1 MiB, which any thread can produce in any order.
 * The pieces are packed from a checkpoint here, or read from a compiled file (vm/image.h). The
 * consumer (a machine or a file writer) does not depend on the source.
 *
 * A part is a tape or a const buffer. Part q is the tape of queue q. Part queue_count + b is buffer
 * b, which has 0 bytes unless it is const. Pieces are sorted by part, then by offset, and cover
 * every byte exactly once.
 */
#ifndef MGL_VM_WEIGHTS_H
#define MGL_VM_WEIGHTS_H

#include "vm/overlap.h"
#include "vm/vm.h"

enum { MGL_PIECE_BYTES = 1 << 20, MGL_LARGEST_PIECE = 1 << 26 };

typedef struct mgl_piece {
    int part;
    size_t offset, bytes; /* in the part */
    mgl_origin origin;    /* place of the same bytes in the resident weights of mgl_weights_carry */
} mgl_piece;

typedef struct mgl_weights mgl_weights;

struct mgl_weights {
    const mgl_program *program;
    size_t *sizes;     /* owned (parts) bytes of each part */
    mgl_piece *pieces; /* owned (count) */
    size_t count, capacity;
    size_t largest; /* bytes of the largest piece */
    /* Writes the bytes of a piece to `to`. Thread-safe. */
    mgl_status (*make)(const mgl_weights *weights, size_t piece, void *to, mgl_error *err);
    /* For mapped weights only, else NULL: `find` returns the unchecked bytes of a part, to be read
     * under mgl_map_guard; `check` verifies that the file still has all of its bytes. */
    const void *(*find)(const mgl_weights *weights, int part);
    mgl_status (*check)(const mgl_weights *weights, mgl_error *err);
    void *source; /* data of `make`, owned: released by mgl_free, after `close` if not NULL */
    void (*close)(void *source);
};

/* Progress and cancellation of a pass over pieces. Zero-initialize it, then set the fields that are
 * used. */
typedef struct mgl_weights_watch {
    const atomic_int *abort; /* set by any thread: MGL_INTERRUPTED; may be NULL */
    mgl_stage_fn *on_stage;  /* progress of MGL_STAGE_WEIGHTS, called on worker 0's thread; may
                                be NULL */
    void *user;
    uint64_t total;     /* bytes to make */
    atomic_ullong done; /* bytes made so far */
} mgl_weights_watch;

/* Number of parts of a program. */
int mgl_weights_parts(const mgl_program *program);
/* Bytes of each part (parts); NULL when memory ran out. Release with mgl_free. On a CPU target, an
 * embedding table whose rows are all on the tapes has 0 bytes: it is gathered from the tapes. */
size_t *mgl_weights_sizes(const mgl_program *program);

/* Weights packed from a graph. The program and the graph must outlive them. Release with
 * mgl_weights_close. */
mgl_status mgl_weights_pack(const mgl_program *program, const mgl_graph *graph, mgl_weights **out,
                            mgl_error *err);
void mgl_weights_close(mgl_weights *weights); /* NULL is allowed */

/* Weights of a program that are already in memory. */
typedef struct mgl_resident {
    const mgl_program *program;
    const void *const *parts;  /* (parts) addresses, NULL for an absent part; NULL: the weights
                                  are on a device, and the writer of a piece copies it from its
                                  origin */
    const mgl_weights *mapped; /* weights whose map holds some of the parts, or NULL */
} mgl_resident;

/* The same weights as mgl_weights_pack, cut differently: pieces that the resident weights contain
 * are copied from there. The program, the graph and the resident weights must outlive them. */
mgl_status mgl_weights_carry(const mgl_program *program, const mgl_graph *graph,
                             const mgl_resident *from, mgl_weights **out, mgl_error *err);

/* Appends a piece: the next of its part, or the first of a later part. For implementations of
 * weights. Returns false when memory ran out. */
bool mgl_weights_add(mgl_weights *weights, int part, size_t offset, size_t bytes);

/* Writes all bytes of a part, in parallel. `watch` may be NULL. */
mgl_status mgl_weights_write(const mgl_weights *weights, int part, void *to,
                             mgl_weights_watch *watch, mgl_error *err);
/* Makes every piece once and discards it, which verifies its checksum. `watch` may be NULL. */
mgl_status mgl_weights_verify(const mgl_weights *weights, mgl_weights_watch *watch, mgl_error *err);

/* Checks that `order`, the contents of buffer `buffer`, is a permutation of the columns of its
 * tensor. MGL_BAD_INPUT: it is not. */
mgl_status mgl_order_check(const mgl_program *program, int buffer, const int32_t *order,
                           mgl_error *err);
/* The same for all column maps of the weights. Checks too that the tensors of each task have the
 * same map, which the CUDA machine requires. */
mgl_status mgl_weights_check_orders(const mgl_weights *weights, mgl_error *err);

/* Whether a segment holds full rows of the tensor of a const buffer, in the same format. */
bool mgl_weights_has_rows(const mgl_program *program, const mgl_segment *segment,
                          const mgl_buffer *table);

#endif
