/*
 * Fuzz target of the MCP server, which has no store and no folders. Each line is a message. Each
 * answer must be JSON on one line, and nothing is submitted.
 */
#include "autotune/mcp/mcp.h"
#include "base/json.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void take_message(mgl_mcp *mcp, const char *line, size_t length)
{
    mgl_text answer = {0};
    mgl_json json;
    mgl_error err = {0};
    mgl_mcp_see(mcp, line, length);
    require(mgl_mcp_handle(mcp, line, length, &answer, &err) == MGL_OK);
    if (answer.length) {
        require(!memchr(answer.bytes, '\n', answer.length));
        require(!mgl_json_parse(answer.bytes, answer.length, SIZE_MAX, "answer", &json, &err));
        mgl_json_clear(&json);
    }
    mgl_text_clear(&answer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const mgl_mcp_options options = {.store = "/nonexistent/campaigns.db", .allow_trials = true};
    const char *at = (const char *)data, *end = at + size;
    mgl_mcp *mcp = NULL;
    mgl_error err = {0};
    require(!mgl_mcp_open(&options, &mcp, &err));
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t length = (size_t)((stop ? stop : end) - at);
        take_message(mcp, at, length);
        at += length + 1;
    }
    mgl_mcp_close(mcp);
    return 0;
}
