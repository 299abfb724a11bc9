/*
 * Evaluates expressions by walking the tree: mgl_evaluate takes a node and returns its value. There
 * is one function per kind of node, which evaluates its operands first. The files that execute
 * statements and calls use it.
 */
#include "importer/chat/render.h"

#include <string.h>

static bool evaluate_name(mgl_render *r, const mgl_syntax *part, mgl_value *out)
{
    const mgl_value *value = mgl_scope_find(r, r->scope, part->name);
    if (r->status)
        return false;
    if (value)
        *out = *value;
    else if (part->row >= 0)
        *out = (mgl_value){.kind = MGL_VALUE_FUNCTION, .integer = part->row};
    else
        return mgl_missing_make(r, MGL_MISSING_NAME, NULL, r->jinja->symbols[part->name].bytes,
                                r->jinja->symbols[part->name].length, out);
    return true;
}

static bool evaluate_list(mgl_render *r, const mgl_syntax *part, mgl_value *out)
{
    mgl_list *list = mgl_list_new(r, 0);
    for (const mgl_syntax *item = part->a; list && item; item = item->next) {
        mgl_value value;
        if (!mgl_evaluate(r, item, &value) || !mgl_list_add(r, list, value))
            return false;
    }
    bool tuple = part->kind == MGL_SYNTAX_TUPLE;
    *out = (mgl_value){.kind = tuple ? MGL_VALUE_TUPLE : MGL_VALUE_LIST, .list = list};
    return list != NULL;
}

static bool evaluate_dict(mgl_render *r, const mgl_syntax *part, mgl_value *out)
{
    mgl_dict *dict = mgl_dict_new(r, 0);
    for (const mgl_syntax *item = part->a; dict && item; item = item->next->next) {
        mgl_value key, value;
        if (!mgl_evaluate(r, item, &key) || !mgl_evaluate(r, item->next, &value))
            return false;
        r->at = item;
        if (!mgl_dict_set(r, dict, key, value))
            return false;
    }
    *out = mgl_of_dict(dict);
    return dict != NULL;
}

static bool evaluate_attribute(mgl_render *r, const mgl_syntax *part, mgl_value *out)
{
    mgl_value object;
    const mgl_symbol_name *name = &r->jinja->symbols[part->name];
    if (!mgl_evaluate(r, part->a, &object))
        return false;
    r->at = part;
    return mgl_attribute(r, object, name->bytes, name->length, out);
}

static bool evaluate_slice(mgl_render *r, const mgl_syntax *part, mgl_value object, mgl_value *out)
{
    const mgl_syntax *parts[3] = {part->b->a, part->b->b, part->b->c};
    mgl_value bounds[3];
    for (int i = 0; i < 3; i++) {
        bounds[i] = mgl_none();
        if (parts[i] && !mgl_evaluate(r, parts[i], &bounds[i]))
            return false;
    }
    r->at = part;
    return mgl_slice(r, object, bounds, out);
}

static bool evaluate_item(mgl_render *r, const mgl_syntax *part, mgl_value *out)
{
    mgl_value object, key;
    if (!mgl_evaluate(r, part->a, &object))
        return false;
    if (part->b->kind == MGL_SYNTAX_SLICE)
        return evaluate_slice(r, part, object, out);
    if (!mgl_evaluate(r, part->b, &key))
        return false;
    r->at = part;
    return mgl_item(r, object, key, out);
}

/* ---- operators ------------------------------------------------------------------------------- */

static bool evaluate_binary(mgl_render *r, const mgl_syntax *part, mgl_value *out)
{
    mgl_value a, b;
    if (!mgl_evaluate(r, part->a, &a) || !mgl_evaluate(r, part->b, &b))
        return false;
    r->at = part;
    return mgl_operate(r, part->operation, a, b, out);
}

static bool evaluate_unary(mgl_render *r, const mgl_syntax *part, mgl_value *out)
{
    mgl_value a;
    if (!mgl_evaluate(r, part->a, &a))
        return false;
    r->at = part;
    return mgl_operate_unary(r, part->operation, a, out);
}

/* Evaluates chained comparisons: a < b < c is a < b and b < c. */
static bool evaluate_comparison(mgl_render *r, const mgl_syntax *part, mgl_value *out)
{
    mgl_value left, right;
    bool holds = true;
    if (!mgl_evaluate(r, part->a, &left))
        return false;
    for (const mgl_syntax *operand = part->b; holds && operand; operand = operand->next) {
        if (!mgl_evaluate(r, operand->a, &right))
            return false;
        r->at = part;
        if (!mgl_compare(r, operand->operation, left, right, &holds))
            return false;
        left = right;
    }
    *out = mgl_bool(holds);
    return true;
}

/* The value of `and` and `or` is the value of the operand that decided. */
static bool evaluate_logic(mgl_render *r, const mgl_syntax *part, mgl_value *out)
{
    if (!mgl_evaluate(r, part->a, out))
        return false;
    if (mgl_value_truth(*out) == (part->kind == MGL_SYNTAX_OR))
        return true;
    return mgl_evaluate(r, part->b, out);
}

static bool evaluate_not(mgl_render *r, const mgl_syntax *part, mgl_value *out)
{
    mgl_value inner;
    if (!mgl_evaluate(r, part->a, &inner))
        return false;
    *out = mgl_bool(!mgl_value_truth(inner));
    return true;
}

static bool evaluate_choice(mgl_render *r, const mgl_syntax *part, mgl_value *out)
{
    static const char reason[] =
        "the condition of an 'if' without an 'else' does not hold, so that its value is undefined";
    mgl_value condition;
    if (!mgl_evaluate(r, part->b, &condition))
        return false;
    if (mgl_value_truth(condition))
        return mgl_evaluate(r, part->a, out);
    if (part->c)
        return mgl_evaluate(r, part->c, out);
    return mgl_missing_make(r, MGL_MISSING_REASON, NULL, reason, sizeof reason - 1, out);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static bool add_items(mgl_render *r, mgl_value items, mgl_arguments *out)
{
    mgl_walk walk;
    mgl_value item;
    bool end;
    if (!mgl_walk_start(r, items, &walk))
        return false;
    for (;;) {
        if (!mgl_walk_next(r, &walk, &item, &end))
            return false;
        if (end)
            return true;
        if (!mgl_arguments_add(r, out, item))
            return false;
    }
}

static bool add_entries(mgl_render *r, mgl_value entries, mgl_arguments *out)
{
    if (entries.kind != MGL_VALUE_DICT)
        return mgl_render_fail(r, "'**' needs a dict, not '%s'", mgl_value_type(entries));
    for (size_t i = 0; i < entries.dict->count; i++) {
        const mgl_entry *entry = &entries.dict->entries[i];
        if (entry->key.kind != MGL_VALUE_STRING)
            return mgl_render_fail(r, "'**' needs a dict whose keys are strings");
        if (!mgl_arguments_add_keyword(r, out, entry->key.string->bytes, entry->key.string->length,
                                       entry->value))
            return false;
    }
    return true;
}

static bool evaluate_argument(mgl_render *r, const mgl_syntax *part, mgl_arguments *out)
{
    const mgl_symbol_name *name = &r->jinja->symbols[part->name];
    bool special = part->kind == MGL_SYNTAX_KEYWORD || part->kind == MGL_SYNTAX_SPREAD ||
                   part->kind == MGL_SYNTAX_SPREAD_KEYWORDS;
    mgl_value value;
    if (!mgl_evaluate(r, special ? part->a : part, &value))
        return false;
    r->at = part;
    if (part->kind == MGL_SYNTAX_KEYWORD)
        return mgl_arguments_add_keyword(r, out, name->bytes, name->length, value);
    if (part->kind == MGL_SYNTAX_SPREAD)
        return add_items(r, value, out);
    if (part->kind == MGL_SYNTAX_SPREAD_KEYWORDS)
        return add_entries(r, value, out);
    return mgl_arguments_add(r, out, value);
}

static bool evaluate_arguments(mgl_render *r, const mgl_syntax *list, mgl_arguments *out)
{
    *out = (mgl_arguments){0};
    for (const mgl_syntax *part = list; part; part = part->next)
        if (!evaluate_argument(r, part, out))
            return false;
    return true;
}

/* Evaluates a call. `caller`: from a call block, or NULL. */
static bool evaluate_call_with(mgl_render *r, const mgl_syntax *part, const mgl_value *caller,
                               mgl_value *out)
{
    mgl_arguments arguments;
    mgl_value callee;
    if (!mgl_evaluate(r, part->a, &callee) || !evaluate_arguments(r, part->b, &arguments))
        return false;
    r->at = part;
    if (caller && !mgl_arguments_add_keyword(r, &arguments, "caller", 6, *caller))
        return false;
    return mgl_call(r, callee, &arguments, out);
}

bool mgl_evaluate_call_block(mgl_render *r, const mgl_syntax *block, mgl_value *out)
{
    mgl_macro *macro = mgl_render_take(r, sizeof *macro);
    if (!macro)
        return false;
    *macro = (mgl_macro){block, r->scope};
    for (mgl_scope *scope = r->scope; scope && !scope->captured; scope = scope->parent)
        scope->captured = true;
    mgl_value caller = {.kind = MGL_VALUE_MACRO, .macro = macro};
    return evaluate_call_with(r, block->c, &caller, out);
}

static bool fail_row(mgl_render *r, const mgl_syntax *part, const char *kind)
{
    r->at = part;
    return mgl_render_fail(r, "the %s '%.*s' is not supported", kind, (int)(part->to - part->from),
                           r->jinja->text + part->from);
}

bool mgl_evaluate_filter(mgl_render *r, const mgl_syntax *part, mgl_value input, mgl_value *out)
{
    mgl_arguments arguments;
    if (part->row < 0)
        return fail_row(r, part, "filter");
    if (!evaluate_arguments(r, part->b, &arguments))
        return false;
    r->at = part;
    return mgl_filter_call(r, part->row, input, &arguments, out);
}

static bool evaluate_filter(mgl_render *r, const mgl_syntax *part, mgl_value *out)
{
    mgl_value input;
    return mgl_evaluate(r, part->a, &input) && mgl_evaluate_filter(r, part, input, out);
}

static bool evaluate_test(mgl_render *r, const mgl_syntax *part, mgl_value *out)
{
    mgl_arguments arguments;
    mgl_value input;
    bool holds;
    if (!mgl_evaluate(r, part->a, &input))
        return false;
    if (part->row < 0)
        return fail_row(r, part, "test");
    if (!evaluate_arguments(r, part->b, &arguments))
        return false;
    r->at = part;
    if (!mgl_test_call(r, part->row, input, &arguments, &holds))
        return false;
    *out = mgl_bool(holds);
    return true;
}

/* ---- dispatch -------------------------------------------------------------------------------- */

static bool evaluate(mgl_render *r, const mgl_syntax *part, mgl_value *out)
{
    switch (part->kind) {
    case MGL_SYNTAX_CONSTANT:
        *out = part->value;
        return true;
    case MGL_SYNTAX_NAME:
        return evaluate_name(r, part, out);
    case MGL_SYNTAX_LIST:
    case MGL_SYNTAX_TUPLE:
        return evaluate_list(r, part, out);
    case MGL_SYNTAX_DICT:
        return evaluate_dict(r, part, out);
    case MGL_SYNTAX_ATTRIBUTE:
        return evaluate_attribute(r, part, out);
    case MGL_SYNTAX_ITEM:
        return evaluate_item(r, part, out);
    case MGL_SYNTAX_CALL:
        return evaluate_call_with(r, part, NULL, out);
    case MGL_SYNTAX_FILTER:
        return evaluate_filter(r, part, out);
    case MGL_SYNTAX_TEST:
        return evaluate_test(r, part, out);
    case MGL_SYNTAX_UNARY:
        return evaluate_unary(r, part, out);
    case MGL_SYNTAX_BINARY:
        return evaluate_binary(r, part, out);
    case MGL_SYNTAX_COMPARE:
        return evaluate_comparison(r, part, out);
    case MGL_SYNTAX_AND:
    case MGL_SYNTAX_OR:
        return evaluate_logic(r, part, out);
    case MGL_SYNTAX_NOT:
        return evaluate_not(r, part, out);
    case MGL_SYNTAX_CHOICE:
        return evaluate_choice(r, part, out);
    default:
        return mgl_render_fail(r, "a slice must be the only item between brackets");
    }
}

bool mgl_evaluate(mgl_render *r, const mgl_syntax *part, mgl_value *out)
{
    r->at = part;
    if (!mgl_render_enter(r) || !evaluate(r, part, out))
        return false;
    mgl_render_leave(r);
    return true;
}
