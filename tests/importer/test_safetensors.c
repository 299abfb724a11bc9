/* Tests of valid safetensors headers in every allowed form, and of reading the provided files.
 * tests/damaged has the damaged ones. */
#include "importer/safetensors.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static mgl_status parse(const char *header, size_t data_bytes, mgl_stored_list *list)
{
    mgl_error err = {0};
    *list = (mgl_stored_list){0};
    return mgl_safetensors_parse_header(header, strlen(header), data_bytes, "f", 3, list, &err);
}

static const struct {
    const char *header;
    size_t data_bytes, tensors;
} good[] = {
    {"{}", 0, 0},
    {"{\"__metadata__\":{\"a\":\"b\",\"c\":\"\"}}      ", 0, 0},
    {"{\"scalar\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}", 4, 1},
    {"{\"none\":{\"dtype\":\"F16\",\"shape\":[0,5],\"data_offsets\":[0,0]}}", 0, 1},
    {"{\"b\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[8,11]},"
     "\"a\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[0,8]}}",
     11, 2},
    {"{\"a\":{\"dtype\":\"F4\",\"shape\":[4],\"data_offsets\":[0,2]},"
     "\"empty\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[2,2]},"
     "\"b\":{\"dtype\":\"F8_E4M3\",\"shape\":[2,2,2],\"data_offsets\":[2,10]}}",
     10, 3},
};

START_TEST(test_good_headers)
{
    mgl_stored_list list;
    ck_assert_int_eq(parse(good[_i].header, good[_i].data_bytes, &list), MGL_OK);
    ck_assert_uint_eq(list.count, good[_i].tensors);
    mgl_stored_list_clear(&list);
}
END_TEST

START_TEST(test_facts)
{
    mgl_stored_list list;
    ck_assert_int_eq(parse("{\"w\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[4,16]},"
                           "\"i\":{\"dtype\":\"I32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
                           16, &list),
                     MGL_OK);
    const mgl_stored_tensor *i = &list.items[0], *w = &list.items[1]; /* in file order */
    ck_assert_str_eq(i->name, "i");
    ck_assert_str_eq(i->stored_dtype, "I32");
    ck_assert(!i->usable);
    ck_assert_str_eq(w->name, "w");
    ck_assert(w->usable && w->dtype == MGL_BF16);
    ck_assert_int_eq(w->rank, 2);
    ck_assert_int_eq(w->shape[0], 2);
    ck_assert_int_eq(w->shape[1], 3);
    ck_assert_uint_eq(w->offset, 4);
    ck_assert_uint_eq(w->bytes, 12);
    ck_assert_int_eq(w->file, 3);
    mgl_stored_list_clear(&list);
}
END_TEST

START_TEST(test_provided_files)
{
    static const char *const names[] = {"tales-5m", "llama3-rope", "qwen2", "mistral"};
    static const size_t counts[] = {56, 29, 38, 30}, bytes[] = {9911296, 1341440, 1342976, 3150336};
    char path[512];
    mgl_safetensors *files;
    mgl_error err = {0};
    size_t total = 0;
    snprintf(path, sizeof path, "%s/tests/models/%s", MGL_SOURCE_DIR, names[_i]);
    mgl_status status = mgl_safetensors_open(path, &files, &err);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
    ck_assert_uint_eq(files->tensors.count, counts[_i]);
    ck_assert_int_eq(files->file_count, _i ? 1 : 2);
    for (size_t i = 0; i < files->tensors.count; i++) {
        const mgl_stored_tensor *tensor = &files->tensors.items[i];
        ck_assert_int_eq(mgl_safetensors_find(files, tensor->name), (int)i);
        total += tensor->bytes;
    }
    ck_assert_uint_eq(total, bytes[_i]);
    ck_assert_int_eq(mgl_safetensors_find(files, "model.embed_tokens"), -1);
    ck_assert_int_eq(mgl_safetensors_find(files, ""), -1);
    ck_assert_int_eq(mgl_safetensors_find(files, "zzz"), -1);
    mgl_safetensors_close(files);
    mgl_safetensors_close(NULL);
}
END_TEST

/* Two reads of halves equal one read of the whole; reads outside a tensor fail. */
START_TEST(test_read)
{
    static unsigned char whole[4096], parts[4096];
    mgl_safetensors *files;
    mgl_error err = {0};
    ck_assert_int_eq(mgl_safetensors_open(MGL_SOURCE_DIR "/tests/models/llama3-rope", &files, &err),
                     MGL_OK);
    int tensor = mgl_safetensors_find(files, "model.norm.weight");
    size_t bytes = files->tensors.items[tensor].bytes;
    ck_assert_uint_eq(bytes, 256);
    ck_assert_int_eq(mgl_safetensors_read(files, tensor, 0, bytes, whole, &err), MGL_OK);
    ck_assert_int_eq(mgl_safetensors_read(files, tensor, 0, 100, parts, &err), MGL_OK);
    ck_assert_int_eq(mgl_safetensors_read(files, tensor, 100, 156, parts + 100, &err), MGL_OK);
    ck_assert_mem_eq(whole, parts, bytes);
    ck_assert_int_eq(mgl_safetensors_read(files, tensor, 1, bytes, whole, &err), MGL_BAD_INPUT);
    ck_assert_str_eq(err.where, "model.norm.weight");
    ck_assert_int_eq(mgl_safetensors_read(files, tensor, SIZE_MAX, 2, whole, &err), MGL_BAD_INPUT);
    mgl_safetensors_close(files);
}
END_TEST

/* Picks of a table equal its elements; picks outside of the tensor fail. */
START_TEST(test_pick)
{
    enum { ROWS = 5, WIDTH = 64, FIRST = 3, PICKS = 7 };
    static const int32_t places[PICKS] = {11, 0, 60, 1, 1, 30, 2};
    static unsigned char whole[4096], picked[4096];
    mgl_safetensors *files;
    mgl_error err = {0};
    ck_assert_int_eq(mgl_safetensors_open(MGL_SOURCE_DIR "/tests/models/llama3-rope", &files, &err),
                     MGL_OK);
    const int tensor = mgl_safetensors_find(files, "model.layers.0.self_attn.k_proj.weight");
    ck_assert_uint_ge(files->tensors.items[tensor].bytes, sizeof whole);
    ck_assert_int_eq(mgl_safetensors_read(files, tensor, 0, sizeof whole, whole, &err), MGL_OK);
    for (size_t size = 2; size <= 4; size += 2) {
        mgl_picks picks = {FIRST * size, size, WIDTH * size, ROWS, PICKS, places};
        ck_assert_int_eq(mgl_safetensors_pick(files, tensor, &picks, picked, &err), MGL_OK);
        for (size_t row = 0; row < ROWS; row++)
            for (size_t i = 0; i < PICKS; i++)
                ck_assert_mem_eq(picked + (row * PICKS + i) * size,
                                 whole + (row * WIDTH + FIRST + (size_t)places[i]) * size, size);
        picks.count = files->tensors.items[tensor].bytes / picks.stride;
        ck_assert_int_eq(mgl_safetensors_pick(files, tensor, &picks, picked, &err), MGL_OK);
        picks.offset += size; /* the last pick is behind the end of the tensor */
        ck_assert_int_eq(mgl_safetensors_pick(files, tensor, &picks, picked, &err), MGL_BAD_INPUT);
        ck_assert_str_eq(err.where, "model.layers.0.self_attn.k_proj.weight");
        picks.count = SIZE_MAX / 2;
        ck_assert_int_eq(mgl_safetensors_pick(files, tensor, &picks, picked, &err), MGL_BAD_INPUT);
        picks.count = 0;
        ck_assert_int_eq(mgl_safetensors_pick(files, tensor, &picks, picked, &err), MGL_OK);
    }
    mgl_safetensors_close(files);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("safetensors");
    TCase *cases = tcase_create("safetensors");
    tcase_add_loop_test(cases, test_good_headers, 0, sizeof good / sizeof *good);
    tcase_add_test(cases, test_facts);
    tcase_add_loop_test(cases, test_provided_files, 0, 4);
    tcase_add_test(cases, test_read);
    tcase_add_test(cases, test_pick);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
