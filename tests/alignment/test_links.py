"""Links, against values worked out by hand."""

import numpy as np
import pytest

from nmt.alignment.links import GoldLinks, argmax_links, check_within, threshold_links
from nmt.errors import DataError


def test_argmax_links_take_the_leftmost_of_equals_and_skip_empty_rows() -> None:
    assert argmax_links([[0.1, 0.9], [0.5, 0.5], [0.0, 0.0]]) == {(1, 0), (0, 1)}
    assert argmax_links([[0.1, 0.9], [0.5, 0.5]], threshold=0.6) == {(1, 0)}
    assert threshold_links([[0.5, 0.5], [0.2, 0.8], [0.4, 0.4]], 0.5) == {(0, 0), (1, 0), (1, 1)}
    assert argmax_links(np.zeros((0, 3))) == argmax_links(np.zeros((3, 0))) == frozenset()


def test_gold_counts_sure_links_as_possible_and_can_be_flipped() -> None:
    gold = GoldLinks(frozenset({(0, 1)}), frozenset({(2, 3)}))
    assert gold.possible == {(0, 1), (2, 3)}
    assert gold.flipped() == GoldLinks(frozenset({(1, 0)}), frozenset({(3, 2)}))


def test_a_link_beyond_the_sentences_is_refused() -> None:
    check_within({(1, 2)}, 2, 3, "here")
    with pytest.raises(DataError, match="here: the link 1-3 lies beyond the sentences, which have 2 source and 3"):
        check_within({(0, 0), (1, 3)}, 2, 3, "here")
