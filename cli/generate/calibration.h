/*
 * The samples of `quantize`: token ids of the texts of --texts, or of the default texts, cut into
 * runs of at most --length tokens.
 */
#ifndef MGL_CLI_GENERATE_CALIBRATION_H
#define MGL_CLI_GENERATE_CALIBRATION_H

#include "cli/generate/corpus.h"

enum {
    MGL_CLI_CALIBRATION_SAMPLES = 128, /* defaults of `quantize` */
    MGL_CLI_CALIBRATION_LENGTH = 512
};

/* Zero-initialize; release with mgl_cli_calibration_clear. */
typedef struct mgl_cli_calibration {
    mgl_cli_corpus corpus; /* the texts */
    mgl_ids *samples;      /* owned (count); the ids belong to the corpus */
    size_t count, tokens;
} mgl_cli_calibration;

/* Reads and tokenizes the texts of the file (NULL: the default texts) for the model at `model`, and
 * cuts them into runs of at most `length` tokens, and at most the positions of the model. If there
 * are more than `most` runs, runs at equal distances are taken. MGL_BAD_INPUT: an id is not in the
 * vocabulary. */
mgl_status mgl_cli_calibration_read(const char *model, const char *file, size_t most, size_t length,
                                    mgl_cli_calibration *out, mgl_error *err);
void mgl_cli_calibration_clear(mgl_cli_calibration *calibration);

#endif
