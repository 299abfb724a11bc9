/* Formats the reasons why replies ended, for the closing line of `run`. */
#ifndef MGL_CLI_GENERATE_ENDS_H
#define MGL_CLI_GENERATE_ENDS_H

#include "base/text.h"
#include "cli/generate/prompts.h"

/* The limits at which a reply can end. */
typedef struct mgl_cli_limits {
    int64_t max_tokens; /* limit for a prompt that sets none */
    int32_t capacity;   /* positions of the KV cache */
} mgl_cli_limits;

/* Appends "; ended by ...": for one reply its reason, for several each reason with its count. */
void mgl_cli_add_ends(mgl_text *line, const mgl_cli_prompt *prompts, const mgl_result *results,
                      size_t count, const mgl_cli_limits *limits);

#endif
