/*
 * Fuzz target of schedule texts. The bytes must be rejected with a position, or give a program that
 * is equal after printing and reading, with the same print. The validator must accept the program,
 * or reject it with at least one diagnostic.
 */
#include "base/memory.h"
#include "schedule/schedule.h"
#include "validator/validator.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static mgl_text print(const mgl_program *program)
{
    mgl_text text = {0};
    mgl_schedule_print(program, &text);
    require(!text.failed);
    return text;
}

static void check(const mgl_program *program)
{
    mgl_verdict verdict = {0};
    mgl_error err = {0};
    require(mgl_validator_check(program, NULL, &verdict, &err) == MGL_OK);
    require(verdict.accepted == (verdict.count == 0) && !verdict.meaning_checked);
    mgl_verdict_clear(&verdict);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mgl_program *program = NULL, *again = NULL;
    mgl_error err = {0};
    mgl_status status = mgl_schedule_parse((const char *)data, size, "fuzz", &program, &err);
    if (status) {
        bool whole = !strcmp(err.where, "fuzz"); /* the file begins with a byte order mark */
        require(status == MGL_BAD_INPUT && !program && (whole || !strncmp(err.where, "fuzz:", 5)));
        return 0;
    }
    mgl_text text = print(program);
    require(mgl_schedule_parse(text.bytes, text.length, "again", &again, &err) == MGL_OK);
    require(mgl_program_equal(program, again));
    mgl_text second = print(again);
    require(text.length == second.length && !memcmp(text.bytes, second.bytes, text.length));
    check(program);
    mgl_text_clear(&text);
    mgl_text_clear(&second);
    mgl_program_free(program);
    mgl_program_free(again);
    return 0;
}
