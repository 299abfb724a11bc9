/* Draws simulated timing pairs. See simulate.h. */
#include "tests/autotune/search/simulate.h"

#include "autotune/search/proposer.h"

#include <math.h>

static const char *const names[] = {
#define X(id, name) name,
    NOISES(X)
#undef X
};

const char *noise_name(noise kind)
{
    return names[kind];
}

double simulator_uniform(simulator *s)
{
    return ((double)(mgl_draw(&s->seed) >> 11) + 0.5) / 9007199254740992.0; /* 2^53 */
}

/* Box and Muller, "A note on the generation of random normal deviates", 1958. */
double simulator_normal(simulator *s)
{
    double radius = sqrt(-2 * log(simulator_uniform(s)));
    return radius * cos(2 * 3.14159265358979323846 * simulator_uniform(s));
}

/* The noise of the next launch, in units. */
static double next_noise(simulator *s)
{
    double normal = simulator_normal(s);
    switch (s->kind) {
    case NOISE_LOGNORMAL:
        return exp(1.5 * normal);
    case NOISE_OUTLIERS:
        return normal + (simulator_uniform(s) < 0.01 ? 30 : 0);
    case NOISE_DRIFT:
        s->level = 0.98 * s->level + 0.5 * normal;
        return s->level;
    case NOISE_BIMODAL:
        s->slow ^= simulator_uniform(s) < 0.1;
        return normal + (s->slow ? 5 : 0);
    default:
        return normal;
    }
}

mgl_pair simulator_pair(simulator *s, double gain)
{
    double first = next_noise(s), second = next_noise(s);
    mgl_pair pair = {.candidate_first = mgl_draw(&s->seed) >> 63};
    pair.incumbent_us = 600 * exp(s->spread * (pair.candidate_first ? second : first));
    pair.candidate_us = 600 * exp(s->spread * (pair.candidate_first ? first : second) - gain);
    return pair;
}

void simulator_pairs(simulator *s, double gain, int workload, mgl_pair_stage stage, int count,
                     mgl_pair *out)
{
    for (int i = 0; i < count; i++) {
        out[i] = simulator_pair(s, gain);
        out[i].workload = workload;
        out[i].stage = (int)stage;
    }
}
