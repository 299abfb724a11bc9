/* The validator's verdict as JSON. The form is the same for the command line and for agents. */
#include "autotune/answers/answer.h"

#include <stdio.h>

static void put_diagnostic(mgl_json_out *out, const mgl_diagnostic *diagnostic)
{
    char code[16];
    snprintf(code, sizeof code, "MG%03d", diagnostic->code);
    mgl_json_out_object(out, NULL);
    mgl_json_out_string(out, "code", code);
    mgl_json_out_string(out, "level", diagnostic->warning ? "warning" : "error");
    mgl_json_out_int(out, "line", diagnostic->line);
    if (diagnostic->task >= 0)
        mgl_json_out_int(out, "task", diagnostic->task);
    else
        mgl_json_out_null(out, "task");
    mgl_json_out_string(out, "message", diagnostic->message);
    mgl_json_out_array(out, "witness");
    for (int w = 0; w < diagnostic->witness_count; w++)
        mgl_json_out_string(out, NULL, diagnostic->witness[w]);
    mgl_json_out_close_array(out);
    mgl_json_out_close_object(out);
}

static void put_weights(mgl_json_out *out, unsigned formats)
{
    mgl_json_out_array(out, "weights");
    for (int i = 0; i < MGL_CODE_COUNT; i++)
        if (formats & 1u << i)
            mgl_json_out_string(out, NULL, mgl_weight_code_name((mgl_weight_code)i));
    mgl_json_out_close_array(out);
}

static void put_set(mgl_json_out *out, const char *key, unsigned dtypes)
{
    mgl_json_out_array(out, key);
    for (int i = 0; i < MGL_DTYPE_COUNT; i++)
        if (dtypes & 1u << i)
            mgl_json_out_string(out, NULL, mgl_dtype_name((mgl_dtype)i));
    mgl_json_out_close_array(out);
}

void mgl_answer_formats(mgl_json_out *out, const mgl_formats *formats)
{
    mgl_json_out_object(out, "formats");
    put_set(out, "checkpoint", formats->checkpoint);
    put_weights(out, formats->weights);
    put_set(out, "embedding", formats->embedding);
    put_set(out, "exchange", formats->exchange);
    put_set(out, "cache", formats->cache);
    mgl_json_out_bool(out, "lossy", formats->lossy);
    mgl_json_out_close_object(out);
}

void mgl_answer_verdict(mgl_json_out *out, const mgl_verdict *verdict)
{
    mgl_json_out_string(out, "verdict", verdict->accepted ? "accepted" : "rejected");
    mgl_json_out_string(out, "meaning", verdict->meaning_checked ? "checked" : "not_checked");
    mgl_json_out_array(out, "diagnostics");
    for (int i = 0; i < verdict->count; i++)
        put_diagnostic(out, &verdict->diagnostics[i]);
    mgl_json_out_close_array(out);
    mgl_answer_formats(out, &verdict->formats);
    mgl_json_out_object(out, "stats");
    mgl_json_out_int(out, "tasks", verdict->tasks);
    mgl_json_out_int(out, "counters", verdict->counters);
    mgl_json_out_int(out, "epochs_unrolled", verdict->epochs_unrolled);
    mgl_json_out_real(out, "ms", verdict->ms);
    mgl_json_out_close_object(out);
}
