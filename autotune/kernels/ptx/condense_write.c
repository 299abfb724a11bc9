/* Writes the condensed form as text for people and models, and as JSON. */
#include "autotune/kernels/ptx/condense.h"

#include <stdio.h>
#include <string.h>

static void write_loop(const mgl_ptx_loop *loop, mgl_text *out)
{
    mgl_text_format(out, "loop blocks %d-%d depth %d", loop->header, loop->latch, loop->depth);
    if (loop->trips)
        mgl_text_format(out, " trips %lld", (long long)loop->trips);
    mgl_text_put(out, "\n");
}

/* The feature is printed once, before its first value. */
static void write_facts(const mgl_ptx_condensed_function *f, mgl_text *out)
{
    for (size_t i = 0; i < f->fact_count; i++) {
        const mgl_ptx_fact *fact = &f->facts[i];
        bool again = i && !strcmp(f->facts[i - 1].feature, fact->feature);
        if (!again)
            mgl_text_format(out, "%s\n", fact->feature);
        mgl_text_format(out, *fact->value ? "  %s: " : "  %s", fact->value);
        mgl_text_format(out, "%lld\n", (long long)fact->count);
    }
}

static void write_function(const mgl_ptx_condensed_function *f, size_t number, mgl_text *out)
{
    mgl_text_format(out, "%s f%zu\n", f->entry ? "entry" : "function", number);
    write_facts(f, out);
    for (size_t i = 0; i < f->loop_count; i++)
        write_loop(&f->loops[i], out);
    const char *line = f->blocks;
    for (size_t i = 0; i < f->block_count; i++) {
        size_t length = strcspn(line, "\n");
        mgl_text_format(out, "b%zu %.*s\n", i, (int)length, line);
        line += length + 1;
    }
}

void mgl_ptx_condensed_write(const mgl_ptx_condensed *condensed, mgl_text *out)
{
    mgl_text_format(out, "ptx %s %s\n", condensed->version, condensed->target);
    for (size_t i = 0; i < condensed->function_count; i++)
        write_function(&condensed->functions[i], i, out);
}

static void put_facts(const mgl_ptx_condensed_function *f, mgl_json_out *out)
{
    mgl_json_out_object(out, "features");
    for (size_t i = 0; i < f->fact_count; i++) {
        const mgl_ptx_fact *fact = &f->facts[i];
        bool again = i && !strcmp(f->facts[i - 1].feature, fact->feature);
        bool more = i + 1 < f->fact_count && !strcmp(f->facts[i + 1].feature, fact->feature);
        if (!*fact->value) {
            mgl_json_out_int(out, fact->feature, fact->count);
            continue;
        }
        if (!again)
            mgl_json_out_object(out, fact->feature);
        mgl_json_out_int(out, fact->value, fact->count);
        if (!more)
            mgl_json_out_close_object(out);
    }
    mgl_json_out_close_object(out);
}

static void put_loops(const mgl_ptx_condensed_function *f, mgl_json_out *out)
{
    mgl_json_out_array(out, "loops");
    for (size_t i = 0; i < f->loop_count; i++) {
        mgl_json_out_object(out, NULL);
        mgl_json_out_int(out, "header", f->loops[i].header);
        mgl_json_out_int(out, "latch", f->loops[i].latch);
        mgl_json_out_int(out, "depth", f->loops[i].depth);
        if (f->loops[i].trips)
            mgl_json_out_int(out, "trips", f->loops[i].trips);
        else
            mgl_json_out_null(out, "trips");
        mgl_json_out_close_object(out);
    }
    mgl_json_out_close_array(out);
}

static void put_blocks(const mgl_ptx_condensed_function *f, mgl_json_out *out)
{
    const char *line = f->blocks;
    mgl_json_out_array(out, "blocks");
    for (size_t i = 0; i < f->block_count; i++) {
        size_t length = strcspn(line, "\n");
        mgl_json_out_text(out, NULL, line, length);
        line += length + 1;
    }
    mgl_json_out_close_array(out);
}

void mgl_ptx_condensed_put(const mgl_ptx_condensed *condensed, mgl_json_out *out)
{
    mgl_json_out_string(out, "version", condensed->version);
    mgl_json_out_string(out, "target", condensed->target);
    mgl_json_out_array(out, "functions");
    for (size_t i = 0; i < condensed->function_count; i++) {
        char name[32];
        snprintf(name, sizeof name, "f%zu", i);
        mgl_json_out_object(out, NULL);
        mgl_json_out_string(out, "name", name);
        mgl_json_out_bool(out, "entry", condensed->functions[i].entry);
        put_facts(&condensed->functions[i], out);
        put_loops(&condensed->functions[i], out);
        put_blocks(&condensed->functions[i], out);
        mgl_json_out_close_object(out);
    }
    mgl_json_out_close_array(out);
}
