/* megalith kernel show UNIT: what is known of a micro-kernel, or its text. */
#include "autotune/kernel/context.h"
#include "cli/kernel.h"

#define SHOW_OPTIONS(X)                                                                            \
    X(flag, text, "--text", NULL, 0, 0, "its text, as the kernel is compiled with it")             \
    X(text, region, "--region", "launch|macros|device", 0, 0, "of the text, this region alone")    \
    MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(SHOW_OPTIONS)

/* What is shown. */
typedef struct view {
    const mgl_kernel_unit *unit;
    const char *text; /* (length) */
    size_t length;
    mgl_kernel_regions regions;
    char hash[MGL_SHA256_HEX];
    mgl_kernel_context context;
} view;

static mgl_status look(const mgl_kernel_unit *unit, view *out, mgl_error *err)
{
    *out = (view){.unit = unit};
    out->text = mgl_kernel_unit_text(unit, &out->length);
    mgl_status status = mgl_kernel_regions_find(out->text, out->length, &out->regions, err);
    if (!status)
        status = mgl_kernel_hash(out->text, out->length, out->hash, err);
    return status ? status : mgl_kernel_context_read(unit, &out->context, err);
}

static int line_of(const view *v, size_t at)
{
    int line = 1;
    for (size_t i = 0; i < at; i++)
        line += v->text[i] == '\n';
    return line;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_regions(mgl_json_out *out, const view *v)
{
    mgl_json_out_array(out, "regions");
    for (int i = 0; i < MGL_KERNEL_REGION_COUNT; i++) {
        const size_t first = v->regions.of[i].first, end = v->regions.of[i].end;
        mgl_json_out_object(out, NULL);
        mgl_json_out_string(out, "region", mgl_kernel_region_name((mgl_kernel_region)i));
        mgl_json_out_int(out, "line", line_of(v, first));
        mgl_json_out_text(out, "text", v->text + first, end - first);
        mgl_json_out_close_object(out);
    }
    mgl_json_out_close_array(out);
}

static void put_names(mgl_json_out *out, const mgl_kernel_context *c, const char *key, int from,
                      int to)
{
    mgl_json_out_array(out, key);
    for (int i = from; i < to; i++) {
        mgl_json_out_object(out, NULL);
        mgl_json_out_string(out, "name", c->names[i].name);
        mgl_json_out_int(out, "from", c->names[i].from);
        mgl_json_out_int(out, "to", c->names[i].to);
        mgl_json_out_close_object(out);
    }
    mgl_json_out_close_array(out);
}

static void put_tensors(mgl_json_out *out, const char *key, const mgl_context_tensor *list,
                        int count)
{
    mgl_json_out_array(out, key);
    for (int i = 0; i < count; i++) {
        mgl_json_out_object(out, NULL);
        mgl_json_out_string(out, "name", list[i].name);
        mgl_json_out_string(out, "type", list[i].type);
        mgl_json_out_close_object(out);
    }
    mgl_json_out_close_array(out);
}

static void show_json(const view *v)
{
    mgl_json_out out = {0};
    const mgl_kernel_context *c = &v->context;
    mgl_json_out_begin(&out, "megalith.kernel/1");
    mgl_json_out_string(&out, "unit", v->unit->name);
    mgl_json_out_string(&out, "op", mgl_op_get(v->unit->op)->name);
    mgl_json_out_string(&out, "file", v->unit->file);
    mgl_json_out_string(&out, "hash", v->hash);
    mgl_json_out_string(&out, "meaning", c->meaning);
    put_names(&out, c, "scalars", 0, c->scalar_count);
    put_names(&out, c, "tunables", c->scalar_count, c->name_count);
    put_tensors(&out, "inputs", c->inputs, c->input_count);
    put_tensors(&out, "outputs", c->outputs, c->output_count);
    mgl_json_out_object(&out, "budget");
    mgl_json_out_int(&out, "registers", c->budget.registers);
    mgl_json_out_int(&out, "shared", c->budget.shared);
    mgl_json_out_int(&out, "spill", c->budget.spill);
    mgl_json_out_int(&out, "global", c->budget.global);
    mgl_json_out_close_object(&out);
    put_regions(&out, v);
    mgl_cli_end_json(&out);
}

/* ---- lines ----------------------------------------------------------------------------------- */

static void show_tensors(const char *what, const mgl_context_tensor *list, int count)
{
    mgl_cli_printf("%-9s ", what);
    for (int i = 0; i < count; i++)
        mgl_cli_printf("%s%s %s", i ? ", " : "", list[i].name, list[i].type);
    mgl_cli_put("\n");
}

static void show_lines(const view *v)
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
        mgl_cli_printf(
            "region    %s: from line %d, %zu bytes\n", mgl_kernel_region_name((mgl_kernel_region)i),
            line_of(v, v->regions.of[i].first), v->regions.of[i].end - v->regions.of[i].first);
}

static mgl_status show_text(const view *v, const struct options *o, mgl_error *err)
{
    mgl_kernel_region region;
    mgl_status status = mgl_cli_kernel_region(o->region.value, &region, err);
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
    view v;
    mgl_status status = mgl_cli_kernel_find(operand, &unit, err);
    if (status)
        return status;
    status = look(unit, &v, err);
    if (!status && (o->text.given || o->region.given))
        status = show_text(&v, o, err);
    else if (!status && o->json.given)
        show_json(&v);
    else if (!status)
        show_lines(&v);
    mgl_kernel_context_clear(&v.context);
    return status;
}

const mgl_cli_verb mgl_cli_kernel_show_verb = {
    .name = "kernel show",
    .operand = "UNIT",
    .summary = "what is known of a micro-kernel, or its text",
    .example = "  megalith kernel show norm_linear.skinny --text",
    MGL_CLI_VERB_OPTIONS,
    .run = show,
};
