"""Members of zip archives, which are read as files are. Nothing is extracted to disk."""

import lzma
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from nmt.errors import DataError
from nmt.runtime.wording import reason

ZIP_ERRORS = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, RuntimeError, ValueError)
"""What zipfile raises for damaged archives, unknown compressions (RuntimeError) and invalid names (ValueError)."""
_ENCRYPTED = 0x1


@dataclass(frozen=True)
class ArchiveMember:
    """A file in a zip archive."""

    archive: Path
    name: str

    def __str__(self) -> str:
        return f"{self.archive}/{self.name}"

    def open(self) -> BinaryIO:
        """Open it for reading. Raises DataError if it is encrypted or the archive is damaged."""
        try:
            with zipfile.ZipFile(self.archive) as bundle:  # the stream outlives it
                info = bundle.getinfo(self.name)
                if info.flag_bits & _ENCRYPTED:
                    raise DataError(f"{self} is encrypted: unpack the archive with its password, and name the files.")
                return cast(BinaryIO, bundle.open(info))
        except ZIP_ERRORS as error:
            raise DataError(f"Cannot read {self}: {reason(error)}.") from None


def member_names(archive: Path) -> list[str]:
    """The names of the files in an archive, in its order. Raises DataError if it is not a readable zip archive."""
    try:
        with zipfile.ZipFile(archive) as bundle:
            names = dict.fromkeys(info.filename for info in bundle.infolist())
            return [name for name in names if name and not name.endswith("/")]  # one without a name is no file
    except ZIP_ERRORS as error:
        raise DataError(f"{archive} is damaged, or no zip archive: {reason(error)}.") from None
