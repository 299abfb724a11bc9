/* Implements frozen.h: returns the manifest that the build generates from autotune/frozen.txt. */
#include "autotune/store/frozen.h"

#include "frozen_manifest.h" /* generated from frozen.txt */

static const mgl_frozen_file files[] = {
#define X(path, hash) {path, hash},
    MGL_FROZEN_FILES(X)
#undef X
};

int mgl_frozen_version(void)
{
    return MGL_FROZEN_VERSION;
}

const mgl_frozen_file *mgl_frozen_files(size_t *count)
{
    *count = sizeof files / sizeof *files;
    return files;
}

const char *mgl_frozen_digest(void)
{
    return MGL_FROZEN_DIGEST;
}
