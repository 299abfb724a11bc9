/*
 * MCP tools for schedules and campaigns. A tool is a row with its arguments and a function that
 * writes the answer. The arguments give the schema in tools/list and the checks of calls.
 */
#include "autotune/mcp/mcp_parts.h"

#include "autotune/answers/answer.h"
#include "autotune/report/report.h"
#include "autotune/tune.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "importer/checkpoint.h"
#include "schedule/knobs.h"
#include "validator/validator.h"
#include "vm/pipeline/machine_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_TRIALS = 200, MOST_WAIT_S = 600 };

/* ---- the store ------------------------------------------------------------------------------- */

/* Opens the store and the named campaign; the newest campaign if none is named. */
static mgl_status open_campaign(const mcp_call *call, bool write, mcp_campaign *out, mgl_error *err)
{
    mgl_text path = {0};
    *out = (mcp_campaign){0};
    mgl_status status = call->mcp->store[0] ? MGL_OK : mgl_store_default_path(&path, err);
    if (!status)
        status = mgl_store_open(call->mcp->store[0] ? call->mcp->store : path.bytes, write,
                                &out->store, err);
    mgl_text_clear(&path);
    if (!status)
        status =
            mgl_store_find_campaign(out->store, mcp_text_of(call, "campaign"), &out->record, err);
    return status ? status : mgl_tune_look_state(out->store, &out->record, err);
}

static void close_campaign(mcp_campaign *campaign)
{
    mgl_campaign_record_clear(&campaign->record);
    mgl_store_close(campaign->store);
}

mgl_status mcp_run_in_campaign(const mcp_tool *tool, const mcp_call *call, mgl_json_out *out,
                               mgl_error *err)
{
    mcp_campaign campaign;
    mgl_status status = open_campaign(call, tool->writes, &campaign, err);
    if (!status)
        status = tool->in_campaign(call, &campaign, out, err);
    close_campaign(&campaign);
    return status;
}

static mgl_status campaign_status(const mcp_call *call, mcp_campaign *c, mgl_json_out *out,
                                  mgl_error *err)
{
    mgl_answer_counts counts;
    (void)call;
    mgl_status status = mgl_answer_count(c->store, c->record.id, &counts, err);
    if (status)
        return status;
    mgl_answer_campaign(out, &c->record);
    mgl_answer_outcomes(out, &counts);
    status = mgl_answer_chat(out, c->store, c->record.id, err);
    if (!status)
        status = mgl_answer_final(out, c->store, c->record.id, err);
    return status ? status : mgl_answer_quarantined(out, c->store, c->record.id, err);
}

static mgl_status put_trial(void *user, const mgl_trial *trial, mgl_error *err)
{
    mgl_json_out *out = user;
    (void)err;
    mgl_json_out_object(out, NULL);
    mgl_answer_trial(out, trial);
    mgl_json_out_close_object(out);
    return MGL_OK;
}

static mgl_status history(const mcp_call *call, mcp_campaign *c, mgl_json_out *out, mgl_error *err)
{
    const int64_t limit = mcp_number_of(call, "limit", 20);
    const int64_t from = mcp_number_of(call, "from", mgl_answer_last(&c->record, limit));
    mgl_json_out_array(out, "trials");
    mgl_status status =
        mgl_store_each_trial(c->store, c->record.id, from, limit, put_trial, out, err);
    mgl_json_out_close_array(out);
    return status;
}

static mgl_status best(const mcp_call *call, mcp_campaign *c, mgl_json_out *out, mgl_error *err)
{
    (void)call;
    mgl_status status = mgl_answer_best(out, c->store, &c->record, err);
    return status ? status : mgl_answer_put_predicted(out, c->store, &c->record, err);
}

static mgl_status report(const mcp_call *call, mcp_campaign *c, mgl_json_out *out, mgl_error *err)
{
    mgl_text text = {0};
    (void)call;
    mgl_status status = mgl_report_markdown(c->store, &c->record, &text, err);
    if (!status)
        mgl_json_out_string(out, "markdown", text.bytes);
    mgl_text_clear(&text);
    return status;
}

/* ---- the space ------------------------------------------------------------------------------- */

/* Reads the space of the named campaign. If none is named and none exists, `found` is false. */
static mgl_status read_space(const mcp_call *call, mcp_campaign *open, mgl_search_space *space,
                             bool *found, mgl_error *err)
{
    const mgl_campaign_record *campaign = &open->record;
    mgl_target target;
    mgl_status status = open_campaign(call, false, open, err);
    *found = !status;
    if (status == MGL_BAD_INPUT && !mcp_text_of(call, "campaign"))
        return MGL_OK;
    if (!status && (!campaign->target || !campaign->space))
        status =
            mgl_fail(err, MGL_BAD_INPUT, campaign->name, "the campaign's record is not complete");
    if (!status)
        status = mgl_target_parse(campaign->target, &target, err);
    if (!status) /* number formats are accepted here, because the record contains only allowed ones
                  */
        status = mgl_search_space_parse(campaign->space, strlen(campaign->space), campaign->name,
                                        &target, true, space, err);
    return status;
}

/* The knob in the space; NULL: the space does not contain it. */
static const mgl_knob *find_in_space(const mgl_search_space *space, const char *name)
{
    for (int k = 0; k < space->count; k++)
        if (!strcmp(space->knobs[k].name, name))
            return &space->knobs[k];
    return NULL;
}

static void put_in_space(mgl_json_out *out, const mgl_knob *knob)
{
    mgl_json_out_bool(out, "in_space", knob != NULL);
    if (!knob)
        return;
    mgl_json_out_array(out, "values_drawn");
    for (int v = 0; v < knob->count; v++)
        mgl_json_out_int(out, NULL, knob->values[v]);
    mgl_json_out_close_array(out);
}

/* `space` is NULL without a campaign. */
static void put_knob(mgl_json_out *out, int knob, const mgl_search_space *space)
{
    const mgl_knob_row *row = mgl_knob_row_get(knob);
    mgl_json_out_object(out, NULL);
    mgl_json_out_string(out, "name", row->name);
    mgl_json_out_string(out, "what", row->what);
    mgl_json_out_int(out, "lowest", row->lowest);
    mgl_json_out_int(out, "highest", row->highest);
    mgl_json_out_int(out, "multiple_of", row->multiple);
    mgl_json_out_bool(out, "zero_leaves_it_to_lowering", row->open);
    mgl_json_out_int(out, "default", row->preset);
    mgl_json_out_bool(out, "changes_a_number_format", row->changes_format);
    if (space)
        put_in_space(out, find_in_space(space, row->name));
    mgl_json_out_close_object(out);
}

static void put_move(mgl_json_out *out, mgl_move_kind kind, const mgl_search_space *space)
{
    mgl_text usage = {0};
    mgl_move_print_usage(kind, &usage);
    out->text.failed |= usage.failed;
    mgl_json_out_object(out, NULL);
    mgl_json_out_string(out, "name", mgl_move_name(kind));
    mgl_json_out_string(out, "usage", usage.bytes);
    mgl_json_out_string(out, "what", mgl_move_what(kind));
    if (space)
        mgl_json_out_bool(out, "in_space", space->moves & 1u << kind);
    mgl_json_out_close_object(out);
    mgl_text_clear(&usage);
}

static void put_space(mgl_json_out *out, const char *campaign, const mgl_search_space *space)
{
    mgl_json_out_string(out, "campaign", campaign);
    mgl_json_out_array(out, "knobs");
    for (int k = 0; k < mgl_knob_count(); k++)
        put_knob(out, k, space);
    mgl_json_out_close_array(out);
    mgl_json_out_array(out, "moves");
    for (int m = 0; m < MGL_MOVE_COUNT; m++)
        put_move(out, (mgl_move_kind)m, space);
    mgl_json_out_close_array(out);
    mgl_json_out_string(out, "proposal",
                        "{\"schema\": \"megalith.proposal/1\", \"hypothesis\": \"one sentence\", "
                        "\"config\": {\"page_bytes\": 8192}, \"moves\": [\"rows layer=all step=o "
                        "from=12 to=13 count=1\"]}");
    mgl_json_out_string(out, "frozen",
                        "the validator, the machines, the oracles and the statistics: only config, "
                        "moves and schedule text may be changed");
}

static mgl_status describe_space(const mcp_call *call, mgl_json_out *out, mgl_error *err)
{
    mcp_campaign campaign;
    mgl_search_space space;
    bool found;
    mgl_status status = read_space(call, &campaign, &space, &found, err);
    if (!status)
        put_space(out, found ? campaign.record.name : NULL, found ? &space : NULL);
    close_campaign(&campaign);
    return status;
}

/* ---- checking -------------------------------------------------------------------------------- */

static bool is_within(const char *folder, const char *path)
{
    size_t length = strlen(folder);
    return !strncmp(path, folder, length) && (!path[length] || path[length] == '/' || length == 1);
}

static bool may_read(const mgl_mcp *mcp, const char *path)
{
    for (int i = 0; i < mcp->folder_count; i++)
        if (is_within(mcp->folders[i], path))
            return true;
    return false;
}

/* Resolves a path, which must be in one of the readable folders; `key` is the argument with the
 * path. */
static mgl_status confine(const mgl_mcp *mcp, const char *key, const char *name,
                          char path[PATH_MAX], mgl_error *err)
{
    if (!mcp->folder_count)
        return mgl_fail(err, MGL_USAGE, key,
                        "no readable folder was named (megalith mcp --folders): pass the text "
                        "instead");
    if (realpath(name, path) && may_read(mcp, path))
        return MGL_OK;
    return mgl_fail(err, MGL_USAGE, key, "there is no such file in the folders that may be read");
}

/* A copy of an argument as text. */
static mgl_status copy_argument(const cJSON *item, char **out, mgl_error *err)
{
    char *made = cJSON_IsString(item) ? NULL : cJSON_PrintUnformatted(item);
    const char *text = cJSON_IsString(item) ? item->valuestring : made;
    *out = text ? mgl_strdup(text) : NULL;
    cJSON_free(made);
    return *out ? MGL_OK : mgl_fail_memory(err, 1);
}

mgl_status mcp_read_either(const mcp_call *call, const char *key, const char *path, size_t most,
                           char place[PATH_MAX], char **out, size_t *length, mgl_error *err)
{
    const cJSON *item = mcp_argument_of(call, key);
    const char *name = mcp_text_of(call, path);
    *out = NULL;
    if (!item == !name)
        return mgl_fail(err, MGL_USAGE, "arguments", "one of %s and %s is needed", key, path);
    if (name) {
        mgl_status status = confine(call->mcp, path, name, place, err);
        return status ? status : mgl_file_read_regular(place, most, out, length, err);
    }
    snprintf(place, PATH_MAX, "%s", key);
    mgl_status status = copy_argument(item, out, err);
    *length = status ? 0 : strlen(*out);
    return status;
}

mgl_status mcp_read_text(const mcp_call *call, const char *key, size_t most, char place[PATH_MAX],
                         char **out, size_t *length, mgl_error *err)
{
    return mcp_read_either(call, key, "path", most, place, out, length, err);
}

static mgl_status read_schedule(const mcp_call *call, mgl_program **out, mgl_error *err)
{
    char place[PATH_MAX], *text;
    size_t length;
    mgl_status status =
        mcp_read_text(call, "text", MGL_SCHEDULE_MAX_TEXT, place, &text, &length, err);
    if (!status && mcp_is_given(call, "path") && !mgl_schedule_begins(text, length))
        status = mgl_fail(err, MGL_BAD_INPUT, place,
                          "the file is no schedule: its first line must be `megalith 1`");
    if (!status)
        status = mgl_schedule_parse(text, length, place, out, err);
    mgl_free(text);
    return status;
}

/* The blob folder of a snapshot in a Hugging Face cache. The files of
 * models--ORG--NAME/snapshots/REVISION are links into models--ORG--NAME/blobs. False: the folder
 * is not a snapshot. */
static bool find_blobs(const char *folder, char blobs[PATH_MAX])
{
    char snapshots[PATH_MAX], root[PATH_MAX], above[PATH_MAX];
    if (strlen(folder) + sizeof "/blobs" > PATH_MAX)
        return false;
    mgl_file_split(folder, snapshots);
    const char *name = mgl_file_split(snapshots, root);
    if (strcmp(name, "snapshots") != 0 || strncmp(mgl_file_split(root, above), "models--", 8) != 0)
        return false;
    strcpy(stpcpy(blobs, root), "/blobs");
    return true;
}

/* Checks a link in the folder: its target must be in a readable folder. A link in a snapshot may
 * also lead to the snapshot's own blobs. */
static mgl_status confine_file(const mgl_mcp *mcp, const char *folder, const char *name,
                               mgl_error *err)
{
    char path[PATH_MAX], target[PATH_MAX], blobs[PATH_MAX];
    struct stat facts;
    if (strlen(folder) + strlen(name) + 2 > sizeof path)
        return mgl_fail(err, MGL_USAGE, name, "its path is too long");
    strcpy(stpcpy(stpcpy(path, folder), "/"), name);
    if (realpath(path, target)
            ? may_read(mcp, target) || (find_blobs(folder, blobs) && is_within(blobs, target))
            : lstat(path, &facts) || !S_ISLNK(facts.st_mode)) /* a dangling link is rejected: its
                                                               * target may exist when it is read */
        return MGL_OK;
    return mgl_fail(err, MGL_USAGE, "model",
                    "its %.80s is a link that leads out of the folders that may be read (megalith "
                    "mcp --folders)",
                    name);
}

static mgl_status confine_model(const mgl_mcp *mcp, const char *path, mgl_error *err)
{
    mgl_file_list list = {0};
    struct stat facts;
    bool stands;
    mgl_status status = mgl_file_look(path, &stands, &facts, err);
    if (status || !stands || !S_ISDIR(facts.st_mode))
        return status;
    status = mgl_folder_list(path, "", &list, err);
    for (size_t i = 0; i < list.count && !status; i++)
        status = confine_file(mcp, path, list.names[i], err);
    mgl_file_list_clear(&list);
    return status;
}

mgl_status mcp_find_model(const mcp_call *call, const char *key, char path[PATH_MAX],
                          mgl_error *err)
{
    const char *name = mcp_text_of(call, key);
    path[0] = 0;
    if (!name)
        return MGL_OK;
    mgl_status status = confine(call->mcp, key, name, path, err);
    return status ? status : confine_model(call->mcp, path, err);
}

static mgl_status import_model(const mcp_call *call, mgl_checkpoint **out, mgl_error *err)
{
    char path[PATH_MAX];
    *out = NULL;
    mgl_status status = mcp_find_model(call, "model", path, err);
    return status || !path[0] ? status : mgl_import(path, out, err);
}

static mgl_status check_schedule(const mcp_call *call, mgl_json_out *out, mgl_error *err)
{
    mgl_program *program = NULL;
    mgl_checkpoint *checkpoint = NULL;
    mgl_verdict verdict = {0};
    mgl_status status = read_schedule(call, &program, err);
    if (!status)
        status = import_model(call, &checkpoint, err);
    if (!status)
        status = mgl_check_abort(&call->mcp->abort, err);
    if (!status)
        status = mgl_validator_check(program, checkpoint ? checkpoint->graph : NULL, &verdict, err);
    if (!status)
        status = mgl_machine_warn(program, &verdict, err);
    if (!status)
        mgl_answer_verdict(out, &verdict);
    mgl_verdict_clear(&verdict);
    mgl_checkpoint_close(checkpoint);
    mgl_program_free(program);
    return status;
}

static mgl_status explain_code(const mcp_call *call, mgl_json_out *out, mgl_error *err)
{
    const char *code = mcp_text_of(call, "code");
    mgl_explanation found = {.size = sizeof found};
    mgl_json_out_string(out, "code", code);
    if (mgl_explain_code(code, &found, NULL))
        return mgl_fail(err, MGL_USAGE, "code",
                        "there is no such code: MGnnn of check_schedule, or an outcome of a trial");
    if (found.title) {
        mgl_json_out_string(out, "title", found.title);
        mgl_json_out_string(out, "meaning", found.meaning);
        mgl_json_out_string(out, "example", found.example);
    }
    mgl_json_out_string(out, "remedy", found.remedy);
    if (!found.title)
        mgl_json_out_int(out, "exit", found.exit_code);
    return MGL_OK;
}

/* ---- trials ---------------------------------------------------------------------------------- */

static void sleep_a_moment(void)
{
    const struct timespec moment = {.tv_nsec = 50000000};
    nanosleep(&moment, NULL);
}

/* Waits until the submission is a trial, the time is over, the request is cancelled, or the
 * client is gone. */
static mgl_status await_trial(const mcp_call *call, mgl_store *store, int64_t id, double seconds,
                              int64_t *number, mgl_error *err)
{
    double until = mgl_clock_s() + seconds;
    mgl_status status = MGL_OK;
    for (*number = 0; !status && !*number && mgl_clock_s() < until && !call->mcp->over;) {
        mgl_submission submission = {0};
        sleep_a_moment();
        status = mgl_check_abort(&call->mcp->abort, err);
        if (!status)
            status = mgl_store_get_submission(store, id, &submission, err);
        *number = submission.trial;
        mgl_submission_clear(&submission);
    }
    return status;
}

static mgl_status queue_proposal(const mcp_call *call, mgl_store *store,
                                 const mgl_campaign_record *campaign, int64_t *id, mgl_error *err)
{
    const cJSON *proposal = mgl_json_member(call->arguments, "proposal");
    const char *schedule = mcp_text_of(call, "schedule");
    if (!proposal == !schedule)
        return mgl_fail(err, MGL_USAGE, "arguments", "one of proposal and schedule is needed");
    char *made = proposal ? cJSON_PrintUnformatted(proposal) : NULL;
    if (proposal && !made)
        return mgl_fail_memory(err, 1);
    const char *text = made ? made : schedule;
    mgl_status status = mgl_tune_submit(store, campaign, text, strlen(text), "mcp", id, err);
    cJSON_free(made);
    return status;
}

/* Writes whether a process runs the campaign. If no process runs it, a submission gets no verdict.
 */
static mgl_status put_running(mgl_store *store, const char *campaign, mgl_json_out *out,
                              mgl_error *err)
{
    bool running;
    mgl_text note = {0};
    mgl_status status = mgl_tune_is_running(store, campaign, &running, err);
    if (status)
        return status;
    mgl_json_out_bool(out, "running", running);
    if (!running)
        mgl_text_format(&note,
                        "no process runs the campaign: the proposal stays in the queue until "
                        "`megalith campaign resume %s`, or the `megalith tune` that began the "
                        "campaign, takes it",
                        campaign);
    if (note.bytes)
        mgl_json_out_string(out, "note", note.bytes);
    out->text.failed |= note.failed;
    mgl_text_clear(&note);
    return MGL_OK;
}

static mgl_status submit_trial(const mcp_call *call, mcp_campaign *c, mgl_json_out *out,
                               mgl_error *err)
{
    mgl_trial trial = {0};
    int64_t id = 0, number = 0;
    const double wait_s = (double)mcp_number_of(call, "wait_s", 0);
    mgl_status status = queue_proposal(call, c->store, &c->record, &id, err);
    if (!status)
        status = await_trial(call, c->store, id, wait_s, &number, err);
    if (!status && number)
        status = mgl_store_get_trial(c->store, c->record.id, number, false, &trial, err);
    if (!status)
        mgl_json_out_int(out, "submission", id);
    if (!status && !number)
        status = put_running(c->store, c->record.name, out, err);
    if (!status)
        mgl_json_out_string(out, "state", number ? "decided" : "queued");
    if (!status && number) {
        mgl_json_out_object(out, "trial");
        mgl_answer_trial(out, &trial);
        mgl_json_out_close_object(out);
    }
    mgl_trial_clear(&trial);
    return status;
}

/* ---- the list -------------------------------------------------------------------------------- */

#define CAMPAIGN                                                                                   \
    {                                                                                              \
        "campaign", MCP_STRING, false, 0, MCP_MAX_NAME,                                            \
            "name of the campaign; the newest where left out"                                      \
    }
static const mcp_param of_campaign[] = {CAMPAIGN};
static const mcp_param of_history[] = {
    CAMPAIGN,
    {"from", MCP_INTEGER, false, 1, INT64_C(1) << 53,
     "number of the first trial (the last trials)"},
    {"limit", MCP_INTEGER, false, 1, MOST_TRIALS, "trials at most (20)"}};
static const mcp_param of_check[] = {
    {"text", MCP_STRING, false, 0, MGL_SCHEDULE_MAX_TEXT, "the schedule's text"},
    {"path", MCP_STRING, false, 0, MCP_MAX_PATH, "or a file that contains the text"},
    {"model", MCP_STRING, false, 0, MCP_MAX_PATH,
     "folder of the model that the schedule must compute"}};
static const mcp_param of_code[] = {
    {"code", MCP_STRING, true, 0, 40,
     "a code of check_schedule such as MG203, or an outcome of a trial such as NO_GAIN"}};
static const mcp_param of_submit[] = {
    CAMPAIGN,
    {"proposal", MCP_OBJECT, false, 0, 0, "megalith.proposal/1: config, moves, hypothesis"},
    {"schedule", MCP_STRING, false, 0, MGL_SCHEDULE_MAX_TEXT, "or a whole schedule text"},
    {"wait_s", MCP_INTEGER, false, 0, MOST_WAIT_S, "seconds to wait for the verdict (0)"}};

static const mcp_tool tools[] = {
    {"describe_space", "Describe the search space",
     "Lists the knobs with their ranges and the moves, whether the campaign's space contains each, "
     "and the form of a proposal.",
     MCP_PARAMS(of_campaign), false, .run = describe_space},
    {"check_schedule", "Prove a schedule safe",
     "Validates a schedule text: accepted, or diagnostics with code, level, line and witness. "
     "Accepted with a warning: the machine of the target cannot run it.",
     MCP_PARAMS(of_check), false, .run = check_schedule},
    {"explain_code", "Explain a code", "Explains what a code means and how to correct the fault.",
     MCP_PARAMS(of_code), false, .run = explain_code},
    {"submit_trial", "Submit a trial",
     "Queues a proposal for a campaign. Returns the verdict if wait_s is long enough. Otherwise "
     "returns \"queued\", and in \"running\" whether a process runs the campaign.",
     MCP_PARAMS(of_submit), true, .in_campaign = submit_trial},
    {"campaign_status", "Show the status of a campaign",
     "Shows its state, its trials by outcome, and the time spent.", MCP_PARAMS(of_campaign), false,
     .in_campaign = campaign_status},
    {"history", "List trials", "Lists the last trials of a campaign, with verdicts and gains.",
     MCP_PARAMS(of_history), false, .in_campaign = history},
    {"best", "Show the best program", "Shows the incumbent with its proposal.",
     MCP_PARAMS(of_campaign), false, .in_campaign = best},
    {"report", "Report on a campaign", "Returns the whole report as Markdown.",
     MCP_PARAMS(of_campaign), false, .in_campaign = report}};

static const mcp_tool_list own_tools = {MCP_PARAMS(tools)};

const mcp_tool *mcp_tool_get(int index)
{
    const mcp_tool_list *const lists[] = {&own_tools, &mcp_kernel_tools, &mcp_transform_tools,
                                          &mcp_ptx_tools, &mcp_experiment_log_tools};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; index -= lists[i++]->count)
        if (index < lists[i]->count)
            return &lists[i]->tools[index];
    return NULL;
}
