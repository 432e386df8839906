"""A model so small that thousands of texts can be tried on it, and so odd that it writes every kind of line break."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import torch
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from nmt.bundle.folder import Bundle
from nmt.recipe import parse_recipe
from nmt.text.subwords import EOS, UNK, Subwords
from tests.models import output_bias

TEXT = ["the dog sees a cat .", "a cat sleeps", "the old dog sleeps here", "a dog and a cat , a dog"]
BREAKS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
"""Every character at which `str.splitlines` begins a new line."""

EFFORT = int(os.environ.get("NMT_TEST_EFFORT", "1"))


def tries(few: int) -> settings:
    """So many examples, or NMT_TEST_EFFORT times as many; each may take the time it takes."""
    fixtures = HealthCheck.function_scoped_fixture, HealthCheck.too_slow
    return settings(max_examples=few * EFFORT, suppress_health_check=fixtures)


@cache
def bundle() -> Bundle:
    """Characters and bytes in and out; random weights that decide, with a liking for the bytes of line breaks."""
    subwords = Subwords.train([*TEXT, " ".join(BREAKS[2:])], kind="char", size=295, byte_fallback=True)
    tree = {
        "name": "tiny",
        "data": {"source": "en", "target": "de", "train": "-", "valid": "-"},
        "model": {
            "embedding": 8,
            "tie": "none",
            "encoder": {"hidden": 6},
            "attention": {"score": {"kind": "additive", "size": 6}},
            "decoder": {"hidden": 8, "readout": {"kind": "maxout", "size": 8}},
        },
        "decoding": {"beam_size": 2, "max_ratio": 0.2},
    }
    made = Bundle.fresh(parse_recipe(tree, "the tests"), subwords, subwords)
    with torch.no_grad():
        for parameter in made.model.parameters():
            parameter.mul_(3)
        bias = output_bias(made.model)
        bias[[subwords.encode(character)[-1] for character in BREAKS]] += 9
        bias[UNK], bias[EOS] = -9, 10
    made.model.eval()
    return made


@cache
def folder_in(parent: Path) -> Path:
    """Where the model was saved."""
    bundle().save(parent / "tiny")
    return parent / "tiny"


_AWKWARD = [
    *BREAKS,
    *("\r\n", "\0", "\t", " ", "  ", "\u00a0", "\u3000", "\ufeff", "\u200b", "\u202e", "\u0301", "e\u0301\u0323"),
    *("▁", "⁇", "<s>", "</s>", "<unk>", "<pad>", "<0x0A>", "\U0010ffff", "🐶", "👩‍👩‍👧", "שלום", "世界", "\x1b[2J"),
    *("the dog", "a cat .", "sleeps here", "x" * 70, "." * 9),
]
_BROKEN = [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xed\xb2\x80", b"\xf0\x9f", b"\xfe\xff", b"\xef\xbb\xbf", b"\xc0\x8a"]
"""Bytes that are no UTF-8, among them surrogates and an overlong line feed; and a byte order mark, which is."""

plain = st.lists(st.sampled_from(_AWKWARD) | st.text(max_size=8), max_size=8).map("".join)
"""Text of any characters, line breaks of all kinds included."""
raw = st.lists(
    plain.map(str.encode) | st.sampled_from([b"\n", b"\n", b"\r\n", *_BROKEN]) | st.binary(max_size=6), max_size=12
).map(lambda parts: b"".join(parts).replace(b"\0", b""))
raw = raw.filter(
    lambda content: not content.startswith((b"\xff\xfe", b"\xfe\xff", b"\x1f\x8b", b"PK\x03\x04", b"%PDF-"))
)
"""Any bytes but NUL, and but marks of UTF-16, gzip, zip and PDF at their beginning."""
sentences = plain.map(lambda text: text.replace("\n", " ").replace("\0", " "))
"""What can stand on a line of a file."""
