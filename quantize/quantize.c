/*
 * Quantizes a checkpoint into a new folder. See quantize.h.
 */
#include "quantize/quantize.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "importer/layout.h"
#include "importer/model_files.h"
#include "quantize/calibrate/calibrate.h"
#include "quantize/declare.h"
#include "quantize/write.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum { MAX_FILE = 512 << 20 };

static const char *const methods[] = {
#define MGL_X(id, name, meaning) name,
    MGL_QUANTIZE_METHODS(MGL_X)
#undef MGL_X
};

const char *mgl_quantize_method_name(mgl_quantize_method method)
{
    return methods[method];
}

bool mgl_quantize_method_parse(const char *name, mgl_quantize_method *out)
{
    for (int i = 0; i < MGL_METHOD_COUNT; i++)
        if (!strcmp(name, methods[i]))
            return *out = (mgl_quantize_method)i, true;
    return false;
}

/* The files that are copied if the model has them. */
static const char *const copied[] = {"generation_config.json",
                                     "tokenizer.json",
                                     "tokenizer_config.json",
                                     "special_tokens_map.json",
                                     "added_tokens.json",
                                     "tokenizer.model",
                                     "vocab.json",
                                     "merges.txt",
                                     "chat_template.jinja",
                                     "chat_template.json",
                                     "preprocessor_config.json",
                                     "processor_config.json",
                                     "LICENSE",
                                     "LICENSE.txt",
                                     "NOTICE"};
enum { COPIED = sizeof copied / sizeof *copied };

/* A file of the new folder. */
typedef struct new_file {
    char *path;         /* owned */
    mgl_output *output; /* NULL: it has its name, or was not opened */
    bool named;
} new_file;

/* A quantization in progress. */
typedef struct job {
    const mgl_quantize_request *request;
    const char *folder;
    mgl_checkpoint *checkpoint;
    mgl_safetensors *files;
    mgl_quantize_plan plan;
    mgl_results *results; /* owned; NULL: no calibration */
    new_file *written;    /* owned (count), in the order in which they get their names */
    size_t count, capacity;
    bool made_folder, made_templates; /* the folder, and its folder of chat templates */
} job;

/* ---- the new folder -------------------------------------------------------------------------- */

/* Whether the folder has only the finished layers of an earlier run. */
static bool is_unfinished(const mgl_file_list *list)
{
    return list->count == 1 && !strcmp(list->names[0], MGL_QUANTIZE_UNFINISHED);
}

/* Checks that the folder does not exist, is empty or can be continued, and creates it. */
static mgl_status make_folder(job *j, mgl_error *err)
{
    struct stat facts;
    bool stands;
    mgl_file_list list = {0};
    mgl_status status = mgl_file_look(j->folder, &stands, &facts, err);
    if (status)
        return status;
    if (!stands) {
        status = mgl_folder_make(j->folder, 0777, err);
        j->made_folder = !status;
        return status;
    }
    if (!S_ISDIR(facts.st_mode))
        return mgl_fail(err, MGL_BAD_INPUT, j->folder, "is not a folder; give a new folder");
    status = mgl_folder_list(j->folder, "", &list, err);
    if (!status && is_unfinished(&list) && !j->results)
        status = mgl_fail(err, MGL_BAD_INPUT, j->folder,
                          "the folder holds the unfinished work of another command: %s; use that "
                          "command again, or give a new folder",
                          list.names[0]);
    else if (!status && list.count && !is_unfinished(&list))
        status =
            mgl_fail(err, MGL_BAD_INPUT, j->folder,
                     "the folder is not empty: it has %.80s; give a new folder", list.names[0]);
    mgl_file_list_clear(&list);
    return status;
}

/* Opens a file of the new folder. */
static mgl_status open_file(job *j, const char *name, mgl_error *err)
{
    mgl_text path;
    if (!mgl_grow((void **)&j->written, &j->capacity, j->count, sizeof *j->written))
        return mgl_fail_memory(err, sizeof *j->written);
    mgl_status status = mgl_path_join(j->folder, name, &path, err);
    if (status) {
        mgl_text_clear(&path);
        return status;
    }
    new_file *file = &j->written[j->count++];
    *file = (new_file){.path = path.bytes};
    return mgl_output_open(file->path, &file->output, err);
}

static mgl_status add_file(job *j, const char *name, const char *bytes, size_t length,
                           mgl_error *err)
{
    mgl_status status = open_file(j, name, err);
    return status ? status
                  : mgl_output_write(j->written[j->count - 1].output, 0, bytes, length, err);
}

/* Asks the caller whether the work goes on. */
static mgl_status check_step(const job *j, mgl_error *err)
{
    const uint64_t bytes = mgl_quantize_bytes(&j->plan, j->request);
    return j->request->step ? j->request->step(j->request->user, bytes, bytes, err) : MGL_OK;
}

/* Gives all files their names. Between two files, the caller can end the work: no file is left. */
static mgl_status name_files(job *j, mgl_error *err)
{
    mgl_status status = MGL_OK;
    for (size_t i = 0; i < j->count && !status; i++) {
        status = check_step(j, err);
        if (status)
            break;
        mgl_output *output = j->written[i].output;
        j->written[i].output = NULL;
        j->written[i].named = true;
        status = mgl_output_finish(output, err);
    }
    return status;
}

/* Discards the files, and removes what has a name. */
static void remove_files(job *j)
{
    mgl_text templates;
    for (size_t i = 0; i < j->count; i++) {
        mgl_output_abandon(j->written[i].output);
        j->written[i].output = NULL;
        if (j->written[i].named)
            unlink(j->written[i].path);
    }
    if (j->made_templates && !mgl_path_join(j->folder, MGL_TEMPLATES_FOLDER, &templates, NULL)) {
        rmdir(templates.bytes);
        mgl_text_clear(&templates);
    }
    if (j->results && !mgl_results_any(j->results))
        mgl_results_remove(j->results);
    if (j->made_folder)
        rmdir(j->folder); /* fails if finished layers are left */
}

/* ---- small files ----------------------------------------------------------------------------- */

static mgl_status copy_file(job *j, const mgl_model_files *from, const char *name, mgl_error *err)
{
    mgl_text path;
    char *bytes;
    size_t length;
    mgl_status status =
        mgl_model_files_read(from, name, MAX_FILE, false, &path, &bytes, &length, err);
    if (!status && bytes)
        status = add_file(j, name, bytes, length, err);
    mgl_free(bytes);
    mgl_text_clear(&path);
    return status;
}

/* Copies the additional chat templates. */
static mgl_status copy_templates(job *j, const mgl_model_files *from, mgl_error *err)
{
    mgl_text source, target = {0}, name;
    mgl_file_list list = {0};
    mgl_status status = mgl_path_join(from->path, MGL_TEMPLATES_FOLDER, &source, err);
    if (!status)
        status = mgl_folder_list(source.bytes, ".jinja", &list, err);
    if (!status && list.count) {
        status = mgl_path_join(j->folder, MGL_TEMPLATES_FOLDER, &target, err);
        if (!status)
            status = mgl_folder_make(target.bytes, 0777, err);
        j->made_templates = !status;
    }
    for (size_t i = 0; i < list.count && !status; i++) {
        status = mgl_path_join(MGL_TEMPLATES_FOLDER, list.names[i], &name, err);
        if (!status)
            status = copy_file(j, from, name.bytes, err);
        mgl_text_clear(&name);
    }
    mgl_file_list_clear(&list);
    mgl_text_clear(&source);
    mgl_text_clear(&target);
    return status;
}

static mgl_status write_config(job *j, const mgl_model_files *from, mgl_error *err)
{
    mgl_text path, config = {0};
    char *text;
    size_t length;
    mgl_status status =
        mgl_model_files_read(from, MGL_MEGA_CONFIG, MAX_FILE, true, &path, &text, &length, err);
    if (!status)
        status =
            mgl_quantize_put_config(&j->plan, j->request, text, length, path.bytes, &config, err);
    if (!status)
        status = add_file(j, MGL_MEGA_CONFIG, config.bytes, config.length, err);
    mgl_text_clear(&config);
    mgl_text_clear(&path);
    mgl_free(text);
    return status;
}

static mgl_status write_index(job *j, mgl_error *err)
{
    mgl_text index = {0};
    if (j->plan.file_count == 1)
        return MGL_OK;
    mgl_status status = mgl_quantize_put_index(&j->plan, &index, err);
    if (!status)
        status = add_file(j, MGL_SAFETENSORS_INDEX, index.bytes, index.length, err);
    mgl_text_clear(&index);
    return status;
}

/* All files but the safetensors files. A folder without config.json is no model, so config.json
 * gets its name last. */
static mgl_status write_small_files(job *j, mgl_error *err)
{
    const mgl_model_files from = {.path = j->checkpoint->folder};
    mgl_status status = write_index(j, err);
    for (size_t i = 0; i < COPIED && !status; i++)
        status = copy_file(j, &from, copied[i], err);
    if (!status)
        status = copy_templates(j, &from, err);
    return status ? status : write_config(j, &from, err);
}

/* ---- weights --------------------------------------------------------------------------------- */

static uint64_t planned_bytes(const job *j)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < j->plan.count; i++)
        bytes += j->plan.tensors[i].bytes;
    return bytes;
}

static mgl_status check_disk(const job *j, mgl_error *err)
{
    uint64_t available = 0;
    const uint64_t bytes = planned_bytes(j);
    mgl_status status = mgl_disk_free(j->folder, &available, err);
    if (!status && available < bytes)
        status = mgl_fail(err, MGL_SYSTEM, j->folder,
                          "the disk has %" PRIu64 " free bytes, and the weights need %" PRIu64
                          "; free space or give another folder",
                          available, bytes);
    return status;
}

static mgl_status write_weights(job *j, mgl_error *err)
{
    char name[MGL_SHARD_NAME];
    const int count = j->plan.file_count;
    mgl_status status = check_disk(j, err);
    mgl_output **outputs = mgl_alloc_zero((size_t)count, sizeof(mgl_output *));
    if (!status && !outputs)
        status = mgl_fail_memory(err, (size_t)count * sizeof(mgl_output *));
    for (int i = 0; i < count && !status; i++) {
        mgl_quantize_shard_name(&j->plan, i, name);
        status = open_file(j, name, err);
        if (!status)
            outputs[i] = j->written[j->count - 1].output;
    }
    if (!status)
        status = mgl_quantize_write(&j->plan, outputs, j->request, j->results, err);
    mgl_free(outputs);
    return status;
}

/* ---- the model ------------------------------------------------------------------------------- */

/* Codes are never rounded a second time. */
static mgl_status check_model(const mgl_checkpoint *checkpoint, mgl_error *err)
{
    if (!checkpoint->files)
        return mgl_fail(err, MGL_BAD_INPUT, checkpoint->folder,
                        "is a compiled file; give the folder that it was compiled from");
    bool is_folder;
    mgl_status status = mgl_folder_stands(checkpoint->folder, &is_folder, err);
    if (status)
        return status;
    if (!is_folder)
        return mgl_fail(err, MGL_BAD_INPUT, checkpoint->folder,
                        "is a GGUF file, which `quantize` does not read; give the model in Hugging "
                        "Face layout");
    if (checkpoint->quantized)
        return mgl_fail(err, MGL_BAD_INPUT, checkpoint->folder,
                        "the model is quantized already: %d matrices; give the original model",
                        checkpoint->quantized);
    return MGL_OK;
}

static mgl_status open_model(job *j, const char *path, mgl_error *err)
{
    mgl_status status = mgl_import(path, &j->checkpoint, err);
    if (!status)
        status = check_model(j->checkpoint, err);
    if (!status)
        status = mgl_safetensors_open(j->checkpoint->folder, &j->files, err);
    if (!status)
        status = mgl_quantize_plan_make(j->checkpoint, j->files, j->request, &j->plan, err);
    if (status || !mgl_calibrate_applies(j->request))
        return status;
    return mgl_results_open(&j->plan, j->request, j->folder, &j->results, err);
}

/* Finds the formats, and with calibration the codes of all matrices. */
static mgl_status find_codes(job *j, mgl_error *err)
{
    mgl_status status = MGL_OK;
    if (j->results && j->request->bits_per_weight > 0)
        status = mgl_calibrate_choose(&j->plan, j->request, j->results, err);
    if (!status)
        status = mgl_quantize_plan_list(&j->plan, j->request, err);
    return status || !j->results ? status : mgl_calibrate(&j->plan, j->request, j->results, err);
}

static void fill_report(const job *j, mgl_quantize_report *report)
{
    *report = (mgl_quantize_report){
        .written = planned_bytes(j), .files = j->plan.file_count, .untied = j->plan.untied};
    for (size_t i = 0; i < j->files->tensors.count; i++) {
        const mgl_stored_tensor *t = &j->files->tensors.items[i];
        const mgl_planned_source *s = &j->plan.sources[i];
        report->read += t->bytes;
        report->matrices += s->quantized;
        report->wide += s->quantized && !s->is_head && s->format.code != j->request->layers.code;
        if (!s->quantized)
            continue;
        report->weights += (uint64_t)(t->shape[0] * t->shape[1]);
        report->codes += mgl_matrix_bytes(s->format, t->shape[0], t->shape[1]);
    }
}

static void clear(job *j)
{
    mgl_results_close(j->results);
    mgl_quantize_plan_clear(&j->plan);
    mgl_safetensors_close(j->files);
    mgl_checkpoint_close(j->checkpoint);
    for (size_t i = 0; i < j->count; i++)
        mgl_free(j->written[i].path);
    mgl_free(j->written);
}

mgl_status mgl_quantize(const char *path, const mgl_quantize_request *request, const char *folder,
                        mgl_quantize_report *report, mgl_error *err)
{
    mgl_quantize_request timed = *request;
    timed.deadline_s = request->time_limit_s > 0 ? mgl_clock_s() + request->time_limit_s : 0;
    job j = {.request = &timed, .folder = folder};
    mgl_status status = open_model(&j, path, err);
    if (!status)
        status = make_folder(&j, err);
    if (!status)
        status = find_codes(&j, err);
    if (!status)
        status = write_weights(&j, err);
    if (!status)
        status = write_small_files(&j, err);
    if (!status)
        status = name_files(&j, err);
    if (status)
        remove_files(&j);
    else
        fill_report(&j, report);
    if (!status && j.results)
        mgl_results_remove(j.results);
    clear(&j);
    return status;
}
