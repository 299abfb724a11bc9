/* megalith campaign history: prints one line per trial. */
#include "cli/campaign/campaign.h"

#include "cli/signals.h"

#define HISTORY_OPTIONS(X)                                                                         \
    X(int, from, "--from", "N", 1, 1000000000,                                                     \
      "number of the first trial (1; with --limit: the last trials)")                              \
    X(int, limit, "--limit", "N", 1, 1000000000,                                                   \
      "print the last N trials, oldest first; with --from: N trials from there (all)")             \
    MGL_CLI_STORE_OPTION(X)                                                                        \
    MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(HISTORY_OPTIONS)

static mgl_status print_trial(void *user, const mgl_trial *trial, mgl_error *err)
{
    (void)user;
    mgl_text line = {0};
    mgl_answer_line(trial, &line);
    if (line.failed)
        mgl_cli_lose_output();
    else
        mgl_cli_printf("%s%s\n", line.bytes, trial->control ? " (control)" : "");
    mgl_text_clear(&line);
    return mgl_cli_check_cancel(err);
}

static mgl_status put_trial(void *user, const mgl_trial *trial, mgl_error *err)
{
    mgl_json_out_object(user, NULL);
    mgl_answer_trial(user, trial);
    mgl_status status = mgl_answer_proposal(user, &trial->proposal, err);
    mgl_json_out_close_object(user);
    return status ? status : mgl_cli_check_cancel(err);
}

/* The number of the first trial to print. */
static int64_t find_first(const struct options *o, const mgl_campaign_record *record)
{
    if (o->from.given || !o->limit.given)
        return o->from.given ? o->from.value : 1;
    return mgl_answer_last(record, o->limit.value);
}

static mgl_status history(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    mgl_cli_campaign c = {0};
    mgl_json_out out = {0};
    mgl_status status = mgl_cli_campaign_open(o->store.value, operand, false, &c, err);
    int64_t from = find_first(o, &c.record);
    if (!status && !o->json.given)
        status = mgl_store_each_trial(c.store, c.record.id, from, o->limit.value, print_trial, NULL,
                                      err);
    if (!status && o->json.given) {
        mgl_json_out_begin(&out, "megalith.campaign/1");
        mgl_json_out_string(&out, "name", c.record.name);
        mgl_json_out_array(&out, "trials");
        status =
            mgl_store_each_trial(c.store, c.record.id, from, o->limit.value, put_trial, &out, err);
        mgl_json_out_close_array(&out);
    }
    if (!status && o->json.given)
        mgl_cli_end_json(&out);
    mgl_text_clear(&out.text);
    mgl_cli_campaign_close(&c);
    return status;
}

const mgl_cli_verb mgl_cli_campaign_history_verb = {
    .name = "campaign history",
    .operand = "NAME",
    .operand_optional = true,
    .summary =
        "prints a line for each trial: verdict, proposer, gain; with --json also the proposal",
    .example = "  megalith campaign history --limit 20\n"
               "  megalith campaign history --from 100 --limit 20",
    MGL_CLI_VERB_OPTIONS,
    .run = history,
};
