/*
 * Emulates the async proxy of bulk copies. A copy sees a store, by any thread, only after a proxy
 * fence (fence.proxy.async) of the copy's block. Each block therefore has a view of all memory as
 * of its last fence, or of the start of the launch, and copies read the view. A missing fence, or
 * one before the stores are visible, gives old bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "state.h"

enum { MOST_ALLOCATIONS = 4096, MOST_BLOCKS = 1024 };

static struct allocation {
    unsigned char *at;
    size_t bytes, offset; /* offset in a view */
} allocations[MOST_ALLOCATIONS];
static int allocation_count;

static unsigned char *first;              /* the view of the launch's start */
static unsigned char *views[MOST_BLOCKS]; /* (block) NULL: it has had no fence */
static size_t view_bytes;
static bool fences_forgotten;
static int forgetful = -1; /* block whose fences are ignored */

void emu_memory_add(void *at, size_t bytes)
{
    if (allocation_count == MOST_ALLOCATIONS)
        emu_give_up("there are too many allocations for the emulator");
    allocations[allocation_count++] = (struct allocation){at, bytes, 0};
}

void emu_memory_remove(const void *at)
{
    for (int i = 0; i < allocation_count; i++)
        if (allocations[i].at == at)
            allocations[i--] = allocations[--allocation_count];
}

void emu_forget_fences(bool forgotten)
{
    fences_forgotten = forgotten;
}

void emu_forget_fences_of(int block)
{
    forgetful = block;
}

static void take_view(unsigned char **view)
{
    if (!*view)
        *view = malloc(view_bytes + 1);
    if (!*view)
        emu_give_up("there is not enough memory for the emulator");
    for (int i = 0; i < allocation_count; i++)
        memcpy(*view + allocations[i].offset, allocations[i].at, allocations[i].bytes);
}

void emu_views_begin(void)
{
    view_bytes = 0;
    for (int i = 0; i < allocation_count; i++) {
        allocations[i].offset = view_bytes;
        view_bytes += allocations[i].bytes;
    }
    take_view(&first);
}

void emu_views_end(void)
{
    free(first);
    first = NULL;
    for (int b = 0; b < MOST_BLOCKS; b++) {
        free(views[b]);
        views[b] = NULL;
    }
}

void emu_fence_async(void)
{
    const int block = emu.current->warp->block->number;
    if (block < MOST_BLOCKS && !fences_forgotten && block != forgetful)
        take_view(&views[block]);
    emu_pause();
}

const void *emu_view(const void *from)
{
    const unsigned char *at = from;
    const int block = emu.current->warp->block->number;
    const unsigned char *view = block < MOST_BLOCKS && views[block] ? views[block] : first;
    for (int i = 0; i < allocation_count && view; i++)
        if (at >= allocations[i].at && at < allocations[i].at + allocations[i].bytes)
            return view + allocations[i].offset + (at - allocations[i].at);
    return from;
}
