/* Implements classes.h with a table of mnemonics. */
#include "autotune/kernels/ptx/classes.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *code;
} classes[] = {
#define MGL_X(name, code) {#name, code},
    MGL_PTX_CLASSES(MGL_X)
#undef MGL_X
};

const char *mgl_ptx_class_name(mgl_ptx_class class)
{
    return classes[class].name;
}

const char *mgl_ptx_class_code(mgl_ptx_class class)
{
    return classes[class].code;
}

/* Classes by the first word. For arithmetic, the type decides between float and integer. */
static const struct {
    const char *root;
    mgl_ptx_class class;
} rows[] = {
    {"ld", MGL_PTX_CLASS_load},          {"ldu", MGL_PTX_CLASS_load},
    {"st", MGL_PTX_CLASS_store},         {"atom", MGL_PTX_CLASS_atomic},
    {"red", MGL_PTX_CLASS_atomic},       {"cp", MGL_PTX_CLASS_async},
    {"mbarrier", MGL_PTX_CLASS_async},   {"mma", MGL_PTX_CLASS_matrix},
    {"wmma", MGL_PTX_CLASS_matrix},      {"wgmma", MGL_PTX_CLASS_matrix},
    {"tcgen05", MGL_PTX_CLASS_matrix},   {"ldmatrix", MGL_PTX_CLASS_load},
    {"stmatrix", MGL_PTX_CLASS_store},   {"movmatrix", MGL_PTX_CLASS_shuffle},
    {"shfl", MGL_PTX_CLASS_shuffle},     {"vote", MGL_PTX_CLASS_shuffle},
    {"redux", MGL_PTX_CLASS_shuffle},    {"match", MGL_PTX_CLASS_shuffle},
    {"elect", MGL_PTX_CLASS_shuffle},    {"activemask", MGL_PTX_CLASS_shuffle},
    {"bar", MGL_PTX_CLASS_barrier},      {"barrier", MGL_PTX_CLASS_barrier},
    {"fence", MGL_PTX_CLASS_barrier},    {"membar", MGL_PTX_CLASS_barrier},
    {"bra", MGL_PTX_CLASS_branch},       {"brx", MGL_PTX_CLASS_branch},
    {"ret", MGL_PTX_CLASS_branch},       {"exit", MGL_PTX_CLASS_branch},
    {"call", MGL_PTX_CLASS_branch},      {"trap", MGL_PTX_CLASS_branch},
    {"mov", MGL_PTX_CLASS_move},         {"cvta", MGL_PTX_CLASS_move},
    {"prmt", MGL_PTX_CLASS_move},        {"selp", MGL_PTX_CLASS_move},
    {"setp", MGL_PTX_CLASS_compare},     {"set", MGL_PTX_CLASS_compare},
    {"cvt", MGL_PTX_CLASS_convert},      {"fma", MGL_PTX_CLASS_fma},
    {"rcp", MGL_PTX_CLASS_special},      {"rsqrt", MGL_PTX_CLASS_special},
    {"sqrt", MGL_PTX_CLASS_special},     {"ex2", MGL_PTX_CLASS_special},
    {"lg2", MGL_PTX_CLASS_special},      {"sin", MGL_PTX_CLASS_special},
    {"cos", MGL_PTX_CLASS_special},      {"tanh", MGL_PTX_CLASS_special},
    {"setmaxnreg", MGL_PTX_CLASS_other}, {"createpolicy", MGL_PTX_CLASS_other},
    {"nanosleep", MGL_PTX_CLASS_other},  {"prefetch", MGL_PTX_CLASS_async},
};

static bool is_float(const mgl_ptx_instruction *instruction)
{
    mgl_ptx_slice word;
    for (size_t i = 0; mgl_ptx_modifier(instruction, i, &word); i++)
        if (word.length > 2 && (word.at[0] == 'f' || !memcmp(word.at, "bf", 2)) &&
            word.at[word.length - 1] >= '0' && word.at[word.length - 1] <= '9')
            return true;
    return false;
}

mgl_ptx_class mgl_ptx_classify(const mgl_ptx_instruction *instruction)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (mgl_ptx_is(instruction, rows[i].root))
            return rows[i].class;
    return is_float(instruction) ? MGL_PTX_CLASS_float : MGL_PTX_CLASS_int;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* "shared" for "shared::cta". */
static mgl_ptx_slice before_colon(mgl_ptx_slice word)
{
    const char *colon = memchr(word.at, ':', word.length);
    if (colon)
        word.length = (uint32_t)(colon - word.at);
    return word;
}

mgl_ptx_space mgl_ptx_access_space(const mgl_ptx_instruction *instruction)
{
    mgl_ptx_slice word;
    for (size_t i = 0; mgl_ptx_modifier(instruction, i, &word); i++)
        for (int s = MGL_PTX_generic + 1; s < MGL_PTX_SPACE_COUNT; s++)
            if (mgl_ptx_equal(before_colon(word), mgl_ptx_space_name((mgl_ptx_space)s)))
                return (mgl_ptx_space)s;
    return MGL_PTX_generic;
}

int mgl_ptx_access_vector(const mgl_ptx_instruction *instruction)
{
    return mgl_ptx_has(instruction, "v2")   ? 2
           : mgl_ptx_has(instruction, "v4") ? 4
           : mgl_ptx_has(instruction, "v8") ? 8
                                            : 1;
}

int mgl_ptx_access_bytes(const mgl_ptx_instruction *instruction)
{
    mgl_ptx_slice word;
    int bits = 0;
    for (size_t i = 0; mgl_ptx_modifier(instruction, i, &word); i++) {
        const char *digits = word.at + (word.length > 1 && word.at[1] == 'f' ? 2 : 1);
        if (word.length > 1 && strchr("bsuf", word.at[0]) && digits < word.at + word.length &&
            *digits >= '0' && *digits <= '9')
            bits = atoi(digits);
    }
    return bits >= 8 && bits <= 128 ? mgl_ptx_access_vector(instruction) * bits / 8 : 0;
}

static bool is_one_of(mgl_ptx_slice word, const char *const *names)
{
    for (; *names; names++)
        if (mgl_ptx_equal(word, *names))
            return true;
    return false;
}

static void join(const mgl_ptx_instruction *instruction, const char *const *names, bool levels,
                 char mark, mgl_text *out)
{
    mgl_ptx_slice word;
    size_t before = out->length;
    for (size_t i = 0; mgl_ptx_modifier(instruction, i, &word); i++) {
        bool level = levels && word.length > 4 &&
                     (!memcmp(word.at, "L1::", 4) || !memcmp(word.at, "L2::", 4));
        if (!level && !is_one_of(word, names))
            continue;
        if (out->length > before)
            mgl_text_append(out, &mark, 1);
        mgl_text_append(out, word.at, word.length);
    }
}

void mgl_ptx_access_hint(const mgl_ptx_instruction *instruction, mgl_text *out)
{
    static const char *const names[] = {"ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", NULL};
    size_t before = out->length;
    join(instruction, names, true, '+', out);
    if (out->length == before)
        mgl_text_put(out, "none");
}

void mgl_ptx_access_order(const mgl_ptx_instruction *instruction, mgl_text *out)
{
    static const char *const names[] = {"volatile", "relaxed", "acquire", "release",
                                        "acq_rel",  "mmio",    "cta",     "cluster",
                                        "gpu",      "sys",     NULL};
    size_t before = out->length;
    join(instruction, names, false, '.', out);
    if (out->length == before)
        mgl_text_put(out, "weak");
}
