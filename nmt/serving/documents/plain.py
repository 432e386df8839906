"""Plain text."""

from nmt.serving.documents.document import Document, Languages, decode


def read_plain(content: bytes, _: Languages) -> Document:
    """The file as one text."""
    text, encode = decode(content)
    return Document([text], lambda translations: encode(translations[0]))
