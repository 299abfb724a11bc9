/* Reads and writes the container of a compiled model. mega.h specifies the format. */
#include "importer/mega.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/output.h"
#include "base/placeholder.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum {
    MAGIC_BYTES = 8,
    ORDER_MARK = 0x0A0B0C0D,
    SWAPPED_MARK = 0x0D0C0B0A,
    FIRST_ENTRY = 32,
    ENTRY_BYTES = 80,
    HASHED_BYTES = MGL_MEGA_PAGE - MGL_SHA256_BYTES
};

static const unsigned char magic[MAGIC_BYTES] = {0x89, 'M', 'E', 'G', 'A', '\r', '\n', 0x1A};

/* ---- the header ----------------------------------------------------------------------------- */

static uint64_t get_number(const unsigned char *from, int bytes)
{
    uint64_t value = 0;
    for (int i = bytes - 1; i >= 0; i--)
        value = value << 8 | from[i];
    return value;
}

static void put_number(unsigned char *to, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        to[i] = (unsigned char)(value >> (8 * i));
}

/* Rounds up to a multiple of a page. */
static uint64_t round_up(uint64_t offset)
{
    return (offset + MGL_MEGA_PAGE - 1) / MGL_MEGA_PAGE * MGL_MEGA_PAGE;
}

/* Returns the end of the last section. */
static uint64_t end_of(const mgl_mega_table *table)
{
    const mgl_mega_section *last = table->sections + (table->count ? table->count - 1 : 0);
    return table->count ? last->offset + last->bytes : MGL_MEGA_PAGE;
}

static bool is_zero(const unsigned char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (bytes[i])
            return false;
    return true;
}

/* Before the hash is checked, detects other formats, versions and byte orders, so that they are
 * not reported as damage. */
static mgl_status check_kind(const unsigned char *page, size_t length, const char *file,
                             mgl_error *err)
{
    uint64_t version = length < 16 ? 0 : get_number(page + 8, 4);
    if (length < MAGIC_BYTES || memcmp(page, magic, MAGIC_BYTES) != 0)
        return mgl_fail(err, MGL_BAD_INPUT, file,
                        "is not a compiled model: it does not begin with the header that `megalith "
                        "compile` writes");
    if (length < MGL_MEGA_PAGE)
        return mgl_fail(err, MGL_BAD_INPUT, file, "is cut off: %zu bytes are not a whole header",
                        length);
    if (get_number(page + 12, 4) == SWAPPED_MARK)
        return mgl_fail(
            err, MGL_BAD_INPUT, file,
            "was written on a machine of the other byte order; compile the model on this machine");
    if (version != MGL_MEGA_VERSION)
        return mgl_fail(err, MGL_BAD_INPUT, file,
                        "has version %" PRIu64 " of the format, and this Megalith reads version "
                        "%d; compile the model again",
                        version, MGL_MEGA_VERSION);
    return MGL_OK;
}

/* Checks the header fields other than the sections. */
static mgl_status check_header(const unsigned char *page, uint64_t file_bytes, const char *file,
                               mgl_error *err)
{
    unsigned char hash[MGL_SHA256_BYTES];
    uint64_t said = get_number(page + 16, 8), count = get_number(page + 24, 4);
    mgl_sha256_of(page, HASHED_BYTES, hash);
    if (memcmp(hash, page + HASHED_BYTES, sizeof hash) != 0)
        return mgl_fail(err, MGL_BAD_INPUT, file,
                        "is damaged: the header does not have the hash that it states");
    if (said != file_bytes)
        return mgl_fail(err, MGL_BAD_INPUT, file,
                        "is %s: it has %" PRIu64 " bytes and was written with %" PRIu64,
                        file_bytes < said ? "cut off" : "longer than it was", file_bytes, said);
    if (get_number(page + 12, 4) != ORDER_MARK || get_number(page + 28, 4) ||
        count > MGL_MEGA_SECTIONS || file_bytes > INT64_MAX ||
        !is_zero(page + FIRST_ENTRY + count * ENTRY_BYTES,
                 HASHED_BYTES - FIRST_ENTRY - (size_t)count * ENTRY_BYTES))
        return mgl_fail(err, MGL_BAD_INPUT, file, "is damaged: its header makes no sense");
    return MGL_OK;
}

static bool is_name(const unsigned char *name)
{
    size_t length = strnlen((const char *)name, MGL_MEGA_NAME);
    for (size_t i = 0; i < length; i++)
        if (name[i] <= ' ' ? name[i] != ' ' || !i : name[i] > '~')
            return false;
    return length > 0 && length < MGL_MEGA_NAME && is_zero(name + length, MGL_MEGA_NAME - length);
}

static const mgl_mega_section *find(const mgl_mega_table *table, const char *name)
{
    for (int i = 0; i < table->count; i++)
        if (!strcmp(table->sections[i].name, name))
            return &table->sections[i];
    return NULL;
}

/* Appends an entry; returns false if the entry is malformed or its section does not follow the
 * one before. */
static bool read_entry(const unsigned char *from, uint64_t file_bytes, mgl_mega_table *out)
{
    uint64_t start = round_up(end_of(out));
    mgl_mega_section *section = &out->sections[out->count];
    if (!is_name(from))
        return false;
    memcpy(section->name, from, MGL_MEGA_NAME);
    section->offset = get_number(from + 32, 8);
    section->bytes = get_number(from + 40, 8);
    memcpy(section->hash, from + 48, MGL_SHA256_BYTES);
    if (section->offset != start || start > file_bytes || section->bytes > file_bytes - start ||
        find(out, section->name))
        return false;
    out->count++;
    return true;
}

mgl_status mgl_mega_parse(const unsigned char *page, size_t length, uint64_t file_bytes,
                          const char *file, mgl_mega_table *out, mgl_error *err)
{
    *out = (mgl_mega_table){0};
    mgl_status status = check_kind(page, length, file, err);
    if (!status)
        status = check_header(page, file_bytes, file, err);
    if (status)
        return status;
    int count = (int)get_number(page + 24, 4);
    for (int i = 0; i < count; i++)
        if (!read_entry(page + FIRST_ENTRY + i * ENTRY_BYTES, file_bytes, out))
            return mgl_fail(err, MGL_BAD_INPUT, file,
                            "is damaged: section %d of its header makes no sense", i);
    if (end_of(out) != file_bytes)
        return mgl_fail(err, MGL_BAD_INPUT, file, "is damaged: it has bytes after its sections");
    return MGL_OK;
}

void mgl_mega_print(const mgl_mega_table *table, unsigned char page[MGL_MEGA_PAGE])
{
    memset(page, 0, MGL_MEGA_PAGE);
    memcpy(page, magic, MAGIC_BYTES);
    put_number(page + 8, MGL_MEGA_VERSION, 4);
    put_number(page + 12, ORDER_MARK, 4);
    put_number(page + 16, end_of(table), 8);
    put_number(page + 24, (uint64_t)table->count, 4);
    for (int i = 0; i < table->count; i++) {
        unsigned char *to = page + FIRST_ENTRY + i * ENTRY_BYTES;
        memcpy(to, table->sections[i].name, MGL_MEGA_NAME);
        put_number(to + 32, table->sections[i].offset, 8);
        put_number(to + 40, table->sections[i].bytes, 8);
        memcpy(to + 48, table->sections[i].hash, MGL_SHA256_BYTES);
    }
    mgl_sha256_of(page, HASHED_BYTES, page + HASHED_BYTES);
}

/* ---- reading -------------------------------------------------------------------------------- */

struct mgl_mega {
    mgl_map *map;
    char *path; /* owned: for messages */
    mgl_mega_table table;
};

/* Sets *does if the file begins with the magic bytes. */
static mgl_status begins_like_one(const char *path, bool *does, mgl_error *err)
{
    unsigned char start[MAGIC_BYTES] = {0};
    mgl_map *map;
    mgl_status status = mgl_map_open(path, &map, err);
    if (status)
        return status;
    if (mgl_map_size(map) >= MAGIC_BYTES)
        status = mgl_map_read(map, 0, MAGIC_BYTES, start, err);
    mgl_map_close(map);
    *does = !status && !memcmp(start, magic, MAGIC_BYTES);
    return status;
}

mgl_status mgl_mega_stands(const char *path, bool *stands, mgl_error *err)
{
    struct stat facts;
    bool found;
    *stands = false;
    mgl_status status = mgl_file_look(path, &found, &facts, err);
    if (status || !found || !S_ISREG(facts.st_mode))
        return status;
    *stands = mgl_text_ends(path, ".mega");
    return *stands ? MGL_OK : begins_like_one(path, stands, err);
}

/* Checks that the gaps between sections are zero, so that every byte of the file is checked. */
static mgl_status check_gaps(const mgl_mega *mega, mgl_error *err)
{
    unsigned char gap[MGL_MEGA_PAGE];
    for (int i = 1; i < mega->table.count; i++) {
        const mgl_mega_section *before = &mega->table.sections[i - 1];
        uint64_t end = before->offset + before->bytes;
        size_t length = (size_t)(mega->table.sections[i].offset - end);
        mgl_status status = mgl_map_read(mega->map, (size_t)end, length, gap, err);
        if (status)
            return status;
        if (!is_zero(gap, length))
            return mgl_fail(err, MGL_BAD_INPUT, mega->path,
                            "is damaged: there are bytes behind its section %s", before->name);
    }
    return MGL_OK;
}

static mgl_status read_header(mgl_mega *mega, mgl_error *err)
{
    unsigned char page[MGL_MEGA_PAGE];
    size_t size = mgl_map_size(mega->map), length = size < sizeof page ? size : sizeof page;
    mgl_status status = mgl_map_read(mega->map, 0, length, page, err);
    if (!status)
        status = mgl_mega_parse(page, length, size, mega->path, &mega->table, err);
    return status ? status : check_gaps(mega, err);
}

mgl_status mgl_mega_open(const char *path, mgl_mega **out, mgl_error *err)
{
    *out = NULL;
    mgl_mega *mega = mgl_alloc_zero(1, sizeof *mega);
    if (!mega)
        return mgl_fail_memory(err, sizeof *mega);
    mega->path = mgl_strdup(path);
    mgl_status status =
        mega->path ? mgl_map_open(path, &mega->map, err) : mgl_fail_memory(err, strlen(path) + 1);
    if (!status)
        status = mgl_placeholder_check_map(mega->map, err);
    if (!status)
        status = read_header(mega, err);
    if (status)
        mgl_mega_close(mega);
    else
        *out = mega;
    return status;
}

void mgl_mega_close(mgl_mega *mega)
{
    if (!mega)
        return;
    mgl_map_close(mega->map);
    mgl_free(mega->path);
    mgl_free(mega);
}

const mgl_mega_table *mgl_mega_get_table(const mgl_mega *mega)
{
    return &mega->table;
}

const mgl_mega_section *mgl_mega_find(const mgl_mega *mega, const char *name)
{
    return find(&mega->table, name);
}

const char *mgl_mega_path(const mgl_mega *mega)
{
    return mega->path;
}

mgl_status mgl_mega_fail(const mgl_mega *mega, const char *section, const char *what,
                         mgl_error *err)
{
    return mgl_fail(
        err, MGL_BAD_INPUT, mega->path,
        "is damaged: its section %s %s; compile the model again, or copy the file again", section,
        what);
}

static bool has_hash(const mgl_mega_section *section, const char *bytes)
{
    unsigned char hash[MGL_SHA256_BYTES];
    mgl_sha256_of(bytes, (size_t)section->bytes, hash);
    return !memcmp(hash, section->hash, sizeof hash);
}

mgl_status mgl_mega_read(const mgl_mega *mega, const char *name, char **out, size_t *length,
                         mgl_error *err)
{
    *out = NULL;
    const mgl_mega_section *section = mgl_mega_find(mega, name);
    if (!section)
        return mgl_mega_fail(mega, name, "is missing", err);
    size_t bytes = (size_t)section->bytes;
    char *to = bytes < SIZE_MAX ? mgl_alloc(bytes + 1) : NULL;
    if (!to)
        return mgl_fail_memory(err, bytes);
    mgl_status status = mgl_mega_read_part(mega, section, 0, bytes, to, err);
    if (!status && !has_hash(section, to))
        status = mgl_mega_fail(mega, name, "does not have the hash that the header states", err);
    if (status) {
        mgl_free(to);
        return status;
    }
    to[bytes] = 0;
    *out = to;
    *length = bytes;
    return MGL_OK;
}

mgl_status mgl_mega_read_part(const mgl_mega *mega, const mgl_mega_section *section,
                              uint64_t offset, size_t length, void *to, mgl_error *err)
{
    if (offset > section->bytes || length > section->bytes - offset)
        return mgl_mega_fail(mega, section->name, "is too short", err);
    return mgl_map_read(mega->map, (size_t)(section->offset + offset), length, to, err);
}

const void *mgl_mega_bytes(const mgl_mega *mega, const mgl_mega_section *section, uint64_t offset)
{
    return (const char *)mgl_map_bytes(mega->map) + section->offset + offset;
}

mgl_status mgl_mega_check(const mgl_mega *mega, mgl_error *err)
{
    return mgl_map_check(mega->map, mgl_map_size(mega->map), err);
}

/* ---- writing -------------------------------------------------------------------------------- */

struct mgl_mega_writer {
    mgl_output *output;
    mgl_mega_table table;
    uint64_t reserved; /* offset of the last reserved section */
};

mgl_status mgl_mega_create(const char *path, mgl_mega_writer **out, mgl_error *err)
{
    *out = NULL;
    mgl_mega_writer *writer = mgl_alloc_zero(1, sizeof *writer);
    if (!writer)
        return mgl_fail_memory(err, sizeof *writer);
    mgl_status status = mgl_output_open(path, &writer->output, err);
    if (status)
        mgl_free(writer);
    else
        *out = writer;
    return status;
}

/* Adds the next section's entry, with name and offset. */
static mgl_status append(mgl_mega_writer *writer, const char *name, uint64_t bytes,
                         mgl_mega_section **out, mgl_error *err)
{
    mgl_mega_table *table = &writer->table;
    uint64_t offset = round_up(end_of(table));
    if (table->count == MGL_MEGA_SECTIONS || strlen(name) >= MGL_MEGA_NAME || find(table, name))
        return mgl_fail(err, MGL_USAGE, name, "cannot be a section of the compiled model");
    mgl_mega_section *section = &table->sections[table->count];
    *section = (mgl_mega_section){.offset = offset, .bytes = bytes};
    memcpy(section->name, name, strlen(name));
    table->count++;
    *out = section;
    return MGL_OK;
}

mgl_status mgl_mega_add(mgl_mega_writer *writer, const char *name, const void *bytes, size_t length,
                        mgl_error *err)
{
    mgl_mega_section *section;
    mgl_status status = append(writer, name, length, &section, err);
    if (status)
        return status;
    mgl_sha256_of(bytes, length, section->hash);
    return mgl_output_write(writer->output, section->offset, bytes, length, err);
}

mgl_status mgl_mega_reserve(mgl_mega_writer *writer, const char *name, uint64_t bytes,
                            mgl_error *err)
{
    mgl_mega_section *section;
    mgl_status status = append(writer, name, bytes, &section, err);
    if (status)
        return status;
    writer->reserved = section->offset;
    /* writes the last byte, so that the file has its full length */
    return bytes ? mgl_output_write(writer->output, section->offset + bytes - 1, "", 1, err)
                 : MGL_OK;
}

mgl_status mgl_mega_write(mgl_mega_writer *writer, uint64_t offset, const void *bytes,
                          size_t length, mgl_error *err)
{
    return mgl_output_write(writer->output, writer->reserved + offset, bytes, length, err);
}

mgl_status mgl_mega_finish(mgl_mega_writer *writer, uint64_t *bytes, mgl_error *err)
{
    unsigned char page[MGL_MEGA_PAGE];
    mgl_mega_print(&writer->table, page);
    if (bytes)
        *bytes = get_number(page + 16, 8);
    mgl_status status = mgl_output_write(writer->output, 0, page, sizeof page, err);
    if (status) {
        mgl_mega_abandon(writer);
        return status;
    }
    status = mgl_output_finish(writer->output, err);
    mgl_free(writer);
    return status;
}

void mgl_mega_abandon(mgl_mega_writer *writer)
{
    if (!writer)
        return;
    mgl_output_abandon(writer->output);
    mgl_free(writer);
}
