"""Decode one batch of sentences: token ids in, hypotheses with text and alignment out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from nmt.alignment.translation import TranslationHypothesis
from nmt.data.batching import pad
from nmt.decoding.ensemble import Ensemble
from nmt.decoding.minimum_bayes_risk import most_expected
from nmt.decoding.options import DecodingOptions
from nmt.decoding.prefixed import PrefixedEnsemble, PrefixedMemory
from nmt.decoding.terms import Terms
from nmt.decoding.unknown import UnknownWords
from nmt.fast import pack_search
from nmt.runtime.device import threads_for, torch_defaults
from nmt.search.hypothesis import NEG_INF, Hypothesis, Penalties, no_alignment
from nmt.search.loop import Search
from nmt.search.options import SearchOptions
from nmt.search.sampling import Sampling
from nmt.search.terms import TermSearch
from nmt.text.prefix import Prefix
from nmt.text.subwords import BOS, EOS, PAD, Subwords

CHECK_EVERY = 8
"""Steps of a search on a GPU between looks at what has ended: each look has the CPU wait for the GPU."""


@dataclass(frozen=True)
class SourceSentence:
    """A line to translate or score, a sentence of it, or a part of one that is too long."""

    ids: tuple[tuple[int, ...], ...]
    """Its token ids for each member of an ensemble, without special tokens."""
    text: str
    place: tuple[int, int] = (0, 0)
    """The number of the line, and the number of the part in it."""
    target: tuple[int, ...] = ()
    """The ids of its translation, if that is known."""
    prefix: str = ""
    """The text that its translation must begin with."""

    @property
    def length(self) -> int:
        """Number of tokens, the most of any member or of the target."""
        return max(len(self.target), *map(len, self.ids))


class BatchDecoder:
    """Translates or scores a batch of sentences with an ensemble."""

    def __init__(
        self,
        ensemble: Ensemble,
        source: Subwords,
        target: Subwords,
        settings: DecodingOptions,
        tags: Sequence[Sequence[int]],
        unwritten: tuple[int, ...],
        terms: Terms | None = None,
    ) -> None:
        """Prepare to decode.

        Args:
            ensemble: the models.
            source, target: the subwords of the first member.
            settings: how to translate.
            tags: the tokens before every source, for each member; alignments leave them out.
            unwritten: target tokens that no translation has.
            terms: translations that must be used.
        """
        self.ensemble, self.target, self.settings, self.tags = ensemble, target, settings, tags
        self.unknown = UnknownWords(source, target, settings.replace_unknown)
        self.penalties = Penalties(settings.length_penalty, settings.coverage_penalty)
        self.draws, self.hypotheses = settings.draws, settings.hypotheses
        self.chooses_by_risk = self.draws is not None and settings.sampling is None
        self.terms = terms
        self.searching = pack_search(Search(_search_options(settings, unwritten, ensemble.device)))

    @torch_defaults()
    def search(self, sentences: Sequence[SourceSentence]) -> list[list[TranslationHypothesis]]:
        """The hypotheses of each sentence: the best ones, best first (by expected chrF if the risk decides), or random samples."""
        ensemble, settings = self.ensemble, self.settings
        with ensemble.evaluating(), threads_for(self.hypotheses * sum(sentence.length for sentence in sentences)):
            sources = [
                pad([[*tag, *sentence.ids[member], EOS] for sentence in sentences]).to(ensemble.device)
                for member, tag in enumerate(self.tags)
            ]
            texts = [sentence.prefix for sentence in sentences]
            prefixes = [Prefix(self.target, text) for text in texts]
            terms = [self.terms.of(sentence.text) if self.terms else [] for sentence in sentences]
            is_prefixed = settings.alternatives or any(texts)
            models: Any = PrefixedEnsemble(ensemble, prefixes) if is_prefixed else ensemble
            memory = models.encode(sources)
            prefix_lengths = list(map(len, self.target.encode_batch(texts) if any(texts) else texts))
            # 10 and the end mark more
            lengths = [
                max(int(settings.max_ratio * len(sentence.ids[0])), prefix_length) + 11 + sum(map(len, of_sentence))
                for sentence, prefix_length, of_sentence in zip(sentences, prefix_lengths, terms, strict=True)
            ]
            max_lengths, mask = torch.tensor(lengths), sources[0] != PAD

            def run(memory: Any) -> list[list[Hypothesis]]:
                searching = self.searching
                if self.terms and any(terms):
                    searching = TermSearch(searching.options, terms, self.terms.inner)
                return searching.run(models.step, models.start(memory), memory, max_lengths, source_mask=mask)

            if self.draws is None:
                n_best_lists = self._alternatives(run, memory) if settings.alternatives else run(memory)
            else:
                places = [sentence.place for sentence in sentences]
                uniform = self.draws.uniform(places, self.hypotheses, max(lengths))
                start = models.step, models.start(memory), memory, max_lengths
                n_best_lists = self.searching.sample(*start, source_mask=mask, uniform=uniform.to(ensemble.device))
        if self.tags[0]:
            first = len(self.tags[0])
            n_best_lists = [
                [replace(hypothesis, alignment=hypothesis.alignment[:, first:]) for hypothesis in n_best]
                for n_best in n_best_lists
            ]
        written = []
        for sentence, prefix, n_best in zip(sentences, prefixes, n_best_lists, strict=True):
            drawn = [
                (
                    hypothesis,
                    self.unknown.text(sentence.text, sentence.ids[0], hypothesis, prefix.unknown(hypothesis.ids)),
                )
                for hypothesis in n_best
            ]
            hypotheses = most_expected(drawn, settings.n_best, settings.mbr_beta) if self.chooses_by_risk else drawn
            columns = len(sentence.ids[0]) + 1
            written.append(
                [
                    TranslationHypothesis.of(
                        hypothesis,
                        text=text,
                        alignment=hypothesis.alignment[:, :columns].clone() if settings.alignments else no_alignment(),
                    )
                    for hypothesis, text in hypotheses
                ]
            )
        return self._with_posteriors(sentences, written) if settings.alignments and settings.posterior else written

    def _alternatives(
        self, run: Callable[[PrefixedMemory], list[list[Hypothesis]]], memory: PrefixedMemory
    ) -> list[list[Hypothesis]]:
        """For each sentence the best hypothesis, then the best of those whose first token beyond the prefix is another, and so on."""
        alternatives: list[list[Hypothesis]] = [[] for _ in memory.prefixes]
        prefixes = memory.prefixes
        for _ in range(self.settings.n_best):
            for n_best, [hypothesis] in zip(alternatives, run(replace(memory, prefixes=prefixes)), strict=True):
                if hypothesis.score > NEG_INF or not n_best:
                    n_best.append(hypothesis)
            prefixes = tuple(
                prefix.other_than(n_best[-1].ids) for prefix, n_best in zip(prefixes, alternatives, strict=True)
            )
        return [sorted(n_best, key=lambda hypothesis: -hypothesis.score) for n_best in alternatives]

    @torch_defaults()
    def force(self, sentences: Sequence[SourceSentence]) -> list[TranslationHypothesis]:
        """Forced decoding of known targets, as hypotheses without text."""
        targets = [sentence.target for sentence in sentences]
        with self.ensemble.evaluating(), threads_for(sum(map(len, targets))):
            sources = [
                [(*tag, *sentence.ids[member]) for sentence in sentences] for member, tag in enumerate(self.tags)
            ]
            forced = self.ensemble.force(sources, targets)
            totals = forced.token_log_probs.sum(dim=1)
            lengths = torch.tensor([len(target) + 1 for target in targets], device=totals.device)
            scores = self.penalties.score(totals, lengths, forced.alignment.sum(dim=1), forced.source_mask).tolist()
            alignment = (
                self.ensemble.posterior(sources, targets) if self.settings.posterior else forced.alignment
            ).cpu()
            alignment = alignment[:, :, len(self.tags[0]) :]
        log_probs = forced.token_log_probs.tolist()
        return [
            TranslationHypothesis(
                ids=target,
                score=scores[row],
                log_probability=total,
                token_log_probs=tuple(log_probs[row][: len(target) + 1]),
                alignment=alignment[row, : len(target) + 1, : len(sentence.ids[0]) + 1].clone(),
                finished=True,
                text="",
            )
            for row, (sentence, target, total) in enumerate(zip(sentences, targets, totals.tolist(), strict=True))
        ]

    def _with_posteriors(
        self, sentences: Sequence[SourceSentence], n_best_lists: Sequence[Sequence[TranslationHypothesis]]
    ) -> list[list[TranslationHypothesis]]:
        """The hypotheses with the posterior as their alignment; one that is not finished has no row of the end mark."""
        known = [
            replace(sentence, target=hypothesis.ids)
            for sentence, n_best in zip(sentences, n_best_lists, strict=True)
            for hypothesis in n_best
        ]
        forced = iter(self.force(known))
        return [
            [
                replace(hypothesis, alignment=next(forced).alignment[: len(hypothesis.alignment)])
                for hypothesis in n_best
            ]
            for n_best in n_best_lists
        ]


def _search_options(settings: DecodingOptions, unwritten: tuple[int, ...], device: torch.device) -> SearchOptions:
    """How to search, or to sample: each sample is a beam of its own."""
    draws = settings.draws or Sampling()
    return SearchOptions(
        beam_size=1 if settings.draws else settings.beam_size,
        n_best=1 if settings.draws or settings.alternatives else settings.n_best,
        length_penalty=settings.length_penalty,
        coverage_penalty=settings.coverage_penalty,
        horizon=settings.horizon,
        prune=settings.prune,
        temperature=draws.temperature,
        top_k=draws.top_k,
        bos=BOS,
        eos=EOS,
        forbid=(PAD, BOS, *unwritten),
        device=device,
        check_every=1 if device.type == "cpu" else CHECK_EVERY,
    )
