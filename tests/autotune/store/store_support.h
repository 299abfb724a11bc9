/* Helpers of the store's tests: a folder, filled records, and comparison of records. */
#ifndef MGL_TESTS_AUTOTUNE_STORE_STORE_SUPPORT_H
#define MGL_TESTS_AUTOTUNE_STORE_STORE_SUPPORT_H

#include "autotune/store/fields.h"
#include "autotune/store/store.h"

enum { STORE_PAIRS = 100 };

/* A folder that store_remove_folder removes with all that is in it; also XDG_STATE_HOME. */
const char *store_make_folder(void);
void store_remove_folder(void);
/* A path in it; of the last sixteen that were asked for. */
const char *store_path(const char *name);

/* The store that generic tests use: store.db in the folder, or the server that store_use_server
 * named, emptied by store_make_folder. */
const char *store_place(void);
const char *store_at(const char *name); /* a file of that name instead of store.db */
void store_use_server(const char *url);

/* Opens one to write, or ends the process. */
mgl_store *store_open(const char *path);

/* A campaign of that name, stored. Cleared by mgl_campaign_record_clear. */
void store_add_campaign(mgl_store *store, const char *name, mgl_campaign_record *out);
/* A campaign that is not stored. */
void store_fill_campaign(const char *name, mgl_campaign_record *out);

/* A trial whose every field differs from those of other numbers, with two workloads and so many
 * pairs. Not stored; cleared by mgl_trial_clear. */
void store_fill_trial(int64_t campaign, int64_t number, int pairs, mgl_trial *out);

/* The name of the first field that differs; NULL: none. Bits count: NaN is NaN. */
const char *store_find_difference(const mgl_trial *a, const mgl_trial *b, bool pairs);
const char *store_compare_fields(const mgl_fields *fields, const void *a, const void *b);

/* Trials 1 to n stand there, complete with `pairs` pairs; n, or -1. */
int64_t store_count_whole(mgl_store *store, int64_t campaign, int pairs);

#endif
