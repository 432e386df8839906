"""Text to ids and back through SentencePiece, without losing a character.

Models are trained with identity normalisation, so that `decode(encode(text)) == text`, spaces at either end and
repeated ones included. What cannot come back: a character that was never seen, when there is no byte fallback (it
becomes the unknown mark `⁇`), and U+10FFFF, a noncharacter of Unicode that stands in for a literal "▁" (U+2581, which
SentencePiece itself uses for the space) and so decodes as one.
"""

import hashlib
import io
import random
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import sentencepiece

from nmt.arguments import as_path
from nmt.data.regularisation import MARK, Sampler, Vocabulary
from nmt.errors import DataError
from nmt.files import replacing
from nmt.scripts import is_unspaced

PAD, UNK, BOS, EOS = 0, 1, 2, 3
Kind = Literal["unigram", "bpe", "char", "word"]

_MARK, _STAND_IN = MARK, "\U0010ffff"
_SPECIAL = {"pad_id": PAD, "unk_id": UNK, "bos_id": BOS, "eos_id": EOS}
TRAINING_LINES = 2_000_000
_LONGEST_LINE = 2**30  # bytes; SentencePiece's own default silently drops lines beyond 4,192
_LARGEST = 2**28  # bytes of a model file, which has less than a hundred a piece
_THREADS = 16  # part of the result: sums are taken per thread, and the number is written into the model


class Subwords:
    """One SentencePiece model; `train`, `load` or `from_bytes` make it."""

    def __init__(self, processor: sentencepiece.SentencePieceProcessor) -> None:
        self._processor: Any = processor
        self._bytes = [self._bytes_of(index) for index in range(len(self))]
        framed: str = self._processor.normalize("a")
        self._has_prefix, self._has_suffix = framed.startswith(_MARK), framed.endswith(_MARK)

    @classmethod
    def train(cls, lines: Iterable[str], *, kind: Kind, size: int, byte_fallback: bool, seed: int = 1) -> "Subwords":
        """Train a model of `size` pieces, special ones included; the same lines and seed give the same bytes.

        Beyond two million lines, a random sample of that many (which `seed` draws) is trained on.

        Raises:
            DataError: there is no text, or it allows no vocabulary of this size (the sentence says which it allows).
        """
        sample = (_escape(line) for line in _sample(lines, TRAINING_LINES, seed))
        model = io.BytesIO()
        trainer: Any = sentencepiece.SentencePieceTrainer
        try:
            trainer.train(
                sentence_iterator=sample,
                model_writer=model,
                model_type=kind,
                vocab_size=size,
                byte_fallback=byte_fallback,
                character_coverage=0.9995 if byte_fallback else 1.0,
                normalization_rule_name="identity",
                remove_extra_whitespaces=False,
                add_dummy_prefix=True,
                unk_surface=" ⁇" if kind == "word" else "⁇",
                max_sentence_length=_LONGEST_LINE,
                num_threads=_THREADS,
                minloglevel=3,
                **_SPECIAL,
            )
        except (RuntimeError, UnicodeEncodeError) as error:
            raise DataError(_training_sentence(str(error), kind, size, byte_fallback)) from None
        return cls.from_bytes(model.getvalue())

    @classmethod
    def load(cls, path: str | Path) -> "Subwords":
        """Read a SentencePiece file. Raises DataError if it is missing, no such model, or has other special ids."""
        path = as_path(path, "The SentencePiece model")
        try:
            if path.stat().st_size > _LARGEST:
                raise DataError(f"{path} is not a SentencePiece model: it has more than {_LARGEST:,} bytes.")
            return cls.from_bytes(path.read_bytes(), str(path))
        except OSError as error:
            raise DataError(f"Cannot read the SentencePiece model {path}: {error.strerror or error}.") from None

    @classmethod
    def from_bytes(cls, serialized: bytes, name: str = "The SentencePiece model") -> "Subwords":
        """The model whose file has these bytes; `name` names it in errors. Raises DataError like `load`."""
        processor: Any = sentencepiece.SentencePieceProcessor()
        try:
            if not serialized:
                raise RuntimeError("empty")
            processor.LoadFromSerializedProto(serialized)
            model = cls(processor)
        except (RuntimeError, ValueError):  # a ValueError where pieces are no UTF-8 or name no byte
            raise DataError(f"{name} is not a SentencePiece model: train one with `spm_train`.") from None
        found = {key: getattr(processor, key)() for key in _SPECIAL}
        if found != _SPECIAL:
            wanted, got = (" ".join(f"{key}={value}" for key, value in ids.items()) for ids in (_SPECIAL, found))
            raise DataError(f"{name} has {got}, but {wanted} is needed: train it with these options.")
        return model

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        return type(self).from_bytes, (self.serialized,)

    def __len__(self) -> int:
        return int(self._processor.get_piece_size())

    @property
    def serialized(self) -> bytes:
        """The bytes of the model's file."""
        return bytes(self._processor.serialized_model_proto())

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the model's file, in hexadecimal."""
        return hashlib.sha256(self.serialized).hexdigest()

    def save(self, path: str | Path) -> None:
        """Write the model's file; a crash leaves either the old file or the new one."""
        with replacing(as_path(path, "The SentencePiece model")) as beside:
            beside.write_bytes(self.serialized)

    def encode(self, text: str) -> list[int]:
        """Ids of the pieces of a text, without begin or end mark; control names like `<s>` in it are plain text."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of each text, found by SentencePiece's own threads. Raises DataError at a lone surrogate."""
        threads = -1 if len(texts) > 64 else 1
        escaped = [_escape(text) for text in texts]
        try:
            batch: list[list[int]] = self._processor.encode(escaped, num_threads=threads)
        except (RuntimeError, TypeError, UnicodeError):
            raise DataError(_surrogate_sentence(texts)) from None
        return [self._split_unknown(text, ids) if UNK in ids else ids for text, ids in zip(escaped, batch, strict=True)]

    def _split_unknown(self, text: str, ids: list[int]) -> list[int]:
        """The ids with one unknown id for each unknown word: SentencePiece makes neighbours one."""
        pieces = self._processor.encode(text, out_type=str)
        words = (
            len(re.findall(f"{_MARK}+[^{_MARK}]+", piece)) if index == UNK else 1
            for piece, index in zip(pieces, ids, strict=True)
        )
        return [index for index, count in zip(ids, words, strict=True) for _ in range(max(count, 1))]

    def sample_batch(self, texts: Sequence[str], alpha: float, *, seed: int) -> list[npt.NDArray[np.int32]]:
        """Ids of a random segmentation of each text (Kudo 2018; BPE dropout, Provilkov et al. 2020).

        Args:
            texts: the texts.
            alpha: inverse temperature of unigram sampling, or dropout rate of BPE merges.
            seed: the same call with the same seed gives the same ids, in any process.
        """
        draws, sampler = random.Random(seed), Sampler(self._vocabulary(), alpha)
        normalized = (self._processor.normalize(_escape(text)) for text in texts)
        return [np.array(sampler.draw(text, draws), np.int32) for text in normalized]

    def _vocabulary(self) -> Vocabulary:
        """What text can be segmented into."""
        known, ids = self._processor, range(len(self))
        special = (known.is_control, known.is_unknown, known.is_byte, known.is_unused)
        ordinary = [index for index in ids if not any(is_so(index) for is_so in special)]
        pieces = {known.id_to_piece(index): (index, known.get_score(index)) for index in ordinary}
        return Vocabulary(pieces, UNK, [index for index in ids if known.is_byte(index)])

    def decode(self, ids: Sequence[int], *, unknown: Sequence[str | None] | None = None) -> str:
        """The text of ids; control ids give nothing, bytes that are no UTF-8 give U+FFFD.

        Args:
            ids: the pieces.
            unknown: a word in the place of each unknown id's mark, in their order; None leaves the mark.

        Raises:
            ValueError: there are more or fewer words than unknown ids.
        """
        parts = [self._bytes[index] for index in ids]
        if unknown is not None:
            places = [place for place, index in enumerate(ids) if index == UNK]
            for place, word in zip(places, unknown, strict=True):
                parts[place] = parts[place] if word is None else self._in_place_of_mark(word)
        joined = b"".join(parts)
        text = joined.decode("utf-8", "replace").replace(_MARK, " ")
        text = text.removeprefix(" ") if self._has_prefix else text
        text = text.removesuffix(" ") if self._has_suffix else text
        return text.replace(_STAND_IN, _MARK)

    def decode_batch(self, batch: Iterable[Sequence[int]]) -> list[str]:
        """The text of each row of ids."""
        return [self.decode(ids) for ids in batch]

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The pieces as SentencePiece writes them: `▁` begins a word, `<0xE2>` is a byte."""
        return [self._processor.id_to_piece(index) for index in ids]

    @cached_property
    def is_spaced(self) -> bool:
        """Whether words of scripts without spaces had spaces between them in the text that the model was trained on.

        Most pieces of several such characters begin with a word mark then, and one in ten otherwise.
        """
        pieces = [piece for piece in self.pieces(range(len(self))) if sum(map(is_unspaced, piece)) > 1]
        return 2 * sum(piece.startswith(_MARK) for piece in pieces) > len(pieces)

    def word_of(self, ids: Sequence[int]) -> list[int]:
        """For each id, the index of its word in `decode(ids).split()`, where control characters count as spaces.

        A piece without a visible character (a lone word mark) goes with the word that follows, or with the last one.
        A piece over several words, which only text with spaces other than U+0020 can have, goes with its first.
        """
        words: list[int] = []
        started = -1  # the last word that began
        inside = False  # whether the character before was part of a word
        for characters in self.characters(ids):
            first = None
            for visible in map(_is_visible, characters):
                started += visible and not inside
                inside = visible
                first = started if visible and first is None else first
            # An empty piece in the middle of a word (the rest of a character's bytes) stays with it.
            words.append(first if first is not None else started if not characters and inside else started + 1)
        return [min(word, max(started, 0)) for word in words]

    def characters(self, ids: Sequence[int]) -> Iterator[str]:
        """For each id, the characters that begin in it, one surrogate for each wrong byte."""
        parts = [self._bytes[index] for index in ids]
        # Each wrong byte becomes one surrogate, so positions in the text and in the bytes can be matched.
        text = b"".join(parts).decode("utf-8", "surrogateescape")
        characters = iter(text)
        position = 0  # in bytes, of the next character
        end = 0
        for part in parts:
            end += len(part)
            begun = ""
            while position < end:
                begun += next(characters)
                position += _width(begun[-1])
            yield begun

    def _in_place_of_mark(self, word: str) -> bytes:
        """A word with the spaces that the unknown mark has around it."""
        mark = self._bytes[UNK].decode()
        before, after = mark[: len(mark) - len(mark.lstrip())], mark[len(mark.rstrip()) :]
        return f"{before}{_escape(word)}{after}".encode()

    def _bytes_of(self, index: int) -> bytes:
        """What an id adds to the text, in UTF-8. Raises ValueError if its piece is none, or no byte where it should be."""
        piece: str = self._processor.id_to_piece(index)
        if self._processor.is_control(index):
            return b""
        if self._processor.is_unknown(index):
            return str(self._processor.decode([index])).encode()
        if self._processor.is_byte(index):
            return bytes([int(piece[3:5], 16)])
        return piece.replace(_MARK, " ").encode()


def _escape(text: str) -> str:
    return text.replace(_MARK, _STAND_IN) if _MARK in text else text


def _sample(lines: Iterable[str], limit: int, seed: int) -> Iterator[str]:
    """All lines, or a random `limit` of them (reservoir sampling) where there are more."""
    source = iter(lines)
    kept = list(islice(source, limit))
    draw = random.Random(seed)
    for count, line in enumerate(source, start=limit + 1):
        place = draw.randrange(count)
        if place < limit:
            kept[place] = line
    return iter(kept)


def _is_visible(character: str) -> bool:
    """Whether a character is neither white space nor a control character."""
    return not (character.isspace() or unicodedata.category(character) == "Cc" or character == _MARK)


def _width(character: str) -> int:
    """Bytes of a character in UTF-8; one for a surrogate that stands for a wrong byte."""
    return 1 if "\udc80" <= character <= "\udcff" else len(character.encode())


def _training_sentence(message: str, kind: str, size: int, byte_fallback: bool) -> str:
    """What SentencePiece's assertion means to the person who wrote the recipe."""
    if largest := re.search(r"too high \(\d+\).*<= (\d+)", message):
        return f"subwords.size {size} is larger than the training text allows: set it to at most {largest[1]}."
    if smallest := re.search(r"required_chars\. \d+ vs (\d+)", message):
        return f"subwords.size {size} has no room for every character of the text: set it to at least {smallest[1]}" + (
            ", or set subwords.byte_fallback: true." if not byte_fallback else "."
        )
    if "sentences_.empty()" in message:
        return "There is no text to train subwords on: every line is empty."
    if "(vocab_size) >= (0)" in message or "insert_id" in message:
        least = len(_SPECIAL) + (256 if byte_fallback else 0) + 1
        return f"subwords.size {size} has no room beside the special pieces and bytes: set it to at least {least}."
    if "Unable to cast" in message:
        return "The text to train subwords on is not valid Unicode: it has a lone surrogate."
    return f"SentencePiece cannot train a {kind} model of size {size} on this text: {message.strip()}."


def _surrogate_sentence(texts: Sequence[str]) -> str:
    for text in texts:
        if found := re.search(r"[\ud800-\udfff]", text):
            return f"The text {text!r} is not valid Unicode: character {found.start() + 1} is a lone surrogate."
    return "A text is not valid Unicode."
