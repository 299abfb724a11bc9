/* The folder for user data, such as tuned schedules and kernels: $XDG_DATA_HOME/megalith, else
 * ~/.local/share/megalith. */
#ifndef MGL_BASE_DATA_FOLDER_H
#define MGL_BASE_DATA_FOLDER_H

#include "base/text.h"

/* Appends the path of the subfolder `name`, which need not exist. If neither XDG_DATA_HOME nor
 * HOME is an absolute path, returns false and appends nothing. */
bool mgl_data_folder(const char *name, mgl_text *out);

#endif
