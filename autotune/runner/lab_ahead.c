/*
 * Compiling ahead: a kernel that a candidate will want is made while others are measured, by a
 * worker that needs no device, into the cache where the executor finds it. What comes while all
 * compilers are busy is compiled when it is wanted.
 */
#include "autotune/runner/lab_state.h"

#include "base/clock.h"
#include "base/memory.h"
#include "vm/cuda/cache.h"
#include "vm/cuda/cuda.h"

#include <stdio.h>
#include <string.h>

static const double compile_limit_s = MGL_LAB_COMPILE_S;

static void retire(mgl_lab_state *lab, int i)
{
    mgl_process_close(lab->compilers[i].process);
    lab->compilers[i].process = NULL;
    lab->compilers[i].key[0] = 0;
}

void mgl_lab_end_compilers(mgl_lab_state *lab)
{
    for (int i = 0; i < lab->lab.compilers; i++)
        retire(lab, i);
}

/* Takes the reply of a compiler. What it could not compile, the executor will say. */
static mgl_status take_reply(mgl_lab_state *lab, int i, mgl_error *err)
{
    mgl_answer answer;
    mgl_status status = mgl_process_await(lab->compilers[i].process, 0, &answer, err);
    mgl_answer_clear(&answer);
    if (!status)
        mgl_lab_note_kernel(lab, lab->compilers[i].key);
    lab->compilers[i].key[0] = 0;
    if (!mgl_process_lives(lab->compilers[i].process))
        retire(lab, i);
    return status;
}

mgl_status mgl_lab_await_kernel(mgl_lab_state *lab, const char *key, mgl_error *err)
{
    const double began = mgl_clock_s();
    for (int i = 0; i < lab->lab.compilers; i++) {
        if (!lab->compilers[i].process || strcmp(lab->compilers[i].key, key) != 0)
            continue;
        mgl_status status = take_reply(lab, i, err);
        mgl_lab_note_wait(lab, MGL_REQUEST_COMPILE, began);
        return status;
    }
    return MGL_OK;
}

/* A compiler that has nothing to do; -1: none. */
static int find_idle(mgl_lab_state *lab)
{
    int idle = -1;
    for (int i = 0; i < lab->lab.compilers; i++) {
        if (lab->compilers[i].key[0] && mgl_process_has_reply(lab->compilers[i].process))
            take_reply(lab, i, NULL);
        if (!lab->compilers[i].key[0])
            idle = i;
    }
    return idle;
}

static bool is_compiled(const mgl_lab_state *lab, const char *key)
{
    for (size_t i = 0; i < lab->ready_count; i++)
        if (!strcmp(lab->ready[i], key))
            return true;
    return false;
}

/* What can not be removed stays: a campaign looks at the disk itself. A kernel that is removed
 * before it is used is compiled again. */
static void trim(const mgl_lab_state *lab)
{
    uint64_t left;
    if (lab->kernels && lab->options.kernel_bytes)
        mgl_cuda_cache_trim(lab->kernels, lab->options.kernel_bytes, &left, NULL);
}

/* One that is not noted for want of memory is looked for again: it is in the cache. */
void mgl_lab_note_kernel(mgl_lab_state *lab, const char *key)
{
    if (is_compiled(lab, key) ||
        !mgl_grow((void **)&lab->ready, &lab->ready_capacity, lab->ready_count, sizeof *lab->ready))
        return;
    memcpy(lab->ready[lab->ready_count++], key, MGL_SHA256_HEX);
    trim(lab);
}

static bool is_known(const mgl_lab_state *lab, const char *key)
{
    if (is_compiled(lab, key))
        return true;
    for (int i = 0; i < lab->lab.compilers; i++)
        if (!strcmp(lab->compilers[i].key, key))
            return true;
    return false;
}

static void start_compiling(mgl_lab_state *lab, int i, const mgl_candidate *candidate, int program,
                            const char *key)
{
    mgl_wire_set fixed;
    mgl_lab_set set;
    mgl_text bytes = {0};
    if (!lab->compilers[i].process &&
        mgl_lab_start_worker(lab, MGL_COMPILER, &lab->compilers[i].process, NULL))
        return;
    if (mgl_lab_set_make(lab->options.subject, candidate, 0, &set, NULL))
        return;
    if (!mgl_lab_set_write(&set, program, &fixed, &bytes, NULL)) {
        snprintf(fixed.arch, sizeof fixed.arch, "%s", lab->options.subject->target.arch);
        const mgl_question question = {.kind = MGL_REQUEST_COMPILE,
                                       .fixed = &fixed,
                                       .bytes = bytes.bytes,
                                       .fixed_length = sizeof fixed,
                                       .length = bytes.length,
                                       .limit_s = compile_limit_s};
        if (!mgl_process_post(lab->compilers[i].process, &question, NULL))
            memcpy(lab->compilers[i].key, key, MGL_SHA256_HEX);
    }
    mgl_text_clear(&bytes);
    mgl_lab_set_clear(&set);
}

/* The keys of a candidate's kernels, one a program. Texts in the place of sources are no part of
 * its digest. Good until the next call. */
static char (*keys_of(mgl_lab_state *lab, const mgl_candidate *candidate))[MGL_SHA256_HEX]
{
    const bool named = candidate->digest[0] && candidate->source_count == 0;
    for (int i = 0; i < MGL_LAB_KEYS && named; i++)
        if (!strcmp(lab->keys[i].digest, candidate->digest))
            return lab->keys[i].keys;
    const int i = lab->next_keys;
    lab->next_keys = (i + 1) % MGL_LAB_KEYS;
    memcpy(lab->keys[i].digest, named ? candidate->digest : "", named ? MGL_SHA256_HEX : 1);
    for (int p = 0; p < candidate->program_count; p++)
        mgl_lab_kernel_key(candidate, p, lab->options.subject->target.arch, lab->keys[i].keys[p]);
    return lab->keys[i].keys;
}

/* Whether candidates need a compiled kernel: target and device are a GPU. The CPU machine runs a
 * program for a GPU without a kernel. */
static bool compiles(const mgl_lab_state *lab)
{
    return strcmp(lab->options.subject->target.arch, "cpu") != 0 && strcmp(lab->device, "cpu") != 0;
}

bool mgl_lab_is_ready(mgl_lab *self, const mgl_candidate *candidate)
{
    mgl_lab_state *lab = (mgl_lab_state *)self;
    bool ready = true;
    find_idle(lab); /* takes the replies that are there */
    if (!compiles(lab))
        return true;
    char(*keys)[MGL_SHA256_HEX] = keys_of(lab, candidate);
    for (int p = 0; p < candidate->program_count; p++)
        ready &= is_compiled(lab, keys[p]);
    return ready;
}

void mgl_lab_prepare(mgl_lab *self, const mgl_candidate *candidate)
{
    mgl_lab_state *lab = (mgl_lab_state *)self;
    if (!compiles(lab))
        return;
    char(*keys)[MGL_SHA256_HEX] = keys_of(lab, candidate);
    for (int p = 0; p < candidate->program_count; p++) {
        int i = is_known(lab, keys[p]) ? -1 : find_idle(lab);
        if (i >= 0)
            start_compiling(lab, i, candidate, p, keys[p]);
    }
}
