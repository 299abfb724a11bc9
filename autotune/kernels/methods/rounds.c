/*
 * Implements the rounds: profile, instruction, edit span, arbiter, and versions of accepted texts.
 */
#include "autotune/kernels/methods/rounds.h"

#include "base/memory.h"

typedef struct rounds {
    const mgl_rounds_options *options;
    mgl_model_client *model_client;
    const mgl_waiter *waiter;
    mgl_rounds_result *out;
    mgl_arbiter arbiter;
    mgl_text standing;             /* the base text of the next round */
    mgl_profile profile, accepted; /* profiles of `standing` and of the last accepted text */
    mgl_text delta;                /* the metrics that the last change made worse */
} rounds;

void mgl_rounds_result_clear(mgl_rounds_result *result)
{
    mgl_text_clear(&result->text);
    *result = (mgl_rounds_result){0};
}

static mgl_status copy(const char *text, size_t length, mgl_text *to, mgl_error *err)
{
    to->length = 0;
    mgl_text_append(to, text, length);
    return to->failed ? mgl_fail_memory(err, length) : MGL_OK;
}

static mgl_status look(const rounds *r, const char *text, size_t length, const mgl_facts *facts,
                       mgl_profile *out, mgl_error *err)
{
    *out = mgl_profile_unknown();
    mgl_profile_add_facts(out, facts);
    return r->options->profile && !r->options->no_profile
               ? r->options->profile(r->options->profile_user, text, length, out, err)
               : MGL_OK;
}

static void put_instruction(const rounds *r, mgl_text *out)
{
    mgl_text_put(out, "Make it faster by one change with one reason; it computes what it computed "
                      "before.");
    if (r->options->no_profile)
        return;
    mgl_text_put(out, "\n\nWhat is in its way: ");
    mgl_profile_hint(&r->profile, out);
    if (r->delta.length)
        mgl_text_format(out, "\n%s.", r->delta.bytes);
}

/* Sets the base text of the next round. */
static mgl_status stand(rounds *r, const mgl_edit_span *site, const mgl_ruling *ruling,
                        const mgl_profile *profile, mgl_error *err)
{
    size_t length;
    const char *text = mgl_edit_span_text(site, &length);
    mgl_text_clear(&r->delta);
    if (text)
        mgl_profile_delta_hint(&r->profile, profile, &r->delta);
    mgl_status status = MGL_OK;
    if (text && ruling->kept)
        status = copy(text, length, &r->out->text, err);
    if (!status && text && ruling->stand)
        status = copy(text, length, &r->standing, err);
    else if (!status && !ruling->stand)
        status = copy(r->out->text.bytes, r->out->text.length, &r->standing, err);
    if (ruling->kept)
        r->accepted = *profile;
    r->profile = ruling->stand && text ? *profile : r->accepted;
    return status;
}

static mgl_status keep(const rounds *r, const mgl_trial_verdict *verdict, const char *instruction,
                       mgl_error *err)
{
    mgl_version_record record = {.unit = r->options->work->unit,
                                 .arch = r->options->work->arch,
                                 .note = instruction,
                                 .text = r->out->text.bytes,
                                 .verdict = *verdict};
    return r->options->versions ? mgl_versions_add(r->options->versions, &record, err) : MGL_OK;
}

static mgl_status decide(rounds *r, const mgl_edit_span *site, mgl_round_report *report,
                         mgl_error *err)
{
    size_t length;
    const char *text = mgl_edit_span_text(site, &length);
    mgl_profile profile = mgl_profile_unknown();
    mgl_status status =
        text ? look(r, text, length, &report->verdict->facts, &profile, err) : MGL_OK;
    if (status)
        return status;
    report->class = mgl_profile_class(&profile);
    report->ruling = mgl_arbiter_decide(&r->arbiter, report->verdict);
    status = stand(r, site, &report->ruling, &profile, err);
    if (!status && report->ruling.kept)
        status = keep(r, report->verdict, report->instruction, err);
    r->out->finish = report->ruling.finish;
    r->out->accepted = r->arbiter.accepted;
    r->out->rounds = report->number;
    if (!status && r->options->on_round)
        r->options->on_round(r->options->user, report);
    return status;
}

static mgl_status open_edit_span(const rounds *r, const char *instruction, mgl_edit_span **out,
                                 mgl_error *err)
{
    const mgl_rounds_options *o = r->options;
    const mgl_edit_span_options options = {.work = o->work,
                                           .text = r->standing.bytes,
                                           .length = r->standing.length,
                                           .instruction = instruction,
                                           .region = o->region,
                                           .place = {NULL, r->arbiter.round, 0},
                                           .calls = o->one_shot    ? 1
                                                    : o->calls > 0 ? o->calls
                                                                   : MGL_ROUNDS_CALLS};
    return mgl_edit_span_open(&options, out, err);
}

static mgl_status run_round(rounds *r, mgl_error *err)
{
    mgl_text instruction = {0};
    mgl_edit_span *site = NULL;
    put_instruction(r, &instruction);
    mgl_status status = instruction.failed ? mgl_fail_memory(err, 1)
                                           : open_edit_span(r, instruction.bytes, &site, err);
    if (!status)
        status = mgl_feedback_run(mgl_edit_span_loop(site), r->model_client, r->waiter,
                                  &r->out->stopped, err);
    if (!status) {
        const mgl_feedback *loop = mgl_edit_span_loop(site);
        mgl_round_report report = {.number = r->arbiter.round + 1,
                                   .calls = mgl_feedback_count(loop),
                                   .instruction = instruction.bytes,
                                   .verdict = mgl_feedback_verdict(loop)};
        r->out->calls += report.calls;
        if (report.verdict && !r->out->stopped)
            status = decide(r, site, &report, err);
    }
    mgl_edit_span_close(site);
    mgl_text_clear(&instruction);
    return status;
}

mgl_status mgl_rounds_run(const mgl_rounds_options *options, mgl_model_client *model_client,
                          const mgl_waiter *waiter, mgl_rounds_result *out, mgl_error *err)
{
    rounds r = {.options = options,
                .model_client = model_client,
                .waiter = waiter,
                .out = out,
                .arbiter = {.rounds = options->one_shot ? 1 : options->rounds}};
    const mgl_facts unknown = {0};
    *out = (mgl_rounds_result){0};
    mgl_status status = copy(options->text, options->length, &r.standing, err);
    if (!status)
        status = copy(options->text, options->length, &out->text, err);
    if (!status)
        status = look(&r, options->text, options->length, &unknown, &r.profile, err);
    r.accepted = r.profile;
    while (!status && !out->stopped && !out->finish)
        status = run_round(&r, err);
    mgl_text_clear(&r.standing);
    mgl_text_clear(&r.delta);
    if (status)
        mgl_rounds_result_clear(out);
    return status;
}
