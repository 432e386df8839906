"""Translate the batches of a Ray dataset, one copy of the model per actor (extra `ray`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nmt.decoding.loading import Folder, load


class Translate:
    """Translates a column of text. `map_batches` of Ray Data runs it in actors, each of which loads the model once.

        lines = ray.data.read_parquet("data/")
        lines = lines.map_batches(nmt.ray.Translate, fn_constructor_args=["/models/mine"], concurrency=8, num_cpus=1, batch_size=500)

    An actor computes with as many threads as it has `num_cpus`, or on its GPU. All nodes must see the model by the same absolute path,
    unless it is `hf:owner/name`. The rows keep their order if `ray.data.DataContext.get_current().execution_options.preserve_order` is set.

    Args:
        folders: the model, or several for an ensemble, as `nmt.load` takes them.
        column: the column to translate.
        into: the column of the translations, which is added.
        options: all other arguments of `nmt.load`; its device is the GPU of the actor if it has one.
    """

    def __init__(
        self, folders: Folder | Sequence[Folder], *, column: str = "text", into: str = "translation", **options: Any
    ) -> None:
        self.translator = load(folders, **{"alignments": False, **options})
        self.column, self.into = column, into

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """The batch with a column of translations."""
        translations = self.translator.translate([str(line) for line in batch[self.column]])
        return {**batch, self.into: np.array([translation.text for translation in translations], dtype=object)}
