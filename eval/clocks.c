/* See clocks.h. Names and numbers are those of NVIDIA's NVML reference. */
#include "eval/clocks.h"

#include <dlfcn.h>
#include <string.h>

enum { CLOCK_SM = 1, CLOCK_MEMORY = 2, TEMPERATURE_GPU = 0 };

/*  member, symbol, arguments; all return nvmlReturn_t */
#define NVML_FUNCTIONS(X)                                                                          \
    X(init, "nvmlInit_v2", (void))                                                                 \
    X(find, "nvmlDeviceGetHandleByPciBusId_v2", (const char *bus_id, void **device))               \
    X(clock, "nvmlDeviceGetClockInfo", (void *device, int type, unsigned *mhz))                    \
    X(temperature, "nvmlDeviceGetTemperature", (void *device, int sensor, unsigned *degrees))      \
    X(reasons, "nvmlDeviceGetCurrentClocksThrottleReasons",                                        \
      (void *device, unsigned long long *reasons))

static struct {
#define MGL_X(member, symbol, arguments) int(*member) arguments;
    NVML_FUNCTIONS(MGL_X)
#undef MGL_X
} nvml;

static bool take(void *library, const char *symbol, void *to)
{
    void *at = dlsym(library, symbol);
    if (at)
        memcpy(to, &at, sizeof at);
    return at != NULL;
}

/* Once a process: NVML stays open. */
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
    return usable;
}

void mgl_clocks_open(const char *bus_id, mgl_clocks *out)
{
    out->known = open_library() && nvml.find(bus_id, &out->device) == 0;
}

void mgl_clocks_look(mgl_clocks *clocks)
{
    unsigned sm = 0, memory = 0, temperature = 0;
    unsigned long long reasons = 0;
    if (!clocks->known || nvml.clock(clocks->device, CLOCK_SM, &sm) ||
        nvml.clock(clocks->device, CLOCK_MEMORY, &memory))
        return;
    if (nvml.temperature(clocks->device, TEMPERATURE_GPU, &temperature))
        temperature = 0;
    if (nvml.reasons(clocks->device, &reasons))
        reasons = 0;
    bool first = clocks->looks++ == 0;
    clocks->sm_low = first || sm < clocks->sm_low ? sm : clocks->sm_low;
    clocks->sm_high = sm > clocks->sm_high ? sm : clocks->sm_high;
    clocks->memory_low = first || memory < clocks->memory_low ? memory : clocks->memory_low;
    clocks->temperature = temperature > clocks->temperature ? temperature : clocks->temperature;
    clocks->reasons |= reasons;
}
