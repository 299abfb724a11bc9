/* Where a store may stand, and who else uses it: shared by the parts of the store and their tests.
 */
#ifndef MGL_AUTOTUNE_STORE_STORE_PLACE_H
#define MGL_AUTOTUNE_STORE_STORE_PLACE_H

#include "base/error.h"
#include "base/text.h"

/* Makes the folder and the file where there is none, and refuses a file system on which a store is
 * not safe. */
mgl_status mgl_store_prepare_place(const char *path, bool write, mgl_error *err);

/* $XDG_STATE_HOME/megalith, else ~/.local/state/megalith. MGL_USAGE: neither is set. */
mgl_status mgl_store_state_folder(mgl_text *out, mgl_error *err);

/* The process that holds the store's write lock, as far as the system tells; 0: unknown. */
int64_t mgl_store_find_writer(const char *path);

/* MGL_USAGE: what can not be the name of a campaign. */
mgl_status mgl_store_check_name(const char *name, mgl_error *err);

/* The name of a network file system, by its number of statfs(2); NULL: it is none. */
const char *mgl_store_remote_name(uint32_t type);
/* Tests: the file system that stores seem to stand on; 0: the truth. */
void mgl_store_pretend_file_system(uint32_t type);

#endif
