"""Write aligned sentence pairs to a stream, one at a time, in the formats of `nmt align`."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import BinaryIO, Literal, assert_never

import numpy as np

from nmt.alignment.extraction import AlignedPair
from nmt.alignment.link_files import format_confident, format_naacl, format_pharaoh

TextFormat = Literal["pharaoh", "confident", "json", "naacl"]
Format = TextFormat | Literal["npz"]
Write = Callable[[int, AlignedPair], object]
"""Writes one aligned pair, given its line number (from 1)."""

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The date of all members of the archive, so that the same pairs give the same bytes."""


@contextmanager
def pair_writer(stream: BinaryIO, form: Format) -> Iterator[Write]:
    """Yield a function that writes pairs to the stream, each line at once.

    * `pharaoh`: one line per pair of links `i-j`, source first, counted from 0.
    * `confident`: the same with confidences, `i-j:0.97`.
    * `json`: one object per line: `source` and `target` (words), `weights` (one row per target word) and `links`.
    * `npz`: arrays `weights_N`, `links_N`, `source_N` and `target_N` of line N, for `numpy.load`.
    * `naacl`: one line `sentence source target S` per link, all counted from 1.
    """
    if form == "npz":
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            yield partial(_add_arrays, archive)
        return

    def write(number: int, pair: AlignedPair) -> None:
        stream.write(_text(number, pair, form).encode("utf-8", "replace"))
        stream.flush()

    yield write


def _text(number: int, pair: AlignedPair, form: TextFormat) -> str:
    match form:
        case "pharaoh":
            return format_pharaoh(pair.links) + "\n"
        case "confident":
            return format_confident(pair.confident_links) + "\n"
        case "json":
            fields = {
                "source": pair.alignment.source,
                "target": pair.alignment.target,
                "weights": pair.alignment.weights.round(4).tolist(),
                "links": sorted(pair.links),
            }
            return json.dumps(fields, ensure_ascii=False) + "\n"
        case "naacl":
            return format_naacl(pair.links, number)
        case _:
            assert_never(form)


def _add_arrays(archive: zipfile.ZipFile, number: int, pair: AlignedPair) -> None:
    arrays = {
        "weights": pair.alignment.weights.astype(np.float32),
        "links": np.array(sorted(pair.links), dtype=np.int32).reshape(-1, 2),
        "source": np.array(pair.alignment.source, dtype=np.str_),
        "target": np.array(pair.alignment.target, dtype=np.str_),
    }
    for name, array in arrays.items():
        content = io.BytesIO()
        np.lib.format.write_array(content, array, allow_pickle=False)
        member = zipfile.ZipInfo(f"{name}_{number}.npy", _EPOCH)
        archive.writestr(member, content.getvalue(), zipfile.ZIP_DEFLATED)
