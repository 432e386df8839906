"""Links, against values worked out by hand."""

import numpy as np

from nmt.alignment.links import GoldLinks, argmax_links, threshold_links


def test_argmax_links_take_the_leftmost_of_equals_and_skip_empty_rows() -> None:
    assert argmax_links([[0.1, 0.9], [0.5, 0.5], [0.0, 0.0]]) == {(1, 0), (0, 1)}
    assert argmax_links([[0.1, 0.9], [0.5, 0.5]], threshold=0.6) == {(1, 0)}
    assert threshold_links([[0.5, 0.5], [0.2, 0.8], [0.4, 0.4]], 0.5) == {(0, 0), (1, 0), (1, 1)}
    assert argmax_links(np.zeros((0, 3))) == argmax_links(np.zeros((3, 0))) == frozenset()


def test_gold_counts_sure_links_as_possible_and_can_be_flipped() -> None:
    gold = GoldLinks(frozenset({(0, 1)}), frozenset({(2, 3)}))
    assert gold.possible == {(0, 1), (2, 3)}
    assert gold.flipped() == GoldLinks(frozenset({(1, 0)}), frozenset({(3, 2)}))
