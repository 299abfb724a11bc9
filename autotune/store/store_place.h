/* Location of a store: path, folder, file system, and the process that holds its lock. Shared by
 * the parts of the store and their tests. */
#ifndef MGL_AUTOTUNE_STORE_STORE_PLACE_H
#define MGL_AUTOTUNE_STORE_STORE_PLACE_H

#include "base/error.h"
#include "base/text.h"

/* Creates folder and file if they are missing and `write` is set, and rejects file systems on which
 * a store is unsafe. */
mgl_status mgl_store_prepare_place(const char *path, bool write, mgl_error *err);

/* Returns $XDG_STATE_HOME/megalith, else ~/.local/state/megalith. MGL_USAGE: neither variable is
 * set. */
mgl_status mgl_store_state_folder(mgl_text *out, mgl_error *err);

/* Returns the process that holds the store's write lock; 0: unknown. */
int64_t mgl_store_find_writer(const char *path);

/* MGL_USAGE: the text cannot be the name of a campaign. */
mgl_status mgl_store_check_name(const char *name, mgl_error *err);

/* Name of a network file system by its statfs(2) type; NULL: the type is not one. */
const char *mgl_store_remote_name(uint32_t type);
/* For tests: the file system type that stores appear to be on; 0: the real one. */
void mgl_store_pretend_file_system(uint32_t type);

#endif
