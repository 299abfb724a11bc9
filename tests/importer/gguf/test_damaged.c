/* Damaged and unsupported GGUF files: each is rejected with MGL_BAD_INPUT (exit code 2) and its own
 * sentence. */
#include "megalith.h"

#include "base/file.h"
#include "base/memory.h"
#include "importer/checkpoint.h"
#include "importer/gguf/container.h"
#include "tests/damaged/models.h"
#include "tests/importer/gguf/writer.h"
#include "tests/scratch.h"

#include <unistd.h>

#define TALES MGL_SOURCE_DIR "/tests/models/tales-5m"

static char scratch[] = "/tmp/megalith-gguf-XXXXXX";
static char path[64];

static void set_up(void)
{
    scratch_make(scratch);
    snprintf(path, sizeof path, "%s/model.gguf", scratch);
}

static void tear_down(void)
{
    scratch_remove(scratch);
}

/* ---- containers ------------------------------------------------------------------------------ */

/* A container of one key and two tensors, each a part that a case may replace. */
typedef void part_fn(gguf_writer *w);

static const float numbers[64];

static void good_key(gguf_writer *w)
{
    gguf_key_text(w, "general.architecture", "llama");
}

static void good_tensors(gguf_writer *w)
{
    gguf_tensor(w, "a", 0, 2, 8, numbers, 64);
    gguf_tensor(w, "b", 8, 1, 32, numbers, 34);
}

static void key(gguf_writer *w, const char *name, uint32_t type)
{
    w->key_count++;
    gguf_put_text(&w->keys, name);
    gguf_put_u32(&w->keys, type);
}

static void key_twice(gguf_writer *w)
{
    gguf_key_u32(w, "x", 1);
    gguf_key_f32(w, "x", 1);
}
static void key_empty(gguf_writer *w)
{
    gguf_key_u32(w, "", 1);
}
static void key_control(gguf_writer *w)
{
    gguf_key_u32(w, "a\033b", 1);
}
static void key_type(gguf_writer *w)
{
    key(w, "x", 13);
}
static void key_length(gguf_writer *w)
{
    w->key_count++;
    gguf_put_u64(&w->keys, UINT64_MAX);
}
static void text_length(gguf_writer *w)
{
    key(w, "x", GGUF_STRING);
    gguf_put_u64(&w->keys, UINT64_MAX - 8);
}
static void array_count(gguf_writer *w)
{
    key(w, "x", GGUF_ARRAY);
    gguf_put_u32(&w->keys, 10);
    gguf_put_u64(&w->keys, UINT64_MAX / 8 + 2);
}
static void array_texts(gguf_writer *w)
{
    key(w, "x", GGUF_ARRAY);
    gguf_put_u32(&w->keys, GGUF_STRING);
    gguf_put_u64(&w->keys, UINT64_MAX);
}
static void array_nested(gguf_writer *w)
{
    key(w, "x", GGUF_ARRAY);
    gguf_put_u32(&w->keys, GGUF_ARRAY);
    gguf_put_u64(&w->keys, 0);
}
static void truth(gguf_writer *w)
{
    key(w, "x", GGUF_BOOL);
    gguf_put(&w->keys, "\2", 1);
}
static void alignment_odd(gguf_writer *w)
{
    gguf_key_u32(w, "general.alignment", 24);
}
static void alignment_zero(gguf_writer *w)
{
    gguf_key_u32(w, "general.alignment", 0);
}
static void alignment_text(gguf_writer *w)
{
    gguf_key_text(w, "general.alignment", "32");
}
static void alignment_other(gguf_writer *w)
{
    gguf_key_u32(w, "general.alignment", 64);
}

/* A tensor without data. */
static void entry(gguf_writer *w, const char *name, uint32_t rank, uint64_t columns, uint64_t rows,
                  uint32_t type, uint64_t offset)
{
    w->tensor_count++;
    gguf_put_text(&w->tensors, name);
    gguf_put_u32(&w->tensors, rank);
    gguf_put_u64(&w->tensors, columns);
    gguf_put_u64(&w->tensors, rows);
    gguf_put_u32(&w->tensors, type);
    gguf_put_u64(&w->tensors, offset);
}

static void no_tensors(gguf_writer *w)
{
    (void)w;
}
static void rank_zero(gguf_writer *w)
{
    entry(w, "t", 0, 8, 1, 0, 0);
}
static void rank_five(gguf_writer *w)
{
    entry(w, "t", 5, 8, 1, 0, 0);
}
static void extent_zero(gguf_writer *w)
{
    entry(w, "t", 2, 8, 0, 0, 0);
}
static void extent_huge(gguf_writer *w)
{
    entry(w, "t", 2, UINT64_MAX / 2, 4, 0, 0);
}
static void bytes_huge(gguf_writer *w)
{
    entry(w, "t", 2, (uint64_t)1 << 40, (uint64_t)1 << 22, 0, 0);
}
static void type_unknown(gguf_writer *w)
{
    entry(w, "t", 2, 8, 1, 77, 0);
}
static void type_removed(gguf_writer *w)
{
    entry(w, "t", 2, 32, 1, 4, 0);
}
static void row_odd(gguf_writer *w)
{
    entry(w, "t", 2, 33, 1, 2, 0);
}
static void offset_hole(gguf_writer *w)
{
    gguf_tensor(w, "a", 0, 2, 8, numbers, 64);
    entry(w, "t", 2, 8, 1, 0, 128);
}
static void offset_overlap(gguf_writer *w)
{
    gguf_tensor(w, "a", 0, 2, 8, numbers, 64);
    entry(w, "t", 2, 8, 1, 0, 32);
}
static void offset_huge(gguf_writer *w)
{
    entry(w, "t", 2, 8, 1, 0, UINT64_MAX - 31);
}
static void past_end(gguf_writer *w)
{
    entry(w, "t", 2, 1024, 1, 0, 0);
}
static void name_twice(gguf_writer *w)
{
    good_tensors(w);
    gguf_tensor(w, "a", 0, 0, 8, numbers, 32);
}
static void name_long(gguf_writer *w)
{
    char name[200];
    memset(name, 'a', sizeof name);
    name[199] = 0;
    entry(w, name, 2, 8, 1, 0, 0);
}

/* Damaged containers: the parts that replace good ones, the edit of bytes, and a part of the
 * message. */
static const struct {
    const char *name;
    part_fn *keys, *tensors; /* NULL: the good ones */
    long cut, grow;          /* bytes at the end */
    long patch;              /* offset of 8 bytes that become `value`; 0: none */
    uint64_t value;
    const char *message;
} containers[] = {
    {"empty", NULL, NULL, 1000, 0, 0, 0,
     "is cut off or damaged: its header needs 4 bytes at byte 0 of 0"},
    {"magic", NULL, NULL, 0, 0, -1, 0x0000000358595A51, "is not a GGUF file"},
    {"version-1", NULL, NULL, 0, 0, -1, 0x0000000146554747,
     "unsupported version of GGUF: 1; supported: 2 and 3"},
    {"version-4", NULL, NULL, 0, 0, -1, 0x0000000446554747, "unsupported version of GGUF: 4"},
    {"big-endian", NULL, NULL, 0, 0, -1, 0x0300000046554747,
     "is a GGUF file for big-endian machines"},
    {"tensor-count", NULL, NULL, 0, 0, 8, UINT64_MAX,
     "its header claims 18446744073709551615 tensors"},
    {"key-count", NULL, NULL, 0, 0, 16, UINT64_MAX, "18446744073709551615 keys"},
    {"tensor-count-large", NULL, NULL, 0, 0, 8, 1000000, "the name of a tensor is empty"},
    {"cut-in-header", NULL, NULL, 160, 0, 0, 0, "is cut off or damaged: its header needs"},
    {"cut-in-data", NULL, NULL, 40, 0, 0, 0, "is cut off: the tensors end at byte"},
    {"bytes-after", NULL, NULL, 0, 1, 0, 0, "is damaged: 1 bytes follow the last tensor"},
    {"key-twice", key_twice, NULL, 0, 0, 0, 0, "x: the key occurs twice"},
    {"key-empty", key_empty, NULL, 0, 0, 0, 0, "a key of the metadata is empty"},
    {"key-control", key_control, NULL, 0, 0, 0, 0,
     "a key of the metadata is empty, longer than 127 bytes, or not printable"},
    {"key-type", key_type, NULL, 0, 0, 0, 0, "x: the format has no such type of a value"},
    {"key-length", key_length, NULL, 0, 0, 0, 0, "is cut off or damaged"},
    {"text-length", text_length, NULL, 0, 0, 0, 0, "is cut off or damaged"},
    {"array-count", array_count, NULL, 0, 0, 0, 0, "is cut off or damaged"},
    {"array-texts", array_texts, NULL, 0, 0, 0, 0, "is cut off or damaged"},
    {"array-nested", array_nested, NULL, 0, 0, 0, 0, "x: arrays of arrays are not supported"},
    {"truth", truth, NULL, 0, 0, 0, 0, "x: a truth value is neither 0 nor 1"},
    {"alignment-odd", alignment_odd, NULL, 0, 0, 0, 0,
     "general.alignment is 24, which is not a power of 2"},
    {"alignment-zero", alignment_zero, NULL, 0, 0, 0, 0,
     "general.alignment: is 0, but must be 1 to"},
    {"alignment-text", alignment_text, NULL, 0, 0, 0, 0,
     "general.alignment: is of type string, but must be a whole number"},
    {"alignment-other", alignment_other, offset_overlap, 0, 0, 0, 0,
     "tensor t: its offset is 32, but the tensors before end at 64"},
    {"no-tensors", NULL, no_tensors, 0, 0, 0, 0, "holds no tensors"},
    {"rank-zero", NULL, rank_zero, 0, 0, 0, 0, "tensor t: its number of dimensions is not 1 to 4"},
    {"rank-five", NULL, rank_five, 0, 0, 0, 0, "tensor t: its number of dimensions is not 1 to 4"},
    {"extent-zero", NULL, extent_zero, 0, 0, 0, 0, "tensor t: a dimension is 0 or too large"},
    {"extent-huge", NULL, extent_huge, 0, 0, 0, 0, "tensor t: a dimension is 0 or too large"},
    {"bytes-huge", NULL, bytes_huge, 0, 0, 0, 0, "tensor t: its size has more than 64 bits"},
    {"type-unknown", NULL, type_unknown, 0, 0, 0, 0,
     "tensor t: the type with number 77 is not known; supported: F32, F16, BF16, Q8_0"},
    {"type-removed", NULL, type_removed, 0, 0, 0, 0,
     "tensor t: the type with number 4 is not known"},
    {"row-odd", NULL, row_odd, 0, 0, 0, 0,
     "tensor t: a row of 33 weights is no whole number of Q4_0 blocks of 32"},
    {"offset-hole", NULL, offset_hole, 0, 0, 0, 0,
     "tensor t: its offset is 128, but the tensors before end at 64"},
    {"offset-overlap", NULL, offset_overlap, 0, 0, 0, 0, "tensor t: its offset is 32"},
    {"offset-huge", NULL, offset_huge, 0, 0, 0, 0, "tensor t: its offset is 18446744073709551584"},
    {"past-end", NULL, past_end, 0, 0, 0, 0, "is cut off: the tensors end at byte"},
    {"name-twice", NULL, name_twice, 0, 0, 0, 0, "tensor a: its name occurs twice"},
    {"name-long", NULL, name_long, 0, 0, 0, 0,
     "the name of a tensor is empty, longer than 127 bytes"},
};
enum { CONTAINERS = sizeof containers / sizeof *containers };

static void check_message(mgl_status status, const mgl_error *err, const char *name,
                          const char *message)
{
    char said[sizeof err->where + sizeof err->message + 2];
    snprintf(said, sizeof said, "%s: %s", err->where, err->message);
    ck_assert_msg(status == MGL_BAD_INPUT, "%s: status %d: %s", name, (int)status, said);
    ck_assert_msg(strstr(said, message) != NULL, "%s: \"%s\" lacks \"%s\"", name, said, message);
    ck_assert_msg(only_visible(said) && !strchr(said, '\n'), "%s: %s", name, said);
}

/* Applies the edits of a case to the file. */
static void edit_file(int i)
{
    FILE *file = fopen(path, "r+b");
    ck_assert_ptr_nonnull(file);
    if (containers[i].patch) {
        fseek(file, containers[i].patch < 0 ? 0 : containers[i].patch, SEEK_SET);
        fwrite(&containers[i].value, 8, 1, file);
    }
    fseek(file, 0, SEEK_END);
    const long size = ftell(file) - containers[i].cut;
    for (long n = 0; n < containers[i].grow; n++)
        fputc(0, file);
    ck_assert_int_eq(fclose(file), 0);
    if (containers[i].cut)
        ck_assert_int_eq(truncate(path, size > 0 ? size : 0), 0);
}

START_TEST(test_container)
{
    gguf_writer w = {0};
    mgl_gguf *gguf = NULL;
    mgl_error err = {0};
    (containers[_i].keys ? containers[_i].keys : good_key)(&w);
    (containers[_i].tensors ? containers[_i].tensors : good_tensors)(&w);
    ck_assert(gguf_finish(&w, path));
    edit_file(_i);
    const mgl_status status = mgl_gguf_open(path, &gguf, &err);
    check_message(status, &err, containers[_i].name, containers[_i].message);
    ck_assert_ptr_null(gguf);
}
END_TEST

/* Version 2, another alignment, and a header of more than one read. */
START_TEST(test_accepted)
{
    mgl_gguf *gguf = NULL;
    mgl_error err = {0};
    for (uint32_t version = 2; version <= 3; version++) {
        gguf_writer w = {.version = version, .alignment = 64};
        char *text = malloc(3000001);
        memset(text, 'a', 3000000);
        text[3000000] = 0;
        alignment_other(&w);
        gguf_key_text(&w, "long", text);
        good_tensors(&w);
        ck_assert(gguf_finish(&w, path));
        ck_assert_msg(mgl_gguf_open(path, &gguf, &err) == MGL_OK, "%s", err.message);
        ck_assert_uint_eq(gguf->tensor_count, 2);
        ck_assert_uint_eq(gguf->tensors[1].offset, 64);
        ck_assert_uint_eq(gguf->data % 64, 0);
        mgl_gguf_close(gguf);
        free(text);
    }
}
END_TEST

/* ---- models ---------------------------------------------------------------------------------- */

static void sliding_text(gguf_writer *w)
{
    gguf_key_text(w, "llama.attention.sliding_window", "64");
}
static void unknown_key(gguf_writer *w)
{
    gguf_key_f32(w, "llama.logit_scale", 0.5f);
}
static void experts(gguf_writer *w)
{
    gguf_key_u32(w, "llama.expert_count", 8);
}
static void parts(gguf_writer *w)
{
    gguf_key_u32(w, "split.count", 3);
}
static void layers_differ(gguf_writer *w)
{
    static const int32_t heads[] = {4, 4, 4, 4, 4, 2};
    gguf_key_i32s(w, "llama.feed_forward_length", heads, 6);
}
static void rope_part(gguf_writer *w)
{
    gguf_key_u32(w, "llama.rope.dimension_count", 32);
}
static void rope_type(gguf_writer *w)
{
    gguf_key_text(w, "llama.rope.scaling.type", "longrope");
}
static void rope_factors(gguf_writer *w)
{
    gguf_tensor(w, "rope_freqs.weight", 0, 0, 31, numbers, 31 * 4);
}
static void values(gguf_writer *w)
{
    gguf_key_u32(w, "llama.attention.value_length", 32);
}
static void encoder(gguf_writer *w)
{
    gguf_key_bool(w, "llama.attention.causal", false);
}
static void extra_tensor(gguf_writer *w)
{
    gguf_tensor(w, "blk.0.attn_sinks.weight", 0, 0, 4, numbers, 16);
}
static void extra_bias(gguf_writer *w)
{
    static const float zeros[256];
    gguf_tensor(w, "blk.1.attn_q.bias", 0, 0, 256, zeros, sizeof zeros);
}
static void head_type(gguf_writer *w)
{
    static const char zeros[913 * 8 * 22];
    gguf_tensor(w, "output.weight", 6, 913, 256, zeros, sizeof zeros);
}
static void head_shape(gguf_writer *w)
{
    static const char zeros[912 * 256 * 2];
    gguf_tensor(w, "output.weight", 1, 912, 256, zeros, sizeof zeros);
}
static void scores_short(gguf_writer *w)
{
    static const float scores[3];
    gguf_key_f32s(w, "tokenizer.ggml.scores", scores, 3);
}

static const struct {
    const char *name;
    gguf_model model;
    bool is_tokenizer; /* the tokenizer is rejected */
    const char *message;
} models[] = {
    {"architecture",
     {.replace_key = "general.architecture", .replace_text = "gemma2"},
     false,
     "unsupported architecture: general.architecture = \"gemma2\"; supported in GGUF files: llama, "
     "qwen2 and qwen3"},
    {"architecture-missing",
     {.skip_key = "general.architecture"},
     false,
     "unsupported architecture: general.architecture = \"\""},
    {"adapter",
     {.replace_key = "general.type", .replace_text = "adapter"},
     false,
     "unsupported kind of file: general.type = \"adapter\""},
    {"hidden-missing",
     {.skip_key = "llama.embedding_length"},
     false,
     "llama.embedding_length: the key is missing"},
    {"heads-missing",
     {.skip_key = "llama.attention.head_count"},
     false,
     "llama.attention.head_count: the key is missing"},
    {"eps-missing",
     {.skip_key = "llama.attention.layer_norm_rms_epsilon"},
     false,
     "llama.attention.layer_norm_rms_epsilon: the key is missing or not above 0"},
    {"positions-missing",
     {.skip_key = "llama.context_length"},
     false,
     "llama.context_length: the key is missing"},
    {"window-type",
     {.more = sliding_text},
     false,
     "llama.attention.sliding_window: is of type string, but must be a whole number"},
    {"unknown-key",
     {.more = unknown_key},
     false,
     "unsupported key: llama.logit_scale, which may change what the model computes"},
    {"experts",
     {.more = experts},
     false,
     "llama.expert_count: mixtures of experts cannot be represented"},
    {"parts",
     {.more = parts},
     false,
     "is one of 3 parts of a model, which are not read; join them"},
    {"layers-differ",
     {.skip_key = "llama.feed_forward_length", .more = layers_differ},
     false,
     "llama.feed_forward_length: layers of different sizes are not supported"},
    {"rope-part",
     {.skip_key = "llama.rope.dimension_count", .more = rope_part},
     false,
     "llama.rope.dimension_count: rope on a part of each head cannot be represented"},
    {"rope-type",
     {.more = rope_type},
     false,
     "unsupported scaling of rope: llama.rope.scaling.type = \"longrope\""},
    {"rope-factors",
     {.more = rope_factors},
     false,
     "tensor rope_freqs.weight: must be 32 numbers of type F32"},
    {"values",
     {.skip_key = "llama.attention.value_length", .more = values},
     false,
     "llama.attention.value_length: must equal attention.key_length"},
    {"encoder", {.more = encoder}, false, "llama.attention.causal: attention to later tokens"},
    {"type-of-matrices",
     {.matrices = "Q5_0", .table = "F16"},
     false,
     "blk.0.attn_q.weight: weights of the type Q5_0 are not supported; supported: F32"},
    {"type-of-head",
     {.more = head_type},
     false,
     "output.weight: weights of the type Q5_0 are not supported"},
    {"shape-of-head", {.more = head_shape}, false, "output.weight: its shape is [912, 256]"},
    {"extra-tensor", {.more = extra_tensor}, false, "blk.0.attn_sinks.weight: a model"},
    {"extra-bias",
     {.more = extra_bias},
     false,
     "blk.1.attn_q.bias: a bias that config.json does not give the model"},
    {"tokenizer-model",
     {.replace_key = "tokenizer.ggml.model", .replace_text = "t5"},
     true,
     "unsupported tokenizer: tokenizer.ggml.model = \"t5\"; supported: gpt2 and llama"},
    {"tokenizer-none",
     {.no_tokenizer = true},
     true,
     "has no tokenizer (tokenizer.ggml.model); give ids instead of texts"},
    {"tokenizer-pre",
     {.replace_key = "tokenizer.ggml.pre", .replace_text = "tekken"},
     true,
     "unsupported splitting of texts: tokenizer.ggml.pre = \"tekken\"; supported: gpt-2, smollm, "
     "llama-bpe"},
    {"tokenizer-pre-missing",
     {.skip_key = "tokenizer.ggml.pre"},
     true,
     "tokenizer.ggml.pre: the key is missing"},
    {"tokenizer-scores",
     {.more = scores_short},
     true,
     "tokenizer.ggml.tokens: has 913 tokens, but tokenizer.ggml.scores has 3 items"},
    {"tokenizer-llama",
     {.replace_key = "tokenizer.ggml.model", .replace_text = "llama"},
     true,
     "tokenizer.ggml.scores: the key is missing"},
};
enum { MODELS = sizeof models / sizeof *models };

START_TEST(test_model)
{
    gguf_model model = models[_i].model;
    mgl_checkpoint *checkpoint = NULL;
    mgl_tokenizer *tokenizer = NULL;
    mgl_error err = {0};
    model.folder = TALES;
    model.matrices = model.matrices ? model.matrices : "F16";
    ck_assert(gguf_write_model(&model, path));
    const mgl_status status = models[_i].is_tokenizer ? mgl_tokenizer_open(path, &tokenizer, &err)
                                                      : mgl_import(path, &checkpoint, &err);
    check_message(status, &err, models[_i].name, models[_i].message);
}
END_TEST

/* A scale or a minimum that is not a number is found when the matrix is read. The first tensor is
 * the table. */
static const struct {
    const char *type;
    size_t at; /* of the number in the first block */
    const char *message;
} not_finite[] = {
    {"Q8_0", 0, "the scale of row 0, group 0 (from column 0) is NaN"},
    {"Q4_0", 0, "the scale of row 0, group 0 (from column 0) is NaN"},
    {"Q4_1", 0, "the scale of row 0, group 0 (from column 0) is NaN"},
    {"Q4_1", 2, "the minimum of row 0, group 0 (from column 0) is NaN"},
    {"Q4_K", 2, "the minimum of row 0, group 0 (from column 0) is NaN"},
    {"Q6_K", 208, "the scale of row 0, group 0 (from column 0) is NaN"},
};
enum { NOT_FINITE = sizeof not_finite / sizeof *not_finite };

static size_t number_at;

static void put_nan(gguf_writer *w)
{
    w->data.bytes[number_at] = w->data.bytes[number_at + 1] = 0x7F;
}

START_TEST(test_not_finite)
{
    const gguf_model model = {.folder = TALES, .matrices = not_finite[_i].type, .more = put_nan};
    mgl_checkpoint *checkpoint = NULL;
    mgl_error err = {0};
    float row[256];
    number_at = not_finite[_i].at;
    ck_assert(gguf_write_model(&model, path));
    ck_assert_msg(mgl_import(path, &checkpoint, &err) == MGL_OK, "%s", err.message);
    const mgl_graph *graph = checkpoint->graph;
    const mgl_status status =
        graph->read(graph, mgl_graph_find_tensor(graph, MGL_TENSOR_EMBEDDING), 0, 1, row, &err);
    check_message(status, &err, not_finite[_i].type, not_finite[_i].message);
    mgl_checkpoint_close(checkpoint);
}
END_TEST

/* A folder with two files names none of them. */
START_TEST(test_two_files)
{
    mgl_checkpoint *checkpoint = NULL;
    mgl_error err = {0};
    char other[80];
    gguf_writer w = {0};
    good_tensors(&w);
    ck_assert(gguf_finish(&w, path));
    snprintf(other, sizeof other, "%s/other.gguf", scratch);
    FILE *file = fopen(other, "wb");
    ck_assert_int_eq(fclose(file), 0);
    const mgl_status status = mgl_import(scratch, &checkpoint, &err);
    check_message(status, &err, "two files", "2 GGUF files; name one of them");
}
END_TEST

/* Every failure of an allocation or of a file operation ends in its own status. */
START_TEST(test_failures)
{
    const gguf_model model = {.folder = TALES, .matrices = "Q8_0"};
    mgl_error err = {0};
    mgl_status status = MGL_NO_MEMORY;
    mgl_checkpoint *checkpoint = NULL;
    ck_assert(gguf_write_model(&model, path));
    for (uint64_t n = 1; status == MGL_NO_MEMORY; n++) {
        mgl_alloc_fail_at(n, false);
        status = mgl_import(path, &checkpoint, &err);
    }
    mgl_alloc_fail_at(0, false);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
    mgl_checkpoint_close(checkpoint);
    status = MGL_SYSTEM;
    for (uint64_t n = 1; status == MGL_SYSTEM; n++) {
        mgl_file_fail_at(n);
        status = mgl_import(path, &checkpoint, &err);
    }
    mgl_file_fail_at(0);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
    mgl_checkpoint_close(checkpoint);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gguf_damaged");
    TCase *tests = tcase_create("damaged");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, test_container, 0, CONTAINERS);
    tcase_add_test(tests, test_accepted);
    tcase_add_loop_test(tests, test_model, 0, MODELS);
    tcase_add_loop_test(tests, test_not_finite, 0, NOT_FINITE);
    tcase_add_test(tests, test_two_files);
    tcase_add_test(tests, test_failures);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
