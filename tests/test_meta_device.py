"""Computing on a GPU waits for nothing, shown on the meta device: its tensors have a shape but no values, so reading one back raises.

A tensor that is made on the CPU by mistake raises too, by `OneDevice`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from nmt import recipe
from nmt.alignment.corpus_links import TokenLinks, splits_of
from nmt.bundle.folder import Bundle
from nmt.data.batching import make_batch
from nmt.data.encoded import encode_corpus
from nmt.decoding.ensemble import Ensemble
from nmt.fast import accelerate
from nmt.model.build import build_model
from nmt.model.interface import TranslationModel
from nmt.search import Hypothesis
from nmt.search.finished import BackPointers, FinishedHypotheses
from nmt.search.loop import Search
from nmt.search.options import SearchOptions
from nmt.training import update
from nmt.training.optim import Clock
from nmt.training.preparation import TrainingText
from nmt.training.update import TrainStep
from tests.model.cases import CASE_NAMES, CASES, tree_of
from tests.pairwise import Case
from tests.training import toy

META = torch.device("meta")
STEPS = 2
BEAM = SearchOptions(beam_size=4, n_best=2, prune=3.0)
PAIRS = [([4, 5], [4, 6]), ([5], [6]), ([7, 7], [])]
DROPOUT = {"embedding": 0.1, "word": 0.1, "annotations": 0.1, "recurrent": 0.1, "readout": 0.1}


class OneDevice(TorchDispatchMode):
    """A context in which every operation takes and makes tensors of one device, and none in fp64, which Metal has not.

    A number in a tensor may be on the CPU.
    """

    def __torch_dispatch__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        tensors = [leaf for leaf in tree_leaves((args, kwargs, result)) if isinstance(leaf, Tensor) and leaf.dim()]
        if function is torch.ops.aten._to_copy.default:  # a copy between devices is meant
            return result
        assert {tensor.device for tensor in tensors} <= {META}, f"{function} has a tensor on another device"
        assert torch.float64 not in {tensor.dtype for tensor in tensors}, f"{function} has a tensor in fp64"
        return result


def recurrent_config(case: Case) -> recipe.RecurrentModelConfig:
    return recipe.RecurrentModelConfig.model_validate(tree_of(case) | {"dropout": DROPOUT})


def transformer_config(norm: str) -> recipe.ModelConfig:
    tree: dict[str, Any] = {"embedding": 8, "feed_forward": 12, "heads": 2, "norm": norm, "tie": "all"}
    stacks = {"encoder": {"layers": 2}, "decoder": {"layers": 2}, "dropout": 0.1}
    return recipe.TransformerModelConfig.model_validate(tree | stacks)


def is_read_back(config: recipe.RecurrentModelConfig) -> bool:
    """Whether the lengths of the sources are read back once: PyTorch's LSTM gives its last cell only for packed sentences."""
    return config.decoder.bridge == "copy" and config.encoder.cell == "lstm" and not config.encoder.layer_norm


CONFIGS: dict[str, recipe.ModelConfig] = {
    f"{number}-{name}": config
    for number, (name, case) in list(enumerate(zip(CASE_NAMES, CASES, strict=True)))[::3]
    if not is_read_back(config := recurrent_config(case))
}
CONFIGS |= {f"transformer-{norm}": transformer_config(norm) for norm in ("pre", "post")}


def model_of(config: recipe.ModelConfig, device: torch.device = META) -> TranslationModel[Any, Any]:
    return build_model(config, source_size=9, target_size=9).to(device)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_loss_and_gradients_need_no_value(config: recipe.ModelConfig) -> None:
    model, batch = accelerate(model_of(config)).train(), make_batch(PAIRS).to(META)
    with OneDevice():
        output = model(batch, 0.1)
        torch.autograd.backward(output.loss / 7)
        assert output.alignment.shape == (3, 3, 3)
        assert {weight.device for weight in model.parameters() if weight.grad is not None} == {META}


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_steps_of_a_beam_search_need_no_value(config: recipe.ModelConfig) -> None:
    take_steps(config, BEAM)


@pytest.mark.parametrize("name", [next(iter(CONFIGS)), "transformer-pre"])
def test_steps_of_greedy_search_and_of_sampling_need_no_value(name: str) -> None:
    take_steps(CONFIGS[name], SearchOptions())
    for top_k in (None, 3):
        options = SearchOptions(temperature=0.9, top_k=top_k)
        take_steps(CONFIGS[name], options, uniform=torch.rand(3, STEPS, device=META))


def take_steps(
    config: recipe.ModelConfig,
    options: SearchOptions,
    uniform: Tensor | None = None,
    device: torch.device = META,
    watch: Callable[[], AbstractContextManager[object]] = OneDevice,
) -> None:
    """Search as far as the step before the one that looks at what has ended."""
    ensemble = Ensemble([model_of(config, device)], same_source=True, precision="fp32")
    batch, lengths, steps = make_batch(PAIRS).to(device), torch.full((3,), STEPS), []

    def record(back_pointers: BackPointers) -> list[list[Hypothesis]]:
        steps.extend(back_pointers.steps)
        return []

    options = replace(options, coverage_penalty=0.2, device=device, check_every=STEPS + 1)
    finished = FinishedHypotheses(options, lengths, batch.source_mask)  # reads the lengths, which are on the CPU
    with pytest.MonkeyPatch.context() as patch, torch.inference_mode(), watch():
        patch.setattr("nmt.search.loop.FinishedHypotheses", lambda *_: finished)
        patch.setattr(finished, "finalize", record)
        memory = ensemble.encode([batch.source])
        Search(options).run(ensemble.step, ensemble.start(memory), memory, lengths, uniform=uniform)
    assert len(steps) == STEPS


class SkippingAdam(torch.optim.AdamW):
    """What a fused optimizer does on a GPU: it is told by a tensor whether to skip the step. There is none on the meta device."""

    found_inf: Tensor

    def step(self, closure: Any = None) -> None:  # type: ignore[override] # without a closure
        assert self.found_inf.device == META
        del self.found_inf
        super().step()


@pytest.mark.parametrize(
    "training",
    [
        {},
        {"clip_norm": None, "normalization": "sentences", "accumulate": 2},
        {"scheduled_sampling": {"kind": "exponential", "base": 0.5}},
        {"guided_alignment": {"links": "train.align", "weight": 0.5}},
    ],
    ids=["plain", "accumulated", "sampled", "guided"],
)
def test_an_update_needs_no_value(training: Mapping[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(update, "autocast", lambda precision, device: nullcontext())
    monkeypatch.setattr(
        update, "build_optimizer", lambda config, model: SkippingAdam(model.parameters(), foreach=True, fused=False)
    )
    toy.write_reversal(tmp_path, pairs=40)
    monkeypatch.chdir(tmp_path)
    config = toy.recipe(tmp_path, training={**training, "label_smoothing": 0.1, "ema": 0.9})
    text = TrainingText.load(config)
    bundle = Bundle.fresh(config, *text.subwords(config))
    corpus = encode_corpus(text.train, bundle.source, bundle.target, None)
    bundle.model.to(META)
    links = None
    if text.links is not None:
        links = TokenLinks(text.links, corpus, bundle.source, bundle.target, splits_of(text.train))
    step = TrainStep(bundle, links, precision="fp32", device=META)
    step.skips_by_itself = True
    group = step.prepare(corpus, [np.arange(4, dtype=np.int32), np.arange(4, 9, dtype=np.int32)])
    stats = step.update(group, Clock(3, 0.1, 0.1, 0))
    assert stats.figures.device == META
    assert stats.tokens == sum(int(batch.target_mask.sum()) for batch in group.batches)
    with pytest.raises((NotImplementedError, RuntimeError)):
        stats.read()
