/*
 * megalith kernel choose SHARES: chooses the op to work on next, and ranks the ideas for it, from
 * the experiment log and the file SHARES with each op's time and floor.
 */
#include "cli/kernel/loop.h"

#define CHOOSE_OPTIONS(X)                                                                          \
    X(text, experiment_log, "--log", "F.json", 0, 0,                                               \
      "the experiment log (experiment_log.json in --folder)")                                      \
    MGL_CLI_FOLDER_OPTION(X)                                                                       \
    MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(CHOOSE_OPTIONS)

static void print(const mgl_experiment_log_choice *choice)
{
    mgl_cli_printf("next %s\n",
                   choice->any ? choice->shares.ops[0].op : "nothing: no op is worth more work");
    for (int i = 0; i < choice->shares.count; i++) {
        const mgl_op_share *s = &choice->shares.ops[i];
        mgl_cli_printf("%-18s %5.1f %% of the time, %5.1f %% gain at its lower bound; %s\n", s->op,
                       100 * s->share, 100 * s->gain, mgl_op_state_what(s->state));
    }
    for (int i = 0; i < choice->idea_count; i++) {
        const mgl_play *idea = &choice->ideas[i];
        mgl_cli_printf("idea %-13s tried %d, kept %d, %+.2f %% in total\n", idea->name, idea->tried,
                       idea->kept, 100 * idea->mean_gain);
    }
}

static void tell(const mgl_experiment_log_choice *choice, bool json)
{
    mgl_json_out out = {0};
    if (!json) {
        print(choice);
        return;
    }
    mgl_json_out_begin(&out, "megalith.kernel/1");
    mgl_experiment_log_put_choice(choice, &out);
    mgl_cli_end_json(&out);
}

static mgl_status choose(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    mgl_experiment_log experiment_log = {0};
    mgl_experiment_log_choice made = {0};
    mgl_status status = mgl_kernel_store_experiment_log(o->experiment_log.value, o->folder.value,
                                                        &experiment_log, err);
    if (!status)
        status = mgl_shares_read(operand, &made.shares, err);
    if (!status) {
        mgl_experiment_log_choose(&experiment_log, &made);
        tell(&made, o->json.given);
    }
    mgl_experiment_log_clear(&experiment_log);
    return status;
}

const mgl_cli_verb mgl_cli_kernel_choose_verb = {
    .name = "kernel choose",
    .operand = "SHARES",
    .operand_is_file = true,
    .summary =
        "chooses the next op to work on, from a file with the time and the lower bound of each op",
    .example = "  megalith kernel choose shares.json",
    MGL_CLI_VERB_OPTIONS,
    .run = choose,
};
