"""Options shared by several commands, and helpers that evaluate them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from nmt.cli.allocation import keep_freed_memory, keep_kernels
from nmt.errors import DataError, UsageError
from nmt.runtime.arguments import PrecisionName
from nmt.runtime.cores import usable_cores
from nmt.runtime.wording import escaped

if TYPE_CHECKING:
    from nmt.alignment.links import GoldLinks
    from nmt.bundle.folder import Bundle
    from nmt.decoding.translator import Translator

WINDOW = 500
"""Lines read ahead and sorted by length per process. More is hardly faster, and makes the progress bar coarser."""
GPU_WINDOW = 5000

THE_RECIPES = "the recipe's"
"""How the help names a default that is read from the recipe in the model folder."""


def option(
    text: str, metavar: str = "", *names: str, default: str | bool = True, panel: str | None = None, **limits: Any
) -> Any:
    """An option: its help, the name of its value, its flags, how the help names its default, its panel, and `min` or `max`."""
    return typer.Option(
        *names, help=text, metavar=metavar or None, show_default=default, rich_help_panel=panel, **limits
    )


def file_option(text: str, *names: str, default: str = "none", panel: str | None = None) -> Any:
    """An option that names a file."""
    return option(text, "FILE", *names, default=default, panel=panel)


def flag(name: str, text: str, *, panel: str | None = None) -> Any:
    """An option without a value."""
    return option(text, "", name, panel=panel)


machine_option = partial(option, panel="Machine")
"""An option that changes where and how fast something is computed."""
_search_option = partial(option, panel="Search", default=THE_RECIPES)
_evaluation_option = partial(option, panel="Evaluation")


def argument(text: str, metavar: str | None = None, *, default: str | bool = True) -> Any:
    """An argument: its help, the name of its value, and how the help names its default."""
    return typer.Argument(help=text, metavar=metavar, show_default=default)


To = Annotated[str | None, option("Target language, of a model with several.", "CODE", "--to", default="the only one")]
Model = Annotated[Path, argument("Model: a folder, a .zip or hf:owner/name.", "MODEL")]
SourceText = Annotated[Path, option("Source text, one sentence per line; - is stdin.", "FILE", "--source", "-s")]
TargetText = Annotated[Path, option("Its translation, line by line; - is stdin.", "FILE", "--target", "-t")]
SourceLanguage = Annotated[str, option("Source language, such as en.", "CODE", "--source")]
TargetLanguage = Annotated[str, option("Target language, such as de.", "CODE", "--target")]
PrefixOutput = Annotated[str, option("Write PREFIX.en and PREFIX.de.", "PREFIX", "--output", "-o")]
LinksOutput = Annotated[
    Path | None, file_option("Where to write the links.", "--output", "-o", default="stdout; with --gold, nowhere")
]
AttentionLayer = Annotated[int | None, option("Layer of a Transformer.", "L", "--layer", default=THE_RECIPES, min=1)]
AttentionHead = Annotated[int | None, option("Head of that layer.", "H", "--head", default="mean of the heads", min=1)]
Gold = Annotated[Path | None, file_option("Gold links (Pharaoh or NAACL): print the AER.", panel="Evaluation")]
Order = Literal["source-target", "target-source"]
GoldOrder = Annotated[Order, _evaluation_option("Order in --gold: source-target or target-source.", "ORDER")]
Bootstrap = Annotated[int, _evaluation_option("Resamples for the 95 % interval of the AER; 0: none.", "N", min=0)]
RECIPE_HELP = "YAML file, or a recipe that ships with nmt (`nmt recipe list`)."
RecipeName = Annotated[str, argument(RECIPE_HELP, "RECIPE")]
Settings = Annotated[
    list[str] | None, option("Change a setting; repeatable.", "KEY=VALUE", "--set", default=THE_RECIPES)
]
RunFolder = Annotated[
    Path | None, option("Run folder.", "DIR", "--out", "-o", default="runs/NAME, by the recipe's name")
]
Device = Annotated[str, machine_option("auto, cpu, cuda, cuda:N or mps (Apple).", "NAME")]
Threads = Annotated[int | None, machine_option("CPU threads.", "N", default="one per core", min=1)]
Precision = Annotated[PrecisionName, machine_option("fp32, bf16, fp16 (GPU), int8 (CPU) or auto.", "NAME")]
BatchTokens = Annotated[
    int | None, machine_option("Tokens per batch; fewer save memory.", "N", default="8192, 65536 on a GPU", min=1)
]
ScoredTokens = Annotated[int, machine_option("Tokens per batch; fewer save memory.", "N", min=1)]
_WINDOWS = f"{WINDOW} a thread, {GPU_WINDOW} a GPU, 1 if typed"
Window = Annotated[
    int | None, machine_option("Lines read ahead; 1 answers each line of a pipe.", "N", default=_WINDOWS, min=1)
]
AsJson = Annotated[bool, flag("--json", "Print one JSON object.")]
Split = Annotated[str, option("Text to translate: test, valid or a locator.", "TEXT")]
Quiet = Annotated[bool, option("Print only errors on stderr.", "", "--quiet", "-q")]
BeamSize = Annotated[int | None, _search_option("Beam size; 1 is greedy search.", "N", min=1)]
LengthPenalty = Annotated[float | None, _search_option("Length penalty of Wu et al. 2016, eq. 14.", "ALPHA", min=0)]
MbrSamples = Annotated[int | None, _search_option("Draw N; take the one most like all (MBR).", "N", "--mbr", min=1)]
DecodingSettings = Annotated[
    list[str] | None, _search_option("Change a setting, as decoding.horizon=2; repeatable.", "KEY=VALUE", "--set")
]
SplitSentences = Annotated[
    bool | None,
    option("Read a line sentence by sentence.", "", "--split-sentences/--whole-lines", default="by the training text"),
]
ReplaceUnknown = Annotated[
    bool, flag("--replace-unknown", "Replace each unknown word (⁇) by its aligned source word.", panel="Search")
]
Lexicon = Annotated[Path | None, file_option("Replace them by lines `word TAB translation`.", panel="Search")]

ShortlistFile = Annotated[
    Path | None,
    file_option("Use only target tokens that `nmt shortlist` lists.", "--shortlist", default="all", panel="Machine"),
]


def log_to_stderr(*, quiet: bool) -> None:
    """Show warnings, or errors alone, as single lines on stderr that cannot steer a terminal, whatever text they quote."""
    import logging

    class SingleLines(logging.Formatter):
        def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 -- the name that logging gives it
            return escaped(super().formatMessage(record))

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(SingleLines("nmt: %(message)s"))
    logging.basicConfig(level=logging.ERROR if quiet else logging.WARNING, handlers=[handler])


def set_up(*, quiet: bool = False, threads: int | None = None, trains: bool = False) -> None:
    """Set up the process: warnings as single lines on stderr, memory reuse, and the number of threads."""
    log_to_stderr(quiet=quiet)
    keep_freed_memory()
    if not trains:  # training bounds them itself: its shapes hardly return
        keep_kernels()
    if threads is not None:
        import torch

        torch.set_num_threads(min(threads, usable_cores()))


def new_files(prefix: str, endings: Sequence[str]) -> list[Path]:
    """The files of a prefix. Raises UsageError if one of them is there already."""
    paths = [Path(f"{prefix}.{ending}") for ending in endings]
    if existing := next((path for path in paths if path.exists()), None):
        raise UsageError(f"{existing} already exists: move it, or choose another prefix with -o.")
    return paths


def load_models(folders: Sequence[Path], device: str, *, attending: bool = False) -> list[Bundle]:
    """Load models from their folders, zips or the hub. Raises DataError, also for one without attention if `attending`."""
    from nmt.decoding.loading import load_bundles

    bundles = load_bundles(folders, device)
    for bundle, folder in zip(bundles, folders, strict=True):
        if attending:
            need_attention(bundle, folder)
    return bundles


def need_attention(bundle: Bundle, folder: Path) -> None:
    """Raise DataError if the model has no attention."""
    if not bundle.recipe.model.has_attention:
        raise DataError(f"{folder} was trained without attention (score: none), so it aligns nothing.")


def read_gold_links(path: Path | None, pairs: int | None, order: str) -> list[GoldLinks] | None:
    """Read gold links, source words first, from a file in the order of `GoldOrder`. Raises DataError."""
    from nmt.alignment.link_files import read_gold

    if path is None:
        return None
    gold = read_gold(path, pairs)
    return [item.flipped() for item in gold] if order == "target-source" else gold


def unknown_words(bundle: Bundle, folder: Path, lexicon: Path | None, *, replace: bool) -> dict[str, str] | None:
    """The lexicon for replacing unknown words; None to keep them.

    Raises DataError if the model has no attention, or the file is not a lexicon.
    """
    if not replace and lexicon is None:
        return None
    from nmt.decoding.unknown import read_lexicon

    need_attention(bundle, folder)
    return {} if lexicon is None else read_lexicon(lexicon)


def decoding_settings(overrides: Sequence[str] | None, *, sampled: bool = False, **flags: object) -> dict[str, Any]:
    """The options of decoding that `--set decoding.KEY=VALUE` changes, and those of flags that are given. Raises UsageError."""
    from nmt.recipe import parse_overrides

    sections = parse_overrides(overrides or ())
    settings = sections.pop("decoding", {})
    if sections or not isinstance(settings, dict):
        raise UsageError("--set changes settings of decoding here: write --set decoding.KEY=VALUE.")
    settings |= {name: value for name, value in flags.items() if value is not None}
    if settings.get("mbr_samples") is not None and "beam_size" in settings:
        raise UsageError("--mbr draws translations and searches for none: leave out --beam-size.")
    sampling = settings.get("sampling", {} if sampled else None)
    if sampling is not None and ("beam_size" in settings or "mbr_samples" in settings):
        raise UsageError("--sample draws translations and searches for none: leave out --beam-size and --mbr.")
    if isinstance(sampling, dict):
        settings["sampling"] = {"seed": 1, **sampling}
    return settings


def build_translator(
    bundles: Sequence[Bundle],
    /,
    *,
    precision: PrecisionName = "fp32",
    shortlist: Path | str | None = None,
    **options: Any,
) -> Translator:
    """Build a translator with options of decoding, on all threads of a CPU, with a window that fits the device.

    Unless given, the beam size or the number of samples is at least `n_best`. Raises UsageError or DataError.
    """
    import torch

    from nmt.decoding.packed import PackedModels
    from nmt.decoding.translator import Translator

    on_cpu = next(bundles[0].model.parameters()).device.type == "cpu"
    processes = torch.get_num_threads() if on_cpu else 1
    options = {"processes": processes, **options}
    if options.get("window") is None:
        options["window"] = WINDOW * processes if on_cpu else GPU_WINDOW
    models = PackedModels.of(bundles, shortlist=shortlist, precision=precision)
    if not {"beam_size", "mbr_samples"} & options.keys():
        options |= models.settings.wide_enough(options.get("n_best", 1))
    return Translator(models, **options)
