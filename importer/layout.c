/*
 * Explains folders that are not a model. See layout.h. A table maps patterns of file names to
 * the missing file that they explain; the first row that matches a name in the folder is
 * reported. The general cases follow: an empty folder, an unfinished download, a model in a
 * subfolder.
 */
#include "importer/layout.h"

#include "base/file.h"
#include "base/format.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/placeholder.h"
#include "base/text.h"
#include "importer/hub.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ADAPTER = 1000 * 1000, MAX_HUB_NAME = 200 };
#define ANY_MODEL (MGL_LACKS_CONFIG | MGL_LACKS_WEIGHTS)

#define ADAPTER_CONFIG "adapter_config.json"
#define TAKE_SAFETENSORS                                                                           \
    "take the model in Hugging Face layout, with config.json, tokenizer.json and *.safetensors"

/* The advice of a message. */
enum advice {
    TAKE,
    CONVERT_WEIGHTS,
    CONVERT_TOKENIZER,
    TAKE_TOKENIZER,
    TAKE_INDEX,
    RENAME,
    MERGE,
    CONTINUE
};

/*  missing file, pattern of a name in the folder, kind of that file, advice */
static const struct row {
    unsigned lacks;
    const char *pattern, *what;
    enum advice advice;
} rows[] = {
    {ANY_MODEL | MGL_LACKS_TOKENIZER, MGL_QUANTIZE_UNFINISHED,
     "the finished layers of an interrupted `megalith quantize`", CONTINUE},
    {MGL_LACKS_TOKENIZER, "tokenizer.model", "a tokenizer of SentencePiece", CONVERT_TOKENIZER},
    {MGL_LACKS_TOKENIZER, "spiece.model", "a tokenizer of SentencePiece", CONVERT_TOKENIZER},
    {MGL_LACKS_TOKENIZER, "sentencepiece*.model", "a tokenizer of SentencePiece",
     CONVERT_TOKENIZER},
    {MGL_LACKS_TOKENIZER, "*.spm", "a tokenizer of SentencePiece", CONVERT_TOKENIZER},
    {MGL_LACKS_TOKENIZER, "tokenizer.model.v*", "a tokenizer of SentencePiece", TAKE_TOKENIZER},
    {MGL_LACKS_TOKENIZER, "vocab.json", "a part of a tokenizer", CONVERT_TOKENIZER},
    {MGL_LACKS_TOKENIZER, "vocab.txt", "a part of a tokenizer", CONVERT_TOKENIZER},
    {MGL_LACKS_TOKENIZER, "*.tiktoken", "a tokenizer of tiktoken", CONVERT_TOKENIZER},
    {MGL_LACKS_TOKENIZER, "tiktoken.model", "a tokenizer of tiktoken", CONVERT_TOKENIZER},
    {MGL_LACKS_TOKENIZER, "tekken.json", "a tokenizer of Mistral", TAKE_TOKENIZER},
    {ANY_MODEL, "adapter_model*", "a LoRA adapter", MERGE},
    {MGL_LACKS_WEIGHTS, "model-*-of-*.safetensors", "shards without their list", TAKE_INDEX},
    {ANY_MODEL, "consolidated*.safetensors", "the layout of Mistral", TAKE},
    {ANY_MODEL, "consolidated*.pth", "the layout of Meta", TAKE},
    {MGL_LACKS_WEIGHTS, "pytorch_model*.bin", "weights of PyTorch", CONVERT_WEIGHTS},
    {MGL_LACKS_WEIGHTS, "*.safetensors", "weights under another name", RENAME},
    {ANY_MODEL, "*.pth", "a file of PyTorch", TAKE},
    {ANY_MODEL, "*.pt", "a file of PyTorch", TAKE},
    {MGL_LACKS_WEIGHTS, "tf_model*.h5", "weights of TensorFlow", TAKE},
    {MGL_LACKS_WEIGHTS, "flax_model*.msgpack", "weights of Flax", TAKE},
    {ANY_MODEL, "*.onnx", "an ONNX file", TAKE},
    {ANY_MODEL, "*.npz", "weights of MLX", TAKE},
    {ANY_MODEL, "*.engine", "an engine of TensorRT", TAKE},
    {MGL_LACKS_WEIGHTS, "*.bin", "a file in another format", TAKE},
    {ANY_MODEL, "original", "the layout of Meta", TAKE},
};
enum { ROWS = sizeof rows / sizeof *rows };

/* ---- inspecting folders ---------------------------------------------------------------------- */

/* Returns whether FOLDER/NAME exists; if the lookup fails, the file counts as missing. */
static bool holds(const char *folder, const char *name)
{
    bool stands;
    return !mgl_folder_holds(folder, name, &stands, NULL) && stands;
}

/* Returns whether a subfolder contains files of an unfinished download. */
static bool has_incomplete(const char *folder, const char *below)
{
    static const char *const suffixes[] = {".incomplete", ".part", ".crdownload", ".aria2"};
    mgl_text path;
    bool has = false, good = !mgl_path_join(folder, below, &path, NULL);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes && good; i++) {
        mgl_file_list files = {0};
        has |= !mgl_folder_list(path.bytes, suffixes[i], &files, NULL) && files.count;
        mgl_file_list_clear(&files);
    }
    mgl_text_clear(&path);
    return has;
}

/* Returns whether the name is a dangling link, as in a cache whose blob was deleted. */
static bool is_dangling(const char *folder, const char *name)
{
    mgl_text path;
    bool stands = false, good = !mgl_path_join(folder, name, &path, NULL) &&
                                !mgl_file_stands(path.bytes, &stands, NULL);
    mgl_text_clear(&path);
    return good && stands && !holds(folder, name);
}

static bool is_unfinished(const char *folder)
{
    return has_incomplete(folder, ".") || has_incomplete(folder, ".cache/huggingface/download") ||
           (strstr(folder, "/snapshots/") && has_incomplete(folder, "../../blobs"));
}

/* Returns the model name of a snapshot in the Hugging Face cache, else the text "ORG/NAME". */
static const char *name_download(const char *folder, char name[MAX_HUB_NAME + 1])
{
    static const char mark[] = "models--";
    const char *at = strstr(folder, mark), *slash = at ? strchr(at, '/') : NULL;
    const char *org = at ? at + sizeof mark - 1 : NULL, *part = org ? strstr(org, "--") : NULL;
    snprintf(name, MAX_HUB_NAME + 1, "ORG/NAME");
    if (part && (!slash || part < slash))
        snprintf(name, MAX_HUB_NAME + 1, "%.*s/%.*s", (int)(part - org), org,
                 (int)(slash ? slash - part - 2 : (long)strlen(part + 2)), part + 2);
    return name;
}

static mgl_status fail_unfinished(const char *folder, mgl_error *err)
{
    char name[MAX_HUB_NAME + 1];
    return mgl_fail(err, MGL_BAD_INPUT, folder,
                    "holds a download that is not finished; `hf download %s` completes it, with "
                    "the same --local-dir if one was given",
                    name_download(folder, name));
}

/* The names of files that can be missing; the first name of each kind is the usual one. */
static const struct lack_row {
    mgl_lack lack;
    const char *name;
} lack_rows[] = {{MGL_LACKS_CONFIG, "config.json"},
                 {MGL_LACKS_WEIGHTS, "model.safetensors"},
                 {MGL_LACKS_WEIGHTS, "model.safetensors.index.json"},
                 {MGL_LACKS_TOKENIZER, "tokenizer.json"}};

/* Fails with the same message as opening this file of the folder. */
static mgl_status fail_absent(const char *folder, const char *name, const char *advice,
                              mgl_error *err)
{
    mgl_text path;
    mgl_status status = mgl_path_join(folder, name, &path, err);
    if (!status)
        status = mgl_fail(err, MGL_BAD_INPUT, path.bytes,
                          "cannot be opened: No such file or directory; %s", advice);
    mgl_text_clear(&path);
    return status;
}

static mgl_status check_links(const char *folder, mgl_lack lack, mgl_error *err)
{
    char name[MAX_HUB_NAME + 1], advice[MAX_HUB_NAME + 80];
    snprintf(advice, sizeof advice,
             "the link leads to no file; `hf download %s` downloads it again",
             name_download(folder, name));
    for (size_t i = 0; i < sizeof lack_rows / sizeof *lack_rows; i++)
        if (lack_rows[i].lack == lack && is_dangling(folder, lack_rows[i].name))
            return fail_absent(folder, lack_rows[i].name, advice, err);
    return MGL_OK;
}

/* ---- folders --------------------------------------------------------------------------------- */

/* Returns the base model of the adapter; "" if it is not known. Release with mgl_free. */
static char *read_base(const char *folder)
{
    const char *base = NULL;
    mgl_text path = {0};
    mgl_json json = {0};
    mgl_text_format(&path, "%s/" ADAPTER_CONFIG, folder);
    if (!path.failed && !mgl_json_read_regular(path.bytes, MAX_ADAPTER, &json, NULL))
        (void)mgl_json_get_string(&json, json.root, "base_model_name_or_path", false, &base, NULL);
    char *copy = mgl_strdup(base ? base : "");
    mgl_json_clear(&json);
    mgl_text_clear(&path);
    return copy;
}

static mgl_status check_adapter(const char *folder, mgl_error *err)
{
    bool stands;
    mgl_status looked = mgl_folder_holds(folder, ADAPTER_CONFIG, &stands, err);
    if (looked || !stands)
        return looked;
    char *base = read_base(folder);
    bool named = base && *base,
         whole = holds(folder, "config.json") && (holds(folder, "model.safetensors") ||
                                                  holds(folder, "model.safetensors.index.json"));
    mgl_status status = mgl_fail(
        err, MGL_BAD_INPUT, folder,
        whole ? "holds a model and a LoRA adapter (" ADAPTER_CONFIG "; base model%s%.200s), which "
                "would be left out; remove " ADAPTER_CONFIG " if the weights hold the adapter "
                "already, else merge it (merge_and_unload of peft)"
              : "holds a LoRA adapter (" ADAPTER_CONFIG "), not a model; merge it into its base "
                "model%s%.200s (merge_and_unload of peft, then save_pretrained) and name the "
                "folder of the merged model",
        named   ? " "
        : whole ? " unknown"
                : "",
        named ? base : "");
    mgl_free(base);
    return status;
}

static mgl_status fail_empty(const char *folder, mgl_error *err)
{
    if (holds(folder, ".git"))
        return mgl_fail(err, MGL_BAD_INPUT, folder,
                        "is a git clone without files; run `git checkout HEAD -- .` and `git lfs "
                        "pull` there");
    return mgl_fail(err, MGL_BAD_INPUT, folder,
                    "is an empty folder; a model is a folder with config.json, tokenizer.json and "
                    "*.safetensors: `hf download ORG/NAME --local-dir FOLDER` makes one");
}

/* Returns the first name in the folder that the pattern matches. */
static const char *find_match(const mgl_file_list *files, const char *pattern)
{
    for (size_t i = 0; i < files->count; i++)
        if (!fnmatch(pattern, files->names[i], 0))
            return files->names[i];
    return NULL;
}

/* Appends the advice. `folder` is used in command lines. */
static void put_advice(mgl_text *out, enum advice advice, const char *folder, const char *name)
{
    switch (advice) {
    case TAKE:
        mgl_text_put(out, TAKE_SAFETENSORS);
        break;
    case CONVERT_WEIGHTS:
    case CONVERT_TOKENIZER:
        mgl_text_format(
            out,
            "convert it with Transformers%s: python3 -c \"from transformers import %s as "
            "T; T.from_pretrained('%.200s').save_pretrained('%.200s')\"",
            advice == CONVERT_WEIGHTS ? "" : " and its helpers sentencepiece and protobuf",
            advice == CONVERT_WEIGHTS ? "AutoModelForCausalLM" : "AutoTokenizer", folder, folder);
        break;
    case TAKE_TOKENIZER:
        mgl_text_put(out, "take tokenizer.json from the model in Hugging Face layout");
        break;
    case TAKE_INDEX:
        mgl_text_put(out, "download model.safetensors.index.json too");
        break;
    case MERGE:
        mgl_text_put(out, "merge it into its base model first (merge_and_unload of peft)");
        break;
    case CONTINUE:
        mgl_text_put(out, "run this `megalith quantize` command again to continue it");
        break;
    case RENAME:
        mgl_text_format(out, "if %.80s is the whole model, rename it to model.safetensors", name);
        break;
    }
}

static const char *name_lack(mgl_lack lack)
{
    size_t i = 0;
    while (lack_rows[i].lack != lack)
        i++;
    return lack_rows[i].name;
}

static mgl_status check_rows(const char *folder, const mgl_file_list *files, mgl_lack lack,
                             mgl_error *err)
{
    for (size_t i = 0; i < ROWS; i++) {
        const char *name = rows[i].lacks & lack ? find_match(files, rows[i].pattern) : NULL;
        mgl_text text = {0};
        if (!name)
            continue;
        put_advice(&text, rows[i].advice, folder, name);
        mgl_status status =
            text.failed ? mgl_fail_memory(err, strlen(folder))
                        : mgl_fail(err, MGL_BAD_INPUT, folder, "holds %.80s, %s, and no %s; %s",
                                   name, rows[i].what, name_lack(lack), text.bytes);
        mgl_text_clear(&text);
        return status;
    }
    return MGL_OK;
}

/* Fails if the folder is a repository of the cache, or has a model in a subfolder. */
static mgl_status check_below(const char *folder, const mgl_file_list *files, mgl_lack lack,
                              mgl_error *err)
{
    if (holds(folder, "snapshots") && (holds(folder, "refs") || holds(folder, "blobs"))) {
        char name[MAX_HUB_NAME + 1];
        return mgl_fail(err, MGL_BAD_INPUT, folder,
                        "is a repository of the Hugging Face cache; give the model by its name, "
                        "%s, or one of the folders in snapshots/",
                        name_download(folder, name));
    }
    for (size_t i = 0; i < files->count; i++) {
        char below[300], advice[300];
        snprintf(below, sizeof below, "%.250s/config.json", files->names[i]);
        snprintf(advice, sizeof advice, "the folder %.200s in it holds a model; name that folder",
                 files->names[i]);
        if (holds(folder, below))
            return fail_absent(folder, name_lack(lack), advice, err);
    }
    return MGL_OK;
}

static mgl_status fail_plain(const char *folder, mgl_lack lack, mgl_error *err)
{
    switch (lack) {
    case MGL_LACKS_CONFIG:
        return fail_absent(folder, "config.json",
                           "a model is a folder with config.json, tokenizer.json and *.safetensors",
                           err);
    case MGL_LACKS_TOKENIZER:
        return fail_absent(folder, "tokenizer.json",
                           "texts need that file; download it from the model's repository", err);
    case MGL_LACKS_WEIGHTS:
        break;
    }
    return mgl_fail(err, MGL_BAD_INPUT, folder,
                    "holds neither model.safetensors nor model.safetensors.index.json; weights "
                    "in other formats must be converted to safetensors first");
}

/* A folder with one GGUF file is that file (cache.c). */
static mgl_status check_gguf(const char *folder, const mgl_file_list *files, mgl_error *err)
{
    size_t count = 0;
    for (size_t i = 0; i < files->count; i++)
        count += mgl_text_ends(files->names[i], ".gguf");
    return count > 1 ? mgl_fail(err, MGL_BAD_INPUT, folder,
                                "holds %zu GGUF files; name one of them, such as %.200s/%.200s",
                                count, folder, find_match(files, "*.gguf"))
                     : MGL_OK;
}

static mgl_status explain(const char *folder, const mgl_file_list *files, mgl_lack lack,
                          mgl_error *err)
{
    mgl_status status = check_adapter(folder, err);
    if (!status)
        status = check_links(folder, lack, err);
    if (!status && lack == MGL_LACKS_TOKENIZER)
        status = check_rows(folder, files, lack, err);
    if (!status && is_unfinished(folder))
        status = fail_unfinished(folder, err);
    if (!status && !files->count)
        status = fail_empty(folder, err);
    if (!status)
        status = check_gguf(folder, files, err);
    if (!status && lack != MGL_LACKS_TOKENIZER)
        status = check_rows(folder, files, lack, err);
    else if (!status && !holds(folder, "config.json"))
        status = check_rows(folder, files, MGL_LACKS_CONFIG, err);
    if (!status && !holds(folder, "config.json"))
        status = check_below(folder, files, lack, err);
    return status ? status : fail_plain(folder, lack, err);
}

mgl_status mgl_layout_fail_folder(const char *folder, mgl_lack lack, mgl_error *err)
{
    mgl_file_list files;
    mgl_status status = mgl_folder_list(folder, "", &files, err);
    if (!status)
        status = explain(folder, &files, lack, err);
    mgl_file_list_clear(&files);
    return status;
}

static mgl_status check_lack(const char *folder, mgl_lack lack, mgl_error *err)
{
    bool stands;
    mgl_status status = mgl_folder_holds(folder, name_lack(lack), &stands, err);
    return status || stands ? status : mgl_layout_fail_folder(folder, lack, err);
}

mgl_status mgl_layout_check_folder(const char *folder, mgl_error *err)
{
    mgl_status status = check_adapter(folder, err);
    return status ? status : check_lack(folder, MGL_LACKS_CONFIG, err);
}

mgl_status mgl_layout_check_tokenizer(const char *folder, mgl_error *err)
{
    return check_lack(folder, MGL_LACKS_TOKENIZER, err);
}

mgl_status mgl_layout_fail_shard(const char *folder, const char *shard, size_t there, size_t count,
                                 mgl_error *err)
{
    char name[MAX_HUB_NAME + 1], advice[MAX_HUB_NAME + 200];
    snprintf(advice, sizeof advice,
             "%zu of the %zu shards in model.safetensors.index.json are there; `hf download %s` "
             "completes the download, with the same --local-dir if one was given",
             there, count, name_download(folder, name));
    return fail_absent(folder, shard, advice, err);
}

/* ---- files ----------------------------------------------------------------------------------- */

/*  pattern, what the file is, advice; NULL: give the file's folder instead */
static const struct file_row {
    const char *pattern, *what, *advice;
} file_rows[] = {
    {"*.ggml", "is a GGML file, which is not read", TAKE_SAFETENSORS},
    {"adapter_model.safetensors", "is a LoRA adapter, not a model",
     "merge it into its base model first (merge_and_unload of peft)"},
    {"adapter_model.bin", "is a LoRA adapter, not a model",
     "merge it into its base model first (merge_and_unload of peft)"},
    {"*.safetensors", "is a file of weights", NULL},
    {"*.safetensors.index.json", "is a list of weights", NULL},
    {"config.json", "is a file of a model", NULL},
    {"generation_config.json", "is a file of a model", NULL},
    {"tokenizer.json", "is a file of a model", NULL},
    {"tokenizer_config.json", "is a file of a model", NULL},
    {"tokenizer.model", "is a tokenizer of SentencePiece, which is not read",
     "make tokenizer.json of it with AutoTokenizer of Transformers"},
    {"tekken.json", "is a tokenizer of Mistral, which is not read", TAKE_SAFETENSORS},
    {"*.bin", "is a file in a format that is not read", TAKE_SAFETENSORS},
    {"*.pt", "is a file of PyTorch, which is not read", TAKE_SAFETENSORS},
    {"*.pth", "is a file of PyTorch, which is not read", TAKE_SAFETENSORS},
    {"*.onnx", "is an ONNX file, which is not read", TAKE_SAFETENSORS},
    {"*.zip", "is an archive", "unpack it and name the folder"},
    {"*.tar", "is an archive", "unpack it and name the folder"},
    {"*.tar.*", "is an archive", "unpack it and name the folder"},
    {"*.tgz", "is an archive", "unpack it and name the folder"},
    {"Modelfile", "is a file of ollama, which is not read", TAKE_SAFETENSORS},
    {"*.mls", "is a schedule, not a model", "give it with --schedule"},
};

mgl_status mgl_layout_check_file(const char *path, mgl_error *err)
{
    char folder[PATH_MAX];
    const char *name = strlen(path) < sizeof folder ? mgl_file_split(path, folder) : NULL;
    for (size_t i = 0; name && i < sizeof file_rows / sizeof *file_rows; i++) {
        const struct file_row *row = &file_rows[i];
        if (fnmatch(row->pattern, name, 0))
            continue;
        if (row->advice)
            return mgl_fail(err, MGL_BAD_INPUT, path, "%s; %s", row->what, row->advice);
        return mgl_fail(err, MGL_BAD_INPUT, path, "%s; name its folder: %.400s", row->what, folder);
    }
    return MGL_OK;
}

mgl_status mgl_layout_fail_file(const char *path, mgl_error *err)
{
    mgl_map *map = NULL;
    mgl_status status = mgl_layout_check_file(path, err);
    if (!status)
        status = mgl_map_open(path, &map, err);
    if (!status)
        status = mgl_placeholder_check_map(map, err);
    mgl_map_close(map);
    if (status)
        return status;
    return mgl_fail(err, MGL_BAD_INPUT, path,
                    "is a file; a model is the folder with config.json and *.safetensors, or "
                    "what `megalith compile` made of it");
}

/* ---- addresses ------------------------------------------------------------------------------- */

/* Returns the text after the host of an address (with or without "https://"); NULL: not Hugging
 * Face. */
static const char *find_host(const char *model, bool *address)
{
    static const char *const hosts[] = {"huggingface.co/", "www.huggingface.co/", "hf.co/",
                                        "hf-mirror.com/"};
    const char *mark = strstr(model, "://"), *at = mark ? mark + 3 : model;
    *address = mark && mark > model;
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++)
        if (!strncmp(at, hosts[i], strlen(hosts[i]))) {
            *address = true;
            return at + strlen(hosts[i]);
        }
    return *address && !strncmp(model, "hf://", 5) ? at : NULL;
}

/* Returns the length of the path component, which ends at a slash, a question mark or a fragment
 * sign. */
static int part_length(const char *at)
{
    return (int)strcspn(at, "/?#");
}

/* Returns the revision in the address of a page: ORG/NAME/tree/REVISION. */
static const char *find_revision(const char *behind_name)
{
    static const char *const words[] = {"/tree/", "/blob/", "/resolve/", "/commit/"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strncmp(behind_name, words[i], strlen(words[i])))
            return behind_name + strlen(words[i]);
    return "";
}

/* Fails for the address of a model at Hugging Face. */
static mgl_status fail_hub_address(const char *model, const char *at, mgl_error *err)
{
    char name[MAX_HUB_NAME + 1], plain[2 * MAX_HUB_NAME + 2];
    mgl_hub_name parts;
    int org = part_length(at), length = at[org] == '/' ? part_length(at + org + 1) : 0;
    const char *revision = length ? find_revision(at + org + 1 + length) : "";
    int digits = part_length(revision);
    if (digits == 4 && !strncmp(revision, "main", 4))
        digits = 0;
    snprintf(name, sizeof name, "%.*s/%.*s", org < 96 ? org : 96, at, length < 96 ? length : 96,
             at + org + (length > 0));
    if (!length || !mgl_hub_parse(name, &parts))
        return mgl_fail(err, MGL_BAD_INPUT, model,
                        "is an address that names no model, and nothing is downloaded; get the "
                        "model with `hf download ORG/NAME` and give MODEL as ORG/NAME");
    snprintf(plain, sizeof plain, "%s%s%.*s", name, digits ? "@" : "", digits < 80 ? digits : 80,
             revision);
    return mgl_fail(err, MGL_BAD_INPUT, model,
                    "is an address, and nothing is downloaded; get the model with `hf download "
                    "%s%s%.*s` and give MODEL as %s",
                    name, digits ? " --revision " : "", digits < 80 ? digits : 80, revision, plain);
}

mgl_status mgl_layout_fail_name(const char *model, mgl_error *err)
{
    bool address;
    const char *at = find_host(model, &address);
    if (!strcmp(model, "-"))
        return mgl_fail(err, MGL_BAD_INPUT, model,
                        "a model cannot come from standard input, since it is mapped into memory: "
                        "name its folder or its file");
    if (at)
        return fail_hub_address(model, at, err);
    if (address && !strncmp(model, "file://", 7))
        return mgl_fail(err, MGL_BAD_INPUT, model, "is an address; give the path itself: %.400s",
                        model + 7);
    if (address)
        return mgl_fail(err, MGL_BAD_INPUT, model,
                        "is an address, and nothing is downloaded; download the files into a "
                        "folder and name the folder");
    return mgl_fail(err, MGL_BAD_INPUT, model,
                    strchr(model, '/')
                        ? "no such folder or file"
                        : "no such folder or file; a model of the Hugging Face cache is "
                          "named ORG/NAME");
}
