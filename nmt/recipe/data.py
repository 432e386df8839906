"""The recipe's settings of text: corpora, filters, subwords."""

import re
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Discriminator, Field, Tag, model_validator

from nmt.recipe.section import Positive, Ratio, Section, Share, Size, short_form
from nmt.runtime.wording import listed

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
    """Most characters of a word, which is what spaces separate; in Chinese, Japanese, Thai and the like every character is a word. 40
    removes most addresses. null keeps all."""
    min_letters: Share | None = None
    """Least share of letters in the characters of a side, spaces not counted, such as 0.5; null keeps all."""
    scripts: bool = False
    """Whether more than half of the letters of a side must be of the scripts that its language is written in."""
    marks: bool = True
    """Whether to keep pairs with marks of subwords (`@@ `, `▁`) or entities of HTML (`&quot;`)."""
    language: Share | None = None
    """Least probability that a side is in its language, by py3langid (`pip install "attentional-nmt[langid]"`); null keeps all. Short lines
    get low probabilities: 0.1 removes 0.7 % of the English lines of Tatoeba, 0.5 removes 7 %."""


_Language = Annotated[str, Field(pattern=r"^[^\s<>{},/\\\u2581]+$", max_length=30)]


class TextConfig(Section):
    """A corpus with its languages; its locator alone has those of `data.source` and `data.target`."""

    model_config = ConfigDict(validate_by_name=True, serialize_by_alias=True)

    corpus: str
    """Its locator."""
    source: _Language | None = Field(None, alias="from")
    """Language code of its source side. Default: data.source."""
    target: _Language | None = Field(None, alias="to")
    """Language code of its target side. Default: data.target."""


class CorpusConfig(TextConfig):
    """A corpus of a mixture; its locator alone has weight 1 and no tag."""

    weight: Ratio = 1.0
    """How often an epoch shows each pair: 2 twice, 0.5 half of the pairs, and the other half in the next epoch."""
    tag: Annotated[str, Field(pattern=r"^<[^\s<>\u2581]+>$", max_length=40)] | None = None
    """A word in angle brackets that is put before every source line, such as `<BT>` for back-translated text (Caswell et al. 2019).
    It is one token of the subwords that are trained. Validation and test text get no such tag."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.tag in ("<s>", "</s>", "<pad>", "<unk>") or (self.tag and re.fullmatch("<0x..>", self.tag)):
            raise ValueError(f"tag {self.tag} is the name of another token: choose another word, such as <BT>")
        return self

    def __str__(self) -> str:
        weight = "" if self.weight == 1 else f" x {self.weight:g}"
        return f"{self.tag + ' ' if self.tag else ''}{self.corpus}{weight}"


def _alternatives(keys: str) -> Discriminator:
    """Choose by its type what a value of `data.train`, `valid` or `test` is meant for."""

    def meant(value: object) -> str | None:
        if isinstance(value, str):
            return "locator"
        return "mixture" if isinstance(value, list | tuple) and value else None

    return Discriminator(
        meant,
        custom_error_type="mixture",
        custom_error_message=f"It is a locator, or a list of locators and sections {{{keys}}}",
    )


_CorpusOfMixture = Annotated[CorpusConfig, short_form(str, "corpus", schema=str | CorpusConfig)]
_TrainingText = Annotated[
    Annotated[str, Tag("locator")] | Annotated[tuple[_CorpusOfMixture, ...], Tag("mixture")],
    _alternatives("corpus, from, to, weight, tag"),
]
_TextOfPair = Annotated[TextConfig, short_form(str, "corpus", schema=str | TextConfig)]
HeldOutText = Annotated[
    Annotated[str, Tag("locator")] | Annotated[tuple[_TextOfPair, ...], Tag("mixture")],
    _alternatives("corpus, from, to"),
]
HELD_OUT, REST = "[held-out]", "[rest]"
"""After a locator: the pairs that it keeps back for validation, and all others."""
Direction = tuple[str, str]
"""The codes of a source and a target language."""


class DataConfig(Section):
    """The parallel text, as locators: `dir/train.{en,de}.gz`, a file with both sides (`.tsv .csv .jsonl .parquet`; `.tmx .xlf .po`
    with the extra `formats`), `hf:owner/name:split`, `multi30k/train`, `sample:train`, `sacrebleu:wmt14/en-de`,
    `mtdata:Statmt-europarl-10-deu-eng` (extra `mtdata`). `[:10000]` at the end takes the first 10,000 pairs, `[10000:]` all others;
    `[held-out]` takes 1,000 pairs, at most a tenth, in ten blocks spread over the text, `[rest]` all others.
    """

    source: str
    """Language code of the source side, as in file names and columns. Default: the first `from` of `train`."""
    target: str
    """Language code of the target side. Default: the first `to` of `train`."""
    train: _TrainingText
    """A corpus, or a mixture: a list of locators and of sections such as `{corpus: LOCATOR, weight: 2, tag: "<BT>"}`. With `to: gn` in
    any of them the model has several target languages: `<2gn>` is put before the source lines of all text in it (Johnson et al. 2017)."""
    monolingual: str | None = None
    """A file of the target language alone, one sentence a line (any compression), which `nmt train` translates back and trains on too
    (Sennrich et al. 2016)."""
    temperature: Annotated[float, Field(ge=1, le=1000)] | None = None
    """Mix in proportion to lines^(1/T) instead of by weights, in epochs as long as all corpora together (Arivazhagan et al. 2019,
    4.2): 1 takes every pair once, 5 is common for many languages, 1000 is almost uniform."""
    concatenation: Annotated[float, Field(ge=0, le=10)] = 0.0
    """How many joined pairs an epoch also shows, per pair: two random pairs of a corpus in one line, drawn anew in every epoch (Nguyen et
    al. 2021; Kondo et al. 2021). It helps with little text, most if the lines to translate are longer than those for training."""
    copying: Share = 0.0
    """The share of pairs that an epoch shows with one to three numbers and rare words of the source before or after both sides, drawn
    anew in every epoch. It teaches to copy names and numbers from little text (after Currey et al. 2017), if both languages write them
    alike."""
    valid: HeldOutText
    """A corpus, or a list of locators and of sections such as `{corpus: LOCATOR, to: gn}`: the mean over the languages counts.
    Default, if `train` is one corpus: 1,000 of its pairs, at most a tenth, which are then not trained on."""
    test: HeldOutText | None = None
    """Held-out text for `nmt evaluate`, of the same form; not used in training."""
    normalization: Normalization = "nfc"
    """Form of all text that the model reads and learns to write, also when it translates: Unicode's canonical composition (nfc), with
    plain spaces and without soft hyphens and invisible marks; nfkc also replaces full-width letters, ligatures and the like; none only
    removes control characters and needless spaces. Models from before this setting have none."""
    filters: FiltersConfig = FiltersConfig()

    @property
    def corpora(self) -> tuple[CorpusConfig, ...]:
        """The training corpora, of which there is one unless they are mixed."""
        return (CorpusConfig(corpus=self.train),) if isinstance(self.train, str) else self.train

    @staticmethod
    def texts(value: str | tuple[TextConfig, ...] | None) -> tuple[TextConfig, ...]:
        """The texts of `valid` or `test`."""
        return (TextConfig(corpus=value),) if isinstance(value, str) else value or ()

    def direction(self, text: TextConfig) -> Direction:
        """The languages of a text."""
        return text.source or self.source, text.target or self.target

    @property
    def directions(self) -> tuple[Direction, ...]:
        """The pairs of languages that the model is trained on, in the order of their corpora."""
        return tuple(dict.fromkeys(map(self.direction, self.corpora)))

    @property
    def targets(self) -> tuple[str, ...]:
        """The languages that the model translates to."""
        return tuple(dict.fromkeys(target for _, target in self.directions))

    def tags(self, text: TextConfig) -> tuple[str, ...]:
        """The words before every source line of a text: the tag of its target language, and its own."""
        corpus_tag = text.tag if isinstance(text, CorpusConfig) else None
        return tuple(filter(None, (self.language_tag(self.direction(text)[1]), corpus_tag)))

    def language_tag(self, target: str) -> str | None:
        """The word that has a source line translated to a language, such as `<2gn>`; None if no line has one."""
        return f"<2{target}>" if self.has_language_tags else None

    @property
    def has_language_tags(self) -> bool:
        """Whether every source line begins with the tag of its target language."""
        return any(corpus.target for corpus in self.corpora)

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.temperature is not None and isinstance(self.train, str):
            raise ValueError(
                f"temperature {self.temperature:g} has nothing to mix, because train is one corpus: leave it out or list several"
            )
        weighted = next((corpus for corpus in self.corpora if corpus.weight != 1), None)
        if self.temperature is not None and weighted is not None:
            raise ValueError(
                f"temperature {self.temperature:g} and the weight {weighted.weight:g} of {weighted.corpus} both say how often pairs "
                "are shown: leave one out"
            )
        for key, texts in (("valid", self.texts(self.valid)), ("test", self.texts(self.test))):
            for text in texts:
                if (target := self.direction(text)[1]) not in self.targets:
                    raise ValueError(
                        f"{key} is to be translated to {target}, but train teaches to translate to "
                        f"{listed(self.targets)} alone: leave {text.corpus} out, or train on this language too"
                    )
        return self


def text_name(text: HeldOutText | None) -> str:
    """The locators of `valid` or `test`, as the name of the text."""
    return " + ".join(one_text.corpus for one_text in DataConfig.texts(text))


class SubwordsConfig(Section):
    """SentencePiece models, trained by `nmt train` on the training text unless files are given."""

    kind: Literal["unigram", "bpe", "char", "word"] = "unigram"
    size: Annotated[int, Field(ge=8)] = 8000
    """Most tokens of the vocabulary (of each side, unless joint), special ones included; a short text has fewer."""
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
        return self
