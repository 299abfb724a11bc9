/*
 * Megalith: a reply of a Llama-family language model from one kernel launch.
 *
 *     mgl_error err;
 *     mgl_tokenizer *tok = NULL;
 *     mgl_model *model = NULL;
 *     mgl_ids prompt = {0};
 *     mgl_open_options options = {.size = sizeof options, .capacity = 256};
 *     mgl_request request = {.size = sizeof request, .max_tokens = 64};
 *     mgl_result result = {.size = sizeof result};
 *     mgl_status status = mgl_tokenizer_open("tales-5m", &tok, &err);
 *     if (!status)
 *         status = mgl_tokenizer_encode(tok, "Once there was", 14, true, &prompt, &err);
 *     request.prompt = prompt.ids;
 *     request.prompt_count = prompt.count;
 *     if (!status)
 *         status = mgl_model_open("tales-5m", &options, &model, &err);
 *     if (!status)
 *         status = mgl_model_generate(model, &request, NULL, NULL, &result, &err);
 *     if (status)
 *         fprintf(stderr, "%s: %s\n", err.where, err.message);
 *     mgl_result_clear(&result);
 *     mgl_model_close(model);
 *     mgl_ids_clear(&prompt);
 *     mgl_tokenizer_close(tok);
 *
 * A model is lowered into a schedule, the one program that a launch runs. A plan is a schedule in
 * the hand: it can be read and written as text, checked, priced and, as a file, run (the field
 * `schedule` of mgl_open_options). mgl_autotune searches for a faster one.
 *
 * Ownership: whatever a function hands out through a pointer to a pointer, or into a mgl_ids or
 * another struct, belongs to the caller and is released by the function that the comment names. A
 * function that fails sets such a pointer to NULL. Nothing here exits, prints or reads the
 * environment, but for what a comment states.
 *
 * NULL: an argument that must not be NULL and is, an object or a place for what is handed out, is
 * MGL_USAGE; functions without a status do nothing then. Comments say what may be NULL; `err` may.
 *
 * Structs with a field `size`: set it to the sizeof of the struct, and the rest to zero but for
 * what you want otherwise. It tells the library which version of the struct a program was built
 * with: one of an older header leaves the fields it does not know at their defaults, one of a newer
 * header is rejected (MGL_USAGE) where it sets a field that the library does not know. A size of 0
 * is MGL_USAGE. mgl_error, mgl_ids and mgl_plan_diagnostic never change and have no size.
 *
 * Threads: different objects are used by different threads at will. A tokenizer is not changed
 * by encoding or decoding: any number of threads may use one at a time. A detokenizer, a model
 * and a plan are used by one thread at a time, and a tokenizer outlives its detokenizers.
 * mgl_model_cancel and mgl_cancel_set may be called from any thread and any signal handler.
 */
#ifndef MEGALITH_H
#define MEGALITH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define MGL_API __attribute__((visibility("default")))
#else
#define MGL_API
#endif

/* What a fallible function returns; also the exit code of the command line where it is below 7. */
typedef enum mgl_status {
    MGL_OK = 0,
    MGL_USAGE = 1,        /* a call or a flag that makes no sense */
    MGL_BAD_INPUT = 2,    /* model, file or text that cannot be used */
    MGL_REJECTED = 3,     /* the validator rejected the schedule */
    MGL_DEVICE = 4,       /* no device, too little device memory, a driver's error */
    MGL_WATCHDOG = 5,     /* the kernel was stopped at its deadline */
    MGL_GATE = 6,         /* a check failed: wrong results, changed frozen files, no gain */
    MGL_NO_MEMORY = 7,    /* host memory ran out */
    MGL_SYSTEM = 8,       /* a call to the operating system failed */
    MGL_INTERRUPTED = 130 /* the switch of the call was set: see mgl_cancel */
} mgl_status;

/* Filled by every fallible function that fails; untouched by those that succeed. */
typedef struct mgl_error {
    mgl_status code;
    char where[256];    /* file, file:line:column, tensor or key; may be empty */
    char message[1600]; /* one sentence that says what is wrong and what to do; may hold newlines
                           where a source line and a caret follow it */
} mgl_error;

/* Token ids. Zero-initialise; release with mgl_ids_clear. */
typedef struct mgl_ids {
    int32_t *ids; /* (count) */
    size_t count;
} mgl_ids;
MGL_API void mgl_ids_clear(mgl_ids *ids); /* NULL is fine */

MGL_API const char *mgl_version(void); /* of the library, "major.minor.patch". Static storage */

/* ---- tokenizer ------------------------------------------------------------------------------ */

typedef struct mgl_tokenizer mgl_tokenizer;
typedef struct mgl_detokenizer mgl_detokenizer; /* streaming state: whole UTF-8 characters only */

/* Opens a folder with tokenizer.json and its companions, that file alone, or a compiled model. */
MGL_API mgl_status mgl_tokenizer_open(const char *path, mgl_tokenizer **out, mgl_error *err);
MGL_API void mgl_tokenizer_close(mgl_tokenizer *tokenizer); /* NULL is fine */

/* Encodes `length` bytes of UTF-8 (invalid bytes become U+FFFD, as in Hugging Face's tokenizers).
 * `special` adds the tokenizer's own special tokens (its post-processor). A step that makes more
 * than 64 KiB and 32 times the bytes of the text is MGL_BAD_INPUT, also in decoding; so is a token
 * beyond vocab_size of config.json. 2 MB are kept for each thread that encodes at the same time. */
MGL_API mgl_status mgl_tokenizer_encode(const mgl_tokenizer *tokenizer, const char *text,
                                        size_t length, bool special, mgl_ids *out, mgl_error *err);

/* Is the id within the vocabulary, 0 to the last id that a token has? A model can have more ids
 * than its tokenizer, if its tables were filled up; they have no text. */
MGL_API bool mgl_tokenizer_knows(const mgl_tokenizer *tokenizer, int32_t id);

/* The size of the vocabulary: the last id that a token has, and one; mgl_model_facts has that of a
 * model's tables. 0 for NULL. */
MGL_API size_t mgl_tokenizer_size(const mgl_tokenizer *tokenizer);

/* The bytes (*length) that a token adds in the middle of a text, with a trailing 0: maybe parts of
 * characters, maybe zeros. A special token has its own text, an id within the vocabulary without a
 * token has none (""). An id outside the vocabulary is MGL_BAD_INPUT. Release *out with
 * mgl_text_free. `length` may be NULL. */
MGL_API mgl_status mgl_tokenizer_token(const mgl_tokenizer *tokenizer, int32_t id, char **out,
                                       size_t *length, mgl_error *err);

/* The inverse: *out is the lowest id whose token has exactly these bytes (length), or -1. (Encoding
 * splits a text first, and can give other tokens.) All tokens are compared, which takes
 * milliseconds: to find many, make a table with mgl_tokenizer_token. */
MGL_API mgl_status mgl_tokenizer_find(const mgl_tokenizer *tokenizer, const char *bytes,
                                      size_t length, int32_t *out, mgl_error *err);

/* Decodes ids to UTF-8 with a trailing 0, without special tokens if `skip_special`. An id outside
 * the vocabulary is MGL_BAD_INPUT. Release *out with mgl_text_free. `length` may be NULL. */
MGL_API mgl_status mgl_tokenizer_decode(const mgl_tokenizer *tokenizer, const int32_t *ids,
                                        size_t count, bool skip_special, char **out, size_t *length,
                                        mgl_error *err);
MGL_API void mgl_text_free(char *text); /* NULL is fine */

/* The streaming decoder, token by token: *text (length bytes of whole UTF-8 characters, owned by
 * the detokenizer, valid until its next call) is what became certain with this id, maybe "". A part
 * of a character is held back, and becomes U+FFFD if the rest never comes. mgl_detokenizer_finish
 * returns the rest; then the stream can only be closed. The pieces of a sequence
 * concatenate to its decode. `length` may be NULL. A stream that failed must be closed, but
 * an id outside the vocabulary (MGL_BAD_INPUT) changes nothing. Release *out with
 * mgl_detokenizer_close. */
MGL_API mgl_status mgl_detokenizer_open(const mgl_tokenizer *tokenizer, bool skip_special,
                                        mgl_detokenizer **out, mgl_error *err);
MGL_API mgl_status mgl_detokenizer_next(mgl_detokenizer *stream, int32_t id, const char **text,
                                        size_t *length, mgl_error *err);
MGL_API mgl_status mgl_detokenizer_finish(mgl_detokenizer *stream, const char **text,
                                          size_t *length, mgl_error *err);
MGL_API void mgl_detokenizer_close(mgl_detokenizer *stream); /* NULL is fine */

/* Has a stream, before its first token, go on behind a prompt (count ids), as a reply does: its
 * pieces concatenate to the decode of both without the decode of the prompt, so a space between the
 * two is kept. A character that the prompt leaves incomplete is dropped. Ids without a token
 * have no text. */
MGL_API mgl_status mgl_detokenizer_prime(mgl_detokenizer *stream, const int32_t *ids, size_t count,
                                         mgl_error *err);

/* Has a stream, before its first token, end before the first of these texts (count), wherever
 * tokens begin and end: what may be the beginning of one is held back. Of several, the one that is
 * whole first counts; of those the longest. A text that is empty or no UTF-8 is MGL_BAD_INPUT. The
 * texts are not kept. */
MGL_API mgl_status mgl_detokenizer_set_stops(mgl_detokenizer *stream, const char *const *stops,
                                             size_t count, mgl_error *err);
MGL_API bool mgl_detokenizer_is_stopped(const mgl_detokenizer *stream); /* it has ended so */

/* ---- conversations -------------------------------------------------------------------------- */

/* The chat templates of a model: they make of a conversation the text of a prompt. Rendering does
 * not change them: any number of threads may use one at a time. */
typedef struct mgl_chat_template mgl_chat_template;

/* Opens the chat templates of the model at `path`, a folder, a compiled model, or org/name in the
 * local Hugging Face cache: of a folder, chat_template.jinja and
 * additional_chat_templates/NAME.jinja, else the key chat_template of tokenizer_config.json, whose
 * special tokens they have. `file`: NULL, or the path of a template that takes the place of the
 * model's `default`. A model without a template is MGL_BAD_INPUT; so is a template that cannot be
 * read, then or when it is rendered, with file:line:column in err->where and the line in
 * err->message. Release *out with mgl_chat_template_close. */
MGL_API mgl_status mgl_chat_template_open(const char *path, const char *file,
                                          mgl_chat_template **out, mgl_error *err);
MGL_API void mgl_chat_template_close(mgl_chat_template *chat); /* NULL is fine */

/* A conversation; zero means the default of each field. Texts are JSON, with a 0 behind them, and
 * are not kept. */
typedef struct mgl_conversation {
    size_t size;               /* sizeof(mgl_conversation) */
    const char *messages;      /* an array of objects with role and content: at least one */
    const char *tools;         /* an array of objects, as Hugging Face takes them; or NULL */
    const char *args;          /* an object of further variables for the template; or NULL */
    const char *messages_name; /* what errors call the messages; NULL: "messages" */
    const char *tools_name;    /* likewise */
    bool no_generation_prompt; /* leave out what begins the assistant's reply */
    const char *template_name; /* of a model that has several templates, the one to take; NULL:
                                  tool_use, with tools and where there is one, else default */
} mgl_conversation;

/* Appends {"role": role, "content": text} to *messages, the JSON array of a conversation, or NULL
 * for a new one; the text (length bytes) is UTF-8, as mgl_tokenizer_encode takes it. Release the
 * new array with mgl_text_free; the old one is released. A failure leaves it as it is; an array
 * that is none is MGL_BAD_INPUT. */
MGL_API mgl_status mgl_messages_add(char **messages, const char *role, const char *text,
                                    size_t length, mgl_error *err);

/* Renders a conversation as Hugging Face's apply_chat_template does, with a 0 behind the text. It
 * is to be encoded without the tokenizer's own special tokens: what there has to be of those is in
 * the text. A template that takes too much time, memory or depth, and one that rejects the
 * conversation, is MGL_BAD_INPUT. The time that a template asks for is the environment's
 * SOURCE_DATE_EPOCH, in UTC, or now. Release *out with mgl_text_free. *length may be NULL. */
MGL_API mgl_status mgl_chat_template_render(const mgl_chat_template *chat,
                                            const mgl_conversation *conversation, char **out,
                                            size_t *length, mgl_error *err);

/* The same as ids of a prompt: rendered, then encoded. *out is as mgl_tokenizer_encode fills it. */
MGL_API mgl_status mgl_chat_template_encode(const mgl_chat_template *chat,
                                            const mgl_tokenizer *tokenizer,
                                            const mgl_conversation *conversation, mgl_ids *out,
                                            mgl_error *err);

/* ---- ending early ---------------------------------------------------------------------------- */

/* A switch that the caller owns. A call that has the switch (opening, compiling, a reply) ends soon
 * after the switch is set. Until the switch is reset, further calls end at once, so a switch that
 * is set before a call begins is not lost. One switch may serve many models. A call of the GPU's
 * driver cannot be ended; opening ends behind it. NVRTC, which compiles the kernel, cannot be ended
 * either: it is left behind on a thread of its own, whose result the cache keeps, and a process
 * that exits meanwhile waits for that thread. */
typedef struct mgl_cancel mgl_cancel;
MGL_API mgl_status mgl_cancel_new(mgl_cancel **out,
                                  mgl_error *err); /* release with mgl_cancel_free */
MGL_API void mgl_cancel_free(mgl_cancel *cancel);  /* NULL is fine */
MGL_API void mgl_cancel_set(mgl_cancel *cancel);   /* from any thread and from a signal handler */
MGL_API void mgl_cancel_reset(mgl_cancel *cancel);
MGL_API bool mgl_cancel_is_set(const mgl_cancel *cancel);

/* ---- progress -------------------------------------------------------------------------------- */

/* What takes its time. */
typedef enum mgl_stage {
    MGL_STAGE_WEIGHTS, /* packed, uploaded or written; counted in bytes */
    MGL_STAGE_KERNEL,  /* compiled; counted in milliseconds. Before its end total is 0: nobody knows
                          how long it takes. Nothing is told of one that is there at once */
    MGL_STAGE_PROMPT   /* read; counted in tokens */
} mgl_stage;

/* Called now and then on the calling thread, and with done == total when a stage ends. */
typedef void mgl_stage_fn(void *user, mgl_stage stage, uint64_t done, uint64_t total);

/* ---- model ---------------------------------------------------------------------------------- */

typedef struct mgl_model mgl_model;

/* Replies of one launch of a program with two task lists, which a ScheduleConfig with the knob
 * `second_rows` asks for. Without a second list there are 16. */
enum { MGL_MAX_BATCH = 64 };

/* How to open a model; zero means the default of each field. Strings are not kept. */
typedef struct mgl_open_options {
    size_t size;            /* sizeof(mgl_open_options) */
    const char *device;     /* "auto" (default), "cpu", "cuda" or "cuda:1" */
    const char *dtype;      /* "auto" (the file's on a GPU, f32 on a CPU), "f32", "bf16", "f16" */
    const char *config;     /* path of a ScheduleConfig, or NULL */
    const char *schedule;   /* path of a schedule text that replaces the lowered one, or NULL; it
                             states dtype and capacity: these and config cannot be given then */
    int32_t capacity;       /* KV positions a sequence; 0: min(wanted, max_position_embeddings) */
    int32_t wanted;         /* positions that the longest reply would fill; 0: 4,096 */
    int32_t deadline_ms;    /* watchdog of a GPU launch: longest wait for one edge; 0: 2,000 */
    int32_t sequences;      /* replies that one launch can make, each with its own KV cache: up to
                             MGL_MAX_BATCH, and no more than config or schedule allow; 0: 1 */
    mgl_cancel *cancel;     /* outlives the model. Ends opening (MGL_INTERRUPTED) and replies; NULL:
                             none */
    mgl_stage_fn *on_stage; /* of opening and of prompts; may be NULL */
    void *stage_user;       /* for on_stage */
    int32_t threads;  /* of a CPU, that compute; 0: one a processor that the process may use. No bit
                         of a reply depends on them */
    bool verify;      /* look at the checksums of a compiled model's weights first, which a CPU uses
                         where they are mapped; a GPU's are always looked at on their way there */
    int32_t no_tuned; /* not 0: lower by default, even where there is a tuned entry */
    int64_t strict_formats; /* not 0: MGL_REJECTED where weights, activations or the cache have a
                               format that cannot hold each number of the checkpoint's */
    int64_t penalties; /* 1: requests may have penalties, for which tokens are counted; 2: where
                          generation_config.json has a repetition_penalty. A schedule or a compiled
                          model that was made without is rejected then */
    int64_t prompt;    /* tokens of the longest prompt of a single reply, or about so many; 0: few.
                          If that saves enough time, the program gets a second task list, which
                          reads up to 128 at once. Each token of the reply takes 2 to 8 % longer
                          beside it, so a reply that is much longer gets none */
    int64_t fewer;     /* not 0: fewer sequences, if config, schedule or memory allow no more */
} mgl_open_options;

/* What was opened. Strings belong to the model. */
typedef struct mgl_model_facts {
    size_t size;        /* sizeof(mgl_model_facts): set it before the call */
    const char *device; /* "cpu" or the GPU's name */
    const char *dtype;  /* "f32", "bf16", "f16" */
    int32_t vocab, max_positions, capacity, queues;
    /* Seconds of mgl_model_open, which are the sum of the next three. */
    double load_s;    /* all but the two below */
    double compile_s; /* waiting for the kernel when everything else was done */
    double driver_s;  /* starting the GPU's driver and opening its context */
    /* Parts of load_s: files to a program; the validator; weights to where they are used. */
    double import_s, check_s, weights_s;
    double kernel_s;       /* compiling the kernel and loading it: goes on beside the weights */
    uint64_t weight_bytes; /* on the device; of a CPU, of the program */
    /* Of a CPU; NULL and 0 of a GPU. */
    const char *instructions; /* that products are computed with: "avx512", "avx2", "neon" or
                                  "plain" C. Bits may differ between the last and the others */
    int32_t threads;          /* that compute */
    uint64_t memory_bytes;    /* of the process for weights: none for those that are mapped */
    uint64_t cache_bytes;     /* for keys and values, taken as they are written */
    uint64_t scratch_bytes;   /* for everything else */
    const char *tuned;        /* name of the tuned entry that it was lowered with; or NULL */
    const char *note;         /* tuned entries that were left out, and why, one a line; or NULL */
    int64_t sequences;        /* replies that one launch can make */
} mgl_model_facts;

/* Imports, lowers, validates and loads the checkpoint at `path` (a folder in Hugging Face layout,
 * or org/name or org/name@revision in the local Hugging Face cache, found by HF_HUB_CACHE, HF_HOME
 * or ~/.cache). `options` may be NULL for the defaults. Release *out with mgl_model_close.
 * A compiled model is not lowered any more: a config or schedule, a dtype other than its own and a
 * capacity above its own are MGL_USAGE. A lower capacity limits the positions of replies.
 * Without config and schedule, a tuned entry for this model, device, number of sequences and
 * capacity takes the place of the defaults: one of XDG_DATA_HOME/megalith/tuned, else
 * ~/.local/share, or one that came with the library. It is there for its speed; sums may be taken
 * in another order, so that the last bits of logits may differ. One that cannot be used is left
 * out. A GPU's kernel is kept in MEGALITH_CACHE, else XDG_CACHE_HOME/megalith, else
 * ~/.cache/megalith. A schedule that the validator rejects is MGL_REJECTED and nothing is launched.
 */
MGL_API mgl_status mgl_model_open(const char *path, const mgl_open_options *options,
                                  mgl_model **out, mgl_error *err);
MGL_API void mgl_model_close(mgl_model *model); /* NULL is fine */
MGL_API mgl_status mgl_model_get_facts(const mgl_model *model, mgl_model_facts *out,
                                       mgl_error *err);

/* The ids that end a reply: those of generation_config.json and config.json, and for a chat that of
 * eos_token in tokenizer_config.json. *out is as mgl_tokenizer_encode fills it. */
MGL_API mgl_status mgl_model_get_end_ids(const mgl_model *model, mgl_ids *out, mgl_error *err);
MGL_API mgl_status mgl_model_get_chat_end_ids(mgl_model *model, const mgl_tokenizer *tokenizer,
                                              mgl_ids *out, mgl_error *err);

enum { MGL_MAX_LOGPROBS = 20 };

/* How likely a new token was: natural logarithms of what the model makes of it, before temperature
 * and whatever else chooses. */
typedef struct mgl_likelihood {
    size_t size; /* sizeof(mgl_likelihood) of the library */
    int32_t token;
    float logprob;
    const int32_t *top_ids; /* (top_count) the likeliest in its place, in order; of equal ones the
                               lowest id first. Valid during the call */
    const float *top_logprobs; /* (top_count) of those */
    size_t top_count;
} mgl_likelihood;

/* Called before the token is given to the callback of the reply, with the index of its request. */
typedef void mgl_likelihood_fn(void *user, size_t reply, const mgl_likelihood *likelihood);

/* One reply. temperature 0 is greedy; otherwise temperature, then top-k (0: off), then top-p (0 or
 * 1: off; 1e-30: the most likely token), then min-p (0: off); ties go to the lowest id; the same
 * seed gives the same tokens on a device. Penalties come before all of these, and change what is
 * greedy too. */
typedef struct mgl_request {
    size_t size;           /* sizeof(mgl_request) */
    const int32_t *prompt; /* (prompt_count), at least one token */
    size_t prompt_count;
    int32_t max_tokens; /* at least 1; new tokens end at the capacity at the latest */
    float temperature;
    int32_t top_k;
    float top_p;
    uint64_t seed;
    bool ignore_eos;
    bool sample;          /* use generation_config.json's values in place of the three above */
    int64_t reuse_prefix; /* 1: tokens that the prompt begins with, and that the model's cache holds
                             from its replies before, are not read again. Of a batch: from the reply
                             in the same place. On a CPU in f32 the default schedule's tokens are
                             those of a fresh start. In 16 bits, with splits of attention, or with
                             gamma-scaled values a sum may be taken in another order, which changes
                             a token where two are nearly equally likely */
    const mgl_tokenizer *tokenizer; /* for the texts below and `chat`; else it may be NULL */
    const char *const *stops;       /* (stop_count) texts that end the reply, found in its text as
                                       by mgl_detokenizer_set_stops behind the prompt. The last
                                       token completes such a text; to get the text before it,
                                       decode with the same prompt and stops */
    size_t stop_count;
    double min_p; /* behind top-p: tokens less likely than this times the likeliest are left out; 0:
                     off */
    int64_t logprobs; /* 1 to MGL_MAX_LOGPROBS: how likely each new token is, and so many of the
                         likeliest in its place, come with the result; 0: nothing */
    mgl_likelihood_fn *on_likelihood; /* of each new token, with logprobs; may be NULL */
    void *likelihood_user;            /* for on_likelihood */
    /* Penalties on tokens that are there already; 0: off. The model has to be opened with them. */
    double repeat_penalty;    /* 0.01 to 100, 1: off. Of a token in prompt or output, once: a logit
                                 below 0 is multiplied by it, another divided (Hugging Face's
                                 repetition_penalty, which `sample` takes where this is 0) */
    double presence_penalty;  /* -2 to 2. Subtracted where the output has the token, */
    double frequency_penalty; /* -2 to 2. and this as often as it has (OpenAI's) */
    int64_t prompt_logprobs;  /* not 0: the result has the log-probabilities of the prompt, which is
                                 scored first, in a launch of its own */
    int64_t chat;             /* not 0: a chat template made the prompt. The reply also ends at
                                 the ids of mgl_model_get_chat_end_ids. Needs `tokenizer` */
} mgl_request;

typedef enum mgl_stop {
    MGL_STOP_EOS,
    MGL_STOP_LENGTH,
    MGL_STOP_INTERRUPTED,
    MGL_STOP_TEXT /* one of the request's stops */
} mgl_stop;

/* Zero but for the size; release with mgl_result_clear, which leaves the size. A result may be used
 * again: what it holds is released then. Times in seconds. */
typedef struct mgl_result {
    size_t size;    /* sizeof(mgl_result): set it before the call */
    mgl_ids output; /* new tokens only, the end token included */
    mgl_stop stop;
    int32_t launches; /* kernel launches of this reply, 1 by design, and one more where a prompt is
                         scored; on the CPU: runs of the VM.
                         The replies of a batch share it, and the two times */
    double prefill_s; /* to the first token; of a batch: of any reply */
    double decode_s;  /* from the first token to the last; of a batch: of all replies */
    int64_t reused;   /* tokens of the prompt that were not read again (reuse_prefix) */
    /* With the request's logprobs, else NULL and 0: as in mgl_likelihood. */
    float *logprobs;        /* (output.count) of each token */
    int32_t *top_ids;       /* (output.count, top_count) the likeliest in its place, in order; of
                               equal ones the lowest id first */
    float *top_logprobs;    /* (output.count, top_count) of those */
    size_t top_count;       /* as many as were asked for, at most the vocabulary's */
    float *prompt_logprobs; /* (prompt_count) with the request's prompt_logprobs, else NULL; of
                               the first token, which stands behind nothing, 0 */
    size_t prompt_logprob_count; /* prompt_count, or 0 */
} mgl_result;
MGL_API void mgl_result_clear(mgl_result *result); /* NULL is fine */

/* Called for each token, on the thread of mgl_model_generate. Returns false to stop the reply. */
typedef bool mgl_token_fn(void *user, int32_t token);

/* Generates one reply in one launch. `on_token` may be NULL. Interrupted: MGL_OK with stop
 * MGL_STOP_INTERRUPTED and the tokens so far, none where the model's switch was set before. A
 * prompt that fills or exceeds the capacity is MGL_BAD_INPUT, and so are weights that lead to
 * logits that are NaN or infinite: no token is made of those, and err->message has the position. */
MGL_API mgl_status mgl_model_generate(mgl_model *model, const mgl_request *request,
                                      mgl_token_fn *on_token, void *user, mgl_result *out,
                                      mgl_error *err);

/* Text of a reply as it becomes certain: `length` bytes of whole UTF-8 characters, valid during the
 * call. Returns false to stop the reply, and is not called again then. */
typedef bool mgl_text_fn(void *user, const char *text, size_t length);

/* mgl_model_generate, for whoever wants text: special tokens are left out, and so are ids that the
 * tokenizer does not know. The pieces concatenate to the text that mgl_detokenizer_prime describes,
 * up to the request's stop texts. `on_text` may be NULL. */
MGL_API mgl_status mgl_model_generate_text(mgl_model *model, const mgl_tokenizer *tokenizer,
                                           const mgl_request *request, mgl_text_fn *on_text,
                                           void *user, mgl_result *out, mgl_error *err);

/* As mgl_token_fn, for request `reply`. Returns false to stop all replies. */
typedef bool mgl_batch_token_fn(void *user, size_t reply, int32_t token);

/* Generates `count` replies in one launch, 1 to mgl_open_options.sequences of them. Each has its
 * own prompt, length, end and sampling, and the draws of its seed are those of the same request
 * alone. requests (count) and out (count): all of an array have the size of its first, which is
 * also the distance from one to the next. A rejected request rejects the batch; err->where
 * then begins with "requests[i]: ". Interrupted: MGL_OK, with MGL_STOP_INTERRUPTED for those
 * replies that had not ended. */
MGL_API mgl_status mgl_model_generate_batch(mgl_model *model, const mgl_request *requests,
                                            size_t count, mgl_batch_token_fn *on_token, void *user,
                                            mgl_result *out, mgl_error *err);

/* Asks the replies in progress to end at their next token, from any thread or signal handler: sets
 * the model's switch. A model that was opened without one forgets it when its next reply begins. */
MGL_API void mgl_model_cancel(mgl_model *model);

/* Teacher-forced log-probabilities: logprob[i] (natural logarithm) of ids[i] given ids[0..i-1],
 * for i in 1..count-1; logprob[0] is 0. MGL_BAD_INPUT where one is not a number; MGL_INTERRUPTED
 * when the model's switch was set. */
MGL_API mgl_status mgl_model_score(mgl_model *model, const int32_t *ids, size_t count,
                                   float *logprob, mgl_error *err);

/* The logits (vocab) of the last position that was sampled from, after mgl_model_generate; of a
 * batch, of the last among the replies that ended last. Behind a reply that a text has ended
 * (MGL_STOP_TEXT), they may be of a position that no token was given of. */
MGL_API mgl_status mgl_model_get_logits(const mgl_model *model, float *logits, mgl_error *err);

/* ---- compiling ------------------------------------------------------------------------------ */

/* How to compile a model; zero means the default of each field. Strings are not kept. */
typedef struct mgl_compile_options {
    size_t size;            /* sizeof(mgl_compile_options) */
    const char *target;     /* "sm_90a:132" (architecture and queues), "cpu:1"; NULL or "live":
                                     the device that mgl_model_open would take */
    const char *dtype;      /* as in mgl_open_options, "auto" by the target */
    const char *config;     /* likewise */
    const char *schedule;   /* likewise; it states the target too */
    int32_t capacity;       /* KV positions; 0: min(4,096, max_position_embeddings) */
    int32_t sequences;      /* replies of a launch, at most MGL_MAX_BATCH; 0: 1 */
    mgl_cancel *cancel;     /* ends compiling (MGL_INTERRUPTED); or NULL */
    mgl_stage_fn *on_stage; /* of the kernel and the weights; may be NULL */
    void *stage_user;       /* for on_stage */
    int32_t no_tuned;       /* as in mgl_open_options */
    int64_t strict_formats; /* likewise */
    int64_t penalties;      /* not 0: requests may have penalties */
    int64_t prompt;         /* as in mgl_open_options */
} mgl_compile_options;

/* What was compiled. */
typedef struct mgl_compile_report {
    size_t size;         /* sizeof(mgl_compile_report): set it before the call */
    char target[32];     /* "sm_90a:132" */
    const char *dtype;   /* static storage */
    int32_t capacity;    /* KV positions */
    int32_t sequences;   /* replies of a launch */
    uint64_t bytes;      /* of the file */
    bool kernel;         /* it holds the kernel of its target */
    char note[512];      /* why no kernel or no tokenizer, one a line; "" otherwise */
    double pack_s;       /* seconds: packing and writing */
    double compile_s;    /* seconds: the kernel */
    char tuned[72];      /* name of the tuned entry that it was lowered with; "" for none */
    char left_out[1024]; /* tuned entries that were left out, and why, one a line; "" for none */
} mgl_compile_report;

/* Writes what mgl_model_open makes of the checkpoint at `path` into the file `to`, which can then
 * be opened in its place: program, packed weights, tokenizer and, where NVRTC is there, the kernel.
 * The file stands there whole or not at all, also when the process is killed. `to` is MGL_BAD_INPUT
 * when it is one of the files that are read. A schedule that the validator rejects is MGL_REJECTED;
 * MGL_INTERRUPTED when the switch was set. `options` may be NULL for the defaults, `out` where
 * the report is not wanted. */
MGL_API mgl_status mgl_model_compile(const char *path, const mgl_compile_options *options,
                                     const char *to, mgl_compile_report *out, mgl_error *err);

/* ---- plans ---------------------------------------------------------------------------------- */

typedef struct mgl_plan mgl_plan;

/* What to lower; zero means the default of each field. Strings are not kept. */
typedef struct mgl_plan_options {
    size_t size;             /* sizeof(mgl_plan_options) */
    const char *model;       /* as the path of mgl_model_open; or NULL */
    const char *shape;       /* in its place, the name of a shape without weights: "llama-1b". An
                                unknown name is MGL_USAGE, and the message lists those there are */
    const char *target;      /* as in mgl_compile_options */
    const char *dtype;       /* as in mgl_compile_options; that of a shape is bf16 */
    const char *config;      /* path of a ScheduleConfig, or NULL */
    const char *config_text; /* a ScheduleConfig itself, in its place; or NULL */
    const char *moves;       /* edits of what lowering made, one a line; or NULL */
    int32_t capacity;        /* KV positions; 0: min(4,096, max_position_embeddings) */
    int32_t sequences;       /* replies of a launch, at most MGL_MAX_BATCH; 0: 1 */
    const char *shape_text;  /* in place of model and shape, the text of a config.json; or NULL */
} mgl_plan_options;

/* The schedule that mgl_model_open would make without a tuned entry, with the moves applied. The
 * same options give the same plan. A move that does not fit is MGL_BAD_INPUT. It ends with the
 * validator: MGL_REJECTED with the first diagnostic where config or moves ask for what cannot be
 * run. Release *out with mgl_plan_close. */
MGL_API mgl_status mgl_plan_lower(const mgl_plan_options *options, mgl_plan **out, mgl_error *err);

/* A plan from the `length` bytes of a schedule text, from anywhere: nothing of it is trusted.
 * `name` is what errors call it, or NULL. What cannot be read is MGL_BAD_INPUT, with
 * name:line:column in err->where. Release *out with mgl_plan_close. */
MGL_API mgl_status mgl_plan_parse(const char *text, size_t length, const char *name, mgl_plan **out,
                                  mgl_error *err);
MGL_API void mgl_plan_close(mgl_plan *plan); /* NULL is fine */

/* Another plan: this one with `moves`, edits of one line each, applied in order. The plan stays as
 * it is, and nothing of the other is checked. MGL_BAD_INPUT: one does not fit. Release *out with
 * mgl_plan_close. */
MGL_API mgl_status mgl_plan_move(const mgl_plan *plan, const char *moves, mgl_plan **out,
                                 mgl_error *err);

/* The plan as text, with a trailing 0: parsing that gives the same plan. Release *out with
 * mgl_text_free. *length may be NULL. */
MGL_API mgl_status mgl_plan_text(const mgl_plan *plan, char **out, size_t *length, mgl_error *err);

enum { MGL_DIGEST_SIZE = 65 }; /* 64 hexadecimal digits and a 0 */

/* The SHA-256 of what the plan does. Names and comments are not part of it: equal plans have equal
 * digests. */
MGL_API mgl_status mgl_plan_digest(const mgl_plan *plan, char out[MGL_DIGEST_SIZE], mgl_error *err);

/* Something that is wrong with a plan. */
typedef struct mgl_plan_diagnostic {
    int32_t code;         /* 203 for MG203: `megalith explain MG203` */
    int32_t line;         /* of the text that was parsed; 0: none, or the plan was lowered */
    int32_t task;         /* index of the task; -1: none */
    char *message;        /* one sentence */
    char **witness;       /* (witness_count) lines: the cycle, the two accesses, what is missing */
    size_t witness_count; /* may be 0 */
} mgl_plan_diagnostic;

/* Zero but for the size; release with mgl_plan_verdict_clear, which leaves the size. A verdict
 * may be used again: what it holds is released then. */
typedef struct mgl_plan_verdict {
    size_t size;                      /* sizeof(mgl_plan_verdict): set it before the call */
    mgl_plan_diagnostic *diagnostics; /* (count) none where it is accepted; at most 64 */
    size_t count;
    bool accepted;           /* it cannot hang, race, or touch what it must not */
    bool meaning_checked;    /* and that it computes the model was looked at as well */
    int32_t tasks, counters; /* of the plan */
    double seconds;          /* that checking took */
} mgl_plan_verdict;
MGL_API void mgl_plan_verdict_clear(mgl_plan_verdict *verdict); /* NULL is fine */

/* Proves a plan safe, or says why it is not; with a model or a shape (at most one, the other NULL),
 * given as in mgl_plan_options, also whether it computes that. MGL_OK whatever the verdict. */
MGL_API mgl_status mgl_plan_check(mgl_plan *plan, const char *model, const char *shape,
                                  mgl_plan_verdict *out, mgl_error *err);

/* Whether the machine of the plan's target can run it: a plan that is safe may still ask for more
 * than the GPU's kernel has, or for shapes that the kernel has no code for. MGL_BAD_INPUT with
 * what, err->where "shared memory" for that of a block. No device is needed. */
MGL_API mgl_status mgl_plan_check_machine(const mgl_plan *plan, mgl_error *err);

/* Whether a plan streams, exchanges and keeps numbers in f32 and the formats of another plan alone,
 * which may have other queues and another order. MGL_BAD_INPUT with the op, and the operand or its
 * weights, that has another one. */
MGL_API mgl_status mgl_plan_check_formats(const mgl_plan *plan, const mgl_plan *other,
                                          mgl_error *err);

/* What the cost model says: computed, never measured. */
typedef struct mgl_plan_prediction {
    size_t size;        /* sizeof(mgl_plan_prediction): set it before the call */
    const char *device; /* whose costs these are; static storage */
    double us;          /* microseconds a token, of all sequences together */
    double floor_us;    /* of them: what reading the bytes below takes, were there nothing else */
    double tape_bytes;  /* read for a token: weights */
    double cache_bytes; /* likewise: keys and values */
    /* What `us` goes into, along the chain of what had to wait for each other: their sum is `us`.
     */
    double stream_us;   /* waiting for the tape */
    double products_us; /* products with weights that have landed */
    double edge_us;     /* from a task's end to the start of one that waits for it */
    double task_us;     /* starting tasks, reading their inputs, writing their outputs */
    double attend_us;   /* attention and merge, but for the cache */
    double cache_us;    /* attention, going through keys and values */
    double token_us;    /* choosing tokens and opening the next epoch */
    double launch_us;   /* a token's share of its launch */
} mgl_plan_prediction;

/* Prices a plan on a device that was measured, "NVIDIA H200"; NULL: the first of the plan's
 * architecture. `batch` sequences decode `tokens` tokens each in a launch, with `context`
 * positions in the cache of each, the mean over these tokens. Of a plan of two lists that one is
 * priced which so many sequences run. MGL_BAD_INPUT: such a device was not measured; MGL_USAGE:
 * the plan has no room for the load; MGL_REJECTED: the plan is not safe. */
MGL_API mgl_status mgl_plan_predict(mgl_plan *plan, const char *device, int32_t batch,
                                    double context, int32_t tokens, mgl_plan_prediction *out,
                                    mgl_error *err);

/* A planner keeps what plans of one model are made of, for a search that makes thousands: the model
 * is read once. It is not changed by what is asked of it: any number of threads may use one. */
typedef struct mgl_planner mgl_planner;

/* Of the options, config, config_text, moves and sequences have to be left out (MGL_USAGE): they
 * are those of each plan. Release *out with mgl_planner_close. */
MGL_API mgl_status mgl_planner_open(const mgl_plan_options *options, mgl_planner **out,
                                    mgl_error *err);
MGL_API void mgl_planner_close(mgl_planner *planner); /* NULL is fine */

/* As mgl_plan_lower, but that nothing is proved yet: mgl_planner_check does that. config_text and
 * moves may be NULL; sequences 0: 1. */
MGL_API mgl_status mgl_planner_lower(const mgl_planner *planner, const char *config_text,
                                     const char *moves, int32_t sequences, mgl_plan **out,
                                     mgl_error *err);

/* Whether a plan, of a text from anywhere, states what this planner's plans have: model, target (no
 * more queues and shared memory), dtype, capacity, and so many sequences. MGL_BAD_INPUT with what
 * differs. */
MGL_API mgl_status mgl_planner_match(const mgl_planner *planner, const mgl_plan *plan,
                                     int32_t sequences, mgl_error *err);

/* As mgl_plan_check with the planner's model: safe, and computes it. */
MGL_API mgl_status mgl_planner_check(const mgl_planner *planner, mgl_plan *plan,
                                     mgl_plan_verdict *out, mgl_error *err);

/* ---- searching ------------------------------------------------------------------------------ */

/* What to search for; zero means the default of each field. Strings are not kept. */
typedef struct mgl_autotune_options {
    size_t size;           /* sizeof(mgl_autotune_options) */
    const char *model;     /* as the path of mgl_model_open, or a config.json: its shape alone is
                              used, with made-up weights; or NULL */
    const char *shape;     /* in its place, as in mgl_plan_options */
    const char *device;    /* "cuda" (default), "cuda:1"; "cpu": tells what is correct, but measures
                              nothing; "none": proves and predicts alone */
    const char *target;    /* of "cpu" and "none": "sm_90a:132" (default of "none") */
    const char *dtype;     /* "bf16" (default) */
    const char *workloads; /* "ctx=0,8192;batch=1,8": positions in the cache, replies of a launch;
                              every one with every other. Default: one reply, at 0 and at
                              half the capacity */
    const char *space;     /* path of what may be changed, as JSON, or NULL */
    const char *config;    /* path of the ScheduleConfig to begin with, or NULL */
    const char *proposers; /* "evolve:2,random": grid, random, evolve, surrogate, chat, external,
                              and their shares of the trials */
    const char *store;     /* path of the file that keeps campaigns; NULL: campaigns.db in
                                 XDG_STATE_HOME/megalith, else ~/.local/state/megalith */
    const char *name;      /* of the campaign; NULL: made of what is tuned */
    uint64_t seed;         /* equal seeds make equal proposals; 0: one is drawn */
    int64_t trials;        /* of the campaign's whole life; 0: no limit */
    double hours;          /* likewise. One of the two is needed */
    int32_t capacity;      /* KV positions; 0: min(4,096, max_position_embeddings) */
    bool allow_formats;    /* knobs that change number formats may be proposed */
    bool fresh;            /* begin a new campaign where one of that name stands */
    mgl_cancel *cancel; /* ends it within 0.2 s: the trial at hand is lost, nothing else; or NULL */
    /* Of the proposer chat, which asks a language model; both are needed for it, and are NULL
     * without it. They are kept with the campaign. */
    const char *chat_url;   /* any endpoint of OpenAI's form, "https://HOST/v1/chat/completions" */
    const char *chat_model; /* that it asks there */
    /* Of this run alone, and kept nowhere: path of a file with the endpoint's key, which nobody but
     * its owner may read (MGL_USAGE otherwise); NULL: no key is sent. */
    const char *chat_key_file;
    int64_t budget_tokens;   /* that chat may take in the campaign's whole life; 0: no limit */
    int64_t budget_requests; /* likewise */
    uint64_t disk_bytes;     /* of the campaign's compiled kernels at most; 0: 4 GiB */
    int64_t rebase;    /* not 0: if the frozen files have changed since the campaign began (MGL_GATE
                          otherwise), begin its successor, NAME-2, which measures the best again */
    bool allow_narrow; /* the old name of allow_formats: either of the two allows them */
} mgl_autotune_options;

/* What happened. It belongs to the library and is valid during the call. */
typedef struct mgl_autotune_event {
    const char *kind;    /* "start", "trial", "keep", "control", "pause", "error", "end",
                            "quarantined": what was kept was found wrong; or others */
    const char *text;    /* one sentence */
    int64_t trial;       /* number of the trial; 0: of none */
    const char *outcome; /* of the trial, "NO_GAIN"; or NULL */
    double gain;         /* of the trial over what it was measured against, 0.031: 3.1 % faster; 0
                            where nothing was measured */
} mgl_autotune_event;

/* Called on the calling thread of mgl_autotune. To end it, set the switch of the options. */
typedef void mgl_autotune_event_fn(void *user, const mgl_autotune_event *event);

/* Zero but for the size; release with mgl_autotune_report_clear, which leaves the size. A report
 * may be used again: what it holds is released then. */
typedef struct mgl_autotune_report {
    size_t size;    /* sizeof(mgl_autotune_report): set it before the call */
    char *name;     /* of the campaign */
    char *reason;   /* why it is over, one sentence; or NULL */
    char *config;   /* the best's ScheduleConfig, and */
    char *moves;    /* its moves, one a line, maybe "": the fields config_text and moves of
                       mgl_plan_options */
    char *schedule; /* the best's text, where it was handed in as one: config and moves are NULL
                       then. Else NULL */
    int64_t trials; /* so far */
    int64_t kept;   /* of them */
    int64_t best;   /* number of its trial; 0: what the campaign began with */
    double gain;    /* of the best over what the campaign began with, 0.031: 3.1 % faster */
    double seconds; /* spent so far */
} mgl_autotune_report;
MGL_API void mgl_autotune_report_clear(mgl_autotune_report *report); /* NULL is fine */

/* Searches for a faster schedule: begins a campaign, or goes on with the one of that name. All
 * that is proposed is proved safe before it runs, compared with a reference before it is timed,
 * and kept only where it is faster beyond doubt. Whatever was decided is in the store, also when
 * the process is killed; the same options go on from there. MGL_INTERRUPTED: the switch was set;
 * MGL_USAGE: a campaign of that name stands and is another one. `on_event` and `out` may be
 * NULL. *out is filled wherever the campaign stands in the store, also where this fails: it is
 * always to be cleared. */
MGL_API mgl_status mgl_autotune(const mgl_autotune_options *options,
                                mgl_autotune_event_fn *on_event, void *user,
                                mgl_autotune_report *out, mgl_error *err);

/* On a device, candidates run in processes of their own, which take nobody along when they hang or
 * crash: the program that calls mgl_autotune, started anew. Its main begins with
 *
 *     int code;
 *     if (mgl_autotune_is_worker(argc, argv, &code))
 *         return code;
 *
 * True: this process was such a worker, and has done its work. A program that has not called it
 * gets MGL_USAGE for all devices but "none". */
MGL_API bool mgl_autotune_is_worker(int argc, char **argv, int *code);

/* Names of the outcomes that a trial can have: outcome 0 is "OK", which was kept; NULL behind the
 * last. Static storage. */
MGL_API const char *mgl_autotune_outcome(size_t index);

/* What a code means. Texts are of static storage. */
typedef struct mgl_explanation {
    size_t size;         /* sizeof(mgl_explanation): set it before the call */
    int32_t exit_code;   /* of the command line: of `check`, for a code of diagnostics; else that of
                            `campaign submit`: 0 kept, 10 correct but not kept, 11 rejected,
                            12 incorrect, 13 unmeasured, 14 what must not change has changed */
    const char *remedy;  /* what to do next, a sentence or some */
    const char *title;   /* of a code of diagnostics; NULL: of an outcome, as the two below */
    const char *meaning; /* sentences */
    const char *example; /* lines of a schedule */
} mgl_explanation;

/* Explains "MG203", the code 203 of a mgl_plan_diagnostic, or an outcome by its name, "NO_GAIN".
 * MGL_BAD_INPUT: there is no such code. */
MGL_API mgl_status mgl_explain_code(const char *code, mgl_explanation *out, mgl_error *err);

#ifdef __cplusplus
}
#endif
#endif
