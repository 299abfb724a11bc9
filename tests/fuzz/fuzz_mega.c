/*
 * Fuzz target of compiled model files. The bytes must be rejected with a message, or give sections
 * within the file and the same header when written again. The hash is corrected first, so that
 * later checks are reached.
 */
#include "importer/mega.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void check_table(const mgl_mega_table *table, uint64_t file_bytes)
{
    uint64_t end = MGL_MEGA_PAGE;
    for (int i = 0; i < table->count; i++) {
        const mgl_mega_section *section = &table->sections[i];
        require(section->offset % MGL_MEGA_PAGE == 0 && section->offset >= end);
        require(section->offset - end < MGL_MEGA_PAGE);
        require(section->name[0] && !section->name[MGL_MEGA_NAME - 1]);
        require(section->bytes <= file_bytes - section->offset);
        end = section->offset + section->bytes;
    }
    require(end == file_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned char page[MGL_MEGA_PAGE] = {0}, again[MGL_MEGA_PAGE];
    mgl_mega_table table;
    mgl_error err = {0};
    uint64_t file_bytes = 0;
    size_t length = size < MGL_MEGA_PAGE ? size : MGL_MEGA_PAGE;
    memcpy(page, data, length);
    mgl_sha256_of(page, MGL_MEGA_PAGE - MGL_SHA256_BYTES, page + MGL_MEGA_PAGE - MGL_SHA256_BYTES);
    for (int i = 7; i >= 0; i--) /* the length in the header; no file of that length is needed */
        file_bytes = file_bytes << 8 | page[16 + i];
    if (mgl_mega_parse(page, size < 64 ? size : MGL_MEGA_PAGE, file_bytes, "fuzz", &table, &err)) {
        require(err.code == MGL_BAD_INPUT && err.message[0]);
        return 0;
    }
    check_table(&table, file_bytes);
    mgl_mega_print(&table, again);
    require(!memcmp(page, again, sizeof page));
    return 0;
}
