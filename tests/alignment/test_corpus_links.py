"""Links of words become links of tokens: read from files or the sample, held against the text, past filters and sampling."""

import gzip
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch

import nmt
from nmt.alignment.corpus_links import TokenLinks, WordLinks, load_links, splits_of
from nmt.alignment.link_files import parse_pharaoh
from nmt.data.batching import make_batch, plan_batches
from nmt.data.corpus import ParallelCorpus
from nmt.data.encoded import encode_corpus
from nmt.data.locators import load_corpus
from nmt.data.mixture import mix
from nmt.data.sample import examples
from nmt.data.sampled import SampledCorpus
from nmt.errors import DataError
from nmt.recipe import FiltersConfig
from nmt.text.normalization import Normalizer
from nmt.text.subwords import Subwords

SOURCES = ["the dog barks", "", "a cat", "the cat sees the dog", "barks", "a cat  sees a dog "]
TARGETS = ["der Hund bellt", "nichts", "eine Katze", "die Katze sieht den Hund", "bellt", "eine Katze sieht einen Hund"]
LINKS = ["0-0 1-1 2-2", "", "1-1", "0-0 0p1 1-1 2-2 3-3 4-4", "0-0", "4-4 0-0 1-1"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, lines in (("text.en", SOURCES), ("text.de", TARGETS), ("text.align", LINKS)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    return tmp_path


def corpus_of(folder: Path) -> ParallelCorpus:
    return load_corpus(f"{folder}/text", source="en", target="de")


def load(folder: Path) -> WordLinks:
    return load_links(f"{folder}/text.align", corpus_of(folder), source="en")


def make_subwords(kind: Any = "char", size: int = 40) -> Subwords:
    return Subwords.train([*SOURCES, *TARGETS], kind=kind, size=size, byte_fallback=False)


def test_lines_are_linked_without_a_model() -> None:
    linked = nmt.links(SOURCES * 20, TARGETS * 20)
    assert linked[:6] == linked[6:12]
    assert [sorted(links) for links in linked[:4]] == [
        [(0, 0), (1, 1), (2, 2)],
        [],
        [(0, 0), (1, 1)],
        [(n, n) for n in range(5)],
    ]
    with pytest.raises(DataError, match="source has 2 lines, but target has 1"):
        nmt.links(["a", "b"], ["a"])


# --- reading ----------------------------------------------------------------------------------------------------


def test_a_file_of_links_has_those_of_the_pairs_that_are_kept_back_too(folder: Path) -> None:
    """A compressed file is found by its plain name, and sure and possible links count alike."""
    for name in ("text.en", "text.de", "text.align"):
        (folder / name).write_text((folder / name).read_text() * 5)
    (folder / "text.align.gz").write_bytes(gzip.compress((folder / "text.align").read_bytes()))
    (folder / "text.align").unlink()
    whole, rest = corpus_of(folder), load_corpus(f"{folder}/text[rest]", source="en", target="de")
    assert len(rest) == len(whole) - len(whole) // 10
    links = load_links(f"{folder}/text.align", rest, source="en").of_rows(range(len(rest)))
    of_pair = dict(zip(whole, LINKS * 5, strict=True))
    expected = [sorted(parse_pharaoh(of_pair[pair], "").possible) for pair in rest]
    assert [[tuple(link) for link in row.tolist()] for row in links] == expected


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (LINKS[:-1], "text.align has 5 lines, but .*text has 6 pairs: line n must hold the links of pair n"),
        ([*LINKS, ""], "text.align has 7 lines, but .*text has 6 pairs"),
        ([*LINKS[:2], "1:1", *LINKS[3:]], "text.align, line 3: '1:1' is not a link; write i-j"),
        ([*LINKS[:2], "2-1", *LINKS[3:]], "line 3: the link 2-1 lies beyond .* 2 source and 2 target words"),
        ([LINKS[0], "0-0", *LINKS[2:]], "line 2: the link 0-0 lies beyond .* 0 source and 1 target word"),
    ],
)
def test_links_that_do_not_fit_the_text_are_refused(folder: Path, lines: list[str], sentence: str) -> None:
    (folder / "text.align").write_text("".join(f"{line}\n" for line in lines))
    with pytest.raises(DataError, match=sentence):
        load(folder)


@pytest.mark.parametrize("tags", [(), ("<T>",)])
def test_links_count_the_words_of_the_text_as_it_was_read(folder: Path, tags: tuple[str, ...]) -> None:
    """A no-break space ends a word only once the text is normalized, and a mark that nobody sees is a word only before."""
    (folder / "text.en").write_text("the\u00a0dog  barks\na \u200b cat\u00ad\n", encoding="utf-8")
    (folder / "text.de").write_text("der Hund bellt\neine Katze\n")
    (folder / "text.align").write_text("0-0 0-1 1-2\n0-0 1-0 2-1\n")
    corpus = corpus_of(folder).normalized(Normalizer())
    if tags:
        corpus = mix([corpus], [tags])
    links = load_links(f"{folder}/text.align", corpus, source="en")
    expected = [[0, 0], [0, 1], [1, 0], [1, 1], [2, 2]], [[0, 0], [1, 1]]
    shift = len(tags)
    assert [row.tolist() for row in links.of_rows([0, 1])] == [[[i + shift, j] for i, j in pairs] for pairs in expected]


def test_links_of_words_that_normalization_joins_are_refused(folder: Path) -> None:
    (folder / "text.en").write_text("\uff41\uff42\u72ac\u732b\u72ac\n" * 2, encoding="utf-8")
    (folder / "text.de").write_text("abc Hund\n" * 2)
    (folder / "text.align").write_text("0-0\n0-0\n")
    corpus = corpus_of(folder).normalized(Normalizer("nfkc"))
    with pytest.raises(DataError, match=r"line 1: data\.normalization changes the words"):
        load_links(f"{folder}/text.align", corpus, source="en")


@pytest.mark.parametrize("source", ["en", "de"])
def test_the_sample_brings_its_own_links_in_either_direction(source: str) -> None:
    target = {"en": "de", "de": "en"}[source]
    corpus = load_corpus("sample:valid", source=source, target=target)
    results = load_links("gold", corpus, source=source)
    rows = results.of_rows(range(len(corpus)))
    for row, (example, found) in enumerate(zip(examples("valid"), rows, strict=True)):
        links = {(i, j) if source == "en" else (j, i) for i, j in example.links}
        assert set(map(tuple, found.tolist())) == links
        assert all(i < len(corpus.source[row].split()) and j < len(corpus.target[row].split()) for i, j in links)


def test_the_corpus_teaches_its_own_links_if_asked_to() -> None:
    corpus = load_corpus("sample:valid", source="en", target="de")
    known, learned = (load_links(name, corpus, source="en") for name in ("gold", "hmm"))
    sure, predicted = (
        {(row, *link) for row, pair in enumerate(links.of_rows(range(len(corpus)))) for link in pair.tolist()}
        for links in (known, learned)
    )
    assert len(sure & predicted) > 0.9 * len(predicted) > 0.6 * len(sure)


# --- from words to tokens ---------------------------------------------------------------------------------------


def expected(links: WordLinks, original: int, source: Subwords, target: Subwords, pair: Any) -> set[tuple[int, int]]:
    """(target token, source token) of one pair, by the words of each."""
    words = set(map(tuple, links.of_rows([original])[0].tolist()))
    return {
        (t, s)
        for t, target_word in enumerate(target.word_of(pair[1]))
        for s, source_word in enumerate(source.word_of(pair[0]))
        if (source_word, target_word) in words
    }


@pytest.mark.parametrize(
    ("kind", "size", "filters"),
    [
        ("char", 40, None),
        ("word", 16, FiltersConfig()),
        ("bpe", 45, FiltersConfig(max_length=16)),
        ("unigram", 33, None),
    ],
)
def test_tokens_are_linked_if_their_words_are(
    folder: Path, kind: str, size: int, filters: FiltersConfig | None
) -> None:
    """Also those of segmentations that are drawn anew."""
    subwords, links, corpus = make_subwords(kind, size), load(folder), corpus_of(folder)
    encoded = encode_corpus(corpus, subwords, subwords, filters)
    linker = TokenLinks(links, encoded, subwords, subwords)
    sampled = [SampledCorpus(encoded, subwords, subwords, alpha=0.1, seed=seed) for seed in range(5)]
    plan = plan_batches(encoded.source_lengths, encoded.target_lengths, batch_tokens=30, seed=1, epoch=0)
    for rows, texts in product((rows.tolist() for rows in plan), [encoded, *(sampled if kind == "unigram" else [])]):
        pairs = texts[rows]
        batch = make_batch(pairs, rows, linker.of_batch(pairs, rows))
        assert batch.links is not None
        assert batch.links.shape == (*batch.target_out.shape, batch.source.shape[1])
        for index, pair in enumerate(pairs):
            original = int(encoded.rows[rows[index]])
            result = set(map(tuple, batch.links[index].nonzero().tolist()))
            assert result == expected(links, original, subwords, subwords, pair)


def test_pairs_that_training_made_of_others_have_no_links(folder: Path) -> None:
    subwords = make_subwords()
    encoded = encode_corpus(corpus_of(folder), subwords, subwords, None)
    linker = TokenLinks(load(folder), encoded, subwords, subwords)
    pairs, made = encoded[[0, 1]], len(encoded)
    alone, mixed = linker.of_batch(pairs, [0, 1]), linker.of_batch([*pairs, pairs[0]], [0, 1, made])
    assert torch.equal(mixed[:2], alone)
    assert not mixed[2].any()
    assert not linker.of_batch(pairs, [made, made + 1]).any()


def test_tokens_of_text_without_spaces_have_the_links_of_their_characters(tmp_path: Path) -> None:
    sources, targets = ["a cat is here", "a dog is here"] * 9, ["ねこがいる", "いぬがいる"] * 9
    for name, lines in (("text.en", sources), ("text.ja", targets), ("text.align", ["1-0 1-1 2-3 3-4"] * 18)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    corpus = load_corpus(f"{tmp_path}/text", source="en", target="ja")
    subwords = Subwords.train([*sources, *targets], kind="bpe", size=40, byte_fallback=False)
    encoded = encode_corpus(corpus, subwords, subwords, None)
    links = load_links(f"{tmp_path}/text.align", corpus, source="en")
    linker = TokenLinks(links, encoded, subwords, subwords, splits_of(corpus))
    [linked] = linker.of_batch(encoded[[0]], [0])
    words, position = subwords.word_of(encoded[[0]][0][0]), 0
    for row, token in zip(linked, subwords.tokens(encoded[[0]][0][1]), strict=False):
        end = position + len(token.replace("▁", ""))
        of = {{0: 1, 1: 1, 3: 2, 4: 3}.get(character) for character in range(position, end)}
        assert {words[column] for column in row.nonzero().flatten().tolist()} == of - {None}
        position = end
    assert position == len("ねこがいる")
    assert not linked[-1].any()
    (tmp_path / "text.align").write_text("0-5\n" * 18)
    with pytest.raises(DataError, match="line 1: the link 0-5 lies beyond"):
        load_links(f"{tmp_path}/text.align", corpus, source="en")


def test_a_word_that_the_tokens_do_not_know_is_linked_to_nothing(folder: Path) -> None:
    """Tokens may tell fewer words than the text has, where a tab is a character that they have never seen."""
    (folder / "text.en").write_text("the\tdog barks\n")
    (folder / "text.de").write_text("der Hund bellt\n")
    (folder / "text.align").write_text("0-0 2-2\n")
    subwords = make_subwords()
    encoded = encode_corpus(corpus_of(folder), subwords, subwords, None)
    links = TokenLinks(load(folder), encoded, subwords, subwords).of_batch(encoded[[0]], [0])[0]
    assert links.any()
    assert not links[subwords.word_of(encoded[[0]][0][1]).index(2)].any()
