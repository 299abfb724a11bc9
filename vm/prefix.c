/*
 * Implements prefix caching (prefix.h): compares a prompt with the recorded token ids of each
 * sequence, and updates the ids after a launch.
 */
#include "vm/prefix.h"

#include <string.h>

#include "base/assert.h"
#include "base/memory.h"

mgl_status mgl_prefix_open(mgl_prefix *prefix, const mgl_program *program, mgl_error *err)
{
    size_t words = (size_t)program->limits.sequences * (size_t)program->limits.capacity;
    prefix->ids = mgl_alloc(words * sizeof *prefix->ids);
    return prefix->ids ? MGL_OK : mgl_fail_memory(err, words * sizeof *prefix->ids);
}

void mgl_prefix_close(mgl_prefix *prefix)
{
    mgl_free(prefix->ids);
    *prefix = (mgl_prefix){0};
}

void mgl_prefix_forget(mgl_prefix *prefix)
{
    memset(prefix->known, 0, sizeof prefix->known);
}

static int32_t *ids_of(const mgl_prefix *prefix, const mgl_program *program, int s)
{
    return prefix->ids + (size_t)s * (size_t)program->limits.capacity;
}

int32_t mgl_prefix_skip(const mgl_prefix *prefix, const mgl_program *program, int s,
                        mgl_vm_sequence *sequence)
{
    int32_t n = 0, most = sequence->prompt_count - 1;
    if (!sequence->reuse || s >= program->limits.sequences || sequence->mode == MGL_VM_SCORE ||
        sequence->start != 0 || !sequence->prompt)
        return 0;
    const int32_t *ids = ids_of(prefix, program, s);
    most = most < prefix->known[s] ? most : prefix->known[s];
    while (n < most && ids[n] == sequence->prompt[n])
        n++;
    sequence->start = n;
    sequence->before = sequence->prompt;
    sequence->before_count = n;
    sequence->prompt += n;
    sequence->prompt_count -= n;
    return n;
}

/* Records one sequence: positions before `start` were known already; from `start` on, the prompt
 * and then the reply, up to `written`. */
static void note_one(mgl_prefix *prefix, const mgl_program *program, int s,
                     const mgl_vm_sequence *sequence, const int32_t *output, int32_t written)
{
    int32_t *ids = ids_of(prefix, program, s), start = sequence->start;
    int32_t behind = start + sequence->prompt_count; /* end of the prompt */
    if (prefix->known[s] < start) {                  /* the caller knows the tokens before
                                                        `start`, this record does not */
        prefix->known[s] = 0;
        return;
    }
    MGL_ASSERT(written <= program->limits.capacity);
    for (int32_t i = start; i < written; i++)
        ids[i] = i < behind ? sequence->prompt[i - start] : output[i - behind];
    prefix->known[s] = written > start ? written : start;
}

void mgl_prefix_note(mgl_prefix *prefix, const mgl_program *program,
                     const mgl_vm_sequence *sequences, int count, const mgl_vm_report *report)
{
    for (int s = 0; s < count; s++)
        note_one(prefix, program, s, &sequences[s], report->output[s], report->written[s]);
}
