/* Implements json_fields.h. */
#include "base/json_fields.h"

static mgl_status get_field(const mgl_json *json, const cJSON *object, const mgl_json_field *f,
                            mgl_error *err)
{
    switch (f->kind) {
    case MGL_JSON_FIELD_INT:
        return mgl_json_get_int(json, object, f->key, f->required, f->lo, f->hi, f->to.integer,
                                err);
    case MGL_JSON_FIELD_REAL:
        return mgl_json_get_double(json, object, f->key, f->required, f->to.real, err);
    case MGL_JSON_FIELD_BOOL:
        return mgl_json_get_bool(json, object, f->key, f->required, f->to.flag, err);
    case MGL_JSON_FIELD_STRING:
        return mgl_json_get_string(json, object, f->key, f->required, f->to.string, err);
    case MGL_JSON_FIELD_OBJECT:
        return mgl_json_get_object(json, object, f->key, f->required, f->to.tree, err);
    default:
        return mgl_json_get_array(json, object, f->key, f->required, f->to.tree, err);
    }
}

mgl_status mgl_json_get_fields(const mgl_json *json, const cJSON *object,
                               const mgl_json_field *fields, size_t count, mgl_error *err)
{
    mgl_status status = MGL_OK;
    for (size_t i = 0; i < count && !status; i++)
        status = get_field(json, object, &fields[i], err);
    return status;
}
