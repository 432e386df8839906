"""A bad recipe is refused in one line that names its file and what is wrong in it."""

import re
from pathlib import Path

import pytest

from nmt.recipe import EXAMPLE_DATA, load_recipe
from tests.recipe.minimal import MINIMAL, refusal

BAD_OVERRIDES = [
    # keys and values
    ("model.dropuot=0.2", "unknown key 'model.dropuot'; did you mean 'dropout'?"),
    ("training.xyxyxy=3", "unknown key 'training.xyxyxy'. Known keys: epochs, updates, batch_tokens, "),
    ("training.optimizer={kind: adamw, beta: 1}", "unknown key 'training.optimizer.beta'; did you mean 'betas'?"),
    ("training.scheduled_sampling=liner", "'training.scheduled_sampling' cannot be 'liner'; did you mean 'linear'?"),
    ("model.attention.heads=0", "'model.attention.heads': input should be greater than or equal to 1, but is 0."),
    ("model.attention=3", "'model.attention' is a section with keys of its own, but is 3."),
    ("training.validation.metrics=[bleu, ter]", "metrics.1' cannot be 'ter'; it is 'bleu', 'chrf' or 'perplexity'."),
    ("data.train=7", "'data.train': it is a locator, or a list of locators and sections {corpus, from, "),
    ("data.train=[a, 3]", "'data.train.1' is a section with keys of its own, but is 3"),
    ("data.train=[a, {corpus: b, wieght: 2}]", "unknown key 'data.train.1.wieght'; did you mean 'weight'?"),
    ("data.train=[{corpus: a, tag: BT}]", "'data.train.0.tag': string should match pattern"),
    ("name=../elsewhere", "'name'"),
    ('data.source="de\\e[2J"', "'data.source': it has a character that cannot be seen, U+001B: remove it."),
    ('data.train=[{corpus: "a\\u202eb"}]', "'data.train.0.corpus': it has a character that cannot be seen, U+202E"),
    ('data.valid="\\ud800"', "surrogate"),
    ("model.embeding=1", "training.epoch=2", "unknown key 'training.epoch'"),
    ("model.embeding=1", "training.epoch=2", "unknown key 'model.embeding'"),
    # combinations
    ("data.train=[{corpus: a, tag: <s>}]", "'data.train.0': tag <s> is the name of another token"),
    ("data.temperature=2", "'data': temperature 2 has nothing to mix, because train is one corpus"),
    ("data.train=[a, {corpus: b, weight: 2}]", "data.temperature=5", "the weight 2 of b"),
    ("data.train=[{corpus: a, to: gn}, {corpus: b, to: bzd}]", "teaches to translate to gn and bzd alone"),
    ("model.attention={score: none, window: local-p}", "window local-p has nothing to act on"),
    ("model.attention={score: none, heads: 2}", "heads 2 have nothing to attend with"),
    ("model.attention={score: none, coverage: true}", "coverage has no score to be added to"),
    ("model.attention={score: {size: 256}, heads: 3}", "heads must divide score.size, but they are 3 and 256"),
    ("model.attention={score: dot, heads: 3}", "heads must divide the width of annotations, but they are 3 and 512"),
    ("model={attention: {score: dot}, encoder: {hidden: 256}, decoder: {hidden: 300}}", "but they are 300 and 512"),
    ("model={decoder: {bridge: copy, hidden: 512}, encoder: {hidden: 128}}", "bridge copy needs decoder.hidden = 2 x"),
    ("model={decoder: {bridge: copy, layers: 2}, encoder: {layers: 1}}", "needs decoder.layers = encoder.layers"),
    ("model={decoder: {bridge: backward}, encoder: {direction: forward}}", "bridge backward needs an encoder"),
    ("model={lexical: true, attention: {score: dot}}", "lexical attends to tokens beside states"),
    ("model={lexical: true, attention: {heads: 2}}", "but attention.heads is 2: leave one out"),
    ("model={embedding: 128, decoder: {readout: {size: 256}}}", "embedding and decoder.readout.size are 128 and 256"),
    ("model={tie: none, decoder: {hidden: 512, readout: {kind: state, size: 256}}}", "leave decoder.readout.size out"),
    ("model={kind: transformer, heads: 3}", "heads must divide embedding, but they are 3 and 512"),
    ("model={kind: transformer, alignment_layer: 7}", "alignment_layer is 7, but there are only 6"),
    ("training.sort_within=20", "set batch_sentences or leave sort_within out"),
    ("model.tie=all", "subwords.joint=false", "needs subwords.joint: true"),
    ("subwords={kind: char, sampling: 0.1}", "sampling needs kind unigram or bpe"),
    ("subwords={kind: bpe, sampling: 2}", "sampling is the rate of dropped merges of bpe, at most 1, but is 2"),
    ("subwords.source_model=x.model", "source_model and target_model go together"),
    ("training.pretrained=a", "subwords={source_model: x, target_model: x}", "set training.pretrained.subwords: new"),
    ("training.guided_alignment.links=gold", "model.attention.score=none", "guided_alignment has no attention"),
    ("training.guided_alignment.links=gold", "data.train=a/train", "links: gold needs a corpus that has links"),
]
"""Overrides of the smallest recipe, and last what the message says."""


@pytest.mark.parametrize("row", BAD_OVERRIDES, ids=lambda row: " ".join(row[:-1]).encode("ascii", "replace").decode())
def test_what_is_wrong_is_named_with_its_dotted_path(minimal: Path, row: tuple[str, ...]) -> None:
    message = refusal(minimal, *row[:-1])
    assert row[-1] in message
    assert message.startswith(f"{minimal}: ")
    assert "\n" not in message


@pytest.mark.parametrize(
    ("override", "words"),
    [
        *((override, "--set takes a.b=value, but got") for override in ("model.dropout", "=1", "model..dropout=1", "")),
        ("seed.size=9", "seed.size cannot be set: 'seed' is 1, so it has no key 'size'."),
        ("model.tie=[", "--set model.tie=["),
    ],
)
def test_a_bad_override_is_quoted(tmp_path: Path, override: str, words: str) -> None:
    path = tmp_path / "seeded.yaml"
    path.write_text(f"seed: 1\n{MINIMAL}")
    assert refusal(path, override).startswith(words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name: a\nname: b\n", "line 2: the key 'name' occurs twice."),
        ("name: a\ndata:\n  source: en\n  source: de\n", "line 4: the key 'source' occurs twice."),
        ("[a]: b\n", "line 1: a key must be a word"),
        ("name: &x a\ntwice: [*x, *x]\n", "line 2: aliases (*name) and tags (!name) are not read here"),
        ("- a\n- b\n", "a recipe is a mapping of sections (name, data, model, ...), but this is ['a', 'b']. If"),
        ("", "but this is None."),
        (f"seed: !!set {{a}}\n{MINIMAL}", "line 1: aliases (*name) and tags"),
        ("[" * 5000, "nested too deeply"),
        ("a" * 200_000, "more than 100,000 bytes"),
        ("base: bad.yaml", "bad.yaml: the recipe is its own base"),
        ("base: nowhere.yaml", "There is no recipe 'nowhere.yaml'"),
        ("base: [a]", "bad.yaml: 'base' is the file or the name of a recipe, but is ['a']."),
        ("base: quickstart\nmodle: {}", "unknown key 'modle'"),
        ("base: small\nname: mine", "bad.yaml: 'data' is missing: say which text to train on. Write the lines"),
        (f"{MINIMAL}chosen: auto", "follow from the text"),
    ],
)
def test_a_bad_file_is_named_with_its_line(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    message = refusal(path)
    assert words in message
    assert message.startswith((str(path), "There is no recipe"))


def test_files_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes("name: Ä".encode("latin-1"))
    for path in (tmp_path / "latin.yaml", tmp_path / "nowhere.yaml", tmp_path):
        assert "Cannot read the recipe" in refusal(path)


@pytest.mark.parametrize(
    ("name", "guess"),
    [
        ("quikstart", "did you mean 'quickstart'?"),
        ("multi30k-en-de/bahdanaau.yaml", "did you mean 'multi30k-en-de/bahdanau'?"),
        ("word_level", "did you mean 'multi30k-en-de/word-level'?"),
        ("bahdanau", "'multi30k-en-fr/bahdanau' or 'tatoeba-en-de/bahdanau'?"),
        ("data/train.de", "If the shell made it of a pattern with braces, put quotes around the pattern."),
        ("xyz", "give a YAML file, or a name of `nmt recipe list`."),
    ],
)
def test_the_name_of_no_recipe_is_answered_with_the_nearest(name: str, guess: str) -> None:
    message = refusal(name)
    assert message.startswith(f"There is no recipe '{name}'")
    assert message.endswith(guess)


@pytest.mark.parametrize("name", ["small", "medium"])
def test_a_recipe_without_text_says_what_to_write_and_is_right(name: str, tmp_path: Path) -> None:
    message = refusal(name)
    lines = re.findall("'((?:base|name|data): .+?)'(?= and|,| into)", message)
    assert [line.partition(":")[0] for line in lines] == ["base", "name", "data"]
    mine = tmp_path / "mine.yaml"
    mine.write_text("".join(f"{line}\n" for line in lines))
    assert load_recipe(mine).model == load_recipe(name, [f"data={EXAMPLE_DATA}"]).model
