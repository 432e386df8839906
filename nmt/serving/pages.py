"""The page of the server, and the files it is made of. The drawing is that of the explorer page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from importlib import resources

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from nmt.plotting.explorer import page_file
from nmt.serving.engine import ServedModel
from nmt.text.languages import language_name

_ESCAPES = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def _own_file(name: str) -> str:
    return (resources.files("nmt.serving") / "page" / name).read_text(encoding="utf-8")


_ENVIRONMENT = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
_TEMPLATE = _ENVIRONMENT.from_string(_own_file("page.html"))
_SCRIPTS = [
    *map(page_file, ("drawing.js", "placing.js", "pointing.js")),
    *map(_own_file, ("requests.js", "lines.js", "alternatives.js", "page.js")),
]
ASSETS: dict[str, tuple[str, str]] = {
    "page.css": (page_file("shared.css") + "\n" + _own_file("page.css"), "text/css"),
    "page.js": ("\n".join(_SCRIPTS), "text/javascript"),
}
"""The files that the page loads: content and media type by name."""


def render_page(
    models: Sequence[ServedModel],
    *,
    characters: int,
    needs_key: bool,
    text: str = "",
    model: str | None = None,
    translation: str = "",
    problem: str = "",
) -> str:
    """The HTML of the page; `text` and what follows are what browsers without JavaScript sent, and what came of it."""
    selected = next((served for served in models if served.name == model), models[0])
    names = {code: language_name(code) for served in models for code in (served.source, served.target)}
    data = {"models": [asdict(served) for served in models], "languages": names, "characters": characters}
    return _TEMPLATE.render(
        models=models,
        selected=selected,
        source=names[selected.source],
        target=names[selected.target],
        needs_key=needs_key,
        text=text,
        translation=translation,
        problem=problem,
        data=Markup(json.dumps(data, ensure_ascii=False).translate(_ESCAPES)),  # noqa: S704 -- `<` is escaped
    )
