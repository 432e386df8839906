"""Fetch splits of corpora to the cache, through pooch, datasets and sacreBLEU, and check what came."""

import gzip
import hashlib
import logging
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from filelock import FileLock

from nmt.data.catalogue import local_file, lookup, named, roots
from nmt.data.catalogue.schema import NamedCorpus, Source
from nmt.data.external import read_hub, sacrebleu_files
from nmt.data.lines import COMPRESSIONS, blocks
from nmt.data.tables import Batches, is_table, read_table
from nmt.errors import DataError
from nmt.runtime.cache import cache_folder
from nmt.runtime.progress import is_watched
from nmt.runtime.wording import counted, did_you_mean, reason

RETRIES = 2
"""How often pooch repeats a download that failed."""
_METADATA = re.compile(rb"\s*</?(?:url|keywords|speaker|talkid|title|description|reviewer|translator|doc)\b")
_SEGMENT = re.compile(rb"<seg\b[^>]*>(.*?)</seg>", re.DOTALL)
_log = logging.getLogger(__name__)


def find(name: str, split: str, language: str, *, fetch: bool = True) -> Path:
    """Find the file of one side of one split; unless `fetch` is off, download its split to the cache if it is missing.

    Raises:
        DataError: there is no such corpus, split or language, or the download failed. The message says where to put the file.
    """
    if path := local_file(name, split, language):
        return path
    corpus = lookup(name)
    if corpus is None and (folder := next((root / name for root in roots() if (root / name).is_dir()), None)):
        raise DataError(f"There is no file {folder / split}.{language} (also with {' '.join(COMPRESSIONS[1:])}).")
    corpus = corpus or named(name)
    if split not in corpus.splits:
        suggestion = did_you_mean(split, corpus.splits, f"; there are {', '.join(corpus.splits)}.")
        raise DataError(f"The corpus {name} has no split '{split}'{suggestion}")
    if language not in corpus.sides(split):
        raise DataError(f"The corpus {name} has no '{language}' in {split}, only {', '.join(corpus.sides(split))}.")
    if not fetch:
        raise DataError(f"{name}/{split}.{language} must be fetched first: `nmt corpora fetch {name}`.")
    return _fetch(corpus, split, language)


def fetch(name: str, split: str | None = None) -> list[Path]:
    """Find all files of a corpus, or of one split; download missing ones to the cache. Raises DataError like `find`."""
    corpus = named(name)
    splits = corpus.splits if split is None else [split]
    files = [(part, language) for part in splits for language in corpus.sides(part) or corpus.languages]
    return [find(name, part, language) for part, language in files]


def _fetch(corpus: NamedCorpus, split: str, language: str) -> Path:
    """Fetch the sides of a split from the first source that gives this one whole and right. Raises DataError."""
    folder, downloads = (cache_folder() / kind / corpus.name for kind in ("corpora", "downloads"))
    by_hand = f"put it at {roots()[0] / corpus.name / f'{split}.{language}'}[.gz]"
    sources = [source for source in corpus.sources(split) if not source.languages or language in source.languages]
    if not sources:
        problem = f"{corpus.name} is local only, so it cannot be fetched: it is {corpus.entry.derivation}"
        raise DataError(f"{problem}. If you have a copy, {by_hand}.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        downloads.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"Cannot write to {folder} ({error.strerror}): set NMT_CACHE to another folder.") from None
    failures = []
    with FileLock(f"{downloads}.lock"):
        for source in sources:
            if local_file(corpus.name, split, language):  # another process has fetched it
                break
            try:
                _write_sides(source, corpus, split, folder, downloads)
                _write_other_splits(source, corpus, folder, downloads)
                break
            except Exception as error:  # noqa: BLE001 -- pooch, requests, archives and readers share no base class
                failures.append(f"{source.place}: {reason(error)}")
                _log.warning("%s/%s is not to be had from %s", corpus.name, split, failures[-1])
        shutil.rmtree(downloads)
    if path := local_file(corpus.name, split, language):
        return path
    raise DataError(f"Cannot fetch {corpus.name}/{split} from {'; '.join(failures)}. Get it elsewhere and {by_hand}.")


def _write_other_splits(archive: Source, corpus: NamedCorpus, folder: Path, downloads: Path) -> None:
    """Write what an archive, which has been downloaded, has of the splits that are not on this machine."""
    for split in corpus.splits if archive.member else ():
        is_here = any(local_file(corpus.name, split, side) for side in corpus.sides(split))
        for source in corpus.sources(split):
            if source.url == archive.url and not is_here:
                with suppress(DataError):  # it is fetched when it is needed
                    _write_sides(source, corpus, split, folder, downloads)


def _write_sides(source: Source, corpus: NamedCorpus, split: str, folder: Path, downloads: Path) -> None:
    """Write the sides of a split that a source has to the folder of the corpus, if their text is right."""
    sides, codes = source.languages or corpus.sides(split), corpus.entry.codes
    filled = {language: source.filled(language=language, code=codes.get(language, language)) for language in sides}
    members = [member for of_side in filled.values() for member in of_side.member]
    for language, of_side in filled.items():
        name, digest, lines = f"{split}.{language}", hashlib.sha256(), 0
        with gzip.open(downloads / f"{name}.gz", "wb", compresslevel=6) as sink:
            for block in _text(of_side, language, members, downloads):
                sink.write(block)
                digest.update(block)
                lines += block.count(b"\n")
        expected = corpus.digest(split, language)
        if expected not in (None, digest.hexdigest()):
            raise DataError(f"the SHA-256 of {name} is {digest.hexdigest()}, not {expected}")
        if corpus.splits[split] not in (None, lines):
            raise DataError(f"{name} has {counted(lines, 'line')}, not {corpus.splits[split]:,}")
    for language in filled:
        os.replace(downloads / f"{split}.{language}.gz", folder / f"{split}.{language}.gz")


def _text(source: Source, language: str, members: Sequence[str], downloads: Path) -> Iterator[bytes]:
    """The text of one side in blocks; `members` are the files that are needed of its archive."""
    if source.sacrebleu:
        [other] = {*source.sacrebleu.rpartition("/")[2].split("-")} - {language}
        yield from blocks(sacrebleu_files(source.locator, language, other)[0])
    elif source.hub:
        yield from _column_blocks(read_hub(source.locator, (source.column or language,)))
    for url in source.url:
        archive = _download(url, members, downloads)
        for path in [archive / member for member in source.member] or [archive]:
            if not path.is_file() or path.is_symlink():
                raise DataError(f"the archive has no file {path.relative_to(archive)}")
            if is_table(path):
                yield from _column_blocks(read_table(path, (source.column or language,)))
            elif source.format == "text":
                yield from blocks(path)
            else:
                content = b"".join(blocks(path))  # the largest, IWSLT's training text, has 25 MB
                if source.format == "talks":
                    lines = content.removesuffix(b"\n").split(b"\n")
                    lines = [line.strip() for line in lines if not _METADATA.match(line)]
                else:
                    lines = [b" ".join(segment.split()) for segment in _SEGMENT.findall(content)]
                yield b"".join(line + b"\n" for line in lines)


def _download(url: str, members: Sequence[str], folder: Path) -> Path:
    """The downloaded file, or the folder with the members of an archive. What is in the folder already is not fetched again."""
    import pooch

    pooch.get_logger().setLevel(logging.ERROR)  # the error says why
    name = f"{hashlib.sha256(url.encode()).hexdigest()[:12]}-{PurePosixPath(urlsplit(url).path).name[-80:]}"
    manager = pooch.create(folder, base_url="", registry={name: None}, urls={name: url}, retry_if_failed=RETRIES)
    processor = (pooch.Unzip if name.endswith(".zip") else pooch.Untar)(list(members)) if members else None
    bar = pooch.HTTPDownloader(progressbar=is_watched(quiet=False), chunk_size=2**16, timeout=60)
    manager.fetch(name, processor=processor, downloader=bar)
    path = folder / name
    with path.open("rb") as file:
        if file.read(100).lstrip().lower().startswith((b"<!doctype html", b"<html")):
            raise DataError("the server sent a web page instead of the file")
    return folder / f"{name}{processor.suffix}" if processor else path


def _column_blocks(batches: Batches) -> Iterator[bytes]:
    for (texts,) in batches:
        yield "".join(f"{text}\n" for text in texts).encode()
