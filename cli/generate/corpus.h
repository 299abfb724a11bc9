/*
 * Declares a corpus: texts as token ids, whose log-likelihood `eval` and `score` compute. Also
 * declares the progress of reading them.
 */
#ifndef MGL_CLI_GENERATE_CORPUS_H
#define MGL_CLI_GENERATE_CORPUS_H

#include "cli/generate/prompts.h"

/* Zero-initialize; release with mgl_cli_corpus_clear. */
typedef struct mgl_cli_corpus {
    mgl_ids *texts; /* (count) */
    size_t count;
    size_t room;    /* allocated texts */
    size_t longest; /* tokens of the longest text */
} mgl_cli_corpus;

/* Allocates memory for `room` texts. Call once. */
mgl_status mgl_cli_corpus_make(mgl_cli_corpus *corpus, size_t room, mgl_error *err);
/* Tokenizes and adds a text, with the tokenizer's special tokens. MGL_INTERRUPTED after a
 * signal. */
mgl_status mgl_cli_corpus_encode(mgl_cli_corpus *corpus, const mgl_tokenizer *tokenizer,
                                 const char *text, size_t length, mgl_error *err);
/* Adds a text and takes the ids from `ids`. */
void mgl_cli_corpus_take(mgl_cli_corpus *corpus, mgl_ids *ids);
/* Makes a corpus of a list of texts and ids, and takes the list's ids. `tokenizer` may be NULL if
 * the list has no text. */
mgl_status mgl_cli_corpus_take_list(mgl_cli_corpus *corpus, mgl_cli_prompts *list,
                                    const mgl_tokenizer *tokenizer, mgl_error *err);
/* Whether the list has an entry that is a text. */
bool mgl_cli_corpus_needs_tokenizer(const mgl_cli_prompts *list);
/* Checks that all ids are from 0 to `vocab` - 1. MGL_BAD_INPUT names the text and the first wrong
 * id. `name`: of the texts, for the error; NULL: the default texts. */
mgl_status mgl_cli_corpus_check(const mgl_cli_corpus *corpus, int32_t vocab, const char *name,
                                mgl_error *err);
void mgl_cli_corpus_clear(mgl_cli_corpus *corpus);

/* The progress of reading texts. */
typedef struct mgl_cli_reading {
    const char *verb;      /* printed in the closing line */
    size_t tokens, total;  /* tokens of the finished launches, and of all launches */
    double load_s, read_s; /* seconds to open the model, and seconds of all launches */
} mgl_cli_reading;

/* An mgl_stage_fn with an mgl_cli_reading as `user`. The library reports tokens of a text as tokens
 * of a prompt. */
void mgl_cli_reading_stage(void *user, mgl_stage stage, uint64_t done, uint64_t total);
/* Adds the tokens of a finished launch. */
void mgl_cli_reading_add(mgl_cli_reading *reading, size_t tokens);
/* Prints the closing line, with the number of scored tokens. */
void mgl_cli_reading_say(const mgl_cli_reading *reading, size_t scored);

#endif
