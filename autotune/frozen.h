/*
 * What no search may change: the validator, the machines' scheduling code, the list of ops, the
 * oracles and the statistics, as a manifest of SHA-256 hashes (autotune/frozen.txt) that is
 * compiled into the binary. A campaign names the manifest that it began under and goes on under no
 * other.
 */
#ifndef MGL_AUTOTUNE_FROZEN_H
#define MGL_AUTOTUNE_FROZEN_H

#include "base/sha256.h"

#include <stddef.h>

typedef struct mgl_frozen_file {
    const char *path; /* from the root of the sources */
    const char *hash; /* 64 digits */
} mgl_frozen_file;

int mgl_frozen_version(void); /* stepped by whoever changes a frozen file on purpose */
const mgl_frozen_file *mgl_frozen_files(size_t *count);
/* The SHA-256 of the whole manifest: what a campaign is bound to. Static storage. */
const char *mgl_frozen_digest(void);

#endif
