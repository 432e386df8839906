"""The posterior alignment against its definition: every source position read alone, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.data.batching import Batch, make_batch
from nmt.decoding import posterior
from nmt.decoding.posterior import posterior_alignment
from nmt.decoding.translator import Translator
from nmt.errors import UsageError
from nmt.fast import pack
from nmt.model.attention import AttentionMemory, AttentionOutput
from nmt.model.interface import TranslationModel
from nmt.model.recurrent import RecurrentModel
from nmt.model.scores import AdditiveScore
from nmt.text.subwords import PAD
from tests.decoding.test_translator import LINES, MODELS, bundle

TARGETS = LINES[::-1]
ATTENTIVE = [name for name in MODELS if name != "no-attention"]


def batch_of(name: str) -> Batch:
    member = bundle(name)
    pairs = [(member.source.encode(x), member.target.encode(y)) for x, y in zip(LINES, TARGETS, strict=True) if x and y]
    return make_batch(sorted(pairs, key=lambda pair: sum(map(len, pair)))[:2])


@contextmanager
def reading_alone(model: RecurrentModel, position: int) -> Iterator[None]:
    """Within it the model's attention has all its weight on one position."""

    def alone(_: object, given: tuple[Tensor, Tensor, AttentionMemory, object], __: object) -> AttentionOutput:
        memory = given[2]
        contexts = memory.annotations[..., position, :].flatten(1)  # of all heads side by side
        return AttentionOutput(contexts.unsqueeze(1), torch.zeros(len(contexts), 1, memory.mask.shape[1]))

    handle = model.decoder.attention.register_forward_hook(alone)
    try:
        yield
    finally:
        handle.remove()


def by_definition(model: RecurrentModel, batch: Batch) -> Tensor:
    """alpha_tj p(y_t | y_<t, c_t = h_j), scaled; every position has a step of its own."""
    memory = model.encode(batch.source, batch.source_mask)
    state, rows, alignment = model.start(memory), torch.arange(len(batch.source)), []
    for tokens, gold in zip(batch.target_in.unbind(1), batch.target_out.unbind(1), strict=True):
        probabilities = []
        for position in range(batch.source.shape[1]):
            with reading_alone(model, position):
                log_probs = model.step(tokens, state, memory, rows).log_probs
            probabilities.append(log_probs[:].exp().gather(1, gold.unsqueeze(1)).squeeze(1))
        step = model.step(tokens, state, memory, rows)
        joint = step.weights * torch.stack(probabilities, 1)
        alignment.append(joint / joint.sum(1, keepdim=True).clamp_min(1e-30))
        state = step.state
    return torch.stack(alignment, 1) * (batch.target_out != PAD).unsqueeze(-1)


@pytest.mark.parametrize("name", ATTENTIVE)
def test_it_is_attention_times_what_each_position_says(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posterior, "MIN_WEIGHT", 1e-12)
    model, batch = bundle(name).model.eval(), batch_of(name)
    assert isinstance(model, RecurrentModel)
    with torch.inference_mode():
        result, packed = (posterior_alignment(reader, batch) for reader in (model, pack(model, "fp32")))
        attention = model(batch).alignment
        expected = by_definition(model, batch)
    torch.testing.assert_close(result, expected, atol=2e-5, rtol=0)
    torch.testing.assert_close(packed, result, atol=1e-4, rtol=0)
    real = batch.target_out != PAD
    looked = attention.sum(-1) > 0
    assert result.sum(-1)[real & looked].tolist() == pytest.approx([1.0] * int((real & looked).sum()), abs=1e-4)
    assert not result[~real].any()
    assert (result - attention)[real].abs().max() > 1e-3  # the words tell something


def test_flat_attention_over_a_long_line_has_a_posterior_too() -> None:
    model = bundle("bahdanau", seed=9).model.eval()  # of this test alone
    assert isinstance(model, RecurrentModel)
    with torch.inference_mode():
        next(module for module in model.modules() if isinstance(module, AdditiveScore)).v.weight.zero_()
        lines = [([5, 6, 7] * length, [6, 7]) for length in (60, 600)]
        together, alone = (posterior_alignment(model, make_batch(pairs)) for pairs in (lines, lines[:1]))
    torch.testing.assert_close(together.sum(-1), torch.ones(2, 3), atol=1e-4, rtol=0)
    torch.testing.assert_close(together[:1, :, : alone.shape[2]], alone, atol=1e-5, rtol=0)
    assert (together[1] > 0).all()


def test_a_model_that_cannot_attend_to_one_position_is_refused() -> None:
    class Other(TranslationModel[Any, Any]):
        pass

    with pytest.raises(UsageError, match="A Other has no posterior alignment"):
        posterior_alignment(Other(), batch_of(ATTENTIVE[0]))


def test_a_translator_gives_it_for_known_translations_and_for_its_own() -> None:
    member = bundle(ATTENTIVE[0])
    plain, posterior = Translator([member]), Translator([member], posterior=True)
    for one, other in zip(plain.translate(LINES[5:]), posterior.translate(LINES[5:]), strict=True):
        assert (one.text, one.score) == (other.text, other.score)
        again = next(posterior.stream_scores([(other.source, other.hypotheses[0].ids)])).hypotheses[0].alignment
        mine = other.hypotheses[0].alignment
        assert mine.shape == one.hypotheses[0].alignment.shape
        torch.testing.assert_close(mine, again[: len(mine)], atol=1e-5, rtol=0)
    pairs = list(zip(LINES, TARGETS, strict=True))[5:]
    for one, other in zip(plain.score(pairs), posterior.score(pairs), strict=True):
        assert one.hypotheses[0].score == other.hypotheses[0].score
