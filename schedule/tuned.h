/*
 * Tuned entries: schedules that somebody found and measured, for one shape on one device, that
 * lowering takes in place of its defaults where they fit. An entry is one JSON file:
 *
 *     {"schema": "megalith.tuned/1", "name": "llama-1b-h200",
 *      "shape": {"hidden": 2048, ..., "eps": 1e-05, "tied": true},
 *      "formats": {"dtype": "bf16", "kv": "bf16"},
 *      "device": "NVIDIA H200", "target": "sm_90a:132", "sequences": 1,
 *      "capacity": {"lo": 256, "hi": 4096}, "lowering": 1,
 *      "config": {...}, "moves": ["rows layer=3 step=o from=12 to=13 count=1"],
 *      "evidence": {"gain": 0.031, "interval": [0.029, 0.033], "commit": ..., "date": ...,
 *                   "archive": ...}}
 *
 * The shape is sizes, and, with "extras": ["qkv_bias", "qk_norm"], what the model has beyond
 * Llama's: the entry is for models that have the same. Without that key, as older entries are, it
 * is for every model of the sizes. An entry has numbers and names, and never a path. Those of the
 * folder schedule/tuned are compiled in; a user's stand in megalith/tuned of XDG_DATA_HOME, or else
 * of ~/.local/share, and come first. What an entry makes is validated like any other program: one
 * that is wrong is slow to nobody but its owner.
 */
#ifndef MGL_SCHEDULE_TUNED_H
#define MGL_SCHEDULE_TUNED_H

#include "schedule/lower/lowering.h"
#include "schedule/moves/moves.h"

enum {
    MGL_TUNED_DEVICE = 127,     /* bytes of a device's name, at most */
    MGL_TUNED_COMMIT = 47,      /* of a commit */
    MGL_TUNED_DATE = 10,        /* 2026-11-22 */
    MGL_TUNED_BYTES = 256 << 10 /* of an entry, at most */
};

/* What the entry rests on: for people; nothing is decided by it. */
typedef struct mgl_tuned_evidence {
    double gain, gain_lo, gain_hi;     /* log of default's time by its own: centre and interval */
    char commit[MGL_TUNED_COMMIT + 1]; /* that measured it; "": not known, as with the two below */
    char date[MGL_TUNED_DATE + 1];
    char archive[MGL_SHA256_HEX]; /* SHA-256 of the campaign's archive */
} mgl_tuned_evidence;

typedef struct mgl_tuned {
    char name[MGL_TUNED_NAME + 1]; /* [a-z0-9_.-]+, no dot in front */
    mgl_geometry geometry;
    bool tied;
    bool any_extras; /* it does not say which the model has */
    unsigned extras; /* else: bits of mgl_extras */
    mgl_dtype dtype, kv;
    char device[MGL_TUNED_DEVICE + 1]; /* "NVIDIA H200"; "cpu" */
    mgl_target target;                 /* architecture and queues */
    int sequences;
    int capacity_lo, capacity_hi; /* positions for which it was measured, both included */
    int lowering; /* MGL_LOWERING_VERSION when it was measured, or a later one that makes the same
                     program of it */
    mgl_schedule_config config;
    mgl_moves moves; /* owned */
    mgl_tuned_evidence evidence;
} mgl_tuned;
void mgl_tuned_clear(mgl_tuned *entry); /* releases; zero-initialised again */

/* Strict: unknown and missing keys, texts and numbers beyond their limits are MGL_BAD_INPUT. `file`
 * names it in messages. Release with mgl_tuned_clear. */
mgl_status mgl_tuned_parse(const char *text, size_t length, const char *file, mgl_tuned *out,
                           mgl_error *err);
/* parse(print(entry)) is the entry, for one that mgl_tuned_parse would take. */
void mgl_tuned_print(const mgl_tuned *entry, mgl_text *out);
/* The SHA-256 of what it says without its evidence: what the header of its programs has. */
mgl_status mgl_tuned_digest(const mgl_tuned *entry, char out[MGL_SHA256_HEX], mgl_error *err);

/* What is lowered: whether the entry is for that. `device`: the name of the device it will run on.
 */
bool mgl_tuned_fits(const mgl_tuned *entry, const mgl_graph *graph, const mgl_target *target,
                    const char *device, const mgl_lower_options *options);
/* The same but for device, target, sequences, capacity and version: whether it is for such a model.
 */
bool mgl_tuned_is_of(const mgl_tuned *entry, const mgl_graph *graph);

/* Lowers with the entry's config, with penalties or without, and applies its moves; the program's
 * header names the entry. Fails where the config is refused or a move does not fit. The result was
 * not validated. */
mgl_status mgl_tuned_replay(const mgl_tuned *entry, const mgl_graph *graph,
                            const mgl_target *target, int capacity, bool penalties,
                            mgl_program **out, mgl_error *err);

/* The capacities that entries recur at: the smallest of 256, 512, 1,024, ... that has `capacity`
 * positions, but `most` at most, which `capacity` is. */
int mgl_tuned_step(int capacity, int most);

/* ---- where entries are (tuned_folder.c)
 * ----------------------------------------------------------- */

typedef struct mgl_tuned_list {
    mgl_tuned *entries; /* (count) the user's first, each kind by the names of their files */
    size_t count, capacity;
} mgl_tuned_list;
void mgl_tuned_list_clear(mgl_tuned_list *list);

/* All entries. What can not be read is left out, with a line in `notes` that names it: only a lack
 * of memory is an error. Release with mgl_tuned_list_clear. */
mgl_status mgl_tuned_load(mgl_tuned_list *out, mgl_text *notes, mgl_error *err);

/* The text of shipped entry `index`, 0-terminated, and the name of its file; NULL behind the last.
 */
const char *mgl_tuned_shipped(int index, const char **file);

/* The folder of the user's entries. False where neither XDG_DATA_HOME nor HOME says where. */
bool mgl_tuned_folder(mgl_text *out);

/* Writes the entry to <name>.json in that folder, in place of what stood there under the name;
 * `path` (may be NULL) is appended the file's path. MGL_BAD_INPUT where the entry is not one that
 * mgl_tuned_parse takes. */
mgl_status mgl_tuned_install(const mgl_tuned *entry, mgl_text *path, mgl_error *err);

#endif
