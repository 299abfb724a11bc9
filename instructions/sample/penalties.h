/*
 * Penalties on tokens that a sequence has already. The count of a token says what it has of it:
 * how often its output has it, and one bit for its prompt. A token without a count has no penalty.
 *
 *   repeat     of what prompt or output has, once however often: l < 0 ? l * repeat : l / repeat
 *              (Hugging Face's RepetitionPenaltyLogitsProcessor; Keskar et al., "CTRL", 2019,
 *              section 4.1, for positive l).
 *   frequency  l - frequency * (times in the output), and
 *   presence   - presence if it is in the output at all (OpenAI's API reference, "frequency and
 *              presence penalties"), both behind repeat.
 *
 * Plain C that NVRTC compiles too: no includes. A product of a float and a count is exact as a
 * double, so contraction can not change a bit.
 */
#ifndef MGL_SAMPLE_PENALTIES_H
#define MGL_SAMPLE_PENALTIES_H

#ifndef MGL_PENALTIES_FN
#define MGL_PENALTIES_FN static inline
#endif

/* What penalties may be: a logit does not become infinite by them. Of the second, presence and
 * frequency, it is what OpenAI's API takes. */
#define MGL_LEAST_REPEAT 0.01f
#define MGL_MOST_REPEAT  100.0f
#define MGL_MOST_PENALTY 2.0f

/* A count: times in the output, plus this where the prompt has the token. */
enum { MGL_COUNT_PROMPT = 1 << 30 };

typedef struct mgl_penalties {
    float repeat;    /* above 0; 1: off */
    float presence;  /* 0: off */
    float frequency; /* 0: off */
} mgl_penalties;

/* The logit of a token with that count, as it is chosen by. */
MGL_PENALTIES_FN float mgl_penalize(const mgl_penalties *p, float logit, int count)
{
    const int made = count & (MGL_COUNT_PROMPT - 1);
    if (count == 0)
        return logit;
    logit = logit < 0.0f ? logit * p->repeat : logit / p->repeat;
    if (made == 0)
        return logit;
    return (float)((double)logit - (double)p->frequency * made - (double)p->presence);
}

#endif
