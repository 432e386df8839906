"""`nmt translate` as a user meets it: processes, files and pipes, with good input and with bad."""

import gzip
import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from subprocess import PIPE

from tests.commands import NMT, ROOT, Running, bad, good, nmt

UGLY = (
    b"\xef\xbb\xbfthe dog sees the cat\n"
    b"\n"
    b"  \t \n"
    b"the dog\tsees the\x01 cat\r\n"
    b"sch\xf6n \xff\xfe\n"
    b"\xf0\x9f\x90\xb6 \xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d \xe2\x80\xa8 \x0b\x0c \xc2\x85 x\n"
    b"\r\n" + b"dog " * 100_000 + b"\n"
    b"<s> </s> \xe2\x96\x81\n"
    b"the dog sees the cat"
)


def test_any_bytes_give_one_line_for_each_line(model: Path) -> None:
    arguments = ["--beam-size", "1", "--set", "decoding.max_ratio=0.05", "--batch-tokens", "100000", "--threads", "1"]
    ended = nmt("translate", model, *arguments, stdin=UGLY)
    lines = good(ended).split("\n")
    assert len(lines) == UGLY.count(b"\n") + 2
    assert lines.pop() == ""
    assert [number for number, line in enumerate(lines, start=1) if not line] == [2, 3, 7]
    assert lines[0] == lines[3] == lines[9]
    warnings = ended.stderr.decode().splitlines()
    assert warnings[0].startswith(
        "nmt: stdin, line 5: not valid UTF-8 (byte 0xF6), which is read as U+FFFD; `iconv -f "
    )
    assert any(line.startswith("nmt: Line 8 has 100000 tokens") for line in warnings)
    assert any("characters rarely or never: \ufffd (U+FFFD), " in line for line in warnings)
    assert len(warnings) == 3


def test_files_are_translated_like_streams_and_in_order(model: Path, corpus: Path, tmp_path: Path) -> None:
    text = (corpus / "valid.en").read_bytes()
    (tmp_path / "in.en.gz").write_bytes(gzip.compress(text))
    assert good(nmt("translate", model, "-i", tmp_path / "in.en.gz", "-o", tmp_path / "new" / "out.de")) == ""
    translated = (tmp_path / "new" / "out.de").read_text()
    assert good(nmt("translate", model, stdin=text)) == translated
    assert good(nmt("translate", model, "--threads", 2, "--batch-tokens", 100, stdin=text)) == translated
    pruned, greedy = (
        good(nmt("translate", model, *arguments, "--format", "tsv", stdin=text))
        for arguments in (["--set", "decoding.prune=0"], ["--beam-size", 1])
    )
    assert pruned == greedy
    reference = (corpus / "valid.de").read_text().splitlines()
    right = sum(one == other for one, other in zip(translated.splitlines(), reference, strict=True))
    assert right > len(reference) // 2


def test_n_best_lists_are_written_as_a_table_or_as_objects(model: Path, tmp_path: Path) -> None:
    text = 'the dog sees the cat\n\n"the" man\tsees\n'
    arguments = ["translate", model, "--n-best", "2", "--beam-size", "4"]
    plain = [line.split("\t") for line in good(nmt(*arguments, stdin=text.encode())).splitlines()]
    table = good(nmt(*arguments, "--format", "tsv", "--alignments", tmp_path / "links", stdin=text.encode()))
    header, *rows = [line.split("\t") for line in table.splitlines()]
    assert header == ["line", "rank", "score", "log_probability", "text"]
    assert [row[:2] for row in rows] == [["1", "1"], ["1", "2"], ["2", "1"], ["3", "1"], ["3", "2"]]
    assert [[row[0], row[2], row[4]] for row in rows] == [row for row in plain if row[1] != "-inf"]
    links = (tmp_path / "links").read_text().splitlines()
    assert len(links) == len(rows)
    objects = [
        json.loads(line) for line in good(nmt(*arguments, "--format", "jsonl", stdin=text.encode())).splitlines()
    ]
    assert [item["line"] for item in objects] == [1, 2, 3]
    assert [item["source"] for item in objects] == text.splitlines()
    flat = [(item["line"], hypothesis) for item in objects for hypothesis in item["hypotheses"]]
    assert [[str(line), f"{each['score']:.4f}", each["text"]] for line, each in flat] == [
        [row[0], row[2], row[4]] for row in rows
    ]
    assert [f"{each['log_probability']:.4f}" for _, each in flat] == [row[3] for row in rows]
    assert [" ".join(f"{i}-{j}" for i, j in each["alignment"]) for _, each in flat] == links
    assert any(links)


def test_a_list_of_moses_is_written_and_gets_the_scores_of_more_models(model: Path, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("the dog sees the cat\n\nthe man likes the house\n")
    arguments = [model, "-i", tmp_path / "in", "--n-best", "2"]
    written = good(nmt("translate", *arguments, "--format", "moses", "-o", tmp_path / "list"))
    table = [row.split("\t") for row in good(nmt("translate", *arguments, "--format", "tsv")).splitlines()[1:]]
    lines = (tmp_path / "list").read_text().splitlines()
    assert (written, lines) == (
        "",
        [f"{int(line) - 1} ||| {text} ||| nmt0= {log} ||| {score}" for line, _, score, log, text in table],
    )
    others = ["2 ||| die Frau ||| LM0= -3.5 TM0= -1 -2 ||| -4.25 ||| 0-0 1-1", "0 ||| &#124;&#124;&#124; ||| ||| -1"]
    (tmp_path / "list").write_text("\n".join([*lines, *others]) + "\n")
    scored = good(nmt("score", model, "-s", tmp_path / "in", "--n-best", tmp_path / "list")).splitlines()
    for line, before in zip(scored[: len(lines)], lines, strict=True):
        number, text, features, score = line.split(" ||| ")
        name, first, second, again = features.split()
        assert (f"{number} ||| {text} ||| {name} {first} ||| {score}", name, second) == (before, "nmt0=", "nmt1=")
        assert number == "1" or abs(float(first) - float(again)) < 2e-3  # no model reads a blank line to translate it
    start, end = scored[-2].split("nmt0= ")
    assert start == "2 ||| die Frau ||| LM0= -3.5 TM0= -1 -2 "
    assert end.endswith(" ||| -4.25 ||| 0-0 1-1")
    assert scored[-1].startswith("0 ||| &#124;&#124;&#124; ||| nmt0= -")
    pair = ["-s", tmp_path / "one", "-t", tmp_path / "two", "-q"]
    (tmp_path / "one").write_text("the man likes the house\n")
    (tmp_path / "two").write_text("die Frau\n")
    assert good(nmt("score", model, *pair)) == end.partition(" ")[0] + "\n"


def test_lines_cut_at_the_length_limit_are_counted_and_marked(untrained: Path) -> None:
    text = b"the dog sees a cat\n\n12\n" + b"a dog sees the cat " * 9 + b"\n"
    arguments = ["--set", "decoding.max_ratio=0.1", "--beam-size", "1", "--format", "jsonl"]
    ended = nmt("translate", "en-de", *arguments, stdin=text, cwd=untrained)
    best = [json.loads(line)["hypotheses"][0] for line in good(ended).splitlines()]
    assert [hypothesis["finished"] for hypothesis in best] == [False, True, True, False]
    assert ended.stderr.decode() == (
        "nmt: The translations of 2 lines reached the length limit (decoding.max_ratio): they are cut off, or repeat themselves.\n"
    )


def test_samples_follow_from_their_seed_and_line(model: Path) -> None:
    text = b"the dog sees the cat\nthe man likes the house\nthe dog sees the cat\n" * 4
    arguments = ["translate", model, "--sample", "--set", "decoding.sampling.temperature=3"]
    samples = good(nmt(*arguments, stdin=text))
    assert (
        good(nmt(*arguments, "--set", "decoding.sampling.seed=1", "--window", 1, "--batch-tokens", 50, stdin=text))
        == samples
    )
    assert good(nmt(*arguments, "--set", "decoding.sampling.seed=2", stdin=text)) != samples
    assert samples.splitlines()[0] != samples.splitlines()[2]
    several = good(nmt(*arguments, "--n-best", 3, "--format", "tsv", stdin=text)).splitlines()[1:]
    assert [row.split("\t")[4] for row in several[::3]] == samples.splitlines()
    assert good(nmt(*arguments, "--set", "decoding.sampling.top_k=1", stdin=text)) == good(
        nmt("translate", model, "--beam-size", 1, stdin=text)
    )


def test_of_samples_the_one_most_like_all_is_written(model: Path) -> None:
    text = b"the dog sees the cat\nthe man likes the house\n"
    drawn = good(
        nmt("translate", model, "--sample", "--set", "decoding.sampling.temperature=0.7", "--n-best", 6, stdin=text)
    )
    samples = [row.split("\t") for row in drawn.splitlines()]
    written = good(
        nmt("translate", model, "--mbr", 6, "--set", "decoding.mbr_temperature=0.7", stdin=text)
    ).splitlines()
    for line, translation in enumerate(written, start=1):
        assert translation in {row[2] for row in samples if row[0] == str(line)}
    assert len(written) == 2
    listed = nmt("translate", model, "--mbr", 6, "--n-best", 2, stdin=text)
    assert len(good(listed).splitlines()) == 4
    assert listed.stderr.decode().startswith("The lists are ranked by expected chrF (--mbr), not by their scores")


def test_a_model_that_draws_samples_searches_by_beam_if_told_so(model: Path, tmp_path: Path) -> None:
    drawing, text = tmp_path / "drawing", b"the dog sees the cat\nthe man likes the house\n"
    shutil.copytree(model, drawing)
    recipe = (drawing / "recipe.yaml").read_text()
    (drawing / "recipe.yaml").write_text(recipe.replace("mbr_samples: null", "mbr_samples: 6"))
    by_beam = good(nmt("translate", model, stdin=text))
    assert good(nmt("translate", drawing, "--set", "decoding.mbr_samples=null", stdin=text)) == by_beam
    assert good(nmt("translate", drawing, stdin=text)) == good(nmt("translate", model, "--mbr", 6, stdin=text))


def test_translations_begin_as_a_file_says(model: Path, tmp_path: Path) -> None:
    text, prefixes = (
        b"the dog sees the cat\nthe man likes the house\nthe dog sees the cat\n",
        ["der ka", "", "die katze "],
    )
    free = good(nmt("translate", model, stdin=text)).splitlines()
    (tmp_path / "prefixes").write_text("".join(f"{prefix}\n" for prefix in prefixes))
    lines = good(nmt("translate", model, "--prefix", tmp_path / "prefixes", stdin=text)).splitlines()
    assert [f"{line} ".startswith(prefix) for line, prefix in zip(lines, prefixes, strict=True)] == [True] * 3
    assert lines[1] == free[1]


def test_terms_of_a_file_are_used(model: Path, tmp_path: Path) -> None:
    (tmp_path / "terms").write_text("the dog\tder Mann\n\ncat\tHund\n")
    settings = ["--beam-size", 10, "--terms", tmp_path / "terms"]
    lines = good(
        nmt("translate", model, *settings, stdin=b"the dog sees the cat\nthe man likes the house\n")
    ).splitlines()
    assert "der Mann" in lines[0]
    assert "Hund" in lines[0].split()
    assert lines[1] == good(nmt("translate", model, "--beam-size", 10, stdin=b"the man likes the house\n")).strip()


def test_a_reader_that_leaves_early_is_no_error(model: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [*NMT, "translate", str(model)]
    with subprocess.Popen(command, env=environment, stdin=PIPE, stdout=PIPE, stderr=PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        _, errors = process.communicate(b"the dog\n" * 100, timeout=60)
    assert errors == b""
    assert process.returncode == 128 + signal.SIGPIPE


def test_a_full_disk_while_translating_is_a_sentence(model: Path) -> None:
    with open("/dev/full", "wb") as full:
        ended = Running("translate", model, stdin=b"the dog\n", stdout=full.fileno()).finish()
    assert ended.returncode == 1
    assert ended.stderr.decode() == "nmt: Cannot write to standard output: No space left on device.\n"
    to_file = nmt("translate", model, "-o", "/dev/full", stdin=b"the dog\n")
    assert bad(to_file, 1) == "Cannot write /dev/full: No space left on device."
