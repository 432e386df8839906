"""The catalogue of public corpora: their sources, licences and checksums.

The toolkit contains no corpus text. A corpus is looked up under `$NMT_CORPORA` (as `NAME/SPLIT.LANGUAGE`, also compressed),
then in the cache; otherwise it is downloaded from its public source and checked against its SHA-256. A corpus whose text can
neither be downloaded nor derived again is local only; its entry says how it was made, as far as that is known.
"""

import difflib
import gzip
import hashlib
import io
import os
import urllib.request
import zlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Literal

from nmt.cache import cache_folder, expand_home
from nmt.data.lines import COMPRESSIONS, any_compression, blocks
from nmt.errors import DataError
from nmt.files import replacing

Progress = Callable[[str, int, int | None], None]
"""Called with the URL, the bytes received and the total number of bytes, if known."""
_Sources = Callable[[str, str], tuple[str, ...]]
_BLOCK = 2**16
_SECONDS = 60


@dataclass(frozen=True)
class TextFile:
    """One side of one split. `sha256` is that of the decompressed text, `sources` are the URLs of its parts in order."""

    split: str
    language: str
    lines: int
    sha256: str
    sources: tuple[str, ...] = ()


@dataclass(frozen=True)
class NamedCorpus:
    """A public corpus."""

    name: str
    title: str
    languages: tuple[str, ...]
    licence: str
    home: str
    files: tuple[TextFile, ...]
    derivation: str = ""
    """How the text was made, as far as that is known, if it cannot be downloaded."""

    @property
    def local_only(self) -> bool:
        """Whether some of the text cannot be downloaded."""
        return not all(file.sources for file in self.files)

    @property
    def splits(self) -> dict[str, int]:
        """Name and number of lines of each split."""
        return {file.split: file.lines for file in self.files}

    def file(self, split: str, language: str) -> TextFile | None:
        """One side of one split."""
        return next((file for file in self.files if (file.split, file.language) == (split, language)), None)


@dataclass(frozen=True)
class Checked:
    """The result of checking one file of a corpus."""

    file: TextFile
    path: Path | None
    state: Literal["good", "missing", "different"]


def _files(table: str, sources: _Sources | None = None) -> tuple[TextFile, ...]:
    """Parse a table of split, language, lines and SHA-256."""
    rows = (line.split() for line in table.strip().splitlines())
    return tuple(
        TextFile(split, side, int(lines), digest, sources(split, side) if sources else ())
        for split, side, lines, digest in rows
    )


def _multi30k(split: str, language: str) -> tuple[str, ...]:
    root = "https://raw.githubusercontent.com/multi30k/dataset/a3d2e0d26b56f3846f66a952536ffed4e401d05a/data/task1/raw"
    return (f"{root}/{split}.{language}.gz",)


def _tanaka(split: str, language: str) -> tuple[str, ...]:
    root = "https://raw.githubusercontent.com/odashi/small_parallel_enja/bc6f160498e5f97a286ff679173e7f6ba9321d9f"
    parts = [f".{part:03}" for part in range(5)] if split == "train" else [""]
    return tuple(f"{root}/{split}.{language}{part}" for part in parts)


_CORPORA = (
    NamedCorpus(
        name="multi30k",
        title="Image captions, raw (Elliott et al. 2016, 2017)",
        languages=("en", "de", "fr"),
        licence="non-commercial research and education",
        home="https://github.com/multi30k/dataset",
        files=_files(
            """
            train de 29000 2c2b73fd2b548fbcde3a875e0a78d6ee94d498bfdee6bd3eae3945779e9ddf72
            train en 29000 460a15fbd157e34a7a9957ee388c1ca247fe47af3ef25fb50442af6c274e0fc6
            train fr 29000 5925a3c18f1587b6b54b87743106e6e8ab93618edb6f65d19eac0621f853a10d
            val de 1014 660e09eb7e1da2f856ea13ee5ad3cf6d36b3d5b0b733c857e94c5747a3dfc660
            val en 1014 1f2a23d992769b5b3d209b0a10dd0b77c08cceb1f20dfb97ed0aafa49d107227
            val fr 1014 5304e444d842e962b2dda4d816b70b22a1765b15401642b7ca37a67477e708dc
            test_2016_flickr de 1000 4be6b5b3236b79c25475c6bb829800a7ce559e9ba7a1f6c2394fe4d40be46d16
            test_2016_flickr en 1000 399a4382932c1aadd3ceb9bef1008d388a64c76d4ae4e9d4728c6f4301cac182
            test_2016_flickr fr 1000 cb3160d69b002bb638e66cc7612fcd56cb0af82eadc9c142dedc438afb885ef6
            """,
            _multi30k,
        ),
    ),
    NamedCorpus(
        name="tatoeba-en-de",
        title="Everyday sentences of Tatoeba, as of May 2018",
        languages=("en", "de"),
        licence="CC BY 2.0 FR",
        home="https://www.manythings.org/anki/",
        files=_files(
            """
            train de 164655 a82b21675852eab470fb41a13dd4108838efb78ada1ed563f8f1166bab233278
            train en 164655 4d1571180acf885045821e99a17b7fbab1e4a0e3b6323df65d5cbdbdbf665cd3
            dev de 2000 66d1cb4dffc4daddfd5594e51087d321fbbffa2a44fee5fce9b1115bf0895083
            dev en 2000 f2fa80577e9c109dd3494685db5549a54e2bb6412956cf9f89a9b0d46e2ba084
            test de 2000 e58f82bccbad657d8ff1468ebaed2e666c0143bc750004ed7cb13ec15ece63f0
            test en 2000 062904c3b7db702b079c9e7d16590a9833ce7013b59f6bfc15d7b840fdfc1677
            """
        ),
        derivation=(
            "168,655 pairs of deu-eng.zip of May 2018 from https://www.manythings.org/anki/, which has replaced it since; "
            "how dev and test were drawn is not recorded"
        ),
    ),
    NamedCorpus(
        name="hansards-en-fr",
        title="Canadian Hansards, 36th Parliament, tokenised, with gold word links",
        languages=("en", "fr"),
        licence="not stated; research use",
        home="https://web.eecs.umich.edu/~mihalcea/wpt/",
        files=_files(
            """
            train en 227389 7c6f852536ae195544ac80372b92ad64c1ec0c86b6b189257ad36fed9d4e44d0
            train fr 227389 a1ed6898456ebbb4087f3f2f73ef0440e92d342f14c1c6a7cd4d8d4c37dcfe11
            dev en 2000 6ccf7a62c6cbafc51c52dac84b4063ac1b4951419d26688bf384bb29d9945c27
            dev fr 2000 e4a7812639e1514b5da9b18247a19a896bf497a0280753a521312d08275bc583
            test en 2000 7a2fa94f54928ee5827cbc40cb202d07fa324abbc5f85526a4bbd22182db0bb9
            test fr 2000 b0543a0a803b075e6f41f86a1f0a614c1ff74cf8873ffc88652c243e5a5a2b55
            gold.trial en 37 62b001b2d21a20a7765b27e8beee27c6451055b1ab8723daaa5dffa4b1ae36f8
            gold.trial fr 37 fe1f718b143dce47fe7e2159c00c3fd1278b69b90afe5613672abe3709e65f5e
            gold.trial align 37 20dc0fb4a984d6b0a58f7ff8df36d7b1653ffc9590e14f7d3a40bb6c04f91bbc
            """
        ),
        derivation=(
            "231,389 pairs of the University of Toronto's Hansards, lowercased, without accents, tokenised, elisions and "
            "contractions expanded, and the 37 trial pairs of the NAACL 2003 shared task; how the pairs were chosen and "
            "split is not recorded"
        ),
    ),
    NamedCorpus(
        name="tanaka-en-ja",
        title="Sentences of the Tanaka corpus, tokenised",
        languages=("en", "ja"),
        licence="not stated; Tatoeba's is CC BY 2.0 FR",
        home="https://github.com/odashi/small_parallel_enja",
        files=_files(
            """
            train en 50000 148b05dcd28638fe20ee84f2b1127001c80982be352007dda241fb759adadc76
            train ja 50000 fc81a1434349ec98a449d7ae9cd2530057f689637684ecfed3501ea6a8a07ecc
            dev en 500 04a2673449770657fd5e3b963cb856be3130923212b6db8ac7eaeef18f06c041
            dev ja 500 cd534f56b8639dc130f86a365e5ec0aa70042000bdd740a622fbbf8b6be4acca
            test en 500 45edb380749ec2b49cca7618fc5a7595fc9f791180672ba466b90c873a4aa8bf
            test ja 500 d37dc460a81b064e4106c8913eb11fa300da05cf3f58a7a5bbfec7e20947ddef
            """,
            _tanaka,
        ),
    ),
)
CATALOGUE = {corpus.name: corpus for corpus in _CORPORA}


def named(name: str) -> NamedCorpus:
    """The corpus of this name. Raises DataError that suggests the nearest name if there is none."""
    if corpus := CATALOGUE.get(name):
        return corpus
    raise DataError(f"There is no corpus '{name}' in the catalogue{_nearest(name, CATALOGUE)}")


def split_name(locator: str) -> tuple[str, str] | None:
    """Split a locator such as `multi30k/train` into name and split; None if neither catalogue nor disk has the name."""
    name, slash, split = locator.partition("/")
    if not slash or not split or name in ("", ".", ".."):
        return None
    try:
        is_known = name in CATALOGUE or any((root / name).is_dir() for root in _roots())
    except OSError:  # such as a name that is too long
        is_known = False
    return (name, split) if is_known else None


def nearest(locator: str) -> str:
    """The end of an error message about an unknown locator: a suggestion."""
    names = [f"{corpus.name}/{split}" for corpus in CATALOGUE.values() for split in corpus.splits]
    close = difflib.get_close_matches(
        locator, [*names, "sample:train", "sample:valid", "sample:test"], n=1, cutoff=0.75
    )
    return f"; did you mean {close[0]}?" if close else "; `nmt corpora` lists what it has."


def find(name: str, split: str, language: str, *, progress: Progress | None = None) -> Path:
    """Find the file of one side of one split; download it to the cache if it is missing.

    Raises:
        DataError: there is no such corpus, split or language, or the download failed. The message says where to put the file.
    """
    if path := _present(name, split, language):
        return path
    if name not in CATALOGUE and (folder := next((root / name for root in _roots() if (root / name).is_dir()), None)):
        raise DataError(f"There is no file {folder / split}.{language} (also with {' '.join(COMPRESSIONS[1:])}).")
    corpus = named(name)
    if file := corpus.file(split, language):
        return _fetched(corpus, file, progress)
    if split not in corpus.splits:
        raise DataError(f"The corpus {name} has no split '{split}'{_nearest(split, corpus.splits)}")
    raise DataError(f"The corpus {name} has no '{language}' in {split}, only {', '.join(corpus.languages)}.")


def fetch(name: str, *, progress: Progress | None = None) -> list[Path]:
    """Find all files of a corpus; download missing ones to the cache. Raises DataError like `find`."""
    return [find(name, file.split, file.language, progress=progress) for file in named(name).files]


def check(name: str) -> list[Checked]:
    """Check that each file of a corpus exists and has the right text. Downloads nothing."""
    return [_checked(name, file) for file in named(name).files]


def _checked(name: str, file: TextFile) -> Checked:
    path = _present(name, file.split, file.language)
    if path is None:
        return Checked(file, None, "missing")
    digest = hashlib.sha256()
    try:
        for block in blocks(path):
            digest.update(block)
    except DataError:  # unreadable or damaged
        return Checked(file, path, "different")
    return Checked(file, path, "good" if digest.hexdigest() == file.sha256 else "different")


def _roots() -> list[Path]:
    folder = os.environ.get("NMT_CORPORA")
    return [*([expand_home(folder)] if folder else []), cache_folder() / "corpora"]


def _present(name: str, split: str, language: str) -> Path | None:
    paths = (any_compression(root / name / f"{split}.{language}") for root in _roots())
    return next((path for path in paths if path), None)


def _nearest(name: str, names: Collection[str]) -> str:
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else f"; there are {', '.join(names)}."


def _fetched(corpus: NamedCorpus, file: TextFile, progress: Progress | None) -> Path:
    """Download a file to the cache. It appears there only if its checksum is right."""
    path = cache_folder() / "corpora" / corpus.name / f"{file.split}.{file.language}.gz"
    by_hand = f"put it at {_roots()[0] / corpus.name / path.stem}[.gz]"
    if not os.environ.get("NMT_CORPORA"):
        by_hand += ", or set NMT_CORPORA to a folder with " + f"{corpus.name}/{path.stem}"
    if not file.sources:
        raise DataError(
            f"{corpus.name} is local only, so it cannot be fetched: it is {corpus.derivation}. If you have a copy, {by_hand}."
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as beside, beside.open("wb") as stream:
            checksum = _download(file.sources, stream, progress)
            if checksum != file.sha256:
                raise _DownloadError(f"the SHA-256 of its text is {checksum}, not {file.sha256}")
    except _DownloadError as error:
        name = f"{corpus.name}/{file.split}.{file.language}"
        raise DataError(
            f"Cannot fetch {name} from {' '.join(file.sources)}: {error}; get it elsewhere and {by_hand}."
        ) from None
    except OSError as error:
        raise DataError(
            f"Cannot write to {path.parent} ({error.strerror or error}): set NMT_CACHE to another folder."
        ) from None
    return path


class _DownloadError(Exception):
    """A download failed; the message is the reason."""


def _download(sources: tuple[str, ...], sink: io.BufferedWriter, progress: Progress | None) -> str:
    """Download the parts into one gzip file; returns the SHA-256 of the text."""
    digest = hashlib.sha256()
    with gzip.GzipFile(filename="", fileobj=sink, mode="wb", mtime=0) as packed:
        for source in sources:
            blocks = _received(source, progress)
            for text in _inflated(blocks) if source.endswith(".gz") else blocks:
                digest.update(text)
                packed.write(text)
    return digest.hexdigest()


def _inflated(blocks: Iterator[bytes]) -> Iterator[bytes]:
    inflate = zlib.decompressobj(wbits=31)
    try:
        for block in blocks:
            yield inflate.decompress(block)
    except zlib.error as error:
        raise _DownloadError(f"it is not a gzip file ({error})") from None
    if not inflate.eof:
        raise _DownloadError("it ends too early")


def _received(source: str, progress: Progress | None) -> Iterator[bytes]:
    count = 0
    try:
        with urllib.request.urlopen(source, timeout=_SECONDS) as response:  # noqa: S310 -- addresses of this module
            length = response.headers.get("Content-Length")
            total = int(length) if length else None
            while block := response.read(_BLOCK):
                count += len(block)
                if progress:
                    progress(source, count, total)
                yield block
    except (OSError, HTTPException) as error:
        raise _DownloadError(str(getattr(error, "reason", None) or error)) from None
    if total is not None and count != total:
        raise _DownloadError(f"only {count:,} of {total:,} bytes came")
