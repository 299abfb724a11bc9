/* A bad starting point for searches: a config whose values are outside the default space. */
#ifndef MGL_TESTS_TOOLS_BENCH_COLD_START_H
#define MGL_TESTS_TOOLS_BENCH_COLD_START_H

#include "schedule/schedule.h"

/* `queues`: also use a bad distribution of the steps over queues. */
void cold_start_make(bool queues, mgl_schedule_config *config);

#endif
