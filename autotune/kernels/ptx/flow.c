/* Implements flow.h: register writers, labels, basic blocks, dominators and natural loops. */
#include "autotune/kernels/ptx/flow.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

/* ---- results --------------------------------------------------------------------------------- */

int32_t mgl_ptx_result(const mgl_ptx *ptx, const mgl_ptx_instruction *instruction)
{
    static const char *const none[] = {"bar", "barrier", "bra", "brx", "ret", "call", "nanosleep"};
    if (!instruction->operand_count)
        return MGL_PTX_NONE;
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        if (mgl_ptx_is(instruction, none[i]))
            return MGL_PTX_NONE;
    const mgl_ptx_operand *first = &ptx->operands[instruction->first_operand];
    return first->address || first->kind != MGL_PTX_REGISTER ? MGL_PTX_NONE : first->id;
}

static void add_writer(mgl_ptx_flow *flow, int32_t id, int32_t at)
{
    uint32_t first = flow->function->first;
    if (flow->writer[id] != MGL_PTX_NONE)
        flow->next_writer[(uint32_t)at - first] = flow->writer[id];
    flow->writer[id] = at;
    flow->writers[id]++;
}

/* Finds the instructions that write each register. All registers of the first operand are results,
 * but only the first result has a list of its writers. */
static void find_writers(mgl_ptx_flow *flow)
{
    const mgl_ptx *ptx = flow->ptx;
    for (uint32_t i = 0; i < flow->function->count; i++) {
        uint32_t at = flow->function->first + i;
        const mgl_ptx_instruction *instruction = &ptx->instructions[at];
        flow->next_writer[i] = MGL_PTX_NONE;
        if (mgl_ptx_result(ptx, instruction) == MGL_PTX_NONE)
            continue;
        const mgl_ptx_operand *operands = ptx->operands + instruction->first_operand;
        add_writer(flow, operands[0].id, (int32_t)at);
        for (uint32_t k = 1; k < instruction->operand_count && operands[k].slot == 0; k++)
            if (operands[k].kind == MGL_PTX_REGISTER && !operands[k].address) {
                flow->writers[operands[k].id] += 2; /* counted as two writers, so that no value is
                                                     * traced through the register */
                if (flow->writer[operands[k].id] == MGL_PTX_NONE)
                    flow->writer[operands[k].id] = (int32_t)at;
            }
    }
}

/* ---- labels ---------------------------------------------------------------------------------- */

/* The labels of a module, sorted by scope and name. */
typedef struct label_table {
    const mgl_ptx *ptx;
    mgl_ptx_label *labels; /* (ptx->label_list.count) */
} label_table;

static int compare_labels(const void *a, const void *b)
{
    const mgl_ptx_label *x = a, *y = b;
    return x->scope != y->scope ? (x->scope > y->scope) - (x->scope < y->scope)
                                : mgl_ptx_compare(x->name, y->name);
}

/* The label that a branch in `scope` refers to by a name. */
static const mgl_ptx_label *find_label(const label_table *table, mgl_ptx_slice name, int32_t scope)
{
    const mgl_ptx_label *label = NULL;
    for (; !label && scope != MGL_PTX_NONE; scope = table->ptx->scopes[scope]) {
        const mgl_ptx_label key = {.name = name, .scope = scope};
        label =
            bsearch(&key, table->labels, table->ptx->label_list.count, sizeof key, compare_labels);
    }
    return label;
}

static mgl_status make_table(const mgl_ptx *ptx, label_table *table, mgl_error *err)
{
    size_t count = ptx->label_list.count;
    *table = (label_table){ptx, mgl_alloc_zero(count + 1, sizeof *table->labels)};
    if (!table->labels)
        return mgl_fail_memory(err, count * sizeof *table->labels);
    if (count)
        memcpy(table->labels, ptx->labels, count * sizeof *table->labels);
    qsort(table->labels, count, sizeof *table->labels, compare_labels);
    return MGL_OK;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static bool ends_block(const mgl_ptx_instruction *i)
{
    return mgl_ptx_is(i, "bra") || mgl_ptx_is(i, "brx") || mgl_ptx_is(i, "ret") ||
           mgl_ptx_is(i, "exit") || mgl_ptx_is(i, "trap");
}

/* The index in the function of the instruction that a branch goes to; MGL_PTX_NONE: none. */
static int32_t find_target(const mgl_ptx_flow *flow, const label_table *table,
                           const mgl_ptx_instruction *branch)
{
    const mgl_ptx_operand *to = mgl_ptx_slot(flow->ptx, branch, 0);
    const mgl_ptx_label *label =
        to && mgl_ptx_is(branch, "bra") ? find_label(table, to->text, branch->scope) : NULL;
    uint32_t first = flow->function->first;
    bool within = label && label->at >= first && label->at < first + flow->function->count;
    return within ? (int32_t)(label->at - first) : MGL_PTX_NONE;
}

/* Sets block_of[i] to 1 if instruction i starts a block. */
static void mark_leaders(mgl_ptx_flow *flow)
{
    uint32_t first = flow->function->first, count = flow->function->count;
    const mgl_ptx *ptx = flow->ptx;
    flow->block_of[0] = 1;
    for (size_t i = 0; i < ptx->label_list.count; i++)
        if (ptx->labels[i].at >= first && ptx->labels[i].at < first + count)
            flow->block_of[ptx->labels[i].at - first] = 1;
    for (uint32_t i = 0; i + 1 < count; i++)
        if (ends_block(&ptx->instructions[first + i]))
            flow->block_of[i + 1] = 1;
}

/* Replaces the leader marks by block numbers. */
static void number_blocks(mgl_ptx_flow *flow)
{
    int32_t number = -1;
    for (uint32_t i = 0; i < flow->function->count; i++) {
        if (flow->block_of[i]) {
            number++;
            flow->blocks[number] = (mgl_ptx_block){.first = flow->function->first + i,
                                                   .next = {MGL_PTX_NONE, MGL_PTX_NONE},
                                                   .dominator = MGL_PTX_NONE,
                                                   .rank = MGL_PTX_NONE,
                                                   .loop = MGL_PTX_NONE};
        }
        flow->blocks[number].count++;
        flow->block_of[i] = number;
    }
    flow->block_count = number + 1;
}

static void link_blocks(mgl_ptx_flow *flow, const label_table *table)
{
    for (int32_t b = 0; b < flow->block_count; b++) {
        mgl_ptx_block *block = &flow->blocks[b];
        const mgl_ptx_instruction *last = &flow->ptx->instructions[block->first + block->count - 1];
        int32_t target = find_target(flow, table, last);
        int n = 0;
        if (target != MGL_PTX_NONE)
            block->next[n++] = flow->block_of[target];
        bool falls = !ends_block(last) || last->guard != MGL_PTX_NONE;
        if (falls && b + 1 < flow->block_count)
            block->next[n] = b + 1;
    }
}

static mgl_status make_blocks(mgl_ptx_flow *flow, mgl_error *err)
{
    label_table table = {0};
    mgl_status status = make_table(flow->ptx, &table, err);
    if (status)
        return status;
    mark_leaders(flow);
    int32_t leaders = 0;
    for (uint32_t i = 0; i < flow->function->count; i++)
        leaders += flow->block_of[i];
    flow->blocks = mgl_alloc_zero((size_t)leaders, sizeof *flow->blocks);
    if (flow->blocks) {
        number_blocks(flow);
        link_blocks(flow, &table);
    } else {
        status = mgl_fail_memory(err, (size_t)leaders * sizeof *flow->blocks);
    }
    mgl_free(table.labels);
    return status;
}

/* ---- dominators ------------------------------------------------------------------------------ */

/* An edge is a successor of a block: edge 2 * b + n is blocks[b].next[n]. */
typedef struct walk {
    int32_t *order, *stack; /* (block_count): reverse postorder; open blocks */
    unsigned char *taken;   /* (block_count): 1 + the number of followed edges */
    int32_t *first, *more;  /* lists of the edges into each block: first[block], more[edge];
                             * MGL_PTX_NONE ends a list */
    int32_t count;          /* length of `order` */
} walk;

static void order_blocks(mgl_ptx_flow *flow, walk *w)
{
    int32_t depth = 1, rank = flow->block_count;
    w->stack[0] = 0;
    w->taken[0] = 1;
    while (depth) {
        int32_t b = w->stack[depth - 1];
        int edge = w->taken[b] - 1;
        if (edge == 2) {
            w->order[--rank] = b;
            depth--;
            continue;
        }
        w->taken[b]++;
        int32_t to = flow->blocks[b].next[edge];
        if (to == MGL_PTX_NONE || w->taken[to])
            continue;
        w->taken[to] = 1;
        w->stack[depth++] = to;
    }
    w->count = flow->block_count - rank;
    memmove(w->order, w->order + rank, (size_t)w->count * sizeof *w->order);
    for (int32_t i = 0; i < w->count; i++)
        flow->blocks[w->order[i]].rank = i;
}

static void list_edges(const mgl_ptx_flow *flow, walk *w)
{
    for (int32_t b = 0; b < flow->block_count; b++)
        w->first[b] = MGL_PTX_NONE;
    for (int32_t b = flow->block_count - 1; b >= 0; b--)
        for (int n = 1; n >= 0; n--) {
            int32_t to = flow->blocks[b].next[n];
            if (flow->blocks[b].rank == MGL_PTX_NONE || to == MGL_PTX_NONE)
                continue;
            w->more[2 * b + n] = w->first[to];
            w->first[to] = 2 * b + n;
        }
}

static int32_t meet(const mgl_ptx_flow *flow, int32_t a, int32_t b)
{
    while (a != b)
        if (flow->blocks[a].rank > flow->blocks[b].rank)
            a = flow->blocks[a].dominator;
        else
            b = flow->blocks[b].dominator;
    return a;
}

static int32_t find_dominator(const mgl_ptx_flow *flow, const walk *w, int32_t block)
{
    int32_t found = MGL_PTX_NONE;
    for (int32_t e = w->first[block]; e != MGL_PTX_NONE; e = w->more[e]) {
        int32_t from = e / 2;
        if (flow->blocks[from].dominator != MGL_PTX_NONE)
            found = found == MGL_PTX_NONE ? from : meet(flow, from, found);
    }
    return found;
}

static void find_dominators(mgl_ptx_flow *flow, const walk *w)
{
    enum { MOST_ROUNDS = 32 }; /* compiler output needs three */
    bool changed = true;
    flow->blocks[0].dominator = 0;
    for (int round = 0; changed && round < MOST_ROUNDS; round++) {
        changed = false;
        for (int32_t i = 1; i < w->count; i++) {
            mgl_ptx_block *block = &flow->blocks[w->order[i]];
            int32_t dominator = find_dominator(flow, w, w->order[i]);
            changed = changed || dominator != block->dominator;
            block->dominator = dominator;
        }
    }
}

bool mgl_ptx_dominates(const mgl_ptx_flow *flow, int32_t a, int32_t b)
{
    if (flow->blocks[a].rank == MGL_PTX_NONE || flow->blocks[b].rank == MGL_PTX_NONE)
        return false;
    while (flow->blocks[b].rank > flow->blocks[a].rank)
        b = flow->blocks[b].dominator;
    return a == b;
}

/* ---- loops ----------------------------------------------------------------------------------- */

static void take_block(mgl_ptx_flow *flow, walk *w, int32_t block, int32_t *depth)
{
    flow->blocks[block].depth++;
    w->stack[(*depth)++] = block;
}

/* Adds the blocks of a loop, backwards from its latch. `mark` is the last loop that visited a
 * block. */
static void fill_loop(mgl_ptx_flow *flow, walk *w, int32_t number, int32_t *mark)
{
    const mgl_ptx_loop *loop = &flow->loops[number];
    int32_t depth = 0;
    mark[loop->header] = number + 1;
    flow->blocks[loop->header].depth++;
    if (mark[loop->latch] != number + 1)
        take_block(flow, w, loop->latch, &depth);
    mark[loop->latch] = number + 1;
    while (depth) {
        int32_t b = w->stack[--depth];
        for (int32_t e = w->first[b]; e != MGL_PTX_NONE; e = w->more[e]) {
            int32_t from = e / 2;
            if (mark[from] == number + 1)
                continue;
            mark[from] = number + 1;
            take_block(flow, w, from, &depth);
        }
    }
}

/* Two back edges to one header are one loop; its latch is the later one. */
static bool add_loop(mgl_ptx_flow *flow, int32_t header, int32_t latch)
{
    for (int32_t i = flow->loop_count - 1; i >= 0; i--)
        if (flow->loops[i].header == header) {
            flow->loops[i].latch = latch > flow->loops[i].latch ? latch : flow->loops[i].latch;
            return true;
        }
    if (flow->loop_count == MGL_PTX_MAX_LOOPS)
        return false;
    flow->loops[flow->loop_count++] = (mgl_ptx_loop){.header = header, .latch = latch};
    return true;
}

static void find_loops(mgl_ptx_flow *flow)
{
    for (int32_t b = 0; b < flow->block_count; b++)
        for (int n = 0; n < 2; n++) {
            int32_t to = flow->blocks[b].next[n];
            if (to != MGL_PTX_NONE && to <= b && mgl_ptx_dominates(flow, to, b) &&
                !add_loop(flow, to, b))
                return;
        }
}

/* The innermost loop of a block is the loop whose header is the closest dominator at its depth. */
static void place_blocks(mgl_ptx_flow *flow, const walk *w)
{
    for (int32_t i = 0; i < flow->loop_count; i++) {
        flow->loops[i].depth = flow->blocks[flow->loops[i].header].depth;
        flow->blocks[flow->loops[i].header].loop = i;
    }
    for (int32_t i = 0; i < w->count; i++) {
        mgl_ptx_block *block = &flow->blocks[w->order[i]];
        int32_t up = block->dominator;
        if (block->loop != MGL_PTX_NONE || !block->depth)
            continue;
        while (up != 0 && (flow->blocks[up].loop == MGL_PTX_NONE ||
                           flow->loops[flow->blocks[up].loop].depth != block->depth))
            up = flow->blocks[up].dominator;
        block->loop = flow->blocks[up].loop;
    }
}

bool mgl_ptx_in_loop(const mgl_ptx_flow *flow, int32_t block, int32_t loop)
{
    const mgl_ptx_loop *l = &flow->loops[loop];
    return flow->blocks[block].depth >= l->depth && block >= l->header && block <= l->latch;
}

static void clear_walk(walk *w)
{
    mgl_free(w->order);
    mgl_free(w->stack);
    mgl_free(w->taken);
    mgl_free(w->first);
    mgl_free(w->more);
}

static mgl_status make_walk(const mgl_ptx_flow *flow, walk *w, mgl_error *err)
{
    size_t count = (size_t)flow->block_count;
    w->order = mgl_alloc_zero(count, sizeof *w->order);
    w->stack = mgl_alloc_zero(count, sizeof *w->stack);
    w->taken = mgl_alloc_zero(count, 1);
    w->first = mgl_alloc_zero(count, sizeof *w->first);
    w->more = mgl_alloc_zero(2 * count, sizeof *w->more);
    bool made = w->order && w->stack && w->taken && w->first && w->more;
    return made ? MGL_OK : mgl_fail_memory(err, count * 5 * sizeof *w->order);
}

static mgl_status analyse(mgl_ptx_flow *flow, mgl_error *err)
{
    walk w = {0};
    mgl_status status = make_walk(flow, &w, err);
    int32_t *mark = mgl_alloc_zero((size_t)flow->block_count, sizeof *mark);
    if (!mark && !status)
        status = mgl_fail_memory(err, (size_t)flow->block_count * sizeof *mark);
    if (!status) {
        order_blocks(flow, &w);
        list_edges(flow, &w);
        find_dominators(flow, &w);
        find_loops(flow);
        for (int32_t i = 0; i < flow->loop_count; i++)
            fill_loop(flow, &w, i, mark);
        place_blocks(flow, &w);
        mgl_ptx_count_trips(flow);
    }
    clear_walk(&w);
    mgl_free(mark);
    return status;
}

/* ---- the whole analysis ---------------------------------------------------------------------- */

static mgl_status allocate(mgl_ptx_flow *flow, mgl_error *err)
{
    size_t registers = flow->ptx->register_list.count, count = flow->function->count;
    flow->block_of = mgl_alloc_zero(count, sizeof *flow->block_of);
    flow->next_writer = mgl_alloc_zero(count, sizeof *flow->next_writer);
    flow->writer = mgl_alloc_zero(registers + 1, sizeof *flow->writer);
    flow->writers = mgl_alloc_zero(registers + 1, sizeof *flow->writers);
    if (!flow->block_of || !flow->next_writer || !flow->writer || !flow->writers)
        return mgl_fail_memory(err, (registers + count) * 2 * sizeof *flow->writer);
    for (size_t i = 0; i < registers; i++)
        flow->writer[i] = MGL_PTX_NONE;
    return MGL_OK;
}

mgl_status mgl_ptx_flow_make(const mgl_ptx *ptx, const mgl_ptx_function *function,
                             mgl_ptx_flow **out, mgl_error *err)
{
    mgl_ptx_flow *flow = mgl_alloc_zero(1, sizeof *flow);
    *out = flow;
    if (!flow)
        return mgl_fail_memory(err, sizeof *flow);
    flow->ptx = ptx;
    flow->function = function;
    if (!function->count)
        return MGL_OK;
    mgl_status status = allocate(flow, err);
    if (status)
        return status;
    find_writers(flow);
    status = make_blocks(flow, err);
    return status ? status : analyse(flow, err);
}

void mgl_ptx_flow_free(mgl_ptx_flow *flow)
{
    if (!flow)
        return;
    mgl_free(flow->blocks);
    mgl_free(flow->block_of);
    mgl_free(flow->writer);
    mgl_free(flow->writers);
    mgl_free(flow->next_writer);
    mgl_free(flow);
}
