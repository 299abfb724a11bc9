/*
 * The container of a compiled model (*.mega): named sections of bytes behind one page that lists
 * them. What the sections hold is the business of others: the importer reads the model's own files
 * and the list of its tensors, vm/image.h the program, its weights and its kernels.
 *
 *     page 0      header: 4,096 bytes, see below
 *     page 1...   the sections, in the order of the list, each from the next multiple of 4,096 on,
 *                 with zeros between; the file ends where the last one does
 *
 * The header, integers little-endian:
 *
 *        0  8   magic: 89 4D 45 47 41 0D 0A 1A (a copy that changed line ends or lost bit 7 shows)
 *        8  4   MGL_MEGA_VERSION
 *       12  4   0x0A0B0C0D, which a machine of the other byte order would have written backwards
 *       16  8   bytes of the file
 *       24  4   sections; at most MGL_MEGA_SECTIONS
 *       28  4   0
 *       32  80  of each section: name (32, zeros behind), offset (8), bytes (8), SHA-256 (32)
 *     ...       zeros
 *     4064  32  SHA-256 of the 4,064 bytes before
 *
 * The hash of a section is checked whenever it is read whole. A section may have a hash of zeros:
 * it is too large for that, and another section tells how its parts are checked.
 */
#ifndef MGL_IMPORTER_MEGA_H
#define MGL_IMPORTER_MEGA_H

#include "base/error.h"
#include "base/sha256.h"

enum {
    MGL_MEGA_VERSION = 1,
    MGL_MEGA_PAGE = 4096,
    MGL_MEGA_SECTIONS = 32,
    MGL_MEGA_NAME = 32 /* bytes of a section's name, a 0 included */
};

/* Where a model's folder has chat templates beside the one of its own file. */
#define MGL_TEMPLATES_FOLDER "additional_chat_templates"

/* The sections of a compiled model. A kernel's is called MGL_MEGA_KERNEL and its architecture. */
#define MGL_MEGA_CONFIG           "config.json"
#define MGL_MEGA_GENERATION       "generation_config.json"  /* optional */
#define MGL_MEGA_TOKENIZER        "tokenizer.json"          /* optional */
#define MGL_MEGA_TOKENIZER_CONFIG "tokenizer_config.json"   /* optional */
#define MGL_MEGA_TOKENS           "special_tokens_map.json" /* optional */
#define MGL_MEGA_ADDED_TOKENS     "added_tokens.json"       /* optional */
#define MGL_MEGA_TEMPLATE         "chat_template.jinja"     /* optional */
#define MGL_MEGA_TEMPLATES                                                                         \
    "chat_templates"                 /* optional: further ones, {"chat_template":                  \
                                        [{"name", "template"}]} */
#define MGL_MEGA_TENSORS  "tensors"  /* bytes of `weights` (8), a safetensors header */
#define MGL_MEGA_SCHEDULE "schedule" /* the program's text form */
#define MGL_MEGA_PIECES   "pieces"   /* how `weights` is checked: see vm/image.h */
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

/* Reads the header of a file of `file_bytes` bytes, of which `length` (at most a page) are at
 * `page`; refuses whatever is not exactly as above. `file` is for messages. */
mgl_status mgl_mega_parse(const unsigned char *page, size_t length, uint64_t file_bytes,
                          const char *file, mgl_mega_table *out, mgl_error *err);
/* The header of a table: its inverse. */
void mgl_mega_print(const mgl_mega_table *table, unsigned char page[MGL_MEGA_PAGE]);

/* ---- reading -------------------------------------------------------------------------------- */

typedef struct mgl_mega mgl_mega;

/* Whether MODEL at this path is meant to be a compiled one: a file that ends in .mega or begins
 * like one. */
mgl_status mgl_mega_stands(const char *path, bool *stands, mgl_error *err);

/* Maps the file and checks its header. Release with mgl_mega_close. */
mgl_status mgl_mega_open(const char *path, mgl_mega **out, mgl_error *err);
void mgl_mega_close(mgl_mega *mega); /* NULL is fine */
const mgl_mega_table *mgl_mega_get_table(const mgl_mega *mega);
const char *mgl_mega_path(const mgl_mega *mega); /* as it was opened */

/* The section of that name; NULL: there is none. */
const mgl_mega_section *mgl_mega_find(const mgl_mega *mega, const char *name);

/* The bytes of a section, with a 0 behind them, after its hash was checked. Its absence is an
 * error. Release with mgl_free. */
mgl_status mgl_mega_read(const mgl_mega *mega, const char *name, char **out, size_t *length,
                         mgl_error *err);

/* Copies a part of a section, unchecked. Thread safe. */
mgl_status mgl_mega_read_part(const mgl_mega *mega, const mgl_mega_section *section,
                              uint64_t offset, size_t length, void *to, mgl_error *err);

/* Bytes of a section in the map, from `offset` on, to be read under mgl_map_guard; and whether the
 * file still has all its bytes. */
const void *mgl_mega_bytes(const mgl_mega *mega, const mgl_mega_section *section, uint64_t offset);
mgl_status mgl_mega_check(const mgl_mega *mega, mgl_error *err);

/* MGL_BAD_INPUT: what is wrong with a section. */
mgl_status mgl_mega_fail(const mgl_mega *mega, const char *section, const char *what,
                         mgl_error *err);

/* ---- writing -------------------------------------------------------------------------------- */

typedef struct mgl_mega_writer mgl_mega_writer;

/* Starts a file that stands under its name when it is finished, and not before. */
mgl_status mgl_mega_create(const char *path, mgl_mega_writer **out, mgl_error *err);

/* Appends a section. */
mgl_status mgl_mega_add(mgl_mega_writer *writer, const char *name, const void *bytes, size_t length,
                        mgl_error *err);

/* Appends a section without a hash, whose bytes follow by mgl_mega_write; those that do not are
 * zero. */
mgl_status mgl_mega_reserve(mgl_mega_writer *writer, const char *name, uint64_t bytes,
                            mgl_error *err);
/* Writes a part of the section that was reserved. Thread safe. */
mgl_status mgl_mega_write(mgl_mega_writer *writer, uint64_t offset, const void *bytes,
                          size_t length, mgl_error *err);

/* Writes the header and gives the file its name; its size goes to *bytes, which may be NULL.
 * Releases the writer, also when it fails. */
mgl_status mgl_mega_finish(mgl_mega_writer *writer, uint64_t *bytes, mgl_error *err);
void mgl_mega_abandon(mgl_mega_writer *writer); /* NULL is fine */

#endif
