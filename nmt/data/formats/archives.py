"""Find parallel text in zip archives, such as those of OPUS."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from nmt.data.formats import PAIR_FILES, holds_pairs
from nmt.data.lines import COMPRESSIONS
from nmt.errors import DataError
from nmt.runtime.archive_members import ArchiveMember, member_names

_NAMED = 6
"""Most members that an error names."""


def split_archive(locator: str) -> tuple[Path, str] | None:
    """The archive of a locator `dir/x.zip` or `dir/x.zip/inner/train.{en,de}`, and what it names inside; None if it has none."""
    for match in re.finditer(r"\.zip(?=/|$)", locator):
        try:
            path = Path(locator[: match.end()]).expanduser()
            if path.is_file():
                return path, locator[match.end() :].strip("/")
        except (OSError, ValueError, RuntimeError):  # an invalid name, or an unknown home folder
            return None
    return None


def find_text(archive: Path, source: str, target: str) -> list[ArchiveMember]:
    """The only text in an archive: two members `X.en` and `X.de`, or one that holds both sides.

    Raises:
        DataError: there is none, or more than one. The message lists the locators to choose from.
    """
    names = [name for name in member_names(archive) if not name.startswith("__MACOSX/")]
    texts: dict[str, tuple[str, ...]] = {
        f"{archive}/{stem}{{{source},{target}}}": both for stem, both in _two_sides(names, source, target)
    }
    texts |= {f"{archive}/{name}": (name,) for name in names if holds_pairs(name)}
    if len(texts) == 1:
        [members] = texts.values()
        return [ArchiveMember(archive, name) for name in members]
    if not texts:
        raise DataError(
            f"{archive} has no two files that end in .{source} and .{target}, and none that holds both sides "
            f"({' '.join(PAIR_FILES)}): {_listed(names)}."
        )
    raise DataError(f"{archive} has several texts, so name one: {_listed([*texts])}.")


def find_members(archive: Path, names: Sequence[str]) -> list[ArchiveMember]:
    """The members of these names, or with a suffix of a compression. Raises DataError if there is no such member."""
    known = member_names(archive)
    members = []
    for name in names:
        match = next((f"{name}{end}" for end in COMPRESSIONS if f"{name}{end}" in known), None)
        if match is None:
            raise DataError(f"{archive} has no file {name}, only {_listed(known)}.")
        members.append(ArchiveMember(archive, match))
    return members


def _two_sides(names: Sequence[str], source: str, target: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """What comes before the language code, and both names, for each pair of members that differ in it alone."""
    plain = {
        name.removesuffix(PurePosixPath(name).suffix) if name.endswith(COMPRESSIONS[1:]) else name: name
        for name in names
    }
    for name, member in plain.items():
        stem = name.removesuffix(source)
        if name != stem and stem.endswith(".") and f"{stem}{target}" in plain:
            yield stem, (member, plain[f"{stem}{target}"])


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return (", ".join(names[:_NAMED]) or "nothing") + more
