"""The README for package indexes: without the pictures and links that lead to other files of the repository."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_RELATIVE = r"\[([^]]*)\]\((?!https?://|#)[^)]*\)"


class ReadmeHook(MetadataHookInterface):
    """Called by hatchling: see `[tool.hatch.metadata.hooks.custom]` in pyproject.toml."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": without_relative_links(text)}


def without_relative_links(markdown: str) -> str:
    """Drop relative pictures, and leave the text of relative links."""
    without_pictures = re.sub(rf"^!{_RELATIVE}\n\n?", "", markdown, flags=re.MULTILINE)
    return re.sub(_RELATIVE, r"\1", without_pictures)
