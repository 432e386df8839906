"""The posterior alignment against its definition: every source position read alone, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from torch import Tensor

from nmt.data.batching import Batch, make_batch
from nmt.data.subwords import PAD
from nmt.decoding import posterior
from nmt.decoding.posterior import posterior_alignment
from nmt.decoding.translator import Translator
from nmt.model.attention import Memory
from nmt.model.decoder import UpdateThenAttend
from nmt.model.seq2seq import Seq2Seq
from tests.decoding.test_translator import LINES, MODELS, bundle

TARGETS = LINES[::-1]
ATTENTIVE = [name for name in MODELS if bundle(name).recipe.model.attention.score.kind != "none"]


def batch_of(name: str) -> Batch:
    member = bundle(name)
    pairs = [(member.source.encode(x), member.target.encode(y)) for x, y in zip(LINES, TARGETS, strict=True) if x and y]
    return make_batch(sorted(pairs, key=lambda pair: sum(map(len, pair)))[:3])


@contextmanager
def reading_alone(model: Seq2Seq, place: int) -> Iterator[None]:
    """Within it the model's attention has all its weight on one place."""
    attention = model.decoder.attention

    def alone(_: object, asked: tuple[Tensor, Tensor, Memory], __: object) -> tuple[Tensor, Tensor]:
        memory = asked[2]
        heads = memory.annotations[:, place].reshape(-1, memory.heads, memory.annotations.shape[-1])
        weights = torch.zeros(len(heads), memory.mask.shape[1])
        return heads.flatten(1), weights

    handle = attention.register_forward_hook(alone)
    try:
        yield
    finally:
        handle.remove()


def by_definition(model: Seq2Seq, batch: Batch) -> Tensor:
    """alpha_tj p(y_t | y_<t, c_t = h_j), scaled; every position has a step of its own."""
    memory, state = model.encode(batch.source, batch.source_mask)
    rows = []
    for fed, wanted in zip(batch.target_in.unbind(1), batch.target_out.unbind(1), strict=True):
        chances = []
        for place in range(batch.source.shape[1]):
            with reading_alone(model, place):
                readout, _, _ = model.step(fed, state, memory)
            every = model.logits(readout).softmax(-1)
            chances.append(every.gather(1, wanted.unsqueeze(1)).squeeze(1))
        _, weights, state = model.step(fed, state, memory)
        joint = weights * torch.stack(chances, 1)
        rows.append(joint / joint.sum(1, keepdim=True).clamp_min(1e-30))
    return torch.stack(rows, 1) * (batch.target_out != PAD).unsqueeze(-1)


@pytest.mark.parametrize(("name", "at_once"), [*((name, 2**20) for name in ATTENTIVE), (ATTENTIVE[0], 1)])
def test_it_is_attention_times_what_each_position_says(
    name: str, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(posterior, "LEAST", 1e-12)
    monkeypatch.setattr(posterior, "_LOGITS_AT_ONCE", at_once)
    model, batch = bundle(name).model.eval(), batch_of(name)
    with torch.inference_mode():
        found = posterior_alignment(model, batch)
        _, attention = model(batch.source, batch.source_mask, batch.target_in)
        monkeypatch.setattr(UpdateThenAttend, "unroll", UpdateThenAttend.unroll_with_attention)  # asks for each step
        wanted = by_definition(model, batch)
    torch.testing.assert_close(found, wanted, atol=2e-5, rtol=0)
    real = batch.target_out != PAD
    looked = attention.sum(-1) > 0
    assert found.sum(-1)[real & looked].tolist() == pytest.approx([1.0] * int((real & looked).sum()), abs=1e-4)
    assert not found[~real].any()
    assert (found - attention)[real].abs().max() > 1e-3  # the words tell something


@pytest.mark.parametrize("name", ATTENTIVE[:3])
def test_leaving_out_what_is_hardly_attended_to_changes_little(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, batch = bundle(name).model.eval(), batch_of(name)
    with torch.inference_mode():
        some = posterior_alignment(model, batch)
        monkeypatch.setattr(posterior, "LEAST", 1e-12)
        every = posterior_alignment(model, batch)
    torch.testing.assert_close(some, every, atol=0.05, rtol=0)


def test_a_translator_gives_it_for_known_and_for_found_translations() -> None:
    member = bundle(ATTENTIVE[0])
    plain, asked = Translator([member]), Translator([member], posterior=True)
    for one, other in zip(plain.translate(LINES), asked.translate(LINES), strict=True):
        assert (one.text, one.score) == (other.text, other.score)
        again = next(asked.score([(other.source, other.hypotheses[0].ids)])).hypotheses[0].alignment
        mine = other.hypotheses[0].alignment
        assert mine.shape == one.hypotheses[0].alignment.shape
        torch.testing.assert_close(mine, again[: len(mine)], atol=1e-5, rtol=0)
    for one, other in zip(
        plain.score(zip(LINES, TARGETS, strict=True)), asked.score(zip(LINES, TARGETS, strict=True)), strict=True
    ):
        assert one.hypotheses[0].score == other.hypotheses[0].score


def test_an_ensemble_shows_the_mean_of_its_members() -> None:
    member = bundle(ATTENTIVE[0])
    alone, twice = (next(Translator([member] * n, posterior=True).score([(LINES[0], TARGETS[0])])) for n in (1, 2))
    torch.testing.assert_close(alone.hypotheses[0].alignment, twice.hypotheses[0].alignment, atol=1e-6, rtol=0)
