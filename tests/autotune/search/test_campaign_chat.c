/* Tests of a campaign that asks a language model, with a stub endpoint and a simulated device. */
#include "autotune/agents/chat.h"
#include "autotune/answers/answer.h"
#include "base/clock.h"
#include "tests/autotune/agents/stub_server.h"
#include "tests/autotune/search/campaign_fixture.h"

#include <check.h>
#include <string.h>

#define FENCE(config)                                                                              \
    "```json\n{\"schema\":\"megalith.proposal/1\",\"hypothesis\":\"h\",\"config\":" config         \
    "}\n```\n"

static fixture f;
static stub_server *server;

/* A campaign with two proposers: the stub, then the fixture's. */
static void begin(const char *name, const stub_answer *script, int count)
{
    set_up(&f, name);
    f.options.clock = NULL; /* answers take real time */
    server = stub_start(script, count);
    const mgl_chat_options options = {.subject = &f.tune.subject,
                                      .device = "scripted",
                                      .shape = "tales-5m",
                                      .url = stub_url(server),
                                      .model = "stub",
                                      .store = f.store,
                                      .campaign = f.tune.record.id,
                                      .flights = 1,
                                      .timeout_s = 20};
    f.options.proposers[1].proposer = f.options.proposers[0].proposer;
    f.options.proposers[1].share = 1;
    must(mgl_chat_open(&options, &f.options.proposers[0].proposer, &f.err), &f.err);
}

static void end(void)
{
    f.options.proposers[0].proposer->close(f.options.proposers[0].proposer);
    stub_stop(server);
    tear_down(&f);
}

START_TEST(a_model_finds_the_planted_improvement)
{
    static const runner_script gains[] = {{.gain = 0}, {.gain = 0.05}};
    const stub_answer script[] = {
        {.status = 200, .body = stub_completion(FENCE("{\"prefetch_bytes\":65536}"))},
        {.status = 429, .headers = "Retry-After: 0\r\n"},
        {.status = 200, .body = stub_completion("I have no idea")},
        {.status = 200, .body = stub_completion(FENCE("{\"pending_bytes\":16384}"))}};
    begin("model", script, 4);
    f.runner.script = gains;
    f.runner.script_count = 2;
    must(run(&f, 2), &f.err);
    mgl_trial trial = trial_of(&f, 2);
    ck_assert_int_eq(f.tune.record.incumbent, 2);
    ck_assert_str_eq(trial.proposal.proposer, "chat");
    ck_assert_int_eq(trial.proposal.config.pending_bytes, 16384);
    mgl_answer_chat_facts facts;
    must(mgl_answer_count_chat(f.store, f.tune.record.id, &facts, &f.err), &f.err);
    ck_assert_int_eq(facts.of[MGL_OUTCOME_PROPOSER_RATE], 1);
    ck_assert_int_eq(facts.of[MGL_OUTCOME_EXTRACT_NONE], 1);
    ck_assert_int_eq(facts.of[MGL_OUTCOME_OK], 2);
    mgl_trial_clear(&trial);
    end();
}
END_TEST

START_TEST(others_go_on_while_a_model_thinks)
{
    const stub_answer script[] = {{.status = 200,
                                   .delay_s = 1.5,
                                   .body = stub_completion(FENCE("{\"flight_bytes\":65536}"))}};
    begin("others", script, 1);
    f.options.proposer_count = 2;
    f.proposer.list = proposals;
    f.proposer.count = 3;
    must(run(&f, 3), &f.err);
    for (int number = 1; number <= 3; number++) {
        mgl_trial trial = trial_of(&f, number);
        ck_assert_str_eq(trial.proposal.proposer, "scripted");
        mgl_trial_clear(&trial);
    }
    end();
}
END_TEST

/* A proposer that has no answer yet. Counts the questions in a time that begins with the first. */
typedef struct undecided {
    mgl_proposer proposer; /* first */
    double until;
    int asked;
} undecided;

static mgl_status say_not_yet(mgl_proposer *self, uint64_t seed, mgl_proposal *out,
                              mgl_proposer_answer *answer, mgl_error *err)
{
    undecided *u = (undecided *)(void *)self;
    (void)seed, (void)out, (void)err;
    const double now = mgl_clock_s();
    if (!u->asked++)
        u->until = now + 0.5;
    *answer = now < u->until ? MGL_NOT_YET : MGL_NO_MORE;
    return MGL_OK;
}

START_TEST(nothing_yet_does_not_spin)
{
    undecided u = {.proposer = {.name = "undecided", .propose = say_not_yet}};
    set_up(&f, "spin");
    f.options.clock = NULL;
    f.options.proposers[0].proposer = &u.proposer;
    must(run(&f, 0), &f.err);
    ck_assert_int_ge(u.asked, 2);
    ck_assert_int_le(u.asked, 12);
    tear_down(&f);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("chat");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_model_finds_the_planted_improvement);
    tcase_add_test(tests, others_go_on_while_a_model_thinks);
    tcase_add_test(tests, nothing_yet_does_not_spin);
    return run_suite("campaign chat", tests);
}
