/* Makes the bad starting point of searches. See cold_start.h. */
#include "tests/tools/bench/cold_start.h"

void cold_start_make(bool queues, mgl_schedule_config *config)
{
    static const int runs[MGL_STEP_COUNT][2] = {{3, 37},  {5, 41},  {7, 53},
                                                {11, 67}, {13, 59}, {1, 71}};
    *config = (mgl_schedule_config){.splits = 27,
                                    .exchange = MGL_EXCHANGE_COUNTERS,
                                    .page_bytes = 2560,
                                    .ring_pages = 3,
                                    .warps = 5,
                                    .stage_bytes = 17408,
                                    .flight_bytes = 6144,
                                    .pending_bytes = 2560,
                                    .prefetch_bytes = 3072};
    mgl_schedule_config preset;
    mgl_schedule_config_default(&preset);
    config->exchange_precision = preset.exchange_precision;
    for (int i = 0; i < MGL_STEP_COUNT && queues; i++) {
        config->queues[i].first = runs[i][0];
        config->queues[i].count = runs[i][1];
    }
}
