/* Implements mgl_kernel_hash of kernel.h: SHA-256 over tokens. A text that cannot be tokenized
 * is hashed by its bytes. */
#include "autotune/kernels/gates/kernel.h"
#include "autotune/kernels/gates/lex.h"

static void add_words(mgl_sha256 *hash, const mgl_tokens *words)
{
    bool directive = false;
    for (size_t i = 0; i < words->count; i++) {
        const mgl_token *t = &words->list[i];
        const bool begins = t->starts && mgl_token_is(t, "#");
        if (begins || (t->starts && directive)) /* a directive has a line of its own */
            mgl_sha256_add(hash, "\n", 1);
        directive = t->starts ? begins : directive;
        mgl_sha256_add(hash, t->text, (size_t)t->length);
        mgl_sha256_add(hash, " ", 1);
    }
}

/* The launch region consists of comments, so its bytes are hashed. */
static void add_launch(mgl_sha256 *hash, const char *text, size_t length)
{
    mgl_kernel_regions regions;
    if (mgl_kernel_regions_find(text, length, &regions, NULL))
        return;
    const size_t first = regions.of[MGL_KERNEL_REGION_LAUNCH].first;
    mgl_sha256_add(hash, text + first, regions.of[MGL_KERNEL_REGION_LAUNCH].end - first);
}

mgl_status mgl_kernel_hash(const char *text, size_t length, char hash[MGL_SHA256_HEX],
                           mgl_error *err)
{
    mgl_tokens words;
    mgl_scan_fault fault;
    mgl_sha256 sum;
    unsigned char bytes[MGL_SHA256_BYTES];
    mgl_status status = mgl_lex(text, length, &words, &fault, err);
    if (status)
        return status;
    mgl_sha256_start(&sum);
    if (fault.line)
        mgl_sha256_add(&sum, text, length);
    else
        add_words(&sum, &words);
    add_launch(&sum, text, length);
    mgl_sha256_end(&sum, bytes);
    mgl_sha256_hex(bytes, hash);
    mgl_tokens_clear(&words);
    return MGL_OK;
}
