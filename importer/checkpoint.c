/*
 * Builds the graph of a folder or a compiled model: reads config.json, opens the tensors, compares
 * them with the graph (compare.h), and binds them.
 */
#include "importer/checkpoint.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "importer/compare.h"
#include "importer/layout.h"
#include "importer/model_files.h"
#include "importer/quantized/compiled.h"
#include "importer/quantized/read.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MAX_CONFIG = 16 * 1000 * 1000 };

/* The state of graph->read. */
typedef struct source {
    mgl_safetensors *files;   /* owned */
    mgl_view *views;          /* owned (graph tensor_count): where each is stored */
    mgl_quantized *quantized; /* owned (graph tensor_count): of quantized tensors */
    int tensor_count;         /* of the graph; 0: `quantized` is not allocated */
    bool *used;               /* owned (stored tensors): the graph uses at least a part of it */
} source;

static void close_source(void *reader)
{
    source *s = reader;
    for (int i = 0; i < s->tensor_count; i++)
        mgl_free(s->quantized[i].order);
    mgl_safetensors_close(s->files);
    mgl_free(s->views);
    mgl_free(s->quantized);
    mgl_free(s->used);
    mgl_free(s);
}

/* Reads elements of a tensor of rank 1 that is stored as F64, converted to F32. */
static mgl_status read_wide(const mgl_safetensors *files, int stored, int64_t first, int64_t count,
                            float *to, mgl_error *err)
{
    enum { CHUNK = 256 };
    double values[CHUNK];
    mgl_status status = MGL_OK;
    for (int64_t at = 0; at < count && !status; at += CHUNK) {
        const int64_t some = count - at < CHUNK ? count - at : CHUNK;
        status = mgl_safetensors_read(files, stored, (size_t)(first + at) * sizeof *values,
                                      (size_t)some * sizeof *values, values, err);
        for (int64_t i = 0; i < some && !status; i++)
            to[at + i] = (float)values[i];
    }
    return status;
}

static mgl_status check_rows(const mgl_tensor *t, int64_t row, int64_t count, mgl_error *err)
{
    if (row < 0 || count < 0 || row > t->rows || count > t->rows - row)
        return mgl_fail(err, MGL_USAGE, t->name,
                        "%" PRId64 " rows from row %" PRId64 " of a tensor of %" PRId64 " rows",
                        count, row, t->rows);
    return MGL_OK;
}

static mgl_status read_codes(const mgl_graph *graph, int tensor, int64_t row, int64_t count,
                             const mgl_quantized_rows *to, mgl_error *err)
{
    const mgl_tensor *t = &graph->tensors[tensor];
    const source *s = graph->reader;
    mgl_status status = check_rows(t, row, count, err);
    if (!status && !mgl_tensor_is_quantized(t))
        status = mgl_fail(err, MGL_USAGE, t->name, "the tensor is not quantized; use `read`");
    return status ? status
                  : mgl_quantized_read_codes(s->files, &s->quantized[tensor], row, count, to, err);
}

static mgl_status read_rows(const mgl_graph *graph, int tensor, int64_t row, int64_t count,
                            void *to, mgl_error *err)
{
    const mgl_tensor *t = &graph->tensors[tensor];
    const source *s = graph->reader;
    const mgl_view *view = &s->views[tensor];
    mgl_status status = check_rows(t, row, count, err);
    if (status)
        return status;
    if (mgl_tensor_is_quantized(t))
        return mgl_quantized_read(s->files, &s->quantized[tensor], row, count, to, err);
    /* A tensor of rank 1 has one row; it is read as `cols` rows of one element. */
    const int64_t width = t->rank == 1 ? 1 : t->cols, rows = t->rank == 1 ? count * t->cols : count;
    const int64_t run = view->interleave || view->order ? 1 : rows;
    const size_t bytes = (size_t)width * mgl_dtype_size(t->dtype);
    for (int64_t i = 0; i < rows && !status; i += run) {
        const int64_t first = mgl_view_row(view, row + i);
        if (view->wide)
            status = read_wide(s->files, view->stored, first, run, (float *)to + i, err);
        else
            status = mgl_safetensors_read(s->files, view->stored, (size_t)first * bytes,
                                          (size_t)run * bytes, (char *)to + (size_t)i * bytes, err);
    }
    return status;
}

/* ---- counting -------------------------------------------------------------------------------- */

/* Counts parameters and bytes. The graph's dtype becomes the dtype of its largest tensor; for a
 * quantized model, `declared`, or the dtype of its largest tensor that is not quantized. */
static void count_graph(mgl_graph *graph, const mgl_dtype *declared, mgl_checkpoint *checkpoint)
{
    uint64_t largest = 0;
    checkpoint->parameters = checkpoint->bytes = 0;
    for (int i = 0; i < graph->tensor_count; i++) {
        const mgl_tensor *t = &graph->tensors[i];
        const bool is_quantized = mgl_tensor_is_quantized(t);
        uint64_t elements = (uint64_t)t->rows * (uint64_t)t->cols;
        checkpoint->parameters += elements;
        checkpoint->bytes += mgl_tensor_bytes(t);
        checkpoint->quantized += is_quantized;
        if (elements > largest && !is_quantized) {
            largest = elements;
            graph->dtype = t->dtype;
        }
    }
    if (checkpoint->quantized && declared)
        graph->dtype = *declared;
}

/* Counts the stored tensors. Without a graph, they are the parameters and bytes of the
 * checkpoint. */
static void count_stored(const mgl_safetensors *files, bool has_graph, mgl_checkpoint *checkpoint)
{
    uint64_t parameters = 0, bytes = 0;
    for (size_t i = 0; i < files->tensors.count; i++) {
        const mgl_stored_tensor *stored = &files->tensors.items[i];
        uint64_t elements = 1;
        for (int d = 0; d < stored->rank; d++)
            elements *= (uint64_t)stored->shape[d];
        parameters += elements;
        bytes += stored->bytes;
    }
    checkpoint->stored_bytes = files->file_count ? bytes : 0;
    if (!has_graph) {
        checkpoint->parameters = parameters;
        checkpoint->bytes = bytes;
    }
}

/* ---- opening -------------------------------------------------------------------------------- */

/* Returns whether all sizes are known, so that the list of tensors can be built. */
static bool has_sizes(const mgl_config *config)
{
    const mgl_geometry *g = &config->geometry;
    return g->hidden && g->layers && g->heads && g->kv_heads && g->head_dim && g->ffn && g->vocab;
}

/* Compares two stored tensors: shape, dtype and bytes. */
static mgl_status are_equal(const mgl_safetensors *files, int a, int b, bool *equal, mgl_error *err)
{
    enum { CHUNK = 1 << 20 };
    const mgl_stored_tensor *x = &files->tensors.items[a], *y = &files->tensors.items[b];
    *equal = x->usable && y->usable && x->dtype == y->dtype && x->bytes == y->bytes;
    if (!*equal)
        return MGL_OK;
    char *buffer = mgl_alloc(2 * CHUNK);
    if (!buffer)
        return mgl_fail_memory(err, 2 * CHUNK);
    mgl_status status = MGL_OK;
    for (uint64_t at = 0; at < x->bytes && *equal && !status; at += CHUNK) {
        const size_t count = x->bytes - at < CHUNK ? (size_t)(x->bytes - at) : CHUNK;
        status = mgl_safetensors_read(files, a, (size_t)at, count, buffer, err);
        if (!status)
            status = mgl_safetensors_read(files, b, (size_t)at, count, buffer + CHUNK, err);
        *equal = !status && !memcmp(buffer, buffer + CHUNK, count);
    }
    mgl_free(buffer);
    return status;
}

/* Finds a stored matrix, quantized or not; -1: missing. */
static int find_matrix(const mgl_safetensors *files, const char *name)
{
    const int plain = mgl_safetensors_find(files, name);
    return plain >= 0 ? plain : mgl_quantized_find(files, name);
}

/* Returns whether a model whose config ties the head stores a head with its own values. Such a
 * head is used, as in Transformers 5. A compiled model lists a head only if its program has one. */
static mgl_status is_head_own(const mgl_naming *naming, bool *own, mgl_error *err)
{
    char name[160];
    mgl_naming_name(naming, MGL_TENSOR_HEAD, name);
    const int head = find_matrix(naming->files, name);
    mgl_naming_name(naming, MGL_TENSOR_EMBEDDING, name);
    const int table = find_matrix(naming->files, name);
    bool equal = false;
    mgl_status status = MGL_OK;
    *own = false;
    if (head < 0 || table < 0)
        return MGL_OK;
    if (naming->files->file_count)
        status = are_equal(naming->files, head, table, &equal, err);
    *own = !equal;
    return status;
}

/* What a model declares about its tensors. */
typedef struct declaration {
    mgl_config config;
    mgl_quantization quantization;
    mgl_json list; /* owned: the header of a compiled model's tensors; root NULL: a folder */
    bool has_dtype;
    mgl_dtype dtype; /* `dtype` or `torch_dtype` of config.json */
} declaration;

static mgl_status allocate_source(size_t stored, size_t tensors, source **out, mgl_error *err)
{
    source *s = *out = mgl_alloc_zero(1, sizeof *s);
    if (!s)
        return mgl_fail_memory(err, sizeof *s);
    s->used = mgl_alloc_zero(stored, sizeof *s->used);
    s->views = mgl_alloc_zero(tensors, sizeof *s->views);
    s->quantized = mgl_alloc_zero(tensors, sizeof *s->quantized);
    if (s->used && s->views && s->quantized) {
        s->tensor_count = (int)tensors;
        return MGL_OK;
    }
    close_source(s);
    *out = NULL;
    return mgl_fail_memory(err, stored + tensors * sizeof *s->quantized);
}

/* Compares the graph with the files, and binds its tensors. */
static mgl_status compare(mgl_checkpoint *checkpoint, const mgl_naming *naming, const source *s,
                          const declaration *declared, mgl_error *err)
{
    const mgl_safetensors *files = naming->files;
    bool *companion = mgl_alloc_zero(files->tensors.count, sizeof *companion);
    if (!companion)
        return mgl_fail_memory(err, files->tensors.count);
    mgl_comparison c = {checkpoint->graph,    files,        naming,      s->views, s->used,
                        &checkpoint->reasons, s->quantized, {.err = err}};
    c.binder.files = files;
    c.binder.naming = naming;
    c.binder.quantization = &declared->quantization;
    c.binder.used = s->used;
    c.binder.companion = companion;
    checkpoint->ignored = mgl_compare_tensors(&c);
    mgl_free(companion);
    if (!c.binder.status && declared->list.root)
        return mgl_compiled_take_formats(&declared->list, checkpoint->graph, err);
    return c.binder.status;
}

/* Builds the graph and compares it with the files. On success the graph owns the files. */
static mgl_status bind_graph(mgl_checkpoint *checkpoint, const declaration *declared,
                             mgl_safetensors *files, mgl_error *err)
{
    mgl_config used = declared->config;
    mgl_naming naming = mgl_naming_find(&used, files);
    mgl_status status = MGL_OK;
    bool own_head = false;
    source *s = NULL;
    if (used.tied)
        status = is_head_own(&naming, &own_head, err);
    used.tied = used.tied && !own_head;
    if (!status)
        status = mgl_config_build_graph(&used, MGL_F32, &checkpoint->graph, err);
    if (status)
        return status;
    mgl_graph *graph = checkpoint->graph;
    graph->own_head = own_head;
    status = allocate_source(files->tensors.count, (size_t)graph->tensor_count, &s, err);
    if (status)
        return status;
    status = compare(checkpoint, &naming, s, declared, err);
    if (status) {
        close_source(s);
        return status;
    }
    s->files = files;
    graph->reader = s;
    graph->read = files->file_count ? read_rows : NULL;
    graph->close_reader = close_source;
    count_graph(graph, declared->has_dtype ? &declared->dtype : NULL, checkpoint);
    graph->read_codes = checkpoint->quantized && files->file_count ? read_codes : NULL;
    return MGL_OK;
}

/* Reads the tensor list of a compiled model: bytes of the weights (8, little-endian), header. Sets
 * *formats (may be NULL) to the formats of its quantized tensors. */
static mgl_status list_tensors(const mgl_mega *mega, const char *file, mgl_safetensors **out,
                               mgl_json *formats, mgl_error *err)
{
    char *bytes;
    size_t length;
    uint64_t data_bytes = 0;
    mgl_status status = mgl_mega_read(mega, MGL_MEGA_TENSORS, &bytes, &length, err);
    if (status)
        return status;
    for (int i = 7; length >= 8 && i >= 0; i--)
        data_bytes = data_bytes << 8 | (unsigned char)bytes[i];
    status = length < 8
                 ? mgl_mega_fail(mega, MGL_MEGA_TENSORS, "is too short", err)
                 : mgl_safetensors_list(bytes + 8, length - 8, (size_t)data_bytes, file, out, err);
    if (!status && formats)
        status = mgl_json_parse(bytes + 8, length - 8, length, file, formats, err);
    if (status && *out) {
        mgl_safetensors_close(*out);
        *out = NULL;
    }
    mgl_free(bytes);
    return status;
}

static bool has_words(const mgl_safetensors *files)
{
    for (size_t i = 0; i < files->tensors.count; i++)
        if (mgl_text_ends(files->tensors.items[i].name, ".qweight"))
            return true;
    return false;
}

/* Opens the tensors of a folder or a GGUF file. */
static mgl_status open_tensors(const mgl_model_files *model, mgl_safetensors **out, mgl_error *err)
{
    return model->gguf ? mgl_gguf_open_tensors(model->gguf, out, err)
                       : mgl_safetensors_open(model->path, out, err);
}

static mgl_status bind_files(mgl_checkpoint *checkpoint, const mgl_model_files *model,
                             declaration *declared, mgl_error *err)
{
    mgl_safetensors *files;
    mgl_status status =
        model->mega ? list_tensors(model->mega, checkpoint->folder, &files, &declared->list, err)
                    : open_tensors(model, &files, err);
    if (status)
        return status;
    checkpoint->files = files->file_count;
    mgl_quantization *quantization = &declared->quantization;
    if (!quantization->quantizer && !quantization->rejected && !mgl_model_files_are_one(model) &&
        has_words(files))
        status = mgl_quantization_read_beside(model, quantization, &checkpoint->reasons, err);
    if (!status && has_sizes(&declared->config))
        status = bind_graph(checkpoint, declared, files, err);
    if (!status && checkpoint->reasons.failed)
        status = mgl_fail_memory(err, sizeof(mgl_reason));
    bool bound = checkpoint->graph && checkpoint->graph->reader;
    if (!status)
        count_stored(files, !checkpoint->reasons.count, checkpoint);
    if (!bound) /* the graph did not take ownership */
        mgl_safetensors_close(files);
    if (!status && checkpoint->reasons.count) {
        mgl_graph_free(checkpoint->graph);
        checkpoint->graph = NULL;
        checkpoint->ignored = 0; /* not known: the model is not bound */
    }
    return status;
}

mgl_status mgl_checkpoint_find_tie(const char *path, mgl_config *config, mgl_error *err)
{
    mgl_model_files files;
    mgl_safetensors *tensors = NULL;
    bool own = false;
    mgl_status status = mgl_model_files_open(path, &files, err);
    if (!status)
        status = files.mega ? list_tensors(files.mega, path, &tensors, NULL, err)
                            : open_tensors(&files, &tensors, err);
    if (!status) {
        const mgl_naming naming = mgl_naming_find(config, tensors);
        status = is_head_own(&naming, &own, err);
    }
    config->tied = config->tied && !own;
    mgl_safetensors_close(tensors);
    mgl_model_files_close(&files);
    return status == MGL_NO_MEMORY ? status : MGL_OK;
}

/* Copies the architecture's name in config.json, or "". */
static mgl_status copy_architecture(const mgl_json *config, mgl_checkpoint *checkpoint,
                                    mgl_error *err)
{
    const cJSON *list = mgl_json_member(config->root, "architectures");
    const char *name =
        list && list->child && cJSON_IsString(list->child) ? list->child->valuestring : "";
    checkpoint->architecture = mgl_strdup(name);
    return checkpoint->architecture ? MGL_OK : mgl_fail_memory(err, strlen(name) + 1);
}

/* Returns the object with the end tokens: text_config for a wrapper without the key, else the
 * root. */
static mgl_json end_token_object(const mgl_json *json, const mgl_config *config)
{
    mgl_json out = *json;
    const cJSON *own = mgl_json_member(json->root, "eos_token_id");
    cJSON *text =
        config->wrapped ? cJSON_GetObjectItemCaseSensitive(json->root, "text_config") : NULL;
    if (cJSON_IsObject(text) && (!own || cJSON_IsNull(own)))
        out.root = text;
    return out;
}

static void check_ends(mgl_checkpoint *checkpoint)
{
    size_t count = checkpoint->generation.end_count;
    if (count > MGL_MOST_END_TOKENS)
        mgl_reasons_add(&checkpoint->reasons, "eos_token_id",
                        "%zu end tokens in generation_config.json and config.json; a reply can "
                        "have %d at most",
                        count, MGL_MOST_END_TOKENS);
}

/* Reads the dtype of the numbers of a model: the key `dtype` or, in older files, `torch_dtype`. */
static void read_dtype(const cJSON *root, declaration *out)
{
    static const struct {
        const char *name;
        mgl_dtype dtype;
    } dtypes[] = {{"bfloat16", MGL_BF16}, {"float16", MGL_F16}, {"float32", MGL_F32}};
    const cJSON *value = mgl_json_member(root, "dtype");
    if (!cJSON_IsString(value))
        value = mgl_json_member(root, "torch_dtype");
    const char *name = cJSON_IsString(value) ? value->valuestring : "";
    if (!strncmp(name, "torch.", strlen("torch.")))
        name += strlen("torch.");
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (!strcmp(dtypes[i].name, name)) {
            out->dtype = dtypes[i].dtype;
            out->has_dtype = true;
        }
}

/* Reads what config.json declares. */
static mgl_status read_declaration(const mgl_json *json, mgl_reasons *reasons, declaration *out,
                                   mgl_error *err)
{
    mgl_status status = mgl_config_read(json, &out->config, reasons, err);
    if (!status)
        status = mgl_quantization_read(json, &out->quantization, reasons, err);
    if (status)
        return status;
    if (out->config.wrapped)
        read_dtype(mgl_json_member(json->root, "text_config"), out);
    if (!out->has_dtype)
        read_dtype(json->root, out);
    return MGL_OK;
}

/* Reads the files into an empty checkpoint. */
static mgl_status read_files(mgl_checkpoint *checkpoint, const mgl_model_files *files,
                             mgl_error *err)
{
    mgl_json config_json = {0}, generation_json = {0};
    declaration declared = {0};
    mgl_status status =
        mgl_model_files_are_one(files) ? MGL_OK : mgl_layout_check_folder(files->path, err);
    if (!status)
        status = mgl_model_files_parse(files, MGL_MEGA_CONFIG, MAX_CONFIG, true,
                                       mgl_json_parse_python, &config_json, err);
    if (!status)
        status = mgl_model_files_parse(files, MGL_MEGA_GENERATION, MAX_CONFIG, false,
                                       mgl_json_parse_python, &generation_json, err);
    if (!status)
        status = copy_architecture(&config_json, checkpoint, err);
    if (!status)
        status = read_declaration(&config_json, &checkpoint->reasons, &declared, err);
    if (files->gguf)
        declared.config.pairs = mgl_gguf_rope_pairs(files->gguf);
    const mgl_json ends = status ? config_json : end_token_object(&config_json, &declared.config);
    if (!status)
        status = mgl_generation_read(generation_json.root ? &generation_json : NULL, &ends,
                                     declared.config.geometry.vocab, &checkpoint->generation, err);
    if (!status)
        check_ends(checkpoint);
    if (!status)
        status = bind_files(checkpoint, files, &declared, err);
    mgl_quantization_clear(&declared.quantization);
    mgl_json_clear(&declared.list);
    mgl_json_clear(&generation_json);
    mgl_json_clear(&config_json);
    return status;
}

static mgl_status read_model(mgl_checkpoint *checkpoint, mgl_error *err)
{
    mgl_model_files files;
    mgl_status status = mgl_model_files_open(checkpoint->folder, &files, err);
    if (!status)
        status = read_files(checkpoint, &files, err);
    checkpoint->gguf = files.gguf != NULL;
    mgl_model_files_close(&files);
    return status;
}

mgl_status mgl_checkpoint_open(const char *model, mgl_checkpoint **out, mgl_error *err)
{
    *out = NULL;
    mgl_checkpoint *checkpoint = mgl_alloc_zero(1, sizeof *checkpoint);
    if (!checkpoint)
        return mgl_fail_memory(err, sizeof *checkpoint);
    mgl_status status = mgl_model_find(model, &checkpoint->folder, err);
    if (!status)
        status = read_model(checkpoint, err);
    if (status) {
        mgl_checkpoint_close(checkpoint);
        return status;
    }
    *out = checkpoint;
    return MGL_OK;
}

mgl_status mgl_import(const char *model, mgl_checkpoint **out, mgl_error *err)
{
    *out = NULL;
    mgl_checkpoint *checkpoint;
    mgl_status status = mgl_checkpoint_open(model, &checkpoint, err);
    if (status)
        return status;
    status = mgl_reasons_fail(&checkpoint->reasons, err);
    if (status) {
        mgl_checkpoint_close(checkpoint);
        return status;
    }
    *out = checkpoint;
    return MGL_OK;
}

const char *mgl_checkpoint_stored_name(const mgl_checkpoint *checkpoint, int tensor)
{
    const source *s = checkpoint->graph->reader;
    return s->files->tensors.items[s->views[tensor].stored].name;
}

int64_t mgl_checkpoint_stored_row(const mgl_checkpoint *checkpoint, int tensor, int64_t row)
{
    const source *s = checkpoint->graph->reader;
    return mgl_view_row(&s->views[tensor], row);
}

const char *mgl_checkpoint_unused_name(const mgl_checkpoint *checkpoint, int index)
{
    const source *s = checkpoint->graph->reader;
    for (size_t i = 0; i < s->files->tensors.count; i++)
        if (!s->used[i] && index-- == 0)
            return s->files->tensors.items[i].name;
    return NULL;
}

void mgl_checkpoint_close(mgl_checkpoint *checkpoint)
{
    if (!checkpoint)
        return;
    mgl_graph_free(checkpoint->graph);
    mgl_generation_clear(&checkpoint->generation);
    mgl_reasons_clear(&checkpoint->reasons);
    mgl_free(checkpoint->architecture);
    mgl_free(checkpoint->folder);
    mgl_free(checkpoint);
}

/* ---- outputs -------------------------------------------------------------------------------- */

/* The files of a folder in Hugging Face layout, except the shards. Some are not read here, but
 * other programs that read the folder need them. */
static const char *const folder_files[] = {
    MGL_MEGA_CONFIG,        MGL_MEGA_GENERATION,       MGL_MEGA_TOKENIZER, MGL_SAFETENSORS_SINGLE,
    MGL_SAFETENSORS_INDEX,  MGL_MEGA_TOKENIZER_CONFIG, MGL_MEGA_TOKENS,    MGL_MEGA_TEMPLATE,
    MGL_MEGA_ADDED_TOKENS,  "tokenizer.model",         "vocab.json",       "merges.txt",
    "quantize_config.json", "quant_config.json"};

/* Checks the additional chat templates of a folder. */
static mgl_status check_templates(const char *folder, const char *output, mgl_error *err)
{
    mgl_file_list files = {0};
    mgl_text templates;
    mgl_status status = mgl_path_join(folder, MGL_TEMPLATES_FOLDER, &templates, err);
    if (!status)
        status = mgl_folder_list(templates.bytes, "", &files, err);
    for (size_t i = 0; i < files.count && !status; i++) {
        mgl_text path;
        status = mgl_path_join(templates.bytes, files.names[i], &path, err);
        if (!status)
            status = mgl_file_check_output(output, path.bytes, err);
        mgl_text_clear(&path);
    }
    mgl_file_list_clear(&files);
    mgl_text_clear(&templates);
    return status;
}

static mgl_status check_folder(const char *folder, const char *output, mgl_error *err)
{
    mgl_status status = MGL_OK;
    for (size_t i = 0; i < sizeof folder_files / sizeof *folder_files && !status; i++) {
        mgl_text path;
        status = mgl_path_join(folder, folder_files[i], &path, err);
        if (!status)
            status = mgl_file_check_output(output, path.bytes, err);
        mgl_text_clear(&path);
    }
    return status ? status : check_templates(folder, output, err);
}

mgl_status mgl_checkpoint_check_output(const mgl_checkpoint *checkpoint, const char *output,
                                       mgl_error *err)
{
    const source *s = checkpoint->graph->reader;
    bool is_folder;
    mgl_status status = mgl_folder_stands(checkpoint->folder, &is_folder, err);
    if (!status)
        status = is_folder ? check_folder(checkpoint->folder, output, err)
                           : mgl_file_check_output(output, checkpoint->folder, err);
    for (int i = 0; i < s->files->file_count && !status; i++)
        status = mgl_file_check_output(output, mgl_map_path(s->files->files[i].map), err);
    return status;
}
