"""Translations that begin as given: against all outputs of small models, and against what the models say without a prefix."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

import pytest
import torch

from nmt import recipe
from nmt.alignment.translation import TranslationHypothesis
from nmt.bundle.folder import Bundle
from nmt.data.batching import pad
from nmt.decoding.ensemble import Ensemble
from nmt.decoding.prefixed import PrefixedEnsemble
from nmt.decoding.shortlist import Shortlist
from nmt.decoding.translator import Translator
from nmt.errors import UsageError
from nmt.model.build import build_model
from nmt.search.hypothesis import Penalties
from nmt.search.sampling import Sampling
from nmt.text.prefix import Prefix
from nmt.text.subwords import BOS, EOS, PAD, UNK, Subwords
from tests.decoding.test_translator import LINES, TEXT, check_same
from tests.models import output_bias
from tests.search.searching import beam_search


@cache
def subwords(kind: Any = "bpe", size: int = 90, *, bytes_too: bool = False) -> Subwords:
    return Subwords.train(TEXT, kind=kind, size=size + 256 * bytes_too, byte_fallback=bytes_too)


@cache
def bundle(kind: str = "bpe", *, bytes_too: bool = False, seed: int = 1) -> Bundle:
    """A small model with random weights whose outputs end."""
    model = {
        "embedding": 10,
        "tie": "none",
        "encoder": {"hidden": 8},
        "decoder": {"hidden": 14, "readout": {"size": 12}},
    }
    tree = {
        "name": "x",
        "seed": seed,
        "data": {"source": "de", "target": "en", "train": "-", "valid": "-"},
        "model": model,
    }
    tokens = subwords(kind, bytes_too=bytes_too)
    result = Bundle.fresh(
        recipe.parse_recipe(tree | {"decoding": {"beam_size": 4, "max_ratio": 0.5}}, "x"), tokens, tokens
    )
    with torch.no_grad():
        for parameter in result.model.parameters():
            parameter.mul_(2.5)
        output_bias(result.model).fill_(0)
        output_bias(result.model)[EOS] = 5.0
        rare = [index for index, token in enumerate(tokens.tokens(range(len(tokens)))) if token.startswith("<")]
        output_bias(result.model)[[*rare[EOS + 1 :], UNK]] = -30.0  # single bytes
    result.model.eval()
    return result


every_kind = pytest.mark.parametrize(
    ("kind", "bytes_too"), [("bpe", False), ("bpe", True), ("char", True), ("unigram", False), ("word", False)]
)

# --- exact --------------------------------------------------------------------------------------------------------


def small_subwords() -> Subwords:
    """Few tokens that spell the same text in several ways."""
    return Subwords.train(["ab ab aba b", "abab ba a"] * 3, kind="bpe", size=11, byte_fallback=False)


@pytest.mark.parametrize("text", ["", "a", "ab", "aba", "ab ", "b a"])
def test_a_search_finds_the_best_of_all_outputs_that_begin_as_given(text: str) -> None:
    tokens, length = small_subwords(), 4
    tree = {"embedding": 6, "encoder": {"hidden": 4}, "decoder": {"hidden": 7, "readout": {"size": 6}}}
    config = recipe.RecurrentModelConfig.model_validate(tree)
    torch.manual_seed(3)
    model = build_model(config, source_size=9, target_size=len(tokens)).eval()
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.7)
    ensemble, source = Ensemble([model], same_source=True, precision="fp32"), [5, 7, 4]
    outputs = [
        ids for count in range(length) for ids in product(range(EOS + 1, len(tokens)), repeat=count)
        if tokens.decode(ids).startswith(text) or tokens.decode(ids) == text
    ]  # fmt: skip
    with ensemble.evaluating():
        forced = ensemble.force([[source] * len(outputs)], outputs).token_log_probs.sum(1)
        scores = {
            ids: float(total) / Penalties(1.0).length_penalty(len(ids) + 1)
            for ids, total in zip(outputs, forced, strict=True)
        }
        prefixed = PrefixedEnsemble(ensemble, [Prefix(tokens, text), Prefix(tokens, "")])
        memory = prefixed.encode([pad([[*source, EOS]] * 2)])
        found, free = beam_search(
            prefixed.step, prefixed.start(memory), memory,
            max_lengths=torch.tensor([length, length]), beam_size=600, n_best=4, forbid=(PAD, UNK, BOS),
        )  # fmt: skip
    expected = sorted(scores, key=lambda ids: -scores[ids])[:4]
    assert [hypothesis.ids for hypothesis in found] == expected
    assert [hypothesis.score for hypothesis in found] == pytest.approx([scores[ids] for ids in expected], abs=1e-5)
    assert len({tokens.decode(hypothesis.ids) for hypothesis in free}) > 1


@pytest.mark.parametrize("text", ["a", "ab", "aba", "ab ", "b a"])
def test_alternatives_are_the_best_outputs_that_go_on_otherwise(text: str) -> None:
    member = bundle("char")
    translator = Translator(member, n_best=4, beam_size=300, max_ratio=0.01, alternatives=True, length_penalty=0.0)

    def beyond(hypothesis: TranslationHypothesis) -> int:
        spelled = ["".join(member.target.tokens(hypothesis.ids[:count])) for count in range(1, len(hypothesis.ids) + 1)]
        lengths = [len(tokens.lstrip("▁")) for tokens in spelled]
        return next((index for index, length in zip(hypothesis.ids, lengths, strict=True) if length > len(text)), EOS)

    for line in LINES[:4]:
        every = translator.translate(line, prefix=text, alternatives=False, n_best=300).hypotheses
        best: dict[int, TranslationHypothesis] = {}
        for hypothesis in every:
            best.setdefault(beyond(hypothesis), hypothesis)
        found = translator.translate(line, prefix=text).hypotheses
        assert [hypothesis.ids for hypothesis in found] == [hypothesis.ids for hypothesis in best.values()][:4]
        assert [beyond(hypothesis) for hypothesis in found] == [*best][:4]


def test_there_are_as_many_alternatives_as_ways_to_go_on() -> None:
    translator = Translator(bundle("word"), n_best=4, beam_size=4, alternatives=True)
    prefixes = ["slow", "", "the ", *[""] * (len(LINES) - 3)]
    [first, *others] = translator.translate(LINES, prefix=prefixes)
    assert [hypothesis.text.split()[0] for hypothesis in first.hypotheses] == ["slowly"]
    for prefix, translation in zip(prefixes[1:], others, strict=True):
        texts = [hypothesis.text.removeprefix(prefix) for hypothesis in translation.hypotheses]
        assert len({text.split(" ")[0] for text in texts}) == 4


# --- properties ---------------------------------------------------------------------------------------------------


@every_kind
def test_a_greedy_translation_with_any_beginning_of_itself_is_itself(kind: str, bytes_too: bool) -> None:
    member = bundle(kind, bytes_too=bytes_too)
    translator = Translator(member, beam_size=1)
    checked = 0
    for line in LINES:
        expected = translator.translate(line)
        [hypothesis] = expected.hypotheses
        if member.target.decode(hypothesis.ids) != expected.text:
            continue  # with spaces that no line has
        prefixes = [expected.text[:count] for count in range(len(expected.text) + 1)]
        for translation in translator.translate([line] * len(prefixes), prefix=prefixes):
            if hypothesis.finished:
                check_same(translation, expected)
            assert translation.hypotheses[0].ids[: len(hypothesis.ids)] == hypothesis.ids
        checked += len(prefixes)
    assert checked > 20


@every_kind
def test_every_translation_begins_as_given_and_has_the_scores_of_the_model(kind: str, bytes_too: bool) -> None:
    translator = Translator(bundle(kind, bytes_too=bytes_too), n_best=2)
    prefixes = ["", "the ol", "a cat ", "where do", "z@ old", "a", "", "the old man walks slow", "nobody", "Ω the"]
    free = translator.translate(LINES)
    translations = translator.translate(LINES, prefix=prefixes)
    for line, prefix, translation, unconstrained in zip(LINES, prefixes, translations, free, strict=True):
        check_same(translation, translator.translate(line, prefix=prefix))
        if not prefix:
            check_same(translation, unconstrained)
        for hypothesis in translation.hypotheses:
            assert f"{hypothesis.text} ".startswith(prefix)
            if hypothesis.finished:
                [forced] = translator.score((line, list(hypothesis.ids))).hypotheses
                assert forced.token_log_probs == pytest.approx(hypothesis.token_log_probs, abs=1e-4)


@pytest.mark.parametrize(
    "options", [{"sampling": Sampling(), "n_best": 3}, {"mbr_samples": 4}, {"max_source": 3}, {"processes": 2}]
)
def test_samples_risk_parts_and_processes_keep_prefixes(options: dict[str, Any]) -> None:
    translator = Translator(bundle(), **options)
    for translation in translator.translate(LINES[:4], prefix=["the o", "", "a ", "what"]):
        assert all(hypothesis.text.startswith(("the o", "", "a", "what")) for hypothesis in translation.hypotheses)


def test_prefixes_that_cannot_be_kept_are_refused() -> None:
    translator, shortlist = (
        Translator(bundle()),
        Shortlist(torch.zeros(90, 1, dtype=torch.long), torch.arange(4, 9), 90),
    )
    with pytest.raises(UsageError, match="only one of them has a line 2"):
        translator.translate(["a", "b"], prefix=["a"])
    with pytest.raises(UsageError, match="not on the shortlist"):
        Translator(bundle(), shortlist=shortlist).translate("a", prefix="a")
    assert Translator(bundle(), shortlist=shortlist).translate("a", prefix="").text
