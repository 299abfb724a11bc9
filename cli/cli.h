/*
 * Declares what the verbs of the command line share: tables of options, verbs, help, files and
 * streams. Each verb is implemented in a file. The verb states its options as one table (an
 * X-macro) and a function that does the work with the library. The struct of option values, the
 * parser, --help and the errors about flags are generated from the table.
 *
 * With --json, a verb prints exactly one object on standard output, also on an error
 * ("megalith.error/1"). Everything that is not the answer goes to standard error.
 */
#ifndef MGL_CLI_CLI_H
#define MGL_CLI_CLI_H

#include "base/error.h"
#include "base/json.h"
#include "base/json_out.h"

#include <stddef.h>

/* ---- options --------------------------------------------------------------------------------- */

typedef enum mgl_cli_kind {
    MGL_CLI_flag, /* --json */
    MGL_CLI_text, /* --prompt TEXT */
    MGL_CLI_file, /* --config FILE, an input; - becomes MGL_STDIN */
    MGL_CLI_int,  /* --max-tokens N, within [lo, hi] */
    MGL_CLI_real, /* --temperature X, within [lo, hi] */
    MGL_CLI_list  /* --stop TEXT, may be repeated */
} mgl_cli_kind;

/* The value of an option. `given`: the option is on the command line. */
typedef struct mgl_cli_flag {
    bool given;
} mgl_cli_flag;
typedef struct mgl_cli_text {
    bool given;
    const char *value; /* points into argv; NULL: not given */
} mgl_cli_text, mgl_cli_file;
typedef struct mgl_cli_int {
    bool given;
    int64_t value; /* 0: not given */
} mgl_cli_int;
typedef struct mgl_cli_real {
    bool given;
    double value; /* 0: not given */
} mgl_cli_real;

enum { MGL_CLI_MOST_LISTED = 16 };
typedef struct mgl_cli_list {
    bool given;
    size_t count;
    const char *values[MGL_CLI_MOST_LISTED]; /* (count) point into argv */
} mgl_cli_list;

/* A row of a verb's table: X(kind, field, flag, argument, lo, hi, help). Help and shell completion
 * show the allowed values from `argument` (cli/pages/values.c). */
typedef struct mgl_cli_option {
    mgl_cli_kind kind;
    size_t offset; /* offset of the value in the verb's struct */
    const char *flag, *argument, *help;
    int64_t lo, hi; /* range of the kinds `int` and `real` */
} mgl_cli_option;

/* Short flags that are common in similar programs: X(short, flag). A short flag works in every verb
 * that has the flag. */
#define MGL_CLI_SHORTS(X)                                                                          \
    X("-p", "--prompt")                                                                            \
    X("-n", "--max-tokens")
/* The flags with which other programs take a model: X(flag). Here the model is an operand. */
#define MGL_CLI_MODEL_FLAGS(X)                                                                     \
    X("-m")                                                                                        \
    X("--model")
/* The flags that every verb has. */
#define MGL_CLI_HELP_SHORT    "-h"
#define MGL_CLI_HELP_FLAG     "--help"
#define MGL_CLI_VERSION_SHORT "-V"
#define MGL_CLI_VERSION_FLAG  "--version"

#define MGL_CLI_FIELD(kind, field, flag, argument, lo, hi, help) mgl_cli_##kind field;
#define MGL_CLI_ROW(kind, field, flag, argument, lo, hi, help)                                     \
    {MGL_CLI_##kind, offsetof(struct options, field), flag, argument, help, lo, hi},

/* A member of an initializer that copies a part of `o`, a verb's struct of values. */
#define MGL_CLI_COPY(kind, field, flag, argument, lo, hi, help) .field = o->field,

/* Declares `struct options` and the rows of a verb's table. */
#define MGL_CLI_OPTIONS(TABLE)                                                                     \
    struct options {                                                                               \
        TABLE(MGL_CLI_FIELD)                                                                       \
    };                                                                                             \
    static const mgl_cli_option option_rows[] = {TABLE(MGL_CLI_ROW)};

/* Options of verbs that run a model; --dtype also of verbs that lower a model. */
#define MGL_CLI_DEVICE_OPTION(X)                                                                   \
    X(text, device, "--device", "auto|cpu|cuda[:N]", 0, 0, "device (auto)")
#define MGL_CLI_DTYPE_OPTION(X)                                                                    \
    X(text, dtype, "--dtype", "auto|f32|bf16|f16", 0, 0,                                           \
      "number format (auto: the format of the file on a GPU, f32 on a CPU)")

/* Options of verbs that run a model on a CPU. */
#define MGL_CLI_CPU_OPTIONS(X)                                                                     \
    X(int, threads, "--threads", "N", 1, 256, "CPU threads (one for each processor)")              \
    X(flag, verify, "--verify", NULL, 0, 0,                                                        \
      "check all checksums of a compiled model first, on a CPU too")

/* Options of verbs that lower a model. */
#define MGL_CLI_CONFIG_OPTION(X)                                                                   \
    X(file, config, "--config", "FILE", 0, 0, "ScheduleConfig for lowering (JSON)")
#define MGL_CLI_TUNED_OPTION(X)                                                                    \
    X(flag, no_tuned, "--no-tuned", NULL, 0, 0,                                                    \
      "use the default schedule even if a tuned one exists")

/* Options of verbs with synthetic weights, besides --dtype (eval/weight_flags.h). */
#define MGL_CLI_WEIGHT_OPTIONS(X)                                                                  \
    X(int, group, "--group", "N", MGL_GROUP_UNIT, MGL_MAX_WEIGHT_GROUP,                            \
      "columns that share a scale, 16 or a multiple of 32; fp8: blocks of N x N (int4: 128; int8 " \
      "and fp8: a row)")                                                                           \
    X(text, head_dtype, "--head-dtype", MGL_WEIGHT_FLAG_NAMES, 0, 0,                               \
      "format of the head's weights (bf16)")

/* Options of verbs that run a model. */
#define MGL_CLI_SCHEDULE_OPTION(X)                                                                 \
    X(file, schedule, "--schedule", "F.mls", 0, 0, "run this schedule instead of lowering one")

/* The members of mgl_open_options of a verb with the options above and --capacity. */
#define MGL_CLI_OPEN_MEMBERS(o)                                                                    \
    .size = sizeof(mgl_open_options), .device = (o)->device.value, .dtype = (o)->dtype.value,      \
    .config = (o)->config.value, .schedule = (o)->schedule.value,                                  \
    .capacity = (int32_t)(o)->capacity.value, .threads = (int32_t)(o)->threads.value,              \
    .verify = (o)->verify.given, .no_tuned = (o)->no_tuned.given, .cancel = mgl_cli_cancel()

/* Options of verbs that lower or compile a model for later runs. */
#define MGL_CLI_PROMPT_OPTION(X)                                                                   \
    X(int, prompt_tokens, "--prompt-tokens", "N", 1, MGL_MAX_CAPACITY,                             \
      "tokens of a prompt; on a GPU, long prompts of a single reply may get a second task list")
#define MGL_CLI_PENALTIES_OPTION(X)                                                                \
    X(flag, penalties, "--penalties", NULL, 0, 0, "count tokens, which repetition penalties need")

/* Options of verbs that run or compile a model. */
#define MGL_CLI_STRICT_OPTION(X)                                                                   \
    X(flag, strict_formats, "--strict-formats", NULL, 0, 0,                                        \
      "reject number formats that cannot hold each number of the checkpoint")

/* The option of most verbs. */
#define MGL_CLI_JSON_OPTION(X)                                                                     \
    X(flag, json, "--json", NULL, 0, 0, "one JSON object on standard output")

/* The option of verbs that take long. */
#define MGL_CLI_QUIET_OPTION(X)                                                                    \
    X(flag, quiet, "--quiet", NULL, 0, 0, "no progress and no closing line on standard error")

/* ---- verbs ----------------------------------------------------------------------------------- */

/* A command or key of a verb that reads typed lines: "/save", "FILE", help. */
typedef struct mgl_cli_typed {
    const char *name, *argument, *help; /* argument: "" if there is none */
} mgl_cli_typed;

typedef struct mgl_cli_verb {
    const char *name, *operand; /* operand: "MODEL", "F.mls"; NULL: the verb takes none */
    bool operand_is_file;       /* an input file: - becomes MGL_STDIN */
    bool operand_optional;      /* a flag may replace the operand */
    /* kernels are compiled with the micro-kernels that the user promoted */
    bool overlaid;
    const char *summary; /* one line */
    const char *example; /* whole command lines, one per line */
    const mgl_cli_option *options;
    size_t option_count, options_size;
    /* `options` is the verb's struct options. A failure with an empty err->message means that the
     * verb has already printed the error. */
    mgl_status (*run)(const char *operand, const void *options, mgl_error *err);
    /* The subcommands of a verb. Each is a verb with its own options and help, such as "campaign
     * list". If there are subcommands, only `name`, `summary` and `example` of the other fields are
     * used. */
    const struct mgl_cli_verb *const *words; /* (word_count); NULL: none */
    size_t word_count;
    const char *notes;          /* sentences that help prints after the flags; NULL: none */
    bool gives_verdict;         /* may end with a verdict: MGL_CLI_VERDICT_EXITS */
    const mgl_cli_typed *lines; /* (line_count) lines to type, for help; NULL: none */
    size_t line_count;
} mgl_cli_verb;

#define MGL_CLI_VERBS(X)                                                                           \
    X(run)                                                                                         \
    X(chat)                                                                                        \
    X(compile)                                                                                     \
    X(quantize)                                                                                    \
    X(lower)                                                                                       \
    X(check)                                                                                       \
    X(explain)                                                                                     \
    X(info)                                                                                        \
    X(tokenize)                                                                                    \
    X(detokenize)                                                                                  \
    X(template)                                                                                    \
    X(score)                                                                                       \
    X(eval)                                                                                        \
    X(bench)                                                                                       \
    X(trace)                                                                                       \
    X(tune)                                                                                        \
    X(campaign)                                                                                    \
    X(kernel)                                                                                      \
    X(mcp)                                                                                         \
    X(doctor)
#define MGL_CLI_DECLARE(name) extern const mgl_cli_verb mgl_cli_##name##_verb;
MGL_CLI_VERBS(MGL_CLI_DECLARE)
#undef MGL_CLI_DECLARE

enum {
#define MGL_CLI_NUMBER(name) MGL_CLI_VERB_##name,
    MGL_CLI_VERBS(MGL_CLI_NUMBER)
#undef MGL_CLI_NUMBER
        MGL_CLI_VERB_COUNT
};
extern const mgl_cli_verb *const mgl_cli_verbs[MGL_CLI_VERB_COUNT];
/* The verb with this name; NULL: unknown. */
const mgl_cli_verb *mgl_cli_find_verb(const char *name);
/* The verb of a word after `verb`: "list" for "campaign list"; NULL: unknown. */
const mgl_cli_verb *mgl_cli_find_word(const mgl_cli_verb *verb, const char *word);
/* The last word of the verb's name: "list". */
const char *mgl_cli_last_word(const mgl_cli_verb *verb);

/* The members that end each verb's definition. */
#define MGL_CLI_VERB_OPTIONS                                                                       \
    .options = option_rows, .option_count = sizeof option_rows / sizeof *option_rows,              \
    .options_size = sizeof(struct options)

/* Parses the arguments after the verb's name into `options` (options_size bytes, zeroed) and
 * *operand. Rejects unknown flags, missing or malformed values, a flag given twice, and a wrong
 * number of operands. */
mgl_status mgl_cli_parse(const mgl_cli_verb *verb, int argc, char **argv, const char **operand,
                         void *options, mgl_error *err);
/* The flag or operand that reads standard input; NULL: none. *other: a second one. */
const char *mgl_cli_reader(const mgl_cli_verb *verb, const char *operand, const void *options,
                           const char **other);
/* The short form of a flag; NULL: none. */
const char *mgl_cli_short_of(const char *flag);
/* Whether the verb has this flag. */
bool mgl_cli_knows(const mgl_cli_verb *verb, const char *flag);
/* Whether this flag, which takes no value, was given. `options` as filled by mgl_cli_parse. */
bool mgl_cli_has_flag(const mgl_cli_verb *verb, const void *options, const char *flag);

/* Parses a list of ids: "1,2,3", "1 2 3" or "[1, 2, 3]". Errors name `what` as the place. Release
 * with mgl_ids_clear. */
mgl_status mgl_cli_parse_ids(const char *text, const char *what, mgl_ids *out, mgl_error *err);

/* Sets the exit code of a verb that succeeds, instead of 0. */
void mgl_cli_end_with(int code);
int mgl_cli_end_code(void);

/* ---- help ------------------------------------------------------------------------------------ */

/* X(code, meaning) */
#define MGL_CLI_EXITS(X)                                                                           \
    X("0", "ok")                                                                                   \
    X("1", "usage")                                                                                \
    X("2", "bad input or a file that cannot be read or written")                                   \
    X("3", "schedule rejected")                                                                    \
    X("4", "no device, device error or out of memory")                                             \
    X("5", "watchdog stopped the kernel, or --time-limit is reached")                              \
    X("6", "a check failed")                                                                       \
    X("128 + signal", "when Ctrl-C (130), TERM (143) or HUP (129) ended it")

/* The exit codes of verbs that end with a verdict. Code 0 means kept. */
#define MGL_CLI_VERDICT_EXITS(X)                                                                   \
    X("10", "not kept")                                                                            \
    X("11", "rejected")                                                                            \
    X("12", "incorrect")                                                                           \
    X("13", "unmeasured")                                                                          \
    X("14", "frozen")
/* The codes as text, each after ", ". */
#define MGL_CLI_EXIT(code, meaning) ", " code " " meaning

/* What the program is, what a MODEL is, and what - means. Texts without line ends. */
extern const char mgl_cli_title[], mgl_cli_model_text[], mgl_cli_file_text[];

void mgl_cli_print_help(void);
void mgl_cli_print_verb_help(const mgl_cli_verb *verb);

/* ---- files and streams ----------------------------------------------------------------------- */

/* Write to standard output. Return false from the first failure on; mgl_cli_output_end returns the
 * error. mgl_cli_printf formats as base/format.h does, which keeps control characters of files from
 * the terminal. The other two write bytes unchanged. */
bool mgl_cli_print(const char *bytes, size_t length);
bool mgl_cli_put(const char *string);
bool mgl_cli_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints the text after `indent`, with greedy line breaking. Line ends of the text are kept. */
void mgl_cli_put_wrapped(const char *indent, const char *text);
bool mgl_cli_flush(void);
/* Prints the number formats on the current line, after a label of the caller. */
struct mgl_formats;
void mgl_cli_put_formats(const struct mgl_formats *formats);
bool mgl_cli_has_printed(void);
/* Whether a line can be written to standard error without waiting for its reader or another
 * thread. */
bool mgl_cli_takes_errors(void);
/* For a thread that is about to end the program: flushes what was printed, or writes `instead` if
 * nothing was. Does not wait for a reader. Waits at most `seconds` for another thread that prints.
 * Nothing can be printed afterwards. */
void mgl_cli_abandon_output(const char *instead, double seconds);
/* A time for people: "3.1 ms", "0.25 s". */
typedef struct mgl_cli_time {
    char text[16];
} mgl_cli_time;
mgl_cli_time mgl_cli_format_time(double seconds);
/* Prints one line on standard error: "megalith VERB: ...". `verb` may be NULL. */
void mgl_cli_say(const char *verb, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints each line of a text on standard error, as mgl_cli_say does. `lines` may be NULL. */
void mgl_cli_say_lines(const char *verb, const char *lines);
/* Records that output was lost because memory ran out. */
void mgl_cli_lose_output(void);
/* MGL_OK; MGL_INTERRUPTED if the reader of a pipe is gone; MGL_NO_MEMORY if output was lost; or the
 * error of writing. */
mgl_status mgl_cli_output_end(mgl_error *err);

/* Checks that a file can be written there. Callers check before long work. */
mgl_status mgl_cli_check_file(const char *path, mgl_error *err);
/* Checks that a file can be written there, and that it is not an input: a file of the model, or the
 * config (or NULL). */
struct mgl_checkpoint; /* importer/checkpoint.h */
mgl_status mgl_cli_check_output(const char *path, const struct mgl_checkpoint *checkpoint,
                                const char *config, mgl_error *err);
/* Writes a whole file atomically: an existing file is replaced after all bytes are written, and is
 * kept on failure. */
mgl_status mgl_cli_write_file(const char *path, const char *bytes, size_t length, mgl_error *err);
/* Same for a text; to standard output if `path` is NULL. */
mgl_status mgl_cli_write_text(const char *path, const mgl_text *text, mgl_error *err);

enum { MGL_CLI_MAX_TEXT = 256 << 20 }; /* bytes of a text, a prompt or a list */

/* Closes a verb's object, prints the object as one line on standard output, and releases it. If
 * memory ran out, prints a megalith.error/1 instead, and the verb ends with that error. */
void mgl_cli_end_json(mgl_json_out *out);
/* Same after work that returned `status`: prints nothing if the work failed. Returns `status`. */
mgl_status mgl_cli_finish_json(mgl_json_out *out, mgl_status status);

#endif
