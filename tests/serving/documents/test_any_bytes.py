"""Whatever a file has in it, it is read and written, or refused in a sentence."""

import random
from contextlib import suppress

import pytest

from nmt.errors import DataError
from nmt.serving.documents.document import InlineDocument
from nmt.serving.documents.formats import FORMATS
from tests.serving.documents import test_docx, test_po, test_texts, test_xml

LANGUAGES = ("en", "de")
_RUNS = test_docx.run("a ") + test_docx.field("begin") + test_docx.run("b", test_docx.BOLD) + test_docx.field("end")
FILES = {
    ".docx": test_docx.packed(f"<w:p>{_RUNS}<w:hyperlink>{_RUNS}</w:hyperlink></w:p>"),
    ".xliff": test_xml.XLIFF_1.encode(),
    ".xlf": test_xml.XLIFF_2.encode(),
    ".tmx": test_xml.TMX.encode(),
    ".po": (test_po.POLISH + test_po.PLURAL).replace("pl\\n", "de\\n").encode(),
    ".pot": test_po.PLURAL.encode(),
    ".srt": test_texts.CUES.encode(),
    ".html": b'<html lang="en"><meta charset="utf-8"><p>a <b>b</b></p>',
    ".htm": b"<p>a",
    ".txt": b"a",
}


def test_every_format_has_a_file() -> None:
    assert FILES.keys() == FORMATS.keys()


@pytest.mark.parametrize("suffix", FORMATS)
def test_damaged_files_are_read_or_refused(suffix: str) -> None:
    generator = random.Random(1)
    read = 0
    for _ in range(300):
        content = damaged(FILES[suffix], generator)
        with suppress(DataError):
            _translated(suffix, content)
            read += 1
    assert read


def damaged(content: bytes, generator: random.Random) -> bytes:
    """The content with bytes changed, cut out, or repeated."""
    for _ in range(generator.randint(1, 3)):
        place, end = sorted(generator.choices(range(len(content) + 1), k=2))
        end = min(end, place + 40)
        other = [generator.randbytes(1), b"", 2 * content[place:end], b"\x00", b"<", b'"', b"\xff\xfe"]
        content = content[:place] + generator.choice(other) + content[end if generator.random() < 0.5 else place :]
    return content


def _translated(suffix: str, content: bytes) -> bytes:
    document = FORMATS[suffix].read(content, LANGUAGES)
    if isinstance(document, InlineDocument):
        return document.write([text.restore(text.plain.upper()) for text in list(document.texts)])
    return document.write(document.texts)
