"""A network that draws with a window of attention: DRAW (Gregor et al. 2015), on the pictures of `shapes.py`.

    r_t = read(x, x - sigmoid(c_{t-1}), h^dec_{t-1})     what the window shows of the picture, and of what the canvas lacks
    h^enc_t = LSTM(h^enc_{t-1}, [r_t, h^dec_{t-1}]),  z_t ~ N(mu(h^enc_t), sigma(h^enc_t))
    h^dec_t = LSTM(h^dec_{t-1}, z_t),  c_t = c_{t-1} + write(h^dec_t)

The attention of translation weighs every position. This one is a grid of N x N Gaussian filters, whose place, distance and width the
decoder chooses at each step. To invent a picture, z_t is drawn from N(0, 1) and nothing is read.
"""

from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import torch
import typer
from matplotlib.patches import Rectangle
from shapes import PAIRS, Count, draw_scene
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, binary_cross_entropy_with_logits

SIDE, FILTERS, STEPS, HIDDEN, LATENT, BATCH = 24, 5, 10, 128, 16, 64  # side of a picture, N, T, and sizes


def draw_pictures(count: int, rng: np.random.Generator) -> Tensor:
    """Pictures [B 3 SIDE SIDE] of two shapes, half as large as in `shapes.py`, on clean paper."""
    pixels = np.stack([draw_scene(PAIRS, rng).pixels for _ in range(count)])
    return avg_pool2d(torch.from_numpy(np.where(pixels.min(1, keepdims=True) > 0.75, np.float32(1), pixels)), 2)


class Window(NamedTuple):
    """A grid of N x N Gaussian filters (3.2): F_Y and F_X [B 1 N SIDE], gamma [B 1 1 1], and (g_X, g_Y, side of the grid) [B 3]."""

    rows: Tensor
    columns: Tensor
    intensity: Tensor
    box: Tensor


def choose_window(values: Tensor) -> Window:
    """The window of five outputs of the decoder. Where they are 0, it is as large as the picture."""
    x, y, variance, stride, intensity = values[:, :, None, None, None].unbind(1)
    stride, x, y = (SIDE - 1) / (FILTERS - 1) * stride.exp(), (SIDE + 1) / 2 * (x + 1), (SIDE + 1) / 2 * (y + 1)
    offsets, pixels = torch.arange(FILTERS).unsqueeze(1) - (FILTERS - 1) / 2, torch.arange(1, SIDE + 1)
    rows, columns = (  # row i is a Gaussian around mu_i = g + (i - N/2 - 0.5) delta, and sums to 1
        (-((pixels - center - offsets * stride) ** 2) / (2 * variance.exp())).softmax(-1) for center in (y, x)
    )
    return Window(rows, columns, intensity.exp(), torch.stack([x, y, stride * (FILTERS - 1)], 1).flatten(1))


class Drawing(NamedTuple):
    """c_0 to c_T [B 3 SIDE SIDE], before the sigmoid, the windows of each step, and sum_t KL(Q(z_t) || N(0, 1)) [B]."""

    canvases: list[Tensor]
    windows: list[dict[str, Window]]
    divergence: Tensor


class Draw(nn.Module):
    """The network, with an LSTM that reads and one that writes."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = nn.LSTMCell(2 * 3 * FILTERS**2 + HIDDEN, HIDDEN), nn.LSTMCell(LATENT, HIDDEN)
        self.latent, self.stroke = nn.Linear(HIDDEN, 2 * LATENT), nn.Linear(HIDDEN, 3 * FILTERS**2)
        self.reading, self.writing = nn.Linear(HIDDEN, 5), nn.Linear(HIDDEN, 5)
        self.blank = nn.Parameter(torch.full((3, 1, 1), 2.0))  # c_0

    def read(self, picture: Tensor, error: Tensor, hidden: Tensor) -> tuple[Tensor, Window]:
        """gamma [F_Y x F_X^T, F_Y x^ F_X^T] (3.3)."""
        window = choose_window(self.reading(hidden))
        return window.intensity * (window.rows @ torch.cat([picture, error], 1) @ window.columns.mT), window

    def write(self, hidden: Tensor) -> tuple[Tensor, Window]:
        """1/gamma F_Y^T w F_X, where w is the stroke (3.3)."""
        window, stroke = choose_window(self.writing(hidden)), self.stroke(hidden).view(-1, 3, FILTERS, FILTERS)
        return window.rows.mT @ stroke @ window.columns / window.intensity, window

    def forward(self, picture: Tensor | None, count: int) -> Drawing:
        """Draw these pictures, or invent some."""
        encoder = decoder = (torch.zeros(count, HIDDEN), torch.zeros(count, HIDDEN))
        canvases, divergence = [self.blank.expand(count, 3, SIDE, SIDE)], torch.zeros(count)
        steps = [dict[str, Window]() for _ in range(STEPS)]
        for windows in steps:
            mean, log_deviation = torch.zeros(2, count, LATENT)
            if picture is not None:
                glimpse, windows["read"] = self.read(picture, picture - canvases[-1].sigmoid(), decoder[0])
                encoder = self.encoder(torch.cat([glimpse.flatten(1), decoder[0]], 1), encoder)
                mean, log_deviation = self.latent(encoder[0]).chunk(2, 1)
            divergence = divergence + (mean**2 + (2 * log_deviation).exp() - 1 - 2 * log_deviation).sum(1) / 2
            decoder = self.decoder(mean + log_deviation.exp() * torch.randn_like(mean), decoder)
            stroke, windows["written"] = self.write(decoder[0])
            canvases.append(canvases[-1] + stroke)
        return Drawing(canvases, steps, divergence)


def score(canvas: Tensor, picture: Tensor) -> Tensor:
    """-log D(x | c) of each picture in nats (2.2): the cross-entropy of its colors, which count as probabilities, and sigmoid(c)."""
    return binary_cross_entropy_with_logits(canvas, picture, reduction="none").flatten(1).sum(1)


def train(model: Draw, updates: int, rng: np.random.Generator) -> None:
    """Train on pictures that are made as they are needed."""
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for update in range(1, updates + 1):
        picture = draw_pictures(BATCH, rng)
        drawing = model(picture, BATCH)
        loss = (score(drawing.canvases[-1], picture) + drawing.divergence).mean()  # at least -log p(x)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        if update % 100 == 0:
            typer.echo(f"update {update}: at most {loss:.1f} nats per picture", err=True)


def plot(model: Draw, picture: Tensor, path: str) -> None:
    """Two rows per picture: its reading step by step, and an invented one. Blue is where the window reads, red where it writes."""
    drawings, count = [model(picture, len(picture)), model(None, len(picture))], len(picture)
    figure, axes = plt.subplots(2 * count, STEPS + 1, figsize=(STEPS + 1, 2 * count), layout="constrained")
    plt.setp(axes, xticks=[], yticks=[])
    for index, panels in enumerate(axes):
        drawing, row = drawings[index // count], index % count
        panels[0].imshow((drawing.canvases[0].sigmoid() if index >= count else picture)[row].permute(1, 2, 0).numpy())
        for step, axis in enumerate(panels[1:]):
            axis.imshow(drawing.canvases[step + 1][row].sigmoid().permute(1, 2, 0).numpy())
            for kind, window in drawing.windows[step].items():
                x, y, side = window.box[row].tolist()
                corner, color = (x - 1 - side / 2, y - 1 - side / 2), {"read": "deepskyblue", "written": "tomato"}[kind]
                axis.add_patch(Rectangle(corner, side, side, fill=False, color=color))
    figure.savefig(path, dpi=100)


def main(updates: Count = 1500, seed: Count = 1, picture: bool = False) -> None:
    """Train, print the bound of 500 new pictures, and draw two of them and two invented ones step by step."""
    torch.manual_seed(seed)
    rng, model = np.random.default_rng(seed), Draw()
    train(model, updates, rng)
    with torch.inference_mode():
        pictures = draw_pictures(500, rng)
        drawing = model(pictures, 500)
        colors, kl = score(drawing.canvases[-1], pictures).mean(), drawing.divergence.mean()
        copy = score(pictures.logit(1e-6), pictures).mean()
        print(f"At most {colors + kl:.1f} nats per picture: {colors:.1f} for colors (a copy: {copy:.1f}), KL {kl:.1f}.")
        if picture:
            plot(model, pictures[:2], "drawing.png")


if __name__ == "__main__":
    typer.run(main)
