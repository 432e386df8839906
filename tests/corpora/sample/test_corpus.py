"""The sample corpus: its links and the promises of its splits."""

import os
import subprocess
import sys
import zlib
from collections import Counter
from itertools import islice

import pytest

from nmt.corpora import sample
from nmt.corpora.sample import Example
from nmt.corpora.sample.author import Author
from nmt.corpora.sample.corpus import corpus, drafts, reserved
from nmt.corpora.sample.grammar.phrases import write


def aligned_words(example: Example) -> set[tuple[str, str]]:
    source, target = example.source.split(), example.target.split()
    return {(source[i].strip(".,?"), target[j].strip(".,?")) for i, j in example.links}


def everything() -> list[Example]:
    return [example for split in sample.SPLITS for example in sample.examples(split)]


def words(text: str) -> list[str]:
    return [word.strip(".,?") for word in text.split()]


def test_an_unknown_split_is_named() -> None:
    with pytest.raises(ValueError, match=r"'dev'.*train, valid, test"):
        sample.examples("dev")


def test_sizes() -> None:
    assert [len(sample.examples(split)) for split in sample.SPLITS] == [24_000, 500, 1_000]


def test_no_sentence_of_either_language_occurs_twice() -> None:
    sources, targets = zip(*((e.source, e.target) for e in everything()), strict=True)
    assert len(set(sources)) == len(sources)
    assert len(set(targets)) == len(targets)


def test_the_corpus_does_not_depend_on_the_hash_seed() -> None:
    """Another process, with another seed than this one, writes the same sentences and splits them alike."""
    code = "from tests.corpora.sample.test_corpus import checksum; print(checksum())"
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    environment = {"PYTHONHASHSEED": seed, "PYTHONPATH": "."}
    ended = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
    assert int(ended.stdout) == checksum()


def checksum() -> int:
    """That of the first drafts; all 29,000 take seconds."""
    first = [(draft.example, draft.held_out) for draft in islice(drafts(), 3000)]
    content = [(each.source, each.target, sorted(each.links), is_held_out) for each, is_held_out in first]
    return zlib.crc32(repr(content).encode())


def test_a_source_has_one_target_however_often_it_is_drawn() -> None:
    author, targets = Author(7), {example.source: example.target for example in everything()}
    for _ in range(4_000):
        example = write(*author.sentence())
        assert targets.setdefault(example.source, example.target) == example.target


def test_held_out_sentences_contain_a_combination_that_training_lacks() -> None:
    seen = {combination for draft in corpus()["train"] for combination in draft.combinations}
    for split in ("valid", "test"):
        for draft in corpus()[split]:
            assert set(draft.combinations) - seen, draft.example


def test_held_out_combinations_are_made_of_familiar_parts() -> None:
    parts = Counter(part for d in corpus()["train"] for _, *names in d.combinations for part in names)
    for split in ("valid", "test"):
        for draft in corpus()[split]:
            assert min(parts[part] for _, *names in draft.combinations for part in names) >= 5, draft


def test_all_kinds_of_combinations_are_held_out() -> None:
    held_out = [c for d in corpus()["test"] for c in d.combinations if reserved(c)]
    kinds = Counter(kind for kind, *_ in held_out)
    assert set(kinds) == {"adjective", "object", "predicate", "verb"}
    assert min(kinds.values()) >= 20


@pytest.mark.parametrize("side", ["source", "target"])
def test_held_out_words_are_familiar(side: str) -> None:
    counts = Counter(word for example in sample.examples("train") for word in words(getattr(example, side)))
    held_out = {w for split in ("valid", "test") for e in sample.examples(split) for w in words(getattr(e, side))}
    assert min(counts[word] for word in held_out) >= 5


def test_links_lie_within_the_sentence_and_reach_every_target_word() -> None:
    for example in everything():
        sources, targets = len(example.source.split()), len(example.target.split())
        assert all(i in range(sources) and j in range(targets) for i, j in example.links)
        assert {j for _, j in example.links} == set(range(targets)), example


def test_only_the_of_of_dates_stays_unlinked() -> None:
    for example in everything():
        linked = {i for i, _ in example.links}
        unlinked = [word for i, word in enumerate(example.source.split()) if i not in linked]
        assert set(unlinked) <= {"of"}, example


def test_sentences_look_written() -> None:
    for example in everything():
        for text in (example.source, example.target):
            assert 4 <= len(text.split()) <= 16
            assert text[0].isupper()
            assert text[-1] in ".?"
            assert "  " not in text
        assert example.source[-1] == example.target[-1]


@pytest.mark.parametrize(("source", "target"), [("because", "weil"), ("although", "obwohl"), ("if", "wenn")])
def test_german_clauses_are_set_off_by_commas(source: str, target: str) -> None:
    found = [e for e in sample.examples("train") if f" {source} " in e.source]
    assert len(found) > 300
    assert all(f", {target} " in example.target for example in found)


@pytest.mark.parametrize(
    ("pair", "least"),
    [
        (("that", "dass"), 500),
        (("not", "nicht"), 500),
        (("not", "kein"), 50),
        (("a", "keinen"), 50),
        (("the", "im"), 200),
        (("kitchen", "Küchentisch"), 20),
        (("has", "ist"), 200),
        (("does", "schläft"), 3),
        (("cannot", "kann"), 50),
        (("twenty-three", "dreiundzwanzig"), 8),
        (("third", "dritten"), 8),
        (("o'clock", "Uhr"), 200),
        (("opens", "auf"), 5),
        (("opens", "macht"), 5),
    ],
)
def test_the_corpus_shows_every_construction(pair: tuple[str, str], least: int) -> None:
    assert sum(pair in aligned_words(example) for example in sample.examples("train")) >= least
