"""Terms of a text, and translations that use them."""

from __future__ import annotations

from typing import Any

import pytest

from nmt.decoding.terms import Terms
from nmt.decoding.translator import Translator
from nmt.errors import UsageError
from tests.decoding.test_prefix import bundle, subwords
from tests.decoding.test_translator import LINES, check_same

TERMS = {"cat": "dog", "a cat": "ships", "mat": "the market"}


def test_terms_are_matched_on_words_the_longest_first() -> None:
    terms, ids = Terms(subwords(), TERMS), {text: tuple(subwords().encode(text)) for text in TERMS.values()}
    assert terms.of("a cat and cat, the matter") == [ids["ships"], ids["dog"]]
    assert terms.of("mat") == [ids["the market"]]
    assert terms.of("cats") == []
    assert terms.inner == {index for index, token in enumerate(subwords().tokens(range(90))) if token.isalnum()}


@pytest.mark.parametrize("options", [{}, {"beam_size": 10, "n_best": 3}, {"processes": 2}])
def test_translations_use_terms_and_others_stay_as_they_are(options: dict[str, Any]) -> None:
    translator = Translator(bundle(), **options)
    free = translator.translate(LINES)
    translations = translator.translate(LINES, terms=TERMS)
    for line, translation, unconstrained in zip(LINES, translations, free, strict=True):
        wanted = Terms(subwords(), TERMS).of(line)
        for hypothesis in translation.hypotheses:
            ids = " ".join(map(str, hypothesis.ids))
            assert all(" ".join(map(str, term)) in ids for term in wanted)
            if hypothesis.finished:
                [forced] = translator.score((line, list(hypothesis.ids))).hypotheses
                assert forced.token_log_probs == pytest.approx(hypothesis.token_log_probs, abs=1e-4)
        if not wanted and translation.hypotheses[0].finished:
            check_same(translation, unconstrained)
        assert translation.term_links() <= translation.links
    begun = translator.translate(LINES[1], prefix="the ol", terms=TERMS)
    assert begun.text.startswith("the ol")
    assert "ships" in begun.text
    [translation] = translator.translate(["a cat"], terms=TERMS)
    place = translation.words.index("ships")
    assert translation.links >= translation.term_links() == {(0, place), (1, place)}


def test_terms_and_samples_are_refused_together() -> None:
    with pytest.raises(UsageError, match="terms need a beam search"):
        Translator(bundle()).translate("a cat", terms=TERMS, mbr_samples=4)


def test_a_term_that_no_tokens_spell_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot write the term 'Ω'"):
        Translator(bundle()).translate("a cat", terms={"cat": "Ω"})
