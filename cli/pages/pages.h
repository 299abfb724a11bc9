/*
 * Generates the shell completions for bash, zsh and fish, and the manual page. The program
 * `megalith_pages`, run by the build, generates all of them from the verbs' tables, so they match
 * the parser. Text that is not in a table is in a template beside this file. The line @tables@ of a
 * template is replaced by the tables.
 */
#ifndef MGL_CLI_PAGES_PAGES_H
#define MGL_CLI_PAGES_PAGES_H

#include "base/text.h"
#include "cli/cli.h"

/* Each function appends the tables of one page. */
void mgl_page_put_bash(mgl_text *out);
void mgl_page_put_zsh(mgl_text *out);
void mgl_page_put_fish(mgl_text *out);
void mgl_page_put_manual(mgl_text *out);

/* Visits each verb that has flags: "run", "campaign list", "kernel ptx diff". */
typedef void mgl_page_fn(mgl_text *out, const mgl_cli_verb *verb);
void mgl_page_each(mgl_text *out, mgl_page_fn *each);
/* Visits each verb that has subcommands: "campaign", "kernel", "kernel ptx". */
void mgl_page_each_group(mgl_text *out, mgl_page_fn *each);

/* Appends a text for a shell's single-quoted string: a backslash is put before each character of
 * `marked`, and each ' is written as `quote`. */
void mgl_page_put_escaped(mgl_text *out, const char *text, const char *marked, const char *quote);

/* ---- values of flags and operands ------------------------------------------------------------ */

/* The values that an argument's name implies: X(name, paths). */
#define MGL_PAGE_ARGUMENTS(X)                                                                      \
    X("FILE", FILES)                                                                               \
    X("F", FILES)                                                                                  \
    X("MODEL", MODELS)                                                                             \
    X("A:B", FOLDERS)                                                                              \
    X("CMD", PROGRAMS)

typedef enum mgl_page_paths {
    MGL_PAGE_NONE,
    MGL_PAGE_FILES, /* files that end in `suffix`, and folders */
    MGL_PAGE_FOLDERS,
    MGL_PAGE_MODELS, /* folders and compiled models */
    MGL_PAGE_PROGRAMS
} mgl_page_paths;

typedef struct mgl_page_values {
    mgl_page_paths paths;
    char suffix[8]; /* "mls"; empty: any file */
    mgl_text words; /* each after a blank; empty: none */
} mgl_page_values;

/* Reads an argument of the tables: "auto|cpu|cuda[:N]" is auto, cpu or cuda; "F.mls" is a file with
 * that suffix; "N" has no values that a shell can complete. Release with
 * mgl_text_clear(&out->words). */
mgl_page_values mgl_page_read_values(const char *argument);

#endif
