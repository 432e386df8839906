"""`nmt align` and `nmt translate --alignments` as a user runs them."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from nmt.alignment.link_files import read_gold
from nmt.alignment.links import GoldLinks
from nmt.bundle.folder import Bundle
from nmt.decoding.translator import Translator
from tests.cli.conftest import TEXTS
from tests.commands import Finished, good, nmt

SOURCE, TARGET = TEXTS["long.en"], TEXTS["long.de"]
LONG = ["-s", "long.en", "-t", "long.de"]


@pytest.fixture(scope="module")
def plain(untrained: Path) -> Finished:
    """What the command says without any option."""
    return nmt("align", "en-de", *LONG, cwd=untrained)


def align(untrained: Path, *arguments: object) -> str:
    """What the command writes on stdout."""
    return good(nmt("align", "en-de", *LONG, *arguments, "--threads", "1", cwd=untrained))


# --- links ------------------------------------------------------------------------------------------------------


def test_each_pair_has_a_line_of_links_within_its_words(untrained: Path, plain: Finished) -> None:
    lines = align(untrained, "--extract", "argmax").splitlines()
    assert [number for number, line in enumerate(lines, start=1) if not line] == [2, 5]
    for line, source, target in zip(lines, SOURCE, TARGET, strict=True):
        links = [tuple(map(int, link.split("-"))) for link in line.split()]
        assert all(i < len(source.split()) and j < len(target.split()) for i, j in links)
        assert not line or sorted(j for _, j in links) == list(range(len(target.split())))
    *warnings, speed = plain.stderr.decode().splitlines()
    assert warnings == [
        "nmt: Line 2 has a blank side: it gets no links.",
        "nmt: Line 5 has 1,200 tokens, more than 500: it gets no links.",
    ]
    assert re.fullmatch(r"nmt: 6 lines aligned in [0-9.]+ s: [0-9.,]+ sentences/s", speed)


def test_both_formats_have_the_same_links(untrained: Path, plain: Finished, tmp_path: Path) -> None:
    links = [sorted(item.sure) for item in _read(good(plain), tmp_path)]
    records = [json.loads(line) for line in align(untrained, "--format", "json").splitlines()]
    assert [[tuple(link) for link in record["links"]] for record in records] == links
    assert [" ".join(record["target"]) for record in records[:4]] == TARGET[:4]


def _read(text: str, folder: Path) -> list[GoldLinks]:
    (folder / "links").write_text(text)
    return read_gold(folder / "links")


def test_two_directions_join(untrained: Path, tmp_path: Path) -> None:
    def read(*arguments: str) -> list[GoldLinks]:
        return _read(align(untrained, "--extract", "argmax", *arguments), tmp_path)

    forward = read()
    grown = read("--reverse", "de-en", "--symmetrize", "grow-diag-final-and")
    few = read("--reverse", "de-en", "--symmetrize", "intersection")
    for one, own, some in zip(few, forward, grown, strict=True):
        assert one.sure <= own.sure
        assert one.sure <= some.sure
    assert few != forward != grown


def test_a_link_may_have_its_confidence(untrained: Path, plain: Finished) -> None:
    matrices = [
        json.loads(line)["weights"]
        for line in align(untrained, "--format", "json", "--weights", "attention").splitlines()
    ]
    lines = align(untrained, "--weights", "attention", "--extract", "threshold", "--confidence").splitlines()
    for line, weights in zip(lines, matrices, strict=True):
        for link, confidence in (item.split(":") for item in line.split()):
            source, target = map(int, link.split("-"))
            assert float(confidence) == pytest.approx(weights[target][source], abs=0.006)
    confident = align(untrained, "--confidence")
    assert re.sub(r":[01]\.[0-9]{2}", "", confident) == good(plain) != confident


def test_attention_or_what_the_word_tells_of_it_is_linked(untrained: Path) -> None:
    def weights(*arguments: str) -> list[list[list[float]]]:
        return [json.loads(line)["weights"] for line in align(untrained, "--format", "json", *arguments).splitlines()]

    posterior, attention = weights(), weights("--weights", "attention")
    assert weights("--weights", "posterior") == posterior != attention
    model = Bundle.load(untrained / "en-de")
    for form, shown in ((True, posterior), (False, attention)):
        [found] = Translator([model], posterior=form).score(zip(SOURCE[:1], TARGET[:1], strict=True))
        np.testing.assert_allclose(shown[0], found.word_alignment().weights, atol=1e-4)


# --- error rate -------------------------------------------------------------------------------------------------


def test_the_error_rate_is_that_of_the_links_counted_one_by_one(untrained: Path, tmp_path: Path) -> None:
    printed = align(untrained, "--gold", "long.gold", "-o", tmp_path / "links")
    predicted, gold = read_gold(tmp_path / "links"), read_gold(untrained / "long.gold")
    a = s = hits_sure = hits_possible = 0
    for mine, theirs in zip(predicted, gold, strict=True):
        for link in mine.sure:
            a += 1
            hits_sure += link in theirs.sure
            hits_possible += link in theirs.possible
        s += len(theirs.sure)
    aer, precision, recall = 1 - (hits_sure + hits_possible) / (a + s), hits_possible / a, hits_sure / s
    assert printed.startswith(f"AER {100 * aer:.1f}% [")
    assert f"precision {100 * precision:.1f}%  recall {100 * recall:.1f}%" in printed
    assert printed.endswith(f"({a} links, {s} sure, 6 sentence pairs)\n")
    assert align(untrained, "--gold", "long.gold") == printed
    assert "[" not in align(untrained, "--gold", "long.gold", "--bootstrap", "0")


# --- translating ------------------------------------------------------------------------------------------------


def test_n_best_translations_come_with_n_lines_of_links(untrained: Path, tmp_path: Path) -> None:
    arguments = ["--set", "decoding.max_ratio=1", "--n-best", "3", "--alignments", tmp_path / "links"]
    rows = good(nmt("translate", "en-de", *arguments, stdin=b"a dog\n\nthe cat\n", cwd=untrained)).splitlines()
    links = (tmp_path / "links").read_text().splitlines()
    assert len(rows) == len(links) == 9
    assert [len(line.split()) for line in links] == [len(row.split("\t")[2].split()) for row in rows]
    assert links[3:6] == ["", "", ""]
