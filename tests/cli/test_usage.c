/* Tests of the flags, help and exit codes of every verb: input that is rejected before any work. */
#include "command.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const verbs[] = {"run",   "compile",  "lower",      "check",    "explain",
                                    "info",  "tokenize", "detokenize", "eval",     "bench",
                                    "trace", "tune",     "doctor",     "template", "quantize"};
enum { VERBS = sizeof verbs / sizeof *verbs };

/* A command line, its exit code, and a part of standard error. */
typedef struct usage_case {
    const char *line;
    int code;
    const char *message;
} usage_case;

static const usage_case cases[] = {
    {"", 1, "a verb is missing"},
    {"walk", 1, "unknown verb"},
    {"help walk", 1, "walk: unknown verb"},
    {"-m m -p x", 1, "-m: is a flag; a verb must come first: megalith run MODEL"},
    {"help run now", 1, "one verb at a time"},
    {"lower m --quiet", 1, "unknown flag"},
    /* Flags of later versions are unknown, not silently accepted. */
    {"check f.mls --dot", 1, "unknown flag"},
    {"run", 1, "'run' needs MODEL"},
    {"template m", 1, "--messages is missing"},
    {"template m --messages - --tools -", 1, "standard input can be read only once"},
    {"run ''", 1, "'run' needs MODEL"},
    {"run a b --prompt x", 1, "needs quotes"},
    {"doctor now", 1, "accepts only flags"},
    {"run m --promt x", 1, "did you mean '--prompt'?"},
    {"run m --xyzzyxyzzy", 1, "unknown flag of 'run'"},
    {"run m -x", 1, "unknown flag"},
    {"run m -p", 1, "--prompt: needs a value: --prompt TEXT"},
    {"run m -p x --prompt y", 1, "--prompt: is given twice"},
    {"run m -p x -n 0", 1, "--max-tokens: out of range: 0; allowed: 1 to"},
    {"run m -p x -n5", 1, "unknown flag"},
    {"run m -p -n 5", 1, "--prompt: needs a value"},
    {"trace m -o t.json -n 0", 1, "--max-tokens: out of range: 0; allowed: 1 to"},
    {"info m -p x", 1, "unknown flag of 'info'"},
    {"run -m m -p x", 1,
     "-m: is not a flag of 'run'; the model is given without a flag: megalith run MODEL"},
    {"run --model m", 1, "--model: is not a flag of 'run'; the model is given without a flag"},
    {"campaign status -m m", 1, "unknown flag"},
    {"run m --prompt", 1, "needs a value: --prompt TEXT"},
    {"run m --prompt --max-tokens 3", 1, "needs a value"},
    {"run m --json=yes --prompt x", 1, "takes no value"},
    {"run m --prompt x --prompt y", 1, "given twice"},
    {"run m", 1,
     "one of --prompt, --prompt-file, --prompt-ids, --prompts and --messages is needed"},
    {"run m --prompt x --prompt-ids 1", 1, "only one of"},
    {"run m --prompt x --prompts f.json", 1, "only one of"},
    {"lower m --sequences 65", 1, "allowed: 1 to 64"},
    {"lower m --prompt-tokens 0", 1, "allowed: 1 to"},
    {"compile m -o f --sequences 65", 1, "allowed: 1 to 64"},
    {"run m --prompt x --sample --top-k 3", 1, "--sample"},
    {"run m --prompt x --max-tokens 0", 1, "allowed: 1 to"},
    {"run m --prompt x --max-tokens -5", 1, "allowed: 1 to"},
    {"run m --prompt x --max-tokens ten", 1, "not a whole number"},
    {"run m --prompt x --max-tokens 1.5", 1, "not a whole number"},
    {"run m --prompt x --max-tokens 0x10", 1, "not a whole number"},
    {"run m --prompt x --max-tokens ' 5'", 1, "not a whole number"},
    {"run m --prompt x --max-tokens +5", 1, "not a whole number"},
    {"run m --prompt x --max-tokens ''", 1, "not a whole number"},
    {"run m --prompt x --max-tokens=", 1, "not a whole number"},
    {"run m --prompt x --max-tokens 5x", 1, "not a whole number"},
    {"run m --prompt x --max-tokens 99999999999999999999", 1, "out of range"},
    {"run m --prompt x --seed -1", 1, "out of range"},
    {"run m --prompt x --temperature -0.1", 1, "allowed: 0 to 1000"},
    {"run m --prompt x --temperature nan", 1, "not a number"},
    {"run m --prompt x --temperature inf", 1, "not a number"},
    {"run m --prompt x --temperature 1,5", 1, "not a number"},
    {"run m --prompt x --temperature 1e999", 1, "not a number"},
    {"run m --prompt x --top-p 1.01", 1, "allowed: 0 to 1"},
    {"run m --prompt x --top-k -1", 1, "out of range"},
    {"run m --prompt x --capacity 0", 1, "allowed: 1 to"},
    {"lower m --rows 17", 1, "allowed: 1 to 16"},
    {"lower m --json", 1, "unknown flag"},
    {"explain", 1, "'explain' needs MGnnn"},
    {"explain MG000", 1, "unknown diagnostic"},
    {"explain MG2030", 1, "unknown diagnostic"},
    {"explain nonsense", 1, "unknown diagnostic"},
    {"explain MG203 --context 5", 1, "--context: is for a schedule"},
    {"explain f.mls --batch 65", 1, "allowed: 1 to 64"},
    {"explain f.mls --prompt 129", 1, "allowed: 1 to 128"},
    {"explain MG203 --prompt 2", 1, "--prompt: is for a schedule"},
    {"detokenize m", 1, "give ids there, or --ids or --ids-file"},
    {"tokenize m --text a --texts b", 1, "only one of"},
    {"eval m", 1, "--texts is needed"},
    {"compile m", 1, "-o: is missing"},
    {"compile -o f", 1, "'compile' needs MODEL"},
    {"compile m -o f --capacity 0", 1, "allowed: 1 to"},
    {"compile m -o f --rows 8", 1, "unknown flag"},
    {"compile m -o f --schedule s.mls --config c.json", 1, "leave out config"},
    {"compile m -o f --schedule s.mls --target cpu:1", 1, "leave out target"},
    {"bench", 1, "give --shape or MODEL"},
    {"bench m --shape llama-1b", 1, "leave out one of the two"},
    {"bench --shape llama-2b", 1,
     "there are llama-1b, llama-3b, llama-8b, smollm2-135m, qwen2.5-0.5b, qwen3-0.6b, "
     "tinyllama-1.1b"},
    {"bench --shape llama-1b --dtype int5", 1,
     "--dtype: unknown format: \"int5\"; supported: bf16, int8, int4, fp8"},
    {"bench --shape llama-1b --dtype bf16,", 1, "unknown format: \"\";"},
    {"bench --shape llama-1b --head-dtype f32", 1, "--head-dtype: unknown format: \"f32\""},
    {"bench --shape llama-1b --dtype int4 --group 48", 1,
     "--group: neither 16 nor a multiple of 32: 48"},
    {"bench --shape llama-1b --dtype int4 --group 16 --batch ''", 1, "--batch: is empty"},
    {"bench --shape llama-1b --group 64", 1, "--group: bf16 weights have no groups: 64; add"},
    {"bench --shape llama-1b --batch ''", 1, "is empty"},
    {"bench --shape llama-1b --batch 1,65", 1, "65 sequences; there may be 1 to 64"},
    {"bench --shape llama-1b --top-p 0.9", 1, "add --temperature"},
    {"bench --shape llama-1b --prompt 9 --temperature 0.8", 1, "leave out one of the two"},
    {"bench --shape llama-1b --context 1,x", 1, "--context"},
    {"bench --shape llama-1b --context 0,131072", 1, "the model has 131072 positions"},
    {"bench --shape llama-1b --capacity 32", 1, "33 are needed, and the cache has 32"},
    {"bench --shape llama-1b --capacity 4096 --context 0,4064", 1, "the cache has 4096"},
    {"bench --shape llama-1b --capacity 4096,131073", 1, "131073 positions; the model has 131072"},
    {"bench --shape llama-1b --capacity 0", 1, "must be at least 1, not 0"},
    {"bench --shape llama-1b --prompt 512 --batch 2", 1, "--batch: applies to decoding"},
    {"bench --shape llama-1b --prompt 512 --tokens 8", 1, "--tokens: applies to decoding"},
    {"bench --shape llama-1b --prompt 0", 1, "must be at least 1, not 0"},
    {"bench --shape llama-1b --prompt ''", 1, "is empty"},
    {"bench --shape llama-1b --prompt once", 1, "--prompt"},
    {"bench --shape llama-1b --prompt 512,131072", 1, "the model has 131072 positions"},
    {"bench --shape llama-1b --prompt 512 --capacity 512", 1, "513 are needed, and the cache has"},
    {"bench --shape llama-1b --layers 17", 1, "the model has 16"},
    {"bench --shape llama-1b --layers 1,2,17", 1, "the model has 16"},
    {"bench --shape llama-1b --layers 0", 1, "must be at least 1, not 0"},
    {"bench --shape llama-1b --layers 1,x", 1, "--layers"},
    {"bench --shape llama-1b --hidden 1000", 1, "do not come out even"},
    {"bench --shape llama-1b --hidden ''", 1, "is empty"},
    {"bench --shape llama-1b --queues 0", 1, "must be at least 1, not 0"},
    {"bench --shape llama-1b --queues 64,257", 1, "257 queues; there may be 1 to 256"},
    {"bench --shape llama-1b --samples 0", 1, "allowed: 1 to"},
    {"bench --shape llama-1b --device cpu", 1, "needs a GPU"},
    {"trace m", 1, "-o is missing"},
    {"trace -o t.json", 1, "'trace' needs MODEL"},
    {"trace m -o t.json --device cpu", 1, "records no trace"},
    {"trace m -o t.json --prompt x --prompt-ids 1", 1, "only one of"},
    {"trace m -o t.json --prompt x --context 9", 1, "only one of"},
    {"trace m -o t.json --epochs 0", 1, "allowed: 1 to"},
    {"trace m -o t.json --max-tokens 0", 1, "allowed: 1 to"},
    {"trace m -o t.json --schedule f.mls", 1, "unknown flag"},
    {"tune", 1, "give --shape or MODEL"},
    {"tune m --shape llama-1b", 1, "leave out one of the two"},
    {"tune --shape llama-2b --dry-run", 1, "unknown shape"},
    {"tune --shape llama-1b --dry-run --device tpu", 1, "supported: cuda, cuda:N, cpu and none"},
    {"tune --shape llama-1b --dry-run --target sm_90a:132", 1, "is fixed by the GPU"},
    {"tune --shape llama-1b --dry-run --device none --target x", 1, "x"},
    {"tune --shape llama-1b --dry-run --device none --dtype int5", 1,
     "int5: unknown dtype; supported: bf16, f16, f32, int8, int4 and fp8"},
    {"tune --shape llama-1b --dry-run --device none --dtype int4,int8", 1, "unknown dtype"},
    {"tune --shape llama-1b --dry-run --device none --head-dtype f32", 1,
     "--head-dtype: unknown format: \"f32\"; supported: bf16, int8, int4, fp8"},
    {"tune --shape llama-1b --dry-run --device none --dtype int4 --group 48", 1,
     "--group: neither 16 nor a multiple of 32: 48"},
    {"tune --shape llama-1b --dry-run --device none --dtype f32 --group 64", 1,
     "--group: bf16 weights have no groups: 64"},
    {"tune --shape llama-1b --dry-run --device none --dtype i32", 1, "unknown dtype"},
    {"tune --shape llama-1b --dry-run --device none --workloads ctx=5000", 1, "do not fit"},
    {"tune --shape llama-1b --dry-run --device none --workloads ctx", 1, "workloads"},
    {"tune --shape llama-1b --dry-run --device none --capacity 200000", 1, "has 131072"},
    {"tune --shape llama-1b --trials 0", 1, "allowed: 1 to"},
    {"campaign", 1, "a word is missing"},
    {"campaign walk", 1, "walk: unknown"},
    {"campaign submit", 1, "'campaign submit' needs F"},
    {"campaign delete", 1, "'campaign delete' needs NAME"},
    {"campaign list now", 1, "accepts only flags"},
    {"kernel", 1, "a word is missing"},
    {"kernel show", 1, "'kernel show' needs UNIT"},
    {"kernel guard", 1, "a word is missing; 'megalith kernel guard --help' lists"},
    {"kernel guard scan", 1, "'kernel guard scan' needs FILE"},
    {"kernel guard selftest x", 1, "kernel guard selftest"},
    {"help kernel guard nothing", 1, "help shows one verb at a time"},
    {"kernel show gemm", 1, "is no micro-kernel; there are norm_linear"},
    {"kernel show merge --region host", 1, "is no region"},
    {"kernel verify merge", 1, "--text is missing"},
    {"kernel verify merge --text f --tune A", 1, "invalid value"},
    {"kernel verify merge --text /nowhere.cuh", 2, "/nowhere.cuh"},
    {"campaign status --wait", 1, "unknown flag of 'campaign status'"},
    /* Missing input. */
    {"tune /nowhere --device none --dry-run", 2, "/nowhere"},
    {"campaign list --store /nowhere/x.db", 2, "/nowhere/x.db"},
    {"campaign submit /nowhere.json", 2, "/nowhere.json"},
    {"campaign import /nowhere.json", 2, "/nowhere.json"},
    {"run /nowhere --prompt x", 2, "/nowhere"},
    {"run no-org/no-name --prompt x", 2, "no-org/no-name"},
    {"lower /nowhere", 2, "/nowhere"},
    {"check /nowhere.mls", 2, "/nowhere.mls"},
    {"explain /nowhere.mls", 2, "/nowhere.mls"},
    {"info /nowhere", 2, "/nowhere"},
    {"tokenize /nowhere --text x", 2, "/nowhere"},
    {"detokenize /nowhere --ids 1", 2, "/nowhere"},
    {"eval /nowhere --texts x.json", 2, "/nowhere"},
    {"bench /nowhere", 2, "/nowhere"},
    {"compile /nowhere -o f.mega", 2, "/nowhere"},
    {"trace /nowhere -o t.json", 2, "/nowhere"},
};

static size_t count_lines(const char *text)
{
    size_t lines = 0;
    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

START_TEST(rejects)
{
    const usage_case *c = &cases[_i];
    command_result result = command_run(c->line, NULL);
    ck_assert_msg(result.code == c->code, "megalith %s: exit %d, not %d\n%s", c->line, result.code,
                  c->code, result.err);
    ck_assert_msg(strstr(result.err, c->message) != NULL, "megalith %s says '%s', without '%s'",
                  c->line, result.err, c->message);
    ck_assert_msg(count_lines(result.err) == 1, "megalith %s: not one message: %s", c->line,
                  result.err);
    ck_assert_msg(strcmp(result.out, "") == 0, "megalith %s prints %s", c->line, result.out);
    command_clear(&result);
}
END_TEST

START_TEST(errors_are_an_object_with_json)
{
    command_result result = command_run("run m --json --promt x", NULL);
    ck_assert_int_eq(result.code, 1);
    mgl_json json = command_json(&result, "megalith.error/1");
    ck_assert_int_eq((int)json_number(&json, "exit"), 1);
    ck_assert_str_eq(json_string(&json, "where"), "--promt");
    mgl_json_clear(&json);
    command_clear(&result);
    result = command_run("info /nowhere --json", NULL);
    ck_assert_int_eq(result.code, 2);
    json = command_json(&result, "megalith.error/1");
    ck_assert_int_eq((int)json_number(&json, "exit"), 2);
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

START_TEST(help_of_a_verb)
{
    command_result result = command_runf("%s --help", verbs[_i]);
    ck_assert_int_eq(result.code, 0);
    ck_assert_str_eq(result.err, "");
    ck_assert_ptr_nonnull(strstr(result.out, "usage: megalith "));
    ck_assert_ptr_nonnull(strstr(result.out, verbs[_i]));
    char example[64] = "Example:\n  megalith ";
    ck_assert_ptr_nonnull(strstr(result.out, example));
    ck_assert_ptr_nonnull(strstr(result.out, "Exit codes:"));
    command_clear(&result);
}
END_TEST

START_TEST(help_is_a_verb)
{
    command_result flag = command_runf("%s --help", verbs[_i]);
    command_result verb = command_runf("help %s", verbs[_i]);
    ck_assert_int_eq(verb.code, 0);
    ck_assert_str_eq(verb.out, flag.out);
    command_clear(&verb);
    command_clear(&flag);
}
END_TEST

START_TEST(help_alone_is_all_of_it)
{
    command_result flag = command_run("--help", NULL), verb = command_run("help", NULL);
    ck_assert_int_eq(verb.code, 0);
    ck_assert_str_eq(verb.out, flag.out);
    command_clear(&verb);
    command_clear(&flag);
}
END_TEST

START_TEST(help_names_every_verb)
{
    command_result result = command_run("--help", NULL);
    ck_assert_int_eq(result.code, 0);
    for (size_t i = 0; i < VERBS; i++)
        ck_assert_ptr_nonnull(strstr(result.out, verbs[i]));
    command_clear(&result);
    result = command_run("--version", NULL);
    ck_assert_int_eq(result.code, 0);
    ck_assert_int_eq(strncmp(result.out, "megalith ", 9), 0);
    command_clear(&result);
}
END_TEST

static void check_same_output(const char *line, const char *other_line)
{
    command_result result = command_run(line, NULL), other = command_run(other_line, NULL);
    ck_assert_int_eq(result.code, 0);
    ck_assert_int_eq(other.code, 0);
    ck_assert_str_eq(result.out, other.out);
    command_clear(&result);
    command_clear(&other);
}

START_TEST(short_forms_of_what_every_verb_has)
{
    check_same_output("-V", "--version");
    check_same_output("-h", "--help");
    check_same_output("run -h", "run --help");
    check_same_output("campaign -h", "help campaign");
    check_same_output("campaign submit -h", "help campaign submit");
}
END_TEST

START_TEST(short_forms_of_run)
{
    char line[1200], long_line[1200];
    snprintf(line, sizeof line, "run %s --device cpu -p Once -n 3", model_path("tales-5m"));
    snprintf(long_line, sizeof long_line, "run %s --device cpu --prompt Once --max-tokens 3",
             model_path("tales-5m"));
    check_same_output(line, long_line);
}
END_TEST

START_TEST(help_shows_short_forms)
{
    command_result result = command_run("run --help", NULL);
    ck_assert_ptr_nonnull(strstr(result.out, "\n  -p, --prompt TEXT "));
    ck_assert_ptr_nonnull(strstr(result.out, "\n  -n, --max-tokens N "));
    ck_assert_ptr_nonnull(strstr(result.out, "\n  -h, --help "));
    ck_assert_ptr_null(strstr(result.out, "\n  -m"));
    command_clear(&result);
}
END_TEST

/* The parser knows every flag that help lists: it asks for a value, or accepts the flag. */
START_TEST(help_lists_what_the_parser_knows)
{
    command_result help = command_runf("%s --help", verbs[_i]);
    int flags = 0;
    for (char *line = strtok(help.out, "\n"); line; line = strtok(NULL, "\n")) {
        if (strncmp(line, "  -", 3))
            continue;
        for (const char *flag = line + 2; *flag == '-'; flags++) { /* "-p, --prompt TEXT" */
            size_t length = strcspn(flag, ", ");
            if (strncmp(flag, "-h", length) != 0 && strncmp(flag, "--help", length) != 0) {
                command_result result = command_runf("%s '' %.*s", verbs[_i], (int)length, flag);
                ck_assert_int_ne(result.code, 0);
                ck_assert_msg(strstr(result.err, "unknown") == NULL, "%s: %s", verbs[_i],
                              result.err);
                command_clear(&result);
            }
            flag += length;
            flag += strspn(flag, ", ");
        }
    }
    ck_assert_int_gt(flags, 0);
    command_clear(&help);
}
END_TEST

/* The values that help lists for a flag are those that the error message lists. */
static const struct {
    const char *verb, *flag, *line;
} choices[] = {
    {"lower", "--dtype", "lower %s --target cpu:1 --dtype nonsense"},
    {"tune", "--dtype", "tune %s --device none --dry-run --dtype nonsense"},
    {"tune", "--proposer", "tune %s --device none --trials 1 --proposer nonsense"},
    {"tune", "--shape", "tune --device none --dry-run --shape nonsense"},
    {"tune", "--device", "tune %s --dry-run --device nonsense"},
    {"bench", "--shape", "bench --shape nonsense"},
    {"bench", "--dtype", "bench %s --dtype nonsense"},
};
enum { CHOICES = sizeof choices / sizeof *choices };

START_TEST(help_lists_what_may_be_given)
{
    char line[1200], *save, start[40];
    command_result help = command_runf("%s --help", choices[_i].verb);
    snprintf(start, sizeof start, "\n  %s ", choices[_i].flag);
    char *argument = strstr(help.out, start);
    ck_assert_ptr_nonnull(argument);
    argument += strlen(start);
    argument[strcspn(argument, " \n")] = 0;
    setenv("XDG_STATE_HOME", scratch_folder(), 1);
    snprintf(line, sizeof line, choices[_i].line, model_path("tales-5m"));
    command_result refused = command_run(line, NULL);
    unsetenv("XDG_STATE_HOME");
    ck_assert_int_eq(refused.code, 1);
    for (char *word = strtok_r(argument, "|", &save); word; word = strtok_r(NULL, "|", &save)) {
        word[strcspn(word, "[")] = 0; /* optional parts */
        ck_assert_msg(strstr(refused.err, word) != NULL, "%s of %s: no %s: %s", choices[_i].flag,
                      choices[_i].verb, word, refused.err);
    }
    command_clear(&refused);
    command_clear(&help);
}
END_TEST

START_TEST(flags_end_at_two_dashes)
{
    command_result result = command_run("info -- --json", NULL);
    ck_assert_int_eq(result.code, 2);
    ck_assert_ptr_nonnull(strstr(result.err, "--json"));
    ck_assert_str_eq(result.out, "");
    command_clear(&result);
}
END_TEST

START_TEST(doctor_answers)
{
    command_result result = command_run("doctor", NULL);
    ck_assert_int_eq(result.code, 0);
    ck_assert_ptr_nonnull(strstr(result.out, " cores, "));
    ck_assert_ptr_nonnull(strstr(result.out, "\nfrozen    ok       version "));
    ck_assert_ptr_nonnull(strstr(result.out, "\nsandbox   "));
    if (!strstr(result.out, "\nOpenBLAS  ok       version 0."))
        ck_assert_ptr_nonnull(strstr(result.out, "install the package"));
    command_clear(&result);
    result = command_run("doctor --json", NULL);
    ck_assert_int_eq(result.code, 0);
    mgl_json json = command_json(&result, "megalith.doctor/1");
    ck_assert_ptr_nonnull(json_string(&json, "version"));
    ck_assert(cJSON_IsArray(json_at(&json, "devices")));
    ck_assert(cJSON_IsObject(json_at(&json, "limits")));
    ck_assert(cJSON_IsString(json_at(&json, "openblas.version")) !=
              cJSON_IsString(json_at(&json, "openblas.reason")));
    ck_assert_uint_eq(strlen(json_string(&json, "frozen.digest")), 64);
    ck_assert(cJSON_IsBool(json_at(&json, "sandbox.seccomp")));
    ck_assert_double_ge(json_number(&json, "sandbox.landlock_abi"), 0);
    mgl_json_clear(&json);
    command_clear(&result);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli usage");
    TCase *tests = tcase_create("usage");
    tcase_set_timeout(tests, 100);
    tcase_add_loop_test(tests, rejects, 0, (int)(sizeof cases / sizeof *cases));
    tcase_add_test(tests, errors_are_an_object_with_json);
    tcase_add_loop_test(tests, help_of_a_verb, 0, VERBS);
    tcase_add_loop_test(tests, help_is_a_verb, 0, VERBS);
    tcase_add_test(tests, help_alone_is_all_of_it);
    tcase_add_test(tests, help_names_every_verb);
    tcase_add_test(tests, short_forms_of_what_every_verb_has);
    tcase_add_test(tests, short_forms_of_run);
    tcase_add_test(tests, help_shows_short_forms);
    tcase_add_loop_test(tests, help_lists_what_the_parser_knows, 0, VERBS);
    tcase_add_loop_test(tests, help_lists_what_may_be_given, 0, CHOICES);
    tcase_add_test(tests, flags_end_at_two_dashes);
    tcase_add_test(tests, doctor_answers);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
