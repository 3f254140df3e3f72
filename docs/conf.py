"""How `make docs` builds the site. Nothing is fetched from the network."""

from __future__ import annotations

import os
import warnings

import kfree

project = "kfree"
copyright = "the kfree developers"
version = release = kfree.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["templates", "gallery/GALLERY_HEADER.*"]
templates_path = ["templates"]
# `X` in a docstring is code.
default_role = "code"

myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
# Inherited methods of scikit-learn speak of machinery that no page here explains.
numpydoc_show_class_members = False
numpydoc_show_inherited_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "show_memory": False,
    "min_reported_time": 1e9,
    "plot_gallery": os.environ.get("KFREE_DOCS_PLOTS", "1") != "0",
    "remove_config_comments": True,
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("kfree",),
    "show_api_usage": False,
}
# A warning in an example is a mistake in the example.
warnings.filterwarnings("error", module="kfree")

html_theme = "pydata_sphinx_theme"
html_title = "kfree"
html_static_path = ["static"]
html_css_files = ["kfree.css"]
html_show_sourcelink = False
# Light or dark as the reader's system is; the theme's script complains if it is not said.
html_context = {"default_mode": "auto"}
# predict(), and not KFreeClassifier.predict(), which is too long for the list beside the page.
toc_object_entries_show_parents = "hide"
html_copy_source = False
html_theme_options = {
    "logo": {"text": "kfree"},
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": True,
    "header_links_before_dropdown": 7,
}
# These pages have no pages below them: an empty list would stand at their side.
ALONE = ("start", "settings", "probabilities", "labels", "limits", "commands", "pictures", "report")
ALONE += ("model", "notation", "order", "paper", "quality", "performance", "approximate", "audit")
ALONE += ("extending", "changelog", "estimators", "mixed_tables", "imbalanced", "embeddings")
ALONE += ("many_rows", "from_knn", "faq", "field")
html_sidebars = {name: [] for name in ALONE}
