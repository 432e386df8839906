"""The corpora of mtdata's index, such as `mtdata:Statmt-europarl-10-deu-eng`, through the extra `mtdata`."""

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from nmt.data.tables import Batches, Pairs, in_batches, one_line
from nmt.errors import DataError, UsageError
from nmt.runtime.cache import cache_folder
from nmt.runtime.wording import reason
from nmt.text.languages import is_swapped

PREFIX = "mtdata:"


def read_mtdata(locator: str, languages: tuple[str, str]) -> Batches:
    """Read a corpus in either direction; mtdata downloads it to the cache when it is first read.

    Raises:
        DataError: the index has no such corpus, it is in other languages, or it cannot be fetched.
        UsageError: the extra `mtdata` is not installed.
    """
    first, second = describe_mtdata(locator)["languages"].split()
    swapped = is_swapped((first, second), languages, locator)
    pairs = (pair[::-1] if swapped else pair for pair in _pairs(locator))
    return (tuple(map(one_line, batch)) for batch in in_batches(pairs, 2))


def search_mtdata(words: Sequence[str]) -> list[str]:
    """The names of all parallel corpora that have all words, in any case. Raises DataError or UsageError."""
    with _explaining("its index"):
        from mtdata.index import INDEX

        names = [str(entry.did) for entry in INDEX.get_entries() if len(entry.did.langs) == 2]
    return sorted(f"{PREFIX}{name}" for name in names if all(word.lower() in name.lower() for word in words))


def describe_mtdata(locator: str) -> dict[str, str]:
    """What the index says of a corpus. Raises DataError or UsageError."""
    entry = _entry(locator)
    addresses = [entry.url] if isinstance(entry.url, str) else entry.url
    return {"name": locator, "languages": " ".join(map(str, entry.did.langs)), "source": " ".join(addresses)}


def _entry(locator: str) -> Any:
    with _explaining(f"{locator}; `nmt corpora list --search WORDS` finds names"):
        from mtdata.entry import DatasetId
        from mtdata.index import INDEX

        entry = INDEX[DatasetId.parse(locator.removeprefix(PREFIX))]
        if len(entry.did.langs) != 2:
            raise ValueError("it is no parallel text")
        return entry


def fetch_mtdata(locator: str) -> list[Any]:
    """The files of a corpus, which may be in an archive, fetched to the cache unless they are there. Raises DataError or UsageError."""
    entry = _entry(locator)
    with _explaining(locator):
        from mtdata.cache import Cache

        return list(Cache(cache_folder() / "mtdata").get_entry(entry))


def _pairs(locator: str) -> Pairs:
    entry, paths = _entry(locator), fetch_mtdata(locator)
    with _explaining(locator):
        from mtdata.parser import Parser

        for row in Parser(paths, ext=entry.in_ext or None, ent=entry).read_segs(show_pbar=False):
            yield row[0] or "", row[1] or ""


@contextmanager
def _explaining(what: str) -> Iterator[None]:
    """A context in which mtdata is imported with its index in our cache, and its errors are DataErrors."""
    folder = cache_folder() / "mtdata"
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("MTDATA", str(folder))
    handlers = list(logging.root.handlers)
    logging.disable(logging.ERROR)  # it logs each step, and sets up logging when it is imported
    try:
        yield
    except ImportError:
        raise UsageError('The corpora of mtdata need its package: pip install "attentional-nmt[mtdata]".') from None
    except Exception as error:  # noqa: BLE001 -- it asserts, and its parsers raise any
        raise DataError(f"mtdata cannot read {what}: {reason(error)}.") from None
    finally:
        logging.root.handlers[:] = handlers
        logging.disable(logging.NOTSET)
