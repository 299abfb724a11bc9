/*
 * Implements the digest: SHA-256 of whitespace-normalized text.
 */
#include "autotune/kernels/methods/evaluator.h"

#include <string.h>

mgl_digest mgl_digest_text(const char *text, size_t length)
{
    mgl_sha256 hash;
    unsigned char bytes[MGL_SHA256_BYTES];
    mgl_digest digest;
    bool blank = true;
    mgl_sha256_start(&hash);
    for (size_t i = 0; i < length; i++) {
        bool is_blank = text[i] == ' ' || (text[i] >= '\t' && text[i] <= '\r');
        if (is_blank && !blank)
            mgl_sha256_add(&hash, " ", 1);
        else if (!is_blank)
            mgl_sha256_add(&hash, text + i, 1);
        blank = is_blank;
    }
    if (!blank)
        mgl_sha256_add(&hash, " ", 1);
    mgl_sha256_end(&hash, bytes);
    mgl_sha256_hex(bytes, digest.hex);
    return digest;
}
