/* How number formats are shown to a person: "checkpoint bf16, weights f16, exchange f32, ...". */
#include "cli/cli.h"

#include "validator/validator.h"

void mgl_cli_put_formats(const mgl_formats *formats)
{
    const struct {
        const char *name;
        unsigned set;
    } parts[] = {{"checkpoint", formats->checkpoint},
                 {"weights", formats->weights},
                 {"exchange", formats->exchange},
                 {"cache", formats->cache}};
    const char *comma = "";
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char text[MGL_FORMATS_TEXT];
        if (!parts[i].set)
            continue;
        mgl_cli_printf("%s%s %s", comma, parts[i].name, mgl_formats_print(parts[i].set, text));
        comma = ", ";
    }
    mgl_cli_put(formats->lossy ? "; lossy: not each number of the checkpoint can be held\n" : "\n");
}
