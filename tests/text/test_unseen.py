"""Characters that a model has hardly seen in training."""

from nmt.text.unseen import UnseenCharacters


def test_each_character_is_reported_once() -> None:
    reported: set[str] = set()
    first, second = (UnseenCharacters(lambda text: set(text) - set("a cdtx"), reported) for _ in range(2))
    assert first.warning() is None
    first.add(["a cat", "dé\u0301é"])
    assert first.warning() == (
        "The training text of the model has these characters rarely or never: é (U+00E9), U+0301 (3 in all)."
    )
    second.add(["é", "xé犬" + "".join(map(chr, range(0x400, 0x406)))])
    warning = second.warning()
    assert warning is not None
    assert "é" not in warning
    assert warning.endswith(" and 2 others (7 in all).")
