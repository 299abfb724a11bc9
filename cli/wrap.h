/*
 * Greedy line breaking of text for a terminal: lines end at blanks. A word is held back until it is
 * known to be whole. Then the word is printed on the current line, or on the next line; in that
 * case a line end replaces the blanks before it. Nothing else is added or left out.
 *
 * Code is not changed: text between fences of three marks, lines that are indented by four blanks
 * or a tab, and rows of tables. A word that is longer than a line is not changed either. Each East
 * Asian character is a word, because there are no blanks between these characters.
 */
#ifndef MGL_CLI_WRAP_H
#define MGL_CLI_WRAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MGL_CLI_WRAP_HELD = 1024 };

/* Zero-initialize and set `columns` and `put`, or let mgl_cli_wrap_start do that. */
typedef struct mgl_cli_wrap {
    int (*columns)(
        void); /* returns the columns of the terminal now; 0: text is printed unchanged */
    bool (*put)(const char *bytes, size_t length);

    /* Held back: blanks, and the word after them. */
    char held[MGL_CLI_WRAP_HELD]; /* (gap + word) bytes */
    size_t gap, word;
    int gap_width, word_width; /* columns */
    char part[4];              /* (part_length) bytes of an incomplete character */
    size_t part_length;

    int width;        /* columns of the terminal, for the current text */
    int column;       /* column of the cursor; equals `width` after the last column */
    bool begun;       /* part of the text's line was printed */
    bool plain;       /* the line is not wrapped */
    bool through;     /* the word is longer than a line: it is printed unchanged */
    char fence;       /* inside a code block: the mark of its fence; else 0 */
    uint32_t last;    /* last character of the word; 0: none yet */
    int32_t grapheme; /* state of utf8proc's grapheme breaking */
} mgl_cli_wrap;

/* Starts wrapping of standard output. If it is not a terminal or its width is unknown, text is
 * printed unchanged. */
void mgl_cli_wrap_start(mgl_cli_wrap *wrap);
/* Returns false if standard output cannot be written. */
bool mgl_cli_wrap_print(mgl_cli_wrap *wrap, const char *text, size_t length);
/* Prints a whole text. */
bool mgl_cli_wrap_all(const char *text, size_t length);
/* Prints what is held back. */
bool mgl_cli_wrap_end(mgl_cli_wrap *wrap);

#endif
