"""Subwords: nothing of a text is lost, and every token knows its word."""

import io
import pickle
import re
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.errors import DataError
from nmt.text.scripts import split_spaces
from nmt.text.subwords import BOS, EOS, PAD, UNK, Kind, Subwords
from nmt.text.words import clean

LINES = [
    f"{subject} {verb} {number} {thing}."
    for subject in ("A man", "Two women", "The dog", "Nobody")
    for verb in ("sees", "paints", "was reading", "hört")
    for number in ("one", "a dozen", "the quick brown")
    for thing in ("guitar", "bicycles", "Straßenbahn", "jumping fox")
]
KINDS: dict[Kind, int] = {"unigram": 300, "bpe": 330, "char": 290, "word": 280}
STAND_IN = "\U0010ffff"

# Everything a line can hold: control names, SentencePiece's own marks, NUL, odd spaces, combining and astral characters.
awkward = st.lists(
    st.sampled_from(
        [*" aeiMß.▁▅\0\t\r", "\u2028", "\u3000", "\xa0", "e\u0301", "😀", "שלום", "日本語", "\ufeff"]  # noqa: RUF005
        + ["<s>", "</s>", "<unk>", "<pad>", "<0x41>", "⁇", " man", "Two women "]
    )
).map("".join)
texts = awkward | st.text(st.characters(exclude_categories=["Cs"], exclude_characters=STAND_IN))


@pytest.fixture(scope="module")
def models() -> dict[str, Subwords]:
    return {kind: Subwords.train(LINES, kind=kind, size=size, byte_fallback=True) for kind, size in KINDS.items()}


@pytest.fixture(scope="module")
def unigram(models: dict[str, Subwords]) -> Subwords:
    return models["unigram"]


@given(text=texts)
@settings(max_examples=100)
def test_every_text_comes_back_and_its_tokens_have_words(models: dict[str, Subwords], text: str) -> None:
    for kind, model in models.items():
        ids = model.encode(text)
        assert model.decode(ids) == text, kind
        assert not {PAD, UNK, BOS, EOS} & set(ids)
        words = model.word_of(ids)
        assert len(words) == len(ids)
        assert words == sorted(words)
        assert sorted(set(words)) == list(range(max(len(split_spaces(clean(text))), 1 if ids else 0)))


@given(ids=st.lists(st.integers(0, 279), max_size=30))
@settings(max_examples=100)
def test_any_ids_a_model_may_produce_have_words(models: dict[str, Subwords], ids: list[int]) -> None:
    for model in models.values():
        words, count = model.word_of(ids), len(split_spaces(clean(model.decode(ids))))
        assert words == sorted(words)
        assert all(0 <= word < max(count, 1) for word in words)


def test_word_marks_and_bytes_go_where_they_belong(unigram: Subwords) -> None:
    ids = unigram.encode("a  日 man")
    start = unigram.tokens(ids).index("<0xE6>")
    words = unigram.word_of(ids)
    assert words[start : start + 3] == [1, 1, 1]
    assert words[start - 1] == 1, "a lone word mark goes with the word that follows"
    assert (words[0], words[-1]) == (0, 2)


@pytest.mark.parametrize("kind", ["unigram", "bpe", "char", "word"])
def test_without_bytes_an_unknown_character_is_one_mark_inside_its_word(kind: Kind) -> None:
    model = Subwords.train(LINES, kind=kind, size=22 if kind == "word" else 45, byte_fallback=False)
    ids = model.encode("A ЖЖman Ж sees")
    assert ids.count(UNK) >= 2
    decoded = model.decode(ids).split()
    assert len(decoded) == 4
    assert all("⁇" in decoded[word] for word in (1, 2))
    assert sorted(set(model.word_of(ids))) == [0, 1, 2, 3]
    assert model.encode_batch(["A ЖЖman Ж sees"] * 70) == [ids] * 70


def test_training_is_deterministic_and_the_file_round_trips(tmp_path: Path, unigram: Subwords) -> None:
    again = Subwords.train(iter(LINES), kind="unigram", size=KINDS["unigram"], byte_fallback=True)
    assert again.serialized == unigram.serialized
    unigram.save(tmp_path / "source.model")
    loaded = Subwords.load(tmp_path / "source.model")
    assert loaded.serialized == unigram.serialized
    assert loaded.fingerprint == unigram.fingerprint
    assert len(loaded) == KINDS["unigram"]
    assert pickle.loads(pickle.dumps(unigram)).encode("A man") == unigram.encode("A man")
    assert [path.name for path in tmp_path.iterdir()] == ["source.model"]


def test_a_sample_of_the_lines_depends_on_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.text.subwords.TRAINING_LINES", 20)
    options: dict[str, Any] = {"kind": "word", "size": 20, "byte_fallback": False}
    first, again, other = (Subwords.train(LINES, **options, seed=seed).serialized for seed in (1, 1, 2))
    assert first == again != other


def test_long_and_odd_lines_neither_break_training_nor_vanish() -> None:
    long = "zyx" * 40_000
    odd = [long, "nul \0 inside", "\0", "", "   ", "tab\there", "▁▁", "\u2028", "with\nnewline"]
    model = Subwords.train([*odd, *LINES], kind="bpe", size=340, byte_fallback=True)
    assert model.decode(model.encode(long)) == long
    assert len(model.encode(long)) < 120_000, "the long line was learned from"
    for text in odd:
        assert model.decode(model.encode(text)) == text


@pytest.mark.parametrize(
    ("kind", "byte_fallback", "size"),
    [("unigram", True, 8), ("unigram", False, 8), ("bpe", True, 270), ("char", False, 3), ("word", True, 250)],
)
def test_a_size_that_is_too_small_names_the_least_possible_one(kind: Kind, byte_fallback: bool, size: int) -> None:
    with pytest.raises(DataError, match=r"subwords.size \d+ has no room .* at least (\d+)") as caught:
        Subwords.train(LINES, kind=kind, size=size, byte_fallback=byte_fallback, tags=["<X>", "<Y>"])
    possible = int(re.search(r"at least (\d+)", str(caught.value))[1])  # type: ignore[index]
    model = Subwords.train(LINES, kind=kind, size=possible, byte_fallback=byte_fallback, tags=["<X>", "<Y>"])
    assert len(model) == possible


@pytest.mark.parametrize("kind", ["unigram", "bpe", "char", "word"])
def test_a_short_text_has_fewer_tokens_than_it_may_have(kind: Kind) -> None:
    model = Subwords.train(LINES, kind=kind, size=90_000, byte_fallback=True)
    assert 260 < len(model) < 2000
    assert model.decode(model.encode(LINES[0])) == LINES[0]


def test_texts_that_cannot_be_used(unigram: Subwords) -> None:
    for lines, message in (([], "no text"), (["", ""], "no text"), (["ab\ud800", *LINES], "surrogate")):
        with pytest.raises(DataError, match=message):
            Subwords.train(lines, kind="bpe", size=300, byte_fallback=True)
    with pytest.raises(DataError, match="character 3 is a lone surrogate"):
        unigram.encode_batch(["fine", "ab\ud800"])


def test_unusable_model_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"absent\.model.*No such file"):
        Subwords.load(tmp_path / "absent.model")
    for content in (b"", b"hello", bytes(100)):
        (tmp_path / "bad.model").write_bytes(content)
        with pytest.raises(DataError, match=r"bad\.model is not a SentencePiece model"):
            Subwords.load(tmp_path / "bad.model")


@pytest.mark.parametrize(
    ("options", "added"),
    [
        ({}, 1),  # unk 0, bos 1, eos 2
        ({"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}, 1),
        ({"pad_id": 3}, 0),
        ({"bos_id": -1, "eos_id": -1}, 3),
    ],
)
@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_a_model_with_other_special_ids_is_read_with_ours(kind: Kind, options: dict[str, Any], added: int) -> None:
    content = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES), model_writer=content, model_type=kind, vocab_size=42, minloglevel=3, **options
    )
    model, theirs = Subwords.from_bytes(content.getvalue()), sentencepiece.SentencePieceProcessor()
    theirs.LoadFromSerializedProto(content.getvalue())
    assert len(model) == theirs.get_piece_size() + added
    assert model.tokens(range(4)) == ["<pad>", "<unk>", "<s>", "</s>"]
    assert len(set(model.tokens(range(len(model))))) == len(model)
    text = "A man sees one guitar."
    encoded, [sampled] = model.encode(text), model.sample([text], 0.1, seed=1)
    assert model.tokens(encoded) == theirs.encode(text, out_type=str)
    assert model.decode([BOS, *encoded, EOS, PAD]) == model.decode(sampled) == text
    assert {PAD, UNK, BOS, EOS}.isdisjoint(encoded)
    assert model.encode("A Жman").count(UNK) == 1
    assert pickle.loads(pickle.dumps(model)).encode(text) == encoded


@pytest.mark.parametrize("byte_fallback", [True, False])
def test_a_text_goes_on_without_a_word_mark_in_chinese_and_japanese_alone(byte_fallback: bool) -> None:
    chinese, thai, english = ["我们去学校。", "他喝茶。", "你好"], ["หมาวิ่ง", "แมวนอน"], ["a dog runs.", "it sleeps."]
    model = Subwords.train([*chinese, *thai, *english] * 9, kind="bpe", size=400, byte_fallback=byte_fallback)
    for texts, together in (
        (chinese, "我们去学校。他喝茶。你好"),
        (thai, "หมาวิ่ง แมวนอน"),
        (english, "a dog runs. it sleeps."),
        (["他喝茶。", "a dog"], "他喝茶。a dog"),
        (["他喝", ""], "他喝"),
        (["", "他喝"], "他喝"),
    ):
        ids: list[int] = []
        for text in texts:
            ids += model.continuation(ids, model.encode(text))
        assert model.decode(ids) == together
        assert UNK not in ids
    tokenized = Subwords.train(["我们 去 学校 。", "他 喝 茶 。"] * 9, kind="bpe", size=300, byte_fallback=True)
    ids = tokenized.encode("他 喝 茶 。")
    assert tokenized.continuation(ids, ids) == ids


@pytest.mark.parametrize("byte_fallback", [True, False])
@pytest.mark.parametrize(
    "options", [{}, {"add_dummy_prefix": False}, {"treat_whitespace_as_suffix": True}], ids=["before", "none", "after"]
)
def test_a_model_may_mark_words_at_any_place(options: dict[str, Any], byte_fallback: bool) -> None:
    """As those of other tools do; also where it lacks the letter a."""
    lines, model = ["the dog sees the cow", "ships sink here"], io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines * 9), model_writer=model, model_type="bpe", vocab_size=340, hard_vocab_limit=False,
        normalization_rule_name="identity", remove_extra_whitespaces=False, minloglevel=3,
        byte_fallback=byte_fallback, pad_id=0, unk_id=1, bos_id=2, eos_id=3, **options,
    )  # fmt: skip
    subwords = Subwords.from_bytes(model.getvalue())
    for text in (*lines, " the dog", "the dog ", "", " "):
        assert subwords.decode(subwords.encode(text)) == text


def test_a_model_knows_the_characters_of_its_tokens() -> None:
    model = Subwords.train(["a dog sees a cat", "two cats"] * 30, kind="bpe", size=280, byte_fallback=True)
    assert model.unknown_characters("a cat sees two dogs") == set()
    assert model.unknown_characters("a caté\u00a0犬") == {"é", "\u00a0", "犬"}


def test_training_is_silent(capfd: pytest.CaptureFixture[str]) -> None:
    Subwords.train(["a b c"] * 9, kind="bpe", size=8, byte_fallback=False)
    assert capfd.readouterr() == ("", "")
