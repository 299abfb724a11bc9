/*
 * Implements the VM interface (vm.h) for both machines: runs the validator, opens the requested
 * machine, exchanges its program, applies prefix caching, and checks results for NaN and infinity.
 * Launch code shared by the machines is in request.c.
 */
#include "vm/vm.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "schedule/step.h"
#include "validator/validator.h"
#include "vm/prefix.h"
#include "vm/weights.h"

/* MGL_REJECTED with the verdict's first diagnostic. */
static mgl_status refuse(const mgl_verdict *verdict, mgl_error *err)
{
    char where[64] = "";
    if (verdict->count == 0)
        return mgl_fail(err, MGL_REJECTED, NULL, "the validator rejected the schedule");
    const mgl_diagnostic *first = &verdict->diagnostics[0];
    if (first->line)
        snprintf(where, sizeof where, "line %d", first->line);
    if (!first->witness_count)
        return mgl_fail(err, MGL_REJECTED, where, "MG%03d: %s", first->code, first->message);
    return mgl_fail(err, MGL_REJECTED, where, "MG%03d: %s\n  %s", first->code, first->message,
                    first->witness[0]);
}

/* Combines the validator's status and verdict, and releases the verdict. */
static mgl_status take_verdict(mgl_status status, mgl_verdict *verdict, mgl_error *err)
{
    if (!status && !verdict->accepted)
        status = refuse(verdict, err);
    mgl_verdict_clear(verdict);
    return status;
}

mgl_status mgl_vm_check(const mgl_program *program, const mgl_graph *graph, mgl_error *err)
{
    mgl_verdict verdict = {0};
    mgl_status status = mgl_validator_check(program, graph, &verdict, err);
    return take_verdict(status, &verdict, err);
}

mgl_status mgl_vm_check_strict(const mgl_program *program, const mgl_graph *graph, mgl_error *err)
{
    mgl_verdict verdict = {0};
    mgl_status status = mgl_validator_check_strict(program, graph, &verdict, err);
    return take_verdict(status, &verdict, err);
}

/* Only test builds can open a machine without the validator. */
#ifdef MGL_TEST_BUILD
#define IS_UNCHECKED(of) ((of)->unchecked)
#else
#define IS_UNCHECKED(of) ((void)(of), false)
#endif

/* Checks the owner of the options, and that the program agrees with it on what they share. */
static mgl_status check_owner(const mgl_program *program, const mgl_graph *graph,
                              const mgl_vm_options *options, mgl_error *err)
{
    const mgl_vm *owner = options->owner;
    mgl_verdict verdict = {0};
    if (!owner)
        return MGL_OK;
    if (options->kind != MGL_VM_CUDA || owner->kind != MGL_VM_CUDA || owner->owner ||
        options->fill || options->weights)
        return mgl_fail(err, MGL_USAGE, NULL,
                        "the owner must be a CUDA machine with its own weights; the machine that "
                        "uses them must be a CUDA machine without `weights` and `fill`");
    mgl_status status = mgl_vm_check_usable(owner, err);
    if (status || IS_UNCHECKED(options))
        return status;
    status = mgl_validator_check_pair(program, owner->program, graph, &verdict, err);
    return take_verdict(status, &verdict, err);
}

mgl_status mgl_vm_open(const mgl_program *program, const mgl_graph *graph,
                       const mgl_vm_options *options, mgl_vm **out, mgl_error *err)
{
    *out = NULL;
    double start = mgl_clock_s();
    mgl_status status = mgl_check_abort(options->abort, err);
    if (!status && !IS_UNCHECKED(options))
        status = options->strict_formats ? mgl_vm_check_strict(program, graph, err)
                                         : mgl_vm_check(program, graph, err);
    if (!status)
        status = check_owner(program, graph, options, err);
    double check_s = mgl_clock_s() - start;
    if (!status)
        status = mgl_check_abort(options->abort, err);
    if (status)
        return status;
    if (options->fill && options->kind != MGL_VM_CUDA)
        return mgl_fail(err, MGL_USAGE, NULL, "only the CUDA machine has weights made in place");
    if (options->kind == MGL_VM_CUDA && !IS_UNCHECKED(options) &&
        !strcmp(program->target.arch, "cpu"))
        return mgl_fail(
            err, MGL_BAD_INPUT, "target",
            "the schedule is for a CPU, whose weights lie otherwise; lower or compile the "
            "model for the GPU" MGL_HINT_CPU);
    if (options->weights && options->weights->program != program)
        return mgl_fail(err, MGL_USAGE, NULL, "the weights were packed for another program");
    status = options->kind == MGL_VM_CUDA ? mgl_vm_cuda_open(program, graph, options, out, err)
                                          : mgl_vm_cpu_open(program, graph, options, out, err);
    if (!status && !options->owner && (status = mgl_prefix_open(&(*out)->prefix, program, err))) {
        mgl_vm_close(*out);
        *out = NULL;
    }
    if (status)
        return status;
    (*out)->kind = options->kind;
    (*out)->check_s = check_s;
    if ((*out)->owner)
        (*out)->owner->users++;
#ifdef MGL_TEST_BUILD
    (*out)->unchecked = options->unchecked;
#endif
    return MGL_OK;
}

void mgl_vm_close(mgl_vm *vm)
{
    if (!vm)
        return;
    MGL_ASSERT(vm->users == 0);
    if (vm->owner) {
        vm->owner->users--;
        if (vm->owner->reader == vm)
            vm->owner->reader = NULL;
    }
    mgl_prefix_close(&vm->prefix);
    vm->close(vm);
}

/* ---- exchange ------------------------------------------------------------------------------- */

static bool same_limits(const mgl_limits *a, const mgl_limits *b)
{
    return a->rows == b->rows && a->sequences == b->sequences && a->capacity == b->capacity;
}

/* Whether every tensor that both programs use has the same format. */
static bool same_formats(const mgl_program *a, const mgl_program *b)
{
    bool same = a->weight_dtype == b->weight_dtype && a->embedding_dtype == b->embedding_dtype &&
                a->exchange_dtype == b->exchange_dtype && a->kv_dtype == b->kv_dtype;
    for (int i = 0; i < a->tensor_count && same; i++)
        for (int j = 0; j < b->tensor_count && same; j++)
            same = mgl_weight_format_equal(a->tensors[i].format, b->tensors[j].format) ||
                   strcmp(a->tensors[i].checkpoint, b->tensors[j].checkpoint) != 0;
    return same;
}

static mgl_status check_pair(const mgl_program *old, const mgl_program *program, mgl_error *err)
{
    const char *what = strcmp(old->target.arch, program->target.arch) != 0       ? "architecture"
                       : !mgl_geometry_equal(&old->geometry, &program->geometry) ? "geometry"
                       : !same_limits(&old->limits, &program->limits)            ? "limits"
                       : !same_formats(old, program)                             ? "formats"
                                                                                 : NULL;
    if (!what)
        return MGL_OK;
    return mgl_fail(err, MGL_BAD_INPUT, what,
                    "the program cannot replace the machine's program: its %s differ"
                    "; open a machine for it",
                    what);
}

mgl_status mgl_vm_exchange(mgl_vm *vm, const mgl_program *program, const mgl_graph *graph,
                           mgl_error *err)
{
    mgl_status status = mgl_vm_check_usable(vm, err);
    double start = mgl_clock_s();
    if (!status && (vm->owner || vm->users > 0))
        status = mgl_fail(err, MGL_USAGE, NULL,
                          "machines that share weights keep their programs: close the machines "
                          "with an owner first");
    if (!status && !IS_UNCHECKED(vm))
        status = mgl_vm_check(program, graph, err);
    double check_s = mgl_clock_s() - start;
    if (!status)
        status = check_pair(vm->program, program, err);
    if (!status) {
        mgl_prefix_forget(&vm->prefix);
        status = vm->exchange(vm, program, graph, err);
    }
    if (!status)
        vm->check_s = check_s;
    return status;
}

/* ---- checks for NaN and infinity ------------------------------------------------------------ */

static mgl_status fail_number(const mgl_vm *vm, const mgl_vm_request *request, int sequence,
                              int position, mgl_error *err)
{
    char where[32] = "";
    if (request->count > 1)
        snprintf(where, sizeof where, "sequence %d", sequence);
    return mgl_fail(
        err, MGL_BAD_INPUT, where,
        "the likelihood of the token at position %d is not a number: the model computes "
        "values too large for %s; check the checkpoint, or take another dtype",
        position, mgl_dtype_name(vm->program->weight_dtype));
}

/* First scored position of a sequence whose log-probability is NaN or infinite; 0: none. */
static int find_bad_score(const mgl_vm_sequence *sequence, const float *score)
{
    const int end = sequence->start + sequence->prompt_count;
    for (int i = sequence->start + 1; sequence->mode == MGL_VM_SCORE && i < end; i++)
        if (!isfinite(score[i]))
            return i;
    return 0;
}

/* Fails if a sampled or scored value is NaN or infinite. */
static mgl_status check_numbers(const mgl_vm *vm, const mgl_vm_request *request,
                                const mgl_vm_report *report, mgl_error *err)
{
    for (int s = 0; s < request->count; s++) {
        const mgl_vm_sequence *sequence = &request->sequences[s];
        int position = find_bad_score(sequence, report->score[s]);
        if (report->state[s] == MGL_STATE_NOT_A_NUMBER)
            position = sequence->start + sequence->prompt_count + report->produced[s];
        if (position > 0)
            return fail_number(vm, request, s, position, err);
    }
    return MGL_OK;
}

/* Runs a launch and records what it leaves in the cache. After an error, nothing is known of the
 * cache. */
static mgl_status run(mgl_vm *vm, const mgl_vm_request *request, mgl_vm_report *out, mgl_error *err)
{
    mgl_status status = vm->run(vm, request, out, err);
    if (!status)
        status = check_numbers(vm, request, out, err);
    if (status)
        mgl_prefix_forget(mgl_prefix_of(vm));
    else
        mgl_prefix_note(mgl_prefix_of(vm), vm->program, request->sequences, request->count, out);
    return status;
}

/* ---- the reader ----------------------------------------------------------------------------- */

void mgl_vm_set_reader(mgl_vm *vm, mgl_vm *reader, int32_t least)
{
    MGL_ASSERT(!reader || reader->owner == vm);
    vm->reader = reader;
    vm->least = least;
}

/* Whether the reader reads the prompt of a request. The tokens before the prompt must precede it in
 * memory, because then the tokens before its last token do too. */
static bool is_for_reader(const mgl_vm *vm, const mgl_vm_request *request)
{
    const mgl_vm_sequence *s = request->sequences;
    if (!vm->reader || request->count != 1 || s->mode != MGL_VM_GENERATE || !s->prompt ||
        s->prompt_count <= vm->least || s->prompt_count < 2)
        return false;
    const int64_t end = (int64_t)s->start + s->prompt_count + s->max_new;
    return s->start >= 0 && end <= vm->program->limits.capacity && s->before_output == 0 &&
           s->before_count == s->start &&
           (s->before_count == 0 || s->before + s->before_count == s->prompt);
}

/* Reads the prompt, except its last token, in a launch of the reader, and adjusts *sequence. */
static mgl_status read_prompt(mgl_vm *vm, const mgl_vm_request *request, mgl_vm_sequence *sequence,
                              mgl_vm_report *out, mgl_error *err)
{
    const int32_t count = sequence->prompt_count - 1;
    const mgl_vm_sequence first = {.mode = MGL_VM_FILL,
                                   .prompt = sequence->prompt,
                                   .prompt_count = count,
                                   .start = sequence->start};
    const mgl_vm_request reading = {.sequences = &first,
                                    .count = 1,
                                    .abort = request->abort,
                                    .on_stage = request->on_stage,
                                    .stage_user = request->stage_user};
    sequence->before = sequence->prompt - sequence->start;
    sequence->start += count;
    sequence->before_count = sequence->start;
    sequence->prompt += count;
    sequence->prompt_count = 1;
    return run(vm->reader, &reading, out, err);
}

/* Adds the costs of an earlier launch of the request. */
static void add_launch(mgl_vm_report *to, const mgl_vm_report *earlier)
{
    to->launches += earlier->launches;
    to->epochs += earlier->epochs;
    to->prefill_s += earlier->prefill_s + earlier->decode_s;
    to->device_s += earlier->device_s;
}

mgl_status mgl_vm_run(mgl_vm *vm, const mgl_vm_request *request, mgl_vm_report *out, mgl_error *err)
{
    mgl_vm_sequence rests[MGL_MAX_SEQUENCES];
    int32_t reused[MGL_MAX_SEQUENCES] = {0};
    mgl_vm_request rest = *request;
    mgl_vm_report read = {0};
    mgl_status status = mgl_vm_check_usable(vm, err);
    bool fits = request->count <= MGL_MAX_SEQUENCES; /* otherwise the machine reports the
                                                        error */
    for (int s = 0; !status && fits && s < request->count; s++) {
        rests[s] = request->sequences[s];
        reused[s] = mgl_prefix_skip(mgl_prefix_of(vm), vm->program, s, &rests[s]);
        rest.sequences = rests;
    }
    if (!status && is_for_reader(vm, &rest))
        status = read_prompt(vm, &rest, rests, &read, err);
    *out = read; /* all of the result if the prompt was not read to its end */
    if (!status && (read.launches == 0 || read.state[0] == MGL_STATE_LENGTH)) {
        status = run(vm, &rest, out, err);
        add_launch(out, &read);
    }
    if (!status)
        memcpy(out->reused, reused, sizeof reused);
    return status;
}

mgl_status mgl_vm_get_logits(mgl_vm *vm, float *logits, mgl_error *err)
{
    mgl_status status = mgl_vm_check_usable(vm, err);
    return status ? status : vm->get_logits(vm, logits, err);
}

void mgl_vm_get_facts(const mgl_vm *vm, mgl_vm_facts *out)
{
    vm->get_facts(vm, out);
    out->check_s = vm->check_s;
}
