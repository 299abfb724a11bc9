/* Implements launches, the scheduler of fibers, and waiting. See engine.h. */
#include "engine.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/dtype.h"
#include "state.h"

enum {
    STEP_NS = 10,
    TURNS = 64,             /* maximum consecutive collective operations of a warp in one turn */
    PAUSE_CHANCE = 8,       /* preemption: one in this many accesses; every access of a slow warp */
    COPY_CHANCE = 16,       /* one in this many steps lands a copy */
    LOOK_CHANCE = 32,       /* one in this many steps wakes a warp spuriously */
    SLOW_CHANCE = 256,      /* one in this many picks of a slow warp runs it before faster warps */
    SHORTEST_STRETCH = 8,   /* log2 of the minimum steps for which the same warps of a block are
                               slow */
    STRETCHES = 8,          /* octaves of that: up to 2^16 steps */
    QUIET_ROUNDS = 60,      /* rounds of polls by all threads without change: a deadlock */
    QUIET_STEPS = 400000,   /* the same, for threads that never sleep */
    LEAP_NS = 10 * 1000000, /* clock advance per round of polls in a deadlock */
    MOST_LEAPS = 20000,     /* rounds after which the kernel's watchdog has failed */
    PAGE = 4096
};

emu_engine emu = {.random = 1};
emu_thread *emu_self;

static struct {
    char **at; /* stacks, kept for the next launch */
    size_t count, used;
} stacks;
static bool deadlock_expected, uneven;
static uint64_t seed_at_hand; /* seed set by emu_seed */

/* xorshift64* (Vigna 2016) */
uint32_t emu_random(void)
{
    emu.random ^= emu.random >> 12;
    emu.random ^= emu.random << 25;
    emu.random ^= emu.random >> 27;
    return (uint32_t)(emu.random * 0x2545F4914F6CDD1Du >> 32);
}

void emu_seed(uint64_t seed)
{
    seed_at_hand = seed;
    emu.random = (seed + 1) * 0x9E3779B97F4A7C15u;
}

uint64_t emu_steps(void)
{
    return *(volatile uint64_t *)&emu.steps;
}

void emu_uneven(bool wanted)
{
    uneven = wanted;
}

void emu_expect_deadlock(bool expected)
{
    deadlock_expected = expected;
}

/* ---- failures -------------------------------------------------------------------------------- */

static void say(const char *format, va_list values)
{
    fprintf(stderr, "emulator: ");
    vfprintf(stderr, format, values);
    fprintf(stderr, " (seed %llu, progress %s)\n", (unsigned long long)seed_at_hand,
            uneven ? "uneven" : "even");
    if (emu.current)
        emu_report_lane(stderr, emu.current);
    emu_report(stderr);
}

void emu_problem(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    if (!emu.failed)
        say(format, values);
    va_end(values);
    emu.failed = true;
}

void emu_fail(const char *format, ...)
{
    va_list values;
    emu.current->frame = __builtin_frame_address(0);
    va_start(values, format);
    if (!emu.failed)
        say(format, values);
    va_end(values);
    emu.failed = true;
    emu_leave();
    abort(); /* the scheduler does not switch back to it */
}

static bool expects_resets;

void emu_expect_resets(void)
{
    expects_resets = true;
}

void emu_check_reset(const volatile void *at, unsigned before, unsigned value)
{
    if (expects_resets && before != UINT32_MAX && value != UINT32_MAX)
        emu_fail("the flagged word at %p has %08x, and was not reset, when %08x is stored",
                 (const void *)(uintptr_t)at, before, value);
}

void emu_give_up(const char *why)
{
    emu_give_up_at(why, NULL, __builtin_frame_address(0));
}

void emu_give_up_at(const char *why, const void *pc, const void *frame)
{
    if (emu.current) {
        emu.current->pc = pc;
        emu.current->frame = frame;
    }
    emu_problem("%s", why);
    _exit(1);
}

/* ---- threads --------------------------------------------------------------------------------- */

static void enqueue(emu_warp *warp)
{
    if (!warp->queued)
        emu.queue[emu.queued++] = warp;
    warp->queued = true;
}

void emu_make_ready(emu_lane *lane)
{
    lane->warp->asleep -= lane->state == EMU_ASLEEP;
    lane->state = EMU_READY;
    lane->warp->ready |= 1u << lane->number;
    enqueue(lane->warp);
}

void emu_leave(void)
{
    emu_lane *lane = emu.current;
    lane->frame = __builtin_frame_address(0);
    emu_fiber_switch(&lane->fiber, &emu.scheduler);
}

/* The main function of a lane's fiber. */
static void live(void)
{
    emu.kernel->run(emu.launch);
    emu_lane *lane = emu.current;
    lane->state = EMU_GONE;
    lane->warp->block->live--;
    emu.events++;
    if (--lane->warp->live > 0 && lane->warp->meeting == lane->warp->live)
        emu_conclude(lane->warp);
    emu_leave();
    abort();
}

static void resume(emu_lane *lane)
{
    emu.current = lane;
    emu_self = &lane->self;
    emu_fiber_switch(&emu.scheduler, &lane->fiber);
    emu.current = NULL;
    if (lane->state != EMU_READY)
        lane->warp->ready &= ~(1u << lane->number);
}

/* Runs each runnable lane of a warp once, from a random one on. */
static void run_lanes(emu_warp *warp)
{
    uint32_t first = emu_random() % EMU_LANES, parts[2];
    parts[0] = warp->ready >> first << first;
    parts[1] = warp->ready ^ parts[0];
    for (int part = 0; part < 2; part++)
        for (; parts[part] && !emu.failed; parts[part] &= parts[part] - 1) {
            emu_lane *lane = &warp->lanes[__builtin_ctz(parts[part])];
            if (lane->state == EMU_READY)
                resume(lane);
        }
}

/* Runs a warp until all its lanes wait or other warps get a turn. */
static void run_warp(emu_warp *warp)
{
    warp->turns = warp->slow ? 1 : 1 + (int)(emu_random() % TURNS);
    while (warp->ready && warp->turns > 0 && !emu.failed)
        run_lanes(warp);
    if (warp->ready)
        enqueue(warp);
}

/* ---- waiting --------------------------------------------------------------------------------- */

void emu_pause(void)
{
    if (!emu.current->warp->slow && emu_random() % PAUSE_CHANCE != 0)
        return;
    emu.current->warp->turns = 0;
    emu_leave();
}

void emu_sleep(unsigned ns)
{
    for (uint64_t end = emu.clock_ns + ns; emu.clock_ns < end;) {
        emu.current->warp->turns = 0;
        emu_leave();
    }
}

static bool is_shared(const emu_block *block, const volatile void *at)
{
    uintptr_t offset = (uintptr_t)at - (uintptr_t)block->shared;
    return offset < emu.shared_bytes;
}

/* Wakes the lanes that poll the changed memory: for shared memory any lane of the block that polls,
 * for device memory those that poll the same 16 bytes. */
static void wake(emu_block *block, const volatile void *at, bool shared)
{
    for (int w = 0; w < emu.warps_of_block; w++) {
        emu_warp *warp = &block->warps[w];
        for (int i = 0; i < EMU_LANES && warp->asleep > 0; i++) {
            emu_lane *lane = &warp->lanes[i];
            if (lane->state == EMU_ASLEEP &&
                (shared ? is_shared(block, lane->asleep_at)
                        : (uintptr_t)lane->asleep_at / 16 == (uintptr_t)at / 16))
                emu_make_ready(lane);
        }
    }
}

void emu_changed(emu_block *block, const volatile void *at)
{
    emu.events++;
    for (int b = 0; b < emu.block_count; b++)
        if (!block || block == &emu.blocks[b])
            wake(&emu.blocks[b], at, block != NULL);
}

void emu_wrote(const volatile void *at)
{
    emu_block *block = emu.current->warp->block;
    emu.current->look_count = 0;
    emu_changed(is_shared(block, at) ? block : NULL, at);
    emu_pause();
}

static void sleep_at(emu_lane *lane, const volatile void *at, uint64_t seen)
{
    lane->state = EMU_ASLEEP;
    lane->asleep_at = at;
    lane->asleep_seen = seen;
    lane->look_count = 0;
    lane->warp->asleep++;
    emu_leave();
}

void emu_look(const volatile void *at, uint64_t seen)
{
    emu_lane *lane = emu.current;
    for (int i = 0; i < lane->look_count; i++) {
        if (lane->looks[i].at != at)
            continue;
        if (lane->looks[i].seen == seen) {
            sleep_at(lane, at, seen);
            return;
        }
        lane->look_count = 0; /* the value has changed */
    }
    lane->look_count %= EMU_MOST_LOOKS;
    lane->looks[lane->look_count].at = at;
    lane->looks[lane->look_count++].seen = seen;
    emu_pause();
}

void emu_bar_sync(int barrier, int threads)
{
    emu_lane *lane = emu.current;
    emu_block *block = lane->warp->block;
    if (barrier < 0 || barrier >= EMU_BARRIERS)
        emu_fail("there is no barrier %d of a block", barrier);
    lane->barrier = barrier;
    lane->look_count = 0;
    lane->state = EMU_AT_BARRIER;
    if (++block->arrived[barrier] == threads) {
        block->arrived[barrier] = 0;
        emu.events++;
        for (int i = 0; i < emu.warps_of_block * EMU_LANES; i++)
            if (block->warps[0].lanes[i].state == EMU_AT_BARRIER &&
                block->warps[0].lanes[i].barrier == barrier)
                emu_make_ready(&block->warps[0].lanes[i]);
    }
    emu_leave();
}

uint64_t emu_clock_ns(void)
{
    return 1000 + emu.clock_ns;
}

float emu_f16_to_f32(uint16_t half)
{
    return mgl_f16_to_f32(half);
}

uint16_t emu_f32_to_f16(float value)
{
    return value != value ? 0x7FFF : mgl_f32_to_f16(value); /* the NaN that cvt makes */
}

/* ---- the scheduler --------------------------------------------------------------------------- */

static void wake_warp(emu_warp *warp)
{
    for (int i = 0; i < EMU_LANES && warp->asleep > 0; i++)
        if (warp->lanes[i].state == EMU_ASLEEP)
            emu_make_ready(&warp->lanes[i]);
}

/* All lanes poll again; in a deadlock, after the clock has advanced. */
static void look_again(void)
{
    for (int w = 0; w < emu.warp_count; w++)
        wake_warp(&emu.warps[w]);
    if (emu.deadlock)
        emu.clock_ns += LEAP_NS;
}

/* Steps since the last event that a thread may wait for. */
struct quiet {
    uint64_t events, step; /* step of the last event */
    int rounds, leaps;
};

/* Handles the case that no lane can run, or all running lanes poll. */
static void be_quiet(struct quiet *q)
{
    q->step = emu.steps;
    if (!emu.deadlock && ++q->rounds >= QUIET_ROUNDS) {
        emu.deadlock = true;
        if (!deadlock_expected) {
            fprintf(stderr, "emulator: nothing moves any more\n");
            emu_report(stderr);
        }
    }
    if (emu.deadlock && ++q->leaps > MOST_LEAPS)
        emu_problem("nothing moves any more, and the kernel's watchdog does not end it");
    look_again();
    if (emu.queued == 0)
        emu_problem("threads wait for something that never comes, without looking");
}

static void note_events(struct quiet *q)
{
    if (emu.events == q->events)
        return;
    q->events = emu.events;
    q->step = emu.steps;
    q->rounds = 0;
}

/* Draws the slow warps of a block, each with probability 1/8 to 7/8, and the duration. */
static void begin_stretch(emu_block *block)
{
    const uint64_t octave = UINT64_C(1) << (SHORTEST_STRETCH + emu_random() % STRETCHES);
    const uint32_t slow = 1 + emu_random() % 7;
    for (int w = 0; w < emu.warps_of_block; w++)
        block->warps[w].slow = emu_random() % 8 < slow;
    block->stretch_end = emu.steps + octave + emu_random() % octave;
}

/* Whether a fast warp of the block can run. */
static bool has_faster(const emu_block *block)
{
    for (int w = 0; w < emu.warps_of_block; w++)
        if (block->warps[w].queued && !block->warps[w].slow)
            return true;
    return false;
}

/* Whether other warps run before this one. With uneven progress, a slow warp waits while a faster
 * warp of its block can run, but not forever, because the faster warps may spin on a result of the
 * slow one. */
static bool lets_others_run(const emu_warp *warp)
{
    if (uneven && emu.steps >= warp->block->stretch_end)
        begin_stretch(warp->block);
    return warp->slow && has_faster(warp->block) && emu_random() % SLOW_CHANCE != 0;
}

static void run_any_warp(void)
{
    uint32_t i;
    do
        i = emu_random() % (uint32_t)emu.queued;
    while (lets_others_run(emu.queue[i]));
    emu_warp *warp = emu.queue[i];
    emu.queue[i] = emu.queue[--emu.queued];
    warp->queued = false;
    run_warp(warp);
}

static bool is_over(void)
{
    for (int b = 0; b < emu.block_count; b++)
        if (emu.blocks[b].live > 0)
            return false;
    return true;
}

static void schedule(void)
{
    struct quiet quiet = {0};
    for (; !emu.failed; emu.steps++, emu.clock_ns += STEP_NS) {
        note_events(&quiet);
        if (emu_random() % LOOK_CHANCE == 0)
            wake_warp(&emu.warps[emu_random() % (uint32_t)emu.warp_count]);
        if (emu_copies() > 0 && (emu.queued == 0 || emu_random() % COPY_CHANCE == 0))
            emu_copies_land();
        else if (emu.queued == 0 && is_over())
            return;
        else if (emu.queued == 0 || (emu.steps - quiet.step > QUIET_STEPS && emu_copies() == 0))
            be_quiet(&quiet);
        else
            run_any_warp();
    }
}

/* ---- launches -------------------------------------------------------------------------------- */

static void *map(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        emu_give_up("there is not enough memory for the emulator");
    return at;
}

static void *reserve(size_t count, size_t size)
{
    void *at = calloc(count, size);
    if (!at)
        emu_give_up("there is not enough memory for the emulator");
    return at;
}

/* Allocates a stack, which ends at an inaccessible page. */
static char *take_stack(void)
{
    if (stacks.used == stacks.count) {
        stacks.at = realloc(stacks.at, (stacks.count + 1) * sizeof *stacks.at);
        char *stack = map(EMU_STACK_BYTES);
        mprotect(stack, PAGE, PROT_NONE);
        stacks.at[stacks.count++] = stack;
    }
    return stacks.at[stacks.used++];
}

/* Shared memory ends, except for alignment, at an inaccessible page. */
static void start_block(emu_block *block, int number)
{
    size_t rounded = (emu.shared_bytes + PAGE - 1) / PAGE * PAGE;
    *block = (emu_block){.number = number, .live = emu.warps_of_block * EMU_LANES};
    block->warps = emu.warps + number * emu.warps_of_block;
    block->memory_bytes = rounded + 2 * PAGE;
    block->memory = map(block->memory_bytes);
    memset(block->memory, 0xFF, block->memory_bytes);
    mprotect(block->memory, PAGE, PROT_NONE);
    mprotect(block->memory + PAGE + rounded, PAGE, PROT_NONE);
    block->shared = block->memory + PAGE + (rounded - emu.shared_bytes) / 128 * 128;
}

static void start_lane(emu_lane *lane, emu_warp *warp, int number)
{
    lane->self = (emu_thread){.thread = (unsigned)(warp->number * EMU_LANES + number),
                              .block = (unsigned)warp->block->number,
                              .shared = warp->block->shared,
                              .shared_bytes = emu.shared_bytes};
    lane->warp = warp;
    lane->number = number;
    lane->stack = take_stack();
    /* at different offsets within a page, because a cache has few lines for each offset */
    size_t bytes = EMU_STACK_BYTES - (stacks.used % 128) * 128;
    emu_fiber_init(&lane->fiber, lane->stack, bytes, live);
}

static void start_warp(emu_warp *warp, int index)
{
    warp->number = index % emu.warps_of_block;
    warp->block = &emu.blocks[index / emu.warps_of_block];
    warp->lanes = emu.lanes + index * EMU_LANES;
    warp->live = EMU_LANES;
    warp->ready = UINT32_MAX;
    for (int i = 0; i < EMU_LANES; i++)
        start_lane(&warp->lanes[i], warp, i);
    enqueue(warp);
}

static void start(const emu_kernel *kernel, const void *launch, int blocks, int threads,
                  size_t shared_bytes)
{
    emu = (emu_engine){.kernel = kernel, .launch = launch, .random = emu.random};
    emu.block_count = blocks;
    emu.warps_of_block = threads / EMU_LANES;
    emu.warp_count = blocks * emu.warps_of_block;
    emu.shared_bytes = shared_bytes;
    emu.blocks = reserve((size_t)blocks, sizeof *emu.blocks);
    emu.warps = reserve((size_t)emu.warp_count, sizeof *emu.warps);
    emu.queue = reserve((size_t)emu.warp_count, sizeof(emu_warp *));
    emu.lanes = reserve((size_t)emu.warp_count * EMU_LANES, sizeof *emu.lanes);
    stacks.used = 0;
    for (int b = 0; b < blocks; b++)
        start_block(&emu.blocks[b], b);
    for (int w = 0; w < emu.warp_count; w++)
        start_warp(&emu.warps[w], w);
}

/* Checks that the kernel left no pending copies or products. */
static void check_end(void)
{
    if (emu_copies() + emu_pieces() > 0)
        emu_problem("%d copies are on their way when the kernel has ended",
                    emu_copies() + emu_pieces());
    for (int b = 0; b < emu.block_count; b++)
        for (size_t i = emu.kernel->own_bytes; i < emu.kernel->own_limit; i++)
            if (emu.blocks[b].shared[i] != 0xFF)
                emu_problem("block %d wrote behind struct shared, at %zu", b, i);
}

static void end(void)
{
    emu_copies_clear();
    for (int b = 0; b < emu.block_count; b++)
        munmap(emu.blocks[b].memory, emu.blocks[b].memory_bytes);
    free(emu.blocks);
    free(emu.warps);
    free(emu.queue);
    free(emu.lanes);
    emu.block_count = emu.warp_count = 0;
}

bool emu_launch(const emu_kernel *kernel, const void *launch, unsigned blocks, unsigned threads,
                size_t shared_bytes)
{
    start(kernel, launch, (int)blocks, (int)threads, shared_bytes);
    if (kernel->copies)
        emu_views_begin();
    if (threads != kernel->threads)
        emu_problem("a block has %u threads, not %u", kernel->threads, threads);
    schedule();
    if (!emu.failed)
        check_end();
    emu_views_end();
    end();
    return !emu.failed;
}
