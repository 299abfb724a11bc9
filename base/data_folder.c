/* Finds the folder for user data from the environment. See data_folder.h. */
#include "base/data_folder.h"

#include <stdlib.h>

bool mgl_data_folder(const char *name, mgl_text *out)
{
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    if (data && data[0] == '/') /* the XDG specification: ignore relative paths */
        mgl_text_format(out, "%s/megalith/%s", data, name);
    else if (home && home[0] == '/')
        mgl_text_format(out, "%s/.local/share/megalith/%s", home, name);
    else
        return false;
    return true;
}
