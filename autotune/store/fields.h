/*
 * The fields of campaign data as X-macro lists. They generate the SQL statements of the store and
 * the keys of archives, so each field has one name, which is both the column and the key.
 *
 * X(kind, name, member)
 */
#ifndef MGL_AUTOTUNE_STORE_FIELDS_H
#define MGL_AUTOTUNE_STORE_FIELDS_H

#include "autotune/store/record.h"

typedef enum mgl_field_kind {
    MGL_FIELD_INT64,
    MGL_FIELD_BITS64, /* uint64_t */
    MGL_FIELD_INT,
    MGL_FIELD_UINT,
    MGL_FIELD_BOOL,    /* the last integer kind */
    MGL_FIELD_REAL,    /* double; NaN means no value */
    MGL_FIELD_TEXT,    /* char *, owned; may be NULL */
    MGL_FIELD_CHARS,   /* char[] */
    MGL_FIELD_OUTCOME, /* mgl_outcome, as its name */
    MGL_FIELD_CONFIG,  /* mgl_schedule_config, as JSON; NULL if all members are 0 */
    MGL_FIELD_MOVES    /* mgl_moves, as text; NULL if empty */
} mgl_field_kind;

typedef struct mgl_field {
    mgl_field_kind kind;
    const char *name;
    size_t offset, size; /* offset and size of the member in bytes */
} mgl_field;

/* A campaign. */
#define MGL_CAMPAIGN_FIELDS(X)                                                                     \
    X(TEXT, name, name)                                                                            \
    X(TEXT, model, model)                                                                          \
    X(TEXT, shape, shape)                                                                          \
    X(TEXT, device, device)                                                                        \
    X(TEXT, target, target)                                                                        \
    X(TEXT, dtype, dtype)                                                                          \
    X(TEXT, workloads, workloads)                                                                  \
    X(TEXT, space, space)                                                                          \
    X(TEXT, options, options)                                                                      \
    X(TEXT, state, state)                                                                          \
    X(TEXT, reason, reason)                                                                        \
    X(INT64, capacity, capacity)                                                                   \
    X(BITS64, seed, seed)                                                                          \
    X(INT64, created_unix, created_unix)                                                           \
    X(INT64, updated_unix, updated_unix)                                                           \
    X(CHARS, manifest, manifest)                                                                   \
    X(REAL, seconds, seconds)

#define MGL_TRIAL_FIELDS(X)                                                                        \
    X(INT64, number, number)                                                                       \
    X(TEXT, proposer, proposal.proposer)                                                           \
    X(TEXT, hypothesis, proposal.hypothesis)                                                       \
    X(INT64, parent, proposal.parent)                                                              \
    X(CONFIG, config, proposal.config)                                                             \
    X(MOVES, moves, proposal.moves)                                                                \
    X(TEXT, schedule, proposal.schedule)                                                           \
    X(INT64, queued, proposal.queued)                                                              \
    X(CHARS, digest, digest)                                                                       \
    X(CHARS, nonce, nonce)                                                                         \
    X(BOOL, control, control)                                                                      \
    X(BOOL, same_kernel, same_kernel)                                                              \
    X(OUTCOME, outcome, verdict.outcome)                                                           \
    X(CHARS, diagnostic, verdict.diagnostic)                                                       \
    X(INT, duplicate_of, duplicate_of)                                                             \
    X(REAL, predicted_us, predicted_us)                                                            \
    X(REAL, gain, gain)                                                                            \
    X(REAL, gain_lo, gain_lo)                                                                      \
    X(REAL, gain_hi, gain_hi)                                                                      \
    X(REAL, p_value, p_value)                                                                      \
    X(REAL, level, level)                                                                          \
    X(REAL, seconds, seconds)                                                                      \
    X(REAL, compile_s, compile_s)                                                                  \
    X(REAL, gpu_s, gpu_s)                                                                          \
    X(INT64, started_unix, started_unix)                                                           \
    X(CHARS, commit_id, commit)                                                                    \
    X(CHARS, driver, driver)                                                                       \
    X(CHARS, device_uuid, device_uuid)                                                             \
    X(CHARS, manifest, manifest)                                                                   \
    X(INT64, condemned, quarantined)

/* One workload of a trial. */
#define MGL_RESULT_FIELDS(X)                                                                       \
    X(REAL, predicted_us, predicted_us)                                                            \
    X(REAL, incumbent_us, incumbent_us)                                                            \
    X(REAL, candidate_us, candidate_us)                                                            \
    X(REAL, gain, gain)                                                                            \
    X(REAL, gain_lo, gain_lo)                                                                      \
    X(REAL, gain_hi, gain_hi)                                                                      \
    X(REAL, stream_us, stream_us)                                                                  \
    X(REAL, error, error)                                                                          \
    X(REAL, error_default, error_default)                                                          \
    X(INT, pairs, pairs)                                                                           \
    X(INT, dropped, dropped)

#define MGL_PAIR_FIELDS(X)                                                                         \
    X(INT, workload, workload)                                                                     \
    X(INT, stage, stage)                                                                           \
    X(BOOL, candidate_first, candidate_first)                                                      \
    X(BOOL, dropped, dropped)                                                                      \
    X(REAL, incumbent_us, incumbent_us)                                                            \
    X(REAL, candidate_us, candidate_us)                                                            \
    X(UINT, incumbent_mhz, sm_mhz[0])                                                              \
    X(UINT, candidate_mhz, sm_mhz[1])                                                              \
    X(UINT, memory_mhz, memory_mhz)                                                                \
    X(UINT, temperature, temperature)                                                              \
    X(BITS64, reasons, reasons)

/* The lists as tables, for code that iterates over fields. */
typedef struct mgl_fields {
    const mgl_field *list; /* (count) */
    int count;
} mgl_fields;
/* A table: {MGL_FIELD(mgl_trial, INT64, number, number), ...}; and the object of its elements. */
#define MGL_FIELD(record, kind, name, member)                                                      \
    {                                                                                              \
        MGL_FIELD_##kind, #name, offsetof(record, member), sizeof(((record *)0)->member)           \
    }
#define MGL_FIELDS(list)                                                                           \
    {                                                                                              \
        list, (int)(sizeof list / sizeof *list)                                                    \
    }
extern const mgl_fields mgl_campaign_fields, mgl_trial_fields, mgl_result_fields, mgl_pair_fields;

/* The address of the member in a record. */
static inline void *mgl_field_of(const mgl_field *field, void *record)
{
    return (char *)record + field->offset;
}
static inline const void *mgl_field_in(const mgl_field *field, const void *record)
{
    return (const char *)record + field->offset;
}

/* The member of an integer kind (INT64 to BOOL); BITS64 as a signed number with the same bits. */
bool mgl_field_is_int(mgl_field_kind kind);
int64_t mgl_field_int(mgl_field_kind kind, const void *at);
/* False: the member cannot hold the value. */
bool mgl_field_set_int(mgl_field_kind kind, void *at, int64_t value);
/* The member of kind TEXT, CHARS or OUTCOME as a text, or NULL. */
const char *mgl_field_text(mgl_field_kind kind, const void *at);

/* Whether all members are 0, as in a trial without a proposal. */
bool mgl_config_is_none(const mgl_schedule_config *config);

#endif
