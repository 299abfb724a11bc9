/*
 * Implements the kernel session: transcript, work.json, lock, gates and duplicate check, versions.
 */
#include "autotune/kernels/sessions/kernel_session.h"

#include "autotune/kernels/gates/context.h"
#include "autotune/kernels/methods/duplicates.h"
#include "autotune/kernels/sessions/background.h"
#include "autotune/store/keeper.h"
#include "base/aliases.h"
#include "base/memory.h"
#include "base/system/lock.h"
#include "schedule/program.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MAX_WORK = 8 << 20 };

struct mgl_kernel_session {
    mgl_kernel_session_options options;
    char *all; /* owned: folder of all sessions */
    char folder[PATH_MAX];
    mgl_text context, known;
    char arch[32];
    mgl_versions *versions;
    mgl_gates gates;
    mgl_work work;
    mgl_pass_engine *engine; /* runs the open transformation; NULL: none */
    mgl_edit_span *span;     /* runs the open task; NULL: none */
    mgl_text instruction;
    mgl_kernel_region region;
    int logged;    /* calls in the transcript */
    int told;      /* calls since the session was opened */
    int evaluated; /* number (from 1) of the last call, since opening, whose text reached the gates;
                    * 0: none */
    int lock;      /* descriptor of the folder's lock file; -1: none */
    mgl_error log_error;
};

static const char schema[] = "megalith.work/1";

static mgl_status make_path(const mgl_kernel_session *b, const char *name, char path[PATH_MAX],
                            mgl_error *err)
{
    return mgl_file_path(path, err, "%s/%s", b->folder, name);
}

/* ---- the transcript -------------------------------------------------------------------------- */

static void put_call(const mgl_feedback_call *call, mgl_json_out *out)
{
    const mgl_reply *reply = call->reply;
    mgl_json_out_begin(out, "megalith.call/1");
    mgl_json_out_int(out, "call", call->number);
    mgl_trial_verdict_put(out, call->verdict);
    mgl_json_out_real(out, "temperature", call->temperature);
    mgl_json_out_int(out, "max_tokens", call->max_tokens);
    mgl_json_out_int(out, "tokens_in", reply->tokens_in);
    mgl_json_out_int(out, "tokens_out", reply->tokens_out);
    mgl_json_out_real(out, "seconds", reply->seconds);
    mgl_json_out_object(out, "fixups");
    for (int i = 0; i < MGL_FIXUP_COUNT; i++)
        if (call->fixups.uses[i])
            mgl_json_out_int(out, mgl_fixup_name((mgl_fixup)i), (int64_t)call->fixups.uses[i]);
    mgl_json_out_close_object(out);
    mgl_json_out_string(out, "request", call->request);
    mgl_json_out_text(out, "answer", reply->content.bytes ? reply->content.bytes : "",
                      reply->content.length);
    mgl_json_out_close(out);
    mgl_text_put(&out->text, "\n");
}

/* A write error of the transcript is kept and reported after the call. */
static void on_call(void *user, const mgl_feedback_call *call)
{
    mgl_kernel_session *b = user;
    mgl_json_out out = {0};
    char name[32], path[PATH_MAX];
    snprintf(name, sizeof name, "calls/%06d.json", b->logged + 1);
    mgl_status status = make_path(b, name, path, &b->log_error);
    if (!status) {
        put_call(call, &out);
        status = mgl_keeper_write(path, &out, &b->log_error);
    }
    b->logged += !status;
    b->told++;
}

static mgl_status count_calls(mgl_kernel_session *b, mgl_error *err)
{
    char path[PATH_MAX];
    mgl_file_list files = {0};
    mgl_status status = make_path(b, "calls", path, err);
    if (!status)
        status = mgl_folder_make(path, 0777, err);
    if (!status)
        status = mgl_folder_list(path, ".json", &files, err);
    for (size_t i = 0; i < files.count; i++) {
        int number = 0;
        if (sscanf(files.names[i], "%d", &number) == 1 && number > b->logged)
            b->logged = number;
    }
    mgl_file_list_clear(&files);
    return status;
}

/* ---- background of prompts ------------------------------------------------------------------- */

/* Writes the background of the prompts. `work`: a work starts from the branch's text, so the
 * background includes the verdicts of that text and of its parent, if they can be read. A script
 * engine and rounds change the text later, so they use no verdicts. */
static mgl_status put_known(mgl_kernel_session *b, bool work, mgl_error *err)
{
    mgl_background background = {
        .folder = b->all, .op = mgl_op_get(b->options.unit->op)->name, .arch = b->arch};
    mgl_version_record r = {0}, parent = {0};
    if (work && !mgl_versions_get(b->versions, NULL, &r, NULL) && !mgl_version_is_original(&r)) {
        background.after = r.verdict.facts;
        if (r.parent_count && !mgl_versions_get(b->versions, r.parents[0], &parent, NULL))
            background.before = parent.verdict.facts;
    }
    b->known.length = 0;
    mgl_status status = mgl_background_put(&background, &b->known, err);
    b->work.known = b->known.bytes;
    mgl_version_clear(&parent);
    mgl_version_clear(&r);
    return status;
}

/* ---- the open work --------------------------------------------------------------------------- */

static void close_work(mgl_kernel_session *b)
{
    mgl_pass_engine_close(b->engine);
    mgl_edit_span_close(b->span);
    mgl_text_clear(&b->instruction);
    b->engine = NULL;
    b->span = NULL;
}

static mgl_status open_task(mgl_kernel_session *b, const mgl_text *text, mgl_kernel_region region,
                            const char *instruction, mgl_error *err)
{
    b->region = region;
    mgl_text_put(&b->instruction, instruction);
    if (b->instruction.failed)
        return mgl_fail_memory(err, strlen(instruction));
    const mgl_edit_span_options options = {.work = &b->work,
                                           .text = text->bytes,
                                           .length = text->length,
                                           .instruction = b->instruction.bytes,
                                           .region = region};
    return mgl_edit_span_open(&options, &b->span, err);
}

static void put_work(const mgl_kernel_session *b, mgl_json_out *out)
{
    size_t length;
    mgl_json_out_begin(out, schema);
    mgl_json_out_string(out, "arch", b->arch);
    if (b->engine)
        mgl_pass_engine_write(b->engine, out, "pass_engine");
    else {
        mgl_json_out_string(out, "region", mgl_kernel_region_name(b->region));
        mgl_json_out_string(out, "instruction", b->instruction.bytes);
        const char *text = mgl_edit_span_before(b->span, &length);
        mgl_json_out_text(out, "text", text, length);
        mgl_feedback_write(mgl_edit_span_loop(b->span), out, "loop");
    }
    mgl_json_out_close(out);
    mgl_text_put(&out->text, "\n");
}

static mgl_status write_work(const mgl_kernel_session *b, mgl_error *err)
{
    mgl_json_out out = {0};
    char path[PATH_MAX];
    mgl_status status = make_path(b, "work.json", path, err);
    if (status)
        return status;
    put_work(b, &out);
    return mgl_keeper_write(path, &out, err);
}

static mgl_status remove_work(mgl_kernel_session *b, mgl_error *err)
{
    char path[PATH_MAX];
    mgl_status status = make_path(b, "work.json", path, err);
    close_work(b);
    if (!status && unlink(path) && errno != ENOENT)
        status = mgl_fail_path(err, path, "the work cannot be removed");
    return status;
}

static mgl_status read_pass_engine(mgl_kernel_session *b, const mgl_json *json, const cJSON *object,
                                   mgl_error *err)
{
    const char *name = NULL;
    mgl_text text = {0};
    mgl_status status = mgl_json_get_string(json, object, "transformation", true, &name, err);
    const mgl_transformation *t = status ? NULL : mgl_library_find(b->options.library, name);
    if (!status && !t)
        status =
            mgl_fail(err, MGL_BAD_INPUT, json->file,
                     "the open work is of the transformation '%.80s', which there is not", name);
    if (!status)
        status = mgl_kernel_session_text(b, &text, NULL, err);
    if (!status)
        status = mgl_pass_engine_open(&b->work, t, text.bytes, text.length, &b->engine, err);
    if (!status)
        status = mgl_pass_engine_read(b->engine, json, object, err);
    mgl_text_clear(&text);
    return status;
}

static mgl_status read_task(mgl_kernel_session *b, const mgl_json *json, mgl_error *err)
{
    const char *region = NULL, *instruction = NULL, *bytes = NULL;
    const cJSON *loop = NULL;
    mgl_kernel_region found = MGL_KERNEL_REGION_ANY;
    mgl_text text = {0};
    mgl_status status = mgl_json_get_string(json, json->root, "region", true, &region, err);
    if (!status)
        status = mgl_json_get_string(json, json->root, "instruction", true, &instruction, err);
    if (!status)
        status = mgl_json_get_string(json, json->root, "text", true, &bytes, err);
    if (!status)
        status = mgl_json_get_object(json, json->root, "loop", true, &loop, err);
    if (!status && !mgl_kernel_region_parse(region, &found))
        status = mgl_fail(err, MGL_BAD_INPUT, json->file, "there is no region '%.80s'", region);
    if (status)
        return status;
    mgl_text_put(&text, bytes);
    status = text.failed ? mgl_fail_memory(err, strlen(bytes))
                         : open_task(b, &text, found, instruction, err);
    mgl_text_clear(&text);
    return status ? status : mgl_feedback_read(mgl_edit_span_loop(b->span), json, loop, err);
}

static mgl_status read_tree(mgl_kernel_session *b, const mgl_json *json, mgl_error *err)
{
    const char *arch = NULL, *key = NULL;
    const cJSON *engine = NULL;
    mgl_status status = mgl_json_check_schema(json, schema, err);
    if (!status)
        status = mgl_json_get_string(json, json->root, "arch", true, &arch, err);
    if (!status && b->options.arch && strcmp(arch, b->options.arch) != 0)
        status = mgl_fail(err, MGL_USAGE, "--arch", "the open work is for %.31s", arch);
    if (status)
        return status;
    snprintf(b->arch, sizeof b->arch, "%s", arch);
    status = put_known(b, true, err);
    if (!status)
        status = mgl_alias_key(MGL_ALIAS_KEY, json, json->root, "", "pass_engine", &key, err);
    if (!status)
        status = mgl_json_get_object(json, json->root, key, false, &engine, err);
    if (!status && engine)
        return read_pass_engine(b, json, engine, err);
    return status ? status : read_task(b, json, err);
}

static mgl_status read_work(mgl_kernel_session *b, mgl_error *err)
{
    char path[PATH_MAX];
    mgl_json json = {0};
    bool stands = false;
    mgl_status status = make_path(b, "work.json", path, err);
    if (!status)
        status = mgl_file_stands(path, &stands, err);
    if (!status && stands)
        status = mgl_json_read_regular(path, MAX_WORK, &json, err);
    if (!status && stands)
        status = read_tree(b, &json, err);
    mgl_json_clear(&json);
    return status;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Writes the facts about the unit that the prompt contains. */
static mgl_status put_context(mgl_kernel_session *b, mgl_error *err)
{
    mgl_kernel_context *context = mgl_alloc_zero(1, sizeof *context);
    if (!context)
        return mgl_fail_memory(err, sizeof *context);
    mgl_status status = mgl_kernel_context_read(b->options.unit, context, err);
    if (!status) {
        mgl_text_format(&b->context,
                        "It computes: %s\n\nThe kernel has at most %lld registers a thread, spills "
                        "%lld bytes at most, and has %lld bytes of shared memory for it beside the "
                        "machine's own.",
                        context->meaning ? context->meaning : "see its first lines",
                        (long long)context->budget.registers, (long long)context->budget.spill,
                        (long long)context->budget.shared);
        mgl_kernel_context_clear(context);
    }
    mgl_free(context);
    return !status && b->context.failed ? mgl_fail_memory(err, 1) : status;
}

/* Seeds the delimiters from the unit's name only, so that a run can be replayed. */
static uint64_t seed_of(const char *name)
{
    mgl_digest digest = mgl_digest_text(name, strlen(name));
    uint64_t seed = 0;
    for (int i = 0; i < 16; i++)
        seed = seed * 31 + (uint64_t)digest.hex[i];
    return seed;
}

static mgl_status find_duplicate(const mgl_kernel_session *b, const char *text, size_t length,
                                 mgl_trial_verdict *out, mgl_error *err)
{
    mgl_text base = {0};
    mgl_duplicates known = {.unit = b->options.unit,
                            .versions = b->versions,
                            .arch = b->arch,
                            .compiles = !b->options.no_compile,
                            .has_device = b->options.device != NULL};
    mgl_status status = b->span ? MGL_OK : mgl_kernel_session_text(b, &base, NULL, err);
    known.base = base.bytes;
    known.base_length = base.length;
    if (b->span)
        known.base = mgl_edit_span_before(b->span, &known.base_length);
    if (!status)
        status = mgl_duplicates_find(&known, text, length, out, err);
    mgl_text_clear(&base);
    return status;
}

/* Evaluates a text. With an open work, a text with a known verdict skips the gates. A script engine
 * and rounds have no open work, so they evaluate a known text again. */
static mgl_status evaluate(void *user, const char *text, size_t length,
                           const mgl_kernel_value *values, int count, mgl_trial_verdict *out,
                           mgl_error *err)
{
    mgl_kernel_session *b = user;
    const mgl_evaluator gates = mgl_gates_evaluator(&b->gates);
    if (b->engine || b->span) {
        mgl_status status = find_duplicate(b, text, length, out, err);
        if (status || out->outcome == MGL_OUTCOME_DUPLICATE)
            return status;
    }
    b->evaluated = b->told + 1;
    return gates.evaluate(gates.user, text, length, values, count, out, err);
}

static void set_up(mgl_kernel_session *b)
{
    const mgl_kernel_session_options *o = &b->options;
    b->gates =
        (mgl_gates){.unit = o->unit,
                    .options = {.arch = b->arch, .no_compile = o->no_compile, .abort = o->abort},
                    .device = o->device};
    b->work = (mgl_work){.unit = o->unit->name,
                         .op = mgl_op_get(o->unit->op)->name,
                         .arch = b->arch,
                         .context = b->context.bytes,
                         .model = o->model,
                         .seed = seed_of(o->unit->name),
                         .evaluator = {evaluate, b},
                         .on_call = on_call,
                         .user = b};
}

/* Allows one process at a time. The lock is released when its owner ends for any reason. */
static mgl_status take_lock(mgl_kernel_session *b, mgl_error *err)
{
    char path[PATH_MAX];
    bool taken = false;
    mgl_status status = make_path(b, "lock", path, err);
    if (!status)
        status = mgl_lock_take(path, 0666, 0, &b->lock, &taken, err);
    if (!status && !taken)
        status = mgl_fail(err, MGL_USAGE, b->options.unit->name,
                          "another process works on this micro-kernel: wait for its end, or "
                          "take another --folder");
    return status;
}

/* Sets the folder of the session: FOLDER/UNIT, or the folder that a session made when the unit had
 * its first published name. */
static mgl_status find_folder(mgl_kernel_session *b, mgl_error *err)
{
    const char *name = b->options.unit->name;
    const char *published = mgl_alias_published(MGL_ALIAS_UNIT, name);
    bool stands = false;
    b->all = mgl_strdup(b->options.folder);
    mgl_status status = b->all ? mgl_file_path(b->folder, err, "%s/%s", b->all, published)
                               : mgl_fail_memory(err, strlen(b->options.folder));
    if (status || published == name)
        return status;
    status = mgl_file_stands(b->folder, &stands, err);
    return status || stands ? status : mgl_file_path(b->folder, err, "%s/%s", b->all, name);
}

mgl_status mgl_kernel_session_open(const mgl_kernel_session_options *options,
                                   mgl_kernel_session **out, mgl_error *err)
{
    mgl_kernel_session *b = *out = mgl_alloc_zero(1, sizeof *b);
    if (!b)
        return mgl_fail_memory(err, sizeof *b);
    size_t own_length;
    b->options = *options;
    b->lock = -1;
    snprintf(b->arch, sizeof b->arch, "%s", options->arch ? options->arch : "sm_90a");
    mgl_status status = find_folder(b, err);
    if (!status)
        status = mgl_versions_open(b->folder, options->reads, &b->versions, err);
    if (!status)
        mgl_versions_lend_original(b->versions, options->unit->name,
                                   mgl_kernel_unit_text(options->unit, &own_length));
    if (!status && !options->reads)
        status = take_lock(b, err);
    if (!status && !options->reads)
        status = count_calls(b, err);
    if (!status)
        status = put_context(b, err);
    if (!status) {
        set_up(b);
        status = read_work(b, err);
    }
    if (!status && !options->reads && !b->engine && !b->span)
        status = put_known(b, false, err);
    if (status) {
        mgl_kernel_session_close(b);
        *out = NULL;
    }
    return status;
}

void mgl_kernel_session_close(mgl_kernel_session *b)
{
    if (!b)
        return;
    close_work(b);
    mgl_versions_close(b->versions);
    if (b->lock >= 0)
        close(b->lock);
    mgl_free(b->all);
    mgl_text_clear(&b->context);
    mgl_text_clear(&b->known);
    mgl_free(b);
}

mgl_versions *mgl_kernel_session_versions(mgl_kernel_session *b)
{
    return b->versions;
}

const mgl_work *mgl_kernel_session_work(const mgl_kernel_session *b)
{
    return &b->work;
}

mgl_status mgl_kernel_session_text(const mgl_kernel_session *b, mgl_text *out, mgl_text *provides,
                                   mgl_error *err)
{
    mgl_version_record r = {0};
    mgl_status status = mgl_versions_get(b->versions, NULL, &r, err);
    mgl_text_put(out, status ? "" : r.text);
    if (!status && provides)
        mgl_text_put(provides, r.provides);
    mgl_version_clear(&r);
    return !status && out->failed ? mgl_fail_memory(err, 1) : status;
}

/* ---- works ----------------------------------------------------------------------------------- */

mgl_work_state mgl_kernel_session_state(const mgl_kernel_session *b)
{
    if (b->engine) {
        mgl_place place = mgl_pass_engine_place(b->engine);
        if (place.pass == place.transformation->pass_count) /* the transformation is done */
            return (mgl_work_state){.transformation = place.transformation,
                                    .calls = mgl_pass_engine_calls(b->engine)};
        const mgl_pass *pass = &place.transformation->passes[place.pass];
        return (mgl_work_state){.open = true,
                                .transformation = place.transformation,
                                .instruction = pass->instruction,
                                .region = pass->regions[place.region],
                                .pass = place.pass + 1,
                                .passes = place.transformation->pass_count,
                                .calls = mgl_pass_engine_calls(b->engine)};
    }
    if (!b->span)
        return (mgl_work_state){0};
    return (mgl_work_state){.open = true,
                            .instruction = b->instruction.bytes,
                            .region = b->region,
                            .calls = mgl_feedback_count(mgl_edit_span_loop(b->span))};
}

static mgl_status check_free(const mgl_kernel_session *b, mgl_error *err)
{
    return b->engine || b->span
               ? mgl_fail(err, MGL_USAGE, b->options.unit->name,
                          "a task is open: `megalith kernel submit` answers it, `megalith kernel "
                          "prompt --drop` gives it up")
               : MGL_OK;
}

static mgl_status check_open(const mgl_kernel_session *b, mgl_error *err)
{
    return b->engine || b->span
               ? MGL_OK
               : mgl_fail(err, MGL_USAGE, b->options.unit->name,
                          "no task is open: `megalith kernel prompt --transform NAME`, or --task, "
                          "begins one");
}

mgl_status mgl_kernel_session_begin_transformation(mgl_kernel_session *b,
                                                   const mgl_transformation *t, mgl_error *err)
{
    mgl_text text = {0};
    mgl_status status = check_free(b, err);
    if (!status && !mgl_transformation_suits(t, b->work.op, b->arch))
        status = mgl_fail(err, MGL_USAGE, t->name, "it is not for %s on %s", b->work.op, b->arch);
    if (!status)
        status = put_known(b, true, err);
    if (!status)
        status = mgl_kernel_session_text(b, &text, NULL, err);
    if (!status)
        status = mgl_pass_engine_open(&b->work, t, text.bytes, text.length, &b->engine, err);
    if (!status)
        status = write_work(b, err);
    mgl_text_clear(&text);
    return status;
}

mgl_status mgl_kernel_session_begin_task(mgl_kernel_session *b, mgl_kernel_region region,
                                         const char *instruction, mgl_error *err)
{
    mgl_text text = {0};
    mgl_status status = check_free(b, err);
    if (!status)
        status = put_known(b, true, err);
    if (!status)
        status = mgl_kernel_session_text(b, &text, NULL, err);
    if (!status)
        status = open_task(b, &text, region, instruction, err);
    if (!status)
        status = write_work(b, err);
    mgl_text_clear(&text);
    return status;
}

mgl_status mgl_kernel_session_drop(mgl_kernel_session *b, mgl_error *err)
{
    mgl_status status = check_open(b, err);
    return status ? status : remove_work(b, err);
}

mgl_status mgl_kernel_session_prompt(const mgl_kernel_session *b, bool body, mgl_text *out,
                                     mgl_error *err)
{
    mgl_status status = check_open(b, err);
    if (status)
        return status;
    if (b->engine)
        return (body ? mgl_pass_engine_body : mgl_pass_engine_prompt)(b->engine, out, err);
    return (body ? mgl_feedback_body : mgl_feedback_prompt)(mgl_edit_span_loop(b->span), out, err);
}

/* ---- end of a work --------------------------------------------------------------------------- */

/* Lists the property names that the text provides and the names that the transformation adds. */
static mgl_status join_provides(const mgl_kernel_session *b, mgl_text *out, mgl_error *err)
{
    mgl_text text = {0};
    mgl_status status = mgl_kernel_session_text(b, &text, out, err);
    const mgl_names *more =
        b->engine ? &mgl_pass_engine_place(b->engine).transformation->provides : NULL;
    for (int i = 0; more && i < more->count; i++)
        mgl_text_format(out, "%s%s", out->length ? " " : "", more->names[i]);
    mgl_text_clear(&text);
    return !status && out->failed ? mgl_fail_memory(err, 1) : status;
}

static mgl_status add_version(mgl_kernel_session *b, const char *text, mgl_work_end *out,
                              mgl_error *err)
{
    const mgl_transformation *t =
        b->engine ? mgl_pass_engine_place(b->engine).transformation : NULL;
    mgl_text provides = {0};
    mgl_status status = join_provides(b, &provides, err);
    mgl_version_record r = {.unit = b->work.unit,
                            .arch = b->arch,
                            .transformation = t ? t->name : "",
                            .note = t ? t->summary : b->instruction.bytes,
                            .provides = provides.bytes,
                            .text = text,
                            .verdict = out->verdict};
    for (int i = 0; t && i < t->tunable_count; i++)
        r.values[r.value_count++] =
            (mgl_kernel_value){t->tunables[i].name, t->tunables[i].values[0]};
    if (!status)
        status = mgl_versions_add(b->versions, &r, err);
    memcpy(out->version, r.id, sizeof out->version);
    mgl_text_clear(&provides);
    return status;
}

/* After each answer: the work continues, or ends with or without a new version. */
static mgl_status settle(mgl_kernel_session *b, mgl_work_end *out, mgl_error *err)
{
    const mgl_trial_verdict *verdict = b->engine
                                           ? mgl_pass_engine_verdict(b->engine)
                                           : mgl_feedback_verdict(mgl_edit_span_loop(b->span));
    mgl_status status = MGL_OK;
    size_t length;
    const char *text = b->engine ? mgl_pass_engine_state_of(b->engine) == MGL_PASS_ENGINE_DONE
                                       ? mgl_pass_engine_text(b->engine, &length)
                                       : NULL
                                 : mgl_edit_span_text(b->span, &length);
    if (verdict)
        out->verdict = *verdict;
    out->gates = b->told && b->evaluated == b->told ? &b->gates.last : NULL;
    out->calls = mgl_kernel_session_state(b).calls;
    out->ended = b->engine ? mgl_pass_engine_state_of(b->engine) != MGL_PASS_ENGINE_RUNNING
                           : mgl_feedback_ended(mgl_edit_span_loop(b->span));
    if (text)
        status = add_version(b, text, out, err);
    if (!status)
        status = out->ended ? remove_work(b, err) : write_work(b, err);
    if (!status && b->log_error.code)
        status = mgl_fail(err, b->log_error.code, b->log_error.where, "%s", b->log_error.message);
    return status;
}

static bool is_blank(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!isspace((unsigned char)text[i]))
            return false;
    return true;
}

mgl_status mgl_kernel_session_submit(mgl_kernel_session *b, const char *answer, size_t length,
                                     bool bare, mgl_work_end *out, mgl_error *err)
{
    mgl_reply reply = {.retry_after_s = -1};
    *out = (mgl_work_end){0};
    mgl_status status = check_open(b, err);
    if (!status && is_blank(answer, length))
        status = mgl_fail(err, MGL_BAD_INPUT, "the answer", "it is empty: no attempt is counted");
    if (!status && memchr(answer, 0, length)) /* a stored text must not contain a 0 byte */
        status = mgl_fail(err, MGL_BAD_INPUT, "the answer",
                          "it holds a byte 0, as no text does: no attempt is counted");
    if (bare) /* a fence longer than any fence in the text */
        mgl_text_put(&reply.content, "~~~~~~~~~~~~~~~~cuda\n");
    mgl_text_append(&reply.content, answer, length);
    if (bare)
        mgl_text_put(&reply.content, length && answer[length - 1] == '\n' ? "" : "\n");
    if (bare)
        mgl_text_put(&reply.content, "~~~~~~~~~~~~~~~~\n");
    if (!status && reply.content.failed)
        status = mgl_fail_memory(err, length);
    if (!status)
        status = b->engine ? mgl_pass_engine_take(b->engine, NULL, &reply, err)
                           : mgl_feedback_take(mgl_edit_span_loop(b->span), NULL, &reply, err);
    if (!status)
        status = settle(b, out, err);
    mgl_reply_clear(&reply);
    return status;
}

mgl_status mgl_kernel_session_run(mgl_kernel_session *b, mgl_model_client *model_client,
                                  const mgl_waiter *waiter, mgl_work_end *out, mgl_error *err)
{
    *out = (mgl_work_end){0};
    mgl_status status = check_open(b, err);
    if (!status)
        status = b->engine
                     ? mgl_pass_engine_run(b->engine, model_client, waiter, &out->stopped, err)
                     : mgl_feedback_run(mgl_edit_span_loop(b->span), model_client, waiter,
                                        &out->stopped, err);
    return status ? status : settle(b, out, err);
}
