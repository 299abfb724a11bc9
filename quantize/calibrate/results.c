/*
 * Implements results.h. A part file holds, matrix after matrix, the packed codes (pack.h) of all
 * rows, the scales in f32, and the zero points as bytes.
 */
#include "quantize/calibrate/results.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/output.h"
#include "base/sha256.h"
#include "importer/layout.h"
#include "quantize/pack.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PROBE = 4096, MAX_COMMAND = 1 << 16 };

/* Where the codes of a matrix are. */
typedef struct place {
    mgl_map *map; /* NULL: not finished */
    uint64_t offset;
} place;

struct mgl_results {
    const mgl_quantize_plan *plan; /* not owned */
    mgl_text folder, command;
    place *places;  /* owned (stored tensors) */
    mgl_map **maps; /* owned (map_count) */
    size_t map_count, map_capacity;
    bool started; /* the folder has the file `command` */
    int added;    /* files that were added by this run */
};

/* ---- the command ----------------------------------------------------------------------------- */

static void add_number(mgl_sha256 *hash, uint64_t number)
{
    mgl_sha256_add(hash, &number, sizeof number);
}

/* Hashes the names and shapes of all stored tensors and the first bytes of each. */
static mgl_status hash_model(const mgl_quantize_plan *plan, mgl_sha256 *hash, mgl_error *err)
{
    mgl_status status = MGL_OK;
    for (size_t i = 0; i < plan->files->tensors.count && !status; i++) {
        const mgl_stored_tensor *t = &plan->files->tensors.items[i];
        char bytes[PROBE];
        const size_t count = t->bytes < PROBE ? t->bytes : PROBE;
        mgl_sha256_add(hash, t->name, strlen(t->name) + 1);
        mgl_sha256_add(hash, t->stored_dtype, strlen(t->stored_dtype) + 1);
        add_number(hash, (uint64_t)t->rank);
        mgl_sha256_add(hash, t->shape, (size_t)t->rank * sizeof *t->shape);
        status = mgl_safetensors_read(plan->files, (int)i, 0, count, bytes, err);
        if (!status)
            mgl_sha256_add(hash, bytes, count);
    }
    return status;
}

static void hash_samples(const mgl_quantize_request *r, mgl_sha256 *hash)
{
    for (size_t i = 0; i < r->sample_count; i++) {
        add_number(hash, r->samples[i].count);
        mgl_sha256_add(hash, r->samples[i].ids, r->samples[i].count * sizeof *r->samples[i].ids);
    }
}

static void put_hash(mgl_sha256 *hash, const char *name, mgl_text *out)
{
    unsigned char bytes[MGL_SHA256_BYTES];
    char digits[MGL_SHA256_HEX];
    mgl_sha256_end(hash, bytes);
    mgl_sha256_hex(bytes, digits);
    mgl_text_format(out, "%s %s\n", name, digits);
}

static void put_format(const char *name, mgl_weight_format format, bool own_scales, mgl_text *out)
{
    char text[MGL_WEIGHT_FORMAT_TEXT];
    mgl_text_format(out, "%s %s%s\n", name, mgl_weight_format_print(format, text),
                    own_scales ? " (scales as the matrix)" : "");
}

static mgl_status put_command(const mgl_quantize_plan *plan, const mgl_quantize_request *r,
                              mgl_text *out, mgl_error *err)
{
    mgl_sha256 model, samples;
    mgl_sha256_start(&model);
    mgl_sha256_start(&samples);
    hash_samples(r, &samples);
    mgl_status status = hash_model(plan, &model, err);
    mgl_text_format(out, "megalith quantize, version 2\nmethod %s\n",
                    mgl_quantize_method_name(r->method));
    put_format("layers", r->layers, r->own_scales, out);
    put_format("head", r->head, r->own_scales, out);
    mgl_text_format(out, "bits per weight %.17g\n", r->bits_per_weight);
    put_hash(&model, "model", out);
    put_hash(&samples, "samples", out);
    return status || !out->failed ? status : mgl_fail_memory(err, 0);
}

/* Compares the command with the file of an earlier run. */
static mgl_status check_command(mgl_results *r, mgl_error *err)
{
    mgl_text path;
    char *text = NULL;
    size_t length;
    mgl_status status = mgl_path_join(r->folder.bytes, "command", &path, err);
    if (!status)
        status = mgl_file_stands(path.bytes, &r->started, err);
    if (!status && r->started)
        status = mgl_file_read_regular(path.bytes, MAX_COMMAND, &text, &length, err);
    if (!status && r->started && strcmp(text, r->command.bytes) != 0)
        status = mgl_fail(err, MGL_BAD_INPUT, r->folder.bytes,
                          "the folder holds the unfinished work of another command: other flags, "
                          "texts or weights; use the same command again, or remove this folder");
    mgl_text_clear(&path);
    mgl_free(text);
    return status;
}

mgl_status mgl_results_open(const mgl_quantize_plan *plan, const mgl_quantize_request *request,
                            const char *folder, mgl_results **out, mgl_error *err)
{
    mgl_results *r = mgl_alloc_zero(1, sizeof *r);
    *out = r;
    if (!r)
        return mgl_fail_memory(err, sizeof *r);
    r->plan = plan;
    r->places = mgl_alloc_zero(plan->files->tensors.count, sizeof *r->places);
    if (!r->places)
        return mgl_fail_memory(err, plan->files->tensors.count * sizeof *r->places);
    mgl_status status = mgl_path_join(folder, MGL_QUANTIZE_UNFINISHED, &r->folder, err);
    if (!status)
        status = put_command(plan, request, &r->command, err);
    return status ? status : check_command(r, err);
}

void mgl_results_close(mgl_results *results)
{
    if (!results)
        return;
    for (size_t i = 0; i < results->map_count; i++)
        mgl_map_close(results->maps[i]);
    mgl_free(results->maps);
    mgl_free(results->places);
    mgl_text_clear(&results->folder);
    mgl_text_clear(&results->command);
    mgl_free(results);
}

/* Creates the folder with the file `command`. */
static mgl_status start(mgl_results *r, mgl_error *err)
{
    mgl_text path = {0};
    if (r->started)
        return MGL_OK;
    mgl_status status = mgl_folder_make(r->folder.bytes, 0777, err);
    if (!status)
        status = mgl_path_join(r->folder.bytes, "command", &path, err);
    if (!status)
        status = mgl_output_write_file(path.bytes, r->command.bytes, r->command.length, err);
    r->started = !status;
    mgl_text_clear(&path);
    return status;
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* The sizes of a matrix. */
typedef struct sizes {
    int64_t rows, columns, groups;
    int bits;
    uint64_t codes, scales, zeros; /* bytes of a row in the file */
} sizes;

static sizes sizes_of(const mgl_quantize_plan *plan, int source)
{
    const mgl_stored_tensor *t = &plan->files->tensors.items[source];
    const mgl_weight_format f = plan->sources[source].format;
    sizes s = {.rows = t->shape[0],
               .columns = t->shape[1],
               .groups = mgl_weight_format_groups(f, t->shape[1]),
               .bits = mgl_weight_code_get(f.code)->bits};
    s.codes = (uint64_t)(s.columns * s.bits / 8);
    s.scales = (uint64_t)s.groups * sizeof(float);
    s.zeros = f.zeros ? (uint64_t)s.groups : 0;
    return s;
}

static mgl_status part_path(const mgl_results *r, int part, mgl_text *out, mgl_error *err)
{
    char name[32];
    snprintf(name, sizeof name, "part-%05d", part);
    return mgl_path_join(r->folder.bytes, name, out, err);
}

/* Maps a part file and notes the places of its matrices. */
static mgl_status map_part(mgl_results *r, const char *path, const int *sources, int count,
                           mgl_error *err)
{
    uint64_t offset = 0;
    if (!mgl_grow((void **)&r->maps, &r->map_capacity, r->map_count, sizeof *r->maps))
        return mgl_fail_memory(err, sizeof *r->maps);
    mgl_status status = mgl_map_open(path, &r->maps[r->map_count], err);
    if (status)
        return status;
    mgl_map *map = r->maps[r->map_count++];
    for (int i = 0; i < count; i++) {
        const sizes s = sizes_of(r->plan, sources[i]);
        r->places[sources[i]] = (place){map, offset};
        offset += (uint64_t)s.rows * (s.codes + s.scales + s.zeros);
    }
    if (mgl_map_size(map) != offset)
        return mgl_fail(err, MGL_BAD_INPUT, path,
                        "the file is damaged; remove it and start the command again");
    return MGL_OK;
}

mgl_status mgl_results_find(mgl_results *r, int part, const int *sources, int count, bool *found,
                            mgl_error *err)
{
    mgl_text path;
    *found = false;
    if (!r->started)
        return MGL_OK;
    mgl_status status = part_path(r, part, &path, err);
    if (!status)
        status = mgl_file_stands(path.bytes, found, err);
    if (!status && *found)
        status = map_part(r, path.bytes, sources, count, err);
    mgl_text_clear(&path);
    return status;
}

/* Writes a matrix at *offset. */
static mgl_status put_matrix(const mgl_results *r, mgl_output *output, int source,
                             const mgl_matrix_codes *codes, uint64_t *offset, mgl_error *err)
{
    const sizes s = sizes_of(r->plan, source);
    const uint64_t bytes[3] = {(uint64_t)s.rows * s.codes, (uint64_t)s.rows * s.scales,
                               (uint64_t)s.rows * s.zeros};
    uint8_t *packed = mgl_alloc((size_t)bytes[0]);
    const void *from[3] = {packed, codes->scales, codes->zeros};
    mgl_status status = packed ? MGL_OK : mgl_fail_memory(err, (size_t)bytes[0]);
    if (packed)
        mgl_pack_codes(codes->codes, s.rows * s.columns, s.bits, packed);
    for (int i = 0; i < 3 && !status; i++) {
        if (bytes[i])
            status = mgl_output_write(output, *offset, from[i], (size_t)bytes[i], err);
        *offset += bytes[i];
    }
    mgl_free(packed);
    return status;
}

mgl_status mgl_results_put(mgl_results *r, int part, const int *sources, int count,
                           const mgl_matrix_codes *codes, mgl_error *err)
{
    mgl_text path = {0};
    mgl_output *output = NULL;
    uint64_t offset = 0;
    mgl_status status = start(r, err);
    if (!status)
        status = part_path(r, part, &path, err);
    if (!status)
        status = mgl_output_open(path.bytes, &output, err);
    for (int i = 0; i < count && !status; i++)
        status = put_matrix(r, output, sources[i], &codes[sources[i]], &offset, err);
    if (status)
        mgl_output_abandon(output);
    else
        status = mgl_output_finish(output, err);
    r->added += !status;
    if (!status)
        status = map_part(r, path.bytes, sources, count, err);
    mgl_text_clear(&path);
    return status;
}

mgl_status mgl_results_get(const mgl_results *r, int source, int64_t row, int64_t count,
                           const mgl_matrix_codes *to, mgl_error *err)
{
    const sizes s = sizes_of(r->plan, source);
    const place *at = &r->places[source];
    const uint64_t scales = at->offset + (uint64_t)s.rows * s.codes;
    const uint64_t zeros = scales + (uint64_t)s.rows * s.scales;
    const size_t packed = (size_t)count * s.codes;
    /* The packed codes are read into the end of the buffer and unpacked from there. */
    uint8_t *from = to->codes + (size_t)(count * s.columns) - packed;
    mgl_status status =
        mgl_map_read(at->map, at->offset + (uint64_t)row * s.codes, packed, from, err);
    if (!status)
        status = mgl_map_read(at->map, scales + (uint64_t)row * s.scales, (size_t)count * s.scales,
                              to->scales, err);
    if (!status && s.zeros)
        status = mgl_map_read(at->map, zeros + (uint64_t)row * s.zeros, (size_t)count * s.zeros,
                              to->zeros, err);
    for (size_t i = 0; i < packed && s.bits == 4 && !status; i++) {
        const uint8_t both = from[i];
        to->codes[2 * i] = both & 15;
        to->codes[2 * i + 1] = both >> 4;
    }
    return status;
}

/* ---- numbers --------------------------------------------------------------------------------- */

mgl_status mgl_results_find_numbers(mgl_results *r, const char *name, double *numbers, size_t count,
                                    bool *found, mgl_error *err)
{
    mgl_text path;
    mgl_map *map = NULL;
    *found = false;
    if (!r->started)
        return MGL_OK;
    mgl_status status = mgl_path_join(r->folder.bytes, name, &path, err);
    if (!status)
        status = mgl_file_stands(path.bytes, found, err);
    if (!status && *found) {
        status = mgl_map_open(path.bytes, &map, err);
        if (!status)
            status = mgl_map_read(map, 0, count * sizeof *numbers, numbers, err);
        mgl_map_close(map);
    }
    mgl_text_clear(&path);
    return status;
}

mgl_status mgl_results_put_numbers(mgl_results *r, const char *name, const double *numbers,
                                   size_t count, mgl_error *err)
{
    mgl_text path = {0};
    mgl_status status = start(r, err);
    if (!status)
        status = mgl_path_join(r->folder.bytes, name, &path, err);
    if (!status)
        status = mgl_output_write_file(path.bytes, numbers, count * sizeof *numbers, err);
    r->added += !status;
    mgl_text_clear(&path);
    return status;
}

int mgl_results_added(const mgl_results *results)
{
    return results->added;
}

bool mgl_results_any(const mgl_results *results)
{
    return results->started;
}

void mgl_results_remove(mgl_results *r)
{
    mgl_file_list list = {0};
    mgl_text path;
    if (!r->folder.bytes || mgl_folder_list(r->folder.bytes, "", &list, NULL))
        return;
    for (size_t i = 0; i < list.count; i++) {
        if (!mgl_path_join(r->folder.bytes, list.names[i], &path, NULL))
            unlink(path.bytes);
        mgl_text_clear(&path);
    }
    mgl_file_list_clear(&list);
    rmdir(r->folder.bytes);
}
