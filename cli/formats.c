/*
 * Prints number formats for people: "checkpoint bf16, weights f16, exchange f32, ...". `info` and
 * the verbs that run a model call it.
 */
#include "cli/cli.h"

#include "validator/validator.h"

#include <string.h>

static const char *put(const char *comma, const char *name, const char *set)
{
    if (!set[0])
        return comma;
    mgl_cli_printf("%s%s %s", comma, name, set);
    return ", ";
}

/* Prints the embedding's format only if it differs from the weights' format. */
void mgl_cli_put_formats(const mgl_formats *formats)
{
    char text[MGL_FORMATS_TEXT], weights[MGL_FORMATS_TEXT];
    mgl_formats_print_weights(formats->weights, weights);
    const char *comma = put("", "checkpoint", mgl_formats_print(formats->checkpoint, text));
    comma = put(comma, "weights", weights);
    if (strcmp(mgl_formats_print(formats->embedding, text), weights) != 0)
        comma = put(comma, "embedding", text);
    comma = put(comma, "exchange", mgl_formats_print(formats->exchange, text));
    put(comma, "cache", mgl_formats_print(formats->cache, text));
    mgl_cli_put(formats->lossy ? "; lossy: some weights of the checkpoint are rounded\n" : "\n");
}
