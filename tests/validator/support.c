/* Implements the helpers of the validator's tests. See support.h. */
#include "support.h"

#include <stdio.h>

mgl_graph *make_graph(const mgl_geometry *geometry, bool tied, mgl_dtype dtype)
{
    static const float inv_freq[512] = {1};
    mgl_graph *graph = NULL;
    mgl_error err = {0};
    mgl_status status = mgl_graph_build_llama(geometry, 64, tied, dtype, inv_freq, &graph, &err);
    ck_assert_msg(status == MGL_OK, "%s", err.message);
    return graph;
}

mgl_graph *tiny_graph(int layers)
{
    mgl_geometry geometry = {.hidden = 16,
                             .layers = layers,
                             .heads = 2,
                             .kv_heads = 1,
                             .head_dim = 8,
                             .ffn = 24,
                             .vocab = 40,
                             .eps = 1e-5f};
    return make_graph(&geometry, false, MGL_F32);
}

mgl_program *lowered(const mgl_graph *graph, int queues, int splits)
{
    return lowered_with(graph, queues, splits, 1, MGL_F32);
}

static mgl_program *lower(const mgl_graph *graph, int queues, int splits, int exchange,
                          mgl_dtype dtype, bool penalties)
{
    mgl_target target;
    mgl_error err = {0};
    mgl_schedule_config config;
    mgl_lower_options options = {
        .dtype = dtype, .capacity = 32, .sequences = 2, .penalties = penalties};
    mgl_program *program = NULL;
    char name[32];
    snprintf(name, sizeof name, "sm_90a:%d", queues);
    mgl_schedule_config_default(&config);
    config.splits = splits;
    config.exchange = exchange;
    config.rows = 4;
    config.page_bytes = 2048;
    mgl_status status = mgl_target_parse(name, &target, &err);
    if (!status)
        status = mgl_schedule_lower(graph, &target, &options, &config, &program, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
    return program;
}

mgl_program *lowered_with(const mgl_graph *graph, int queues, int splits, int exchange,
                          mgl_dtype dtype)
{
    return lower(graph, queues, splits, exchange, dtype, false);
}

mgl_program *lowered_with_penalties(const mgl_graph *graph, int queues)
{
    return lower(graph, queues, 1, 1, MGL_F32, true);
}

mgl_program *flags_program(int splits)
{
    char path[1024];
    mgl_program *program = NULL;
    mgl_error err = {0};
    snprintf(path, sizeof path, "%s/tests/validator/programs/flags_%d.mls", MGL_SOURCE_DIR, splits);
    mgl_status status = mgl_schedule_read(path, &program, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
    return program;
}

mgl_graph *flags_graph(void)
{
    mgl_geometry geometry = {.hidden = 16,
                             .layers = 2,
                             .heads = 4,
                             .kv_heads = 2,
                             .head_dim = 8,
                             .ffn = 24,
                             .vocab = 40,
                             .eps = 1e-5f};
    return make_graph(&geometry, false, MGL_F32);
}

/* ---- copies ---- */

static void copy_task(mgl_program *to, const mgl_program *from, int index, enum piece piece,
                      int without)
{
    const mgl_task *task = &from->tasks[index];
    mgl_program_add_task(to, task->op);
    mgl_program_set_variant(to, task->variant);
    for (int i = task->in.first; i < task->in.first + task->in.count; i++)
        if (piece != PIECE_REGION || i != without)
            mgl_program_add_in(to, &from->regions[i]);
    for (int i = task->out.first; i < task->out.first + task->out.count; i++)
        if (piece != PIECE_REGION || i != without)
            mgl_program_add_out(to, &from->regions[i]);
    for (int i = task->segments.first; i < task->segments.first + task->segments.count; i++)
        if (piece != PIECE_SEGMENT || i != without)
            mgl_program_add_segment(to, &from->segments[i]);
    for (int i = task->waits.first; i < task->waits.first + task->waits.count; i++)
        if (piece != PIECE_WAIT || i != without)
            mgl_program_add_wait(to, from->waits[i].counter, from->waits[i].threshold);
    for (int i = task->signals.first; i < task->signals.first + task->signals.count; i++)
        if (piece != PIECE_SIGNAL || i != without)
            mgl_program_add_signal(to, from->signals[i]);
}

mgl_program *copy_without(const mgl_program *from, enum piece piece, int index)
{
    mgl_program *to = NULL;
    mgl_error err = {0};
    ck_assert_int_eq(mgl_program_new(&to, &err), MGL_OK);
    to->target = from->target;
    to->geometry = from->geometry;
    to->limits = from->limits;
    to->exec = from->exec;
    to->weight_dtype = from->weight_dtype;
    to->embedding_dtype = from->embedding_dtype;
    to->exchange_dtype = from->exchange_dtype;
    to->kv_dtype = from->kv_dtype;
    for (int i = 0; i < from->tensor_count; i++) {
        const mgl_program_tensor *t = &from->tensors[i];
        mgl_program_add_tensor(to, t->name, t->checkpoint, t->format, t->rank, t->rows, t->cols);
    }
    for (int i = 0; i < from->buffer_count; i++)
        mgl_program_add_buffer(to, &from->buffers[i]);
    for (int i = 0; i < from->counter_count; i++)
        mgl_program_add_counter(to, from->counters[i].name);
    for (int q = 0; q < from->queue_count; q++) {
        const mgl_queue *queue = &from->queues[q];
        mgl_program_add_queue(to);
        to->queues[q].tape_bytes = queue->tape_bytes;
        to->queues[q].tape_pad = queue->tape_pad;
        int last = queue->tasks.first + queue->tasks.count - 1;
        for (int t = queue->tasks.first; t <= last; t++) {
            bool here = t == index;
            if (here && piece == SWAP_TASK && t < last) {
                copy_task(to, from, ++t, piece, index);
                copy_task(to, from, index, piece, index);
            } else if (!here || piece != PIECE_TASK) {
                copy_task(to, from, t, piece, index);
            }
            if (here && piece == DOUBLE_TASK)
                copy_task(to, from, t, piece, index);
        }
    }
    ck_assert(!mgl_program_failed(to));
    return to;
}

/* ---- verdicts ---- */

mgl_verdict verdict_of(const mgl_program *program, const mgl_graph *graph)
{
    mgl_verdict verdict = {0};
    mgl_error err = {0};
    mgl_status status = mgl_validator_check(program, graph, &verdict, &err);
    ck_assert_msg(status == MGL_OK, "%s", err.message);
    ck_assert_int_eq(verdict.accepted, verdict.count == 0);
    return verdict;
}

mgl_verdict strict_verdict_of(const mgl_program *program, const mgl_graph *graph)
{
    mgl_verdict verdict = {0};
    mgl_error err = {0};
    ck_assert_int_eq(mgl_validator_check_strict(program, graph, &verdict, &err), MGL_OK);
    return verdict;
}

bool has_code(const mgl_verdict *verdict, int code)
{
    for (int i = 0; i < verdict->count; i++)
        if (verdict->diagnostics[i].code == code)
            return true;
    return false;
}

const char *codes_of(const mgl_verdict *verdict, char *to, size_t size)
{
    size_t length = 0;
    to[0] = 0;
    if (verdict->accepted)
        snprintf(to, size, "accept");
    for (int i = 0; i < verdict->count && length < size; i++) {
        char code[16];
        snprintf(code, sizeof code, "MG%d", verdict->diagnostics[i].code);
        if (!strstr(to, code))
            length += (size_t)snprintf(to + length, size - length, "%s%s", length ? " " : "", code);
    }
    return to;
}

int run_suite(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
