/*
 * Loads the components of tokenizer.json: normalizer, pre-tokenizer and decoder. Each kind of
 * component has a table of supported types; a type that is not in the table is rejected by name.
 * Sequences are flattened while they are read.
 */
#include "importer/tokenizer/tokenizer.h"

#include "base/memory.h"
#include "base/utf8.h"
#include "importer/tokenizer/unicode_tables.h"

#include <string.h>

#define MAX_DEPTH 16   /* nested sequences */
#define MAX_STEPS 1000 /* components of one kind */

/* GPT-2's pattern, the default of ByteLevel; in Oniguruma's syntax, like all patterns here. */
#define BYTE_LEVEL_PATTERN                                                                         \
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

/* State shared by the readers of components. */
typedef struct loader {
    mgl_tokenizer *tokenizer;
    const mgl_json *json;
    const char *what; /* "normalizer", for messages */
    int depth, steps;
    mgl_error *err;
} loader;

typedef mgl_status component_fn(loader *l, const cJSON *value);

/* One type of a component. */
typedef struct component {
    const char *type;
    component_fn *read;
} component;

static mgl_status bad(loader *l, const char *message)
{
    return mgl_fail(l->err, MGL_BAD_INPUT, l->json->file, "%s: %s", l->what, message);
}

static mgl_status read_component(loader *l, const cJSON *value, const component *table)
{
    const char *type;
    if (!cJSON_IsObject(value))
        return bad(l, "a component must be an object");
    if (++l->steps > MAX_STEPS)
        return bad(l, "there are more than 1,000 components");
    mgl_status status = mgl_json_get_string(l->json, value, "type", true, &type, l->err);
    if (status)
        return status;
    for (; table->type; table++) {
        if (!strcmp(type, table->type))
            return table->read(l, value);
    }
    return mgl_fail(l->err, MGL_BAD_INPUT, l->json->file, "the %s \"%.100s\" is not supported",
                    l->what, type);
}

/* Reads all components of a Sequence, in the array `key`. */
static mgl_status read_sequence(loader *l, const cJSON *value, const char *key,
                                const component *table)
{
    const cJSON *list;
    mgl_status status = mgl_json_get_array(l->json, value, key, true, &list, l->err);
    if (!status && ++l->depth > MAX_DEPTH)
        return bad(l, "sequences are nested too deeply");
    if (status)
        return status;
    for (const cJSON *item = list->child; item && !status; item = item->next)
        status = read_component(l, item, table);
    l->depth--;
    return status;
}

/* Reads a string that must be one character. */
static mgl_status read_character(loader *l, const cJSON *value, const char *key, const char **out)
{
    mgl_status status = mgl_json_get_string(l->json, value, key, true, out, l->err);
    if (!status && (!**out || mgl_utf8_size(**out) != strlen(*out)))
        return mgl_fail(l->err, MGL_BAD_INPUT, l->json->file, "%s: \"%s\" must be one character",
                        l->what, key);
    return status;
}

/* Reads {"String": "..."} or {"Regex": "..."}. *literal is the text of the first form, NULL for
 * the second. */
static mgl_status read_pattern(loader *l, const cJSON *value, mgl_pattern **out,
                               const char **literal)
{
    const cJSON *pattern;
    const char *regex = NULL;
    *literal = NULL;
    mgl_status status = mgl_json_get_object(l->json, value, "pattern", true, &pattern, l->err);
    if (!status)
        status = mgl_json_get_string(l->json, pattern, "String", false, literal, l->err);
    if (!status)
        status = mgl_json_get_string(l->json, pattern, "Regex", false, &regex, l->err);
    if (status)
        return status;
    if (!*literal == !regex)
        return bad(l, "\"pattern\" must have either \"String\" or \"Regex\"");
    return regex ? mgl_pattern_regex(regex, l->tokenizer->file, out, l->err)
                 : mgl_pattern_literal(*literal, out, l->err);
}

static mgl_status copy_string(loader *l, const char *text, char **out)
{
    *out = mgl_strdup(text);
    return *out ? MGL_OK : mgl_fail_memory(l->err, strlen(text));
}

/* ---- normalizers ---------------------------------------------------------------------------- */

static mgl_status add_normalizer(loader *l, mgl_normalize_step step)
{
    return mgl_normalizer_add(&l->tokenizer->normalizer, step, l->err);
}

static mgl_status read_form(loader *l, const cJSON *value)
{
    const char *type = mgl_json_member(value, "type")->valuestring;
    mgl_normalize_step step = {.kind = MGL_NORMALIZE_FORM};
    step.compose = type[strlen(type) - 1] == 'C';
    step.compatible = type[2] == 'K';
    return add_normalizer(l, step);
}

static mgl_status read_prepend(loader *l, const cJSON *value)
{
    const char *text;
    mgl_normalize_step step = {.kind = MGL_NORMALIZE_PREPEND};
    mgl_status status = mgl_json_get_string(l->json, value, "prepend", true, &text, l->err);
    if (!status)
        status = copy_string(l, text, &step.content);
    return status ? status : add_normalizer(l, step);
}

static mgl_status read_replace(loader *l, const cJSON *value)
{
    const char *text, *literal;
    mgl_normalize_step step = {.kind = MGL_NORMALIZE_REPLACE};
    mgl_status status = mgl_json_get_string(l->json, value, "content", true, &text, l->err);
    if (!status)
        status = read_pattern(l, value, &step.pattern, &literal);
    if (status)
        return status;
    status = copy_string(l, text, &step.content);
    if (status) {
        mgl_pattern_free(step.pattern);
        return status;
    }
    return add_normalizer(l, step);
}

static mgl_status read_strip(loader *l, const cJSON *value)
{
    mgl_normalize_step step = {.kind = MGL_NORMALIZE_STRIP};
    mgl_status status = mgl_json_get_bool(l->json, value, "strip_left", true, &step.left, l->err);
    if (!status)
        status = mgl_json_get_bool(l->json, value, "strip_right", true, &step.right, l->err);
    return status ? status : add_normalizer(l, step);
}

static mgl_status read_lowercase(loader *l, const cJSON *value)
{
    (void)value;
    return add_normalizer(l, (mgl_normalize_step){.kind = MGL_NORMALIZE_LOWERCASE});
}

static mgl_status read_byte_normalizer(loader *l, const cJSON *value)
{
    (void)value;
    return add_normalizer(l, (mgl_normalize_step){.kind = MGL_NORMALIZE_BYTE_LEVEL});
}

static mgl_status read_normalizers(loader *l, const cJSON *value);

static const component normalizers[] = {
    {"NFC", read_form},
    {"NFD", read_form},
    {"NFKC", read_form},
    {"NFKD", read_form},
    {"Prepend", read_prepend},
    {"Replace", read_replace},
    {"Strip", read_strip},
    {"Lowercase", read_lowercase},
    {"ByteLevel", read_byte_normalizer},
    {"Sequence", read_normalizers},
    {NULL, NULL},
};

static mgl_status read_normalizers(loader *l, const cJSON *value)
{
    return read_sequence(l, value, "normalizers", normalizers);
}

mgl_status mgl_tokenizer_load_normalizer(mgl_tokenizer *tokenizer, const mgl_json *json,
                                         const cJSON *value, mgl_error *err)
{
    loader l = {tokenizer, json, "normalizer", 0, 0, err};
    tokenizer->normalizer.file = tokenizer->file;
    return value ? read_component(&l, value, normalizers) : MGL_OK;
}

/* ---- pre-tokenizers ------------------------------------------------------------------------- */

static mgl_status read_behavior(loader *l, const cJSON *value, bool required,
                                mgl_split_behavior *out)
{
    static const char *const names[] = {
#define MGL_X(id, name) [MGL_SPLIT_##id] = name,
        MGL_SPLIT_BEHAVIORS(MGL_X)
#undef MGL_X
    };
    const char *name = NULL;
    mgl_status status = mgl_json_get_string(l->json, value, "behavior", required, &name, l->err);
    if (status || !name)
        return status;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!strcmp(name, names[i])) {
            *out = (mgl_split_behavior)i;
            return MGL_OK;
        }
    }
    return mgl_fail(l->err, MGL_BAD_INPUT, l->json->file, "%s: the behavior \"%.100s\" is unknown",
                    l->what, name);
}

static mgl_status add_splitter(loader *l, mgl_split_step step)
{
    return mgl_splitter_add(&l->tokenizer->splitter, step, l->err);
}

/* Adds a split step with a built-in expression. */
static mgl_status add_cut(loader *l, const char *pcre, mgl_split_behavior behavior, bool invert)
{
    mgl_split_step step = {.kind = MGL_SPLIT_PATTERN, .behavior = behavior, .invert = invert};
    mgl_status status = mgl_pattern_pcre(pcre, l->tokenizer->file, &step.pattern, l->err);
    return status ? status : add_splitter(l, step);
}

static mgl_status read_split(loader *l, const cJSON *value)
{
    const char *literal;
    mgl_split_step step = {.kind = MGL_SPLIT_PATTERN};
    mgl_status status = read_behavior(l, value, true, &step.behavior);
    if (!status)
        status = mgl_json_get_bool(l->json, value, "invert", true, &step.invert, l->err);
    if (!status)
        status = read_pattern(l, value, &step.pattern, &literal);
    return status ? status : add_splitter(l, step);
}

static mgl_status read_digits(loader *l, const cJSON *value)
{
    bool individual;
    mgl_status status =
        mgl_json_get_bool(l->json, value, "individual_digits", true, &individual, l->err);
    return status ? status
                  : add_cut(l, mgl_unicode_digit,
                            individual ? MGL_SPLIT_ISOLATED : MGL_SPLIT_CONTIGUOUS, false);
}

static mgl_status read_punctuation(loader *l, const cJSON *value)
{
    mgl_split_behavior behavior = MGL_SPLIT_ISOLATED;
    mgl_status status = read_behavior(l, value, false, &behavior);
    return status ? status : add_cut(l, mgl_unicode_punctuation, behavior, false);
}

static mgl_status read_whitespace(loader *l, const cJSON *value)
{
    (void)value;
    return add_cut(l, mgl_unicode_words, MGL_SPLIT_REMOVED, true);
}

static mgl_status read_whitespace_split(loader *l, const cJSON *value)
{
    (void)value;
    return add_cut(l, mgl_unicode_space, MGL_SPLIT_REMOVED, false);
}

static mgl_status read_byte_splitter(loader *l, const cJSON *value)
{
    bool trim, cut = true;
    mgl_split_step step = {.kind = MGL_SPLIT_BYTE_LEVEL, .map = true};
    mgl_status status =
        mgl_json_get_bool(l->json, value, "add_prefix_space", true, &step.prefix_space, l->err);
    if (!status)
        status = mgl_json_get_bool(l->json, value, "trim_offsets", true, &trim, l->err);
    if (!status)
        status = mgl_json_get_bool(l->json, value, "use_regex", false, &cut, l->err);
    if (!status && cut)
        status = mgl_pattern_regex(BYTE_LEVEL_PATTERN, l->tokenizer->file, &step.pattern, l->err);
    return status ? status : add_splitter(l, step);
}

/* Reads prepend_scheme, or add_prefix_space of older files. */
static mgl_status read_scheme(loader *l, const cJSON *value, mgl_split_scheme *out)
{
    const char *name = NULL;
    bool prefix = true;
    mgl_status status = mgl_json_get_string(l->json, value, "prepend_scheme", false, &name, l->err);
    if (!status)
        status = mgl_json_get_bool(l->json, value, "add_prefix_space", false, &prefix, l->err);
    if (status)
        return status;
    if (!name)
        *out = prefix ? MGL_SPLIT_ALWAYS : MGL_SPLIT_NEVER;
    else if (!strcmp(name, "always"))
        *out = MGL_SPLIT_ALWAYS;
    else if (!strcmp(name, "first"))
        *out = MGL_SPLIT_FIRST;
    else if (!strcmp(name, "never"))
        *out = MGL_SPLIT_NEVER;
    else
        return mgl_fail(l->err, MGL_BAD_INPUT, l->json->file,
                        "%s: the prepend_scheme \"%.100s\" is unknown", l->what, name);
    if (!prefix && *out != MGL_SPLIT_NEVER)
        return bad(l, "add_prefix_space does not match prepend_scheme");
    return MGL_OK;
}

static mgl_status read_metaspace(loader *l, const cJSON *value)
{
    const char *replacement;
    mgl_split_step step = {.kind = MGL_SPLIT_METASPACE, .cut = true};
    mgl_status status = read_character(l, value, "replacement", &replacement);
    if (!status)
        status = read_scheme(l, value, &step.scheme);
    if (!status)
        status = mgl_json_get_bool(l->json, value, "split", false, &step.cut, l->err);
    if (!status)
        status = mgl_pattern_literal(replacement, &step.pattern, l->err);
    if (status)
        return status;
    memcpy(step.replacement, replacement, strlen(replacement));
    return add_splitter(l, step);
}

static mgl_status read_splitters(loader *l, const cJSON *value);

static const component splitters[] = {
    {"Split", read_split},
    {"Digits", read_digits},
    {"ByteLevel", read_byte_splitter},
    {"Metaspace", read_metaspace},
    {"Punctuation", read_punctuation},
    {"Whitespace", read_whitespace},
    {"WhitespaceSplit", read_whitespace_split},
    {"Sequence", read_splitters},
    {NULL, NULL},
};

static mgl_status read_splitters(loader *l, const cJSON *value)
{
    return read_sequence(l, value, "pretokenizers", splitters);
}

mgl_status mgl_tokenizer_load_splitter(mgl_tokenizer *tokenizer, const mgl_json *json,
                                       const cJSON *value, mgl_error *err)
{
    loader l = {tokenizer, json, "pre-tokenizer", 0, 0, err};
    mgl_status status = value ? read_component(&l, value, splitters) : MGL_OK;
    mgl_splitter *splitter = &tokenizer->splitter;
    splitter->file = tokenizer->file;
    if (status || !splitter->count)
        return status;
    mgl_split_step *last = &splitter->steps[splitter->count - 1];
    if (last->kind == MGL_SPLIT_BYTE_LEVEL) { /* BPE maps the bytes itself */
        last->map = false;
        tokenizer->bpe.byte_level = true;
    }
    return MGL_OK;
}

/* ---- decoders ------------------------------------------------------------------------------- */

static mgl_status add_decoder(loader *l, mgl_decode_stage stage)
{
    return mgl_decoder_add(&l->tokenizer->decoder, stage, l->err);
}

static mgl_status read_byte_decoder(loader *l, const cJSON *value)
{
    (void)value;
    return add_decoder(l, (mgl_decode_stage){.kind = MGL_DECODE_BYTE_LEVEL});
}

static mgl_status read_metaspace_decoder(loader *l, const cJSON *value)
{
    const char *replacement;
    mgl_split_scheme scheme;
    mgl_decode_stage stage = {.kind = MGL_DECODE_METASPACE};
    mgl_status status = read_character(l, value, "replacement", &replacement);
    if (!status)
        status = read_scheme(l, value, &scheme);
    if (!status)
        status = copy_string(l, replacement, &stage.content);
    if (status)
        return status;
    stage.drop = scheme != MGL_SPLIT_NEVER;
    return add_decoder(l, stage);
}

static mgl_status read_replace_decoder(loader *l, const cJSON *value)
{
    const char *text, *literal;
    mgl_decode_stage stage = {.kind = MGL_DECODE_REPLACE};
    mgl_status status = mgl_json_get_string(l->json, value, "content", true, &text, l->err);
    if (!status)
        status = read_pattern(l, value, &stage.pattern, &literal);
    if (status)
        return status;
    status = copy_string(l, text, &stage.content);
    if (!status && literal && *literal)
        status = copy_string(l, literal, &stage.literal);
    if (status) {
        mgl_free(stage.content);
        mgl_pattern_free(stage.pattern);
        return status;
    }
    return add_decoder(l, stage);
}

static mgl_status read_byte_fallback(loader *l, const cJSON *value)
{
    (void)value;
    return add_decoder(l, (mgl_decode_stage){.kind = MGL_DECODE_BYTE_FALLBACK});
}

static mgl_status read_fuse(loader *l, const cJSON *value)
{
    (void)value;
    return add_decoder(l, (mgl_decode_stage){.kind = MGL_DECODE_FUSE});
}

static mgl_status read_strip_decoder(loader *l, const cJSON *value)
{
    const char *content;
    int64_t start, stop;
    mgl_decode_stage stage = {.kind = MGL_DECODE_STRIP};
    mgl_status status = read_character(l, value, "content", &content);
    if (!status)
        status = mgl_json_get_int(l->json, value, "start", true, 0, INT32_MAX, &start, l->err);
    if (!status)
        status = mgl_json_get_int(l->json, value, "stop", true, 0, INT32_MAX, &stop, l->err);
    if (!status)
        status = copy_string(l, content, &stage.content);
    if (status)
        return status;
    stage.start = (size_t)start;
    stage.stop = (size_t)stop;
    return add_decoder(l, stage);
}

static mgl_status read_decoders(loader *l, const cJSON *value);

static const component decoders[] = {
    {"ByteLevel", read_byte_decoder},
    {"Metaspace", read_metaspace_decoder},
    {"Replace", read_replace_decoder},
    {"ByteFallback", read_byte_fallback},
    {"Fuse", read_fuse},
    {"Strip", read_strip_decoder},
    {"Sequence", read_decoders},
    {NULL, NULL},
};

static mgl_status read_decoders(loader *l, const cJSON *value)
{
    return read_sequence(l, value, "decoders", decoders);
}

mgl_status mgl_tokenizer_load_decoder(mgl_tokenizer *tokenizer, const mgl_json *json,
                                      const cJSON *value, mgl_error *err)
{
    loader l = {tokenizer, json, "decoder", 0, 0, err};
    tokenizer->decoder.file = tokenizer->file;
    if (!value)
        return add_decoder(&l, (mgl_decode_stage){.kind = MGL_DECODE_JOIN});
    return read_component(&l, value, decoders);
}
