/* Implements device_record.h: builds the path, checks for an existing record, and writes the
 * file. */
#include "eval/device_record.h"

#include <string.h>

#include "base/data_folder.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/output.h"
#include "schedule/cost/cost.h"

enum { FOLDER_RIGHTS = 0755 };

static bool stays(char c, bool first)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    return strchr(plain, c) || (c == '.' && !first);
}

bool mgl_device_record_path(const char *device, mgl_text *out)
{
    if (!device[0] || !mgl_data_folder("devices", out))
        return false;
    mgl_text_put(out, "/");
    for (const char *c = device; *c; c++)
        mgl_text_append(out, stays(*c, c == device) ? c : "-", 1);
    mgl_text_put(out, ".json");
    return true;
}

mgl_status mgl_device_record_wanted(const char *device, bool *wanted, mgl_error *err)
{
    mgl_costs costs;
    mgl_text path = {0};
    bool stands = true;
    mgl_status status = MGL_OK;
    *wanted = false;
    if (!mgl_costs_find(device, &costs, NULL) || !mgl_device_record_path(device, &path))
        return MGL_OK;
    if (path.failed)
        status = mgl_fail_memory(err, path.capacity);
    else
        status = mgl_file_stands(path.bytes, &stands, err);
    *wanted = !status && !stands;
    mgl_text_clear(&path);
    return status;
}

mgl_status mgl_device_record_write(const char *device, const mgl_text *json, mgl_error *err)
{
    mgl_text folder = {0}, path = {0};
    mgl_status status = MGL_OK;
    if (!mgl_device_record_path(device, &path) || !mgl_data_folder("devices", &folder))
        status = mgl_fail(
            err, MGL_USAGE, "XDG_DATA_HOME",
            "no folder for device records: neither XDG_DATA_HOME nor HOME is set; set one of "
            "them");
    else if (path.failed || folder.failed || json->failed)
        status = mgl_fail_memory(err, json->capacity);
    if (!status)
        status = mgl_folder_make(folder.bytes, FOLDER_RIGHTS, err);
    if (!status)
        status = mgl_output_write_file(path.bytes, json->bytes, json->length, err);
    mgl_text_clear(&folder);
    mgl_text_clear(&path);
    return status;
}
