"""Translate files on a cluster with Ray Data (`nmt translate --engine ray`): actors translate blocks of lines, which keep their order."""

from __future__ import annotations

import logging
import os
import socket
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count, groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from nmt.cli.options import load_models
from nmt.cli.streams import STANDARD, check_not_input, count_lines, open_output, open_texts
from nmt.errors import DataError, UsageError
from nmt.runtime.files import discard
from nmt.runtime.progress import is_watched, with_progress

if TYPE_CHECKING:
    from nmt.bundle.folder import Bundle
    from nmt.cli.translating import TranslationWriter
    from nmt.decoding.translator import Translator

LINES = 500
"""Lines of a block, which one actor translates at a time."""
_PARQUET = ".parquet"
_PATIENCE = 10.0
"""Seconds in which a cluster must answer."""
Row = dict[str, Any]


def check_engine(engine: str, address: str | None, local: Mapping[str, object | None], files: Sequence[Path]) -> None:
    """Raise UsageError for options that do not fit the engine: with `ray`, those that say what this machine does, and no files."""
    if engine != "ray":
        if address is not None:
            raise UsageError("--address names a cluster of Ray: give --engine ray too.")
        return
    for name, value in local.items():
        if value is not None:
            raise UsageError(f"--engine ray spreads whole files over a cluster: leave out --{name}.")
    if STANDARD in files:
        raise UsageError(
            "--engine ray translates files: name them with -i, and the folder for their translations with -o."
        )


def translate_files(
    pattern: Path,
    folder: Path,
    models: Sequence[Path],
    build: Callable[[Sequence[Bundle]], Translator],
    writer: TranslationWriter,
    *,
    languages: tuple[str, str],
    address: str | None = None,
    quiet: bool = False,
) -> None:
    """Translate each file that matches a pattern into a file of the same name, on all cores or GPUs of a cluster.

    Text becomes text. A Parquet file, whose column of the source language is read, becomes one with both languages. A file gets
    its name once it is complete. Blocks of a node that is lost are translated again.

    Args:
        pattern: names the files; all nodes must see them.
        folder: where this process writes the translations.
        models: the models; all nodes must see them.
        build: makes a translator of them.
        writer: formats the translations of text files.
        languages: the codes of source and target language.
        address: of a cluster that runs; None for `RAY_ADDRESS`, or a cluster of this machine alone.
        quiet: show no progress.

    Raises:
        UsageError: no file matches, two have the same name, or one would replace its input.
        DataError: a file cannot be read or written, or the cluster does not work.
    """
    paths = _files(pattern, folder, is_plain=writer.is_plain)
    total = sum(count_lines(path) or 0 for path in paths) if is_watched(quiet=quiet) else None
    with _cluster(address, quiet=quiet) as ray:
        places = [model.absolute() if model.exists() else model for model in models]  # actors work in another folder
        blocks = _translated(ray, paths, partial(_read, language=languages[0]), [places, build, writer])
        blocks = with_progress(
            blocks, "translating", total or None, quiet=quiet, size=lambda block: len(block["lines"])
        )
        for path, own in groupby(blocks, key=itemgetter("path")):
            _write(own, folder / Path(path).name, languages, writer.header())


class _BlockTranslator:
    """An actor: loads the models once, and translates blocks with the one thread that Ray gives it, or on its GPU."""

    def __init__(
        self, models: Sequence[Path], build: Callable[[Sequence[Bundle]], Translator], writer: TranslationWriter
    ) -> None:
        self.translator, self.writer = build(load_models(models, "auto")), writer

    def __call__(self, block: Row) -> Row:
        translations = enumerate(
            self.translator.stream(map(str, block["lines"]), first_line=block["first"]), block["first"]
        )
        return {**block, "outputs": [b"".join(self.writer.line(each, number)) for number, each in translations]}


def _files(pattern: Path, folder: Path, *, is_plain: bool) -> list[Path]:
    """The files to read, absolute and in order. Raises UsageError."""
    from nmt.data.tables import is_table

    pattern = pattern.expanduser()
    matches = Path(pattern.anchor or ".").glob(str(pattern.relative_to(pattern.anchor)))
    paths = sorted(path.absolute() for path in matches if path.is_file())
    if not paths:
        raise UsageError(f"No file matches {pattern}: name files with -i, in quotes if there is a * in it.")
    names = Counter(path.name for path in paths)
    for path in paths:
        if names[path.name] > 1:
            raise UsageError(f"Two files are called {path.name}: translate them into two folders.")
        if path.suffix == _PARQUET and not is_plain:
            raise UsageError(
                f"{path.name} becomes a column of translations: leave out --format, --scores and --n-best."
            )
        if path.suffix != _PARQUET and is_table(path):
            raise UsageError(f"{path.name} is a table: write its text to a file of its own, or the table as Parquet.")
        check_not_input(folder / path.name, [path])
    return paths


def _read(item: Row, language: str) -> Iterator[Row]:
    """The blocks of a file, as `nmt translate` reads its lines."""
    with open_texts(Path(item["path"]), language) as texts:
        lines = iter(texts)
        for first in count(1, LINES):
            block = list(islice(lines, LINES))
            if not block and first > 1:  # an empty file has one block too, so that it gets an output
                return
            yield {"path": item["path"], "first": first, "lines": block}


def _translated(
    ray: Any, paths: Sequence[Path], read: Callable[[Row], Iterator[Row]], translator: Sequence[object]
) -> Iterator[Row]:
    """The translated blocks of all files, in their order."""
    context = ray.data.DataContext.get_current()
    context.execution_options.preserve_order = True
    context.target_max_block_size = 1  # so that each block of lines is one of Ray too, and goes to an actor of its own
    context.enable_progress_bars = context.print_on_execution_start = False
    resources = ray.cluster_resources()
    kind = "num_gpus" if resources.get("GPU") else "num_cpus"
    actors = max(int(resources.get("GPU") or resources["CPU"]), 1)
    files = ray.data.from_items([{"path": str(path)} for path in paths], override_num_blocks=len(paths))
    blocks = files.flat_map(read, num_cpus=0).map(
        _BlockTranslator,
        fn_constructor_args=translator,
        compute=ray.data.ActorPoolStrategy(min_size=1, max_size=actors, initial_size=actors),
        **{kind: 1},
    )
    try:
        yield from blocks.iter_rows()
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, DataError | UsageError):
            raise error.cause from None
        raise
    except ray.exceptions.RayError as error:
        raise DataError(f"The cluster of Ray has failed: {error}") from None


@contextmanager
def _cluster(address: str | None, *, quiet: bool) -> Iterator[Any]:
    """A context that is connected to a cluster of Ray; gives the package."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # what fails raises an exception too
    try:
        import ray.data
    except ImportError:
        raise UsageError("--engine ray needs Ray: pip install 'attentional-nmt[ray]'.") from None
    try:
        if address is not None:
            host, _, port = address.rpartition(":")
            socket.create_connection((host, int(port)), timeout=_PATIENCE).close()  # Ray itself waits for minutes
        with _silent_stderr():
            ray.init(address, logging_level=logging.ERROR, log_to_driver=not quiet)
    except (OSError, ValueError, RuntimeError) as error:
        raise DataError(f"Cannot connect to the Ray cluster {address}: {error}.") from None
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    try:
        yield ray
    finally:
        ray.shutdown()


@contextmanager
def _silent_stderr() -> Iterator[None]:
    """A context without what compiled code writes on stderr."""
    stderr = os.dup(2)
    try:
        discard(2)
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)


def _write(blocks: Iterable[Row], path: Path, languages: tuple[str, str], header: Iterable[bytes]) -> None:
    """Write the translations of one file."""
    with open_output(path, keep_part=True) as file:
        if path.suffix == _PARQUET:
            _write_parquet(file, blocks, languages)
            return
        file.writelines(header)
        for block in blocks:
            file.writelines(block["outputs"])


def _write_parquet(file: BinaryIO, blocks: Iterable[Row], languages: tuple[str, str]) -> None:
    """Write lines and their translations as two columns."""
    import pyarrow as pa
    from pyarrow import parquet

    with parquet.ParquetWriter(file, pa.schema([(language, pa.string()) for language in languages])) as writer:
        for block in blocks:
            translations = [output.decode().removesuffix("\n") for output in block["outputs"]]
            columns = [pa.array(list(block["lines"]), pa.string()), pa.array(translations, pa.string())]
            writer.write_batch(pa.record_batch(columns, names=list(languages)))
