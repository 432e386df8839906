"""The centers p_t of local windows, against the NumPy equations, and on the axis of words."""

from typing import Any

import numpy as np
import pytest

from nmt.alignment.centers import token_centers, window_centers, word_centers, word_positions
from nmt.alignment.links import GoldLinks
from nmt.bundle.folder import Bundle
from nmt.decoding.translator import Translator
from nmt.text.subwords import BOS, EOS, Subwords
from tests.bundle.test_folder import TEXT, small_recipe
from tests.model.models import random_model
from tests.reference import attention as equations
from tests.reference import decoder as reference
from tests.reference.settings import ORDERS, small

SOURCE, TARGET = [8, 5, 4, 7, 1, 6], [7, 4, 5]


def predicted(tree: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> tuple[np.ndarray, np.ndarray]:
    """p_t of the model and p_t of the equations, [T K], for the same random weights."""
    model, expected = random_model(tree), []
    weights = {name: value.numpy() for name, value in model.state_dict().items()}
    center = equations.predicted_center

    def recorded(*arguments: Any) -> float:
        expected.append(center(*arguments))
        return expected[-1]

    monkeypatch.setattr(equations, "predicted_center", recorded)
    reference.seq2seq([*SOURCE, EOS], [BOS, *TARGET[:-1]], tree, weights)
    result = window_centers(model, SOURCE, TARGET)
    assert result is not None
    return result, np.array(expected).reshape(len(TARGET), -1)


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("order", ORDERS)
def test_predicted_centers_are_those_of_the_equations(order: str, heads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    result, expected = predicted(small(window="local-p", order=order, heads=heads), monkeypatch)
    assert result.shape == (len(TARGET), heads)
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-10)
    assert np.ptp(result) > 0.1  # and they move


@pytest.mark.parametrize("order", ORDERS)
def test_the_state_that_attends_is_asked_in_stacks_too(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    result, expected = predicted(small(window="local-p", order=order, layers=3, residual=True), monkeypatch)
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-10)


def test_monotonic_centers_count_the_steps_to_the_end_mark() -> None:
    for ratio, expected in ((1.0, [0, 1, 2, 3, 3, 3]), (0.5, [0, 0, 1, 2, 2, 2]), (2.0, [0, 2, 3, 3, 3, 3])):
        result = window_centers(random_model(small(window="local-m", ratio=ratio)), [4, 5, 6], [4, 5, 6, 7, 1, 4])
        np.testing.assert_array_equal(result, np.array(expected)[:, None])


def test_where_there_is_no_window_or_no_step_there_is_no_center() -> None:
    assert window_centers(random_model(small(window="global")), SOURCE, TARGET) is None
    none = window_centers(random_model(small(window="local-p", heads=2)), SOURCE, [])
    assert none is not None
    assert none.shape == (0, 2)


# --- words ------------------------------------------------------------------------------------------------------


def test_tokens_stand_amid_their_share_of_the_word_and_the_end_mark_beyond() -> None:
    """Tokens 0, 1 | 2 | 3, 4, 5 of three words; the end mark is the sixth."""
    for center, place in [
        (0, 0.25), (0.5, 0.5), (1, 0.75), (2, 1.5), (2.5, 1.5 + (2 + 1 / 6 - 1.5) / 2), (4, 2.5), (5.5, 3.0), (7, 3.0),
    ]:  # fmt: skip
        assert word_positions(np.array([[float(center)]]), [0, 0, 1, 2, 2, 2], 3).item() == pytest.approx(place)


@pytest.fixture(scope="module")
def monotonic() -> Bundle:
    """A model of characters with p_t = t."""
    characters = Subwords.train(TEXT, kind="char", size=20, byte_fallback=False)
    attention = {"score": {"kind": "additive", "size": 8}, "window": {"kind": "local-m", "half_width": 2}}
    return Bundle.fresh(small_recipe(attention=attention), characters, characters)


def test_a_word_has_the_mean_of_its_tokens(monotonic: Bundle) -> None:
    """Tokens `▁ a ▁ d o g` and `▁ a ▁ c a t`: row t of the target is centered on token t of the source."""
    [translation] = Translator([monotonic]).score([("a dog", "a cat")])
    tokens, words = token_centers(translation, monotonic.model), word_centers(translation, monotonic.model)
    assert tokens is not None
    assert words is not None
    np.testing.assert_allclose(tokens[:, 0], np.arange(6) + 0.5)
    np.testing.assert_allclose(words[:, 0], [(0.25 + 0.75) / 2, (1.125 + 1.375 + 1.625 + 1.875) / 4])


def test_gold_links_between_words_hold_for_all_their_tokens(monotonic: Bundle) -> None:
    [translation] = Translator([monotonic]).score([("a dog", "the a")])
    gold = translation.gold_between_tokens(GoldLinks(frozenset({(0, 1)}), frozenset({(1, 1)})))
    assert gold.sure == {(source, target) for source in (0, 1) for target in (4, 5)}
    assert gold.possible - gold.sure == {(source, target) for source in (2, 3, 4, 5) for target in (4, 5)}
