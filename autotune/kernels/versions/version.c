/* Implements version.h: the files, the objects with their hashes, names, and branches. */
#include "autotune/kernels/versions/version.h"

#include "autotune/store/keeper.h"
#include "base/aliases.h"
#include "base/memory.h"
#include "base/output.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_OBJECT = 4 << 20,
    MAX_BRANCH = 64,
    SHORT_ID = 8, /* shortest abbreviation of an id in digits */
    MOST_LOGGED = 1 << 16
};

struct mgl_versions {
    char *folder, object_folder[PATH_MAX];
    mgl_keeper objects;
    char branch[MAX_BRANCH + 1];
    const char *unit, *original; /* borrowed: the unit's original text; NULL: none */
};

static const char schema[] = "megalith.version/1";
const char mgl_version_original[] = "original";

/* ---- files ----------------------------------------------------------------------------------- */

static mgl_status make_path(const mgl_versions *c, const char *below, const char *name,
                            char path[PATH_MAX], mgl_error *err)
{
    return mgl_file_path(path, err, "%s/%s%s", c->folder, below, name);
}

static mgl_status write_line(const mgl_versions *c, const char *below, const char *name,
                             const char *line, mgl_error *err)
{
    char path[PATH_MAX], text[MAX_BRANCH + MGL_SHA256_HEX];
    const int length = snprintf(text, sizeof text, "%s\n", line);
    mgl_status status = make_path(c, below, name, path, err);
    return status ? status : mgl_output_write_file(path, text, (size_t)length, err);
}

/* Reads the single line of a file. *stands: whether the file exists. */
static mgl_status read_line(const mgl_versions *c, const char *below, const char *name, char *line,
                            size_t size, bool *stands, mgl_error *err)
{
    char path[PATH_MAX], *text = NULL;
    size_t length = 0;
    mgl_status status = make_path(c, below, name, path, err);
    if (!status)
        status = mgl_file_stands(path, stands, err);
    if (!status && *stands)
        status = mgl_file_read_regular(path, size, &text, &length, err);
    if (!status && *stands && (length < 2 || text[length - 1] != '\n' || strlen(text) != length))
        status = mgl_fail(err, MGL_BAD_INPUT, path, "it does not hold one line");
    if (!status && *stands) {
        memcpy(line, text, length - 1);
        line[length - 1] = 0;
    }
    mgl_free(text);
    return status;
}

static mgl_status check_branch_name(const char *name, mgl_error *err)
{
    size_t length = strlen(name);
    bool good = length && length <= MAX_BRANCH && name[0] != '.' && name[0] != '-';
    for (const char *at = name; *at && good; at++)
        good = isalnum((unsigned char)*at) || strchr("_-.", *at);
    return good
               ? MGL_OK
               : mgl_fail(err, MGL_USAGE, name,
                          "the name of a branch has 1 to %d letters, digits, '_', '-' and '.', and "
                          "begins with a letter or digit",
                          MAX_BRANCH);
}

static mgl_status make_folders(const mgl_versions *c, mgl_error *err)
{
    char path[PATH_MAX];
    mgl_status status = mgl_folder_make(c->objects.folder, 0777, err);
    if (!status)
        status = make_path(c, "branches", "", path, err);
    return status ? status : mgl_folder_make(path, 0777, err);
}

mgl_status mgl_versions_open(const char *folder, bool reads, mgl_versions **out, mgl_error *err)
{
    bool stands = false;
    mgl_versions *c = *out = mgl_alloc_zero(1, sizeof *c);
    if (c)
        c->folder = mgl_strdup(folder);
    mgl_status status = c && c->folder ? MGL_OK : mgl_fail_memory(err, strlen(folder));
    if (!status)
        status = make_path(c, "objects", "", c->object_folder, err);
    if (!status)
        c->objects = (mgl_keeper){c->object_folder, ".json", MAX_OBJECT};
    if (!status && !reads)
        status = make_folders(c, err);
    if (!status)
        status = read_line(c, "", "head", c->branch, sizeof c->branch, &stands, err);
    if (!status && !stands)
        strcpy(c->branch, "main");
    if (!status)
        status = check_branch_name(c->branch, err);
    if (status) {
        mgl_versions_close(c);
        *out = NULL;
    }
    return status;
}

void mgl_versions_close(mgl_versions *c)
{
    if (!c)
        return;
    mgl_free(c->folder);
    mgl_free(c);
}

void mgl_versions_lend_original(mgl_versions *c, const char *unit, const char *text)
{
    c->unit = unit;
    c->original = text;
}

const char *mgl_versions_branch(const mgl_versions *c)
{
    return c->branch;
}

/* ---- an object ------------------------------------------------------------------------------- */

/* The members of mgl_facts, by name. */
#define FACTS(X)                                                                                   \
    X(time_us)                                                                                     \
    X(predicted_us)                                                                                \
    X(gain)                                                                                        \
    X(gain_lo)                                                                                     \
    X(gain_hi)                                                                                     \
    X(floor_us)                                                                                    \
    X(registers)                                                                                   \
    X(spill_bytes)                                                                                 \
    X(shared_bytes)

static void write_facts(const mgl_facts *facts, mgl_json_out *out)
{
    mgl_json_out_object(out, "facts");
#define MGL_X(name)                                                                                \
    if (facts->name != 0)                                                                          \
        mgl_json_out_double(out, #name, facts->name);
    FACTS(MGL_X)
#undef MGL_X
    mgl_json_out_close_object(out);
}

static mgl_status read_facts(const mgl_json *json, mgl_facts *out, mgl_error *err)
{
    const cJSON *object = NULL;
    mgl_status status = mgl_json_get_object(json, json->root, "facts", true, &object, err);
#define MGL_X(name)                                                                                \
    if (!status)                                                                                   \
        status = mgl_json_get_double(json, object, #name, false, &out->name, err);
    FACTS(MGL_X)
#undef MGL_X
    return status;
}

static void write_object(const mgl_version_record *r, mgl_json_out *out)
{
    mgl_json_out_begin(out, schema);
    mgl_json_out_array(out, "parents");
    for (int i = 0; i < r->parent_count; i++)
        mgl_json_out_string(out, NULL, r->parents[i]);
    mgl_json_out_close_array(out);
    mgl_json_out_string(out, "unit", r->unit);
    mgl_json_out_string(out, "arch", r->arch);
    mgl_json_out_string(out, "transformation", r->transformation ? r->transformation : "");
    mgl_json_out_string(out, "note", r->note ? r->note : "");
    mgl_json_out_string(out, "provides", r->provides ? r->provides : "");
    mgl_trial_verdict_put(out, &r->verdict);
    write_facts(&r->verdict.facts, out);
    mgl_json_out_object(out, "values");
    for (int i = 0; i < r->value_count; i++)
        mgl_json_out_int(out, r->values[i].name, r->values[i].value);
    mgl_json_out_close_object(out);
    mgl_json_out_string(out, "text", r->text);
    mgl_json_out_close(out);
    mgl_text_put(&out->text, "\n");
}

static mgl_status read_parents(mgl_version_record *r, mgl_error *err)
{
    const cJSON *list = NULL;
    mgl_status status = mgl_json_get_array(&r->json, r->json.root, "parents", true, &list, err);
    for (const cJSON *at = status ? NULL : list->child; at; at = at->next) {
        if (!cJSON_IsString(at) || !mgl_keeper_is_id(at->valuestring) ||
            r->parent_count == MGL_VERSION_PARENTS)
            return mgl_fail(err, MGL_BAD_INPUT, r->json.file, "its parents are no ids");
        memcpy(r->parents[r->parent_count++], at->valuestring, MGL_SHA256_HEX);
    }
    return status;
}

static mgl_status read_values(mgl_version_record *r, mgl_error *err)
{
    const int64_t most = INT64_C(1) << 40;
    const cJSON *object = NULL;
    mgl_status status = mgl_json_get_object(&r->json, r->json.root, "values", true, &object, err);
    for (const cJSON *at = status ? NULL : object->child; at && !status; at = at->next) {
        if (r->value_count == MGL_VERSION_VALUES)
            return mgl_fail(err, MGL_BAD_INPUT, r->json.file, "it has too many values");
        mgl_kernel_value *to = &r->values[r->value_count++];
        to->name = at->string;
        status = mgl_json_item_int(&r->json, at, at->string, -most, most, &to->value, err);
    }
    return status;
}

static mgl_status read_strings(mgl_version_record *r, mgl_error *err)
{
    struct {
        const char *name, **to;
    } strings[] = {
        {"unit", &r->unit}, {"arch", &r->arch},         {"transformation", &r->transformation},
        {"note", &r->note}, {"provides", &r->provides}, {"text", &r->text}};
    const cJSON *root = r->json.root;
    mgl_status status = mgl_json_check_schema(&r->json, schema, err);
    for (size_t i = 0; i < sizeof strings / sizeof *strings && !status; i++)
        status = mgl_json_get_string(&r->json, root, strings[i].name, true, strings[i].to, err);
    return status ? status : mgl_trial_verdict_read(&r->json, root, &r->verdict, err);
}

static mgl_status read_object(const char *text, size_t length, const char *file,
                              mgl_version_record *r, mgl_error *err)
{
    mgl_status status = mgl_json_parse(text, length, MAX_OBJECT, file, &r->json, err);
    if (!status)
        status = read_strings(r, err);
    if (!status)
        status = read_facts(&r->json, &r->verdict.facts, err);
    if (!status)
        status = read_parents(r, err);
    return status ? status : read_values(r, err);
}

void mgl_version_clear(mgl_version_record *r)
{
    mgl_json_clear(&r->json);
    *r = (mgl_version_record){0};
}

static mgl_status get_object(const mgl_versions *c, const char *id, mgl_version_record *out,
                             mgl_error *err)
{
    char *text = NULL;
    size_t length = 0;
    *out = (mgl_version_record){0};
    mgl_status status = mgl_keeper_get(&c->objects, id, &text, &length, err);
    if (!status)
        status = read_object(text, length, id, out, err);
    if (status)
        mgl_version_clear(out);
    else
        memcpy(out->id, id, sizeof out->id);
    mgl_free(text);
    return status;
}

/* ---- names ----------------------------------------------------------------------------------- */

static bool is_original(const char *name)
{
    return mgl_alias_is(MGL_ALIAS_VERSION, mgl_version_original, name);
}

bool mgl_version_is_original(const mgl_version_record *r)
{
    return is_original(r->id);
}

/* The version of a branch; "": there is no such branch. */
static mgl_status look_branch(const mgl_versions *c, const char *name, char id[MGL_SHA256_HEX],
                              mgl_error *err)
{
    bool stands = false;
    mgl_status status = read_line(c, "branches/", name, id, MGL_SHA256_HEX, &stands, err);
    if (!status && !stands)
        id[0] = 0;
    if (!status && stands && !mgl_keeper_is_id(id) && !is_original(id))
        status = mgl_fail(err, MGL_BAD_INPUT, name, "the branch names no version");
    if (!status && is_original(id))
        strcpy(id,
               mgl_version_original); /* the published name of the original text is accepted too */
    return status;
}

/* The unique object whose id starts with `name`. */
static mgl_status find_id(const mgl_versions *c, const char *name, char id[MGL_SHA256_HEX],
                          mgl_error *err)
{
    size_t count = 0;
    mgl_status status = MGL_OK;
    if (strlen(name) >= SHORT_ID)
        status = mgl_keeper_find(&c->objects, name, id, &count, err);
    if (!status && count != 1)
        status = mgl_fail(
            err, MGL_BAD_INPUT, name,
            count ? "several versions begin with these digits: give more digits"
                  : "there is no branch and no version of that name: `megalith "
                    "kernel log` lists them; give at least eight digits of an id, or `original` "
                    "for the unit's original text");
    return status;
}

/* A branch without a version resolves to the unit's original text if it was set. */
static mgl_status resolve(const mgl_versions *c, const char *name, char id[MGL_SHA256_HEX],
                          mgl_error *err)
{
    const bool head = !name || !strcmp(name, c->branch);
    id[0] = 0;
    mgl_status status = MGL_OK;
    if (name && !strcmp(name, mgl_version_original)) /* earlier versions of this program allowed a
                                                      * branch of this name */
        status = look_branch(c, name, id, err);
    if (!status && !id[0] && name && is_original(name) && c->original)
        strcpy(id, mgl_version_original);
    else if (!status && !id[0] && (!name || !check_branch_name(name, NULL)))
        status = look_branch(c, name ? name : c->branch, id, err);
    if (!status && !id[0] && head && c->original)
        strcpy(id, mgl_version_original);
    if (status || id[0])
        return status;
    if (!name)
        return mgl_fail(err, MGL_BAD_INPUT, c->branch, "the branch has no version yet");
    return find_id(c, name, id, err);
}

static mgl_status get_original(const mgl_versions *c, mgl_version_record *out, mgl_error *err)
{
    if (!c->original)
        return mgl_fail(err, MGL_BAD_INPUT, mgl_version_original,
                        "the unit's original text is unknown");
    *out = (mgl_version_record){.unit = c->unit,
                                .transformation = "",
                                .note = "the unit's original text",
                                .arch = "",
                                .text = c->original,
                                .provides = ""};
    strcpy(out->id, mgl_version_original);
    return MGL_OK;
}

mgl_status mgl_versions_get(const mgl_versions *c, const char *name, mgl_version_record *out,
                            mgl_error *err)
{
    char id[MGL_SHA256_HEX];
    *out = (mgl_version_record){0};
    mgl_status status = resolve(c, name, id, err);
    if (status)
        return status;
    return is_original(id) ? get_original(c, out, err) : get_object(c, id, out, err);
}

/* ---- adding ---------------------------------------------------------------------------------- */

mgl_status mgl_versions_add(mgl_versions *c, mgl_version_record *r, mgl_error *err)
{
    mgl_json_out out = {0};
    char at[MGL_SHA256_HEX] = "";
    if (!mgl_outcome_is_good(r->verdict.outcome))
        return mgl_fail(err, MGL_USAGE, mgl_outcome_name(r->verdict.outcome),
                        "versions are made on success only");
    mgl_status status = r->parent_count ? MGL_OK : look_branch(c, c->branch, at, err);
    if (!status && mgl_keeper_is_id(at))
        memcpy(r->parents[r->parent_count++], at, sizeof at);
    if (!status)
        write_object(r, &out);
    if (!status && out.text.failed)
        status = mgl_fail_memory(err, strlen(r->text));
    if (!status)
        status = mgl_keeper_put(&c->objects, out.text.bytes, out.text.length, r->id, err);
    if (!status)
        status = write_line(c, "branches/", c->branch, r->id, err);
    mgl_text_clear(&out.text);
    return status;
}

mgl_status mgl_versions_log(const mgl_versions *c, const char *name, mgl_version_fn *tell,
                            void *user, mgl_error *err)
{
    mgl_version_record now, next;
    mgl_status status = mgl_versions_get(c, name, &now, err);
    if (!status && mgl_version_is_original(&now))
        status =
            mgl_fail(err, MGL_BAD_INPUT, name ? name : c->branch,
                     name && is_original(name) ? "it is the unit's original text, and no version"
                                               : "the branch has no version yet");
    for (int i = 0; i < MOST_LOGGED && !status; i++) {
        status = tell(user, &now, err);
        if (status || !now.parent_count)
            break;
        status = get_object(c, now.parents[0], &next, err);
        mgl_version_clear(&now);
        now = next;
    }
    mgl_version_clear(&now);
    return status;
}

typedef struct telling {
    const mgl_versions *versions;
    mgl_version_fn *tell;
    void *user;
} telling;

static mgl_status tell_object(void *user, const char *id, mgl_error *err)
{
    const telling *t = user;
    mgl_version_record r;
    mgl_status status = get_object(t->versions, id, &r, err);
    if (status)
        return status == MGL_BAD_INPUT ? MGL_OK : status;
    status = t->tell(t->user, &r, err);
    mgl_version_clear(&r);
    return status;
}

mgl_status mgl_versions_each(const mgl_versions *c, mgl_version_fn *tell, void *user,
                             mgl_error *err)
{
    telling t = {c, tell, user};
    return mgl_keeper_each(&c->objects, tell_object, &t, err);
}

/* Writes the current branch if it has no version yet, so that it can be switched back to. */
static mgl_status keep_head(const mgl_versions *c, mgl_error *err)
{
    char stands[MGL_SHA256_HEX] = "";
    mgl_status status = c->original ? look_branch(c, c->branch, stands, err) : MGL_OK;
    return status || stands[0] || !c->original
               ? status
               : write_line(c, "branches/", c->branch, mgl_version_original, err);
}

static mgl_status move_head(mgl_versions *c, const char *branch, mgl_error *err)
{
    mgl_status status = keep_head(c, err);
    if (!status)
        status = write_line(c, "", "head", branch, err);
    if (!status && branch != c->branch)
        snprintf(c->branch, sizeof c->branch, "%s", branch);
    return status;
}

mgl_status mgl_versions_make_branch(mgl_versions *c, const char *branch, const char *at,
                                    mgl_error *err)
{
    char stands[MGL_SHA256_HEX] = "", id[MGL_SHA256_HEX] = "";
    mgl_status status = check_branch_name(branch, err);
    if (!status && is_original(branch))
        status = mgl_fail(err, MGL_USAGE, branch,
                          "it names the unit's original text: use another name for a branch");
    if (!status)
        status = look_branch(c, branch, stands, err);
    if (!status && (at || !stands[0]))
        status = resolve(c, at, id, err);
    if (!status && at && stands[0] && strcmp(stands, id) != 0)
        status = mgl_fail(err, MGL_USAGE, branch,
                          "the branch already exists at another version: use another name, or "
                          "check it out first");
    if (!status && !stands[0])
        status = write_line(c, "branches/", branch, id, err);
    return status ? status : move_head(c, branch, err);
}

static mgl_status refuse_branch(const mgl_versions *c, const char *branch, mgl_error *err)
{
    mgl_file_list names = {0};
    mgl_text list = {0};
    mgl_status status = mgl_versions_branches(c, &names, err);
    for (size_t i = 0; i < names.count; i++)
        mgl_text_format(&list, "%s%s", i ? ", " : "", names.names[i]);
    if (!names.count)
        mgl_text_put(&list, c->branch);
    if (!status && list.failed)
        status = mgl_fail_memory(err, 1);
    if (!status)
        status = mgl_fail(err, MGL_BAD_INPUT, branch,
                          "there is no such branch; there are: %s. `megalith kernel branch` makes "
                          "one",
                          list.bytes);
    mgl_file_list_clear(&names);
    mgl_text_clear(&list);
    return status;
}

mgl_status mgl_versions_go_to(mgl_versions *c, const char *branch, mgl_error *err)
{
    char stands[MGL_SHA256_HEX] = "";
    mgl_status status =
        check_branch_name(branch, NULL) ? MGL_OK : look_branch(c, branch, stands, err);
    if (!status && !stands[0] && strcmp(branch, c->branch) != 0)
        return refuse_branch(c, branch, err);
    return status ? status : move_head(c, branch, err);
}

mgl_status mgl_versions_restore(mgl_versions *c, const char *name, mgl_error *err)
{
    mgl_version_record r;
    mgl_status status = mgl_versions_get(c, name, &r, err);
    if (!status)
        status = write_line(c, "branches/", c->branch, r.id, err);
    mgl_version_clear(&r);
    return status;
}

mgl_status mgl_versions_branches(const mgl_versions *c, mgl_file_list *out, mgl_error *err)
{
    char path[PATH_MAX];
    mgl_status status = make_path(c, "branches", "", path, err);
    return status ? status : mgl_folder_list(path, "", out, err);
}
