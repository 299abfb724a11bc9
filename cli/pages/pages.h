/*
 * The command line as others show it: completion for bash, zsh and fish, and a manual page. The
 * build makes all of them of the verbs' tables, by the program `megalith_pages`, so that none of
 * them says what the parser does not do. What does not come of a table stands in a template beside
 * this file, with the line @tables@ where the tables go.
 */
#ifndef MGL_CLI_PAGES_PAGES_H
#define MGL_CLI_PAGES_PAGES_H

#include "base/text.h"
#include "cli/cli.h"

/* Each appends its tables. */
void mgl_page_put_bash(mgl_text *out);
void mgl_page_put_zsh(mgl_text *out);
void mgl_page_put_fish(mgl_text *out);
void mgl_page_put_manual(mgl_text *out);

/* Visits each verb that has flags: "run", "campaign list", "kernel ptx diff". */
typedef void mgl_page_fn(mgl_text *out, const mgl_cli_verb *verb);
void mgl_page_each(mgl_text *out, mgl_page_fn *each);
/* Visits each verb that other words stand behind: "campaign", "kernel", "kernel ptx". */
void mgl_page_each_group(mgl_text *out, mgl_page_fn *each);

/* Appends a text in which each of the characters `marked` stands behind a backslash, and each ' is
 * written as `quote`, as a shell's string in single quotes has it. */
void mgl_page_put_escaped(mgl_text *out, const char *text, const char *marked, const char *quote);

/* ---- what may be given for a flag or an operand ---------------------------------------------- */

/* What an argument's name says of it: X(name, paths). */
#define MGL_PAGE_ARGUMENTS(X)                                                                      \
    X("FILE", FILES)                                                                               \
    X("F", FILES)                                                                                  \
    X("MODEL", MODELS)                                                                             \
    X("A:B", FOLDERS)                                                                              \
    X("CMD", PROGRAMS)

typedef enum mgl_page_paths {
    MGL_PAGE_NONE,
    MGL_PAGE_FILES, /* ... that end in `suffix`, and folders on the way there */
    MGL_PAGE_FOLDERS,
    MGL_PAGE_MODELS, /* folders, and files that `compile` made */
    MGL_PAGE_PROGRAMS
} mgl_page_paths;

typedef struct mgl_page_values {
    mgl_page_paths paths;
    char suffix[8]; /* "mls"; empty: any file */
    mgl_text words; /* with a blank in front of each; empty: none */
} mgl_page_values;

/* Of an argument as the tables have it: "auto|cpu|cuda[:N]" is auto, cpu or cuda; "F.mls" is a file
 * of that kind; "N" is nothing that a shell knows. Release with mgl_text_clear(&out->words). */
mgl_page_values mgl_page_read_values(const char *argument);

#endif
