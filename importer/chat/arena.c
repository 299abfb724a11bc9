/*
 * Implements the arena of arena.h. Chunk sizes double up to 1 MiB. A larger allocation gets its
 * own chunk.
 */
#include "importer/chat/arena.h"

#include "base/memory.h"

#include <stdalign.h>
#include <stdint.h>

enum { ALIGNMENT = alignof(max_align_t), FIRST = 4096, LARGEST = 1 << 20 };

struct mgl_arena_chunk {
    alignas(max_align_t) mgl_arena_chunk *older;
    size_t capacity; /* bytes after this struct */
};

static char *bytes_of(mgl_arena_chunk *chunk)
{
    return (char *)(chunk + 1);
}

static bool add_chunk(mgl_arena *arena, size_t bytes)
{
    size_t capacity = arena->chunk ? arena->chunk->capacity * 2 : FIRST;
    capacity = capacity < LARGEST ? capacity : LARGEST;
    capacity = capacity > bytes ? capacity : bytes;
    arena->full = capacity > arena->limit - arena->bytes;
    if (arena->full)
        return false;
    mgl_arena_chunk *chunk = mgl_alloc(sizeof *chunk + capacity);
    if (!chunk)
        return false;
    *chunk = (mgl_arena_chunk){.older = arena->chunk, .capacity = capacity};
    arena->chunk = chunk;
    arena->used = 0;
    arena->bytes += capacity;
    return true;
}

void *mgl_arena_take(mgl_arena *arena, size_t bytes)
{
    if (bytes > SIZE_MAX / 2) {
        arena->full = true;
        return NULL;
    }
    bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if ((!arena->chunk || bytes > arena->chunk->capacity - arena->used) && !add_chunk(arena, bytes))
        return NULL;
    void *taken = bytes_of(arena->chunk) + arena->used;
    arena->used += bytes;
    return taken;
}

bool mgl_arena_extend(mgl_arena *arena, const void *taken, size_t bytes, size_t wanted)
{
    if (!arena->chunk || wanted > SIZE_MAX / 2)
        return false;
    bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    wanted = (wanted + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    const char *end = bytes_of(arena->chunk) + arena->used;
    if ((const char *)taken + bytes != end || wanted - bytes > arena->chunk->capacity - arena->used)
        return false;
    arena->used += wanted - bytes;
    return true;
}

void mgl_arena_clear(mgl_arena *arena)
{
    while (arena->chunk) {
        mgl_arena_chunk *older = arena->chunk->older;
        mgl_free(arena->chunk);
        arena->chunk = older;
    }
    *arena = (mgl_arena){.limit = arena->limit};
}
