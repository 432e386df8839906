"""Decode one batch of sentences: token ids in, hypotheses with text and alignment out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from nmt import recipe
from nmt.alignment.translation import TranslationHypothesis
from nmt.alignment.weights import AlignmentWeights
from nmt.data.batching import pad
from nmt.decoding.ensemble import Ensemble
from nmt.decoding.unknown import UnknownWords
from nmt.fast import pack_search
from nmt.runtime.device import threads_for, torch_defaults
from nmt.search.hypothesis import Hypothesis, Penalties
from nmt.search.loop import Search
from nmt.search.options import SearchOptions
from nmt.search.sampling import Sampling
from nmt.text.subwords import BOS, EOS, PAD, Subwords
from nmt.text.words import clean

CHECK_EVERY = 8
"""Steps of a search on a GPU between looks at what has ended: each look has the CPU wait for the GPU."""


@dataclass(frozen=True)
class SourceSentence:
    """A line to translate, or a part of one that is too long."""

    ids: tuple[tuple[int, ...], ...]
    """Its token ids for each member of an ensemble, without special tokens."""
    text: str
    place: tuple[int, int] = (0, 0)
    """The number of the line, and the number of the part in it."""
    weights: AlignmentWeights | None = None
    """What the alignments of its translations hold; None if they have none."""

    @property
    def length(self) -> int:
        """Number of tokens, the most of any member."""
        return max(map(len, self.ids))


class BatchDecoder:
    """Translates or scores a batch of sentences with an ensemble."""

    def __init__(
        self,
        ensemble: Ensemble,
        target: Subwords,
        *,
        decoding: recipe.DecodingConfig,
        n_best: int,
        posterior: bool,
        unknown: UnknownWords | None,
        sampling: Sampling | None = None,
        tags: Sequence[Sequence[int]] = (),
    ) -> None:
        """Prepare the search. The tokens of `tags`, for each member, come before those of every source; alignments leave them out."""
        self.ensemble = ensemble
        self.target = target
        self.decoding = decoding
        self.n_best = n_best
        self.posterior = posterior
        self.unknown = unknown
        self.sampling = sampling
        self.tags = tags or [()] * len(ensemble.models)
        self.penalties = Penalties(decoding.length_penalty, decoding.coverage_penalty)
        self.beam_size = decoding.beam_size if sampling is None else n_best
        self.searching = pack_search(Search(self._search_options()))

    def _search_options(self) -> SearchOptions:
        """How to search, or to sample: each sample is a beam of its own."""
        decoding, device, draws = self.decoding, self.ensemble.device, self.sampling or Sampling()
        return SearchOptions(
            beam_size=1 if self.sampling else decoding.beam_size,
            n_best=1 if self.sampling else self.n_best,
            length_penalty=decoding.length_penalty,
            coverage_penalty=decoding.coverage_penalty,
            horizon=decoding.horizon,
            prune=decoding.prune,
            temperature=draws.temperature,
            top_k=draws.top_k,
            bos=BOS,
            eos=EOS,
            forbid=(PAD, BOS),
            device=device,
            check_every=1 if device.type == "cpu" else CHECK_EVERY,
        )

    @torch_defaults()
    def search(self, sentences: Sequence[SourceSentence]) -> list[list[TranslationHypothesis]]:
        """The hypotheses of each sentence: the best ones, best first, or random samples."""
        tokens = self.beam_size * sum(sentence.length for sentence in sentences)
        with self.ensemble.evaluating(), threads_for(tokens):
            n_best_lists = self._search(sentences)
        alignments = self._alignments(sentences, n_best_lists)
        return [
            [
                TranslationHypothesis.of(hypothesis, text=self._text(sentence, hypothesis), alignment=alignment)
                for hypothesis, alignment in zip(n_best, own_alignments, strict=True)
            ]
            for sentence, n_best, own_alignments in zip(sentences, n_best_lists, alignments, strict=True)
        ]

    def force(self, pairs: Sequence[tuple[SourceSentence, Sequence[int]]]) -> list[TranslationHypothesis]:
        """Forced decoding of known targets, which are ids without special tokens."""
        return self._force(pairs, posterior=self.posterior)

    @torch_defaults()
    def _force(
        self, pairs: Sequence[tuple[SourceSentence, Sequence[int]]], *, posterior: bool
    ) -> list[TranslationHypothesis]:
        sentences, targets = zip(*pairs, strict=True)
        with self.ensemble.evaluating(), threads_for(sum(map(len, targets))):
            sources = [
                [(*tag, *sentence.ids[member]) for sentence in sentences] for member, tag in enumerate(self.tags)
            ]
            forced = self.ensemble.force(sources, targets)
            totals = forced.token_log_probs.sum(dim=1)
            lengths = torch.tensor([len(target) + 1 for target in targets], device=totals.device)
            mask = self._sources(sentences)[0] != PAD
            scores = self.penalties.score(totals, lengths, forced.alignment.sum(dim=1), mask).tolist()
            alignment = (self.ensemble.posterior(sources, targets) if posterior else forced.alignment).cpu()
            alignment = alignment[:, :, len(self.tags[0]) :]
        log_probs = forced.token_log_probs.tolist()
        return [
            TranslationHypothesis(
                ids=tuple(target),
                score=scores[row],
                log_probability=total,
                token_log_probs=tuple(log_probs[row][: len(target) + 1]),
                alignment=alignment[row, : len(target) + 1, : len(sentence.ids[0]) + 1].clone(),
                finished=True,
                text=clean(self.target.decode(target)),
            )
            for row, (sentence, target, total) in enumerate(zip(sentences, targets, totals.tolist(), strict=True))
        ]

    def _search(self, sentences: Sequence[SourceSentence]) -> list[list[Hypothesis]]:
        sources = self._sources(sentences)
        # 10 and the end mark more
        lengths = [int(self.decoding.max_ratio * len(sentence.ids[0])) + 11 for sentence in sentences]
        memory = self.ensemble.encode(sources)
        start = self.ensemble.step, self.ensemble.start(memory), memory, torch.tensor(lengths)
        mask = sources[0] != PAD
        if self.sampling is None:
            return self._untagged(self.searching.run(*start, source_mask=mask))
        uniform = self.sampling.uniform([sentence.place for sentence in sentences], self.n_best, max(lengths))
        return self._untagged(self.searching.sample(*start, source_mask=mask, uniform=uniform.to(self.ensemble.device)))

    def _untagged(self, n_best_lists: list[list[Hypothesis]]) -> list[list[Hypothesis]]:
        """The hypotheses with alignments to what the user wrote alone."""
        if not self.tags[0]:
            return n_best_lists
        tag = len(self.tags[0])
        return [[replace(item, alignment=item.alignment[:, tag:]) for item in n_best] for n_best in n_best_lists]

    def _text(self, sentence: SourceSentence, hypothesis: Hypothesis) -> str:
        if self.unknown is None:
            return clean(self.target.decode(hypothesis.ids))
        return clean(self.unknown.text(sentence.text, sentence.ids[0], hypothesis))

    def _alignments(
        self, sentences: Sequence[SourceSentence], n_best_lists: Sequence[Sequence[Hypothesis]]
    ) -> list[list[Float[Tensor, "_T _S"]]]:
        """The alignment of each hypothesis, without padding; row t is of target token t. [0 0] for sentences without."""
        pairs = [
            (sentence, hypothesis.ids)
            for sentence, n_best in zip(sentences, n_best_lists, strict=True)
            for hypothesis in n_best
            if sentence.weights == "posterior"
        ]
        forced = iter(self._force(pairs, posterior=True) if pairs else [])
        return [
            [
                next(forced).alignment[: len(hypothesis.alignment)]
                if sentence.weights == "posterior"
                else _attention(sentence, hypothesis)
                for hypothesis in n_best
            ]
            for sentence, n_best in zip(sentences, n_best_lists, strict=True)
        ]

    def _sources(self, sentences: Sequence[SourceSentence]) -> list[Int[Tensor, "B _S"]]:
        """The padded source of each member, with end marks."""
        return [
            pad([[*tag, *sentence.ids[member], EOS] for sentence in sentences]).to(self.ensemble.device)
            for member, tag in enumerate(self.tags)
        ]


def _attention(sentence: SourceSentence, hypothesis: Hypothesis) -> Float[Tensor, "_T _S"]:
    """The attention of a hypothesis; [0 0] if it is not wanted."""
    if sentence.weights is None:
        return hypothesis.alignment[:0, :0]
    return hypothesis.alignment[:, : len(sentence.ids[0]) + 1].clone()
