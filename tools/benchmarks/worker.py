"""A process of its own for each measurement that needs torch: `worker.py TASK SETTINGS`, with settings and answer as JSON.

The answer is the last line on standard output.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from .shared_model import PIECES

if TYPE_CHECKING:
    from nmt.cli.options import PrecisionName

WARM_UP = 2


def prepare(folder: str) -> dict[str, Any]:
    """Write the text that all systems read, and train the pieces that they cut it into."""
    from nmt.data import catalogue
    from nmt.data.corpus import load_corpus

    splits = {"train": "multi30k/train", "test": "multi30k/test_2016_flickr"}
    present = {(checked.file.split, checked.file.language) for checked in catalogue.check("multi30k") if checked.path}
    if not {(name.partition("/")[2], side) for name in splits.values() for side in ("en", "de")} <= present:
        splits = {"train": "sample:train", "test": "sample:test"}
    corpora = {split: load_corpus(place, source="en", target="de") for split, place in splits.items()}
    lines = {  # some peers cannot read pieces with other spaces than the plain one
        split: {
            "en": [" ".join(line.split()) for line in corpus.source],
            "de": [" ".join(line.split()) for line in corpus.target],
        }
        for split, corpus in corpora.items()
    }
    lines["few"] = {side: text[:8] for side, text in lines["test"].items()}
    key = splits["train"].partition(":" if ":" in splits["train"] else "/")[0]
    place = Path(folder).resolve() / key
    place.mkdir(parents=True, exist_ok=True)
    for split, sides in lines.items():
        for side, text in sides.items():
            (place / f"{split}.{side}").write_text("".join(f"{line}\n" for line in text), encoding="utf-8")
    return {"folder": str(place), "corpus": splits["train"].split("/")[0], **_pieces(place, key, lines)}


def _pieces(place: Path, key: str, lines: dict[str, dict[str, list[str]]]) -> dict[str, Any]:
    """Train the joint pieces, as many of them as the text allows, and count the text in them."""
    import sentencepiece

    from nmt.data.subwords import Subwords
    from nmt.errors import DataError

    training = [*lines["train"]["en"], *lines["train"]["de"]]
    model = place / "joint.model"
    size = PIECES
    while not model.is_file():
        try:
            Subwords.train(training, kind="unigram", size=size, byte_fallback=False).save(model)
        except DataError:  # the sample has too few different words
            if size < 100:
                raise
            size //= 2
    subwords = Subwords.load(model)
    processor: Any = sentencepiece.SentencePieceProcessor(model_file=str(model))
    pieces = [processor.id_to_piece(index) for index in range(len(subwords))]
    counts = {
        split: [len(text) + sum(map(len, subwords.encode_batch(text))) for text in lines[split].values()]
        for split in ("train", "test")
    }
    (sources, targets), tested = counts["train"], len(lines["test"]["en"])
    return {
        "key": f"{key}-{subwords.fingerprint[:8]}",
        "marks": pieces[:4],
        "pieces": pieces[4:],
        "source_per_target": sources / targets,
        "source_pieces": counts["test"][0] / tested,
        "target_pieces": counts["test"][1] / tested,
    }


def ceiling(device: str, size: int, windows: int) -> dict[str, Any]:
    """Operations a second of one large square matrix product, the fastest way, in each precision that there is; the machine's name."""
    import torch
    from torch import nn

    from nmt.device import DTYPES, choose_device, choose_precision, processor
    from nmt.fast.kernels.build import library, prepare_kernels
    from nmt.fast.linear import can_pack, packed_linear

    place = choose_device(device)
    prepare_kernels()
    found: dict[str, Any] = {
        "device": place.type,
        "processor": processor(place),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "auto": choose_precision("auto", place),
        "kernels": "compiled" if library() else "none compiled",
    }
    left, layer = torch.randn(size, size, device=place), nn.Linear(size, size, bias=False, device=place)
    for precision, dtype in DTYPES.items():
        ways: list[Callable[[], object]] = []
        if dtype.is_floating_point:
            ways.append(partial(torch.matmul, left.to(dtype), left.to(dtype)))
        if can_pack(layer.weight, dtype):
            ways.append(partial(packed_linear(layer, dtype), left.to(dtype) if dtype.is_floating_point else left))
        rates = [[2 * size**3 / each for each in timed(way, windows, place.type)] for way in ways]
        if rates:
            found[precision] = max(rates, key=median)
    return found


def timed(run: Callable[[], object], windows: int, device: str = "cpu") -> list[float]:
    """Seconds of each run but the first two."""
    import torch

    found = []
    for _ in range(WARM_UP + windows):
        start = time.perf_counter()
        run()
        if device == "cuda":
            torch.cuda.synchronize()
        found.append(time.perf_counter() - start)
    return found[WARM_UP:]


def decode(
    model: str,
    source: str,
    output: str,
    device: str,
    precision: PrecisionName,
    decoding: dict[str, Any],
    shortlist: str | None,
    passes: int,
) -> dict[str, Any]:
    """Seconds of translating a file, several times over, without loading the model. The first pass is a cold one."""
    from nmt.cli.options import build_translator, load_models, load_shortlist

    bundles = load_models([Path(model)], device)
    translator = build_translator(
        bundles,
        precision=precision,
        decoding=decoding,
        alignments=False,
        shortlist=load_shortlist(Path(shortlist) if shortlist else None, bundles[0]),
    )
    lines = Path(source).read_text(encoding="utf-8").splitlines()
    seconds, found = [], [""]
    for _ in range(passes):
        start = time.perf_counter()
        found = [item.text for item in translator.translate(lines)]
        seconds.append(time.perf_counter() - start)
    Path(output).write_text("".join(f"{line}\n" for line in found), encoding="utf-8")
    return {"seconds": seconds}


def quality(hypotheses: str, references: str) -> dict[str, Any]:
    """Cased BLEU of a file of translations of the first lines, and their words for each word of the references."""
    from nmt.evaluation import metrics

    found = Path(hypotheses).read_text(encoding="utf-8").split("\n")[:-1]
    expected = Path(references).read_text(encoding="utf-8").split("\n")[: len(found)]
    words = [sum(len(line.split()) for line in lines) for lines in (found, expected)]
    return {"BLEU": metrics.bleu(found, expected), "length": words[0] / words[1]}


def main() -> None:
    from . import attention, dropping, growing

    tasks: dict[str, Callable[..., dict[str, Any]]] = {
        "prepare": prepare,
        "ceiling": ceiling,
        "decode": decode,
        "quality": quality,
        "train-step": growing.train_step,
        "search": growing.search,
        "attention": attention.step,
        "drop": dropping.column,
    }
    from nmt.cli.memory import keep_freed_memory, keep_kernels
    from nmt.errors import NmtError

    task, settings = sys.argv[1:]
    keep_freed_memory()  # as every command does
    keep_kernels()
    try:
        found = tasks[task](**json.loads(settings))
    except NmtError as error:
        sys.exit(str(error))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
