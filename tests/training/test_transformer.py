"""A Transformer learns, translates, scores and aligns through the public functions as recurrent models do."""

from __future__ import annotations

from pathlib import Path

import nmt
from tests.training.toy import recipe as toy_recipe
from tests.training.toy import write_reversal

MODEL = {"kind": "transformer", "embedding": 32, "heads": 2, "feed_forward": 64, "norm": "pre", "dropout": 0.1}
MODEL |= {"encoder": {"layers": 1}, "decoder": {"layers": 2}, "alignment_layer": 2}
TRAINING = {"epochs": 4, "validation": {"every": 40}}


def test_a_reversal_is_learned_and_its_alignment_is_anti_diagonal(tmp_path: Path) -> None:
    write_reversal(tmp_path)
    guided = TRAINING | {"guided_alignment": {"links": str(tmp_path / "train.align"), "weight": 2.0}}
    nmt.train(toy_recipe(tmp_path, training=guided, model=MODEL), tmp_path / "run", quiet=True, device="cpu")
    [hypothesis] = nmt.load(tmp_path / "run", "cpu").score(("a b c d", "d c b a")).hypotheses
    assert hypothesis.log_probability > -2.5
    assert hypothesis.alignment[:4].argmax(1).tolist() == [3, 2, 1, 0]
