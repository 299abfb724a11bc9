/*
 * Fuzz target of campaign archives. The bytes must be rejected with a reason, or give a consistent
 * archive: ascending trial numbers, parents before their children, and a winner among the trials.
 */
#include "autotune/archive/archive.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static bool is_plain(const char *text)
{
    for (; text && *text; text++)
        if ((unsigned char)*text < ' ' || *text == '/' || *text == 0x7F)
            return false;
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mgl_archive archive;
    mgl_error err = {0};
    if (mgl_archive_parse((const char *)data, size, "fuzz", &archive, &err)) {
        require(err.code == MGL_BAD_INPUT && err.message[0] && !archive.trials && !archive.shares);
        return 0;
    }
    require(archive.winner);
    require(archive.winner->number ==
            (archive.predicted.number ? archive.predicted.number : archive.campaign.incumbent));
    require(is_plain(archive.campaign.name) && is_plain(archive.campaign.device));
    for (size_t i = 1; i < archive.trial_count; i++) {
        require(archive.trials[i].number > archive.trials[i - 1].number);
        require(archive.trials[i].proposal.parent < archive.trials[i].number);
    }
    mgl_archive_clear(&archive);
    return 0;
}
