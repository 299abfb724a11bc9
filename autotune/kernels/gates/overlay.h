/*
 * The overlay: micro-kernels that this user has promoted, which stand in the place of the ones that
 * were built in. A folder ($XDG_DATA_HOME/megalith/overlay, or another one) with one text a unit,
 * named by its SHA-256, and manifest.json:
 *
 *     {"schema": "megalith.overlay/1", "units": [
 *       {"unit": "merge", "base": "<hash>", "text": "<hash>", "evidence": {...}}]}
 *
 * `base` is the hash of the canonical text (vm/cuda/canonical.h) of the unit's own text that the
 * other one was made of; older folders have the hash of its bytes. A unit whose own text has
 * changed since then, other than in comments, is left out: its overlay was never tried with the
 * rest of this kernel. Where there is no folder, or no manifest in it, nothing changes.
 *
 * Texts are looked at by the static scan each time they are read, before any compiler sees them.
 */
#ifndef MGL_AUTOTUNE_KERNELS_GATES_OVERLAY_H
#define MGL_AUTOTUNE_KERNELS_GATES_OVERLAY_H

#include "autotune/kernels/gates/unit.h"
#include "base/sha256.h"
#include "vm/cuda/sources.h"

enum { MGL_OVERLAY_UNITS = 32 };

typedef struct mgl_overlay_entry {
    const mgl_kernel_unit *unit;
    char base[MGL_SHA256_HEX]; /* of the canonical text, or of bytes */
    char text[MGL_SHA256_HEX]; /* of bytes */
    char *evidence;            /* owned: JSON, or NULL */
    char *before; /* owned: JSON of what stood there before: text, evidence, before; or NULL */
    char *bytes;  /* owned: the text, 0-terminated */
    bool stale;   /* its base is not what is built in */
} mgl_overlay_entry;

/* Release with mgl_overlay_clear, when no kernel is compiled with it any more. */
typedef struct mgl_overlay {
    mgl_overlay_entry entries[MGL_OVERLAY_UNITS]; /* (count) */
    int count;
    mgl_cuda_source sources[MGL_OVERLAY_UNITS]; /* (source_count) of those that are not stale */
    int source_count;
} mgl_overlay;

/* `folder` NULL: the user's. MGL_BAD_INPUT: the manifest or a text is not what it has to be, with
 * what to do. */
mgl_status mgl_overlay_read(const char *folder, mgl_overlay *out, mgl_error *err);
void mgl_overlay_clear(mgl_overlay *overlay);

/* From now on kernels are compiled with it, until another one is used, or NULL: as built in. */
mgl_status mgl_overlay_use(const mgl_overlay *overlay, mgl_error *err);

/* Puts a text (0-terminated) into the folder, which is made where it does not stand; `evidence`:
 * a JSON value, or NULL. What stood there for the unit is replaced, whole or not at all. */
mgl_status mgl_overlay_put(const char *folder, const mgl_kernel_unit *unit, const char *text,
                           const char *evidence, mgl_error *err);
/* Puts back what stood there for the unit before it was put there last: the text that it replaced,
 * *restored true, or nothing. MGL_BAD_INPUT: it is not there. */
mgl_status mgl_overlay_roll_back(const char *folder, const mgl_kernel_unit *unit, bool *restored,
                                 mgl_error *err);
/* Takes a unit out of it. MGL_BAD_INPUT: it is not there. */
mgl_status mgl_overlay_remove(const char *folder, const mgl_kernel_unit *unit, mgl_error *err);

#endif
