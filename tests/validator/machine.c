/* Implements the hash machine of the validator's tests. See machine.h. */
#include "machine.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum {
    CELL = 8 /* words of a head's partial result: q, k, v, past k, past v, split, splits, tail */
};
enum phase { WAITING, POLLING, STORING, SIGNALLING };
#define NOT_WRITTEN (~(uint64_t)0) /* a flag word; no hash is all ones */

/* A store that is not visible yet. */
struct store {
    uint64_t *to, value;
    bool flag;
};

struct queue {
    int epoch, task, signal;
    enum phase phase;
    bool early_reads; /* whether plain inputs are read before the flags */
    bool left;
    int polled;      /* number of inputs whose flags are checked */
    uint64_t token;  /* token that enter read */
    uint64_t *input; /* inputs of the current task */
    struct store *stores;
    int store_count; /* not yet visible */
};

struct machine {
    const mgl_program *p;
    struct outcome *out;
    uint32_t random;
    uint64_t **words;   /* (buffers) columns, cells, or past and now of each head; set after set */
    int *value, *total; /* (counters) */
    struct queue *queues;
    uint64_t token;
    int epoch;              /* epoch: number of completed samples */
    const mgl_task *sample; /* sample task of a program with penalties; else NULL */
};

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9E3779B97F4A7C15u;
    return h ^ (h >> 29);
}

static uint64_t mix_all(uint64_t h, const uint64_t *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        h = mix(h, values[i]);
    return h;
}

static uint32_t next_random(struct machine *m)
{
    m->random = m->random * 1664525u + 1013904223u;
    return m->random >> 8;
}

/* ---- buffers --------------------------------------------------------------------------------- */

static int64_t words_of(const mgl_buffer *b)
{
    if (b->space == MGL_SPACE_KV)
        return 2 * b->extents[1].count;
    if (b->rank == 4)
        return b->extents[0].count * b->extents[2].count * CELL;
    return b->rank == 2 ? b->extents[1].count * 2 : b->extents[0].count;
}

static const mgl_region *region(const struct machine *m, int task, int operand)
{
    return &m->p->regions[m->p->tasks[task].in.first + operand];
}

static uint64_t checkpoint_id(const struct machine *m, int tensor)
{
    uint64_t h = 77;
    for (const char *c = m->p->tensors[tensor].checkpoint; *c; c++)
        h = mix(h, (uint64_t)*c);
    return h;
}

/* The words of the buffer's set of an epoch. */
static uint64_t *set_of(const struct machine *m, int buffer, int epoch)
{
    const mgl_buffer *b = &m->p->buffers[buffer];
    return m->words[buffer] + words_of(b) * (epoch % b->sets);
}

/* The number of words that read_region copies. */
static int64_t region_words(const struct machine *m, const mgl_region *r)
{
    const mgl_buffer *b = &m->p->buffers[r->buffer];
    if (b->space == MGL_SPACE_CONST || b->space == MGL_SPACE_KV)
        return 1;
    const mgl_range *last = &r->ranges[b->rank - 1];
    if (b->rank == 4)
        return (r->ranges[0].hi - r->ranges[0].lo) * (r->ranges[2].hi - r->ranges[2].lo) * CELL;
    return last->hi - last->lo;
}

/* Copies the contents of an input region. */
static void read_region(const struct machine *m, const mgl_region *r, int epoch, uint64_t *to)
{
    const mgl_buffer *b = &m->p->buffers[r->buffer];
    const uint64_t *words = set_of(m, r->buffer, epoch);
    if (b->space == MGL_SPACE_CONST) {
        *to = b->source == MGL_SOURCE_TENSOR ? checkpoint_id(m, b->tensor) : 1;
    } else if (b->space == MGL_SPACE_KV) {
        *to = words[2 * r->ranges[1].lo];
    } else if (b->rank == 4) {
        int64_t heads = b->extents[2].count;
        for (int64_t s = r->ranges[0].lo; s < r->ranges[0].hi; s++)
            for (int64_t h = r->ranges[2].lo; h < r->ranges[2].hi; h++, to += CELL)
                memcpy(to, words + (s * heads + h) * CELL, CELL * sizeof *to);
    } else {
        memcpy(to, words + r->ranges[b->rank - 1].lo, (size_t)region_words(m, r) * sizeof *to);
    }
}

/* ---- stores ---------------------------------------------------------------------------------- */

/* Stores the value to word `at` of an output's buffer; it becomes visible later. */
static void store(struct machine *m, struct queue *q, int operand, int64_t at, uint64_t value)
{
    const mgl_region *r = region(m, q->task, operand);
    q->stores[q->store_count++] =
        (struct store){set_of(m, r->buffer, q->epoch) + at, value, r->flag};
}

/* Stores column `at` of a rank-2 output. */
static void store_column(struct machine *m, struct queue *q, int operand, int64_t at,
                         uint64_t value)
{
    store(m, q, operand, region(m, q->task, operand)->ranges[1].lo + at, value);
}

/* Makes the stores of flag words, or the others, visible to all queues. */
static void commit(struct queue *q, bool flags)
{
    int kept = 0;
    for (int i = 0; i < q->store_count; i++)
        if (q->stores[i].flag == flags)
            *q->stores[i].to = q->stores[i].value;
        else
            q->stores[kept++] = q->stores[i];
    q->store_count = kept;
}

/* ---- ops: from q->input to stores ------------------------------------------------------------ */

/* Stores y of every streamed row, computed from the hash of the input, and the same to `copy` if
 * the task has that operand. */
static void run_linear(struct machine *m, struct queue *q, uint64_t input, int y, int copy,
                       const uint64_t *add)
{
    const mgl_task *t = &m->p->tasks[q->task];
    int64_t at = 0;
    for (int i = 0; i < t->segments.count; i++) {
        const mgl_segment *s = &m->p->segments[t->segments.first + i];
        uint64_t weight = checkpoint_id(m, s->tensor);
        if (s->tensor2 >= 0)
            weight = mix(weight, checkpoint_id(m, s->tensor2));
        for (int64_t row = s->row_lo; row < s->row_hi; row++, at++) {
            uint64_t value = mix(mix(input, weight), (uint64_t)row);
            value = add ? mix(add[at], value) : value;
            store_column(m, q, y, at, value);
            if (copy && copy < t->in.count + t->out.count)
                store_column(m, q, copy, at, value);
        }
    }
}

static void append(struct machine *m, struct queue *q, int operand, uint64_t hash)
{
    store(m, q, operand, 2 * region(m, q->task, operand)->ranges[1].lo + 1, hash);
}

static uint64_t attention_of(const uint64_t *cell)
{
    return mix_all(5, cell, 5);
}

/* The cell of query head `head` of the input: q, k, v, past k, past v. */
static void make_cell(const struct machine *m, const uint64_t *input, int head, bool tail,
                      uint64_t cell[CELL])
{
    int64_t d = m->p->geometry.head_dim, group = m->p->geometry.heads / m->p->geometry.kv_heads;
    const uint64_t *kv = input + group * d, *past = kv + (tail ? 2 * d : 0) + 1;
    memset(cell, 0, CELL * sizeof *cell);
    cell[0] = mix_all(1, input + head * d, d);
    cell[1] = tail ? mix_all(2, kv, d) : 0;
    cell[2] = tail ? mix_all(2, kv + d, d) : 0;
    cell[3] = past[0];
    cell[4] = past[1];
    cell[7] = tail;
}

static void run_attention(struct machine *m, struct queue *q)
{
    mgl_op op = m->p->tasks[q->task].op;
    bool tail = op != MGL_OP_ATTEND_PAST;
    int d = m->p->geometry.head_dim, group = m->p->geometry.heads / m->p->geometry.kv_heads;
    int y = mgl_op_get(op)->in_count;
    const mgl_region *r = region(m, q->task, y);
    uint64_t cell[CELL];
    for (int head = 0; head < group; head++) {
        make_cell(m, q->input, head, tail, cell);
        if (op == MGL_OP_ATTEND) {
            for (int j = 0; j < d; j++)
                store_column(m, q, y, head * d + j, mix(attention_of(cell), (uint64_t)j));
            continue;
        }
        const mgl_buffer *part = &m->p->buffers[r->buffer];
        int64_t at = r->ranges[0].lo * part->extents[2].count + r->ranges[2].lo + head;
        cell[5] = (uint64_t)r->ranges[0].lo;
        cell[6] = (uint64_t)part->extents[0].count;
        for (int i = 0; i < CELL; i++)
            store(m, q, y, at * CELL + i, cell[i]);
    }
    if (tail) {
        append(m, q, y + 1, cell[1]);
        append(m, q, y + 2, cell[2]);
    }
}

/* Column j of a head, merged from the task's partial results. */
static uint64_t merged_column(struct machine *m, const struct queue *q, int64_t head, int j)
{
    const mgl_region *r = region(m, q->task, 0);
    int64_t splits = r->ranges[0].hi, heads = r->ranges[2].hi - r->ranges[2].lo;
    const uint64_t *tail = NULL, *first = q->input + head * CELL;
    bool good = true;
    for (int64_t s = 0; s < splits; s++) {
        const uint64_t *cell = q->input + (s * heads + head) * CELL;
        good = good && cell[0] == first[0] && cell[3] == first[3] && cell[4] == first[4] &&
               cell[5] == (uint64_t)s && cell[6] == (uint64_t)splits && !(tail && cell[7]);
        if (cell[7])
            tail = cell;
    }
    return good && tail ? mix(attention_of(tail), (uint64_t)j) : next_random(m);
}

static void run_merge(struct machine *m, struct queue *q)
{
    const mgl_region *r = region(m, q->task, 0);
    int64_t heads = r->ranges[2].hi - r->ranges[2].lo, at = 0;
    for (int64_t head = 0; head < heads; head++)
        for (int j = 0; j < m->p->geometry.head_dim; j++)
            store_column(m, q, 1, at++, merged_column(m, q, head, j));
}

/* linear_add of the merged columns. */
static void run_merge_add(struct machine *m, struct queue *q)
{
    const mgl_region *part = region(m, q->task, 0);
    const int64_t heads = part->ranges[2].hi - part->ranges[2].lo, d = m->p->geometry.head_dim;
    uint64_t *columns = malloc((size_t)(heads * d) * sizeof *columns);
    for (int64_t i = 0; i < heads * d; i++)
        columns[i] = merged_column(m, q, i / d, (int)(i % d));
    run_linear(m, q, mix_all(4, columns, heads * d), 2, 3, q->input + region_words(m, part));
    free(columns);
}

/* Penalized logits: the logits just stored, with counts and sequence, which follow x and g. */
static void penalize(struct machine *m, struct queue *q, int y)
{
    const mgl_region *counts = region(m, q->task, 2), *sequence = region(m, q->task, 3);
    const int64_t n = region_words(m, counts);
    const uint64_t *count =
        q->input + region_words(m, region(m, q->task, 0)) + region_words(m, region(m, q->task, 1));
    const uint64_t state = mix_all(6, count + n, region_words(m, sequence));
    const int first = q->store_count - (int)n;
    for (int64_t i = 0; i < n; i++)
        store_column(m, q, y, i, mix(mix(q->stores[first + i].value, count[i]), state));
}

static void run_head(struct machine *m, struct queue *q, uint64_t input)
{
    const mgl_task *t = &m->p->tasks[q->task];
    const int first = t->in.count;
    const mgl_region *logits = region(m, q->task, first);
    run_linear(m, q, input, first, 0, NULL);
    if (t->out.count > 3)
        penalize(m, q, first + 3);
    for (int i = first + 1; i <= first + 2; i++) {
        int64_t part = region(m, q->task, i)->ranges[1].lo;
        store(m, q, i, 2 * part, (uint64_t)logits->ranges[1].lo);
        store(m, q, i, 2 * part + 1, (uint64_t)logits->ranges[1].hi);
    }
}

/* Word w of a cell represents column w * columns / CELL of the partial results. */
static bool clears_word(const mgl_region *r, const mgl_buffer *b, int64_t word)
{
    if (b->rank == 2)
        return word >= r->ranges[1].lo && word < r->ranges[1].hi;
    int64_t split = word / CELL / b->extents[2].count, head = word / CELL % b->extents[2].count;
    int64_t column = word % CELL * b->extents[3].count / CELL;
    return split >= r->ranges[0].lo && split < r->ranges[0].hi && head >= r->ranges[2].lo &&
           head < r->ranges[2].hi && column >= r->ranges[3].lo && column < r->ranges[3].hi;
}

static void run_clear(struct machine *m, struct queue *q)
{
    for (int i = 0; i < m->p->tasks[q->task].out.count; i++) {
        const mgl_region *r = region(m, q->task, i);
        const mgl_buffer *b = &m->p->buffers[r->buffer];
        uint64_t *words = set_of(m, r->buffer, q->epoch + 1);
        for (int64_t w = 0; w < words_of(b); w++)
            if (clears_word(r, b, w))
                q->stores[q->store_count++] = (struct store){words + w, NOT_WRITTEN, false};
    }
}

/* Whether a buffer keeps tokens between epochs: sequence, and counts. */
static bool is_memory(const struct machine *m, int buffer)
{
    const mgl_task *sample = m->sample;
    return sample &&
           (mgl_task_operand(m->p, sample, MGL_OPERAND(sample, sequence))->buffer == buffer ||
            mgl_task_operand(m->p, sample, MGL_OPERAND(sample, counts))->buffer == buffer);
}

/* Between two epochs: hashes the cache, and scrambles the rest except flag words and the buffers
 * that keep tokens, which the program must handle. */
static void cross_epoch(struct machine *m)
{
    for (int i = 0; i < m->p->buffer_count; i++) {
        const mgl_buffer *b = &m->p->buffers[i];
        for (int64_t w = 0; w < words_of(b) && b->sets == 1 && !is_memory(m, i); w++)
            if (b->space != MGL_SPACE_KV)
                m->words[i][w] = next_random(m);
            else if (w % 2 == 0)
                m->words[i][w] = mix(m->words[i][w], m->words[i][w + 1]);
            else
                m->words[i][w] = next_random(m);
    }
}

/* Mixes the token into each word of an output. */
static void remember(struct machine *m, struct queue *q, int operand)
{
    const mgl_region *to = mgl_task_operand(m->p, m->sample, operand);
    const uint64_t *words = m->words[to->buffer];
    const int place = mgl_task_place(m->sample, operand);
    for (int64_t i = 0; i < region_words(m, to); i++)
        store_column(m, q, place, i, mix(words[i], mix(m->token, (uint64_t)i)));
}

/* Inputs of sample for penalized logits, after its other inputs. */
static uint64_t hash_penalized(const struct machine *m, const uint64_t *input)
{
    for (int i = 0; i < mgl_op_get(MGL_OP_SAMPLE)->in_count; i++)
        input += region_words(m, &m->p->regions[m->sample->in.first + i]);
    return mix_all(8, input, m->p->geometry.vocab);
}

static void run_sample(struct machine *m, struct queue *at_hand)
{
    const int task = at_hand->task;
    const uint64_t *input = at_hand->input;
    const mgl_region *best = region(m, task, 1);
    uint64_t at = 0;
    for (int64_t part = 0; part < best->ranges[1].hi; part++)
        for (int i = 1; i <= 2; i++) {
            const uint64_t *words = m->words[region(m, task, i)->buffer] + 2 * part;
            if (words[0] != at)
                m->out->unordered = true;
            if (i == 2)
                at = words[1];
        }
    m->token = mix_all(9, input, m->p->geometry.vocab);
    if (m->sample) {
        m->token = mix(m->token, hash_penalized(m, input));
        remember(m, at_hand, MGL_OPERAND(sample, sequence_next));
        remember(m, at_hand, MGL_OPERAND(sample, counts));
    }
    m->out->tokens[m->epoch++] = m->token;
    for (int q = 0; q < m->p->queue_count; q++) {
        const struct queue *queue = &m->queues[q];
        int last = m->p->queues[q].tasks.first + m->p->queues[q].tasks.count - 1;
        if (queue->epoch < m->epoch &&
            !(queue->task == last && (queue->signal > 0 || last == task)))
            m->out->unordered = true;
    }
    cross_epoch(m);
}

static void run_embed(struct machine *m, struct queue *q)
{
    const mgl_task *t = &m->p->tasks[q->task];
    const mgl_region *from = region(m, q->task, 0), *to = region(m, q->task, 1);
    for (int64_t i = 0; i < to->ranges[1].hi - to->ranges[1].lo; i++)
        for (int y = 1; y <= t->out.count; y++)
            store_column(m, q, y, i,
                         mix(mix(q->token, q->input[0]), (uint64_t)(from->ranges[1].lo + i)));
}

static void run_task(struct machine *m, struct queue *q)
{
    const mgl_task *t = &m->p->tasks[q->task];
    const uint64_t *in = q->input;
    int64_t x = t->in.count ? m->p->buffers[region(m, q->task, 0)->buffer].extents[1].count : 0;
    switch (t->op) {
    case MGL_OP_ENTER:
        q->token = m->token;
        q->left = m->epoch == MACHINE_EPOCHS;
        break;
    case MGL_OP_EMBED:
        run_embed(m, q);
        break;
    case MGL_OP_NORM_LINEAR:
    case MGL_OP_NORM_SWIGLU:
        run_linear(m, q, mix_all(3, in, x + 1), 2, 0, NULL);
        break;
    case MGL_OP_LINEAR_ADD:
        run_linear(m, q, mix_all(4, in, x), 2, 3, in + x);
        break;
    case MGL_OP_ATTEND:
    case MGL_OP_ATTEND_TAIL:
    case MGL_OP_ATTEND_PAST:
        run_attention(m, q);
        break;
    case MGL_OP_MERGE:
        run_merge(m, q);
        break;
    case MGL_OP_MERGE_ADD:
        run_merge_add(m, q);
        break;
    case MGL_OP_HEAD:
        run_head(m, q, mix_all(3, in, x + 1));
        break;
    case MGL_OP_SAMPLE:
        run_sample(m, q);
        break;
    case MGL_OP_CLEAR:
        run_clear(m, q);
        break;
    case MGL_OP_EMBED_GAMMA: /* an op of the second list, which this machine does not run */
    case MGL_OP_LINEAR_ADD_GAMMA:
    case MGL_OP_RMS_LINEAR:
    case MGL_OP_RMS_SWIGLU:
    case MGL_OP_RMS_HEAD:
    case MGL_OP_ATTEND_ROWS:
    case MGL_OP_DRAW: /* an op of programs with several sequences, not run either */
    case MGL_OP_COUNT:
        break;
    }
}

/* ---- queues ---------------------------------------------------------------------------------- */

/* Copies input `operand` to q->input; false if some of its words are not written. */
static bool read_input(struct machine *m, struct queue *q, int operand)
{
    uint64_t *to = q->input;
    for (int i = 0; i < operand; i++)
        to += region_words(m, region(m, q->task, i));
    const mgl_region *r = region(m, q->task, operand);
    read_region(m, r, q->epoch, to);
    for (int64_t w = 0; w < region_words(m, r) && r->flag; w++)
        if (to[w] == NOT_WRITTEN)
            return false;
    return true;
}

/* A queue sees its own stores; then all queues see them. */
static void read_plain(struct machine *m, struct queue *q)
{
    commit(q, false);
    for (int i = 0; i < m->p->tasks[q->task].in.count; i++)
        if (!region(m, q->task, i)->flag)
            read_input(m, q, i);
}

/* Checks the next flag input; false if it must wait. */
static bool poll(struct machine *m, struct queue *q)
{
    const mgl_task *t = &m->p->tasks[q->task];
    while (q->polled < t->in.count && !region(m, q->task, q->polled)->flag)
        q->polled++;
    if (q->polled < t->in.count)
        return read_input(m, q, q->polled) && ++q->polled;
    if (!q->early_reads)
        read_plain(m, q);
    commit(q, false);
    run_task(m, q);
    q->phase = STORING;
    return true;
}

static bool can_start(const struct machine *m, const struct queue *q)
{
    const mgl_task *t = &m->p->tasks[q->task];
    for (int i = 0; i < t->waits.count; i++) {
        const mgl_wait *wait = &m->p->waits[t->waits.first + i];
        if (m->value[wait->counter] < q->epoch * m->total[wait->counter] + wait->threshold)
            return false;
    }
    return true;
}

static void next_task(struct machine *m, struct queue *q, int index)
{
    const mgl_run *tasks = &m->p->queues[index].tasks;
    q->phase = WAITING;
    q->signal = 0;
    if (++q->task == tasks->first + tasks->count) {
        q->task = tasks->first;
        q->epoch++;
    }
}

/* Executes one step of a queue; false if it must wait. */
static bool step(struct machine *m, int index)
{
    struct queue *q = &m->queues[index];
    const mgl_task *t = &m->p->tasks[q->task];
    if (q->left)
        return false;
    switch (q->phase) {
    case WAITING:
        if (!can_start(m, q))
            return false;
        q->early_reads = next_random(m) % 2;
        if (q->early_reads)
            read_plain(m, q);
        q->polled = 0;
        q->phase = POLLING;
        return true;
    case POLLING:
        return poll(m, q);
    case STORING:
        /* Flags order only themselves: other stores may become visible later, at the latest at a
         * signal. */
        if (next_random(m) % 2)
            commit(q, false);
        commit(q, true);
        q->phase = SIGNALLING;
        return true;
    case SIGNALLING:
        if (q->signal == t->signals.count) {
            next_task(m, q, index);
            return true;
        }
        commit(q, false);
        m->value[m->p->signals[t->signals.first + q->signal++]]++;
        return true;
    }
    return false;
}

static void *zeroed(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);
    ck_assert_ptr_nonnull(memory);
    return memory;
}

void machine_run(const mgl_program *p, uint32_t seed, struct outcome *out)
{
    struct machine m = {.p = p, .out = out, .random = seed * 2654435761u + 99, .token = 42};
    int64_t most = 64;
    memset(out, 0, sizeof *out);
    m.words = zeroed((size_t)p->buffer_count, sizeof *m.words);
    for (int i = 0; i < p->buffer_count; i++) {
        const mgl_buffer *b = &p->buffers[i];
        size_t words = (size_t)(words_of(b) * b->sets);
        m.words[i] = zeroed(words, sizeof **m.words);
        for (size_t w = 0; w < words && b->sets > 1; w++)
            m.words[i][w] = NOT_WRITTEN;
        most += 2 * words_of(b);
    }
    for (int i = 0; i < p->task_count; i++)
        if (p->tasks[i].op == MGL_OP_SAMPLE && mgl_program_has_penalties(p))
            m.sample = &p->tasks[i];
    m.value = zeroed((size_t)p->counter_count, sizeof *m.value);
    m.total = zeroed((size_t)p->counter_count, sizeof *m.total);
    for (int i = 0; i < p->signal_count; i++)
        m.total[p->signals[i]]++;
    m.queues = zeroed((size_t)p->queue_count, sizeof *m.queues);
    for (int q = 0; q < p->queue_count; q++) {
        m.queues[q].task = p->queues[q].tasks.first;
        m.queues[q].input = zeroed((size_t)most, sizeof(uint64_t));
        m.queues[q].stores = zeroed((size_t)most, sizeof(struct store));
    }
    /* A queue runs several steps before another queue is drawn, because races show if queues are
     * far apart. */
    int idle = 0, queue = 0;
    for (int stay = 0; idle < 50 * p->queue_count; stay--) {
        if (stay <= 0) {
            queue = (int)(next_random(&m) % (uint32_t)p->queue_count);
            stay = 1 + (int)(next_random(&m) % 30);
        }
        if (step(&m, queue)) {
            idle = 0;
        } else {
            idle++;
            stay = 0;
        }
    }
    for (int q = 0; q < p->queue_count; q++) {
        out->stuck = out->stuck || !m.queues[q].left;
        free(m.queues[q].input);
        free(m.queues[q].stores);
    }
    for (int i = 0; i < p->buffer_count; i++)
        free(m.words[i]);
    free(m.words);
    free(m.value);
    free(m.total);
    free(m.queues);
}
