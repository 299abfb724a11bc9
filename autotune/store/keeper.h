/*
 * Keeper: the files of candidate texts and of their results. The modules below write and read
 * their files through it. Files of all earlier versions of this program can be read.
 *
 *     versions of a unit    kernels/UNIT/objects/ID.json   megalith.version/1      version.h
 *     the open work         kernels/UNIT/work.json         megalith.work/1         kernel_session.h
 *     calls of a model      kernels/UNIT/calls/N.json      megalith.call/1         (read by people)
 *     experiment log        kernels/experiment_log.json    megalith.experiment_log/1
 *                                                                                  experiment_log.h
 *     promoted texts        overlay/ID.cuh, manifest.json  megalith.overlay/1      overlay.h
 *     PTX ideas             kernels/ideas.json             megalith.ptx_ideas/1    ideas.h
 *
 * Trials of campaigns are in a database (store.h) instead, because several machines write them.
 *
 * An object is a file named by the SHA-256 of its bytes (content-addressed storage, as in Git):
 * FOLDER/ID.END. An object is written atomically and never changes. A damaged object is rejected
 * by its hash.
 *
 * A document is a file that names objects, or lists results. A process that changes a document
 * locks the document's folder, reads the document, and replaces it atomically. Therefore a killed
 * process leaves the old document or the new one, and a change of another process is never lost.
 */
#ifndef MGL_AUTOTUNE_STORE_KEEPER_H
#define MGL_AUTOTUNE_STORE_KEEPER_H

#include "base/json_out.h"
#include "base/sha256.h"

#include <limits.h>

/* ---- objects --------------------------------------------------------------------------------- */

/* The objects of one folder. Strings are borrowed. */
typedef struct mgl_keeper {
    const char *folder, *end; /* end: ".json" */
    size_t most;              /* largest size of an object in bytes */
} mgl_keeper;

bool mgl_keeper_is_id(const char *text);
void mgl_keeper_name(const char *bytes, size_t length, char id[MGL_SHA256_HEX]);
/* Writes an object, and makes the folder. Fills the id. */
mgl_status mgl_keeper_put(const mgl_keeper *keeper, const char *bytes, size_t length,
                          char id[MGL_SHA256_HEX], mgl_error *err);
/* Reads an object and checks its hash. The caller frees *bytes (0-terminated). */
mgl_status mgl_keeper_get(const mgl_keeper *keeper, const char *id, char **bytes, size_t *length,
                          mgl_error *err);
/* Finds the object whose id starts with these digits. *count: number of such objects. */
mgl_status mgl_keeper_find(const mgl_keeper *keeper, const char *start, char id[MGL_SHA256_HEX],
                           size_t *count, mgl_error *err);
/* Visits the ids of all objects, sorted. An object may be damaged. */
typedef mgl_status mgl_keeper_fn(void *user, const char *id, mgl_error *err);
mgl_status mgl_keeper_each(const mgl_keeper *keeper, mgl_keeper_fn *each, void *user,
                           mgl_error *err);

/* ---- documents ------------------------------------------------------------------------------- */

/* Locks the folder of a document; waits for another process that changes a document there. A folder
 * that is missing, or that the file system cannot lock (NFS), is not locked. Release with
 * mgl_keeper_unlock, also after a failure. */
mgl_status mgl_keeper_lock(const char *path, int *lock, mgl_error *err);
void mgl_keeper_unlock(int lock); /* negative: does nothing */
/* Finds a document whose file name is a row FILE of base/aliases.def, old or new: `path`, or the
 * file with the other name in the same folder if only that file exists. Call it under the lock.
 * MGL_BAD_INPUT: both files exist. */
mgl_status mgl_keeper_locate(const char *path, char found[PATH_MAX], mgl_error *err);
/* Before a write: renames the file that mgl_keeper_locate found to its new name, unless `path` is
 * the old name too. `found` becomes the path to write. */
mgl_status mgl_keeper_rename(const char *path, char found[PATH_MAX], mgl_error *err);
/* Replaces a document atomically with finished JSON, and releases the JSON. */
mgl_status mgl_keeper_write(const char *path, mgl_json_out *json, mgl_error *err);

#endif
