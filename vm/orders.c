/* Checks column maps, through which products read their inputs. Implements the functions of
 * weights.h for them. */
#include <string.h>

#include "base/memory.h"
#include "vm/weights.h"

mgl_status mgl_order_check(const mgl_program *program, int buffer, const int32_t *order,
                           mgl_error *err)
{
    const mgl_buffer *b = &program->buffers[buffer];
    const int64_t columns = program->tensors[b->tensor].cols;
    bool *seen = mgl_alloc_zero((size_t)columns, sizeof *seen);
    if (!seen)
        return mgl_fail_memory(err, (size_t)columns);
    bool good = true;
    for (int64_t i = 0; i < columns && good; i++) {
        good = order[i] >= 0 && order[i] < columns && !seen[order[i]];
        if (good)
            seen[order[i]] = true;
    }
    mgl_free(seen);
    return good ? MGL_OK
                : mgl_fail(err, MGL_BAD_INPUT, b->name,
                           "the column map is not a permutation of the columns of %s; compile the "
                           "model again",
                           program->tensors[b->tensor].checkpoint);
}

/* Reads the column map of a buffer, and checks it. Release *out with mgl_free. */
static mgl_status read_order(const mgl_weights *weights, int buffer, int32_t **out, mgl_error *err)
{
    const mgl_program *program = weights->program;
    const mgl_buffer *b = &program->buffers[buffer];
    const int part = program->queue_count + buffer;
    if (weights->sizes[part] != (size_t)program->tensors[b->tensor].cols * sizeof **out)
        return mgl_fail(err, MGL_BAD_INPUT, b->name,
                        "the column map does not have one i32 for each column of %s; lower the "
                        "model again",
                        program->tensors[b->tensor].checkpoint);
    *out = mgl_alloc_zero(weights->sizes[part], 1);
    if (!*out)
        return mgl_fail_memory(err, weights->sizes[part]);
    mgl_status status = mgl_weights_write(weights, part, *out, NULL, err);
    return status ? status : mgl_order_check(program, buffer, *out, err);
}

/* Whether two tensors have the same column map, or none. */
static bool is_same(const mgl_program *program, int32_t *const *orders, int first, int second)
{
    const mgl_program_tensor *a = &program->tensors[first], *b = &program->tensors[second];
    if (a->order < 0 || b->order < 0)
        return a->order < 0 && b->order < 0;
    return a->cols == b->cols &&
           !memcmp(orders[a->order], orders[b->order], (size_t)a->cols * sizeof **orders);
}

static mgl_status check_tasks(const mgl_program *program, int32_t *const *orders, mgl_error *err)
{
    for (int i = 0; i < program->task_count; i++) {
        const mgl_run *run = &program->tasks[i].segments;
        for (int j = run->first; j < run->first + run->count; j++) {
            const mgl_segment *s = &program->segments[j];
            const int first = program->segments[run->first].tensor;
            if (!is_same(program, orders, first, s->tensor) ||
                (s->tensor2 >= 0 && !is_same(program, orders, first, s->tensor2)))
                return mgl_fail(err, MGL_BAD_INPUT, program->tensors[s->tensor].name,
                                "the matrix and another matrix of its task have different column "
                                "maps (`order`); the CUDA machine supports one map in a task; use "
                                "--device cpu, or the target cpu");
        }
    }
    return program->second ? check_tasks(program->second, orders, err) : MGL_OK;
}

mgl_status mgl_weights_check_orders(const mgl_weights *weights, mgl_error *err)
{
    const mgl_program *program = weights->program;
    int32_t **orders = mgl_alloc_zero((size_t)program->buffer_count + 1, sizeof *orders);
    mgl_status status = orders ? MGL_OK : mgl_fail_memory(err, sizeof *orders);
    bool found = false;
    for (int i = 0; i < program->buffer_count && !status; i++)
        if (program->buffers[i].source == MGL_SOURCE_ORDER) {
            found = true;
            status = read_order(weights, i, &orders[i], err);
        }
    if (!status && found)
        status = check_tasks(program, orders, err);
    for (int i = 0; i < program->buffer_count && orders; i++)
        mgl_free(orders[i]);
    mgl_free(orders);
    return status;
}
