/*
 * An arena (region allocator) with a limit: everything that a rendering allocates is freed at
 * once. A hostile template reaches the limit before it exhausts the machine's memory.
 */
#ifndef MGL_IMPORTER_CHAT_ARENA_H
#define MGL_IMPORTER_CHAT_ARENA_H

#include <stdbool.h>
#include <stddef.h>

typedef struct mgl_arena_chunk mgl_arena_chunk;

/* Zero-initialize all members except the limit; release with mgl_arena_clear. */
typedef struct mgl_arena {
    mgl_arena_chunk *chunk; /* the newest; NULL: none yet */
    size_t used;            /* used bytes of `chunk` */
    size_t bytes;           /* of all chunks */
    size_t limit;           /* maximum of `bytes` */
    bool full;              /* the last failed allocation would have exceeded the limit */
} mgl_arena;

/* Returns uninitialized bytes, aligned for any type; NULL: over the limit, or memory ran out. */
void *mgl_arena_take(mgl_arena *arena, size_t bytes);

/* Extends the most recent allocation in place. Returns false if something was allocated since,
 * or if the chunk has no room. */
bool mgl_arena_extend(mgl_arena *arena, const void *taken, size_t bytes, size_t wanted);

void mgl_arena_clear(mgl_arena *arena);

#endif
