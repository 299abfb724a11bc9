/* Writes and reads compiled model files (image.h). Writing packs the weights piece by piece in
 * parallel, with a checksum for each piece. Reading maps the file and checks all sections but the
 * weights. */
#include "vm/image.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/checksum.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "importer/mega.h"
#include "importer/quantized/compiled.h"
#include "schedule/digest.h"
#include "schedule/schedule.h"

enum {
    KEY_DIGITS = MGL_SHA256_HEX - 1,
    NUMBER = 8,
    PIECES_HEAD = NUMBER + MGL_SHA256_BYTES, /* before the pieces: layout version and digest */
    PIECE = 2 * NUMBER
};

static void put_number(unsigned char *to, uint64_t value)
{
    for (int i = 0; i < NUMBER; i++)
        to[i] = (unsigned char)(value >> (8 * i));
}

static uint64_t get_number(const unsigned char *from)
{
    uint64_t value = 0;
    for (int i = NUMBER - 1; i >= 0; i--)
        value = value << 8 | from[i];
    return value;
}

/* Offset of each part in the section `weights`: (parts + 1), the last is the section's end. NULL
 * when memory ran out. */
static uint64_t *place_parts(const mgl_program *program, const size_t *sizes)
{
    int parts = mgl_weights_parts(program);
    uint64_t *places = mgl_alloc_zero((size_t)parts + 1, sizeof *places);
    for (int i = 0; places && i < parts; i++) {
        uint64_t end = places[i] + sizes[i];
        places[i + 1] = (end + MGL_MEGA_PAGE - 1) / MGL_MEGA_PAGE * MGL_MEGA_PAGE;
    }
    return places;
}

/* ---- writing -------------------------------------------------------------------------------- */

/* State of writing the weights into a file. */
typedef struct writing {
    const mgl_image_content *content;
    mgl_mega_writer *writer;
    mgl_weights *weights;
    uint64_t *places;
    unsigned char *pieces;        /* bytes of the section `pieces` */
    char *rooms[MGL_MAX_THREADS]; /* one buffer per thread, of the size of the largest piece */
    atomic_ullong done;           /* bytes written */
    uint64_t total;
} writing;

/* Reports progress, on the calling thread. */
static void tell(const writing *w, uint64_t done)
{
    const mgl_image_content *c = w->content;
    if (c->on_stage)
        c->on_stage(c->stage_user, MGL_STAGE_WEIGHTS, done, w->total);
}

static mgl_status write_piece(void *user, int worker, size_t item, mgl_error *err)
{
    writing *w = user;
    const mgl_piece *piece = &w->weights->pieces[item];
    unsigned char *entry = w->pieces + PIECES_HEAD + item * PIECE;
    mgl_status status = mgl_check_abort(w->content->abort, err);
    if (!status)
        status = w->weights->make(w->weights, item, w->rooms[worker], err);
    if (status)
        return status;
    MGL_ASSERT(piece->offset + piece->bytes <= w->weights->sizes[piece->part]);
    put_number(entry, piece->bytes);
    put_number(entry + NUMBER, mgl_checksum(w->rooms[worker], piece->bytes));
    status = mgl_mega_write(w->writer, w->places[piece->part] + piece->offset, w->rooms[worker],
                            piece->bytes, err);
    uint64_t done = atomic_fetch_add(&w->done, piece->bytes) + piece->bytes;
    if (!status && worker == 0 && done < w->total)
        tell(w, done);
    return status;
}

static mgl_status write_pieces(writing *w, mgl_error *err)
{
    int threads = mgl_parallel_threads();
    size_t bytes = PIECES_HEAD + w->weights->count * PIECE;
    mgl_status status = MGL_OK;
    w->pieces = mgl_alloc_zero(bytes, 1);
    if (!w->pieces)
        return mgl_fail_memory(err, bytes);
    for (int i = 0; i < threads && !status; i++)
        if (!(w->rooms[i] = mgl_alloc(w->weights->largest + 1)))
            status = mgl_fail_memory(err, w->weights->largest);
    put_number(w->pieces, MGL_TAPE_LAYOUT);
    mgl_program_layout(w->content->program, w->pieces + NUMBER);
    for (size_t i = 0; i < w->weights->count; i++)
        w->total += w->weights->pieces[i].bytes;
    if (!status)
        status = mgl_parallel(threads, w->weights->count, write_piece, w, err);
    if (!status) /* the end is reported once, whichever thread reached it */
        tell(w, w->total);
    if (!status)
        status = mgl_check_abort(w->content->abort, err);
    if (!status)
        status = mgl_mega_add(w->writer, MGL_MEGA_PIECES, w->pieces, bytes, err);
    return status;
}

static mgl_status write_weights(writing *w, mgl_error *err)
{
    const mgl_program *program = w->content->program;
    int parts = mgl_weights_parts(program);
    mgl_status status = mgl_weights_pack(program, w->content->graph, &w->weights, err);
    if (status)
        return status;
    w->places = place_parts(program, w->weights->sizes);
    status = w->places ? mgl_mega_reserve(w->writer, MGL_MEGA_WEIGHTS, w->places[parts], err)
                       : mgl_fail_memory(err, (size_t)parts * sizeof *w->places);
    return status ? status : write_pieces(w, err);
}

static mgl_status write_kernel(mgl_mega_writer *writer, const mgl_vm_kernel *kernel, mgl_error *err)
{
    char name[MGL_MEGA_NAME];
    size_t length = KEY_DIGITS + kernel->length;
    char *bytes = mgl_alloc(length);
    if (!bytes)
        return mgl_fail_memory(err, length);
    snprintf(name, sizeof name, "%s%s", MGL_MEGA_KERNEL, kernel->arch);
    memcpy(bytes, kernel->key, KEY_DIGITS);
    memcpy(bytes + KEY_DIGITS, kernel->bytes, kernel->length);
    mgl_status status = mgl_mega_add(writer, name, bytes, length, err);
    mgl_free(bytes);
    return status;
}

/* Writes a safetensors header of the graph's tensors, as if they were contiguous. The 8 bytes
 * before the header hold the number of bytes that they would have. Names come from
 * mgl_graph_build_llama and need no escaping. */
static mgl_status write_tensors(mgl_mega_writer *writer, const mgl_graph *graph, mgl_error *err)
{
    static const char *const names[] = {
#define MGL_X(id, name, bytes, stored) stored,
        MGL_DTYPES(MGL_X)
#undef MGL_X
    };
    mgl_text text = {0};
    uint64_t end = 0;
    mgl_text_append(&text, "\0\0\0\0\0\0\0\0{", NUMBER + 1);
    mgl_compiled_put_formats(graph, &text);
    for (int i = 0; i < graph->tensor_count; i++) {
        const mgl_tensor *t = &graph->tensors[i];
        uint64_t start = end;
        end += (uint64_t)t->rows * (uint64_t)t->cols * mgl_dtype_size(t->dtype);
        mgl_text_format(&text, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[", i ? "," : "", t->name,
                        names[t->dtype]);
        if (t->rank == 2)
            mgl_text_format(&text, "%lld,", (long long)t->rows);
        mgl_text_format(&text, "%lld],\"data_offsets\":[%llu,%llu]}", (long long)t->cols,
                        (unsigned long long)start, (unsigned long long)end);
    }
    mgl_text_put(&text, "}");
    if (!text.failed)
        put_number((unsigned char *)text.bytes, end);
    mgl_status status = text.failed
                            ? mgl_fail_memory(err, text.length)
                            : mgl_mega_add(writer, MGL_MEGA_TENSORS, text.bytes, text.length, err);
    mgl_text_clear(&text);
    return status;
}

static mgl_status write_schedule(mgl_mega_writer *writer, const mgl_program *program,
                                 mgl_error *err)
{
    mgl_text text = {0};
    mgl_schedule_print(program, &text);
    mgl_status status = text.failed
                            ? mgl_fail_memory(err, text.length)
                            : mgl_mega_add(writer, MGL_MEGA_SCHEDULE, text.bytes, text.length, err);
    mgl_text_clear(&text);
    return status;
}

/* Writes all sections, the small ones first. */
static mgl_status write_all(writing *w, mgl_error *err)
{
    const mgl_image_content *c = w->content;
    mgl_status status = MGL_OK;
    for (int i = 0; i < c->file_count && !status; i++)
        status =
            mgl_mega_add(w->writer, c->files[i].name, c->files[i].bytes, c->files[i].length, err);
    if (!status)
        status = write_tensors(w->writer, c->graph, err);
    if (!status)
        status = write_schedule(w->writer, c->program, err);
    for (int i = 0; i < c->kernel_count && !status; i++)
        status = write_kernel(w->writer, &c->kernels[i], err);
    return status ? status : write_weights(w, err);
}

mgl_status mgl_image_write(const char *path, const mgl_image_content *content, uint64_t *bytes,
                           mgl_error *err)
{
    writing w = {.content = content};
    mgl_status status = mgl_mega_create(path, &w.writer, err);
    if (status)
        return status;
    status = write_all(&w, err);
    mgl_weights_close(w.weights);
    mgl_free(w.places);
    mgl_free(w.pieces);
    for (int i = 0; i < MGL_MAX_THREADS; i++)
        mgl_free(w.rooms[i]);
    if (!status)
        return mgl_mega_finish(w.writer, bytes, err);
    mgl_mega_abandon(w.writer);
    return status;
}

/* ---- reading -------------------------------------------------------------------------------- */

/* Source of the weights of a file. */
typedef struct reading {
    const mgl_mega *file;
    const mgl_mega_section *section; /* section `weights` */
    uint64_t *places;                /* owned, see place_parts */
    uint64_t *sums;                  /* owned (pieces) checksums */
} reading;

static void close_reading(void *source)
{
    reading *r = source;
    mgl_free(r->places);
    mgl_free(r->sums);
}

static mgl_status make_read(const mgl_weights *weights, size_t piece, void *to, mgl_error *err)
{
    const reading *r = weights->source;
    const mgl_piece *at = &weights->pieces[piece];
    mgl_status status = mgl_mega_read_part(r->file, r->section, r->places[at->part] + at->offset,
                                           at->bytes, to, err);
    if (!status && mgl_checksum(to, at->bytes) != r->sums[piece])
        status = mgl_mega_fail(r->file, MGL_MEGA_WEIGHTS, "has wrong checksums", err);
    return status;
}

static const void *find_part(const mgl_weights *weights, int part)
{
    const reading *r = weights->source;
    return mgl_mega_bytes(r->file, r->section, r->places[part]);
}

static mgl_status check_file(const mgl_weights *weights, mgl_error *err)
{
    return mgl_mega_check(((const reading *)weights->source)->file, err);
}

/* Appends the next piece. Pieces must cover the parts in order, without gaps. Returns false if they
 * do not, or if memory ran out (*failed is then set). */
static bool take_piece(mgl_weights *weights, int *part, size_t *offset, uint64_t bytes,
                       bool *failed)
{
    const int parts = mgl_weights_parts(weights->program);
    while (*part < parts && *offset == weights->sizes[*part]) {
        ++*part;
        *offset = 0;
    }
    if (*part == parts || bytes == 0 || bytes > MGL_LARGEST_PIECE ||
        bytes > weights->sizes[*part] - *offset)
        return false;
    *failed = !mgl_weights_add(weights, *part, *offset, (size_t)bytes);
    *offset += (size_t)bytes;
    return !*failed;
}

/* Whether all parts from `part` on are empty, except for the first `offset` bytes of `part`. */
static bool is_end(const mgl_weights *weights, int part, size_t offset)
{
    for (; part < mgl_weights_parts(weights->program); part++, offset = 0)
        if (weights->sizes[part] != offset)
            return false;
    return true;
}

/* Checks the layout version, and that the weights were packed for this schedule. */
static mgl_status check_head(const mgl_weights *weights, const unsigned char *bytes, size_t length,
                             mgl_error *err)
{
    const reading *r = weights->source;
    unsigned char layout[MGL_SHA256_BYTES];
    if (length < NUMBER)
        return mgl_mega_fail(r->file, MGL_MEGA_PIECES, "is not a list of pieces", err);
    if (get_number(bytes) != MGL_TAPE_LAYOUT)
        return mgl_fail(err, MGL_BAD_INPUT, NULL,
                        "the weights lie as in layout %llu of the tape, and this Megalith has "
                        "layout %d; compile the model again",
                        (unsigned long long)get_number(bytes), MGL_TAPE_LAYOUT);
    if (length < PIECES_HEAD || (length - PIECES_HEAD) % PIECE)
        return mgl_mega_fail(r->file, MGL_MEGA_PIECES, "is not a list of pieces", err);
    mgl_program_layout(weights->program, layout);
    if (memcmp(layout, bytes + NUMBER, sizeof layout) != 0)
        return mgl_mega_fail(
            r->file, MGL_MEGA_SCHEDULE,
            "is not the one that the weights were packed for: it has other rows or "
            "formats on its tapes; compile the model again with the schedule",
            err);
    return MGL_OK;
}

/* Reads the pieces that follow a checked header. */
static mgl_status read_pieces(mgl_weights *weights, const unsigned char *bytes, size_t length,
                              mgl_error *err)
{
    reading *r = weights->source;
    size_t offset = 0;
    int part = 0;
    bool failed = false;
    size_t count = (length - PIECES_HEAD) / PIECE;
    r->sums = mgl_alloc_zero(count, sizeof *r->sums);
    if (!r->sums)
        return mgl_fail_memory(err, count * sizeof *r->sums);
    for (size_t i = 0; i < count; i++) {
        const unsigned char *entry = bytes + PIECES_HEAD + i * PIECE;
        r->sums[i] = get_number(entry + NUMBER);
        if (!take_piece(weights, &part, &offset, get_number(entry), &failed))
            return failed
                       ? mgl_fail_memory(err, sizeof(mgl_piece))
                       : mgl_mega_fail(r->file, MGL_MEGA_PIECES, "does not fit the schedule", err);
    }
    if (!is_end(weights, part, offset))
        return mgl_mega_fail(r->file, MGL_MEGA_PIECES, "does not fit the schedule", err);
    return MGL_OK;
}

/* Reads the places of the weights and their checksums. */
static mgl_status read_weights(mgl_image *image, mgl_error *err)
{
    char *bytes;
    size_t length;
    reading *r = image->weights->source;
    int parts = mgl_weights_parts(image->program);
    r->file = image->file;
    r->section = mgl_mega_find(image->file, MGL_MEGA_WEIGHTS);
    image->weights->sizes = mgl_weights_sizes(image->program);
    r->places = image->weights->sizes ? place_parts(image->program, image->weights->sizes) : NULL;
    if (!r->places)
        return mgl_fail_memory(err, (size_t)parts * sizeof *r->places);
    mgl_status status = mgl_mega_read(image->file, MGL_MEGA_PIECES, &bytes, &length, err);
    if (status)
        return status;
    status = check_head(image->weights, (const unsigned char *)bytes, length, err);
    if (!status && (!r->section || r->section->bytes != r->places[parts]))
        status = mgl_mega_fail(image->file, MGL_MEGA_WEIGHTS, "does not fit the schedule", err);
    if (!status)
        status = read_pieces(image->weights, (const unsigned char *)bytes, length, err);
    mgl_free(bytes);
    return status;
}

static mgl_status open_weights(mgl_image *image, mgl_error *err)
{
    reading *r = mgl_alloc_zero(1, sizeof *r);
    image->weights = mgl_alloc_zero(1, sizeof *image->weights);
    if (!r || !image->weights) {
        mgl_free(r);
        return mgl_fail_memory(err, sizeof *image->weights);
    }
    *image->weights = (mgl_weights){.program = image->program,
                                    .make = make_read,
                                    .find = find_part,
                                    .check = check_file,
                                    .source = r,
                                    .close = close_reading};
    return read_weights(image, err);
}

static mgl_status read_kernel(mgl_image *image, const mgl_mega_section *section, mgl_error *err)
{
    char *bytes;
    size_t length;
    mgl_status status = mgl_mega_read(image->file, section->name, &bytes, &length, err);
    if (status)
        return status;
    mgl_vm_kernel *kernel = &image->kernels[image->kernel_count];
    char *key = length > KEY_DIGITS ? mgl_strndup(bytes, KEY_DIGITS) : NULL;
    if (!key) {
        mgl_free(bytes);
        return length > KEY_DIGITS ? mgl_fail_memory(err, KEY_DIGITS)
                                   : mgl_mega_fail(image->file, section->name, "is too short", err);
    }
    memmove(bytes, bytes + KEY_DIGITS, length - KEY_DIGITS + 1); /* includes the final 0 */
    *kernel = (mgl_vm_kernel){.arch = section->name + strlen(MGL_MEGA_KERNEL),
                              .key = key,
                              .bytes = bytes,
                              .length = length - KEY_DIGITS};
    image->kernel_count++;
    return MGL_OK;
}

static mgl_status read_kernels(mgl_image *image, mgl_error *err)
{
    const mgl_mega_table *table = mgl_mega_get_table(image->file);
    size_t prefix = strlen(MGL_MEGA_KERNEL);
    mgl_status status = MGL_OK;
    image->kernels = mgl_alloc_zero(MGL_MEGA_SECTIONS, sizeof *image->kernels);
    if (!image->kernels)
        return mgl_fail_memory(err, MGL_MEGA_SECTIONS * sizeof *image->kernels);
    for (int i = 0; i < table->count && !status; i++)
        if (!strncmp(table->sections[i].name, MGL_MEGA_KERNEL, prefix))
            status = read_kernel(image, &table->sections[i], err);
    return status;
}

static mgl_status read_schedule(mgl_image *image, const char *path, mgl_error *err)
{
    char *text;
    size_t length;
    mgl_status status = mgl_mega_read(image->file, MGL_MEGA_SCHEDULE, &text, &length, err);
    if (status)
        return status;
    status = mgl_schedule_parse(text, length, path, &image->program, err);
    mgl_free(text);
    return status;
}

mgl_status mgl_image_open(const char *path, mgl_image **out, mgl_error *err)
{
    *out = NULL;
    mgl_image *image = mgl_alloc_zero(1, sizeof *image);
    if (!image)
        return mgl_fail_memory(err, sizeof *image);
    mgl_status status = mgl_mega_open(path, &image->file, err);
    if (!status)
        status = read_schedule(image, path, err);
    if (!status)
        status = open_weights(image, err);
    if (!status)
        status = read_kernels(image, err);
    if (status)
        mgl_image_close(image);
    else
        *out = image;
    return status;
}

void mgl_image_close(mgl_image *image)
{
    if (!image)
        return;
    for (int i = 0; i < image->kernel_count; i++) {
        mgl_free((void *)(uintptr_t)image->kernels[i].key);
        mgl_free((void *)(uintptr_t)image->kernels[i].bytes);
    }
    mgl_free(image->kernels);
    mgl_weights_close(image->weights);
    mgl_program_free(image->program);
    mgl_mega_close(image->file);
    mgl_free(image);
}
