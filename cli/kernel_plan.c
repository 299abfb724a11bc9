/* megalith kernel plan SHARES: which op is worked on next, and by which ideas. */
#include "cli/kernel_loop.h"

#define PLAN_OPTIONS(X)                                                                            \
    X(text, ledger, "--ledger", "F.json", 0, 0, "what was tried (ledger.json in --folder)")        \
    MGL_CLI_FOLDER_OPTION(X)                                                                       \
    MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(PLAN_OPTIONS)

enum { IDEAS = 5 };

static void put_json(const mgl_shares *shares, const mgl_play *ideas, int count, bool any)
{
    mgl_json_out out = {0};
    mgl_json_out_begin(&out, "megalith.kernel/1");
    mgl_json_out_string(&out, "next", any ? shares->ops[0].op : NULL);
    mgl_json_out_array(&out, "ops");
    for (int i = 0; i < shares->count; i++) {
        const mgl_op_share *s = &shares->ops[i];
        mgl_json_out_object(&out, NULL);
        mgl_json_out_string(&out, "op", s->op);
        mgl_json_out_real(&out, "share", s->share);
        mgl_json_out_real(&out, "gain", s->gain);
        mgl_json_out_int(&out, "reverts", s->reverts);
        mgl_json_out_string(&out, "state", mgl_op_state_what(s->state));
        mgl_json_out_close_object(&out);
    }
    mgl_json_out_close_array(&out);
    mgl_json_out_array(&out, "ideas");
    for (int i = 0; i < count; i++) {
        mgl_json_out_object(&out, NULL);
        mgl_json_out_string(&out, "idea", ideas[i].name);
        mgl_json_out_int(&out, "tried", ideas[i].tried);
        mgl_json_out_int(&out, "kept", ideas[i].kept);
        mgl_json_out_real(&out, "mean_gain", ideas[i].mean_gain);
        mgl_json_out_close_object(&out);
    }
    mgl_json_out_close_array(&out);
    mgl_cli_end_json(&out);
}

static void print(const mgl_shares *shares, const mgl_play *ideas, int count, bool any)
{
    mgl_cli_printf("next %s\n", any ? shares->ops[0].op : "nothing: every op is left");
    for (int i = 0; i < shares->count; i++)
        mgl_cli_printf("%-18s %5.1f %% of the time, %5.1f %% to gain at its floor; %s\n",
                       shares->ops[i].op, 100 * shares->ops[i].share, 100 * shares->ops[i].gain,
                       mgl_op_state_what(shares->ops[i].state));
    for (int i = 0; i < count; i++)
        mgl_cli_printf("idea %-13s tried %d, kept %d, %+.2f %% over all\n", ideas[i].name,
                       ideas[i].tried, ideas[i].kept, 100 * ideas[i].mean_gain);
}

static mgl_status plan(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    mgl_ledger ledger = {0};
    mgl_shares shares;
    mgl_play ideas[IDEAS];
    mgl_status status = mgl_cli_ledger_open(o->ledger.value, o->folder.value, &ledger, NULL, err);
    if (!status)
        status = mgl_shares_read(operand, &shares, err);
    if (!status) {
        bool any = mgl_shares_order(&shares, &ledger);
        int count = mgl_ledger_playbook(&ledger, NULL, ideas, IDEAS);
        if (o->json.given)
            put_json(&shares, ideas, count, any);
        else
            print(&shares, ideas, count, any);
    }
    mgl_ledger_clear(&ledger);
    return status;
}

const mgl_cli_verb mgl_cli_kernel_plan_verb = {
    .name = "kernel plan",
    .operand = "SHARES",
    .operand_is_file = true,
    .summary = "which op is worked on next, of a file with each op's time and floor",
    .example = "  megalith kernel plan shares.json",
    MGL_CLI_VERB_OPTIONS,
    .run = plan,
};
