/*
 * Measures the error of a 16-bit machine against f32, over the texts of a yardstick file.
 * yardstick.py makes the file and adds the error of Hugging Face's bf16.
 *
 *     fidelity MODEL YARDSTICK [--texts N] [--dtype bf16] [--device cuda|cpu] [--config F]
 *
 * --texts: only the first N texts. The reference is the CPU machine in f32, token by token. The
 * other machine reads each text in two ways: as a reply, one token per launch, and as prompts, with
 * all tokens of each prefix in one launch. For each position but the last: KL(f32 || 16 bits) in
 * nats of the next token's distribution, and the error of the negative log-likelihood of the text's
 * own token. Prints one JSON object: the means per token beside Hugging Face's, and the difference
 * with its 95 % interval from MOST_DRAWS resamples of the texts (Efron and Tibshirani, "An
 * introduction to the bootstrap", 1993, the percentile interval). The exit code is 6 if a mean
 * exceeds Hugging Face's and the whole interval is above 0.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/draw.h"
#include "base/json.h"
#include "base/memory.h"
#include "eval/statistics.h"
#include "importer/checkpoint.h"
#include "schedule/schedule.h"
#include "vm/cuda/cuda.h"
#include "vm/vm.h"

enum { MOST_TEXTS = 1000, MOST_TOKENS = 4096, MOST_DRAWS = MGL_MAX_SAMPLES, MOST_BYTES = 64 << 20 };

enum { REPLIES, PROMPTS, THEIRS, READERS };
static const char *const names[READERS] = {"replies", "prompts", "hugging_face"};

/* Sums over the tokens of a text. */
typedef struct sums {
    double kl, error;
} sums;

typedef struct text {
    int32_t *ids; /* (count) owned */
    int count;
    double nll; /* negative log-likelihood in f32, from the CPU machine */
    sums of[READERS];
} text;

static struct {
    const char *model, *yardstick, *config;
    mgl_dtype dtype;
    mgl_vm_kind kind;
    int texts;
} options = {.dtype = MGL_BF16, .kind = MGL_VM_CUDA, .texts = MOST_TEXTS};

typedef struct machine {
    mgl_program *program;
    mgl_vm *vm;
} machine;

static text texts[MOST_TEXTS];
static int text_count;

static int fail(const mgl_error *err)
{
    fprintf(stderr, "fidelity: %s%s%s\n", err->where, err->where[0] ? ": " : "", err->message);
    return err->code < 7 ? (int)err->code : 1;
}

/* ---- the yardstick --------------------------------------------------------------------------- */

static mgl_status read_text(const cJSON *json, text *out, mgl_error *err)
{
    const cJSON *ids = cJSON_GetObjectItem(json, "ids"), *id;
    const cJSON *kl = cJSON_GetObjectItem(json, "kl"), *error = cJSON_GetObjectItem(json, "error");
    const int count = cJSON_GetArraySize(ids);
    if (count < 2 || count > MOST_TOKENS || !cJSON_IsNumber(kl) || !cJSON_IsNumber(error))
        return mgl_fail(err, MGL_BAD_INPUT, NULL,
                        "a text has no ids, kl or error; make the file "
                        "anew with yardstick.py");
    out->ids = mgl_alloc((size_t)count * sizeof *out->ids);
    if (!out->ids)
        return mgl_fail_memory(err, (size_t)count * sizeof *out->ids);
    cJSON_ArrayForEach(id, ids) out->ids[out->count++] = id->valueint;
    out->of[THEIRS] = (sums){kl->valuedouble, error->valuedouble};
    return MGL_OK;
}

static mgl_status read_yardstick(const mgl_json *json, mgl_error *err)
{
    const cJSON *list = cJSON_GetObjectItem(json->root, "texts"), *entry;
    mgl_status status = MGL_OK;
    if (!cJSON_GetArraySize(list) || cJSON_GetArraySize(list) > MOST_TEXTS)
        return mgl_fail(err, MGL_BAD_INPUT, NULL, "it has no texts, or more than %d", MOST_TEXTS);
    cJSON_ArrayForEach(entry, list)
    {
        if (!status && text_count < options.texts)
            status = read_text(entry, &texts[text_count++], err);
    }
    return status;
}

/* ---- machines -------------------------------------------------------------------------------- */

static int longest(void)
{
    int most = 0;
    for (int t = 0; t < text_count; t++)
        most = texts[t].count > most ? texts[t].count : most;
    return most;
}

static mgl_status open_machine(const mgl_graph *graph, mgl_vm_kind kind, mgl_dtype dtype,
                               const char *file, machine *out, mgl_error *err)
{
    mgl_schedule_config config;
    mgl_target target;
    mgl_schedule_config_default(&config);
    const mgl_lower_options lower = {.dtype = dtype, .sequences = 1, .capacity = longest() + 1};
    const mgl_vm_options with = {.kind = kind, .deadline_ms = 10000};
    mgl_status status = kind == MGL_VM_CUDA ? mgl_cuda_live_target(0, &target, err)
                                            : mgl_target_parse("cpu:4", &target, err);
    if (!status && file)
        status = mgl_schedule_config_read(file, &config, err);
    if (!status)
        status = mgl_schedule_lower(graph, &target, &lower, &config, &out->program, err);
    return status ? status : mgl_vm_open(out->program, graph, &with, &out->vm, err);
}

static void close_machine(machine *m)
{
    mgl_vm_close(m->vm);
    mgl_program_free(m->program);
}

/* Log-probabilities of the token after ids [0, start + count); the first `start` ids are in the
 * cache. */
static mgl_status read_ids(machine *m, const int32_t *ids, int start, int count, int vocab,
                           float *logits, double *logp, mgl_error *err)
{
    mgl_vm_report report;
    const mgl_vm_sequence sequence = {
        .prompt = ids + start, .prompt_count = count, .start = start, .max_new = 1};
    const mgl_vm_request request = {.sequences = &sequence, .count = 1};
    mgl_status status = mgl_vm_run(m->vm, &request, &report, err);
    if (!status)
        status = mgl_vm_get_logits(m->vm, logits, err);
    if (status)
        return status;
    double most = logits[0], sum = 0;
    for (int v = 1; v < vocab; v++)
        most = fmax(most, logits[v]);
    for (int v = 0; v < vocab; v++)
        sum += exp(logits[v] - most);
    for (int v = 0; v < vocab; v++)
        logp[v] = logits[v] - most - log(sum);
    return MGL_OK;
}

/* ---- reading --------------------------------------------------------------------------------- */

static void add(const double *p, const double *q, int vocab, int32_t told, sums *to)
{
    for (int v = 0; v < vocab; v++)
        to->kl += exp(p[v]) * (p[v] - q[v]);
    to->error += fabs(p[told] - q[told]);
}

typedef struct room {
    float *logits; /* (vocab) */
    double *p, *q; /* (vocab) logarithms */
    int vocab;
} room;

static mgl_status measure(machine *exact, machine *other, text *t, const room *r, mgl_error *err)
{
    mgl_status status = MGL_OK;
    for (int i = 0; i + 1 < t->count && !status; i++) {
        status = read_ids(exact, t->ids, i, 1, r->vocab, r->logits, r->p, err);
        t->nll -= r->p[t->ids[i + 1]];
        if (!status)
            status = read_ids(&other[REPLIES], t->ids, i, 1, r->vocab, r->logits, r->q, err);
        add(r->p, r->q, r->vocab, t->ids[i + 1], &t->of[REPLIES]);
        if (!status)
            status = read_ids(&other[PROMPTS], t->ids, 0, i + 1, r->vocab, r->logits, r->q, err);
        add(r->p, r->q, r->vocab, t->ids[i + 1], &t->of[PROMPTS]);
    }
    return status;
}

static mgl_status measure_all(machine *exact, machine *other, int vocab, mgl_error *err)
{
    const size_t n = (size_t)vocab;
    mgl_status status = MGL_OK;
    room r = {mgl_alloc(n * sizeof(float)), mgl_alloc(n * sizeof(double)),
              mgl_alloc(n * sizeof(double)), vocab};
    if (!r.logits || !r.p || !r.q)
        status = mgl_fail_memory(err, n * sizeof(double));
    for (int t = 0; t < text_count && !status; t++)
        status = measure(exact, other, &texts[t], &r, err);
    mgl_free(r.logits);
    mgl_free(r.p);
    mgl_free(r.q);
    return status;
}

/* ---- sums and intervals ---------------------------------------------------------------------- */

static double part(const sums *s, bool error)
{
    return error ? s->error : s->kl;
}

/* Mean per token of `reader` over the texts `drawn`; `less`: minus Hugging Face's. */
static double mean(int reader, bool error, bool less, const int *drawn)
{
    double sum = 0, tokens = 0;
    for (int i = 0; i < text_count; i++) {
        const text *t = &texts[drawn ? drawn[i] : i];
        sum += part(&t->of[reader], error) - (less ? part(&t->of[THEIRS], error) : 0);
        tokens += t->count - 1;
    }
    return sum / tokens;
}

typedef struct interval {
    double mean, low, high;
} interval;

static interval difference(int reader, bool error)
{
    static double means[MOST_DRAWS];
    static int drawn[MOST_TEXTS];
    uint64_t state = 1;
    for (int d = 0; d < MOST_DRAWS; d++) {
        for (int i = 0; i < text_count; i++)
            drawn[i] = (int)mgl_draw_below(&state, (uint64_t)text_count);
        means[d] = mean(reader, error, true, drawn);
    }
    return (interval){mean(reader, error, true, NULL), mgl_quantile(means, MOST_DRAWS, 0.025),
                      mgl_quantile(means, MOST_DRAWS, 0.975)};
}

/* Returns false if the machine is worse. */
static bool print_reader(int reader, bool error)
{
    const interval d = difference(reader, error);
    printf(",\n   \"%s\":%.4e,\"%s_less_hugging_face\":[%.3e,%.3e,%.3e]",
           error ? "nll_error" : "kl", mean(reader, error, false, NULL), error ? "nll_error" : "kl",
           d.mean, d.low, d.high);
    return d.low <= 0;
}

static bool print(const mgl_json *yardstick, const machine *m)
{
    const cJSON *with = cJSON_GetObjectItem(yardstick->root, "with");
    double nll = 0;
    int tokens = 0;
    bool good = true;
    mgl_vm_facts facts;
    mgl_vm_get_facts(m->vm, &facts);
    for (int t = 0; t < text_count; t++) {
        nll += texts[t].nll;
        tokens += texts[t].count - 1;
    }
    printf("{\"schema\":\"megalith.fidelity/1\",\"device\":\"%s\",\"dtype\":\"%s\","
           "\"rows\":%d,\"second_rows\":%d,\n \"hugging_face\":\"%s\",\"texts\":%d,\"tokens\":%d,"
           "\"nll_f32\":%.4f,\n \"ways\":[",
           facts.device, mgl_dtype_name(options.dtype), m->program->limits.rows,
           m->program->limits.second_rows, cJSON_IsString(with) ? with->valuestring : "",
           text_count, tokens, nll);
    for (int reader = 0; reader < READERS; reader++) {
        printf("%s\n  {\"way\":\"%s\"", reader ? "," : "", names[reader]);
        good = print_reader(reader, false) && good;
        good = print_reader(reader, true) && good;
        printf("}");
    }
    printf("]}\n");
    return good;
}

static bool parse(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(argv[i], "--dtype") && mgl_dtype_parse(value, &options.dtype))
            i++;
        else if (!strcmp(argv[i], "--device") && (!strcmp(value, "cuda") || !strcmp(value, "cpu")))
            options.kind = !strcmp(argv[++i], "cpu") ? MGL_VM_CPU : MGL_VM_CUDA;
        else if (!strcmp(argv[i], "--texts") && (options.texts = atoi(value)) > 0)
            i++;
        else if (!strcmp(argv[i], "--config") && *value)
            options.config = argv[++i];
        else if (argv[i][0] != '-' && !options.model)
            options.model = argv[i];
        else if (argv[i][0] != '-' && !options.yardstick)
            options.yardstick = argv[i];
        else
            return false;
    }
    return options.yardstick;
}

static mgl_status run(mgl_json *yardstick, mgl_checkpoint **checkpoint, machine *exact,
                      machine *other, bool *good, mgl_error *err)
{
    const mgl_dtype dtype = options.dtype;
    mgl_status status = mgl_json_read_file(options.yardstick, MOST_BYTES, yardstick, err);
    if (!status)
        status = read_yardstick(yardstick, err);
    if (!status)
        status = mgl_import(options.model, checkpoint, err);
    if (status)
        return status;
    const mgl_graph *graph = (*checkpoint)->graph;
    status = open_machine(graph, MGL_VM_CPU, MGL_F32, NULL, exact, err);
    for (int i = 0; i < 2 && !status; i++)
        status = open_machine(graph, options.kind, dtype, options.config, &other[i], err);
    if (!status)
        status = measure_all(exact, other, graph->geometry.vocab, err);
    if (!status)
        *good = print(yardstick, other);
    return status;
}

int main(int argc, char **argv)
{
    mgl_error err = {0};
    mgl_checkpoint *checkpoint = NULL;
    mgl_json yardstick = {0};
    machine exact = {0}, other[2] = {0};
    bool good = false;
    if (!parse(argc, argv))
        return fprintf(stderr, "fidelity MODEL YARDSTICK [--texts N] [--dtype bf16] "
                               "[--device cuda|cpu] [--config F]\n"),
               1;
    mgl_status status = run(&yardstick, &checkpoint, &exact, other, &good, &err);
    close_machine(&exact);
    close_machine(&other[REPLIES]);
    close_machine(&other[PROMPTS]);
    mgl_checkpoint_close(checkpoint);
    mgl_json_clear(&yardstick);
    for (int t = 0; t < text_count; t++)
        mgl_free(texts[t].ids);
    return status ? fail(&err) : good ? 0 : MGL_GATE;
}
