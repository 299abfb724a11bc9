/* Implements vocabulary.h: a hash table with open addressing, filled in one pass over the
 * sources. */
#include "autotune/kernels/gates/vocabulary.h"

#include <string.h>

#include "autotune/kernels/gates/declare.h"
#include "base/memory.h"
#include "vm/cuda/sources.h"

enum { SLOTS = 1 << 14 }; /* the kernel has about 4,000 words */

struct mgl_vocabulary {
    struct {
        const char *text; /* (length) in the sources; NULL: free */
        int length;
        unsigned bits;
    } slots[SLOTS];
    int used;
};

static size_t find(const mgl_vocabulary *v, const char *text, int length)
{
    uint32_t hash = 2166136261u;
    for (int i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * 16777619u;
    size_t at = hash % SLOTS;
    while (v->slots[at].text &&
           (v->slots[at].length != length || memcmp(v->slots[at].text, text, (size_t)length) != 0))
        at = (at + 1) % SLOTS;
    return at;
}

unsigned mgl_vocabulary_look(const mgl_vocabulary *v, const mgl_token *word)
{
    return v->slots[find(v, word->text, word->length)].bits;
}

static void note(mgl_vocabulary *v, const mgl_token *word, unsigned bits)
{
    size_t at = find(v, word->text, word->length);
    if (!v->slots[at].text) {
        if (v->used >= SLOTS / 2)
            return;
        v->used++;
        v->slots[at].text = word->text;
        v->slots[at].length = word->length;
    }
    v->slots[at].bits |= bits;
}

/* ---- the sources ----------------------------------------------------------------------------- */

/* The source that is being read, and the kinds of its words. */
typedef struct reading {
    mgl_vocabulary *to;
    bool scheduler, own;
    bool memory; /* the file defines the layout of the machine's memory */
    bool apart;  /* the current type is not part of the machine's memory */
} reading;

/* Types whose members every unit may use: they describe a task's operands. */
static bool is_of_tasks(const mgl_token *type)
{
    static const char *const types[] = {
        "view",       "input", "cache_view",         "attention",
        "ring_place", "news",  "mgl_device_operand", "mgl_device_segment"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (mgl_token_is(type, types[i]))
            return true;
    return false;
}

static bool note_declared(void *user, const mgl_declared *d)
{
    reading *r = user;
    if (d->kind == MGL_DECLARED_TYPE && d->of_file)
        r->apart = !r->memory || (d->name && is_of_tasks(d->name));
    if (!d->name || d->kind == MGL_DECLARED_UNKNOWN || d->name->kind != MGL_TOKEN_WORD)
        return true;
    if (r->own && d->of_file)
        note(r->to, d->name, MGL_WORD_DECLARED);
    if (r->scheduler && (d->of_file || !r->apart))
        note(r->to, d->name, d->of_file ? MGL_WORD_SCHEDULER : MGL_WORD_MEMBER);
    return true;
}

/* Records all words of a source. Then removes the tokens of directives from the list. */
static void note_words(reading *r, mgl_tokens *tokens, unsigned bits)
{
    size_t kept = 0;
    bool directive = false;
    for (size_t i = 0; i < tokens->count; i++) {
        const mgl_token *t = &tokens->list[i];
        if (t->starts)
            directive = mgl_token_is(t, "#");
        const bool path = directive && t->kind == MGL_TOKEN_STRING;
        if (t->kind == MGL_TOKEN_WORD || path)
            note(r->to, t, path && (bits & MGL_WORD_FAMILY) ? bits | MGL_WORD_INCLUDE : bits);
        if (!directive)
            tokens->list[kept++] = *t;
    }
    tokens->count = kept;
}

static bool is_scheduler(const char *name)
{
    static const char *const files[] = {
#define MGL_SCHEDULER(file) file,
#include "autotune/kernels/gates/words.def"
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (!strcmp(files[i], name))
            return true;
    return false;
}

static bool is_of_family(const char *name, mgl_family family)
{
    for (int i = 0; i < mgl_kernel_unit_count(); i++) {
        const mgl_kernel_unit *unit = mgl_kernel_unit_get(i);
        if (mgl_op_get(unit->op)->family == family && !strcmp(unit->file, name))
            return true;
    }
    return false;
}

static mgl_status read_source(mgl_vocabulary *v, const mgl_kernel_unit *unit, int index,
                              mgl_error *err)
{
    const char *name = mgl_cuda_sources[index].name;
    const char *text = (const char *)mgl_cuda_sources[index].text;
    mgl_tokens tokens;
    mgl_scan_fault fault;
    reading r = {.to = v,
                 .scheduler = is_scheduler(name),
                 .own = !strcmp(name, unit->file),
                 .memory = !strcmp(name, "vm/cuda/device/shared.cuh") ||
                           !strcmp(name, "vm/cuda/device/record.h")};
    unsigned bits = r.own ? MGL_WORD_OWN | MGL_WORD_FAMILY
                    : is_of_family(name, mgl_op_get(unit->op)->family)
                        ? MGL_WORD_ELSEWHERE | MGL_WORD_FAMILY
                        : MGL_WORD_ELSEWHERE;
    mgl_status status = mgl_lex(text, strlen(text), &tokens, &fault, err);
    if (status)
        return status;
    if (fault.line) { /* the words of this source would be missing, and would pass the scan */
        mgl_tokens_clear(&tokens);
        return mgl_fail(err, MGL_GATE, name, "line %d of the kernel's own source: %s", fault.line,
                        fault.what);
    }
    note_words(&r, &tokens, bits);
    if (r.own || r.scheduler)
        mgl_declared_each(&tokens, note_declared, &r);
    mgl_tokens_clear(&tokens);
    return MGL_OK;
}

mgl_status mgl_vocabulary_open(const mgl_kernel_unit *unit, mgl_vocabulary **out, mgl_error *err)
{
    mgl_vocabulary *v = mgl_alloc_zero(1, sizeof *v);
    *out = v;
    if (!v)
        return mgl_fail_memory(err, sizeof *v);
    mgl_status status = MGL_OK;
    for (int i = 0; i < mgl_cuda_source_count && !status; i++)
        status = read_source(v, unit, i, err);
    if (!status && v->used >= SLOTS / 2)
        status =
            mgl_fail(err, MGL_GATE, "vocabulary", "the kernel has more words than %d", SLOTS / 2);
    if (status) {
        mgl_vocabulary_close(v);
        *out = NULL;
    }
    return status;
}

void mgl_vocabulary_close(mgl_vocabulary *v)
{
    mgl_free(v);
}
