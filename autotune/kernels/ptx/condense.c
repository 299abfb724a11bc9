/* Implements condense.h: control flow, address forms and facts of each function, then the
 * totals. */
#include "autotune/kernels/ptx/condense.h"

#include "autotune/kernels/ptx/classes.h"
#include "autotune/kernels/ptx/collect.h"
#include "base/memory.h"

#include <stdio.h>
#include <string.h>

/* ---- facts of a whole function --------------------------------------------------------------- */

static void add_registers(const mgl_ptx *ptx, int32_t function, mgl_ptx_facts *facts)
{
    for (size_t i = 0; i < ptx->register_list.count; i++) {
        const mgl_ptx_register *reg = &ptx->registers[i];
        char class[16];
        if (reg->function != function)
            continue;
        snprintf(class, sizeof class, "%.*s", (int)reg->class.length, reg->class.at);
        mgl_ptx_facts_add(facts, "registers", class, 1);
    }
}

/* Bytes of the function's variables. The first function also counts the module's variables. */
static void add_variables(const mgl_ptx *ptx, int32_t function, bool module, mgl_ptx_facts *facts)
{
    int64_t bytes[MGL_PTX_SPACE_COUNT] = {0};
    for (size_t i = 0; i < ptx->variable_list.count; i++) {
        const mgl_ptx_variable *v = &ptx->variables[i];
        bool ours = v->function == function || (module && v->function == MGL_PTX_NONE);
        if (ours && v->space != MGL_PTX_param)
            bytes[v->space] = (int64_t)((uint64_t)bytes[v->space] + (uint64_t)v->bytes);
        if (ours && v->space == MGL_PTX_shared && !v->bytes)
            mgl_ptx_facts_add(facts, "shared.dynamic", "", 1);
    }
    for (int s = 0; s < MGL_PTX_SPACE_COUNT; s++) {
        char feature[32];
        snprintf(feature, sizeof feature, "%s.static", mgl_ptx_space_name((mgl_ptx_space)s));
        if (bytes[s])
            mgl_ptx_facts_add(facts, feature, "", bytes[s]);
    }
}

static void add_loops(const mgl_ptx_flow *flow, mgl_ptx_facts *facts)
{
    for (int32_t i = 0; i < flow->loop_count; i++) {
        char value[64];
        const mgl_ptx_loop *loop = &flow->loops[i];
        snprintf(value, sizeof value, "depth %d trips ", loop->depth);
        size_t length = strlen(value);
        if (loop->trips)
            snprintf(value + length, sizeof value - length, "%lld", (long long)loop->trips);
        else
            snprintf(value + length, sizeof value - length, "?");
        mgl_ptx_facts_add(facts, "loops", value, 1);
    }
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* "d1 >3,7 i4 ld1": loop depth, successor blocks, instructions by class. */
static void write_block(const mgl_ptx_flow *flow, const mgl_ptx_block *block, mgl_text *out)
{
    int counts[MGL_PTX_CLASS_COUNT] = {0};
    for (uint32_t i = 0; i < block->count; i++)
        counts[mgl_ptx_classify(&flow->ptx->instructions[block->first + i])]++;
    if (block->depth)
        mgl_text_format(out, "d%d ", block->depth);
    for (int n = 0; n < 2 && block->next[n] != MGL_PTX_NONE; n++)
        mgl_text_format(out, "%s%d", n ? "," : ">", block->next[n]);
    for (int c = 0; c < MGL_PTX_CLASS_COUNT; c++)
        if (counts[c])
            mgl_text_format(out, " %s%d", mgl_ptx_class_code((mgl_ptx_class)c), counts[c]);
    mgl_text_put(out, "\n");
}

static mgl_status take_blocks(const mgl_ptx_flow *flow, mgl_ptx_condensed_function *out,
                              mgl_error *err)
{
    mgl_text text = {0};
    mgl_text_put(&text, "");
    for (int32_t b = 0; b < flow->block_count; b++)
        write_block(flow, &flow->blocks[b], &text);
    if (text.failed)
        return mgl_fail_memory(err, text.capacity);
    out->blocks = text.bytes;
    out->block_count = (size_t)flow->block_count;
    size_t bytes = (size_t)flow->loop_count * sizeof *out->loops;
    out->loops = mgl_alloc(bytes ? bytes : 1);
    if (!out->loops)
        return mgl_fail_memory(err, bytes);
    memcpy(out->loops, flow->loops, bytes);
    out->loop_count = (size_t)flow->loop_count;
    return MGL_OK;
}

/* ---- functions ------------------------------------------------------------------------------- */

static mgl_status collect(const mgl_ptx_flow *flow, mgl_ptx_facts *facts, mgl_error *err)
{
    mgl_ptx_forms forms;
    if (!flow->function->count)
        return MGL_OK;
    mgl_status status = mgl_ptx_forms_make(flow, &forms, err);
    if (!status)
        mgl_ptx_collect(flow, &forms, facts);
    mgl_ptx_forms_clear(&forms);
    return status;
}

static mgl_status condense_function(const mgl_ptx *ptx, const mgl_ptx_function *f, bool module,
                                    mgl_ptx_condensed_function *out, mgl_error *err)
{
    mgl_ptx_flow *flow = NULL;
    mgl_ptx_facts facts = {0};
    int32_t number = (int32_t)(f - ptx->functions);
    mgl_status status = mgl_ptx_flow_make(ptx, f, &flow, err);
    if (!status) {
        out->entry = f->entry;
        add_registers(ptx, number, &facts);
        add_variables(ptx, number, module, &facts);
        add_loops(flow, &facts);
        if (f->max_threads)
            mgl_ptx_facts_add(&facts, "threads.most", "", f->max_threads);
        status = collect(flow, &facts, err);
    }
    if (!status)
        status = take_blocks(flow, out, err);
    mgl_ptx_facts_merge(&facts);
    out->facts = facts.rows;
    out->fact_count = facts.count;
    mgl_ptx_flow_free(flow);
    return !status && facts.failed ? mgl_fail_memory(err, 64) : status;
}

static mgl_status add_totals(mgl_ptx_condensed *out, mgl_error *err)
{
    mgl_ptx_facts facts = {0};
    for (size_t f = 0; f < out->function_count; f++)
        for (size_t i = 0; i < out->functions[f].fact_count; i++) {
            const mgl_ptx_fact *fact = &out->functions[f].facts[i];
            mgl_ptx_facts_add(&facts, fact->feature, fact->value, fact->count);
        }
    mgl_ptx_facts_merge(&facts);
    out->totals = facts.rows;
    out->total_count = facts.count;
    return facts.failed ? mgl_fail_memory(err, 64) : MGL_OK;
}

static mgl_status take_head(const mgl_ptx *ptx, mgl_ptx_condensed *out, mgl_error *err)
{
    size_t bytes = (ptx->function_list.count + 1) * sizeof *out->functions;
    out->version = mgl_strndup(ptx->version.at ? ptx->version.at : "", ptx->version.length);
    out->target = mgl_strndup(ptx->target.at, ptx->target.length);
    out->functions = mgl_alloc_zero(ptx->function_list.count + 1, sizeof *out->functions);
    return out->version && out->target && out->functions ? MGL_OK : mgl_fail_memory(err, bytes);
}

mgl_status mgl_ptx_condense(const mgl_ptx *ptx, mgl_ptx_condensed *out, mgl_error *err)
{
    *out = (mgl_ptx_condensed){0};
    mgl_status status = take_head(ptx, out, err);
    for (size_t i = 0; !status && i < ptx->function_list.count; i++)
        if (ptx->functions[i].has_body) {
            size_t n = out->function_count++;
            status = condense_function(ptx, &ptx->functions[i], !n, &out->functions[n], err);
        }
    if (!status)
        status = add_totals(out, err);
    if (status)
        mgl_ptx_condensed_clear(out);
    return status;
}

mgl_status mgl_ptx_condense_text(const char *text, size_t length, const char *file,
                                 mgl_ptx_condensed *out, mgl_error *err)
{
    mgl_ptx ptx;
    *out = (mgl_ptx_condensed){0};
    mgl_status status = mgl_ptx_parse(text, length, file, &ptx, err);
    if (!status)
        status = mgl_ptx_condense(&ptx, out, err);
    mgl_ptx_clear(&ptx);
    return status;
}

static void clear_facts(mgl_ptx_fact *facts, size_t count)
{
    mgl_ptx_facts rows = {.rows = facts, .count = count};
    mgl_ptx_facts_clear(&rows);
}

void mgl_ptx_condensed_clear(mgl_ptx_condensed *condensed)
{
    for (size_t i = 0; i < condensed->function_count; i++) {
        clear_facts(condensed->functions[i].facts, condensed->functions[i].fact_count);
        mgl_free(condensed->functions[i].loops);
        mgl_free(condensed->functions[i].blocks);
    }
    clear_facts(condensed->totals, condensed->total_count);
    mgl_free(condensed->functions);
    mgl_free(condensed->version);
    mgl_free(condensed->target);
    *condensed = (mgl_ptx_condensed){0};
}
