/*
 * megalith kernel rounds UNIT: runs rounds of profile, hint, proposal and arbiter until the arbiter
 * stops or the limit of rounds is reached.
 */
#include "cli/kernel/loop.h"
#include "cli/signals.h"

#include "api/cancel.h"
#include "autotune/kernels/methods/rounds.h"

#define ROUNDS_OPTIONS(X)                                                                          \
    X(text, region, "--region", "launch|macros|device", 0, 0, "region to edit (device)")           \
    X(int, rounds, "--rounds", "N", 1, 64, "largest number of rounds (8)")                         \
    X(flag, no_profile, "--no-profile", NULL, 0, 0,                                                \
      "run without profiles and hints, for comparison")                                            \
    X(flag, one_shot, "--one-shot", NULL, 0, 0, "run one round of one call, for comparison")       \
    MGL_CLI_PROFILE_OPTIONS(X)                                                                     \
    MGL_CLI_ASK_OPTIONS(X)                                                                         \
    MGL_CLI_BENCH_OPTIONS(X)                                                                       \
    MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(ROUNDS_OPTIONS)

/* The profile of --ncu and --trace is of the first text. Later texts have only static facts. */
typedef struct first_profile {
    mgl_profile profile;
    bool used;
} first_profile;

static mgl_status give_profile(void *user, const char *text, size_t length, mgl_profile *out,
                               mgl_error *err)
{
    first_profile *first = user;
    (void)text, (void)length, (void)err;
    if (!first->used)
        *out = first->profile;
    first->used = true;
    return MGL_OK;
}

/* The output of rounds: lines, or elements of an open JSON array. */
typedef struct telling {
    bool json;
    mgl_json_out out;
} telling;

static void put_round(const mgl_round_report *r, mgl_json_out *out)
{
    mgl_json_out_object(out, NULL);
    mgl_json_out_int(out, "round", r->number);
    mgl_json_out_int(out, "calls", r->calls);
    mgl_json_out_string(out, "outcome", mgl_outcome_name(r->verdict->outcome));
    mgl_json_out_string(out, "class", mgl_class_name(r->class));
    mgl_json_out_string(out, "decision", mgl_decision_name(r->ruling.decision));
    mgl_json_out_string(out, "finish", r->ruling.finish ? mgl_finish_why(r->ruling.finish) : NULL);
    mgl_json_out_close_object(out);
}

static void on_round(void *user, const mgl_round_report *r)
{
    telling *t = user;
    if (t->json)
        put_round(r, &t->out);
    else
        mgl_cli_printf("round %d: %d call%s, %s, %s, %s%s%s\n", r->number, r->calls,
                       r->calls == 1 ? "" : "s", mgl_outcome_name(r->verdict->outcome),
                       mgl_class_name(r->class), mgl_decision_name(r->ruling.decision),
                       r->ruling.finish ? ": " : "",
                       r->ruling.finish ? mgl_finish_why(r->ruling.finish) : "");
}

static void begin_telling(telling *t, const char *unit)
{
    if (!t->json)
        return;
    mgl_json_out_begin(&t->out, "megalith.kernel/1");
    mgl_json_out_string(&t->out, "unit", unit);
    mgl_json_out_array(&t->out, "rounds");
}

static void tell_result(telling *t, const mgl_rounds_result *result)
{
    const char *stopped = result->stopped ? mgl_outcome_name(result->stopped) : NULL;
    if (t->json) {
        mgl_json_out_close_array(&t->out);
        mgl_json_out_int(&t->out, "calls", result->calls);
        mgl_json_out_int(&t->out, "accepted", result->accepted);
        mgl_json_out_string(&t->out, "stopped", stopped);
        mgl_cli_end_json(&t->out);
    } else {
        mgl_cli_printf("%d round%s, %d call%s, %d accepted%s%s\n", result->rounds,
                       result->rounds == 1 ? "" : "s", result->calls, result->calls == 1 ? "" : "s",
                       result->accepted, stopped ? "; " : "", stopped ? stopped : "");
    }
    mgl_cli_end_with(result->accepted ? MGL_EXIT_KEPT : MGL_EXIT_UNMEASURED);
}

static mgl_status run(const struct options *o, const mgl_kernel_store *b,
                      mgl_model_client *model_client, first_profile *first, mgl_error *err)
{
    mgl_waiter waiter = mgl_waiter_real(mgl_cancel_flag(mgl_cli_cancel()));
    mgl_kernel_region region = MGL_KERNEL_REGION_DEVICE;
    mgl_rounds_result result = {0};
    mgl_text text = {0};
    telling t = {.json = o->json.given};
    mgl_status status =
        o->region.given ? mgl_kernel_find_region(o->region.value, &region, err) : MGL_OK;
    if (!status)
        status = mgl_kernel_session_text(b->bench, &text, NULL, err);
    const mgl_rounds_options options = {.work = mgl_kernel_session_work(b->bench),
                                        .text = text.bytes,
                                        .length = text.length,
                                        .region = region,
                                        .profile = give_profile,
                                        .profile_user = first,
                                        .rounds = (int)o->rounds.value,
                                        .no_profile = o->no_profile.given,
                                        .one_shot = o->one_shot.given,
                                        .versions = mgl_kernel_session_versions(b->bench),
                                        .on_round = on_round,
                                        .user = &t};
    begin_telling(&t, b->unit->name);
    if (!status)
        status = mgl_rounds_run(&options, model_client, &waiter, &result, err);
    if (!status)
        tell_result(&t, &result);
    mgl_text_clear(&t.out.text);
    mgl_rounds_result_clear(&result);
    mgl_text_clear(&text);
    return status;
}

static mgl_status rounds(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    mgl_kernel_store_options how = MGL_CLI_BENCH(o);
    const mgl_cli_ask ask = MGL_CLI_ASK(o);
    mgl_kernel_store b = {0};
    mgl_model_client *model_client = NULL;
    const mgl_cli_profile files = MGL_CLI_PROFILE(o);
    first_profile first = {0};
    how.model = ask.model;
    mgl_status status = mgl_cli_model_client_open(&ask, &model_client, err);
    if (!status && !model_client)
        status = mgl_fail(err, MGL_USAGE, "--proposer",
                          "is missing or external; give scripted:FILE or chat");
    if (!status)
        status = mgl_kernel_store_open(operand, &how, &b, err);
    if (!status)
        status = mgl_cli_profile_read(&files, b.unit, &first.profile, err);
    if (!status)
        status = run(o, &b, model_client, &first, err);
    mgl_model_client_close(model_client);
    mgl_kernel_store_close(&b);
    return status;
}

const mgl_cli_verb mgl_cli_kernel_rounds_verb = {
    .name = "kernel rounds",
    .operand = "UNIT",
    .summary =
        "runs rounds of profile, hint, proposal and verdict; exits with 0 accepted, 13 unmeasured",
    .example = "  megalith kernel rounds merge --ncu merge.csv --proposer scripted:a.json",
    .gives_verdict = true,
    MGL_CLI_VERB_OPTIONS,
    .run = rounds,
};
