/* Implements clocks.h: binds NVML with dlopen and reads /proc to find related processes. Names and
 * numbers follow NVIDIA's NVML reference. */
#include "eval/clocks.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"

enum { MAX_PROCESSES = 256, STAT_BYTES = 4096 /* maximum bytes read from /proc/PID/stat */ };
enum { CLOCK_SM = 1, CLOCK_MEMORY = 2, TEMPERATURE_GPU = 0 };

/*  member, symbol, arguments; all return nvmlReturn_t */
#define NVML_FUNCTIONS(X)                                                                          \
    X(init, "nvmlInit_v2", (void))                                                                 \
    X(find, "nvmlDeviceGetHandleByPciBusId_v2", (const char *bus_id, void **device))               \
    X(clock, "nvmlDeviceGetClockInfo", (void *device, int type, unsigned *mhz))                    \
    X(temperature, "nvmlDeviceGetTemperature", (void *device, int sensor, unsigned *degrees))      \
    X(reasons, "nvmlDeviceGetCurrentClocksThrottleReasons",                                        \
      (void *device, unsigned long long *reasons))

/* nvmlProcessInfo_t of versions 2 and 3 of nvmlDeviceGetComputeRunningProcesses. */
struct process {
    unsigned pid;
    unsigned long long memory;
    unsigned gpu_instance, compute_instance;
};
typedef int list_fn(void *device, unsigned *count, struct process *processes);

static struct {
#define MGL_X(member, symbol, arguments) int(*member) arguments;
    NVML_FUNCTIONS(MGL_X)
#undef MGL_X
    list_fn *list; /* NULL: not in older drivers */
} nvml;

static bool take(void *library, const char *symbol, void *to)
{
    void *at = dlsym(library, symbol);
    if (at)
        memcpy(to, &at, sizeof at);
    return at != NULL;
}

/* Opens NVML once per process and keeps it open. */
static bool open_library(void)
{
    static bool tried, usable;
    if (tried)
        return usable;
    tried = true;
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return false;
#define MGL_X(member, symbol, arguments) &&take(library, symbol, &nvml.member)
    usable = true NVML_FUNCTIONS(MGL_X) && nvml.init() == 0;
#undef MGL_X
    if (!take(library, "nvmlDeviceGetComputeRunningProcesses_v3", &nvml.list))
        take(library, "nvmlDeviceGetComputeRunningProcesses_v2", &nvml.list);
    return usable;
}

/* Whether the parent process runs the same program. Its other children then belong to the same
 * campaign. Checked once, when the clocks are opened, because a sandboxed worker cannot check
 * later. */
static bool is_worker(void)
{
    static pid_t of, from;
    static bool same;
    char path[64];
    if (of == getpid() && from == getppid())
        return same;
    of = getpid();
    from = getppid();
    snprintf(path, sizeof path, "/proc/%ld/exe", (long)from);
    same = !mgl_file_same("/proc/self/exe", path, &same, NULL) && same;
    return same;
}

void mgl_clocks_open(const char *bus_id, mgl_clocks *out)
{
    is_worker();
    out->known = open_library() && nvml.find(bus_id, &out->device) == 0;
}

bool mgl_clocks_read(const mgl_clocks *clocks, mgl_clocks_now *out)
{
    unsigned long long reasons = 0;
    *out = (mgl_clocks_now){0};
    if (!clocks->known || nvml.clock(clocks->device, CLOCK_SM, &out->sm_mhz) ||
        nvml.clock(clocks->device, CLOCK_MEMORY, &out->memory_mhz)) {
        *out = (mgl_clocks_now){0};
        return false;
    }
    if (nvml.temperature(clocks->device, TEMPERATURE_GPU, &out->temperature))
        out->temperature = 0;
    if (!nvml.reasons(clocks->device, &reasons))
        out->reasons = reasons;
    return true;
}

void mgl_clocks_look(mgl_clocks *clocks)
{
    mgl_clocks_now now;
    if (!mgl_clocks_read(clocks, &now))
        return;
    bool first = clocks->looks++ == 0;
    clocks->sm_low = first || now.sm_mhz < clocks->sm_low ? now.sm_mhz : clocks->sm_low;
    clocks->sm_high = now.sm_mhz > clocks->sm_high ? now.sm_mhz : clocks->sm_high;
    clocks->memory_low =
        first || now.memory_mhz < clocks->memory_low ? now.memory_mhz : clocks->memory_low;
    clocks->temperature =
        now.temperature > clocks->temperature ? now.temperature : clocks->temperature;
    clocks->reasons |= now.reasons;
}

/* ---- processes ------------------------------------------------------------------------------ */

/* Parent of a process; -1 if unknown. In /proc/PID/stat it is the second field after the name,
 * which is in parentheses and may contain any bytes. */
static long parent_of(unsigned pid)
{
    char path[64], *text = NULL;
    size_t length;
    long parent = -1;
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    if (mgl_file_read(path, STAT_BYTES, &text, &length, NULL))
        return -1;
    const char *name_end = strrchr(text, ')');
    if (name_end && sscanf(name_end + 1, " %*c %ld", &parent) != 1)
        parent = -1;
    mgl_free(text);
    return parent;
}

int mgl_clocks_count_other_processes(const unsigned *pids, unsigned count)
{
    long self = (long)getpid(), parent = (long)getppid();
    bool listed = false, worker = is_worker();
    int others = 0;
    for (unsigned i = 0; i < count; i++) {
        long pid = (long)pids[i], of = parent_of(pids[i]);
        bool family = pid == self || pid == parent || of == self || (worker && of == parent);
        listed = listed || pid == self;
        others += !family;
    }
    return listed ? others : -1;
}

int mgl_clocks_count_others(const mgl_clocks *clocks)
{
    struct process processes[MAX_PROCESSES];
    unsigned pids[MAX_PROCESSES], count = MAX_PROCESSES;
    if (!clocks->known || !nvml.list || nvml.list(clocks->device, &count, processes) ||
        count > MAX_PROCESSES)
        return -1;
    for (unsigned i = 0; i < count; i++)
        pids[i] = processes[i].pid;
    return mgl_clocks_count_other_processes(pids, count);
}
