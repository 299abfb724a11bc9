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
 * Opening a model lowers it to a schedule, the program that a launch runs. A plan is a schedule as
 * an object: it can be read and written as text, checked, and priced. A schedule file can be run
 * (field `schedule` of mgl_open_options). mgl_autotune searches for a faster schedule.
 *
 * Ownership: the caller owns what a function returns through a pointer to a pointer, or in a
 * mgl_ids or another struct. The function named in the comment releases it. A function that fails
 * sets such a pointer to NULL. Unless a comment states otherwise, no function exits the process,
 * prints, or reads the environment.
 *
 * NULL: a NULL object or output argument is MGL_USAGE if the argument is required. Functions
 * without a status then do nothing. Comments state which arguments may be NULL; `err` always may.
 *
 * Structs with a field `size`: set `size` to the sizeof of the struct, and unused fields to zero.
 * The size identifies the version of the struct that a program was built with. If the program has
 * an older header, the missing fields get their defaults. If it has a newer header and sets a field
 * that the library does not have, the call is rejected (MGL_USAGE). A size of 0 is MGL_USAGE.
 * mgl_error, mgl_ids and mgl_plan_diagnostic never change and have no size.
 *
 * Threads: different threads may use different objects at the same time. Encoding and decoding do
 * not change a tokenizer, so any number of threads may share one. A detokenizer, a model and a plan
 * are used by one thread at a time. A tokenizer must outlive its detokenizers. Any thread and any
 * signal handler may call mgl_model_cancel and mgl_cancel_set.
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

/* Result of a function that can fail. Values below 7 are also exit codes of `megalith`. */
typedef enum mgl_status {
    MGL_OK = 0,
    MGL_USAGE = 1,        /* invalid call or flag */
    MGL_BAD_INPUT = 2,    /* unusable model, file or text */
    MGL_REJECTED = 3,     /* the validator rejected the schedule */
    MGL_DEVICE = 4,       /* no device, too little device memory, or a driver error */
    MGL_WATCHDOG = 5,     /* the kernel was stopped at its deadline */
    MGL_GATE = 6,         /* a check failed: wrong results, changed frozen files, no gain */
    MGL_NO_MEMORY = 7,    /* host memory ran out */
    MGL_SYSTEM = 8,       /* a call to the operating system failed */
    MGL_INTERRUPTED = 130 /* the call's cancel switch was set (mgl_cancel) */
} mgl_status;

/* Filled by every function that fails; unchanged on success. */
typedef struct mgl_error {
    mgl_status code;
    char where[256];    /* file, file:line:column, tensor or key; may be empty */
    char message[1600]; /* one sentence: what is wrong and what to do. Newlines occur only before a
                           quoted source line and its caret */
} mgl_error;

/* Token ids. Zero-initialize; release with mgl_ids_clear. */
typedef struct mgl_ids {
    int32_t *ids; /* (count) */
    size_t count;
} mgl_ids;
MGL_API void mgl_ids_clear(mgl_ids *ids); /* NULL is fine */

MGL_API const char *mgl_version(void); /* "major.minor.patch"; static storage */

/* ---- tokenizer ------------------------------------------------------------------------------- */

typedef struct mgl_tokenizer mgl_tokenizer;
typedef struct mgl_detokenizer mgl_detokenizer; /* streaming state: whole UTF-8 characters only */

/* Opens a tokenizer: a folder with tokenizer.json and its related files, the file tokenizer.json
 * alone, a GGUF file, or a compiled model. */
MGL_API mgl_status mgl_tokenizer_open(const char *path, mgl_tokenizer **out, mgl_error *err);
MGL_API void mgl_tokenizer_close(mgl_tokenizer *tokenizer); /* NULL is fine */

/* Encodes `length` bytes of UTF-8. Invalid bytes become U+FFFD, as in Hugging Face's tokenizers.
 * `special` adds the tokenizer's own special tokens (its post-processor). MGL_BAD_INPUT: a step
 * produces more than 64 KiB and more than 32 times the bytes of the text (also in decoding), or a
 * token is not below vocab_size of config.json. 2 MB stay allocated for each thread that encodes at
 * the same time. */
MGL_API mgl_status mgl_tokenizer_encode(const mgl_tokenizer *tokenizer, const char *text,
                                        size_t length, bool special, mgl_ids *out, mgl_error *err);

/* Whether the id is in the vocabulary: 0 to the largest id of a token. A model may have more ids
 * than its tokenizer, because its tables are padded; those ids have no text. */
MGL_API bool mgl_tokenizer_knows(const mgl_tokenizer *tokenizer, int32_t id);

/* The size of the vocabulary: the largest id of a token, plus 1; 0 for NULL. mgl_model_facts has
 * the size of the model's tables. */
MGL_API size_t mgl_tokenizer_size(const mgl_tokenizer *tokenizer);

/* The bytes (*length) that a token contributes in the middle of a text, plus a final 0 byte. They
 * may contain zeros and parts of characters. A special token returns its own text. An id in the
 * vocabulary without a token returns "". An id outside the vocabulary is MGL_BAD_INPUT. Release
 * *out with mgl_text_free. `length` may be NULL. */
MGL_API mgl_status mgl_tokenizer_token(const mgl_tokenizer *tokenizer, int32_t id, char **out,
                                       size_t *length, mgl_error *err);

/* The inverse of mgl_tokenizer_token: *out is the lowest id whose token has exactly these bytes
 * (length), or -1. Encoding the bytes may give other tokens, because it splits the text first. A
 * call compares all tokens and takes milliseconds. For many lookups, build a table with
 * mgl_tokenizer_token. */
MGL_API mgl_status mgl_tokenizer_find(const mgl_tokenizer *tokenizer, const char *bytes,
                                      size_t length, int32_t *out, mgl_error *err);

/* Decodes ids to UTF-8 with a final 0 byte; `skip_special` omits special tokens. An id outside the
 * vocabulary is MGL_BAD_INPUT. Release *out with mgl_text_free. `length` may be NULL. */
MGL_API mgl_status mgl_tokenizer_decode(const mgl_tokenizer *tokenizer, const int32_t *ids,
                                        size_t count, bool skip_special, char **out, size_t *length,
                                        mgl_error *err);
MGL_API void mgl_text_free(char *text); /* NULL is fine */

/* Streaming decoder. Each call takes one id and returns in *text the characters that are now
 * complete, maybe "": `length` bytes of whole UTF-8 characters. The detokenizer owns *text, which
 * is valid until its next call. An incomplete character is held back, and becomes U+FFFD if its
 * other bytes never arrive. mgl_detokenizer_finish returns the held text; then the stream can only
 * be closed. The pieces of a sequence concatenate to its decode. `length` may be NULL. After an
 * error the stream must be closed, except after MGL_BAD_INPUT for an id outside the vocabulary,
 * which changes nothing. Release *out with mgl_detokenizer_close. */
MGL_API mgl_status mgl_detokenizer_open(const mgl_tokenizer *tokenizer, bool skip_special,
                                        mgl_detokenizer **out, mgl_error *err);
MGL_API mgl_status mgl_detokenizer_next(mgl_detokenizer *stream, int32_t id, const char **text,
                                        size_t *length, mgl_error *err);
MGL_API mgl_status mgl_detokenizer_finish(mgl_detokenizer *stream, const char **text,
                                          size_t *length, mgl_error *err);
MGL_API void mgl_detokenizer_close(mgl_detokenizer *stream); /* NULL is fine */

/* Makes a new stream continue after a prompt (count ids), as a reply does. The pieces then
 * concatenate to the decode of prompt and reply, without the decode of the prompt; a space between
 * the two is kept. A character that the prompt leaves incomplete is dropped. Ids without a token
 * have no text. Call before the stream's first token. */
MGL_API mgl_status mgl_detokenizer_prime(mgl_detokenizer *stream, const int32_t *ids, size_t count,
                                         mgl_error *err);

/* Sets stop strings (count): the stream ends before the first of them, wherever token boundaries
 * are. Text that may be the start of a stop string is held back. The stop string that is complete
 * first counts; of several complete at once, the longest. An empty string or invalid UTF-8 is
 * MGL_BAD_INPUT. Call before the stream's first token. */
MGL_API mgl_status mgl_detokenizer_set_stops(mgl_detokenizer *stream, const char *const *stops,
                                             size_t count, mgl_error *err);
MGL_API bool mgl_detokenizer_is_stopped(const mgl_detokenizer *stream); /* by a stop string */

/* ---- conversations --------------------------------------------------------------------------- */

/* The chat templates of a model, which convert a conversation to the text of a prompt. Rendering
 * does not change them: any number of threads may share the object. */
typedef struct mgl_chat_template mgl_chat_template;

/* Opens the chat templates of the model at `path`: a folder, a compiled model, or org/name in the
 * local Hugging Face cache. A folder has chat_template.jinja and
 * additional_chat_templates/NAME.jinja, or else the key chat_template of tokenizer_config.json. The
 * templates can use the special tokens of tokenizer_config.json. `file`: the path of a template
 * that replaces the model's `default`, or NULL. MGL_BAD_INPUT: the model has no template, or a
 * template has a syntax error (found here or when it is rendered); err->where is file:line:column,
 * and err->message contains the line. Release *out with mgl_chat_template_close. */
MGL_API mgl_status mgl_chat_template_open(const char *path, const char *file,
                                          mgl_chat_template **out, mgl_error *err);
MGL_API void mgl_chat_template_close(mgl_chat_template *chat); /* NULL is fine */

/* A conversation; zero selects the default of each field. Texts are 0-terminated JSON and need to
 * be valid only during the call. */
typedef struct mgl_conversation {
    size_t size;               /* sizeof(mgl_conversation) */
    const char *messages;      /* an array of at least one object with role and content */
    const char *tools;         /* an array of objects in Hugging Face's form; or NULL */
    const char *args;          /* an object with more variables for the template; or NULL */
    const char *messages_name; /* name of the messages in error messages; NULL: "messages" */
    const char *tools_name;    /* likewise */
    bool no_generation_prompt; /* omit the text that starts the assistant's reply */
    const char *template_name; /* the template to use, if the model has several; NULL: `tool_use` if
                                  there are tools and such a template, else `default` */
} mgl_conversation;

/* Appends {"role": role, "content": text} to *messages, the JSON array of a conversation; NULL
 * starts a new array. The text (length bytes) is UTF-8, as in mgl_tokenizer_encode. The old array
 * is released; release the new one with mgl_text_free. On failure *messages is unchanged. Text that
 * is not a JSON array is MGL_BAD_INPUT. */
MGL_API mgl_status mgl_messages_add(char **messages, const char *role, const char *text,
                                    size_t length, mgl_error *err);

/* Renders a conversation like Hugging Face's apply_chat_template; the text has a final 0 byte.
 * Encode it without the tokenizer's own special tokens: the text already contains them.
 * MGL_BAD_INPUT: the template needs too much time, memory or depth, or rejects the conversation.
 * The current time in a template is SOURCE_DATE_EPOCH of the environment (in UTC), or else the
 * local time. Release *out with mgl_text_free. *length may be NULL. */
MGL_API mgl_status mgl_chat_template_render(const mgl_chat_template *chat,
                                            const mgl_conversation *conversation, char **out,
                                            size_t *length, mgl_error *err);

/* Renders a conversation, then encodes the text. mgl_tokenizer_encode describes *out. */
MGL_API mgl_status mgl_chat_template_encode(const mgl_chat_template *chat,
                                            const mgl_tokenizer *tokenizer,
                                            const mgl_conversation *conversation, mgl_ids *out,
                                            mgl_error *err);

/* ---- ending early ---------------------------------------------------------------------------- */

/* A cancel switch, owned by the caller. A call that has the switch (opening, compiling, a reply)
 * ends soon after the switch is set. Until the switch is reset, further calls end at once, so a
 * switch set before a call begins is not lost. Any number of models may share a switch. A call of
 * the GPU driver cannot be interrupted: opening ends after it. NVRTC, which compiles the kernel,
 * cannot be interrupted either: it continues on its own thread, and its result goes to the cache. A
 * process that exits meanwhile waits for that thread. */
typedef struct mgl_cancel mgl_cancel;
MGL_API mgl_status mgl_cancel_new(mgl_cancel **out,
                                  mgl_error *err); /* release with mgl_cancel_free */
MGL_API void mgl_cancel_free(mgl_cancel *cancel);  /* NULL is fine */
MGL_API void mgl_cancel_set(mgl_cancel *cancel);   /* from any thread and from a signal handler */
MGL_API void mgl_cancel_reset(mgl_cancel *cancel);
MGL_API bool mgl_cancel_is_set(const mgl_cancel *cancel);

/* ---- progress -------------------------------------------------------------------------------- */

/* Stages of a call that may take long. */
typedef enum mgl_stage {
    MGL_STAGE_WEIGHTS, /* packing, uploading or writing weights; counted in bytes */
    MGL_STAGE_KERNEL,  /* compiling the kernel; counted in milliseconds. Before the end, total is 0:
                          the duration is unknown. Not reported for a cached kernel */
    MGL_STAGE_PROMPT   /* reading the prompt; counted in tokens */
} mgl_stage;

/* Progress callback, on the calling thread. done == total when a stage ends. */
typedef void mgl_stage_fn(void *user, mgl_stage stage, uint64_t done, uint64_t total);

/* ---- model ----------------------------------------------------------------------------------- */

typedef struct mgl_model mgl_model;

/* Maximum replies of one launch, for a program with two task lists (knob `second_rows` of a
 * ScheduleConfig). With one list the maximum is 16. */
enum { MGL_MAX_BATCH = 64 };

/* How to open a model; zero selects the default of each field. Strings need to be valid only during
 * the call. */
typedef struct mgl_open_options {
    size_t size;            /* sizeof(mgl_open_options) */
    const char *device;     /* "auto" (default), "cpu", "cuda" or "cuda:1" */
    const char *dtype;      /* "auto" (the file's on a GPU, f32 on a CPU), "f32", "bf16", "f16" */
    const char *config;     /* path of a ScheduleConfig, or NULL */
    const char *schedule;   /* path of a schedule text that replaces the lowered schedule, or NULL.
                               It states dtype and capacity, so these and config must be unset */
    int32_t capacity;       /* KV positions per sequence; 0: min(wanted, max_position_embeddings) */
    int32_t wanted;         /* positions that the longest reply fills; 0: 4,096 */
    int32_t deadline_ms;    /* longest wait of a GPU launch for one edge, in ms; 0: 2,000 */
    int32_t sequences;      /* maximum replies of one launch, each with its own KV cache: at most
                               MGL_MAX_BATCH, and at most what config or schedule allow; 0: 1 */
    mgl_cancel *cancel;     /* must outlive the model. Ends opening (MGL_INTERRUPTED) and replies;
                               NULL: none */
    mgl_stage_fn *on_stage; /* progress of opening and of prompts; may be NULL */
    void *stage_user;       /* for on_stage */
    int32_t threads;  /* compute threads of a CPU; 0: one per processor that the process may use.
                         Replies are bitwise the same for any number */
    bool verify;      /* verify the checksums of a compiled model's weights first, on a CPU that
                         uses mapped weights. On a GPU they are always verified during upload */
    int32_t no_tuned; /* not 0: lower by default, even if a tuned entry fits */
    int64_t strict_formats; /* not 0: MGL_REJECTED if weights, activations or the cache have a
                               format that cannot hold every number of the checkpoint's format */
    int64_t penalties; /* 1: requests may have penalties (the program then counts tokens); 2: the
                          same, but only if generation_config.json has a repetition_penalty. A
                          schedule or compiled model without penalties is then rejected */
    int64_t prompt;    /* approximate tokens of the longest prompt of a single reply; 0: few. If it
                          saves enough time, the program gets a second task list that reads up to
                          128 tokens at once. Each token of a reply then takes 2 to 8 % longer, so a
                          much longer reply gets no second list */
    int64_t fewer;     /* not 0: fewer sequences if config, schedule or memory require it */
} mgl_open_options;

/* Facts about an open model. Strings belong to the model. */
typedef struct mgl_model_facts {
    size_t size;        /* sizeof(mgl_model_facts): set it before the call */
    const char *device; /* "cpu" or the GPU's name */
    const char *dtype;  /* "f32", "bf16", "f16" */
    int32_t vocab, max_positions, capacity, queues;
    /* Seconds of mgl_model_open: the sum of the next three. */
    double load_s;    /* everything except the next two */
    double compile_s; /* waiting for the kernel when everything else was done */
    double driver_s;  /* starting the GPU driver and opening its context */
    /* Parts of load_s: making the program from files; the validator; loading the weights. */
    double import_s, check_s, weights_s;
    double kernel_s;       /* compiling and loading the kernel, in parallel with the weights */
    uint64_t weight_bytes; /* on the device; on a CPU: of the program */
    /* CPU only; NULL and 0 on a GPU. */
    const char *instructions; /* instruction set of products: "avx512vbmi", "avx512", "avx2", "neon"
                                 or "plain" C, which alone may give other bits of results */
    int32_t threads;          /* compute threads */
    uint64_t memory_bytes;    /* process memory for weights, without mapped weights */
    uint64_t cache_bytes;     /* for keys and values, allocated as they are written */
    uint64_t scratch_bytes;   /* for everything else */
    const char *tuned;        /* name of the tuned entry used in lowering; or NULL */
    const char *note;         /* tuned entries not used, with reasons, one per line; or NULL */
    int64_t sequences;        /* maximum replies of one launch */
} mgl_model_facts;

/* Imports, lowers, validates and loads the checkpoint at `path`: a folder in Hugging Face layout, a
 * GGUF file, or org/name or org/name@revision in the local Hugging Face cache (HF_HUB_CACHE,
 * HF_HOME or ~/.cache). NULL `options`: the defaults. Release *out with mgl_model_close. A compiled
 * model is not lowered again: a config, a schedule, another dtype, or a larger capacity than its
 * own is MGL_USAGE. A smaller capacity limits the positions of replies. Without config and
 * schedule, a tuned entry for the model, device, sequences and capacity replaces the defaults: from
 * XDG_DATA_HOME/megalith/tuned, else ~/.local/share, or the library. An entry changes speed, and
 * maybe the order of sums and thus the last bits of logits. An unusable entry is skipped. A GPU's
 * compiled kernel is cached in MEGALITH_CACHE, else XDG_CACHE_HOME/megalith, else
 * ~/.cache/megalith. MGL_REJECTED: the validator rejects the schedule; nothing is launched. */
MGL_API mgl_status mgl_model_open(const char *path, const mgl_open_options *options,
                                  mgl_model **out, mgl_error *err);
MGL_API void mgl_model_close(mgl_model *model); /* NULL is fine */
MGL_API mgl_status mgl_model_get_facts(const mgl_model *model, mgl_model_facts *out,
                                       mgl_error *err);

/* The ids that end a reply: those of generation_config.json and config.json, and in a chat also
 * eos_token of tokenizer_config.json. mgl_tokenizer_encode describes *out. */
MGL_API mgl_status mgl_model_get_end_ids(const mgl_model *model, mgl_ids *out, mgl_error *err);
MGL_API mgl_status mgl_model_get_chat_end_ids(mgl_model *model, const mgl_tokenizer *tokenizer,
                                              mgl_ids *out, mgl_error *err);

enum { MGL_MAX_LOGPROBS = 20 };

/* The log-probability (natural logarithm) of a new token under the model, before temperature,
 * penalties and filters are applied. */
typedef struct mgl_likelihood {
    size_t size; /* the library's sizeof(mgl_likelihood) */
    int32_t token;
    float logprob;
    const int32_t *top_ids; /* (top_count) the most likely tokens at this position, in order; ties:
                               lowest id first. Valid during the call */
    const float *top_logprobs; /* (top_count) their log-probabilities */
    size_t top_count;
} mgl_likelihood;

/* Called before the reply's token callback, with the index of the request. */
typedef void mgl_likelihood_fn(void *user, size_t reply, const mgl_likelihood *likelihood);

/* One reply. temperature 0: greedy. Otherwise temperature is applied, then top-k (0: off), then
 * top-p (0 or 1: off; 1e-30: the most likely token), then min-p (0: off). Ties go to the lowest id.
 * The same seed gives the same tokens on a device. Penalties are applied first, also to greedy
 * decoding. */
typedef struct mgl_request {
    size_t size;           /* sizeof(mgl_request) */
    const int32_t *prompt; /* (prompt_count), at least one token */
    size_t prompt_count;
    int32_t max_tokens; /* at least 1; the reply also ends when the cache is full */
    float temperature;
    int32_t top_k;
    float top_p;
    uint64_t seed;
    bool ignore_eos;
    bool sample;          /* use temperature, top_k and top_p of generation_config.json */
    int64_t reuse_prefix; /* 1: prefix caching: a prefix of the prompt that the model's cache holds
                             from earlier replies is not read again. In a batch: from the earlier
                             reply with the same index. On a CPU in f32, the default schedule gives
                             the same tokens as without the cache. In 16 bits, with split attention,
                             or with gamma-scaled values, sums may have another order, which can
                             change a token if two tokens are almost equally likely */
    const mgl_tokenizer *tokenizer; /* for `stops` and `chat`; otherwise may be NULL */
    const char *const *stops;       /* (stop_count) stop strings, searched as by
                                       mgl_detokenizer_set_stops after the prompt. The last token
                                       completes the string. For the text before it, decode with the
                                       same prompt and stops */
    size_t stop_count;
    double min_p; /* applied after top-p: removes tokens whose probability is below min_p times the
                     largest; 0: off */
    int64_t logprobs; /* 1 to MGL_MAX_LOGPROBS: the result has the log-probability of each new
                         token, and this many most likely tokens; 0: none */
    mgl_likelihood_fn *on_likelihood; /* called for each new token if logprobs > 0; may be NULL */
    void *likelihood_user;            /* for on_likelihood */
    /* Penalties on tokens that already occurred; 0: off. Need a model opened with `penalties`. */
    double repeat_penalty;    /* 0.01 to 100, 1: off. Once for each token in prompt or output: a
                                 negative logit is multiplied by it, another is divided (Hugging
                                 Face's repetition_penalty, used by `sample` if this is 0) */
    double presence_penalty;  /* -2 to 2. Subtracted from the logit of a token in the output */
    double frequency_penalty; /* -2 to 2. Subtracted once per occurrence in the output (OpenAI's) */
    int64_t prompt_logprobs;  /* not 0: the result has the log-probabilities of the prompt's tokens.
                                 Scoring the prompt takes another launch, before the reply */
    int64_t chat;             /* not 0: a chat template made the prompt. The reply also ends at
                                 the ids of mgl_model_get_chat_end_ids. Needs `tokenizer` */
} mgl_request;

typedef enum mgl_stop {
    MGL_STOP_EOS,
    MGL_STOP_LENGTH,
    MGL_STOP_INTERRUPTED,
    MGL_STOP_TEXT /* one of the request's stops */
} mgl_stop;

/* Result of a reply. Initialize to zero except `size`; release with mgl_result_clear, which keeps
 * the size. Reusing a result releases its old contents. Times are in seconds. */
typedef struct mgl_result {
    size_t size;    /* sizeof(mgl_result): set it before the call */
    mgl_ids output; /* new tokens, including the end token */
    mgl_stop stop;
    int32_t launches; /* kernel launches of this reply: 1, plus 1 if a prompt was scored. On a CPU:
                         runs of the VM. Replies of a batch share this value and the two times */
    double prefill_s; /* until the first token; in a batch: of any reply */
    double decode_s;  /* from the first token to the last; in a batch: of all replies */
    int64_t reused;   /* prompt tokens taken from the cache (reuse_prefix) */
    /* Set if the request has logprobs, else NULL and 0; see mgl_likelihood. */
    float *logprobs;        /* (output.count) */
    int32_t *top_ids;       /* (output.count, top_count) the most likely tokens at each position, in
                               order; ties: lowest id first */
    float *top_logprobs;    /* (output.count, top_count) their log-probabilities */
    size_t top_count;       /* the requested number, at most the vocabulary size */
    float *prompt_logprobs; /* (prompt_count), or NULL if not requested; 0 for the first token */
    size_t prompt_logprob_count; /* prompt_count, or 0 */
} mgl_result;
MGL_API void mgl_result_clear(mgl_result *result); /* NULL is fine */

/* Called for each token, on the thread of mgl_model_generate. Returns false to stop the reply. */
typedef bool mgl_token_fn(void *user, int32_t token);

/* Generates one reply in one launch. `on_token` may be NULL. If the model's switch is set: MGL_OK,
 * stop MGL_STOP_INTERRUPTED, and the tokens so far (none if it was set before the call).
 * MGL_BAD_INPUT: the prompt leaves no free position, or a logit is NaN or infinite. No token is
 * chosen from such logits, and err->message names the position. */
MGL_API mgl_status mgl_model_generate(mgl_model *model, const mgl_request *request,
                                      mgl_token_fn *on_token, void *user, mgl_result *out,
                                      mgl_error *err);

/* Receives the text of a reply piece by piece: `length` bytes of whole UTF-8 characters, valid
 * during the call. Returns false to stop the reply; it is then not called again. */
typedef bool mgl_text_fn(void *user, const char *text, size_t length);

/* mgl_model_generate with text output. Special tokens, and ids that the tokenizer does not have,
 * are omitted. The pieces concatenate to the text that mgl_detokenizer_prime describes, up to a
 * stop string. `on_text` may be NULL. */
MGL_API mgl_status mgl_model_generate_text(mgl_model *model, const mgl_tokenizer *tokenizer,
                                           const mgl_request *request, mgl_text_fn *on_text,
                                           void *user, mgl_result *out, mgl_error *err);

/* Like mgl_token_fn, for request `reply`. Returns false to stop all replies. */
typedef bool mgl_batch_token_fn(void *user, size_t reply, int32_t token);

/* Generates `count` replies in one launch, 1 to mgl_open_options.sequences. Each reply has its own
 * prompt, length, end and sampling. A seed draws the same random numbers as in a single reply.
 * requests (count), out (count): in each array, all elements have the `size` of the first, which is
 * also the array's stride. One rejected request rejects the batch; err->where then begins with
 * "requests[i]: ". Interrupted: MGL_OK, with MGL_STOP_INTERRUPTED for replies in progress. */
MGL_API mgl_status mgl_model_generate_batch(mgl_model *model, const mgl_request *requests,
                                            size_t count, mgl_batch_token_fn *on_token, void *user,
                                            mgl_result *out, mgl_error *err);

/* Sets the model's cancel switch: replies in progress end at their next token. Call from any thread
 * or signal handler. If the model was opened without a switch, its next reply resets the switch. */
MGL_API void mgl_model_cancel(mgl_model *model);

/* Teacher-forced log-probabilities: logprob[i] (natural logarithm) of ids[i] given ids[0..i-1], for
 * i in 1..count-1; logprob[0] is 0. MGL_BAD_INPUT: a value is NaN or infinite. MGL_INTERRUPTED:
 * the model's switch was set. */
MGL_API mgl_status mgl_model_score(mgl_model *model, const int32_t *ids, size_t count,
                                   float *logprob, mgl_error *err);

/* Teacher-forced logits: row i of `logits` (count - 1 - begin, vocab) is the distribution of
 * ids[begin + 1 + i] given ids[0 .. begin + i]. Tokens before `begin` that the cache holds are not
 * read again; split attention can then change the last bits. Errors as in mgl_model_score. */
MGL_API mgl_status mgl_model_score_logits(mgl_model *model, const int32_t *ids, size_t count,
                                          size_t begin, float *logits, mgl_error *err);

/* The logits (vocab) of the last sampled position, after mgl_model_generate. In a batch: of the
 * last of the replies that ended last. After a stop string (MGL_STOP_TEXT), they may belong to a
 * later position, whose token was discarded. */
MGL_API mgl_status mgl_model_get_logits(const mgl_model *model, float *logits, mgl_error *err);

/* ---- compiling ------------------------------------------------------------------------------- */

/* How to compile a model; zero selects the default of each field. Strings need to be valid only
 * during the call. */
typedef struct mgl_compile_options {
    size_t size;            /* sizeof(mgl_compile_options) */
    const char *target;     /* "sm_90a:132" (architecture and queues), "cpu:1"; NULL or "live": the
                               device that mgl_model_open would choose */
    const char *dtype;      /* as in mgl_open_options; "auto" depends on the target */
    const char *config;     /* likewise */
    const char *schedule;   /* as in mgl_open_options; it also states the target */
    int32_t capacity;       /* KV positions; 0: min(4,096, max_position_embeddings) */
    int32_t sequences;      /* replies of a launch, at most MGL_MAX_BATCH; 0: 1 */
    mgl_cancel *cancel;     /* ends compiling (MGL_INTERRUPTED); NULL: none */
    mgl_stage_fn *on_stage; /* progress of the kernel and the weights; may be NULL */
    void *stage_user;       /* for on_stage */
    int32_t no_tuned;       /* as in mgl_open_options */
    int64_t strict_formats; /* likewise */
    int64_t penalties;      /* not 0: requests may have penalties */
    int64_t prompt;         /* as in mgl_open_options */
} mgl_compile_options;

/* Facts about a compiled model. */
typedef struct mgl_compile_report {
    size_t size;         /* sizeof(mgl_compile_report): set it before the call */
    char target[32];     /* "sm_90a:132" */
    const char *dtype;   /* static storage */
    int32_t capacity;    /* KV positions */
    int32_t sequences;   /* replies of a launch */
    uint64_t bytes;      /* bytes of the file */
    bool kernel;         /* the file contains a kernel for its target */
    char note[512];      /* why no kernel or no tokenizer, one reason per line; or "" */
    double pack_s;       /* seconds: packing and writing */
    double compile_s;    /* seconds: the kernel */
    char tuned[72];      /* name of the tuned entry used in lowering; "": none */
    char left_out[1024]; /* tuned entries not used, with reasons, one per line; or "" */
} mgl_compile_report;

/* Compiles the checkpoint at `path` to the file `to`, which mgl_model_open then opens faster. The
 * file contains program, packed weights, tokenizer and, if NVRTC is available, the kernel. The file
 * appears under its name only when it is complete. MGL_BAD_INPUT: `to` is one of the input files.
 * MGL_REJECTED: the validator rejects the schedule. MGL_INTERRUPTED: the switch was set. `options`
 * (NULL: the defaults) and `out` may be NULL. */
MGL_API mgl_status mgl_model_compile(const char *path, const mgl_compile_options *options,
                                     const char *to, mgl_compile_report *out, mgl_error *err);

/* ---- plans ----------------------------------------------------------------------------------- */

typedef struct mgl_plan mgl_plan;

/* What to lower; zero selects the default of each field. Strings need to be valid only during the
 * call. */
typedef struct mgl_plan_options {
    size_t size;             /* sizeof(mgl_plan_options) */
    const char *model;       /* like the path of mgl_model_open; or NULL */
    const char *shape;       /* instead: the name of a shape without weights, "llama-1b". An unknown
                                name is MGL_USAGE; the message lists the known names */
    const char *target;      /* as in mgl_compile_options */
    const char *dtype;       /* as in mgl_compile_options; default of a shape: bf16 */
    const char *config;      /* path of a ScheduleConfig, or NULL */
    const char *config_text; /* instead: the text of a ScheduleConfig; or NULL */
    const char *moves;       /* edits of the lowered schedule, one per line; or NULL */
    int32_t capacity;        /* KV positions; 0: min(4,096, max_position_embeddings) */
    int32_t sequences;       /* replies of a launch, at most MGL_MAX_BATCH; 0: 1 */
    const char *shape_text;  /* instead of model and shape: the text of a config.json; or NULL */
} mgl_plan_options;

/* Lowers the schedule that mgl_model_open would make without a tuned entry, then applies the moves.
 * The same options give the same plan. MGL_BAD_INPUT: a move does not apply. MGL_REJECTED, with the
 * first diagnostic: the validator rejects the result. Release *out with mgl_plan_close. */
MGL_API mgl_status mgl_plan_lower(const mgl_plan_options *options, mgl_plan **out, mgl_error *err);

/* Parses a plan from the `length` bytes of a schedule text. The text is not trusted. `name` is its
 * name in error messages, or NULL. MGL_BAD_INPUT: the text cannot be read; err->where is
 * name:line:column. Release *out with mgl_plan_close. */
MGL_API mgl_status mgl_plan_parse(const char *text, size_t length, const char *name, mgl_plan **out,
                                  mgl_error *err);
MGL_API void mgl_plan_close(mgl_plan *plan); /* NULL is fine */

/* Makes a copy of the plan with `moves` (edits, one per line) applied in order. The plan is
 * unchanged, and the copy is not validated. MGL_BAD_INPUT: a move does not apply. Release *out with
 * mgl_plan_close. */
MGL_API mgl_status mgl_plan_move(const mgl_plan *plan, const char *moves, mgl_plan **out,
                                 mgl_error *err);

/* The plan as 0-terminated text; parsing the text gives the same plan. Release *out with
 * mgl_text_free. *length may be NULL. */
MGL_API mgl_status mgl_plan_text(const mgl_plan *plan, char **out, size_t *length, mgl_error *err);

enum { MGL_DIGEST_SIZE = 65 }; /* 64 hexadecimal digits and a final 0 */

/* The SHA-256 of a plan's content, without names and comments: equal plans have equal digests. */
MGL_API mgl_status mgl_plan_digest(const mgl_plan *plan, char out[MGL_DIGEST_SIZE], mgl_error *err);

/* An error in a plan. */
typedef struct mgl_plan_diagnostic {
    int32_t code;         /* 203 for MG203: `megalith explain MG203` */
    int32_t line;         /* line of the parsed text; 0: none, or the plan was lowered */
    int32_t task;         /* index of the task; -1: none */
    char *message;        /* one sentence */
    char **witness;       /* (witness_count) lines: the cycle, the accesses, the missing part */
    size_t witness_count; /* may be 0 */
} mgl_plan_diagnostic;

/* Result of validation. Initialize to zero except `size`; release with mgl_plan_verdict_clear,
 * which keeps the size. Reusing a verdict releases its old contents. */
typedef struct mgl_plan_verdict {
    size_t size;                      /* sizeof(mgl_plan_verdict): set it before the call */
    mgl_plan_diagnostic *diagnostics; /* (count), at most 64; none if the plan is accepted */
    size_t count;
    bool accepted;           /* the plan cannot hang, race, or access memory out of bounds */
    bool meaning_checked;    /* it was also checked whether the plan computes the model */
    int32_t tasks, counters; /* numbers of tasks and counters */
    double seconds;          /* duration of the check */
} mgl_plan_verdict;
MGL_API void mgl_plan_verdict_clear(mgl_plan_verdict *verdict); /* NULL is fine */

/* Validates a plan: proves that it is safe, or fills in diagnostics. With a model or a shape (at
 * most one, the other NULL; as in mgl_plan_options), also checks whether the plan computes the
 * model. Returns MGL_OK for every verdict. */
MGL_API mgl_status mgl_plan_check(mgl_plan *plan, const char *model, const char *shape,
                                  mgl_plan_verdict *out, mgl_error *err);

/* Checks whether the machine of the plan's target can run it. A safe plan may still exceed the
 * limits of the GPU's kernel, or have shapes that the kernel does not support. MGL_BAD_INPUT with
 * the reason; err->where is "shared memory" if a block needs too much. Needs no device. */
MGL_API mgl_status mgl_plan_check_machine(const mgl_plan *plan, mgl_error *err);

/* Checks whether a plan streams, exchanges and stores numbers only in f32 and in formats of another
 * plan, which may have other queues and another order. MGL_BAD_INPUT names the op and the operand
 * (or its weights) with another format. */
MGL_API mgl_status mgl_plan_check_formats(const mgl_plan *plan, const mgl_plan *other,
                                          mgl_error *err);

/* Prediction of the cost model: computed, not measured. */
typedef struct mgl_plan_prediction {
    size_t size;        /* sizeof(mgl_plan_prediction): set it before the call */
    const char *device; /* device whose costs are used; static storage */
    double us;          /* microseconds per token, all sequences together */
    double floor_us;    /* lower bound of `us`: time to read tape_bytes and cache_bytes */
    double tape_bytes;  /* bytes of weights read per token */
    double cache_bytes; /* bytes of keys and values read per token */
    /* Parts of `us`, along the critical path; their sum is `us`. */
    double stream_us;   /* waiting for the tape */
    double products_us; /* products whose weights are loaded */
    double edge_us;     /* from a task's end to the start of one that waits for it */
    double task_us;     /* starting tasks, reading their inputs, writing their outputs */
    double attend_us;   /* attention and merge, without the cache */
    double cache_us;    /* attention: reading keys and values */
    double token_us;    /* choosing tokens and opening the next epoch */
    double launch_us;   /* the launch, divided by its tokens */
} mgl_plan_prediction;

/* Predicts a plan's time on a device with known costs, "NVIDIA H200"; NULL: the first device of the
 * plan's architecture. `batch` sequences decode `tokens` tokens each in a launch; `context` is the
 * mean number of cached positions of a sequence. Of a plan with two lists, the list that runs this
 * many sequences is priced. MGL_BAD_INPUT: no costs for the device; MGL_USAGE: the load exceeds the
 * plan's limits; MGL_REJECTED: the plan is not safe. */
MGL_API mgl_status mgl_plan_predict(mgl_plan *plan, const char *device, int32_t batch,
                                    double context, int32_t tokens, mgl_plan_prediction *out,
                                    mgl_error *err);

/* A planner reads a model once and makes many plans of it, for example for a search. Its functions
 * do not change it: any number of threads may share one. */
typedef struct mgl_planner mgl_planner;

/* The options config, config_text, moves and sequences must be unset (MGL_USAGE): each plan has its
 * own. Release *out with mgl_planner_close. */
MGL_API mgl_status mgl_planner_open(const mgl_plan_options *options, mgl_planner **out,
                                    mgl_error *err);
MGL_API void mgl_planner_close(mgl_planner *planner); /* NULL is fine */

/* Like mgl_plan_lower, without the validation, which mgl_planner_check does. config_text and moves
 * may be NULL; sequences 0: 1. */
MGL_API mgl_status mgl_planner_lower(const mgl_planner *planner, const char *config_text,
                                     const char *moves, int32_t sequences, mgl_plan **out,
                                     mgl_error *err);

/* Checks whether a plan, from any text, matches this planner: the same model, target (at most its
 * queues and shared memory), dtype and capacity, and this number of sequences. MGL_BAD_INPUT names
 * the difference. */
MGL_API mgl_status mgl_planner_match(const mgl_planner *planner, const mgl_plan *plan,
                                     int32_t sequences, mgl_error *err);

/* Like mgl_plan_check, with the planner's model. */
MGL_API mgl_status mgl_planner_check(const mgl_planner *planner, mgl_plan *plan,
                                     mgl_plan_verdict *out, mgl_error *err);

/* ---- searching ------------------------------------------------------------------------------- */

/* What to search for; zero selects the default of each field. Strings need to be valid only during
 * the call. */
typedef struct mgl_autotune_options {
    size_t size;           /* sizeof(mgl_autotune_options) */
    const char *model;     /* like the path of mgl_model_open, or a config.json: only the shape is
                              used, with synthetic weights; or NULL */
    const char *shape;     /* instead of `model`, as in mgl_plan_options */
    const char *device;    /* "cuda" (default), "cuda:1"; "cpu": checks correctness without
                              measuring; "none": only proves and predicts */
    const char *target;    /* for "cpu" and "none": "sm_90a:132" (default of "none") */
    const char *dtype;     /* "bf16" (default) */
    const char *workloads; /* "ctx=0,8192;batch=1,8": cached positions and replies per launch, in
                              all combinations. Default: one reply, at 0 and at half the capacity */
    const char *space;     /* path of the search space as JSON, or NULL */
    const char *config;    /* path of the initial ScheduleConfig, or NULL */
    const char *proposers; /* "evolve:2,random": proposers (grid, random, evolve, surrogate, chat,
                              external) and their shares of the trials */
    const char *store;     /* path of the campaign database; NULL: campaigns.db in
                              XDG_STATE_HOME/megalith, else ~/.local/state/megalith */
    const char *name;      /* name of the campaign; NULL: derived from the options */
    uint64_t seed;         /* equal seeds give equal proposals; 0: a random seed */
    int64_t trials;        /* trials of the whole campaign; 0: no limit */
    double hours;          /* likewise, in hours. One of the two limits is required */
    int32_t capacity;      /* KV positions; 0: min(4,096, max_position_embeddings) */
    bool allow_formats;    /* proposals may change number formats */
    bool fresh;            /* start a new campaign even if one of that name exists */
    mgl_cancel *cancel;    /* ends the call within 0.2 s and loses the current trial; or NULL */
    /* For the proposer `chat`, which queries a language model. Both are required for it, otherwise
     * NULL, and are stored with the campaign. */
    const char *chat_url;   /* an endpoint with OpenAI's API, "https://HOST/v1/chat/completions" */
    const char *chat_model; /* name of the model at the endpoint */
    /* Used in this call only and never stored: path of a file with the endpoint's key. Only its
     * owner may have read permission (MGL_USAGE otherwise). NULL: no key is sent. */
    const char *chat_key_file;
    int64_t budget_tokens;   /* tokens that `chat` may use in the whole campaign; 0: no limit */
    int64_t budget_requests; /* likewise */
    uint64_t disk_bytes;     /* maximum bytes of the campaign's compiled kernels; 0: 4 GiB */
    int64_t rebase;          /* not 0: if the frozen files changed (otherwise MGL_GATE), start the
                                campaign's successor, NAME-2, which measures the best again */
    bool allow_narrow;       /* old name of allow_formats; either one allows formats */
} mgl_autotune_options;

/* An event of a campaign. Owned by the library; valid during the call. */
typedef struct mgl_autotune_event {
    const char *kind;    /* "start", "trial", "keep", "control", "pause", "error", "end",
                            "quarantined" (a kept candidate turned out to be wrong), or others */
    const char *text;    /* one sentence */
    int64_t trial;       /* number of the trial; 0: no trial */
    const char *outcome; /* outcome of the trial, "NO_GAIN"; or NULL */
    double gain;         /* gain over the incumbent, 0.031: 3.1 % faster; 0: not measured */
} mgl_autotune_event;

/* Called on the thread of mgl_autotune. To end the campaign, set the switch of the options. */
typedef void mgl_autotune_event_fn(void *user, const mgl_autotune_event *event);

/* Result of a campaign. Initialize to zero except `size`; release with mgl_autotune_report_clear,
 * which keeps the size. Reusing a report releases its old contents. */
typedef struct mgl_autotune_report {
    size_t size;    /* sizeof(mgl_autotune_report): set it before the call */
    char *name;     /* name of the campaign */
    char *reason;   /* why the campaign is over, one sentence; or NULL */
    char *config;   /* ScheduleConfig of the best candidate: config_text of mgl_plan_options */
    char *moves;    /* likewise: moves, one per line, maybe "" */
    char *schedule; /* schedule text of the best candidate, if it was submitted as text: config and
                       moves are then NULL. Otherwise NULL */
    int64_t trials; /* trials so far */
    int64_t kept;   /* kept trials */
    int64_t best;   /* trial number of the best candidate; 0: the initial program */
    double gain;    /* gain of the best over the initial program, 0.031: 3.1 % faster */
    double seconds; /* time spent so far */
} mgl_autotune_report;
MGL_API void mgl_autotune_report_clear(mgl_autotune_report *report); /* NULL is fine */

/* Searches for a faster schedule: starts a campaign, or continues the campaign of that name. Every
 * candidate is validated before it runs, compared with a reference before it is timed, and kept
 * only if it is faster with statistical confidence. Every decision is in the store, even if the
 * process is killed; the same options then continue the campaign. MGL_INTERRUPTED: the switch was
 * set; MGL_USAGE: the campaign of that name has other options. `on_event` and `out` may be NULL.
 * *out is filled, even after an error, if the store has the campaign: always clear it. */
MGL_API mgl_status mgl_autotune(const mgl_autotune_options *options,
                                mgl_autotune_event_fn *on_event, void *user,
                                mgl_autotune_report *out, mgl_error *err);

/* On a device, candidates run in worker processes, so that a hang or a crash affects no other
 * process. A worker is a new process of the program that calls mgl_autotune. Its main begins with
 *
 *     int code;
 *     if (mgl_autotune_is_worker(argc, argv, &code))
 *         return code;
 *
 * Returns true if this process was a worker and has finished. In a program that has not called this
 * function, mgl_autotune returns MGL_USAGE for all devices except "none". */
MGL_API bool mgl_autotune_is_worker(int argc, char **argv, int *code);

/* Names of a trial's outcomes; NULL after the last. Outcome 0, "OK": kept. Static storage. */
MGL_API const char *mgl_autotune_outcome(size_t index);

/* Explanation of a code. Texts have static storage. */
typedef struct mgl_explanation {
    size_t size;         /* sizeof(mgl_explanation): set it before the call */
    int32_t exit_code;   /* exit code of the command line. For a diagnostic: of `check`. For an
                            outcome: of `campaign submit`: 0 kept, 10 correct but not kept, 11
                            rejected, 12 incorrect, 13 unmeasured, 14 a protected file changed */
    const char *remedy;  /* what to do next, one or more sentences */
    const char *title;   /* title of a diagnostic; this and the next two are NULL for an outcome */
    const char *meaning; /* sentences */
    const char *example; /* lines of a schedule */
} mgl_explanation;

/* Explains a code: "MG203" (code 203 of a mgl_plan_diagnostic), or the name of an outcome,
 * "NO_GAIN". MGL_BAD_INPUT: unknown code. */
MGL_API mgl_status mgl_explain_code(const char *code, mgl_explanation *out, mgl_error *err);

#ifdef __cplusplus
}
#endif
#endif
