/*
 * Fuzz target of chat templates. The first line is the messages (left out if it is not JSON); the
 * rest is the template. It must be rejected with a position, or give a text. Seeds:
 * seeds/fuzz_template.
 */
#include "base/memory.h"
#include "importer/chat/chat.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

/* The variables of the messages, or else of a fixed conversation. */
static cJSON *read_variables(const char *text, size_t length)
{
    static const char usual[] =
        "[{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", \"content\": [1.0, "
        "{\"x\": null}], \"tool_calls\": [{\"function\": {\"name\": \"f\", \"arguments\": {}}}]}]";
    mgl_conversation conversation = {
        .size = sizeof conversation, .tools = "[{}]", .args = "{\"n\": 12345678901234567890}"};
    mgl_error err = {0};
    cJSON *variables;
    char *given = mgl_strndup(text, length);
    require(given != NULL);
    conversation.messages = given;
    mgl_status status = mgl_conversation_read(&conversation, &variables, &err);
    require(!status || (err.code == MGL_BAD_INPUT && err.message[0] && err.where[0]));
    conversation.messages = usual;
    if (status)
        require(!mgl_conversation_read(&conversation, &variables, &err));
    mgl_free(given);
    return variables;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data, *line = size ? memchr(text, '\n', size) : NULL;
    size_t length = line ? (size_t)(line - text) : 0, skip = line ? length + 1 : 0;
    mgl_jinja *jinja;
    mgl_error err = {0};
    char *out;
    if (mgl_jinja_parse(text + skip, size - skip, "fuzz", &jinja, &err)) {
        require(err.code == MGL_BAD_INPUT && err.message[0] && !strncmp(err.where, "fuzz", 4));
        return 0;
    }
    cJSON *variables = read_variables(text, length);
    mgl_status status = mgl_jinja_render(jinja, variables, &out, &length, &err);
    require(!status == (out != NULL) && (!status || status == MGL_BAD_INPUT));
    require(!status || (err.message[0] && !strncmp(err.where, "fuzz", 4)));
    mgl_free(out);
    cJSON_Delete(variables);
    mgl_jinja_free(jinja);
    return 0;
}
