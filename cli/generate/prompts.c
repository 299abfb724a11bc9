/*
 * Implements the list of --prompts: texts, or objects with the keys of the table in prompts.h. Also
 * makes the library's requests and chooses seeds.
 */
#include "cli/generate/prompts.h"

#include "cli/generate/entries.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "importer/checkpoint.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

static const int64_t greatest_exact =
    ((int64_t)1 << 53) - 1; /* the largest exact integer in JSON */

/* A key for an option of the reply. */
typedef struct reply_key {
    const char *name;
    mgl_cli_kind kind;
    size_t offset;  /* offset of the value in mgl_cli_reply_options */
    int64_t lo, hi; /* range of the kinds `int` and `real` */
} reply_key;

#define REPLY_KEY(kind, field, flag, argument, lo, hi, help)                                       \
    {#field, MGL_CLI_##kind, offsetof(mgl_cli_reply_options, field), lo, hi},
static const reply_key reply_keys[] = {MGL_CLI_REPLY_OPTIONS(REPLY_KEY)};
enum { REPLY_KEYS = sizeof reply_keys / sizeof *reply_keys };

/* One entry of the file. */
typedef struct element {
    const mgl_json *json; /* its `file` is the name of the entry */
    cJSON *item;
    bool start; /* text or ids only: messages are not allowed */
} element;

/* "F.json: [2]: top_k" */
enum { PLACE = sizeof((mgl_error *)0)->where };
static const char *place(const element *e, const char *key, char where[PLACE])
{
    snprintf(where, PLACE, "%s: %.40s", e->json->file, key);
    return where;
}

static mgl_status read_real(const element *e, const reply_key *key, mgl_cli_real *out,
                            mgl_error *err)
{
    char where[PLACE];
    double value = out->value;
    mgl_status status = mgl_json_get_double(e->json, e->item, key->name, true, &value, err);
    if (status)
        return status;
    if (value < (double)key->lo || value > (double)key->hi)
        return mgl_fail(err, MGL_BAD_INPUT, place(e, key->name, where),
                        "must be between %" PRId64 " and %" PRId64 ", not %.17g", key->lo, key->hi,
                        value);
    *out = (mgl_cli_real){true, value};
    return MGL_OK;
}

static mgl_status add_text(const element *e, const reply_key *key, cJSON *item, mgl_cli_list *out,
                           mgl_error *err)
{
    char where[PLACE];
    size_t length = 0;
    const char *text = cJSON_IsString(item) ? mgl_json_take_text(item, &length) : NULL;
    if (!text || !length || strlen(text) != length)
        return mgl_fail(err, MGL_BAD_INPUT, place(e, key->name, where),
                        "must be a text or an array of texts, none empty or with a zero byte");
    if (out->count == MGL_CLI_MOST_LISTED)
        return mgl_fail(err, MGL_BAD_INPUT, place(e, key->name, where), "has more than %d texts",
                        MGL_CLI_MOST_LISTED);
    out->values[out->count++] = text;
    return MGL_OK;
}

/* Reads the texts of the key. They replace the texts of the flag. */
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

/* Reads a key if the entry has it. */
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
    mgl_text known = {0};
    for (int i = 0; i < REPLY_KEYS; i++)
        mgl_text_format(&known, ", %s", reply_keys[i].name);
    mgl_status status = mgl_fail(err, MGL_BAD_INPUT, e->json->file,
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
        snprintf(what, sizeof what, "ids[%zu]", out->count);
        status = mgl_json_item_int(e->json, item, what, 0, INT32_MAX, &id, err);
        out->ids[out->count++] = (int32_t)id;
    }
    return status;
}

static mgl_status read_messages(const element *e, mgl_cli_prompt *out, mgl_error *err)
{
    char where[PLACE];
    cJSON *array = cJSON_GetObjectItemCaseSensitive(e->item, "messages");
    return mgl_cli_messages_take(&out->messages, array, place(e, "messages", where), err);
}

/* Reads what the reply continues: text, ids or messages. */
static mgl_status read_start(const element *e, mgl_cli_prompt *out, mgl_error *err)
{
    bool has_text = mgl_json_member(e->item, "text") != NULL;
    bool has_ids = mgl_json_member(e->item, "ids") != NULL;
    int starts = has_text + has_ids + (mgl_json_member(e->item, "messages") != NULL);
    if (starts != 1)
        return mgl_fail(err, MGL_BAD_INPUT, e->json->file, "%s of \"text\"%s \"ids\"%s is needed",
                        starts ? "only one" : "one", e->start ? " and" : ",",
                        e->start ? "" : " and \"messages\"");
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
    if (cJSON_IsObject(e->item))
        return read_object(e, out, err);
    if (!cJSON_IsString(e->item))
        return mgl_fail(err, MGL_BAD_INPUT, e->json->file, "must be a string or an object");
    out->text = mgl_json_take_text(e->item, &out->length);
    return MGL_OK;
}

/* Reads an entry that is a text, or an object with text or ids. */
static mgl_status read_start_entry(const element *e, mgl_cli_prompt *out, mgl_error *err)
{
    const cJSON *member = cJSON_IsObject(e->item) ? e->item->child : NULL;
    for (; member; member = member->next)
        if (strcmp(member->string, "text") != 0 && strcmp(member->string, "ids") != 0)
            return mgl_fail(err, MGL_BAD_INPUT, e->json->file,
                            "unknown key \"%.80s\"; allowed: text and ids", member->string);
    return read_prompt(e, out, err);
}

/* ---- entries --------------------------------------------------------------------------------- */

void mgl_cli_prompt_name(const mgl_cli_prompts *prompts, size_t index, char *out, size_t size)
{
    const size_t number = prompts->items[index].number;
    snprintf(out, size, prompts->lines ? "%.150s: line %zu" : "%.150s: [%zu]", prompts->list,
             number);
}

/* Prefixes the error's place with the entry's name. Errors of the JSON reader already have the
 * name, with a colon before the key. */
static void name_place(const mgl_cli_prompts *prompts, size_t index, mgl_error *err)
{
    char name[200], rest[sizeof err->where];
    mgl_cli_prompt_name(prompts, index, name, sizeof name);
    const size_t length = strlen(name);
    const bool named = !strncmp(err->where, name, length);
    memcpy(rest, err->where, sizeof rest);
    if (!named)
        mgl_error_name(err, name);
    else if (!prompts->lines && !strncmp(rest + length, ": ", 2))
        snprintf(err->where, sizeof err->where, "%s.%s", name, rest + length + 2);
}

mgl_status mgl_cli_prompt_end(mgl_cli_prompts *prompts, size_t index, mgl_status status,
                              mgl_error *err)
{
    mgl_cli_prompt *prompt = &prompts->items[index];
    if (!prompts->list || (status != MGL_BAD_INPUT && status != MGL_USAGE))
        return status;
    name_place(prompts, index, err);
    mgl_free(prompt->error);
    prompt->error = mgl_alloc(sizeof *err);
    if (!prompt->error)
        return mgl_fail_memory(err, sizeof *err);
    *prompt->error = *err;
    *err = (mgl_error){0};
    return MGL_OK;
}

mgl_status mgl_cli_prompt_end_key(mgl_cli_prompts *prompts, size_t index, const char *key,
                                  mgl_status status, mgl_error *err)
{
    char name[200];
    if (status && prompts->list) {
        mgl_cli_prompt_name(prompts, index, name, sizeof name);
        snprintf(err->where, sizeof err->where, "%s: %s", name, key);
    }
    return mgl_cli_prompt_end(prompts, index, status, err);
}

size_t mgl_cli_prompts_count_errors(const mgl_cli_prompts *prompts)
{
    size_t count = 0;
    for (size_t i = 0; i < prompts->count; i++)
        count += prompts->items[i].error != NULL;
    return count;
}

/* Replaces the line and column within the entry by the line and column in the file. */
static void place_in_file(const mgl_cli_prompts *prompts, const char *name,
                          const mgl_cli_entry *entry, mgl_error *err)
{
    size_t line, column, first = 1, before = 0;
    const size_t length = strlen(name);
    if (strncmp(err->where, name, length) != 0 ||
        sscanf(err->where + length, ":%zu:%zu", &line, &column) != 2)
        return;
    for (const char *at = prompts->file; at < entry->text; at++) {
        before = *at == '\n' ? 0 : before + ((*at & 0xC0) != 0x80);
        first += *at == '\n';
    }
    column += line == 1 ? before : 0;
    if (prompts->lines)
        snprintf(err->where, sizeof err->where, "%s, column %zu", name, column);
    else
        snprintf(err->where, sizeof err->where, "%s, line %zu, column %zu", name, first + line - 1,
                 column);
}

static mgl_status parse_entry(mgl_cli_prompts *prompts, size_t index, const mgl_cli_entry *entry,
                              bool start, mgl_error *err)
{
    char name[200];
    mgl_cli_prompt *prompt = &prompts->items[index];
    mgl_cli_prompt_name(prompts, index, name, sizeof name);
    mgl_status status = mgl_json_parse_values(entry->text, entry->length, MGL_CLI_MAX_TEXT, name,
                                              &prompt->json, err);
    if (status == MGL_BAD_INPUT)
        place_in_file(prompts, name, entry, err);
    element e = {.json = &prompt->json, .item = prompt->json.root, .start = start};
    if (status)
        return status;
    return start ? read_start_entry(&e, prompt, err) : read_prompt(&e, prompt, err);
}

/* A key of sampling that the prompt sets. */
static const char *shaping_key(const mgl_cli_reply_options *reply)
{
    return reply->temperature.given ? "temperature"
           : reply->top_k.given     ? "top_k"
           : reply->top_p.given     ? "top_p"
                                    : "min_p";
}

/* Rejects values that the flags, or missing flags, do not allow. */
static mgl_status check_entry(mgl_cli_prompts *prompts, size_t index, bool sample, bool json,
                              mgl_error *err)
{
    const mgl_cli_reply_options *reply = &prompts->items[index].reply;
    const char *key = "repeat_penalty";
    mgl_status status = mgl_cli_reply_check(reply, err);
    if (!status && sample && mgl_cli_reply_shapes(reply)) {
        key = shaping_key(reply);
        status = mgl_fail(err, MGL_BAD_INPUT, NULL,
                          "cannot be combined with --sample, which reads temperature, top_k, top_p "
                          "and min_p from generation_config.json; leave out one of the two");
    }
    if (!status && !json && reply->logprobs.value > 0) {
        key = "logprobs";
        status = mgl_fail(err, MGL_BAD_INPUT, NULL,
                          "needs --json; only its output contains log-probabilities");
    }
    return mgl_cli_prompt_end_key(prompts, index, key, status, err);
}

static mgl_status make_items(mgl_cli_prompts *out, size_t count, mgl_error *err)
{
    out->items = mgl_alloc_zero(count ? count : 1, sizeof *out->items);
    if (!out->items)
        return mgl_fail_memory(err, count * sizeof *out->items);
    out->count = count;
    return MGL_OK;
}

mgl_status mgl_cli_prompts_make(mgl_cli_prompts *out, mgl_error *err)
{
    return make_items(out, 1, err);
}

/* Reads the file and makes an item for each entry. */
static mgl_status open_list(const char *path, const char *noun, mgl_cli_entries *entries,
                            mgl_cli_prompts *out, mgl_error *err)
{
    size_t length;
    out->list = strcmp(path, MGL_STDIN) != 0 ? path : "standard input";
    mgl_status status = mgl_file_read(path, MGL_CLI_MAX_TEXT, &out->file, &length, err);
    if (!status)
        status = mgl_cli_entries_split(out->file, length, out->list, noun, entries, err);
    if (!status)
        status = make_items(out, entries->count, err);
    out->lines = entries->lines;
    for (size_t i = 0; i < out->count && !status; i++)
        out->items[i].number = entries->items[i].number;
    return status;
}

mgl_status mgl_cli_prompts_read(const char *path, const mgl_cli_reply_options *flags, bool sample,
                                bool json, mgl_cli_prompts *out, mgl_error *err)
{
    mgl_cli_entries entries = {0};
    mgl_status status = open_list(path, "prompt", &entries, out, err);
    if (!status && !out->count)
        status = mgl_fail(err, MGL_BAD_INPUT, out->list, "holds 0 prompts; at least one is needed");
    for (size_t i = 0; i < out->count && !status; i++) {
        out->items[i].reply = *flags;
        status =
            mgl_cli_prompt_end(out, i, parse_entry(out, i, &entries.items[i], false, err), err);
        if (!status && !out->items[i].error)
            status = check_entry(out, i, sample, json, err);
    }
    mgl_cli_entries_clear(&entries);
    return status;
}

mgl_status mgl_cli_texts_read(const char *path, mgl_cli_prompts *out, mgl_error *err)
{
    mgl_cli_entries entries = {0};
    mgl_status status = open_list(path, "text", &entries, out, err);
    for (size_t i = 0; i < out->count && !status; i++)
        status = parse_entry(out, i, &entries.items[i], true, err);
    mgl_cli_entries_clear(&entries);
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
                    "is %g; it must be from 0.01 to 100, and 1 disables the penalty",
                    repeat->value);
}

/* Flags such as --top-k request sampling. Without --temperature the temperature is 1, which leaves
 * the distribution unchanged. */
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
                         .top_p = o->top_p.given ? mgl_explicit_top_p(o->top_p.value) : 0.0F,
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
                         .sample = sample,
                         .chat = prompt->rendered != NULL};
}

mgl_status mgl_cli_prompt_choose_seed(mgl_cli_prompt *prompt, bool sampled, mgl_error *err)
{
    uint64_t bits = 0;
    prompt->sampled = sampled;
    prompt->seed = (uint64_t)prompt->reply.seed.value;
    if (!sampled || prompt->reply.seed.given)
        return MGL_OK;
    if (getrandom(&bits, sizeof bits, 0) != sizeof bits)
        return mgl_fail_errno(err, "--seed", "the system provides no random numbers; give a seed");
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
        mgl_json_clear(&prompts->items[i].json);
        mgl_free(prompts->items[i].error);
    }
    mgl_free(prompts->items);
    mgl_free(prompts->file);
    *prompts = (mgl_cli_prompts){0};
}
