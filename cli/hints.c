/*
 * Messages for unknown verbs, flags and devices. Two tables map the words of ollama, llama.cpp,
 * vllm and Transformers to those of Megalith. For other words, the message names the nearest known
 * word.
 */
#include "cli/hints.h"

#include "base/file.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { MOST_EDITS = 4, MOST_FLAG = 100 };

/* ---- verbs ----------------------------------------------------------------------------------- */

#define DOWNLOAD                                                                                   \
    "nothing is downloaded; `hf download ORG/NAME` fetches a model, and MODEL is then ORG/NAME"
#define REPLY     "'megalith run MODEL --prompt TEXT' generates a reply"
#define CHAT      "'megalith chat MODEL' is a conversation"
#define NO_SERVER "there is no server; " REPLY ", and " CHAT
#define QUANTIZED                                                                                  \
    "a quantized checkpoint is used as it is stored, without a flag; 'megalith quantize MODEL -o " \
    "DIR' makes one"
#define CACHE_FORMAT "keys and values are cached in the number format that --dtype gives"
#define NOT_LOADED   "no model stays loaded after its verb ends"

static const struct {
    const char *word, *advice;
} verb_rows[] = {
    {"generate", REPLY},
    {"complete", REPLY},
    {"completion", REPLY},
    {"predict", REPLY},
    {"infer", REPLY},
    {"inference", REPLY},
    {"prompt", REPLY},
    {"main", REPLY},
    {"cli", REPLY},
    {"run-batch", "'megalith run MODEL --prompts F.json' generates many replies"},
    {"batch", "'megalith run MODEL --prompts F.json' generates many replies"},
    {"talk", CHAT},
    {"interactive", CHAT},
    {"serve", NO_SERVER},
    {"server", NO_SERVER},
    {"start", NO_SERVER},
    {"api", NO_SERVER},
    {"launch", NO_SERVER},
    {"pull", DOWNLOAD},
    {"download", DOWNLOAD},
    {"fetch", DOWNLOAD},
    {"get", DOWNLOAD},
    {"install", DOWNLOAD},
    {"search", DOWNLOAD},
    {"push", "nothing is uploaded; `hf upload` does that"},
    {"login", "no account is needed; `hf auth login` is for downloads of gated models"},
    {"signin", "no account is needed; `hf auth login` is for downloads of gated models"},
    {"list", "models are in folders and in the Hugging Face cache; `hf cache ls` lists the cache"},
    {"ls", "models are in folders and in the Hugging Face cache; `hf cache ls` lists the cache"},
    {"models",
     "models are in folders and in the Hugging Face cache; `hf cache ls` lists the cache"},
    {"rm", "models are in folders and in the Hugging Face cache; `hf cache rm` deletes there"},
    {"remove", "models are in folders and in the Hugging Face cache; `hf cache rm` deletes there"},
    {"delete", "models are in folders and in the Hugging Face cache; `hf cache rm` deletes there"},
    {"show", "'megalith info MODEL' describes a model"},
    {"inspect", "'megalith info MODEL' describes a model"},
    {"describe", "'megalith info MODEL' describes a model"},
    {"ps", NOT_LOADED},
    {"stop", NOT_LOADED},
    {"load", NOT_LOADED},
    {"create", "'megalith compile MODEL -o F.mega' makes one file of a model"},
    {"build", "'megalith compile MODEL -o F.mega' makes one file of a model"},
    {"export", "'megalith compile MODEL -o F.mega' makes one file of a model"},
    {"convert", "models are read in Hugging Face layout and as GGUF files, without a conversion; "
                "'megalith info "
                "MODEL' says whether one is supported"},
    {"perplexity", "'megalith eval MODEL --file FILE' prints the perplexity"},
    {"ppl", "'megalith eval MODEL --file FILE' prints the perplexity"},
    {"evaluate", "'megalith eval MODEL --file FILE' prints the perplexity"},
    {"loglikelihood", "'megalith score MODEL --text TEXT' prints log-probabilities"},
    {"logprobs", "'megalith score MODEL --text TEXT' prints log-probabilities"},
    {"encode", "'megalith tokenize MODEL --text TEXT' prints the ids"},
    {"decode", "'megalith detokenize MODEL --ids 1,2,3' prints the text"},
    {"embed", "embeddings are not supported"},
    {"embedding", "embeddings are not supported"},
    {"benchmark", "'megalith bench MODEL' measures a GPU"},
    {"llama-bench", "'megalith bench MODEL' measures a GPU"},
    {"llama-cli", REPLY},
    {"llama-server", NO_SERVER},
    {"llama-quantize",
     "'megalith quantize MODEL -o DIR' writes a model with 8-bit or 4-bit weights"},
    {"imatrix", "'megalith quantize MODEL --method gptq -o DIR' calibrates with texts"},
    {"llama-imatrix", "'megalith quantize MODEL --method gptq -o DIR' calibrates with texts"},
    {"profile", "'megalith trace MODEL -o F.json' writes a timeline"},
    {"validate", "'megalith check F.mls' checks a schedule"},
    {"verify", "'megalith check F.mls' checks a schedule"},
    {"lint", "'megalith check F.mls' checks a schedule"},
    {"autotune", "'megalith tune MODEL' searches for a faster schedule"},
    {"optimize", "'megalith tune MODEL' searches for a faster schedule"},
    {"collect-env", "'megalith doctor' prints what the machine has"},
    {"env", "'megalith doctor' prints what the machine has"},
    {"devices", "'megalith doctor' prints what the machine has"},
    {"version", "'megalith --version' prints the version"},
    {"ver", "'megalith --version' prints the version"},
    {"about", "'megalith --version' prints the version"},
    {"man", "'megalith help' lists the verbs"},
    {"usage", "'megalith help' lists the verbs"},
};

static const char *find_nearest_verb(const char *word)
{
    const char *nearest = NULL;
    int least = strlen(word) > 4 ? 3 : 2; /* limit of the edit distance */
    for (size_t i = 0; i < MGL_CLI_VERB_COUNT; i++) {
        int edits = mgl_text_count_edits(word, mgl_cli_verbs[i]->name);
        if (edits < least) {
            least = edits;
            nearest = mgl_cli_verbs[i]->name;
        }
    }
    return nearest;
}

/* Whether a word in the place of a verb is a MODEL. */
static bool is_model(const char *word)
{
    struct stat facts;
    bool stands;
    return strchr(word, '/') || (!mgl_file_look(word, &stands, &facts, NULL) && stands);
}

/* A text that a shell passed as one word. */
static bool is_text(const char *word)
{
    return strpbrk(word, " \t\n") != NULL;
}

static mgl_status fail_flag_first(const char *word, mgl_error *err)
{
    return mgl_fail(err, MGL_USAGE, word,
                    !strcmp(word, "-v")
                        ? "is a flag; a verb must come first; -V is the version, and 'megalith "
                          "--help' lists the verbs"
                        : "is a flag; a verb must come first: megalith run MODEL ...; 'megalith "
                          "--help' lists the verbs");
}

mgl_status mgl_cli_fail_verb(const char *word, mgl_error *err)
{
    if (word[0] == '-')
        return fail_flag_first(word, err);
    for (size_t i = 0; i < sizeof verb_rows / sizeof *verb_rows; i++)
        if (!strcmp(word, verb_rows[i].word))
            return mgl_fail(err, MGL_USAGE, word, "unknown verb; %s", verb_rows[i].advice);
    const char *nearest = find_nearest_verb(word);
    if (nearest)
        return mgl_fail(err, MGL_USAGE, word,
                        "unknown verb; did you mean '%s'? 'megalith help' lists the verbs",
                        nearest);
    if (is_text(word))
        return mgl_fail(err, MGL_USAGE, word, "unknown verb; " REPLY);
    if (is_model(word))
        return mgl_fail(err, MGL_USAGE, word,
                        "unknown verb; a verb must come before MODEL: megalith run %.300s "
                        "--prompt TEXT",
                        word);
    return mgl_fail(err, MGL_USAGE, word, "unknown verb; 'megalith help' lists them");
}

/* ---- flags ----------------------------------------------------------------------------------- */

/* flag of another program, flag of this one; the first row with a flag of the verb is used */
static const struct {
    const char *word, *flag;
} flag_rows[] = {
    {"--temp", "--temperature"},
    {"-t", "--threads"},
    {"-temp", "--temperature"},
    {"-s", "--seed"},
    {"-c", "--capacity"},
    {"--ctx", "--capacity"},
    {"--ctx-size", "--capacity"},
    {"--num-ctx", "--capacity"},
    {"--n-ctx", "--capacity"},
    {"--context", "--capacity"},
    {"--context-length", "--capacity"},
    {"--context-size", "--capacity"},
    {"--max-model-len", "--capacity"},
    {"--max-seq-len", "--capacity"},
    {"--max-length", "--max-tokens"},
    {"--max-new-tokens", "--max-tokens"},
    {"--max-completion-tokens", "--max-tokens"},
    {"--num-tokens", "--max-tokens"},
    {"--tokens", "--max-tokens"},
    {"--num-predict", "--max-tokens"},
    {"--n-predict", "--max-tokens"},
    {"--predict", "--max-tokens"},
    {"--length", "--max-tokens"},
    {"--text", "--prompt"},
    {"--input", "--prompt"},
    {"--message", "--prompt"},
    {"--query", "--prompt"},
    {"--prompt", "--text"},
    {"-p", "--text"},
    {"--prompt", "--messages"},
    {"-f", "--prompt-file"},
    {"--file", "--prompt-file"},
    {"--input-file", "--prompt-file"},
    {"-f", "--file"},
    {"--prompt-file", "--file"},
    {"--file", "--texts"},
    {"--prompts", "--texts"},
    {"--texts", "--prompts"},
    {"--prompts-file", "--prompts"},
    {"--batch", "--prompts"},
    {"--ids", "--prompt-ids"},
    {"--token-ids", "--prompt-ids"},
    {"--tokens", "--ids"},
    {"--prompt-ids", "--ids"},
    {"-sys", "--system"},
    {"--sys", "--system"},
    {"--system-prompt", "--system"},
    {"--system-message", "--system"},
    {"--chat-template", "--template"},
    {"--chat-template-file", "--template"},
    {"--jinja", "--chat"},
    {"--apply-chat-template", "--chat"},
    {"--instruct", "--chat"},
    {"--repetition-penalty", "--repeat-penalty"},
    {"--rep-pen", "--repeat-penalty"},
    {"-r", "--stop"},
    {"--reverse-prompt", "--stop"},
    {"--stop-sequence", "--stop"},
    {"--stop-sequences", "--stop"},
    {"--stop-string", "--stop"},
    {"--stop-strings", "--stop"},
    {"--do-sample", "--sample"},
    {"--random-seed", "--seed"},
    {"--top-logprobs", "--logprobs"},
    {"--log-probs", "--logprobs"},
    {"--precision", "--dtype"},
    {"--torch-dtype", "--dtype"},
    {"--data-type", "--dtype"},
    {"--num-threads", "--threads"},
    {"--n-threads", "--threads"},
    {"--cpus", "--threads"},
    {"-j", "--threads"},
    {"--cpu", "--device"},
    {"--cuda", "--device"},
    {"--gpu", "--device"},
    {"--gpus", "--device"},
    {"--gpu-id", "--device"},
    {"--main-gpu", "--device"},
    {"-mg", "--device"},
    {"-ngl", "--device"},
    {"--gpu-layers", "--device"},
    {"--n-gpu-layers", "--device"},
    {"--num-gpu", "--device"},
    {"--device", "--target"},
    {"--arch", "--target"},
    {"--silent", "--quiet"},
    {"-q", "--quiet"},
    {"--no-progress", "--quiet"},
    {"--output-format", "--json"},
    {"--format", "--json"},
    {"--output", "-o"},
    {"--out", "-o"},
    {"--out-file", "-o"},
    {"--group-size", "--group"},
    {"--wbits", "--bits"},
    {"--special", "--keep-special"},
    {"--no-skip-special-tokens", "--keep-special"},
};

/* flag of another program, what to do; for every verb */
static const struct {
    const char *word, *advice;
} other_rows[] = {
    {"-hf", "the model is given without a flag: megalith run ORG/NAME ..."},
    {"--hf-repo", "the model is given without a flag: megalith run ORG/NAME ..."},
    {"--model-path", "the model is given without a flag: megalith run MODEL ..."},
    {"--model-id", "the model is given without a flag: megalith run MODEL ..."},
    {"--checkpoint", "the model is given without a flag: megalith run MODEL ..."},
    {"--ckpt", "the model is given without a flag: megalith run MODEL ..."},
    {"--revision", "a revision is a part of MODEL: ORG/NAME@REVISION"},
    {"-i", CHAT},
    {"--interactive", CHAT},
    {"-cnv", CHAT},
    {"--conversation", CHAT},
    {"--port", NO_SERVER},
    {"--host", NO_SERVER},
    {"--greedy", "a reply is greedy unless a sampling flag is given"},
    {"--stream", "a reply is streamed unless --json is given"},
    {"--num-beams", "beam search is not supported"},
    {"--beams", "beam search is not supported"},
    {"--trust-remote-code", "code in a model's folder is never executed"},
    {"--tensor-parallel-size", "a model runs on one GPU"},
    {"-tp", "a model runs on one GPU"},
    {"--lora", "adapters must be merged into the model first (merge_and_unload of peft)"},
    {"--quantization", QUANTIZED},
    {"--quantize", QUANTIZED},
    {"--kv-cache-dtype", CACHE_FORMAT},
    {"--cache-type-k", CACHE_FORMAT},
    {"--cache-type-v", CACHE_FORMAT},
    {"-ctk", CACHE_FORMAT},
    {"-ctv", CACHE_FORMAT},
    {"--load-in-8bit", QUANTIZED},
    {"--load-in-4bit", QUANTIZED},
};

#define EVAL_TEXT                                                                                  \
    "'eval' reads files: --file FILE, or --texts F.json; 'megalith score MODEL --text TEXT' "      \
    "scores a text"

/*  verb, flag that it does not have, what to do */
static const struct {
    const char *verb, *word, *advice;
} verb_flag_rows[] = {
    {"eval", "--text", EVAL_TEXT},
    {"eval", "--prompt", EVAL_TEXT},
    {"eval", "-p", EVAL_TEXT},
    {"quantize", "--format", "--bits, --group and --head choose the formats of the weights"},
};

/* What to do instead of a flag that has no replacement; NULL: unknown. */
static const char *find_advice(const mgl_cli_verb *verb, const char *flag)
{
    for (size_t i = 0; i < sizeof verb_flag_rows / sizeof *verb_flag_rows; i++)
        if (!strcmp(verb_flag_rows[i].verb, verb->name) && !strcmp(verb_flag_rows[i].word, flag))
            return verb_flag_rows[i].advice;
    for (size_t i = 0; i < sizeof other_rows / sizeof *other_rows; i++)
        if (!strcmp(other_rows[i].word, flag))
            return other_rows[i].advice;
    return NULL;
}

/* The flags by which other programs take their model. */
static bool asks_for_model(const mgl_cli_verb *verb, const char *flag)
{
    static const char *const flags[] = {
#define MGL_X(name) name,
        MGL_CLI_MODEL_FLAGS(MGL_X)
#undef MGL_X
    };
    bool asks = false;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        asks |= !strcmp(flags[i], flag);
    return asks && verb->operand && !strcmp(verb->operand, "MODEL");
}

/* The flag of the verb that corresponds to a flag of another program; NULL: unknown. */
static const char *find_replacement(const mgl_cli_verb *verb, const char *flag)
{
    for (size_t i = 0; i < sizeof flag_rows / sizeof *flag_rows; i++)
        if (!strcmp(flag_rows[i].word, flag) && mgl_cli_knows(verb, flag_rows[i].flag))
            return flag_rows[i].flag;
    return NULL;
}

static const char *find_nearest_flag(const mgl_cli_verb *verb, const char *flag)
{
    const char *nearest = NULL;
    int least = MOST_EDITS;
    for (size_t i = 0; i < verb->option_count; i++) {
        int edits = mgl_text_count_edits(flag, verb->options[i].flag);
        if (edits < least) {
            least = edits;
            nearest = verb->options[i].flag;
        }
    }
    return nearest;
}

/* The name of the flag without its value; each _ becomes -. */
static void copy_flag(char to[MOST_FLAG], const char *flag)
{
    snprintf(to, MOST_FLAG, "%.*s", (int)strcspn(flag, "="), flag);
    for (char *at = to; (at = strchr(at, '_'));)
        *at = '-';
}

mgl_status mgl_cli_fail_flag(const mgl_cli_verb *verb, const char *flag, mgl_error *err)
{
    char name[MOST_FLAG];
    copy_flag(name, flag);
    if (asks_for_model(verb, name))
        return mgl_fail(
            err, MGL_USAGE, flag,
            "is not a flag of '%s'; the model is given without a flag: megalith %s MODEL ...",
            verb->name, verb->name);
    const char *advice = find_advice(verb, name);
    const char *nearest = advice ? NULL : find_replacement(verb, name);
    if (advice)
        return mgl_fail(err, MGL_USAGE, flag, "unknown flag of '%s'; %s", verb->name, advice);
    if (!nearest)
        nearest = find_nearest_flag(verb, name);
    return mgl_fail(err, MGL_USAGE, flag,
                    "unknown flag of '%s'%s%s%s; 'megalith %s --help' lists them", verb->name,
                    nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "",
                    verb->name);
}

mgl_status mgl_cli_fail_operand(const mgl_cli_verb *verb, const char *operand, const char *word,
                                mgl_error *err)
{
    static const char *const flags[] = {"--prompt", "--text", "--ids", "--texts"};
    const char *flag = NULL;
    for (size_t i = 0; i < sizeof flags / sizeof *flags && !flag; i++)
        flag = mgl_cli_knows(verb, flags[i]) ? flags[i] : NULL;
    if (!flag || strcmp(verb->operand, "MODEL") != 0)
        return mgl_fail(
            err, MGL_USAGE, word,
            "'%s' takes one %s, and '%.200s' was already given; a text with spaces needs quotes",
            verb->name, verb->operand, operand);
    const bool is_file = !strcmp(flag, "--texts");
    return mgl_fail(err, MGL_USAGE, word,
                    "'%s' takes one MODEL, and '%.200s' was already given; give the %s "
                    "with %s: megalith %s %.200s %s %s",
                    verb->name, operand, is_file ? "file of texts" : "model's input", flag,
                    verb->name, operand, flag,
                    is_file ? "F.json" : "\"...\"; a text with spaces needs quotes");
}

/* ---- devices --------------------------------------------------------------------------------- */

static const mgl_cli_option *find_option(const mgl_cli_verb *verb, const char *flag)
{
    for (size_t i = 0; i < verb->option_count; i++)
        if (!strcmp(verb->options[i].flag, flag))
            return &verb->options[i];
    return NULL;
}

/* Whether the argument of a flag, "auto|cpu|cuda[:N]", has this alternative. */
static bool has_alternative(const char *argument, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = argument; at; at = strchr(at, '|')) {
        at += *at == '|';
        if (!strncmp(at, word, length) && (!at[length] || strchr("|[", at[length])))
            return true;
    }
    return false;
}

static bool is_known_device(const char *value)
{
    static const char *const words[] = {"auto", "cpu", "none", "cuda"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(value, words[i]))
            return true;
    return !strncmp(value, "cuda:", 5) && value[5] &&
           strspn(value + 5, "0123456789") == strlen(value + 5);
}

mgl_status mgl_cli_check_device(const mgl_cli_verb *verb, const void *options, mgl_error *err)
{
    const mgl_cli_option *option = find_option(verb, "--device");
    if (!option || option->kind != MGL_CLI_text || !has_alternative(option->argument, "cuda"))
        return MGL_OK; /* `kernel ptx learn --device NAME` names a measured device */
    const mgl_cli_text *device = (const void *)((const char *)options + option->offset);
    if (!device->given || is_known_device(device->value))
        return MGL_OK;
    bool cpu = has_alternative(option->argument, "cpu");
    bool none = has_alternative(option->argument, "none");
    return mgl_fail(err, MGL_USAGE, device->value, "unknown device; supported: %scuda%s",
                    has_alternative(option->argument, "auto") ? "auto, " : "",
                    cpu && none ? ", cuda:N, cpu and none"
                    : cpu       ? ", cuda:N and cpu"
                    : none      ? ", cuda:N and none"
                                : " and cuda:N");
}

void mgl_cli_advise_device(const mgl_cli_verb *verb, mgl_error *err)
{
    char *tail = strstr(err->message, MGL_HINT_CPU);
    const mgl_cli_option *option = find_option(verb, "--device");
    if (!tail)
        return;
    *tail = 0;
    size_t length = (size_t)(tail - err->message);
    bool cpu = option && has_alternative(option->argument, "cpu");
    bool none = option && has_alternative(option->argument, "none");
    snprintf(tail, sizeof err->message - length, "%s%s%s%s",
             cpu || none ? ", or use --device " : "", cpu ? "cpu" : "", cpu && none ? " or " : "",
             none ? "none" : "");
}

/* ---- number formats -------------------------------------------------------------------------- */

/* name in other programs, name here; both without regard to case */
static const struct {
    const char *word, *dtype;
} dtype_rows[] = {
    {"float32", "f32"},       {"fp32", "f32"},
    {"float", "f32"},         {"single", "f32"},
    {"f32", "f32"},           {"bfloat16", "bf16"},
    {"bfloat", "bf16"},       {"bf16", "bf16"},
    {"float16", "f16"},       {"fp16", "f16"},
    {"half", "f16"},          {"f16", "f16"},
    {"torch.float32", "f32"}, {"torch.bfloat16", "bf16"},
    {"torch.float16", "f16"},
};

mgl_status mgl_cli_check_dtype(const mgl_cli_verb *verb, const void *options, mgl_error *err)
{
    const mgl_cli_option *option = find_option(verb, "--dtype");
    if (!option || option->kind != MGL_CLI_text)
        return MGL_OK;
    const mgl_cli_text *dtype = (const void *)((const char *)options + option->offset);
    if (!dtype->given || has_alternative(option->argument, dtype->value))
        return MGL_OK;
    for (size_t i = 0; i < sizeof dtype_rows / sizeof *dtype_rows; i++)
        if (!strcasecmp(dtype_rows[i].word, dtype->value) &&
            has_alternative(option->argument, dtype_rows[i].dtype))
            return mgl_fail(err, MGL_USAGE, dtype->value,
                            "unknown dtype; did you mean '--dtype %s'? supported: %s",
                            dtype_rows[i].dtype, option->argument);
    return MGL_OK; /* the library reports other names */
}
