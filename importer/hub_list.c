/* Lists revisions and similar model names for messages. See hub_list.h. */
#include "importer/hub_list.h"

#include "base/memory.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    SHOWN_REVISIONS = 8,
    SHOWN_MODELS = 5,
    SHOWN_DIGITS = 7,
    MAX_NAME = 200,    /* bytes of ORG/NAME */
    LEAST_PART = 3,    /* of a name that occurs within another name */
    NEAR_EDITS = 3,    /* edits that are always allowed, or one per */
    BYTES_PER_EDIT = 5 /* bytes: SmolLM2-135M is near SmolLM2-360M */
};

/* ---- revisions ------------------------------------------------------------------------------- */

typedef struct revision {
    const char *commit;
    time_t time; /* when the snapshot was made */
} revision;

static int compare_times(const void *a, const void *b)
{
    const revision *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? 1 : -1;
    return strcmp(x->commit, y->commit);
}

/* Returns how many digits distinguish the commit from the others. */
static int count_digits(const mgl_file_list *snapshots, const char *commit)
{
    size_t digits = SHOWN_DIGITS, length = strlen(commit);
    for (size_t i = 0; i < snapshots->count; i++)
        while (snapshots->names[i] != commit && digits < length &&
               !strncmp(snapshots->names[i], commit, digits))
            digits++;
    return (int)digits;
}

static time_t time_of(const char *repository, const char *commit)
{
    mgl_text path = {0};
    struct stat facts;
    bool stands = false;
    mgl_text_format(&path, "%s/snapshots/%s", repository, commit);
    if (path.failed || mgl_file_look(path.bytes, &stands, &facts, NULL))
        stands = false;
    mgl_text_clear(&path);
    return stands ? facts.st_mtime : 0;
}

/* Appends the branches and tags at the commit. Refs in subfolders, such as refs/pr/1, are left
 * out. */
static void put_refs(const char *repository, const char *commit, mgl_text *out)
{
    mgl_text folder = {0};
    mgl_file_list refs = {0};
    mgl_text_format(&folder, "%s/refs", repository);
    if (!folder.failed)
        (void)mgl_folder_list(folder.bytes, "", &refs, NULL);
    for (size_t i = 0; i < refs.count; i++) {
        char *at;
        if (!mgl_hub_read_ref(repository, refs.names[i], &at, NULL) && at && !strcmp(at, commit))
            mgl_text_format(out, ", %.80s", refs.names[i]);
        mgl_free(at);
    }
    mgl_file_list_clear(&refs);
    mgl_text_clear(&folder);
}

static void put_revision(const char *repository, const revision *r, int digits, mgl_text *out)
{
    char date[16];
    struct tm day;
    if (!gmtime_r(&r->time, &day) || !strftime(date, sizeof date, "%Y-%m-%d", &day))
        snprintf(date, sizeof date, "?");
    mgl_text_format(out, "%.*s (%s", digits, r->commit, date);
    put_refs(repository, r->commit, out);
    mgl_text_put(out, ")");
}

void mgl_hub_list_revisions(const char *repository, const mgl_file_list *snapshots, mgl_text *out)
{
    revision *all = mgl_alloc_zero(snapshots->count + 1, sizeof *all);
    if (!all)
        return;
    for (size_t i = 0; i < snapshots->count; i++)
        all[i] = (revision){snapshots->names[i], time_of(repository, snapshots->names[i])};
    qsort(all, snapshots->count, sizeof *all, compare_times);
    for (size_t i = 0; i < snapshots->count && i < SHOWN_REVISIONS; i++) {
        mgl_text_put(out, i ? ", " : "");
        put_revision(repository, &all[i], count_digits(snapshots, all[i].commit), out);
    }
    if (snapshots->count > SHOWN_REVISIONS)
        mgl_text_format(out, " and %zu older", snapshots->count - SHOWN_REVISIONS);
    mgl_free(all);
}

/* ---- models ---------------------------------------------------------------------------------- */

typedef struct model {
    char name[MAX_NAME + 1]; /* ORG/NAME */
    int edits;               /* distance from the wanted name; 0: one name contains the other */
} model;

static void copy_lower(char *to, const char *from, size_t length)
{
    for (size_t i = 0; i < length; i++)
        to[i] = (char)tolower((unsigned char)from[i]);
    to[length] = 0;
}

/* Converts "models--ORG--NAME" to "ORG/NAME". A name of one part cannot be given as a MODEL. */
static bool read_folder(const char *folder, char *to)
{
    static const char prefix[] = "models--";
    const char *org = folder + sizeof prefix - 1;
    if (strncmp(folder, prefix, sizeof prefix - 1) != 0 || strlen(org) > MAX_NAME)
        return false;
    const char *name = strstr(org, "--");
    if (!name || name == org || !name[2])
        return false;
    snprintf(to, MAX_NAME + 1, "%.*s/%s", (int)(name - org), org, name + 2);
    return true;
}

static bool is_part(const char *a, const char *b)
{
    return strlen(a) >= LEAST_PART && strstr(b, a) != NULL;
}

/* Returns whether the names are similar. `wanted` is in lower case. */
static bool is_near(const char *wanted, model *other)
{
    char name[MAX_NAME + 1];
    copy_lower(name, other->name, strlen(other->name));
    const char *a = strchr(wanted, '/') + 1, *b = strchr(name, '/') + 1;
    int most = (int)strlen(wanted) / BYTES_PER_EDIT;
    other->edits = is_part(a, b) || is_part(b, a) ? 0 : mgl_text_count_edits(wanted, name);
    return other->edits <= (most > NEAR_EDITS ? most : NEAR_EDITS);
}

static int compare_edits(const void *a, const void *b)
{
    const model *x = a, *y = b;
    return x->edits != y->edits ? x->edits - y->edits : strcmp(x->name, y->name);
}

static void put_models(model *all, size_t near, size_t count, mgl_text *out)
{
    qsort(all, near, sizeof *all, compare_edits);
    size_t shown = near < SHOWN_MODELS ? near : SHOWN_MODELS;
    for (size_t i = 0; i < shown; i++)
        mgl_text_format(out, "%s%s",
                        !i              ? ", which has "
                        : i + 1 < shown ? ", "
                                        : " and ",
                        all[i].name);
    if (!near && count)
        mgl_text_format(out, ", which has %zu other model%s", count, count == 1 ? "" : "s");
}

void mgl_hub_list_near(const mgl_hub_name *name, const char *cache, mgl_text *out)
{
    char wanted[MAX_NAME + 1];
    mgl_file_list folders;
    size_t near = 0, count = 0;
    if (mgl_folder_list(cache, "", &folders, NULL))
        return;
    model *all = mgl_alloc_zero(folders.count + 1, sizeof *all);
    copy_lower(wanted, name->org, (size_t)(name->org_length + 1 + name->name_length));
    for (size_t i = 0; all && i < folders.count; i++)
        if (read_folder(folders.names[i], all[near].name)) {
            count++;
            near += is_near(wanted, &all[near]);
        }
    if (all)
        put_models(all, near, count, out);
    mgl_free(all);
    mgl_file_list_clear(&folders);
}
