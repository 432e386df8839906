"""The result of translation: a line with its hypotheses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxtyping import Float
from torch import Tensor

from nmt.alignment.extraction import AlignedPair, Extraction
from nmt.alignment.links import Links
from nmt.alignment.term_links import link_terms, with_given
from nmt.alignment.weights import Alignment, Matrix, between_words
from nmt.errors import DataError, UsageError
from nmt.runtime.wording import excerpt
from nmt.search.hypothesis import Hypothesis, no_alignment
from nmt.text.subwords import Subwords
from nmt.text.words import WordsOfTokens, words_of

if TYPE_CHECKING:
    from nmt.plotting.heatmap import Gold, Style
    from nmt.plotting.style import Drawing

_MOST_CELLS_SHOWN = 60 * 60


@dataclass(frozen=True, eq=False, repr=False)
class TranslationHypothesis(Hypothesis):
    """One translation of a line.

    Row t of its alignment belongs to target token t and column s to source token s. The last column belongs to the source's
    end mark and, if finished, the last row to the target's. The alignment has

    * no rows if alignments are switched off,
    * no columns if no model was run,
    * neither if the line was translated in parts and would have more than 4096 rows or columns.
    """

    text: str

    def __repr__(self) -> str:
        return f"TranslationHypothesis({excerpt(self.text, 60)!r}, score={self.score:.4f})"

    @classmethod
    def of(cls, hypothesis: Hypothesis, *, text: str, alignment: Float[Tensor, "T S"]) -> TranslationHypothesis:
        """Add the text to a hypothesis of the search, and replace its alignment."""
        return cls(**{**vars(hypothesis), "alignment": alignment, "text": text})


@dataclass(frozen=True)
class WordReader:
    """Reads words and links off the tokens of a translation, as fits its (first) model."""

    subwords: tuple[Subwords, Subwords] | None
    """Of source and target; None after pickling, which stores the words in their place."""
    extraction: Extraction
    posterior: bool
    """Whether the alignment is the posterior, not the attention."""
    terms: Mapping[str, str] = field(default_factory=dict)
    """Translations that were given, in their normal form."""


@dataclass(frozen=True, repr=False)
class Translation:
    """A line with its translations. Words and links are those of the best one, and are computed when they are read."""

    source: str
    """The original line, without its line end."""
    source_ids: tuple[int, ...]
    """Token ids that the (first) model read, without end mark."""
    hypotheses: tuple[TranslationHypothesis, ...]
    """At least one, best first."""
    reader: WordReader | None = field(default=None, compare=False)
    """What words and links are read with."""
    known_words: tuple[WordsOfTokens, ...] | None = field(default=None, compare=False)
    """The words of the line, then of each hypothesis, if they were already read: pickling keeps them."""

    @property
    def text(self) -> str:
        """The best translation, always a single line."""
        return self.hypotheses[0].text

    @property
    def score(self) -> float:
        """The score of the best translation."""
        return self.hypotheses[0].score

    @property
    def finished(self) -> bool:
        """Whether the model ended the best translation; else it was cut at the length limit (`decoding.max_ratio`)."""
        return self.hypotheses[0].finished

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the best translation: what spaces separate, or tokens in a language without spaces."""
        return self._words[1][0]

    @property
    def source_words(self) -> tuple[str, ...]:
        """The words of the line."""
        return self._words[0][0]

    @property
    def alignment(self) -> Matrix:
        """The weight of each source word for each target word, [T S]: a NumPy array, see `word_alignment`."""
        return self.word_alignment().weights

    @property
    def links(self) -> Links:
        """Pairs (source word, target word), from 0, see `word_links`."""
        return self.word_links()

    def is_aligned(self, rank: int = 0) -> bool:
        """Whether a hypothesis has an alignment; one that was too long has none."""
        return not self.source_ids or self.hypotheses[rank].alignment.shape[1] > 0

    def word_alignment(self, rank: int = 0) -> Alignment:
        """The alignment between the words of the line and of one of its hypotheses, the best being 0; without end marks.

        Raises:
            DataError: there is none: alignments were switched off, or the line is too long.
        """
        return between_words(self._token_weights(rank), self.words_of_tokens(), self.words_of_tokens(rank))

    def token_alignment(self, rank: int = 0) -> Alignment:
        """The alignment between tokens, as SentencePiece spells them (`▁` begins a word). Arguments as in `word_alignment`.

        Raises:
            DataError: there is none.
            UsageError: the translation was pickled, which does not keep the tokens' spelling.
        """
        weights, subwords = self._token_weights(rank), self._known_reader.subwords
        if subwords is None:
            raise UsageError("The tokens of a Translation are not pickled: ask for them in the process that made it.")
        source, target = subwords[0].tokens(self.source_ids), subwords[1].tokens(self.hypotheses[rank].ids)
        return Alignment(weights[: len(target), : len(source)], tuple(source), tuple(target))

    def _token_weights(self, rank: int) -> Matrix:
        """The weights between tokens, end marks included."""
        if not self.is_aligned(rank):
            raise DataError(
                "This translation has no alignment: its line is longer than 4,096 tokens, or alignments=False was given."
            )
        weights: Matrix = self.hypotheses[rank].alignment.double().numpy()
        return weights

    def word_links(self, rank: int = 0) -> Links:
        """The links of that alignment, extracted as `nmt align` does. Raises DataError as `word_alignment` does."""
        return self.aligned_pair(rank).links

    def aligned_pair(self, rank: int = 0) -> AlignedPair:
        """That alignment with its links and their confidences. Raises DataError as `word_alignment` does.

        The words of a given term are linked to its translation, whatever the weights are.
        """
        pair = self._known_reader.extraction.pair(self.word_alignment(rank))
        terms = self.term_links(rank)
        return replace(pair, links=with_given(pair.links, terms)) if terms else pair

    def term_links(self, rank: int = 0) -> Links:
        """Links between the words of the terms that were given, and of their translations in a hypothesis."""
        return link_terms(self._words[0][0], self._words[rank + 1][0], self._known_reader.terms)

    def words_of_tokens(self, rank: int | None = None) -> WordsOfTokens:
        """The words of a hypothesis, or of the line without a rank, and the word of each token."""
        return self._words[0 if rank is None else rank + 1]

    def plot(
        self,
        path: str | Path | None = None,
        *,
        rank: int = 0,
        title: str | None = None,
        gold: Gold | None = None,
        style: Style = "color",
        font: str | Path | None = None,
        dpi: float = 150,
    ) -> Drawing:
        """Draw `word_alignment(rank)`; arguments and errors are those of `nmt.plot_alignment`.

        Returns:
            The picture, which a notebook shows.
        """
        from nmt.plotting.heatmap import plot_alignment  # the only import from a higher layer: a result draws itself

        alignment = self.word_alignment(rank)
        weights = "posterior weight" if self._known_reader.posterior else "attention weight"
        outlined = gold or self.term_links(rank) or None
        return plot_alignment(
            alignment, path, weights=weights, title=title, gold=outlined, style=style, font=font, dpi=dpi
        )

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        more = f", {len(self.hypotheses) - 1} more" if len(self.hypotheses) > 1 else ""
        return f"Translation({excerpt(self.source, 60)!r} -> {excerpt(self.text, 60)!r}, score={self.score:.4f}{more})"

    def _repr_png_(self) -> bytes | None:
        """What a notebook shows, unless the matrix is empty or huge."""
        is_shown = self.is_aligned() and 0 < self.alignment.size <= _MOST_CELLS_SHOWN
        return self.plot(title=self.text)._repr_png_() if is_shown else None

    @cached_property
    def _words(self) -> tuple[WordsOfTokens, ...]:
        """The words of the line, then of each hypothesis."""
        if self.known_words is not None:
            return self.known_words
        subwords = self._known_reader.subwords
        assert subwords is not None, "pickling stores the words"
        source, target = subwords
        words = words_of(source, self.source_ids, self.source)
        return words, *(words_of(target, hypothesis.ids, hypothesis.text) for hypothesis in self.hypotheses)

    @property
    def _known_reader(self) -> WordReader:
        if self.reader is None:
            raise UsageError("The words of a Translation are known only if a Translator made it.")
        return self.reader

    def __reduce__(self) -> tuple[type[Translation], tuple[Any, ...]]:
        """Pickle with the words and without the subwords, which would take hundreds of kilobytes."""
        reader = None if self.reader is None else replace(self.reader, subwords=None)
        words = None if reader is None else self._words
        return type(self), (self.source, self.source_ids, self.hypotheses, reader, words)


def unread_hypothesis(text: str) -> TranslationHypothesis:
    """The translation of a line for which no model is run, since it is blank or stays as it is."""
    return TranslationHypothesis((), 0.0, 0.0, (), no_alignment(), finished=True, text=text)
