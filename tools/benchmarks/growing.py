"""Time one training update or one search, in a process of its own so that the peak memory is its own.

Tokens are random. A search may not end early, so every hypothesis has the full length whatever the untrained model prefers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from .shared_model import EMBEDDING, ENCODER, HIDDEN

if TYPE_CHECKING:
    import torch

    from nmt.model.recurrent import RecurrentModel
    from nmt.runtime.arguments import PrecisionName

DEFAULT = {"source": 25, "batch": 16, "vocabulary": 8000, "beam": 5}
AXES = {
    "source": (25, 50, 100, 250, 500, 1000),
    "batch": (1, 4, 16, 64, 256),
    "vocabulary": (2000, 8000, 16_000, 32_000, 64_000),
    "beam": (1, 2, 5, 12, 24),
}
TARGET = 25
"""Target tokens per sentence, EOS included. It does not follow the source length, so that only one axis grows at a time."""


def random_model(vocabulary: int, device: str) -> RecurrentModel:
    import torch

    from nmt import recipe
    from nmt.model.recurrent import RecurrentModel

    torch.manual_seed(1)
    config = recipe.RecurrentModelConfig(
        embedding=EMBEDDING,
        tie="none",
        encoder=recipe.EncoderConfig(hidden=ENCODER),
        attention=recipe.AttentionConfig(score=recipe.AdditiveScoreConfig(size=HIDDEN)),
        decoder=recipe.DecoderConfig(hidden=HIDDEN, readout=recipe.TanhReadoutConfig(size=HIDDEN)),
    )
    return RecurrentModel(config, source_size=vocabulary, target_size=vocabulary).to(device)


def random_ids(rows: int, length: int, vocabulary: int) -> list[list[int]]:
    """Random sentences without special tokens, one shorter than `length` because EOS is added to them."""
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
    trace: str | None = None,
    **_: int,
) -> dict[str, Any]:
    """Seconds of updates on one batch of sentences of equal length."""
    import torch

    from nmt.data.batching import make_batch
    from nmt.fast import accelerate, is_compiled
    from nmt.recipe import AdamConfig
    from nmt.runtime.device import autocast, choose_device, choose_precision
    from nmt.training.optim import build_optimizer

    from .worker import timed

    torch_device = choose_device(device)
    compiles = is_compiled("auto", torch_device)
    model = accelerate(random_model(vocabulary, torch_device.type), compiles=compiles).train()
    optimizer = build_optimizer(AdamConfig(), model)
    pairs = zip(random_ids(batch, source, vocabulary), random_ids(batch, TARGET, vocabulary), strict=True)
    sentences = make_batch(list(pairs)).to(torch_device)
    resolved = choose_precision(precision, torch_device)

    def update() -> None:
        with autocast(resolved, torch_device):
            output = model(sentences)
        torch.autograd.backward(output.loss / output.tokens)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return {"seconds": timed(update, windows, torch_device.type, trace), **_device_peak(torch_device)}


def search(
    source: int,
    batch: int,
    vocabulary: int,
    beam: int,
    precision: PrecisionName,
    device: str,
    windows: int,
    trace: str | None = None,
) -> dict[str, Any]:
    """Seconds of beam searches over one batch, including encoding."""
    import torch

    from nmt.data.batching import pad
    from nmt.decoding.batch_decoder import CHECK_EVERY
    from nmt.decoding.ensemble import Ensemble
    from nmt.fast import pack_search
    from nmt.runtime.device import choose_device, choose_precision
    from nmt.search import Search, SearchOptions
    from nmt.text.subwords import BOS, EOS, PAD

    from .worker import timed

    torch_device = choose_device(device)
    ensemble = Ensemble(
        [random_model(vocabulary, torch_device.type)],
        same_source=True,
        precision=choose_precision(precision, torch_device),
    )
    source_ids = pad([[*ids, EOS] for ids in random_ids(batch, source, vocabulary)]).to(torch_device)
    lengths = torch.full((batch,), TARGET)
    options = SearchOptions(
        beam_size=beam,
        bos=BOS,
        eos=EOS,
        forbid=(PAD, BOS, EOS),
        device=torch_device,
        check_every=1 if torch_device.type == "cpu" else CHECK_EVERY,
    )
    search = pack_search(Search(options))

    def run() -> None:
        memory = ensemble.encode([source_ids])
        search.run(ensemble.step, ensemble.start(memory), memory, lengths)

    with ensemble.evaluating():
        return {"seconds": timed(run, windows, torch_device.type, trace), **_device_peak(torch_device)}


def _device_peak(device: torch.device) -> dict[str, float]:
    """Peak memory of the accelerator in MiB, where there is one."""
    import torch

    return {"device_peak": torch.cuda.max_memory_allocated() / 2**20} if device.type == "cuda" else {}
