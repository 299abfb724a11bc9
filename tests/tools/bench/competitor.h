/*
 * A competing process that disturbs measurements: while enabled, it reads the device's memory as
 * fast as it can. The GPU driver and NVML see it as an unrelated process.
 */
#ifndef MGL_TESTS_TOOLS_BENCH_COMPETITOR_H
#define MGL_TESTS_TOOLS_BENCH_COMPETITOR_H

#include "eval/paired_bench.h"

/* Forks the competitor, which sleeps. Call before this process uses a device, because a driver's
 * state does not survive a fork. */
mgl_status competitor_start(mgl_error *err);
/* Opens the device ("cuda", "cpu"), and waits. */
mgl_status competitor_arm(const mgl_config *config, const char *device, mgl_error *err);
/* Selects the launches of the runner during which it runs: those of one side (mgl_side), none, or a
 * random half. */
enum { COMPETITOR_RESTS = MGL_SIDES, COMPETITOR_BY_COIN };
void competitor_follow(int whom);
/* Number of times that it has read its buffer. */
long competitor_reads(void);
/* Ends the competitor. */
void competitor_end(void);

#endif
