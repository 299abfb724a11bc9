/*
 * Background compilation (build-ahead): compiles a candidate's kernels in compiler workers, which
 * need no device, while other candidates are measured. The result goes to the cache that the
 * executor reads. If all compilers are busy, the kernel is compiled later, when it is needed.
 * Implements prepare and is_ready of runner.h.
 */
#include "autotune/runner/runner_state.h"

#include "base/clock.h"
#include "base/memory.h"
#include "vm/cuda/cache.h"
#include "vm/cuda/cuda.h"

#include <stdio.h>
#include <string.h>

static const double compile_limit_s = MGL_RUNNER_COMPILE_S;

static void retire(mgl_runner_state *runner, int i)
{
    mgl_process_close(runner->compilers[i].process);
    runner->compilers[i].process = NULL;
    runner->compilers[i].key[0] = 0;
}

void mgl_runner_end_compilers(mgl_runner_state *runner)
{
    for (int i = 0; i < runner->runner.compilers; i++)
        retire(runner, i);
}

/* Takes the reply of a compiler. Compile errors are ignored here, because the executor reports
 * them. */
static mgl_status take_reply(mgl_runner_state *runner, int i, mgl_error *err)
{
    mgl_answer answer;
    mgl_status status = mgl_process_await(runner->compilers[i].process, 0, &answer, err);
    mgl_answer_clear(&answer);
    if (!status)
        mgl_runner_note_kernel(runner, runner->compilers[i].key);
    runner->compilers[i].key[0] = 0;
    if (!mgl_process_lives(runner->compilers[i].process))
        retire(runner, i);
    return status;
}

mgl_status mgl_runner_await_kernel(mgl_runner_state *runner, const char *key, mgl_error *err)
{
    const double began = mgl_clock_s();
    for (int i = 0; i < runner->runner.compilers; i++) {
        if (!runner->compilers[i].process || strcmp(runner->compilers[i].key, key) != 0)
            continue;
        mgl_status status = take_reply(runner, i, err);
        mgl_runner_note_wait(runner, MGL_REQUEST_COMPILE, began);
        return status;
    }
    return MGL_OK;
}

/* Returns an idle compiler; -1: none. */
static int find_idle(mgl_runner_state *runner)
{
    int idle = -1;
    for (int i = 0; i < runner->runner.compilers; i++) {
        if (runner->compilers[i].key[0] && mgl_process_has_reply(runner->compilers[i].process))
            take_reply(runner, i, NULL);
        if (!runner->compilers[i].key[0])
            idle = i;
    }
    return idle;
}

static bool is_compiled(const mgl_runner_state *runner, const char *key)
{
    for (size_t i = 0; i < runner->ready_count; i++)
        if (!strcmp(runner->ready[i], key))
            return true;
    return false;
}

/* Trims the kernel cache. Files that cannot be removed stay; the campaign checks the disk. A kernel
 * that is removed before its use is compiled again. */
static void trim(const mgl_runner_state *runner)
{
    uint64_t left;
    if (runner->kernels && runner->options.kernel_bytes)
        mgl_cuda_cache_trim(runner->kernels, runner->options.kernel_bytes, &left, NULL);
}

/* Records a compiled kernel. If memory is short, it is not recorded, and is found in the cache
 * later. */
void mgl_runner_note_kernel(mgl_runner_state *runner, const char *key)
{
    if (is_compiled(runner, key) || !mgl_grow((void **)&runner->ready, &runner->ready_capacity,
                                              runner->ready_count, sizeof *runner->ready))
        return;
    memcpy(runner->ready[runner->ready_count++], key, MGL_SHA256_HEX);
    trim(runner);
}

static bool is_known(const mgl_runner_state *runner, const char *key)
{
    if (is_compiled(runner, key))
        return true;
    for (int i = 0; i < runner->runner.compilers; i++)
        if (!strcmp(runner->compilers[i].key, key))
            return true;
    return false;
}

static void start_compiling(mgl_runner_state *runner, int i, const mgl_candidate *candidate,
                            int program, const char *key)
{
    mgl_wire_set fixed;
    mgl_runner_set set;
    mgl_text bytes = {0};
    if (!runner->compilers[i].process &&
        mgl_runner_start_worker(runner, MGL_COMPILER, &runner->compilers[i].process, NULL))
        return;
    if (mgl_runner_set_make(runner->options.subject, candidate, 0, &set, NULL))
        return;
    if (!mgl_runner_set_write(&set, program, &fixed, &bytes, NULL)) {
        snprintf(fixed.arch, sizeof fixed.arch, "%s", runner->options.subject->target.arch);
        const mgl_question question = {.kind = MGL_REQUEST_COMPILE,
                                       .fixed = &fixed,
                                       .bytes = bytes.bytes,
                                       .fixed_length = sizeof fixed,
                                       .length = bytes.length,
                                       .limit_s = compile_limit_s};
        if (!mgl_process_post(runner->compilers[i].process, &question, NULL))
            memcpy(runner->compilers[i].key, key, MGL_SHA256_HEX);
    }
    mgl_text_clear(&bytes);
    mgl_runner_set_clear(&set);
}

/* Returns the keys of a candidate's kernels, one for each program, valid until the next call.
 * Replacement texts are not part of the candidate's digest, so such keys are not cached. */
static char (*keys_of(mgl_runner_state *runner, const mgl_candidate *candidate))[MGL_SHA256_HEX]
{
    const bool named = candidate->digest[0] && candidate->source_count == 0;
    for (int i = 0; i < MGL_RUNNER_KEYS && named; i++)
        if (!strcmp(runner->keys[i].digest, candidate->digest))
            return runner->keys[i].keys;
    const int i = runner->next_keys;
    runner->next_keys = (i + 1) % MGL_RUNNER_KEYS;
    memcpy(runner->keys[i].digest, named ? candidate->digest : "", named ? MGL_SHA256_HEX : 1);
    for (int p = 0; p < candidate->program_count; p++)
        mgl_runner_kernel_key(candidate, p, runner->options.subject->target.arch,
                              runner->keys[i].keys[p]);
    return runner->keys[i].keys;
}

/* Whether candidates need a compiled kernel: target and device are a GPU. The CPU machine runs a
 * program for a GPU without a kernel. */
static bool compiles(const mgl_runner_state *runner)
{
    return strcmp(runner->options.subject->target.arch, "cpu") != 0 &&
           strcmp(runner->device, "cpu") != 0;
}

bool mgl_runner_is_ready(mgl_runner *self, const mgl_candidate *candidate)
{
    mgl_runner_state *runner = (mgl_runner_state *)self;
    bool ready = true;
    find_idle(runner); /* takes the replies that have arrived */
    if (!compiles(runner))
        return true;
    char(*keys)[MGL_SHA256_HEX] = keys_of(runner, candidate);
    for (int p = 0; p < candidate->program_count; p++)
        ready &= is_compiled(runner, keys[p]);
    return ready;
}

void mgl_runner_prepare(mgl_runner *self, const mgl_candidate *candidate)
{
    mgl_runner_state *runner = (mgl_runner_state *)self;
    if (!compiles(runner))
        return;
    char(*keys)[MGL_SHA256_HEX] = keys_of(runner, candidate);
    for (int p = 0; p < candidate->program_count; p++) {
        int i = is_known(runner, keys[p]) ? -1 : find_idle(runner);
        if (i >= 0)
            start_compiling(runner, i, candidate, p, keys[p]);
    }
}
