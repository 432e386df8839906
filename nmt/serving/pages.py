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

_SHARED_SCRIPTS = ("drawing.js", "placing.js", "pointing.js")
_OWN_SCRIPTS = ("requests.js", "lines.js", "limit.js", "alternatives.js", "page.js")


def _own_file(name: str) -> str:
    return (resources.files("nmt.serving") / "page" / name).read_text(encoding="utf-8")


_TEMPLATE = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True).from_string(
    _own_file("page.html")
)
ASSETS: dict[str, tuple[str, str]] = {
    "page.css": ("\n".join([page_file("shared.css"), _own_file("page.css")]), "text/css"),
    "page.js": (
        "\n".join([*map(page_file, _SHARED_SCRIPTS), *map(_own_file, _OWN_SCRIPTS)]),
        "text/javascript",
    ),
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
    """The HTML of the page.

    Args:
        models: what can be chosen.
        characters: most characters of a text.
        needs_key: whether the API key is asked for.
        text, model, translation, problem: for browsers without JavaScript, what they sent and what came of it.
    """
    selected = next((served for served in models if served.name == model), models[0])
    data = {
        "models": [asdict(served) for served in models],
        "languages": {code: language_name(code) for served in models for code in (served.source, served.target)},
        "characters": characters,
    }
    return _TEMPLATE.render(
        models=models,
        selected=selected,
        source=language_name(selected.source),
        target=language_name(selected.target),
        language_name=language_name,
        characters=characters,
        needs_key=needs_key,
        text=text,
        translation=translation,
        problem=problem,
        data=Markup(json.dumps(data, ensure_ascii=False).translate(_ESCAPES)),  # noqa: S704 -- `<` is escaped
    )
