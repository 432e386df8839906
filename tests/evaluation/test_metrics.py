"""BLEU, chrF and TER: equal to hand-made values and to sacreBLEU's own command line, with honest refusals."""

import json
import math
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from nmt.errors import DataError, UsageError
from nmt.evaluation.metrics import (
    bleu,
    bleu_warning,
    compare,
    composition_warning,
    evaluate,
    format_comparison,
    format_scores,
    published_form,
    sentence_bleu,
)

REFERENCES = [
    "A man in an orange hat starring at something.",
    "A Boston Terrier is running on lush green grass in front of a white fence.",
    "A girl in karate uniform breaking a stick with a front kick.",
    "Five people wearing winter jackets and helmets stand in the snow, with snowmobiles in the background.",
    "People are fixing the roof of a house.",
    "A man in light colored clothing photographs a group of men wearing dark suits and hats.",
] * 2
GOOD = [line.replace(" in ", " at ") for line in REFERENCES]
BAD = [line.replace(" in ", " at ").replace("a ", "the ").replace("wearing ", "") for line in REFERENCES]


def bleu_by_the_book(hypotheses: list[str], references: list[str]) -> float:
    """Papineni et al. (2002) on words, without smoothing."""
    hits, totals, length, reference_length = [0] * 4, [0] * 4, 0, 0
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        words, gold = hypothesis.split(), reference.split()
        length, reference_length = length + len(words), reference_length + len(gold)
        for n in range(4):
            ours, theirs = (Counter(tuple(w[i : i + n + 1]) for i in range(len(w) - n)) for w in (words, gold))
            hits[n] += (ours & theirs).total()
            totals[n] += ours.total()
    brevity = min(1.0, math.exp(1 - reference_length / length))
    return 100 * brevity * math.exp(sum(math.log(h / t) for h, t in zip(hits, totals, strict=True)) / 4)


def test_bleu_is_what_the_paper_says() -> None:
    shorter = [" ".join(line.split()[:-1]) for line in GOOD]
    for hypotheses in (GOOD, BAD, shorter):
        assert bleu(hypotheses, REFERENCES, tokenize="none") == pytest.approx(bleu_by_the_book(hypotheses, REFERENCES))
    assert bleu([""] * len(REFERENCES), REFERENCES) == 0


def test_figures_and_signatures_equal_those_of_the_sacrebleu_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SACREBLEU_SEED", "7")
    (tmp_path / "ref").write_text("\n".join(REFERENCES) + "\n")
    (tmp_path / "hyp").write_text("\n".join(BAD) + "\n")
    options = ["-m", "bleu", "chrf", "ter", "--chrf-word-order", "2", "--confidence", "--confidence-n", "50", "-w", "6"]
    command = [sys.executable, "-m", "sacrebleu", str(tmp_path / "ref"), "-i", str(tmp_path / "hyp"), *options]
    expected = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    scores = evaluate(BAD, REFERENCES, metrics=["bleu", "chrf++", "ter"], bootstrap=50)
    assert [score.metric for score in scores] == ["BLEU", "chrF2++", "TER"]
    for score, theirs in zip(scores, expected, strict=True):
        assert score.score == pytest.approx(theirs["score"], abs=1e-5)
        assert score.mean == pytest.approx(theirs["confidence_mean"], abs=1e-5)
        assert score.margin == pytest.approx(theirs["confidence_var"], abs=1e-5)
        assert score.signature == theirs["signature"]
        assert score.sentences == len(REFERENCES)


def test_several_references_accept_what_any_of_them_says() -> None:
    half = len(REFERENCES) // 2
    first = REFERENCES[:half] + ["nothing of the kind"] * half
    second = ["nothing of the kind"] * half + REFERENCES[half:]
    (score,) = evaluate(REFERENCES, [first, second], metrics=["bleu"], bootstrap=0)
    assert score.score == pytest.approx(100)
    assert score.signature.startswith("nrefs:2|")
    assert bleu(REFERENCES, first) < 80


def test_a_score_as_text_and_as_json() -> None:
    scores = evaluate(BAD, REFERENCES, metrics=["bleu", "ter"], bootstrap=20)
    lines = format_scores(scores).splitlines()
    assert lines[0].startswith(f"BLEU  {scores[0].score:6.2f} ± {scores[0].margin:.2f}")
    assert lines[0].index("nrefs:1|bs:20|seed:12345|case:mixed") == lines[1].index("nrefs:1|")
    assert json.loads(json.dumps(asdict(scores[0])))["score"] == scores[0].score
    assert "BP = " in scores[0].detail


# --- comparing systems ------------------------------------------------------------------------------------------


def test_a_worse_system_differs_and_a_copy_does_not() -> None:
    rows = compare({"base": GOOD, "worse": BAD, "copy": GOOD}, REFERENCES, metrics=["bleu"], bootstrap=200)
    base, worse, copy = rows
    assert [row.system for row in rows] == ["base", "worse", "copy"]
    assert base.p_value is None
    assert worse.p_value is not None
    assert worse.p_value < 0.05
    assert copy.p_value == 1
    assert worse.score.score == pytest.approx(bleu(BAD, REFERENCES))
    text = format_comparison(rows).splitlines()
    assert text[0].split() == ["BLEU"]
    assert "p = " not in text[1]
    assert text[2].startswith("worse ")
    assert text[2].endswith("*)")
    assert text[3].endswith("(p = 1.0000)")
    assert text[4:] == ["", f"BLEU  {base.score.signature}"]


# --- refusals ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("score", "error", "complaint"),
    [
        (lambda: compare({"a": GOOD}, REFERENCES), UsageError, "two systems"),
        (
            lambda: compare({"a": GOOD, "b": BAD[1:]}, REFERENCES),
            DataError,
            "b: there are 11 translations, but 12 refer",
        ),
        (lambda: evaluate(GOOD[1:], REFERENCES), DataError, "There are 11 translations, but 12 references"),
        (lambda: bleu(GOOD, [REFERENCES, REFERENCES[:1]]), DataError, "12 translations, but 1 reference in list 2"),
        (lambda: bleu([], []), DataError, "no translations"),
        (lambda: bleu([], REFERENCES), DataError, "no translations"),
        (lambda: evaluate(GOOD, REFERENCES, metrics=["meteor"]), UsageError, "'meteor'; choose from bleu, chrf"),
        (lambda: bleu(GOOD, REFERENCES, tokenize="moses"), UsageError, "'moses'; choose from none, zh, 13a"),
    ],
)
def test_what_cannot_be_scored_is_refused(score: Callable[[], object], error: type[Exception], complaint: str) -> None:
    with pytest.raises(error, match=complaint):
        score()


# --- the published form -----------------------------------------------------------------------------------------


def test_published_form_lowercases_normalizes_and_tokenizes() -> None:
    pytest.importorskip("sacremoses")
    assert published_form(["Zwei Männer, „grün“ & saftig-weiß."], "de") == ['zwei männer , " grün " & saftig-weiß .']
    assert published_form(["L'Homme n’est pas là…"], "fr") == ["l' homme n' est pas là ..."]
    assert published_form(["The dog's toy (red)", ""], "en") == ["the dog 's toy ( red )", ""]


def test_the_published_form_needs_a_language_that_moses_knows_and_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sacremoses")
    for language in ("xx", "", "EN"):
        with pytest.raises(UsageError, match=rf"no rules for the language '{language}', only for as, bn, .*, zh\.$"):
            published_form(["a"], language)
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    with pytest.raises(UsageError, match=r'pip install "attentional-nmt\[moses\]"'):
        published_form(["a"], "en")


SHORT = ["Ja genau.", "Stopp!", "Guten Tag"]
TEXTS = {
    "blank": ["", "", ""],
    "some": ["Der Hund schläft heute gut.", "", "Er singt."],
    "short": SHORT,
    "matching almost nothing": ["zzz", "", ""],
}


@pytest.mark.parametrize("references", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("hypotheses", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("count", [1, 3])
def test_blank_and_short_lines_are_scored_and_compared(
    hypotheses: list[str], references: list[str], count: int
) -> None:
    for score in evaluate(hypotheses[:count], references[:count], bootstrap=30):
        assert score.mean is not None
        assert math.isfinite(score.score + score.mean)
    rows = compare({"base": SHORT[:count], "other": hypotheses[:count]}, references[:count], bootstrap=30)
    assert all(0 < row.p_value <= 1 for row in rows if row.p_value is not None)


def test_a_warning_says_when_no_line_has_the_tokens_of_bleu() -> None:
    warning = bleu_warning(SHORT, "13a") or ""
    assert "No line has 4 tokens" in warning
    assert "chrF" in warning
    assert evaluate(SHORT, SHORT, metrics=["bleu"], bootstrap=0)[0].score == 0
    assert bleu_warning([*SHORT, "Der Hund bellt."], "13a") is None


def test_a_warning_says_when_letters_are_composed_in_one_text_alone() -> None:
    composed, parts = ["schön", "gut"], ["scho\u0308n", "gut"]
    for texts, name in (((composed, parts), "references"), ((parts, composed), "translations")):
        warning = composition_warning(*texts)
        assert warning is not None
        assert warning.startswith(f"The {name} spell letters in parts (not NFC) in 1 line, ")
    assert composition_warning(composed, composed) is None
    assert composition_warning(parts, parts) is None


def test_bleu_of_a_sentence_orders_translations_by_what_they_share_with_the_reference() -> None:
    assert sentence_bleu("ein Hund", "ein Hund") == pytest.approx(100)  # however short
    assert sentence_bleu("", "ein Hund") == 0
    reference = "der alte Hund schläft heute hier"
    near, far, none = (
        sentence_bleu(text, reference) for text in ("der alte Hund schläft hier", "ein Hund sieht heute", "x y z")
    )
    assert 100 > near > far > none
