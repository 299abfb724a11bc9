/* Implements real.h: encodes the built-in text, and compares replies and likelihoods. */
#include "autotune/runner/real.h"

#include "autotune/runner/runner.h"
#include "autotune/store/shape.h"
#include "base/format.h"
#include "base/memory.h"
#include "importer/checkpoint.h"

#include <math.h>
#include <string.h>

/* ---- texts ----------------------------------------------------------------------------------- */

static const char story[] =
    "Once upon a time there was a small lighthouse at the end of a long road. An old woman lived "
    "in it with her dog, and every evening she lit the lamp for the ships that came home from the "
    "sea. One day the wind blew so hard that the lamp went out. \"What shall we do?\" she asked. "
    "The dog ran down the stairs and barked at the waves until the captain of the nearest ship "
    "turned his wheel. In the morning the sun came back, and the captain brought a basket of bread "
    "and 12 red apples to say thank you. A program is a list of steps that a machine follows in "
    "order: it reads two numbers, adds them, and writes down the sum. The capital of France is "
    "Paris, the capital of Italy is Rome, and water boils at 100 degrees.";

/* Text i begins with the first token (BOS) and continues at some position of the story, which wraps
 * around. */
static void cut_texts(const mgl_ids *ids, mgl_real_texts *out)
{
    size_t rest = ids->count - 1;
    for (size_t i = 0; i < MGL_REAL_TEXTS; i++) {
        int32_t *text = &out->ids[i * (size_t)out->length];
        text[0] = ids->ids[0];
        for (size_t t = 1; t < (size_t)out->length; t++)
            text[t] = ids->ids[1 + (i * rest / MGL_REAL_TEXTS + t - 1) % rest];
    }
}

static mgl_status encode(const char *path, mgl_ids *out, mgl_error *err)
{
    mgl_tokenizer *tokenizer = NULL;
    mgl_status status = mgl_tokenizer_open(path, &tokenizer, err);
    if (!status)
        status = mgl_tokenizer_encode(tokenizer, story, strlen(story), true, out, err);
    mgl_tokenizer_close(tokenizer);
    return status;
}

static mgl_status check_ids(const mgl_ids *ids, int vocab, mgl_error *err)
{
    for (size_t i = 0; i < ids->count; i++)
        if (ids->ids[i] < 0 || ids->ids[i] >= vocab)
            return mgl_fail(err, MGL_BAD_INPUT, "tokenizer",
                            "the tokenizer makes token %d, and the model has %d", (int)ids->ids[i],
                            vocab);
    if (ids->count < 2)
        return mgl_fail(err, MGL_BAD_INPUT, "tokenizer",
                        "the tokenizer makes %zu tokens of a story: there is nothing to score",
                        ids->count);
    return MGL_OK;
}

/* ---- checkpoint ------------------------------------------------------------------------------ */

static mgl_status check_shape(const char *path, const mgl_subject *subject, mgl_error *err)
{
    mgl_config config;
    mgl_text here = {0}, wanted = {0};
    mgl_status status = mgl_synthetic_read_config(path, &config, err);
    if (status)
        return status;
    mgl_shape_print(&config, &here);
    mgl_shape_print(&subject->config, &wanted);
    if (here.failed || wanted.failed)
        status = mgl_fail_memory(err, here.capacity);
    else if (strcmp(here.bytes, wanted.bytes) != 0)
        status = mgl_fail(err, MGL_BAD_INPUT, "checkpoint",
                          "the checkpoint has another shape than the campaign's model");
    mgl_text_clear(&here);
    mgl_text_clear(&wanted);
    return status;
}

static mgl_status check_checkpoint(const char *path, const mgl_subject *subject, mgl_error *err)
{
    mgl_checkpoint *checkpoint = NULL;
    mgl_status status = check_shape(path, subject, err);
    if (!status)
        status = mgl_import(path, &checkpoint, err);
    if (!status && checkpoint->files == 0)
        status = mgl_fail(err, MGL_BAD_INPUT, "checkpoint",
                          "the model is compiled: its weights are packed for its own program");
    mgl_checkpoint_close(checkpoint);
    return status;
}

mgl_status mgl_real_open(const char *path, const mgl_subject *subject, mgl_real_texts *out,
                         mgl_error *err)
{
    mgl_ids ids = {0};
    *out = (mgl_real_texts){.path = path, .length = MGL_REAL_LENGTH};
    if (out->length > subject->capacity - 1)
        out->length = subject->capacity - 1;
    if (out->length <= MGL_REAL_PROMPT)
        return mgl_fail(err, MGL_BAD_INPUT, "capacity",
                        "%d positions have no room for a reply behind a prompt of %d",
                        subject->capacity, (int)MGL_REAL_PROMPT);
    mgl_status status = check_checkpoint(path, subject, err);
    if (!status)
        status = encode(path, &ids, err);
    if (!status)
        status = check_ids(&ids, subject->config.geometry.vocab, err);
    if (!status)
        cut_texts(&ids, out);
    mgl_ids_clear(&ids);
    return status;
}

/* ---- comparison ------------------------------------------------------------------------------ */

/* Returns the first position where the two replies differ; -1: none. */
static int find_other(const mgl_real_texts *texts, const mgl_real_numbers *numbers, int text)
{
    int first = text * texts->length;
    for (int t = 0; t < texts->length; t++)
        if (numbers->made[MGL_INCUMBENT][first + t] != numbers->made[MGL_CANDIDATE][first + t])
            return t;
    return -1;
}

/* Compares replies. Up to the first difference both have the same past, so the default's
 * likelihoods of the two different tokens show their distance. Positions after the first difference
 * are not comparable. */
static bool replies_agree(const mgl_real_texts *texts, const mgl_real_numbers *numbers,
                          int sequences, double gap, mgl_real_facts *facts,
                          mgl_trial_verdict *verdict)
{
    for (int i = 0; i < MGL_REAL_TEXTS; i++) {
        int t = find_other(texts, numbers, i), at = i * texts->length + t;
        facts->texts++;
        if (t < 0)
            continue;
        double found = (double)numbers->of_made[MGL_INCUMBENT][at] -
                       (double)numbers->of_made[MGL_CANDIDATE][at];
        facts->parted++;
        if (found <= gap) /* false for NaN */
            continue;
        mgl_trial_verdict_set(
            verdict, MGL_OUTCOME_MODEL_MISMATCH,
            "on the real checkpoint, %d sequence%s, prompt %d, step %d: the winner makes "
            "token %d, and the default %d, whose logit is %.3g larger (at most %.3g)",
            sequences, mgl_plural((size_t)sequences), i, t - MGL_REAL_PROMPT,
            (int)numbers->made[MGL_CANDIDATE][at], (int)numbers->made[MGL_INCUMBENT][at], found,
            gap);
        return false;
    }
    return true;
}

/* Mean negative log-likelihood in nats a token. */
static double mean_nll(const mgl_real_texts *texts, const float *scores)
{
    double sum = 0;
    for (int i = 0; i < MGL_REAL_TEXTS; i++)
        for (int t = 1; t < texts->length; t++)
            sum -= (double)scores[i * texts->length + t];
    return sum / (MGL_REAL_TEXTS * (texts->length - 1));
}

void mgl_real_compare(const mgl_real_texts *texts, const mgl_real_numbers *numbers, int sequences,
                      bool changes_format, mgl_real_facts *facts, mgl_trial_verdict *verdict)
{
    double share = 1 + (changes_format ? MGL_ERROR_SHARE : 1);
    double nll = mean_nll(texts, numbers->scores[MGL_CANDIDATE]);
    double wanted = mean_nll(texts, numbers->scores[MGL_INCUMBENT]);
    double before = facts->texts;
    if (!replies_agree(texts, numbers, sequences, share * MGL_REAL_GAP, facts, verdict))
        return;
    facts->checked = true;
    facts->nll = (facts->nll * before + nll * MGL_REAL_TEXTS) / facts->texts;
    facts->nll_default = (facts->nll_default * before + wanted * MGL_REAL_TEXTS) / facts->texts;
    if (fabs(nll - wanted) <= share * MGL_REAL_NLL) { /* false for NaN */
        *verdict = (mgl_trial_verdict){.outcome = MGL_OUTCOME_OK};
        return;
    }
    mgl_trial_verdict_set(
        verdict, MGL_OUTCOME_MODEL_MISMATCH,
        "on the real checkpoint, %d sequence%s: the winner's likelihood is %.5f nats a "
        "token, and the default's %.5f (at most %.3g apart)",
        sequences, mgl_plural((size_t)sequences), nll, wanted, share * MGL_REAL_NLL);
}

mgl_status mgl_real_run(mgl_runner *runner, const mgl_candidate *candidate,
                        const mgl_real_texts *texts, bool changes_format, mgl_real_facts *facts,
                        mgl_trial_verdict *verdict, mgl_error *err)
{
    if (!runner->decode)
        return mgl_fail(err, MGL_DEVICE, "checkpoint", "this device executes nothing");
    mgl_real_numbers *numbers = mgl_alloc_zero(1, sizeof *numbers);
    mgl_status status = numbers ? MGL_OK : mgl_fail_memory(err, sizeof *numbers);
    *verdict = (mgl_trial_verdict){.outcome = MGL_OUTCOME_OK};
    for (int p = 0; p < candidate->program_count && !status && !verdict->outcome; p++) {
        const int sequences = candidate->programs[p]->limits.sequences;
        status = runner->decode(runner, texts, p, sequences, numbers, verdict, err);
        if (!status && verdict->outcome == MGL_OUTCOME_OK)
            mgl_real_compare(texts, numbers, sequences, changes_format, facts, verdict);
    }
    mgl_free(numbers);
    return status;
}

void mgl_real_put(mgl_json_out *out, const mgl_real_facts *facts)
{
    mgl_json_out_object(out, "checkpoint");
    mgl_json_out_bool(out, "checked", facts->checked);
    if (facts->texts > 0) {
        mgl_json_out_int(out, "replies", facts->texts);
        mgl_json_out_int(out, "parted", facts->parted);
    }
    if (facts->checked) {
        mgl_json_out_real(out, "nll", facts->nll);
        mgl_json_out_real(out, "nll_default", facts->nll_default);
    }
    if (facts->note[0])
        mgl_json_out_string(out, "note", facts->note);
    mgl_json_out_close_object(out);
}
