"""The model card: what is known of a model, as metadata for the Hugging Face hub and as text for people."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

from nmt.bundle.folder import Bundle
from nmt.bundle.hub import PREFIX
from nmt.data.catalogue import lookup, split_name
from nmt.data.locators import split_rows
from nmt.errors import DataError
from nmt.evaluation.metrics import VALIDATION_SCORES
from nmt.recipe import DataConfig, Recipe, RecurrentModelConfig, dump_recipe, text_name
from nmt.runtime.json_files import read_json
from nmt.runtime.wording import escaped, listed
from nmt.sharing.description import describe_model
from nmt.text.languages import base_language, find_language, language_name
from nmt.training.data_file import load_data_description
from nmt.training.log import METRICS, best_validation, read_validations

SCORES = "scores.json"


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
    languages = " to ".join(
        listed(dict.fromkeys(map(language_name, side))) for side in zip(*recipe.data.directions, strict=True)
    )
    version = "" if data is None else f" {_plain(data.nmt)}"
    licensed = f" License: `{license}`." if license else ""
    kind = "A recurrent model" if isinstance(recipe.model, RecurrentModelConfig) else "A Transformer"
    corpora = []
    for corpus in recipe.data.corpora:
        title, terms = describe_corpus(corpus.corpus)
        corpora.append([_code(corpus.corpus) + title, terms or "not known"])
    blocks = [
        f"---\n{_metadata(recipe, license)}\n---",
        f"# {recipe.name}: {languages}",
        f"{kind} that translates {languages}, trained with nmt{version}.{licensed}",
        *_usage(address, recipe.data, has_links=recipe.model.has_attention),
    ]
    if scores := recorded_scores(folder, recipe):
        blocks += ["## Scores", _table(["text", "score", "95 % interval", "sacreBLEU signature"], scores)]
        blocks.append("A validation text chose the weights, so its scores are optimistic.")
    blocks += ["## Training text", _table(["corpus", "license"], corpora)]
    description = [[key, _plain(value)] for key, value in describe_model(bundle, data).items()]
    yaml = f"```yaml\n{dump_recipe(recipe).rstrip()}\n```"
    blocks += ["## Model", _table(["setting", "value"], description)]
    blocks.append(f"<details>\n<summary>The whole recipe</summary>\n\n{yaml}\n\n</details>")
    card = "\n\n".join(blocks) + "\n\n"
    return f"{card}<!-- written by nmt, sha256 of the text above: {sha256(card.encode()).hexdigest()} -->\n"


def is_written_by_nmt(card: str) -> bool:
    """Whether a card is as `model_card` wrote it: the digest in its last line fits the text above."""
    text, _, digest = card.rpartition("<!-- written by nmt, sha256 of the text above: ")
    return digest.strip() == f"{sha256(text.encode()).hexdigest()} -->"


def license_in(card: str) -> str | None:
    """The license that a card names; None if it names none."""
    from huggingface_hub import ModelCard  # reading a model needs none of it

    license = ModelCard(card, ignore_metadata_errors=True).data.get("license")
    return license if isinstance(license, str) else None


def describe_corpus(locator: str) -> tuple[str, str]:
    """The title of a corpus as a link, and its license, as the catalogue knows them; empty where it knows nothing."""
    if locator.startswith("sample:"):
        return "", "that of nmt, which generated it"
    name = split_name(split_rows(locator)[0])
    corpus = None if name is None else lookup(name[0])
    if corpus is None:
        return "", ""
    return f": [{_plain(corpus.entry.title)}]({corpus.entry.home})", corpus.entry.license


def _metadata(recipe: Recipe, license: str | None) -> str:
    """What the hub reads, as YAML, without what is not known."""
    from huggingface_hub import ModelCardData  # reading a card needs none of it

    data, pretrained = recipe.data, recipe.training.pretrained
    base = pretrained.model if pretrained is not None and pretrained.model.startswith(PREFIX) else ""
    datasets = (re.match(r"hf:([\w-][\w.-]*/[\w.-]+)(/[^:]+)?:", corpus.corpus) for corpus in data.corpora)
    codes = [base_language(code) for code in chain(*data.directions) if find_language(code)]
    return ModelCardData(
        language=list(dict.fromkeys(codes)) or None,
        license=license,
        library_name="nmt",
        pipeline_tag="translation",
        tags=["machine-translation", "rnn" if isinstance(recipe.model, RecurrentModelConfig) else "transformer"],
        datasets=list(dict.fromkeys(match[1] for match in datasets if match)) or None,
        base_model=base.removeprefix(PREFIX).partition("@")[0] or None,
    ).to_yaml()


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


def recorded_scores(folder: Path, recipe: Recipe) -> list[list[str]]:
    """A row for each score that a model folder records: text, score, interval and signature.

    Scores of test texts are those of `scores.json`, to which the user wrote what `nmt evaluate MODEL --json` prints; then come
    those of the best validation in `metrics.jsonl`. Raises DataError if a file is damaged.
    """
    path, expected = folder / SCORES, "it must hold what `nmt evaluate MODEL --json` writes"
    try:
        rows = list(_evaluated(read_json(path))) if path.is_file() else []
        path, expected = folder / METRICS, "the best validation must have a number for each metric"
        return [*rows, *_validated(best_validation(read_validations(folder)) or {}, recipe)]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DataError(f"{path} is damaged: {expected}.") from None


def _evaluated(content: dict[str, Any]) -> Iterator[list[str]]:
    """The scores in the output of `nmt evaluate --json`: of each text if there are several, without their means."""
    for result in content.get("texts", [content]):
        languages = f" ({'-'.join(result['languages'])})" if "texts" in content else ""
        text = _code(str(result["text"]) + languages)
        for score in result["scores"]:
            mean, margin = score["mean"], score["margin"]
            interval = "" if margin is None else f"{_figure(mean - margin)} to {_figure(mean + margin)}"
            yield [text, f"{_plain(score['metric'])} {_figure(score['score'])}", interval, _code(score["signature"])]
        if errors := result.get("alignment"):
            interval = " to ".join(_figure(100 * end) for end in errors["interval"] or ())
            yield [text, f"AER {_figure(100 * errors['aer'])}", interval, ""]


def _validated(record: dict[str, Any], recipe: Recipe) -> Iterator[list[str]]:
    """The scores of the best validation."""
    beam_size = recipe.training.validation.beam_size
    way = "greedy" if beam_size == 1 else f"beam {beam_size}"
    for key, metric in VALIDATION_SCORES.items():
        signature = record.get("signatures", {}).get(key)
        if key in record and signature:
            text = f"{_code(text_name(recipe.data.valid))} (validation, {way})"
            yield [text, f"{metric} {_figure(record[key])}", "", _code(signature)]


def _figure(score: float) -> str:
    """A score with two digits."""
    return f"{float(score):.2f}"


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
