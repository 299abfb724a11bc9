/* Makes and prints the choice of experiment_log.h: the next op and the ideas for it. */
#include "autotune/kernels/versions/experiment_log.h"

void mgl_experiment_log_choose(const mgl_experiment_log *experiment_log,
                               mgl_experiment_log_choice *choice)
{
    choice->any = mgl_shares_order(&choice->shares, experiment_log);
    choice->idea_count =
        mgl_experiment_log_playbook(experiment_log, NULL, choice->ideas, MGL_EXPERIMENT_LOG_IDEAS);
}

static void put_op(const mgl_op_share *s, mgl_json_out *out)
{
    mgl_json_out_object(out, NULL);
    mgl_json_out_string(out, "op", s->op);
    mgl_json_out_real(out, "share", s->share);
    mgl_json_out_real(out, "gain", s->gain);
    mgl_json_out_int(out, "reverts", s->reverts);
    mgl_json_out_string(out, "state", mgl_op_state_what(s->state));
    mgl_json_out_close_object(out);
}

static void put_idea(const mgl_play *idea, mgl_json_out *out)
{
    mgl_json_out_object(out, NULL);
    mgl_json_out_string(out, "idea", idea->name);
    mgl_json_out_int(out, "tried", idea->tried);
    mgl_json_out_int(out, "kept", idea->kept);
    mgl_json_out_real(out, "mean_gain", idea->mean_gain);
    mgl_json_out_close_object(out);
}

void mgl_experiment_log_put_choice(const mgl_experiment_log_choice *choice, mgl_json_out *out)
{
    mgl_json_out_string(out, "next", choice->any ? choice->shares.ops[0].op : NULL);
    mgl_json_out_array(out, "ops");
    for (int i = 0; i < choice->shares.count; i++)
        put_op(&choice->shares.ops[i], out);
    mgl_json_out_close_array(out);
    mgl_json_out_array(out, "ideas");
    for (int i = 0; i < choice->idea_count; i++)
        put_idea(&choice->ideas[i], out);
    mgl_json_out_close_array(out);
}
