"""Bad input of the commands: one table of command line, exit status, and what the message must name."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import write_lines
from tests.commands import bad, nmt

LINES = {
    "moses": ["0 ||| a dog ||| nmt0= -1 ||| -1", "3 ||| a dog ||| ||| -1"],
    "unmoses": ["0 ||| a dog"],
    "short": ["a cat sleeps"],
    "gold": ["0-0 4-2", "", "0-0 1-1"],
    "gold1": ["0-0 4-2"],
    "beyond": ["5-1", "", ""],
    "lexicon": ["cat\tKatze"],
    "broken": ["cat\tKatze", "the dog"],
    "table.tsv": ["en\ttlh\tde", "aa\tbb\tcc"],
    "blank": [" "] * 3,
    "bad.gz": ["not compressed"],
    "dogs": ["a dog"] * 26,
    "many": ["a dog"] * 501,
    "joined": ["a dog ||| ein Hund", "a cat"],
    "word.txt": ["PK\x03\x04"],
    "film.srt": ["1"],
}
PAIR = "-s text.en -t text.de"
ALIGN = f"align en-de {PAIR}"
CLEAN = "corpora clean table.tsv --source en --target de -o x"
RECURRENT = "Only the attention of a Transformer has layers and heads to choose from"
TABLE = {
    # nmt translate
    "translate en-de --sample --beam-size 2": (2, "--sample draws translations and searches for none"),
    "translate en-de --mbr 8 --beam-size 2": (2, "--mbr draws translations and searches for none: leave out --beam"),
    "translate en-de --sample --set decoding.sampling.temperature=0": (2, "temperature must be between 0.001 and 1000"),
    "translate en-de --set model.dropout=0": (2, "write --set decoding.KEY=VALUE"),
    "translate en-de -i none": (1, "Cannot open none: No such file or directory."),
    "translate en-de -i text.en -o text.en": (2, "text.en is the input itself: write to another file."),
    "translate en-de --alignments -": (2, "cannot go to the same place"),
    "translate blind --alignments links": (1, "blind was trained without attention"),
    "translate en-de --replace-unknown --lexicon broken": (1, "broken, line 2: a line is a source word"),
    "translate en-de --replace-unknown --lexicon lexicon -o lexicon": (2, "lexicon is the input itself"),
    "translate en-de -i text.en --prefix lexicon": (2, "a prefix for each line, but only one of them has a line"),
    "translate en-de -i text.en --prefix text.de -o text.de": (2, "text.de is the input itself"),
    "translate en-de --terms text.en": (1, "text.en, line 1: a line is a source term, a tab and a target term"),
    "translate en-de --terms lexicon --mbr 4": (2, "terms need a beam search"),
    "translate en-de --shortlist text.en": (1, "Cannot read"),
    "translate en-de -i film.srt": (1, "film.srt is no file with one sentence per line: `sub2po`"),
    "translate en-de -i word.txt -o new": (1, "word.txt is not text, but a zip file, such as a Word document"),
    "links -s film.srt -t text.de": (1, "film.srt is no file"),
    # --engine ray, before Ray is asked for anything
    "translate en-de --engine ray -o out": (2, "name both with -i and -o"),
    "translate en-de --engine ray -i text.* -o out --alignments links": (2, "leave out --alignments"),
    "translate en-de --engine ray -i *.md -o out": (2, "*.md matches no file"),
    "translate en-de --engine ray -i */source.model -o out": (2, "matches files of the same name"),
    "translate en-de --engine ray -i text.en -o .": (2, "text.en is the input itself"),
    # nmt evaluate, nmt score
    "score en-de -s - -t -": (2, "Standard input holds one side of the text: name a file for the other."),
    "score en-de -s text.en": (2, "either --target or --n-best"),
    f"score en-de {PAIR} --n-best moses": (2, "either --target or --n-best"),
    "score en-de -s - --n-best -": (2, "at most one of them is standard input"),
    "score en-de -s text.en --n-best moses": (1, "moses, line 2: expected `number ||| text ||| features"),
    "score en-de -s text.en --n-best unmoses": (1, "unmoses, line 1: expected `number ||| text |||"),
    "score en-de -q -s /dev/stdin -t text.de": (1, "/dev/stdin has 1 line, but text.de has 3:"),
    "align en-de -s bad.gz -t text.de": (1, "bad.gz is damaged and cannot be read to its end"),
    "translate en-de --set decoding.sampling=5": (2, "sampling"),
    # nmt shortlist
    "shortlist en-de -s text.en": (2, "give --source and --target, or neither"),
    "shortlist en-de -s text.en -t text.de -o text.de": (2, "text.de is the input itself"),
    # nmt align
    "align en-de -s text.en -t short": (1, "text.en has 3 lines, but short has 1"),
    "align blind -s text.en -t text.de": (1, "blind was trained without attention"),
    f"{ALIGN} -o text.de": (2, "text.de is the input itself: write to another file."),
    f"{ALIGN} -q --gold gold --gold-order target-source": (1, "--gold, sentence pair 1: the link 2-4 lies beyond the"),
    f"{ALIGN} --reverse en-de": (2, "en-de translates en to de, but the reverse of en-de must translate de to en."),
    f"{ALIGN} --symmetrize union": (2, "give the other model with --reverse"),
    f"{ALIGN} --aligner gold": (1, "A word aligner is what `nmt links --save FILE` writes."),
    # nmt align, nmt plot: layers and heads
    f"{ALIGN} --head 1": (2, RECURRENT),
    f"align transformer {PAIR} --layer 4": (2, "There is no layer 4: the decoder has 3 layers."),
    f"align transformer {PAIR} --layer 1 --head 3": (2, "There is no head 3: each layer has 2 heads."),
    f"align transformer {PAIR} --head 1 --weights posterior": (2, "leave them out, or --weights posterior."),
    "plot transformer 'a dog' -o a.png --layer 1 --posterior": (2, "leave them out, or --posterior."),
    "plot en-de 'a dog' -o a.png --self": (2, "Only the encoder of a Transformer attends to itself"),
    "plot transformer 'a dog' -o a.png --self --translation a": (2, "--self shows one sentence and no translation"),
    # nmt plot: pictures and pages
    "plot en-de 'a dog' --translation '' -o a.png": (1, "There is nothing to draw"),
    "plot en-de -s blank -o a.png": (1, "There is nothing to draw: all lines are blank"),
    "plot en-de -s dogs -o a.png": (1, "A .png holds at most 25 sentences, but there are 26: choose some"),
    "plot en-de -s many -o a.pdf": (1, "A .pdf holds at most 500 sentences, but there are 501: choose some"),
    "plot en-de 'a dog' --compare de-en -o a.png": (2, "--compare is for pages: write to a name that ends with .html"),
    "plot en-de a --translation a --gold gold1 -o a.png": (1, "Gold links, line 1: the link 4-2 lies beyond"),
    "plot en-de -o a.html": (2, "Give sentences as arguments, or a file of them with -s"),
    "plot en-de 'a dog' -s text.en -o a.html": (2, "and not both"),
    "plot -o a.html": (2, "Give a MODEL, or links of your own: -s FILE -t FILE --links FILE."),
    f"plot en-de {PAIR} --links gold -o a.html": (2, "--links draws without a model: leave out MODEL, SENTENCE"),
    "plot -s text.en --links gold -o a.html": (2, "--links are between two files: give both"),
    f"plot {PAIR} --links gold1 -o a.html": (1, "gold1 has 1 line of links for 3 sentence pairs."),
    f"plot {PAIR} --links beyond -o a.svg": (1, "beyond, line 1: the link 5-1 lies beyond the sentences"),
    "plot en-de 'a dog' --subwords -o a.html": (2, "leave out --subwords and --font"),
    "plot en-de 'a dog' --gold gold -o a.html": (2, "--gold needs the translations: give --target or --translation."),
    "plot en-de -s text.en --translation a -o a.html": (2, "--translation is of one SENTENCE: for a file give"),
    "plot en-de -s text.en -t text.de -r text.de -o a.html": (2, "to be aligned, or --reference, for BLEU"),
    "plot en-de 'a dog' -r text.de -o a.html": (1, "there are 3 for 1."),
    "plot en-de ' ' -o a.html": (1, "There are no sentences to explore: all lines are blank."),
    # nmt links
    f"links {PAIR} --more-source text.en": (2, "give --more-source and --more-target"),
    f"links {PAIR} -o text.de": (2, "text.de is the input itself"),
    f"links {PAIR} -q --gold beyond": (1, "--gold, sentence pair 1: the link 5-1"),
    f"links {PAIR} --aligner text.en": (1, "text.en"),
    f"links {PAIR} --aligner gold --save x": (2, "--aligner learns nothing: leave out"),
    "links -s blank -t blank": (1, "no line has words on both sides"),
    "links -s joined -t joined": (1, "The text has lines `source ||| target`: `nmt links FILE` reads them"),
    "links joined": (1, "joined, line 2: there must be one ` ||| ` between source and target."),
    "links -s text.en": (2, "Give the text as -s FILE and -t FILE, or as one FILE of lines"),
    f"links {PAIR} --symmetrize union --direction forward": (2, "leave out --direction and --confidence"),
    # nmt evaluate without a model, nmt average, nmt info
    "evaluate": (2, "There is nothing to evaluate"),
    "evaluate en-de --hyp text.en --ref text.de": (2, "not both"),
    "evaluate en-de --published --tokenize intl": (2, "leave out --tokenize"),
    "evaluate en-de --baseline x --bootstrap 0": (2, "needs --bootstrap 2 or more, but it is 0"),
    "evaluate --hyp short --hyp text.de --ref short --bootstrap 0": (2, "needs --bootstrap 2 or more, but it is 0"),
    "evaluate --hyp text.de --hyp short --ref short": (1, "text.de has 3 lines, but short has 1: the lines do not"),
    "evaluate en-de --split text --metrics bleu,comet": (2, "There is no metric 'comet'; choose from bleu, chrf,"),
    "evaluate --hyp short --ref short --published": (2, "give --language"),
    "average en-de --last --best 1": (2, "exclude each other"),
    # nmt corpora
    "corpora clean none.tsv --source en --target de -o x": (1, "There is no file none.tsv."),
    "corpora clean table.tsv --source en --target tlh --set scripts=true -o x": (2, "how 'tlh' is written"),
    f"{CLEAN} --set max_word_length=1": (1, "No pair of table.tsv passes the filters (kept 0 of 1 pair; dropped "),
    "corpora info sacrebleu:wmt14": (1, "is no corpus of the catalogue"),
    # nmt train, nmt compare, and no command at all
    "trian": (2, "No such command 'trian'. Did you mean 'train'"),
    "--frobnicate": (2, "No such option"),
    "train": (2, "Give a recipe, or the text to train on: --source, --target, --train missing"),
    "train --source en --target de --train text.en text.de": (2, "text.de: a recipe is a mapping of sections"),
    "train --source en --target de --train text.en text.de short": (2, "short): put quotes around patterns with"),
    "train nothing": (2, "There is no recipe 'nothing': give a YAML file, or a name of `nmt recipe list`."),
    "train quickstart --set 'model.attention={score: none, window: local-p}'": (2, "has nothing to act on"),
    "translate en-de --device abacus": (2, "There is no device 'abacus'"),
    "compare -o x": (2, "Missing argument 'RECIPE'. See `nmt compare --help`."),
    "compare quickstart --baseline nobody -o x": (2, "--baseline nobody must be one of two or more recipes, which are"),
}


@pytest.fixture(scope="module")
def folder(untrained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The texts and models, and more texts."""
    folder = tmp_path_factory.mktemp("bad") / "models"
    shutil.copytree(untrained, folder)
    write_lines(folder, LINES)
    return folder


@pytest.mark.parametrize("command", TABLE)
def test_bad_input_is_one_message(folder: Path, command: str) -> None:
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    status, named = TABLE[command]
    assert named in bad(nmt(*shlex.split(command), stdin=b"a dog\n", cwd=folder), status)
    assert {path: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before
