/*
 * The packed weights of a program as pieces of about a MiB that any thread can make, in any order:
 * packed from a checkpoint here, or read from a compiled file (vm/image.h). Whoever needs the
 * bytes, a machine or a file, does not know which.
 *
 * A part is a tape, or a const buffer: part q is the tape of queue q, and part queue_count + b is
 * buffer b, which has no bytes unless it is const. The pieces of a part follow one another, part
 * after part, and cover every byte once.
 */
#ifndef MGL_VM_WEIGHTS_H
#define MGL_VM_WEIGHTS_H

#include "vm/overlap.h"
#include "vm/vm.h"

enum { MGL_PIECE_BYTES = 1 << 20, MGL_LARGEST_PIECE = 1 << 26 };

typedef struct mgl_piece {
    int part;
    size_t offset, bytes; /* in the part */
    mgl_origin origin;    /* where the resident weights of mgl_weights_carry have its bytes */
} mgl_piece;

typedef struct mgl_weights mgl_weights;

struct mgl_weights {
    const mgl_program *program;
    size_t *sizes;     /* owned (parts) bytes of each */
    mgl_piece *pieces; /* owned (count) */
    size_t count, capacity;
    size_t largest; /* bytes of the largest piece */
    /* Writes the bytes of a piece. Thread safe. */
    mgl_status (*make)(const mgl_weights *weights, size_t piece, void *to, mgl_error *err);
    /* Of weights that are a map (NULL: they are none): the bytes of a part, unchecked, to be read
     * under mgl_map_guard; and whether the file still has all of them. */
    const void *(*find)(const mgl_weights *weights, int part);
    mgl_status (*check)(const mgl_weights *weights, mgl_error *err);
    void *source; /* for `make`, owned: released by mgl_free, after `close` if there is one */
    void (*close)(void *source);
};

/* Who watches pieces being made: zero-initialise, and name what there is. */
typedef struct mgl_weights_watch {
    const atomic_int *abort; /* set by anybody: MGL_INTERRUPTED; may be NULL */
    mgl_stage_fn *on_stage;  /* of MGL_STAGE_WEIGHTS, on worker 0's thread; may be NULL */
    void *user;
    uint64_t total;     /* bytes that will be made */
    atomic_ullong done; /* of these */
} mgl_weights_watch;
/* `worker` has made `bytes` bytes more. MGL_INTERRUPTED: it is to stop. */
mgl_status mgl_weights_step(mgl_weights_watch *watch, int worker, size_t bytes, mgl_error *err);

/* The number of parts of a program, and their bytes. On a CPU a gathered table that all stands on
 * the tapes too has none: it is gathered from there. */
int mgl_weights_parts(const mgl_program *program);
/* (parts); NULL when memory ran out. Release with mgl_free. */
size_t *mgl_weights_sizes(const mgl_program *program);

/* The weights of a graph. Program and graph must outlive them; release with mgl_weights_close. */
mgl_status mgl_weights_pack(const mgl_program *program, const mgl_graph *graph, mgl_weights **out,
                            mgl_error *err);
void mgl_weights_close(mgl_weights *weights); /* NULL is fine */

/* The weights of a program that are in memory. */
typedef struct mgl_resident {
    const mgl_program *program;
    const void *const *parts;  /* (parts) addresses, NULL where there is none; NULL: they lie on a
                                  device, where who writes a piece copies it from its origin */
    const mgl_weights *mapped; /* whose map some of the parts are in, or NULL */
} mgl_resident;

/* The same weights as mgl_weights_pack's, in other pieces: those that the resident weights have are
 * copied from there. All three must outlive them. */
mgl_status mgl_weights_carry(const mgl_program *program, const mgl_graph *graph,
                             const mgl_resident *from, mgl_weights **out, mgl_error *err);

/* Appends a piece, the next of its part or the first of a later one: for those who make weights.
 * False when memory ran out. */
bool mgl_weights_add(mgl_weights *weights, int part, size_t offset, size_t bytes);

/* Writes all bytes of a part, with several threads. `watch` may be NULL. */
mgl_status mgl_weights_write(const mgl_weights *weights, int part, void *to,
                             mgl_weights_watch *watch, mgl_error *err);
/* Makes every piece once and lets it go: its checksum is looked at on the way. `watch` may be NULL.
 */
mgl_status mgl_weights_verify(const mgl_weights *weights, mgl_weights_watch *watch, mgl_error *err);

/* Whether a segment holds rows of the table that a const buffer is, whole. */
bool mgl_weights_has_rows(const mgl_program *program, const mgl_segment *segment,
                          const mgl_buffer *table);

#endif
