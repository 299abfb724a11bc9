/* Case folding tables for Oniguruma's patterns, and closing classes under case. See onig_case.h. */
#include "importer/tokenizer/onig_case.h"

#include "base/memory.h"
#include "base/utf8.h"
#include "importer/tokenizer/pattern.h"

#include <string.h>
#include <utf8proc.h>

/* The rows of status F in Unicode's CaseFolding.txt, by folding. None was added since Unicode
 * 5.1. */
static const mgl_folding foldings[] = {
    {{0x73, 0x73}, {0xDF, 0x1E9E}},
    {{0x69, 0x307}, {0x130}},
    {{0x2BC, 0x6E}, {0x149}},
    {{0x6A, 0x30C}, {0x1F0}},
    {{0x3B9, 0x308, 0x301}, {0x390, 0x1FD3}},
    {{0x3C5, 0x308, 0x301}, {0x3B0, 0x1FE3}},
    {{0x565, 0x582}, {0x587}},
    {{0x68, 0x331}, {0x1E96}},
    {{0x74, 0x308}, {0x1E97}},
    {{0x77, 0x30A}, {0x1E98}},
    {{0x79, 0x30A}, {0x1E99}},
    {{0x61, 0x2BE}, {0x1E9A}},
    {{0x3C5, 0x313}, {0x1F50}},
    {{0x3C5, 0x313, 0x300}, {0x1F52}},
    {{0x3C5, 0x313, 0x301}, {0x1F54}},
    {{0x3C5, 0x313, 0x342}, {0x1F56}},
    {{0x1F00, 0x3B9}, {0x1F80, 0x1F88}},
    {{0x1F01, 0x3B9}, {0x1F81, 0x1F89}},
    {{0x1F02, 0x3B9}, {0x1F82, 0x1F8A}},
    {{0x1F03, 0x3B9}, {0x1F83, 0x1F8B}},
    {{0x1F04, 0x3B9}, {0x1F84, 0x1F8C}},
    {{0x1F05, 0x3B9}, {0x1F85, 0x1F8D}},
    {{0x1F06, 0x3B9}, {0x1F86, 0x1F8E}},
    {{0x1F07, 0x3B9}, {0x1F87, 0x1F8F}},
    {{0x1F20, 0x3B9}, {0x1F90, 0x1F98}},
    {{0x1F21, 0x3B9}, {0x1F91, 0x1F99}},
    {{0x1F22, 0x3B9}, {0x1F92, 0x1F9A}},
    {{0x1F23, 0x3B9}, {0x1F93, 0x1F9B}},
    {{0x1F24, 0x3B9}, {0x1F94, 0x1F9C}},
    {{0x1F25, 0x3B9}, {0x1F95, 0x1F9D}},
    {{0x1F26, 0x3B9}, {0x1F96, 0x1F9E}},
    {{0x1F27, 0x3B9}, {0x1F97, 0x1F9F}},
    {{0x1F60, 0x3B9}, {0x1FA0, 0x1FA8}},
    {{0x1F61, 0x3B9}, {0x1FA1, 0x1FA9}},
    {{0x1F62, 0x3B9}, {0x1FA2, 0x1FAA}},
    {{0x1F63, 0x3B9}, {0x1FA3, 0x1FAB}},
    {{0x1F64, 0x3B9}, {0x1FA4, 0x1FAC}},
    {{0x1F65, 0x3B9}, {0x1FA5, 0x1FAD}},
    {{0x1F66, 0x3B9}, {0x1FA6, 0x1FAE}},
    {{0x1F67, 0x3B9}, {0x1FA7, 0x1FAF}},
    {{0x1F70, 0x3B9}, {0x1FB2}},
    {{0x3B1, 0x3B9}, {0x1FB3, 0x1FBC}},
    {{0x3AC, 0x3B9}, {0x1FB4}},
    {{0x3B1, 0x342}, {0x1FB6}},
    {{0x3B1, 0x342, 0x3B9}, {0x1FB7}},
    {{0x1F74, 0x3B9}, {0x1FC2}},
    {{0x3B7, 0x3B9}, {0x1FC3, 0x1FCC}},
    {{0x3AE, 0x3B9}, {0x1FC4}},
    {{0x3B7, 0x342}, {0x1FC6}},
    {{0x3B7, 0x342, 0x3B9}, {0x1FC7}},
    {{0x3B9, 0x308, 0x300}, {0x1FD2}},
    {{0x3B9, 0x342}, {0x1FD6}},
    {{0x3B9, 0x308, 0x342}, {0x1FD7}},
    {{0x3C5, 0x308, 0x300}, {0x1FE2}},
    {{0x3C1, 0x313}, {0x1FE4}},
    {{0x3C5, 0x342}, {0x1FE6}},
    {{0x3C5, 0x308, 0x342}, {0x1FE7}},
    {{0x1F7C, 0x3B9}, {0x1FF2}},
    {{0x3C9, 0x3B9}, {0x1FF3, 0x1FFC}},
    {{0x3CE, 0x3B9}, {0x1FF4}},
    {{0x3C9, 0x342}, {0x1FF6}},
    {{0x3C9, 0x342, 0x3B9}, {0x1FF7}},
    {{0x66, 0x66}, {0xFB00}},
    {{0x66, 0x69}, {0xFB01}},
    {{0x66, 0x6C}, {0xFB02}},
    {{0x66, 0x66, 0x69}, {0xFB03}},
    {{0x66, 0x66, 0x6C}, {0xFB04}},
    {{0x73, 0x74}, {0xFB05, 0xFB06}},
    {{0x574, 0x576}, {0xFB13}},
    {{0x574, 0x565}, {0xFB14}},
    {{0x574, 0x56B}, {0xFB15}},
    {{0x57E, 0x576}, {0xFB16}},
    {{0x574, 0x56D}, {0xFB17}},
};

enum {
    FOLDINGS = sizeof foldings / sizeof *foldings,
    CASED = 0x20000 /* characters from here on
                     * have no case */
};

size_t mgl_folding_length(const mgl_folding *folding)
{
    return folding->folded[2] ? 3 : 2;
}

const mgl_folding *mgl_folding_of(uint32_t character)
{
    for (size_t i = 0; i < FOLDINGS && character; i++)
        if (foldings[i].characters[0] == character || foldings[i].characters[1] == character)
            return &foldings[i];
    return NULL;
}

const mgl_folding *mgl_folding_at(const uint32_t *folded, size_t count)
{
    const mgl_folding *longest = NULL;
    size_t most = 0;
    for (size_t i = 0; i < FOLDINGS; i++) {
        size_t length = mgl_folding_length(&foldings[i]);
        if (length <= count && length > most &&
            !memcmp(foldings[i].folded, folded, length * sizeof *folded)) {
            longest = &foldings[i];
            most = length;
        }
    }
    return longest;
}

bool mgl_folding_joins(uint32_t left, uint32_t right)
{
    for (size_t i = 0; i < FOLDINGS; i++)
        for (int at = 0; at < 2; at++)
            if (foldings[i].folded[at] == left && foldings[i].folded[at + 1] == right)
                return left && right;
    return false;
}

uint32_t mgl_fold(uint32_t character)
{
    int32_t to[8];
    int class = UTF8PROC_BOUNDCLASS_START;
    utf8proc_ssize_t count =
        utf8proc_decompose_char((int32_t)character, to, 8, UTF8PROC_CASEFOLD, &class);
    return count == 1 ? (uint32_t)to[0] : character;
}

/* ---- classes -------------------------------------------------------------------------------- */

/* Tests the members of a class. */
typedef struct membership {
    mgl_pattern *pattern;
    mgl_matcher *matcher;
    bool negated;
    mgl_error *err;
    mgl_status status; /* of the first test that failed */
} membership;

static bool has(membership *m, uint32_t character)
{
    char text[4];
    bool matches = false;
    size_t size = mgl_utf8_put(character, text);
    if (!m->status)
        m->status = mgl_pattern_at_start(m->pattern, m->matcher, text, size, &matches, m->err);
    return matches != m->negated;
}

static void list(mgl_text *out, uint32_t character)
{
    mgl_text_format(out, "\\x{%X}", (unsigned)character);
}

/* Lists missing partners. `wanted` has a bit for each folding of a member: all characters with
 * that folding must be members. */
static void list_partners(membership *m, uint64_t *wanted, mgl_text *out)
{
    for (uint32_t c = 0; c < CASED; c++) {
        uint32_t folded = mgl_fold(c);
        if (folded == c || folded >= CASED)
            continue;
        bool member = has(m, c), folded_member = has(m, folded);
        if (member || folded_member)
            wanted[folded / 64] |= (uint64_t)1 << folded % 64;
    }
    for (uint32_t c = 0; c < CASED; c++) {
        uint32_t folded = mgl_fold(c);
        if (folded >= CASED || !(wanted[folded / 64] >> folded % 64 & 1))
            continue;
        if (!has(m, c))
            list(out, c);
    }
}

/* Same for characters that fold to the same several characters. */
static void list_folding_partners(membership *m, mgl_text *out, uint32_t *several)
{
    *several = 0;
    for (size_t i = 0; i < FOLDINGS; i++) {
        const uint32_t *characters = foldings[i].characters;
        bool first = has(m, characters[0]), second = characters[1] && has(m, characters[1]);
        if (first || second)
            *several = characters[!first];
        if (first && characters[1] && !second)
            list(out, characters[1]);
        if (second && !first)
            list(out, characters[0]);
    }
}

mgl_status mgl_close_class(const char *matcher, bool negated, const char *file, mgl_text *out,
                           uint32_t *several, mgl_error *err)
{
    membership m = {.negated = negated, .err = err};
    uint64_t *wanted = mgl_alloc_zero(CASED / 64, sizeof *wanted);
    m.status =
        wanted ? mgl_pattern_pcre(matcher, file, &m.pattern, err) : mgl_fail_memory(err, CASED / 8);
    if (!m.status)
        m.status = mgl_matcher_new(&m.matcher, err);
    if (!m.status) {
        list_partners(&m, wanted, out);
        list_folding_partners(&m, out, several);
    }
    mgl_matcher_free(m.matcher);
    mgl_pattern_free(m.pattern);
    mgl_free(wanted);
    return m.status;
}
