/*
 * Implements the machine check with the limits of vm/cuda, and the lookup of diagnostic and warning
 * codes. See machine_check.h.
 */
#include "vm/pipeline/machine_check.h"

#include "base/memory.h"
#include "base/text.h"
#include "vm/cuda/cuda.h"
#include "vm/cuda/encode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- codes ----------------------------------------------------------------------------------- */

enum { CANNOT_RUN = 801 };

/* The warnings. The codes are stable, like those of validator/codes.def. */
static const mgl_code_info warnings[] = {
    {CANNOT_RUN, "the machine of the target cannot run the schedule",
     "The schedule is proved safe, but the CUDA machine of its target has no code for one of the "
     "tasks, or lacks a resource. `run` and `bench` reject the schedule on that machine. This is a "
     "warning: the exit code of `check` is 0.",
     "attend_rows.flash with a head_dim of 48; a stage that is larger than the shared memory of a "
     "block",
     "Change the task or the number that the message names; `megalith lower` with the same target "
     "prints a schedule that the machine can run."}};
enum { WARNINGS = sizeof warnings / sizeof *warnings };

const mgl_code_info *mgl_get_code(int index)
{
    int count;
    const mgl_code_info *codes = mgl_validator_codes(&count);
    if (index < count)
        return &codes[index];
    return index - count < WARNINGS ? &warnings[index - count] : NULL;
}

const mgl_code_info *mgl_find_code(int code)
{
    for (int i = 0; i < WARNINGS; i++)
        if (warnings[i].code == code)
            return &warnings[i];
    return mgl_validator_explain(code);
}

bool mgl_is_warning_code(int code)
{
    return code == CANNOT_RUN;
}

/* ---- the check ------------------------------------------------------------------------------- */

mgl_status mgl_check_machine(const mgl_program *program, mgl_error *err)
{
    const mgl_target *target = &program->target;
    if (!strcmp(target->arch, "cpu"))
        return MGL_OK;
    mgl_status status = mgl_cuda_check_program(program, err);
    size_t shared = status ? 0 : mgl_cuda_shared_bytes(program);
    if (!status && shared > (size_t)target->shared_bytes)
        return mgl_fail(err, MGL_BAD_INPUT, "shared memory",
                        "%zu bytes for each block; the target has %lld", shared,
                        (long long)target->shared_bytes);
    return status;
}

/* The task of a line of the text; -1: none. */
static int find_task(const mgl_program *program, int line)
{
    for (int t = 0; t < program->task_count && line > 0; t++)
        if (program->tasks[t].line == line)
            return t;
    return -1;
}

/* Formats the reason in one line, with err->where unless it is a line of the text. */
static char *make_message(const mgl_program *program, const mgl_error *why, bool placed)
{
    static const char lead[] = "the CUDA machine cannot run this task: ";
    const char *reason = why->message;
    if (!strncmp(reason, lead, sizeof lead - 1))
        reason += sizeof lead - 1;
    mgl_text text = {0};
    mgl_text_format(&text,
                    "the CUDA machine of %s cannot run the schedule: ", program->target.arch);
    if (!placed && why->where[0])
        mgl_text_format(&text, "%s: ", why->where);
    mgl_text_append(&text, reason, strcspn(reason, "\n"));
    if (text.failed)
        mgl_text_clear(&text);
    return text.bytes;
}

mgl_status mgl_machine_warn(const mgl_program *program, mgl_verdict *verdict, mgl_error *err)
{
    mgl_error why = {0};
    if (!verdict->accepted)
        return MGL_OK;
    mgl_status status = mgl_check_machine(program, &why);
    if (status == MGL_NO_MEMORY && err)
        *err = why;
    if (!status || status == MGL_NO_MEMORY)
        return status;
    const int line = strncmp(why.where, "line ", 5) ? 0 : atoi(why.where + 5);
    char *message = make_message(program, &why, line > 0);
    mgl_diagnostic *warning = message ? mgl_alloc_zero(1, sizeof *warning) : NULL;
    if (!warning) {
        mgl_free(message);
        return mgl_fail_memory(err, sizeof *warning);
    }
    *warning = (mgl_diagnostic){.code = CANNOT_RUN,
                                .line = line,
                                .task = find_task(program, line),
                                .message = message,
                                .warning = true};
    mgl_free(verdict->diagnostics); /* an accepted program has none */
    verdict->diagnostics = warning;
    verdict->count = 1;
    return MGL_OK;
}
