/* What a message says of a Hugging Face cache: importer/hub.h. Nothing here fails: what can not be
 * read is left out. */
#ifndef MGL_IMPORTER_HUB_LIST_H
#define MGL_IMPORTER_HUB_LIST_H

#include "base/file.h"
#include "importer/hub.h"

/* "0123abc (2026-01-31, main), 89abcde (2025-12-24)", the newest first. Nothing without snapshots.
 */
void mgl_hub_list_revisions(const char *repository, const mgl_file_list *snapshots, mgl_text *out);

/* ", which has ORG/NAME and ORG/OTHER", with names like that which is looked for. */
void mgl_hub_list_near(const mgl_hub_name *name, const char *cache, mgl_text *out);

#endif
