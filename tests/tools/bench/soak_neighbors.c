/* Draws and compares the launches of several sequences for soak.c. See soak_neighbors.h. */
#include "tests/tools/bench/soak_neighbors.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/draw.h"
#include "base/memory.h"

enum { MOST_ROUNDS = 1000 };

typedef struct reply {
    int32_t tokens[NEIGHBORS_MOST]; /* (count) */
    float gaps[NEIGHBORS_MOST];     /* (count) gap of the two most likely tokens, for a reply
                                       alone */
    int count, told;
} reply;

static struct {
    int32_t prompts[MGL_MAX_SEQUENCES][NEIGHBORS_MOST];
    int32_t ends[MGL_MAX_SEQUENCES];
    mgl_vm_sequence sequences[MGL_MAX_SEQUENCES];
    reply alone[MGL_MAX_SEQUENCES], together[MGL_MAX_SEQUENCES], again[MGL_MAX_SEQUENCES];
} room;

static struct {
    int32_t ends[MGL_MAX_SEQUENCES]; /* -1: none */
    uint64_t hash;
} rounds[MOST_ROUNDS];

/* The sequences of a round, with the round's end tokens. */
static void draw_neighbors(const neighbors_shape *shape, int round)
{
    uint64_t state = (uint64_t)round + 1;
    for (int s = 0; s < shape->sequences; s++) {
        const uint64_t prompt = (uint64_t)shape->prompt, most = (uint64_t)shape->tokens;
        mgl_vm_sequence *sequence = &room.sequences[s];
        *sequence = (mgl_vm_sequence){.prompt = room.prompts[s],
                                      .prompt_count = 1 + (int32_t)mgl_draw_below(&state, prompt),
                                      .max_new = 1 + (int32_t)mgl_draw_below(&state, most),
                                      .temperature = s % 2 ? 0.8f : 0.0f,
                                      .top_p = s % 4 == 1 ? 0.95f : 1.0f,
                                      .seed = mgl_draw(&state),
                                      .ends = &rounds[round].ends[s],
                                      .end_count = rounds[round].ends[s] >= 0};
        for (int i = 0; i < sequence->prompt_count; i++)
            room.prompts[s][i] = (int32_t)mgl_draw_below(&state, (uint64_t)shape->vocab);
    }
}

static void take_likelihood(void *user, int sequence, const mgl_vm_likelihood *likelihood)
{
    reply *to = user;
    (void)sequence;
    if (to->told < NEIGHBORS_MOST && likelihood->count >= 2)
        to->gaps[to->told++] = likelihood->logprobs[0] - likelihood->logprobs[1];
}

static mgl_status run(mgl_vm *vm, const mgl_vm_sequence *sequences, int count, reply *out,
                      bool gaps, mgl_error *err)
{
    mgl_vm_report report;
    mgl_vm_request request = {.sequences = sequences, .count = count};
    out->told = 0;
    if (gaps) {
        request.on_likelihood = take_likelihood;
        request.likely = 2;
        request.user = out;
    }
    mgl_status status = mgl_vm_run(vm, &request, &report, err);
    for (int s = 0; s < count && !status; s++) {
        out[s].count = report.produced[s];
        memcpy(out[s].tokens, report.output[s], (size_t)out[s].count * sizeof *out[s].tokens);
    }
    return status;
}

/* Generates each reply alone. A third of them gets an end token that occurs in the reply. */
static mgl_status run_alone(mgl_vm *vm, const neighbors_shape *shape, int round, mgl_error *err)
{
    mgl_status status = MGL_OK;
    for (int s = 0; s < shape->sequences; s++)
        rounds[round].ends[s] = -1;
    draw_neighbors(shape, round);
    for (int s = 0; s < shape->sequences && !status; s++) {
        status = run(vm, &room.sequences[s], 1, &room.alone[s], true, err);
        if (status || s % 3)
            continue;
        rounds[round].ends[s] = room.alone[s].tokens[room.alone[s].count / 2];
        room.sequences[s].end_count = 1;
        status = run(vm, &room.sequences[s], 1, &room.alone[s], true, err);
    }
    return status;
}

/* The first index at which two replies differ; -1: none. */
static int first_other(const reply *a, const reply *b)
{
    const int both = a->count < b->count ? a->count : b->count;
    for (int i = 0; i < both; i++)
        if (a->tokens[i] != b->tokens[i])
            return i;
    return a->count == b->count ? -1 : both;
}

static uint64_t hash_of(const reply *replies, int count)
{
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    for (int s = 0; s < count; s++)
        for (int i = 0; i < replies[s].count; i++)
            hash = (hash ^ (uint64_t)(uint32_t)replies[s].tokens[i]) * 1099511628211u;
    return hash;
}

static void count_reply(int s, neighbors_counts *counts)
{
    const reply *alone = &room.alone[s], *together = &room.together[s];
    const int at = first_other(alone, together);
    counts->replies++;
    counts->tokens += together->count;
    counts->ended += together->count < room.sequences[s].max_new;
    if (at < 0)
        return;
    if (room.sequences[s].temperature > 0) {
        counts->drawn_apart++;
        return;
    }
    counts->apart++;
    const double gap = at < alone->told ? alone->gaps[at] : INFINITY;
    counts->worst_gap = fmax(counts->worst_gap, gap);
    counts->over_gap += gap >= NEIGHBORS_GAP;
}

mgl_status neighbors_compare(mgl_vm *vm, const neighbors_shape *shape, int round,
                             neighbors_counts *counts, mgl_error *err)
{
    const double start = mgl_clock_s();
    if (round >= MOST_ROUNDS)
        return mgl_fail(err, MGL_USAGE, "--groups", "at most %d", MOST_ROUNDS);
    mgl_status status = run_alone(vm, shape, round, err);
    if (!status)
        status = run(vm, room.sequences, shape->sequences, room.together, false, err);
    if (!status)
        status = run(vm, room.sequences, shape->sequences, room.again, false, err);
    if (status)
        return status;
    rounds[round].hash = hash_of(room.together, shape->sequences);
    counts->groups++;
    counts->changes += rounds[round].hash != hash_of(room.again, shape->sequences);
    for (int s = 0; s < shape->sequences; s++)
        count_reply(s, counts);
    counts->seconds += mgl_clock_s() - start;
    return MGL_OK;
}

mgl_status neighbors_repeat(mgl_vm *vm, const neighbors_shape *shape, int round,
                            neighbors_counts *counts, mgl_error *err)
{
    const double start = mgl_clock_s();
    draw_neighbors(shape, round);
    mgl_status status = run(vm, room.sequences, shape->sequences, room.again, false, err);
    if (status)
        return status;
    counts->groups++;
    counts->changes += rounds[round].hash != hash_of(room.again, shape->sequences);
    counts->seconds += mgl_clock_s() - start;
    return MGL_OK;
}
