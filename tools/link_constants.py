"""Measure the constants of `nmt links`: alignment error rates on gold links of seven languages and other sizes of text.

    python tools/link_constants.py                       # as they are
    python tools/link_constants.py EMPTY=0.1 STEM=5      # constants of nmt/alignment/statistical
    python tools/link_constants.py --only en-et          # the sets whose name has this in it
    python tools/link_constants.py --all                 # and all lines of the Hansards, 100,000 of KFTT

The corpora lie under $NMT_CORPORA. The train text of KFTT is split as its gold links' text is, by MeCab (`pip install fugashi
unidic-lite`) and into words and punctuation.
"""

from __future__ import annotations

import argparse
import importlib
import os
import re
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from nmt.alignment.error_rate import error_rate
from nmt.alignment.link_files import read_gold
from nmt.alignment.statistical import aligner, hmm, ibm1, word_forms
from nmt.data.lines import any_compression, read_lines

_WORD = re.compile(r"\w+(?:[-'.]\w+)*|[^\w\s]")
_MODULES = aligner, hmm, ibm1, word_forms
_SETS = [  # folder, first language, second, split with gold links, lines of train
    *((f"xl-wa/en-{code}", "en", code, "dev", 1002) for code in ("et", "hu", "it", "nl", "ru")),
    *(("hansards-en-fr", "en", "fr", "gold.trial", lines) for lines in (1000, 10_000)),
    ("kftt-ja-en", "ja", "en", "gold", 10_000),
]
_LARGE = [("hansards-en-fr", "en", "fr", "gold.trial", 227_389), ("kftt-ja-en", "ja", "en", "gold", 100_000)]


def main() -> None:
    """Print a row for each set, and the mean."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("constants", nargs="*", metavar="NAME=VALUE")
    parser.add_argument("--only", default="")
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    for name, value in (constant.split("=") for constant in options.constants):
        _set(name, float(value) if "." in value else int(value))
    rates = []
    for folder, *languages, split, lines in _SETS + (_LARGE if options.all else []):
        if options.only in folder:
            root = Path(os.environ["NMT_CORPORA"]) / folder
            gold = list(zip(*(_lines(root / f"{split}.{code}") for code in languages), strict=True))
            more = zip(*(_train(root, code) for code in languages), strict=True)
            learned = aligner.HMMAligner.learn([*gold, *islice(more, lines)])
            rate = error_rate(list(learned.links(gold)), read_gold(root / f"{split}.align"))
            rates.append(rate.aer)
            print(f"{folder:15} {lines:8,}  {rate}", flush=True)
    if not rates:
        sys.exit(f"link_constants: no set has {options.only} in its name.")
    print(f"{'mean':24}  AER {100 * sum(rates) / len(rates):.2f}%")


def _set(name: str, value: float) -> None:
    """Set a constant, also where another module has imported it."""
    modules = [module for module in _MODULES if hasattr(module, name)]
    if not modules:
        sys.exit(f"link_constants: there is no constant {name}.")
    for module in modules:
        setattr(module, name, value)


def _train(root: Path, code: str) -> Iterator[str]:
    """Lines of train, split into words as the text with gold links is."""
    lines = _lines(root / f"train.{code}")
    if root.name != "kftt-ja-en":
        return lines
    if code == "en":
        return (" ".join(_WORD.findall(line)) for line in lines)
    tagger = importlib.import_module("fugashi").Tagger("-Owakati")
    return (tagger.parse(line) for line in lines)


def _lines(path: Path) -> Iterator[str]:
    return read_lines(any_compression(path) or path)


if __name__ == "__main__":
    main()
