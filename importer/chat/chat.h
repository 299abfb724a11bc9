/*
 * The chat templates of a model, behind the public mgl_chat_template: loading the templates
 * (load.c), building the variables of a conversation (conversation.c), and choosing a template and
 * rendering it (chat.c). api/compile.c packs the templates into a compiled model.
 */
#ifndef MGL_IMPORTER_CHAT_CHAT_H
#define MGL_IMPORTER_CHAT_CHAT_H

#include "importer/chat/jinja.h"

#define MGL_CHAT_CAP ((size_t)64 << 20) /* bytes of the largest JSON that is read */

/* A template of a model. A template that cannot be parsed is an error only when it is chosen. */
typedef struct mgl_named_template {
    char *name;       /* owned: "default", "tool_use" ... */
    mgl_jinja *jinja; /* owned; NULL: see `failure` */
    mgl_error failure;
} mgl_named_template;

struct mgl_chat_template {
    char *path;                    /* owned: of the model, for messages */
    mgl_named_template *templates; /* owned (count) */
    size_t count, capacity;
    cJSON *tokens; /* owned: the variables for special tokens */
};

/* Fills an empty mgl_chat_template from a folder or a compiled model. `file`: the template's
 * file, or NULL. */
mgl_status mgl_chat_template_load(mgl_chat_template *chat, const char *file, mgl_error *err);

/* Builds the variables of a rendering from the texts of a conversation. Release with
 * cJSON_Delete. */
mgl_status mgl_conversation_read(const mgl_conversation *conversation, cJSON **out, mgl_error *err);

/* Packs the additional templates of a model's folder (additional_chat_templates) as the section
 * MGL_MEGA_TEMPLATES; *text is NULL if there are none. Release *text with mgl_free. */
mgl_status mgl_chat_templates_pack(const char *folder, char **text, size_t *length, mgl_error *err);

#endif
