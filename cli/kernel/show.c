/* megalith kernel show UNIT: prints the facts about a micro-kernel, or its text. */
#include "cli/kernel/kernel.h"

#define SHOW_OPTIONS(X)                                                                            \
    X(flag, text, "--text", NULL, 0, 0, "print the text that the kernel is compiled with")         \
    X(text, region, "--region", "launch|macros|device", 0, 0,                                      \
      "print only this region of the text")                                                        \
    MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(SHOW_OPTIONS)

static void show_json(const mgl_kernel_view *v)
{
    mgl_json_out out = {0};
    mgl_json_out_begin(&out, "megalith.kernel/1");
    mgl_kernel_put_view(&out, v);
    mgl_cli_end_json(&out);
}

static void show_tensors(const char *what, const mgl_context_tensor *list, int count)
{
    mgl_cli_printf("%-9s ", what);
    for (int i = 0; i < count; i++)
        mgl_cli_printf("%s%s %s", i ? ", " : "", list[i].name, list[i].type);
    mgl_cli_put("\n");
}

static void show_lines(const mgl_kernel_view *v)
{
    const mgl_kernel_context *c = &v->context;
    mgl_cli_printf("unit      %s\n", v->unit->name);
    mgl_cli_printf("file      %s\n", v->unit->file);
    mgl_cli_printf("hash      %s\n", v->hash);
    mgl_cli_printf("meaning   %s\n", c->meaning);
    for (int i = 0; i < c->name_count; i++)
        mgl_cli_printf("%-9s %s: %lld to %lld\n", i < c->scalar_count ? "scalar" : "tunable",
                       c->names[i].name, (long long)c->names[i].from, (long long)c->names[i].to);
    show_tensors("inputs", c->inputs, c->input_count);
    show_tensors("outputs", c->outputs, c->output_count);
    mgl_cli_printf("budget    %lld registers, %lld bytes shared, %lld spilled, %lld global\n",
                   (long long)c->budget.registers, (long long)c->budget.shared,
                   (long long)c->budget.spill, (long long)c->budget.global);
    for (int i = 0; i < MGL_KERNEL_REGION_COUNT; i++)
        mgl_cli_printf("region    %s: from line %d, %zu bytes\n",
                       mgl_kernel_region_name((mgl_kernel_region)i),
                       mgl_kernel_view_line(v, (mgl_kernel_region)i),
                       v->regions.of[i].end - v->regions.of[i].first);
}

static mgl_status show_text(const mgl_kernel_view *v, const struct options *o, mgl_error *err)
{
    mgl_kernel_region region;
    mgl_status status = mgl_kernel_find_region(o->region.value, &region, err);
    if (status)
        return status;
    if (region == MGL_KERNEL_REGION_ANY)
        mgl_cli_print(v->text, v->length);
    else
        mgl_cli_print(v->text + v->regions.of[region].first,
                      v->regions.of[region].end - v->regions.of[region].first);
    return MGL_OK;
}

static mgl_status show(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    const mgl_kernel_unit *unit;
    mgl_kernel_view v;
    mgl_status status = mgl_kernel_find(operand, &unit, err);
    if (status)
        return status;
    status = mgl_kernel_view_open(unit, &v, err);
    if (!status && (o->text.given || o->region.given))
        status = show_text(&v, o, err);
    else if (!status && o->json.given)
        show_json(&v);
    else if (!status)
        show_lines(&v);
    mgl_kernel_view_clear(&v);
    return status;
}

const mgl_cli_verb mgl_cli_kernel_show_verb = {
    .name = "kernel show",
    .operand = "UNIT",
    .summary = "describes a micro-kernel, or prints its text",
    .example = "  megalith kernel show norm_linear.skinny --text",
    MGL_CLI_VERB_OPTIONS,
    .run = show,
};
