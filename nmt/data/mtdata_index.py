"""The corpora of mtdata's index, such as `mtdata:Statmt-europarl-10-deu-eng`, through the extra `mtdata`."""

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from nmt.data.tables import Batches, in_batches, one_line
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
    with _explaining(f"{locator}; `nmt corpora list --search WORDS` finds names"):
        from mtdata.cache import Cache
        from mtdata.entry import DatasetId
        from mtdata.index import INDEX
        from mtdata.parser import Parser

        entry = INDEX[DatasetId.parse(locator.removeprefix(PREFIX))]
        first, second = map(str, entry.did.langs)
    swapped = is_swapped((first, second), languages, locator)
    with _explaining(locator):
        paths = Cache(_folder()).get_entry(entry)
        rows = Parser(paths, ext=entry.in_ext or None, ent=entry).read_segs(show_pbar=False)
        pairs = ((row[1] or "", row[0] or "") if swapped else (row[0] or "", row[1] or "") for row in rows)
        for batch in in_batches(pairs, 2):
            yield tuple(map(one_line, batch))


def search_mtdata(words: Sequence[str]) -> list[str]:
    """The names of all parallel corpora that have all words, in any case. Raises DataError or UsageError."""
    with _explaining("its index"):
        from mtdata.index import INDEX

        names = [str(entry.did) for entry in INDEX.get_entries() if len(entry.did.langs) == 2]
    return sorted(f"{PREFIX}{name}" for name in names if all(word.lower() in name.lower() for word in words))


def _folder() -> Path:
    """The folder of the cache for the index and for what is downloaded."""
    folder = cache_folder() / "mtdata"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def _explaining(what: str) -> Iterator[None]:
    """A context in which mtdata is imported with its index in our cache, and its errors are DataErrors."""
    os.environ.setdefault("MTDATA", str(_folder()))
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
