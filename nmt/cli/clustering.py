"""Translate files on a cluster with Ray Data (`nmt translate --engine ray`): actors translate blocks of lines, which keep their order."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count, groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt.cli.options import load_models
from nmt.cli.streams import check_not_input, open_output, open_texts
from nmt.cli.translation_writer import is_cut, warn_of_cut
from nmt.errors import DataError, NmtError, UsageError
from nmt.runtime.progress import with_progress

if TYPE_CHECKING:
    from nmt.bundle.folder import Bundle
    from nmt.cli.translation_writer import TranslationWriter
    from nmt.decoding.translator import Translator
    from nmt.recipe import Direction

LINES = 500  # of a block, which one actor translates at a time
Row = dict[str, Any]
Build = Callable[["Sequence[Bundle]"], "Translator"]


def translate_files(
    pattern: Path,
    folder: Path,
    models: Sequence[Path],
    build: Build,
    writer: TranslationWriter,
    direction: Direction,
    *,
    quiet: bool,
) -> None:
    """Translate each file that matches a pattern into a file of the same name, on all cores or GPUs of a cluster.

    A file gets its name once it is complete. Blocks of a node that is lost are translated again. All nodes must see files and models.
    Raises UsageError, or DataError if the cluster does not work.
    """
    pattern = pattern.expanduser().absolute()
    matches = Path(pattern.anchor).glob(str(pattern.relative_to(pattern.anchor)))
    paths = sorted(path for path in matches if path.is_file())
    if not paths or len({path.name for path in paths}) < len(paths):
        raise UsageError(f"{pattern} matches {'files of the same name' if paths else 'no file'}: name others with -i.")
    for path in paths:
        check_not_input(folder / path.name, [path])
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # what fails raises an exception too
    try:
        import ray.data
    except ImportError:
        raise UsageError("--engine ray needs Ray: pip install 'attentional-nmt[ray]'.") from None
    places = [model.absolute() if model.exists() else model for model in models]  # actors work in another folder
    try:
        ray.init(logging_level=logging.ERROR, log_to_driver=not quiet)
        logging.getLogger("ray.data").setLevel(logging.CRITICAL)
        context = ray.data.DataContext.get_current()
        context.execution_options.preserve_order = True
        context.target_max_block_size = 1  # each block of lines is one of Ray too, and goes to an actor of its own
        context.enable_progress_bars = context.print_on_execution_start = False
        resources = ray.cluster_resources()
        kind = "GPU" if resources.get("GPU") else "CPU"
        pool = ray.data.ActorPoolStrategy(size=max(int(resources[kind]), 1))
        files: Any = ray.data.from_items([{"path": str(path)} for path in paths], override_num_blocks=len(paths))
        blocks = files.flat_map(partial(_read, direction), num_cpus=0)
        need = {f"num_{kind.lower()}s": 1, "compute": pool}
        rows = blocks.map(_BlockTranslator, fn_constructor_args=(places, build, writer), **need).iter_rows()
        rows = with_progress(rows, "translating", None, quiet=quiet, size=lambda block: len(block["outputs"]))
        cut = 0
        for name, blocks_of_file in groupby(rows, key=itemgetter("name")):
            with open_output(folder / name, keep_part=True) as file:
                file.writelines(writer.header())
                for block in blocks_of_file:
                    file.writelines(block["outputs"])
                    cut += block["cut"]
        warn_of_cut(cut)
    except (ray.exceptions.RayError, ConnectionError) as error:
        cause = getattr(error, "cause", None)
        if isinstance(cause, NmtError):
            raise type(cause)(str(cause).partition("\n")[0]) from None  # Ray appends lines of its own
        raise DataError(f"The cluster of Ray has failed: {error}") from None
    finally:
        ray.shutdown()


def _read(direction: Direction, file: Row) -> Iterator[Row]:
    """The blocks of a file, as `nmt translate` reads its lines. An empty file has one block too, so that it gets an output."""
    path = Path(file["path"])
    with open_texts(path, direction) as texts:
        lines = iter(texts)
        for first in count(1, LINES):
            block = list(islice(lines, LINES))
            if not block and first > 1:
                return
            yield {"name": path.name, "first": first, "lines": block}


class _BlockTranslator:
    """An actor: loads the models once, and translates blocks with the one thread that Ray gives it, or on its GPU."""

    def __init__(self, models: Sequence[Path], build: Build, writer: TranslationWriter) -> None:
        self.translator, self.writer = build(load_models(models, "auto")), writer

    def __call__(self, block: Row) -> Row:
        outputs, cut = [], 0
        translations = self.translator.stream(map(str, block["lines"]), first_line=block["first"])
        for number, translation in enumerate(translations, block["first"]):
            links = self.writer.links(translation, number)
            outputs.append(b"".join(self.writer.translations(translation, number, links)))
            cut += is_cut(translation)
        return {"name": block["name"], "outputs": outputs, "cut": cut}
