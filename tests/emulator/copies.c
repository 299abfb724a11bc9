/*
 * Emulates bulk copies to shared memory, and the mbarriers that signal their completion. A copy
 * completes as a whole, at a random step and in any order. Its destination holds NaNs from the
 * request until then.
 *
 * A barrier is one word: phase (1 bit), arrivals of a phase (20), pending arrivals (20), and
 * pending bytes (23, biased, because bytes may arrive before they are expected).
 */
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "state.h"

enum { COUNT_BITS = 20, BYTE_BITS = 23, BYTE_BIAS = 1 << (BYTE_BITS - 1) };

struct word {
    unsigned phase, arrivals, missing;
    int bytes; /* missing */
};

struct copy {
    unsigned char *to;
    const unsigned char *from; /* NULL: an arrival after the lane's copies */
    size_t bytes;
    uint64_t *barrier; /* NULL: no barrier is signaled */
    emu_block *block;
    emu_lane *lane; /* lane of an arrival */
};

static struct {
    struct copy *at;
    int count, room;
} copies;
static int forgotten; /* arrival, of emu_forget_arrival */

/* ---- barriers -------------------------------------------------------------------------------- */

static struct word unpack(uint64_t bits)
{
    const uint64_t counts = (1u << COUNT_BITS) - 1;
    return (struct word){.phase = (unsigned)(bits >> 63),
                         .arrivals = (unsigned)(bits >> (BYTE_BITS + COUNT_BITS) & counts),
                         .missing = (unsigned)(bits >> BYTE_BITS & counts),
                         .bytes = (int)(bits & ((1u << BYTE_BITS) - 1)) - BYTE_BIAS};
}

static uint64_t pack(struct word w)
{
    return (uint64_t)w.phase << 63 | (uint64_t)w.arrivals << (BYTE_BITS + COUNT_BITS) |
           (uint64_t)w.missing << BYTE_BITS | (uint64_t)(w.bytes + BYTE_BIAS);
}

void emu_barrier_init(uint64_t *barrier, int arrivals)
{
    *barrier = pack((struct word){.arrivals = (unsigned)arrivals, .missing = (unsigned)arrivals});
}

/* Applies arrivals and expected bytes to a barrier; negative `bytes`: this many bytes have
 * landed. */
static void arrive(emu_block *block, uint64_t *barrier, int arrivals, int bytes)
{
    struct word w = unpack(*barrier);
    if (arrivals > (int)w.missing)
        emu_problem("an arrival at a barrier that has all of its phase, shared memory at %td",
                    (unsigned char *)barrier - block->shared);
    w.missing -= (unsigned)arrivals;
    w.bytes += bytes;
    bool complete = w.missing == 0 && w.bytes == 0;
    if (complete) {
        w.phase ^= 1;
        w.missing = w.arrivals;
    }
    *barrier = pack(w);
    emu.events++;
    if (complete)
        emu_changed(block, barrier);
}

void emu_forget_arrival(int number)
{
    forgotten = number;
}

/* Whether this arrival must be dropped (emu_forget_arrival). */
static bool forgets(const emu_block *block, const uint64_t *barrier)
{
    size_t at = (size_t)((const unsigned char *)barrier - block->shared);
    return block->number == 0 && at >= emu.kernel->ring_at && at < emu.kernel->ring_end &&
           ++emu.freed == forgotten;
}

void emu_barrier_arrive(uint64_t *barrier, int arrivals, int bytes)
{
    emu_block *block = emu.current->warp->block;
    if (!forgets(block, barrier))
        arrive(block, barrier, arrivals, bytes);
    emu.current->look_count = 0;
    emu_pause();
}

static bool passed(const volatile uint64_t *barrier, unsigned parity)
{
    return *barrier >> 63 != (parity & 1);
}

bool emu_barrier_passed(uint64_t *barrier, unsigned parity)
{
    if (!passed(barrier, parity))
        emu_look(barrier, *barrier >> 63);
    return passed(barrier, parity);
}

void emu_barrier_describe(const volatile void *barrier, char *to, size_t length)
{
    struct word w = unpack(*(const volatile uint64_t *)barrier);
    snprintf(to, length, "phase %u, of %u arrivals %u missing, %d bytes missing", w.phase,
             w.arrivals, w.missing, w.bytes);
}

/* ---- copies ---------------------------------------------------------------------------------- */

static void start(struct copy copy)
{
    if (((uintptr_t)copy.to | (uintptr_t)copy.from | copy.bytes) % 16 != 0)
        emu_fail("a copy of %zu bytes that is not aligned", copy.bytes);
    if (copies.count == copies.room) {
        copies.room = copies.room * 2 + 256;
        copies.at = realloc(copies.at, (size_t)copies.room * sizeof *copies.at);
        if (!copies.at)
            emu_give_up("there is not enough memory for the emulator");
    }
    if (copy.bytes > 0)
        memset(copy.to, 0xFF, copy.bytes);
    copies.at[copies.count++] = copy;
}

void emu_copy_bulk(void *to, const void *from, int bytes, uint64_t *barrier)
{
    start((struct copy){.to = to,
                        .from = emu_view(from),
                        .bytes = (size_t)bytes,
                        .barrier = barrier,
                        .block = emu.current->warp->block});
    emu.current->look_count = 0;
    emu_pause();
}

/* A copy of 16 bytes lands at a random time, at the latest when it is waited for. */
void emu_copy_16(void *to, const void *from)
{
    emu_lane *lane = emu.current;
    if (((uintptr_t)to | (uintptr_t)from) % 16 != 0)
        emu_fail("a copy of 16 bytes that is not aligned");
    if (emu_random() & 1) {
        memcpy(to, from, 16);
        return;
    }
    if (lane->piece_count == lane->piece_room) {
        lane->piece_room = lane->piece_room * 2 + 16;
        lane->pieces = realloc(lane->pieces, (size_t)lane->piece_room * sizeof *lane->pieces);
        if (!lane->pieces)
            emu_give_up("there is not enough memory for the emulator");
    }
    memset(to, 0xFF, 16);
    lane->pieces[lane->piece_count++] = (emu_piece){to, from, lane->group};
}

void emu_copy_group(void)
{
    emu.current->group++;
}

void emu_copy_arrive(uint64_t *barrier)
{
    start(
        (struct copy){.barrier = barrier, .block = emu.current->warp->block, .lane = emu.current});
    emu.current->look_count = 0;
    emu_pause();
}

static struct copy take(int i)
{
    struct copy copy = copies.at[i];
    copies.at[i] = copies.at[--copies.count];
    return copy;
}

/* Lands the lane's 16-byte copies of groups before number `group`. */
static void land_pieces(emu_lane *lane, unsigned group)
{
    int landed = 0;
    while (landed < lane->piece_count && (int)(lane->pieces[landed].group - group) < 0) {
        memcpy(lane->pieces[landed].to, lane->pieces[landed].from, 16);
        landed++;
    }
    lane->piece_count -= landed;
    if (landed > 0)
        memmove(lane->pieces, lane->pieces + landed,
                (size_t)lane->piece_count * sizeof *lane->pieces);
}

void emu_copy_wait(void)
{
    land_pieces(emu.current, emu.current->group + 1);
}

void emu_copy_wait_groups(int count)
{
    land_pieces(emu.current, emu.current->group - (unsigned)count);
}

void emu_copies_land(void)
{
    struct copy copy = take((int)(emu_random() % (uint32_t)copies.count));
    emu.events++;
    if (copy.from)
        memcpy(copy.to, copy.from, copy.bytes);
    else
        land_pieces(copy.lane, copy.lane->group + 1);
    if (copy.barrier)
        arrive(copy.block, copy.barrier, copy.from ? 0 : 1, -(int)copy.bytes);
}

int emu_copies(void)
{
    return copies.count;
}

int emu_pieces(void)
{
    int count = 0;
    for (int i = 0; i < emu.warp_count * EMU_LANES; i++)
        count += emu.lanes[i].piece_count;
    return count;
}

void emu_copies_clear(void)
{
    for (int i = 0; i < emu.warp_count * EMU_LANES; i++)
        free(emu.lanes[i].pieces);
    copies.count = 0;
}
