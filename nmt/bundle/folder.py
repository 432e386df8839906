"""The model folder: recipe + subwords + weights, saved atomically and checked when loaded.

recipe.yaml            what the model is and how it was trained
source.model           SentencePiece model of the source
target.model           SentencePiece model of the target
weights.safetensors    parameters, with the format version and a digest in its metadata

A run folder also has data.json (`nmt.training.data_file`), which loading does not read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor
from torch.overrides import TorchFunctionMode

from nmt.bundle.places import REQUIRED, find_model
from nmt.errors import DataError, UsageError
from nmt.model.build import build_model
from nmt.model.interface import ModelBuilder, TranslationModel
from nmt.model.transformer import TransformerModel
from nmt.recipe import Recipe, TransformerModelConfig, dump_recipe, load_recipe
from nmt.runtime.arguments import as_path, check_counts
from nmt.runtime.device import torch_defaults
from nmt.runtime.files import write_atomically, write_content
from nmt.runtime.wording import counted
from nmt.text.normalization import Normalizer
from nmt.text.subwords import Subwords

FORMAT = 2
"""Of safetensors files: the only one that is read. Files of format 1 had no digest."""
RECIPE, SOURCE, TARGET, WEIGHTS = REQUIRED
_STAMP = "nmt_format"
"""Metadata of a safetensors file: the format and the SHA-256 of the file. One entry, as several come in any order."""
_BLANK = "0" * 64
"""Stands where the digest will be while it is taken."""
_BLOCK = 2**20
_FLOATS = ("F64", "F32", "F16", "BF16")
"""What weights may be stored as, in safetensors' names."""
_RENAMED = {"decoder.asking.": "decoder.query_recurrence.", "attention.each.": "attention.head_attention."}
"""Parts of the names of weights that were others when some files were written."""
_OWN_BUILDER = build_model


@dataclass(frozen=True)
class Bundle:
    """A model that can translate: the network and what it takes to read and write text with it."""

    recipe: Recipe
    source: Subwords
    target: Subwords
    model: TranslationModel[Any, Any]

    @classmethod
    def fresh(
        cls, recipe: Recipe, source: Subwords, target: Subwords, build_model: ModelBuilder = build_model
    ) -> Bundle:
        """A new model for this recipe; its first weights depend on the recipe's seed alone."""
        torch.manual_seed(recipe.seed)
        return cls(recipe, source, target, build_model(recipe.model, source_size=len(source), target_size=len(target)))

    @property
    def parameters(self) -> int:
        """The number of parameters, shared ones counted once."""
        return sum(parameter.numel() for parameter in self.model.parameters())

    @property
    def normalizer(self) -> Normalizer:
        """Brings text into the form that the model was trained on."""
        return Normalizer(self.recipe.data.normalization)

    def save(self, folder: str | Path) -> None:
        """Write the whole folder; each file is complete or absent whenever the program ends."""
        folder = as_path(folder, "The model folder")
        self.save_description(folder)
        save_tensors(weights_of(self.model), folder / WEIGHTS)

    def save_description(self, folder: Path) -> None:
        """Write all but the weights."""
        write_content(folder / RECIPE, dump_recipe(self.recipe))
        write_content(folder / SOURCE, self.source.serialized)
        write_content(folder / TARGET, self.target.serialized)

    @classmethod
    @torch_defaults()
    def load(
        cls,
        folder: str | Path,
        device: torch.device | str = "cpu",
        *,
        weights: bool = True,
        build_model: ModelBuilder = build_model,
    ) -> Bundle:
        """Read a model folder, or all but its weights; also a zip of `nmt export`, or a model on the hub (`hf:owner/name`).

        Whoever made it: nothing in it is run, no other file is opened (symbolic links are followed), and a model of this
        toolkit takes no memory for weights before the header of their file says that it holds just those that the recipe asks
        for. A `build_model` of one's own builds the whole model, once.

        Raises:
            DataError: it is no model folder, or lacks a part, or one is damaged or contradicts another; or it cannot be
                unpacked or downloaded.
            UsageError: the folder is no path, or `hf:` names no model.
        """
        folder = find_model(as_path(folder, "The model folder"))
        check_folder(folder, [RECIPE, SOURCE, TARGET, *([WEIGHTS] if weights else [])])
        try:
            recipe = load_recipe(folder / RECIPE, based=False)
        except UsageError as error:
            raise DataError(str(error)) from None
        source, target = Subwords.load(folder / SOURCE), Subwords.load(folder / TARGET)
        if recipe.model.tie == "all" and source.fingerprint != target.fingerprint:
            raise DataError(
                f"{folder} ties all embeddings, so {SOURCE} and {TARGET} must be the same, but they differ."
            )
        if not weights:
            bundle = cls.fresh(recipe, source, target, build_model)
        else:
            is_own = build_model is _OWN_BUILDER  # others may hold tensors that are no parameters, and so in no file
            with _without_values() if is_own else nullcontext():
                model = build_model(recipe.model, source_size=len(source), target_size=len(target))
            check_weights(model, folder / WEIGHTS)
            _load_weights(model, folder / WEIGHTS)
            bundle = cls(recipe, source, target, model)
        bundle.model.to(device).eval()
        return bundle


def check_layer_and_head(
    layer: int, head: int | None, config: TransformerModelConfig, stack: Literal["encoder", "decoder"]
) -> None:
    """Raise UsageError if a Transformer has no such layer in its encoder or decoder, or no such head, counted from 1."""
    layers = getattr(config, stack).layers
    check_counts({"layer": layer, "head": 1 if head is None else head})
    if layer > layers:
        raise UsageError(f"There is no layer {layer}: the {stack} has {counted(layers, 'layer')}.")
    if head is not None and head > config.heads:
        raise UsageError(f"There is no head {head}: each layer has {counted(config.heads, 'head')}.")


def choose_attention(bundles: Sequence[Bundle], layer: int | None, head: int | None) -> list[Bundle]:
    """The models; the Transformers among them share their weights, and have the alignment of another decoder layer or head.

    Args:
        bundles: the models.
        layer: the layer, from 1. None is the recipe's.
        head: the head, from 1. None is the mean of the layer's heads; if no layer is given either, the models stay as they are.

    Raises:
        UsageError: there is no Transformer, or one has no such layer or head.
    """
    if layer is None and head is None:
        return list(bundles)
    if not any(isinstance(bundle.model, TransformerModel) for bundle in bundles):
        raise UsageError(
            "Only the attention of a Transformer has layers and heads to choose from: "
            "a recurrent model has one alignment, the mean of its heads."
        )
    chosen = []
    for bundle in bundles:
        config, model = bundle.recipe.model, bundle.model
        if isinstance(config, TransformerModelConfig) and isinstance(model, TransformerModel):
            read_layer = config.alignment_layer if layer is None else layer
            check_layer_and_head(read_layer, head, config, "decoder")
            choice = {"alignment_layer": read_layer, "alignment_head": head}
            recipe = bundle.recipe.model_copy(update={"model": config.model_copy(update=choice)})
            bundle = replace(bundle, recipe=recipe, model=model.attending(read_layer, head))
        chosen.append(bundle)
    return chosen


@contextmanager
def _without_values() -> Iterator[None]:
    """A context in which a model is built of shapes alone, without memory for its weights."""
    with torch.device("meta"), _WithoutInitialisation():
        yield


class _WithoutInitialisation(TorchFunctionMode):
    """Skips draws from a normal distribution: for tensors without values torch would import its compiler to make them."""

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        arguments = kwargs or {}
        if function in (Tensor.normal_, torch.nn.init.normal_):
            return arguments.get("tensor", args[0] if args else None)
        return function(*args, **arguments)


def check_folder(folder: Path, needed: list[str]) -> None:
    """Raises DataError with what is wrong if the folder is not a model folder."""
    if not folder.is_dir():
        raise DataError(f"There is no model folder {folder}.")
    if missing := [name for name in needed if not (folder / name).is_file()]:
        unfinished = " (it appears with the first validation of a training run)" if WEIGHTS in missing else ""
        raise DataError(f"{folder} is no model folder: it lacks {', '.join(missing)}{unfinished}.")


def weights_of(model: torch.nn.Module) -> dict[str, Tensor]:
    """Parameters by name, a shared one once."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def check_weights(model: torch.nn.Module, path: Path) -> None:
    """Raise DataError unless the header of a file lists the model's weights, each in its shape, and nothing else."""
    expected = weights_of(model)
    with _open_tensors(path) as file:
        stored = {name: file.get_slice(stored_name) for name, stored_name in _present_names(file).items()}
        if stored.keys() != expected.keys():
            odd = sorted(stored.keys() ^ expected.keys())
            raise DataError(
                f"{path} does not belong to this recipe: {odd[0]} is in only one of them ({len(odd)} such names)."
            )
        for name, parameter in expected.items():
            shape, kind = stored[name].get_shape(), stored[name].get_dtype()
            if shape != list(parameter.shape):
                raise DataError(
                    f"{path} does not belong to this recipe: {name} is {shape} but should be {list(parameter.shape)}."
                )
            if kind not in _FLOATS:
                raise DataError(f"{path} is damaged: {name} holds {kind}, but weights are {', '.join(_FLOATS)}.")


def _load_weights(model: torch.nn.Module, path: Path) -> None:
    """Give a model the weights of a file that was checked, one at a time. The model may be on the meta device.

    Raises:
        DataError: the file is damaged, or a weight is infinite or not a number.
    """
    with _open_tensors(path) as file:
        _check_digest(path, file)
        names, values = _present_names(file), {}
        for name, parameter in model.named_parameters():
            stored = file.get_tensor(names[name])
            if not stored.isfinite().all():
                raise DataError(f"{path} is damaged: {name} holds values that are infinite or not numbers.")
            value = torch.empty(stored.shape, dtype=parameter.dtype).copy_(stored)
            values[parameter] = torch.nn.Parameter(value, requires_grad=parameter.requires_grad)
    for module in model.modules():
        for key, parameter in list(module.named_parameters(recurse=False, remove_duplicate=False)):
            setattr(module, key, values[parameter])  # what was shared still is


def _present_names(opened: Any) -> dict[str, str]:
    """The names of an opened file's tensors, by what they are called today."""
    names = {}
    for stored_name in opened.keys():  # noqa: SIM118 -- not a mapping
        name = stored_name
        for earlier, present in _RENAMED.items():
            name = name.replace(earlier, present)
        names[name] = stored_name
    return names


def save_tensors(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Write named tensors as safetensors, atomically, with a digest of the whole file."""
    metadata = {_STAMP: f"{FORMAT} {_BLANK}"}
    content = memoryview(save({name: tensor.cpu().contiguous() for name, tensor in tensors.items()}, metadata))
    digest = hashlib.sha256(content).hexdigest()
    header = bytes(content[:_BLOCK]).replace(_BLANK.encode(), digest.encode(), 1)  # metadata come first

    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:
            file.writelines([header, content[_BLOCK:]])

    write_atomically(path, write)


def load_tensors(path: Path) -> dict[str, Tensor]:
    """Named tensors of a safetensors file. Raises DataError if it is damaged or from a newer version."""
    with _open_tensors(path) as file:
        _check_digest(path, file)
        return {name: file.get_tensor(stored_name) for name, stored_name in _present_names(file).items()}


def _stamp(opened: Any) -> tuple[str, str]:
    """The format and the digest that an opened file says it has."""
    version, _, digest = (opened.metadata() or {}).get(_STAMP, "0").partition(" ")
    return version, digest


def _check_digest(path: Path, opened: Any) -> None:
    """Raise DataError if an opened file is not the one that was written."""
    _, stored = _stamp(opened)
    digest = hashlib.sha256()
    with path.open("rb") as file:
        digest.update(file.read(_BLOCK).replace(stored.encode(), _BLANK.encode(), 1))
        while block := file.read(_BLOCK):
            digest.update(block)
    if digest.hexdigest() != stored:
        raise DataError(f"{path} is damaged: its bytes are not those that were written. Copy or make it anew.")


@contextmanager
def _open_tensors(path: Path) -> Iterator[Any]:
    """A safetensors file of this format. Raises DataError if it is damaged, also while it is read, or from a newer version."""
    try:
        with safe_open(path, framework="pt") as file:
            version, _ = _stamp(file)
            if version != str(FORMAT):
                advice = "train the model anew" if version in ("0", "1") else "install a newer nmt"
                raise DataError(f"{path} has format {version}, but this nmt reads {FORMAT}: {advice}.")
            yield file
    except (OSError, MemoryError, SafetensorError) as error:
        raise DataError(f"Cannot read the weights {path}: {error}.") from None
