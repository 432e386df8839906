"""Lossless subword encoding and decoding with SentencePiece.

Models are trained with identity normalization, so that `decode(encode(text)) == text`, including outer and repeated spaces.
There are two exceptions:

* A character that was not in the training text becomes the unknown mark `⁇` if there is no byte fallback.
* U+10FFFF, a noncharacter of Unicode, decodes as "▁" (U+2581). It replaces a literal "▁" in the text, because SentencePiece
  uses that character for the space.
"""

import hashlib
import io
import math
import random
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import sentencepiece

from nmt.errors import DataError
from nmt.runtime.arguments import as_path
from nmt.runtime.files import replacing
from nmt.text.regularization import MARK, Sampler, Vocabulary
from nmt.text.scripts import is_unspaced, join_texts

PAD, UNK, BOS, EOS = 0, 1, 2, 3
Kind = Literal["unigram", "bpe", "char", "word"]

_MARK, _STAND_IN = MARK, "\U0010ffff"
_SPECIAL = {"pad_id": PAD, "unk_id": UNK, "bos_id": BOS, "eos_id": EOS}
_NAMES = ("<pad>", "<unk>", "<s>", "</s>")
TRAINING_LINES = 2_000_000
_LONGEST_LINE = 2**30  # bytes; SentencePiece's own default silently drops lines beyond 4,192
_LARGEST = 2**28  # bytes of a model file; a token takes less than a hundred
_THREADS = 16  # fixed, because it affects the model: sums are taken per thread, and the file holds the number


class Subwords:
    """A SentencePiece model, made by `train`, `load` or `from_bytes`. Its ids are ours, whichever it was trained with."""

    def __init__(self, processor: sentencepiece.SentencePieceProcessor) -> None:
        self._processor: Any = processor
        special = [getattr(self._processor, key)() for key in _SPECIAL]  # -1 for a token that it lacks
        size = self._processor.get_piece_size()
        self._pieces = [*special, *(piece for piece in range(size) if piece not in special)]
        """The id that SentencePiece has for each of ours."""
        self._has_our_ids = self._pieces == list(range(size))
        self._ids = {piece: index for index, piece in enumerate(self._pieces)}
        self._bytes = [self._bytes_of(index) for index in range(len(self))]
        normalized: str = self._processor.normalize("a")
        self._has_prefix, self._has_suffix = normalized.startswith(_MARK), normalized.endswith(_MARK)

    @classmethod
    def train(
        cls,
        lines: Iterable[str],
        *,
        kind: Kind,
        size: int,
        byte_fallback: bool,
        seed: int = 1,
        tags: Sequence[str] = (),
    ) -> "Subwords":
        """Train a model of at most `size` tokens, special ones included. The same lines and seed give the same bytes.

        Of more than two million lines, a random sample of two million is used, drawn with `seed`. Each of `tags`, such as
        `<BT>`, is one token wherever it follows a space or begins a line.

        Raises:
            DataError: there is no text, or it needs a larger vocabulary; the message says how large.
        """
        sample = (_escape(line) for line in _sample(lines, TRAINING_LINES, seed))
        symbols = {"user_defined_symbols": [f"{_MARK}{tag}" for tag in tags]} if tags else {}
        model = io.BytesIO()
        trainer: Any = sentencepiece.SentencePieceTrainer
        try:
            trainer.train(
                sentence_iterator=sample,
                model_writer=model,
                model_type=kind,
                vocab_size=size,
                hard_vocab_limit=False,  # a short text has fewer
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
                **symbols,
            )
        except (RuntimeError, UnicodeEncodeError) as error:
            raise DataError(_training_message(str(error), kind, size, byte_fallback, len(tags))) from None
        return cls.from_bytes(model.getvalue())

    @classmethod
    def load(cls, path: str | Path) -> "Subwords":
        """Read a SentencePiece file. Raises DataError if it is missing or not a model."""
        path = as_path(path, "The SentencePiece model")
        try:
            if path.stat().st_size > _LARGEST:
                raise DataError(f"{path} is not a SentencePiece model: it has more than {_LARGEST:,} bytes.")
            return cls.from_bytes(path.read_bytes(), str(path))
        except OSError as error:
            raise DataError(f"Cannot read the SentencePiece model {path}: {error.strerror or error}.") from None

    @classmethod
    def from_bytes(cls, serialized: bytes, name: str = "The SentencePiece model") -> "Subwords":
        """Make the model from the bytes of its file; `name` is for error messages. Raises DataError like `load`."""
        processor: Any = sentencepiece.SentencePieceProcessor()
        try:
            if not serialized:
                raise RuntimeError("empty")
            processor.LoadFromSerializedProto(serialized)
            return cls(processor)
        except (RuntimeError, ValueError):  # ValueError: a token is not UTF-8, or a byte token has no byte
            raise DataError(f"{name} is not a SentencePiece model: train one with `spm_train`.") from None

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        return type(self).from_bytes, (self.serialized,)

    def __len__(self) -> int:
        return len(self._pieces)

    @property
    def serialized(self) -> bytes:
        """The bytes of the model's file."""
        return bytes(self._processor.serialized_model_proto())

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the model's file, in hexadecimal."""
        return hashlib.sha256(self.serialized).hexdigest()

    def save(self, path: str | Path) -> None:
        """Write the model's file atomically."""
        with replacing(as_path(path, "The SentencePiece model")) as beside:
            beside.write_bytes(self.serialized)

    def encode(self, text: str) -> list[int]:
        """Token ids of a text, without begin or end mark. Names of control tokens such as `<s>` are plain text."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str], *, threads: int = -1) -> list[list[int]]:
        """Token ids of each text, with so many threads, or all cores if there are many texts.

        Raises:
            DataError: a text has a lone surrogate.
        """
        threads = threads if len(texts) > 64 else 1
        escaped = [_escape(text) for text in texts]
        try:
            batch: list[list[int]] = self._processor.encode(escaped, num_threads=threads)
        except (RuntimeError, TypeError, UnicodeError):
            for text in texts:
                if match := re.search(r"[\ud800-\udfff]", text):
                    where = f"character {match.start() + 1} is a lone surrogate"
                    raise DataError(f"The text {text!r} is not valid Unicode: {where}.") from None
            raise
        if not self._has_our_ids:
            batch = [[self._ids[piece] for piece in pieces] for pieces in batch]
        return [self._split_unknown(text, ids) if UNK in ids else ids for text, ids in zip(escaped, batch, strict=True)]

    def _split_unknown(self, text: str, ids: list[int]) -> list[int]:
        """Give each unknown word an unknown id of its own; SentencePiece merges those of consecutive words."""
        tokens = self._processor.encode(text, out_type=str)
        words = (
            len(re.findall(f"{_MARK}+[^{_MARK}]+", token)) if index == UNK else 1
            for token, index in zip(tokens, ids, strict=True)
        )
        return [index for index, count in zip(ids, words, strict=True) for _ in range(max(count, 1))]

    def sample(self, texts: Iterable[str], alpha: float, *, seed: int) -> Iterator[list[int]]:
        """Ids of a random segmentation of each text (Kudo 2018; BPE dropout, Provilkov et al. 2020).

        Args:
            texts: the texts.
            alpha: inverse temperature of unigram sampling, or dropout rate of BPE merges.
            seed: the same arguments give the same ids, in any process.
        """
        generator, sampler = random.Random(seed), Sampler(self._vocabulary, alpha)
        return (sampler.draw(self._processor.normalize(_escape(text)), generator) for text in texts)

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        """The tokens that text can be segmented into."""
        processor, ids = self._processor, {piece: index for piece, index in self._ids.items() if piece >= 0}
        special = (processor.is_control, processor.is_unknown, processor.is_byte, processor.is_unused)
        ordinary = [piece for piece in ids if not any(is_special(piece) for is_special in special)]
        tokens = {processor.id_to_piece(piece): (ids[piece], processor.get_score(piece)) for piece in ordinary}
        # Symbols that are never split have score +0; log-probabilities are negative, and the first merge of BPE has -0.
        whole = {token for token, (_, score) in tokens.items() if score == 0 and math.copysign(1, score) > 0}
        return Vocabulary(tokens, UNK, [index for piece, index in ids.items() if processor.is_byte(piece)], whole)

    def decode(self, ids: Sequence[int], *, unknown: Sequence[str | None] | None = None) -> str:
        """The text of token ids. Control ids add nothing; bytes that are not UTF-8 become U+FFFD.

        Args:
            ids: the token ids.
            unknown: words to replace the marks of unknown ids, one for each in order; None keeps a mark.

        Raises:
            ValueError: there are more or fewer words than unknown ids.
        """
        parts = [self._bytes[index] for index in ids]
        if unknown is not None:
            mark = self._bytes[UNK].decode()
            before, after = mark[: len(mark) - len(mark.lstrip())], mark[len(mark.rstrip()) :]
            unknown_at = [position for position, index in enumerate(ids) if index == UNK]
            for position, word in zip(unknown_at, unknown, strict=True):
                if word is not None:
                    parts[position] = f"{before}{_escape(word)}{after}".encode()
        joined = b"".join(parts)
        text = joined.decode("utf-8", "replace").replace(_MARK, " ")
        text = text.removeprefix(" ") if self._has_prefix else text
        text = text.removesuffix(" ") if self._has_suffix else text
        return text.replace(_STAND_IN, _MARK)

    def spelling(self, text: str) -> bytes:
        """The bytes that the tokens of a text spell, one after the other."""
        return (_escape(f" {text}") if self._has_prefix else _escape(text)).encode()

    def spelling_on(self, text: bytes, start: int) -> dict[int, int]:
        """The tokens that spell the next bytes of a text, or all that are left and more; each with the place after it.

        Of a token that spells more, it is the one beyond the end of the text.
        """
        spellings, ids, by_beginning = self._spellings
        rest, ends = text[start:], dict[int, int]()
        for end in range(start + 1, len(text)):
            if (spelled := by_beginning.get(text[start:end])) is None:
                break
            for index in spelled:
                ends[index] = end
        going_on = ids[bisect_left(spellings, rest) : bisect_left(spellings, rest + b"\xff")]  # no UTF-8 has FF
        return ends | dict.fromkeys(going_on, len(text) + 1) | dict.fromkeys(by_beginning.get(rest, ()), len(text))

    @cached_property
    def _spellings(self) -> tuple[list[bytes], list[int], dict[bytes, list[int]]]:
        """The bytes and ids of all tokens that are written, in order of the bytes; the ids of exactly the first bytes of each."""
        ordered = sorted((spelling, index) for index, spelling in enumerate(self._bytes) if spelling and index != UNK)
        by_beginning: dict[bytes, list[int]] = {}
        for spelling, index in ordered:
            for size in range(1, len(spelling)):
                by_beginning.setdefault(spelling[:size], [])
            by_beginning.setdefault(spelling, []).append(index)
        return [spelling for spelling, _ in ordered], [index for _, index in ordered], by_beginning

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """The tokens as SentencePiece spells them: `▁` begins a word, `<0xE2>` is a byte."""
        return [self._token(index) for index in ids]

    def _token(self, index: int) -> str:
        piece = self._pieces[index]
        return str(self._processor.id_to_piece(piece)) if piece >= 0 else _NAMES[index]

    @cached_property
    def is_spaced(self) -> bool:
        """Whether words of scripts without spaces were separated by spaces in the model's training text.

        If they were, most tokens of several such characters begin with a word mark, otherwise about one in ten.
        """
        tokens = [token for token in self.tokens(range(len(self))) if sum(map(is_unspaced, token)) > 1]
        return 2 * sum(token.startswith(_MARK) for token in tokens) > len(tokens)

    def continuation(self, first: Sequence[int], second: Sequence[int]) -> Sequence[int]:
        """The ids of a text after another in one line: without its word mark where `join_texts` writes no space between them."""
        ends, token = [self.decode(first[-8:]), self.decode(second[:8])], "".join(self.tokens(second[:1]))
        if not (all(ends) and token.startswith(_MARK)) or join_texts(ends) != "".join(ends):
            return second
        rest = token.removeprefix(_MARK)
        return [*self._vocabulary.spell([rest] if rest in self._vocabulary.tokens else rest), *second[1:]]

    def unknown_characters(self, text: str) -> set[str]:
        """The characters of a text that no token has: the training text had them rarely or never."""
        unknown = set(text) - self._alphabet
        spelled = {character: self._processor.normalize(_escape(character)) for character in unknown}
        return {character for character in unknown if not self._alphabet.issuperset(spelled[character])}

    @cached_property
    def _alphabet(self) -> frozenset[str]:
        """The characters of all tokens, and the space."""
        return frozenset(" ".join(self._vocabulary.tokens))

    def word_of(self, ids: Sequence[int]) -> list[int]:
        """For each id, the index of its word in `split_spaces(clean(decode(ids)))`: a no-break space ends no word.

        * A token without a visible character (a lone word mark) belongs to the next word, or to the last one.
        * A token that spans several words, possible with tabs and control characters, belongs to the first of them.
        """
        words: list[int] = []
        latest = -1  # the latest word that has begun
        inside = False  # whether the previous character was part of a word
        for characters in self.characters(ids):
            first = None
            for character in characters:
                # Spaces, line ends and control characters separate words.
                visible = character not in (" ", _MARK) and unicodedata.category(character) not in ("Cc", "Zl", "Zp")
                if visible and not inside:
                    latest += 1
                if visible and first is None:
                    first = latest
                inside = visible
            # An empty token inside a word (a later byte of a character) belongs to that word.
            words.append(first if first is not None else latest if not characters and inside else latest + 1)
        return [min(word, max(latest, 0)) for word in words]

    def characters(self, ids: Sequence[int]) -> Iterator[str]:
        """For each id, the characters that begin in it. Each invalid byte becomes one surrogate."""
        parts = [self._bytes[index] for index in ids]
        # One surrogate per invalid byte: positions in the text and in the bytes can be matched.
        text = b"".join(parts).decode("utf-8", "surrogateescape")
        characters = iter(text)
        position = 0  # in bytes, of the next character
        end = 0
        for part in parts:
            end += len(part)
            begun = ""
            while position < end:
                begun += next(characters)
                position += len(begun[-1].encode("utf-8", "surrogateescape"))
            yield begun

    def _bytes_of(self, index: int) -> bytes:
        """The UTF-8 bytes that an id adds to the text. Raises ValueError if its token is not UTF-8, or names no byte."""
        token, piece = self._token(index), self._pieces[index]
        if piece < 0 or self._processor.is_control(piece):
            return b""
        if self._processor.is_unknown(piece):
            return str(self._processor.decode([piece])).encode()
        if self._processor.is_byte(piece):
            return bytes([int(token[3:5], 16)])
        return token.replace(_MARK, " ").encode()


def _escape(text: str) -> str:
    return text.replace(_MARK, _STAND_IN)


def _sample(lines: Iterable[str], limit: int, seed: int) -> Iterator[str]:
    """All lines, or a random sample of `limit` lines if there are more (reservoir sampling)."""
    source = iter(lines)
    reservoir = list(islice(source, limit))
    generator = random.Random(seed)
    for count, line in enumerate(source, start=limit + 1):
        row = generator.randrange(count)
        if row < limit:
            reservoir[row] = line
    return iter(reservoir)


def _training_message(message: str, kind: str, size: int, byte_fallback: bool, tags: int) -> str:
    """Translate an assertion of SentencePiece into an error message about the recipe."""
    if smallest := re.search(r"required_chars\. \d+ vs (\d+)", message):
        return f"subwords.size {size} has no room for every character of the text: set it to at least {smallest[1]}" + (
            ", or set subwords.byte_fallback: true." if not byte_fallback else "."
        )
    if "sentences_.empty()" in message:
        return "There is no text to train subwords on: every line is empty."
    if "(vocab_size) >= (0)" in message or "insert_id" in message:
        least = len(_SPECIAL) + (256 if byte_fallback else 0) + tags + 1
        return f"subwords.size {size} has no room beside the special tokens and bytes: set it to at least {least}."
    if "Unable to cast" in message:
        return "The text to train subwords on is not valid Unicode: it has a lone surrogate."
    return f"SentencePiece cannot train a {kind} model of size {size} on this text: {message.strip()}."
