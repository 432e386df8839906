"""Load models from their folders, ready to translate."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch

from nmt.bundle.folder import Bundle, choose_attention
from nmt.bundle.places import find_model
from nmt.decoding.packed import PackedModels
from nmt.decoding.shortlist import Shortlist
from nmt.decoding.translator import Translator
from nmt.model.build import build_model
from nmt.model.interface import ModelBuilder
from nmt.runtime.arguments import as_path
from nmt.runtime.device import DecodingPrecision, as_device

Folder = str | os.PathLike[str]


def load(
    folders: Folder | Sequence[Folder],
    device: str | torch.device = "auto",
    *,
    build_model: ModelBuilder = build_model,
    layer: int | None = None,
    head: int | None = None,
    shortlist: Shortlist | str | Path | None = None,
    precision: DecodingPrecision | Literal["auto"] = "fp32",
    **options: Any,
) -> Translator:
    """Load a model, or an ensemble of several.

        translator = nmt.load("runs/mine", beam_size=10)  # or "model.zip", or "hf:owner/name"
        translator.translate("A man is riding a horse.").text
        translator.translate(["A cat.", "Two dogs."], n_best=3)

    The translator can be sent to another process (`multiprocessing` with `spawn`), which loads the folders again. After a fork
    of a process that has translated, the child computes with one thread.

    Args:
        folders: a model folder as `nmt train` makes it, a zip as `nmt export` does, or a model on the Hugging Face hub,
            `hf:owner/name[@revision]`; or several for an ensemble, which averages their probabilities. The models of an
            ensemble need the same target vocabulary; their source subwords may differ.
        device: `auto` (the GPU if there is one), `cpu`, `cuda`, ...
        build_model: makes the model of a recipe, as in `nmt.train`. Default: the models of this toolkit.
        layer: the decoder layer, from 1, whose attention is the alignment of the Transformers among the models. Default: the
            recipe's `alignment_layer`.
        head: the head of that layer, from 1. Default: the mean of its heads; if no layer is given either, the recipe's
            `alignment_head`.
        shortlist: which target tokens may translate which source tokens of the first model: a `Shortlist`, or a file written
            by `nmt shortlist`. Default: None, all tokens.
        precision: precision of matrix products: `fp32`, `bf16`, `fp16` (on GPUs), `int8` (on CPUs), or `auto`, which is bf16
            where that is faster and fp16 on older GPUs. Probabilities are always fp32. Default: `fp32`.
        options: those of `nmt.DecodingOptions`: `beam_size=10`, `n_best=3`, `to="de"`, ...; `help(nmt.DecodingOptions)` lists them.

    Raises:
        DataError: a folder is not a model or is damaged or cannot be downloaded, or the target vocabularies differ.
        UsageError: an argument or option is invalid.
    """
    members = folders if isinstance(folders, Sequence) and not isinstance(folders, str | bytes) else [folders]
    paths = [find_model(as_path(folder, "A model folder")).absolute() for folder in members]
    reload = partial(_load_packed, paths, as_device(device), build_model, layer, head, shortlist, precision)
    return Translator(replace(reload(), reload=reload), **options)


def load_bundles(
    folders: Iterable[Path],
    device: str | torch.device,
    *,
    build_model: ModelBuilder = build_model,
    layer: int | None = None,
    head: int | None = None,
) -> list[Bundle]:
    """Load models that are not packed yet; arguments and errors are those of `load`."""
    device = as_device(device)
    bundles = [Bundle.load(folder, device, build_model=build_model) for folder in folders]
    return choose_attention(bundles, layer, head)


def _load_packed(
    paths: Sequence[Path],
    device: torch.device,
    build_model: ModelBuilder,
    layer: int | None,
    head: int | None,
    shortlist: Shortlist | str | Path | None,
    precision: DecodingPrecision | Literal["auto"],
) -> PackedModels:
    """Load and pack models, with the arguments of `load`."""
    bundles = load_bundles(paths, device, build_model=build_model, layer=layer, head=head)
    chooses_attention = layer is not None or head is not None
    return PackedModels.of(bundles, shortlist=shortlist, precision=precision, chooses_attention=chooses_attention)
