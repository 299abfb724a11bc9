/*
 * Texts whose likelihood is asked for: as ids, and how far reading them is. What `eval` and `score`
 * share.
 */
#ifndef MGL_CLI_GENERATE_CORPUS_H
#define MGL_CLI_GENERATE_CORPUS_H

#include "cli/generate/prompts.h"

/* Zero-initialise; release with mgl_cli_corpus_clear. */
typedef struct mgl_cli_corpus {
    mgl_ids *texts; /* (count) */
    size_t count;
    size_t room;    /* texts that there is memory for */
    size_t longest; /* tokens of the longest text */
} mgl_cli_corpus;

/* Room for so many texts, once. */
mgl_status mgl_cli_corpus_make(mgl_cli_corpus *corpus, size_t room, mgl_error *err);
/* Adds a text, with the tokenizer's own special tokens; MGL_INTERRUPTED after a signal. */
mgl_status mgl_cli_corpus_encode(mgl_cli_corpus *corpus, const mgl_tokenizer *tokenizer,
                                 const char *text, size_t length, mgl_error *err);
/* Adds a text, whose ids are taken from `ids`. */
void mgl_cli_corpus_take(mgl_cli_corpus *corpus, mgl_ids *ids);
/* Makes a corpus of a list of texts and ids. `tokenizer` may be NULL if there are no texts; the ids
 * of the list are taken. */
mgl_status mgl_cli_corpus_take_list(mgl_cli_corpus *corpus, mgl_cli_prompts *list,
                                    const mgl_tokenizer *tokenizer, mgl_error *err);
/* Does the list have an entry that is a text? */
bool mgl_cli_corpus_needs_tokenizer(const mgl_cli_prompts *list);
void mgl_cli_corpus_clear(mgl_cli_corpus *corpus);

/* How far reading is. */
typedef struct mgl_cli_reading {
    const char *verb;      /* for people */
    size_t tokens, total;  /* of the launches that are done, and of all */
    double load_s, read_s; /* opening the model; all launches */
} mgl_cli_reading;

/* A mgl_stage_fn, `user` a mgl_cli_reading: tokens of a text are told as those of a prompt. */
void mgl_cli_reading_stage(void *user, mgl_stage stage, uint64_t done, uint64_t total);
/* A launch has read so many tokens. */
void mgl_cli_reading_add(mgl_cli_reading *reading, size_t tokens);
/* The closing line, with the tokens that were scored. */
void mgl_cli_reading_say(const mgl_cli_reading *reading, size_t scored);

#endif
