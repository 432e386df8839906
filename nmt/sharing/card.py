"""The model card: what is known of a model, as metadata for the Hugging Face hub and as text for people."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.bundle.folder import Bundle
from nmt.bundle.hub import PREFIX
from nmt.data.catalogue import lookup, split_name
from nmt.data.locators import split_rows
from nmt.recipe import DataConfig, ModelConfig, RecurrentModelConfig, dump_recipe
from nmt.runtime.wording import counted, escaped, listed
from nmt.sharing.description import describe_network
from nmt.sharing.recorded_scores import RecordedScore, recorded_scores
from nmt.text.languages import base_language, find_language, language_name
from nmt.training.data_file import load_data_description

if TYPE_CHECKING:
    from huggingface_hub import EvalResult

_PAPERS = {
    "additive": "[Bahdanau et al. 2015](https://arxiv.org/abs/1409.0473)",
    **dict.fromkeys(("dot", "general", "concat", "location"), "[Luong et al. 2015](https://arxiv.org/abs/1508.04025)"),
}
"""Where the attention scores were published."""


def model_card(bundle: Bundle, folder: Path, license: str | None, address: str) -> str:
    """The card of a model in a folder as Markdown with metadata.

    Args:
        bundle: the model.
        folder: where its log, the description of its text and its scores are.
        license: the license of the model; None if the owner gave none.
        address: what users of the model write for MODEL.

    Raises:
        DataError: what is recorded in the folder is damaged.
    """
    recipe, data = bundle.recipe, load_data_description(folder)
    scores = recorded_scores(folder, recipe)
    languages = " to ".join(
        listed(dict.fromkeys(map(language_name, side))) for side in zip(*recipe.data.directions, strict=True)
    )
    version = "" if data is None else f" {_plain(data.nmt)}"
    licensed = f" License: `{license}`." if license else ""
    corpora = []
    for corpus in recipe.data.corpora:
        title, terms = describe_corpus(corpus.corpus)
        corpora.append([_code(corpus.corpus) + title, terms or "not known"])
    blocks = [
        f"---\n{_metadata(bundle, scores, license)}\n---",
        f"# {recipe.name}: {languages}",
        f"{_kind(recipe.model)} that translates {languages}, trained with nmt{version}.{licensed}",
        *_usage(address, recipe.data, has_links=recipe.model.has_attention),
        *_scores(scores),
        "## Training text",
        _table(["corpus", "license"], corpora),
    ]
    if data is not None:
        rows = [
            ["training", _plain(str(data.train.report(recipe.data.filters))), _code(data.train.fingerprint)],
            ["validation", counted(data.valid.lines, "pair"), _code(data.valid.fingerprint)],
        ]
        blocks.append(_table(["text", "pairs", "fingerprint of all pairs"], rows))
    settings = [[key, _plain(value)] for key, value in describe_network(bundle).items()]
    yaml = f"```yaml\n{dump_recipe(recipe).rstrip()}\n```"
    blocks += ["## Model", _table(["setting", "value"], settings)]
    blocks.append(f"<details>\n<summary>The whole recipe</summary>\n\n{yaml}\n\n</details>")
    return "\n\n".join(blocks) + "\n"


def describe_corpus(locator: str) -> tuple[str, str]:
    """The title of a corpus as a link, and its license, as the catalogue knows them; empty where it knows nothing."""
    if locator.startswith("sample:"):
        return "", "that of nmt, which generated it"
    name = split_name(split_rows(locator)[0])
    corpus = None if name is None else lookup(name[0])
    if corpus is None:
        return "", ""
    return f": [{_plain(corpus.entry.title)}]({corpus.entry.home})", corpus.entry.license


def _metadata(bundle: Bundle, scores: Sequence[RecordedScore], license: str | None) -> str:
    """What the hub reads, as YAML, without what is not known."""
    from huggingface_hub import ModelCardData  # reading a card needs none of it

    recipe, data = bundle.recipe, bundle.recipe.data
    tags = ["machine-translation", "transformer"]
    if isinstance(recipe.model, RecurrentModelConfig):
        attention = ["attention"] if recipe.model.has_attention else []
        tags = ["machine-translation", "rnn", recipe.model.decoder.cell, *attention]
    pretrained = recipe.training.pretrained
    base = pretrained.model if pretrained is not None and pretrained.model.startswith(PREFIX) else ""
    datasets = (re.match(r"hf:([\w-][\w.-]*/[\w.-]+)(/[^:]+)?:", corpus.corpus) for corpus in data.corpora)
    codes = [base_language(code) for code in chain(*data.directions) if find_language(code)]
    results = _eval_results(data, scores)
    return ModelCardData(
        language=list(dict.fromkeys(codes)) or None,
        license=license,
        library_name="nmt",
        pipeline_tag="translation",
        tags=tags,
        datasets=list(dict.fromkeys(match[1] for match in datasets if match)) or None,
        base_model=base.removeprefix(PREFIX).partition("@")[0] or None,
        model_name=recipe.name if results else None,
        eval_results=results or None,
    ).to_yaml()


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


def _kind(model: ModelConfig) -> str:
    """The kind of model, with the paper of its attention."""
    if not isinstance(model, RecurrentModelConfig):
        return "A Transformer ([Vaswani et al. 2017](https://arxiv.org/abs/1706.03762))"
    score, cell = model.attention.score.kind, model.decoder.cell.upper()
    if score == "none":
        return f"A recurrent encoder-decoder ({cell}) without attention"
    window = "" if model.attention.window.kind == "global" else f"{model.attention.window.kind} "
    return f"A recurrent encoder-decoder ({cell}) with {window}{score} attention ({_PAPERS[score]})"


def _usage(address: str, data: DataConfig, *, has_links: bool) -> Iterator[str]:
    """How to use the model from the command line and from Python."""
    source, target = data.directions[0]
    option, argument = (f" --to {target}", f', to="{target}"') if len(data.targets) > 1 else ("", "")
    yield "## Use"
    translate = f"nmt translate {address}{option} -i input.{source} -o output.{target}"
    yield f"```sh\npip install attentional-nmt\n{translate}\nnmt info {address}\n```"
    shown = "translation.text, translation.links" if has_links else "translation.text"
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
            f"{_code(score.text)}{' (validation)' if score.is_validation else ''}",
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
    columns = [[head, "---", *cells] for head, *cells in zip(heads, *rows, strict=True) if any(cells)]
    return "\n".join(f"| {' | '.join(line)} |" for line in zip(*columns, strict=True))


def _code(text: str) -> str:
    """Text in a cell of a table, as code."""
    return f"`{_plain(text).replace('`', chr(39))}`"


def _plain(text: str) -> str:
    """Text within a line or a cell of a table."""
    return escaped(" ".join(text.split())).replace("|", "\\|")
