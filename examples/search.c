/* A search for a faster schedule that uses only the public header. It starts from a poor schedule
 * and makes a hundred plans; each plan distributes the work of one step over other queues. The
 * plans that the validator accepts are priced by the cost model, and the best is printed.
 * mgl_autotune searches much further, and measures.
 *     cc search.c $(pkg-config --cflags --libs megalith) -o search
 *     ./search tests/models/tales-5m */
#include <megalith.h>
#include <stdio.h>

enum { TRIALS = 100, STEPS = 5 };
/* The poor start: few queues do the work of two steps. */
#define POOR                                                                                       \
    "{\"schema\": \"megalith.config/1\", \"queues\": {\"gate_up\": {\"first\": 0, \"count\": 4}, " \
    "\"down\": {\"first\": 0, \"count\": 3}}}"

static const char *const steps[STEPS] = {"qkv", "attend", "o", "gate_up", "down"};

/* The predicted microseconds per token; 0: the plan is rejected. */
static double price(const mgl_planner *planner, mgl_plan *plan, mgl_error *err)
{
    mgl_plan_verdict verdict = {.size = sizeof verdict};
    mgl_plan_prediction prediction = {.size = sizeof prediction};
    mgl_status status = mgl_planner_check(planner, plan, &verdict, err);
    if (!status && verdict.accepted && !mgl_plan_check_machine(plan, err))
        status = mgl_plan_predict(plan, NULL, 1, 16, 32, &prediction, err);
    mgl_plan_verdict_clear(&verdict);
    return status ? 0 : prediction.us;
}

static void search(const mgl_planner *planner, mgl_plan *start, mgl_error *err)
{
    double first = price(planner, start, err), best = first;
    char move[80], kept[80] = "none";
    int refused = 0;
    for (int i = 0; i < TRIALS; i++) {
        mgl_plan *plan = NULL;
        snprintf(move, sizeof move, "queues layer=all step=%s from=0 to=%d", steps[i % STEPS],
                 1 + i / STEPS);
        double us = mgl_plan_move(start, move, &plan, err) ? 0 : price(planner, plan, err);
        mgl_plan_close(plan);
        refused += us == 0;
        if (us > 0 && us < best) {
            best = us;
            snprintf(kept, sizeof kept, "%s", move);
        }
    }
    printf("%d plans, %d rejected; predicted %.2f us a token, %.2f with the best move: %s\n",
           TRIALS, refused, first, best, kept);
}

int main(int argc, char **argv)
{
    const mgl_plan_options options = {.size = sizeof options,
                                      .model = argc > 1 ? argv[1] : ".",
                                      .target = "sm_90a:32",
                                      .capacity = 256};
    mgl_error err = {0};
    mgl_planner *planner = NULL;
    mgl_plan *start = NULL;
    mgl_status status = mgl_planner_open(&options, &planner, &err);
    if (!status)
        status = mgl_planner_lower(planner, POOR, NULL, 1, &start, &err);
    if (!status)
        search(planner, start, &err);
    else
        fprintf(stderr, "%s%s%s\n", err.where, err.where[0] ? ": " : "", err.message);
    mgl_plan_close(start);
    mgl_planner_close(planner);
    return (int)status;
}
