/* Tests of the messages for verbs, flags, devices and addresses of other programs. */
#include "command.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct hint {
    const char *line;
    int code;
    const char *says;
    const char * not ; /* NULL: nothing */
} hint;

static const hint hints[] = {
    /* Verbs of ollama, llama.cpp and vllm. */
    {"serve m", 1, "serve: unknown verb; there is no server; 'megalith run MODEL --prompt", NULL},
    {"pull llama3.2", 1, "nothing is downloaded; `hf download ORG/NAME` fetches", NULL},
    {"list", 1, "`hf cache ls` lists", NULL},
    {"ls", 1, "`hf cache ls` lists", NULL},
    {"rm x", 1, "`hf cache rm`", NULL},
    {"generate m", 1, "'megalith run MODEL --prompt TEXT' generates a reply", NULL},
    {"complete m", 1, "'megalith run MODEL --prompt TEXT' generates a reply", NULL},
    {"version", 1, "'megalith --version' prints the version", NULL},
    {"show m", 1, "'megalith info MODEL'", NULL},
    {"ps", 1, "no model stays loaded", NULL},
    {"create x", 1, "'megalith compile MODEL -o F.mega'", NULL},
    {"perplexity m", 1, "'megalith eval MODEL --file FILE'", NULL},
    {"quantise m", 1, "did you mean 'quantize'?", NULL},
    {"run m -p x --load-in-4bit", 1, "'megalith quantize MODEL -o DIR' makes one", NULL},
    {"help serve", 1, "there is no server", NULL},
    {"collect-env", 1, "'megalith doctor'", NULL},
    {"-v", 1, "-V is the version", NULL},
    {"runn m", 1, "did you mean 'run'?", NULL},
    {"tokenise m", 1, "did you mean 'tokenize'?", NULL},
    {"org/name", 1, "a verb must come before MODEL: megalith run org/name --prompt TEXT", NULL},
    {"'Once there was'", 1, "'megalith run MODEL --prompt TEXT'", NULL},
    {"xyzzy", 1, "unknown verb; 'megalith help' lists them", "did you mean"},
    /* Flags. */
    {"run m --temp 0.5", 1, "did you mean '--temperature'?", NULL},
    {"run m --temp=0.5", 1, "did you mean '--temperature'?", NULL},
    {"run m --top_p 0.5", 1, "did you mean '--top-p'?", NULL},
    {"run m --max_new_tokens=9", 1, "did you mean '--max-tokens'?", NULL},
    {"run m --n-predict 9", 1, "did you mean '--max-tokens'?", NULL},
    {"run m --ctx-size 9", 1, "did you mean '--capacity'?", NULL},
    {"run m -c 9", 1, "did you mean '--capacity'?", NULL},
    {"run m -t 9", 1, "did you mean '--threads'?", NULL},
    {"run m --text Once", 1, "did you mean '--prompt'?", NULL},
    {"run m -f x", 1, "did you mean '--prompt-file'?", NULL},
    {"run m --repetition-penalty 1", 1, "did you mean '--repeat-penalty'?", NULL},
    {"run m --system-prompt x", 1, "did you mean '--system'?", NULL},
    {"lower m --device cuda", 1, "did you mean '--target'?", NULL},
    {"run m -ngl 9", 1, "did you mean '--device'?", NULL},
    {"run m --interactive", 1, "'megalith chat MODEL' is a conversation", NULL},
    {"run m --revision x", 1, "ORG/NAME@REVISION", NULL},
    {"run m --port 80", 1, "there is no server", NULL},
    {"run --model=m", 1, "the model is given without a flag", NULL},
    {"score m --prompt x", 1, "did you mean '--text'?", NULL},
    {"tokenize m -p x", 1, "did you mean '--text'?", NULL},
    {"detokenize m --prompt-ids 1", 1, "did you mean '--ids'?", NULL},
    {"lower m --temp 1", 1, "unknown flag of 'lower'", "--temperature"},
    {"eval m --text Once", 1, "'eval' reads files: --file FILE, or --texts F.json; 'megalith score",
     NULL},
    {"eval m -p Once", 1, "'eval' reads files: --file FILE, or --texts F.json; 'megalith score",
     NULL},
    {"eval m --prompts f", 1, "did you mean '--texts'?", NULL},
    {"run m --texts f", 1, "did you mean '--prompts'?", NULL},
    {"run m --promt=x", 1, "did you mean '--prompt'?", NULL},
    /* Words after MODEL. */
    {"run m Once", 1, "give the model's input with --prompt: megalith run m --prompt", NULL},
    {"run m Once there was", 1, "give the model's input with --prompt: megalith run m --prompt",
     NULL},
    {"tokenize m Once", 1, "give the model's input with --text: megalith tokenize m --text", NULL},
    {"detokenize m 1", 1, "give the model's input with --ids: megalith detokenize m --ids", NULL},
    {"info m n", 1, "'info' takes one MODEL", "--prompt"},
    {"quantize m n -o d", 1,
     "give the file of texts with --texts: megalith quantize m --texts F.json", "quotes"},
    {"quantize m --group-size 64 -o d", 1, "did you mean '--group'?", NULL},
    {"quantize m --format gguf -o d", 1, "--bits, --group and --head choose the formats", "--json"},
    {"run m -p x --kv-cache-dtype fp8", 1, "cached in the number format that --dtype gives", NULL},
    {"run m -p x --quantize", 1, "'megalith quantize MODEL -o DIR' makes one", NULL},
    {"llama-quantize m", 1, "'megalith quantize MODEL -o DIR' writes a model", NULL},
    {"check f g", 1, "takes one F.mls", "--text"},
    /* Addresses. */
    {"run https://huggingface.co/org/name -p x", 2, "`hf download org/name`", NULL},
    {"info hf.co/org/name", 2, "give MODEL as org/name", NULL},
    /* Devices: only those that the verb has. */
    {"run m -p x --device tpu", 1, "supported: auto, cuda, cuda:N and cpu", "none"},
    {"bench m --device tpu", 1, "supported: cuda and cuda:N", "cpu"},
    {"trace m -o f --device auto:1", 1, "supported: cuda and cuda:N", "cpu"},
    {"kernel bench merge --device tpu", 1, "supported: cuda and cuda:N", "cpu"},
    {"kernel verify merge --text f --device tpu", 1, "supported: cuda, cuda:N and none", "cpu"},
    {"tune m --device tpu", 1, "supported: cuda, cuda:N, cpu and none", "auto"},
    /* Number formats. */
    {"run m -p x --dtype float16", 1, "unknown dtype; did you mean '--dtype f16'?", NULL},
    {"run m -p x --dtype bfloat16", 1, "unknown dtype; did you mean '--dtype bf16'?", NULL},
    {"eval m --file f --dtype float32", 1, "did you mean '--dtype f32'? supported: auto|f32|",
     NULL},
    {"score m --text x --dtype FP16", 1, "did you mean '--dtype f16'?", NULL},
    {"chat m --dtype torch.bfloat16", 1, "did you mean '--dtype bf16'?", NULL},
    {"compile m -o f --dtype half", 1, "did you mean '--dtype f16'?", NULL},
    {"lower m --target cpu:1 --dtype BF16", 1, "did you mean '--dtype bf16'?", NULL},
    {"trace m -o f -p x --dtype float", 1, "did you mean '--dtype f32'?", NULL},
    {"tune m --dtype float32", 1,
     "did you mean '--dtype f32'? supported: f16|f32|bf16|int8|int4|fp8", NULL},
    {"bench m --dtype bfloat16", 1, "did you mean '--dtype bf16'? supported: bf16", NULL},
};
enum { HINTS = sizeof hints / sizeof *hints };

static void check_hint(const hint *h, const char *line)
{
    command_result result = command_run(line, NULL);
    ck_assert_msg(result.code == h->code, "%s: exit %d: %s", line, result.code, result.err);
    ck_assert_msg(strstr(result.err, h->says) != NULL, "%s: %s", line, result.err);
    ck_assert_msg(!h->not || !strstr(result.err, h->not ), "%s: %s", line, result.err);
    ck_assert_str_eq(result.out, "");
    command_clear(&result);
}

START_TEST(words_of_other_programs_are_answered)
{
    check_hint(&hints[_i], hints[_i].line);
}
END_TEST

/* Without a GPU, the message names the flags of the verb. CUDA_VISIBLE_DEVICES hides the GPUs of a
 * machine. */
static const hint without_gpu[] = {
    {"run %s -p x --device cuda", 4, "use --device cpu", "none"},
    {"score %s --text x --device cuda", 4, "use --device cpu", "none"},
    {"trace %s -p x -o f", 4, "", "--device"},
    {"tune %s --dry-run", 4, "use --device cpu or none", NULL},
};
enum { WITHOUT_GPU = sizeof without_gpu / sizeof *without_gpu };

START_TEST(a_hint_names_flags_of_its_verb)
{
    char line[2000];
    command_result doctor = command_run("doctor", NULL);
    bool driver = strstr(doctor.out, "\ndriver    ok") != NULL;
    command_clear(&doctor);
    if (driver) /* a test cannot remove the driver */
        return;
    snprintf(line, sizeof line, without_gpu[_i].line, model_path("tales-5m"));
    check_hint(&without_gpu[_i], line);
}
END_TEST

/* Verbs that need a chat template name the kind of folder, like other verbs. */
static const char *const talks[] = {"chat %s", "run %s --chat -p x",
                                    "template %s --messages /dev/null"};
enum { TALKS = sizeof talks / sizeof *talks };

START_TEST(an_empty_folder_is_no_model_of_a_chat)
{
    char line[2000], folder[1000];
    hint says = {.code = 2, .says = "is an empty folder"};
    snprintf(folder, sizeof folder, "%s/none%d", scratch_folder(), _i);
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    snprintf(line, sizeof line, talks[_i], folder);
    check_hint(&says, line);
}
END_TEST

/* ---- ids ------------------------------------------------------------------------------------- */

static const char *const ids[] = {"[909, 452, 449]",  "909, 452, 449", " 909,452,449 ",
                                  "[909,452,449]",    "909 452 449",   "[ 909 , 452 , 449 ]",
                                  "\t[909,\n452,449]"};
enum { IDS = sizeof ids / sizeof *ids };

START_TEST(ids_may_stand_as_in_json)
{
    command_result plain = command_runf("detokenize %s --ids 909,452,449", model_path("tales-5m"));
    command_result other =
        command_runf("detokenize %s --ids '%s'", model_path("tales-5m"), ids[_i]);
    ck_assert_msg(other.code == 0, "%s: %s", ids[_i], other.err);
    ck_assert_str_eq(other.out, plain.out);
    command_clear(&other);
    other =
        command_runf("run %s --device cpu -n 2 --prompt-ids '%s'", model_path("tales-5m"), ids[_i]);
    ck_assert_msg(other.code == 0, "%s: %s", ids[_i], other.err);
    command_clear(&other);
    command_clear(&plain);
}
END_TEST

static const char *const no_ids[] = {"[1, 2", "1, 2]", "[1, 2] 3", "1,,2",   "1, ,2", "[1, 2,]",
                                     "1,",    ",1",    "[[1]]",    "1.5",    "[-1]",  "[1;2]",
                                     "a",     "[",     "]",        "1 , 2 ,"};
enum { NO_IDS = sizeof no_ids / sizeof *no_ids };

START_TEST(what_is_no_list_of_ids_is_rejected)
{
    command_result result =
        command_runf("detokenize %s --ids '%s'", model_path("tales-5m"), no_ids[_i]);
    ck_assert_msg(result.code == 1, "%s: exit %d", no_ids[_i], result.code);
    ck_assert_msg(strstr(result.err, "1,2,3 or [1, 2, 3]") != NULL, "%s", result.err);
    command_clear(&result);
}
END_TEST

START_TEST(an_empty_list_has_no_ids)
{
    command_result result = command_runf("detokenize %s --ids '[]'", model_path("tales-5m"));
    ck_assert_int_eq(result.code, 0);
    ck_assert_str_eq(result.out, "\n");
    command_clear(&result);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli hints");
    TCase *tests = tcase_create("hints");
    tcase_set_timeout(tests, 100);
    tcase_add_loop_test(tests, words_of_other_programs_are_answered, 0, HINTS);
    tcase_add_loop_test(tests, a_hint_names_flags_of_its_verb, 0, WITHOUT_GPU);
    tcase_add_loop_test(tests, an_empty_folder_is_no_model_of_a_chat, 0, TALKS);
    tcase_add_loop_test(tests, ids_may_stand_as_in_json, 0, IDS);
    tcase_add_loop_test(tests, what_is_no_list_of_ids_is_rejected, 0, NO_IDS);
    tcase_add_test(tests, an_empty_list_has_no_ids);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
