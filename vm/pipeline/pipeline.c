/*
 * Lowers a graph to a program: converts a request to lowering options, and applies tuned entries.
 * The first tuned entry that fits the model, the device and the capacity is replayed and validated.
 * An entry that fails is noted in the report and the next entry is tried, so a bad entry costs only
 * speed. api/model.c, api/compile.c, api/schedule.c and verbs of the command line call it.
 */
#include "vm/pipeline/pipeline.h"

#include "base/format.h"
#include "schedule/tuned/tuned.h"
#include "vm/cuda/encode.h"
#include "vm/pipeline/machine_check.h"

#include <stdio.h>
#include <string.h>

enum { DEFAULT_CAPACITY = 4096 };

/* The target of mgl_pipeline_check_gpu: an H100. */
#define COMMON_GPU "sm_90a:132"

/* ---- options of lowering --------------------------------------------------------------------- */

/* Fails for a name that is no dtype. The name of a format of weights has its own remedy. */
static mgl_status fail_dtype(const char *name, mgl_error *err)
{
    static const struct {
        const char *name, *bits; /* as in `quantize --bits` */
    } weights[] = {{"int8", "8"}, {"int4", "4"}, {"fp8", "fp8"}};
    for (size_t i = 0; i < sizeof weights / sizeof *weights; i++)
        if (!strcmp(name, weights[i].name))
            return mgl_fail(err, MGL_USAGE, name,
                            "a format of weights, not of activations; `megalith quantize MODEL "
                            "--bits %s -o DIR` makes a model with such weights, and `megalith "
                            "bench MODEL --dtype %s` measures synthetic weights; supported: auto, "
                            "f32, bf16 and f16",
                            weights[i].bits, name);
    return mgl_fail(err, MGL_USAGE, name, "unknown dtype; supported: auto, f32, bf16 and f16");
}

/* The default is f32 on a CPU, and the dtype of the checkpoint on a GPU. */
static mgl_status choose_dtype(const mgl_graph *graph, const mgl_target *target, const char *name,
                               mgl_dtype *out, mgl_error *err)
{
    if (!name || !strcmp(name, "auto")) {
        *out = strcmp(target->arch, "cpu") ? graph->dtype : MGL_F32;
        return MGL_OK;
    }
    if (!mgl_dtype_parse(name, out) || *out == MGL_I32)
        return fail_dtype(name, err);
    return MGL_OK;
}

static int32_t most_positions(const mgl_graph *graph)
{
    return graph->max_positions < MGL_MAX_CAPACITY ? graph->max_positions : MGL_MAX_CAPACITY;
}

static mgl_status choose_capacity(const mgl_graph *graph, const mgl_lower_request *request,
                                  int *out, mgl_error *err)
{
    int32_t most = most_positions(graph);
    int32_t wanted = request->wanted ? request->wanted : DEFAULT_CAPACITY;
    if (request->capacity < 0 || wanted < 0)
        return mgl_fail(err, MGL_USAGE, "capacity", "is negative");
    if (request->capacity > most)
        return mgl_fail(err, MGL_BAD_INPUT, "capacity",
                        "%d positions are requested; the model has %d (%s)", (int)request->capacity,
                        (int)most, mgl_graph_limit_key(graph));
    *out = request->capacity ? request->capacity : wanted < most ? wanted : most;
    return MGL_OK;
}

static mgl_status read_config(const mgl_lower_request *request, mgl_schedule_config *out,
                              mgl_error *err)
{
    const char *text = request->config_text;
    mgl_schedule_config_default(out);
    if (text)
        return mgl_schedule_config_parse(text, strlen(text), "config_text", out, err);
    return request->config ? mgl_schedule_config_read(request->config, out, err) : MGL_OK;
}

mgl_status mgl_pipeline_options(const mgl_graph *graph, const mgl_target *target,
                                const mgl_lower_request *request, mgl_lower_options *out,
                                mgl_error *err)
{
    *out = (mgl_lower_options){.sequences = request->sequences ? request->sequences : 1,
                               .penalties = request->penalties,
                               .prompt = request->prompt,
                               .reply = request->reply};
    mgl_status status = choose_dtype(graph, target, request->dtype, &out->dtype, err);
    return status ? status : choose_capacity(graph, request, &out->capacity, err);
}

mgl_status mgl_pipeline_check_schedule(const char *schedule, const char *config, const char *dtype,
                                       int32_t capacity, mgl_error *err)
{
    const char *extra = !schedule                        ? NULL
                        : config                         ? "config"
                        : capacity                       ? "capacity"
                        : dtype && strcmp(dtype, "auto") ? "dtype"
                                                         : NULL;
    if (extra)
        return mgl_fail(err, MGL_USAGE, "schedule",
                        "states its own capacity and dtype and is not lowered; leave out %s",
                        extra);
    return MGL_OK;
}

/* Validates the program. Frees the program if it is rejected. */
static mgl_status prove(const mgl_graph *graph, mgl_program **program, mgl_error *err)
{
    mgl_status status = mgl_vm_check(*program, graph, err);
    if (status) {
        mgl_program_free(*program);
        *program = NULL;
    }
    return status;
}

mgl_status mgl_pipeline_lower(const mgl_graph *graph, const mgl_target *target,
                              const mgl_lower_request *request, mgl_program **out, mgl_error *err)
{
    *out = NULL;
    mgl_schedule_config config;
    mgl_lower_options options;
    mgl_status status = read_config(request, &config, err);
    if (request->rows)
        config.rows = request->rows;
    if (!status)
        status = mgl_pipeline_options(graph, target, request, &options, err);
    if (!status && request->fewer)
        options.sequences = mgl_schedule_fit_sequences(graph, target, &options, &config);
    if (!status)
        status = mgl_schedule_lower(graph, target, &options, &config, out, err);
    if (!status && !request->unproved)
        status = prove(graph, out, err);
    return status;
}

mgl_status mgl_pipeline_check_gpu(const mgl_graph *graph, mgl_error *err)
{
    const mgl_lower_request request = {.unproved = true};
    mgl_program *program = NULL;
    mgl_target target;
    mgl_status status = mgl_target_parse(COMMON_GPU, &target, err);
    if (!status)
        status = mgl_pipeline_lower(graph, &target, &request, &program, err);
    if (!status)
        status = mgl_check_machine(program, err);
    mgl_program_free(program);
    return status;
}

/* ---- tuned entries --------------------------------------------------------------------------- */

/* The inputs and outputs of the search for a tuned entry. */
typedef struct search {
    const mgl_graph *graph;
    const mgl_target *target;
    const mgl_lower_request *request;
    mgl_lower_options options; /* as requested */
    mgl_tuned_report *report;
    mgl_program **out;
} search;

static void add_lines(mgl_tuned_report *report, const char *lines)
{
    size_t length = strlen(report->note);
    snprintf(report->note + length, sizeof report->note - length, "%s%s", length ? "\n" : "",
             lines);
}

void mgl_tuned_report_describe(mgl_tuned_report *report, const mgl_graph *graph, int capacity)
{
    char line[256];
    if (graph->own_head)
        add_lines(report, "warning: tie_word_embeddings is true, but lm_head.weight is stored with "
                          "other values than the embedding: the stored head is used");
    if (mgl_graph_frequencies(graph, capacity) == graph->inv_freq)
        return;
    snprintf(line, sizeof line,
             "warning: longrope with a capacity of %d positions uses the long factors, also for "
             "shorter sequences; --capacity %d uses the short factors",
             capacity, (int)graph->short_positions);
    add_lines(report, line);
}

void mgl_tuned_report_add(mgl_tuned_report *report, const char *entry, const mgl_error *why)
{
    char line[512];
    mgl_format_into(line, sizeof line, "tuned entry %s is ignored: %s%s%.*s", entry, why->where,
                    why->where[0] ? ": " : "", (int)strcspn(why->message, "\n"), why->message);
    add_lines(report, line);
}

/* Tuned entries are not used with an explicit config or row count. */
static bool is_wanted(const mgl_lower_request *request)
{
    return !request->no_tuned && request->device && request->device[0] && !request->config &&
           !request->config_text && !request->rows;
}

/* The positions for which the entry fits: mgl_tuned_step of the capacity if the capacity is open,
 * or else the requested capacity; 0: the entry does not fit. */
static int choose_positions(const search *s, const mgl_tuned *entry)
{
    mgl_lower_options options = s->options;
    const int32_t step = mgl_tuned_step(options.capacity, most_positions(s->graph));
    bool open =
        !s->request->capacity && !s->request->exact &&
        mgl_graph_frequencies(s->graph, step) == mgl_graph_frequencies(s->graph, options.capacity);
    if (open)
        options.capacity = step;
    if (mgl_tuned_fits(entry, s->graph, s->target, s->request->device, &options))
        return options.capacity;
    bool fits = mgl_tuned_fits(entry, s->graph, s->target, s->request->device, &s->options);
    return fits ? s->options.capacity : 0;
}

/* Replays the entry and validates the program. */
static mgl_status make(const search *s, const mgl_tuned *entry, int positions, mgl_error *err)
{
    mgl_status status =
        mgl_tuned_replay(entry, s->graph, s->target, positions, s->options.penalties, s->out, err);
    if (!status)
        status = mgl_vm_check(*s->out, s->graph, err);
    if (!status && strcmp(s->target->arch, "cpu") != 0)
        status = mgl_cuda_check_program(*s->out, err);
    if (status) {
        mgl_program_free(*s->out);
        *s->out = NULL;
    }
    return status;
}

static mgl_status try_entry(const search *s, const mgl_tuned *entry, mgl_error *err)
{
    mgl_error why = {0};
    int positions = choose_positions(s, entry);
    mgl_status status = positions ? make(s, entry, positions, &why) : MGL_OK;
    if (status == MGL_NO_MEMORY && err)
        *err = why;
    if (!status || status == MGL_NO_MEMORY)
        return status;
    mgl_tuned_report_add(s->report, entry->name, &why);
    return MGL_OK;
}

static mgl_status try_all(const search *s, mgl_error *err)
{
    mgl_tuned_list list;
    mgl_text notes = {0};
    mgl_status status = mgl_tuned_load(&list, &notes, err);
    if (!status && notes.length)
        add_lines(s->report, notes.bytes);
    for (size_t i = 0; i < list.count && !status && !*s->out; i++)
        status = try_entry(s, &list.entries[i], err);
    mgl_tuned_list_clear(&list);
    mgl_text_clear(&notes);
    return status;
}

mgl_status mgl_pipeline_lower_tuned(const mgl_graph *graph, const mgl_target *target,
                                    const mgl_lower_request *request, mgl_program **out,
                                    mgl_tuned_report *report, mgl_error *err)
{
    search s = {graph, target, request, .report = report, .out = out};
    *out = NULL;
    *report = (mgl_tuned_report){0};
    mgl_status status = mgl_pipeline_options(graph, target, request, &s.options, err);
    report->capacity = s.options.capacity;
    if (!status)
        mgl_tuned_report_describe(report, graph, s.options.capacity);
    if (!status && is_wanted(request)) {
        mgl_schedule_config open; /* an entry replaces the default config */
        mgl_schedule_config_default(&open);
        if (request->fewer)
            s.options.sequences = mgl_schedule_fit_sequences(graph, target, &s.options, &open);
        status = try_all(&s, err);
    }
    return status || *out ? status : mgl_pipeline_lower(graph, target, request, out, err);
}
