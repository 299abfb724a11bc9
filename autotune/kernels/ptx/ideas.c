/* Implements the store of ideas, and learning from pairs: see ideas.h. */
#include "autotune/kernels/ptx/ideas.h"

#include "autotune/store/keeper.h"
#include "base/file.h"
#include "base/json_fields.h"
#include "base/memory.h"

#include <math.h>
#include <string.h>

#define SCHEMA "megalith.ptx_ideas/1"
enum { MAX_BYTES = 16 << 20 };

static void clear_idea(mgl_ptx_idea *idea)
{
    for (size_t i = 0; i < idea->evidence_count; i++) {
        mgl_free(idea->evidence[i].op);
        mgl_free(idea->evidence[i].device);
    }
    mgl_free(idea->feature);
    mgl_free(idea->before);
    mgl_free(idea->after);
    mgl_free(idea->requires);
}

void mgl_ptx_ideas_clear(mgl_ptx_ideas *ideas)
{
    for (size_t i = 0; i < ideas->count; i++)
        clear_idea(&ideas->rows[i]);
    mgl_free(ideas->rows);
    *ideas = (mgl_ptx_ideas){0};
}

/* Appends an empty row. NULL: out of memory. */
static mgl_ptx_idea *add_idea(mgl_ptx_ideas *ideas)
{
    if (!mgl_grow((void **)&ideas->rows, &ideas->capacity, ideas->count, sizeof *ideas->rows))
        return NULL;
    ideas->rows[ideas->count] = (mgl_ptx_idea){0};
    return &ideas->rows[ideas->count++];
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Whether a text has no control characters, so that it is a part of one line of a prompt. */
static bool is_line(const char *text)
{
    while ((unsigned char)*text >= ' ' && *text != 0x7F)
        text++;
    return !*text;
}

static bool is_name(const char *text)
{
    return *text && strlen(text) <= 200 && is_line(text);
}

/* The copies of strings of the JSON tree; false: out of memory. */
static bool copy_texts(const char *const *from, char **const *to, int count)
{
    bool copied = true;
    for (int i = 0; i < count; i++)
        copied = (*to[i] = mgl_strdup(from[i])) && copied;
    return copied;
}

static mgl_status read_evidence(const mgl_json *json, const cJSON *object, mgl_ptx_idea *idea,
                                mgl_error *err)
{
    if (idea->evidence_count == MGL_PTX_MAX_EVIDENCE)
        return mgl_fail(err, MGL_BAD_INPUT, json->file, "an idea has more than %d measurements",
                        MGL_PTX_MAX_EVIDENCE);
    mgl_ptx_evidence *row = &idea->evidence[idea->evidence_count++];
    const char *texts[2];
    const mgl_json_field fields[] = {
        MGL_JSON_STRING("op", &texts[0]), MGL_JSON_STRING("device", &texts[1]),
        MGL_JSON_REAL("gain", &row->gain), MGL_JSON_OPTIONAL_INT("with", 0, 1 << 20, &row->with)};
    mgl_status status = MGL_JSON_GET(json, object, fields, err);
    if (!status && (!is_name(texts[0]) || !is_name(texts[1])))
        status = mgl_fail(err, MGL_BAD_INPUT, json->file,
                          "op and device of a measurement are one line each, of 1 to 200 bytes");
    if (!status && !copy_texts(texts, (char **const[]){&row->op, &row->device}, 2))
        status = mgl_fail_memory(err, sizeof *row);
    return status;
}

static mgl_status read_idea(const mgl_json *json, const cJSON *object, mgl_ptx_idea *idea,
                            mgl_error *err)
{
    const cJSON *evidence = NULL;
    const char *texts[4];
    const mgl_json_field fields[] = {MGL_JSON_STRING("feature", &texts[0]),
                                     MGL_JSON_STRING("before", &texts[1]),
                                     MGL_JSON_STRING("after", &texts[2]),
                                     MGL_JSON_STRING("requires", &texts[3]),
                                     MGL_JSON_INT("uses", 0, INT32_MAX, &idea->uses),
                                     MGL_JSON_INT("successes", 0, INT32_MAX, &idea->successes),
                                     MGL_JSON_ARRAY("evidence", &evidence)};
    char **const copies[] = {&idea->feature, &idea->before, &idea->after, &idea->requires};
    mgl_status status = MGL_JSON_GET(json, object, fields, err);
    if (!status && idea->successes > idea->uses)
        status = mgl_fail(err, MGL_BAD_INPUT, json->file, "an idea has more successes than uses");
    for (int i = 0; i < 4 && !status; i++)
        if (!is_line(texts[i]))
            status = mgl_fail(err, MGL_BAD_INPUT, json->file,
                              "an idea has a control character: each member is one line");
    if (!status && !copy_texts(texts, copies, 4))
        status = mgl_fail_memory(err, sizeof *idea);
    for (const cJSON *at = status ? NULL : evidence->child; at && !status; at = at->next)
        status = read_evidence(json, at, idea, err);
    return status;
}

static mgl_status read_tree(const mgl_json *json, mgl_ptx_ideas *out, mgl_error *err)
{
    const cJSON *ideas = NULL;
    mgl_status status = mgl_json_check_schema(json, SCHEMA, err);
    if (!status)
        status = mgl_json_get_array(json, json->root, "ideas", true, &ideas, err);
    for (const cJSON *item = ideas ? ideas->child : NULL; item && !status; item = item->next) {
        mgl_ptx_idea *idea = out->count < MGL_PTX_MAX_IDEAS ? add_idea(out) : NULL;
        if (out->count == MGL_PTX_MAX_IDEAS)
            return mgl_fail(err, MGL_BAD_INPUT, json->file, "has more than %d ideas",
                            MGL_PTX_MAX_IDEAS - 1);
        status = idea ? read_idea(json, item, idea, err) : mgl_fail_memory(err, sizeof *idea);
    }
    return status;
}

mgl_status mgl_ptx_ideas_parse(const char *text, size_t length, const char *file,
                               mgl_ptx_ideas *out, mgl_error *err)
{
    mgl_json json = {0};
    *out = (mgl_ptx_ideas){0};
    mgl_status status = mgl_json_parse(text, length, MAX_BYTES, file, &json, err);
    if (status)
        return status;
    status = read_tree(&json, out, err);
    mgl_json_clear(&json);
    if (status)
        mgl_ptx_ideas_clear(out);
    return status;
}

mgl_status mgl_ptx_ideas_read(const char *path, mgl_ptx_ideas *out, mgl_error *err)
{
    bool stands;
    char *text = NULL;
    size_t length;
    *out = (mgl_ptx_ideas){0};
    mgl_status status = mgl_file_stands(path, &stands, err);
    if (status || !stands)
        return status;
    status = mgl_file_read_regular(path, MAX_BYTES, &text, &length, err);
    if (!status)
        status = mgl_ptx_ideas_parse(text, length, path, out, err);
    mgl_free(text);
    return status;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void write_evidence(const mgl_ptx_idea *idea, mgl_json_out *out)
{
    mgl_json_out_array(out, "evidence");
    for (size_t i = 0; i < idea->evidence_count; i++) {
        mgl_json_out_object(out, NULL);
        mgl_json_out_string(out, "op", idea->evidence[i].op);
        mgl_json_out_string(out, "device", idea->evidence[i].device);
        mgl_json_out_double(out, "gain", idea->evidence[i].gain);
        mgl_json_out_int(out, "with", idea->evidence[i].with);
        mgl_json_out_close_object(out);
    }
    mgl_json_out_close_array(out);
}

void mgl_ptx_ideas_write(const mgl_ptx_ideas *ideas, mgl_json_out *out)
{
    mgl_json_out_begin(out, SCHEMA);
    mgl_json_out_array(out, "ideas");
    for (size_t i = 0; i < ideas->count; i++) {
        const mgl_ptx_idea *idea = &ideas->rows[i];
        mgl_json_out_object(out, NULL);
        mgl_json_out_string(out, "feature", idea->feature);
        mgl_json_out_string(out, "before", idea->before);
        mgl_json_out_string(out, "after", idea->after);
        mgl_json_out_string(out, "requires", idea->requires);
        mgl_json_out_int(out, "uses", idea->uses);
        mgl_json_out_int(out, "successes", idea->successes);
        write_evidence(idea, out);
        mgl_json_out_close_object(out);
    }
    mgl_json_out_close_array(out);
    mgl_json_out_close(out);
}

/* ---- learning -------------------------------------------------------------------------------- */

/* Counts of registers and instructions are effects of ideas, not ideas. */
static bool is_idea(const mgl_ptx_difference *row)
{
    static const char *const effects[] = {"registers", "instructions", "memory", "global.static"};
    for (size_t i = 0; i < sizeof effects / sizeof *effects; i++)
        if (!strcmp(row->feature, effects[i]))
            return false;
    return !row->counts_alone;
}

static mgl_ptx_idea *find_idea(mgl_ptx_ideas *ideas, const mgl_ptx_difference *row)
{
    for (size_t i = 0; i < ideas->count; i++)
        if (!strcmp(ideas->rows[i].feature, row->feature) &&
            !strcmp(ideas->rows[i].before, row->before) &&
            !strcmp(ideas->rows[i].after, row->after))
            return &ideas->rows[i];
    return NULL;
}

static mgl_ptx_idea *make_idea(mgl_ptx_ideas *ideas, const mgl_ptx_difference *row,
                               const char *target)
{
    mgl_ptx_idea *idea = ideas->count < MGL_PTX_MAX_IDEAS - 1 ? add_idea(ideas) : NULL;
    if (!idea)
        return NULL;
    const char *const texts[] = {row->feature, row->before, row->after, target};
    if (copy_texts(texts,
                   (char **const[]){&idea->feature, &idea->before, &idea->after, &idea->requires},
                   4))
        return idea;
    clear_idea(idea);
    ideas->count--;
    return NULL;
}

/* Adds a measurement; the oldest one is dropped if the list is full. */
static bool add_evidence(mgl_ptx_idea *idea, const mgl_ptx_pair *pair, int64_t with)
{
    mgl_ptx_evidence row = {.gain = pair->gain, .with = with};
    const char *const texts[] = {pair->op, pair->device};
    if (!copy_texts(texts, (char **const[]){&row.op, &row.device}, 2)) {
        mgl_free(row.op);
        mgl_free(row.device);
        return false;
    }
    if (idea->evidence_count == MGL_PTX_MAX_EVIDENCE) {
        mgl_free(idea->evidence[0].op);
        mgl_free(idea->evidence[0].device);
        memmove(idea->evidence, idea->evidence + 1,
                (MGL_PTX_MAX_EVIDENCE - 1) * sizeof *idea->evidence);
        idea->evidence_count--;
    }
    idea->evidence[idea->evidence_count++] = row;
    idea->uses++;
    idea->successes += pair->gain >= log1p(MGL_PTX_SUCCESS);
    return true;
}

mgl_status mgl_ptx_learn(const mgl_ptx_pair *pair, mgl_ptx_ideas *ideas, size_t *learned,
                         mgl_error *err)
{
    mgl_ptx_diff diff;
    size_t count = 0;
    *learned = 0;
    if (!is_name(pair->op) || !is_name(pair->device))
        return mgl_fail(err, MGL_BAD_INPUT, is_name(pair->op) ? "the device" : "the op",
                        "its name is one line of 1 to 200 bytes");
    if (!isfinite(pair->gain))
        return mgl_fail(err, MGL_BAD_INPUT, pair->op, "what was measured is no number");
    mgl_status status = mgl_ptx_diff_make(pair->before, pair->after, &diff, err);
    if (status)
        return status;
    for (size_t i = 0; i < diff.count; i++)
        count += is_idea(&diff.rows[i]);
    for (size_t i = 0; i < diff.count && !status; i++) {
        if (!is_idea(&diff.rows[i]))
            continue;
        mgl_ptx_idea *idea = find_idea(ideas, &diff.rows[i]);
        if (!idea)
            idea = make_idea(ideas, &diff.rows[i], pair->after->target);
        if (!idea || !add_evidence(idea, pair, (int64_t)count - 1))
            status = mgl_fail_memory(err, sizeof *idea);
        else
            ++*learned;
    }
    mgl_ptx_diff_clear(&diff);
    return status;
}

mgl_status mgl_ptx_ideas_learn(const char *path, const mgl_ptx_pair *pair, size_t *learned,
                               size_t *count, mgl_error *err)
{
    mgl_ptx_ideas ideas = {0};
    mgl_json_out out = {0};
    int lock = -1;
    mgl_status status = mgl_keeper_lock(path, &lock, err);
    if (!status)
        status = mgl_ptx_ideas_read(path, &ideas, err);
    if (!status)
        status = mgl_ptx_learn(pair, &ideas, learned, err);
    if (!status) {
        mgl_ptx_ideas_write(&ideas, &out);
        status = mgl_keeper_write(path, &out, err);
    }
    *count = ideas.count;
    mgl_ptx_ideas_clear(&ideas);
    mgl_keeper_unlock(lock);
    return status;
}
