/*
 * Holds the key of a chat endpoint. main moves the key out of the environment before a verb runs,
 * because most verbs start processes that must not inherit the key. Only a detached campaign
 * (--detach) gets the key back in its environment.
 */
#include "cli/chat_key.h"

#include "autotune/agents/chat.h"
#include "base/file.h"
#include "base/memory.h"

#include <string.h>
#include <unistd.h>

static char *kept;      /* NULL: there was no key */
static bool read_input; /* `kept` was read from standard input */

void mgl_cli_take_key(void)
{
    mgl_chat_forget_key(kept);
    mgl_chat_take_key(&kept, NULL);
}

/* Reads the key from standard input once. Later calls use `kept`. */
static mgl_status keep_input(mgl_error *err)
{
    char *key;
    mgl_status status = read_input ? MGL_OK : mgl_chat_read_key(MGL_STDIN, &key, err);
    if (status || read_input)
        return status;
    mgl_chat_forget_key(kept);
    kept = key;
    read_input = true;
    return MGL_OK;
}

mgl_status mgl_cli_find_key(const char *path, char **out, mgl_error *err)
{
    *out = NULL;
    bool input = path && !strcmp(path, MGL_STDIN);
    if (path && !input)
        return mgl_chat_read_key(path, out, err);
    mgl_status status = input ? keep_input(err) : MGL_OK;
    if (status)
        return status;
    *out = kept ? mgl_strdup(kept) : NULL;
    return kept && !*out ? mgl_fail_memory(err, strlen(kept) + 1) : MGL_OK;
}

mgl_status mgl_cli_make_environment(bool with_key, mgl_cli_environment *out, mgl_error *err)
{
    static const char name[] = "MEGALITH_CHAT_KEY=";
    size_t count = 0, bytes = sizeof name + (kept ? strlen(kept) : 0);
    while (environ[count])
        count++;
    *out = (mgl_cli_environment){.entries = mgl_alloc((count + 2) * sizeof *out->entries)};
    if (!out->entries)
        return mgl_fail_memory(err, (count + 2) * sizeof *out->entries);
    memcpy(out->entries, environ, count * sizeof *out->entries);
    if (with_key && kept) {
        out->key = mgl_alloc(bytes);
        if (!out->key) {
            mgl_cli_clear_environment(out);
            return mgl_fail_memory(err, bytes);
        }
        memcpy(out->key, name, sizeof name);
        strcat(out->key, kept);
        out->entries[count++] = out->key;
    }
    out->entries[count] = NULL;
    return MGL_OK;
}

void mgl_cli_clear_environment(mgl_cli_environment *environment)
{
    mgl_chat_forget_key(environment->key);
    mgl_free(environment->entries);
    *environment = (mgl_cli_environment){0};
}
