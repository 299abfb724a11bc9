/*
 * Time accounting of a run: the intervals of the loop, the requests of the runner to its workers,
 * and the seconds that the device worked. The account is reported and stored once, as an event at
 * the end of the run. It affects no decision. Text of the event:
 *
 * "of 40.8 s: start 1.20 s (1), ..., other 0.31 s (1); requests: set 3.21 s (22), ...; device:
 * launches 22.90 s (1420), ..."
 *
 * Intervals do not overlap, and `other` is the remainder. Requests are parts of intervals. Device
 * seconds come from the device's clock: program launches, preparation of weights and cache,
 * references, streams.
 */
#include "autotune/search/campaign_parts.h"

#include "base/clock.h"
#include "base/text.h"

static const char *const names[] = {
#define MGL_X(id, name) name,
    CAMPAIGN_STRETCHES(MGL_X)
#undef MGL_X
};

void campaign_start_spending(campaign *c)
{
    const mgl_runner *runner = c->o->runner;
    c->spent.began = mgl_clock_s();
    for (int i = 0; i < MGL_RUNNER_WAITS; i++)
        c->spent.requests[i] = runner->waits[i];
    for (int i = 0; i < MGL_RUNNER_WORKS; i++)
        c->spent.works[i] = runner->works[i];
}

double campaign_note(campaign *c, campaign_stretch stretch, double since)
{
    const double now = mgl_clock_s();
    c->spent.stretches[stretch].seconds += now - since;
    c->spent.stretches[stretch].count++;
    return now;
}

static void put(mgl_text *text, const char *before, const char *what, double seconds, int64_t count)
{
    if (what && count > 0)
        mgl_text_format(text, "%s%s %.2f s (%lld)", before, what, seconds, (long long)count);
}

/* Appends the counters of the runner since the start of the run. */
static void put_counted(mgl_text *text, const char *title, const mgl_runner_time *now,
                        const mgl_runner_time *began, int count)
{
    bool first = true;
    for (int i = 0; i < count; i++) {
        const int64_t times = now[i].count - began[i].count;
        put(text, first ? title : ", ", now[i].what, now[i].seconds - began[i].seconds, times);
        first &= !now[i].what || times <= 0;
    }
}

mgl_status campaign_tell_spent(campaign *c, mgl_error *err)
{
    const mgl_runner *runner = c->o->runner;
    const double all = mgl_clock_s() - c->spent.began;
    double other = all;
    mgl_text text = {0};
    mgl_text_format(&text, "of %.1f s: ", all);
    for (int i = 0; i < CAMPAIGN_STRETCH_COUNT; i++) {
        const mgl_runner_time *t = &c->spent.stretches[i];
        other -= t->seconds;
        put(&text, "", names[i], t->seconds, t->count);
        mgl_text_put(&text, t->count > 0 ? ", " : "");
    }
    put(&text, "", "other", other, 1);
    put_counted(&text, "; requests: ", runner->waits, c->spent.requests, MGL_RUNNER_WAITS);
    put_counted(&text, "; device: ", runner->works, c->spent.works, MGL_RUNNER_WORKS);
    mgl_status status = text.failed ? mgl_fail_memory(err, text.capacity) : MGL_OK;
    const mgl_campaign_event event = {.kind = MGL_SPENT_EVENT, .text = text.bytes};
    if (!status && c->o->on_event)
        c->o->on_event(c->o->user, &event);
    if (!status)
        status = mgl_store_add_event(c->o->store, c->record->id, MGL_SPENT_EVENT, text.bytes, err);
    mgl_text_clear(&text);
    return status;
}
