"""A task that a test can learn: reverse a line of letters."""

import random
from pathlib import Path
from typing import Any

import torch

from nmt.bundle.folder import Bundle
from nmt.data.encoded import EncodedCorpus, encode_corpus
from nmt.recipe import Recipe, parse_recipe
from nmt.runtime.device import Precision
from nmt.training.parallel import ALONE, Ranks
from nmt.training.preparation import TrainingText
from nmt.training.trainer import train
from nmt.training.update import TrainStep

CPU = torch.device("cpu")
LETTERS = "abcdefgh"
MODEL = {
    "embedding": 32,
    "encoder": {"hidden": 32},
    "attention": {"score": {"kind": "additive", "size": 32}},
    "decoder": {"hidden": 48, "readout": {"kind": "maxout", "size": 32}},
    "dropout": 0.0,
}
"""The model section of small recipes."""


def write_reversal(folder: Path, *, pairs: int = 1500, held_out: int = 60, longest: int = 7) -> None:
    """Write train.src and valid.src with letters, train.tgt and valid.tgt with the letters reversed, train.align with the links."""
    draw = random.Random(5)
    lines = [[draw.choice(LETTERS) for _ in range(draw.randint(1, longest))] for _ in range(pairs + held_out)]
    for name, part in (("train", lines[:pairs]), ("valid", lines[pairs:])):
        (folder / f"{name}.src").write_text("".join(" ".join(line) + "\n" for line in part))
        (folder / f"{name}.tgt").write_text("".join(" ".join(reversed(line)) + "\n" for line in part))
    anti_diagonals = (" ".join(f"{i}-{len(line) - 1 - i}" for i in range(len(line))) for line in lines[:pairs])
    (folder / "train.align").write_text("".join(f"{links}\n" for links in anti_diagonals))


def train_briefly(folder: Path) -> None:
    """Write a small reversal corpus to a folder, and train its `model` for an epoch."""
    write_reversal(folder, pairs=100, held_out=10)
    training = {"epochs": 1, "validation": {"metrics": "perplexity"}}
    train(recipe(folder, training=training), folder / "model", device=CPU, quiet=True)


def train_step(
    config: Recipe, *, precision: Precision = "fp32", device: torch.device = CPU, ranks: Ranks = ALONE
) -> tuple[TrainStep, EncodedCorpus]:
    """The updates of a recipe without links, and the corpus that they read."""
    text = TrainingText.load(config)
    bundle = Bundle.fresh(config, *text.subwords(config))
    corpus = encode_corpus(text.train, bundle.source, bundle.target, None)
    bundle.model.to(device)
    return TrainStep(bundle, None, precision=precision, device=device, ranks=ranks), corpus


def recipe(folder: Path, *, training: dict[str, Any] | None = None, **sections: Any) -> Recipe:
    """A small model for the reversal corpus in `folder`."""
    tree = {
        "name": "reversal",
        "data": {"source": "src", "target": "tgt", "train": f"{folder}/train.{{src,tgt}}", "valid": f"{folder}/valid"},
        "subwords": {"kind": "word", "size": 12, "byte_fallback": False},
        "model": MODEL,
        "training": {
            "epochs": 2,
            "batch_tokens": 256,
            "optimizer": {"kind": "adam", "rate": 5e-3},
            "label_smoothing": 0.0,
            "precision": "fp32",
            "compile": False,  # checked shapes cannot be compiled
            "log_every": 10,
            **(training or {}),
        },
        "decoding": {"beam_size": 2},
        **sections,
    }
    return parse_recipe(tree, "the test's recipe")
