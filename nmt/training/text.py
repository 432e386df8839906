"""From a recipe's locators to encoded text: the corpora, the subword models, the ids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from nmt.data.batching import Batch, make_batch
from nmt.data.corpus import ParallelCorpus, load_corpus
from nmt.data.encoded import EncodedCorpus, encode_corpus
from nmt.data.subwords import Subwords
from nmt.recipe import Recipe


@dataclass(frozen=True)
class TrainingText:
    """The corpora that a run trains on and is validated with."""

    train: ParallelCorpus
    valid: ParallelCorpus

    @classmethod
    def load(cls, recipe: Recipe) -> TrainingText:
        """Read both. Raises DataError naming file and line of what cannot be used."""
        data = recipe.data
        return cls(
            load_corpus(data.train, source=data.source, target=data.target),
            load_corpus(data.valid, source=data.source, target=data.target),
        )

    def subwords(self, recipe: Recipe) -> tuple[Subwords, Subwords]:
        """The subword models of source and target: the recipe's files, or newly trained on the training text."""
        chosen = recipe.subwords
        if chosen.source_model and chosen.target_model:
            return Subwords.load(chosen.source_model), Subwords.load(chosen.target_model)

        def trained_on(lines: Iterable[str]) -> Subwords:
            byte_fallback = chosen.byte_fallback
            return Subwords.train(
                lines, kind=chosen.kind, size=chosen.size, byte_fallback=byte_fallback, seed=recipe.seed
            )

        if chosen.joint:
            joint = trained_on(chain(self.train.source, self.train.target))
            return joint, joint
        return trained_on(self.train.source), trained_on(self.train.target)


@dataclass(frozen=True)
class Examples:
    """An encoded corpus that gives batches, with the segmentation sampled anew each time if the recipe says so."""

    corpus: EncodedCorpus
    source: Subwords
    target: Subwords
    sampling: float | None = None

    @classmethod
    def of(cls, recipe: Recipe, text: ParallelCorpus, source: Subwords, target: Subwords, *, train: bool) -> Examples:
        """The training examples (filtered, sampled) or the validation examples (every pair, as it is)."""
        encoded = encode_corpus(text, source, target, recipe.data.filters if train else None)
        return cls(encoded, source, target, recipe.subwords.sampling if train else None)

    def batch(self, rows: Sequence[int], *, seed: int = 0) -> Batch:
        """The pairs of the given rows; the same seed samples the same segmentation."""
        pairs = self.corpus[rows]
        if self.sampling is not None:
            texts = self.corpus.text(rows)
            longest = [2 * max(map(len, pair)) + 10 for pair in pairs]
            sampled = [
                (self.source.sample(source, self.sampling, seed=seed + n), self.target.sample(target, self.sampling))
                for n, (source, target) in enumerate(texts)
            ]
            # A rare segmentation into single characters would break the token budget; the plain one stands in for it.
            pairs = [
                new if max(map(len, new)) <= limit else old
                for new, old, limit in zip(sampled, pairs, longest, strict=True)
            ]
        return make_batch(pairs, rows)
