"""BLEU of single sentences."""

import pytest

from nmt.evaluation.sentence import sentence_bleu


def test_it_is_100_for_the_reference_itself_however_short() -> None:
    assert sentence_bleu("ein Hund", "ein Hund") == pytest.approx(100)
    assert sentence_bleu("", "ein Hund") == 0


def test_it_orders_translations_by_what_they_share_with_the_reference() -> None:
    reference = "der alte Hund schläft heute hier"
    near, far, none = (
        sentence_bleu(text, reference) for text in ("der alte Hund schläft hier", "ein Hund sieht heute", "x y z")
    )
    assert 100 > near > far > none
