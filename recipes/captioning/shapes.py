"""Attention reads a picture, as in "Show, Attend and Tell" (Xu et al. 2015): a CNN looks, the toolkit's decoder writes the caption.

Captions such as "a red circle above a small blue square" begin with the larger shape, else with the upper or left one.
"""

from collections import namedtuple
from itertools import chain, combinations, product
from typing import Annotated, NamedTuple

import numpy as np
import torch
import typer
from matplotlib.colors import to_rgb
from panels import PictureAttention, draw_panels
from torch import Tensor, nn

from nmt.evaluation import evaluate, format_scores
from nmt.model import EncoderOutput, RecurrentMemory, RecurrentModel
from nmt.recipe import RecurrentModelConfig
from nmt.search import Search, SearchOptions

SIDE, CELL, GRID = 48, 4, 12  # sides of a picture and of one of its cells, in pixels, and of the grid of cells
Y, X = np.mgrid[:SIDE, :SIDE] + 0.5  # the centers of pixels, y downwards
COLORS = {"red": "#d62728", "green": "#2ca02c", "blue": "#1f5ab4", "yellow": "#f2c318", "purple": "#8e44ad"}
KINDS = {  # the points of the square from -1 to 1 that a shape covers
    "circle": lambda x, y: x**2 + y**2 <= 1, "square": lambda x, y: np.maximum(abs(x), abs(y)) <= 0.9,
    "triangle": lambda x, y: 2 * abs(x) <= 1 + y, "cross": lambda x, y: np.minimum(abs(x), abs(y)) <= 0.35,
}  # fmt: skip
RADII = {"": 9, "small ": 5}  # half the side of the box around a shape, in pixels
RELATIONS = {"above": (0, 1), "left of": (1, 0), "below": (0, -1), "right of": (-1, 0)}  # (x, y) to the other shape

PAIRS = list(combinations(product(COLORS, KINDS), 2))
NEW = {("red", "circle"), ("green", "square"), ("blue", "triangle")}  # in no picture of the training
KNOWN = [pair for pair in PAIRS if not NEW & set(pair)]
TRAINING = [pair for number, pair in enumerate(KNOWN) if number % 5]
HELD_OUT = {"new pairs of known shapes": KNOWN[::5], "new shapes": [pair for pair in PAIRS if NEW & set(pair)]}

PAD, BOS, EOS = 0, 2, 3  # as the search assumes
WORDS = ["<pad>", "<unk>", "<s>", "</s>", *"a small above below left right of".split(), *COLORS, *KINDS]
CONFIG = RecurrentModelConfig.model_validate({
    "embedding": 64, "embedding_scale": 8.0, "tie": "all", "encoder": {"hidden": 32}, "attention": {"score": {"size": 32}},
    "decoder": {"hidden": 128, "bridge": "mean"}, "dropout": {"embedding": 0.0, "word": 0.3, "readout": 0.2},
})  # fmt: skip
Batch = namedtuple("Batch", "source source_mask target_in target_out target_mask")  # noqa: PYI024 -- what the model reads
Count = Annotated[int, typer.Option(min=1)]


class Scene(NamedTuple):
    """A picture [3 SIDE SIDE], its caption, and the part of each cell inside the box of each shape [2 GRID*GRID]."""

    pixels: np.ndarray
    caption: str
    inside: np.ndarray


def draw_scene(pairs: list[tuple[tuple[str, str], tuple[str, str]]], rng: np.random.Generator) -> Scene:
    """Draw one of the pairs of (color, kind), at places that leave no doubt how they lie to each other."""
    sizes = sorted(rng.choice(list(RADII), 2))  # the larger first
    relation = rng.choice(list(RELATIONS)[: 2 if sizes[0] == sizes[1] else 4])
    radii, toward = [RADII[size] for size in sizes], np.array(RELATIONS[relation])
    along = rng.integers(sum(radii) + 1, SIDE - sum(radii) + 1)
    offset = along * toward + rng.integers(-along // 2, along // 2 + 1) * toward[::-1]
    least, most = np.maximum(radii[0], radii[1] - offset), SIDE - np.maximum(radii[0], radii[1] + offset)
    place, names = rng.integers(least, most + 1), []
    pixels, inside = rng.normal(0.95, 0.04, (3, SIDE, SIDE)), np.zeros((2, SIDE, SIDE))
    for index, (color, kind) in enumerate(rng.permutation(pairs[int(rng.integers(len(pairs)))])):
        x, y = ((X, Y) - (place + index * offset)[:, None, None]) / radii[index]
        inside[index] = np.maximum(abs(x), abs(y)) < 1
        pixels += inside[index] * KINDS[kind](x, y) * (np.reshape(to_rgb(COLORS[color]), (3, 1, 1)) - 0.95)
        names.append(f"a {sizes[index]}{color} {kind}")
    cells = inside.reshape(2, GRID, CELL, GRID, CELL).mean((2, 4)).reshape(2, -1)
    return Scene(pixels.clip(0, 1).astype(np.float32), f" {relation} ".join(names), cells)


class Captioner(RecurrentModel):
    """The toolkit's model with a CNN in place of its encoder: source positions are the cells of a grid over the picture."""

    def __init__(self) -> None:
        super().__init__(CONFIG, source_size=len(WORDS), target_size=len(WORDS))
        del self.encoder  # of words; source words have no embedding either, because it is tied to that of the captions
        self.features = nn.Sequential(
            nn.Conv2d(3, 16, 4, stride=2, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
            nn.Conv2d(16, 32, 4, stride=2, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
            nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(),
        )  # fmt: skip
        self.places = nn.Parameter(0.1 * torch.randn(GRID**2, 64))

    def encode(self, source: Tensor, source_mask: Tensor) -> RecurrentMemory:
        annotations = self.features(source).flatten(2).transpose(1, 2) + self.places
        return self.build_memory(EncoderOutput(annotations, source_mask, annotations.mean(1, keepdim=True), cell=None))


def make_batch(scenes: list[Scene]) -> Batch:
    """Stack the pictures and pad the captions."""
    ids = [torch.tensor([BOS, *map(WORDS.index, scene.caption.split()), EOS]) for scene in scenes]
    target = nn.utils.rnn.pad_sequence(ids, batch_first=True, padding_value=PAD)
    pictures, cells = np.stack([scene.pixels for scene in scenes]), torch.ones(len(scenes), GRID**2, dtype=torch.bool)
    return Batch(torch.from_numpy(pictures), cells, target[:, :-1], target[:, 1:], target[:, 1:] != PAD)


def train(model: Captioner, updates: int, rng: np.random.Generator) -> Captioner:
    """Train on pictures that are drawn as they are needed."""
    optimizer = torch.optim.Adam(model.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=updates + 1, pct_start=0.1)
    for update in range(1, updates + 1):
        output = model(make_batch([draw_scene(TRAINING, rng) for _ in range(64)]))
        optimizer.zero_grad()
        (output.loss / output.tokens).backward()
        optimizer.step()
        schedule.step()
        if update % 100 == 0:
            typer.echo(f"update {update}: {output.nll / output.tokens:.3f} nats per word", err=True)
    return model.eval()


@torch.inference_mode()
def report(model: Captioner, name: str, scenes: list[Scene]) -> list[PictureAttention]:
    """Caption pictures by beam search, print how well, and return them with the attention of each word."""
    batch, longest = make_batch(scenes), torch.full((len(scenes),), 15)
    memory = model.encode(batch.source, batch.source_mask)
    beams = Search(SearchOptions(beam_size=5)).run(model.step, model.start(memory), memory, longest)
    references, captions, shares, drawn = [scene.caption for scene in scenes], [], list[float](), []
    for scene, [best] in zip(scenes, beams, strict=True):
        words, weights = [WORDS[index] for index in best.ids], best.alignment[: len(best.ids)].numpy()
        shares += map(np.dot, weights[[word in KINDS for word in words]], scene.inside)
        captions.append(" ".join(words))
        drawn.append(PictureAttention(scene.pixels, words, weights.reshape(-1, GRID, GRID)))
    exact, share = np.mean(np.equal(captions, references)), np.mean(shares)
    area = np.mean([scene.inside for scene in scenes])
    print(f"{name}: exact match {exact:.1%}, weight of nouns on their shapes {share:.1%} (uniform {area:.1%})")
    print(format_scores(evaluate(captions, references, metrics=["bleu"])))
    return drawn


def examine(model: Captioner, rng: np.random.Generator, picture: str | None) -> None:
    """Caption twice 500 held-out pictures, measure how much of the attention of nouns lies on their shapes, and plot it."""
    drawn = [report(model, name, [draw_scene(pairs, rng) for _ in range(500)])[:2] for name, pairs in HELD_OUT.items()]
    if picture:
        draw_panels(list(chain(*drawn)), picture)


def main(updates: Count = 800, seed: Count = 1, plot: bool = False) -> None:
    """Train a model, and see how it captions pictures that it does not know."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    examine(train(Captioner(), updates, rng), rng, "attention.png" if plot else None)


if __name__ == "__main__":
    typer.run(main)
