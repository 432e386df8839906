"""Links between given terms and their translations."""

from __future__ import annotations

import pytest

from nmt.alignment.links import Links
from nmt.alignment.term_links import link_terms, with_given


@pytest.mark.parametrize(
    ("source", "target", "terms", "expected"),
    [
        ("the cat, a mat", "die Katze , eine Matte", {"cat": "Katze"}, {(1, 1)}),
        ("a fire truck", "ein Feuerwehrauto", {"fire truck": "Feuerwehrauto", "truck": "Auto"}, {(1, 1), (2, 1)}),
        ("a cat", "eine kleine Katze", {"cat": "kleine Katze"}, {(1, 1), (1, 2)}),
        ("dog sees dog", "Hund sieht Hund", {"dog": "Hund"}, {(0, 0), (2, 2)}),  # again, where it occurs again
        ("dogs see a dog", "Hunde sehen einen Schoßhund , Hund", {"dog": "Hund"}, {(3, 5)}),  # whole words
        ("a cat", "ein Hund", {"cat": "Katze"}, set()),
        ("a cat", "一匹の猫", {"cat": "猫"}, {(1, 0)}),
        ("", "", {"cat": "Katze"}, set()),
        ("a cat", "eine Katze", {}, set()),
    ],
)
def test_all_words_of_a_term_are_linked_to_all_of_its_translation(
    source: str, target: str, terms: dict[str, str], expected: Links
) -> None:
    assert link_terms(source.split(), target.split(), terms) == expected


def test_in_text_without_spaces_tokens_are_words() -> None:
    assert link_terms(["a", "cat"], ["一匹", "の", "黒", "猫"], {"cat": "黒猫"}) == {(1, 2), (1, 3)}


def test_given_links_replace_others_of_their_words() -> None:
    links = frozenset({(0, 0), (1, 1), (1, 3), (2, 2), (3, 1)})
    assert with_given(links, frozenset({(1, 2)})) == {(0, 0), (1, 2), (3, 1)}
    assert with_given(links, frozenset()) == links
