/*
 * Calls: binds arguments to the parameters of macros and built-in callables.
 */
#include "importer/chat/render.h"

#include "base/text.h"

#include <string.h>

/* ---- arguments ------------------------------------------------------------------------------- */

bool mgl_arguments_add(mgl_render *r, mgl_arguments *arguments, mgl_value value)
{
    void *values = arguments->values;
    if (arguments->count == arguments->capacity &&
        !mgl_render_grow(r, &values, &arguments->capacity, arguments->count, sizeof value))
        return false;
    arguments->values = values;
    arguments->values[arguments->count++] = value;
    return true;
}

bool mgl_arguments_add_keyword(mgl_render *r, mgl_arguments *arguments, const char *name,
                               size_t length, mgl_value value)
{
    void *keywords = arguments->keywords;
    for (size_t i = 0; i < arguments->keyword_count; i++)
        if (arguments->keywords[i].length == length &&
            !memcmp(arguments->keywords[i].name, name, length))
            return mgl_render_fail(r, "the argument '%.*s' is given twice",
                                   (int)(length < 100 ? length : 100), name);
    if (!mgl_render_spend(r, arguments->keyword_count * 8))
        return false;
    if (arguments->keyword_count == arguments->keyword_capacity &&
        !mgl_render_grow(r, &keywords, &arguments->keyword_capacity, arguments->keyword_count,
                         sizeof *arguments->keywords))
        return false;
    arguments->keywords = keywords;
    arguments->keywords[arguments->keyword_count++] = (mgl_keyword){name, length, value};
    return true;
}

bool mgl_want_string(mgl_render *r, const char *what, mgl_value value, mgl_string **out)
{
    if (value.kind == MGL_VALUE_UNDEFINED)
        return mgl_render_fail_undefined(r, value);
    if (value.kind != MGL_VALUE_STRING)
        return mgl_render_fail(r, "%s must be a string, not '%s'", what, mgl_value_type(value));
    *out = value.string;
    return true;
}

bool mgl_want_integer(mgl_render *r, const char *what, mgl_value value, int64_t *out)
{
    if (value.kind == MGL_VALUE_UNDEFINED)
        return mgl_render_fail_undefined(r, value);
    return mgl_value_is_whole(value, out) ||
           mgl_render_fail(r, "%s must be a whole number, not '%s'", what, mgl_value_type(value));
}

/* ---- built-in callables ---------------------------------------------------------------------- */

/* Returns the index of a name in a list of names separated by spaces, or -1. */
static int find_parameter(const char *parameters, const char *name, size_t length)
{
    for (int i = 0; *parameters; i++) {
        size_t size = strcspn(parameters, " ");
        if (size == length && !memcmp(parameters, name, length))
            return i;
        parameters += size;
        parameters += strspn(parameters, " ");
    }
    return -1;
}

static size_t count_parameters(const char *parameters)
{
    size_t n = *parameters != 0;
    for (; *parameters; parameters++)
        n += *parameters == ' ';
    return n;
}

static bool bind_keyword(mgl_render *r, const mgl_callable *callable, const char *kind,
                         const mgl_keyword *keyword, mgl_bound *bound)
{
    int length = (int)(keyword->length < 100 ? keyword->length : 100);
    int i = find_parameter(callable->parameters, keyword->name, keyword->length);
    if (i < 0)
        return mgl_render_fail(r, "the %s '%s' has no parameter '%.*s'", kind, callable->name,
                               length, keyword->name);
    if (bound->given[i])
        return mgl_render_fail(r, "the argument '%.*s' is given twice", length, keyword->name);
    bound->values[i] = keyword->value;
    bound->given[i] = true;
    return true;
}

static bool bind(mgl_render *r, const mgl_callable *callable, const char *kind,
                 const mgl_arguments *arguments, mgl_bound *bound)
{
    size_t count = count_parameters(callable->parameters);
    *bound = (mgl_bound){.all = arguments};
    if (!strcmp(callable->parameters, "*"))
        return true;
    if (arguments->count > count)
        return mgl_render_fail(r, "the %s '%s' takes %zu arguments at most, not %zu", kind,
                               callable->name, count, arguments->count);
    for (size_t i = 0; i < arguments->count; i++) {
        bound->values[i] = arguments->values[i];
        bound->given[i] = true;
    }
    for (size_t i = 0; i < arguments->keyword_count; i++)
        if (!bind_keyword(r, callable, kind, &arguments->keywords[i], bound))
            return false;
    for (size_t i = 0; i < callable->required; i++)
        if (!bound->given[i])
            return mgl_render_fail(r, "the %s '%s' needs %zu argument%s", kind, callable->name,
                                   callable->required, callable->required == 1 ? "" : "s");
    return true;
}

int mgl_callable_find(const mgl_callable *table, size_t count, const char *name, size_t length)
{
    for (size_t i = 0; i < count; i++)
        if (mgl_text_is(name, length, table[i].name))
            return (int)i;
    return -1;
}

bool mgl_callable_call(mgl_render *r, const mgl_callable *callable, const char *kind,
                       mgl_value object, const mgl_arguments *arguments, mgl_value *out)
{
    mgl_bound bound;
    return bind(r, callable, kind, arguments, &bound) && callable->call(r, object, &bound, out);
}

/* ---- macros ---------------------------------------------------------------------------------- */

/* A call of a macro in progress. */
typedef struct macro_call {
    const mgl_macro *macro;
    const mgl_arguments *arguments;
    mgl_scope *scope; /* of the call */
    uint64_t *used;   /* (keyword_count) whether a parameter has used it */
} macro_call;

static const mgl_keyword *take_keyword(mgl_render *r, macro_call *call, uint32_t name)
{
    const mgl_symbol_name *symbol = &r->jinja->symbols[name];
    for (size_t i = 0; i < call->arguments->keyword_count; i++) {
        const mgl_keyword *keyword = &call->arguments->keywords[i];
        if (call->used[i] || keyword->length != symbol->length ||
            memcmp(keyword->name, symbol->bytes, symbol->length) != 0)
            continue;
        call->used[i] = 1;
        return keyword;
    }
    return NULL;
}

static bool set_missing(mgl_render *r, macro_call *call, uint32_t name)
{
    mgl_value missing;
    const mgl_symbol_name *symbol = &r->jinja->symbols[name];
    return mgl_missing_make(r, MGL_MISSING_NAME, NULL, symbol->bytes, symbol->length, &missing) &&
           mgl_scope_set(r, call->scope, name, missing);
}

/* Sets the given arguments, then the defaults of the other parameters. A default can use earlier
 * parameters. */
static bool set_parameters(mgl_render *r, macro_call *call, size_t *taken)
{
    const mgl_syntax *first = call->macro->definition->a;
    mgl_scope *before = r->scope;
    *taken = 0;
    for (const mgl_syntax *p = first; p; p = p->next) {
        const mgl_keyword *keyword = NULL;
        const mgl_value *value = NULL;
        if (*taken < call->arguments->count)
            value = &call->arguments->values[(*taken)++];
        else if ((keyword = take_keyword(r, call, p->name)) != NULL)
            value = &keyword->value;
        if (value && !mgl_scope_set(r, call->scope, p->name, *value))
            return false;
    }
    for (const mgl_syntax *p = first; p; p = p->next) {
        mgl_scope own = *call->scope;
        own.parent = NULL;
        if (mgl_scope_find(r, &own, p->name))
            continue;
        if (!p->a) {
            if (!set_missing(r, call, p->name))
                return false;
            continue;
        }
        mgl_value value;
        r->scope = call->scope;
        bool good = mgl_evaluate(r, p->a, &value);
        r->scope = before;
        if (!good || !mgl_scope_set(r, call->scope, p->name, value))
            return false;
    }
    return !r->status;
}

static bool wants(const macro_call *call, unsigned symbol)
{
    return call->macro->definition->wants & 1u << symbol;
}

/* Sets `caller` if the macro uses it and has no parameter of that name. */
static bool set_caller(mgl_render *r, macro_call *call)
{
    for (const mgl_syntax *p = call->macro->definition->a; p; p = p->next)
        if (p->name == MGL_SYMBOL_caller)
            return true;
    if (!wants(call, MGL_SYMBOL_caller))
        return true;
    const mgl_keyword *caller = take_keyword(r, call, MGL_SYMBOL_caller);
    return caller ? mgl_scope_set(r, call->scope, MGL_SYMBOL_caller, caller->value)
                  : set_missing(r, call, MGL_SYMBOL_caller);
}

static bool set_keywords(mgl_render *r, macro_call *call)
{
    mgl_dict *rest = mgl_dict_new(r, 0);
    for (size_t i = 0; rest && i < call->arguments->keyword_count; i++) {
        const mgl_keyword *keyword = &call->arguments->keywords[i];
        mgl_value key;
        if (call->used[i])
            continue;
        if (!wants(call, MGL_SYMBOL_kwargs))
            return mgl_render_fail(r, "the macro has no parameter '%.*s'",
                                   (int)(keyword->length < 100 ? keyword->length : 100),
                                   keyword->name);
        if (!mgl_string_value(r, keyword->name, keyword->length, &key) ||
            !mgl_dict_add(r, rest, key, keyword->value))
            return false;
    }
    return rest && (!wants(call, MGL_SYMBOL_kwargs) ||
                    mgl_scope_set(r, call->scope, MGL_SYMBOL_kwargs, mgl_of_dict(rest)));
}

static bool set_values(mgl_render *r, macro_call *call, size_t taken)
{
    size_t rest = call->arguments->count - taken;
    mgl_value tuple;
    if (!wants(call, MGL_SYMBOL_varargs))
        return !rest || mgl_render_fail(r, "the macro takes %zu arguments at most, not %zu", taken,
                                        call->arguments->count);
    return mgl_tuple_new(r, rest ? call->arguments->values + taken : NULL, rest, &tuple) &&
           mgl_scope_set(r, call->scope, MGL_SYMBOL_varargs, tuple);
}

static bool call_macro(mgl_render *r, const mgl_macro *macro, const mgl_arguments *arguments,
                       mgl_value *out)
{
    macro_call call = {macro, arguments, mgl_scope_new(r, macro->scope),
                       mgl_render_take(r, (arguments->keyword_count + 1) * sizeof *call.used)};
    size_t taken;
    if (!call.scope || !call.used)
        return false;
    memset(call.used, 0, (arguments->keyword_count + 1) * sizeof *call.used);
    if (!set_parameters(r, &call, &taken) || !set_caller(r, &call) || !set_keywords(r, &call) ||
        !set_values(r, &call, taken))
        return false;
    return mgl_capture(r, macro->definition->b, call.scope, out);
}

/* ---- dispatch -------------------------------------------------------------------------------- */

bool mgl_call(mgl_render *r, mgl_value callee, const mgl_arguments *arguments, mgl_value *out)
{
    switch (callee.kind) {
    case MGL_VALUE_MACRO:
        return call_macro(r, callee.macro, arguments, out);
    case MGL_VALUE_FUNCTION:
        return mgl_function_call(r, (int)callee.integer, arguments, out);
    case MGL_VALUE_METHOD:
        return mgl_method_call(r, callee.method, arguments, out);
    case MGL_VALUE_UNDEFINED:
        return mgl_render_fail_undefined(r, callee);
    case MGL_VALUE_LOOP:
        return mgl_render_fail(r, "recursive loops are not known; use a macro");
    default:
        return mgl_render_fail(r, "a value of type '%s' cannot be called", mgl_value_type(callee));
    }
}
