/*
 * The prompts of `run`: the one prompt of its flags, or the list of --prompts, a JSON array or JSON
 * Lines (cli/generate/entries.h). The flags of one table state how a reply is made. An object in
 * the list has the same table as keys, named like the fields; the flags apply where a key is
 * missing. A flag that makes a list has one text or an array of them for a key.
 *
 *     ["Once", {"text": "Once", "temperature": 0.8, "seed": 7}, {"ids": [1, 2], "max_tokens": 9},
 *      {"messages": [{"role": "user", "content": "Once"}]}]
 *
 * An entry that cannot be used keeps its error, and the others run.
 */
#ifndef MGL_CLI_GENERATE_PROMPTS_H
#define MGL_CLI_GENERATE_PROMPTS_H

#include "base/json.h"
#include "cli/generate/conversation.h"

/* Those that a conversation has too. */
#define MGL_CLI_TALK_OPTIONS(X)                                                                    \
    X(int, max_tokens, "--max-tokens", "N", 1, 1 << 20,                                            \
      "new tokens at most (128; of chat, as many as the cache holds)")                             \
    X(real, temperature, "--temperature", "X", 0, 1000, "sample at this temperature; 0 is greedy") \
    X(int, top_k, "--top-k", "N", 0, INT32_MAX, "sample from the N likeliest tokens; 0 is all")    \
    X(real, top_p, "--top-p", "X", 0, 1,                                                           \
      "sample from the likeliest tokens that sum to X; 0 is the likeliest")                        \
    X(real, min_p, "--min-p", "X", 0, 1,                                                           \
      "leave out tokens below X times the likeliest; 0 is none")                                   \
    X(real, repeat_penalty, "--repeat-penalty", "X", 0, 100,                                       \
      "tokens of prompt and reply: divide logits above 0 by X, multiply others; 1 is none")        \
    X(real, presence_penalty, "--presence-penalty", "X", -2, 2,                                    \
      "take X from the logits of tokens that the reply has")                                       \
    X(real, frequency_penalty, "--frequency-penalty", "X", -2, 2,                                  \
      "take X from them as often as the reply has the token")                                      \
    X(int, seed, "--seed", "N", 0, INT64_MAX, "sample; the same seed gives the same tokens")       \
    X(list, stop, "--stop", "TEXT", 0, 0, "end before this text; may stand up to 16 times")        \
    X(flag, ignore_eos, "--ignore-eos", NULL, 0, 0, "go on behind the end token")

#define MGL_CLI_REPLY_OPTIONS(X)                                                                   \
    MGL_CLI_TALK_OPTIONS(X)                                                                        \
    X(int, logprobs, "--logprobs", "N", 0, 20,                                                     \
      "with --json: log-probabilities of each new token and of the N likeliest; 0 is none")

/* The values of one reply. */
typedef struct mgl_cli_reply_options {
    MGL_CLI_REPLY_OPTIONS(MGL_CLI_FIELD)
} mgl_cli_reply_options;

typedef struct mgl_cli_prompt {
    const char *text; /* (length) bytes, of mgl_cli_prompts or of argv; they may hold 0 bytes. NULL:
                         it is given as ids or messages */
    size_t length;
    mgl_cli_messages messages; /* none: it is no conversation, or not yet */
    char *rendered;            /* owned: a conversation as text (rendered_length); or NULL */
    size_t rendered_length;
    mgl_ids ids; /* owned */
    mgl_cli_reply_options reply;
    bool sampled, drawn; /* it has a seed; nobody gave one */
    uint64_t seed;
    mgl_json json;    /* owned: what the text of an entry points into */
    size_t number;    /* of an entry: index in the array, or line */
    mgl_error *error; /* owned: why the entry has no reply; or NULL */
} mgl_cli_prompt;

/* Zero-initialise; release with mgl_cli_prompts_clear. */
typedef struct mgl_cli_prompts {
    mgl_cli_prompt *items; /* owned (count) */
    size_t count;
    const char *list; /* name of the file of --prompts; NULL: one prompt of the flags */
    bool lines;       /* the file is JSON Lines */
    char *file;       /* owned: the file's text; the text of --prompt-file points to it */
} mgl_cli_prompts;

/* Does it ask for a sample by its flags? */
bool mgl_cli_reply_samples(const mgl_cli_reply_options *options);
/* Does it ask for penalties? One that can not be used: MGL_USAGE. */
bool mgl_cli_reply_penalizes(const mgl_cli_reply_options *options);
mgl_status mgl_cli_reply_check(const mgl_cli_reply_options *options, mgl_error *err);
/* Does it have temperature, top-k, top-p or min-p? */
bool mgl_cli_reply_shapes(const mgl_cli_reply_options *options);
/* What the library is asked for. `sample`: by generation_config.json's values; `max_tokens`: where
 * it states none; `tokenizer`: of its stop texts, may be NULL without. */
mgl_request mgl_cli_prompt_request(const mgl_cli_prompt *prompt, const mgl_tokenizer *tokenizer,
                                   bool sample, int32_t max_tokens);

/* One prompt, all zero, for the flags to fill. */
mgl_status mgl_cli_prompts_make(mgl_cli_prompts *out, mgl_error *err);
/* Reads a list of prompts. Errors of an entry: unknown keys, values that the flags would not take,
 * not exactly one of text, ids and messages. A seed above 2^53 - 1 is no JSON number. `sample` and
 * `json`: the flags of these names are given, and some keys go only without or with them. */
mgl_status mgl_cli_prompts_read(const char *path, const mgl_cli_reply_options *flags, bool sample,
                                bool json, mgl_cli_prompts *out, mgl_error *err);
/* Name of an entry: "F.json: [2]", or "F.jsonl: line 3". */
void mgl_cli_prompt_name(const mgl_cli_prompts *prompts, size_t index, char *out, size_t size);
/* Handles the `status` of work on a prompt. Bad input of an entry becomes the error of the entry,
 * which begins with the entry's name; the result is MGL_OK. Otherwise the result is `status`. */
mgl_status mgl_cli_prompt_end(mgl_cli_prompts *prompts, size_t index, mgl_status status,
                              mgl_error *err);
/* The same for an error in this key. */
mgl_status mgl_cli_prompt_end_key(mgl_cli_prompts *prompts, size_t index, const char *key,
                                  mgl_status status, mgl_error *err);
/* How prompts become conversations. */
typedef struct mgl_cli_prompts_conversation {
    bool chat;            /* a text becomes the message of a user */
    const char *system;   /* the message in front of others; or NULL */
    const char *messages; /* name of the file that a conversation came from; or NULL */
    const mgl_cli_template_options *flags;
} mgl_cli_prompts_conversation;
/* Renders the prompts that are conversations with the chat template of the model at `path`. */
mgl_status mgl_cli_prompts_render(mgl_cli_prompts *prompts, const char *path,
                                  const mgl_cli_prompts_conversation *how, mgl_error *err);
/* Opens the tokenizer of the model at `path` and encodes the texts. *out stays NULL for a model
 * without a tokenizer. */
mgl_status mgl_cli_prompts_tokenize(mgl_cli_prompts *prompts, const char *path, mgl_tokenizer **out,
                                    mgl_error *err);
/* Entries with an error. */
size_t mgl_cli_prompts_count_errors(const mgl_cli_prompts *prompts);
/* Reads a list of texts: of entries that are a text, or an object with text or ids. The first bad
 * entry is an error. */
mgl_status mgl_cli_texts_read(const char *path, mgl_cli_prompts *out, mgl_error *err);
/* The seed of a reply that is sampled: the one given, else one that is drawn, and that any JSON can
 * carry. */
mgl_status mgl_cli_prompt_choose_seed(mgl_cli_prompt *prompt, bool sampled, mgl_error *err);
void mgl_cli_prompts_clear(mgl_cli_prompts *prompts);

#endif
