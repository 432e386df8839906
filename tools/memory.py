"""Measure the memory of training and translation: `tools/memory.py --pairs 30000,20000000 --width 64,512 --precision bf16`.

The corpus is generated in a folder that is kept: a second call finds it, and its ids, there. The figures, in MB:

* anonymous: peak of RssAnon, the memory that only this process can hold, before the first update and from then on;
* with processes: the same while it has started others, over all of them, shared pages counted once;
* resident: VmHWM, with pages of mapped files, which the system takes back when it needs them;
* in translation: RssAnon of `nmt translate`, which translates the validation text.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from tempfile import gettempdir

import numpy as np

from nmt.text.subwords import Subwords

ROOT = Path(__file__).parents[1]
WORDS = 20_000
BLOCK = 200_000
"""Pairs that are generated at a time."""
LEARNED_FROM = 30_000
"""Lines that the subwords are learned from, so that they do not depend on the size of the corpus."""
MODES: dict[str, tuple[str, ...]] = {
    "plain": (),
    "filtered": ("data.filters.duplicates=false",),
    "sampling": ("subwords.sampling=0.1",),
    "guided": ("training.guided_alignment.links={folder}/train.align",),
}
WIDTHS = (
    "model.embedding",
    "model.encoder.hidden",
    "model.attention.score.size",
    "model.decoder.hidden",
    "model.decoder.readout.size",
)
LEARNED = "subwords.source_model={folder}/en.model", "subwords.target_model={folder}/de.model"
RECIPE = """
name: memory
data: {source: en, target: de, train: "train.{en,de}", valid: "valid.{en,de}"}
subwords: {kind: unigram, size: 4000, byte_fallback: false}
model: {attention: {score: additive}, decoder: {readout: maxout}}
training: {batch_tokens: 1024, optimizer: {kind: adam, rate: 1e-3}, validation: {metrics: [perplexity]}}
"""


def main() -> None:
    """Generate corpora, train on each, and print a line of figures for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", default="30000,20000000", help="numbers of pairs (default: %(default)s)")
    parser.add_argument("--width", default="64", help="widths of all layers (default: %(default)s)")
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--mode", choices=MODES, default="plain")
    parser.add_argument("--updates", type=int, default=40)
    parser.add_argument("--learn-subwords", action="store_true", help="learn them in the run, from its own corpus")
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path(gettempdir(), "nmt-memory"),
        help="where the corpora go (default: %(default)s)",
    )
    arguments = parser.parse_args()
    sizes = (map(int, numbers.split(",")) for numbers in (arguments.pairs, arguments.width))
    for pairs, width in product(*sizes):
        folder = arguments.folder / str(pairs)
        generate(folder, pairs)
        settings = [
            *MODES[arguments.mode],
            *(() if arguments.learn_subwords else LEARNED),
            *(f"{key}={width}" for key in WIDTHS),
            f"training.precision={arguments.precision}",
            f"training.updates={arguments.updates}",
        ]
        peaks = measure(folder, settings)
        sys.stdout.write(f"{arguments.mode}, {pairs:,} pairs, width {width}: {peaks}\n")
        sys.stdout.flush()


def generate(folder: Path, pairs: int) -> None:
    """Write train and valid in two languages, the links of train, and a subword model of each language, unless they are there."""
    if (folder / "de.model").is_file():
        return
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(1)
    vocabularies = [words(generator) for _ in range(2)]
    for name, count in (("valid", 200), ("train", pairs)):
        with (
            (folder / f"{name}.en").open("w") as source,
            (folder / f"{name}.de").open("w") as target,
            (folder / f"{name}.align").open("w") as links,
        ):
            for start in range(0, count, BLOCK):
                lengths = generator.integers(3, 12, min(BLOCK, count - start))
                ids = np.minimum(generator.zipf(1.3, lengths.sum()) - 1, WORDS - 1)
                source.write(text(ids, lengths, vocabularies[0]))
                target.write(text(ids, lengths, vocabularies[1]))
                links.write(text(np.concatenate([np.arange(length) for length in lengths]), lengths, DIAGONAL))
    for name in ("en", "de"):
        with (folder / f"train.{name}").open() as lines:
            sample = [line.rstrip("\n") for line, _ in zip(lines, range(LEARNED_FROM), strict=False)]
        Subwords.train(sample, kind="unigram", size=4000, byte_fallback=False).save(folder / f"{name}.model")


DIAGONAL = [f"{place}-{place}" for place in range(12)]


def words(generator: np.random.Generator) -> list[str]:
    """Invented words, the short ones more frequent."""
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    return ["".join(generator.choice(letters, 2 + (number > 100) + number % 5)) for number in range(WORDS)]


def text(ids: np.ndarray, lengths: np.ndarray, vocabulary: list[str]) -> str:
    """Lines of so many words each."""
    ends = np.cumsum(lengths)
    separated = np.insert(ids, ends, len(vocabulary)).tolist()
    return " ".join(map([*vocabulary, "\n"].__getitem__, separated)).replace(" \n ", "\n").replace(" \n", "\n")


@dataclass
class Peaks:
    """The most memory seen, in kB."""

    before: int = 0
    training: int = 0
    all_processes: int = 0
    resident: int = 0
    translation: int = 0
    seconds: float = field(default=0.0)

    def __str__(self) -> str:
        sizes = self.before, self.training, self.all_processes, self.resident, self.translation
        before, training, every, resident, translation = (f"{1.024e-3 * size:,.0f}" for size in sizes)
        return (
            f"anonymous {before} MB before the first update, {training} MB in training; with processes {every} MB; "
            f"resident {resident} MB; in translation {translation} MB; {self.seconds:,.0f} s"
        )


def measure(folder: Path, settings: Iterable[str]) -> Peaks:
    """Train a model and translate with it, each in a process of its own, and watch their memory."""
    run, peaks, start = folder / f"run-{os.getpid()}-{time.monotonic_ns()}", Peaks(), time.monotonic()
    (folder / "recipe.yaml").write_text(RECIPE)
    texts = "data.train={folder}/train", "data.valid={folder}/valid"
    options = [
        option for setting in (*texts, *settings) for option in ("--set", setting.format(folder=folder.absolute()))
    ]
    for process in watched(folder, "train", str(folder / "recipe.yaml"), *options, "--out", str(run)):
        own = status(process)
        anonymous = own.get("RssAnon", 0)
        if (run / "state.safetensors").exists():
            peaks.training = max(peaks.training, anonymous)
        else:
            peaks.before = max(peaks.before, anonymous)
        if children := list(children_of(process)):
            shares = sum(status(one, "smaps_rollup").get("Pss_Anon", 0) for one in (process, *children))
            peaks.all_processes = max(peaks.all_processes, shares)
        peaks.resident = max(peaks.resident, own.get("VmHWM", 0))
    peaks.seconds = time.monotonic() - start
    for process in watched(folder, "translate", str(run), "-i", str(folder / "valid.en"), "-o", os.devnull):
        peaks.translation = max(peaks.translation, status(process).get("RssAnon", 0))
    return peaks


def watched(folder: Path, *arguments: str) -> Iterator[int]:
    """The id of a process that runs a command of nmt on the CPU, again and again until it ends."""
    environment = {**os.environ, "NMT_CACHE": str((folder / "cache").absolute()), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "nmt", *arguments, "--device", "cpu"]
    with subprocess.Popen(command, env=environment) as process:
        while process.poll() is None:
            yield process.pid
            time.sleep(0.05)
    if process.returncode:
        raise SystemExit(process.returncode)


def status(process: int, name: str = "status") -> dict[str, int]:
    """The sizes in a file of a process, in kB; empty if it has ended."""
    try:
        lines = Path(f"/proc/{process}/{name}").read_text().splitlines()
    except OSError:
        return {}
    fields = (line.split() for line in lines if line.endswith("kB"))
    return {key.rstrip(":"): int(size) for key, size, _ in fields}


def children_of(process: int) -> Iterator[int]:
    """The processes that a process has started."""
    try:
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        return
    yield from map(int, children)


if __name__ == "__main__":
    main()
