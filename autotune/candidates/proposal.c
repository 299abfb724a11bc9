/*
 * Reading and printing of proposals as text. The text comes from an agent, a file or a language
 * model, and is parsed strictly. Everything in it is data: a hypothesis is stored and displayed,
 * and never interpreted. Implements mgl_proposal_parse and mgl_proposal_print of gate.h.
 */
#include "autotune/candidates/gate.h"

#include "base/format.h"
#include "base/json.h"
#include "base/json_out.h"
#include "base/memory.h"
#include "base/utf8.h"

#include <string.h>

#define SCHEMA "megalith.proposal/1"
enum { MAX_PROPOSAL = MGL_SCHEDULE_MAX_TEXT + (1 << 20) };

static mgl_status take(char **to, const char *text, size_t length, mgl_error *err)
{
    *to = mgl_strndup(text, length);
    return *to ? MGL_OK : mgl_fail_memory(err, length + 1);
}

static mgl_status check_keys(const mgl_json *json, mgl_error *err)
{
    static const char *const known[] = {"schema", "hypothesis", "parent",
                                        "config", "moves",      "schedule"};
    enum { KNOWN = sizeof known / sizeof *known };
    for (const cJSON *item = json->root->child; item; item = item->next) {
        int i = 0;
        while (i < KNOWN && strcmp(item->string, known[i]) != 0)
            i++;
        if (i == KNOWN)
            return mgl_fail(err, MGL_BAD_INPUT, json->file,
                            "unknown key \"%.60s\"; a proposal has schema, hypothesis, parent, "
                            "config and moves, or schedule",
                            item->string);
    }
    return MGL_OK;
}

/* Reads the hypothesis, with unprintable characters replaced, so that it is safe to display. */
static mgl_status read_hypothesis(const mgl_json *json, mgl_proposal *out, mgl_error *err)
{
    const char *text = NULL;
    char shown[MGL_MAX_HYPOTHESIS + 1];
    mgl_status status = mgl_json_get_string(json, json->root, "hypothesis", false, &text, err);
    if (status || !text)
        return status;
    if (strlen(text) > MGL_MAX_HYPOTHESIS)
        return mgl_fail(
            err, MGL_BAD_INPUT, json->file,
            "the hypothesis is too long: %zu bytes; at most %d are allowed, one sentence is enough",
            strlen(text), MGL_MAX_HYPOTHESIS);
    mgl_format_into(shown, sizeof shown, "%s", text);
    return take(&out->hypothesis, shown, strlen(shown), err);
}

static mgl_status read_config(const mgl_json *json, mgl_proposal *out, mgl_error *err)
{
    const cJSON *config = NULL;
    mgl_status status = mgl_json_get_object(json, json->root, "config", false, &config, err);
    if (status || !config)
        return status;
    return mgl_schedule_config_merge(json, config, "config.", &out->config, err);
}

/* An array of strings, one move each, read as the lines of one text. */
static mgl_status read_moves(const mgl_json *json, mgl_proposal *out, mgl_error *err)
{
    const cJSON *moves = NULL;
    mgl_text lines = {0};
    mgl_status status = mgl_json_get_array(json, json->root, "moves", false, &moves, err);
    if (status || !moves)
        return status;
    for (const cJSON *item = moves->child; item && !status; item = item->next) {
        if (!cJSON_IsString(item) || strchr(item->valuestring, '\n'))
            status = mgl_fail(err, MGL_BAD_INPUT, json->file,
                              "moves must be an array of strings, one move each");
        else
            mgl_text_format(&lines, "%s\n", item->valuestring);
    }
    if (!status && lines.failed)
        status = mgl_fail_memory(err, lines.capacity);
    if (!status && lines.length)
        status = mgl_moves_parse(lines.bytes, lines.length, "moves", &out->moves, err);
    mgl_text_clear(&lines);
    return status;
}

static mgl_status read_schedule(const mgl_json *json, mgl_proposal *out, mgl_error *err)
{
    const char *text = NULL;
    mgl_status status = mgl_json_get_string(json, json->root, "schedule", false, &text, err);
    if (status || !text)
        return status;
    if (mgl_json_member(json->root, "config") || mgl_json_member(json->root, "moves"))
        return mgl_fail(err, MGL_BAD_INPUT, json->file,
                        "a schedule is a whole program: leave out config and moves");
    return take(&out->schedule, text, strlen(text), err);
}

static mgl_status read_proposal(const mgl_json *json, mgl_proposal *out, mgl_error *err)
{
    mgl_status status = mgl_json_check_schema(json, SCHEMA, err);
    if (!status)
        status = check_keys(json, err);
    if (!status)
        status = read_hypothesis(json, out, err);
    if (!status)
        status = mgl_json_get_int(json, json->root, "parent", false, 0, INT64_C(1) << 53,
                                  &out->parent, err);
    if (!status)
        status = read_config(json, out, err);
    if (!status)
        status = read_moves(json, out, err);
    return status ? status : read_schedule(json, out, err);
}

/* Whether the first character other than whitespace opens an object. */
static bool is_json(const char *text, size_t length)
{
    size_t i = 0;
    while (i < length && strchr(" \t\r\n", text[i]) && text[i])
        i++;
    return i < length && text[i] == '{';
}

bool mgl_proposal_begins(const char *text, size_t length)
{
    return is_json(text, length) || mgl_schedule_begins(text, length);
}

mgl_status mgl_proposal_parse(const char *text, size_t length, const char *file,
                              const mgl_schedule_config *start, mgl_proposal *out, mgl_error *err)
{
    mgl_json json;
    *out = (mgl_proposal){.config = *start};
    if (!is_json(text, length)) {
        if (length > MGL_SCHEDULE_MAX_TEXT)
            return mgl_fail(err, MGL_BAD_INPUT, file,
                            "the schedule is too large: %zu bytes; at most %d are allowed", length,
                            MGL_SCHEDULE_MAX_TEXT);
        if (memchr(text, 0, length))
            return mgl_fail(err, MGL_BAD_INPUT, file,
                            "the schedule contains a zero byte; a schedule is text");
        return take(&out->schedule, text, length, err);
    }
    mgl_status status = mgl_json_parse(text, length, MAX_PROPOSAL, file, &json, err);
    if (status)
        return status;
    status = read_proposal(&json, out, err);
    mgl_json_clear(&json);
    if (status)
        mgl_proposal_clear(out);
    return status;
}

static void print_moves(const mgl_moves *moves, mgl_json_out *to)
{
    mgl_json_out_array(to, "moves");
    for (int i = 0; i < moves->count; i++) {
        mgl_text line = {0};
        mgl_move_print(&moves->moves[i], &line);
        to->text.failed |= line.failed;
        if (line.bytes)
            mgl_json_out_string(to, NULL, line.bytes);
        mgl_text_clear(&line);
    }
    mgl_json_out_close_array(to);
}

void mgl_proposal_print(const mgl_proposal *proposal, mgl_text *out)
{
    mgl_json_out to = {0};
    mgl_json_out_begin(&to, SCHEMA);
    if (proposal->hypothesis)
        mgl_json_out_string(&to, "hypothesis", proposal->hypothesis);
    if (proposal->parent)
        mgl_json_out_int(&to, "parent", proposal->parent);
    if (proposal->schedule) {
        mgl_json_out_string(&to, "schedule", proposal->schedule);
    } else {
        mgl_text config = {0};
        mgl_schedule_config_print(&proposal->config, &config);
        to.text.failed |= config.failed;
        mgl_text_format(&to.text, ",\"config\":%s", config.bytes ? config.bytes : "null");
        mgl_text_clear(&config);
        print_moves(&proposal->moves, &to);
    }
    mgl_json_out_close(&to);
    mgl_text_put(&to.text, "\n");
    out->failed |= to.text.failed;
    if (to.text.bytes)
        mgl_text_append(out, to.text.bytes, to.text.length);
    mgl_text_clear(&to.text);
}
