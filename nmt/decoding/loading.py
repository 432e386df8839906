"""Load models from their folders, ready to translate."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Unpack

import torch

from nmt.bundle.folder import Bundle, choose_attention
from nmt.bundle.places import find_model
from nmt.decoding.options import CallOptions
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
    **options: Unpack[CallOptions],
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
        beam_size: hypotheses per sentence that search keeps; 1 is greedy search. Default: that of the (first) model's
            recipe, as for the next eight.
        length_penalty: alpha of Wu et al. 2016, eq. 14.
        coverage_penalty: beta of the same equation.
        max_ratio: longest output, as a multiple of the source length in tokens, plus 10.
        horizon: stop a search that no hypothesis could win by ending within so many tokens; None never does.
        prune: drop hypotheses that are so many nats less probable than the best; None drops none.
        mbr_samples: minimum Bayes risk decoding: draw so many translations and take the one most like all of them by chrF, or
            the `n_best` most like them; scores stay those of the model. None, or a beam size alone, is beam search.
        mbr_temperature: their softmax temperature.
        mbr_beta: beta of chrF there; smaller values make translations shorter.
        decoding: a `DecodingConfig`, which replaces these settings of the recipe, or a dict, which changes some of them.
        n_best: most hypotheses per line, up to the beam size or the number of samples; with `sampling`, that number. Default: 1.
        alignments: whether hypotheses carry their alignment. Default: True.
        posterior: whether the alignment is the posterior given the target tokens (see `posterior_alignment`), not the
            attention; it takes a second pass with many output layers per token. Default: False.
        replace_unknown: translations of source words, to replace unknown tokens of the output. Each is replaced by the
            translation of the source word with the largest attention weight, or by that word itself if it has no translation;
            `{}` copies all. Default: None, unknown tokens stay as SentencePiece's mark `⁇`.
        shortlist: which target tokens may translate which source tokens of the first model: a `Shortlist`, or a file written
            by `nmt shortlist`. Default: None, all tokens.
        precision: precision of matrix products: `fp32`, `bf16`, `fp16` (on GPUs), `int8` (on CPUs), or `auto`, which is bf16
            where that is faster and fp16 on older GPUs. Probabilities are always fp32. Default: `fp32`.
        batch_tokens: source tokens per batch times the beam size, padding included; more is faster and takes more memory.
            Default: None, which is 8192, and 65536 for search on a GPU.
        window: number of lines that are read ahead and sorted by length; 1 translates each line before reading the next.
            Default: 2000.
        max_source: longest source in tokens; longer lines are translated in parts. Default: 500.
        processes: most processes that decode batches in parallel, with one thread each; each needs working memory of its
            own. Default: 1.
        split_sentences: whether each sentence of a line is translated by itself, for models of single sentences. Scores,
            hypotheses and alignments are those of the line. Default: False.
        sampling: draw translations at random in this way. Default: None, beam search.
        to: the language to translate to, of a model with several (`to="gn"`). Default: None, the only one.

    Raises:
        DataError: a folder is not a model or is damaged or cannot be downloaded, or the target vocabularies differ.
        UsageError: an argument or option is invalid.
    """
    members = folders if isinstance(folders, Sequence) and not isinstance(folders, str | bytes) else [folders]
    paths = [find_model(as_path(folder, "A model folder")).absolute() for folder in members]
    saved = _SavedModels(paths, as_device(device), build_model, layer, head, shortlist, precision)
    return Translator(saved.load(), **options)


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


@dataclass(frozen=True)
class _SavedModels:
    """Where models are, and how they are to be loaded and packed: arguments of `load`."""

    paths: Sequence[Path]
    device: torch.device
    build_model: ModelBuilder
    layer: int | None
    head: int | None
    shortlist: Shortlist | str | Path | None
    precision: DecodingPrecision | Literal["auto"]

    def load(self) -> PackedModels:
        """Load and pack them; another process does so again."""
        chooses_attention = self.layer is not None or self.head is not None
        bundles = load_bundles(self.paths, self.device, build_model=self.build_model, layer=self.layer, head=self.head)
        packed = PackedModels.of(
            bundles, shortlist=self.shortlist, precision=self.precision, chooses_attention=chooses_attention
        )
        return replace(packed, reload=self.load)
