/* Reads a GPU's clocks and clock event reasons through NVML, opened at run time, and counts other
 * processes on the GPU. Never changes the clocks. The benchmarks record the results. */
#ifndef MGL_EVAL_CLOCKS_H
#define MGL_EVAL_CLOCKS_H

#include "vm/cuda/driver.h"

/* Extremes over all readings. Zero-initialize it. */
typedef struct mgl_clocks {
    bool known;               /* NVML is available and knows the device */
    void *device;             /* nvmlDevice_t */
    int looks;                /* number of readings */
    unsigned sm_low, sm_high; /* MHz of the multiprocessors, lowest and highest */
    unsigned memory_low;      /* MHz of the memory, lowest */
    unsigned temperature;     /* degrees Celsius, highest */
    uint64_t reasons;         /* NVML clock event reasons, all readings combined */
} mgl_clocks;

/* Finds the device with this PCI address (cuDeviceGetPCIBusId). Without NVML `known` stays false;
 * this is not an error. */
void mgl_clocks_open(const char *bus_id, mgl_clocks *out);
void mgl_clocks_look(mgl_clocks *clocks);

/* One reading. */
typedef struct mgl_clocks_now {
    unsigned sm_mhz, memory_mhz, temperature; /* MHz, MHz, degrees Celsius */
    uint64_t reasons;                         /* NVML clock event reasons */
} mgl_clocks_now;
/* Returns false, and zeros, if the device is unknown. */
bool mgl_clocks_read(const mgl_clocks *clocks, mgl_clocks_now *out);

/* Number of other processes that compute on the device. Not counted: this process, its parent, its
 * children, and, if the parent runs the same program, the parent's other children (parts of one
 * campaign). -1: unknown. This includes the case that NVML does not list this process, although it
 * has a context there: NVML's process ids then belong to another namespace, as in a container. */
int mgl_clocks_count_others(const mgl_clocks *clocks);
/* Like mgl_clocks_count_others, for a list of process ids. */
int mgl_clocks_count_other_processes(const unsigned *pids, unsigned count);

#endif
