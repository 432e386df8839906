"""The corpora of mtdata's index, such as `mtdata:Statmt-europarl-10-deu-eng`, kept in the cache as one file per side.

mtdata knows where a corpus is and how to read it. Files are downloaded and unpacked here: mtdata begins broken downloads anew,
repeats them without certificates, and lets a tar archive write where it likes.
"""

import gzip
import logging
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from nmt.data.catalogue.download import DownloadError, Progress, download
from nmt.data.catalogue.fetching import one_process
from nmt.data.catalogue.sources import SourceError, unpack
from nmt.data.tables import Pairs, one_line
from nmt.errors import DataError, UsageError
from nmt.runtime.cache import cache_folder
from nmt.runtime.files import replacing
from nmt.runtime.wording import reason
from nmt.text.languages import is_swapped

PREFIX = "mtdata:"
_NAME = re.compile(r"(?:[\w.+]+-){3}([\w.+]+)-([\w.+]+)")
_log = logging.getLogger(__name__)


def mtdata_files(locator: str, source: str, target: str) -> tuple[Path, Path]:
    """The files of both sides, which the first call fetches. Languages may be in any order, and with two or three letters.

    Raises:
        DataError: the index has no such corpus, it is in other languages, or it cannot be fetched.
        UsageError: the extra `mtdata` is not installed.
    """
    swapped = is_swapped(_codes(locator), (source, target), locator)
    first, second = fetch_mtdata(locator)
    return (second, first) if swapped else (first, second)


def fetch_mtdata(locator: str, progress: Progress | None = None) -> tuple[Path, Path]:
    """The files of both sides, fetched to the cache unless they are there. Raises DataError or UsageError."""
    name, codes = locator.removeprefix(PREFIX), _codes(locator)
    first, second = (_folder() / name / f"{code}.gz" for code in codes)
    try:
        first.parent.mkdir(parents=True, exist_ok=True)
        with one_process(name):
            if not (first.is_file() and second.is_file()):
                _fetch(locator, first, second, progress)
    except OSError as error:
        raise DataError(f"Cannot write to {first.parent}: {error.strerror or error}; set NMT_CACHE.") from None
    return first, second


def search_mtdata(words: Sequence[str]) -> list[str]:
    """The names of all parallel corpora that have all words, in any case. Raises DataError or UsageError."""
    names = (str(entry.did) for entry in _index().get_entries() if len(entry.did.langs) == 2)
    return sorted(f"{PREFIX}{name}" for name in names if all(word.lower() in name.lower() for word in words))


def describe_mtdata(locator: str) -> dict[str, str]:
    """What the index says of a corpus. Raises DataError or UsageError."""
    entry = _entry(locator)
    rows = {"name": locator, "languages": " ".join(_codes(locator)), "source": " ".join(_addresses(entry))}
    return rows | ({"files": " ".join(entry.in_paths)} if entry.in_paths else {})


def _codes(locator: str) -> tuple[str, str]:
    """The languages in the name of a corpus. Raises DataError if it has not two."""
    match = _NAME.fullmatch(locator.removeprefix(PREFIX))
    if match is None:
        raise DataError(
            f"'{locator}' names no parallel corpus of mtdata: write {PREFIX}GROUP-NAME-VERSION-LANGUAGE-LANGUAGE; "
            "`nmt corpora list --search WORDS` finds names."
        )
    return match[1], match[2]


def _folder() -> Path:
    return cache_folder() / "mtdata"


# --- the index --------------------------------------------------------------------------------------------------


def _index() -> Any:
    """The index, which mtdata builds in our cache when it is first needed."""
    try:
        with _unheard():
            import mtdata
    except ImportError:
        raise UsageError(
            'The corpora of mtdata need the package mtdata: pip install "attentional-nmt[mtdata]".'
        ) from None
    _folder().mkdir(parents=True, exist_ok=True)
    path = mtdata.cached_index_file = _folder() / mtdata.cached_index_file.name
    if not path.exists():
        _log.warning("Building the index of mtdata, once; this takes a minute.")
    try:
        with _unheard():
            from mtdata.index import INDEX
    except Exception as error:  # noqa: BLE001 -- unpickling raises any
        raise DataError(f"mtdata cannot load its index: {reason(error)}; remove {path}, and try again.") from None
    return INDEX


def _entry(locator: str) -> Any:
    """The entry of a corpus. Raises DataError if there is none."""
    index = _index()
    from mtdata.entry import DatasetId

    try:
        with _unheard():
            return index.entries[DatasetId.parse(locator.removeprefix(PREFIX))]
    except Exception:  # noqa: BLE001 -- mtdata asserts what names and languages are
        raise DataError(f"mtdata has no corpus {locator}: `nmt corpora list --search WORDS` finds names.") from None


def _addresses(entry: Any) -> list[str]:
    return [entry.url] if isinstance(entry.url, str) else list(entry.url)


@contextmanager
def _unheard() -> Iterator[None]:
    """A context in which mtdata neither logs nor sets up logging; it does both with the root logger itself."""
    root, handler = logging.getLogger(), logging.NullHandler()

    def drop(_: logging.LogRecord) -> bool:
        return False

    root.addFilter(drop)
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.removeFilter(drop)


# --- fetching ---------------------------------------------------------------------------------------------------


def _fetch(locator: str, first: Path, second: Path, progress: Progress | None) -> None:
    """Download a corpus, and write its sides. Raises DataError, or OSError if the cache cannot be written to."""
    entry = _entry(locator)
    if entry.ext == "hfds":
        raise DataError(f"{locator} is a data set of the hub: name it hf:{entry.meta['orig_id']}[/CONFIG]:SPLIT.")
    folder = cache_folder() / "downloads"
    try:
        downloads = [download(url, folder, progress) for url in _addresses(entry)]
        with tempfile.TemporaryDirectory(dir=folder) as unpacked:
            paths = _unpacked(downloads[0], entry.in_paths, Path(unpacked)) if entry.is_archive else downloads
            _write(_pairs(entry, paths), first, second)
    except (DownloadError, SourceError) as error:
        raise DataError(f"Cannot fetch {locator} from {' '.join(_addresses(entry))}: {error}.") from None
    for path in downloads:
        path.unlink(missing_ok=True)


def _unpacked(archive: Path, patterns: Sequence[str], folder: Path) -> list[Path]:
    """The members of an archive, one for each pattern, in their order."""
    files = unpack(archive, patterns, folder / "members")
    if missing := next((pattern for pattern in patterns if pattern not in files), None):
        raise SourceError(f"the archive has no file {missing}")
    return [files[pattern] for pattern in patterns]


def _write(pairs: Pairs, first: Path, second: Path) -> None:
    """Write both sides of a text, one line for each pair; line ends inside texts become spaces."""
    with ExitStack() as stack:
        files = [stack.enter_context(replacing(path)) for path in (first, second)]
        streams = [stack.enter_context(gzip.open(file, "wt", encoding="utf-8", newline="\n")) for file in files]
        for pair in pairs:
            for stream, text in zip(streams, one_line(list(pair)), strict=True):
                stream.write(f"{text}\n")


def _pairs(entry: Any, paths: Sequence[Path]) -> Pairs:
    """The pairs in the files of an entry. Raises SourceError if mtdata cannot read them."""
    from mtdata.parser import Parser

    try:
        with _unheard():
            for row in Parser(list(paths), ext=entry.in_ext or entry.ext, ent=entry).read_segs(show_pbar=False):
                yield row[0] or "", row[1] or ""
    except Exception as error:  # noqa: BLE001 -- its parsers raise any
        raise SourceError(f"mtdata cannot read it ({reason(error)})") from None
