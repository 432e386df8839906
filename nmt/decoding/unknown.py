"""Replace unknown tokens of the output by translations of the source words they are aligned to.

    w_t = lexicon(x_n),  n = argmax_m  sum_{j in Q_m}  a_tj

for an unknown token t of the output, with Q_m the tokens of source word x_m. A word that is not in the lexicon is copied
(Luong et al. 2015, "Addressing the rare word problem"; Jean et al. 2015; `+unk replace` of Luong et al. 2015).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from nmt.errors import DataError
from nmt.search.hypothesis import Hypothesis
from nmt.text.subwords import UNK, Subwords
from nmt.text.words import clean, words_of

Lexicon = Mapping[str, str]
"""Source words and their translations."""


class UnknownWords:
    """Decodes hypotheses to text, replacing each unknown token by a source word or its translation."""

    def __init__(self, source: Subwords, target: Subwords, lexicon: Lexicon | None) -> None:
        """Without a lexicon, not even an empty one, unknown tokens stay."""
        self.source, self.target, self.lexicon = source, target, lexicon

    def text(self, line: str, source_ids: Sequence[int], hypothesis: Hypothesis, known: Sequence[str] = ()) -> str:
        """The text of a hypothesis. An unknown token without weight on any source word stays.

        Args:
            line: the source.
            source_ids: its token ids.
            hypothesis: the translation, with its alignment.
            known: what the first unknown tokens stand for.
        """
        return clean(
            self.target.decode(
                hypothesis.ids, unknown=[*known, *self._replaced(line, source_ids, hypothesis)[len(known) :]]
            )
        )

    def _replaced(self, line: str, source_ids: Sequence[int], hypothesis: Hypothesis) -> list[str | None]:
        """What replaces each unknown token; None where it stays."""
        places = [place for place, index in enumerate(hypothesis.ids) if index == UNK]
        words, word_of = words_of(self.source, source_ids, line) if places else ((), [])
        if not words or self.lexicon is None:
            return [None] * len(places)
        rows = hypothesis.alignment.numpy()[places, : len(word_of)].astype(np.float64)
        weights = rows @ (np.array(word_of)[:, None] == np.arange(len(words)))
        aligned = [words[word] for word in weights.argmax(axis=1)]
        return [
            self.lexicon.get(word, word) if weight > 0 else None
            for word, weight in zip(aligned, weights.max(axis=1), strict=True)
        ]


def read_lexicon(path: Path, *, of_words: bool = True) -> dict[str, str]:
    """Read a file of lines `source word TAB target word`; if a source word has several lines, the first one counts.

    Raises:
        DataError: the file cannot be read, or a line is neither blank nor two words (with `of_words` false, two texts). The message
            gives its number.
    """
    from nmt.data.lines import read_lines  # not needed to translate

    lexicon: dict[str, str] = {}
    for number, line in enumerate(read_lines(path), start=1):
        fields = [field.strip() for field in line.split("\t")]
        if len(fields) == 2 and all(len(field.split()) == 1 if of_words else field for field in fields):
            lexicon.setdefault(*fields)
        elif line.strip():
            sides = "a source word, a tab and a target word" if of_words else "a source term, a tab and a target term"
            raise DataError(f"{path}, line {number}: a line is {sides}, but this one is {line[:60]!r}.")
    return lexicon
