/*
 * Repetition penalties on tokens that a sequence already contains. A token's count holds the number
 * of its occurrences in the output, and one bit for the prompt. A token with count 0 has no
 * penalty. The ops that compute logits (head.c, head.cuh) call mgl_penalize.
 *
 *     repeat     for tokens in the prompt or output, once: l < 0 ? l * repeat : l / repeat (Hugging
 *                Face's RepetitionPenaltyLogitsProcessor; Keskar et al., "CTRL", 2019, section 4.1,
 *                for positive l).
 *     frequency  l - frequency * (occurrences in the output), and
 *     presence   l - presence if the token is in the output (OpenAI's API reference, "frequency and
 *                presence penalties"); both after repeat.
 *
 * Plain C that NVRTC compiles too: no includes. The product of a float and a count is exact in
 * double, so contraction cannot change a bit.
 */
#ifndef MGL_SAMPLE_PENALTIES_H
#define MGL_SAMPLE_PENALTIES_H

#ifndef MGL_PENALTIES_FN
#define MGL_PENALTIES_FN static inline
#endif

/* Limits of the penalties, such that no logit becomes infinite. The limit of presence and
 * frequency is that of OpenAI's API. */
#define MGL_LEAST_REPEAT 0.01f
#define MGL_MOST_REPEAT  100.0f
#define MGL_MOST_PENALTY 2.0f

/* A count: occurrences in the output, plus this flag if the prompt has the token. */
enum { MGL_COUNT_PROMPT = 1 << 30 };

typedef struct mgl_penalties {
    float repeat;    /* above 0; 1: off */
    float presence;  /* 0: off */
    float frequency; /* 0: off */
} mgl_penalties;

/* The penalized logit of a token whose count is `count`. */
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
