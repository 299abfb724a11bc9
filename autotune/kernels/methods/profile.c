/* Implements the CSV reader for Nsight Compute, the classification, and the hints. */
#include "autotune/kernels/methods/profile.h"

#include "autotune/kernels/methods/csv.h"
#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NAMES = 4, WORST = 3, NO_FIELD = -1 };

static const double worse_by = 0.05;

static const struct {
    const char *what;
    int worse;
    const char *names[MOST_NAMES]; /* names of the metric in a CSV; NULL after the last one */
} metrics[] = {
#define MGL_METRIC(id, what, worse, ...) {what, worse, {__VA_ARGS__}},
#include "autotune/kernels/methods/profile.def"
};

static const struct {
    const char *name;
    mgl_metric metric;
    bool above;
    double limit;
    const char *hint;
} classes[] = {
#define MGL_CLASS(id, name, metric, above, limit, hint)                                            \
    {name, MGL_METRIC_##metric, above, limit, hint},
#include "autotune/kernels/methods/profile.def"
};

const char *mgl_class_name(mgl_class class)
{
    return class < MGL_CLASS_COUNT ? classes[class].name : "unknown";
}

const char *mgl_class_hint(mgl_class class)
{
    return class < MGL_CLASS_COUNT ? classes[class].hint : "";
}

mgl_profile mgl_profile_unknown(void)
{
    mgl_profile p;
    for (int i = 0; i < MGL_METRIC_COUNT; i++)
        p.values[i] = NAN;
    return p;
}

void mgl_profile_add_facts(mgl_profile *p, const mgl_facts *facts)
{
    if (facts->time_us > 0)
        p->values[MGL_METRIC_TIME] = facts->time_us;
    if (facts->registers > 0)
        p->values[MGL_METRIC_REGISTERS] = facts->registers;
    if (facts->registers > 0 || facts->spill_bytes > 0)
        p->values[MGL_METRIC_SPILL] = facts->spill_bytes;
}

/* ---- a CSV ----------------------------------------------------------------------------------- */

/* The header row of the file. */
typedef struct head {
    int name, unit, value, kernel;  /* field numbers, if each row is a metric; NO_FIELD: none */
    int columns[MGL_METRIC_COUNT];  /* field numbers, if each column is a metric; NO_FIELD: none */
    double units[MGL_METRIC_COUNT]; /* factors for the values of the columns */
    int ranks[MGL_METRIC_COUNT];    /* which of its names (MGL_METRIC) each metric was found by */
} head;

/* Parses a number as "1,234.5" or "98.7 %"; NAN: no number, or more than a unit follows. */
static double number_of(const char *text)
{
    char digits[64], *end;
    size_t length = 0;
    for (; *text && length < sizeof digits - 1; text++)
        if (*text != ',')
            digits[length++] = *text;
    digits[length] = 0;
    double value = strtod(digits, &end);
    return end != digits && (!*end || strchr(" %", *end)) ? value : NAN;
}

/* Microseconds per unit of time; 1 for other units. */
static double scale_of(const char *unit)
{
    static const struct {
        const char *unit;
        double us;
    } units[] = {{"ns", 1e-3}, {"nsecond", 1e-3}, {"us", 1},  {"usecond", 1},
                 {"ms", 1e3},  {"msecond", 1e3},  {"s", 1e6}, {"second", 1e6}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (!strcmp(unit, units[i].unit))
            return units[i].us;
    return 1;
}

/* The metric with this name, and the index of the name; MGL_METRIC_COUNT: none. */
static mgl_metric metric_of(const char *name, int *rank)
{
    for (int m = 0; m < MGL_METRIC_COUNT; m++)
        for (*rank = 0; *rank < MOST_NAMES && metrics[m].names[*rank]; ++*rank)
            if (!strcmp(metrics[m].names[*rank], name))
                return (mgl_metric)m;
    return MGL_METRIC_COUNT;
}

static int field_of(const mgl_csv *csv, const char *name)
{
    for (size_t i = 0; i < csv->count; i++)
        if (!strcmp(mgl_csv_field(csv, i), name))
            return (int)i;
    return NO_FIELD;
}

/* Whether the row is a header row. */
static bool read_head(const mgl_csv *csv, head *h)
{
    h->kernel = field_of(csv, "Kernel Name");
    h->name = field_of(csv, "Metric Name");
    h->unit = field_of(csv, "Metric Unit");
    h->value = field_of(csv, "Metric Value");
    for (int m = 0; m < MGL_METRIC_COUNT; m++) {
        h->columns[m] = NO_FIELD;
        h->units[m] = 1;
        h->ranks[m] = MOST_NAMES;
    }
    for (size_t i = 0; i < csv->count; i++) {
        int rank;
        mgl_metric m = metric_of(mgl_csv_field(csv, i), &rank);
        if (m < MGL_METRIC_COUNT && rank < h->ranks[m]) {
            h->columns[m] = (int)i;
            h->ranks[m] = rank;
        }
    }
    return h->kernel != NO_FIELD;
}

static const char *field(const mgl_csv *csv, int index)
{
    return index == NO_FIELD ? "" : mgl_csv_field(csv, (size_t)index);
}

/* With metrics as columns, the row after the header contains units and no kernel name. */
static bool take_units(const mgl_csv *csv, head *h)
{
    if (h->name != NO_FIELD || field(csv, h->kernel)[0])
        return false;
    for (int m = 0; m < MGL_METRIC_COUNT; m++)
        h->units[m] = scale_of(field(csv, h->columns[m]));
    return true;
}

static void take_metric(const mgl_csv *csv, head *h, mgl_profile *p)
{
    int rank;
    mgl_metric m = metric_of(field(csv, h->name), &rank);
    double value = number_of(field(csv, h->value));
    if (m == MGL_METRIC_COUNT || !isfinite(value) || rank > h->ranks[m])
        return;
    h->ranks[m] = rank;
    p->values[m] = value * scale_of(field(csv, h->unit));
}

static void take_columns(const mgl_csv *csv, const head *h, mgl_profile *p)
{
    for (int m = 0; m < MGL_METRIC_COUNT; m++) {
        double value = number_of(field(csv, h->columns[m]));
        if (isfinite(value))
            p->values[m] = value * h->units[m];
    }
}

static void take_row(const mgl_csv *csv, head *h, const char *kernel, mgl_profile *p)
{
    if (take_units(csv, h) || (kernel && !strstr(field(csv, h->kernel), kernel)))
        return;
    if (h->name != NO_FIELD)
        take_metric(csv, h, p);
    else
        take_columns(csv, h, p);
}

/* Lines before the header may contain anything. They are read one by one, so that an open quote
 * in a line does not extend past its end. */
static mgl_status find_head(mgl_csv *csv, head *h, mgl_error *err)
{
    const char *end = csv->end;
    bool any = true;
    while (csv->at < end) {
        const char *stop = memchr(csv->at, '\n', (size_t)(end - csv->at));
        csv->end = stop ? stop + 1 : end;
        const char *next = csv->end;
        bool found = !mgl_csv_next(csv, &any, NULL) && read_head(csv, h);
        csv->at = next;
        csv->end = end;
        if (found)
            return MGL_OK;
    }
    return mgl_fail(err, MGL_BAD_INPUT, "CSV",
                    "there is no line with \"Kernel Name\": it is no output of `ncu --csv`");
}

mgl_status mgl_profile_read_csv(const char *text, size_t length, const char *kernel,
                                mgl_profile *profile, int *found, mgl_error *err)
{
    mgl_csv csv = {.at = text, .end = text + length};
    head h = {0};
    bool any = true;
    *found = 0;
    mgl_status status = find_head(&csv, &h, err);
    while (!status && any) {
        status = mgl_csv_next(&csv, &any, err);
        if (!status && any)
            take_row(&csv, &h, kernel, profile);
    }
    for (int m = 0; m < MGL_METRIC_COUNT; m++)
        *found += isfinite(profile->values[m]);
    mgl_csv_clear(&csv);
    return status;
}

/* ---- classification and hints ---------------------------------------------------------------- */

static bool holds(const mgl_profile *p, int class)
{
    double value = p->values[classes[class].metric];
    return isfinite(value) &&
           (classes[class].above ? value > classes[class].limit : value < classes[class].limit);
}

static bool is_stall(int class)
{
    return class >= MGL_CLASS_LATENCY_LONG && class <= MGL_CLASS_LATENCY_LG;
}

/* Returns the stall class with the largest metric, among the stall classes that hold. */
static mgl_class top_stall(const mgl_profile *p, int class)
{
    int top = class;
    for (int i = class; is_stall(i); i++)
        if (holds(p, i) && p->values[classes[i].metric] > p->values[classes[top].metric])
            top = i;
    return (mgl_class)top;
}

mgl_class mgl_profile_class(const mgl_profile *p)
{
    for (int i = 0; i < MGL_CLASS_COUNT; i++)
        if (holds(p, i))
            return is_stall(i) ? top_stall(p, i) : (mgl_class)i;
    return MGL_CLASS_UNKNOWN;
}

void mgl_profile_hint(const mgl_profile *p, mgl_text *out)
{
    mgl_class class = mgl_profile_class(p);
    if (class == MGL_CLASS_UNKNOWN) {
        mgl_text_put(out, "unknown: no measured value stands out");
        return;
    }
    mgl_metric metric = classes[class].metric;
    mgl_text_format(out, "%s (%s: %.4g): %s", classes[class].name, metrics[metric].what,
                    p->values[metric], classes[class].hint);
}

/* Relative worsening of a metric; 0: not worse, or unknown. */
static double worsening(const mgl_profile *before, const mgl_profile *after, int m)
{
    double was = before->values[m], is = after->values[m];
    if (!metrics[m].worse || !isfinite(was) || !isfinite(is))
        return 0;
    double change = metrics[m].worse * (is - was), base = fabs(was);
    if (change <= 0)
        return 0;
    return base > 0 ? change / base : INFINITY;
}

void mgl_profile_delta_hint(const mgl_profile *before, const mgl_profile *after, mgl_text *out)
{
    bool told[MGL_METRIC_COUNT] = {false};
    for (int i = 0; i < WORST; i++) {
        int worst = -1;
        for (int m = 0; m < MGL_METRIC_COUNT; m++)
            if (!told[m] && worsening(before, after, m) > worse_by &&
                (worst < 0 || worsening(before, after, m) > worsening(before, after, worst)))
                worst = m;
        if (worst < 0)
            break;
        told[worst] = true;
        mgl_text_format(out, "%s%s %.4g -> %.4g", i ? "; " : "It got worse: ", metrics[worst].what,
                        before->values[worst], after->values[worst]);
    }
}

void mgl_profile_put(const mgl_profile *before, const mgl_profile *after, mgl_text *out)
{
    mgl_text delta = {0};
    if (mgl_profile_class(after) != MGL_CLASS_UNKNOWN) {
        mgl_profile_hint(after, out);
        mgl_text_put(out, "\n");
    }
    mgl_profile_delta_hint(before, after, &delta);
    if (delta.length)
        mgl_text_format(out, "%s.\n", delta.bytes);
    out->failed = out->failed || delta.failed;
    mgl_text_clear(&delta);
}
