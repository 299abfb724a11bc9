/*
 * Tests that the expressions of variants.def still have the values of their first forms, which had
 * no comparisons, remainders or terms. For many random dimensions, each requirement is the same
 * number, and each `when` is above 0 for the same dimensions.
 */
#include "support.h"

#include <stdio.h>

#include "schedule/expression.h"
#include "schedule/variants.h"

/* ---- the first forms ------------------------------------------------------------------------- */

#define TAIL        "kblocks * block_columns - columns"
#define SHORT_RUN   "kblocks - kblocks / run * run"
#define WIDTHS      "min(off_hidden, off_attended, off_ffn)"
#define HEAD_16     "head_dim - head_dim / 16 * 16"
#define HEAD_64     "head_dim - head_dim / 64 * 64"
#define TILE_WORDS  "10 * head_dim + 256 + 1024 * ((head_dim + 63) / 64) + 8 * max(warps, 4)"
#define BLOCK_PARTS "(max(block_columns, 32) / 32)"
#define RUN_PARTS   "(run * " BLOCK_PARTS ")"
#define SPLIT_GROUP                                                                                \
    "(run * block_columns - run * block_columns / group * group) * "                               \
    "(group - group / (run * block_columns) * (run * block_columns))"
#define REGISTERED                                                                                 \
    "kblocks / run * 512 * max(" RUN_PARTS                                                         \
    " - 18, 0) + 1048576 * (parts - 1 + max(3 - rows, 0) + "                                       \
    "min(off_attended, off_ffn) + " TAIL " + " SHORT_RUN ")"
#define ROUNDED   "((rows + 15) / 16 * 16)"
#define TEAM_TILE "(1 + min(max(33 - rows, 0), 1) + 2 * min(max(17 - rows, 0), 1))"
#define TEAM_PER  "(page_blocks / " TEAM_TILE ")"
#define APART                                                                                      \
    "(ring_blocks / page_blocks / (2 + min(max(65 - rows, 0), 1)) * page_blocks"                   \
    " * 512)"
#define WARPGROUP_TILE "(4 - 2 * min(max(rows - 64, 0), 1))"
#define WARPGROUP_PER  "(page_blocks / " WARPGROUP_TILE " / 2 * 2)"
#define POWER                                                                                      \
    "(16 * (1 + min(max(rows - 16, 0), 1) + 2 * min(max(rows - 32, 0), 1) + "                      \
    "4 * min(max(rows - 64, 0), 1)))"
#define PANEL_RING(per)                                                                            \
    "2 * page_blocks * (1 + (2 * (warps / 2 * 2) + " per " - 1) / " per ") - page_blocks"

static const struct {
    mgl_variant variant;
    mgl_need need;
    const char *text;
} forms[] = {
    {MGL_VARIANT_SKINNY, MGL_NEED_MMA,
     "parts * rows * (1 + 3 * scaled * min(max(rows - 1, 0), 1))"},
    {MGL_VARIANT_SKINNY, MGL_NEED_WIDTH, WIDTHS},
    {MGL_VARIANT_SKINNY, MGL_NEED_RING, "4 * warps"},
    {MGL_VARIANT_SKINNY, MGL_NEED_PAGE, "warps"},
    {MGL_VARIANT_SKINNY, MGL_NEED_STAGE, "parts * rows * kblocks * 64 * " BLOCK_PARTS},
    {MGL_VARIANT_SKINNY, MGL_NEED_LANE, "2 * min(run * " BLOCK_PARTS ", 32)"},
    {MGL_VARIANT_SKINNY, MGL_NEED_GROUPS, SPLIT_GROUP},
    {MGL_VARIANT_BATCH, MGL_NEED_WIDTH,
     "min(off_attended, off_hidden * (parts - 1) + off_ffn * (2 - parts))"},
    {MGL_VARIANT_BATCH, MGL_NEED_TAIL, TAIL},
    {MGL_VARIANT_BATCH, MGL_NEED_MERGES, "merges"},
    {MGL_VARIANT_BATCH, MGL_NEED_SHORT_RUN, SHORT_RUN},
    {MGL_VARIANT_BATCH, MGL_NEED_RING, "4 * warps"},
    {MGL_VARIANT_BATCH, MGL_NEED_PAGE, "warps"},
    {MGL_VARIANT_BATCH, MGL_NEED_STAGE,
     "max((2 - scaled) * parts * kblocks * " BLOCK_PARTS
     " * 64 * ((3 - fewest) / 2), kblocks / run * "
     "(parts * 512 * max(" RUN_PARTS
     " - 16 / parts - 2 * (2 - parts), 0) + (parts - 1) * " RUN_PARTS " * 128))"},
    {MGL_VARIANT_BATCH, MGL_NEED_LANE,
     "4 * parts * min(" RUN_PARTS ", 16 / parts + 2 * (2 - parts)) + scaled * 64 + "
     "2 * scaled * parts * max((run * block_columns + group - 1) / group * min(max(group - 1, 0), "
     "1), 1)"},
    {MGL_VARIANT_BATCH, MGL_NEED_GROUPS, SPLIT_GROUP},
    {MGL_VARIANT_BY_ROWS, MGL_NEED_WIDTH, WIDTHS},
    {MGL_VARIANT_BY_ROWS, MGL_NEED_MERGES, "merges"},
    {MGL_VARIANT_BY_ROWS, MGL_NEED_RING, "4 * warps"},
    {MGL_VARIANT_BY_ROWS, MGL_NEED_PAGE, "warps"},
    {MGL_VARIANT_BY_ROWS, MGL_NEED_STAGE,
     "min(parts * kblocks * 64 * " BLOCK_PARTS ", " REGISTERED ")"},
    {MGL_VARIANT_BY_ROWS, MGL_NEED_GROUPS, SPLIT_GROUP},
    {MGL_VARIANT_RING, MGL_NEED_HEADS, "heads"},
    {MGL_VARIANT_RING, MGL_NEED_HEAD_DIM, "head_dim"},
    {MGL_VARIANT_RING, MGL_NEED_HEAD_TAIL, HEAD_16},
    {MGL_VARIANT_RING, MGL_NEED_PARTIALS, TILE_WORDS},
    {MGL_VARIANT_RING, MGL_NEED_POSITIONS, "span"},
    {MGL_VARIANT_RING, MGL_NEED_USERS, "page_positions / span"},
    {MGL_VARIANT_RING, MGL_NEED_PAGES,
     "(tape_pages + attentions * (2 * ((reach + page_positions - 1) / page_positions) + 1)) * "
     "(capacity + 2)"},
    {MGL_VARIANT_RING, MGL_NEED_INCOMPATIBLE, "incompatible"},
    {MGL_VARIANT_KV_ROUNDS, MGL_NEED_HEADS, "heads"},
    {MGL_VARIANT_KV_ROUNDS, MGL_NEED_HEAD_DIM, "head_dim"},
    {MGL_VARIANT_KV_ROUNDS, MGL_NEED_HEAD_TAIL, HEAD_16},
    {MGL_VARIANT_KV_ROUNDS, MGL_NEED_PARTIALS, TILE_WORDS},
    {MGL_VARIANT_SHORT, MGL_NEED_HEAD_DIM, "head_dim"},
    {MGL_VARIANT_SHORT, MGL_NEED_HEAD_TAIL, HEAD_64},
    {MGL_VARIANT_SHORT, MGL_NEED_PARTIALS, "warps * 256 * (3 - (head_dim + 63) / 64)"},
    {MGL_VARIANT_TILES, MGL_NEED_HEAD_DIM, "head_dim"},
    {MGL_VARIANT_TILES, MGL_NEED_HEAD_TAIL, HEAD_16},
    {MGL_VARIANT_TILES, MGL_NEED_PARTIALS, TILE_WORDS},
    {MGL_VARIANT_PANELS, MGL_NEED_PAGE, TEAM_TILE},
    {MGL_VARIANT_PANELS, MGL_NEED_TAIL, TAIL},
    {MGL_VARIANT_PANELS, MGL_NEED_PAIRS, "warps - warps / 2 * 2"},
    {MGL_VARIANT_PANELS, MGL_NEED_RING, PANEL_RING(TEAM_PER)},
    {MGL_VARIANT_PANELS, MGL_NEED_STAGE,
     ROUNDED " * 4 * (1 + warps) + max(128 * " ROUNDED " * " TEAM_TILE " - " APART ", 0)"},
    {MGL_VARIANT_PANELS, MGL_NEED_LANE,
     ROUNDED " / (1 + min(max(rows - 64, 0), 1)) + 98 + scaled * 8"},
    {MGL_VARIANT_FLASH, MGL_NEED_HEAD_DIM, "head_dim"},
    {MGL_VARIANT_FLASH, MGL_NEED_HEAD_TAIL, HEAD_64},
    {MGL_VARIANT_FLASH, MGL_NEED_PARTIALS, "2048 + warps * 64"},
    {MGL_VARIANT_FLASH, MGL_NEED_STAGE,
     "warps * 1024 * (2 - min(max(head_dim - 64, 0), 1)) + max(64 * head_dim - " APART ", 0)"},
    {MGL_VARIANT_FLASH, MGL_NEED_LANE, "160"},
    {MGL_VARIANT_WARPGROUPS, MGL_NEED_HOPPER, "1"},
    {MGL_VARIANT_WARPGROUPS, MGL_NEED_PAGE, "2 * " WARPGROUP_TILE},
    {MGL_VARIANT_WARPGROUPS, MGL_NEED_TAIL, TAIL},
    {MGL_VARIANT_WARPGROUPS, MGL_NEED_FOURS, "warps - warps / 4 * 4"},
    {MGL_VARIANT_WARPGROUPS, MGL_NEED_TWOS, "kblocks - kblocks / 2 * 2"},
    {MGL_VARIANT_WARPGROUPS, MGL_NEED_RING, PANEL_RING(WARPGROUP_PER)},
    {MGL_VARIANT_WARPGROUPS, MGL_NEED_STAGE,
     POWER " * 4 * (1 + warps) + 1023 + max(128 * " POWER " * " WARPGROUP_TILE " - " APART ", 0)"},
    {MGL_VARIANT_WARPGROUPS, MGL_NEED_LANE, POWER " / 2 + 96 + 8 * scaled"},
};
enum { FORMS = sizeof forms / sizeof *forms };

static const struct {
    mgl_variant variant;
    const char *text;
} whens[] = {{MGL_VARIANT_SKINNY, "1"},         {MGL_VARIANT_BATCH, "rows + scaled - 2"},
             {MGL_VARIANT_BY_ROWS, "rows - 1"}, {MGL_VARIANT_RING, "share - near"},
             {MGL_VARIANT_KV_ROUNDS, "1"},      {MGL_VARIANT_SHORT, "sequences - 1"},
             {MGL_VARIANT_TILES, "1"},          {MGL_VARIANT_PANELS, "1"},
             {MGL_VARIANT_FLASH, "1"},          {MGL_VARIANT_WARPGROUPS, "0"}};

/* ---- drawn dimensions ------------------------------------------------------------------------ */

enum { DRAWS = 2000 };

static int64_t pick(uint64_t *state, const int64_t *from, int count)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return from[(*state >> 33) % (uint64_t)count];
}

/* Random dimensions at and around the limits of the table and of programs. A product has one or two
 * parts, and an epoch at least 1 or 3 rows. */
static void draw(uint64_t *state, mgl_dimensions *d)
{
    static const int64_t sizes[] =
        {0,   1,   2,   3,   4,   5,    8,    11,   12,    16,    17,
         31,  32,  33,  48,  63,  64,   65,   96,   128,   129,   144,
         192, 256, 511, 512, 576, 2048, 4096, 8192, 16384, 65536, (int64_t)1 << 40},
                         rows[] = {1, 2, 3, 4, 5, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 96, 128},
                         parts[] = {1, 2}, fewest[] = {1, 3}, off[] = {0, 0, 0, 1, 2, 48};
    for (int i = 0; i < MGL_DIMENSION_COUNT; i++)
        d->of[i] = pick(state, sizes, sizeof sizes / sizeof *sizes);
    d->of[MGL_DIMENSION_ROWS] = pick(state, rows, sizeof rows / sizeof *rows);
    d->of[MGL_DIMENSION_PARTS] = pick(state, parts, 2);
    d->of[MGL_DIMENSION_SCALED] = pick(state, parts, 2) - 1;
    d->of[MGL_DIMENSION_FEWEST] = pick(state, fewest, 2);
    for (int i = MGL_DIMENSION_OFF_HIDDEN; i <= MGL_DIMENSION_OFF_FFN; i++)
        d->of[i] = pick(state, off, sizeof off / sizeof *off);
    if (pick(state, parts, 2) == 1 && d->of[MGL_DIMENSION_WARPS])
        d->of[MGL_DIMENSION_RUN] = (d->of[MGL_DIMENSION_KBLOCKS] + d->of[MGL_DIMENSION_WARPS] - 1) /
                                   d->of[MGL_DIMENSION_WARPS];
}

static void parse(const char *text, mgl_expression *out)
{
    const char *names[MGL_DIMENSION_COUNT];
    for (int i = 0; i < MGL_DIMENSION_COUNT; i++)
        names[i] = mgl_dimension_name((mgl_dimension)i);
    ck_assert_int_eq(mgl_expression_parse(text, names, MGL_DIMENSION_COUNT, out, NULL), MGL_OK);
}

START_TEST(a_need_has_the_value_of_its_first_form)
{
    mgl_expression first;
    mgl_dimensions d;
    uint64_t state = 1;
    int with_value = 0;
    parse(forms[_i].text, &first);
    for (int i = 0; i < DRAWS; i++) {
        int64_t wanted = 0, value = 0;
        draw(&state, &d);
        const bool has = mgl_expression_value(&first, d.of, &wanted);
        ck_assert_int_eq(mgl_variant_needs(forms[_i].variant, forms[_i].need, &d, &value), has);
        if (has)
            ck_assert_msg(value == wanted, "%s: %lld, not %lld", forms[_i].text, (long long)value,
                          (long long)wanted);
        with_value += has;
    }
    ck_assert_int_gt(with_value, DRAWS / 2);
}
END_TEST

START_TEST(each_need_has_a_first_form)
{
    int count = 0;
    for (int v = 0; v < MGL_VARIANT_COUNT; v++)
        count += mgl_variant_get((mgl_variant)v)->need_count;
    ck_assert_int_eq(count, FORMS);
}
END_TEST

START_TEST(a_when_holds_where_its_first_form_does)
{
    mgl_expression first, now;
    mgl_dimensions d;
    uint64_t state = 2;
    parse(whens[_i].text, &first);
    parse(mgl_variant_get(whens[_i].variant)->when, &now);
    for (int i = 0; i < DRAWS; i++) {
        int64_t wanted = 0, value = 0;
        draw(&state, &d);
        ck_assert(mgl_expression_value(&first, d.of, &wanted));
        ck_assert(mgl_expression_value(&now, d.of, &value));
        ck_assert_int_eq(value > 0, wanted > 0);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("schedule variant forms");
    TCase *cases = tcase_create("variant forms");
    tcase_add_loop_test(cases, a_need_has_the_value_of_its_first_form, 0, FORMS);
    tcase_add_test(cases, each_need_has_a_first_form);
    tcase_add_loop_test(cases, a_when_holds_where_its_first_form_does, 0,
                        sizeof whens / sizeof *whens);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
