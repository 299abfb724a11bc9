/*
 * Executes statements by walking the tree. A block with its own variables (an iteration of a
 * loop, a macro, a captured block) gets a scope. `set` writes to the innermost scope, and its
 * variables end with that scope. An `if` has no scope.
 */
#include "importer/chat/render.h"

#include <string.h>

static bool execute(mgl_render *r, const mgl_syntax *part);

bool mgl_execute(mgl_render *r, const mgl_syntax *statements)
{
    for (; statements && r->flow == MGL_FLOW_ON; statements = statements->next) {
        r->at = statements;
        if (!mgl_render_enter(r) || !execute(r, statements))
            return false;
        mgl_render_leave(r);
    }
    return true;
}

/* Executes statements in a scope, and restores the scope before. */
static bool execute_within(mgl_render *r, const mgl_syntax *statements, mgl_scope *scope)
{
    mgl_scope *before = r->scope;
    r->scope = scope;
    bool good = scope && mgl_execute(r, statements);
    r->scope = before;
    return good;
}

bool mgl_capture(mgl_render *r, const mgl_syntax *statements, mgl_scope *scope, mgl_value *out)
{
    mgl_sink sink = {0}, *before = r->sink;
    r->sink = &sink;
    bool good = execute_within(r, statements, scope);
    r->sink = before;
    mgl_string *string = good ? mgl_sink_string(r, &sink) : NULL;
    *out = mgl_of_string(string);
    return string != NULL;
}

/* ---- assignment ------------------------------------------------------------------------------ */

static bool assign(mgl_render *r, const mgl_syntax *target, mgl_value value);

/* Assigns each item to its target; the counts must be equal. */
static bool assign_items(mgl_render *r, const mgl_syntax *tuple, mgl_value value)
{
    size_t wanted = 0, given = 0;
    for (const mgl_syntax *target = tuple->a; target; target = target->next)
        wanted++;
    r->at = tuple;
    mgl_list *items = mgl_list_of(r, value);
    if (!items)
        return false;
    given = items->count;
    if (given != wanted)
        return mgl_render_fail(r, "%zu items cannot be assigned to %zu names", given, wanted);
    given = 0;
    for (const mgl_syntax *target = tuple->a; target; target = target->next)
        if (!assign(r, target, items->items[given++]))
            return false;
    return true;
}

static bool assign_member(mgl_render *r, const mgl_syntax *target, mgl_value value)
{
    const mgl_value *object = mgl_scope_find(r, r->scope, target->name);
    r->at = target;
    if (r->status)
        return false;
    if (!object || object->kind != MGL_VALUE_NAMESPACE)
        return mgl_render_fail(r, "only namespaces have attributes that can be assigned to");
    if (target->value.string->bytes[0] == '_')
        return mgl_render_fail(r, "an attribute of a namespace must not begin with '_'");
    return mgl_dict_set(r, object->dict, target->value, value);
}

static bool assign(mgl_render *r, const mgl_syntax *target, mgl_value value)
{
    if (target->kind == MGL_SYNTAX_TUPLE)
        return assign_items(r, target, value);
    if (target->kind == MGL_SYNTAX_MEMBER)
        return assign_member(r, target, value);
    return mgl_scope_set(r, r->scope, target->name, value);
}

static bool execute_set(mgl_render *r, const mgl_syntax *part)
{
    mgl_value value;
    return mgl_evaluate(r, part->b, &value) && assign(r, part->a, value);
}

/* Applies the filters of a block; the first filter's input is the block's text. */
static bool apply_filters(mgl_render *r, const mgl_syntax *filter, mgl_value *value)
{
    if (!filter)
        return true;
    return apply_filters(r, filter->a, value) && mgl_evaluate_filter(r, filter, *value, value);
}

static bool execute_set_block(mgl_render *r, const mgl_syntax *part)
{
    mgl_value value;
    return mgl_capture(r, part->b, mgl_scope_new(r, r->scope), &value) &&
           apply_filters(r, part->c, &value) && assign(r, part->a, value);
}

static bool execute_filter_block(mgl_render *r, const mgl_syntax *part)
{
    mgl_value value;
    return mgl_capture(r, part->b, mgl_scope_new(r, r->scope), &value) &&
           apply_filters(r, part->c, &value) && mgl_value_show(r, r->sink, value);
}

static bool execute_with(mgl_render *r, const mgl_syntax *part)
{
    mgl_scope *scope = mgl_scope_new(r, r->scope), *before = r->scope;
    const mgl_syntax *given = part->c;
    for (const mgl_syntax *target = part->a; scope && target; target = target->next) {
        mgl_value value;
        if (!mgl_evaluate(r, given, &value))
            return false;
        r->scope = scope;
        bool good = assign(r, target, value);
        r->scope = before;
        if (!good)
            return false;
        given = given->next;
    }
    return execute_within(r, part->b, scope);
}

/* ---- loops ----------------------------------------------------------------------------------- */

/* Prepares the scope of an iteration. The previous scope is reused unless a macro captured it. */
static bool clear_scope(mgl_render *r, mgl_scope **scope, mgl_scope *parent)
{
    if (*scope && !(*scope)->captured) {
        (*scope)->count = 0;
        return true;
    }
    *scope = mgl_scope_new(r, parent);
    return *scope != NULL;
}

/* Evaluates the condition in the loop's head for an item. */
static bool passes(mgl_render *r, const mgl_loop *loop, mgl_value item, bool *out)
{
    mgl_scope *before = r->scope;
    mgl_value condition;
    r->scope = mgl_scope_new(r, loop->scope);
    bool good =
        r->scope && assign(r, loop->target, item) && mgl_evaluate(r, loop->filter, &condition);
    r->scope = before;
    if (good)
        *out = mgl_value_truth(condition);
    return good;
}

/* Returns the next item for which the condition holds. */
static bool take(mgl_render *r, mgl_loop *loop, mgl_value *out, bool *end)
{
    bool passed = false;
    while (!passed) {
        if (!mgl_render_spend(r, 48) || !mgl_walk_next(r, &loop->walk, out, end))
            return false;
        if (*end)
            return true;
        passed = true;
        if (loop->filter && !passes(r, loop, *out, &passed))
            return false;
    }
    return true;
}

bool mgl_loop_peek(mgl_render *r, mgl_loop *loop, mgl_value *out, bool *end)
{
    if (!loop->ahead && !(loop->ahead = mgl_list_new(r, 0)))
        return false;
    *end = false;
    if (loop->ahead_next == loop->ahead->count) {
        mgl_value item;
        if (!take(r, loop, &item, end))
            return false;
        if (*end)
            return true;
        loop->ahead->count = loop->ahead_next = 0;
        if (!mgl_list_add(r, loop->ahead, item))
            return false;
    }
    *out = loop->ahead->items[loop->ahead_next];
    return true;
}

bool mgl_loop_next(mgl_render *r, mgl_loop *loop, bool *end)
{
    mgl_value item;
    *end = false;
    if (loop->ahead && loop->ahead_next < loop->ahead->count)
        item = loop->ahead->items[loop->ahead_next++];
    else if (!take(r, loop, &item, end))
        return false;
    if (*end)
        return true;
    loop->before = loop->current;
    loop->current = item;
    loop->index0++;
    return true;
}

/* Returns the length. If the iterated value has no length, reads the remaining items ahead. */
bool mgl_loop_length(mgl_render *r, mgl_loop *loop, int64_t *out)
{
    size_t length;
    if (loop->length < 0 && !loop->filter && mgl_value_length(loop->walk.over, &length))
        loop->length = (int64_t)length;
    if (loop->length < 0) {
        if (!loop->ahead && !(loop->ahead = mgl_list_new(r, 0)))
            return false;
        for (bool end = false; !end;) {
            mgl_value item;
            if (!take(r, loop, &item, &end) || (!end && !mgl_list_add(r, loop->ahead, item)))
                return false;
        }
        loop->length = loop->index0 + 1 + (int64_t)(loop->ahead->count - loop->ahead_next);
    }
    *out = loop->length;
    return true;
}

/* Executes one iteration. */
static bool execute_round(mgl_render *r, const mgl_syntax *part, mgl_loop *loop, mgl_scope *scope)
{
    mgl_scope *before = r->scope;
    r->scope = scope;
    bool good = assign(r, part->a, loop->current) &&
                mgl_scope_set(r, scope, MGL_SYMBOL_loop,
                              (mgl_value){.kind = MGL_VALUE_LOOP, .loop = loop}) &&
                mgl_execute(r, part->c);
    r->scope = before;
    return good;
}

static bool execute_for(mgl_render *r, const mgl_syntax *part)
{
    mgl_loop *loop = mgl_render_take(r, sizeof *loop);
    mgl_scope *scope = NULL;
    mgl_value over;
    if (!loop || !mgl_evaluate(r, part->b, &over))
        return false;
    *loop = (mgl_loop){
        .filter = part->extra, .target = part->a, .scope = r->scope, .index0 = -1, .length = -1};
    r->at = part->b;
    if (!mgl_walk_start(r, over, &loop->walk))
        return false;
    for (bool end; r->flow != MGL_FLOW_BREAK;) {
        r->flow = MGL_FLOW_ON;
        if (!mgl_loop_next(r, loop, &end))
            return false;
        if (end)
            break;
        if (!clear_scope(r, &scope, r->scope) || !execute_round(r, part, loop, scope))
            return false;
    }
    r->flow = MGL_FLOW_ON;
    return scope || !part->d || execute_within(r, part->d, mgl_scope_new(r, r->scope));
}

/* ---- other statements ------------------------------------------------------------------------ */

static bool execute_if(mgl_render *r, const mgl_syntax *part)
{
    mgl_value condition;
    if (!mgl_evaluate(r, part->a, &condition))
        return false;
    return mgl_execute(r, mgl_value_truth(condition) ? part->b : part->c);
}

static bool execute_macro(mgl_render *r, const mgl_syntax *part)
{
    mgl_macro *macro = mgl_render_take(r, sizeof *macro);
    if (!macro)
        return false;
    *macro = (mgl_macro){part, r->scope};
    for (mgl_scope *scope = r->scope; scope && !scope->captured; scope = scope->parent)
        scope->captured = true;
    return mgl_scope_set(r, r->scope, part->name,
                         (mgl_value){.kind = MGL_VALUE_MACRO, .macro = macro});
}

static bool execute_print(mgl_render *r, const mgl_syntax *part)
{
    mgl_value value;
    if (!mgl_evaluate(r, part->a, &value))
        return false;
    r->at = part;
    return mgl_value_show(r, r->sink, value);
}

static bool execute_call_block(mgl_render *r, const mgl_syntax *part)
{
    mgl_value value;
    return mgl_evaluate_call_block(r, part, &value) && mgl_value_show(r, r->sink, value);
}

static bool execute(mgl_render *r, const mgl_syntax *part)
{
    switch (part->kind) {
    case MGL_SYNTAX_TEXT:
        return mgl_value_show(r, r->sink, part->value);
    case MGL_SYNTAX_PRINT:
        return execute_print(r, part);
    case MGL_SYNTAX_IF:
        return execute_if(r, part);
    case MGL_SYNTAX_FOR:
        return execute_for(r, part);
    case MGL_SYNTAX_SET:
        return execute_set(r, part);
    case MGL_SYNTAX_SET_BLOCK:
        return execute_set_block(r, part);
    case MGL_SYNTAX_MACRO:
        return execute_macro(r, part);
    case MGL_SYNTAX_CALL_BLOCK:
        return execute_call_block(r, part);
    case MGL_SYNTAX_FILTER_BLOCK:
        return execute_filter_block(r, part);
    case MGL_SYNTAX_SCOPE:
        return execute_within(r, part->b, mgl_scope_new(r, r->scope));
    case MGL_SYNTAX_WITH:
        return execute_with(r, part);
    default:
        r->flow = part->kind == MGL_SYNTAX_BREAK ? MGL_FLOW_BREAK : MGL_FLOW_CONTINUE;
        return true;
    }
}
