/*
 * megalith info MODEL: prints what a checkpoint or compiled model is, its size, its number formats,
 * its end tokens and the tuned entries for it. If Megalith cannot run the model, prints all
 * reasons.
 */
#include "cli/cli.h"
#include "cli/generate/tokenizer.h"

#include "autotune/answers/answer.h"
#include "base/format.h"
#include "base/json_out.h"
#include "base/memory.h"
#include "importer/checkpoint.h"
#include "schedule/tuned/tuned.h"
#include "vm/image.h"
#include "vm/pipeline/pipeline.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define INFO_OPTIONS(X) MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(INFO_OPTIONS)

static const char *architecture(const mgl_checkpoint *checkpoint)
{
    return checkpoint->architecture[0] ? checkpoint->architecture : "not named";
}

/* eos_token of tokenizer_config.json, which ends the replies of chats. */
typedef struct chat_end {
    char *text;        /* owned; NULL: none */
    int32_t id;        /* -1: the tokenizer has no such token */
    bool no_tokenizer; /* there is no usable tokenizer */
} chat_end;

static mgl_status find_chat_end(const mgl_checkpoint *checkpoint, chat_end *out, mgl_error *err)
{
    mgl_tokenizer *tokenizer = NULL;
    mgl_status status = mgl_end_token_read(checkpoint, &out->text, err);
    if (status || !out->text)
        return status;
    status = mgl_tokenizer_open(checkpoint->folder, &tokenizer, err);
    if (status && status != MGL_BAD_INPUT) /* the error is not about the tokenizer */
        return status;
    out->no_tokenizer = status != MGL_OK;
    if (!status)
        out->id = mgl_end_token_find(tokenizer, out->text);
    mgl_tokenizer_close(tokenizer);
    return MGL_OK;
}

/* Calls `put` for each file that contains an end token, or for the metadata of a GGUF file. */
static void put_sources(const mgl_checkpoint *checkpoint, unsigned char sources, bool chat,
                        void (*put)(void *to, const char *file), void *to)
{
    if (checkpoint->gguf) {
        put(to, "metadata");
        return;
    }
    if (sources & MGL_END_OF_GENERATION)
        put(to, "generation_config.json");
    if (sources & MGL_END_OF_CONFIG)
        put(to, "config.json");
    if (chat)
        put(to, "tokenizer_config.json");
}

static void print_source(void *first, const char *file)
{
    mgl_cli_printf("%s%s", *(bool *)first ? " (" : ", ", file);
    *(bool *)first = false;
}

static void print_end(const mgl_checkpoint *checkpoint, int32_t id, unsigned char sources,
                      bool chat, bool *any)
{
    bool first = true;
    mgl_cli_printf("%s%d", *any ? "; " : "", (int)id);
    put_sources(checkpoint, sources, chat, print_source, &first);
    mgl_cli_put(sources ? ")" : ", in chats only)");
    *any = true;
}

static bool is_in_vocabulary(const mgl_checkpoint *checkpoint, int32_t id)
{
    return id >= 0 && id < checkpoint->graph->geometry.vocab;
}

/* Prints an end id that cannot occur, because it is not in the model's vocabulary. */
static void print_beyond(const mgl_checkpoint *checkpoint, int32_t id, unsigned char sources,
                         bool chat)
{
    bool any = true;
    print_end(checkpoint, id, sources, chat, &any);
    mgl_cli_printf(" cannot occur: the model has the ids 0 to %d",
                   (int)checkpoint->graph->geometry.vocab - 1);
}

/* Prints the end ids that cannot occur, and a chat end token that has no id. */
static void print_unusable(const mgl_checkpoint *checkpoint, const chat_end *chat)
{
    const mgl_generation *generation = &checkpoint->generation;
    bool seen = !chat->text || chat->id < 0 || is_in_vocabulary(checkpoint, chat->id);
    for (size_t i = 0; i < generation->beyond_count; i++) {
        bool same = chat->text && chat->id >= 0 && generation->beyond_tokens[i] == chat->id;
        print_beyond(checkpoint, generation->beyond_tokens[i], generation->beyond_sources[i], same);
        seen |= same;
    }
    if (!seen)
        print_beyond(checkpoint, chat->id, 0, true);
    if (chat->text && chat->id < 0)
        mgl_cli_printf("; \"%s\" (tokenizer_config.json) has no id: %s", chat->text,
                       chat->no_tokenizer ? "the model has no usable tokenizer"
                                          : "the tokenizer has no such token");
}

static void print_ends(const mgl_checkpoint *checkpoint, const chat_end *chat)
{
    const mgl_generation *generation = &checkpoint->generation;
    bool any = false, seen = !chat->text || !is_in_vocabulary(checkpoint, chat->id);
    mgl_cli_printf("%-14s", "end tokens");
    for (size_t i = 0; i < generation->end_count; i++) {
        bool same = chat->text && generation->end_tokens[i] == chat->id;
        print_end(checkpoint, generation->end_tokens[i], generation->end_sources[i], same, &any);
        seen |= same;
    }
    if (!seen)
        print_end(checkpoint, chat->id, 0, true, &any);
    mgl_cli_put(any ? "" : "none");
    print_unusable(checkpoint, chat);
    mgl_cli_put("\n");
}

static void put_source(void *out, const char *file)
{
    mgl_json_out_string(out, NULL, file);
}

static void put_end(mgl_json_out *out, const mgl_checkpoint *checkpoint, int32_t id,
                    const char *token, unsigned char sources, bool chat)
{
    mgl_json_out_object(out, NULL);
    if (chat && id < 0)
        mgl_json_out_null(out, "id");
    else
        mgl_json_out_int(out, "id", id);
    if (chat)
        mgl_json_out_string(out, "token", token);
    mgl_json_out_array(out, "sources");
    put_sources(checkpoint, sources, chat, put_source, out);
    mgl_json_out_close_array(out);
    mgl_json_out_bool(out, "chat_only", !sources);
    mgl_json_out_bool(out, "in_vocabulary", is_in_vocabulary(checkpoint, id));
    mgl_json_out_close_object(out);
}

/* Writes a list of ids. Returns whether the end token of chats is in the list. */
static bool put_list(mgl_json_out *out, const mgl_checkpoint *checkpoint, const int32_t *ids,
                     const unsigned char *sources, size_t count, const chat_end *chat)
{
    bool seen = false;
    for (size_t i = 0; i < count; i++) {
        bool same = chat->text && chat->id >= 0 && ids[i] == chat->id;
        put_end(out, checkpoint, ids[i], chat->text, sources[i], same);
        seen |= same;
    }
    return seen;
}

static void put_ends(mgl_json_out *out, const mgl_checkpoint *checkpoint, const chat_end *chat)
{
    const mgl_generation *g = &checkpoint->generation;
    mgl_json_out_ids(out, "end_tokens", g->end_tokens, g->end_count);
    mgl_json_out_array(out, "end_token_sources");
    bool seen = put_list(out, checkpoint, g->end_tokens, g->end_sources, g->end_count, chat);
    seen |= put_list(out, checkpoint, g->beyond_tokens, g->beyond_sources, g->beyond_count, chat);
    if (chat->text && !seen)
        put_end(out, checkpoint, chat->id, chat->text, 0, true);
    mgl_json_out_close_array(out);
}

static void print_graph(const mgl_checkpoint *checkpoint, const chat_end *chat)
{
    const mgl_graph *graph = checkpoint->graph;
    for (int i = 0; i < MGL_GEOMETRY_FACT_COUNT; i++)
        mgl_cli_printf("%-14s%.7g\n", mgl_geometry_facts[i].name,
                       mgl_fact_value(&graph->geometry, &mgl_geometry_facts[i]));
    mgl_cli_printf("%-14s%d%s\n", "positions", (int)graph->max_positions,
                   graph->window ? " (the sliding window: sliding_window of config.json)" : "");
    if (graph->long_inv_freq)
        mgl_cli_printf("%-14slongrope: a cache of up to %d positions has the short factors, a "
                       "larger cache the long factors\n",
                       "rope", (int)graph->short_positions);
    mgl_cli_printf("%-14s%s\n", "dtype", mgl_dtype_name(graph->dtype));
    mgl_cli_printf("%-14s%d in use (--json lists them)\n", "tensors", graph->tensor_count);
    if (graph->tied)
        mgl_cli_printf("%-14s%s\n", "head",
                       "tied to the embedding; a GPU holds two copies of the table, one for the "
                       "head and one for the embedding; a CPU holds one");
    else
        mgl_cli_printf("%-14s%s\n", "head",
                       graph->own_head ? "stored with other values than the embedding, although "
                                         "tie_word_embeddings is true: the stored head is used"
                                       : "untied");
    print_ends(checkpoint, chat);
}

/* The tuned entries for models of this shape. */
typedef struct entries {
    mgl_tuned_list list;
    mgl_text notes;
} entries;

static mgl_status find_entries(const mgl_checkpoint *checkpoint, entries *out, mgl_error *err)
{
    mgl_status status = checkpoint->graph ? mgl_tuned_load(&out->list, &out->notes, err) : MGL_OK;
    size_t kept = 0;
    for (size_t i = 0; i < out->list.count; i++) {
        if (mgl_tuned_is_of(&out->list.entries[i], checkpoint->graph))
            out->list.entries[kept++] = out->list.entries[i];
        else
            mgl_tuned_clear(&out->list.entries[i]);
    }
    out->list.count = kept;
    return status;
}

static void clear_entries(entries *e)
{
    mgl_tuned_list_clear(&e->list);
    mgl_text_clear(&e->notes);
}

static void print_entries(const entries *e)
{
    for (size_t i = 0; i < e->list.count; i++) {
        const mgl_tuned *entry = &e->list.entries[i];
        mgl_cli_printf("%-14s%s: %s, %s:%d, %s, %d sequence%s, %d to %d positions%s\n", "tuned",
                       entry->name, entry->device, entry->target.arch, entry->target.queues,
                       mgl_dtype_name(entry->dtype), entry->sequences,
                       mgl_plural((size_t)entry->sequences), entry->capacity_lo, entry->capacity_hi,
                       entry->lowering == MGL_LOWERING_VERSION
                           ? ""
                           : "; not used: measured with another version of lowering");
    }
}

static void put_entries(mgl_json_out *out, const entries *e)
{
    mgl_json_out_array(out, "tuned");
    for (size_t i = 0; i < e->list.count; i++) {
        const mgl_tuned *entry = &e->list.entries[i];
        char target[32];
        snprintf(target, sizeof target, "%s:%d", entry->target.arch, entry->target.queues);
        mgl_json_out_object(out, NULL);
        mgl_json_out_string(out, "name", entry->name);
        mgl_json_out_string(out, "device", entry->device);
        mgl_json_out_string(out, "target", target);
        mgl_json_out_string(out, "dtype", mgl_dtype_name(entry->dtype));
        mgl_json_out_int(out, "sequences", entry->sequences);
        mgl_json_out_int(out, "capacity_lo", entry->capacity_lo);
        mgl_json_out_int(out, "capacity_hi", entry->capacity_hi);
        mgl_json_out_bool(out, "used", entry->lowering == MGL_LOWERING_VERSION);
        mgl_json_out_close_object(out);
    }
    mgl_json_out_close_array(out);
    mgl_json_out_string(out, "note", e->notes.bytes);
}

/* Prints what is fixed in a compiled model. */
static void print_image(const mgl_image *image)
{
    const mgl_program *program = image->program;
    const mgl_limits *limits = &program->limits;
    mgl_cli_printf("%-14sfor %s:%d, %s, %d positions, %d %s in a launch", "compiled",
                   program->target.arch, program->target.queues,
                   mgl_dtype_name(program->weight_dtype), limits->capacity, limits->sequences,
                   limits->sequences == 1 ? "reply" : "replies");
    if (program->second)
        mgl_cli_printf(", task lists of %d and %d rows", limits->rows, limits->second_rows);
    mgl_cli_put("; kernels:");
    for (int i = 0; i < image->kernel_count; i++)
        mgl_cli_printf(" %s", image->kernels[i].arch);
    mgl_cli_put(image->kernel_count ? "\n" : " none\n");
    if (program->tuned[0])
        mgl_cli_printf("%-14s%s\n", "tuned", program->tuned);
}

/* Finds the number formats: for a compiled model from the validator, else from the checkpoint. */
static mgl_status find_formats(const mgl_checkpoint *checkpoint, const mgl_image *image,
                               mgl_formats *out, mgl_error *err)
{
    const mgl_graph *graph = checkpoint->graph;
    mgl_verdict verdict = {0};
    *out = (mgl_formats){0};
    for (int i = 0; graph && i < graph->tensor_count; i++)
        if (!mgl_tensor_is_quantized(&graph->tensors[i]))
            out->checkpoint |= 1u << graph->tensors[i].dtype;
    if (!graph || !image)
        return MGL_OK;
    mgl_status status = mgl_validator_check(image->program, graph, &verdict, err);
    if (!status && verdict.formats.weights)
        *out = verdict.formats;
    mgl_verdict_clear(&verdict);
    return status;
}

/* The quantized matrices of one format. */
typedef struct kind {
    mgl_weight_format format;
    int count;
    uint64_t elements, bytes;
} kind;

/* Adds up the matrices with the format of `first`. Returns false if `first` is not quantized, or
 * not the first matrix of its format. */
static bool add_kind(const mgl_checkpoint *checkpoint, int first, kind *out)
{
    const mgl_graph *graph = checkpoint->graph;
    *out = (kind){.format = graph->tensors[first].quantized};
    if (!mgl_tensor_is_quantized(&graph->tensors[first]))
        return false;
    for (int i = 0; i < graph->tensor_count; i++) {
        const mgl_tensor *t = &graph->tensors[i];
        if (!mgl_weight_format_equal(t->quantized, out->format))
            continue;
        if (i < first)
            return false;
        out->count++;
        out->elements += (uint64_t)t->rows * (uint64_t)t->cols;
        out->bytes += mgl_tensor_bytes(t);
    }
    return true;
}

/* Prints a line for each format of quantized matrices. */
static void print_quantized(const mgl_checkpoint *checkpoint)
{
    char text[MGL_WEIGHT_FORMAT_TEXT];
    kind k;
    if (!checkpoint->graph || !checkpoint->quantized)
        return;
    for (int i = 0; i < checkpoint->graph->tensor_count; i++)
        if (add_kind(checkpoint, i, &k))
            mgl_cli_printf("%-14s%s: %d %s, %" PRIu64 " bytes, %.3f bits a weight\n", "quantized",
                           mgl_weight_format_print(k.format, text), k.count,
                           k.count == 1 ? "matrix" : "matrices", k.bytes,
                           8 * (double)k.bytes / (double)k.elements);
    int reordered = 0;
    for (int i = 0; i < checkpoint->graph->tensor_count; i++)
        reordered += checkpoint->graph->tensors[i].reordered;
    if (reordered)
        mgl_cli_printf("%-14s%d %s (g_idx): products gather their inputs in the order of the "
                       "columns, which is slower\n",
                       "reordered", reordered,
                       reordered == 1 ? "matrix has reordered columns"
                                      : "matrices have reordered columns");
    mgl_cli_printf("%-14s%s\n", "activations",
                   "not quantized; a checkpoint's scales of activations have no effect");
}

static void put_quantized(mgl_json_out *out, const mgl_checkpoint *checkpoint)
{
    char text[MGL_WEIGHT_FORMAT_TEXT];
    kind k;
    mgl_json_out_array(out, "quantized");
    for (int i = 0; i < checkpoint->graph->tensor_count; i++) {
        if (!add_kind(checkpoint, i, &k))
            continue;
        mgl_json_out_object(out, NULL);
        mgl_json_out_string(out, "format", mgl_weight_format_print(k.format, text));
        mgl_json_out_int(out, "matrices", k.count);
        mgl_json_out_int(out, "parameters", (int64_t)k.elements);
        mgl_json_out_int(out, "bytes", (int64_t)k.bytes);
        mgl_json_out_close_object(out);
    }
    mgl_json_out_close_array(out);
}

/* Whether a GPU can run the model. */
typedef struct gpu_check {
    bool is_known, supported; /* not known: a compiled model, or a model that is not supported */
    mgl_error why;            /* not supported: the reason */
} gpu_check;

static mgl_status check_gpu(const mgl_checkpoint *checkpoint, gpu_check *out, mgl_error *err)
{
    out->is_known = checkpoint->graph && checkpoint->files;
    const mgl_status status =
        out->is_known ? mgl_pipeline_check_gpu(checkpoint->graph, &out->why) : MGL_OK;
    if (status == MGL_NO_MEMORY && err)
        *err = out->why;
    out->supported = !status;
    return status == MGL_NO_MEMORY ? status : MGL_OK;
}

static void print_support(const mgl_checkpoint *checkpoint, const gpu_check *gpu, bool usable)
{
    const bool is_cpu_only = gpu->is_known && !gpu->supported;
    mgl_cli_printf("%-14s%s%s%s\n", "supported", checkpoint->reasons.count ? "no" : "yes",
                   is_cpu_only ? ", on a CPU only" : "",
                   checkpoint->reasons.count || usable ? ""
                                                       : ", with token ids only (see tokenizer)");
    for (size_t i = 0; i < checkpoint->reasons.count; i++)
        mgl_cli_printf("  %s: %s\n", checkpoint->reasons.items[i].where,
                       checkpoint->reasons.items[i].message);
    if (is_cpu_only)
        mgl_cli_printf("  %s: %.*s\n", gpu->why.where, (int)strcspn(gpu->why.message, "\n"),
                       gpu->why.message);
}

/* Writes the devices on which the model runs, and why a GPU is not one of them. */
static void put_support(mgl_json_out *out, const gpu_check *gpu)
{
    if (!gpu->is_known)
        return;
    mgl_json_out_array(out, "devices");
    mgl_json_out_string(out, NULL, "cpu");
    if (gpu->supported)
        mgl_json_out_string(out, NULL, "cuda");
    mgl_json_out_close_array(out);
    mgl_json_out_array(out, "cuda_reasons");
    if (!gpu->supported) {
        mgl_json_out_object(out, NULL);
        mgl_json_out_string(out, "where", gpu->why.where);
        mgl_json_out_string(out, "message", gpu->why.message);
        mgl_json_out_close_object(out);
    }
    mgl_json_out_close_array(out);
}

/* Prints the first names and the number of stored tensors that the model does not use. */
static void print_unused(const mgl_checkpoint *checkpoint)
{
    enum { SHOWN = 8 };
    mgl_cli_printf("%-14s%d stored %s the model does not use\n", "ignored", checkpoint->ignored,
                   checkpoint->ignored == 1 ? "tensor" : "tensors");
    for (int i = 0; i < checkpoint->ignored && i < SHOWN; i++)
        mgl_cli_printf("  %s\n", mgl_checkpoint_unused_name(checkpoint, i));
    if (checkpoint->ignored > SHOWN)
        mgl_cli_printf("  and %d more (all of them: --json)\n", checkpoint->ignored - SHOWN);
}

/* Prints where the bytes are, and the bytes of all tensors in the files if they differ: a file may
 * hold unused tensors, and parts of quantized matrices that the model does not need. */
static void print_files(const mgl_checkpoint *checkpoint)
{
    if (!checkpoint->files) {
        mgl_cli_put(" before they were packed\n");
        return;
    }
    if (checkpoint->stored_bytes != checkpoint->bytes)
        mgl_cli_printf("; stored: %" PRIu64, checkpoint->stored_bytes);
    if (checkpoint->gguf)
        mgl_cli_put(" in a GGUF file\n");
    else
        mgl_cli_printf(" in %d %s\n", checkpoint->files, checkpoint->files == 1 ? "file" : "files");
}

/* `image`: the compiled model, or NULL. */
static mgl_status print_text(const char *name, const mgl_checkpoint *checkpoint,
                             const mgl_image *image, const mgl_formats *formats,
                             const gpu_check *gpu, const entries *tuned, const chat_end *chat,
                             mgl_error *err)
{
    mgl_cli_printf("%-14s%s\n%-14s%s\n", "model", name, "architecture", architecture(checkpoint));
    if (checkpoint->graph)
        print_graph(checkpoint, chat);
    bool usable = false;
    mgl_status status = mgl_cli_print_tokenizer(checkpoint->folder, &usable, err);
    mgl_cli_printf("%-14s%" PRIu64 "\n%-14s%" PRIu64, "parameters", checkpoint->parameters, "bytes",
                   checkpoint->bytes);
    print_files(checkpoint);
    if (image)
        print_image(image);
    if (formats->checkpoint) {
        mgl_cli_printf("%-14s", "formats");
        mgl_cli_put_formats(formats);
    }
    print_quantized(checkpoint);
    print_entries(tuned);
    if (checkpoint->ignored)
        print_unused(checkpoint);
    print_support(checkpoint, gpu, usable);
    return status;
}

static void put_graph(mgl_json_out *out, const mgl_checkpoint *checkpoint, const chat_end *chat)
{
    const mgl_graph *graph = checkpoint->graph;
    mgl_json_out_object(out, "geometry");
    for (int i = 0; i < MGL_GEOMETRY_FACT_COUNT; i++) {
        const double value = mgl_fact_value(&graph->geometry, &mgl_geometry_facts[i]);
        if (mgl_geometry_facts[i].is_float)
            mgl_json_out_float(out, mgl_geometry_facts[i].name, (float)value);
        else
            mgl_json_out_int(out, mgl_geometry_facts[i].name, (int)value);
    }
    mgl_json_out_close_object(out);
    mgl_json_out_int(out, "max_positions", graph->max_positions);
    mgl_json_out_string(out, "dtype", mgl_dtype_name(graph->dtype));
    if (graph->window)
        mgl_json_out_int(out, "sliding_window", graph->window);
    if (graph->long_inv_freq)
        mgl_json_out_int(out, "longrope_short_positions", graph->short_positions);
    mgl_json_out_bool(out, "tied", graph->tied);
    /* A tied table is in memory twice: streamed as the head, and gathered as the embedding. */
    mgl_json_out_int(out, "embedding_copies", graph->tied ? 2 : 1);
    put_ends(out, checkpoint, chat);
}

/* Writes each tensor of the graph with the stored tensor that it is read from. */
static void put_tensors(mgl_json_out *out, const mgl_checkpoint *checkpoint)
{
    char text[MGL_WEIGHT_FORMAT_TEXT];
    put_quantized(out, checkpoint);
    mgl_json_out_array(out, "tensors");
    for (int i = 0; i < checkpoint->graph->tensor_count; i++) {
        const mgl_tensor *tensor = &checkpoint->graph->tensors[i];
        mgl_json_out_object(out, NULL);
        mgl_json_out_string(out, "name", tensor->name);
        mgl_json_out_string(out, "stored", mgl_checkpoint_stored_name(checkpoint, i));
        mgl_json_out_string(out, "dtype", mgl_weight_code_name(mgl_tensor_format(tensor).code));
        if (mgl_tensor_is_quantized(tensor))
            mgl_json_out_string(out, "format", mgl_weight_format_print(tensor->quantized, text));
        if (tensor->reordered)
            mgl_json_out_bool(out, "reordered", true);
        mgl_json_out_array(out, "shape");
        if (tensor->rank == 2)
            mgl_json_out_int(out, NULL, tensor->rows);
        mgl_json_out_int(out, NULL, tensor->cols);
        mgl_json_out_close_array(out);
        mgl_json_out_close_object(out);
    }
    mgl_json_out_close_array(out);
    mgl_json_out_array(out, "unused_tensors");
    for (int i = 0; i < checkpoint->ignored; i++)
        mgl_json_out_string(out, NULL, mgl_checkpoint_unused_name(checkpoint, i));
    mgl_json_out_close_array(out);
}

static void put_image(mgl_json_out *out, const mgl_image *image)
{
    const mgl_program *program = image->program;
    mgl_json_out_object(out, "compiled");
    mgl_json_out_string(out, "arch", program->target.arch);
    mgl_json_out_int(out, "queues", program->target.queues);
    mgl_json_out_string(out, "dtype", mgl_dtype_name(program->weight_dtype));
    mgl_json_out_int(out, "capacity", program->limits.capacity);
    mgl_json_out_int(out, "sequences", program->limits.sequences);
    mgl_json_out_int(out, "rows", program->limits.rows);
    mgl_json_out_int(out, "many", program->limits.second_rows);
    mgl_json_out_string(out, "tuned", program->tuned[0] ? program->tuned : NULL);
    mgl_json_out_array(out, "kernels");
    for (int i = 0; i < image->kernel_count; i++)
        mgl_json_out_string(out, NULL, image->kernels[i].arch);
    mgl_json_out_close_array(out);
    mgl_json_out_close_object(out);
}

static mgl_status print_json(const char *name, const mgl_checkpoint *checkpoint,
                             const mgl_image *image, const mgl_formats *formats,
                             const gpu_check *gpu, const entries *tuned, const chat_end *chat,
                             mgl_error *err)
{
    mgl_json_out out = {0};
    mgl_json_out_begin(&out, "megalith.info/1");
    mgl_json_out_string(&out, "model", name);
    mgl_json_out_string(&out, "architecture",
                        checkpoint->architecture[0] ? checkpoint->architecture : NULL);
    mgl_json_out_bool(&out, "supported", checkpoint->reasons.count == 0);
    mgl_json_out_array(&out, "reasons");
    for (size_t i = 0; i < checkpoint->reasons.count; i++) {
        mgl_json_out_object(&out, NULL);
        mgl_json_out_string(&out, "where", checkpoint->reasons.items[i].where);
        mgl_json_out_string(&out, "message", checkpoint->reasons.items[i].message);
        mgl_json_out_close_object(&out);
    }
    mgl_json_out_close_array(&out);
    put_support(&out, gpu);
    mgl_json_out_int(&out, "parameters", (int64_t)checkpoint->parameters);
    mgl_json_out_int(&out, "bytes", (int64_t)checkpoint->bytes);
    mgl_json_out_int(&out, "bytes_in_files", (int64_t)checkpoint->stored_bytes);
    mgl_json_out_int(&out, "files", checkpoint->files);
    mgl_json_out_int(&out, "ignored_tensors", checkpoint->ignored);
    if (checkpoint->graph)
        put_graph(&out, checkpoint, chat);
    if (checkpoint->graph)
        put_tensors(&out, checkpoint);
    if (image)
        put_image(&out, image);
    mgl_answer_formats(&out, formats);
    put_entries(&out, tuned);
    mgl_status status = mgl_cli_put_tokenizer(&out, checkpoint->folder, err);
    return mgl_cli_finish_json(&out, status);
}

static mgl_status info(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    mgl_checkpoint *checkpoint = NULL;
    mgl_image *image = NULL;
    mgl_formats formats;
    gpu_check gpu = {0};
    entries tuned = {0};
    chat_end chat = {.id = -1};
    mgl_status status = mgl_checkpoint_open(operand, &checkpoint, err);
    if (!status)
        status = find_chat_end(checkpoint, &chat, err);
    if (!status && !checkpoint->files)
        status = mgl_image_open(checkpoint->folder, &image, err);
    else if (!status) /* a compiled model is not lowered again */
        status = find_entries(checkpoint, &tuned, err);
    if (!status)
        status = find_formats(checkpoint, image, &formats, err);
    if (!status)
        status = check_gpu(checkpoint, &gpu, err);
    if (!status && o->json.given) {
        status = print_json(operand, checkpoint, image, &formats, &gpu, &tuned, &chat, err);
    } else if (!status) {
        mgl_cli_say_lines("info", tuned.notes.bytes);
        status = print_text(operand, checkpoint, image, &formats, &gpu, &tuned, &chat, err);
    }
    clear_entries(&tuned);
    mgl_free(chat.text);
    mgl_image_close(image);
    mgl_checkpoint_close(checkpoint);
    return status;
}

const mgl_cli_verb mgl_cli_info_verb = {
    .name = "info",
    .operand = "MODEL",
    .summary = "architecture, parameters, bytes, and what is supported and why not",
    .example = "  megalith info tests/models/tales-5m",
    MGL_CLI_VERB_OPTIONS,
    .run = info,
};
