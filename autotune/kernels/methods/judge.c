/*
 * Implements the hints, the unknown facts, and the digest: SHA-256 of whitespace-normalized text.
 */
#include "autotune/kernels/methods/judge.h"

#include <math.h>
#include <string.h>

mgl_facts mgl_facts_unknown(void)
{
    return (mgl_facts){NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
}

bool mgl_outcome_is_good(mgl_outcome outcome)
{
    return outcome == MGL_OUTCOME_UNMEASURED || mgl_outcome_is_correct(outcome);
}

const char *mgl_loop_hint(mgl_outcome outcome)
{
    static const struct {
        mgl_outcome outcome;
        const char *hint;
    } rows[] = {
        {MGL_OUTCOME_PROPOSER_SCHEMA, "Answer with text that holds one fence."},
        {MGL_OUTCOME_EXTRACT_NONE, "Put the whole new body into one ```cuda fence, and close it."},
        {MGL_OUTCOME_EXTRACT_AMBIGUOUS, "Put one body into one ```cuda fence, and nothing else."},
        {MGL_OUTCOME_REGION_VIOLATION, "Change nothing outside of the region that the task names."},
        {MGL_OUTCOME_DUPLICATE, "The same text was judged before: write another one."},
        {MGL_OUTCOME_PARSE, "Mend the line that the message names."},
        {MGL_OUTCOME_RESOURCE_REGISTERS, "Use fewer registers: keep fewer values alive at once."},
        {MGL_OUTCOME_RESOURCE_SHARED, "Use less shared memory, or declare what is used."}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].outcome == outcome)
            return rows[i].hint;
    return mgl_outcome_hint(outcome);
}

mgl_digest mgl_digest_text(const char *text, size_t length)
{
    mgl_sha256 hash;
    unsigned char bytes[MGL_SHA256_BYTES];
    mgl_digest digest;
    bool blank = true;
    mgl_sha256_start(&hash);
    for (size_t i = 0; i < length; i++) {
        bool is_blank = text[i] == ' ' || (text[i] >= '\t' && text[i] <= '\r');
        if (is_blank && !blank)
            mgl_sha256_add(&hash, " ", 1);
        else if (!is_blank)
            mgl_sha256_add(&hash, text + i, 1);
        blank = is_blank;
    }
    if (!blank)
        mgl_sha256_add(&hash, " ", 1);
    mgl_sha256_end(&hash, bytes);
    mgl_sha256_hex(bytes, digest.hex);
    return digest;
}
