"""Bad input of the commands that decode: one table of command line, exit status, and what the message must name."""

from __future__ import annotations

from pathlib import Path

import pytest

from nmt.bundle.folder import Bundle
from nmt.text.subwords import Subwords
from tests.bundle.test_folder import FILES, TEXT, small_recipe
from tests.commands import bad, nmt

LINES = {
    "text.en": ["the dog sees a cat", "", "a cat sleeps"],
    "text.de": ["a cat sleeps", "a dog", "the dog sees a cat"],
    "short": ["a cat sleeps"],
    "gold": ["0-0 4-2", "", "0-0 1-1"],
    "gold1": ["0-0"],
    "lexicon": ["cat\tKatze"],
    "broken": ["cat\tKatze", "the dog"],
}
ALIGN = "align en-de -s text.en -t text.de"
TABLE = {
    # nmt translate
    "translate en-de --seed 2": (2, "--seed and decoding.sampling say how translations are drawn: give --sample too."),
    "translate en-de --mbr 8 --seed 2": (2, "give --sample too"),
    "translate en-de --set decoding.sampling.top_k=2": (2, "give --sample too"),
    "translate en-de --sample --beam-size 2": (
        2,
        "--sample draws translations and searches for none: leave out --beam",
    ),
    "translate en-de --sample --mbr 8": (2, "leave out --mbr."),
    "translate en-de --mbr 8 --beam-size 2": (2, "--mbr draws translations and searches for none: leave out --beam"),
    "translate en-de --mbr 0": (2, "'--mbr'"),
    "translate en-de --mbr 2 --n-best 3": (2, "n_best must be at most mbr_samples, which is 2, but is 3."),
    "translate en-de --beam-size 2 --n-best 3": (2, "n_best must be between 1 and beam_size, which is 2, but is 3."),
    "translate en-de --sample --set decoding.sampling.temperature=0": (2, "temperature must be between 0.001 and 1000"),
    "translate en-de --sample --set decoding.sampling.top=3": (2, "it has a temperature, top_k and seed"),
    "translate en-de --set decoding.horizon=0": (2, "'decoding.horizon': input should be greater than or equal to 1"),
    "translate en-de --set decoding.prune=much": (
        2,
        "'decoding.prune': input should be a valid number, but is 'much'.",
    ),
    "translate en-de --set decoding.beam=3": (2, "There is no option 'beam'; did you mean 'beam_size'?"),
    "translate en-de --set model.dropout=0": (2, "write --set decoding.KEY=VALUE"),
    "translate en-de --set horizon": (2, "--set takes a.b=value, but got 'horizon'."),
    "translate en-de --format xml": (2, "'--format'"),
    "translate en-de --to fr": (2, "fr"),
    "translate en-de -i none": (1, "Cannot open none: No such file or directory."),
    "translate en-de -i text.en -o text.en": (2, "text.en is the input itself: write to another file."),
    "translate en-de -i text.en --alignments text.en": (2, "text.en is the input itself: write to another file."),
    "translate en-de --alignments -": (2, "cannot go to the same place"),
    "translate blind --alignments links": (
        1,
        "blind was trained without attention (score: none), so it aligns nothing.",
    ),
    "translate empty": (1, f"empty is not a model folder: it has none of {', '.join(FILES)}."),
    "translate en-de --lexicon lexicon": (2, "give --replace-unknown too"),
    "translate en-de --replace-unknown --lexicon none": (1, "none: No such file or directory."),
    "translate en-de --replace-unknown --lexicon broken": (
        1,
        "broken, line 2: a line is a source word, a tab and a target",
    ),
    "translate en-de --replace-unknown --lexicon lexicon -o lexicon": (2, "lexicon is the input itself"),
    "translate blind --replace-unknown": (1, "blind was trained without attention"),
    "translate en-de --shortlist text.en": (1, "Cannot read"),
    "translate en-de --shortlist en-de/weights.safetensors": (1, "is not a shortlist"),
    # --engine ray, before Ray is asked for anything
    "translate en-de --engine ray -o out": (2, "name them with -i"),
    "translate en-de --engine ray -i text.*": (2, "the folder for translations with -o"),
    "translate en-de --engine ray -i text.* -o out --alignments links": (2, "leave out --alignments"),
    "translate en-de --engine ray -i text.* -o out --threads 2": (2, "leave out --threads"),
    "translate en-de --engine ray -i text.* -o out --device cpu": (2, "leave out --device"),
    "translate en-de --engine ray -i text.* -o out --window 2": (2, "leave out --window"),
    "translate en-de --engine ray -i *.md -o out": (2, "No file matches *.md"),
    "translate en-de --engine ray -i */source.model -o out": (2, "have the same name"),
    "translate en-de --engine ray -i text.en -o .": (2, "text.en is the input itself"),
    "translate en-de --engine ray -i *.tsv -o out": (2, "table.tsv is a table"),
    # nmt evaluate, nmt score
    "evaluate --hyp text.de --ref text.de --replace-unknown": (2, "not what --hyp holds"),
    "evaluate en-de --split text.{en,de} --lexicon lexicon": (2, "give --replace-unknown too"),
    "score en-de -s - -t -": (2, "Standard input holds one side of the text: name a file for the other."),
    "score en-de -q -s /dev/stdin -t text.de": (1, "/dev/stdin has 1 line, but text.de has 3:"),
    # nmt shortlist
    "shortlist en-de -s text.en": (2, "give --source and --target, or neither"),
    "shortlist en-de -s text.en -t text.de -o text.de": (2, "text.de is the input itself"),
    "shortlist en-de -s text.en -t short -o list": (1, "text.en has 3 lines, but short has 1"),
    "shortlist en-de -s none -t text.de": (1, "none"),
    # nmt align
    "align en-de -s text.en -t none": (1, "none: No such file or directory."),
    "align en-de -s text.en -t short": (
        1,
        "text.en has 3 lines, but short has 1: line n of one must translate line n of",
    ),
    "align blind -s text.en -t text.de": (
        1,
        "blind was trained without attention (score: none), so it aligns nothing.",
    ),
    f"{ALIGN} -o text.de": (2, "text.de is the input itself: write to another file."),
    f"{ALIGN} --gold none": (1, "No such file or directory"),
    f"{ALIGN} --gold gold1": (1, "gold1 has 1 line of links for 3 sentence pairs."),
    f"{ALIGN} -q --gold gold --gold-order target-source": (1, "--gold, sentence pair 1: the link 2-4 lies beyond the"),
    f"{ALIGN} --reverse blind": (1, "blind was trained without attention (score: none), so it aligns nothing."),
    f"{ALIGN} --reverse en-de": (2, "en-de translates en to de, but the reverse of en-de must translate de to en."),
    f"{ALIGN} --reverse words --level tokens": (2, "words cuts words into other tokens than en-de: leave out --level"),
    f"{ALIGN} --gold gold --level tokens": (2, "leave out --level tokens"),
    f"{ALIGN} --gold gold -o -": (2, "name a file for the links with -o"),
    f"{ALIGN} --format json --confidence": (2, "--confidence is for --format pharaoh"),
    f"{ALIGN} --symmetrize union": (2, "give the other model with --reverse"),
    f"{ALIGN} --aligner gold": (1, "A word aligner is what `nmt links --save FILE` writes."),
    f"{ALIGN} --aligner gold --level tokens": (2, "leave out --level tokens and heuristics"),
    f"{ALIGN} --aligner gold --reverse de-en --symmetrize union": (2, "leave out --level tokens and heuristics"),
    f"{ALIGN} --threshold 0": (2, "must lie above 0 and not above 1, but is 0.0"),
    f"{ALIGN} --extract best": (2, "'--extract'"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts, and models: one of each direction, one without attention and one that cuts text into words."""
    root = tmp_path_factory.mktemp("bad")
    for name, lines in LINES.items():
        (root / name).write_text("".join(f"{line}\n" for line in lines))
    (root / "table.tsv").touch()
    (root / "empty").mkdir()
    characters = Subwords.train(TEXT, kind="char", size=20, byte_fallback=False)
    words = Subwords.train(TEXT, kind="word", size=13, byte_fallback=False)
    forward, blind = small_recipe(), small_recipe(attention={"score": "none"})
    turned = forward.model_copy(update={"data": forward.data.model_copy(update={"source": "de", "target": "en"})})
    models = {"en-de": (forward, characters), "de-en": (turned, characters), "blind": (blind, characters)}
    for name, (recipe, subwords) in {**models, "words": (turned, words)}.items():
        Bundle.fresh(recipe, subwords, subwords).save(root / name)
    return root


@pytest.mark.parametrize("command", TABLE)
def test_bad_input_is_one_message(folder: Path, command: str) -> None:
    before = {name: (folder / name).read_bytes() for name in LINES}
    status, named = TABLE[command]
    assert named in bad(nmt(*command.split(), stdin=b"a dog\n", cwd=folder), status)
    assert {name: (folder / name).read_bytes() for name in LINES} == before
