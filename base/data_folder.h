/* Where what a user has gathered is kept: $XDG_DATA_HOME/megalith, else ~/.local/share/megalith. */
#ifndef MGL_BASE_DATA_FOLDER_H
#define MGL_BASE_DATA_FOLDER_H

#include "base/text.h"

/* Appends the path of the folder `name` there, which need not stand. False, and nothing is
 * appended, where neither XDG_DATA_HOME nor HOME says where. */
bool mgl_data_folder(const char *name, mgl_text *out);

#endif
