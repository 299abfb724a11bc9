/*
 * Parses expressions by Jinja's grammar (recursive descent). Later levels bind tighter:
 *
 *     a if b else c     or     and     not     == != < > <= >= in, not in     + -     ~
 *     * / // %     **     unary + -     a.b a[b] a(b)     |filter, is test
 *
 * A sign applies to its operand without filters: -x|abs is (-x)|abs.
 */
#include "importer/chat/parser.h"
#include "importer/chat/render.h"

#include <string.h>

static mgl_syntax *parse_or(mgl_parser *p);
static mgl_syntax *parse_unary(mgl_parser *p, bool filters);
static mgl_syntax *parse_postfix(mgl_parser *p, mgl_syntax *part);

/* Appends `item` to the list whose last `next` is *end. */
static void append(mgl_syntax ***end, mgl_syntax *item)
{
    **end = item;
    *end = &item->next;
}

/* ---- arguments ------------------------------------------------------------------------------- */

static mgl_syntax *parse_argument(mgl_parser *p)
{
    uint32_t from = p->at->from, name = 0;
    mgl_syntax_kind kind = MGL_SYNTAX_CONSTANT;
    if (mgl_parser_skip(p, MGL_EXPR_MULTIPLY)) {
        kind = MGL_SYNTAX_SPREAD;
    } else if (mgl_parser_skip(p, MGL_EXPR_POWER)) {
        kind = MGL_SYNTAX_SPREAD_KEYWORDS;
    } else if (p->at->kind == MGL_LEXEME_NAME && p->at[1].kind == MGL_LEXEME_OPERATOR &&
               p->at[1].operation == MGL_EXPR_ASSIGN) {
        kind = MGL_SYNTAX_KEYWORD;
        name = p->at->name;
        p->at += 2;
    }
    mgl_syntax *value = mgl_parse_expression(p, true);
    if (!value || kind == MGL_SYNTAX_CONSTANT)
        return value;
    mgl_syntax *argument = mgl_parser_make(p, kind, from);
    if (argument) {
        argument->a = value;
        argument->name = name;
    }
    return argument;
}

/* The order that Python's calls require: values, then *values and keywords, then **keywords. */
static int rank(mgl_syntax_kind kind)
{
    return kind == MGL_SYNTAX_SPREAD            ? 1
           : kind == MGL_SYNTAX_KEYWORD         ? 1
           : kind == MGL_SYNTAX_SPREAD_KEYWORDS ? 2
                                                : 0;
}

/* Parses "(a, b=c)"; the parenthesis is next. */
static bool parse_arguments(mgl_parser *p, mgl_syntax **out)
{
    mgl_syntax **end = out;
    int last = 0;
    *out = NULL;
    if (!mgl_parser_expect(p, MGL_EXPR_LEFT_PAREN))
        return false;
    while (!mgl_parser_is(p, MGL_EXPR_RIGHT_PAREN)) {
        if (*out && !mgl_parser_expect(p, MGL_EXPR_COMMA))
            return false;
        if (*out && mgl_parser_is(p, MGL_EXPR_RIGHT_PAREN))
            break;
        mgl_syntax *argument = parse_argument(p);
        if (!argument)
            return false;
        if (rank(argument->kind) < last)
            return mgl_parser_fail(p, argument->from, argument->to,
                                   "positional arguments must come before named arguments");
        last = rank(argument->kind);
        append(&end, argument);
    }
    return mgl_parser_expect(p, MGL_EXPR_RIGHT_PAREN);
}

/* ---- primary expressions --------------------------------------------------------------------- */

static const struct word {
    const char *word;
    mgl_value value;
} words[] = {
    {"true", {.kind = MGL_VALUE_BOOL, .flag = true}},
    {"True", {.kind = MGL_VALUE_BOOL, .flag = true}},
    {"false", {.kind = MGL_VALUE_BOOL}},
    {"False", {.kind = MGL_VALUE_BOOL}},
    {"none", {.kind = MGL_VALUE_NONE}},
    {"None", {.kind = MGL_VALUE_NONE}},
};

static mgl_syntax *parse_word(mgl_parser *p)
{
    const mgl_lexeme *at = p->at;
    mgl_syntax *part;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (!mgl_parser_skip_word(p, words[i].word))
            continue;
        part = mgl_parser_make(p, MGL_SYNTAX_CONSTANT, at->from);
        if (part)
            part->value = words[i].value;
        return part;
    }
    p->at++;
    part = mgl_parser_make(p, MGL_SYNTAX_NAME, at->from);
    if (!part)
        return NULL;
    part->name = at->name;
    part->row = mgl_function_find(p->jinja->text + at->from, at->to - at->from);
    if (at->name <= MGL_SYMBOL_kwargs)
        p->wants |= 1u << at->name;
    return part;
}

/* Parses a constant; adjacent strings are concatenated. */
static mgl_syntax *parse_constant(mgl_parser *p)
{
    const mgl_lexeme *first = p->at++;
    size_t length = 0, used = 0;
    bool string = first->value.kind == MGL_VALUE_STRING;
    while (string && p->at->kind == MGL_LEXEME_CONSTANT && p->at->value.kind == MGL_VALUE_STRING)
        p->at++;
    mgl_syntax *part = mgl_parser_make(p, MGL_SYNTAX_CONSTANT, first->from);
    if (!part)
        return NULL;
    part->value = first->value;
    if (p->at - first == 1)
        return part;
    for (const mgl_lexeme *at = first; at < p->at; at++)
        length += at->value.string->length;
    char *bytes = mgl_arena_take(&p->jinja->memory, length);
    mgl_string *joined = mgl_arena_take(&p->jinja->memory, sizeof *joined);
    if (!bytes || !joined) {
        p->status = mgl_jinja_fail_memory(p->jinja, p->err);
        return NULL;
    }
    for (const mgl_lexeme *at = first; at < p->at; at++) {
        memcpy(bytes + used, at->value.string->bytes, at->value.string->length);
        used += at->value.string->length;
    }
    *joined = (mgl_string){bytes, length, SIZE_MAX, NULL};
    mgl_string_characters(joined);
    part->value = mgl_of_string(joined);
    return part;
}

static mgl_syntax *parse_list(mgl_parser *p)
{
    uint32_t from = p->at++->from;
    mgl_syntax *items = NULL, **end = &items;
    while (!mgl_parser_is(p, MGL_EXPR_RIGHT_BRACKET)) {
        if (items && !mgl_parser_expect(p, MGL_EXPR_COMMA))
            return NULL;
        if (mgl_parser_is(p, MGL_EXPR_RIGHT_BRACKET))
            break;
        mgl_syntax *item = mgl_parse_expression(p, true);
        if (!item)
            return NULL;
        append(&end, item);
    }
    p->at++;
    mgl_syntax *list = mgl_parser_make(p, MGL_SYNTAX_LIST, from);
    if (list)
        list->a = items;
    return list;
}

static mgl_syntax *parse_dict(mgl_parser *p)
{
    uint32_t from = p->at++->from;
    mgl_syntax *items = NULL, **end = &items;
    while (!mgl_parser_is(p, MGL_EXPR_RIGHT_BRACE)) {
        if (items && !mgl_parser_expect(p, MGL_EXPR_COMMA))
            return NULL;
        if (mgl_parser_is(p, MGL_EXPR_RIGHT_BRACE))
            break;
        mgl_syntax *key = mgl_parse_expression(p, true);
        mgl_syntax *value =
            key && mgl_parser_expect(p, MGL_EXPR_COLON) ? mgl_parse_expression(p, true) : NULL;
        if (!value)
            return NULL;
        append(&end, key);
        append(&end, value);
    }
    p->at++;
    mgl_syntax *dict = mgl_parser_make(p, MGL_SYNTAX_DICT, from);
    if (dict)
        dict->a = items;
    return dict;
}

/* Parses "(a)", "(a, b)" and "()". */
static mgl_syntax *parse_parenthesis(mgl_parser *p)
{
    uint32_t from = p->at++->from;
    if (mgl_parser_skip(p, MGL_EXPR_RIGHT_PAREN))
        return mgl_parser_make(p, MGL_SYNTAX_TUPLE, from);
    mgl_syntax *inner = mgl_parse_tuple(p, true);
    if (!inner || !mgl_parser_expect(p, MGL_EXPR_RIGHT_PAREN))
        return NULL;
    return inner;
}

static mgl_syntax *parse_primary(mgl_parser *p)
{
    if (p->at->kind == MGL_LEXEME_NAME)
        return parse_word(p);
    if (p->at->kind == MGL_LEXEME_CONSTANT)
        return parse_constant(p);
    if (mgl_parser_is(p, MGL_EXPR_LEFT_PAREN))
        return parse_parenthesis(p);
    if (mgl_parser_is(p, MGL_EXPR_LEFT_BRACKET))
        return parse_list(p);
    if (mgl_parser_is(p, MGL_EXPR_LEFT_BRACE))
        return parse_dict(p);
    mgl_parser_fail_here(p, "an expression");
    return NULL;
}

/* ---- postfix expressions --------------------------------------------------------------------- */

static bool at_bound_end(const mgl_parser *p)
{
    return mgl_parser_is(p, MGL_EXPR_COLON) || mgl_parser_is(p, MGL_EXPR_COMMA) ||
           mgl_parser_is(p, MGL_EXPR_RIGHT_BRACKET);
}

/* Parses an index, or "a:b:c", of which each may be missing. */
static mgl_syntax *parse_index(mgl_parser *p)
{
    uint32_t from = p->at->from;
    mgl_syntax *bounds[3] = {0};
    if (!mgl_parser_is(p, MGL_EXPR_COLON)) {
        bounds[0] = mgl_parse_expression(p, true);
        if (!bounds[0] || !mgl_parser_is(p, MGL_EXPR_COLON))
            return bounds[0];
    }
    for (int i = 1; i < 3 && mgl_parser_skip(p, MGL_EXPR_COLON); i++)
        if (!at_bound_end(p) && !(bounds[i] = mgl_parse_expression(p, true)))
            return NULL;
    mgl_syntax *slice = mgl_parser_make(p, MGL_SYNTAX_SLICE, from);
    if (slice) {
        slice->a = bounds[0];
        slice->b = bounds[1];
        slice->c = bounds[2];
    }
    return slice;
}

/* Parses "[a]"; with commas, the index is a tuple. */
static mgl_syntax *parse_item(mgl_parser *p, mgl_syntax *object)
{
    uint32_t from = p->at++->from;
    mgl_syntax *items = NULL, **end = &items;
    while (!mgl_parser_is(p, MGL_EXPR_RIGHT_BRACKET)) {
        if (items && !mgl_parser_expect(p, MGL_EXPR_COMMA))
            return NULL;
        mgl_syntax *index = parse_index(p);
        if (!index)
            return NULL;
        append(&end, index);
    }
    if (!items || items->next) {
        mgl_syntax *tuple = mgl_parser_make(p, MGL_SYNTAX_TUPLE, from);
        if (!tuple)
            return NULL;
        tuple->a = items;
        items = tuple;
    }
    p->at++;
    mgl_syntax *item = mgl_parser_make(p, MGL_SYNTAX_ITEM, object->from);
    if (item) {
        item->a = object;
        item->b = items;
    }
    return item;
}

/* Parses ".name" or ".0". */
static mgl_syntax *parse_attribute(mgl_parser *p, mgl_syntax *object)
{
    const mgl_lexeme *name = ++p->at;
    bool number = name->kind == MGL_LEXEME_CONSTANT && name->value.kind == MGL_VALUE_INTEGER;
    if (!number && name->kind != MGL_LEXEME_NAME) {
        mgl_parser_fail_here(p, "a name or a number");
        return NULL;
    }
    p->at++;
    mgl_syntax *part =
        mgl_parser_make(p, number ? MGL_SYNTAX_ITEM : MGL_SYNTAX_ATTRIBUTE, object->from);
    if (!part)
        return NULL;
    part->a = object;
    part->name = name->name;
    if (!number)
        return part;
    part->b = mgl_parser_make(p, MGL_SYNTAX_CONSTANT, name->from);
    if (!part->b)
        return NULL;
    part->b->value = name->value;
    return part;
}

static mgl_syntax *parse_call(mgl_parser *p, mgl_syntax *callee)
{
    mgl_syntax *arguments;
    if (!parse_arguments(p, &arguments))
        return NULL;
    mgl_syntax *call = mgl_parser_make(p, MGL_SYNTAX_CALL, callee->from);
    if (call) {
        call->a = callee;
        call->b = arguments;
    }
    return call;
}

static mgl_syntax *parse_postfix(mgl_parser *p, mgl_syntax *part)
{
    while (part) {
        if (mgl_parser_is(p, MGL_EXPR_DOT))
            part = parse_attribute(p, part);
        else if (mgl_parser_is(p, MGL_EXPR_LEFT_BRACKET))
            part = parse_item(p, part);
        else if (mgl_parser_is(p, MGL_EXPR_LEFT_PAREN))
            part = parse_call(p, part);
        else
            break;
    }
    return part;
}

/* ---- filters and tests ----------------------------------------------------------------------- */

/* Parses "name" or "name.name" of a filter or test; returns the text. */
static bool parse_dotted(mgl_parser *p, const char **name, size_t *length)
{
    uint32_t unused, from = p->at->from;
    if (!mgl_parser_expect_name(p, &unused))
        return false;
    while (mgl_parser_skip(p, MGL_EXPR_DOT))
        if (!mgl_parser_expect_name(p, &unused))
            return false;
    *name = p->jinja->text + from;
    *length = p->at[-1].to - from;
    return true;
}

/* Records an unknown filter or test. Jinja rejects it when the template is parsed, but within a
 * condition only when it is evaluated. */
static void note_unknown(mgl_parser *p, const mgl_syntax *part)
{
    if (part->row < 0 && !p->conditions && !p->unknown)
        p->unknown = part;
}

static mgl_syntax *parse_filter(mgl_parser *p, mgl_syntax *input)
{
    const char *name;
    size_t length;
    uint32_t from = p->at->from;
    mgl_syntax *arguments = NULL;
    if (!parse_dotted(p, &name, &length))
        return NULL;
    mgl_syntax *filter = mgl_parser_make(p, MGL_SYNTAX_FILTER, from);
    if (!filter || (mgl_parser_is(p, MGL_EXPR_LEFT_PAREN) && !parse_arguments(p, &arguments)))
        return NULL;
    filter->a = input;
    filter->b = arguments;
    filter->row = mgl_filter_find(name, length);
    note_unknown(p, filter);
    return filter;
}

mgl_syntax *mgl_parse_filters(mgl_parser *p, mgl_syntax *input, bool named)
{
    mgl_syntax *filter = input;
    if (named && !(filter = parse_filter(p, input)))
        return NULL;
    while (mgl_parser_skip(p, MGL_EXPR_PIPE))
        if (!(filter = parse_filter(p, filter)))
            return NULL;
    return filter;
}

/* Returns whether the next lexeme can begin the single argument that a test may have without
 * parentheses. */
static bool at_test_argument(const mgl_parser *p)
{
    if (p->at->kind == MGL_LEXEME_NAME)
        return !mgl_parser_is_word(p, "else") && !mgl_parser_is_word(p, "or") &&
               !mgl_parser_is_word(p, "and");
    return p->at->kind == MGL_LEXEME_CONSTANT || mgl_parser_is(p, MGL_EXPR_LEFT_BRACKET) ||
           mgl_parser_is(p, MGL_EXPR_LEFT_BRACE);
}

static bool parse_test_arguments(mgl_parser *p, mgl_syntax **out)
{
    *out = NULL;
    if (mgl_parser_is(p, MGL_EXPR_LEFT_PAREN))
        return parse_arguments(p, out);
    if (!at_test_argument(p))
        return true;
    if (mgl_parser_is_word(p, "is"))
        return mgl_parser_fail(p, p->at->from, p->at->to, "tests cannot be chained");
    *out = parse_primary(p);
    *out = parse_postfix(p, *out);
    return *out != NULL;
}

/* Parses a test, after "is". */
static mgl_syntax *parse_test(mgl_parser *p, mgl_syntax *input)
{
    bool negated = mgl_parser_skip_word(p, "not");
    const char *name;
    size_t length;
    uint32_t from = p->at->from;
    if (!parse_dotted(p, &name, &length))
        return NULL;
    mgl_syntax *test = mgl_parser_make(p, MGL_SYNTAX_TEST, from);
    if (!test || !parse_test_arguments(p, &test->b))
        return NULL;
    test->a = input;
    test->row = mgl_test_find(name, length);
    note_unknown(p, test);
    if (!negated)
        return test;
    mgl_syntax *not = mgl_parser_make(p, MGL_SYNTAX_NOT, from);
    if (not )
        not ->a = test;
    return not ;
}

static mgl_syntax *parse_filters_and_tests(mgl_parser *p, mgl_syntax *part)
{
    while (part) {
        if (mgl_parser_is(p, MGL_EXPR_PIPE))
            part = mgl_parse_filters(p, part, false);
        else if (mgl_parser_skip_word(p, "is"))
            part = parse_test(p, part);
        else if (mgl_parser_is(p, MGL_EXPR_LEFT_PAREN))
            part = parse_call(p, part);
        else
            break;
    }
    return part;
}

/* ---- operators ------------------------------------------------------------------------------- */

static mgl_syntax *make_pair(mgl_parser *p, mgl_syntax_kind kind, mgl_syntax *a, mgl_syntax *b)
{
    mgl_syntax *pair = a && b ? mgl_parser_make(p, kind, a->from) : NULL;
    if (pair) {
        pair->a = a;
        pair->b = b;
    }
    return pair;
}

static mgl_syntax *parse_sign(mgl_parser *p)
{
    const mgl_lexeme *sign = p->at++;
    mgl_syntax *inner = mgl_parser_enter(p) ? parse_unary(p, false) : NULL;
    if (!inner)
        return NULL;
    p->depth--;
    mgl_syntax *unary = mgl_parser_make(p, MGL_SYNTAX_UNARY, sign->from);
    if (unary) {
        unary->operation = sign->operation;
        unary->a = inner;
    }
    return unary;
}

static mgl_syntax *parse_unary(mgl_parser *p, bool filters)
{
    bool sign = mgl_parser_is(p, MGL_EXPR_SUBTRACT) || mgl_parser_is(p, MGL_EXPR_ADD);
    mgl_syntax *part = sign ? parse_sign(p) : parse_primary(p);
    part = parse_postfix(p, part);
    return filters ? parse_filters_and_tests(p, part) : part;
}

/* Left-associative operators, by level. */
static const mgl_operator levels[][5] = {
    {MGL_EXPR_ADD, MGL_EXPR_SUBTRACT, MGL_EXPR_COUNT},
    {MGL_EXPR_CONCATENATE, MGL_EXPR_COUNT},
    {MGL_EXPR_MULTIPLY, MGL_EXPR_DIVIDE, MGL_EXPR_FLOOR_DIVIDE, MGL_EXPR_MODULO, MGL_EXPR_COUNT},
    {MGL_EXPR_POWER, MGL_EXPR_COUNT},
};
enum { LEVELS = sizeof levels / sizeof *levels };

static bool stands_in_level(const mgl_parser *p, const mgl_operator *level)
{
    for (; *level != MGL_EXPR_COUNT; level++)
        if (mgl_parser_is(p, *level))
            return true;
    return false;
}

static mgl_syntax *parse_level(mgl_parser *p, int level)
{
    if (level == LEVELS)
        return parse_unary(p, true);
    mgl_syntax *left = parse_level(p, level + 1);
    while (left && stands_in_level(p, levels[level])) {
        mgl_operator operation = p->at++->operation;
        mgl_syntax *right = parse_level(p, level + 1);
        left = make_pair(p, MGL_SYNTAX_BINARY, left, right);
        if (left)
            left->operation = operation;
    }
    return left;
}

/* Consumes the next comparison operator; MGL_EXPR_COUNT: none. */
static mgl_operator skip_comparison(mgl_parser *p)
{
    static const mgl_operator comparisons[] = {MGL_EXPR_EQUAL,   MGL_EXPR_UNEQUAL,
                                               MGL_EXPR_LESS,    MGL_EXPR_AT_MOST,
                                               MGL_EXPR_GREATER, MGL_EXPR_AT_LEAST};
    for (size_t i = 0; i < sizeof comparisons / sizeof *comparisons; i++)
        if (mgl_parser_skip(p, comparisons[i]))
            return comparisons[i];
    if (mgl_parser_skip_word(p, "in"))
        return MGL_EXPR_IN;
    if (!mgl_parser_is_word(p, "not"))
        return MGL_EXPR_COUNT;
    p->at++;
    if (mgl_parser_skip_word(p, "in"))
        return MGL_EXPR_NOT_IN;
    p->at--;
    return MGL_EXPR_COUNT;
}

static mgl_syntax *parse_comparison(mgl_parser *p)
{
    mgl_syntax *left = parse_level(p, 0), *operands = NULL, **end = &operands;
    mgl_operator operation;
    while (left && (operation = skip_comparison(p)) != MGL_EXPR_COUNT) {
        mgl_syntax *right = parse_level(p, 0);
        mgl_syntax *operand = right ? mgl_parser_make(p, MGL_SYNTAX_OPERAND, right->from) : NULL;
        if (!operand)
            return NULL;
        operand->operation = operation;
        operand->a = right;
        append(&end, operand);
    }
    return operands ? make_pair(p, MGL_SYNTAX_COMPARE, left, operands) : left;
}

static mgl_syntax *parse_not(mgl_parser *p)
{
    uint32_t from = p->at->from;
    if (!mgl_parser_skip_word(p, "not"))
        return parse_comparison(p);
    mgl_syntax *inner = mgl_parser_enter(p) ? parse_not(p) : NULL;
    if (!inner)
        return NULL;
    p->depth--;
    mgl_syntax *not = mgl_parser_make(p, MGL_SYNTAX_NOT, from);
    if (not )
        not ->a = inner;
    return not ;
}

static mgl_syntax *parse_and(mgl_parser *p)
{
    mgl_syntax *left = parse_not(p);
    while (left && mgl_parser_skip_word(p, "and"))
        left = make_pair(p, MGL_SYNTAX_AND, left, parse_not(p));
    return left;
}

static mgl_syntax *parse_or(mgl_parser *p)
{
    mgl_syntax *left = parse_and(p);
    while (left && mgl_parser_skip_word(p, "or"))
        left = make_pair(p, MGL_SYNTAX_OR, left, parse_and(p));
    return left;
}

/* Parses "a if b else c" after `chosen` and "if". */
static mgl_syntax *parse_choice(mgl_parser *p, mgl_syntax *chosen)
{
    mgl_syntax *condition = parse_or(p), *other = NULL;
    if (!condition)
        return NULL;
    if (mgl_parser_skip_word(p, "else") && !(other = mgl_parse_expression(p, true)))
        return NULL;
    if (p->unknown && p->unknown->from >= chosen->from)
        p->unknown = NULL;
    mgl_syntax *choice = make_pair(p, MGL_SYNTAX_CHOICE, chosen, condition);
    if (choice)
        choice->c = other;
    return choice;
}

mgl_syntax *mgl_parse_expression(mgl_parser *p, bool choices)
{
    if (!mgl_parser_enter(p))
        return NULL;
    mgl_syntax *part = parse_or(p);
    while (part && choices && mgl_parser_skip_word(p, "if"))
        part = parse_choice(p, part);
    p->depth--;
    return part;
}

/* ---- tuples ---------------------------------------------------------------------------------- */

static bool at_tuple_end(const mgl_parser *p)
{
    return p->at->kind == MGL_LEXEME_VARIABLE_END || p->at->kind == MGL_LEXEME_BLOCK_END ||
           mgl_parser_is(p, MGL_EXPR_RIGHT_PAREN);
}

typedef mgl_syntax *parse_fn(mgl_parser *p, bool option);

/* Parses items separated by commas, up to a word or the end. */
static mgl_syntax *parse_several(mgl_parser *p, parse_fn *parse, bool option, const char *end_word)
{
    uint32_t from = p->at->from;
    mgl_syntax *items = NULL, **end = &items;
    bool tuple = false;
    do {
        if (items && (at_tuple_end(p) || mgl_parser_is_word(p, end_word)))
            break;
        mgl_syntax *item = parse(p, option);
        if (!item)
            return NULL;
        append(&end, item);
        tuple = tuple || mgl_parser_is(p, MGL_EXPR_COMMA);
    } while (mgl_parser_skip(p, MGL_EXPR_COMMA));
    if (!tuple)
        return items;
    mgl_syntax *made = mgl_parser_make(p, MGL_SYNTAX_TUPLE, from);
    if (made)
        made->a = items;
    return made;
}

mgl_syntax *mgl_parse_tuple(mgl_parser *p, bool choices)
{
    return parse_several(p, mgl_parse_expression, choices, "recursive");
}

/* ---- targets --------------------------------------------------------------------------------- */

static mgl_syntax *parse_one_target(mgl_parser *p, bool members);

static mgl_syntax *parse_targets(mgl_parser *p, bool members)
{
    return parse_several(p, parse_one_target, members, "in");
}

static mgl_syntax *parse_one_target(mgl_parser *p, bool members)
{
    const mgl_lexeme *at = p->at;
    if (mgl_parser_skip(p, MGL_EXPR_LEFT_PAREN)) {
        mgl_syntax *inner = mgl_parser_enter(p) ? parse_targets(p, members) : NULL;
        if (!inner || !mgl_parser_expect(p, MGL_EXPR_RIGHT_PAREN))
            return NULL;
        p->depth--;
        return inner;
    }
    if (at->kind != MGL_LEXEME_NAME) {
        mgl_parser_fail_here(p, "a name to assign to");
        return NULL;
    }
    mgl_syntax *part = parse_word(p);
    if (part && part->kind == MGL_SYNTAX_CONSTANT) {
        mgl_parser_fail(p, part->from, part->to, "this cannot be assigned to");
        return NULL;
    }
    uint32_t member;
    if (!part || !members || !mgl_parser_skip(p, MGL_EXPR_DOT))
        return part;
    const mgl_lexeme *name = p->at;
    if (!mgl_parser_expect_name(p, &member))
        return NULL;
    mgl_string *string = mgl_arena_take(&p->jinja->memory, sizeof *string);
    mgl_syntax *made = mgl_parser_make(p, MGL_SYNTAX_MEMBER, at->from);
    if (!made || !string) {
        p->status = mgl_jinja_fail_memory(p->jinja, p->err);
        return NULL;
    }
    *string = (mgl_string){p->jinja->text + name->from, name->to - name->from, SIZE_MAX, NULL};
    mgl_string_characters(string);
    made->name = part->name;
    made->value = mgl_of_string(string);
    return made;
}

mgl_syntax *mgl_parse_target(mgl_parser *p, bool members)
{
    unsigned wants = p->wants;
    mgl_syntax *target = parse_targets(p, members);
    p->wants = wants; /* an assigned name does not count as used */
    return target;
}
