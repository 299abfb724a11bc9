/* Texts for error messages about a Hugging Face cache (importer/hub.h). These functions never
 * fail: entries that cannot be read are left out. */
#ifndef MGL_IMPORTER_HUB_LIST_H
#define MGL_IMPORTER_HUB_LIST_H

#include "base/file.h"
#include "importer/hub.h"

/* Appends "0123abc (2026-01-31, main), 89abcde (2025-12-24)", newest first. Appends nothing if
 * there are no snapshots. */
void mgl_hub_list_revisions(const char *repository, const mgl_file_list *snapshots, mgl_text *out);

/* Appends ", which has ORG/NAME and ORG/OTHER": the models with names similar to the wanted
 * name. */
void mgl_hub_list_near(const mgl_hub_name *name, const char *cache, mgl_text *out);

#endif
