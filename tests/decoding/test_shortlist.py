"""Shortlists: what may be written is what is listed, and a file is used only with the vocabularies it was made for."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from nmt.bundle.folder import Bundle, load_tensors, save_tensors
from nmt.decoding.shortlist import Shortlist
from nmt.decoding.translator import Translator
from nmt.errors import DataError
from nmt.runtime.device import DecodingPrecision
from nmt.text.subwords import EOS, PAD, UNK, Subwords
from tests.bundle.test_folder import TEXT, small_recipe
from tests.machine import needs_bf16, needs_int8
from tests.models import output_bias

SIZE = 18


@pytest.fixture(scope="module")
def subwords() -> Subwords:
    return Subwords.train(TEXT, kind="char", size=20, byte_fallback=False)


@pytest.fixture(scope="module")
def bundle(subwords: Subwords) -> Bundle:
    result = Bundle.fresh(small_recipe(), subwords, subwords)
    with torch.no_grad():
        for parameter in result.model.parameters():
            parameter.mul_(3)
        output_bias(result.model)[EOS] = -2
    return result


def shortlist(frequent: tuple[int, ...] = (5,)) -> Shortlist:
    """Token i may become i or the one before; the row of padding, which no sentence reads, has two more."""
    tokens = torch.arange(SIZE)
    translations = torch.stack([tokens, tokens - 1], 1)
    translations[:4] = EOS
    translations[PAD] = torch.tensor([6, 7])
    return Shortlist(translations, torch.tensor(frequent, dtype=torch.long), SIZE)


def listed(lists: Shortlist, sources: Tensor) -> list[list[int]]:
    """The whole list of each sentence."""
    own, sentences = lists.own_tokens(sources)
    assert not set(own.tolist()) & set(lists.shared.tolist())
    return [
        sorted([*lists.shared.tolist(), *own[sentences.segment_ids == row].tolist()]) for row in range(sentences.count)
    ]


def test_a_list_is_of_a_source_and_of_what_is_always_on_it() -> None:
    sources = torch.tensor([[9, 12, EOS], [12, EOS, PAD]])
    assert listed(shortlist(), sources) == [[UNK, EOS, 5, 8, 9, 11, 12], [UNK, EOS, 5, 11, 12]]
    assert listed(shortlist((12, 5, 12)), sources[:, :1]) == [[UNK, EOS, 5, 8, 9, 12], [UNK, EOS, 5, 11, 12]]
    assert listed(Shortlist(torch.zeros(SIZE, 0).long(), torch.zeros(0).long(), SIZE), sources) == [[UNK, EOS]] * 2


def test_lists_lack_nothing_and_have_nothing_twice() -> None:
    torch.manual_seed(1)
    lists = Shortlist(torch.randint(4, 500, (500, 3)), torch.arange(10, 20), 500)
    for count in range(1, 60):
        sources = torch.randint(4, 500, (3, count))
        for source, result in zip(sources, listed(lists, sources), strict=True):
            assert result == sorted({UNK, EOS, *range(10, 20), *lists.translations[source].flatten().tolist()})


def test_only_listed_tokens_are_written(bundle: Bundle) -> None:
    lines = ["the dog", "a cat sleeps", "here", "the old dog"]
    free = list(Translator([bundle]).translate(lines))
    written = beyond = 0
    for line, unbound in zip(lines, free, strict=True):
        translator = Translator([bundle], shortlist=shortlist(), n_best=3)
        [translation] = translator.translate([line])
        [own] = listed(shortlist(), torch.tensor([translation.source_ids]))
        for hypothesis in translation.hypotheses:
            written += len(hypothesis.ids)
            assert set(hypothesis.ids) <= set(own)
        beyond += not set(unbound.hypotheses[0].ids) <= set(own)
    assert written
    assert beyond, "the list changed nothing, so that this test says nothing"


@pytest.mark.parametrize("precision", ["fp32", "bf16", pytest.param("int8", marks=needs_int8)])
def test_a_list_of_everything_changes_nothing(bundle: Bundle, precision: DecodingPrecision) -> None:
    everything = shortlist(tuple(range(SIZE)))
    free = Translator([bundle], precision=precision).translate(TEXT[:4])
    bound = Translator([bundle], precision=precision, shortlist=everything).translate(TEXT[:4])
    for one, other in zip(free, bound, strict=True):
        assert one.text == other.text
        assert one.score == pytest.approx(other.score, abs=1e-5)


# Of a plain model in bf16, rounding depends on the company, and a near tie may fall otherwise.
@pytest.mark.parametrize(
    "precision", ["fp32", pytest.param("bf16", marks=needs_bf16), pytest.param("int8", marks=needs_int8)]
)
def test_what_is_listed_for_a_line_does_not_depend_on_its_company(bundle: Bundle, precision: DecodingPrecision) -> None:
    translator = Translator([bundle], precision=precision, shortlist=shortlist(), n_best=2)
    for line, together in zip(TEXT[:4], translator.translate(TEXT)[:4], strict=True):  # the others are these again
        [alone] = translator.translate([line])
        assert together.text == alone.text
        assert together.score == pytest.approx(alone.score, abs=0.2 if precision == "bf16" else 1e-4)


def test_forced_decoding_knows_no_list(bundle: Bundle) -> None:
    pairs = [("a cat", "the old dog sleeps")]
    [bound] = Translator([bundle], shortlist=shortlist(())).score(pairs)
    [free] = Translator([bundle]).score(pairs)
    assert bound.score == pytest.approx(free.score, abs=1e-6)


def test_a_file_is_loaded_with_its_vocabularies_alone(subwords: Subwords, tmp_path: Path) -> None:
    path = tmp_path / "list"
    shortlist((5, 7)).save(path, subwords, subwords)
    loaded = Shortlist.load(path, subwords, subwords)
    assert loaded == shortlist((5, 7))
    other = Subwords.train(TEXT, kind="word", size=13, byte_fallback=False)
    for sides, name in (((other, subwords), "source"), ((subwords, other), "target")):
        with pytest.raises(DataError, match=f"made for another {name} vocabulary than the model's"):
            Shortlist.load(path, *sides)
    tensors = load_tensors(path)
    for damaged in (
        {"translations": tensors["translations"][1:]},
        {"translations": tensors["translations"][0]},
        {"frequent": torch.tensor([SIZE]).int()},
        {"frequent": torch.tensor([-1]).int()},
    ):
        save_tensors(tensors | damaged, path)
        with pytest.raises(DataError, match="does not fit vocabularies of 18 and 18 tokens: make it again"):
            Shortlist.load(path, subwords, subwords)
    save_tensors({"weight": torch.ones(2)}, path)
    with pytest.raises(DataError, match="is not a shortlist: make one with `nmt shortlist`"):
        Shortlist.load(path, subwords, subwords)
