"""How time and memory grow: one training update or one search at a time, in a process of its own so that its peak is its own.

Words are random. An update reads targets of a given length; a search may not end early, so that every hypothesis has the
length asked for whatever the untrained model would say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from .shared_model import EMBEDDING, ENCODER, HIDDEN

if TYPE_CHECKING:
    import torch

    from nmt.cli.options import PrecisionName
    from nmt.model.recurrent import RecurrentModel

DEFAULT = {"source": 25, "batch": 16, "vocabulary": 8000, "beam": 5}
AXES = {
    "source": (25, 50, 100, 250, 500, 1000),
    "batch": (1, 4, 16, 64, 256),
    "vocabulary": (2000, 8000, 16_000, 32_000, 64_000),
    "beam": (1, 2, 5, 12, 24),
}
TARGET = 25
"""Pieces of every target, end mark included, whatever the source length: growth along one axis at a time."""


def random_model(vocabulary: int, device: str) -> RecurrentModel:
    import torch

    from nmt import recipe
    from nmt.model.recurrent import build_model

    torch.manual_seed(1)
    settings = recipe.ModelConfig(
        embedding=EMBEDDING,
        tie="none",
        encoder=recipe.EncoderConfig(hidden=ENCODER),
        attention=recipe.AttentionConfig(score=recipe.AdditiveScoreConfig(size=HIDDEN)),
        decoder=recipe.DecoderConfig(hidden=HIDDEN, readout=recipe.TanhReadoutConfig(size=HIDDEN)),
    )
    return build_model(settings, source_size=vocabulary, target_size=vocabulary).to(device)


def random_ids(rows: int, length: int, vocabulary: int) -> list[list[int]]:
    """Random pieces, none of which is a mark; lines are shorter by the mark that is added to them."""
    import torch

    ids: list[list[int]] = torch.randint(4, vocabulary, (rows, length - 1)).tolist()
    return ids


def train_step(
    source: int,
    batch: int,
    vocabulary: int,
    precision: Literal["auto", "fp32", "bf16"],
    device: str,
    windows: int,
    **_: int,
) -> dict[str, Any]:
    """Seconds of updates on one batch of sentences of equal length."""
    import torch

    from nmt.data.batching import make_batch
    from nmt.device import autocast, choose_device, choose_precision
    from nmt.fast import accelerate

    from .worker import timed

    place = choose_device(device)
    model = accelerate(random_model(vocabulary, place.type)).train()
    optimizer = torch.optim.Adam(model.parameters())
    pairs = zip(random_ids(batch, source, vocabulary), random_ids(batch, TARGET, vocabulary), strict=True)
    words = make_batch(list(pairs)).to(place)
    digits = choose_precision(precision, place)

    def update() -> None:
        with autocast(digits, place):
            output = model(words)
        torch.autograd.backward(output.loss / output.tokens)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return {"seconds": timed(update, windows, place.type), **_device_peak(place)}


def search(
    source: int, batch: int, vocabulary: int, beam: int, precision: PrecisionName, device: str, windows: int
) -> dict[str, Any]:
    """Seconds of beam searches over one batch, encoding included."""
    import torch

    from nmt.data.batching import pad
    from nmt.data.subwords import BOS, EOS, PAD
    from nmt.decoding.ensemble import Ensemble
    from nmt.decoding.kernel_pool import KernelPool
    from nmt.decoding.search import beam_search
    from nmt.device import choose_device, choose_precision

    from .worker import timed

    place = choose_device(device)
    ensemble = Ensemble(
        [random_model(vocabulary, place.type)],
        same_source=True,
        precision=choose_precision(precision, place),
    )
    words = pad([[*ids, EOS] for ids in random_ids(batch, source, vocabulary)]).to(place)
    lengths = torch.full((batch,), TARGET, device=place)

    def find() -> None:
        memory = ensemble.encode([words])
        beam_search(
            ensemble.step,
            ensemble.start(memory),
            memory,
            batch=batch,
            beam_size=beam,
            max_lengths=lengths,
            bos=BOS,
            eos=EOS,
            forbid=(PAD, BOS, EOS),
            pool_type=KernelPool,
        )

    with ensemble.evaluating():
        return {"seconds": timed(find, windows, place.type), **_device_peak(place)}


def _device_peak(place: torch.device) -> dict[str, float]:
    """Peak memory of the accelerator in MiB, where there is one."""
    import torch

    return {"device_peak": torch.cuda.max_memory_allocated() / 2**20} if place.type == "cuda" else {}
