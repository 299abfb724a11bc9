/* Helpers of the store's tests: a folder, filled records, and comparison of records. */
#ifndef MGL_TESTS_AUTOTUNE_STORE_STORE_SUPPORT_H
#define MGL_TESTS_AUTOTUNE_STORE_STORE_SUPPORT_H

#include "autotune/store/fields.h"
#include "autotune/store/store.h"

enum { STORE_PAIRS = 100 };

/* Makes a folder, also used as XDG_STATE_HOME. store_remove_folder removes it with its contents. */
const char *store_make_folder(void);
void store_remove_folder(void);
/* A path in the folder. Static storage: valid for the next fifteen calls. */
const char *store_path(const char *name);

/* The path or URL of the store under test: store.db in the folder, or the server of
 * store_use_server. store_make_folder empties it. */
const char *store_place(void);
const char *store_at(const char *name); /* a file of that name instead of store.db */
void store_use_server(const char *url);

/* Opens a store for writing, or exits the process. */
mgl_store *store_open(const char *path);

/* Makes and stores a campaign of that name. Clear it with mgl_campaign_record_clear. */
void store_add_campaign(mgl_store *store, const char *name, mgl_campaign_record *out);
/* A campaign that is not stored. */
void store_fill_campaign(const char *name, mgl_campaign_record *out);

/* Fills a trial with two workloads and `pairs` pairs. Every field differs from other numbers'
 * trials. Not stored; clear it with mgl_trial_clear. */
void store_fill_trial(int64_t campaign, int64_t number, int pairs, mgl_trial *out);

/* The name of the first field that differs; NULL: none. Compares bits, so NaN equals NaN. */
const char *store_find_difference(const mgl_trial *a, const mgl_trial *b, bool pairs);
const char *store_compare_fields(const mgl_fields *fields, const void *a, const void *b);

/* Checks that the store has complete trials 1 to n with `pairs` pairs each. Returns n, or -1 if
 * not. */
int64_t store_count_whole(mgl_store *store, int64_t campaign, int pairs);

#endif
