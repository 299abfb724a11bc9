/* Converts a verdict to a SARIF 2.1.0 log. See sarif.h. */
#include "cli/schedule/sarif.h"

#include "vm/pipeline/machine_check.h"

#include "base/file.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct sarif {
    mgl_json_out out;
    const char *path, *text;
    size_t length;
} sarif;

/* Writes the path as a URI (RFC 3986): all but unreserved characters and slashes are
 * percent-encoded. */
static void put_uri(sarif *s)
{
    mgl_text uri = {0};
    bool standard = !strcmp(s->path, MGL_STDIN);
    if (s->path[0] == '/' && !standard)
        mgl_text_put(&uri, "file://");
    for (const char *at = standard ? "stdin" : s->path; *at; at++) {
        if (isalnum((unsigned char)*at) || strchr("-._~/", *at))
            mgl_text_append(&uri, at, 1);
        else
            mgl_text_format(&uri, "%%%02X", (unsigned)(unsigned char)*at);
    }
    s->out.text.failed |= uri.failed;
    mgl_json_out_object(&s->out, "artifactLocation");
    mgl_json_out_string(&s->out, "uri", uri.bytes);
    mgl_json_out_close_object(&s->out);
    mgl_text_clear(&uri);
}

/* The line with this number; NULL: no such line. */
static const char *find_line(const sarif *s, int number, size_t *length)
{
    const char *at = s->text, *end = s->text + s->length;
    for (int i = 1; i < number && at && at < end; i++) {
        at = memchr(at, '\n', (size_t)(end - at));
        at = at ? at + 1 : NULL;
    }
    if (!at || at >= end || number < 1)
        return NULL;
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    *length = (size_t)((stop ? stop : end) - at);
    return at;
}

/* The number of characters: bytes that begin a UTF-8 character. */
static int64_t count_characters(const char *text, size_t length)
{
    int64_t count = 0;
    for (size_t i = 0; i < length; i++)
        count += ((unsigned char)text[i] & 0xC0) != 0x80;
    return count;
}

/* Writes the region of a whole line without its indentation, where a caret would start. */
static void put_region(sarif *s, int number)
{
    size_t length = 0, lead = 0;
    const char *line = find_line(s, number, &length);
    if (!line)
        return;
    while (lead < length && isspace((unsigned char)line[lead]))
        lead++;
    mgl_json_out_object(&s->out, "region");
    mgl_json_out_int(&s->out, "startLine", number);
    mgl_json_out_int(&s->out, "startColumn", (int64_t)lead + 1);
    mgl_json_out_int(&s->out, "endColumn", count_characters(line, length) + 1);
    mgl_json_out_object(&s->out, "snippet");
    mgl_json_out_text(&s->out, "text", line, length);
    mgl_json_out_close_object(&s->out);
    mgl_json_out_close_object(&s->out);
}

static void put_place(sarif *s, int line)
{
    mgl_json_out_object(&s->out, "physicalLocation");
    put_uri(s);
    put_region(s, line);
    mgl_json_out_close_object(&s->out);
}

static void put_message(sarif *s, const char *key, const char *text)
{
    mgl_json_out_object(&s->out, key);
    mgl_json_out_string(&s->out, "text", text);
    mgl_json_out_close_object(&s->out);
}

/* ---- rules ---------------------------------------------------------------------------------- */

/* Lists the rules that occur, each once, in order of occurrence. */
static int list_rules(const mgl_verdict *verdict, int codes[MGL_MAX_DIAGNOSTICS])
{
    int count = 0;
    for (int i = 0; i < verdict->count; i++) {
        int k = 0;
        while (k < count && codes[k] != verdict->diagnostics[i].code)
            k++;
        if (k == count)
            codes[count++] = verdict->diagnostics[i].code;
    }
    return count;
}

static void put_rule(sarif *s, int code)
{
    char id[16];
    const mgl_code_info *info = mgl_find_code(code);
    snprintf(id, sizeof id, "MG%03d", code);
    mgl_json_out_object(&s->out, NULL);
    mgl_json_out_string(&s->out, "id", id);
    if (info) {
        put_message(s, "shortDescription", info->title);
        put_message(s, "fullDescription", info->meaning);
        put_message(s, "help", info->remedy);
    }
    mgl_json_out_close_object(&s->out);
}

static void put_tool(sarif *s, const int *codes, int count)
{
    mgl_json_out_object(&s->out, "tool");
    mgl_json_out_object(&s->out, "driver");
    mgl_json_out_string(&s->out, "name", "megalith");
    mgl_json_out_string(&s->out, "version", mgl_version());
    mgl_json_out_array(&s->out, "rules");
    for (int i = 0; i < count; i++)
        put_rule(s, codes[i]);
    mgl_json_out_close_array(&s->out);
    mgl_json_out_close_object(&s->out);
    mgl_json_out_close_object(&s->out);
}

/* ---- results -------------------------------------------------------------------------------- */

/* The line number in a witness ("embed at line 141 ..."); 0: none. */
static int line_of(const char *witness)
{
    static const char mark[] = "line ";
    const char *at = strstr(witness, mark);
    return at ? atoi(at + sizeof mark - 1) : 0;
}

static void put_witnesses(sarif *s, const mgl_diagnostic *d)
{
    mgl_json_out_array(&s->out, "relatedLocations");
    for (int i = 0; i < d->witness_count; i++) {
        int line = line_of(d->witness[i]);
        mgl_json_out_object(&s->out, NULL);
        mgl_json_out_int(&s->out, "id", i + 1);
        put_place(s, line ? line : d->line);
        put_message(s, "message", d->witness[i]);
        mgl_json_out_close_object(&s->out);
    }
    mgl_json_out_close_array(&s->out);
}

static void put_result(sarif *s, const mgl_diagnostic *d, int rule)
{
    char id[16];
    snprintf(id, sizeof id, "MG%03d", d->code);
    mgl_json_out_object(&s->out, NULL);
    mgl_json_out_string(&s->out, "ruleId", id);
    mgl_json_out_int(&s->out, "ruleIndex", rule);
    mgl_json_out_string(&s->out, "level", d->warning ? "warning" : "error");
    put_message(s, "message", d->message);
    mgl_json_out_array(&s->out, "locations");
    mgl_json_out_object(&s->out, NULL);
    put_place(s, d->line);
    mgl_json_out_close_object(&s->out);
    mgl_json_out_close_array(&s->out);
    put_witnesses(s, d);
    mgl_json_out_close_object(&s->out);
}

static void put_results(sarif *s, const mgl_verdict *verdict, const int *codes)
{
    mgl_json_out_array(&s->out, "results");
    for (int i = 0; i < verdict->count; i++) {
        int rule = 0;
        while (codes[rule] != verdict->diagnostics[i].code)
            rule++;
        put_result(s, &verdict->diagnostics[i], rule);
    }
    mgl_json_out_close_array(&s->out);
}

/* The number after the first colon of "file:LINE:COLUMN"; 0: none. */
static int line_of_error(const sarif *s, const mgl_error *failed)
{
    size_t name = strlen(s->path);
    if (strncmp(failed->where, s->path, name) != 0 || failed->where[name] != ':')
        return 0;
    return atoi(failed->where + name + 1);
}

/* Writes a failure. The message names the file if the failure is in a file other than the
 * schedule. */
static void put_failure(sarif *s, const mgl_error *failed)
{
    mgl_text said = {0};
    bool here = !strncmp(failed->where, s->path, strlen(s->path));
    mgl_text_format(&said, "%s%s%s", here ? "" : failed->where,
                    here || !failed->where[0] ? "" : ": ", failed->message);
    s->out.text.failed |= said.failed;
    put_message(s, "message", said.failed ? failed->message : said.bytes);
    mgl_text_clear(&said);
    if (!here)
        return;
    mgl_json_out_array(&s->out, "locations");
    mgl_json_out_object(&s->out, NULL);
    put_place(s, line_of_error(s, failed));
    mgl_json_out_close_object(&s->out);
    mgl_json_out_close_array(&s->out);
}

static void put_invocation(sarif *s, const mgl_error *failed)
{
    mgl_json_out_array(&s->out, "invocations");
    mgl_json_out_object(&s->out, NULL);
    mgl_json_out_bool(&s->out, "executionSuccessful", failed == NULL);
    if (failed) {
        mgl_json_out_array(&s->out, "toolExecutionNotifications");
        mgl_json_out_object(&s->out, NULL);
        mgl_json_out_string(&s->out, "level", "error");
        put_failure(s, failed);
        mgl_json_out_close_object(&s->out);
        mgl_json_out_close_array(&s->out);
    }
    mgl_json_out_close_object(&s->out);
    mgl_json_out_close_array(&s->out);
}

void mgl_cli_print_sarif(const char *path, const char *text, size_t length,
                         const mgl_verdict *verdict, const mgl_error *failed)
{
    sarif s = {.path = path, .text = text ? text : "", .length = text ? length : 0};
    int codes[MGL_MAX_DIAGNOSTICS];
    int count = list_rules(verdict, codes);
    mgl_text_put(&s.out.text, "{");
    mgl_json_out_string(&s.out, "$schema", "https://json.schemastore.org/sarif-2.1.0.json");
    mgl_json_out_string(&s.out, "version", "2.1.0");
    mgl_json_out_array(&s.out, "runs");
    mgl_json_out_object(&s.out, NULL);
    put_tool(&s, codes, count);
    put_invocation(&s, failed);
    mgl_json_out_string(&s.out, "columnKind", "unicodeCodePoints");
    put_results(&s, verdict, codes);
    mgl_json_out_close_object(&s.out);
    mgl_json_out_close_array(&s.out);
    mgl_cli_end_json(&s.out);
}
