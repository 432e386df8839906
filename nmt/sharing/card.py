"""The model card: what is known of a model, as metadata for the Hugging Face hub and as text for people."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.bundle.folder import Bundle
from nmt.bundle.hub import PREFIX
from nmt.data.catalogue import lookup, split_name
from nmt.data.locators import split_rows
from nmt.errors import NmtError, UsageError
from nmt.recipe import DataConfig, ModelConfig, RecurrentModelConfig, dump_recipe
from nmt.recipe.strict_yaml import parse_yaml
from nmt.runtime.wording import counted, escaped, listed
from nmt.sharing.description import describe_network
from nmt.sharing.recorded_scores import RecordedScore, recorded_scores
from nmt.text.languages import base_language, find_language, language_name
from nmt.training.data_file import DataDescription, load_data_description

if TYPE_CHECKING:
    from huggingface_hub import EvalResult, ModelCardData

_LICENSE = re.compile(r"[a-z0-9][a-z0-9.-]*")
_FRONT_MATTER = re.compile(r"---\n(.*?\n)---\n", re.DOTALL)
_MARK = re.compile(r"\n<!-- written by nmt, sha256 ([0-9a-f]{64}) -->\n\Z")
"""The end of a card that nmt wrote: a digest of all before it, which an edit no longer fits."""
_PAPERS = {
    "additive": "[Bahdanau et al. 2015](https://arxiv.org/abs/1409.0473)",
    **dict.fromkeys(("dot", "general", "concat", "location"), "[Luong et al. 2015](https://arxiv.org/abs/1508.04025)"),
}
"""Where the attention scores were published."""


@dataclass(frozen=True)
class CorpusNote:
    """A training corpus, and what the catalogue knows of it; empty where it knows nothing."""

    locator: str
    title: str = ""
    home: str = ""
    license: str = ""


@dataclass(frozen=True)
class ModelCard:
    """What a card says of a model; the data is None if it was not recorded, the license if the owner gave none."""

    bundle: Bundle
    data: DataDescription | None
    scores: Sequence[RecordedScore]
    license: str | None

    @classmethod
    def of(cls, bundle: Bundle, folder: Path, license: str | None) -> ModelCard:
        """The card of a model in a folder. Raises DataError if what is recorded there is damaged."""
        return cls(bundle, load_data_description(folder), recorded_scores(folder, bundle.recipe), license)

    @property
    def corpora(self) -> list[CorpusNote]:
        """The training corpora."""
        return [describe_corpus(item.corpus) for item in self.bundle.recipe.data.corpora]

    def text(self, address: str) -> str:
        """The card as Markdown with metadata; `address` is what users of the model write for MODEL."""
        metadata = f"---\n{self.metadata().to_yaml()}\n---"
        blocks = [*self._introduction(), *_usage(address, self.bundle), *_scores(self.scores), *self._training_text()]
        return _marked("\n\n".join([metadata, *blocks, *self._model()]) + "\n")

    def metadata(self) -> ModelCardData:
        """What the hub reads, without what is not known."""
        from huggingface_hub import ModelCardData  # reading a card needs none of it

        recipe, data = self.bundle.recipe, self.bundle.recipe.data
        pretrained = recipe.training.pretrained
        base = pretrained.model if pretrained is not None and pretrained.model.startswith(PREFIX) else ""
        results = _eval_results(data, self.scores)
        return ModelCardData(
            language=list(dict.fromkeys(filter(None, map(_hub_language, chain(*data.directions))))) or None,
            license=self.license,
            library_name="nmt",
            pipeline_tag="translation",
            tags=_tags(recipe.model),
            datasets=_hub_datasets(data) or None,
            base_model=base.removeprefix(PREFIX).partition("@")[0] or None,
            model_name=recipe.name if results else None,
            eval_results=results or None,
        )

    def _introduction(self) -> Iterator[str]:
        recipe = self.bundle.recipe
        languages = _languages(recipe.data)
        yield f"# {recipe.name}: {languages}"
        version = "" if self.data is None else f" {_plain(self.data.nmt)}"
        license = f" License: `{self.license}`." if self.license else ""
        yield f"{_kind(recipe.model)} that translates {languages}, trained with nmt{version}.{license}"

    def _training_text(self) -> Iterator[str]:
        yield "## Training text"
        rows = []
        for note in self.corpora:
            title = f": [{_plain(note.title)}]({note.home})" if note.title else ""
            rows.append([_code(note.locator) + title, note.license or "not known"])
        yield _table(["corpus", "license"], rows)
        if (data := self.data) is not None:
            report = str(data.train.report(self.bundle.recipe.data.filters))
            rows = [
                ["training", _plain(report), _code(data.train.fingerprint)],
                ["validation", counted(data.valid.lines, "pair"), _code(data.valid.fingerprint)],
            ]
            yield _table(["text", "pairs", "fingerprint of all pairs"], rows)

    def _model(self) -> Iterator[str]:
        yield "## Model"
        yield _table(
            ["setting", "value"], [[key, _plain(value)] for key, value in describe_network(self.bundle).items()]
        )
        recipe = dump_recipe(self.bundle.recipe).rstrip()
        yield f"<details>\n<summary>The whole recipe</summary>\n\n```yaml\n{recipe}\n```\n\n</details>"


# --- parts of the text --------------------------------------------------------------------------------------------


def _languages(data: DataConfig) -> str:
    """The languages in words: `Spanish to Guarani and Bribri`."""
    sides = (dict.fromkeys(map(language_name, side)) for side in zip(*data.directions, strict=True))
    return " to ".join(map(listed, sides))


def _kind(model: ModelConfig) -> str:
    """The kind of model, with the paper of its attention."""
    if not isinstance(model, RecurrentModelConfig):
        return "A Transformer ([Vaswani et al. 2017](https://arxiv.org/abs/1706.03762))"
    score, cell = model.attention.score.kind, model.decoder.cell.upper()
    if score == "none":
        return f"A recurrent encoder-decoder ({cell}) without attention"
    window = "" if model.attention.window.kind == "global" else f"{model.attention.window.kind} "
    return f"A recurrent encoder-decoder ({cell}) with {window}{score} attention ({_PAPERS[score]})"


def _usage(address: str, bundle: Bundle) -> Iterator[str]:
    """How to use the model from the command line and from Python."""
    shown = "translation.text, translation.links" if bundle.recipe.model.has_attention else "translation.text"
    data = bundle.recipe.data
    source, target = data.directions[0]
    command, argument = (f" --to {target}", f', to="{target}"') if len(data.targets) > 1 else ("", "")
    yield "## Use"
    translate = f"nmt translate {address}{command} -i input.{source} -o output.{target}"
    yield f"```sh\npip install attentional-nmt\n{translate}\nnmt info {address}\n```"
    yield (
        f'```python\nimport nmt\n\ntranslation = nmt.load("{address}"{argument}).translate("A sentence to translate.")\n'
        f"{shown}\n```"
    )


def _scores(scores: Sequence[RecordedScore]) -> Iterator[str]:
    """The table of scores, if there are any."""
    if not scores:
        return
    yield "## Scores"
    rows = [
        [
            _code(score.text) + " (validation)" * score.is_validation,
            f"{_plain(score.metric)} {score.value:.2f}",
            "" if score.interval is None else f"{score.interval[0]:.2f} to {score.interval[1]:.2f}",
            _plain(score.way),
            _code(score.signature) if score.signature else "",
        ]
        for score in scores
    ]
    yield _table(["text", "score", "95 % interval", "by", "sacreBLEU signature"], rows)
    if any(score.is_validation for score in scores):
        yield "The validation text chose the weights, so its scores are optimistic."


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of Markdown without columns that have no value."""
    full = [column for column in range(len(heads)) if any(row[column] for row in rows)]
    lines = [
        [heads[column] for column in full],
        ["---"] * len(full),
        *([row[column] for column in full] for row in rows),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _code(text: str) -> str:
    """Text in a cell of a table, as code."""
    return f"`{_plain(text).replace('`', chr(39))}`"


def _plain(text: str) -> str:
    """Text within a line or a cell of a table."""
    return escaped(" ".join(text.split())).replace("|", "\\|")


# --- parts of the metadata ----------------------------------------------------------------------------------------


def _hub_language(code: str) -> str | None:
    """A language code that the hub knows; None for what may be no code, such as `src`."""
    return base_language(code) if find_language(code) or re.fullmatch("[a-z]{3}_[A-Z][a-z]{3}", code) else None


def _tags(model: ModelConfig) -> list[str]:
    if not isinstance(model, RecurrentModelConfig):
        return ["machine-translation", "transformer"]
    return ["machine-translation", "rnn", model.decoder.cell, *["attention"] * model.has_attention]


def _hub_datasets(data: DataConfig) -> list[str]:
    """The data sets of the hub among the training corpora."""
    matches = (re.match(r"hf:([\w-][\w.-]*/[\w.-]+)(/[^:]+)?:", item.corpus) for item in data.corpora)
    return list(dict.fromkeys(match[1] for match in matches if match))


def _eval_results(data: DataConfig, scores: Sequence[RecordedScore]) -> list[EvalResult]:
    """The scores of test texts, or else of the validation text, as the hub lists results."""
    from huggingface_hub import EvalResult

    comparable = [score for score in scores if score.signature]
    headline = [score for score in comparable if not score.is_validation] or comparable
    return [
        EvalResult(
            task_type="translation",
            task_name=f"Translation {', '.join(map('-'.join, data.directions))}",
            dataset_type=score.text,
            dataset_name=score.text,
            dataset_split="validation" if score.is_validation else "test",
            metric_type=re.sub(r"[^a-z]", "", score.metric.lower()),
            metric_name=score.metric,
            metric_value=round(score.value, 2),
            metric_args={"signature": score.signature},
        )
        for score in headline
    ]


# --- licenses -----------------------------------------------------------------------------------------------------


def check_license(license: str | None) -> str | None:
    """The license. Raises UsageError if it is no identifier."""
    if license is not None and not _LICENSE.fullmatch(license):
        raise UsageError(
            f"'{license}' is no identifier of a license: write it as the hub does, such as mit, cc-by-4.0 or other."
        )
    return license


def describe_corpus(locator: str) -> CorpusNote:
    """What the catalogue knows of a corpus."""
    if locator.startswith("sample:"):
        return CorpusNote(locator, license="that of nmt, whose grammar generates it")
    name = split_name(split_rows(locator)[0])
    corpus = None if name is None else lookup(name[0])
    if corpus is None:
        return CorpusNote(locator)
    return CorpusNote(locator, corpus.entry.title, corpus.entry.home, corpus.entry.license)


# --- cards that are there already ---------------------------------------------------------------------------------


def _marked(text: str) -> str:
    """A card with a digest at its end, by which `is_unedited` knows it."""
    return f"{text}\n<!-- written by nmt, sha256 {hashlib.sha256(text.encode()).hexdigest()} -->\n"


def is_unedited(card: str) -> bool:
    """Whether nmt wrote a card and nobody has edited it since."""
    match = _MARK.search(card)
    return match is not None and hashlib.sha256(card[: match.start()].encode()).hexdigest() == match[1]


def license_in(card: str) -> str | None:
    """The license that a card names; None if it names none."""
    match = _FRONT_MATTER.match(card)
    try:
        tree = parse_yaml(match[1], "the card") if match else {}
    except NmtError:
        return None
    license = tree.get("license") if isinstance(tree, dict) else None
    return license if isinstance(license, str) and _LICENSE.fullmatch(license) else None
