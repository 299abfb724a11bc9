/* Implements the library of transformation.h: reads the built-in transformations and scripts and
 * the user's own files, and finds them by name. */
#include "autotune/kernels/methods/transformation.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_FILE = 1 << 20 };

/* Adds a transformation; replaces one of the same name. */
static mgl_status add_transformation(mgl_library *l, mgl_transformation *t, mgl_error *err)
{
    size_t at = 0;
    while (at < l->count && strcmp(l->list[at].name, t->name) != 0)
        at++;
    if (at < l->count)
        mgl_transformation_clear(&l->list[at]);
    else if (!mgl_grow((void **)&l->list, &l->capacity, l->count, sizeof *l->list))
        return mgl_fail_memory(err, sizeof *l->list);
    else
        l->count++;
    l->list[at] = *t;
    return MGL_OK;
}

static mgl_status add_script(mgl_library *l, mgl_transform_script *script, mgl_error *err)
{
    size_t at = 0;
    while (at < l->script_count && strcmp(l->scripts[at].name, script->name) != 0)
        at++;
    if (at < l->script_count)
        mgl_transform_script_clear(&l->scripts[at]);
    else if (!mgl_grow((void **)&l->scripts, &l->script_capacity, l->script_count,
                       sizeof *l->scripts))
        return mgl_fail_memory(err, sizeof *l->scripts);
    else
        l->script_count++;
    l->scripts[at] = *script;
    return MGL_OK;
}

bool mgl_transform_is_script(const char *text, size_t length)
{
    mgl_json json = {0};
    bool is = !mgl_json_parse(text, length, MAX_FILE, "", &json, NULL) &&
              !mgl_json_check_schema(&json, "megalith.script/1", NULL);
    mgl_json_clear(&json);
    return is;
}

static mgl_status add_text(mgl_library *l, const char *text, size_t length, const char *file,
                           bool own, mgl_error *err)
{
    mgl_transformation t;
    mgl_transform_script script;
    mgl_status status;
    if (mgl_transform_is_script(text, length)) {
        status = mgl_transform_script_parse(text, length, file, &script, err);
        if (!status && (status = add_script(l, &script, err)) != MGL_OK)
            mgl_transform_script_clear(&script);
        return status;
    }
    status = mgl_transformation_parse(text, length, file, &t, err);
    t.own = own;
    if (!status && (status = add_transformation(l, &t, err)) != MGL_OK)
        mgl_transformation_clear(&t);
    return status;
}

static mgl_status add_file(mgl_library *l, const char *folder, const char *name, mgl_error *err)
{
    char path[PATH_MAX], *text = NULL;
    size_t length = 0;
    mgl_status status = mgl_file_path(path, err, "%s/%s", folder, name);
    if (!status)
        status = mgl_file_read_regular(path, MAX_FILE, &text, &length, err);
    if (!status)
        status = add_text(l, text, length, path, true, err);
    mgl_free(text);
    return status;
}

static int by_name(const void *a, const void *b)
{
    const mgl_transformation *x = a, *y = b;
    return strcmp(x->name, y->name);
}

mgl_status mgl_library_open(const char *folder, mgl_library *out, mgl_error *err)
{
    mgl_file_list files = {0};
    mgl_status status = MGL_OK;
    *out = (mgl_library){0};
    for (int i = 0; i < mgl_transformation_source_count && !status; i++) {
        const mgl_cuda_source *s = &mgl_transformation_sources[i];
        const char *text = (const char *)s->text;
        status = add_text(out, text, strlen(text), s->name, false, err);
    }
    if (!status && folder)
        status = mgl_folder_list(folder, ".json", &files, err);
    for (size_t i = 0; i < files.count && !status; i++)
        status = add_file(out, folder, files.names[i], err);
    mgl_file_list_clear(&files);
    if (status)
        mgl_library_clear(out);
    else
        qsort(out->list, out->count, sizeof *out->list, by_name);
    return status;
}

void mgl_library_clear(mgl_library *l)
{
    for (size_t i = 0; i < l->count; i++)
        mgl_transformation_clear(&l->list[i]);
    for (size_t i = 0; i < l->script_count; i++)
        mgl_transform_script_clear(&l->scripts[i]);
    mgl_free(l->list);
    mgl_free(l->scripts);
    *l = (mgl_library){0};
}

const mgl_transformation *mgl_library_find(const mgl_library *l, const char *name)
{
    for (size_t i = 0; i < l->count; i++)
        if (!strcmp(l->list[i].name, name))
            return &l->list[i];
    return NULL;
}

const mgl_transform_script *mgl_library_find_script(const mgl_library *l, const char *name)
{
    for (size_t i = 0; i < l->script_count; i++)
        if (!strcmp(l->scripts[i].name, name))
            return &l->scripts[i];
    return NULL;
}

bool mgl_transformation_suits(const mgl_transformation *t, const char *op, const char *arch)
{
    return mgl_names_have(&t->ops, op) && mgl_names_have(&t->architectures, arch);
}

/* Whether a name is in a list separated by blanks. */
static bool stands_among(const char *names, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = names; *at; at += strcspn(at, " "), at += *at == ' ')
        if (strcspn(at, " ") == length && !memcmp(at, name, length))
            return true;
    return false;
}

/* Prints "`x` or `y`": the transformations for the op that provide `name`. */
static void put_givers(const mgl_library *library, const char *op, const char *name, mgl_text *out)
{
    int count = 0;
    for (size_t i = 0; i < library->count; i++) {
        const mgl_transformation *t = &library->list[i];
        if (mgl_names_have(&t->provides, name) && mgl_names_have(&t->ops, op))
            mgl_text_format(out, "%s`%s`", count++ ? " or " : "", t->name);
    }
    if (!count)
        mgl_text_format(out, "no transformation for %s", op);
}

mgl_status mgl_library_check_ready(const mgl_library *library, const mgl_transformation *t,
                                   const char *op, const char *provides, mgl_error *err)
{
    mgl_text lacks = {0};
    for (int i = 0; i < t->requires.count; i++) {
        const char *name = t->requires.names[i];
        if (stands_among(provides, name))
            continue;
        mgl_text_format(&lacks, "%s`%s`, which ", lacks.length ? "; " : "", name);
        put_givers(library, op, name, &lacks);
        mgl_text_put(&lacks, " gives");
    }
    mgl_status status =
        lacks.failed ? mgl_fail_memory(err, 1)
        : lacks.length
            ? mgl_fail(err, MGL_USAGE, t->name, "the text lacks what it requires: %s", lacks.bytes)
            : MGL_OK;
    mgl_text_clear(&lacks);
    return status;
}

bool mgl_transformation_is_ready(const mgl_transformation *t, const char *provides)
{
    for (int i = 0; i < t->requires.count; i++)
        if (!stands_among(provides, t->requires.names[i]))
            return false;
    return true;
}

/* ---- scripts --------------------------------------------------------------------------------- */

mgl_status mgl_transform_script_steps(const mgl_library *l, const mgl_transform_script *script,
                                      const char *op,
                                      const mgl_transformation *steps[MGL_MAX_NAMES], int *count,
                                      mgl_error *err)
{
    mgl_names has = {0};
    *count = 0;
    for (int i = 0; i < script->steps.count; i++) {
        const mgl_transformation *t = mgl_library_find(l, script->steps.names[i]);
        if (!t)
            return mgl_fail(err, MGL_BAD_INPUT, script->json.file,
                            "there is no transformation '%.80s'; `megalith kernel transform list` "
                            "has them",
                            script->steps.names[i]);
        if (!mgl_transformation_suits(t, op, script->architecture))
            continue;
        const char *wants = mgl_transformation_missing(t, &has);
        if (wants)
            return mgl_fail(err, MGL_BAD_INPUT, script->json.file,
                            "%s requires '%s', which no step for %s before it provides", t->name,
                            wants, op);
        mgl_names_append(&has, &t->provides);
        steps[(*count)++] = t;
    }
    return MGL_OK;
}
