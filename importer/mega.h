/*
 * The container of a compiled model (*.mega): named byte sections, listed in one header page. The
 * container does not interpret the sections. The importer reads the model's own files and the list
 * of its tensors; vm/image.h reads the program, its weights and its kernels.
 *
 *     page 0      header: 4,096 bytes, see below
 *     page 1...   the sections, in the order of the list. Each begins at the next multiple of
 *                 4,096, with zeros between. The file ends at the end of the last section.
 *
 * The header, integers little-endian:
 *
 *        0  8   magic: 89 4D 45 47 41 0D 0A 1A (detects converted line ends and a lost bit 7)
 *        8  4   MGL_MEGA_VERSION
 *       12  4   0x0A0B0C0D (detects a writer of the other byte order)
 *       16  8   size of the file in bytes
 *       24  4   number of sections; at most MGL_MEGA_SECTIONS
 *       28  4   0
 *       32  80  of each section: name (32, zero-padded), offset (8), bytes (8), SHA-256 (32)
 *     ...       zeros
 *     4064  32  SHA-256 of the 4,064 bytes before
 *
 * The hash of a section is checked whenever the whole section is read. A section that is too large
 * for that has a hash of zeros; another section then contains the checksums of its parts.
 */
#ifndef MGL_IMPORTER_MEGA_H
#define MGL_IMPORTER_MEGA_H

#include "base/error.h"
#include "base/sha256.h"

enum {
    MGL_MEGA_VERSION = 1,
    MGL_MEGA_PAGE = 4096,
    MGL_MEGA_SECTIONS = 32,
    MGL_MEGA_NAME = 32 /* bytes of a section's name, including the terminating 0 */
};

/* The folder of a model's additional chat templates. */
#define MGL_TEMPLATES_FOLDER "additional_chat_templates"

/* The section names of a compiled model. A kernel's name is MGL_MEGA_KERNEL and its
 * architecture. */
#define MGL_MEGA_CONFIG           "config.json"
#define MGL_MEGA_GENERATION       "generation_config.json"  /* optional */
#define MGL_MEGA_TOKENIZER        "tokenizer.json"          /* optional */
#define MGL_MEGA_TOKENIZER_CONFIG "tokenizer_config.json"   /* optional */
#define MGL_MEGA_TOKENS           "special_tokens_map.json" /* optional */
#define MGL_MEGA_ADDED_TOKENS     "added_tokens.json"       /* optional */
#define MGL_MEGA_TEMPLATE         "chat_template.jinja"     /* optional */
#define MGL_MEGA_TEMPLATES                                                                         \
    "chat_templates" /* optional: additional ones, {"chat_template": [{"name",                     \
                      * "template"}]} */
#define MGL_MEGA_TENSORS                                                                           \
    "tensors"                        /* bytes of `weights` (8), a safetensors header with formats  \
                                      * of quantized tensors (quantized/compiled.h) */
#define MGL_MEGA_SCHEDULE "schedule" /* the program's text form */
#define MGL_MEGA_PIECES   "pieces"   /* checksums of `weights`: see vm/image.h */
#define MGL_MEGA_WEIGHTS  "weights"  /* no hash of its own */
#define MGL_MEGA_KERNEL   "kernel "

typedef struct mgl_mega_section {
    char name[MGL_MEGA_NAME];
    uint64_t offset, bytes; /* in the file */
    unsigned char hash[MGL_SHA256_BYTES];
} mgl_mega_section;

typedef struct mgl_mega_table {
    mgl_mega_section sections[MGL_MEGA_SECTIONS]; /* (count), in the order of the file */
    int count;
} mgl_mega_table;

/* Parses the header of a file of `file_bytes` bytes. `page` has its first `length` bytes (at
 * most a page). Anything that deviates from the format above is an error. `file` is for
 * messages. */
mgl_status mgl_mega_parse(const unsigned char *page, size_t length, uint64_t file_bytes,
                          const char *file, mgl_mega_table *out, mgl_error *err);
/* Writes the header of a table: the inverse of mgl_mega_parse. */
void mgl_mega_print(const mgl_mega_table *table, unsigned char page[MGL_MEGA_PAGE]);

/* ---- reading -------------------------------------------------------------------------------- */

typedef struct mgl_mega mgl_mega;

/* Sets *stands if MODEL at this path is meant as a compiled model: its name ends in .mega, or it
 * begins with the magic bytes. */
mgl_status mgl_mega_stands(const char *path, bool *stands, mgl_error *err);

/* Maps the file and checks its header. Release with mgl_mega_close. */
mgl_status mgl_mega_open(const char *path, mgl_mega **out, mgl_error *err);
void mgl_mega_close(mgl_mega *mega); /* NULL is fine */
const mgl_mega_table *mgl_mega_get_table(const mgl_mega *mega);
const char *mgl_mega_path(const mgl_mega *mega); /* as it was opened */

/* Returns the section of that name, or NULL. */
const mgl_mega_section *mgl_mega_find(const mgl_mega *mega, const char *name);

/* Reads a section, checks its hash, and appends a 0. A missing section is an error. Release with
 * mgl_free. */
mgl_status mgl_mega_read(const mgl_mega *mega, const char *name, char **out, size_t *length,
                         mgl_error *err);

/* Copies a part of a section without checking the hash. Thread safe. */
mgl_status mgl_mega_read_part(const mgl_mega *mega, const mgl_mega_section *section,
                              uint64_t offset, size_t length, void *to, mgl_error *err);

/* Returns the mapped bytes of a section from `offset` on; read them under mgl_map_guard.
 * mgl_mega_check then checks that the file has not shrunk. */
const void *mgl_mega_bytes(const mgl_mega *mega, const mgl_mega_section *section, uint64_t offset);
mgl_status mgl_mega_check(const mgl_mega *mega, mgl_error *err);

/* Returns MGL_BAD_INPUT with the problem of a section. */
mgl_status mgl_mega_fail(const mgl_mega *mega, const char *section, const char *what,
                         mgl_error *err);

/* ---- writing -------------------------------------------------------------------------------- */

typedef struct mgl_mega_writer mgl_mega_writer;

/* Starts a file. The file gets its name only when it is finished. */
mgl_status mgl_mega_create(const char *path, mgl_mega_writer **out, mgl_error *err);

/* Appends a section. */
mgl_status mgl_mega_add(mgl_mega_writer *writer, const char *name, const void *bytes, size_t length,
                        mgl_error *err);

/* Appends a section without a hash. Its bytes are written with mgl_mega_write; unwritten bytes
 * are zero. */
mgl_status mgl_mega_reserve(mgl_mega_writer *writer, const char *name, uint64_t bytes,
                            mgl_error *err);
/* Writes a part of the last reserved section. Thread safe. */
mgl_status mgl_mega_write(mgl_mega_writer *writer, uint64_t offset, const void *bytes,
                          size_t length, mgl_error *err);

/* Writes the header and names the file; *bytes (may be NULL) becomes its size. Releases the
 * writer, also on failure. */
mgl_status mgl_mega_finish(mgl_mega_writer *writer, uint64_t *bytes, mgl_error *err);
void mgl_mega_abandon(mgl_mega_writer *writer); /* NULL is fine */

#endif
