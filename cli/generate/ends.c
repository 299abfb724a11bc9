/* Formats the reasons why replies ended, for the closing line of `run`. See ends.h. */
#include "cli/generate/ends.h"

enum end { END_TOKEN, STOP_TEXT, MAX_TOKENS, CAPACITY, INTERRUPTED, ENDS };

static int64_t most_tokens(const mgl_cli_prompt *prompt, const mgl_cli_limits *limits)
{
    return prompt->reply.max_tokens.given ? prompt->reply.max_tokens.value : limits->max_tokens;
}

/* A reply that ended by length, with fewer tokens than its limit, has filled the KV cache. */
static enum end find_end(const mgl_cli_prompt *prompt, const mgl_result *result,
                         const mgl_cli_limits *limits)
{
    switch (result->stop) {
    case MGL_STOP_EOS:
        return END_TOKEN;
    case MGL_STOP_TEXT:
        return STOP_TEXT;
    case MGL_STOP_INTERRUPTED:
        return INTERRUPTED;
    case MGL_STOP_LENGTH:
        break;
    }
    return (int64_t)result->output.count < most_tokens(prompt, limits) ? CAPACITY : MAX_TOKENS;
}

static void add_end(mgl_text *line, const mgl_cli_prompt *prompt, const mgl_result *result,
                    const mgl_cli_limits *limits)
{
    const mgl_cli_list *stops = &prompt->reply.stop;
    switch (find_end(prompt, result, limits)) {
    case END_TOKEN:
        mgl_text_put(line, "; ended by the end token");
        if (result->output.count)
            mgl_text_format(line, " %d", (int)result->output.ids[result->output.count - 1]);
        break;
    case STOP_TEXT:
        if (stops->count == 1)
            mgl_text_format(line, "; ended by the stop text \"%.40s\"", stops->values[0]);
        else
            mgl_text_put(line, "; ended by a stop text");
        break;
    case MAX_TOKENS:
        mgl_text_format(line, "; ended by --max-tokens %lld",
                        (long long)most_tokens(prompt, limits));
        break;
    case CAPACITY:
        mgl_text_format(line, "; ended by the capacity of %d positions", (int)limits->capacity);
        break;
    case INTERRUPTED:
    case ENDS:
        mgl_text_put(line, "; interrupted");
        break;
    }
}

void mgl_cli_add_ends(mgl_text *line, const mgl_cli_prompt *prompts, const mgl_result *results,
                      size_t count, const mgl_cli_limits *limits)
{
    static const char *const names[ENDS] = {"end token", "stop text", "max-tokens", "capacity",
                                            "interrupt"};
    size_t ends[ENDS] = {0};
    if (count == 1) {
        if (!prompts[0].error)
            add_end(line, &prompts[0], &results[0], limits);
        return;
    }
    for (size_t i = 0; i < count; i++)
        if (!prompts[i].error)
            ends[find_end(&prompts[i], &results[i], limits)]++;
    const char *mark = "; ended by ";
    for (int i = 0; i < ENDS; i++)
        if (ends[i]) {
            mgl_text_format(line, "%s%s (%zu)", mark, names[i], ends[i]);
            mark = ", ";
        }
}
