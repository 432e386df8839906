"""Run one measurement that needs torch in this process: `worker.py TASK SETTINGS`.

Settings and answer are JSON; the answer is the last line on standard output.
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

from .shared_model import VOCABULARY

if TYPE_CHECKING:
    from nmt.runtime.arguments import PrecisionName

WARM_UP = 2


def prepare(folder: str) -> dict[str, Any]:
    """Write the text that all systems read, and train their joint SentencePiece model."""
    from nmt.data import catalogue
    from nmt.data.locators import load_corpus

    splits = {"train": "multi30k/train", "test": "multi30k/test_2016_flickr"}
    present = {(checked.split, checked.language) for checked in catalogue.check("multi30k") if checked.path}
    if not {(name.partition("/")[2], side) for name in splits.values() for side in ("en", "de")} <= present:
        splits = {"train": "sample:train", "test": "sample:test"}
    corpora = {split: load_corpus(locator, source="en", target="de") for split, locator in splits.items()}
    lines = {  # some peers cannot read other spaces than U+0020
        split: {
            "en": [" ".join(line.split()) for line in corpus.source],
            "de": [" ".join(line.split()) for line in corpus.target],
        }
        for split, corpus in corpora.items()
    }
    lines["few"] = {side: text[:8] for side, text in lines["test"].items()}
    key = splits["train"].partition(":" if ":" in splits["train"] else "/")[0]
    text_folder = Path(folder).resolve() / key
    text_folder.mkdir(parents=True, exist_ok=True)
    for split, sides in lines.items():
        for side, text in sides.items():
            (text_folder / f"{split}.{side}").write_text("".join(f"{line}\n" for line in text), encoding="utf-8")
    return {"folder": str(text_folder), "corpus": splits["train"].split("/")[0], **_vocabulary(text_folder, key, lines)}


def _vocabulary(folder: Path, key: str, lines: dict[str, dict[str, list[str]]]) -> dict[str, Any]:
    """Train the joint model, with as large a vocabulary as the text allows, and count tokens."""
    import sentencepiece

    from nmt.errors import DataError
    from nmt.text.subwords import Subwords

    training = [*lines["train"]["en"], *lines["train"]["de"]]
    model = folder / "joint.model"
    size = VOCABULARY
    while not model.is_file():
        try:
            Subwords.train(training, kind="unigram", size=size, byte_fallback=False).save(model)
        except DataError:  # the sample has too few different words
            if size < 100:
                raise
            size //= 2
    subwords = Subwords.load(model)
    processor: Any = sentencepiece.SentencePieceProcessor(model_file=str(model))
    tokens = [processor.id_to_piece(index) for index in range(len(subwords))]
    counts = {
        split: [len(text) + sum(map(len, subwords.encode_batch(text))) for text in lines[split].values()]
        for split in ("train", "test")
    }
    (sources, targets), test_lines = counts["train"], len(lines["test"]["en"])
    return {
        "key": f"{key}-{subwords.fingerprint[:8]}",
        "special_tokens": tokens[:4],
        "tokens": tokens[4:],
        "source_per_target": sources / targets,
        "source_tokens": counts["test"][0] / test_lines,
        "target_tokens": counts["test"][1] / test_lines,
    }


def ceiling(device: str, size: int, windows: int) -> dict[str, Any]:
    """The machine, and the operations per second of its fastest large matrix product in each precision."""
    import torch
    from torch import nn

    from nmt.fast.kernels.build import library, prepare_kernels
    from nmt.fast.linear import can_pack, packed_linear
    from nmt.runtime.device import DTYPES, choose_device, choose_precision, processor

    torch_device = choose_device(device)
    prepare_kernels()
    answer: dict[str, Any] = {
        "device": torch_device.type,
        "processor": processor(torch_device),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "auto": choose_precision("auto", torch_device),
        "kernels": "native" if library() else "none",
    }
    left, layer = torch.randn(size, size, device=torch_device), nn.Linear(size, size, bias=False, device=torch_device)
    for precision, dtype in DTYPES.items():
        has_packed = can_pack(layer.weight, dtype)
        if torch_device.type == "cpu" and (precision == "fp16" or (precision == "bf16" and not has_packed)):
            continue  # `nmt` refuses it, or it would be emulated, hundreds of times slower
        products: list[Callable[[], object]] = []
        if dtype.is_floating_point:
            products.append(partial(torch.matmul, left.to(dtype), left.to(dtype)))
        if has_packed:
            products.append(partial(packed_linear(layer, dtype), left.to(dtype) if dtype.is_floating_point else left))
        rates = [
            [2 * size**3 / seconds for seconds in timed(product, windows, torch_device.type)] for product in products
        ]
        if rates:
            answer[precision] = max(rates, key=median)
    return answer


def timed(run: Callable[[], object], windows: int, device: str = "cpu") -> list[float]:
    """Seconds of each of `windows` runs, after `WARM_UP` runs that do not count."""
    import torch

    seconds = []
    for _ in range(WARM_UP + windows):
        start = time.perf_counter()
        run()
        if device == "cuda":
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    return seconds[WARM_UP:]


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
    """Seconds of each of several passes over a file, without loading the model. The first pass is cold."""
    from nmt.cli.options import build_translator, load_models

    bundles = load_models([Path(model)], device)
    translator = build_translator(
        bundles,
        precision=precision,
        **decoding,
        alignments=False,
        shortlist=shortlist,
    )
    lines = Path(source).read_text(encoding="utf-8").splitlines()
    seconds: list[float] = []
    translations: list[str] = []
    for _ in range(passes):
        start = time.perf_counter()
        translations = [item.text for item in translator.translate(lines)]
        seconds.append(time.perf_counter() - start)
    Path(output).write_text("".join(f"{line}\n" for line in translations), encoding="utf-8")
    return {"seconds": seconds}


def quality(hypotheses: str, references: str) -> dict[str, Any]:
    """Cased BLEU of translations of the first lines, and their number of words divided by that of the references."""
    from nmt.evaluation import metrics

    translations = Path(hypotheses).read_text(encoding="utf-8").split("\n")[:-1]
    expected = Path(references).read_text(encoding="utf-8").split("\n")[: len(translations)]
    words = [sum(len(line.split()) for line in lines) for lines in (translations, expected)]
    return {"BLEU": metrics.bleu(translations, expected), "length": words[0] / words[1]}


def main() -> None:
    from . import dropping

    tasks: dict[str, Callable[..., dict[str, Any]]] = {
        "prepare": prepare,
        "ceiling": ceiling,
        "decode": decode,
        "quality": quality,
        "drop": dropping.column,
    }
    from nmt.cli.allocation import keep_freed_memory, keep_kernels
    from nmt.errors import NmtError

    task, settings = sys.argv[1:]
    keep_freed_memory()  # as every command does
    keep_kernels()
    try:
        answer = tasks[task](**json.loads(settings))
    except NmtError as error:
        sys.exit(str(error))
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
