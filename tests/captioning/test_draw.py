"""The network that draws with a window: its filters, its bound and its steps are those of the paper, and it learns."""

import re
from pathlib import Path

import draw
import numpy as np
import pytest
import torch
import typer
from draw import FILTERS, LATENT, SIDE, STEPS, Draw, choose_window
from torch.distributions import Bernoulli, Normal, kl_divergence
from typer.testing import CliRunner


def filters(center: float, stride: float, variance: float) -> np.ndarray:
    """F_X or F_Y of one window, by equations 19 to 26 of the paper, pixels counted from 1."""
    bank = np.zeros((FILTERS, SIDE))
    for i in range(1, FILTERS + 1):
        mean = center + (i - FILTERS / 2 - 0.5) * stride
        for a in range(1, SIDE + 1):
            bank[i - 1, a - 1] = np.exp(-((a - mean) ** 2) / (2 * variance))
        bank[i - 1] /= bank[i - 1].sum()
    return bank


def test_a_window_has_the_filters_of_the_paper() -> None:
    torch.manual_seed(1)
    values = 0.5 * torch.randn(3, 5)
    window = choose_window(values)
    for row, (x, y, variance, stride, intensity) in enumerate(values.double().tolist()):
        distance = (SIDE - 1) / (FILTERS - 1) * np.exp(stride)
        centers = [(SIDE + 1) / 2 * (x + 1), (SIDE + 1) / 2 * (y + 1)]
        for bank, center in zip((window.columns, window.rows), centers, strict=True):
            assert torch.allclose(bank[row, 0], torch.from_numpy(filters(center, distance, np.exp(variance))).float())
        assert window.intensity[row].item() == pytest.approx(np.exp(intensity))
        assert window.box[row].tolist() == pytest.approx([*centers, distance * (FILTERS - 1)], rel=1e-5)


def test_reading_and_writing_look_through_the_window() -> None:
    torch.manual_seed(1)
    model, hidden, picture, error = Draw(), torch.randn(2, draw.HIDDEN), *torch.rand(2, 2, 3, SIDE, SIDE)
    glimpse, window = model.read(picture, error, hidden)
    stroke, written = model.write(hidden)
    patch = model.stroke(hidden).view(2, 3, FILTERS, FILTERS)
    for row in range(2):
        rows, columns, intensity = window.rows[row, 0], window.columns[row, 0], window.intensity[row]
        for channel in range(3):
            assert torch.allclose(glimpse[row, channel], intensity * (rows @ picture[row, channel] @ columns.T))
            assert torch.allclose(glimpse[row, 3 + channel], intensity * (rows @ error[row, channel] @ columns.T))
            expected = written.rows[row, 0].T @ patch[row, channel] @ written.columns[row, 0] / written.intensity[row]
            assert torch.allclose(stroke[row, channel], expected, atol=1e-6)


def test_the_bound_is_that_of_the_distributions(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sum of KL(Q(z_t) || N(0, 1)) and of the cross-entropy of pixels, by torch.distributions."""
    torch.manual_seed(1)
    model, picture, latents = Draw(), torch.rand(2, 3, SIDE, SIDE), list[torch.Tensor]()
    model.latent.register_forward_hook(lambda _module, _inputs, output: latents.append(output))
    drawing = model(picture, 2)
    posteriors = [Normal(mean, deviation.exp()) for mean, deviation in (latent.chunk(2, 1) for latent in latents)]
    prior = Normal(torch.zeros(LATENT), torch.ones(LATENT))
    assert len(posteriors) == STEPS
    divergence = torch.stack([kl_divergence(posterior, prior).sum(1) for posterior in posteriors]).sum(0)
    assert torch.allclose(drawing.divergence, divergence, rtol=1e-4)
    pixels = Bernoulli(logits=drawing.canvases[-1], validate_args=False).log_prob(picture).sum((1, 2, 3))
    assert torch.allclose(draw.score(drawing.canvases[-1], picture), -pixels)


def test_the_bound_falls() -> None:
    torch.manual_seed(1)
    model, pictures, bounds = Draw(), draw.draw_pictures(64, np.random.default_rng(2)), list[float]()
    for updates in (1, 12):
        draw.train(model, updates, np.random.default_rng(1))
        with torch.inference_mode():
            drawing = model(pictures, 64)
        bounds.append(float((draw.score(drawing.canvases[-1], pictures) + drawing.divergence).mean()))
    assert bounds[1] < bounds[0] - 10


def test_the_program_prints_the_bound_and_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program = typer.Typer()
    program.command()(draw.main)
    ended = CliRunner().invoke(program, ["--updates", "1", "--picture"])
    assert ended.exit_code == 0
    total, colors, copy, divergence = map(float, re.findall(r"\d+\.\d+", ended.stdout))
    assert total == pytest.approx(colors + divergence, abs=0.11)
    assert copy < colors
    assert (tmp_path / "drawing.png").read_bytes().startswith(b"\x89PNG")
