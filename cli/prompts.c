/* The list of --prompts: a JSON array whose elements are texts, or objects with the keys of the
 * table in cli/prompts.h. */
#include "cli/prompts.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

static const int64_t greatest_exact = ((int64_t)1 << 53) - 1; /* whole number in JSON: 53 bits */

/* A key that says how the reply is made. */
typedef struct reply_key {
    const char *name;
    mgl_cli_kind kind;
    size_t offset;  /* of its value in mgl_cli_reply_options */
    int64_t lo, hi; /* of int and real */
} reply_key;

#define REPLY_KEY(kind, field, flag, argument, lo, hi, help)                                       \
    {#field, MGL_CLI_##kind, offsetof(mgl_cli_reply_options, field), lo, hi},
static const reply_key reply_keys[] = {MGL_CLI_REPLY_OPTIONS(REPLY_KEY)};
enum { REPLY_KEYS = sizeof reply_keys / sizeof *reply_keys };

/* One prompt of the file. */
typedef struct element {
    const mgl_json *json;
    cJSON *item;
    size_t index; /* in the array */
    bool start;   /* text or ids alone: there are no messages */
} element;

/* "F.json: [2].top_k", as the JSON reader names places; `key` may be NULL. */
static const char *place(const element *e, const char *key, char *where, size_t size)
{
    snprintf(where, size, "%s: [%zu]%s%.40s", e->json->file, e->index, key ? "." : "",
             key ? key : "");
    return where;
}

static mgl_status read_real(const element *e, const reply_key *key, mgl_cli_real *out,
                            mgl_error *err)
{
    char where[sizeof err->where];
    double value = out->value;
    mgl_status status = mgl_json_get_double(e->json, e->item, key->name, true, &value, err);
    if (status)
        return status;
    if (value < (double)key->lo || value > (double)key->hi)
        return mgl_fail(err, MGL_BAD_INPUT, place(e, key->name, where, sizeof where),
                        "must be between %" PRId64 " and %" PRId64 ", not %.17g", key->lo, key->hi,
                        value);
    *out = (mgl_cli_real){true, value};
    return MGL_OK;
}

static mgl_status add_text(const element *e, const reply_key *key, cJSON *item, mgl_cli_list *out,
                           mgl_error *err)
{
    char where[sizeof err->where];
    size_t length = 0;
    const char *text = cJSON_IsString(item) ? mgl_json_take_text(item, &length) : NULL;
    if (!text || !length || strlen(text) != length)
        return mgl_fail(err, MGL_BAD_INPUT, place(e, key->name, where, sizeof where),
                        "must be a text or an array of texts, none empty or with a zero byte");
    if (out->count == MGL_CLI_MOST_LISTED)
        return mgl_fail(err, MGL_BAD_INPUT, place(e, key->name, where, sizeof where),
                        "has more than %d texts", MGL_CLI_MOST_LISTED);
    out->values[out->count++] = text;
    return MGL_OK;
}

/* The texts of the key, in place of those of the flag. */
static mgl_status read_list(const element *e, const reply_key *key, mgl_cli_list *out,
                            mgl_error *err)
{
    cJSON *value = cJSON_GetObjectItemCaseSensitive(e->item, key->name);
    mgl_status status = MGL_OK;
    *out = (mgl_cli_list){.given = true};
    if (!cJSON_IsArray(value))
        return add_text(e, key, value, out, err);
    for (cJSON *item = value->child; item && !status; item = item->next)
        status = add_text(e, key, item, out, err);
    return status;
}

/* Reads a key that the prompt has. */
static mgl_status read_key(const element *e, const reply_key *key, mgl_cli_reply_options *out,
                           mgl_error *err)
{
    void *to = (char *)out + key->offset;
    mgl_cli_int *number = to;
    int64_t most = key->hi < greatest_exact ? key->hi : greatest_exact;
    if (key->kind == MGL_CLI_flag)
        return mgl_json_get_bool(e->json, e->item, key->name, true, &((mgl_cli_flag *)to)->given,
                                 err);
    if (key->kind == MGL_CLI_real)
        return read_real(e, key, to, err);
    if (key->kind == MGL_CLI_list)
        return read_list(e, key, to, err);
    mgl_status status =
        mgl_json_get_int(e->json, e->item, key->name, true, key->lo, most, &number->value, err);
    number->given |= !status;
    return status;
}

static const reply_key *find_key(const char *name)
{
    for (int i = 0; i < REPLY_KEYS; i++)
        if (!strcmp(reply_keys[i].name, name))
            return &reply_keys[i];
    return NULL;
}

static mgl_status fail_unknown(const element *e, const char *name, mgl_error *err)
{
    char where[sizeof err->where];
    mgl_text known = {0};
    for (int i = 0; i < REPLY_KEYS; i++)
        mgl_text_format(&known, ", %s", reply_keys[i].name);
    mgl_status status = mgl_fail(err, MGL_BAD_INPUT, place(e, NULL, where, sizeof where),
                                 "unknown key \"%.80s\"; a prompt has text, ids or messages%s",
                                 name, known.failed ? "" : known.bytes);
    mgl_text_clear(&known);
    return status;
}

static mgl_status read_ids(const element *e, mgl_ids *out, mgl_error *err)
{
    const cJSON *array, *item;
    mgl_status status = mgl_json_get_array(e->json, e->item, "ids", true, &array, err);
    if (status)
        return status;
    size_t count = (size_t)cJSON_GetArraySize(array);
    out->ids = mgl_alloc_zero(count ? count : 1, sizeof *out->ids);
    if (!out->ids)
        return mgl_fail_memory(err, count * sizeof *out->ids);
    for (item = array->child; item && !status; item = item->next) {
        char what[64];
        int64_t id = 0;
        snprintf(what, sizeof what, "[%zu].ids[%zu]", e->index, out->count);
        status = mgl_json_item_int(e->json, item, what, 0, INT32_MAX, &id, err);
        out->ids[out->count++] = (int32_t)id;
    }
    return status;
}

static mgl_status read_messages(const element *e, mgl_cli_prompt *out, mgl_error *err)
{
    char where[sizeof err->where];
    cJSON *array = cJSON_GetObjectItemCaseSensitive(e->item, "messages");
    return mgl_cli_messages_take(&out->messages, array, place(e, "messages", where, sizeof where),
                                 err);
}

/* What the reply goes on from. */
static mgl_status read_start(const element *e, mgl_cli_prompt *out, mgl_error *err)
{
    char where[sizeof err->where];
    bool has_text = mgl_json_member(e->item, "text") != NULL;
    bool has_ids = mgl_json_member(e->item, "ids") != NULL;
    int starts = has_text + has_ids + (mgl_json_member(e->item, "messages") != NULL);
    if (starts != 1)
        return mgl_fail(err, MGL_BAD_INPUT, place(e, NULL, where, sizeof where),
                        "%s of \"text\"%s \"ids\"%s is needed", starts ? "only one" : "one",
                        e->start ? " and" : ",", e->start ? "" : " and \"messages\"");
    if (has_ids)
        return read_ids(e, &out->ids, err);
    if (!has_text)
        return read_messages(e, out, err);
    return mgl_json_get_text(e->json, e->item, "text", &out->text, &out->length, err);
}

static mgl_status read_object(const element *e, mgl_cli_prompt *out, mgl_error *err)
{
    mgl_status status = MGL_OK;
    const cJSON *member = e->item->child;
    for (; member && !status; member = member->next) {
        const char *name = member->string;
        const reply_key *key = find_key(name);
        if (key)
            status = read_key(e, key, &out->reply, err);
        else if (strcmp(name, "text") != 0 && strcmp(name, "ids") != 0 &&
                 strcmp(name, "messages") != 0)
            status = fail_unknown(e, name, err);
    }
    return status ? status : read_start(e, out, err);
}

static mgl_status read_prompt(const element *e, mgl_cli_prompt *out, mgl_error *err)
{
    char where[sizeof err->where];
    if (cJSON_IsObject(e->item))
        return read_object(e, out, err);
    if (!cJSON_IsString(e->item))
        return mgl_fail(err, MGL_BAD_INPUT, place(e, NULL, where, sizeof where),
                        "must be a string or an object");
    out->text = mgl_json_take_text(e->item, &out->length);
    return MGL_OK;
}

mgl_status mgl_cli_start_read(const mgl_json *json, cJSON *item, size_t index, mgl_cli_prompt *out,
                              mgl_error *err)
{
    char where[sizeof err->where];
    element e = {.json = json, .item = item, .index = index, .start = true};
    const cJSON *member = cJSON_IsObject(item) ? item->child : NULL;
    for (; member; member = member->next)
        if (strcmp(member->string, "text") != 0 && strcmp(member->string, "ids") != 0)
            return mgl_fail(err, MGL_BAD_INPUT, place(&e, NULL, where, sizeof where),
                            "unknown key \"%.80s\"; there are text and ids", member->string);
    return read_prompt(&e, out, err);
}

static mgl_status check_count(const mgl_json *json, mgl_error *err)
{
    if (!cJSON_IsArray(json->root))
        return mgl_fail(err, MGL_BAD_INPUT, json->file, "is not a JSON array of prompts");
    int count = cJSON_GetArraySize(json->root);
    if (count < 1 || count > MGL_MAX_BATCH)
        return mgl_fail(err, MGL_BAD_INPUT, json->file,
                        "holds %d prompts; one launch makes 1 to %d replies", count, MGL_MAX_BATCH);
    return MGL_OK;
}

mgl_status mgl_cli_prompts_read(const char *path, const mgl_cli_reply_options *flags,
                                mgl_cli_prompts *out, mgl_error *err)
{
    size_t length;
    mgl_status status = mgl_file_read(path, MGL_CLI_MAX_TEXT, &out->file, &length, err);
    if (!status)
        status = mgl_json_parse_values(out->file, length, MGL_CLI_MAX_TEXT, path, &out->json, err);
    if (!status)
        status = check_count(&out->json, err);
    if (status)
        return status;
    element e = {.json = &out->json, .item = out->json.root->child};
    for (; e.item && !status; e.item = e.item->next, e.index++) {
        mgl_cli_prompt *prompt = &out->items[out->count++];
        prompt->reply = *flags;
        status = read_prompt(&e, prompt, err);
    }
    return status;
}

bool mgl_cli_reply_shapes(const mgl_cli_reply_options *options)
{
    return options->temperature.given || options->top_k.given || options->top_p.given ||
           options->min_p.given;
}

static bool is_on(const mgl_cli_real *penalty, double off)
{
    return penalty->given && (penalty->value < off || penalty->value > off);
}

bool mgl_cli_reply_penalizes(const mgl_cli_reply_options *options)
{
    return is_on(&options->repeat_penalty, 1) || is_on(&options->presence_penalty, 0) ||
           is_on(&options->frequency_penalty, 0);
}

mgl_status mgl_cli_reply_check(const mgl_cli_reply_options *options, mgl_error *err)
{
    const mgl_cli_real *repeat = &options->repeat_penalty;
    if (!repeat->given || repeat->value >= 0.01)
        return MGL_OK;
    return mgl_fail(err, MGL_USAGE, "--repeat-penalty",
                    "is %g; it must be from 0.01 to 100, and 1 is none", repeat->value);
}

/* Flags that shape sampling ask for it; by themselves they leave the distribution as it is. */
static float temperature_of(const mgl_cli_reply_options *options)
{
    if (options->temperature.given)
        return (float)options->temperature.value;
    return mgl_cli_reply_shapes(options) || options->seed.given ? 1.0F : 0.0F;
}

bool mgl_cli_reply_samples(const mgl_cli_reply_options *options)
{
    return temperature_of(options) > 0;
}

mgl_request mgl_cli_prompt_request(const mgl_cli_prompt *prompt, const mgl_tokenizer *tokenizer,
                                   bool sample, int32_t max_tokens)
{
    const mgl_cli_reply_options *o = &prompt->reply;
    return (mgl_request){.size = sizeof(mgl_request),
                         .prompt = prompt->ids.ids,
                         .prompt_count = prompt->ids.count,
                         .max_tokens =
                             o->max_tokens.given ? (int32_t)o->max_tokens.value : max_tokens,
                         .temperature = temperature_of(o),
                         .top_k = (int32_t)o->top_k.value,
                         .top_p = (float)o->top_p.value,
                         .min_p = o->min_p.value,
                         .repeat_penalty = o->repeat_penalty.value,
                         .presence_penalty = o->presence_penalty.value,
                         .frequency_penalty = o->frequency_penalty.value,
                         .seed = prompt->seed,
                         .ignore_eos = o->ignore_eos.given,
                         .logprobs = o->logprobs.value,
                         .tokenizer = tokenizer,
                         .stops = o->stop.values,
                         .stop_count = o->stop.count,
                         .sample = sample};
}

mgl_status mgl_cli_prompt_choose_seed(mgl_cli_prompt *prompt, bool sampled, mgl_error *err)
{
    uint64_t bits = 0;
    prompt->sampled = sampled;
    prompt->seed = (uint64_t)prompt->reply.seed.value;
    if (!sampled || prompt->reply.seed.given)
        return MGL_OK;
    if (getrandom(&bits, sizeof bits, 0) != sizeof bits)
        return mgl_fail_errno(err, "--seed", "the system gives no random number; give a seed");
    prompt->drawn = true;
    prompt->seed = bits & (uint64_t)greatest_exact;
    return MGL_OK;
}

void mgl_cli_prompts_clear(mgl_cli_prompts *prompts)
{
    for (size_t i = 0; i < prompts->count; i++) {
        mgl_ids_clear(&prompts->items[i].ids);
        mgl_cli_messages_clear(&prompts->items[i].messages);
        mgl_text_free(prompts->items[i].rendered);
    }
    mgl_json_clear(&prompts->json);
    mgl_free(prompts->file);
    *prompts = (mgl_cli_prompts){0};
}
