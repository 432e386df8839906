"""Notice characters that a model has hardly seen in training."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable

_EXAMPLES = 5
"""Most characters that the warning shows."""


class UnseenCharacters:
    """Counts the characters of texts that a model does not know.

    Args:
        unknown: those of a text's characters that the model does not know.
        reported: characters that no warning names again; a warning adds its own.
    """

    def __init__(self, unknown: Callable[[str], set[str]], reported: set[str]) -> None:
        self._unknown, self._reported = unknown, reported
        self._counts: Counter[str] = Counter()

    def add(self, texts: Iterable[str]) -> None:
        """Count the unknown characters of some texts."""
        text = "".join(texts)
        if unknown := self._unknown(text) - self._reported:
            self._counts.update(character for character in text if character in unknown)

    def warning(self) -> str | None:
        """One sentence on the characters that have not been reported; None if there are none."""
        if not self._counts:
            return None
        self._reported.update(self._counts)
        examples = []
        for character, _ in self._counts.most_common(_EXAMPLES):
            code, is_visible = f"U+{ord(character):04X}", unicodedata.category(character)[0] in "LNPS"
            examples.append(f"{character} ({code})" if is_visible else code)
        more = "" if len(self._counts) <= _EXAMPLES else f" and {len(self._counts) - _EXAMPLES} others"
        characters = f"{', '.join(examples)}{more} ({self._counts.total():,} in all)"
        return f"The training text of the model has these characters rarely or never: {characters}."
