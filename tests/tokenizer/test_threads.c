/*
 * Tests of one tokenizer in many threads: each thread gets the ids and texts of a single thread.
 * ThreadSanitizer also detects shared writes.
 */
#include "support.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 4, TEXTS = 200, LONGEST = 600, FIXTURES = 5 };

static char texts[TEXTS][LONGEST];
static size_t lengths[TEXTS];
static mgl_ids alone[TEXTS];
static mgl_tokenizer *tokenizer;
static atomic_int begun;

/* A normalizer with a search, a splitter with a search, a word of single letters, a decoder with a
 * search. */
static const char searching[] =
    "\"added_tokens\": [{\"id\": 5, \"content\": \"<s>\", \"single_word\": true, \"lstrip\": "
    "false, \"rstrip\": true, \"normalized\": true, \"special\": true}], \"normalizer\": {\"type\":"
    " \"Sequence\", \"normalizers\": [{\"type\": \"NFKC\"}, {\"type\": \"Replace\", \"pattern\": "
    "{\"Regex\": \"e+\"}, \"content\": \"a\"}]}, \"pre_tokenizer\": {\"type\": \"Sequence\", "
    "\"pretokenizers\": [{\"type\": \"Metaspace\", \"replacement\": \"_\"}, {\"type\": \"Split\", "
    "\"pattern\": {\"Regex\": \"\\\\w+|[^\\\\w]\"}, \"behavior\": \"Isolated\", \"invert\": "
    "false}]}, \"decoder\": {\"type\": \"Replace\", \"pattern\": {\"Regex\": \"a+\"}, \"content\": "
    "\"e\"},";

static mgl_tokenizer *open_fixture(int index)
{
    static const char *const names[] = {"tales-5m", "tokenizers/smollm", "tokenizers/qwen",
                                        "tokenizers/metaspace"};
    char path[1024];
    mgl_tokenizer *opened;
    mgl_error err;
    if (index == FIXTURES - 1)
        return make_tokenizer(searching, "\"a\": 0, \"n\": 1, \"an\": 2, \"_\": 3, \"<u>\": 4",
                              "\"a n\"", ", \"unk_token\": \"<u>\"");
    snprintf(path, sizeof path, "%s/tests/models/%s", MGL_SOURCE_DIR, names[index]);
    ck_assert_msg(mgl_tokenizer_open(path, &opened, &err) == MGL_OK, "%s", err.message);
    return opened;
}

/* Texts of all kinds: words, numbers, scripts, invalid UTF-8, special tokens, long runs. */
static void make_texts(void)
{
    static const char *const parts[] = {"Once there was ",
                                        "an",
                                        "  ",
                                        "1234567",
                                        "\n\n",
                                        "\u00E4\u0301",
                                        "\u4F60",
                                        "\xFF",
                                        "<s>",
                                        "'ll ",
                                        "<|im_start|>",
                                        "bananas",
                                        "\u2581",
                                        "\uFDFA",
                                        "eee ",
                                        "\U0001F600",
                                        "\t x",
                                        "abcabcabcabcabcabcabcabcabcabc"};
    uint32_t seed = 1;
    for (int i = 0; i < TEXTS; i++) {
        lengths[i] = 0;
        for (;;) {
            seed = seed * 1664525u + 1013904223u;
            const char *part = parts[(seed >> 16) % (sizeof parts / sizeof *parts)];
            if (lengths[i] + strlen(part) > (size_t)LONGEST || lengths[i] > (size_t)(3 * i))
                break;
            memcpy(texts[i] + lengths[i], part, strlen(part));
            lengths[i] += strlen(part);
        }
    }
}

/* Whether the pieces of a stream concatenate to the decode. */
static bool streams_to(const mgl_ids *ids, const char *text, mgl_error *err)
{
    mgl_detokenizer *stream;
    const char *piece;
    size_t length, done = 0;
    bool same = true;
    if (mgl_detokenizer_open(tokenizer, false, &stream, err))
        return false;
    for (size_t i = 0; i <= ids->count && same; i++) {
        mgl_status status = i < ids->count
                                ? mgl_detokenizer_next(stream, ids->ids[i], &piece, &length, err)
                                : mgl_detokenizer_finish(stream, &piece, &length, err);
        same = !status && !strncmp(text + done, piece, length);
        done += status ? 0 : length;
    }
    mgl_detokenizer_close(stream);
    return same && !text[done];
}

/* Encodes and decodes one text. Returns false if a result differs from the single thread's. */
static bool check_text(int index, mgl_ids *ids)
{
    mgl_error err;
    char *text;
    if (mgl_tokenizer_encode(tokenizer, texts[index], lengths[index], true, ids, &err) ||
        ids->count != alone[index].count ||
        memcmp(ids->ids, alone[index].ids, ids->count * sizeof *ids->ids) != 0 ||
        mgl_tokenizer_decode(tokenizer, ids->ids, ids->count, false, &text, NULL, &err))
        return false;
    bool same = streams_to(ids, text, &err);
    mgl_text_free(text);
    return same;
}

/* Runs all texts, each thread from another start. Returns the number of differences. */
static void *work(void *argument)
{
    int *wrong = argument, first = *wrong;
    mgl_ids ids = {0};
    *wrong = 0;
    atomic_fetch_add(&begun, 1);
    while (atomic_load(&begun) < THREADS)
        continue;
    for (int i = 0; i < TEXTS; i++)
        *wrong += !check_text((first + i) % TEXTS, &ids);
    mgl_ids_clear(&ids);
    return NULL;
}

START_TEST(test_threads_get_what_one_gets)
{
    pthread_t threads[THREADS];
    int wrong[THREADS];
    mgl_error err;
    make_texts();
    tokenizer = open_fixture(_i);
    mgl_tokenizer *another = open_fixture(_i);
    for (int i = 0; i < TEXTS; i++)
        ck_assert_int_eq(mgl_tokenizer_encode(another, texts[i], lengths[i], true, &alone[i], &err),
                         MGL_OK);
    mgl_tokenizer_close(another);
    atomic_store(&begun, 0);
    for (int i = 0; i < THREADS; i++) {
        wrong[i] = i * 37;
        ck_assert_int_eq(pthread_create(&threads[i], NULL, work, &wrong[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(wrong[i], 0);
    for (int i = 0; i < TEXTS; i++)
        mgl_ids_clear(&alone[i]);
    mgl_tokenizer_close(tokenizer);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("threads");
    TCase *tests = tcase_create("threads");
    tcase_add_loop_test(tests, test_threads_get_what_one_gets, 0, FIXTURES);
    tcase_set_timeout(tests, 120);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
