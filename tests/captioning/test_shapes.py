"""The program that captions pictures: its pictures show what their captions say, and its model learns to read them."""

import re
import subprocess
import sys
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
import shapes
import torch
from matplotlib.colors import to_rgb
from matplotlib.image import imread
from panels import PictureAttention, draw_panels
from shapes import CELL, GRID, HELD_OUT, PAIRS, TRAINING, Captioner, Scene

from nmt.fast.pack import pack
from tests.commands import ROOT
from tests.search.searching import beam_search

CAPTION = re.compile(
    r"a (?P<size1>small )?(?P<color1>\w+) (?P<kind1>\w+) (?P<relation>above|below|left of|right of)"
    r" a (?P<size2>small )?(?P<color2>\w+) (?P<kind2>\w+)"
)


def scenes(count: int, pairs: list[tuple[tuple[str, str], tuple[str, str]]] = PAIRS, seed: int = 1) -> list[Scene]:
    rng = np.random.default_rng(seed)
    return [shapes.draw_scene(pairs, rng) for _ in range(count)]


def box(inside: np.ndarray) -> tuple[int, int, int]:
    """x, y and half the side of the box that cells are covered by, in pixels."""
    cells, places = inside.reshape(GRID, GRID), (np.arange(GRID) + 0.5) * CELL
    x, y = cells.sum(0) @ places / cells.sum(), cells.sum(1) @ places / cells.sum()
    return round(x), round(y), round(np.sqrt(cells.sum()) * CELL / 2)


def test_pictures_show_what_their_captions_say() -> None:
    relations = set()
    for scene in scenes(200):
        match = CAPTION.fullmatch(scene.caption)
        assert match
        boxes = [box(inside) for inside in scene.inside]
        for number, (x, y, radius) in enumerate(boxes, start=1):
            assert radius == (5 if match[f"size{number}"] else 9)
            color = to_rgb(shapes.COLORS[match[f"color{number}"]])
            assert np.abs(scene.pixels[:, y, x] - color).max() < 0.2
        (x1, y1, radius1), (x2, y2, radius2) = boxes
        right, down = x2 - x1, y2 - y1
        relation = (
            ("above" if down > 0 else "below") if abs(down) > abs(right) else "left of" if right > 0 else "right of"
        )
        assert relation == match["relation"]
        assert max(abs(right), abs(down)) > radius1 + radius2, "the shapes are apart"
        assert radius1 > radius2 or (radius1 == radius2 and relation in ("above", "left of"))
        outside = scene.inside.sum(0).reshape(GRID, GRID).repeat(CELL, 0).repeat(CELL, 1) == 0
        assert scene.pixels[:, outside].min() > 0.7, "the rest is nearly white"
        relations.add(relation)
    assert relations == set(shapes.RELATIONS)


def test_no_training_picture_shows_a_held_out_combination() -> None:
    new_pairs, new_shapes = HELD_OUT.values()
    assert not set(TRAINING) & {*new_pairs, *new_shapes}
    assert {*TRAINING, *new_pairs, *new_shapes} == set(PAIRS)
    known = {*chain(*TRAINING)}
    assert {*chain(*new_pairs)} <= known
    assert all({*pair} - known for pair in new_shapes)


def test_the_model_attends_to_cells_and_uses_every_parameter() -> None:
    torch.manual_seed(1)
    model, batch = Captioner(), shapes.make_batch(scenes(4))
    output = model(batch)
    assert output.alignment.shape == (*batch.target_out.shape, GRID**2)
    assert torch.allclose(output.alignment.sum(2), torch.ones(batch.target_out.shape))
    output.loss.backward()
    assert [name for name, weights in model.named_parameters() if weights.grad is None] == []


@pytest.fixture(scope="module")
def trained() -> Captioner:
    """A model that has seen few pictures, and reads them better than before."""
    torch.manual_seed(1)
    model, batch = Captioner(), shapes.make_batch(scenes(30, TRAINING, seed=2))
    before = model.eval()(batch)
    trained = shapes.train(model.train(), 18, np.random.default_rng(1))
    assert trained(batch).nll < 0.75 * before.nll
    return trained


@torch.inference_mode()
@pytest.mark.parametrize("is_packed", [False, True])
def test_search_scores_captions_as_forced_decoding_does(trained: Captioner, is_packed: bool) -> None:
    """Packed too: the toolkit's fast modules fit a model of one's own."""
    drawn = scenes(6, seed=3)
    batch = shapes.make_batch(drawn)
    model = pack(trained, "fp32") if is_packed else trained
    memory, lengths = model.encode(batch.source, batch.source_mask), torch.full((6,), 15)
    beams = beam_search(model.step, model.start(memory), memory, beam_size=3, max_lengths=lengths)
    for scene, [best] in zip(drawn, beams, strict=True):
        assert best.finished
        caption = " ".join(shapes.WORDS[index] for index in best.ids)
        forced = trained(shapes.make_batch([scene._replace(caption=caption)]))
        assert float(-forced.nll) == pytest.approx(best.log_probability, abs=1e-3)
        assert torch.allclose(forced.alignment[0], best.alignment, atol=1e-4)


def test_a_panel_is_bright_where_its_word_was_read(tmp_path: Path) -> None:
    """A white picture whose words were read in its corners, and a row that has fewer words."""
    words, weights, white = ["a", "b", "c", "d"], np.eye(4).reshape(4, 2, 2), np.ones((3, 20, 20))
    pictures = [PictureAttention(white, words, weights), PictureAttention(white, words[:1], 0 * weights[:1])]
    draw_panels(pictures, str(tmp_path / "a.png"))
    brightness = imread(tmp_path / "a.png")[:, :, :3].mean(2)
    rows = [list(np.array_split(row, 5, axis=1)) for row in np.array_split(brightness, 2)]
    for corner, panel in enumerate(rows[0][1:]):
        y, x = 0.3 + 0.4 * (corner // 2) + 0.07, 0.25 + 0.5 * (corner % 2)
        dark = (panel < 0.5).mean()
        assert 0.2 < dark < 0.8
        assert panel[int(y * len(panel)), int(x * panel.shape[1])] > 0.9
    assert rows[1][0].mean() > 0.85
    assert (rows[1][1] < 0.4).mean() > 0.5
    assert rows[1][2].min() == 1


RESULT = re.compile(
    r": exact match ([\d.]+)%, weight of nouns on their shapes ([\d.]+)% \(uniform ([\d.]+)%\)\nBLEU +([\d.]+)"
)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_program_learns_to_caption_and_where_to_look(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "recipes/captioning/shapes.py"), "--plot"]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert (tmp_path / "attention.png").read_bytes().startswith(b"\x89PNG")
    known, new = [[float(figure) for figure in figures] for figures in RESULT.findall(ended.stdout)]
    assert known[0] > 92
    assert known[1] > 60 > 6 * known[2]
    assert known[3] > 96
    assert new[3] > 70
