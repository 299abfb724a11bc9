/*
 * Compiles a model to a file (mgl_model_compile): imports the folder, lowers and validates the
 * program, compiles its kernel and packs the weights. Without this file, mgl_model_open repeats
 * these steps at each start. `megalith compile` calls it.
 */
#include "api/cancel.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/format.h"
#include "base/memory.h"
#include "base/output.h"
#include "base/sized.h"
#include "base/text.h"
#include "importer/chat/chat.h"
#include "importer/checkpoint.h"
#include "importer/model_files.h"
#include "vm/cuda/cuda.h"
#include "vm/cuda/encode.h"
#include "vm/image.h"
#include "vm/pipeline/pipeline.h"

#include <stdio.h>
#include <string.h>

enum { MODEL_FILES = 7, MAX_FILE = 512 << 20 };

/* The files of the model that are copied to the compiled file, and whether each is required. */
static const struct model_file {
    const char *name;
    bool required;
} model_files[MODEL_FILES] = {{MGL_MEGA_CONFIG, true},     {MGL_MEGA_GENERATION, false},
                              {MGL_MEGA_TOKENIZER, false}, {MGL_MEGA_TOKENIZER_CONFIG, false},
                              {MGL_MEGA_TOKENS, false},    {MGL_MEGA_ADDED_TOKENS, false},
                              {MGL_MEGA_TEMPLATE, false}};

/* A compilation in progress. */
typedef struct compilation {
    const mgl_compile_options *options;
    const atomic_int *abort; /* the word of the options' switch; NULL: no switch */
    mgl_checkpoint *checkpoint;
    mgl_program *program;
    mgl_tuned_report tuned;
    mgl_cuda_image image;
    char key[MGL_SHA256_HEX];     /* of the image */
    char no_tokenizer[300];       /* why the tokenizer cannot be used, or "" */
    char *texts[MODEL_FILES + 1]; /* owned */
    mgl_image_file files[MODEL_FILES + 1];
    int file_count;
} compilation;

static mgl_status make_program(compilation *c, mgl_error *err)
{
    const mgl_compile_options *o = c->options;
    mgl_lower_request request = {.dtype = o->dtype,
                                 .config = o->config,
                                 .capacity = o->capacity,
                                 .sequences = o->sequences,
                                 .prompt = (int32_t)o->prompt,
                                 .penalties = o->penalties != 0,
                                 .no_tuned = o->no_tuned,
                                 .unproved = true};
    mgl_device machine;
    if (o->schedule)
        return mgl_schedule_read(o->schedule, &c->program, err);
    mgl_status status = mgl_target_find_device(o->target, &machine, err);
    request.device = machine.name;
    return status ? status
                  : mgl_pipeline_lower_tuned(c->checkpoint->graph, &machine.target, &request,
                                             &c->program, &c->tuned, err);
}

/* Rejects a program that mgl_model_open would reject. */
static mgl_status check_program(const compilation *c, mgl_error *err)
{
    const mgl_graph *graph = c->checkpoint->graph;
    mgl_status status = c->options->strict_formats ? mgl_vm_check_strict(c->program, graph, err)
                                                   : mgl_vm_check(c->program, graph, err);
    if (!status && strcmp(c->program->target.arch, "cpu") != 0)
        status = mgl_cuda_check_program(c->program, err);
    return status;
}

/* If there is no compiler, or the compiler does not support the target, the file gets no kernel.
 * The machine that runs the file compiles a kernel then. */
static mgl_status make_kernel(compilation *c, mgl_compile_report *out, mgl_error *err)
{
    mgl_error why = {0};
    mgl_cuda_watch watch = {c->abort, c->options->on_stage, c->options->stage_user};
    const char *arch = c->program->target.arch;
    if (!strcmp(arch, "cpu"))
        return MGL_OK;
    mgl_status status = mgl_cuda_compile(c->program, arch, 0, &watch, &c->image, &why);
    if (status == MGL_INTERRUPTED || status == MGL_NO_MEMORY || c->image.died) {
        if (err)
            *err = why;
        return status;
    }
    if (status) {
        mgl_format_into(out->note, sizeof out->note, "no kernel in the file: %.450s", why.message);
        return MGL_OK;
    }
    mgl_cuda_kernel_key(c->program, arch, 0, c->key);
    out->kernel = true;
    out->compile_s = c->image.compile_s;
    return MGL_OK;
}

static mgl_status read_file(compilation *c, const mgl_model_files *from,
                            const struct model_file *file, mgl_error *err)
{
    mgl_text path;
    mgl_image_file *to = &c->files[c->file_count];
    char **text = &c->texts[c->file_count];
    mgl_status status = mgl_model_files_read(from, file->name, MAX_FILE, file->required, &path,
                                             text, &to->length, err);
    if (*text) {
        to->name = file->name;
        to->bytes = *text;
        c->file_count++;
    }
    mgl_text_clear(&path);
    return status;
}

/* Packs the templates of additional_chat_templates as one section of the file. */
static mgl_status read_templates(compilation *c, mgl_error *err)
{
    mgl_image_file *to = &c->files[c->file_count];
    char **text = &c->texts[c->file_count];
    mgl_status status = mgl_chat_templates_pack(c->checkpoint->folder, text, &to->length, err);
    if (status || !*text)
        return status;
    to->name = MGL_MEGA_TEMPLATES;
    to->bytes = *text;
    c->file_count++;
    return MGL_OK;
}

/* Reports an unusable tokenizer here, before the file is run. */
static mgl_status check_tokenizer(compilation *c, mgl_error *err)
{
    mgl_tokenizer *tokenizer = NULL;
    mgl_error why = {0};
    mgl_status status = mgl_tokenizer_open(c->checkpoint->folder, &tokenizer, &why);
    mgl_tokenizer_close(tokenizer);
    if (status == MGL_BAD_INPUT) {
        mgl_format_into(c->no_tokenizer, sizeof c->no_tokenizer,
                        "the file accepts token ids only: %s: %s", why.where, why.message);
        return MGL_OK;
    }
    if (status && err)
        *err = why;
    return status;
}

static mgl_status read_files(compilation *c, mgl_error *err)
{
    bool has_tokenizer = false;
    mgl_model_files from;
    mgl_status status = mgl_model_files_open(c->checkpoint->folder, &from, err);
    for (int i = 0; i < MODEL_FILES && !status; i++)
        status = read_file(c, &from, &model_files[i], err);
    if (!status && !mgl_model_files_are_one(&from))
        status = read_templates(c, err);
    mgl_model_files_close(&from);
    if (!status)
        status = mgl_model_has_tokenizer(c->checkpoint->folder, &has_tokenizer, err);
    return status || !has_tokenizer ? status : check_tokenizer(c, err);
}

static mgl_status write_file(compilation *c, const char *to, mgl_compile_report *out,
                             mgl_error *err)
{
    mgl_vm_kernel kernel = {.arch = c->program->target.arch,
                            .key = c->key,
                            .bytes = c->image.bytes,
                            .length = c->image.length};
    mgl_image_content content = {.program = c->program,
                                 .graph = c->checkpoint->graph,
                                 .files = c->files,
                                 .file_count = c->file_count,
                                 .kernels = &kernel,
                                 .kernel_count = out->kernel,
                                 .abort = c->abort,
                                 .on_stage = c->options->on_stage,
                                 .stage_user = c->options->stage_user};
    double start = mgl_clock_s();
    mgl_status status = mgl_image_write(to, &content, &out->bytes, err);
    out->pack_s = mgl_clock_s() - start;
    return status;
}

static void fill_report(const compilation *c, mgl_compile_report *out)
{
    const mgl_program *program = c->program;
    snprintf(out->target, sizeof out->target, "%s:%d", program->target.arch,
             program->target.queues);
    out->dtype = mgl_dtype_name(program->weight_dtype);
    out->capacity = program->limits.capacity;
    out->sequences = program->limits.sequences;
    snprintf(out->tuned, sizeof out->tuned, "%s", program->tuned);
    snprintf(out->left_out, sizeof out->left_out, "%s", c->tuned.note);
    if (c->no_tokenizer[0]) {
        size_t used = strlen(out->note);
        mgl_format_into(out->note + used, sizeof out->note - used, "%s%s", used ? "\n" : "",
                        c->no_tokenizer);
    }
}

/* The output must not be a file that is read here. An output that cannot be written is reported
 * before the work starts. */
static mgl_status check_output(const compilation *c, const char *to, mgl_error *err)
{
    mgl_status status = mgl_checkpoint_check_output(c->checkpoint, to, err);
    if (!status)
        status = mgl_file_check_output(to, c->options->config, err);
    if (!status)
        status = mgl_file_check_output(to, c->options->schedule, err);
    return status ? status : mgl_output_check(to, err);
}

static mgl_status compile(compilation *c, const char *path, const char *to, mgl_compile_report *out,
                          mgl_error *err)
{
    const mgl_compile_options *o = c->options;
    mgl_status status =
        mgl_pipeline_check_schedule(o->schedule, o->config, o->dtype, o->capacity, err);
    if (!status)
        status = mgl_check_abort(c->abort, err);
    if (!status && o->schedule && (o->target || o->sequences))
        status = mgl_fail(err, MGL_USAGE, "schedule", "states its own %s; leave out %s",
                          o->target ? "target" : "sequences", o->target ? "target" : "sequences");
    if (!status && (o->prompt < 0 || o->prompt > INT32_MAX))
        status =
            mgl_fail(err, MGL_USAGE, "prompt", "must be a number of tokens from 0 to 2147483647");
    if (!status && o->schedule && o->prompt)
        status = mgl_fail(err, MGL_USAGE, "schedule",
                          "already contains its task lists; leave out prompt");
    if (!status && o->schedule && o->penalties)
        status = mgl_fail(err, MGL_USAGE, "schedule",
                          "already states whether penalties are compiled; leave out penalties");
    if (!status)
        status = mgl_import(path, &c->checkpoint, err);
    if (!status && !c->checkpoint->files)
        status = mgl_fail(err, MGL_BAD_INPUT, path,
                          "is a compiled file, whose weights are packed for its own schedule; "
                          "compile the model folder instead");
    if (!status)
        status = mgl_check_abort(c->abort, err);
    if (!status)
        status = check_output(c, to, err);
    if (!status)
        status = make_program(c, err);
    if (!status)
        status = mgl_check_abort(c->abort, err);
    if (!status)
        status = check_program(c, err);
    if (!status)
        status = read_files(c, err);
    if (!status)
        status = mgl_check_abort(c->abort, err);
    if (status)
        return status;
    fill_report(c, out);
    status = make_kernel(c, out, err);
    return status ? status : write_file(c, to, out, err);
}

mgl_status mgl_model_compile(const char *path, const mgl_compile_options *options, const char *to,
                             mgl_compile_report *out, mgl_error *err)
{
    mgl_compile_options known = {0};
    mgl_compile_report report = {0};
    compilation c = {.options = &known};
    if (!path || !to)
        return mgl_fail_null(err, __func__, path ? "to" : "path");
    mgl_status status =
        options ? mgl_sized_read(&known, sizeof known, options, "mgl_compile_options", err)
                : MGL_OK;
    if (!status && out)
        status = mgl_sized_check(out, sizeof out->size, "mgl_compile_report", err);
    c.abort = mgl_cancel_flag(known.cancel);
    if (!status)
        status = compile(&c, path, to, &report, err);
    if (!status && out)
        mgl_sized_write(out, &report, sizeof report);
    for (int i = 0; i < c.file_count; i++)
        mgl_free(c.texts[i]);
    mgl_cuda_image_clear(&c.image);
    mgl_program_free(c.program);
    mgl_checkpoint_close(c.checkpoint);
    return status;
}
