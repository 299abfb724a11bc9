/*
 * Prints the position of every role of every block after a failure. addr2line maps positions to
 * source lines through the kernel's debug lines. It is installed with every C++ compiler.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "state.h"

enum { MOST_PLACES = 2, MOST_TEXT = 1024, MOST_LINE = 400 };

/* The return addresses in the kernel's code, innermost first. */
struct trail {
    const void *at[MOST_PLACES];
    int count;
};

static bool is_code(const void *at, Dl_info *info)
{
    Dl_info kernel;
    void *run;
    memcpy(&run, &emu.kernel->run, sizeof run);
    return dladdr(run, &kernel) && dladdr(at, info) && info->dli_fbase == kernel.dli_fbase;
}

/* Frame layout with -fno-omit-frame-pointer: the caller's frame pointer, then the return
 * address. */
static struct trail trail_of(const emu_lane *lane)
{
    struct trail trail = {.count = 0};
    if (lane->pc)
        trail.at[trail.count++] = (const char *)lane->pc + 1;
    uintptr_t low = (uintptr_t)lane->stack, frame = (uintptr_t)lane->frame;
    Dl_info info;
    while (trail.count < MOST_PLACES && frame >= low && frame < low + EMU_STACK_BYTES - 16) {
        const void *const *words = (const void *const *)frame;
        if (is_code(words[1], &info))
            trail.at[trail.count++] = words[1];
        if ((uintptr_t)words[0] <= frame)
            break;
        frame = (uintptr_t)words[0];
    }
    return trail;
}

/* One line of addr2line, without the emulator's own functions. */
static size_t add_place(char *line, bool first, char *to, size_t length)
{
    const char *const own[] = {"ptx.h:", "cuda.h:", "entry.h:"};
    const char *name = strncmp(line, " (inlined by) ", 14) ? line : line + 14;
    line[strcspn(line, "\n")] = 0;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strstr(line, own[i]))
            return 0;
    int n = snprintf(to, length, "%s%s", first ? "" : " < ", name);
    return n < (int)length ? (size_t)n : length;
}

/* Prints "function at file:line < its caller, if inlined, ...". */
static void name_place(const void *at, char *to, size_t length)
{
    char command[MOST_TEXT], line[MOST_TEXT];
    Dl_info info;
    size_t n = 0;
    to[0] = 0;
    if (!is_code(at, &info))
        return;
    snprintf(command, sizeof command, "addr2line -ifpsC -e '%s' 0x%tx 2>&1", info.dli_fname,
             (const char *)at - (const char *)info.dli_fbase - 1);
    FILE *lines = popen(command, "r");
    while (lines && fgets(line, sizeof line, lines))
        n += add_place(line, n == 0, to + n, length - n);
    if (lines)
        pclose(lines);
}

/* Prints what a sleeping lane polls. */
static void describe_look(const emu_lane *lane, char *to, size_t length)
{
    char barrier[MOST_LINE / 2];
    uintptr_t offset = (uintptr_t)lane->asleep_at - (uintptr_t)lane->self.shared;
    if (offset >= emu.shared_bytes) {
        snprintf(to, length, "looks at device memory %p, sees 0x%llx",
                 (const void *)(uintptr_t)lane->asleep_at, (unsigned long long)lane->asleep_seen);
        return;
    }
    emu_barrier_describe(lane->asleep_at, barrier, sizeof barrier);
    snprintf(to, length, "looks at shared memory %zu, sees 0x%llx (of a barrier: %s)",
             (size_t)offset, (unsigned long long)lane->asleep_seen, barrier);
}

static void describe_lane(const emu_lane *lane, char *to, size_t length)
{
    static const char *const meetings[] = {
        [EMU_SYNC] = "__syncwarp",       [EMU_SHUFFLE] = "a shuffle",
        [EMU_BALLOT] = "__ballot_sync",  [EMU_ALL] = "__all_sync",
        [EMU_ANY] = "__any_sync",        [EMU_MAX] = "__reduce_max_sync",
        [EMU_MIN] = "__reduce_min_sync", [EMU_MIN_SIGNED] = "__reduce_min_sync",
        [EMU_ADD] = "__reduce_add_sync", [EMU_MMA_BF16] = "mma",
        [EMU_MMA_F16] = "mma",           [EMU_MMA_U8_S8] = "mma",
        [EMU_WARPGROUP] = "wgmma"};
    if (lane->state == EMU_MEETING)
        snprintf(to, length, "waits for other lanes in %s", meetings[lane->meeting]);
    else if (lane->state == EMU_ASLEEP)
        describe_look(lane, to, length);
    else if (lane->state == EMU_AT_BARRIER)
        snprintf(to, length, "waits at bar.sync %d", lane->barrier);
    else
        snprintf(to, length, "%s",
                 lane->state == EMU_GONE ? "is gone"
                 : lane == emu.current   ? "runs"
                                         : "can run");
}

/* Whether two lanes wait for the same thing at the same position. */
static bool are_alike(const emu_lane *a, const emu_lane *b)
{
    struct trail from = trail_of(a), to = trail_of(b);
    char left[MOST_LINE], right[MOST_LINE];
    describe_lane(a, left, sizeof left);
    describe_lane(b, right, sizeof right);
    return a->state == b->state && (a->state == EMU_GONE || !strcmp(left, right)) &&
           (a->state == EMU_GONE || (from.count > 0 && to.count > 0 && from.at[0] == to.at[0]));
}

static void print_lane(FILE *out, const emu_lane *lane)
{
    char text[MOST_TEXT];
    struct trail trail = trail_of(lane);
    describe_lane(lane, text, sizeof text);
    fprintf(out, "%s", text);
    for (int i = 0; i < trail.count && lane->state != EMU_GONE; i++) {
        name_place(trail.at[i], text, sizeof text);
        if (text[0])
            fprintf(out, "%s %s", i ? " <" : ", in", text);
    }
    fputc('\n', out);
}

static void print_warp(FILE *out, const emu_warp *warp)
{
    char role[MOST_LINE];
    emu.kernel->describe_warp(warp->number, role, sizeof role);
    for (int first = 0, last; first < EMU_LANES; first = last + 1) {
        for (last = first; last + 1 < EMU_LANES; last++)
            if (!are_alike(&warp->lanes[first], &warp->lanes[last + 1]))
                break;
        fprintf(out, "    %s, lanes %d to %d: ", role, first, last);
        print_lane(out, &warp->lanes[first]);
    }
}

static bool do_warps_stand_alike(const emu_warp *a, const emu_warp *b)
{
    for (int i = 0; i < EMU_LANES; i++)
        if (!are_alike(&a->lanes[i], &b->lanes[i]))
            return false;
    return true;
}

void emu_report_lane(FILE *out, const emu_lane *lane)
{
    char role[MOST_LINE];
    emu.kernel->describe_warp(lane->warp->number, role, sizeof role);
    fprintf(out, "  block %d, %s, lane %d: ", lane->warp->block->number, role, lane->number);
    print_lane(out, lane);
}

void emu_report(FILE *out)
{
    for (int b = 0; b < emu.block_count; b++) {
        const emu_block *block = &emu.blocks[b];
        char text[MOST_TEXT];
        emu.kernel->describe_block(block->shared, text, sizeof text);
        fprintf(out, "  block %d %s\n", b, text);
        for (int w = 0; w < emu.warps_of_block; w++)
            if (w > 0 && do_warps_stand_alike(&block->warps[w - 1], &block->warps[w]))
                fprintf(out, "    warp %d: like the one before\n", w);
            else
                print_warp(out, &block->warps[w]);
    }
    fprintf(out, "  %d copies are on their way; step %llu\n", emu_copies(),
            (unsigned long long)emu.steps);
    fflush(out);
}
