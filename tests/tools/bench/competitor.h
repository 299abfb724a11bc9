/*
 * A competing process that disturbs measurements: while enabled, it reads the device's memory as
 * fast as it can. The GPU driver and NVML see it as an unrelated process.
 */
#ifndef MGL_TESTS_TOOLS_BENCH_COMPETITOR_H
#define MGL_TESTS_TOOLS_BENCH_COMPETITOR_H

#include "eval/paired_bench.h"

/* Started before this process has anything to do with a device, since what a driver holds does not
 * survive a fork. It sleeps, without a device. */
mgl_status competitor_start(mgl_error *err);
/* Opens the device ("cuda", "cpu"), and waits. */
mgl_status competitor_arm(const mgl_config *config, const char *device, mgl_error *err);
/* Which launches of the runner meet it from now on: those of one side (mgl_side), none, or every
 * other one, by a coin. */
enum { COMPETITOR_RESTS = MGL_SIDES, COMPETITOR_BY_COIN };
void competitor_follow(int whom);
/* How often it has read its bytes. */
long competitor_reads(void);
/* Ends it. */
void competitor_end(void);

#endif
