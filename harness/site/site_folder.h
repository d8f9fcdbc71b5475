/* site_folder.h - the folder that holds static pages: whose it is, which pages in it are of an earlier call. */
#ifndef LRNN_HARNESS_SITE_SITE_FOLDER_H
#define LRNN_HARNESS_SITE_SITE_FOLDER_H

#include "core/status.h"

#define SITE_GENERATOR "lrnn report --html" /* what <meta name="generator"> of each page says, by which it is ours */

/* ST_USAGE: there is something in the folder `dir`, and its index is not ours. */
enum status site_folder_check(const char *dir, struct error *e);

/* Names of the pages that a call has written: "index.html". Starts as zeros. */
struct site_pages {
    char **names;
    int n;
};

enum status site_page_add(struct site_pages *pages, const char *name, struct error *e);
void site_pages_free(struct site_pages *pages);

/* Removes our pictures from a folder. */
void site_remove_pictures(const char *folder);

/* Removes from `dir` our pages that are not among these, with their pictures; what is not ours stays. Sorts the
 * names. */
void site_remove_others(const char *dir, struct site_pages *written);

#endif
