/*
 * Ends a verb after Ctrl-C, TERM or HUP: within 0.2 s, with exit code 128 + signal, one line on
 * standard error, and no partial file.
 *
 * Signals are handled synchronously. All threads block the three signals, and one thread waits for
 * them, so no system call is interrupted and no code runs in a signal handler. The first signal
 * sets the cancel switch that every verb passes to the library or checks between its steps. Work
 * that checks the switch ends normally, with what it has. Work without checks (parsing, the
 * validator, tokenizing) is ended by the waiting thread 0.1 s after the signal. During a call of
 * the GPU driver, the waiting thread only prints the line, and the verb ends when the call returns.
 * A second signal of the same kind has its default effect at once. An interactive verb handles
 * Ctrl-C itself, and Ctrl-C then does not end the verb.
 *
 * A signal that is ignored when the program starts (nohup) stays ignored.
 */
#ifndef MGL_CLI_SIGNALS_H
#define MGL_CLI_SIGNALS_H

#include "base/error.h"

/* Starts waiting for signals. `verb` is printed in the line. With `json`, a verb that has
 * printed nothing prints the error object. If no thread can be created, signals keep their
 * default effect. */
mgl_status mgl_cli_signals_start(const char *verb, bool json, mgl_error *err);

/* The cancel switch; NULL before mgl_cli_signals_start. */
mgl_cancel *mgl_cli_cancel(void);
/* Call between the steps of long work: MGL_INTERRUPTED after a signal. */
mgl_status mgl_cli_check_cancel(mgl_error *err);

/* Sets an action for the waiting thread before it ends a verb that does not end by itself: `leave`
 * is called with a copy of `text`, and must not block. NULL: no action. */
void mgl_cli_signals_leave(void (*leave)(const char *text), const char *text);

/* Sets a text that follows the name of the signal in the line about the interruption, such as
 * "; the same command continues the calibration". Static storage; NULL: no text. */
void mgl_cli_signals_hint(const char *hint);

/* Makes a verb handle Ctrl-C itself. The waiting thread calls `answer` for each SIGINT. It calls
 * `answer` once with `ends` for a signal that ends the verb, after setting the switch; `answer`
 * then wakes whatever waits for input. `answer` must not block. */
void mgl_cli_signals_answer(void (*answer)(bool ends));

/* After a signal: prints the line and the object unless they were printed, and returns true. */
bool mgl_cli_signals_tell(void);
/* Call after the last output: returns 128 + the signal received so far, or 0. Later signals have
 * their default effect. */
int mgl_cli_signals_end(void);

#endif
