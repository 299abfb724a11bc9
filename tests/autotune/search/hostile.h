/*
 * Hostile proposals generated from a seed: texts that are not JSON or not proposals, invalid
 * numbers, programs with races, programs of another model, moves that do not fit, and prompt
 * injections. The same seed gives the same proposal.
 */
#ifndef MGL_TESTS_AUTOTUNE_SEARCH_HOSTILE_H
#define MGL_TESTS_AUTOTUNE_SEARCH_HOSTILE_H

#include "base/text.h"

#include <stdint.h>

/* HOSTILE(name): each has a function make_name in hostile.c */
#define HOSTILE_KINDS(X)                                                                           \
    X(broken_json)                                                                                 \
    X(wrong_schema)                                                                                \
    X(strange_keys)                                                                                \
    X(strange_numbers)                                                                             \
    X(over_limits)                                                                                 \
    X(wrong_types)                                                                                 \
    X(other_model)                                                                                 \
    X(validator_case)                                                                              \
    X(lost_clear)                                                                                  \
    X(lost_wait)                                                                                   \
    X(lost_task)                                                                                   \
    X(exchanged_tasks)                                                                             \
    X(changed_number)                                                                              \
    X(path_tricks)                                                                                 \
    X(injections)                                                                                  \
    X(control_characters)                                                                          \
    X(deep_nesting)                                                                                \
    X(moves_that_do_not_fit)                                                                       \
    X(damaged_text)                                                                                \
    X(large)

typedef enum hostile_kind {
#define HOSTILE_ENUM(name) HOSTILE_##name,
    HOSTILE_KINDS(HOSTILE_ENUM)
#undef HOSTILE_ENUM
        HOSTILE_COUNT
} hostile_kind;

enum { HOSTILE_LARGE = 100 << 20 /* bytes of the largest texts */ };

const char *hostile_name(hostile_kind kind);
/* `lowered`: the text of a valid program of the campaign, from which invalid ones are made. Appends
 * to *out, which may contain 0 bytes. */
void hostile_make(hostile_kind kind, uint64_t number, const char *lowered, mgl_text *out);

#endif
