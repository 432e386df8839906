"""Models from their folders, ready to translate."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import Unpack

import torch

from nmt.arguments import as_path
from nmt.bundle import Bundle
from nmt.decoding.options import Options
from nmt.decoding.translator import Translator
from nmt.device import as_device
from nmt.model.interface import ModelBuilder
from nmt.model.recurrent import build_model

Folder = str | os.PathLike[str]


def load(
    folders: Folder | Sequence[Folder],
    device: str | torch.device = "auto",
    *,
    build_model: ModelBuilder = build_model,
    **options: Unpack[Options],
) -> Translator:
    """The model of a folder, ready to translate; of several folders, an ensemble.

        translator = nmt.load("runs/mine", decoding={"beam_size": 10})
        translator.translate("A man is riding a horse.").text
        [translation.text for translation in translator.translate(open("test.en"))]

    It can be sent to another process (`multiprocessing` with `spawn`), which loads the folders anew. A process forked from one
    that has translated computes with one thread, since threads do not outlive a fork.

    Args:
        folders: a model folder as `nmt train` makes it, or several, whose probabilities are averaged. These need the same
            target vocabulary; each may have source subwords of its own.
        device: `auto` (the GPU if there is one), `cpu`, `cuda`, ...
        build_model: makes the models of the recipes, as `nmt.train` did.
        decoding: beam size, penalties, longest output: `{"beam_size": 10}` is laid over what the (first) model's recipe says; a
            `Decoding` takes its place. Default: the recipe's.
        n_best: most hypotheses per line, up to the beam size; with `sampling`, so many are drawn. Default: 1.
        alignments: whether hypotheses carry their alignment. Default: True.
        posterior: whether that is what the target pieces tell of where they were read, rather than the attention before they
            are known (see `posterior_alignment`); it takes a second pass with many output layers per piece. Default: False.
        replace_unknown: translations of source words. Each unknown piece of a translation is replaced by that of the source
            word that it was read most from, or by this word itself where there is none: `{}` copies them all. Default: None,
            a piece's mark stays, `⁇` as SentencePiece writes it.
        shortlist: which target pieces may translate which source pieces of the first model, as the file that `nmt shortlist`
            writes, or read from it. Default: None, all may.
        precision: of the matrix products: `fp32`, `bf16`, `int8` (on CPUs), or `auto`, which is bf16 where the machine is fast
            at it; probabilities are always fp32. Default: `fp32`.
        batch_tokens: source pieces in a batch, counting padding and every place of the beam: memory against speed.
            Default: 8192.
        window: lines that are read ahead and sorted by length; with 1 each is answered before the next is read. Default: 2000.
        max_source: longest source in pieces; a line that is longer is translated in parts. Default: 500.
        processes: most processes of one thread that decode batches side by side, for what has several batches; each takes
            memory of its own for what it computes. Default: 1, all is done here.
        sampling: how translations are drawn. Default: None, the best are searched for.

    Raises:
        DataError: a folder is no model, or lacks or contradicts a part, or the target vocabularies differ.
        UsageError: an argument or option that cannot be.
    """
    listed = folders if isinstance(folders, Sequence) and not isinstance(folders, str | bytes) else [folders]
    paths = [as_path(folder, "A model folder").absolute() for folder in listed]
    place = as_device(device)
    translator = Translator([Bundle.load(path, place, build_model=build_model) for path in paths], **options)
    translator.reload = partial(load, paths, str(place), build_model=build_model, **options)
    return translator
