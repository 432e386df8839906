"""The recipe's settings of text: corpora, filters, subwords."""

import re
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    SerializerFunctionWrapHandler,
    Tag,
    model_serializer,
    model_validator,
)

from nmt.recipe.section import ContradictionError, Positive, Ratio, Section, Share, Size

Normalization = Literal["nfc", "nfkc", "none"]


class FiltersConfig(Section):
    """Which training pairs to leave out, besides those with an empty side. Lengths are in tokens, EOS not counted.

    The rules apply in the order of the keys, and a pair counts for the first one that it breaks. A rule on one side applies to both.
    """

    max_length: Size = 100
    """Most tokens of the longer side."""
    max_ratio: Positive | None = 9.0
    """Largest ratio of the longer to the shorter side; null keeps all."""
    duplicates: bool = True
    """Whether to keep repeated pairs."""
    copies: bool = True
    """Whether to keep pairs whose two sides are equal but for spaces."""
    max_word_length: Size | None = None
    """Most characters of a word, which is what spaces separate; 40 removes most addresses and lines without spaces. null keeps all."""
    min_letters: Share | None = None
    """Least share of letters in the characters of a side, spaces not counted, such as 0.5; null keeps all."""
    scripts: bool = False
    """Whether more than half of the letters of a side must be of the scripts that its language is written in."""
    language: Share | None = None
    """Least probability that a side is in its language, by py3langid (`pip install "nmt[langid]"`); null keeps all. Short lines get low
    probabilities: 0.1 removes 0.7 % of the English lines of Tatoeba, 0.5 removes 7 %."""


def _from_locator(value: object) -> object:
    """Accept the locator of a corpus alone."""
    return {"corpus": value} if isinstance(value, str) else value


class CorpusConfig(Section):
    """A corpus of a mixture; its locator alone has weight 1 and no tag."""

    corpus: str
    """Its locator."""
    weight: Ratio = 1.0
    """How often an epoch shows each pair: 2 twice, 0.5 half of the pairs, and the other half in the next epoch."""
    tag: Annotated[str, Field(pattern=r"^<[^\s<>\u2581]+>$", max_length=40)] | None = None
    """A word in angle brackets that is put before every source line, such as `<BT>` for back-translated text (Caswell et al. 2019).
    It is one token of the subwords that are trained. Validation and test text get no tag."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.tag in ("<s>", "</s>", "<pad>", "<unk>") or (self.tag and re.fullmatch("<0x..>", self.tag)):
            raise ValueError(f"tag {self.tag} is the name of another token: choose another word, such as <BT>")
        return self

    def __str__(self) -> str:
        weight = "" if self.weight == 1 else f" x {self.weight:g}"
        return f"{self.tag + ' ' if self.tag else ''}{self.corpus}{weight}"


def _one_or_several(value: object) -> str | None:
    """Which alternative of `data.train` a value is meant for."""
    if isinstance(value, str):
        return "locator"
    return "mixture" if isinstance(value, list | tuple) and value else None


_CorpusOfMixture = Annotated[CorpusConfig, BeforeValidator(_from_locator, json_schema_input_type=str | CorpusConfig)]
_TrainingCorpus = Annotated[
    Annotated[str, Tag("locator")] | Annotated[tuple[_CorpusOfMixture, ...], Tag("mixture")],
    Discriminator(
        _one_or_several,
        custom_error_type="mixture",
        custom_error_message="It is a locator, or a list of locators and sections {corpus, weight, tag}",
    ),
]


class DataConfig(Section):
    """The parallel text, as locators: `dir/train.{en,de}.gz`, a file with both sides (`.tsv .csv .jsonl .parquet .tmx .xlf .po`), an
    archive `x.zip`, `hf:owner/name:split`, `multi30k/train`, `sample:train`, `sacrebleu:wmt14/en-de`,
    `mtdata:Statmt-europarl-10-deu-eng` (extra `mtdata`). `[:10000]` at the end takes the first 10,000 pairs, `[10000:]` all others.
    """

    source: str
    """Language code of the source side, as in file names and columns."""
    target: str
    """Language code of the target side."""
    train: _TrainingCorpus
    """A corpus, or a mixture: a list of locators and of sections such as `{corpus: LOCATOR, weight: 2, tag: "<BT>"}`."""
    temperature: Annotated[float, Field(ge=1, le=1000)] | None = None
    """Mix in proportion to lines^(1/T) instead of by weights, in epochs as long as all corpora together (Arivazhagan et al. 2019,
    4.2): 1 takes every pair once, 5 is common for many languages, 1000 is almost uniform."""
    valid: str
    test: str | None = None
    """Held-out text for `nmt evaluate`; not used in training."""
    normalization: Normalization = "nfc"
    """Form of all text that the model reads and learns to write, also when it translates: Unicode's canonical composition (nfc), with
    plain spaces and without soft hyphens and invisible marks; nfkc also replaces full-width letters, ligatures and the like; none only
    removes control characters and needless spaces. Models from before this setting have none."""
    filters: FiltersConfig = FiltersConfig()

    @property
    def corpora(self) -> tuple[CorpusConfig, ...]:
        """The training corpora, of which there is one unless they are mixed."""
        return (CorpusConfig(corpus=self.train),) if isinstance(self.train, str) else self.train

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.temperature is not None and isinstance(self.train, str):
            raise ContradictionError(
                ("temperature", "train"),
                f"temperature {self.temperature:g} has nothing to mix, because train is one corpus: leave it out or list several",
            )
        weighted = next((item for item in self.corpora if item.weight != 1), None)
        if self.temperature is not None and weighted is not None:
            raise ContradictionError(
                ("temperature", "train"),
                f"temperature {self.temperature:g} and the weight {weighted.weight:g} of {weighted.corpus} both say how often pairs "
                "are shown: leave one out",
            )
        return self

    @model_serializer(mode="wrap")
    def _without_temperature(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out a temperature of null, so that recipes with one corpus stay as they were before there were mixtures."""
        tree: dict[str, Any] = serialize(self)
        if tree.get("temperature", 0) is None:
            del tree["temperature"]
        return tree


class SubwordsConfig(Section):
    """SentencePiece models, trained by `nmt train` on the training text unless files are given."""

    kind: Literal["unigram", "bpe", "char", "word"] = "unigram"
    size: Annotated[int, Field(ge=8)] = 8000
    """Size of the vocabulary (of each side, unless joint) in tokens, special ones included."""
    joint: bool = True
    """One model for both languages; needed to tie all embeddings."""
    byte_fallback: bool = True
    """Spell unseen characters as bytes, so that there are no unknown tokens."""
    sampling: Positive | None = None
    """Subword regularization (Kudo 2018; BPE dropout): inverse temperature of unigram sampling or BPE dropout rate; null is off."""
    source_model: str | None = None
    """A SentencePiece file to use for the source instead of training one."""
    target_model: str | None = None

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if (self.source_model is None) != (self.target_model is None):
            raise ValueError("source_model and target_model go together: give both (the same file when joint) or none")
        if self.sampling is not None and self.kind not in ("unigram", "bpe"):
            raise ValueError(
                f"sampling needs kind unigram or bpe, but kind is {self.kind}: change kind or leave sampling out"
            )
        if self.sampling is not None and self.kind == "bpe" and self.sampling > 1:
            raise ValueError(f"sampling is the rate of dropped merges of bpe, at most 1, but is {self.sampling:g}")
        if self.byte_fallback and self.kind == "unigram" and self.size < 300 and self.source_model is None:
            raise ValueError(
                f"size {self.size} leaves no room beside the 256 byte tokens: raise size or set byte_fallback: false"
            )
        return self
