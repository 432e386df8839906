"""Fetch files of corpora to the cache: try the sources in order, compare what comes, and record what cannot be compared."""

import gzip
import hashlib
import json
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

from nmt.data.catalogue import Fetched, expected_digest, local_file, lookup, named, read_record, record_path, roots
from nmt.data.catalogue.download import Progress
from nmt.data.catalogue.schema import NamedCorpus, Source, TextFile
from nmt.data.catalogue.sources import SourceError, open_source, read_text
from nmt.data.lines import COMPRESSIONS
from nmt.errors import DataError
from nmt.runtime.cache import cache_folder
from nmt.runtime.files import replacing, write_content
from nmt.runtime.wording import counted, did_you_mean

_log = logging.getLogger(__name__)


def find(name: str, split: str, language: str, *, progress: Progress | None = None, fetch: bool = True) -> Path:
    """Find the file of one side of one split; unless `fetch` is off, download it to the cache if it is missing.

    Raises:
        DataError: there is no such corpus, split or language, or the download failed. The message says where to put the file.
    """
    if path := local_file(name, split, language):
        return path
    corpus = lookup(name)
    if corpus is None and (folder := next((root / name for root in roots() if (root / name).is_dir()), None)):
        raise DataError(f"There is no file {folder / split}.{language} (also with {' '.join(COMPRESSIONS[1:])}).")
    corpus = corpus or named(name)
    if file := corpus.file(split, language):
        if not fetch:
            raise DataError(f"{name}/{split}.{language} must be fetched first: `nmt corpora fetch {name}`.")
        return _fetch_file(corpus, file, progress)
    _check_split(corpus, split)
    sides = ", ".join(file.language for file in corpus.files if file.split == split)
    raise DataError(f"The corpus {name} has no '{language}' in {split}, only {sides}.")


def fetch(name: str, split: str | None = None, *, progress: Progress | None = None) -> list[Path]:
    """Find all files of a corpus, or of one split; download missing ones to the cache. Raises DataError like `find`."""
    corpus = named(name)
    if split is not None:
        _check_split(corpus, split)
    files = [file for file in corpus.files if split in (None, file.split)]
    return [find(name, file.split, file.language, progress=progress) for file in files]


def _check_split(corpus: NamedCorpus, split: str) -> None:
    if split not in corpus.splits:
        suggestion = did_you_mean(split, corpus.splits, f"; there are {', '.join(corpus.splits)}.")
        raise DataError(f"The corpus {corpus.name} has no split '{split}'{suggestion}")


def _fetch_file(corpus: NamedCorpus, file: TextFile, progress: Progress | None) -> Path:
    """Download a file to the cache. It appears there only if its checksum is right."""
    folder = cache_folder() / "corpora" / corpus.name
    path = folder / f"{file.split}.{file.language}.gz"
    by_hand = f"put it at {roots()[0] / corpus.name / path.stem}[.gz]"
    if not os.environ.get("NMT_CORPORA"):
        by_hand += ", or set NMT_CORPORA to a folder with " + f"{corpus.name}/{path.stem}"
    if not file.sources:
        raise DataError(
            f"{corpus.name} is local only, so it cannot be fetched: it is {corpus.entry.derivation}. "
            f"If you have a copy, {by_hand}."
        )
    failures: dict[str, str] = {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with one_process(corpus.name):
            sources = () if path.is_file() else _allowed(corpus, file, folder)  # another process may have fetched it
            for source in sources:
                try:
                    _fetch_from(source, corpus, file, folder, progress)
                    break
                except SourceError as error:
                    failures[" ".join(source.origin)] = str(error)
                    if source != sources[-1]:
                        _log.warning("%s: %s; trying the next source", " ".join(source.origin), error)
    except OSError as error:
        raise DataError(
            f"Cannot write to {folder} ({error.strerror or error}): set NMT_CACHE to another folder."
        ) from None
    if not path.is_file():
        remedy = f"get it elsewhere and {by_hand}"
        if len(sources) < len(file.sources):
            remedy = f"remove the other sides of {file.split} from {folder} to try other sources, or {remedy}"
        raise DataError(f"Cannot fetch {corpus.name}/{path.stem} {_summary(failures)}; {remedy}.")
    return path


def _summary(failures: Mapping[str, str]) -> str:
    if len(failures) == 1:
        [(origin, reason)] = failures.items()
        return f"from {origin}: {reason}"
    each = "; ".join(f"{origin} ({reason})" for origin, reason in failures.items())
    return f"from any of its {len(failures)} sources: {each}"


def _allowed(corpus: NamedCorpus, file: TextFile, folder: Path) -> tuple[Source, ...]:
    """The sources to try: only that of the other sides, if there is no checksum to tell whether the lines correspond."""
    if expected_digest(folder, file) is None:
        for record in _records_of_split(corpus, file, folder):
            if same := tuple(source for source in file.sources if source.place == record.source):
                return same
    return file.sources


def _records_of_split(corpus: NamedCorpus, file: TextFile, folder: Path) -> Iterator[Fetched]:
    for other in corpus.files:
        if other.split == file.split and (record := read_record(folder, other)):
            yield record


def _fetch_from(source: Source, corpus: NamedCorpus, file: TextFile, folder: Path, progress: Progress | None) -> None:
    """Fetch a file, and the corpus's other missing files of the same origin, so that nothing is downloaded twice."""
    together = {file: source}
    for other in corpus.files:
        if other != file and not local_file(corpus.name, other.split, other.language):
            candidates = _allowed(corpus, other, folder)
            if same := next((item for item in candidates if item.origin == source.origin), None):
                together[other] = same
    with open_source(together.values(), cache_folder() / "downloads", progress) as paths:
        for item, its_source in together.items():
            try:
                _store(item, its_source, corpus, folder, paths)
            except SourceError as error:
                if item == file:
                    raise
                _log.info("%s/%s.%s: %s", corpus.name, item.split, item.language, error)  # it has other sources


def _store(
    file: TextFile, source: Source, corpus: NamedCorpus, folder: Path, paths: Mapping[tuple[str, str], Path]
) -> None:
    """Write the text of a source to the cache, and record its checksum if the catalogue has none."""
    other = next((language for language in corpus.languages if language != file.language), file.language)
    digest, lines, last = hashlib.sha256(), 0, b"\n"
    with replacing(folder / f"{file.split}.{file.language}.gz") as beside:
        with beside.open("wb") as stream, gzip.GzipFile(filename="", fileobj=stream, mode="wb", mtime=0) as packed:
            for block in read_text(source, paths, (file.language, other)):
                digest.update(block)
                packed.write(block)
                lines, last = lines + block.count(b"\n"), block[-1:] or last
        record = Fetched(digest.hexdigest(), lines + (last != b"\n"), source.place)
        _compare(record, file, corpus, folder)
        if file.sha256 is None:
            text = json.dumps(asdict(record))
            write_content(record_path(folder, file), text)


def _compare(record: Fetched, file: TextFile, corpus: NamedCorpus, folder: Path) -> None:
    """Compare a text with what the catalogue and the records say. Raises SourceError if it is another one."""
    expected = expected_digest(folder, file)
    if expected not in (None, record.sha256):
        advice = "" if file.sha256 else f" as at the first fetch; remove {record_path(folder, file)} to accept it"
        raise SourceError(f"the SHA-256 of its text is {record.sha256}, not {expected}{advice}")
    if file.lines not in (None, record.lines):
        raise SourceError(f"it has {counted(record.lines, 'line')}, not {file.lines:,}")
    for other in _records_of_split(corpus, file, folder):
        if other.lines != record.lines:
            raise SourceError(
                f"it has {counted(record.lines, 'line')}, but another side of {file.split} has {other.lines:,}"
            )


@contextmanager
def one_process(name: str) -> Iterator[None]:
    """Let one process at a time fetch a corpus; the others wait, and then find what it has fetched."""
    folder = cache_folder() / "downloads"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.lock").open("w") as lock:
        with suppress(ImportError, OSError):  # Windows and some network file systems have no such locks
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
