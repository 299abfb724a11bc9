/* What the tokenizer's tests share: tokenizers from text and from the fixtures, and comparisons
 * that say what differs. */
#ifndef TESTS_TOKENIZER_SUPPORT_H
#define TESTS_TOKENIZER_SUPPORT_H

#include "importer/tokenizer/tokenizer.h"

#include <check.h>

/* A tokenizer from JSON text; the test fails when it is refused. */
mgl_tokenizer *parse_tokenizer(const char *json);

/* {"version": "1.0", <parts,> "model": a BPE of `vocab` and `merges`, <options>}. Each argument is
 * JSON without its braces, as in "\"a\": 0"; parts end in a comma. */
mgl_tokenizer *make_tokenizer(const char *parts, const char *vocab, const char *merges,
                              const char *options);

/* Asserts that `json` is refused as bad input, with `says` in the message. */
void assert_refused(const char *json, const char *says);

/* Asserts that a text has these ids / these ids this text, whole and token by token. `what` is
 * said when it is not so. */
void assert_encodes(const mgl_tokenizer *tokenizer, const char *text, size_t length, bool special,
                    const int32_t *ids, size_t count, const char *what);
void assert_decodes(const mgl_tokenizer *tokenizer, const int32_t *ids, size_t count,
                    bool skip_special, const char *text, const char *what);

/* The same for a text that may hold a 0. */
void assert_decodes_bytes(const mgl_tokenizer *tokenizer, const int32_t *ids, size_t count,
                          bool skip_special, const char *text, size_t size, const char *what);

/* Runs a suite of one case; the exit code of main. */
int run_case(const char *name, const TTest *const *tests, size_t count);

#endif
