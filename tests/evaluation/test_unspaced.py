"""BLEU of text that is written without spaces is not that of its lines as single words."""

import pytest

from nmt.errors import UsageError
from nmt.evaluation import metrics
from nmt.evaluation.metrics import (
    bleu,
    bleu_warning,
    check_tokenizer,
    choose_tokenizer,
    compare,
    evaluate,
    sentence_bleu,
)

HYPOTHESES = ["ねこがいます。", "いぬはそとにいる。"]
REFERENCES = ["ねこがいる。", "いぬがそとにいます。"]


@pytest.fixture
def no_mecab(monkeypatch: pytest.MonkeyPatch) -> None:
    from sacrebleu.tokenizers import tokenizer_ja_mecab, tokenizer_ko_mecab

    monkeypatch.setattr(tokenizer_ja_mecab, "MeCab", None)
    monkeypatch.setattr(tokenizer_ko_mecab, "MeCab", None)


def test_the_tokenizer_is_that_which_sacrebleu_takes_for_the_language(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "check_tokenizer", lambda _: None)  # as if MeCab were installed
    languages = {
        "13a": (None, "de", "src", "th"),
        "zh": ("zh", "zh-CN", "zho_Hans", "ZH_tw", "yue_Hant"),
        "ja-mecab": ("ja", "jpn_Jpan"),
        "ko-mecab": ("ko", "kor"),
    }
    for tokenizer, codes in languages.items():
        assert {choose_tokenizer(code) for code in codes} == {tokenizer}
    assert choose_tokenizer("ja", "flores200") == "flores200"


@pytest.mark.usefixtures("no_mecab")
def test_without_mecab_japanese_and_korean_are_scored_by_characters() -> None:
    assert [choose_tokenizer(code) for code in ("zh", "ja", "ko", "de")] == ["zh", "char", "char", "13a"]
    with pytest.raises(UsageError, match=r'ja-mecab cannot be used here: pip install "sacrebleu\[ja\]"'):
        check_tokenizer(choose_tokenizer("ja", "ja-mecab"))


@pytest.mark.usefixtures("no_mecab")
def test_every_figure_takes_the_tokenizer_of_the_language() -> None:
    assert bleu(HYPOTHESES, REFERENCES) == 0
    figure = bleu(HYPOTHESES, REFERENCES, language="ja")
    assert 30 < figure == bleu(HYPOTHESES, REFERENCES, tokenize="char")
    score, ter = evaluate(HYPOTHESES, REFERENCES, metrics=["bleu", "ter"], language="ja", bootstrap=0)
    assert score.score == figure
    assert "tok:char" in score.signature
    assert "norm:yes" in ter.signature
    assert "asian:yes" in ter.signature
    rows = compare(
        {"first": HYPOTHESES, "second": REFERENCES}, REFERENCES, metrics=["bleu"], language="ja", bootstrap=9
    )
    assert [row.score.score for row in rows] == [pytest.approx(figure), pytest.approx(100)]
    assert sentence_bleu(HYPOTHESES[1], REFERENCES[1], language="ja") > 20
    assert sentence_bleu(HYPOTHESES[1], REFERENCES[1]) == 0


def test_a_warning_names_the_tokenizers_that_fit() -> None:
    for tokenizer in ("13a", "intl", "none"):
        warning = bleu_warning(REFERENCES, tokenizer) or ""
        assert f"the tokenizer {tokenizer} splits at spaces" in warning
        assert "--tokenize zh, ja-mecab, char or flores200" in warning
    assert bleu_warning(REFERENCES, "char") is None
    assert bleu_warning(["ねこ が いる 。", "A cat."], "13a") is None
