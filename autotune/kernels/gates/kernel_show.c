/* Implements kernel_show.h: looks up units and regions by name, and writes the view of a unit as
 * JSON. */
#include "autotune/kernels/gates/kernel_show.h"

mgl_status mgl_kernel_find(const char *name, const mgl_kernel_unit **out, mgl_error *err)
{
    mgl_text names = {0};
    *out = mgl_kernel_unit_find(name);
    if (*out)
        return MGL_OK;
    for (int i = 0; i < mgl_kernel_unit_count(); i++)
        mgl_text_format(&names, "%s%s", i ? ", " : "", mgl_kernel_unit_get(i)->name);
    mgl_status status = mgl_fail(err, MGL_USAGE, name, "is no micro-kernel; there are %s",
                                 names.failed ? "others" : names.bytes);
    mgl_text_clear(&names);
    return status;
}

mgl_status mgl_kernel_find_region(const char *name, mgl_kernel_region *out, mgl_error *err)
{
    *out = MGL_KERNEL_REGION_ANY;
    if (!name || mgl_kernel_region_parse(name, out))
        return MGL_OK;
    return mgl_fail(err, MGL_USAGE, "--region",
                    "'%.40s' is no region; there are launch, macros and "
                    "device",
                    name);
}

/* ---- a view ---------------------------------------------------------------------------------- */

mgl_status mgl_kernel_view_open(const mgl_kernel_unit *unit, mgl_kernel_view *out, mgl_error *err)
{
    *out = (mgl_kernel_view){.unit = unit};
    out->text = mgl_kernel_unit_text(unit, &out->length);
    mgl_status status = mgl_kernel_regions_find(out->text, out->length, &out->regions, err);
    if (!status)
        status = mgl_kernel_hash(out->text, out->length, out->hash, err);
    return status ? status : mgl_kernel_context_read(unit, &out->context, err);
}

void mgl_kernel_view_clear(mgl_kernel_view *view)
{
    mgl_kernel_context_clear(&view->context);
}

int mgl_kernel_view_line(const mgl_kernel_view *v, mgl_kernel_region region)
{
    int line = 1;
    const size_t at = v->regions.of[region].first;
    for (size_t i = 0; i < at; i++)
        line += v->text[i] == '\n';
    return line;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

void mgl_kernel_put_units(mgl_json_out *out)
{
    mgl_json_out_array(out, "units");
    for (int i = 0; i < mgl_kernel_unit_count(); i++) {
        const mgl_kernel_unit *unit = mgl_kernel_unit_get(i);
        mgl_json_out_object(out, NULL);
        mgl_json_out_string(out, "unit", unit->name);
        mgl_json_out_string(out, "op", mgl_op_get(unit->op)->name);
        mgl_json_out_string(out, "file", unit->file);
        mgl_json_out_close_object(out);
    }
    mgl_json_out_close_array(out);
}

static void put_regions(mgl_json_out *out, const mgl_kernel_view *v)
{
    mgl_json_out_array(out, "regions");
    for (int i = 0; i < MGL_KERNEL_REGION_COUNT; i++) {
        const size_t first = v->regions.of[i].first, end = v->regions.of[i].end;
        mgl_json_out_object(out, NULL);
        mgl_json_out_string(out, "region", mgl_kernel_region_name((mgl_kernel_region)i));
        mgl_json_out_int(out, "line", mgl_kernel_view_line(v, (mgl_kernel_region)i));
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

void mgl_kernel_put_view(mgl_json_out *out, const mgl_kernel_view *v)
{
    const mgl_kernel_context *c = &v->context;
    mgl_json_out_string(out, "unit", v->unit->name);
    mgl_json_out_string(out, "op", mgl_op_get(v->unit->op)->name);
    mgl_json_out_string(out, "file", v->unit->file);
    mgl_json_out_string(out, "hash", v->hash);
    mgl_json_out_string(out, "meaning", c->meaning);
    put_names(out, c, "scalars", 0, c->scalar_count);
    put_names(out, c, "tunables", c->scalar_count, c->name_count);
    put_tensors(out, "inputs", c->inputs, c->input_count);
    put_tensors(out, "outputs", c->outputs, c->output_count);
    mgl_json_out_object(out, "budget");
    mgl_json_out_int(out, "registers", c->budget.registers);
    mgl_json_out_int(out, "shared", c->budget.shared);
    mgl_json_out_int(out, "spill", c->budget.spill);
    mgl_json_out_int(out, "global", c->budget.global);
    mgl_json_out_close_object(out);
    put_regions(out, v);
}
