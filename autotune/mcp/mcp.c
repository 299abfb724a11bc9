/*
 * Implements the protocol of the MCP server: messages, tools/list, argument checks, cancellation.
 */
#include "autotune/mcp/mcp_parts.h"
#include "base/aliases.h"

#include "base/format.h"
#include "base/memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Errors of JSON-RPC 2.0, section 5.1. */
enum { NO_JSON = -32700, NO_REQUEST = -32600, NO_METHOD = -32601, WRONG_PARAMS = -32602 };

/* Newest first. A client that asks for an unsupported version is offered the first one. */
static const char *const versions[] = {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"};

/* A request that is being answered. */
typedef struct request {
    mgl_mcp *mcp;
    const mgl_json *json;
    const cJSON *object, *params;
    const char *method;
    char id[MCP_MAX_ID]; /* as JSON; "": a notification */
} request;

/* ---- answers --------------------------------------------------------------------------------- */

static void begin_answer(mgl_json_out *out, const char *id)
{
    mgl_text_put(&out->text, "{");
    mgl_json_out_string(out, "jsonrpc", "2.0");
    mgl_text_format(&out->text, ",\"id\":%s", id[0] ? id : "null");
}

static void put_error(mgl_json_out *out, const char *id, int code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static void put_error(mgl_json_out *out, const char *id, int code, const char *format, ...)
{
    char text[600];
    va_list args;
    va_start(args, format);
    mgl_format_list(text, sizeof text, format, args);
    va_end(args);
    begin_answer(out, id);
    mgl_json_out_object(out, "error");
    mgl_json_out_int(out, "code", code);
    mgl_json_out_string(out, "message", text);
    mgl_json_out_close_object(out);
    mgl_json_out_close(out);
}

static void begin_result(mgl_json_out *out, const request *r)
{
    begin_answer(out, r->id);
    mgl_json_out_object(out, "result");
}

static void end_result(mgl_json_out *out)
{
    mgl_json_out_close_object(out);
    mgl_json_out_close(out);
}

/* ---- initialize ------------------------------------------------------------------------------ */

static const char *negotiate(const request *r)
{
    const cJSON *wanted = r->params ? mgl_json_member(r->params, "protocolVersion") : NULL;
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++)
        if (cJSON_IsString(wanted) && !strcmp(wanted->valuestring, versions[i]))
            return versions[i];
    return versions[0];
}

static void initialize(const request *r, mgl_json_out *out)
{
    begin_result(out, r);
    mgl_json_out_string(out, "protocolVersion", negotiate(r));
    mgl_json_out_object(out, "capabilities");
    mgl_json_out_object(out, "tools");
    mgl_json_out_close_object(out);
    mgl_json_out_close_object(out);
    mgl_json_out_object(out, "serverInfo");
    mgl_json_out_string(out, "name", "megalith");
    mgl_json_out_string(out, "version", mgl_version());
    mgl_json_out_close_object(out);
    mgl_json_out_string(
        out, "instructions",
        "Schedules of single-launch GPU kernels: describe_space lists what may be "
        "changed. check_schedule proves a schedule safe or reports why it is not "
        "safe. explain_code explains how to correct it. Micro-kernels: kernel_list "
        "lists the micro-kernels whose text may be changed, kernel_next shows the "
        "open task, kernel_scan lists what is rejected in a text. You do not set "
        "verdicts: each submission is proved or scanned, compared with a reference, "
        "and measured.");
    end_result(out);
}

/* ---- tools ----------------------------------------------------------------------------------- */

static void put_schema(mgl_json_out *out, const mcp_tool *tool)
{
    static const char *const kinds[] = {"string", "integer", "object", "boolean", "array"};
    mgl_json_out_object(out, "inputSchema");
    mgl_json_out_string(out, "type", "object");
    mgl_json_out_object(out, "properties");
    for (int i = 0; i < tool->count; i++) {
        const mcp_param *p = &tool->params[i];
        mgl_json_out_object(out, p->name);
        mgl_json_out_string(out, "type", kinds[p->kind]);
        mgl_json_out_string(out, "description", p->what);
        if (p->kind == MCP_INTEGER) {
            mgl_json_out_int(out, "minimum", p->lo);
            mgl_json_out_int(out, "maximum", p->hi);
        } else if (p->kind == MCP_STRING) {
            mgl_json_out_int(out, "maxLength", p->hi);
        }
        mgl_json_out_close_object(out);
    }
    mgl_json_out_close_object(out);
    mgl_json_out_array(out, "required");
    for (int i = 0; i < tool->count; i++)
        if (tool->params[i].required)
            mgl_json_out_string(out, NULL, tool->params[i].name);
    mgl_json_out_close_array(out);
    mgl_json_out_bool(out, "additionalProperties", false);
    mgl_json_out_close_object(out);
}

static void list_tools(const request *r, mgl_json_out *out)
{
    begin_result(out, r);
    mgl_json_out_array(out, "tools");
    for (int i = 0; mcp_tool_get(i); i++) {
        const mcp_tool *tool = mcp_tool_get(i);
        if (tool->writes && !r->mcp->allow_trials)
            continue;
        mgl_json_out_object(out, NULL);
        mgl_json_out_string(out, "name", tool->name);
        mgl_json_out_string(out, "title", tool->title);
        mgl_json_out_string(out, "description", tool->what);
        put_schema(out, tool);
        mgl_json_out_object(out, "annotations");
        mgl_json_out_bool(out, "readOnlyHint", !tool->writes);
        mgl_json_out_bool(out, "openWorldHint", false);
        mgl_json_out_close_object(out);
        mgl_json_out_close_object(out);
    }
    mgl_json_out_close_array(out);
    end_result(out);
}

static const mcp_param *find_param(const mcp_tool *tool, const char *name)
{
    for (int i = 0; i < tool->count; i++)
        if (!strcmp(tool->params[i].name, name))
            return &tool->params[i];
    const char *renamed = mgl_alias_new(MGL_ALIAS_ARGUMENT, name, strlen(name));
    return renamed ? find_param(tool, renamed) : NULL;
}

/* The argument `name`, under its first published name too; NULL: not given. */
static const cJSON *find_argument(const cJSON *arguments, const char *name)
{
    const cJSON *item = arguments ? mgl_json_member(arguments, name) : NULL;
    const char *published = mgl_alias_published(MGL_ALIAS_ARGUMENT, name);
    return item || !arguments || published == name ? item : mgl_json_member(arguments, published);
}

/* ---- arguments ------------------------------------------------------------------------------- */

static const char *const kinds[] = {[MCP_STRING] = "a string",
                                    [MCP_INTEGER] = "an integer",
                                    [MCP_OBJECT] = "an object",
                                    [MCP_BOOLEAN] = "true or false",
                                    [MCP_ARRAY] = "an array"};

static bool is_kind(const cJSON *item, mcp_kind kind)
{
    switch (kind) {
    case MCP_STRING:
        return cJSON_IsString(item);
    case MCP_INTEGER:
        return cJSON_IsNumber(item) && item->valuedouble == trunc(item->valuedouble);
    case MCP_OBJECT:
        return cJSON_IsObject(item);
    case MCP_BOOLEAN:
        return cJSON_IsBool(item);
    default:
        return cJSON_IsArray(item);
    }
}

/* The kind of an argument, for the message about a wrong kind. */
static const char *name_kind(const cJSON *item)
{
    for (int k = 0; k <= MCP_ARRAY; k++)
        if (is_kind(item, (mcp_kind)k))
            return kinds[k];
    return cJSON_IsNumber(item) ? "a number with a fraction" : "null";
}

/* Appends the tool's argument names to a message. */
static void list_arguments(const mcp_tool *tool, const char *subject, mgl_error *err)
{
    mgl_text message = {0};
    mgl_text_format(&message, "%s; %s are: %s", err->message, subject, tool->count ? "" : "none");
    for (int i = 0; i < tool->count; i++)
        mgl_text_format(&message, "%s%s", i ? ", " : "", tool->params[i].name);
    if (!message.failed)
        snprintf(err->message, sizeof err->message, "%s", message.bytes);
    mgl_text_clear(&message);
}

static mgl_status fail_unknown(const mcp_tool *tool, const char *name, mgl_error *err)
{
    mgl_status status =
        mgl_fail(err, MGL_USAGE, NULL, "%s has no argument \"%.60s\"", tool->name, name);
    list_arguments(tool, "its arguments", err);
    return status;
}

static mgl_status fail_range(const mcp_param *p, double value, mgl_error *err)
{
    return mgl_fail(err, MGL_USAGE, NULL,
                    "the argument \"%s\" must be an integer between %lld and %lld, not %.15g",
                    p->name, (long long)p->lo, (long long)p->hi, value);
}

/* Checks an argument against its row of the schema. */
static mgl_status check_argument(const mcp_tool *tool, const cJSON *arguments, const cJSON *item,
                                 mgl_error *err)
{
    const mcp_param *p = find_param(tool, item->string);
    if (strcmp(p->name, item->string) != 0 && mgl_json_member(arguments, p->name))
        return mgl_fail(err, MGL_USAGE, NULL,
                        "\"%s\" is the old name of the argument \"%s\", which is given too: leave "
                        "one out",
                        item->string, p->name);
    if (p->kind == MCP_INTEGER && cJSON_IsNumber(item) &&
        !(item->valuedouble >= (double)p->lo && item->valuedouble <= (double)p->hi))
        return fail_range(p, item->valuedouble, err);
    if (!is_kind(item, p->kind))
        return mgl_fail(err, MGL_USAGE, NULL, "the argument \"%s\" must be %s, not %s", p->name,
                        kinds[p->kind], name_kind(item));
    if (p->kind == MCP_STRING && strlen(item->valuestring) > (size_t)p->hi)
        return mgl_fail(err, MGL_USAGE, NULL,
                        "the argument \"%s\" has %zu bytes; at most %lld are allowed", p->name,
                        strlen(item->valuestring), (long long)p->hi);
    return MGL_OK;
}

static mgl_status check_values(const mcp_tool *tool, const cJSON *arguments, mgl_error *err)
{
    mgl_status status = MGL_OK;
    if (arguments && !cJSON_IsObject(arguments))
        return mgl_fail(err, MGL_USAGE, NULL, "\"arguments\" must be an object, not %s",
                        name_kind(arguments));
    for (const cJSON *i = arguments ? arguments->child : NULL; i && !status; i = i->next)
        status = check_argument(tool, arguments, i, err);
    for (int i = 0; i < tool->count && !status; i++) {
        const mcp_param *p = &tool->params[i];
        if (p->required && !find_argument(arguments, p->name))
            status = mgl_fail(err, MGL_USAGE, NULL, "%s needs the argument \"%s\", %s: %s",
                              tool->name, p->name, kinds[p->kind], p->what);
    }
    return status;
}

/* Checks all arguments; every error lists the valid arguments. */
static mgl_status check_arguments(const mcp_tool *tool, const cJSON *arguments, mgl_error *err)
{
    char subject[100];
    const cJSON *item = cJSON_IsObject(arguments) ? arguments->child : NULL;
    for (; item; item = item->next)
        if (!find_param(tool, item->string))
            return fail_unknown(tool, item->string, err);
    mgl_status status = check_values(tool, arguments, err);
    snprintf(subject, sizeof subject, "the arguments of %s", tool->name);
    if (status)
        list_arguments(tool, subject, err);
    return status;
}

const cJSON *mcp_argument_of(const mcp_call *call, const char *name)
{
    return find_argument(call->arguments, name);
}

bool mcp_is_given(const mcp_call *call, const char *name)
{
    return find_argument(call->arguments, name) != NULL;
}

const char *mcp_text_of(const mcp_call *call, const char *name)
{
    const cJSON *item = find_argument(call->arguments, name);
    return item ? item->valuestring : NULL;
}

int64_t mcp_number_of(const mcp_call *call, const char *name, int64_t otherwise)
{
    const cJSON *item = find_argument(call->arguments, name);
    return item ? (int64_t)item->valuedouble : otherwise;
}

bool mcp_flag_of(const mcp_call *call, const char *name)
{
    const cJSON *item = find_argument(call->arguments, name);
    return cJSON_IsTrue(item);
}

static const mcp_tool *find_tool(const request *r, const char *name)
{
    const mcp_tool *tool = NULL;
    const char *renamed = mgl_alias_new(MGL_ALIAS_TOOL, name, strlen(name));
    for (int i = 0; (tool = mcp_tool_get(i)); i++)
        if (!strcmp(tool->name, renamed ? renamed : name) &&
            (!tool->writes || r->mcp->allow_trials))
            break;
    return tool;
}

/* Writes a tool's answer as structured content and as text. A failure is also written as
 * content, because the agent must read it, not its client. */
static void put_tool_result(mgl_json_out *out, const request *r, const mgl_json_out *answer,
                            mgl_status failed, const mgl_error *why)
{
    mgl_text told = {0};
    begin_result(out, r);
    mgl_json_out_array(out, "content");
    mgl_json_out_object(out, NULL);
    mgl_json_out_string(out, "type", "text");
    if (failed)
        mgl_text_format(&told, "%s%s%s", why->where, why->where[0] ? ": " : "", why->message);
    mgl_json_out_string(out, "text", failed ? told.bytes : answer->text.bytes);
    mgl_json_out_close_object(out);
    mgl_json_out_close_array(out);
    if (!failed)
        mgl_text_format(&out->text, ",\"structuredContent\":%s", answer->text.bytes);
    mgl_json_out_bool(out, "isError", failed != MGL_OK);
    end_result(out);
    mgl_text_clear(&told);
}

static mgl_status run_tool(const mcp_tool *tool, const mcp_call *call, mgl_json_out *out,
                           mgl_error *err)
{
    if (tool->in_campaign)
        return mcp_run_in_campaign(tool, call, out, err);
    return tool->in_store ? mcp_run_in_store(tool, call, out, err) : tool->run(call, out, err);
}

static void call_tool(const request *r, mgl_json_out *out)
{
    const cJSON *name = r->params ? mgl_json_member(r->params, "name") : NULL;
    const mcp_tool *tool = cJSON_IsString(name) ? find_tool(r, name->valuestring) : NULL;
    mgl_json_out answer = {0};
    mgl_error why = {0};
    if (!tool) {
        put_error(out, r->id, WRONG_PARAMS, "unknown tool; tools/list lists the tools");
        return;
    }
    mcp_call call = {r->mcp, r->json, mgl_json_member(r->params, "arguments")};
    mgl_text_put(&answer.text, "{");
    mgl_status status = check_arguments(tool, call.arguments, &why);
    if (!status)
        status = run_tool(tool, &call, &answer, &why);
    mgl_json_out_close(&answer);
    if (answer.text.failed)
        out->text.failed = true;
    else
        put_tool_result(out, r, &answer, status, &why);
    mgl_text_clear(&answer.text);
}

/* ---- requests -------------------------------------------------------------------------------- */

static void ping(const request *r, mgl_json_out *out)
{
    begin_result(out, r);
    end_result(out);
}

static const struct {
    const char *name;
    void (*answer)(const request *, mgl_json_out *);
} methods[] = {{"initialize", initialize},
               {"ping", ping},
               {"tools/list", list_tools},
               {"tools/call", call_tool}};

/* The id as JSON. False: it is too long, or neither a string nor an integer that a double
 * represents exactly. The JSON library rounds integers of more than 15 digits, so it prints only
 * strings. */
static bool print_id(const cJSON *item, char id[MCP_MAX_ID])
{
    static const double most = 9007199254740992; /* 2^53 */
    if (cJSON_IsString(item))
        return cJSON_PrintPreallocated((cJSON *)item, id, MCP_MAX_ID, false);
    if (!cJSON_IsNumber(item) || item->valuedouble != trunc(item->valuedouble) ||
        fabs(item->valuedouble) >= most)
        return false;
    snprintf(id, MCP_MAX_ID, "%lld", (long long)item->valuedouble);
    return true;
}

/* "" without an id. False: the id is invalid. */
static bool read_id(const cJSON *object, char id[MCP_MAX_ID])
{
    const cJSON *item = mgl_json_member(object, "id");
    id[0] = 0;
    return !item || print_id(item, id);
}

/* Starts a request; false: it was cancelled before. */
static bool begin_work(mgl_mcp *mcp, const char *id)
{
    bool wanted = true;
    pthread_mutex_lock(&mcp->lock);
    for (int i = 0; i < MCP_CANCELLED && id[0]; i++)
        wanted = wanted && strcmp(mcp->cancelled[i], id) != 0;
    snprintf(mcp->current, sizeof mcp->current, "%s", id);
    atomic_store(&mcp->abort, 0);
    pthread_mutex_unlock(&mcp->lock);
    return wanted;
}

/* Ends a request; false: it was cancelled meanwhile, so no answer is sent. */
static bool end_work(mgl_mcp *mcp)
{
    pthread_mutex_lock(&mcp->lock);
    bool wanted = !atomic_load(&mcp->abort);
    mcp->current[0] = 0;
    pthread_mutex_unlock(&mcp->lock);
    return wanted;
}

static void answer_request(const request *r, mgl_json_out *out)
{
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (!strcmp(methods[i].name, r->method)) {
            methods[i].answer(r, out);
            return;
        }
    put_error(out, r->id, NO_METHOD,
              "no method \"%.60s\"; there are initialize, ping, tools/list "
              "and tools/call",
              r->method);
}

/* Handles one message. Responses and notifications get no answer. */
static void handle_one(mgl_mcp *mcp, const mgl_json *json, const cJSON *object, mgl_json_out *out)
{
    request r = {.mcp = mcp, .json = json, .object = object};
    if (!cJSON_IsObject(object) || !read_id(object, r.id)) {
        put_error(out, "", NO_REQUEST,
                  "a message is an object of JSON-RPC 2.0, its id a string or an integer");
        return;
    }
    const cJSON *method = mgl_json_member(object, "method");
    const cJSON *version = mgl_json_member(object, "jsonrpc");
    if (!method && (mgl_json_member(object, "result") || mgl_json_member(object, "error")))
        return;
    if (!cJSON_IsString(method) || !cJSON_IsString(version) ||
        strcmp(version->valuestring, "2.0") != 0) {
        put_error(out, r.id, NO_REQUEST, "a request has \"jsonrpc\": \"2.0\" and a method");
        return;
    }
    if (!r.id[0])
        return;
    r.method = method->valuestring;
    r.params = mgl_json_member(object, "params");
    if (r.params && !cJSON_IsObject(r.params)) {
        put_error(out, r.id, WRONG_PARAMS, "params is an object");
        return;
    }
    if (begin_work(mcp, r.id))
        answer_request(&r, out);
    if (!end_work(mcp))
        mgl_text_clear(&out->text);
}

static mgl_status append(mgl_json_out *made, const char *before, mgl_text *out, mgl_error *err)
{
    mgl_status status = made->text.failed ? mgl_fail_memory(err, made->text.length) : MGL_OK;
    if (!status && made->text.length) {
        mgl_text_put(out, before);
        mgl_text_append(out, made->text.bytes, made->text.length);
    }
    mgl_text_clear(&made->text);
    *made = (mgl_json_out){0};
    return status;
}

/* A batch of messages (version 2025-03-26); the answers are an array too. */
static mgl_status handle_batch(mgl_mcp *mcp, const mgl_json *json, mgl_text *out, mgl_error *err)
{
    mgl_json_out made = {0};
    mgl_status status = MGL_OK;
    size_t start = out->length;
    for (const cJSON *i = json->root->child; i && !status; i = i->next) {
        handle_one(mcp, json, i, &made);
        status = append(&made, out->length == start ? "[" : ",", out, err);
    }
    if (!status && !json->root->child) {
        put_error(&made, "", NO_REQUEST, "empty array; give at least one request");
        return append(&made, "", out, err);
    }
    if (out->length > start)
        mgl_text_put(out, "]");
    return status;
}

mgl_status mgl_mcp_handle(mgl_mcp *mcp, const char *message, size_t length, mgl_text *out,
                          mgl_error *err)
{
    mgl_json json = {0};
    mgl_error why = {0};
    mgl_json_out made = {0};
    mgl_status status =
        mgl_json_parse(message, length, MGL_MCP_MAX_MESSAGE, "message", &json, &why);
    if (status == MGL_NO_MEMORY)
        return mgl_fail_memory(err, length);
    if (status)
        put_error(&made, "", NO_JSON, "%s: %s", why.where, why.message);
    else if (cJSON_IsArray(json.root))
        status = handle_batch(mcp, &json, out, err);
    else
        handle_one(mcp, &json, json.root, &made);
    mgl_json_clear(&json);
    mgl_status appended = append(&made, "", out, err);
    return appended || status == MGL_NO_MEMORY ? MGL_NO_MEMORY : MGL_OK;
}

/* ---- cancellation ---------------------------------------------------------------------------- */

static void note_cancelled(mgl_mcp *mcp, const char *id)
{
    pthread_mutex_lock(&mcp->lock);
    if (!strcmp(mcp->current, id))
        atomic_store(&mcp->abort, 1);
    snprintf(mcp->cancelled[mcp->next++ % MCP_CANCELLED], MCP_MAX_ID, "%s", id);
    pthread_mutex_unlock(&mcp->lock);
}

void mgl_mcp_see(mgl_mcp *mcp, const char *message, size_t length)
{
    enum { LONGEST = 4096 }; /* a cancel notification is short */
    mgl_json json = {0};
    char id[MCP_MAX_ID];
    if (length > LONGEST || mgl_json_parse(message, length, LONGEST, "message", &json, NULL))
        return;
    const cJSON *root = cJSON_IsObject(json.root) ? json.root : NULL;
    const cJSON *method = root ? mgl_json_member(root, "method") : NULL;
    const cJSON *params = root ? mgl_json_member(root, "params") : NULL;
    const cJSON *of = cJSON_IsObject(params) ? mgl_json_member(params, "requestId") : NULL;
    if (cJSON_IsString(method) && !strcmp(method->valuestring, "notifications/cancelled") && of &&
        print_id(of, id))
        note_cancelled(mcp, id);
    mgl_json_clear(&json);
}

void mgl_mcp_end_waits(mgl_mcp *mcp)
{
    atomic_store(&mcp->over, true);
}

/* ---- opening --------------------------------------------------------------------------------- */

mgl_status mgl_mcp_open(const mgl_mcp_options *options, mgl_mcp **out, mgl_error *err)
{
    *out = NULL;
    mgl_mcp *mcp = mgl_alloc_zero(1, sizeof *mcp);
    if (!mcp)
        return mgl_fail_memory(err, sizeof *mcp);
    mcp->allow_trials = options->allow_trials;
    snprintf(mcp->store, sizeof mcp->store, "%s", options->store ? options->store : "");
    snprintf(mcp->kernels, sizeof mcp->kernels, "%s", options->kernels ? options->kernels : "");
    for (int i = 0; i < options->folder_count && i < MGL_MCP_MAX_FOLDERS; i++, mcp->folder_count++)
        if (!realpath(options->folders[i], mcp->folders[i])) {
            mgl_free(mcp);
            return mgl_fail_path(err, options->folders[i], "a folder that may be read");
        }
    pthread_mutex_init(&mcp->lock, NULL);
    *out = mcp;
    return MGL_OK;
}

void mgl_mcp_close(mgl_mcp *mcp)
{
    if (!mcp)
        return;
    pthread_mutex_destroy(&mcp->lock);
    mgl_free(mcp);
}
