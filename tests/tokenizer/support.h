/* Helpers of the tokenizer's tests: tokenizers from JSON text and from fixtures, and comparisons
 * that print the difference. */
#ifndef TESTS_TOKENIZER_SUPPORT_H
#define TESTS_TOKENIZER_SUPPORT_H

#include "importer/tokenizer/tokenizer.h"

#include <check.h>

/* A tokenizer from JSON text; the test fails if it is rejected. */
mgl_tokenizer *parse_tokenizer(const char *json);

/* {"version": "1.0", <parts,> "model": a BPE of `vocab` and `merges`, <options>}. Each argument is
 * JSON without its braces, as in "\"a\": 0"; parts end in a comma. */
mgl_tokenizer *make_tokenizer(const char *parts, const char *vocab, const char *merges,
                              const char *options);

/* Checks that `json` is rejected as bad input with `says` in the message. */
void assert_refused(const char *json, const char *says);

/* Checks that a text has these ids, or that these ids have this text, whole and token by token.
 * `what` is printed on failure. */
void assert_encodes(const mgl_tokenizer *tokenizer, const char *text, size_t length, bool special,
                    const int32_t *ids, size_t count, const char *what);
void assert_decodes(const mgl_tokenizer *tokenizer, const int32_t *ids, size_t count,
                    bool skip_special, const char *text, const char *what);

/* The same for a text that may contain U+0000. */
void assert_decodes_bytes(const mgl_tokenizer *tokenizer, const int32_t *ids, size_t count,
                          bool skip_special, const char *text, size_t size, const char *what);

/* Runs a suite of one case. Returns the exit code of main. */
int run_case(const char *name, const TTest *const *tests, size_t count);

#endif
