/*
 * Overlay: the micro-kernels that the user promoted; they replace the built-in ones. The overlay is
 * a folder ($XDG_DATA_HOME/megalith/overlay, or another one) with one text per unit, named by its
 * SHA-256, and manifest.json:
 *
 *     {"schema": "megalith.overlay/1", "units": [
 *       {"unit": "merge", "base": "<hash>", "text": "<hash>", "evidence": {...}}]}
 *
 * `base` is the hash of the canonical form (vm/cuda/canonical.h) of the original text that the
 * promoted text was made from. Older folders contain the hash of its bytes. If the original text
 * has changed since then, other than in comments, the entry is stale and is skipped, because its
 * text was never tested with this kernel. Without a folder or a manifest, the built-in kernel is
 * used.
 *
 * The static scan checks each text every time it is read, before a compiler sees it.
 */
#ifndef MGL_AUTOTUNE_KERNELS_GATES_OVERLAY_H
#define MGL_AUTOTUNE_KERNELS_GATES_OVERLAY_H

#include "autotune/kernels/gates/unit.h"
#include "base/sha256.h"
#include "vm/cuda/sources.h"

enum { MGL_OVERLAY_UNITS = 32 };

typedef struct mgl_overlay_entry {
    const mgl_kernel_unit *unit;
    char base[MGL_SHA256_HEX]; /* hash of the canonical form, or of the bytes */
    char text[MGL_SHA256_HEX]; /* hash of the bytes */
    char *evidence;            /* owned: JSON, or NULL */
    char *before; /* owned: JSON of the replaced entry (text, evidence, before); or NULL */
    char *bytes;  /* owned: the text, 0-terminated */
    bool stale;   /* the base differs from the built-in text */
} mgl_overlay_entry;

/* Release with mgl_overlay_clear after the last kernel was compiled with it. */
typedef struct mgl_overlay {
    mgl_overlay_entry entries[MGL_OVERLAY_UNITS]; /* (count) */
    int count;
    mgl_cuda_source sources[MGL_OVERLAY_UNITS]; /* (source_count) the entries that are not stale */
    int source_count;
} mgl_overlay;

/* `folder` NULL: the user's. MGL_BAD_INPUT: the manifest or a text is invalid; the message
 * contains what to do. */
mgl_status mgl_overlay_read(const char *folder, mgl_overlay *out, mgl_error *err);
void mgl_overlay_clear(mgl_overlay *overlay);

/* Compiles kernels with this overlay from now on, until another call; NULL: the built-in kernel. */
mgl_status mgl_overlay_use(const mgl_overlay *overlay, mgl_error *err);

/* Puts a text (0-terminated) into the folder, which is created if it is missing. `evidence` is a
 * JSON value or NULL. Replaces the unit's entry atomically. */
mgl_status mgl_overlay_put(const char *folder, const mgl_kernel_unit *unit, const char *text,
                           const char *evidence, mgl_error *err);
/* Restores the entry that the last mgl_overlay_put replaced and sets *restored; without such an
 * entry, removes the unit. MGL_BAD_INPUT: the unit is not in the overlay. */
mgl_status mgl_overlay_roll_back(const char *folder, const mgl_kernel_unit *unit, bool *restored,
                                 mgl_error *err);

#endif
