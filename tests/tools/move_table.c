/*
 * Prints which moves the validator accepts: random moves of every kind, applied to a few lowered
 * programs.
 *
 *     move_table [draws] [seed] [tests/models/tales-5m] [-v]
 *
 * One row per program and kind: accepted, rejected, does not fit, not drawn; the codes of the
 * rejections; the maximum processor time of applying and checking. -v prints each move that was not
 * accepted, and the reason.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "eval/synthetic.h"
#include "schedule/moves/moves.h"
#include "validator/validator.h"

enum { CODES = 1000 };

static const struct workload {
    const char *name, *shape, *target;
    mgl_dtype dtype;
    int sequences;
    int exchange; /* 0: chosen */
} workloads[] = {
    {"llama-1b", "llama-1b", "sm_90a:132", MGL_BF16, 1, 0},
    {"smollm2-135m", "smollm2-135m", "sm_90a:132", MGL_BF16, 1, 0},
    {"llama-1b batch 8", "llama-1b", "sm_90a:132", MGL_BF16, 8, 0},
    {"tales-5m", NULL, "cpu:4", MGL_F32, 1, 0},
    {"tales-5m flags", NULL, "sm_90a:16", MGL_BF16, 1, MGL_EXCHANGE_FLAGS},
};

static bool verbose;

struct counts {
    int accepted, rejected, misfits, undrawn, codes[CODES];
    double apply_ms, check_ms;
};

static void fail(const mgl_error *err)
{
    fprintf(stderr, "move_table: %s: %s\n", err->where, err->message);
    exit(1);
}

static mgl_program *lower(const struct workload *w, const char *model, mgl_graph **graph)
{
    mgl_error err = {0};
    mgl_config config;
    mgl_target target;
    mgl_schedule_config knobs;
    mgl_program *program = NULL;
    mgl_lower_options options = {.dtype = w->dtype, .capacity = 0, .sequences = w->sequences};
    mgl_schedule_config_default(&knobs);
    knobs.exchange = w->exchange;
    mgl_status status = w->shape ? mgl_synthetic_find_shape(w->shape, &config, &err)
                                 : mgl_synthetic_read_config(model, &config, &err);
    if (!status)
        status = mgl_synthetic_open(&config, 1, graph, &err);
    if (!status)
        status = mgl_target_parse(w->target, &target, &err);
    if (!status) {
        options.capacity = (*graph)->max_positions < 4096 ? (*graph)->max_positions : 4096;
        status = mgl_schedule_lower(*graph, &target, &options, &knobs, &program, &err);
    }
    if (status)
        fail(&err);
    return program;
}

static double processor_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

static void judge(const mgl_program *program, const mgl_graph *graph, const mgl_move *move,
                  struct counts *counts)
{
    mgl_error err = {0};
    mgl_program *moved;
    mgl_verdict verdict = {0};
    mgl_move copy = *move;
    const mgl_moves moves = {&copy, 1, 1};
    double start = processor_ms();
    mgl_status status = mgl_moves_apply(program, &moves, &moved, &err);
    double ms = processor_ms() - start;
    counts->apply_ms = ms > counts->apply_ms ? ms : counts->apply_ms;
    if (status) {
        counts->misfits++;
        if (verbose)
            printf("  misfit: %s: %s\n", err.where, err.message);
        return;
    }
    start = processor_ms();
    if (mgl_validator_check(moved, graph, &verdict, &err))
        fail(&err);
    ms = processor_ms() - start;
    counts->check_ms = ms > counts->check_ms ? ms : counts->check_ms;
    counts->accepted += verdict.accepted;
    counts->rejected += !verdict.accepted;
    if (!verdict.accepted)
        counts->codes[verdict.diagnostics[0].code % CODES]++;
    if (!verdict.accepted && verbose) {
        mgl_text text = {0};
        mgl_move_print(move, &text);
        printf("  %s: MG%d %s\n", text.bytes, verdict.diagnostics[0].code,
               verdict.diagnostics[0].message);
        mgl_text_clear(&text);
    }
    mgl_verdict_clear(&verdict);
    mgl_program_free(moved);
}

static void print_codes(const struct counts *counts)
{
    for (int i = 0; i < CODES; i++)
        if (counts->codes[i])
            printf(" MG%d: %d", i, counts->codes[i]);
}

int main(int argc, char **argv)
{
    const int draws = argc > 1 ? atoi(argv[1]) : 200;
    verbose = argc > 4;
    uint64_t state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    printf(
        "| program | move | accepted | rejected | does not fit | not drawn | codes | apply, ms | "
        "check, ms |\n|---|---|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof workloads / sizeof *workloads; i++) {
        mgl_graph *graph;
        mgl_program *program =
            lower(&workloads[i], argc > 3 ? argv[3] : "tests/models/tales-5m", &graph);
        for (int kind = 0; kind < MGL_MOVE_COUNT; kind++) {
            struct counts counts = {0};
            for (int n = 0; n < draws; n++) {
                mgl_move move;
                if (mgl_move_draw(program, 1U << kind, &state, &move))
                    judge(program, graph, &move, &counts);
                else
                    counts.undrawn++;
            }
            printf("| %s | %s | %d | %d | %d | %d |", workloads[i].name,
                   mgl_move_name((mgl_move_kind)kind), counts.accepted, counts.rejected,
                   counts.misfits, counts.undrawn);
            print_codes(&counts);
            printf(" | %.1f | %.1f |\n", counts.apply_ms, counts.check_ms);
            fflush(stdout);
        }
        mgl_program_free(program);
        mgl_graph_free(graph);
    }
    return 0;
}
