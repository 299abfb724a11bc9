/*
 * Memory that is given back all at once, with a bound: what a template makes lives as long as its
 * rendering. A hostile template meets the bound before it meets the machine's.
 */
#ifndef MGL_IMPORTER_CHAT_ARENA_H
#define MGL_IMPORTER_CHAT_ARENA_H

#include <stdbool.h>
#include <stddef.h>

typedef struct mgl_arena_chunk mgl_arena_chunk;

/* Zero-initialise but for the limit; release with mgl_arena_clear. */
typedef struct mgl_arena {
    mgl_arena_chunk *chunk; /* the newest; NULL: none yet */
    size_t used;            /* bytes of it */
    size_t bytes;           /* of all chunks */
    size_t limit;           /* of these */
    bool full;              /* the last that was refused would have gone over the limit */
} mgl_arena;

/* Uninitialised bytes, aligned for anything; NULL: over the limit, or memory ran out. */
void *mgl_arena_take(mgl_arena *arena, size_t bytes);

/* More room for what mgl_arena_take gave last, in place; false: something was taken since, or the
 * chunk has no room. */
bool mgl_arena_extend(mgl_arena *arena, const void *taken, size_t bytes, size_t wanted);

void mgl_arena_clear(mgl_arena *arena);

#endif
