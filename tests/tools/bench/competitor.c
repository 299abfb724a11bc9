/*
 * Implements the competing process. The process and its owner share a page with the command and a
 * count of repetitions. The linker replaces the runner's launch function by
 * __wrap_mgl_runner_launch (--wrap), so that the competitor runs while one side of a pair is timed
 * and stops for the other.
 */
#include "tests/tools/bench/competitor.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "autotune/runner/runner_state.h"
#include "base/clock.h"
#include "base/draw.h"
#include "base/memory.h"

enum { SLEEPING, OPENING, ARMED, READING, ENDING };
enum { READ_BYTES = 1 << 30, CPU_BYTES = 1 << 26 };
static const double longest_open_s = 30, longest_read_s = 1;

typedef struct page {
    atomic_int wanted, is; /* states */
    atomic_long reads;
    pid_t owner;
    char device[32];
    mgl_config config;
    mgl_error err; /* why it could not open the device */
} page;

static page *shared;
static int followed = COMPETITOR_RESTS;

static void rest(void)
{
    const struct timespec step = {.tv_nsec = 100 * 1000};
    nanosleep(&step, NULL);
}

/* ---- the other process ----------------------------------------------------------------------- */

/* Reads the device's memory once; the host's memory, if the device is the CPU. */
static mgl_status read_once(mgl_paired_bench *paired_bench, const unsigned char *bytes,
                            mgl_error *err)
{
    static volatile unsigned char sum;
    double seconds;
    if (!bytes)
        return mgl_paired_bench_stream(paired_bench, READ_BYTES, 1, &seconds, err);
    for (size_t i = 0; i < CPU_BYTES; i += 64)
        sum = (unsigned char)(sum + bytes[i]);
    return MGL_OK;
}

static mgl_status compete(mgl_error *err)
{
    mgl_paired_bench *paired_bench = NULL;
    unsigned char *bytes = NULL;
    bool cpu = !strcmp(shared->device, "cpu");
    mgl_status status = MGL_OK;
    if (cpu && !(bytes = mgl_alloc_zero(1, CPU_BYTES)))
        return mgl_fail_memory(err, CPU_BYTES);
    const mgl_paired_bench_options options = {.config = shared->config, .device = shared->device};
    if (!cpu)
        status = mgl_paired_bench_open(&options, &paired_bench, err);
    if (!status)
        status = read_once(paired_bench, bytes, err);
    if (!status)
        atomic_store(&shared->is, ARMED);
    while (!status && atomic_load(&shared->wanted) != ENDING && !kill(shared->owner, 0)) {
        if (atomic_load(&shared->wanted) != READING) {
            rest();
            continue;
        }
        status = read_once(paired_bench, bytes, err);
        atomic_fetch_add(&shared->reads, 1);
    }
    mgl_paired_bench_close(paired_bench);
    mgl_free(bytes);
    return status;
}

static _Noreturn void serve(void)
{
    while (atomic_load(&shared->wanted) == SLEEPING && !kill(shared->owner, 0))
        rest();
    if (atomic_load(&shared->wanted) == OPENING && compete(&shared->err))
        atomic_store(&shared->is, ENDING);
    _exit(0);
}

/* ---- the owner's side ------------------------------------------------------------------------ */

mgl_status competitor_start(mgl_error *err)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return mgl_fail_errno(err, "competitor", "there is no page to share");
    shared->owner = getpid();
    pid_t child = fork();
    if (child < 0)
        return mgl_fail_errno(err, "competitor", "no process can be started");
    if (child > 0)
        return waitpid(child, NULL, 0) == child
                   ? MGL_OK
                   : mgl_fail_errno(err, "competitor", "its starter is lost");
    if (fork() == 0) /* an orphan, because its parent ends at once */
        serve();
    _exit(0);
}

mgl_status competitor_arm(const mgl_config *config, const char *device, mgl_error *err)
{
    double end = mgl_clock_s() + longest_open_s;
    if (strlen(device) >= sizeof shared->device)
        return mgl_fail(err, MGL_USAGE, device, "is no device");
    memcpy(shared->device, device, strlen(device) + 1);
    shared->config = *config;
    atomic_store(&shared->wanted, OPENING);
    while (atomic_load(&shared->is) == SLEEPING && mgl_clock_s() < end)
        rest();
    if (atomic_load(&shared->is) == ARMED)
        return MGL_OK;
    if (atomic_load(&shared->is) == SLEEPING)
        return mgl_fail(err, MGL_DEVICE, "competitor", "it did not open the device in %g s",
                        longest_open_s);
    *err = shared->err;
    return err->code;
}

void competitor_follow(int whom)
{
    followed = whom;
}

long competitor_reads(void)
{
    return shared ? atomic_load(&shared->reads) : 0;
}

void competitor_end(void)
{
    if (shared)
        atomic_store(&shared->wanted, ENDING);
}

/* ---- launches of the runner ------------------------------------------------------------------ */

mgl_status __real_mgl_runner_launch(mgl_runner_state *runner, const mgl_wire_load *load,
                                    int32_t *tokens, double *seconds, mgl_trial_verdict *verdict,
                                    mgl_error *err);
mgl_status __wrap_mgl_runner_launch(mgl_runner_state *runner, const mgl_wire_load *load,
                                    int32_t *tokens, double *seconds, mgl_trial_verdict *verdict,
                                    mgl_error *err);

static bool meets_launch(int side)
{
    static uint64_t coin = 1;
    return followed == COMPETITOR_BY_COIN ? mgl_draw(&coin) >> 63 : followed == side;
}

/* The competitor is already reading when the launch begins. */
mgl_status __wrap_mgl_runner_launch(mgl_runner_state *runner, const mgl_wire_load *load,
                                    int32_t *tokens, double *seconds, mgl_trial_verdict *verdict,
                                    mgl_error *err)
{
    bool meets = meets_launch(load->side);
    long before = competitor_reads();
    double end = mgl_clock_s() + longest_read_s;
    if (meets)
        atomic_store(&shared->wanted, READING);
    while (meets && competitor_reads() == before && mgl_clock_s() < end)
        rest();
    mgl_status status = __real_mgl_runner_launch(runner, load, tokens, seconds, verdict, err);
    if (meets)
        atomic_store(&shared->wanted, ARMED);
    return status;
}
