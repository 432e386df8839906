"""Marks that other tools leave in text: of subwords, and entities of HTML."""

import re
from collections.abc import Sequence

from nmt.runtime.wording import excerpt

MARK = re.compile(r"@@(?!\S)|[\u2581\uffed]|(?<!\S)##(?=\w)|&(?:[A-Za-z]{2,8}|#\w{2,6});")
"""The marks of subword-nmt, SentencePiece, OpenNMT and WordPiece, and `&quot;`."""


def marks_warning(lines: Sequence[str], name: str) -> str | None:
    """A warning if 2 % of the lines of a text have marks; `name` is that of the text."""
    marked = [line for line in lines if MARK.search(line)]
    if not marked or len(marked) < 0.02 * len(lines):
        return None
    return (
        f"{len(marked) / len(lines):.0%} of the lines of {name} have marks of subwords or HTML (such as "
        f"{excerpt(marked[0], 60)}). Join subwords, as by `sed 's/@@ //g'` or `spm_decode`, and write &quot; as the character."
    )
