/* Opens the tokenizer of a model for verbs that can run without it, and prints it in `info`. */
#ifndef MGL_CLI_GENERATE_TOKENIZER_H
#define MGL_CLI_GENERATE_TOKENIZER_H

#include "base/json_out.h"
#include "megalith.h"

/* Opens the tokenizer of the model at `path`. If it is not `needed`, a model without tokenizer.json
 * has none (*out is NULL). The same holds for a tokenizer that cannot be used, and a line on
 * standard error gives the reason. */
mgl_status mgl_cli_open_tokenizer(const char *verb, const char *path, bool needed,
                                  mgl_tokenizer **out, mgl_error *err);

/* Print the tokenizer in `info`: its lines, and the member "tokenizer" of the JSON. A tokenizer
 * that cannot be used is not an error: *usable is false. */
mgl_status mgl_cli_print_tokenizer(const char *path, bool *usable, mgl_error *err);
mgl_status mgl_cli_put_tokenizer(mgl_json_out *out, const char *path, mgl_error *err);

#endif
