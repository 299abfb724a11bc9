/*
 * Tuned entries: measured schedules for one shape on one device, which lowering uses instead of its
 * defaults if the entry matches. An entry is one JSON file:
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
 * The shape contains sizes. The optional key "extras": ["qkv_bias", "qk_norm"] lists the features
 * that the model has beyond Llama: the entry matches models with the same features. Without that
 * key, as in older entries, an entry matches every model of the sizes. The formats may have the
 * keys "layers" and "head": the weight formats of a quantized model, such as "int4 group 128 f16".
 * An entry without these keys matches only unquantized models. An entry contains numbers
 * and names, never a path. Entries of the folder schedule/tuned are compiled in. User entries are
 * in megalith/tuned under XDG_DATA_HOME, or else under ~/.local/share, and come first. The program
 * that an entry generates is validated like any other, so a wrong entry can only be slow.
 */
#ifndef MGL_SCHEDULE_TUNED_H
#define MGL_SCHEDULE_TUNED_H

#include "schedule/lower/lowering.h"
#include "schedule/moves/moves.h"

enum {
    MGL_TUNED_DEVICE = 127,     /* maximum bytes of a device name */
    MGL_TUNED_COMMIT = 47,      /* maximum bytes of a commit */
    MGL_TUNED_DATE = 10,        /* 2026-11-22 */
    MGL_TUNED_BYTES = 256 << 10 /* maximum bytes of an entry */
};

/* The measurements behind an entry. Information for people; no code depends on it. */
typedef struct mgl_tuned_evidence {
    double gain, gain_lo, gain_hi;     /* log(default's time / entry's time): center and interval */
    char commit[MGL_TUNED_COMMIT + 1]; /* measured version; "": unknown, also in the two fields
                                          below */
    char date[MGL_TUNED_DATE + 1];
    char archive[MGL_SHA256_HEX]; /* SHA-256 of the campaign's archive */
} mgl_tuned_evidence;

typedef struct mgl_tuned {
    char name[MGL_TUNED_NAME + 1]; /* [a-z0-9_.-]+, without a leading dot */
    mgl_geometry geometry;
    bool tied;
    bool any_extras; /* the entry does not list extras and matches any */
    unsigned extras; /* otherwise bits of mgl_extras */
    mgl_dtype dtype, kv;
    mgl_weight_format layers, head;    /* of the matrices; {0}: unscaled */
    char device[MGL_TUNED_DEVICE + 1]; /* "NVIDIA H200"; "cpu" */
    mgl_target target;                 /* architecture and queues */
    int sequences;
    int capacity_lo, capacity_hi; /* range of measured capacities in positions, inclusive */
    int lowering; /* MGL_LOWERING_VERSION of the measurement, or a later version that generates
                     the same program */
    mgl_schedule_config config;
    mgl_moves moves; /* owned */
    mgl_tuned_evidence evidence;
} mgl_tuned;
void mgl_tuned_clear(mgl_tuned *entry); /* releases and zeroes */

/* Parses strictly: unknown or missing keys, and texts or numbers out of range, are
 * MGL_BAD_INPUT. `file` is used in messages. Release with mgl_tuned_clear. */
mgl_status mgl_tuned_parse(const char *text, size_t length, const char *file, mgl_tuned *out,
                           mgl_error *err);
/* Prints an entry that mgl_tuned_parse accepts: parse(print(entry)) is the entry. */
void mgl_tuned_print(const mgl_tuned *entry, mgl_text *out);
/* The SHA-256 of the entry without its evidence, as written into the header of its programs. */
mgl_status mgl_tuned_digest(const mgl_tuned *entry, char out[MGL_SHA256_HEX], mgl_error *err);

/* Whether the entry matches a graph, target and options. `device`: the name of the device that
 * will run the program. */
bool mgl_tuned_fits(const mgl_tuned *entry, const mgl_graph *graph, const mgl_target *target,
                    const char *device, const mgl_lower_options *options);
/* Whether the entry matches the model, ignoring device, target, sequences, capacity and version. */
bool mgl_tuned_is_of(const mgl_tuned *entry, const mgl_graph *graph);

/* Lowers with the entry's config, with or without penalties, and applies its moves. The header
 * of the program names the entry. Fails if the config is rejected or a move does not apply. The
 * result is not validated. */
mgl_status mgl_tuned_replay(const mgl_tuned *entry, const mgl_graph *graph,
                            const mgl_target *target, int capacity, bool penalties,
                            mgl_program **out, mgl_error *err);

/* The capacity at which entries are looked up: the smallest of 256, 512, 1,024, ... that is at
 * least `capacity`, limited to `most`. `capacity` is at most `most`. */
int mgl_tuned_step(int capacity, int most);

/* ---- locations of entries (tuned_folder.c) --------------------------------------------------- */

typedef struct mgl_tuned_list {
    mgl_tuned *entries; /* (count) user entries first, then shipped ones, each sorted by file
                           name */
    size_t count, capacity;
} mgl_tuned_list;
void mgl_tuned_list_clear(mgl_tuned_list *list);

/* Loads all entries. Unreadable entries are skipped, with a line in `notes` that names the file.
 * The only error is MGL_NO_MEMORY. Release with mgl_tuned_list_clear. */
mgl_status mgl_tuned_load(mgl_tuned_list *out, mgl_text *notes, mgl_error *err);

/* The text of shipped entry `index`, 0-terminated, and its file name. NULL past the last entry. */
const char *mgl_tuned_shipped(int index, const char **file);

/* The folder of the user's entries. False if neither XDG_DATA_HOME nor HOME is set. */
bool mgl_tuned_folder(mgl_text *out);

/* Writes the entry to <name>.json in that folder, replacing an entry of the same name, and
 * appends the file's path to `path` (may be NULL). MGL_BAD_INPUT if mgl_tuned_parse would reject
 * the entry. */
mgl_status mgl_tuned_install(const mgl_tuned *entry, mgl_text *path, mgl_error *err);

#endif
