/*
 * How Ctrl-C, TERM and HUP end a verb, whatever it is doing: within 0.2 s, with 128 + signal, one
 * line on standard error, and no file left behind.
 *
 * The three are blocked in every thread, and one thread waits for them. So no system call is
 * interrupted, and what answers a signal is ordinary code. The first signal sets the one switch
 * that every verb passes to the library or asks for between its steps; whoever does so ends by
 * itself, with what it has. What does not ask (parsing, the validator, tokenizing) is ended by the
 * thread that waits, 0.1 s after the signal. While the driver of a GPU is called, that thread only
 * says the line, and the end comes with the call. The second signal of a kind has its default
 * effect at once. A verb that talks to a person answers Ctrl-C itself, which then ends nothing.
 *
 * A signal that is ignored when the program starts (nohup) stays ignored.
 */
#ifndef MGL_CLI_SIGNALS_H
#define MGL_CLI_SIGNALS_H

#include "base/error.h"

/* From here on signals are waited for. `verb` is for the line; with `json`, a verb that has printed
 * nothing prints the error object. Where the system gives no thread, signals keep their default
 * effect. */
mgl_status mgl_cli_signals_start(const char *verb, bool json, mgl_error *err);

/* The switch; NULL before mgl_cli_signals_start. */
mgl_cancel *mgl_cli_cancel(void);
/* For long work, between its steps: MGL_INTERRUPTED once a signal came. */
mgl_status mgl_cli_check_cancel(mgl_error *err);

/* What the thread that waits does before it ends a verb that does not end by itself: `leave` is
 * called with the text, which is copied; it must not wait for anything. NULL: nothing. */
void mgl_cli_signals_leave(void (*leave)(const char *text), const char *text);

/* From here on a verb answers Ctrl-C itself, and goes on. `answer` is called on the thread that
 * waits, once for each SIGINT, and once more with `ends` for a signal that ends the verb, when the
 * switch is set: whoever waits for input is to be woken. It must not wait for anything. */
void mgl_cli_signals_answer(void (*answer)(bool ends));

/* If a signal came: says the line and the object, if nobody has, and is true. */
bool mgl_cli_signals_tell(void);
/* Behind the last output: 128 + the signal that came before, or 0. Signals that come later have
 * their default effect. */
int mgl_cli_signals_end(void);

#endif
