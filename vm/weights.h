/*
 * The packed weights of a program as pieces of about a MiB that any thread can make, in any order:
 * packed from a checkpoint here, or read from a compiled file (vm/image.h). Whoever needs the bytes,
 * a machine or a file, does not know which.
 *
 * A part is a tape, or a const buffer: part q is the tape of queue q, and part queue_count + b is
 * buffer b, which has no bytes unless it is const. The pieces of a part follow one another, part
 * after part, and cover every byte once.
 */
#ifndef MGL_VM_WEIGHTS_H
#define MGL_VM_WEIGHTS_H

#include "vm/vm.h"

enum { MGL_PIECE_BYTES = 1 << 20, MGL_LARGEST_PIECE = 1 << 26 };

typedef struct mgl_piece {
    int part;
    size_t offset, bytes; /* in the part */
} mgl_piece;

typedef struct mgl_weights mgl_weights;

struct mgl_weights {
    const mgl_program *program;
    mgl_piece *pieces; /* owned (count) */
    size_t count, capacity;
    size_t largest; /* bytes of the largest piece */
    /* Writes the bytes of a piece. Thread safe. */
    mgl_status (*make)(const mgl_weights *weights, size_t piece, void *to, mgl_error *err);
    void *source; /* for `make`, owned: released by mgl_free, after `close` if there is one */
    void (*close)(void *source);
};

/* The number of parts of a program, and their bytes. */
int mgl_weights_parts(const mgl_program *program);
size_t mgl_weights_bytes(const mgl_program *program, int part);

/* The weights of a graph. Program and graph must outlive them; release with mgl_weights_close. */
mgl_status mgl_weights_pack(const mgl_program *program, const mgl_graph *graph, mgl_weights **out,
                            mgl_error *err);
void mgl_weights_close(mgl_weights *weights); /* NULL is fine */

/* Appends a piece, the next of its part or the first of a later one: for those who make weights.
 * False when memory ran out. */
bool mgl_weights_add(mgl_weights *weights, int part, size_t offset, size_t bytes);

/* Writes all bytes of a part, with several threads. */
mgl_status mgl_weights_write(const mgl_weights *weights, int part, void *to, mgl_error *err);

#endif
