/*
 * Declares the prompts of `run`: one prompt from its flags, or the list of --prompts, which is a
 * JSON array or JSON Lines (cli/generate/entries.h). One table states the flags of a reply. An
 * object in the list has the fields of this table as keys; flags apply to missing keys. A flag that
 * may be repeated is a text or an array of texts in JSON.
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

/* Options that `chat` has too. */
#define MGL_CLI_TALK_OPTIONS(X)                                                                    \
    X(int, max_tokens, "--max-tokens", "N", 1, 1 << 20,                                            \
      "largest number of new tokens (128; of chat: as many as the cache holds)")                   \
    X(real, temperature, "--temperature", "X", 0, 1000, "sample at this temperature; 0 is greedy") \
    X(int, top_k, "--top-k", "N", 0, INT32_MAX, "sample from the N most likely tokens; 0 is all")  \
    X(real, top_p, "--top-p", "X", 0, 1,                                                           \
      "sample from the most likely tokens whose probabilities sum to X; 0 is greedy")              \
    X(real, min_p, "--min-p", "X", 0, 1,                                                           \
      "leave out tokens below X times the probability of the likeliest; 0 is off")                 \
    X(real, repeat_penalty, "--repeat-penalty", "X", 0, 100,                                       \
      "tokens of prompt and reply: divide logits above 0 by X, multiply others; 1 is none")        \
    X(real, presence_penalty, "--presence-penalty", "X", -2, 2,                                    \
      "subtract X from the logits of tokens that occur in the reply")                              \
    X(real, frequency_penalty, "--frequency-penalty", "X", -2, 2,                                  \
      "subtract X for each time that a token occurs in the reply")                                 \
    X(int, seed, "--seed", "N", 0, INT64_MAX, "sample; the same seed gives the same tokens")       \
    X(list, stop, "--stop", "TEXT", 0, 0, "end before this text; up to 16 times")                  \
    X(flag, ignore_eos, "--ignore-eos", NULL, 0, 0, "continue after the end token")

#define MGL_CLI_REPLY_OPTIONS(X)                                                                   \
    MGL_CLI_TALK_OPTIONS(X)                                                                        \
    X(int, logprobs, "--logprobs", "N", 0, 20,                                                     \
      "with --json: log-probabilities of each new token and of the N likeliest; 0 is none")

/* The values of one reply. */
typedef struct mgl_cli_reply_options {
    MGL_CLI_REPLY_OPTIONS(MGL_CLI_FIELD)
} mgl_cli_reply_options;

typedef struct mgl_cli_prompt {
    /* (length) bytes, of mgl_cli_prompts or of argv; may contain 0 bytes. NULL: given as ids or
     * messages */
    const char *text;
    size_t length;
    mgl_cli_messages messages; /* empty: no conversation, or not made yet */
    char *rendered;            /* owned: the rendered conversation (rendered_length); or NULL */
    size_t rendered_length;
    mgl_ids ids; /* owned */
    mgl_cli_reply_options reply;
    bool sampled, drawn; /* the reply has a seed; the seed was drawn at random */
    uint64_t seed;
    mgl_json json;    /* owned: the text of an entry points into it */
    size_t number;    /* index in the array, or line */
    mgl_error *error; /* owned: why the entry has no reply; or NULL */
} mgl_cli_prompt;

/* Zero-initialize; release with mgl_cli_prompts_clear. */
typedef struct mgl_cli_prompts {
    mgl_cli_prompt *items; /* owned (count) */
    size_t count;
    const char *list; /* name of the file of --prompts; NULL: one prompt of the flags */
    bool lines;       /* the file is JSON Lines */
    char *file;       /* owned: the file's text; the text of --prompt-file points to it */
} mgl_cli_prompts;

/* Whether the flags ask for sampling. */
bool mgl_cli_reply_samples(const mgl_cli_reply_options *options);
/* Whether penalties are requested. mgl_cli_reply_check returns MGL_USAGE for unusable values. */
bool mgl_cli_reply_penalizes(const mgl_cli_reply_options *options);
mgl_status mgl_cli_reply_check(const mgl_cli_reply_options *options, mgl_error *err);
/* Whether temperature, top-k, top-p or min-p is given. */
bool mgl_cli_reply_shapes(const mgl_cli_reply_options *options);
/* Makes the library's request. `sample`: use the values of generation_config.json. `max_tokens`
 * applies if the prompt sets none. `tokenizer` is needed for stop strings, or may be NULL. */
mgl_request mgl_cli_prompt_request(const mgl_cli_prompt *prompt, const mgl_tokenizer *tokenizer,
                                   bool sample, int32_t max_tokens);

/* Makes one zeroed prompt, for the flags to fill. */
mgl_status mgl_cli_prompts_make(mgl_cli_prompts *out, mgl_error *err);
/* Reads a list of prompts. Errors of an entry: unknown keys, values outside the flags' ranges, and
 * not exactly one of text, ids and messages. A seed above 2^53 - 1 is rejected, because JSON
 * numbers cannot hold it exactly. `sample` and `json`: these flags are given; some keys exclude
 * --sample or need --json. */
mgl_status mgl_cli_prompts_read(const char *path, const mgl_cli_reply_options *flags, bool sample,
                                bool json, mgl_cli_prompts *out, mgl_error *err);
/* Name of an entry: "F.json: [2]", or "F.jsonl: line 3". */
void mgl_cli_prompt_name(const mgl_cli_prompts *prompts, size_t index, char *out, size_t size);
/* Handles the `status` of work on a prompt. Bad input of an entry becomes the error of the entry,
 * which begins with the entry's name; the result is MGL_OK. Otherwise the result is `status`. */
mgl_status mgl_cli_prompt_end(mgl_cli_prompts *prompts, size_t index, mgl_status status,
                              mgl_error *err);
/* Handles the `status` of work on a key of an entry, as mgl_cli_prompt_end does. */
mgl_status mgl_cli_prompt_end_key(mgl_cli_prompts *prompts, size_t index, const char *key,
                                  mgl_status status, mgl_error *err);
/* How prompts are converted to conversations. */
typedef struct mgl_cli_prompts_conversation {
    bool chat;            /* a text becomes the message of a user */
    const char *system;   /* the first message; or NULL */
    const char *messages; /* the conversation's file; or NULL */
    const mgl_cli_template_options *flags;
} mgl_cli_prompts_conversation;
/* Renders the prompts that are conversations with the chat template of the model at `path`. */
mgl_status mgl_cli_prompts_render(mgl_cli_prompts *prompts, const char *path,
                                  const mgl_cli_prompts_conversation *how, mgl_error *err);
/* Opens the tokenizer of the model at `path` and encodes the texts. *out stays NULL for a model
 * without a tokenizer. */
mgl_status mgl_cli_prompts_tokenize(mgl_cli_prompts *prompts, const char *path, mgl_tokenizer **out,
                                    mgl_error *err);
/* The number of entries with an error. */
size_t mgl_cli_prompts_count_errors(const mgl_cli_prompts *prompts);
/* Reads a list of texts. An entry is a text, or an object with text or ids. The first bad entry is
 * an error. */
mgl_status mgl_cli_texts_read(const char *path, mgl_cli_prompts *out, mgl_error *err);
/* Chooses the seed of a sampled reply: the given seed, or a random seed that any JSON reader can
 * represent. */
mgl_status mgl_cli_prompt_choose_seed(mgl_cli_prompt *prompt, bool sampled, mgl_error *err);
void mgl_cli_prompts_clear(mgl_cli_prompts *prompts);

#endif
