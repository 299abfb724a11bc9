/*
 * Grid search: every value of every knob around the start, then every pair of knobs, in the order
 * of the space. It proposes no moves. Configs that were tried by any proposer or that lowering
 * rejects are skipped. After the last pair it proposes nothing more.
 */
#include "autotune/search/propose.h"

/* A point of the grid: knobs a < b with the indices of their values; b = -1 for a single knob. */
struct place {
    int a, b, a_value, b_value;
};

typedef struct grid {
    mgl_search search;
    struct place next; /* all earlier points were tried or do not fit */
} grid;

/* The number of values of a knob. */
static int values_of(const grid *g, int knob)
{
    return g->search.subject->space.knobs[knob].count;
}

/* Advances to the next point; false: there is none. */
static bool step_on(const grid *g, struct place *p)
{
    const int knobs = g->search.subject->space.count;
    if (p->b >= 0 && ++p->b_value < values_of(g, p->b))
        return true;
    p->b_value = 0;
    if (++p->a_value < values_of(g, p->a))
        return true;
    p->a_value = 0;
    if (p->b >= 0 && ++p->b < knobs)
        return true;
    p->a++;
    if (p->b < 0 && p->a == knobs)
        *p = (struct place){0, 1, 0, 0};
    else if (p->b >= 0)
        p->b = p->a + 1;
    return p->b < knobs && p->a < knobs;
}

/* Builds the config of a point; false: a value equals the start's, so fewer knobs would change. */
static bool make(const grid *g, const struct place *p, mgl_schedule_config *out)
{
    const int knobs[] = {p->a, p->b}, values[] = {p->a_value, p->b_value};
    *out = g->search.start;
    for (int i = 0; i < 2 && knobs[i] >= 0; i++) {
        const mgl_knob *knob = &g->search.subject->space.knobs[knobs[i]];
        int number = g->search.numbers[knobs[i]];
        if (knob->count == 0 || mgl_knob_get(out, number) == knob->values[values[i]])
            return false;
        mgl_knob_set(out, number, knob->values[values[i]]);
    }
    return true;
}

static mgl_status propose(mgl_proposer *self, uint64_t seed, mgl_proposal *out,
                          mgl_proposer_answer *answer, mgl_error *err)
{
    grid *g = (grid *)self;
    mgl_draft draft = {0};
    (void)seed;
    for (bool more = g->next.a < g->search.subject->space.count; more;
         more = step_on(g, &g->next)) {
        if (!make(g, &g->next, &draft.config) ||
            !mgl_search_is_new(&g->search, &draft.config, NULL) ||
            !mgl_search_fits(&g->search, &draft.config))
            continue;
        *answer = MGL_PROPOSED;
        return mgl_search_propose(&g->search, &draft, out, err);
    }
    g->next = (struct place){g->search.subject->space.count, -1, 0, 0};
    *answer = MGL_NO_MORE;
    return MGL_OK;
}

mgl_status mgl_grid_open(const mgl_proposer_options *options, mgl_proposer **out, mgl_error *err)
{
    const mgl_proposer self = {.name = "grid", .propose = propose};
    mgl_status status = mgl_search_make(sizeof(grid), &self, options, out, err);
    if (!status)
        ((grid *)*out)->next.b = -1;
    return status;
}
