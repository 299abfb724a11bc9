/*
 * Text on its way to a terminal, in lines that end at blanks. A word is held back until what
 * follows says that it is whole: then it is printed on the line, or on the next one, and a line end
 * takes the place of the blanks in front of it. Nothing else is added or left out, so that a text
 * that is copied has its words.
 *
 * Code stays as it is: what stands between fences of three marks, lines that are indented by four
 * blanks or a tab, and rows of tables. So does a word that is longer than a line. East Asian
 * characters, which have no blanks between them, are words of their own.
 */
#ifndef MGL_CLI_WRAP_H
#define MGL_CLI_WRAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MGL_CLI_WRAP_HELD = 1024 };

/* Zero-initialize and set `columns` and `put`, or let mgl_cli_wrap_start do that. */
typedef struct mgl_cli_wrap {
    int (*columns)(void); /* of the terminal at present; 0: text is printed as it comes */
    bool (*put)(const char *bytes, size_t length);

    /* Held back: blanks, and behind them the word that they are in front of. */
    char held[MGL_CLI_WRAP_HELD]; /* (gap + word) bytes */
    size_t gap, word;
    int gap_width, word_width; /* columns */
    char part[4];              /* (part_length) of a character that is not whole yet */
    size_t part_length;

    int width;        /* of the terminal, at the present text */
    int column;       /* where the cursor stands; `width` behind the last column */
    bool begun;       /* something of the line of the text was printed */
    bool plain;       /* that line stays as it is */
    bool through;     /* the word is longer than a line: it is printed as it comes */
    char fence;       /* within code: the mark of its fence, else 0 */
    uint32_t last;    /* character of the word; 0: it has none yet */
    int32_t grapheme; /* of utf8proc, between two characters */
} mgl_cli_wrap;

/* For standard output: nothing is wrapped where that is no terminal or its width is not known. */
void mgl_cli_wrap_start(mgl_cli_wrap *wrap);
/* False once standard output could not be written. */
bool mgl_cli_wrap_print(mgl_cli_wrap *wrap, const char *text, size_t length);
/* A whole text. */
bool mgl_cli_wrap_all(const char *text, size_t length);
/* Prints what is held back. */
bool mgl_cli_wrap_end(mgl_cli_wrap *wrap);

#endif
