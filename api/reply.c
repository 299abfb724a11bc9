/*
 * Generates a reply as text (mgl_model_generate_text). Tokens of mgl_model_generate pass through a
 * streaming detokenizer, and its text goes to the caller's callback.
 */
#include "megalith.h"

#include "base/error.h"
#include "base/sized.h"

typedef struct reader {
    const mgl_tokenizer *tokenizer;
    mgl_detokenizer *stream;
    mgl_text_fn *on_text; /* may be NULL */
    void *user;
    bool left;       /* the callback returned false */
    mgl_error error; /* of `stream` */
} reader;

static bool pass_text(reader *r, const char *text, size_t length)
{
    if (length > 0 && r->on_text && !r->left)
        r->left = !r->on_text(r->user, text, length);
    return !r->left;
}

static bool take_token(void *user, int32_t token)
{
    reader *r = user;
    const char *text = NULL;
    size_t length = 0;
    if (!mgl_tokenizer_knows(r->tokenizer, token))
        return true;
    if (mgl_detokenizer_next(r->stream, token, &text, &length, &r->error))
        return false;
    return pass_text(r, text, length);
}

/* Passes on the text that the detokenizer held back. */
static mgl_status finish(reader *r, mgl_error *err)
{
    const char *text = NULL;
    size_t length = 0;
    if (r->error.code) {
        if (err)
            *err = r->error;
        return r->error.code;
    }
    mgl_status status = mgl_detokenizer_finish(r->stream, &text, &length, err);
    if (!status)
        pass_text(r, text, length);
    return status;
}

mgl_status mgl_model_generate_text(mgl_model *model, const mgl_tokenizer *tokenizer,
                                   const mgl_request *request, mgl_text_fn *on_text, void *user,
                                   mgl_result *out, mgl_error *err)
{
    reader r = {.tokenizer = tokenizer, .on_text = on_text, .user = user};
    if (!tokenizer)
        return mgl_fail_null(err, __func__, "tokenizer");
    if (!request)
        return mgl_fail_null(err, __func__, "request");
    mgl_request known = {0};
    mgl_status status = mgl_sized_read(&known, sizeof known, request, "mgl_request", err);
    known.size = sizeof known;
    known.tokenizer = known.tokenizer ? known.tokenizer : tokenizer;
    if (!status)
        status = mgl_detokenizer_open(tokenizer, true, &r.stream, err);
    if (!status)
        status = mgl_detokenizer_set_stops(r.stream, known.stops, known.stop_count, err);
    if (!status && known.prompt)
        status = mgl_detokenizer_prime(r.stream, known.prompt, known.prompt_count, err);
    if (!status)
        status = mgl_model_generate(model, &known, take_token, &r, out, err);
    if (!status) {
        status = finish(&r, err);
        if (status)
            mgl_result_clear(out);
    }
    mgl_detokenizer_close(r.stream);
    return status;
}
