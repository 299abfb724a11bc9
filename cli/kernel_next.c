/* megalith kernel next UNIT: what is wanted of whoever proposes, as JSON. */
#include "cli/kernel_loop.h"

#define NEXT_OPTIONS(X)                                                                            \
    MGL_CLI_BENCH_OPTIONS(X)                                                                       \
    MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(NEXT_OPTIONS)

/* Transformations that the text is ready for. */
static void put_ready(const mgl_cli_bench *b, const char *provides, mgl_json_out *out)
{
    const mgl_work *work = mgl_workbench_work(b->bench);
    mgl_json_out_array(out, "transformations");
    for (size_t i = 0; i < b->library.count; i++) {
        const mgl_transformation *t = &b->library.list[i];
        if (!mgl_transformation_suits(t, work->op, work->arch) ||
            !mgl_transformation_is_ready(t, provides))
            continue;
        mgl_json_out_object(out, NULL);
        mgl_json_out_string(out, "name", t->name);
        mgl_json_out_string(out, "summary", t->summary);
        mgl_json_out_int(out, "calls", mgl_transformation_calls(t));
        mgl_json_out_close_object(out);
    }
    mgl_json_out_close_array(out);
}

static mgl_status put_next(const mgl_cli_bench *b, mgl_json_out *out, mgl_error *err)
{
    mgl_text prompt = {0}, text = {0}, provides = {0};
    mgl_work_state state = mgl_workbench_state(b->bench);
    mgl_status status = mgl_workbench_text(b->bench, &text, &provides, err);
    if (!status && state.open)
        status = mgl_workbench_prompt(b->bench, false, &prompt, err);
    if (!status) {
        mgl_json_out_begin(out, "megalith.kernel/1");
        mgl_cli_put_state(b, out);
        mgl_json_out_string(out, "prompt", prompt.bytes);
        mgl_json_out_string(out, "provides", provides.bytes ? provides.bytes : "");
        put_ready(b, provides.bytes ? provides.bytes : "", out);
        mgl_json_out_string(out, "submit",
                            state.open ? "megalith kernel submit FILE --unit UNIT"
                                       : "megalith kernel prompt UNIT --transform NAME");
    }
    mgl_text_clear(&prompt);
    mgl_text_clear(&text);
    mgl_text_clear(&provides);
    return status;
}

static mgl_status next(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    const mgl_cli_bench_how how = MGL_CLI_BENCH(o);
    mgl_cli_bench b = {0};
    mgl_json_out out = {0};
    mgl_status status = mgl_cli_bench_open(operand, &how, &b, err);
    if (!status)
        status = put_next(&b, &out, err);
    if (!status)
        mgl_cli_end_json(&out);
    mgl_text_clear(&out.text);
    mgl_cli_bench_close(&b);
    return status;
}

const mgl_cli_verb mgl_cli_kernel_next_verb = {
    .name = "kernel next",
    .operand = "UNIT",
    .summary = "what is wanted, as JSON: the open work and its prompt, what it may go on with",
    .example = "  megalith kernel next merge",
    MGL_CLI_VERB_OPTIONS,
    .run = next,
};
