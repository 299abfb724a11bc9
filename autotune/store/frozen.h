/*
 * The frozen manifest: the files that a search may not change. The manifest covers the validator,
 * the scheduling code of both machines, the list of ops, the reference oracles and the statistics.
 * Its source is autotune/frozen.txt (SHA-256 and path of each file), which is compiled into the
 * binary. A campaign records the digest of the manifest that it began under. The campaign loop
 * rejects any other digest.
 */
#ifndef MGL_AUTOTUNE_STORE_FROZEN_H
#define MGL_AUTOTUNE_STORE_FROZEN_H

#include "base/sha256.h"

#include <stddef.h>

typedef struct mgl_frozen_file {
    const char *path; /* relative to the root of the source tree */
    const char *hash; /* 64 hexadecimal digits */
} mgl_frozen_file;

int mgl_frozen_version(void); /* incremented by a developer who changes a frozen file on purpose */
const mgl_frozen_file *mgl_frozen_files(size_t *count);
/* The SHA-256 of the whole manifest. Each campaign record contains it. Static storage. */
const char *mgl_frozen_digest(void);

#endif
