"""A user is told what is wrong with text, sizes and curves: once, with figures and an example, and only if it is clear."""

from __future__ import annotations

import io
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
import sentencepiece

from nmt.data.columns import collect
from nmt.data.corpus import ParallelCorpus
from nmt.data.locators import load_corpus
from nmt.recipe import Choice
from nmt.text.subwords import Subwords
from nmt.training import advice
from nmt.training.advice import (
    Symptoms,
    TrainingSize,
    advise,
    convention_warnings,
    duplicates_warning,
    overlap_warning,
    shift_warning,
    subword_warnings,
    text_warnings,
)
from nmt.training.preparation import TrainingText
from nmt.training.trainer import train
from tests.training.toy import MODEL, recipe, write_reversal


def corpus_of(pairs: list[tuple[str, str]]) -> ParallelCorpus:
    source, target = collect([[list(side) for side in zip(*pairs, strict=True)]], 2)
    return ParallelCorpus(source, target, "text", ("en", "de"))


def test_a_training_warns_once_at_its_start(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_reversal(tmp_path, pairs=60, held_out=5)
    lines = (tmp_path / "train.src").read_text().splitlines()
    (tmp_path / "valid.src").write_text("".join(f"{line}\n" for line in lines[:5]))
    few = {"batch_tokens": 1024, "validation": {"metrics": "perplexity"}}
    train(recipe(tmp_path, training={"epochs": 1, **few}, model=WIDE), tmp_path / "run", device="cpu")
    shown = capsys.readouterr().err
    assert shown.count("too much for 60 pairs. Try the widths of the recipe small.") == 1
    assert shown.count("5 of the 5 source lines of data.valid (such as line ") == 1
    longer = recipe(tmp_path, training={"epochs": 2, **few}, model=WIDE)
    train(longer, tmp_path / "run", device="cpu", resume=True)
    resumed = capsys.readouterr().err
    assert "too much for" not in resumed
    assert "data.valid" not in resumed
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(advice, "overlap_warning", lambda *_: pytest.fail("compared for nobody"))
        train(longer, tmp_path / "quiet", device="cpu", quiet=True)
    assert capsys.readouterr().err == ""


# --- sizes ------------------------------------------------------------------------------------------------------

WIDE = {**MODEL, "embedding": 256, "tie": "none"}
SMALL = TrainingSize(3000, (27_000, 27_000), (8000, 8000), 800_000)


@pytest.mark.parametrize(
    ("size", "settings", "expected"),
    [
        (
            SMALL,
            {},
            "A vocabulary of 8,000 tokens (6.8 occurrences each) is too much for 3,000 pairs. Try subwords.size=4000.",
        ),
        (TrainingSize(3000, (27_000, 27_000), (5000, 5000), 800_000), {}, None),
        (
            TrainingSize(7_000, (100_000, 60_000), (8000, 8000), 9_000_000),
            {"joint": False},
            (
                "A vocabulary of 8,000 tokens (7.5 occurrences each) and a model of 9.0 M parameters (150 per target token) are too much "
                "for 7,000 pairs. Try subwords.size=4000 and the widths of the recipe small."
            ),
        ),
        (SMALL, {"kind": "char"}, None),
        (SMALL, {"source_model": "a.model", "target_model": "a.model"}, None),
        (TrainingSize(3000, (27_000, 27_000), (500, 500), 2_700_000), {}, None),
    ],
)
def test_a_vocabulary_or_model_too_large_gives_another_setting(
    size: TrainingSize, settings: dict[str, Any], expected: str | None
) -> None:
    assert advise(recipe(Path("x"), subwords={"kind": "bpe", "size": 8000, **settings}, model=WIDE), size) == expected


def test_widths_that_are_narrow_or_chosen_by_auto_are_not_advised_against() -> None:
    size = TrainingSize(200, (2000, 2000), (500, 500), 1_500_000)
    config = recipe(Path("x"), subwords={"kind": "bpe", "size": 500}, model=WIDE)
    assert "the widths of the recipe small" in str(advise(config, size))
    choice = Choice({"model.embedding": 256}, "Wide.")
    assert advise(config.model_copy(update={"chosen": (choice,)}), size) is None
    assert advise(recipe(Path("x"), subwords={"kind": "bpe", "size": 500}), size) is None


# --- subwords from elsewhere ------------------------------------------------------------------------------------


def test_subwords_that_lack_letters_or_change_lines_are_noticed() -> None:
    lines = ["The dog sees Anna.", "a cat sleeps"] * 10
    text = corpus_of([(line, line) for line in lines])
    folding = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=folding, vocab_size=280, byte_fallback=True, hard_vocab_limit=False,
        normalization_rule_name="nmt_nfkc_cf", minloglevel=3,
    )  # fmt: skip
    exact = Subwords.train(lines, kind="bpe", size=300, byte_fallback=True)
    given = recipe(Path("x"), subwords={"source_model": "a", "target_model": "b"})
    assert list(subword_warnings(given, text, (exact, exact))) == []
    [warning] = subword_warnings(given, text, (exact, Subwords.from_bytes(folding.getvalue())))
    assert warning == (
        "Warning: the subwords of the target text do not give 50.0% of its lines back (The dog sees Anna. becomes the dog sees anna.). "
        "For subwords that suit it, leave out subwords.source_model and target_model."
    )
    finetuned = recipe(Path("x"), training={"pretrained": "runs/a"})
    [warning] = subword_warnings(finetuned, corpus_of([("a cat", "кот спит")] * 30), (exact, exact))
    assert "the target text lack 100% of its characters (" in warning
    assert "set training.pretrained.subwords=new" in warning
    assert list(subword_warnings(recipe(Path("x")), corpus_of([("дом", "дом")]), (exact, exact))) == [], "its own"


# --- text that overlaps, or repeats itself ----------------------------------------------------------------------


def test_an_overlap_is_said_of_both_texts(tmp_path: Path) -> None:
    lines = {"train": ["a dog", "a cat", "a bird"], "valid": ["a fish", "a cat"], "test": ["a cat", "a bird", "a dog"]}
    for name, sources in lines.items():
        (tmp_path / f"{name}.src").write_text("".join(f"{line}\n" for line in sources))
        (tmp_path / f"{name}.tgt").write_text("x\n" * len(sources))
    train, valid = (load_corpus(f"{tmp_path}/{name}", source="src", target="tgt") for name in ("train", "valid"))

    def warning(test: str | None) -> str | None:
        data = recipe(tmp_path).data.model_copy(update={"test": test})
        return overlap_warning(data, TrainingText(train, valid))

    assert warning(f"{tmp_path}/test") == (
        "Warning: data.train also has 1 of the 2 source lines of data.valid (such as line 2: a cat) "
        "and 3 of the 3 source lines of data.test (such as line 1: a cat). "
        "Scores on text that was trained on are too high."
    )
    for unread in (None, f"{tmp_path}/nowhere"):
        assert "data.valid" in str(warning(unread))
        assert "data.test" not in str(warning(unread))


def test_repeated_pairs_are_counted_unless_a_filter_removes_them() -> None:
    def warning(pairs: list[tuple[str, str]], **filters: bool) -> str | None:
        data = recipe(Path("x")).data
        data = data.model_copy(update={"filters": data.filters.model_copy(update=filters)})
        return duplicates_warning(data, corpus_of(pairs))

    pairs = [("a", "b"), ("a", "c"), ("yes", "ja"), ("", ""), ("", ""), ("yes", "ja"), ("d", "c"), ("yes", "ja")]
    assert warning(pairs) == (
        "Warning: 2 (25%) of the 8 pairs of data.train repeat an earlier one (such as line 6: yes). "
        "data.filters.duplicates=false keeps one of each."
    )
    assert warning(pairs, duplicates=False) is None
    assert warning([*pairs[:4], *((str(number), "x") for number in range(200))]) is None


# --- conventions ------------------------------------------------------------------------------------------------

PLAIN = ["A dog runs, and barks.", "It sleeps.", "No!"] * 20
TOKENIZED = ["A dog runs , and barks .", "It sleeps .", "No !"] * 20
LOWER = [line.lower() for line in PLAIN]


@pytest.mark.parametrize(
    ("train", "valid", "expected"),
    [
        (
            TOKENIZED,
            PLAIN,
            (
                "Warning: of the lines in de, 100% in text, but 0% in text have spaces before full stops and commas. "
                "Detokenize it, since nmt learns tokens from plain text."
            ),
        ),
        (PLAIN, TOKENIZED, "0% in text, but 100% in text have spaces"),
        (LOWER, PLAIN, "100% in text, but 0% in text have no upper-case letter."),
        (PLAIN, PLAIN, None),
        (["犬が走る。", "寝る。"] * 30, PLAIN, None),
        (["十kmを走る。"] * 60, ["JRで行く。"] * 60, None),
        (TOKENIZED[:9], LOWER[:9], None),
        (PLAIN, ["Un chien , qui court.", "Il dort.", "Il boit.", "Il mange."] * 20, None),
    ],
)
def test_texts_written_differently_are_noticed_on_their_side(
    train: list[str], valid: list[str], expected: str | None
) -> None:
    sides = [corpus_of(list(zip((PLAIN * 9)[: len(target)], target, strict=True))) for target in (train, valid)]
    warnings = list(convention_warnings(TrainingText(sides[0], sides[1])))
    assert len(warnings) == (expected is not None)
    assert all(expected in warning for warning in warnings if expected)


# --- sides that are shifted, and marks --------------------------------------------------------------------------


def lines_of_lengths(seed: int, count: int) -> tuple[list[str], list[str]]:
    """Sides whose lengths are as loosely related as those of short translations."""
    draw = Random(seed)
    lengths = [draw.choice((2, 4, 8, 16, 32, 64)) for _ in range(count)]
    return tuple(["x" * round(length * draw.uniform(0.8, 1.25)) for length in lengths] for _ in range(2))  # type: ignore[return-value]


@pytest.mark.parametrize("count", [40, 500, 4500])
@pytest.mark.parametrize("by", [1, 2, 3])
def test_a_shifted_side_is_noticed_and_nothing_else(count: int, by: int) -> None:
    source, target = lines_of_lengths(by, count)
    assert shift_warning(corpus_of(list(zip(source, target, strict=True)))) is None
    for shifted, fixed in ((source[by:] + source[:by], target), (source, target[by:] + target[:by])):
        warning = shift_warning(corpus_of(list(zip(shifted, fixed, strict=True)))) or ""
        assert "seem to be shifted: from about line 1 on" in warning
    ordered = sorted(zip(source, target, strict=True), key=lambda pair: len(pair[0]))
    same = [("x", "x")] * count
    shuffled = list(zip(source, Random(0).sample(target, count), strict=True))
    for pairs in (ordered, same, shuffled, [*same, ("xx", "xx")]):
        assert shift_warning(corpus_of(pairs)) is None


def test_a_line_that_is_missing_in_the_middle_is_noticed() -> None:
    source, target = lines_of_lengths(1, 9000)
    warning = shift_warning(corpus_of(list(zip(source[:5500] + source[5501:], target[:-1], strict=True)))) or ""
    assert warning.startswith("Warning: the sides of text seem to be shifted: from about line 6,001 on, the lengths")


def test_marks_of_other_tools_are_noticed() -> None:
    data, plain = recipe(Path("x")).data, corpus_of([(f"dog {n} & x", "Hund") for n in range(60)])
    assert [*text_warnings(data, TrainingText(plain, corpus_of([("cat", "Katze")])))] == []
    marked = corpus_of([(f"a @@b &quot;{n}", "Hund") for n in range(60)])
    [warning] = text_warnings(data, TrainingText(marked, corpus_of([("cat", "Katze")])))
    assert warning.startswith(
        "Warning: 50% of the lines of text have marks of subwords or HTML (such as a @@b &quot;0). Join"
    )


# --- curves -----------------------------------------------------------------------------------------------------


def said_of(curve: list[tuple[float, float]]) -> list[str]:
    """What is said of a curve of the perplexities of validation and training, a validation every 10 updates."""
    state, lines = Symptoms().state_dict(), list[str]()
    for number, (valid, trained) in enumerate(curve, start=1):
        symptoms = Symptoms()
        symptoms.load_state_dict(json.loads(json.dumps(state)))  # as in a run that is always resumed
        lines += symptoms.of_validation({"perplexity": valid, "train_perplexity": trained, "update": 10 * number})
        state = symptoms.state_dict()
    return lines


START = [(30.0, 60.0), (12.0, 20.0)]


@pytest.mark.parametrize(
    ("curve", "expected"),
    [
        (
            [*START, (14.5, 12.0), (17.0, 8.0), (20.0, 6.0), (26.0, 4.0)],
            (
                "Warning: the model overfits. Since update 20 the perplexity of validation has risen from 12.00 to 20.00, while that of "
                "training (with dropout, without label smoothing) has fallen from 20.00 to 6.00. More dropout, fewer updates or more text, "
                "such as back-translation, would help."
            ),
        ),
        ([*START, (8.0, 9.0), (5.7, 6.0), (5.9, 5.0), (6.2, 4.5), (6.6, 4.2)], None),  # a little
        ([*START, (16.0, 19.0), (15.0, 18.0), (11.0, 17.0), (14.0, 16.0)], None),  # not in a row
        ([*START, (16.0, 21.0), (17.0, 22.0), (18.0, 23.0)], None),  # training rises too
        (
            [*START, (130.0, 100.0), (900.0, 500.0)],
            (
                "Training diverged: perplexity is above 10 times the best. Lower training.optimizer.rate, lengthen "
                "training.schedule.warmup, or lower training.clip_norm."
            ),
        ),
        ([*START, (130.0, 9.0), (140.0, 8.0), (150.0, 7.0)], "Warning: the model overfits. Since update 20 "),
    ],
)
def test_overfitting_and_divergence_are_said_once(curve: list[tuple[float, float]], expected: str | None) -> None:
    lines = said_of(curve)
    assert len(lines) == (expected is not None)
    assert all(line.startswith(expected) for line in lines if expected)
