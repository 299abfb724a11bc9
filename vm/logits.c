/*
 * Logits of the scored tokens of a text (vm.h). A launch scores as many tokens as an epoch of the
 * first list has rows, so the logits of all of them are in the logits buffer when it ends. The next
 * launch continues behind the positions of the cache.
 */
#include "vm/vm.h"

#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "vm/prefix.h"

/* A text that is read. */
typedef struct reading {
    mgl_vm *vm;
    const int32_t *ids;
    const atomic_int *abort;
    int buffer; /* of the logits */
    size_t vocab;
    float *rows; /* (buffer) the logits of a launch */
} reading;

/* Reads the tokens at positions [begin, end), and copies the logits that the launch computed. */
static mgl_status read_rows(reading *r, int32_t begin, int32_t end, mgl_error *err)
{
    const mgl_vm_sequence sequence = {.mode = MGL_VM_SCORE,
                                      .prompt = r->ids + begin,
                                      .prompt_count = end - begin + 1,
                                      .start = begin,
                                      .max_new = 1};
    const mgl_vm_request run = {.sequences = &sequence, .count = 1, .abort = r->abort};
    mgl_vm_report report = {0};
    mgl_status status = mgl_vm_run(r->vm, &run, &report, err);
    if (!status && report.state[0] == MGL_STATE_ABORTED)
        status = mgl_fail_interrupted(err);
    MGL_ASSERT(status || report.epochs == 1);
    return status ? status : mgl_vm_get_buffer(r->vm, r->buffer, r->rows, err);
}

static mgl_status check_finite(const reading *r, int32_t position, const float *logits,
                               mgl_error *err)
{
    for (size_t i = 0; i < r->vocab; i++)
        if (!isfinite(logits[i]))
            return mgl_fail(err, MGL_BAD_INPUT, NULL,
                            "the logit of id %zu at position %d is not a number; check the "
                            "checkpoint, or take another dtype",
                            i, (int)position);
    return MGL_OK;
}

/* Copies the logits of positions from `begin` on, of the rows at [first, end). */
static mgl_status take_rows(const reading *r, int32_t first, int32_t end, int32_t begin,
                            float *logits, mgl_error *err)
{
    mgl_status status = MGL_OK;
    for (int32_t p = first > begin ? first : begin; p < end && !status; p++) {
        const float *row = r->rows + (size_t)(p - first) * r->vocab;
        status = check_finite(r, p, row, err);
        memcpy(logits + (size_t)(p - begin) * r->vocab, row, r->vocab * sizeof *row);
    }
    return status;
}

/* The number of first tokens (at most `count`) that the cache holds from earlier launches. */
static int32_t find_held(mgl_vm *vm, const int32_t *ids, int32_t count)
{
    const mgl_prefix *held = mgl_prefix_of(vm);
    int32_t n = 0;
    while (n < count && n < held->known[0] && held->ids[n] == ids[n])
        n++;
    return n;
}

static mgl_status read_text(reading *r, int32_t count, int32_t begin, float *logits, mgl_error *err)
{
    const mgl_program *program = r->vm->program;
    const int32_t rows = mgl_limits_first_rows(&program->limits);
    int32_t position = find_held(r->vm, r->ids, begin);
    mgl_status status = MGL_OK;
    while (position < count - 1 && !status) {
        const int32_t end = position + rows < count - 1 ? position + rows : count - 1;
        status = read_rows(r, position, end, err);
        if (!status)
            status = take_rows(r, position, end, begin, logits, err);
        position = end;
    }
    return status;
}

mgl_status mgl_vm_score_logits(mgl_vm *vm, const int32_t *ids, int32_t count, int32_t begin,
                               const atomic_int *abort, float *logits, mgl_error *err)
{
    mgl_vm_io io;
    mgl_status status = mgl_vm_check_usable(vm, err);
    if (!status)
        status = mgl_vm_find_io(vm->program, &io, err);
    if (status)
        return status;
    const size_t bytes = mgl_vm_buffer_bytes(&vm->program->buffers[io.logits]);
    reading r = {.vm = vm,
                 .ids = ids,
                 .abort = abort,
                 .buffer = io.logits,
                 .vocab = (size_t)vm->program->geometry.vocab,
                 .rows = mgl_alloc(bytes)};
    status = r.rows ? read_text(&r, count, begin, logits, err) : mgl_fail_memory(err, bytes);
    mgl_free(r.rows);
    return status;
}
