"""Text to text with small random models, whose weights are large enough to make decided choices."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch

from nmt import recipe
from nmt.alignment.translation import Translation
from nmt.bundle.folder import Bundle
from nmt.decoding.translator import Translator
from nmt.errors import DataError, UsageError
from nmt.runtime.pool import Pool
from nmt.search.hypothesis import Penalties
from nmt.search.sampling import Sampling
from nmt.text.subwords import BOS, EOS, Subwords
from nmt.text.words import clean
from tests.models import output_bias

TEXT = [
    "the old man walks slowly to the market .",
    "a cat sat on the mat , and a dog looked at it .",
    "where do you come from ?",
    "we saw three ships .",
    "nobody knows the answer !",
]
LINES = [*TEXT, "a cat", "the market", "ships on the market ; a dog and a man .", "three", "it ?"]

MODELS: dict[str, dict[str, Any]] = {
    "bahdanau": {},
    "luong": {
        "attention": {"score": "general"},
        "decoder": {"order": "update-then-attend", "readout": {"kind": "attentional", "size": 12}},
    },
    "luong-local-p": {
        "attention": {"score": "concat", "window": {"kind": "local-p", "half_width": 3}},
        "decoder": {"cell": "lstm", "order": "update-then-attend", "readout": {"kind": "tanh", "size": 12}},
    },
    "luong-location": {
        "attention": {"score": {"kind": "location", "max_source": 60}},
        "decoder": {"order": {"kind": "update-then-attend", "input_feeding": False}},
    },
    "deep-lstm-local-m": {
        "encoder": {"cell": "lstm", "layers": 2},
        "attention": {"window": {"kind": "local-m", "half_width": 2}},
        "decoder": {"cell": "lstm", "layers": 2, "bridge": "mean"},
    },
    "no-attention": {"attention": {"score": "none"}},
    "heads-coverage-copy": {
        "encoder": {"cell": "lstm", "direction": "reversed", "hidden": 14},
        "attention": {"score": {"kind": "additive", "size": 8}, "heads": 2, "coverage": True},
        "decoder": {"cell": "lstm", "bridge": "copy", "order": "update-then-attend"},
    },
}
ENDS = dict(zip(MODELS, (4.0, 4.0, 3.0, 8.0, 9.8, 8.0, 5.0), strict=True))
"""Bias of the end mark with which some outputs of each model end and others are cut."""


@cache
def subwords(kind: str = "unigram") -> Subwords:
    return Subwords.train(
        TEXT, kind="bpe" if kind == "bpe" else "char", size=300 if kind == "bpe" else 290, byte_fallback=True
    )


@cache
def bundle(name: str = "bahdanau", *, seed: int = 1, source: str = "char") -> Bundle:
    tree: dict[str, Any] = {"embedding": 10, "tie": "none", "encoder": {}, "decoder": {}, **MODELS[name]}
    tree["encoder"] = {"hidden": 8, **tree["encoder"]}
    tree["decoder"] = {"hidden": 14, "readout": {"kind": "maxout", "size": 12}, **tree["decoder"]}
    data = {"source": "de", "target": "en", "train": "-", "valid": "-"}
    decoding = {"beam_size": 3, "max_ratio": 0.5}
    result = Bundle.fresh(
        recipe.parse_recipe({"name": name, "seed": seed, "data": data, "model": tree, "decoding": decoding}, name),
        subwords(source),
        subwords(),
    )
    with torch.no_grad():
        for parameter in result.model.parameters():
            parameter.mul_(2.5)
        output_bias(result.model).fill_(0)
        output_bias(result.model)[EOS] = ENDS[name]
    result.model.eval()
    return result


def translate(members: Sequence[Bundle], lines: Sequence[str] = LINES, **options: Any) -> list[Translation]:
    return list(Translator(members, **options).translate(lines))


def check_same(one: Translation, other: Translation) -> None:
    assert (one.source, one.source_ids) == (other.source, other.source_ids)
    assert [(item.ids, item.text, item.finished) for item in one.hypotheses] == [
        (item.ids, item.text, item.finished) for item in other.hypotheses
    ]
    for mine, yours in zip(one.hypotheses, other.hypotheses, strict=True):
        assert mine.score == pytest.approx(yours.score, abs=1e-5)
        assert mine.token_log_probs == pytest.approx(yours.token_log_probs, abs=1e-5)
        torch.testing.assert_close(mine.alignment, yours.alignment, atol=1e-5, rtol=0)


def test_the_models_under_test_decide_end_and_differ() -> None:
    for name in MODELS:
        results = translate([bundle(name)])
        assert len({item.text for item in results}) > 4, name
        assert {item.hypotheses[0].finished for item in results} == {True, False}, name
        assert max(len(item.hypotheses[0].ids) for item in results) > 10, name


@pytest.mark.parametrize(
    ("name", "beam_size"),
    [
        *((name, 3) for name in ("bahdanau", "luong-local-p", "deep-lstm-local-m", "heads-coverage-copy")),
        *((name, 1) for name in ("bahdanau", "heads-coverage-copy")),
        *(pytest.param(name, 3, marks=pytest.mark.slow) for name in ("luong", "luong-location", "no-attention")),
    ],
)
def test_companions_change_nothing(name: str, beam_size: int) -> None:
    decoding = recipe.DecodingConfig(beam_size=beam_size, max_ratio=0.5, coverage_penalty=0.1)
    options: Any = {"decoding": decoding, "n_best": beam_size}
    translator = Translator([bundle(name)], **options)
    together = translator.translate(LINES)
    backwards = translate([bundle(name)], LINES[::-1], batch_tokens=120, window=3, **options)[::-1]
    for one, other in zip(together, backwards, strict=True):
        check_same(one, other)
    for line, one in list(zip(LINES, together, strict=True))[2::3]:
        check_same(one, translator.translate(line))


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_each_process_gets_as_many_batches(processes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, submit = [], Pool.submit

    def count(pool: Pool[Any, Any], tasks: Sequence[Any]) -> list[int]:
        sizes.append(len(tasks))
        return submit(pool, tasks)

    monkeypatch.setattr(Pool, "submit", count)
    translate([bundle()], LINES * 10, batch_tokens=400, beam_size=1, processes=processes)
    assert sizes[0] > 1
    assert sizes[0] % processes == 0


@pytest.mark.parametrize(
    ("name", "sampling", "processes"),
    [
        ("bahdanau", Sampling(seed=3), 2),
        ("luong-local-p", Sampling(seed=3), 1),
        ("heads-coverage-copy", Sampling(temperature=0.7, top_k=5), 1),
    ],
)
def test_samples_are_those_of_their_seed_and_line_alone(name: str, sampling: Sampling, processes: int) -> None:
    options: Any = {"sampling": sampling, "n_best": 4}
    together = translate([bundle(name)], **options)
    parts = translate([bundle(name)], batch_tokens=120, window=3, processes=processes, **options)
    single = translate([bundle(name)], sampling=sampling)
    for one, other, first in zip(together, parts, single, strict=True):
        check_same(one, other)
        check_same(replace(one, hypotheses=one.hypotheses[:1]), first)
    assert {len(item.hypotheses) for item in together} == {4}
    assert len({item.text for translation in together for item in translation.hypotheses}) > 2 * len(LINES)
    again = translate([bundle(name)], sampling=replace(sampling, seed=4))
    assert [item.text for item in again] != [item.text for item in single]


@pytest.mark.parametrize("name", ["bahdanau", "heads-coverage-copy"])
def test_samples_carry_their_probability_and_alignment(name: str) -> None:
    translator = Translator([bundle(name)], n_best=3, sampling=Sampling(temperature=0.8))
    finished = 0
    for translation in translator.translate(LINES):
        for hypothesis in translation.hypotheses:
            if hypothesis.finished:
                finished += 1
                forced = translator.score((translation.source, hypothesis.ids))
                check_same(replace(translation, hypotheses=(hypothesis,)), forced)
    assert finished > 5


@pytest.mark.parametrize("name", MODELS)
def test_rows_of_an_alignment_belong_to_the_target_tokens(name: str) -> None:
    """Against the model's own steps: a row made when a token was predicted must come out at that token."""
    member = bundle(name)
    for translation in translate([member], n_best=2):
        source = torch.tensor([[*translation.source_ids, EOS]])
        for hypothesis in translation.hypotheses:
            produced = (*hypothesis.ids, EOS) if hypothesis.finished else hypothesis.ids
            with torch.inference_mode():
                memory = member.model.encode(source, source > 0)
                state, steps = member.model.start(memory), []
                for token in (BOS, *produced)[:-1]:
                    step = member.model.step(torch.tensor([token]), state, memory, torch.tensor([0]))
                    state = step.state
                    steps.append(step.weights)
            rows = torch.cat(steps)
            torch.testing.assert_close(hypothesis.alignment, rows, atol=1e-5, rtol=0)


def test_blank_and_awkward_lines_keep_their_place() -> None:
    lines = [
        "a cat\n",
        "",
        "  \t ",
        "\x00",
        "a\x00cat\r\n",
        "a\u2028cat\x85",
        "a\rcat",
        "a\udc80cat",
        "a \u4e16 cat",
        "a cat",
    ]
    results = translate([bundle()], lines)
    assert [item.source for item in results] == [line.rstrip("\r\n") for line in lines]
    assert [item.text for item in results[1:4]] == ["", "", ""]
    for item in results[1:4]:
        assert (item.score, item.source_ids, item.hypotheses[0].ids) == (0.0, (), ())
        assert item.hypotheses[0].alignment.shape == (0, 0)
    for same in (results[4], results[5], results[6], results[9]):
        assert same.text == results[0].text
        assert same.score == pytest.approx(results[0].score, abs=1e-5)
    assert all(len(item.text.splitlines()) <= 1 for item in results)


def test_horizon_and_pruning_of_the_settings_are_those_of_the_search() -> None:
    """The shortest horizon gives up on hypotheses that would have won; pruning all is greedy search."""

    def found(**options: Any) -> list[Translation]:
        return translate([bundle("luong")], **{"beam_size": 3, "length_penalty": 3.0, "horizon": None, **options})

    for one, other in zip(found(prune=0.0), found(beam_size=1), strict=True):
        check_same(one, other)
    losses = [one.score - other.score for one, other in zip(found(), found(horizon=1), strict=True)]
    assert min(losses) > -1e-5
    assert max(losses) > 0.1


def test_no_line_begins_or_ends_with_a_space_though_the_model_writes_one() -> None:
    """As after training on text in which every line has one."""
    spaced = Subwords.train([f" {line} " for line in TEXT], kind="char", size=290, byte_fallback=True)
    member = replace(bundle("luong", seed=2), target=spaced)  # a model of its own
    with torch.no_grad():
        output_bias(member.model)[spaced.encode(" ")[0]] += 6
    translations = translate([member])
    raw = [spaced.decode(translation.hypotheses[0].ids) for translation in translations]
    assert any(text.startswith(" ") for text in raw)
    assert [translation.text for translation in translations] == [text.strip() for text in map(clean, raw)]
    assert Translator([member]).score(("a cat", spaced.encode("  a dog "))).text == "a dog"


def test_a_line_too_long_is_translated_in_parts_in_its_place(caplog: pytest.LogCaptureFixture) -> None:
    long = " ".join(LINES[:4])
    with caplog.at_level(logging.WARNING):
        lines = ["", "a cat", long, "three"]
        results = translate([bundle("luong")], lines, max_source=60, n_best=2, split_sentences=False)
    (record,) = caplog.records
    tokens = len(subwords().encode(long))
    assert record.getMessage() == (
        f"Line 3 has {tokens} tokens, but a model reads at most 60 at a time: it is translated in 3 parts."
    )
    parts_alone = ["a cat", *LINES[:2], " ".join(LINES[2:4]), "three"]
    alone = translate([bundle("luong")], parts_alone, n_best=2, split_sentences=False)
    check_same(results[1], alone[0])
    check_same(results[3], alone[-1])
    penalties = Penalties()
    parts = [item.hypotheses for item in alone[1:-1]]
    for hypothesis, choice in zip(results[2].hypotheses, zip(*parts, strict=True), strict=True):
        assert hypothesis.text == " ".join(part.text for part in choice if part.text)
        assert hypothesis.ids == sum((part.ids for part in choice), ())
        assert hypothesis.log_probability == pytest.approx(sum(part.log_probability for part in choice), abs=1e-4)
        assert hypothesis.score == pytest.approx(penalties.joint_score(choice), abs=1e-5)
        rows = len(hypothesis.ids) + hypothesis.finished
        assert hypothesis.alignment.shape == (rows, len(results[2].source_ids) + 1)
        assert len(hypothesis.token_log_probs) == rows
        torch.testing.assert_close(hypothesis.alignment.sum(1), torch.ones(rows), atol=1e-5, rtol=0)


SENTENCES = ["Where do you come from?", "We saw three ships.", "Nobody knows the answer!"]


def test_sentences_of_a_line_are_translated_by_themselves_unless_lines_are_whole() -> None:
    line = "  ".join(SENTENCES)
    first, blank, third = translate([bundle("luong")], [line, " ", "three"], n_best=2)
    alone = translate([bundle("luong")], [*SENTENCES, "three"], n_best=2)
    check_same(third, alone[-1])
    assert blank.text == ""
    parts = [translation.hypotheses[0] for translation in alone[:3]]
    assert first.source == line
    assert first.source_ids == sum((translation.source_ids for translation in alone[:3]), ())
    assert first.text == " ".join(part.text for part in parts if part.text)
    assert first.score == pytest.approx(Penalties().joint_score(parts), abs=1e-5)
    assert first.hypotheses[0].alignment.shape[1] == len(first.source_ids) + 1
    assert first.source_words == tuple(line.split())
    assert first.finished == all(part.finished for part in parts)
    check_same(Translator([bundle("luong")], split_sentences=None).translate(line, n_best=2), first)
    whole = Translator([bundle("luong")], split_sentences=False)
    assert whole.translate(line).source_ids == tuple(subwords().encode(" ".join(SENTENCES)))
    check_same(whole.with_options(split_sentences=None).translate(line), whole.translate(line))


def test_pairs_are_read_by_sentences_where_both_sides_have_as_many() -> None:
    translator = Translator([bundle("luong")])
    targets = ["Three old men.", "A cat?", "It looked at the mat."]
    pairs = list(zip(SENTENCES, targets, strict=True))
    alone = [translation.hypotheses[0] for translation in translator.score(pairs)]
    joined = translator.score(("  ".join(SENTENCES), " ".join(targets)))
    best = joined.hypotheses[0]
    assert best.log_probability == pytest.approx(sum(part.log_probability for part in alone), abs=1e-4)
    assert (best.ids, joined.text) == (sum((part.ids for part in alone), ()), " ".join(targets))
    assert (joined.words, joined.source_words) == (tuple(" ".join(targets).split()), tuple(" ".join(SENTENCES).split()))
    weights = joined.alignment
    assert not weights[:3, 5:].any()  # the first sentence reads itself alone
    assert weights[:3, :5].any()
    unequal = (" ".join(SENTENCES), " ".join(targets[:2]))
    whole = Translator([bundle("luong")], split_sentences=False)
    check_same(translator.score(unequal), whole.score(unequal))
    for pair in (("", ""), ("", "A cat."), (" ".join(SENTENCES), "")):
        check_same(translator.score(pair), whole.score(pair))


def test_a_line_without_letters_stays_as_it_is() -> None:
    lines = ["12345", " 2026-11-28\t", "--- 3.5 ---", "\U0001f436 !", "3 ships", "\u200b"]
    results = translate([bundle()], lines, n_best=2)
    assert [item.text for item in results[:4]] == ["12345", "2026-11-28", "--- 3.5 ---", "\U0001f436 !"]
    assert [len(item.hypotheses) for item in results[:4]] == [1] * 4
    assert [(item.source_ids, item.links, item.finished) for item in results[:4]] == [((), frozenset(), True)] * 4
    assert results[4].source_ids
    assert results[5].text == ""
    read = translate([bundle()], lines, keep_numbers=False)
    assert [bool(item.source_ids) for item in read] == [True] * 5 + [False]


def test_lines_are_answered_as_soon_as_the_window_is_full() -> None:
    requests = []

    def lines() -> Iterator[str]:
        for number, line in enumerate(LINES):
            requests.append(number)
            yield line

    answers = Translator([bundle()], window=1).stream(lines())
    next(answers)
    assert requests == [0]
    next(answers)
    assert requests == [0, 1]


def test_members_may_cut_the_source_differently() -> None:
    members = [bundle(source="bpe"), bundle("luong")]
    ensemble, alone = Translator(members), Translator(members[:1])
    for translation in ensemble.translate(LINES):
        assert translation.source_ids == tuple(subwords("bpe").encode(translation.source))
        hypothesis = translation.hypotheses[0]
        assert hypothesis.alignment.shape[1] == len(translation.source_ids) + 1
        if hypothesis.finished:
            check_same(ensemble.score((translation.source, hypothesis.ids)), translation)
            first = alone.score((translation.source, hypothesis.ids))
            torch.testing.assert_close(hypothesis.alignment, first.hypotheses[0].alignment, atol=1e-5, rtol=0)


def test_members_must_share_the_target_vocabulary() -> None:
    other = replace(bundle(), target=subwords("bpe"))
    with pytest.raises(DataError, match="Model 2 of 2 has another target vocabulary than model 1"):
        Translator([bundle(), other])


def test_scoring_text_keeps_order_and_takes_empty_sides() -> None:
    odd = [("a cat", "the dog"), ("", "a"), ("a cat", ""), ("three ships\n", "we\u2028saw\x00ships\n")]
    pairs = [*odd, *zip(LINES, LINES, strict=True)]
    together, alone = Translator([bundle("luong")], batch_tokens=60).score(pairs), Translator([bundle("luong")])
    assert [item.source for item in together[:4]] == ["a cat", "", "a cat", "three ships"]
    assert [item.text for item in together[:4]] == ["the dog", "a", "", "we saw ships"]
    for pair, translation in zip(pairs, together, strict=True):
        check_same(translation, alone.score(pair))
        hypothesis = translation.hypotheses[0]
        assert hypothesis.ids == tuple(subwords().encode(clean(pair[1])))
        assert sum(hypothesis.token_log_probs) == pytest.approx(hypothesis.log_probability, abs=1e-4)
        assert hypothesis.alignment.shape == (len(hypothesis.ids) + 1, len(translation.source_ids) + 1)
        torch.testing.assert_close(hypothesis.alignment.sum(1), torch.ones(len(hypothesis.ids) + 1), atol=1e-5, rtol=0)


def test_a_pair_with_too_many_weights_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.decoding.translator._MAX_WEIGHTS", 100)
    with pytest.raises(DataError, match="Line 2 has 15 and 9 tokens, too many to score"):
        list(Translator([bundle()]).score([("a", "a"), ("three old dogs", "the dogs")]))


def test_a_model_of_no_numbers_translates_nothing_and_scores_nothing(caplog: pytest.LogCaptureFixture) -> None:
    member = bundle(seed=3)
    with torch.no_grad():
        output_bias(member.model).fill_(math.nan)
    with caplog.at_level(logging.WARNING):
        assert translate([member], ["a cat"])[0].text == ""
    assert "so the translations of 1 line are empty" in caplog.text
    with pytest.raises(DataError, match="so nothing can be scored"):
        Translator([member]).score(("a cat", "a dog"))


@pytest.mark.parametrize("index", [-1, 0, BOS, EOS, 100_000])
def test_ids_to_score_must_be_tokens(index: int) -> None:
    with pytest.raises(UsageError, match=f"but one is {index}"):
        list(Translator([bundle()]).score([("a cat", [5, index])]))


def test_a_model_in_training_is_decoded_without_dropout_and_goes_on_training() -> None:
    member = bundle()
    references = translate([member])
    member.model.train()
    try:
        translator = Translator(member)
        for translation, expected in zip(translator.translate(LINES), references, strict=True):
            check_same(translation, expected)
            assert member.model.training
            assert not torch.is_inference_mode_enabled()
    finally:
        member.model.eval()
