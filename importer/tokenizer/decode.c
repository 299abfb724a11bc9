/* Implements the decoder stages and their pipeline. See decode.h. */
#include "importer/tokenizer/decode.h"

#include "base/memory.h"
#include "base/text.h"
#include "base/utf8.h"
#include "importer/tokenizer/byte_level.h"

#include <string.h>

/* The events that a stage receives. TEXT comes between BEGIN and END; FINISH comes last. MARK is
 * the end of a prompt: between two tokens, or within the single token of a stage that fuses all
 * tokens. */
typedef enum event { BEGIN, TEXT, MARK, END, FINISH } event;

/* The state of a stage. */
typedef struct stage_state {
    bool begun;     /* a token was seen, or the only token was opened */
    bool inside;    /* ByteFallback: not a byte token, its text is forwarded */
    size_t tokens;  /* tokens that have ended */
    size_t dropped; /* Strip: leading characters of this token that were removed */
    size_t kept;    /* Strip: trailing characters that may be removed */
    bool leading;   /* Strip: nothing of this token was forwarded yet */
    mgl_text held;  /* text of the token that is held back */
    mgl_text run;   /* ByteFallback: the run of bytes; ByteLevel: the incomplete character */
    size_t held_mark, run_mark; /* 1 + position of the mark in them; 0: none */
} stage_state;

struct mgl_decoding {
    const mgl_decoder *decoder;
    stage_state *states;  /* (count) */
    size_t count;         /* number of stages; closing does not need the decoder */
    mgl_matcher *matcher; /* NULL if no stage searches */
    mgl_growth growth;    /* of the stages */
    mgl_text *out;        /* the output of the last stage */
    bool prompt;          /* the mark has not reached the end: no text is output */
    mgl_error *err;
};

static void clear_stage(mgl_decode_stage *stage)
{
    mgl_free(stage->content);
    mgl_free(stage->literal);
    mgl_pattern_free(stage->pattern);
}

mgl_status mgl_decoder_add(mgl_decoder *decoder, mgl_decode_stage stage, mgl_error *err)
{
    if (!mgl_grow((void **)&decoder->stages, &decoder->capacity, decoder->count, sizeof stage)) {
        clear_stage(&stage);
        return mgl_fail_memory(err, sizeof stage);
    }
    decoder->stages[decoder->count++] = stage;
    return MGL_OK;
}

void mgl_decoder_clear(mgl_decoder *decoder)
{
    for (size_t i = 0; i < decoder->count; i++)
        clear_stage(&decoder->stages[i]);
    mgl_free(decoder->stages);
    *decoder = (mgl_decoder){0};
}

static mgl_status tell(mgl_decoding *d, size_t index, event what, const char *text, size_t length);

static mgl_status tell_text(mgl_decoding *d, size_t index, const char *text, size_t length)
{
    return length ? tell(d, index, TEXT, text, length) : MGL_OK;
}

/* Sends a complete token to a stage. */
static mgl_status tell_token(mgl_decoding *d, size_t index, const char *text, size_t length)
{
    mgl_status status = tell(d, index, BEGIN, NULL, 0);
    if (!status)
        status = tell_text(d, index, text, length);
    return status ? status : tell(d, index, END, NULL, 0);
}

/* Forwards a part of a text, and the mark if it is in the part or before it. A mark at the end
 * of the part is forwarded too. */
static mgl_status tell_part(mgl_decoding *d, size_t index, const mgl_text *text, size_t from,
                            size_t to, size_t *mark)
{
    mgl_status status = MGL_OK;
    if (*mark && *mark - 1 <= to) {
        size_t at = *mark - 1 > from ? *mark - 1 : from;
        *mark = 0;
        if (at > from)
            status = tell(d, index, TEXT, text->bytes + from, at - from);
        if (!status)
            status = tell(d, index, MARK, NULL, 0);
        from = at;
    }
    return status || from == to ? status : tell(d, index, TEXT, text->bytes + from, to - from);
}

/* If the mark is inside a whole character (up to `end`), moves it after the character: a
 * character that the prompt began does not belong to the text after it. */
static void raise_mark(const mgl_text *text, size_t end, size_t *mark)
{
    while (*mark && *mark - 1 < end && (text->bytes[*mark - 1] & 0xC0) == 0x80)
        ++*mark;
}

/* Places the mark after the held text, which it must follow. Returns false if no text is held. */
static bool keep_mark(stage_state *state)
{
    if (state->held.length)
        state->held_mark = state->held.length + 1;
    else if (state->run.length)
        state->run_mark = state->run.length + 1;
    return state->held.length || state->run.length;
}

/* Empties a text and keeps its memory; returns an error if an append had failed. */
static mgl_status emptied(mgl_decoding *d, mgl_text *text)
{
    bool failed = text->failed;
    if (failed)
        mgl_text_clear(text);
    text->length = 0;
    return failed ? mgl_fail_memory(d->err, 64) : MGL_OK;
}

/* ---- ByteLevel ------------------------------------------------------------------------------ */

/* Forwards the bytes in state->run that are certain; all of them if `last`. */
static mgl_status hand_bytes(mgl_decoding *d, size_t index, stage_state *state, bool last)
{
    mgl_text *run = &state->run;
    size_t at = 0, used;
    mgl_status status = MGL_OK;
    while (at < run->length && !status) {
        size_t good = mgl_utf8_valid(run->bytes + at, run->length - at);
        raise_mark(run, at + good, &state->run_mark);
        status = tell_part(d, index + 1, run, at, at + good, &state->run_mark);
        at += good;
        if (status || at == run->length)
            break;
        if (mgl_utf8_look(run->bytes + at, run->length - at, &used) == MGL_UTF8_CUT && !last)
            break;
        status = tell_text(d, index + 1, MGL_UTF8_REPLACEMENT, strlen(MGL_UTF8_REPLACEMENT));
        at += used;
        if (!status)
            status = tell_part(d, index + 1, run, at, at, &state->run_mark);
    }
    if (at)
        memmove(run->bytes, run->bytes + at, run->length - at);
    run->length -= at;
    state->run_mark -= state->run_mark ? at : 0;
    return status;
}

static size_t count_characters(const mgl_text *text, size_t end)
{
    size_t count = 0;
    for (size_t i = 0; i < end; i++)
        count += (text->bytes[i] & 0xC0) != 0x80;
    return count;
}

/* Maps a whole token to bytes if all of its characters are in the alphabet; else keeps it
 * unchanged. */
static mgl_status map_token(mgl_decoding *d, size_t index, stage_state *state)
{
    mgl_text *held = &state->held, *run = &state->run;
    size_t before = run->length, place = state->held_mark;
    bool mapped = mgl_byte_level_unmap(held->bytes, held->length, run);
    if (!mapped)
        mgl_text_append(run, held->bytes, held->length);
    if (place) /* in mapped text, each character before it is one byte */
        state->run_mark = before + 1 + (mapped ? count_characters(held, place - 1) : place - 1);
    state->held_mark = 0;
    mgl_status status = emptied(d, held);
    if (!status && run->failed)
        status = emptied(d, run);
    return status ? status : hand_bytes(d, index, state, false);
}

static mgl_status on_byte_level(mgl_decoding *d, size_t index, stage_state *state, event what,
                                const char *text, size_t length)
{
    mgl_status status = MGL_OK;
    if (!state->begun)
        status = tell(d, index + 1, BEGIN, NULL, 0);
    state->begun = true;
    if (status)
        return status;
    if (what == TEXT)
        mgl_text_append(&state->held, text, length);
    if (what == END)
        return map_token(d, index, state);
    if (what == MARK)
        return keep_mark(state) ? MGL_OK : tell(d, index + 1, MARK, NULL, 0);
    if (what != FINISH)
        return MGL_OK;
    status = hand_bytes(d, index, state, true);
    if (!status)
        status = tell(d, index + 1, END, NULL, 0);
    return status ? status : tell(d, index + 1, FINISH, NULL, 0);
}

/* ---- ByteFallback --------------------------------------------------------------------------- */

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Like Rust's u8::from_str_radix, accepts "+H" as a number too. */
int mgl_decode_byte_token(const char *token, size_t length)
{
    if (length != 6 || memcmp(token, "<0x", 3) || token[5] != '>')
        return -1;
    int high = token[3] == '+' ? 0 : hex(token[3]), low = hex(token[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* Ends the run of bytes: emits one token with its characters, or one U+FFFD per byte. */
static mgl_status end_run(mgl_decoding *d, size_t index, stage_state *state)
{
    mgl_text *run = &state->run;
    size_t length = run->length;
    mgl_status status = MGL_OK;
    if (run->failed)
        return emptied(d, run);
    if (length && mgl_utf8_valid(run->bytes, length) == length) {
        raise_mark(run, length, &state->run_mark);
        status = tell(d, index + 1, BEGIN, NULL, 0);
        if (!status)
            status = tell_part(d, index + 1, run, 0, length, &state->run_mark);
        if (!status)
            status = tell(d, index + 1, END, NULL, 0);
    } else {
        for (size_t i = 0; i < length && !status; i++) {
            status = tell_token(d, index + 1, MGL_UTF8_REPLACEMENT, strlen(MGL_UTF8_REPLACEMENT));
            if (!status)
                status = tell_part(d, index + 1, run, i + 1, i + 1, &state->run_mark);
        }
    }
    run->length = 0;
    return status;
}

/* Forwards a token that is not a byte token, starting with the held text. */
static mgl_status let_through(mgl_decoding *d, size_t index, stage_state *state)
{
    mgl_status status = end_run(d, index, state);
    if (!status && state->held.failed)
        status = emptied(d, &state->held);
    if (!status)
        status = tell(d, index + 1, BEGIN, NULL, 0);
    if (!status)
        status = tell_part(d, index + 1, &state->held, 0, state->held.length, &state->held_mark);
    state->held.length = 0;
    state->inside = true;
    return status;
}

static mgl_status on_byte_fallback(mgl_decoding *d, size_t index, stage_state *state, event what,
                                   const char *text, size_t length)
{
    mgl_status status = MGL_OK;
    if (what == TEXT) {
        if (state->inside)
            return tell_text(d, index + 1, text, length);
        mgl_text_append(&state->held, text, length);
        return state->held.length > 6 ? let_through(d, index, state) : MGL_OK;
    }
    if (what == FINISH) {
        status = end_run(d, index, state);
        return status ? status : tell(d, index + 1, FINISH, NULL, 0);
    }
    if (what == BEGIN)
        return MGL_OK;
    if (what == MARK)
        return keep_mark(state) ? MGL_OK : tell(d, index + 1, MARK, NULL, 0);
    int byte = state->inside ? -1 : mgl_decode_byte_token(state->held.bytes, state->held.length);
    if (byte >= 0) {
        char one = (char)byte;
        mgl_text_append(&state->run, &one, 1);
        if (state->held_mark) /* the mark is within the token: its byte belongs to the prompt */
            state->run_mark = state->run.length + 1;
        state->held_mark = 0;
        return emptied(d, &state->held);
    }
    if (!state->inside)
        status = let_through(d, index, state);
    state->inside = false;
    return status ? status : tell(d, index + 1, END, NULL, 0);
}

/* ---- Replace -------------------------------------------------------------------------------- */

/* Forwards the held text with its matches replaced, except `keep` bytes at its end. */
static mgl_status hand_replaced(mgl_decoding *d, size_t index, stage_state *state, size_t keep)
{
    const mgl_decode_stage *stage = &d->decoder->stages[index];
    mgl_text *held = &state->held;
    mgl_pattern_scan scan = {.text = held->bytes, .length = held->length};
    size_t done = 0, content = strlen(stage->content);
    mgl_status status = MGL_OK;
    for (bool found = held->length > 0; found && !status;) {
        status = mgl_pattern_next(stage->pattern, d->matcher, &scan, &found, d->err);
        if (status || !found)
            break;
        status = tell_part(d, index + 1, held, done, scan.start, &state->held_mark);
        if (!status)
            status = tell_text(d, index + 1, stage->content, content);
        done = scan.end;
        if (!status)
            status = tell_part(d, index + 1, held, done, done, &state->held_mark);
    }
    if (held->length - done < keep)
        keep = held->length - done;
    size_t until = held->length - keep;
    if (!status)
        status = tell_part(d, index + 1, held, done, until, &state->held_mark);
    if (keep)
        memmove(held->bytes, held->bytes + until, keep);
    held->length = keep;
    state->held_mark -= state->held_mark ? until : 0;
    return status;
}

/* Returns the number of bytes at the end of `text` that may begin a match. */
static size_t begun_match(const char *text, size_t length, const char *literal)
{
    size_t whole = strlen(literal), most = whole - 1 < length ? whole - 1 : length;
    for (size_t size = most; size > 0; size--) {
        if (!memcmp(text + length - size, literal, size))
            return size;
    }
    return 0;
}

static mgl_status on_replace(mgl_decoding *d, size_t index, stage_state *state, event what,
                             const char *text, size_t length)
{
    const char *literal = d->decoder->stages[index].literal;
    if (what == TEXT) {
        mgl_text_append(&state->held, text, length);
        if (state->held.failed)
            return emptied(d, &state->held);
        if (!literal) /* a match of an expression may depend on the whole token */
            return MGL_OK;
        return hand_replaced(d, index, state,
                             begun_match(state->held.bytes, state->held.length, literal));
    }
    if (what == MARK && keep_mark(state))
        return MGL_OK;
    mgl_status status = what == END ? hand_replaced(d, index, state, 0) : MGL_OK;
    return status ? status : tell(d, index + 1, what, NULL, 0);
}

/* ---- the other stages ----------------------------------------------------------------------- */

static mgl_status on_join(mgl_decoding *d, size_t index, stage_state *state, event what,
                          const char *text, size_t length)
{
    mgl_status status = tell(d, index + 1, what, text, length);
    if (!status && what == BEGIN && state->begun)
        status = tell_text(d, index + 1, " ", 1);
    state->begun |= what != MARK;
    return status;
}

static mgl_status on_fuse(mgl_decoding *d, size_t index, stage_state *state, event what,
                          const char *text, size_t length)
{
    mgl_status status = MGL_OK;
    if (!state->begun)
        status = tell(d, index + 1, BEGIN, NULL, 0);
    state->begun = true;
    if (!status && (what == TEXT || what == MARK))
        return tell(d, index + 1, what, text, length);
    if (!status && what == FINISH)
        status = tell(d, index + 1, END, NULL, 0);
    return status || what != FINISH ? status : tell(d, index + 1, FINISH, NULL, 0);
}

static mgl_status on_metaspace(mgl_decoding *d, size_t index, stage_state *state, event what,
                               const char *text, size_t length)
{
    const mgl_decode_stage *stage = &d->decoder->stages[index];
    size_t size = strlen(stage->content);
    mgl_status status = MGL_OK;
    if (what == END)
        state->tokens++;
    if (what != TEXT)
        return tell(d, index + 1, what, NULL, 0);
    while (length && !status) {
        const char *at = memmem(text, length, stage->content, size);
        size_t before = at ? (size_t)(at - text) : length;
        status = tell_text(d, index + 1, text, before);
        if (!at || status)
            break;
        if (state->tokens || !stage->drop)
            status = tell_text(d, index + 1, " ", 1);
        text = at + size;
        length -= before + size;
    }
    return status;
}

/* Processes one character of a token that is stripped. */
static mgl_status strip_character(mgl_decoding *d, size_t index, stage_state *state,
                                  const char *text, size_t size)
{
    const mgl_decode_stage *stage = &d->decoder->stages[index];
    bool same = mgl_text_is(text, size, stage->content);
    mgl_status status = MGL_OK;
    if (state->leading && same && state->dropped < stage->start) {
        state->dropped++;
        return MGL_OK;
    }
    state->leading = false;
    if (same && state->kept < stage->stop) {
        state->kept++;
        return MGL_OK;
    }
    if (same) /* forward one held-back character; this one replaces it */
        return tell_text(d, index + 1, stage->content, size);
    for (; state->kept && !status; state->kept--)
        status = tell_text(d, index + 1, stage->content, strlen(stage->content));
    return status ? status : tell_text(d, index + 1, text, size);
}

static mgl_status on_strip(mgl_decoding *d, size_t index, stage_state *state, event what,
                           const char *text, size_t length)
{
    mgl_status status = MGL_OK;
    if (what == BEGIN) {
        state->dropped = state->kept = 0;
        state->leading = true;
    }
    if (what != TEXT)
        return tell(d, index + 1, what, NULL, 0);
    while (length && !status) {
        /* If nothing is left to remove in front and nothing is removed at the end, forward the
         * rest. */
        if (!d->decoder->stages[index].stop &&
            (!state->leading || state->dropped == d->decoder->stages[index].start))
            return tell_text(d, index + 1, text, length);
        size_t size = mgl_utf8_size(*text);
        status = strip_character(d, index, state, text, size);
        text += size;
        length -= size;
    }
    return status;
}

static mgl_status tell(mgl_decoding *d, size_t index, event what, const char *text, size_t length)
{
    static mgl_status (*const kinds[])(mgl_decoding * d, size_t index, stage_state * state,
                                       event what, const char *text, size_t length) = {
        [MGL_DECODE_JOIN] = on_join,
        [MGL_DECODE_BYTE_LEVEL] = on_byte_level,
        [MGL_DECODE_METASPACE] = on_metaspace,
        [MGL_DECODE_REPLACE] = on_replace,
        [MGL_DECODE_BYTE_FALLBACK] = on_byte_fallback,
        [MGL_DECODE_FUSE] = on_fuse,
        [MGL_DECODE_STRIP] = on_strip};
    mgl_status status =
        mgl_growth_take(&d->growth, index, length, "decoder", d->decoder->file, d->err);
    if (status)
        return status;
    if (index == d->decoder->count) {
        if (what == TEXT && !d->prompt)
            mgl_text_append(d->out, text, length);
        d->prompt &= what != MARK;
        return MGL_OK;
    }
    return kinds[d->decoder->stages[index].kind](d, index, &d->states[index], what, text, length);
}

/* ---- decoding ------------------------------------------------------------------------------- */

static bool searches(const mgl_decoder *decoder)
{
    bool any = false;
    for (size_t i = 0; i < decoder->count; i++)
        any |= decoder->stages[i].pattern != NULL;
    return any;
}

mgl_status mgl_decoding_open(const mgl_decoder *decoder, mgl_decoding **out, mgl_error *err)
{
    *out = NULL;
    mgl_decoding *decoding = mgl_alloc_zero(1, sizeof *decoding);
    if (decoding) {
        decoding->decoder = decoder;
        decoding->count = decoder->count;
        decoding->states = mgl_alloc_zero(decoder->count, sizeof *decoding->states);
    }
    mgl_status status = decoding && decoding->states
                            ? mgl_growth_open(&decoding->growth, decoder->count + 1, err)
                            : mgl_fail_memory(err, decoder->count * sizeof *decoding->states);
    if (!status && searches(decoder))
        status = mgl_matcher_new(&decoding->matcher, err);
    if (status) {
        mgl_decoding_close(decoding);
        return status;
    }
    mgl_growth_begin(&decoding->growth);
    *out = decoding;
    return MGL_OK;
}

void mgl_decoding_begin_prompt(mgl_decoding *decoding)
{
    decoding->prompt = true;
}

mgl_status mgl_decoding_end_prompt(mgl_decoding *decoding, mgl_text *out, mgl_error *err)
{
    decoding->out = out;
    decoding->err = err;
    return tell(decoding, 0, MARK, NULL, 0);
}

mgl_status mgl_decoding_token(mgl_decoding *decoding, const char *token, size_t length,
                              mgl_text *out, mgl_error *err)
{
    decoding->out = out;
    decoding->err = err;
    mgl_growth_add(&decoding->growth, length + 1); /* counts at least one more byte, for a space
                                                    * before it */
    mgl_status status = tell_token(decoding, 0, token, length);
    return !status && out->failed ? mgl_fail_memory(err, length) : status;
}

mgl_status mgl_decoding_finish(mgl_decoding *decoding, mgl_text *out, mgl_error *err)
{
    decoding->out = out;
    decoding->err = err;
    mgl_status status = tell(decoding, 0, FINISH, NULL, 0);
    return !status && out->failed ? mgl_fail_memory(err, out->capacity) : status;
}

void mgl_decoding_close(mgl_decoding *decoding)
{
    if (!decoding)
        return;
    for (size_t i = 0; i < decoding->count && decoding->states; i++) {
        mgl_text_clear(&decoding->states[i].held);
        mgl_text_clear(&decoding->states[i].run);
    }
    mgl_free(decoding->states);
    mgl_matcher_free(decoding->matcher);
    mgl_growth_clear(&decoding->growth);
    mgl_free(decoding);
}
