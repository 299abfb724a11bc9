/*
 * Implements the experiment log: files, the choice of the next op, the playbook, CSV and Markdown.
 */
#include "autotune/kernels/versions/experiment_log.h"

#include "autotune/store/keeper.h"
#include "base/file.h"
#include "base/json_out.h"
#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SCHEMA "megalith.experiment_log/1"

static const double near_floor = 0.9;
static const double unknown_rest = 0.2; /* assumed reducible fraction of an op's time if its
                                         * floor is unknown */
static const int64_t most_counted = INT64_C(1) << 50;

const char *mgl_op_state_what(mgl_op_state state)
{
    static const char *const what[] = {
#define MGL_X(id, text) text,
        MGL_OP_STATES(MGL_X)
#undef MGL_X
    };
    return what[state];
}

void mgl_experiment_log_clear(mgl_experiment_log *experiment_log)
{
    mgl_free(experiment_log->rows);
    *experiment_log = (mgl_experiment_log){0};
}

/* ---- files ----------------------------------------------------------------------------------- */

static bool is_name(const char *name)
{
    size_t length = strlen(name);
    return length && length <= MGL_EXPERIMENT_LOG_NAME &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") ==
               length;
}

mgl_status mgl_experiment_log_add(mgl_experiment_log *l, const mgl_experiment_log_row *row,
                                  mgl_error *err)
{
    if (!is_name(row->op) || !is_name(row->idea))
        return mgl_fail(err, MGL_USAGE, is_name(row->op) ? row->idea : row->op,
                        "op and idea are names of 1 to %d letters, digits, '_', '-' and '.'",
                        MGL_EXPERIMENT_LOG_NAME);
    if (row->kept && row->outcome != MGL_OUTCOME_OK)
        return mgl_fail(err, MGL_USAGE, mgl_outcome_name(row->outcome),
                        "what is kept has the outcome OK");
    if (l->count == MGL_EXPERIMENT_LOG_ROWS)
        return mgl_fail(err, MGL_USAGE, "the experiment log", "has %d rows: begin another one",
                        MGL_EXPERIMENT_LOG_ROWS);
    if (!mgl_grow((void **)&l->rows, &l->capacity, l->count, sizeof *l->rows))
        return mgl_fail_memory(err, sizeof *l->rows);
    l->rows[l->count] = *row;
    if (!isfinite(row->gain) || !mgl_outcome_is_correct(row->outcome))
        l->rows[l->count].gain = NAN; /* an incorrect text has no gain */
    l->count++;
    return MGL_OK;
}

static mgl_status get_name(const mgl_json *json, const cJSON *object, const char *key, char *to,
                           mgl_error *err)
{
    const char *name = NULL;
    mgl_status status = mgl_json_get_string(json, object, key, true, &name, err);
    if (!status && !is_name(name))
        status = mgl_fail(err, MGL_BAD_INPUT, json->file, "'%.80s' is no name", name);
    if (!status)
        memcpy(to, name, strlen(name) + 1);
    return status;
}

static mgl_status read_row(const mgl_json *json, const cJSON *object, mgl_experiment_log *l,
                           mgl_error *err)
{
    mgl_experiment_log_row row = {.gain = NAN};
    mgl_status status = get_name(json, object, "op", row.op, err);
    if (!status)
        status = get_name(json, object, "idea", row.idea, err);
    if (!status)
        status = mgl_outcome_read(json, object, &row.outcome, err);
    if (!status)
        status = mgl_json_get_bool(json, object, "kept", true, &row.kept, err);
    if (!status)
        status = mgl_json_get_double(json, object, "gain", false, &row.gain, err);
    if (!status)
        status = mgl_json_get_int(json, object, "calls", false, 0, most_counted, &row.calls, err);
    if (!status)
        status = mgl_json_get_int(json, object, "tokens", false, 0, most_counted, &row.tokens, err);
    return status ? status : mgl_experiment_log_add(l, &row, err);
}

/* Finds the list `key` of an object with this schema. */
static mgl_status find_list(const mgl_json *json, const char *schema, const char *key,
                            const cJSON **list, mgl_error *err)
{
    mgl_status status = mgl_json_check_schema(json, schema, err);
    return status ? status : mgl_json_get_array(json, json->root, key, true, list, err);
}

static mgl_status take_rows(const mgl_json *json, mgl_experiment_log *out, mgl_error *err)
{
    const cJSON *list = NULL;
    mgl_status status = find_list(json, SCHEMA, "rows", &list, err);
    for (const cJSON *at = status ? NULL : list->child; at && !status; at = at->next)
        status = read_row(json, at, out, err);
    if (status)
        mgl_experiment_log_clear(out);
    return status;
}

/* Locates and reads the file under the lock. */
static mgl_status read_located(const char *path, char found[PATH_MAX], mgl_experiment_log *out,
                               mgl_error *err)
{
    mgl_json json = {0};
    bool stands = false;
    mgl_status status = mgl_keeper_locate(path, found, err);
    if (!status)
        status = mgl_file_stands(found, &stands, err);
    if (!status && stands)
        status = mgl_json_read_file(found, MGL_EXPERIMENT_LOG_FILE, &json, err);
    if (!status && stands)
        status = take_rows(&json, out, err);
    mgl_json_clear(&json);
    return status;
}

/* The lock keeps a writer from renaming the file between its lookup and its read. */
mgl_status mgl_experiment_log_read(const char *path, mgl_experiment_log *out, mgl_error *err)
{
    char found[PATH_MAX];
    int lock = -1;
    *out = (mgl_experiment_log){0};
    mgl_status status = mgl_keeper_lock(path, &lock, err);
    if (!status)
        status = read_located(path, found, out, err);
    mgl_keeper_unlock(lock);
    return status;
}

mgl_status mgl_experiment_log_parse(const char *text, size_t length, const char *file,
                                    mgl_experiment_log *out, mgl_error *err)
{
    mgl_json json = {0};
    *out = (mgl_experiment_log){0};
    mgl_status status = mgl_json_parse(text, length, MGL_EXPERIMENT_LOG_FILE, file, &json, err);
    if (!status)
        status = take_rows(&json, out, err);
    mgl_json_clear(&json);
    return status;
}

mgl_status mgl_experiment_log_write(const mgl_experiment_log *l, const char *path, mgl_error *err)
{
    mgl_json_out out = {0};
    mgl_json_out_begin(&out, SCHEMA);
    mgl_json_out_array(&out, "rows");
    for (size_t i = 0; i < l->count; i++) {
        const mgl_experiment_log_row *r = &l->rows[i];
        mgl_text_put(&out.text, i ? "" : "\n");
        mgl_json_out_object(&out, NULL);
        mgl_json_out_string(&out, "op", r->op);
        mgl_json_out_string(&out, "idea", r->idea);
        mgl_json_out_string(&out, "outcome", mgl_outcome_name(r->outcome));
        mgl_json_out_bool(&out, "kept", r->kept);
        if (isfinite(r->gain))
            mgl_json_out_double(&out, "gain", r->gain);
        mgl_json_out_int(&out, "calls", r->calls);
        mgl_json_out_int(&out, "tokens", r->tokens);
        mgl_json_out_close_object(&out);
    }
    mgl_json_out_close_array(&out);
    mgl_json_out_close(&out);
    mgl_text_put(&out.text, "\n");
    return mgl_keeper_write(path, &out, err);
}

mgl_status mgl_experiment_log_record(const char *path, const mgl_experiment_log_row *row,
                                     size_t *number, mgl_error *err)
{
    mgl_experiment_log l = {0};
    char found[PATH_MAX];
    int lock = -1;
    mgl_status status = mgl_keeper_lock(path, &lock, err);
    if (!status)
        status = read_located(path, found, &l, err);
    if (!status)
        status = mgl_experiment_log_add(&l, row, err);
    if (!status)
        status = mgl_keeper_rename(path, found, err);
    if (!status)
        status = mgl_experiment_log_write(&l, found, err);
    *number = l.count;
    mgl_experiment_log_clear(&l);
    mgl_keeper_unlock(lock);
    return status;
}

/* ---- choice of the next op ------------------------------------------------------------------- */

#define MOST_US 1e12 /* microseconds, 11.6 days */

static mgl_status read_share(const mgl_json *json, const cJSON *object, mgl_shares *out,
                             mgl_error *err)
{
    if (out->count == MGL_EXPERIMENT_LOG_OPS)
        return mgl_fail(err, MGL_BAD_INPUT, json->file, "there are more than %d ops",
                        MGL_EXPERIMENT_LOG_OPS);
    mgl_op_share *s = &out->ops[out->count++];
    mgl_status status = get_name(json, object, "op", s->op, err);
    if (!status)
        status = mgl_json_get_double(json, object, "us", true, &s->us, err);
    if (!status)
        status = mgl_json_get_double(json, object, "floor_us", false, &s->floor_us, err);
    if (!status && !(s->us >= 0 && s->us <= MOST_US && s->floor_us >= 0 && s->floor_us <= MOST_US))
        status = mgl_fail(err, MGL_BAD_INPUT, json->file, "%s: times are from 0 to %.0f us", s->op,
                          MOST_US);
    return status;
}

static mgl_status take_shares(const mgl_json *json, mgl_shares *out, mgl_error *err)
{
    const cJSON *list = NULL;
    mgl_status status = find_list(json, "megalith.shares/1", "ops", &list, err);
    for (const cJSON *at = status ? NULL : list->child; at && !status; at = at->next)
        status = read_share(json, at, out, err);
    return status;
}

mgl_status mgl_shares_read(const char *path, mgl_shares *out, mgl_error *err)
{
    mgl_json json = {0};
    *out = (mgl_shares){0};
    mgl_status status = mgl_json_read_file(path, MGL_EXPERIMENT_LOG_FILE, &json, err);
    if (!status)
        status = take_shares(&json, out, err);
    mgl_json_clear(&json);
    return status;
}

mgl_status mgl_shares_parse(const char *text, size_t length, const char *file, mgl_shares *out,
                            mgl_error *err)
{
    mgl_json json = {0};
    *out = (mgl_shares){0};
    mgl_status status = mgl_json_parse(text, length, MGL_EXPERIMENT_LOG_FILE, file, &json, err);
    if (!status)
        status = take_shares(&json, out, err);
    mgl_json_clear(&json);
    return status;
}

static int count_reverts(const mgl_experiment_log *l, const char *op)
{
    int reverts = 0;
    for (size_t i = l->count; i-- > 0;) {
        if (strcmp(l->rows[i].op, op) != 0)
            continue;
        if (l->rows[i].kept)
            break;
        reverts++;
    }
    return reverts;
}

static int by_gain(const void *a, const void *b)
{
    const mgl_op_share *x = a, *y = b;
    bool open_x = x->state == MGL_OP_STATE_OPEN, open_y = y->state == MGL_OP_STATE_OPEN;
    if (open_x != open_y)
        return open_x ? -1 : 1;
    if (x->gain != y->gain)
        return x->gain > y->gain ? -1 : 1;
    return strcmp(x->op, y->op);
}

static double rest_of(const mgl_op_share *s)
{
    if (s->floor_us <= 0)
        return unknown_rest * s->us;
    return s->us > s->floor_us ? s->us - s->floor_us : 0;
}

bool mgl_shares_order(mgl_shares *shares, const mgl_experiment_log *experiment_log)
{
    double all = 0;
    for (int i = 0; i < shares->count; i++)
        all += shares->ops[i].us;
    for (int i = 0; i < shares->count; i++) {
        mgl_op_share *s = &shares->ops[i];
        s->share = all > 0 ? s->us / all : 0;
        s->gain = all > 0 ? rest_of(s) / all : 0;
        s->reverts = count_reverts(experiment_log, s->op);
        s->state = s->floor_us > 0 && s->floor_us >= near_floor * s->us ? MGL_OP_STATE_NEAR
                   : s->reverts >= MGL_EXPERIMENT_LOG_REVERTS           ? MGL_OP_STATE_LEFT
                                                                        : MGL_OP_STATE_OPEN;
    }
    qsort(shares->ops, (size_t)shares->count, sizeof *shares->ops, by_gain);
    return shares->count > 0 && shares->ops[0].state == MGL_OP_STATE_OPEN;
}

/* ---- playbook -------------------------------------------------------------------------------- */

static double gain_of(const mgl_experiment_log_row *r)
{
    return isfinite(r->gain) ? r->gain : 0;
}

static int find_play(const mgl_play *plays, int count, const char *name)
{
    int at = 0;
    while (at < count && strcmp(plays[at].name, name) != 0)
        at++;
    return at;
}

static void add_play(mgl_play *p, const mgl_experiment_log_row *r)
{
    p->tried++;
    p->correct += mgl_outcome_is_good(r->outcome);
    p->kept += r->kept;
    p->mean_gain += (gain_of(r) - p->mean_gain) / p->tried;
    if (gain_of(r) > p->best_gain)
        p->best_gain = gain_of(r);
    p->calls += r->calls;
    p->tokens += r->tokens;
}

static int by_mean(const void *a, const void *b)
{
    const mgl_play *x = a, *y = b;
    if (x->mean_gain != y->mean_gain)
        return x->mean_gain > y->mean_gain ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int gather(const mgl_experiment_log *l, const char *op, bool by_op, mgl_play *out, int most)
{
    int count = 0;
    for (size_t i = 0; i < l->count; i++) {
        const mgl_experiment_log_row *r = &l->rows[i];
        const char *name = by_op ? r->op : r->idea;
        if (op && strcmp(op, r->op) != 0)
            continue;
        int at = find_play(out, count, name);
        if (at == count && count == most)
            continue;
        if (at == count) {
            out[count] = (mgl_play){0};
            memcpy(out[count++].name, name, strlen(name) + 1);
        }
        add_play(&out[at], r);
    }
    if (count)
        qsort(out, (size_t)count, sizeof *out, by_mean);
    return count;
}

int mgl_experiment_log_playbook(const mgl_experiment_log *l, const char *op, mgl_play *out,
                                int most)
{
    return gather(l, op, false, out, most);
}

int mgl_experiment_log_by_op(const mgl_experiment_log *l, mgl_play *out, int most)
{
    return gather(l, NULL, true, out, most);
}

double mgl_experiment_log_fast(const mgl_experiment_log *l, double gain)
{
    size_t fast = 0;
    for (size_t i = 0; i < l->count; i++)
        fast += gain_of(&l->rows[i]) >= gain && isfinite(l->rows[i].gain);
    return l->count ? (double)fast / (double)l->count : 0;
}

void mgl_experiment_log_put_csv(const mgl_experiment_log *l, mgl_text *out)
{
    mgl_text_put(out, "number,op,idea,outcome,kept,gain_pct,calls,tokens\n");
    for (size_t i = 0; i < l->count; i++) {
        const mgl_experiment_log_row *r = &l->rows[i];
        mgl_text_format(out, "%zu,%s,%s,%s,%d,", i + 1, r->op, r->idea,
                        mgl_outcome_name(r->outcome), r->kept);
        if (isfinite(r->gain))
            mgl_text_format(out, "%.3f", 100 * r->gain);
        mgl_text_format(out, ",%lld,%lld\n", (long long)r->calls, (long long)r->tokens);
    }
}

static void put_table(const char *what, const mgl_play *plays, int count, mgl_text *out)
{
    mgl_text_format(out,
                    "| %s | tried | correct | kept | mean of all tried | best | calls | tokens |\n"
                    "|---|---:|---:|---:|---:|---:|---:|---:|\n",
                    what);
    for (int i = 0; i < count; i++)
        mgl_text_format(out, "| %s | %d | %d | %d | %+.2f %% | %+.2f %% | %lld | %lld |\n",
                        plays[i].name, plays[i].tried, plays[i].correct, plays[i].kept,
                        100 * plays[i].mean_gain, 100 * plays[i].best_gain,
                        (long long)plays[i].calls, (long long)plays[i].tokens);
}

void mgl_experiment_log_put_markdown(const mgl_experiment_log *l, mgl_text *out)
{
    mgl_play plays[256];
    static const double levels[] = {0.01, 0.05, 0.1};
    put_table("op", plays, mgl_experiment_log_by_op(l, plays, 256), out);
    mgl_text_put(out, "\n");
    put_table("idea", plays, mgl_experiment_log_playbook(l, NULL, plays, 256), out);
    mgl_text_format(out, "\n%zu tried", l->count);
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        mgl_text_format(out, "; %.0f %% gained at least %.0f %%",
                        100 * mgl_experiment_log_fast(l, levels[i]), 100 * levels[i]);
    mgl_text_put(out, ".\n");
}
