/* A device's clocks and what holds them back, read (never set) through NVML, opened at run time. */
#ifndef MGL_EVAL_CLOCKS_H
#define MGL_EVAL_CLOCKS_H

#include "vm/cuda/driver.h"

/* What was seen over all looks. Zero-initialise. */
typedef struct mgl_clocks {
    bool known;               /* NVML is there and knows the device */
    void *device;             /* nvmlDevice_t */
    int looks;                /* so far */
    unsigned sm_low, sm_high; /* MHz of the multiprocessors, slowest and fastest look */
    unsigned memory_low;      /* MHz of the memory, slowest look */
    unsigned temperature;     /* degrees Celsius, hottest look */
    uint64_t reasons;         /* NVML's clock event reasons, of all looks together */
} mgl_clocks;

/* Finds the device with this PCI address (cuDeviceGetPCIBusId). Without NVML `known` stays false,
 * which is no error. */
void mgl_clocks_open(const char *bus_id, mgl_clocks *out);
void mgl_clocks_look(mgl_clocks *clocks);

/* One look. */
typedef struct mgl_clocks_now {
    unsigned sm_mhz, memory_mhz, temperature; /* MHz, MHz, degrees Celsius */
    uint64_t reasons;                         /* NVML's clock event reasons */
} mgl_clocks_now;
/* False, and zeros, where the device is not known. */
bool mgl_clocks_read(const mgl_clocks *clocks, mgl_clocks_now *out);

/* How many other processes compute on the device. Not counted are this process, the one that
 * started it, those that it started, and, where the one that started it runs the same program, the
 * others that that one started: parts of one campaign. -1: unknown, also where NVML does not list
 * this process, which must have a context there: then its numbers are those of another namespace,
 * as in a container, and nobody is known by them. */
int mgl_clocks_count_others(const mgl_clocks *clocks);
/* The same of a list of process numbers. */
int mgl_clocks_count_other_processes(const unsigned *pids, unsigned count);

#endif
