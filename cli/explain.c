/* megalith explain MGnnn: what a diagnostic of `check` means, an example, and how to mend it. */
#include "cli/cli.h"
#include "cli/json_out.h"

#include "validator/validator.h"

#include <string.h>

#define EXPLAIN_OPTIONS(X) MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(EXPLAIN_OPTIONS)

enum { WRAP_COLUMNS = 90 };

/* "MG203" or "203". */
static const mgl_code_info *find_code(const char *text)
{
    const char *digits = strncmp(text, "MG", 2) && strncmp(text, "mg", 2) ? text : text + 2;
    int code = 0;
    if (strlen(digits) != 3 || strspn(digits, "0123456789") != 3)
        return NULL;
    for (; *digits; digits++)
        code = code * 10 + (*digits - '0');
    return mgl_validator_explain(code);
}

static mgl_status fail_unknown(const char *operand, mgl_error *err)
{
    mgl_text list = {0};
    int count;
    const mgl_code_info *codes = mgl_validator_codes(&count);
    for (int i = 0; i < count; i++)
        mgl_text_format(&list, " MG%03d", codes[i].code);
    mgl_status status =
        mgl_fail(err, MGL_USAGE, operand, "there is no such diagnostic; there are%s",
                 list.bytes ? list.bytes : " none");
    mgl_text_clear(&list);
    return status;
}

/* Lines end where the text says so, and before the last word that would not fit. */
static void print_wrapped(const char *indent, const char *text)
{
    while (*text) {
        size_t line = strcspn(text, "\n"), length = line;
        if (length > WRAP_COLUMNS) {
            length = WRAP_COLUMNS;
            while (length > 0 && text[length] != ' ')
                length--;
            if (length == 0)
                length = strcspn(text, " \n");
        }
        mgl_cli_printf("%s%.*s\n", indent, (int)length, text);
        text += length;
        text += strspn(text, length < line ? " " : "") + (length == line && *text == '\n');
    }
}

static mgl_status explain(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    const mgl_code_info *info = find_code(operand);
    if (!info)
        return fail_unknown(operand, err);
    mgl_text code = {0};
    mgl_text_format(&code, "MG%03d", info->code);
    if (code.failed)
        return mgl_fail_memory(err, 8);
    if (o->json.given) {
        mgl_json_out out = {0};
        mgl_json_out_begin(&out, "megalith.explain/1");
        mgl_json_out_string(&out, "code", code.bytes);
        mgl_json_out_string(&out, "title", info->title);
        mgl_json_out_string(&out, "meaning", info->meaning);
        mgl_json_out_string(&out, "example", info->example);
        mgl_json_out_string(&out, "remedy", info->remedy);
        mgl_json_out_end(&out);
    } else {
        mgl_cli_printf("%s: %s\n\n", code.bytes, info->title);
        print_wrapped("", info->meaning);
        mgl_cli_put("\nExample:\n");
        print_wrapped("    ", info->example);
        mgl_cli_put("\nHow to mend it:\n");
        print_wrapped("    ", info->remedy);
    }
    mgl_text_clear(&code);
    return MGL_OK;
}

const mgl_cli_verb mgl_cli_explain_verb = {
    .name = "explain",
    .operand = "MGnnn",
    .summary = "what a diagnostic of check means, and how to mend it",
    .example = "  megalith explain MG203",
    MGL_CLI_VERB_OPTIONS,
    .run = explain,
};
