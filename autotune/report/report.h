/*
 * The report of a campaign, made from its store only: one HTML file with inline SVG and no external
 * resources, or Markdown for a terminal. Text from models, agents and files is always escaped.
 * Called by `campaign report`.
 */
#ifndef MGL_AUTOTUNE_REPORT_REPORT_H
#define MGL_AUTOTUNE_REPORT_REPORT_H

#include "autotune/store/store.h"

typedef struct mgl_report_options {
    bool running; /* the page reloads itself every 30 s */
} mgl_report_options;

mgl_status mgl_report_html(mgl_store *store, const mgl_campaign_record *campaign,
                           const mgl_report_options *options, mgl_text *out, mgl_error *err);
mgl_status mgl_report_markdown(mgl_store *store, const mgl_campaign_record *campaign, mgl_text *out,
                               mgl_error *err);

#endif
