"""The search index as a script too: a page that was opened from a folder may not read JSON."""

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority


@event_priority(-100)  # after the index has been written
def on_post_build(config: MkDocsConfig) -> None:
    """Write search_index.js beside search_index.json."""
    folder = Path(config.site_dir) / "search"
    index = (folder / "search_index.json").read_text(encoding="utf-8")
    (folder / "search_index.js").write_text(f"var __index = {index}", encoding="utf-8")
