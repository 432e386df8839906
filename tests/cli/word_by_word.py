"""A corpus whose sentences are translated word by word, and the recipe of a model that learns it in seconds."""

import random
from pathlib import Path

import yaml

from tests.training.toy import MODEL

WORDS = dict(
    zip(
        "the dog cat bird man woman child sees hears likes old young big small red house tree today".split(),
        "der Hund Katze Vogel Mann Frau Kind sieht hört mag alte junge große kleine rote Haus Baum heute".split(),
        strict=True,
    )
)


def write_corpus(folder: Path, pairs: int = 700) -> None:
    """Sentences of three to six words that are translated word by word."""
    draw = random.Random(3)
    lines = [draw.choices(list(WORDS), k=draw.randint(3, 6)) for _ in range(pairs)]
    for name, part in (("train", lines[40:]), ("valid", lines[:40])):
        (folder / f"{name}.en").write_text("".join(" ".join(line) + "\n" for line in part))
        (folder / f"{name}.de").write_text("".join(" ".join(WORDS[word] for word in line) + "\n" for line in part))


def write_recipe(folder: Path, **data: str) -> Path:
    tree = {
        "name": "tiny",
        "data": {"source": "en", "target": "de", "train": f"{folder}/train", "valid": f"{folder}/valid.{{en,de}}"}
        | data,
        "subwords": {"kind": "word", "size": 22, "byte_fallback": False, "joint": False},
        "model": MODEL,
        "training": {
            "epochs": 9,
            "batch_tokens": 256,
            "optimizer": {"kind": "adam", "rate": 8e-3},
            "label_smoothing": 0.0,
            "precision": "fp32",
            "validation": {"keep_best": 2, "every": 42},
        },
        "decoding": {"beam_size": 2, "max_ratio": 1.5},
    }
    path = folder / "tiny.yaml"
    path.write_text(yaml.safe_dump(tree))
    return path
