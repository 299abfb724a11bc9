/* Reads and compares the trials of stores. See stored.h. */
#include "tests/tools/stored.h"

#include "autotune/tune.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static mgl_status look_at(void *user, const mgl_trial *trial, mgl_error *err)
{
    (void)err;
    stored *s = user;
    s->ordered &= trial->number == s->count + 1 && s->count < MOST_STORED;
    if (!s->ordered)
        return MGL_OK;
    memcpy(s->trials[s->count].digest, trial->digest, MGL_SHA256_HEX);
    s->trials[s->count++].outcome = trial->verdict.outcome;
    return MGL_OK;
}

mgl_status stored_read(const char *path, const char *name, stored *out, mgl_error *err)
{
    mgl_store *store = NULL;
    mgl_campaign_record record = {0};
    *out = (stored){.ordered = true};
    if (access(path, F_OK))
        return MGL_OK;
    mgl_status status = mgl_store_open(path, true, &store, err);
    if (status)
        return status;
    out->found = !mgl_store_find_campaign(store, name, &record, NULL);
    if (out->found)
        status = mgl_tune_look_state(store, &record, err);
    out->killed = out->found && !status && record.state && !strcmp(record.state, "killed");
    if (out->found && !status)
        status = mgl_store_each_trial(store, record.id, 1, 0, look_at, out, err);
    mgl_campaign_record_clear(&record);
    mgl_store_close(store);
    return status;
}

bool stored_agrees(const stored *part, const stored *whole)
{
    if (!part->ordered || part->count > whole->count)
        return false;
    for (int64_t i = 0; i < part->count; i++)
        if (strcmp(part->trials[i].digest, whole->trials[i].digest) != 0 ||
            part->trials[i].outcome != whole->trials[i].outcome)
            return false;
    return true;
}

void stored_remove(const char *path)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
    char name[4096 + 16];
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        snprintf(name, sizeof name, "%s%s", path, ends[i]);
        unlink(name);
    }
}
