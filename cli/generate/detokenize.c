/* megalith detokenize MODEL: converts ids to text. Special tokens are left out unless requested. */
#include "cli/cli.h"
#include "cli/signals.h"

#include "base/file.h"
#include "base/json.h"
#include "base/json_out.h"
#include "base/memory.h"
#include "importer/checkpoint.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DETOKENIZE_OPTIONS(X)                                                                      \
    X(text, ids, "--ids", "1,2,3", 0, 0, "the ids (standard input: a list a line, or JSON)")       \
    X(file, ids_file, "--ids-file", "F.json", 0, 0,                                                \
      "a JSON array of ids, or an array of such arrays: one text each")                            \
    X(flag, keep_special, "--keep-special", NULL, 0, 0, "keep the text of special tokens")         \
    MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(DETOKENIZE_OPTIONS)

/* The input: one list of ids, or several. */
typedef struct id_lists {
    mgl_ids *lists; /* (count) */
    size_t count;
    bool nested; /* the input is an array of arrays, or several lines */
} id_lists;

static void clear_lists(id_lists *lists)
{
    for (size_t i = 0; i < lists->count; i++)
        mgl_ids_clear(&lists->lists[i]);
    mgl_free(lists->lists);
}

static mgl_status make_lists(id_lists *lists, size_t count, mgl_error *err)
{
    lists->lists = mgl_alloc_zero(count ? count : 1, sizeof *lists->lists);
    if (!lists->lists)
        return mgl_fail_memory(err, count * sizeof *lists->lists);
    lists->count = count;
    return MGL_OK;
}

static size_t count_items(const cJSON *array)
{
    size_t count = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, array) count++;
    return count;
}

static mgl_status read_list(const mgl_json *json, const cJSON *array, mgl_ids *out, mgl_error *err)
{
    const cJSON *item;
    size_t count = count_items(array);
    out->ids = mgl_alloc((count ? count : 1) * sizeof *out->ids);
    if (!out->ids)
        return mgl_fail_memory(err, count * sizeof *out->ids);
    cJSON_ArrayForEach(item, array)
    {
        int64_t value;
        mgl_status status = mgl_json_item_int(json, item, "a token id", 0, INT32_MAX, &value, err);
        if (status)
            return status;
        out->ids[out->count++] = (int32_t)value;
    }
    return MGL_OK;
}

static mgl_status take_lists(const mgl_json *json, id_lists *out, mgl_error *err)
{
    if (!cJSON_IsArray(json->root))
        return mgl_fail(err, MGL_BAD_INPUT, json->file,
                        "is not a JSON array of ids, nor an array of such arrays");
    out->nested = cJSON_IsArray(json->root->child);
    mgl_status status = make_lists(out, out->nested ? count_items(json->root) : 1, err);
    if (!out->nested)
        return status ? status : read_list(json, json->root, &out->lists[0], err);
    const cJSON *item = json->root->child;
    for (size_t i = 0; !status && item; i++, item = item->next)
        status = cJSON_IsArray(item)
                     ? read_list(json, item, &out->lists[i], err)
                     : mgl_fail(err, MGL_BAD_INPUT, json->file,
                                "element %zu is not an array of ids, as the first is", i);
    return status;
}

static mgl_status read_file(const char *path, id_lists *out, mgl_error *err)
{
    mgl_json json = {0};
    mgl_status status = mgl_json_read_file(path, MGL_CLI_MAX_TEXT, &json, err);
    if (!status)
        status = take_lists(&json, out, err);
    mgl_json_clear(&json);
    return status;
}

/* ---- standard input -------------------------------------------------------------------------- */

#define INPUT_NAME "standard input"

static size_t count_lines(const char *text, const char *end)
{
    size_t count = 0;
    for (; text < end; text++)
        count += *text == '\n';
    return count + 1;
}

/* Parses the ids of a line. */
static mgl_status read_line(const char *line, size_t length, size_t number, mgl_ids *out,
                            mgl_error *err)
{
    char name[60];
    snprintf(name, sizeof name, INPUT_NAME ": line %zu", number);
    if (strlen(line) != length)
        return mgl_fail(err, MGL_BAD_INPUT, name, "has a zero byte; write ids as 1,2,3");
    mgl_status status = mgl_cli_parse_ids(line, name, out, err);
    return status == MGL_USAGE ? mgl_fail(err, MGL_BAD_INPUT, name, "%s", err->message) : status;
}

/* Parses a list of ids per line. Blank lines are ignored. */
static mgl_status read_lines(char *text, size_t length, id_lists *out, mgl_error *err)
{
    char *end = text + length, *line = text;
    mgl_status status = make_lists(out, count_lines(text, end), err);
    out->count = 0;
    for (size_t number = 1; line < end && !status; number++) {
        char *stop = memchr(line, '\n', (size_t)(end - line));
        stop = stop ? stop : end;
        *stop = 0;
        if (line + strspn(line, " \t\r") < stop)
            status = read_line(line, (size_t)(stop - line), number, &out->lists[out->count++], err);
        line = stop + 1;
    }
    out->nested = out->count > 1;
    return status;
}

/* Parses JSON, as for --ids-file, or lines. */
static mgl_status take_input(char *text, size_t length, id_lists *out, mgl_error *err)
{
    mgl_json json = {0};
    const bool is_json = text[strspn(text, " \t\r\n")] == '[' &&
                         !mgl_json_parse(text, length, MGL_CLI_MAX_TEXT, INPUT_NAME, &json, NULL);
    mgl_status status = is_json ? take_lists(&json, out, err) : read_lines(text, length, out, err);
    mgl_json_clear(&json);
    return status;
}

static mgl_status read_input(id_lists *out, mgl_error *err)
{
    char *text = NULL;
    size_t length = 0;
    if (isatty(STDIN_FILENO))
        return mgl_fail(err, MGL_USAGE, NULL,
                        "one of --ids and --ids-file is needed, or ids through a pipe");
    mgl_status status = mgl_file_read(MGL_STDIN, MGL_CLI_MAX_TEXT, &text, &length, err);
    if (!status && strspn(text, " \t\r\n") == length)
        status = mgl_fail(err, MGL_USAGE, NULL,
                          "standard input contains no ids; give ids there, or --ids or --ids-file");
    if (!status)
        status = take_input(text, length, out, err);
    mgl_free(text);
    return status;
}

/* ---- the verb -------------------------------------------------------------------------------- */

static mgl_status read_lists(const struct options *o, id_lists *out, mgl_error *err)
{
    if (o->ids_file.given)
        return read_file(o->ids_file.value, out, err);
    if (!o->ids.given)
        return read_input(out, err);
    mgl_status status = make_lists(out, 1, err);
    return status ? status : mgl_cli_parse_ids(o->ids.value, "--ids", &out->lists[0], err);
}

typedef struct decoded {
    char *text;
    size_t length;
} decoded;

static mgl_status decode_all(const mgl_tokenizer *tokenizer, const id_lists *lists,
                             bool keep_special, decoded *texts, mgl_error *err)
{
    mgl_status status = MGL_OK;
    for (size_t i = 0; i < lists->count && !status; i++) {
        status = mgl_tokenizer_decode(tokenizer, lists->lists[i].ids, lists->lists[i].count,
                                      !keep_special, &texts[i].text, &texts[i].length, err);
        if (!status)
            status = mgl_cli_check_cancel(err);
    }
    return status;
}

static void print_texts(const id_lists *lists, const decoded *texts, bool json)
{
    if (!json) {
        for (size_t i = 0; i < lists->count; i++) {
            mgl_cli_print(texts[i].text, texts[i].length);
            mgl_cli_put("\n");
        }
        return;
    }
    mgl_json_out out = {0};
    mgl_json_out_begin(&out, "megalith.detokenize/1");
    if (lists->nested) {
        mgl_json_out_array(&out, "text");
        for (size_t i = 0; i < lists->count; i++)
            mgl_json_out_text(&out, NULL, texts[i].text, texts[i].length);
        mgl_json_out_close_array(&out);
    } else {
        mgl_json_out_text(&out, "text", texts[0].text, texts[0].length);
    }
    mgl_cli_end_json(&out);
}

static mgl_status decode_and_print(const mgl_tokenizer *tokenizer, const id_lists *lists,
                                   const struct options *o, mgl_error *err)
{
    decoded *texts = mgl_alloc_zero(lists->count ? lists->count : 1, sizeof *texts);
    if (!texts)
        return mgl_fail_memory(err, lists->count * sizeof *texts);
    mgl_status status = decode_all(tokenizer, lists, o->keep_special.given, texts, err);
    if (!status)
        print_texts(lists, texts, o->json.given);
    for (size_t i = 0; i < lists->count; i++)
        mgl_text_free(texts[i].text);
    mgl_free(texts);
    return status;
}

static mgl_status detokenize(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    mgl_tokenizer *tokenizer = NULL;
    id_lists lists = {0};
    char *folder = NULL;
    if (o->ids.given && o->ids_file.given)
        return mgl_fail(err, MGL_USAGE, NULL, "only one of --ids and --ids-file can be given");
    mgl_status status = read_lists(o, &lists, err);
    if (!status)
        status = mgl_model_resolve_path(operand, &folder, err);
    if (!status)
        status = mgl_tokenizer_open(folder, &tokenizer, err);
    if (!status)
        status = decode_and_print(tokenizer, &lists, o, err);
    clear_lists(&lists);
    mgl_tokenizer_close(tokenizer);
    mgl_free(folder);
    return status;
}

const mgl_cli_verb mgl_cli_detokenize_verb = {
    .name = "detokenize",
    .operand = "MODEL",
    .summary = "converts token ids to text; a folder that holds only tokenizer.json is enough",
    .example = "  megalith detokenize tests/models/tales-5m --ids 909,39,524,78,258,276,325\n"
               "  megalith tokenize tests/models/tales-5m --text Hello |"
               " megalith detokenize tests/models/tales-5m",
    MGL_CLI_VERB_OPTIONS,
    .run = detokenize,
};
