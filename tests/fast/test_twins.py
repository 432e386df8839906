"""Fast models against the plain ones: every pair of settings, and what has no twin."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nmt.data.batching import pad
from nmt.decoding.ensemble import Ensemble
from nmt.decoding.shortlist import Shortlist
from nmt.errors import UsageError
from nmt.fast import accelerate, arithmetic, is_on, pack
from nmt.fast.linear import TokenIds
from nmt.fast.search import SearchModel
from nmt.model.attention import Attention, AttentionOutput
from nmt.model.interface import TranslationModel
from nmt.model.output import OutputLayer
from nmt.model.readout import TanhReadout
from nmt.model.recurrent import RecurrentModel
from nmt.model.scores import AdditiveScore
from nmt.model.transformer import TransformerModel
from nmt.runtime.device import autocast
from nmt.search import Hypothesis
from nmt.text.subwords import EOS, PAD
from tests.decoding.test_translator import LINES, bundle
from tests.fast.models import SIZE, assert_same, learned, random_model, random_transformer, search_results
from tests.machine import needs_bf16, needs_fast, needs_int8
from tests.model.cases import CASE_NAMES, CASES, tree_of
from tests.pairwise import Case, pairwise_cases
from tests.reference.settings import CELLS, ORDERS, READOUTS, small
from tests.search.searching import beam_search

ROUNDED = pairwise_cases(
    {
        "order": list(ORDERS),
        "cell": CELLS,
        "layers": [1, 2],
        "readout": READOUTS,
        "heads": [1, 2],
    }
)
"""What decides which matrices there are. Windows are left out: rounding may move a position over their edge."""
MODELS: list[Callable[[], RecurrentModel | TransformerModel]] = [
    *(partial(random_model, tree_of(case)) for case in CASES),
    partial(random_transformer, tie="all"),
    partial(random_transformer, norm="pre", tie="none", alignment_layer=3),
    partial(random_transformer, norm="pre", heads=4, alignment_head=2),
]
"""The models of the equations, and Transformers."""
every_model = pytest.mark.parametrize("build", MODELS, ids=[*CASE_NAMES, "post", "pre", "head"])


# --- the same results ---------------------------------------------------------------------------------------------


@needs_fast
@every_model
def test_accelerated_model_has_the_gradients_of_the_plain_one(build: Callable[[], RecurrentModel]) -> None:
    model = build()
    fast = accelerate(model)
    exact = learned(model)
    assert exact.keys() >= dict(model.named_parameters()).keys()
    assert_same(learned(fast), exact, 1e-9)
    model.float()
    assert_same(learned(fast), exact, 1e-4)


@needs_fast
@every_model
def test_packed_model_equals_the_plain_one(build: Callable[[], RecurrentModel]) -> None:
    model = build().float()
    expected = search_results(model)
    assert_same(search_results(pack(model, "fp32")), expected, 1e-4)


@needs_bf16
@pytest.mark.parametrize("build", [*(partial(random_model, small(**case)) for case in ROUNDED), random_transformer])
def test_packed_bf16_is_as_near_as_plain_bf16(build: Callable[[], RecurrentModel]) -> None:
    model = build().float()
    exact, packed = search_results(model), pack(model, "bf16")
    with autocast("bf16", torch.device("cpu")):
        ours, plain = search_results(packed), search_results(model)
    error, usual = (sum(float((each[name] - exact[name]).norm()) for name in exact) for each in (ours, plain))
    assert 0 < error <= 1.5 * usual


@needs_int8
@pytest.mark.parametrize("case", ROUNDED)
def test_packed_int8_is_near(case: Case) -> None:
    model = random_model(small(**case, annotation=8)).float()
    exact, rounded = search_results(model), search_results(pack(model, "int8"))
    differences = torch.cat([(rounded[name] - exact[name]).flatten() for name in exact if "log_probs" in name])
    assert 0 < differences.abs().mean() < 0.1


# --- one set of parameters ----------------------------------------------------------------------------------------


@needs_fast
@pytest.mark.parametrize("tie", ["none", "target", "all"])
def test_twin_shares_the_parameters(tie: str) -> None:
    model = random_model(small(tie=tie))
    fast = accelerate(model)
    assert fast is not model
    assert dict(fast.named_parameters()).keys() == dict(model.named_parameters()).keys()
    for name, weight in model.named_parameters():
        assert fast.get_parameter(name) is weight
    assert (fast.source_embedding is fast.target_embedding) == (tie == "all")
    assert (fast.output.weight is fast.target_embedding.weight) == (tie != "none")
    assert type(fast.output) is not OutputLayer
    assert type(model.output) is OutputLayer


# --- switched off -------------------------------------------------------------------------------------------------


def test_nmt_fast_0_switches_everything_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NMT_FAST", "0")
    assert not is_on()
    assert arithmetic() == "plain PyTorch"
    model = random_model(small()).float().train()
    assert accelerate(model) is model
    copied = pack(model, "fp32")
    assert [type(part) for part in copied.modules()] == [type(part) for part in model.modules()]
    assert not copied.training
    assert not any(weight.requires_grad for weight in copied.parameters())
    expected = search_results(copied)
    with torch.no_grad():
        for weight in model.parameters():
            weight.zero_()
    assert_same(search_results(copied), expected, 0)
    with pytest.raises(UsageError, match="NMT_FAST=0"):
        pack(model, "int8")


# --- search with a shortlist --------------------------------------------------------------------------------------


def translations(shortlist: Shortlist) -> list[list[Hypothesis]]:
    member = bundle("bahdanau")
    sources = pad([[*member.source.encode(line), EOS] for line in LINES])
    ensemble = Ensemble([member.model] * 2, same_source=True, precision="fp32", shortlist=shortlist)
    assert isinstance(ensemble.models[0], SearchModel) == is_on()
    with ensemble.evaluating():
        memory = ensemble.encode([sources] * 2)
        assert (memory.allowed is None) == is_on()
        lengths = (sources > PAD).sum(1)
        settings: dict[str, Any] = {"beam_size": 4, "n_best": 4, "max_lengths": lengths}
        return beam_search(ensemble.step, ensemble.start(memory), memory, **settings)


@needs_fast
def test_shortlist_gives_the_same_translations_packed_and_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    size = len(bundle("bahdanau").target)
    generator = torch.Generator().manual_seed(1)
    likely = torch.randint(260, size, (len(bundle("bahdanau").source), 3), generator=generator)
    shortlist = Shortlist(likely, torch.arange(270, 274), size)
    listed = translations(shortlist)
    monkeypatch.setenv("NMT_FAST", "0")
    masked = translations(shortlist)
    assert len({found.ids for ranked in listed for found in ranked}) > len(LINES)
    for ranked, expected in zip(listed, masked, strict=True):
        assert [(found.ids, found.finished) for found in ranked] == [(found.ids, found.finished) for found in expected]
        assert [found.score for found in ranked] == pytest.approx([found.score for found in expected], abs=1e-4)


# --- what has no twin ---------------------------------------------------------------------------------------------


class SquaredScore(AdditiveScore):
    """e_ij times itself."""

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        return super().forward(queries, keys).square()


class FlatAttention(Attention):
    """Every weight is halved."""

    def forward(self, *arguments: Any) -> AttentionOutput:
        attended = super().forward(*arguments)
        return AttentionOutput(attended.contexts / 2, attended.weights / 2)


class TokenReadout(TanhReadout):
    """Reads the token twice."""

    def forward(self, hidden: Tensor, embedded: Tensor, context: Tensor) -> Tensor:
        return super().forward(hidden, embedded, context) * embedded[..., :1]


class WarmOutput(OutputLayer):
    """softmax((W_o t + b) / 2)."""

    def forward(self, readouts: Tensor) -> Tensor:
        return super().forward(readouts) / 2

    def loss(self, readouts: Tensor, gold: Tensor, mask: Tensor, label_smoothing: float) -> tuple[Tensor, Tensor]:
        loss, gold_log_probs = super().loss(readouts, gold, mask, label_smoothing)
        return loss * 3, gold_log_probs


OWN: list[tuple[str, type[nn.Module], dict[str, Any]]] = [
    ("decoder.attention.score", SquaredScore, {}),
    ("decoder.attention", FlatAttention, {"order": "luong", "readout": "attentional"}),
    ("decoder.readout", TokenReadout, {"readout": "tanh"}),
    ("output", WarmOutput, {}),
]


@pytest.mark.parametrize(("place", "kind", "settings"), OWN)
def test_subclass_of_a_plain_class_keeps_its_behavior(
    place: str, kind: type[nn.Module], settings: dict[str, Any]
) -> None:
    model = random_model(small(**settings))
    usual = search_results(model)
    part = model.get_submodule(place)
    assert issubclass(kind, type(part))
    part.__class__ = kind
    fast, exact = accelerate(model), learned(model)
    assert type(fast.get_submodule(place)) is kind
    model.float()
    assert_same(learned(fast), exact, 1e-4)
    expected = search_results(model)
    packed = pack(model, "fp32")
    assert type(packed.get_submodule(place)) is kind
    assert_same(search_results(packed), expected, 1e-4)
    assert any((expected[name] - value).abs().max() > 1e-3 for name, value in usual.items())


@needs_fast
def test_embeddings_stay_where_a_custom_module_reads_them() -> None:
    model = random_model(small(readout="tanh")).float()
    assert isinstance(pack(model, "fp32").get_submodule("target_embedding"), TokenIds)
    model.decoder.readout.__class__ = TokenReadout
    assert not isinstance(pack(model, "fp32").get_submodule("target_embedding"), TokenIds)
    assert isinstance(pack(model, "fp32").get_submodule("source_embedding"), TokenIds)
    lexical = pack(random_model(small(readout="tanh", lexical=True)).float(), "fp32")
    assert isinstance(lexical.get_submodule("target_embedding"), TokenIds)
    assert not isinstance(lexical.get_submodule("source_embedding"), TokenIds)


class Bigrams(TranslationModel[Any, Any]):
    """A model that is not recurrent, of which nothing is packed."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(SIZE, SIZE)
        self.unused = nn.Linear(3, 2)


def test_other_model_is_copied_unchanged() -> None:
    model = Bigrams()
    copied = pack(model, "fp32")
    assert [type(part) for part in copied.modules()] == [Bigrams, nn.Embedding, nn.Linear]
    assert copied is not model
    with pytest.raises(UsageError, match="int8 needs"):
        pack(model, "int8")
