/*
 * Writes tokenizer.json and tokenizer_config.json from the metadata of a GGUF file. Two models of
 * tokenizers exist: "gpt2" is byte-level BPE with merges; tokenizer.ggml.pre names how texts are
 * split (splits.def). "llama" is BPE of SentencePiece, whose merges follow from the scores of the
 * tokens (pieces.c).
 */
#include "importer/gguf/tokens.h"

#include "base/json_out.h"
#include "base/memory.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdio.h>

#define KEY(name) "tokenizer.ggml." name

static const struct split {
    const char *name, *normalizer;
    bool ignore_merges, bos;
    const char *steps;
} splits[] = {
#define MGL_GGUF_SPLIT(name, normalizer, ignore_merges, bos, steps)                                \
    {name, normalizer, ignore_merges, bos, steps},
#include "importer/gguf/splits.def"
};
enum { SPLITS = sizeof splits / sizeof *splits, MAX_TOKEN = 1 << 14 };

/* ---- reading --------------------------------------------------------------------------------- */

void mgl_gguf_tokens_clear(mgl_gguf_tokens *tokens)
{
    mgl_free(tokens->texts);
    mgl_free(tokens->types);
    mgl_free(tokens->scores);
    *tokens = (mgl_gguf_tokens){0};
}

static mgl_status check_tokens(const mgl_gguf *gguf, const mgl_gguf_tokens *tokens, size_t types,
                               size_t scores, mgl_error *err)
{
    if (!tokens->count)
        return mgl_fail(err, MGL_BAD_INPUT, gguf->file,
                        KEY("tokens") ": the key is missing or empty; download the file again");
    if ((tokens->types && types != tokens->count) || (tokens->scores && scores != tokens->count))
        return mgl_fail(err, MGL_BAD_INPUT, gguf->file,
                        KEY("tokens") ": has %zu tokens, but %s has %zu items; download the file "
                                      "again",
                        tokens->count,
                        tokens->types && types != tokens->count ? KEY("token_type") : KEY("scores"),
                        tokens->types && types != tokens->count ? types : scores);
    for (size_t i = 0; i < tokens->count; i++) {
        const mgl_gguf_string text = tokens->texts[i];
        if (mgl_utf8_valid(text.bytes, text.length) != text.length ||
            memchr(text.bytes, 0, text.length) || text.length > MAX_TOKEN)
            return mgl_fail(err, MGL_BAD_INPUT, gguf->file,
                            KEY("tokens") ": token %zu is longer than %d bytes or not UTF-8 text; "
                                          "download the file again",
                            i, (int)MAX_TOKEN);
    }
    return MGL_OK;
}

mgl_status mgl_gguf_tokens_read(const mgl_gguf *gguf, mgl_gguf_tokens *out, mgl_error *err)
{
    size_t types = 0, scores = 0;
    *out = (mgl_gguf_tokens){0};
    mgl_status status = mgl_gguf_get_strings(gguf, KEY("tokens"), &out->texts, &out->count, err);
    if (!status)
        status = mgl_gguf_get_ints(gguf, KEY("token_type"), &out->types, &types, err);
    if (!status)
        status = mgl_gguf_get_floats(gguf, KEY("scores"), &out->scores, &scores, err);
    return status ? status : check_tokens(gguf, out, types, scores, err);
}

/* Reads the id of a token: -1 if the key does not exist. */
static mgl_status read_id(const mgl_gguf *gguf, const mgl_gguf_tokens *tokens, const char *key,
                          int64_t *out, mgl_error *err)
{
    *out = -1;
    mgl_status status = mgl_gguf_get_int(gguf, key, -1, UINT32_MAX, out, err);
    if (*out == UINT32_MAX) /* -1, as some writers store it */
        *out = -1;
    if (!status && *out >= (int64_t)tokens->count)
        return mgl_fail(err, MGL_BAD_INPUT, gguf->file,
                        "%s: is %" PRId64 ", but there are %zu tokens; download the file again",
                        key, *out, tokens->count);
    return status;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Appends "key": and JSON text. */
static void put_raw(mgl_json_out *out, const char *key, const char *json)
{
    mgl_text_format(&out->text, "%s\"%s\":%s", out->comma ? "," : "", key, json);
    out->comma = true;
}

static void put_token(mgl_json_out *out, const char *key, mgl_gguf_string text)
{
    mgl_json_out_text(out, key, text.bytes, text.length);
}

/* Added tokens: control tokens and the unknown token are special; tokens that a user defined are
 * matched as text, too. */
static void write_added(mgl_json_out *out, const mgl_gguf_tokens *tokens)
{
    mgl_json_out_array(out, "added_tokens");
    for (size_t i = 0; i < tokens->count && tokens->types; i++) {
        const int64_t type = tokens->types[i];
        if (!tokens->texts[i].length ||
            (type != MGL_GGUF_TOKEN_UNKNOWN && type != MGL_GGUF_TOKEN_CONTROL &&
             type != MGL_GGUF_TOKEN_USER))
            continue;
        mgl_json_out_object(out, NULL);
        mgl_json_out_int(out, "id", (int64_t)i);
        put_token(out, "content", tokens->texts[i]);
        put_raw(out, "single_word", "false");
        put_raw(out, "lstrip", "false");
        put_raw(out, "rstrip", "false");
        put_raw(out, "normalized", "false");
        mgl_json_out_bool(out, "special", type != MGL_GGUF_TOKEN_USER);
        mgl_json_out_close_object(out);
    }
    mgl_json_out_close_array(out);
}

static void write_vocabulary(mgl_json_out *out, const mgl_gguf_tokens *tokens)
{
    char id[24];
    mgl_json_out_object(out, "vocab");
    for (size_t i = 0; i < tokens->count; i++) {
        snprintf(id, sizeof id, ":%zu", i);
        put_token(out, NULL, tokens->texts[i]);
        mgl_text_put(&out->text, id);
    }
    mgl_json_out_close_object(out);
}

static void put_special(mgl_json_out *out, mgl_gguf_string text)
{
    mgl_json_out_object(out, NULL);
    mgl_json_out_object(out, "SpecialToken");
    put_token(out, "id", text);
    mgl_json_out_int(out, "type_id", 0);
    mgl_json_out_close_object(out);
    mgl_json_out_close_object(out);
}

static void put_definition(mgl_json_out *out, mgl_gguf_string text, int64_t id)
{
    put_token(out, NULL, text);
    mgl_text_put(&out->text, ":");
    out->comma = false;
    mgl_json_out_object(out, NULL);
    put_token(out, "id", text);
    mgl_json_out_array(out, "ids");
    mgl_json_out_int(out, NULL, id);
    mgl_json_out_close_array(out);
    mgl_json_out_array(out, "tokens");
    put_token(out, NULL, text);
    mgl_json_out_close_array(out);
    mgl_json_out_close_object(out);
}

/* Writes the tokens around each text: the begin token first, the end token last; -1: none. */
static void write_template(mgl_json_out *out, const mgl_gguf_tokens *tokens, int64_t begin,
                           int64_t end)
{
    if (begin < 0 && end < 0)
        return;
    mgl_json_out_object(out, "post_processor");
    mgl_json_out_string(out, "type", "TemplateProcessing");
    mgl_json_out_array(out, "single");
    if (begin >= 0)
        put_special(out, tokens->texts[begin]);
    mgl_text_format(&out->text, "%s{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}",
                    out->comma ? "," : "");
    out->comma = true;
    if (end >= 0)
        put_special(out, tokens->texts[end]);
    mgl_json_out_close_array(out);
    put_raw(out, "pair",
            "[{\"Sequence\":{\"id\":\"A\",\"type_id\":0}},"
            "{\"Sequence\":{\"id\":\"B\",\"type_id\":1}}]");
    mgl_json_out_object(out, "special_tokens");
    if (begin >= 0)
        put_definition(out, tokens->texts[begin], begin);
    if (end >= 0 && end != begin)
        put_definition(out, tokens->texts[end], end);
    mgl_json_out_close_object(out);
    mgl_json_out_close_object(out);
}

/* Reads whether texts get begin and end tokens, and writes the template. */
static mgl_status write_ends(mgl_json_out *out, const mgl_gguf *gguf, const mgl_gguf_tokens *tokens,
                             bool bos, mgl_error *err)
{
    bool eos = false;
    int64_t begin = -1, end = -1;
    mgl_status status = mgl_gguf_get_bool(gguf, KEY("add_bos_token"), &bos, err);
    if (!status)
        status = mgl_gguf_get_bool(gguf, KEY("add_eos_token"), &eos, err);
    if (!status && bos)
        status = read_id(gguf, tokens, KEY("bos_token_id"), &begin, err);
    if (!status && eos)
        status = read_id(gguf, tokens, KEY("eos_token_id"), &end, err);
    if (!status)
        write_template(out, tokens, begin, end);
    return status;
}

/* ---- the two models -------------------------------------------------------------------------- */

static mgl_status find_split(const mgl_gguf *gguf, const struct split **out, mgl_error *err)
{
    mgl_gguf_string name = {NULL, 0};
    *out = NULL;
    mgl_status status = mgl_gguf_get_string(gguf, KEY("pre"), &name, err);
    if (!status && !name.bytes)
        return mgl_fail(err, MGL_BAD_INPUT, gguf->file,
                        KEY("pre") ": the key is missing, as in files of old converters; convert "
                                   "the model again, or give ids instead of texts");
    for (int i = 0; i < SPLITS && !status; i++)
        if (mgl_gguf_is(name, splits[i].name))
            return *out = &splits[i], MGL_OK;
    if (status)
        return status;
    mgl_text known = {0};
    for (int i = 0; i < SPLITS; i++)
        mgl_text_format(&known, "%s%s", i ? ", " : "", splits[i].name);
    status = mgl_fail(
        err, MGL_BAD_INPUT, gguf->file,
        "unsupported splitting of texts: " KEY(
            "pre") " = \"%.*s\"; supported: %s; "
                   "give ids instead of texts, or use the model in Hugging Face layout",
        (int)(name.length < 80 ? name.length : 80), name.bytes, known.failed ? "" : known.bytes);
    mgl_text_clear(&known);
    return status;
}

static mgl_status write_merges(mgl_json_out *out, const mgl_gguf *gguf, mgl_error *err)
{
    mgl_gguf_string *merges;
    size_t count;
    mgl_status status = mgl_gguf_get_strings(gguf, KEY("merges"), &merges, &count, err);
    if (!status && !merges)
        return mgl_fail(err, MGL_BAD_INPUT, gguf->file,
                        KEY("merges") ": the key is missing; download the file again");
    mgl_json_out_array(out, "merges");
    for (size_t i = 0; i < count && !status; i++) {
        if (mgl_utf8_valid(merges[i].bytes, merges[i].length) != merges[i].length)
            status = mgl_fail(err, MGL_BAD_INPUT, gguf->file,
                              KEY("merges") ": merge %zu is not UTF-8 text; download the file "
                                            "again",
                              i);
        put_token(out, NULL, merges[i]);
    }
    mgl_json_out_close_array(out);
    mgl_free(merges);
    return status;
}

static mgl_status write_bytes(mgl_json_out *out, const mgl_gguf *gguf,
                              const mgl_gguf_tokens *tokens, mgl_error *err)
{
    const struct split *split;
    bool space = false;
    mgl_status status = find_split(gguf, &split, err);
    if (!status)
        status = mgl_gguf_get_bool(gguf, KEY("add_space_prefix"), &space, err);
    if (status)
        return status;
    put_raw(out, "normalizer", split->normalizer);
    mgl_text_format(&out->text,
                    ",\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[%s{\"type\":"
                    "\"ByteLevel\",\"add_prefix_space\":%s,\"trim_offsets\":true,\"use_regex\":"
                    "false}]}",
                    split->steps, space ? "true" : "false");
    put_raw(out, "decoder",
            "{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":true,"
            "\"use_regex\":true}");
    status = write_ends(out, gguf, tokens, split->bos, err);
    mgl_json_out_object(out, "model");
    mgl_json_out_string(out, "type", "BPE");
    mgl_json_out_bool(out, "ignore_merges", split->ignore_merges);
    write_vocabulary(out, tokens);
    if (!status)
        status = write_merges(out, gguf, err);
    mgl_json_out_close_object(out);
    return status;
}

#define SPACE "\u2581"

static mgl_status write_pieces(mgl_json_out *out, const mgl_gguf *gguf,
                               const mgl_gguf_tokens *tokens, mgl_error *err)
{
    bool space = true, bytes = false;
    int64_t unknown;
    mgl_status status = mgl_gguf_get_bool(gguf, KEY("add_space_prefix"), &space, err);
    if (!status)
        status = read_id(gguf, tokens, KEY("unknown_token_id"), &unknown, err);
    if (status)
        return status;
    for (size_t i = 0; i < tokens->count && tokens->types; i++)
        bytes |= tokens->types[i] == MGL_GGUF_TOKEN_BYTE;
    mgl_text_format(&out->text,
                    ",\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[%s{\"type\":"
                    "\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"" SPACE "\"}]}",
                    space ? "{\"type\":\"Prepend\",\"prepend\":\"" SPACE "\"}," : "");
    mgl_text_format(&out->text,
                    ",\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\","
                    "\"pattern\":{\"String\":\"" SPACE "\"},\"content\":\" \"},{\"type\":"
                    "\"ByteFallback\"},{\"type\":\"Fuse\"}%s]}",
                    space ? ",{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}" : "");
    status = write_ends(out, gguf, tokens, true, err);
    mgl_json_out_object(out, "model");
    mgl_json_out_string(out, "type", "BPE");
    mgl_json_out_bool(out, "byte_fallback", bytes);
    mgl_json_out_bool(out, "fuse_unk", true);
    if (unknown >= 0)
        put_token(out, "unk_token", tokens->texts[unknown]);
    write_vocabulary(out, tokens);
    if (!status)
        status = mgl_gguf_write_pieces(gguf, tokens, out, err);
    mgl_json_out_close_object(out);
    return status;
}

static mgl_status fail_model(const mgl_gguf *gguf, mgl_gguf_string model, mgl_error *err)
{
    return mgl_fail(
        err, MGL_BAD_INPUT, gguf->file,
        "unsupported tokenizer: " KEY("model") " = \"%.*s\"; supported: gpt2 and llama; "
                                               "give ids instead of texts",
        (int)(model.length < 80 ? model.length : 80), model.bytes);
}

mgl_status mgl_gguf_write_tokenizer(const mgl_gguf *gguf, mgl_text *out, mgl_error *err)
{
    mgl_gguf_tokens tokens = {0};
    mgl_gguf_string model = {"", 0};
    mgl_json_out json = {0};
    mgl_status status = mgl_gguf_get_string(gguf, KEY("model"), &model, err);
    const bool is_bytes = mgl_gguf_is(model, "gpt2");
    if (!status && !is_bytes && !mgl_gguf_is(model, "llama"))
        status = fail_model(gguf, model, err);
    if (!status)
        status = mgl_gguf_tokens_read(gguf, &tokens, err);
    mgl_json_out_object(&json, NULL);
    put_raw(&json, "version", "\"1.0\"");
    write_added(&json, &tokens);
    if (!status)
        status = is_bytes ? write_bytes(&json, gguf, &tokens, err)
                          : write_pieces(&json, gguf, &tokens, err);
    mgl_json_out_close_object(&json);
    mgl_gguf_tokens_clear(&tokens);
    *out = json.text;
    return status;
}

/* ---- tokenizer_config.json ------------------------------------------------------------------- */

static mgl_status write_names(mgl_json_out *out, const mgl_gguf *gguf, mgl_error *err)
{
    static const struct {
        const char *key, *name;
    } names[] = {{KEY("bos_token_id"), "bos_token"},
                 {KEY("eos_token_id"), "eos_token"},
                 {KEY("unknown_token_id"), "unk_token"},
                 {KEY("padding_token_id"), "pad_token"}};
    mgl_gguf_tokens tokens;
    mgl_status status = mgl_gguf_tokens_read(gguf, &tokens, err);
    for (size_t i = 0; i < sizeof names / sizeof *names && !status; i++) {
        int64_t id;
        status = read_id(gguf, &tokens, names[i].key, &id, err);
        if (!status && id >= 0)
            put_token(out, names[i].name, tokens.texts[id]);
    }
    mgl_gguf_tokens_clear(&tokens);
    return status;
}

static void put_template(mgl_json_out *out, const char *name, mgl_gguf_string text)
{
    mgl_json_out_object(out, NULL);
    mgl_json_out_string(out, "name", name);
    put_token(out, "template", text);
    mgl_json_out_close_object(out);
}

/* Writes the chat template; with further templates (tokenizer.chat_template.NAME), a list. */
static mgl_status write_templates(mgl_json_out *out, const mgl_gguf *gguf, mgl_error *err)
{
    static const char key[] = "tokenizer.chat_template";
    mgl_gguf_string text = {NULL, 0}, *names;
    size_t count;
    mgl_status status = mgl_gguf_get_string(gguf, key, &text, err);
    if (!status)
        status = mgl_gguf_get_strings(gguf, "tokenizer.chat_templates", &names, &count, err);
    if (status)
        return status;
    if (!count && text.bytes)
        put_token(out, "chat_template", text);
    if (count)
        mgl_json_out_array(out, "chat_template");
    if (count && text.bytes)
        put_template(out, "default", text);
    for (size_t i = 0; i < count && !status; i++) {
        char full[160], name[80];
        mgl_gguf_string further = {NULL, 0};
        snprintf(name, sizeof name, "%.*s", (int)(names[i].length < 79 ? names[i].length : 79),
                 names[i].bytes);
        snprintf(full, sizeof full, "%s.%s", key, name);
        status = mgl_gguf_get_string(gguf, full, &further, err);
        if (further.bytes)
            put_template(out, name, further);
    }
    if (count)
        mgl_json_out_close_array(out);
    mgl_free(names);
    return status;
}

mgl_status mgl_gguf_write_tokenizer_config(const mgl_gguf *gguf, mgl_text *out, mgl_error *err)
{
    mgl_json_out json = {0};
    mgl_json_out_object(&json, NULL);
    mgl_status status = write_names(&json, gguf, err);
    if (!status)
        status = write_templates(&json, gguf, err);
    mgl_json_out_close_object(&json);
    *out = json.text;
    return status;
}
