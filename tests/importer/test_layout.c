/* Tests of the messages for folders, files and addresses that are not models. */
#include "importer/checkpoint.h"
#include "importer/layout.h"
#include "tests/scratch.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char root[] = "/tmp/megalith-layout-XXXXXX";

#define POINTER                                                                                    \
    "'version https://git-lfs.github.com/spec/v1\\noid sha256:"                                    \
    "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\\nsize 2471645608\\n'"

/* Runs a shell command in the temporary folder; $m is a folder with a model. */
static void shell(const char *command)
{
    char line[2048];
    snprintf(line, sizeof line, "cd %s && m=%s/tests/models/llama3-rope && %s", root,
             MGL_SOURCE_DIR, command);
    ck_assert_msg(system(line) == 0, "%s", command);
}

static void set_up(void)
{
    scratch_make(root);
    setenv("HOME", root, 1);
    unsetenv("HF_HOME");
    unsetenv("HF_HUB_CACHE");
}

static void tear_down(void)
{
    scratch_remove(root);
}

static void check_says(const mgl_error *err, const char *const words[4], const char *what)
{
    for (int i = 0; i < 4 && words[i]; i++)
        ck_assert_msg(strstr(err->message, words[i]) || strstr(err->where, words[i]),
                      "%s: no '%s' in '%s: %s'", what, words[i], err->where, err->message);
}

/* ---- models ---------------------------------------------------------------------------------- */

/*  command that makes the folder d, MODEL below the root, words of the message */
static const struct folder {
    const char *command, *model;
    const char *words[4];
} folders[] = {
    {"mkdir d && cp $m/* d && rm -f d/model.safetensors && printf " POINTER
     " > d/model.safetensors",
     "d",
     {"model.safetensors", "is a Git LFS pointer", "2471645608 bytes", "git lfs pull"}},
    {"mkdir d && cp $m/model.safetensors d && printf " POINTER " > d/config.json",
     "d",
     {"config.json", "is a Git LFS pointer", "git lfs pull"}},
    {"mkdir d && cp $m/* d && printf " POINTER " > d/generation_config.json",
     "d",
     {"generation_config.json", "is a Git LFS pointer"}},
    {"mkdir d && cp $m/config.json d && printf " POINTER " > d/model.safetensors.index.json",
     "d",
     {"model.safetensors.index.json", "is a Git LFS pointer"}},
    {"mkdir d && cp $m/config.json d && printf " POINTER " > d/model-00001-of-00001.safetensors && "
     "echo '{\"weight_map\": {\"a\": \"model-00001-of-00001.safetensors\"}}' > "
     "d/model.safetensors.index.json",
     "d",
     {"model-00001-of-00001.safetensors", "is a Git LFS pointer"}},
    {"printf " POINTER " > d.mega", "d.mega", {"d.mega", "is a Git LFS pointer"}},
    {"printf " POINTER " > d", "d", {"is a Git LFS pointer"}},
    {"mkdir d && cp $m/config.json d && echo '<!DOCTYPE html><html>' > d/model.safetensors",
     "d",
     {"model.safetensors", "is a web page", "download the model again"}},
    {"mkdir d && echo '\n<html lang=en>' > d/config.json", "d", {"config.json", "is a web page"}},
    {"mkdir d", "d", {"is an empty folder", "config.json", "hf download ORG/NAME"}},
    {"mkdir d && touch d/.gitattributes", "d", {"is an empty folder"}},
    {"mkdir -p d/.git", "d", {"is a git clone without files", "git checkout"}},
    {"mkdir d && echo '{\"base_model_name_or_path\": \"org/base\"}' > d/adapter_config.json && "
     "touch d/adapter_model.safetensors",
     "d",
     {"holds a LoRA adapter", "merge it into its base model org/base", "merge_and_unload"}},
    {"mkdir d && echo nonsense > d/adapter_config.json", "d", {"merge it into its base model ("}},
    {"mkdir d && cp $m/config.json d && echo '{}' > d/adapter_config.json",
     "d",
     {"holds a LoRA adapter", "not a model"}},
    {"mkdir d && cp $m/* d && echo '{\"base_model_name_or_path\": \"b\"}' > d/adapter_config.json",
     "d",
     {"holds a model and a LoRA adapter", "base model b", "remove adapter_config.json"}},
    {"mkdir -p d/quantize.unfinished",
     "d",
     {"holds quantize.unfinished", "interrupted `megalith quantize`", "no config.json",
      "run this `megalith quantize` command again to continue it"}},
    {"mkdir d && cp $m/config.json d && touch d/adapter_model.bin",
     "d",
     {"a LoRA adapter, and no"}},
    {"mkdir d && cp $m/config.json d && touch d/pytorch_model-00001-of-00002.bin",
     "d",
     {"holds pytorch_model-00001-of-00002.bin, weights of PyTorch", "AutoModelForCausalLM",
      "save_pretrained"}},
    {"mkdir d && touch d/x.gguf d/README.md", "d", {"d/x.gguf", "is cut off"}},
    {"mkdir d && touch d/x.gguf d/y.gguf", "d", {"holds 2 GGUF files; name one of them, such as"}},
    {"mkdir d && touch d/consolidated.00.pth d/params.json d/tokenizer.model",
     "d",
     {"consolidated.00.pth, the layout of Meta"}},
    {"mkdir -p d/original && touch d/original/consolidated.00.pth", "d", {"the layout of Meta"}},
    {"mkdir d && touch d/consolidated.safetensors d/params.json d/tekken.json",
     "d",
     {"consolidated.safetensors, the layout of Mistral"}},
    {"mkdir d && cp $m/config.json d && touch d/model-00001-of-00002.safetensors",
     "d",
     {"model-00001-of-00002.safetensors, shards without", "model.safetensors.index.json too"}},
    {"mkdir d && cp $m/config.json d && touch d/weights.safetensors",
     "d",
     {"weights.safetensors", "rename it to model.safetensors"}},
    {"mkdir d && cp $m/config.json d && touch d/tf_model.h5", "d", {"weights of TensorFlow"}},
    {"mkdir d && cp $m/config.json d", "d", {"holds neither model.safetensors nor"}},
    {"mkdir d && touch d/notes.txt",
     "d",
     {"d/config.json", "No such file", "a model is a folder with"}},
    {"mkdir -p d/checkpoint-500 && cp $m/config.json d/checkpoint-500",
     "d",
     {"d/config.json", "the folder checkpoint-500 in it holds a model"}},
    {"mkdir -p d/.cache/huggingface/download && cp $m/config.json d && "
     "touch d/.cache/huggingface/download/a.b.incomplete",
     "d",
     {"a download that is not finished", "hf download ORG/NAME"}},
    {"mkdir d && cp $m/config.json d && touch d/model.safetensors.part", "d", {"is not finished"}},
    {"mkdir d && cp $m/config.json d && touch d/model-00001-of-00003.safetensors && echo "
     "'{\"weight_map\": {\"a\": \"model-00001-of-00003.safetensors\", \"b\": "
     "\"model-00002-of-00003.safetensors\", \"c\": \"model-00003-of-00003.safetensors\"}}' > "
     "d/model.safetensors.index.json",
     "d",
     {"model-00002-of-00003.safetensors", "1 of the 3 shards", "hf download"}},
    {"r=.cache/huggingface/hub/models--org--n && mkdir -p $r/snapshots/abc $r/blobs $r/refs && "
     "printf abc > $r/refs/main && cp $m/config.json $r/snapshots/abc && "
     "touch $r/blobs/0123.incomplete",
     "org/n",
     {"is not finished", "`hf download org/n`"}},
    {"r=models--org--n && mkdir -p $r/snapshots/abc $r/blobs && ln -s ../../blobs/1 "
     "$r/snapshots/abc/config.json",
     "models--org--n/snapshots/abc",
     {"config.json", "the link leads to no file", "`hf download org/n`"}},
    {"mkdir -p models--org--n/snapshots/abc models--org--n/refs",
     "models--org--n",
     {"is a repository of the Hugging Face cache", "org/n"}},
    {"mkdir d && cp $m/* d", "d/config.json", {"is a file of a model; name its folder: "}},
    {"mkdir d && cp $m/* d", "d/model.safetensors", {"is a file of weights", "name its folder"}},
    {"echo GGUF > x.gguf", "x.gguf", {"x.gguf", "is cut off"}},
    {"echo PK > x.zip", "x.zip", {"is an archive; unpack it"}},
    {"echo x > x.pth", "x.pth", {"is a file of PyTorch"}},
    {"echo x > x", "x", {"is a file; a model is the folder"}},
};
enum { FOLDERS = sizeof folders / sizeof *folders };

static const char *below_root(const char *model, char path[300])
{
    snprintf(path, 300, "%s/%s", root, model);
    return strncmp(model, "org/", 4) ? path : model;
}

START_TEST(what_is_no_model_is_named)
{
    char path[300];
    mgl_error err = {0};
    mgl_checkpoint *checkpoint;
    shell(folders[_i].command);
    mgl_status status = mgl_checkpoint_open(below_root(folders[_i].model, path), &checkpoint, &err);
    ck_assert_msg(status == MGL_BAD_INPUT, "%s: %d", folders[_i].command, (int)status);
    check_says(&err, folders[_i].words, folders[_i].command);
}
END_TEST

/* ---- tokenizers ------------------------------------------------------------------------------ */

static const struct folder tokenizers[] = {
    {"mkdir d && cp $m/* d && rm -f d/tokenizer.json && touch d/tokenizer.model",
     "d",
     {"holds tokenizer.model, a tokenizer of SentencePiece, and no tokenizer.json", "AutoTokenizer",
      "save_pretrained"}},
    {"mkdir d && touch d/tokenizer.model", "d", {"holds tokenizer.model", "AutoTokenizer"}},
    {"mkdir d && touch d/vocab.json d/merges.txt", "d", {"holds vocab.json", "AutoTokenizer"}},
    {"mkdir d && touch d/tekken.json", "d", {"holds tekken.json", "take tokenizer.json"}},
    {"mkdir d", "d", {"is an empty folder"}},
    {"mkdir d && echo '{}' > d/adapter_config.json", "d", {"holds a LoRA adapter"}},
    {"mkdir d && touch d/x.gguf", "d", {"d/x.gguf", "is cut off"}},
    {"mkdir d && touch d/x.gguf d/y.gguf", "d", {"holds 2 GGUF files"}},
    {"mkdir d && cp $m/config.json d", "d", {"d/tokenizer.json", "texts need that file"}},
    {"mkdir d && printf " POINTER " > d/tokenizer.json",
     "d",
     {"tokenizer.json", "is a Git LFS pointer"}},
    {"mkdir d && touch d/tokenizer.model",
     "d/tokenizer.model",
     {"is a tokenizer of SentencePiece", "AutoTokenizer"}},
    {"mkdir d && cp $m/model.safetensors d", "d/model.safetensors", {"is a file of weights"}},
};
enum { TOKENIZERS = sizeof tokenizers / sizeof *tokenizers };

START_TEST(what_is_no_tokenizer_is_named)
{
    char path[300];
    mgl_error err = {0};
    mgl_tokenizer *tokenizer;
    shell(tokenizers[_i].command);
    mgl_status status =
        mgl_tokenizer_open(below_root(tokenizers[_i].model, path), &tokenizer, &err);
    ck_assert_msg(status == MGL_BAD_INPUT, "%s: %d", tokenizers[_i].command, (int)status);
    check_says(&err, tokenizers[_i].words, tokenizers[_i].command);
}
END_TEST

/* ---- addresses ------------------------------------------------------------------------------- */

static const struct address {
    const char *model;
    const char *words[4];
} addresses[] = {
    {"https://huggingface.co/org/name", {"`hf download org/name`", "give MODEL as org/name"}},
    {"http://huggingface.co/org/name/", {"`hf download org/name`", "give MODEL as org/name"}},
    {"huggingface.co/org/name", {"`hf download org/name`"}},
    {"hf.co/org/name", {"`hf download org/name`"}},
    {"hf://org/name", {"`hf download org/name`"}},
    {"https://huggingface.co/org/name?library=x#y", {"`hf download org/name`"}},
    {"https://huggingface.co/org/name/tree/main", {"`hf download org/name`", "MODEL as org/name"}},
    {"https://huggingface.co/org/name/tree/v1.0",
     {"`hf download org/name --revision v1.0`", "MODEL as org/name@v1.0"}},
    {"https://huggingface.co/org/name/resolve/v2/model.safetensors", {"--revision v2`"}},
    {"https://huggingface.co/org", {"names no model", "hf download ORG/NAME"}},
    {"https://huggingface.co/", {"names no model"}},
    {"https://huggingface.co/org/..", {"names no model"}},
    {"https://example.com/model.gguf", {"is an address, and nothing is downloaded", "a folder"}},
    {"s3://bucket/model", {"is an address, and nothing is downloaded"}},
    {"file:///tmp/none", {"give the path itself: /tmp/none"}},
    {"llama3.2", {"no such folder", "named ORG/NAME"}},
    {"llama3.2:1b", {"no such folder", "named ORG/NAME"}},
    {"-", {"cannot come from standard input"}},
};
enum { ADDRESSES = sizeof addresses / sizeof *addresses };

START_TEST(an_address_is_answered_with_the_command_that_downloads)
{
    char *path;
    mgl_error err = {0};
    ck_assert_int_eq(mgl_model_find(addresses[_i].model, &path, &err), MGL_BAD_INPUT);
    check_says(&err, addresses[_i].words, addresses[_i].model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("importer layout");
    TCase *tests = tcase_create("layout");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, what_is_no_model_is_named, 0, FOLDERS);
    tcase_add_loop_test(tests, what_is_no_tokenizer_is_named, 0, TOKENIZERS);
    tcase_add_loop_test(tests, an_address_is_answered_with_the_command_that_downloads, 0,
                        ADDRESSES);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
