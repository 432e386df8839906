"""The embedded sample: its text, its links, and what its splits promise."""

from collections import Counter
from hashlib import sha256

import pytest

from nmt.alignment.gold import gold_links
from nmt.data import sample
from nmt.data.locators import load_corpus
from nmt.errors import DataError

DIGESTS = {
    "train": "cc941c60d2102121ffb1e18d0c75cd75f404f31f252339d21c8dba1417833e65",
    "valid": "5faff9afdb0cfa64bb85db56672b92ff303d495dc5447c6d230af59481292cc2",
    "test": "af5ea11505b7a0b11e8acfadd442bcbdf8b364fd17f26a30d2ede456a5eab552",
}
"""SHA-256 of the lines SOURCE TAB TARGET TAB LINKS that the generator of the sample wrote, with sorted links."""


@pytest.mark.parametrize("split", DIGESTS)
def test_text_and_links_are_those_that_the_generator_wrote(split: str) -> None:
    examples, digest = sample.examples(split), sha256()
    assert len(examples) == sample.SIZES[split]
    for example in examples:
        links = " ".join(f"{i}-{j}" for i, j in sorted(example.links))
        digest.update(f"{example.source}\t{example.target}\t{links}\n".encode())
    assert digest.hexdigest() == DIGESTS[split]


def test_either_language_may_be_the_source() -> None:
    corpus = load_corpus("sample:test[7:9]", source="de", target="en")
    links = gold_links("sample:test[7:9]", source="de")
    examples = sample.examples("test")[7:9]
    assert list(corpus) == [(example.target, example.source) for example in examples]
    assert [pair.sure for pair in links or ()] == [frozenset((j, i) for i, j in example.links) for example in examples]
    with pytest.raises(DataError, match="in en and de, not in en and fr"):
        load_corpus("sample:train", source="en", target="fr")


def test_held_out_words_are_familiar_and_no_sentence_occurs_twice() -> None:
    def words(*splits: str) -> Counter[str]:
        texts = (f"{e.source} {e.target}" for split in splits for e in sample.examples(split))
        return Counter(word.strip(".,?") for text in texts for word in text.split())

    counts = words("train")
    assert min(counts[word] for word in words("valid", "test")) >= 8
    for side in ("source", "target"):
        texts = [getattr(example, side) for split in sample.SIZES for example in sample.examples(split)]
        assert len(set(texts)) == len(texts)
