/*
 * The command line: what its verbs share. One verb is one file; it states its options as one table
 * (an X-macro), from which come the struct that holds their values, the parser, --help and the
 * errors about flags, and a function that does the work with the library.
 *
 * The contract: --json prints exactly one object on standard output, also for an error
 * ("megalith.error/1"); everything that is not the answer goes to standard error.
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
    MGL_CLI_file, /* --config FILE, which is read; - becomes MGL_STDIN */
    MGL_CLI_int,  /* --max-tokens N, within [lo, hi] */
    MGL_CLI_real, /* --temperature X, within [lo, hi] */
    MGL_CLI_list  /* --stop TEXT, as often as there are texts */
} mgl_cli_kind;

/* The value of an option; `given` tells whether it stood on the command line. */
typedef struct mgl_cli_flag {
    bool given;
} mgl_cli_flag;
typedef struct mgl_cli_text {
    bool given;
    const char *value; /* of argv; NULL when not given */
} mgl_cli_text, mgl_cli_file;
typedef struct mgl_cli_int {
    bool given;
    int64_t value; /* 0 when not given */
} mgl_cli_int;
typedef struct mgl_cli_real {
    bool given;
    double value; /* 0 when not given */
} mgl_cli_real;

enum { MGL_CLI_MOST_LISTED = 16 };
typedef struct mgl_cli_list {
    bool given;
    size_t count;
    const char *values[MGL_CLI_MOST_LISTED]; /* (count) of argv */
} mgl_cli_list;

/* A row of a verb's table: X(kind, field, flag, argument, lo, hi, help). The argument says what may
 * be given, to people and to shells that complete it (cli/pages/values.h). */
typedef struct mgl_cli_option {
    mgl_cli_kind kind;
    size_t offset; /* of its value in the verb's struct */
    const char *flag, *argument, *help;
    int64_t lo, hi; /* of int and real */
} mgl_cli_option;

/* What other programs of this kind have taught their users: X(short, flag). It stands for the flag
 * in every verb that has the flag. */
#define MGL_CLI_SHORTS(X)                                                                          \
    X("-p", "--prompt")                                                                            \
    X("-n", "--max-tokens")
/* The flags by which other programs take their model: X(flag). Here it is an operand. */
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

/* A member of an initialiser that copies a part of `o`, a verb's struct of values. */
#define MGL_CLI_COPY(kind, field, flag, argument, lo, hi, help) .field = o->field,

/* Declares `struct options` and the rows of a verb's table. */
#define MGL_CLI_OPTIONS(TABLE)                                                                     \
    struct options {                                                                               \
        TABLE(MGL_CLI_FIELD)                                                                       \
    };                                                                                             \
    static const mgl_cli_option option_rows[] = {TABLE(MGL_CLI_ROW)};

/* What a model that runs can be told, and one that is lowered too. */
#define MGL_CLI_DEVICE_OPTION(X)                                                                   \
    X(text, device, "--device", "auto|cpu|cuda[:N]", 0, 0, "what it runs on (auto)")
#define MGL_CLI_DTYPE_OPTION(X)                                                                    \
    X(text, dtype, "--dtype", "auto|f32|bf16|f16", 0, 0,                                           \
      "number format (auto: the file's on a GPU, f32 on a CPU)")

/* What a model that runs on a CPU can be told. */
#define MGL_CLI_CPU_OPTIONS(X)                                                                     \
    X(int, threads, "--threads", "N", 1, 256, "threads of a CPU (one a processor)")                \
    X(flag, verify, "--verify", NULL, 0, 0,                                                        \
      "look at all checksums of a compiled model first, on a CPU too")

/* What a model that is lowered can be told. */
#define MGL_CLI_CONFIG_OPTION(X)                                                                   \
    X(file, config, "--config", "FILE", 0, 0, "a ScheduleConfig for lowering")
#define MGL_CLI_TUNED_OPTION(X)                                                                    \
    X(flag, no_tuned, "--no-tuned", NULL, 0, 0,                                                    \
      "the default schedule, even where there is a tuned one")

/* What a model that is run can be told. */
#define MGL_CLI_SCHEDULE_OPTION(X)                                                                 \
    X(file, schedule, "--schedule", "F.mls", 0, 0, "run this schedule in place of the lowered one")

/* What a model that is lowered or compiled for others can be told. */
#define MGL_CLI_PROMPT_OPTION(X)                                                                   \
    X(int, prompt_tokens, "--prompt-tokens", "N", 1, MGL_MAX_CAPACITY,                             \
      "tokens of a prompt; on a GPU a long one of one reply may have a task list of its own")
#define MGL_CLI_PENALTIES_OPTION(X)                                                                \
    X(flag, penalties, "--penalties", NULL, 0, 0,                                                  \
      "count tokens, so that replies may have penalties")

/* What a model that is run or compiled can be told. */
#define MGL_CLI_STRICT_OPTION(X)                                                                   \
    X(flag, strict_formats, "--strict-formats", NULL, 0, 0,                                        \
      "refuse number formats that cannot hold each number of the checkpoint")

/* The row that most verbs have. */
#define MGL_CLI_JSON_OPTION(X)                                                                     \
    X(flag, json, "--json", NULL, 0, 0, "one JSON object on standard output")

/* The row of verbs that take their time. */
#define MGL_CLI_QUIET_OPTION(X)                                                                    \
    X(flag, quiet, "--quiet", NULL, 0, 0, "no progress and no closing line on standard error")

/* ---- verbs ----------------------------------------------------------------------------------- */

/* What can be typed where a verb reads lines from a person: "/save", "FILE", what it does. */
typedef struct mgl_cli_typed {
    const char *name, *argument, *help; /* argument: "" where there is none */
} mgl_cli_typed;

typedef struct mgl_cli_verb {
    const char *name, *operand; /* operand: "MODEL", "F.mls"; NULL when it takes none */
    bool operand_is_file;       /* that is read: - becomes MGL_STDIN */
    bool operand_optional;      /* a flag may stand in its place */
    bool overlaid;              /* its kernels have the micro-kernels that the user promoted */
    const char *summary;        /* one line */
    const char *example;        /* whole command lines, one a line */
    const mgl_cli_option *options;
    size_t option_count, options_size;
    /* `options` is the verb's struct options. Failing with an empty err->message: the verb has said
     * itself what there is to say. */
    mgl_status (*run)(const char *operand, const void *options, mgl_error *err);
    /* A verb of several words: what may stand behind it, each a verb ("campaign list") with options
     * and help of its own; the fields from `operand` on but for `summary` and `example` mean
     * nothing then. */
    const struct mgl_cli_verb *const *words; /* (word_count); NULL: none */
    size_t word_count;
    const char *notes;          /* sentences that its help has behind the flags; NULL: none */
    bool judges;                /* it may end with a verdict: MGL_CLI_VERDICT_EXITS */
    const mgl_cli_typed *lines; /* (line_count) what its help says of lines; NULL: it reads none */
    size_t line_count;
} mgl_cli_verb;

#define MGL_CLI_VERBS(X)                                                                           \
    X(run)                                                                                         \
    X(chat)                                                                                        \
    X(compile)                                                                                     \
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
/* The verb of that name; NULL: there is none. */
const mgl_cli_verb *mgl_cli_find_verb(const char *name);
/* The verb of a word that may stand behind `verb`, "list" for "campaign list"; NULL: there is none.
 */
const mgl_cli_verb *mgl_cli_find_word(const mgl_cli_verb *verb, const char *word);
/* That word of its name: "list". */
const char *mgl_cli_last_word(const mgl_cli_verb *verb);

/* The common end of a verb's definition. */
#define MGL_CLI_VERB_OPTIONS                                                                       \
    .options = option_rows, .option_count = sizeof option_rows / sizeof *option_rows,              \
    .options_size = sizeof(struct options)

/* Parses the arguments behind the verb's name into `options` (options_size bytes, zeroed) and
 * *operand. Refused: unknown flags, missing or malformed values, a flag given twice, operands too
 * many or too few. */
mgl_status mgl_cli_parse(const mgl_cli_verb *verb, int argc, char **argv, const char **operand,
                         void *options, mgl_error *err);
/* The flag, or the operand, that reads standard input; *other: another one that does. NULL: none.
 */
const char *mgl_cli_reader(const mgl_cli_verb *verb, const char *operand, const void *options,
                           const char **other);
/* The short form of a flag; NULL: it has none. */
const char *mgl_cli_short_of(const char *flag);
/* Does the verb know this flag? */
bool mgl_cli_knows(const mgl_cli_verb *verb, const char *flag);
/* Was this flag, one without a value, given? `options` as filled by mgl_cli_parse. */
bool mgl_cli_has_flag(const mgl_cli_verb *verb, const void *options, const char *flag);

/* A list of ids, "1,2,3", "1 2 3" or "[1, 2, 3]": fails with `what` as the place. Release with
 * mgl_ids_clear. */
mgl_status mgl_cli_parse_ids(const char *text, const char *what, mgl_ids *out, mgl_error *err);

/* What a verb that does its work ends with in place of 0. */
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
    X("5", "watchdog stopped the kernel")                                                          \
    X("6", "a gate failed")                                                                        \
    X("128 + signal", "when Ctrl-C (130), TERM (143) or HUP (129) ended it")

/* Likewise, of a verb that ends with a verdict: those beside 0, which is kept. */
#define MGL_CLI_VERDICT_EXITS(X)                                                                   \
    X("10", "not kept")                                                                            \
    X("11", "refused")                                                                             \
    X("12", "wrong")                                                                               \
    X("13", "unmeasured")                                                                          \
    X("14", "frozen")
/* As words, with ", " in front of each. */
#define MGL_CLI_EXIT(code, meaning) ", " code " " meaning

/* What the program is, what a MODEL is, and what - is; in words, without line ends. */
extern const char mgl_cli_title[], mgl_cli_model_text[], mgl_cli_file_text[];

void mgl_cli_print_help(void);
void mgl_cli_print_verb_help(const mgl_cli_verb *verb);

/* ---- files and streams ----------------------------------------------------------------------- */

/* Standard output. A failure is remembered for mgl_cli_output_end; false from the first on.
 * mgl_cli_printf is that of base/format.h: what comes from files cannot speak to the terminal. The
 * two others write what they are given. */
bool mgl_cli_print(const char *bytes, size_t length);
bool mgl_cli_put(const char *string);
bool mgl_cli_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Behind `indent`, in lines that end where the text says so, and before the last word that would
 * not fit. */
void mgl_cli_put_wrapped(const char *indent, const char *text);
bool mgl_cli_flush(void);
/* A line of number formats, behind what names it. */
struct mgl_formats;
void mgl_cli_put_formats(const struct mgl_formats *formats);
bool mgl_cli_has_printed(void);
/* Can a line go to standard error without waiting, for its reader or for another thread? */
bool mgl_cli_takes_errors(void);
/* From a thread that is about to end the program: what was printed goes out, or `instead` if
 * nothing was. A reader is not waited for; another thread that prints, so many seconds. Nothing can
 * be printed afterwards. */
void mgl_cli_abandon_output(const char *instead, double seconds);
/* "3.1 ms", "0.25 s": for lines that a person reads. */
typedef struct mgl_cli_time {
    char text[16];
} mgl_cli_time;
mgl_cli_time mgl_cli_format_time(double seconds);
/* One line on standard error, "megalith VERB: ...". `verb` may be NULL. */
void mgl_cli_say(const char *verb, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same of each line of a text, which may be NULL. */
void mgl_cli_say_lines(const char *verb, const char *lines);
/* What should have been printed could not be made for lack of memory. */
void mgl_cli_lose_output(void);
/* MGL_OK, MGL_INTERRUPTED when the reader of a pipe went away, or why nothing could be written;
 * MGL_NO_MEMORY for what was lost. */
mgl_status mgl_cli_output_end(mgl_error *err);

/* Can a file be written there? To be asked before long work whose result goes there. */
mgl_status mgl_cli_check_file(const char *path, mgl_error *err);
/* The same, and is it none of those that are read: of the model, and the config (or NULL)? */
struct mgl_checkpoint; /* importer/checkpoint.h */
mgl_status mgl_cli_check_output(const char *path, const struct mgl_checkpoint *checkpoint,
                                const char *config, mgl_error *err);
/* Writes a whole file: what stood there is replaced when all is written, and kept when that fails.
 */
mgl_status mgl_cli_write_file(const char *path, const char *bytes, size_t length, mgl_error *err);

enum { MGL_CLI_MAX_TEXT = 256 << 20 }; /* bytes of a text, a prompt or a list that is read */

/* Closes a verb's object, prints it as one line on standard output, and releases it. Where memory
 * ran out on the way, a megalith.error/1 is printed in its place, and the verb ends with that. */
void mgl_cli_end_json(mgl_json_out *out);

#endif
