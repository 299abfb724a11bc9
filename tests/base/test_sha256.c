/* Tests of SHA-256 against published results. */
#include "base/sha256.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* FIPS 180-4's examples, and a million times `a` (NIST's long message). */
START_TEST(sha256_is_fips_180)
{
    static const struct {
        const char *text, *hash;
    } cases[] = {{"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
                 {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
                 {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
                 {NULL, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mgl_sha256 hash;
        unsigned char bytes[MGL_SHA256_BYTES];
        char hex[MGL_SHA256_HEX];
        mgl_sha256_start(&hash);
        for (int n = 0; !cases[i].text && n < 1000000; n++)
            mgl_sha256_add(&hash, "a", 1);
        if (cases[i].text)
            mgl_sha256_add(&hash, cases[i].text, strlen(cases[i].text));
        mgl_sha256_end(&hash, bytes);
        mgl_sha256_hex(bytes, hex);
        ck_assert_str_eq(hex, cases[i].hash);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sha256");
    TCase *cases = tcase_create("sha256");
    tcase_add_test(cases, sha256_is_fips_180);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
