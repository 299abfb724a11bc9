/*
 * Tests of tuned entries: strict parsing, the round trip, the match of one shape on one device, and
 * replay by lowering; the user's folder, where no file can stop a run; and every shipped entry.
 */
#include "lowering.h"

#include "base/file.h"
#include "eval/synthetic.h"
#include "schedule/digest.h"
#include "schedule/tuned/tuned.h"
#include "vm/cuda/encode.h"
#include "vm/vm.h"

#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* An entry for `even` on four queues. */
static const char text[] =
    "{\n"
    "  \"schema\": \"megalith.tuned/1\",\n"
    "  \"name\": \"even-4\",\n"
    "  \"shape\": {\"hidden\": 64, \"layers\": 1, \"heads\": 4, \"kv_heads\": 2, \"head_dim\": 16, "
    "\"ffn\": 96, \"vocab\": 41, \"eps\": 1e-05, \"tied\": true},\n"
    "  \"formats\": {\"dtype\": \"bf16\", \"kv\": \"bf16\"},\n"
    "  \"device\": \"Test GPU\",\n"
    "  \"target\": \"sm_90a:4\",\n"
    "  \"sequences\": 2,\n"
    "  \"capacity\": {\"lo\": 64, \"hi\": 512},\n"
    "  \"lowering\": 1,\n"
    "  \"config\": {\"exchange\": 1},\n"
    "  \"moves\": [\"shift layer=0 step=qkv from=0 count=0\"],\n"
    "  \"evidence\": {\"gain\": 0.031, \"interval\": [0.029, 0.033], \"commit\": \"0123abc\", "
    "\"date\": \"2026-11-22\"}\n"
    "}\n";
#define MOVES "\"shift layer=0 step=qkv from=0 count=0\""

static mgl_tuned entry_of(const char *json)
{
    mgl_tuned entry;
    mgl_error err = {0};
    mgl_status status = mgl_tuned_parse(json, strlen(json), "entry.json", &entry, &err);
    ck_assert_msg(!status, "%s: %s", err.where, err.message);
    return entry;
}

/* The entry with its first `from` replaced by `to`. */
static mgl_tuned entry_with(const char *from, const char *to)
{
    mgl_text json = edited(text, from, to);
    mgl_tuned entry = entry_of(json.bytes);
    mgl_text_clear(&json);
    return entry;
}

/* An entry for the current version of lowering with one move: "sample" to another queue. */
static mgl_tuned fitting_entry(void)
{
    mgl_tuned entry = entry_with(MOVES, "\"sample to=3\"");
    entry.lowering = MGL_LOWERING_VERSION;
    return entry;
}

static mgl_text print(const mgl_tuned *entry)
{
    mgl_text out = {0};
    mgl_tuned_print(entry, &out);
    ck_assert(!out.failed);
    return out;
}

/* ---- the text -------------------------------------------------------------------------------- */

START_TEST(an_entry_is_read)
{
    mgl_tuned entry = entry_with(MOVES, "\"sample to=3\", \"sample to=0\"");
    ck_assert_str_eq(entry.name, "even-4");
    ck_assert(mgl_geometry_equal(&entry.geometry, &even.geometry));
    ck_assert(entry.tied);
    ck_assert_int_eq(entry.dtype, MGL_BF16);
    ck_assert_int_eq(entry.kv, MGL_BF16);
    ck_assert_str_eq(entry.device, "Test GPU");
    ck_assert_str_eq(entry.target.arch, "sm_90a");
    ck_assert_int_eq(entry.target.queues, 4);
    ck_assert_int_eq(entry.sequences, 2);
    ck_assert_int_eq(entry.capacity_lo, 64);
    ck_assert_int_eq(entry.capacity_hi, 512);
    ck_assert_int_eq(entry.lowering, 1);
    ck_assert_int_eq(entry.config.exchange, MGL_EXCHANGE_COUNTERS);
    ck_assert_int_eq(entry.moves.count, 2);
    ck_assert_int_eq(entry.moves.moves[0].kind, MGL_MOVE_SAMPLE);
    ck_assert_double_eq(entry.evidence.gain_hi, 0.033);
    ck_assert_str_eq(entry.evidence.date, "2026-11-22");
    ck_assert_str_eq(entry.evidence.archive, "");
    mgl_tuned_clear(&entry);
}
END_TEST

START_TEST(what_is_printed_reads_back)
{
    mgl_tuned entry = fitting_entry();
    mgl_text first = print(&entry);
    mgl_tuned again = entry_of(first.bytes);
    mgl_text second = print(&again);
    ck_assert_str_eq(first.bytes, second.bytes);
    ck_assert(!memcmp(&entry.config, &again.config, sizeof entry.config));
    mgl_text_clear(&first);
    mgl_text_clear(&second);
    mgl_tuned_clear(&entry);
    mgl_tuned_clear(&again);
}
END_TEST

/* The entry whose shape ends with this text. */
static mgl_tuned entry_of_family(const char *end)
{
    mgl_text moved = edited(text, MOVES, "\"sample to=3\"");
    mgl_text json = edited(moved.bytes, "\"tied\": true", end);
    mgl_tuned entry = entry_of(json.bytes);
    entry.lowering = MGL_LOWERING_VERSION;
    mgl_text_clear(&moved);
    mgl_text_clear(&json);
    return entry;
}

/* Forms of biases and norms of q and k in an entry. */
static const struct {
    const char *end; /* end of the shape's text */
    bool any;
    unsigned extras;
} families[] = {
    {"\"tied\": true", true, MGL_EXTRA_NONE},
    {"\"tied\": true, \"extras\": []", false, MGL_EXTRA_NONE},
    {"\"tied\": true, \"extras\": [\"qkv_bias\"]", false, MGL_EXTRA_QKV_BIAS},
    {"\"tied\": true, \"extras\": [\"qk_norm\"]", false, MGL_EXTRA_QK_NORM},
    {"\"tied\": true, \"extras\": [\"qkv_bias\", \"o_bias\", \"mlp_bias\", \"qk_norm\"]", false,
     MGL_EXTRA_QKV_BIAS | MGL_EXTRA_O_BIAS | MGL_EXTRA_MLP_BIAS | MGL_EXTRA_QK_NORM},
};
enum { FAMILIES = sizeof families / sizeof *families };

START_TEST(extras_are_read_and_printed)
{
    mgl_tuned entry = entry_of_family(families[_i].end);
    mgl_text printed = print(&entry);
    ck_assert_int_eq(entry.any_extras, families[_i].any);
    ck_assert_uint_eq(entry.extras, families[_i].extras);
    ck_assert_ptr_nonnull(strstr(printed.bytes, families[_i].end));
    mgl_text_clear(&printed);
    mgl_tuned_clear(&entry);
}
END_TEST

/* Each edit of the text is rejected, with a message that names the file. */
static const struct {
    const char *from, *to, *says;
} damages[] = {
    {"megalith.tuned/1", "megalith.tuned/2", "schema"},
    {"\"even-4\"", "\"../even\"", "name"},
    {"\"even-4\"", "\".even\"", "name"},
    {"\"even-4\"", "\"Even\"", "name"},
    {"\"even-4\"", "\"\"", "name"},
    {"\"even-4\"", "4", "name"},
    {"\"hidden\": 64", "\"hidden\": 0", "hidden"},
    {"\"hidden\": 64", "\"hidden\": 6.5", "hidden"},
    {"\"hidden\": 64, ", "", "hidden"},
    {"\"eps\": 1e-05", "\"eps\": 0", "eps"},
    {"\"eps\": 1e-05", "\"eps\": 1e300", "eps"},
    {"\"tied\": true", "\"tied\": 1", "tied"},
    {"\"tied\": true", "\"tied\": true, \"path\": \"/home\"", "path"},
    {"\"tied\": true", "\"tied\": true, \"extras\": \"qk_norm\"", "extras"},
    {"\"tied\": true", "\"tied\": true, \"extras\": [8]", "extras"},
    {"\"tied\": true", "\"tied\": true, \"extras\": [\"v_norm\"]", "extras"},
    {"\"tied\": true", "\"tied\": true, \"extras\": [\"qk_norm\", \"qk_norm\"]", "extras"},
    {"\"dtype\": \"bf16\"", "\"dtype\": \"i32\"", "dtype"},
    {"\"kv\": \"bf16\"", "\"kv\": \"fp4\"", "kv"},
    {"\"kv\": \"bf16\"", "\"kv\": \"bf16\", \"layers\": \"bf16\"", "layers"},
    {"\"kv\": \"bf16\"", "\"kv\": \"bf16\", \"layers\": \"int4\"", "layers"},
    {"\"kv\": \"bf16\"", "\"kv\": \"bf16\", \"layers\": \"int4 group 32 f16 x\"", "layers"},
    {"\"kv\": \"bf16\"", "\"kv\": \"bf16\", \"head\": 8", "head"},
    {"\"kv\": \"bf16\"", "\"kv\": \"bf16\", \"tail\": \"int8 row f32\"", "tail"},
    {"Test GPU", "Test\\nGPU", "device"},
    {"Test GPU", "", "device"},
    {"sm_90a:4", "sm_90a", "sm_90a"},
    {"sm_90a:4", "sm_1:4", "sm_1"},
    {"\"sequences\": 2", "\"sequences\": 65", "sequences"},
    {"\"lo\": 64", "\"lo\": 513", "capacity"},
    {"\"lo\": 64", "\"lo\": 0", "lo"},
    {"\"lowering\": 1", "\"lowering\": 0", "lowering"},
    {"\"exchange\": 1", "\"exchange\": 7", "exchange"},
    {"\"exchange\": 1", "\"exchanges\": 1", "exchanges"},
    {MOVES, "\"jump layer=0\"", "jump"},
    {MOVES, "7", "moves"},
    {MOVES, "\"sample to=0\\nsample to=1\"", "moves"},
    {"\"gain\": 0.031", "\"gain\": \"much\"", "gain"},
    {"[0.029, 0.033]", "[0.029]", "interval"},
    {"[0.029, 0.033]", "[0.029, 0.033, 1]", "interval"},
    {"[0.029, 0.033]", "[0.029, \"x\"]", "interval"},
    {"2026-11-22", "2026-11-22 12:00", "date"},
    {"\"sequences\": 2", "\"sequences\": 2, \"note\": \"\"", "note"},
    {"\"sequences\": 2", "\"sequences\": 2, \"sequences\": 2", "sequences"},
    {"}\n}\n", "}\n", "entry.json"},
};

START_TEST(what_is_no_entry_is_rejected)
{
    mgl_tuned entry;
    mgl_error err = {0};
    mgl_text json = edited(text, MOVES, strstr(damages[_i].from, "shift") ? MOVES : "");
    mgl_text damaged = edited(json.bytes, damages[_i].from, damages[_i].to);
    mgl_status status = mgl_tuned_parse(damaged.bytes, damaged.length, "entry.json", &entry, &err);
    ck_assert_msg(status == MGL_BAD_INPUT, "%s: %d", damages[_i].to, status);
    ck_assert_msg(strstr(err.where, damages[_i].says) || strstr(err.message, damages[_i].says),
                  "%s: %s: %s", damages[_i].says, err.where, err.message);
    ck_assert_int_eq(entry.moves.count, 0);
    mgl_text_clear(&damaged);
    mgl_text_clear(&json);
}
END_TEST

START_TEST(texts_that_are_no_objects_are_rejected)
{
    static const char *const others[] = {"", "[]", "7", "{}", "null"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        mgl_tuned entry;
        ck_assert_int_eq(mgl_tuned_parse(others[i], strlen(others[i]), "x", &entry, NULL),
                         MGL_BAD_INPUT);
    }
}
END_TEST

static void digest(const mgl_tuned *entry, char out[MGL_SHA256_HEX])
{
    ck_assert_int_eq(mgl_tuned_digest(entry, out, NULL), MGL_OK);
}

START_TEST(the_digest_is_of_all_but_the_evidence)
{
    char a[MGL_SHA256_HEX], b[MGL_SHA256_HEX], c[MGL_SHA256_HEX];
    mgl_tuned entry = fitting_entry();
    digest(&entry, a);
    entry.evidence.gain = 1;
    strcpy(entry.evidence.commit, "other");
    digest(&entry, b);
    entry.config.splits = 3;
    digest(&entry, c);
    ck_assert_str_eq(a, b);
    ck_assert_str_ne(a, c);
    mgl_tuned_clear(&entry);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    mgl_tuned entry;
    mgl_text json = edited(text, MOVES, "\"sample to=3\"");
    mgl_alloc_fail_at(0, false);
    ck_assert_int_eq(mgl_tuned_parse(json.bytes, json.length, "x", &entry, NULL), MGL_OK);
    uint64_t count = mgl_alloc_count();
    mgl_tuned_clear(&entry);
    for (uint64_t n = 1; n <= count; n++) {
        mgl_alloc_fail_at(n, n % 2);
        mgl_status status = mgl_tuned_parse(json.bytes, json.length, "x", &entry, NULL);
        mgl_alloc_fail_at(0, false);
        ck_assert_int_eq(status, MGL_NO_MEMORY);
    }
    mgl_text_clear(&json);
}
END_TEST

/* ---- matching -------------------------------------------------------------------------------- */

/* The request that an entry is matched with. */
typedef struct question {
    mgl_target target;
    const char *device;
    mgl_lower_options options;
} question;

static question matching(void)
{
    return (question){
        target_of("sm_90a:4"), "Test GPU", {.dtype = MGL_BF16, .capacity = 256, .sequences = 2}};
}

static bool fits(const mgl_tuned *entry, const question *q)
{
    mgl_graph *graph = graph_of(&even);
    bool answer = mgl_tuned_fits(entry, graph, &q->target, q->device, &q->options);
    mgl_graph_free(graph);
    return answer;
}

START_TEST(it_fits_what_it_was_made_for)
{
    mgl_tuned entry = fitting_entry();
    question q = matching();
    ck_assert(fits(&entry, &q));
    q.options.capacity = 64;
    ck_assert(fits(&entry, &q));
    q.options.capacity = 512;
    ck_assert(fits(&entry, &q));
    mgl_tuned_clear(&entry);
}
END_TEST

START_TEST(it_fits_nothing_else)
{
    mgl_tuned entry = fitting_entry();
    question others[] = {matching(), matching(), matching(), matching(),
                         matching(), matching(), matching()};
    others[0].target = target_of("sm_90a:5");
    others[1].target = target_of("sm_100a:4");
    others[2].device = "Test GPU 2";
    others[3].options.dtype = MGL_F16;
    others[4].options.capacity = 63;
    others[5].options.capacity = 513;
    others[6].options.sequences = 1;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ck_assert_msg(!fits(&entry, &others[i]), "%zu", i);
    mgl_tuned_clear(&entry);
}
END_TEST

START_TEST(it_fits_one_shape_and_one_version)
{
    mgl_tuned entry = fitting_entry();
    question q = matching();
    entry.geometry.ffn = 128;
    ck_assert(!fits(&entry, &q));
    entry.geometry.ffn = 96;
    entry.tied = false;
    ck_assert(!fits(&entry, &q));
    entry.tied = true;
    entry.kv = MGL_F16;
    ck_assert(!fits(&entry, &q));
    entry.kv = MGL_BF16;
    entry.lowering++;
    ck_assert(!fits(&entry, &q));
    mgl_tuned_clear(&entry);
}
END_TEST

/* An entry that names extras fits only models with the same extras; an entry without them fits
 * all. */
START_TEST(it_fits_one_family)
{
    mgl_tuned entry = entry_of_family(families[_i].end);
    for (int i = 0; i < FAMILIES; i++) {
        mgl_graph *graph = family_of(&even, families[i].extras);
        ck_assert_msg(mgl_tuned_is_of(&entry, graph) ==
                          (families[_i].any || families[i].extras == families[_i].extras),
                      "%s", families[i].end);
        mgl_graph_free(graph);
    }
    mgl_tuned_clear(&entry);
}
END_TEST

/* The digest of an entry without extras is the same as before extras existed. */
START_TEST(the_digest_tells_families_apart)
{
    char digests[FAMILIES][MGL_SHA256_HEX];
    for (int i = 0; i < FAMILIES; i++) {
        mgl_tuned entry = entry_of_family(families[i].end);
        digest(&entry, digests[i]);
        for (int j = 0; j < i; j++)
            ck_assert_str_ne(digests[i], digests[j]);
        mgl_tuned_clear(&entry);
    }
}
END_TEST

START_TEST(capacities_recur)
{
    static const int cases[][3] = {
        {1, 4096, 256},     {256, 4096, 256},   {257, 4096, 512}, {4096, 8192, 4096},
        {4097, 8192, 8192}, {3000, 3000, 3000}, {100, 200, 200},  {1 << 20, 1 << 20, 1 << 20}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_int_eq(mgl_tuned_step(cases[i][0], cases[i][1]), cases[i][2]);
}
END_TEST

/* ---- replaying ------------------------------------------------------------------------------- */

START_TEST(a_replay_is_lowering_and_moves)
{
    mgl_program *program = NULL, *moved = NULL;
    unsigned char a[MGL_SHA256_BYTES], b[MGL_SHA256_BYTES];
    char named[MGL_SHA256_HEX];
    mgl_tuned entry = fitting_entry();
    mgl_graph *graph = graph_of(&even);
    mgl_schedule_config config = preset();
    mgl_program *plain = lowered(graph, 4, &config, 256);
    ck_assert_int_eq(mgl_moves_apply(plain, &entry.moves, &moved, NULL), MGL_OK);
    ck_assert_int_eq(mgl_tuned_replay(&entry, graph, &entry.target, 256, false, &program, NULL),
                     MGL_OK);
    ck_assert_int_eq(mgl_program_digest(moved, a, NULL), MGL_OK);
    ck_assert_int_eq(mgl_program_digest(program, b, NULL), MGL_OK);
    ck_assert(!memcmp(a, b, sizeof a));
    ck_assert(!mgl_program_equal(moved, program)); /* its header names the entry */
    digest(&entry, named);
    ck_assert_str_eq(program->tuned, "even-4");
    ck_assert_str_eq(program->tuned_digest, named);
    mgl_program_free(plain);
    mgl_program_free(moved);
    mgl_program_free(program);
    mgl_graph_free(graph);
    mgl_tuned_clear(&entry);
}
END_TEST

START_TEST(the_header_round_trips)
{
    mgl_program *program = NULL;
    mgl_tuned entry = fitting_entry();
    mgl_graph *graph = graph_of(&even);
    ck_assert_int_eq(mgl_tuned_replay(&entry, graph, &entry.target, 64, false, &program, NULL),
                     MGL_OK);
    mgl_text first = printed(program);
    ck_assert_ptr_nonnull(strstr(first.bytes, "\ntuned even-4 "));
    mgl_program *again = parsed(first.bytes, first.length);
    ck_assert(mgl_program_equal(program, again));
    mgl_text_clear(&first);
    mgl_program_free(again);
    mgl_program_free(program);
    mgl_graph_free(graph);
    mgl_tuned_clear(&entry);
}
END_TEST

START_TEST(what_does_not_fit_is_rejected)
{
    static const char *const moves[] = {"\"sample to=4\"",
                                        "\"splits layer=7 from=0 to=1 count=1\""};
    mgl_graph *graph = graph_of(&even);
    for (int i = 0; i < 2; i++) {
        mgl_error err = {0};
        mgl_program *program = NULL;
        mgl_tuned entry = entry_with(MOVES, moves[i]);
        ck_assert_int_eq(mgl_tuned_replay(&entry, graph, &entry.target, 64, false, &program, &err),
                         MGL_BAD_INPUT);
        ck_assert_str_ne(err.message, "");
        ck_assert_ptr_null(program);
        mgl_tuned_clear(&entry);
    }
    mgl_graph_free(graph);
}
END_TEST

/* ---- the folder ------------------------------------------------------------------------------ */

static char root[] = MGL_BINARY_DIR "/tuned-XXXXXX";

static void write_entry(const char *name, const char *json)
{
    char path[256];
    snprintf(path, sizeof path, "%s/megalith/tuned/%s", root, name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(json, file);
    fclose(file);
}

static int remove_one(const char *path, const struct stat *facts, int kind, struct FTW *where)
{
    (void)facts, (void)kind, (void)where;
    return remove(path);
}

static void empty_folder(void)
{
    char path[256];
    nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    ck_assert_int_eq(mkdir(root, 0700), 0);
    snprintf(path, sizeof path, "%s/megalith", root);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/megalith/tuned", root);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    setenv("XDG_DATA_HOME", root, 1);
}

/* The number of shipped entries, which come after the user's. */
static size_t shipped(void)
{
    const char *file;
    int count = 0;
    while (mgl_tuned_shipped(count, &file))
        count++;
    return (size_t)count;
}

START_TEST(entries_are_read_in_the_order_of_their_names)
{
    mgl_tuned_list list;
    mgl_text notes = {0};
    mgl_text a = edited(text, "even-4", "a"), b = edited(text, "even-4", "b");
    mgl_text c = edited(a.bytes, MOVES, ""), d = edited(b.bytes, MOVES, "");
    write_entry("2.json", c.bytes);
    write_entry("1.json", d.bytes);
    write_entry("0.txt", "not looked at");
    write_entry(".0.json", "not looked at");
    ck_assert_int_eq(mgl_tuned_load(&list, &notes, NULL), MGL_OK);
    ck_assert_uint_eq(list.count, shipped() + 2);
    ck_assert_str_eq(list.entries[0].name, "b");
    ck_assert_str_eq(list.entries[1].name, "a");
    ck_assert_uint_eq(notes.length, 0);
    mgl_tuned_list_clear(&list);
    mgl_text_clear(&a);
    mgl_text_clear(&b);
    mgl_text_clear(&c);
    mgl_text_clear(&d);
}
END_TEST

START_TEST(damaged_files_are_named_and_left_out)
{
    char folder[256];
    mgl_tuned_list list;
    mgl_text notes = {0}, good = edited(text, MOVES, "");
    write_entry("1.json", "{");
    write_entry("2.json", good.bytes);
    write_entry("3.json", "");
    snprintf(folder, sizeof folder, "%s/megalith/tuned/4.json", root);
    ck_assert_int_eq(mkfifo(folder, 0600), 0); /* a pipe is not waited for */
    ck_assert_int_eq(mgl_tuned_load(&list, &notes, NULL), MGL_OK);
    ck_assert_uint_eq(list.count, shipped() + 1);
    ck_assert_ptr_nonnull(strstr(notes.bytes, "1.json"));
    ck_assert_ptr_null(strstr(notes.bytes, "2.json"));
    ck_assert_ptr_nonnull(strstr(notes.bytes, "3.json"));
    ck_assert_ptr_nonnull(strstr(notes.bytes, "4.json"));
    mgl_tuned_list_clear(&list);
    mgl_text_clear(&notes);
    mgl_text_clear(&good);
}
END_TEST

START_TEST(no_folder_is_no_entry)
{
    mgl_tuned_list list;
    mgl_text notes = {0};
    setenv("XDG_DATA_HOME", "/nonexistent", 1);
    ck_assert_int_eq(mgl_tuned_load(&list, &notes, NULL), MGL_OK);
    ck_assert_uint_eq(list.count, shipped());
    ck_assert_uint_eq(notes.length, 0);
    mgl_tuned_list_clear(&list);
}
END_TEST

START_TEST(the_folder_is_that_of_xdg_or_of_home)
{
    mgl_text path = {0};
    setenv("XDG_DATA_HOME", "relative", 1);
    setenv("HOME", "/home/somebody", 1);
    ck_assert(mgl_tuned_folder(&path));
    ck_assert_str_eq(path.bytes, "/home/somebody/.local/share/megalith/tuned");
    mgl_text_clear(&path);
    unsetenv("HOME");
    ck_assert(!mgl_tuned_folder(&path));
    setenv("XDG_DATA_HOME", "/data", 1);
    ck_assert(mgl_tuned_folder(&path));
    ck_assert_str_eq(path.bytes, "/data/megalith/tuned");
    mgl_text_clear(&path);
}
END_TEST

START_TEST(what_is_installed_is_read)
{
    char wanted[256];
    mgl_tuned_list list;
    mgl_text path = {0}, notes = {0};
    mgl_tuned entry = fitting_entry();
    nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS); /* to test that the folders are created too */
    snprintf(wanted, sizeof wanted, "%s/megalith/tuned/even-4.json", root);
    for (int i = 0; i < 2; i++) { /* the second replaces the first */
        mgl_error err = {0};
        entry.config.splits = 1 + i;
        mgl_status status = mgl_tuned_install(&entry, i ? &path : NULL, &err);
        ck_assert_msg(!status, "%s: %s", err.where, err.message);
    }
    ck_assert_str_eq(path.bytes, wanted);
    ck_assert_int_eq(mgl_tuned_load(&list, &notes, NULL), MGL_OK);
    ck_assert_uint_eq(list.count, shipped() + 1);
    ck_assert_int_eq(list.entries[0].config.splits, 2);
    mgl_tuned_list_clear(&list);
    mgl_text_clear(&path);
    mgl_tuned_clear(&entry);
}
END_TEST

START_TEST(what_could_not_be_read_is_not_installed)
{
    mgl_tuned entry = fitting_entry();
    mgl_error err = {0};
    strcpy(entry.name, "../x");
    ck_assert_int_eq(mgl_tuned_install(&entry, NULL, &err), MGL_BAD_INPUT);
    strcpy(entry.name, "x");
    entry.evidence.gain = (double)NAN;
    ck_assert_int_eq(mgl_tuned_install(&entry, NULL, &err), MGL_BAD_INPUT);
    mgl_tuned_clear(&entry);
}
END_TEST

/* After any failure, the entries read so far are complete, or there is an error. */
START_TEST(loading_survives_every_failure)
{
    mgl_tuned_list list;
    mgl_text good = edited(text, MOVES, "");
    write_entry("1.json", good.bytes);
    for (int n = 1; n < 12; n++) {
        mgl_text notes = {0};
        mgl_file_fail_at((uint64_t)n);
        ck_assert_int_eq(mgl_tuned_load(&list, &notes, NULL), MGL_OK);
        mgl_file_fail_at(0);
        ck_assert_uint_eq(list.count + (notes.length > 0), shipped() + 1);
        mgl_tuned_list_clear(&list);
        mgl_text_clear(&notes);
    }
    mgl_alloc_fail_at(0, false);
    ck_assert_int_eq(mgl_tuned_load(&list, &(mgl_text){0}, NULL), MGL_OK);
    uint64_t count = mgl_alloc_count();
    mgl_tuned_list_clear(&list);
    for (uint64_t n = 1; n <= count; n++) {
        mgl_text notes = {0};
        mgl_alloc_fail_at(n, true);
        mgl_status status = mgl_tuned_load(&list, &notes, NULL);
        mgl_alloc_fail_at(0, false);
        ck_assert_int_eq(status, MGL_NO_MEMORY);
        ck_assert_uint_eq(list.count, 0);
        mgl_text_clear(&notes);
    }
    mgl_text_clear(&good);
}
END_TEST

/* ---- those that are shipped ------------------------------------------------------------------ */

/* At each capacity that `run` may use, the entry is accepted, and its device can run it. */
static void replay_shipped(const mgl_tuned *entry, const mgl_graph *graph, int capacity)
{
    mgl_error err = {0};
    mgl_program *program = NULL;
    mgl_status status =
        mgl_tuned_replay(entry, graph, &entry->target, capacity, false, &program, &err);
    if (!status)
        status = mgl_vm_check(program, graph, &err);
    if (!status && strcmp(entry->target.arch, "cpu") != 0)
        status = mgl_cuda_check_program(program, &err);
    ck_assert_msg(!status, "%s at %d: %s: %s", entry->name, capacity, err.where, err.message);
    mgl_program_free(program);
}

static void replay_all(const mgl_tuned *entry)
{
    const shape of = {entry->geometry, entry->tied};
    mgl_error err = {0};
    mgl_graph *graph = family_of(&of, entry->extras);
    mgl_status status = mgl_synthetic_set_formats(graph, entry->layers, entry->head, &err);
    ck_assert_msg(!status, "%s", err.message);
    replay_shipped(entry, graph, entry->capacity_lo);
    for (int step = mgl_tuned_step(entry->capacity_lo, MGL_MAX_CAPACITY); step < entry->capacity_hi;
         step *= 2)
        replay_shipped(entry, graph, step);
    replay_shipped(entry, graph, entry->capacity_hi);
    mgl_graph_free(graph);
}

START_TEST(shipped_entries_replay)
{
    const char *file, *json;
    for (int i = 0; (json = mgl_tuned_shipped(i, &file)); i++) {
        mgl_tuned entry = entry_of(json);
        char named[160];
        snprintf(named, sizeof named, "schedule/tuned/%s.json", entry.name);
        ck_assert_str_eq(file, named);
        ck_assert_msg(entry.lowering == MGL_LOWERING_VERSION,
                      "%s was measured with version %d of lowering: measure it anew or remove it",
                      file, entry.lowering);
        replay_all(&entry);
        mgl_tuned_clear(&entry);
    }
}
END_TEST

/* The entry of qwen2.5-0.5b was measured with the model's biases: it fits the model with them, and
 * not a model of the same size without them. */
START_TEST(the_entry_of_qwen_is_of_the_model_with_its_biases)
{
    const char *file, *json;
    mgl_config config;
    mgl_graph *graph;
    int found = 0;
    ck_assert_int_eq(mgl_synthetic_find_shape("qwen2.5-0.5b", &config, NULL), MGL_OK);
    ck_assert_uint_eq(config.extras, MGL_EXTRA_QKV_BIAS);
    const shape of = {config.geometry, config.tied};
    ck_assert_int_eq(mgl_synthetic_open(&config, 1, &graph, NULL), MGL_OK);
    mgl_graph *bare = family_of(&of, MGL_EXTRA_NONE);
    for (int i = 0; (json = mgl_tuned_shipped(i, &file)); i++) {
        mgl_tuned entry = entry_of(json);
        bool fits = mgl_tuned_is_of(&entry, graph);
        if (fits)
            replay_shipped(&entry, graph, entry.capacity_hi);
        ck_assert_msg(!mgl_tuned_is_of(&entry, bare), "%s", file);
        found += fits;
        mgl_tuned_clear(&entry);
    }
    ck_assert_int_gt(found, 0);
    mgl_graph_free(bare);
    mgl_graph_free(graph);
}
END_TEST

/* The same check for an entry that is not shipped: CI runs it for the shipped ones. */
START_TEST(entries_replay_at_every_step)
{
    mgl_tuned entry = fitting_entry();
    replay_all(&entry);
    mgl_tuned_clear(&entry);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tuned");
    TCase *form = tcase_create("text"), *folder = tcase_create("folder");
    TCase *ships = tcase_create("shipped");
    if (!mkdtemp(root))
        return EXIT_FAILURE;
    tcase_add_test(form, an_entry_is_read);
    tcase_add_test(form, what_is_printed_reads_back);
    tcase_add_loop_test(form, what_is_no_entry_is_rejected, 0,
                        (int)(sizeof damages / sizeof *damages));
    tcase_add_test(form, texts_that_are_no_objects_are_rejected);
    tcase_add_loop_test(form, extras_are_read_and_printed, 0, FAMILIES);
    tcase_add_test(form, the_digest_tells_families_apart);
    tcase_add_test(form, the_digest_is_of_all_but_the_evidence);
    tcase_add_test(form, every_allocation_may_fail);
    tcase_add_test(form, it_fits_what_it_was_made_for);
    tcase_add_test(form, it_fits_nothing_else);
    tcase_add_loop_test(form, it_fits_one_family, 0, FAMILIES);
    tcase_add_test(form, it_fits_one_shape_and_one_version);
    tcase_add_test(form, capacities_recur);
    tcase_add_test(form, a_replay_is_lowering_and_moves);
    tcase_add_test(form, the_header_round_trips);
    tcase_add_test(form, what_does_not_fit_is_rejected);
    tcase_add_checked_fixture(folder, empty_folder, NULL);
    tcase_add_test(folder, entries_are_read_in_the_order_of_their_names);
    tcase_add_test(folder, damaged_files_are_named_and_left_out);
    tcase_add_test(folder, no_folder_is_no_entry);
    tcase_add_test(folder, what_is_installed_is_read);
    tcase_add_test(folder, what_could_not_be_read_is_not_installed);
    tcase_add_test(folder, loading_survives_every_failure);
    tcase_add_test(folder, the_folder_is_that_of_xdg_or_of_home);
    tcase_set_timeout(ships, 100);
    tcase_add_test(ships, shipped_entries_replay);
    tcase_add_test(ships, the_entry_of_qwen_is_of_the_model_with_its_biases);
    tcase_add_test(ships, entries_replay_at_every_step);
    suite_add_tcase(suite, form);
    suite_add_tcase(suite, folder);
    suite_add_tcase(suite, ships);
    int failed = run_suite(suite);
    nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    return failed;
}
