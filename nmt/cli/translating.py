"""`nmt translate` and `nmt score`."""

from __future__ import annotations

import json
import logging
import math
import sys
from collections.abc import Iterable, Iterator, Sequence, Sized
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from nmt.cli.clustering import check_engine, translate_files
from nmt.cli.interactive import is_conversation, show_alignment, typed_lines
from nmt.cli.options import (
    NONE,
    BatchTokens,
    BeamSize,
    CoveragePenalty,
    Device,
    Horizon,
    LengthPenalty,
    Lexicon,
    MaxRatio,
    MbrSamples,
    Model,
    Precision,
    Prune,
    Quiet,
    ReplaceUnknown,
    ScoredTokens,
    ShortlistFile,
    SourceText,
    TargetText,
    Threads,
    To,
    Window,
    argument,
    build_translator,
    load_models,
    machine_option,
    need_attention,
    option,
    refuse_search,
    set_up,
    unknown_words,
)
from nmt.cli.sharding import Shard, device_names, device_of_process, merging
from nmt.cli.streams import (
    STANDARD,
    check_not_input,
    count_lines,
    input_file,
    is_terminal,
    open_output,
    open_texts,
    read_parallel,
)
from nmt.errors import UsageError
from nmt.runtime.progress import is_watched, with_progress
from nmt.runtime.wording import counted, escaped, perplexity
from nmt.training.launch import count_of_ranks, launch, rank_of_process

if TYPE_CHECKING:
    from nmt.alignment.links import Links
    from nmt.decoding.translator import Translation
    from nmt.recipe import Direction
    from nmt.search.sampling import Sampling

logger = logging.getLogger(__name__)

OutputFormat = Literal["text", "tsv", "jsonl"]
_sampling_option = partial(option, panel="Search")
_NOTHING = "-inf", ""
"""Score and text of a missing translation in an n-best list."""


def translate(
    models: Annotated[
        list[Path], argument("Model (folder, .zip, hf:owner/name); several: an ensemble.", "MODEL", default=False)
    ],
    source: Annotated[
        Path,
        option("Text, a table (column en), or sacrebleu:SET/PAIR.", "FILE", "--input", "-i", default="stdin"),
    ] = STANDARD,
    output: Annotated[
        Path,
        option("File (.gz, .xz, .zst, .bz2); unfinished: FILE.part.", "FILE", "--output", "-o", default="stdout"),
    ] = STANDARD,
    to: To = None,
    form: Annotated[
        OutputFormat, option("text, tsv (a table) or jsonl (an object per line).", "NAME", "--format")
    ] = "text",
    scores: Annotated[bool, option("Write the score before each translation.", "", "--scores")] = False,
    n_best: Annotated[
        int | None, option("Write the N best, as `line TAB score TAB text`.", "N", default="the best", min=1)
    ] = None,
    alignments: Annotated[
        Path | None, option("Write links `source-target`, from 0; - shows them.", "FILE", default="none")
    ] = None,
    split_sentences: Annotated[
        bool, option("Translate each sentence of a line by itself.", "", "--split-sentences")
    ] = False,
    beam_size: BeamSize = None,
    length_penalty: LengthPenalty = None,
    coverage_penalty: CoveragePenalty = None,
    max_ratio: MaxRatio = None,
    horizon: Horizon = None,
    prune: Prune = None,
    mbr_samples: MbrSamples = None,
    replace_unknown: ReplaceUnknown = False,
    lexicon: Lexicon = None,
    sampled: Annotated[
        bool, _sampling_option("Draw random translations; --n-best is their number per line.", "", "--sample")
    ] = False,
    temperature: Annotated[
        float | None,
        _sampling_option(
            "Softmax temperature of drawing.", "NUMBER", default="1, with --mbr the recipe's", min=0.001, max=1000
        ),
    ] = None,
    top_k: Annotated[
        int | None, _sampling_option("Draw from the K most probable tokens.", "K", default="all", min=1)
    ] = None,
    seed: Annotated[
        int | None, _sampling_option("Seed; a sample depends only on it and the line number.", "N", default="1", min=0)
    ] = None,
    shortlist: ShortlistFile = None,
    device: Device = "auto",
    devices: Annotated[
        str | None, machine_option("GPUs that share the file, as in 0,1.", "LIST", default="one")
    ] = None,
    precision: Precision = "fp32",
    threads: Threads = None,
    batch_tokens: BatchTokens = None,
    window: Window = None,
    shard: Annotated[
        str | None, machine_option("Translate part I of N; concatenate the outputs.", "I/N", default="all")
    ] = None,
    engine: Annotated[
        Literal["local", "ray"], machine_option("local, or ray: cluster, -i 'IN/*' -o OUT.", "NAME")
    ] = "local",
    address: Annotated[
        str | None, machine_option("Cluster of Ray, as in HOST:6379.", "HOST:PORT", default="this machine")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Translate text line by line.

    Examples:
      echo "A man is riding a horse." | nmt translate runs/bahdanau
      nmt translate runs/a runs/b -i test.en -o test.de --beam-size 10
    """
    is_typed = is_conversation(source, output)
    is_shown = is_typed and alignments == STANDARD
    links_path = None if is_shown else alignments
    _check_outputs(output, links_path, (source, lexicon))
    beam_options = {"beam-size": beam_size, "horizon": horizon, "prune": prune}
    is_mbr = mbr_samples not in (None, NONE)
    if is_mbr:
        refuse_search("mbr", beam_options)
    sampling = _sampling(
        {"temperature": None if is_mbr else temperature, "top_k": top_k, "seed": seed},
        is_sampling=sampled,
        search_options={**beam_options, "mbr": mbr_samples},
    )
    local = {"alignments": alignments, "devices": devices, "shard": shard, "threads": threads, "window": window}
    check_engine(engine, address, {**local, "device": None if device == "auto" else device}, (source, output))
    device = device_of_process(device) if devices is None else _own_device(devices, device, shard, output)
    part = Shard.of_rank() if shard is None else Shard.parse(shard)
    quiet = quiet or (shard is None and part.number > 1)
    set_up(quiet=quiet, threads=threads)
    from nmt.bundle.languages import choose_direction

    bundles = load_models(models, device)
    direction = choose_direction(bundles[0].recipe.data, to)
    if alignments is not None:
        need_attention(bundles[0], models[0])
    has_attention = bundles[0].recipe.model.has_attention
    is_linked = alignments is not None or (form == "jsonl" and has_attention)
    unknown = unknown_words(bundles[0], models[0], lexicon, replace=replace_unknown)
    build = partial(
        build_translator,
        precision=precision,
        decoding={
            "beam_size": beam_size,
            "length_penalty": length_penalty,
            "coverage_penalty": coverage_penalty,
            "max_ratio": max_ratio,
            "horizon": horizon,
            "prune": prune,
            "mbr_samples": mbr_samples,
            "mbr_temperature": temperature if is_mbr else None,
        },
        n_best=n_best or 1,
        batch_tokens=batch_tokens,
        alignments=is_linked,
        replace_unknown=unknown,
        shortlist=shortlist and shortlist.absolute(),
        sampling=sampling,
        split_sentences=split_sentences,
        to=to,
        window=1 if window is None and is_terminal(source) else window,  # a typed line is translated at once
    )
    translator = build(bundles)
    writer = TranslationWriter(form, n_best=n_best, scores=scores, is_linked=is_linked)
    if engine == "ray":
        translate_files(source, output, models, build, writer, languages=direction, address=address, quiet=quiet)
        return
    language, _ = direction
    source = input_file(source, direction)
    with ExitStack() as stack:
        outputs = [output] if links_path is None else [output, links_path]
        place = stack.enter_context(merging([] if shard else outputs))
        if is_typed and not quiet:
            _greet(models, direction)
        texts = typed_lines(f"{escaped(language)}> ") if is_typed else stack.enter_context(open_texts(source, language))
        text_file = stack.enter_context(open_output(place(output), keep_part=True))
        links_file = links_path and stack.enter_context(open_output(place(links_path), keep_part=True))
        is_hidden = quiet or not is_watched(quiet=quiet) or is_terminal(source) or text_file.isatty()
        lines = None if part.is_whole else part.lines(_length(source, texts))
        first = 1 if lines is None else lines.start + 1
        total = None if is_hidden else len(lines) if lines is not None else count_lines(source)
        own = texts if lines is None else islice(texts, lines.start, lines.stop)
        translations = with_progress(
            translator.stream(own, first_line=first), "translating", total=total, quiet=is_hidden
        )
        text_file.writelines(writer.header() if part.number == 1 else ())
        for number, translation in enumerate(translations, start=first):
            links = writer.links(translation, number)
            text_file.writelines(writer.translations(translation, number, links))
            text_file.flush()
            if links_file:
                links_file.writelines(writer.pharaoh(links))
                links_file.flush()
            for rank in range(len(translation.hypotheses) if is_shown else 0):
                show_alignment(translation, rank)


def _check_outputs(output: Path, links: Path | None, inputs: Sequence[Path | None]) -> None:
    """Raise UsageError if an output is an input, or both outputs go to the same place."""
    for path in (output, links):
        check_not_input(path, inputs)
    if links is not None and links.absolute() == output.absolute():
        raise UsageError(
            "Translations and --alignments cannot go to the same place: name another file for one of them."
        )


def _own_device(devices: str, device: str, shard: str | None, output: Path) -> str:
    """The device of this process among those that translate a part each. The first one starts the others and exits when all end."""
    if device != "auto" or shard is not None:
        raise UsageError(f"--devices says what {'--device' if shard is None else '--shard'} would: give one of them.")
    names, count = device_names(devices), count_of_ranks()
    if count == 1 and len(names) > 1:
        if output == STANDARD:
            raise UsageError("Several devices write parts of one file: name it with -o.")
        raise typer.Exit(launch(sys.argv[1:], len(names)))
    if count > len(names):
        raise UsageError(f"--devices names {counted(len(names), 'device')} for {count} processes: name one for each.")
    return names[rank_of_process()]


def _greet(models: Sequence[Path], direction: Direction) -> None:
    """Say what a terminal is for now."""
    source, target = map(escaped, direction)
    typer.echo(
        f"{' and '.join(map(str, models))}: {source} to {target}. Type a line to translate it; Ctrl-D ends.",
        err=True,
    )


def _length(source: Path, texts: Iterable[object]) -> int:
    """The number of lines of the input. Raises UsageError for a stream, whose length is not known before its end."""
    if isinstance(texts, Sized):
        return len(texts)
    count = count_lines(source)
    if count is None:
        raise UsageError("Parts are counted in lines, which a stream does not tell: name a file with -i.")
    return count


def _sampling(
    options: dict[str, Any], *, is_sampling: bool, search_options: dict[str, object | None]
) -> Sampling | None:
    """The settings of sampling; None for beam search. Raises UsageError for options that do not apply."""
    options = {name: value for name, value in options.items() if value is not None}
    if not is_sampling:
        for name in options:
            way = "--sample or --mbr" if name == "temperature" else "--sample"
            raise UsageError(f"--{name.replace('_', '-')} says how translations are drawn: give {way} too.")
        return None
    refuse_search("sample", search_options)
    from nmt.search.sampling import Sampling

    return Sampling(**options)


@dataclass(frozen=True)
class TranslationWriter:
    """Formats translations and their links."""

    form: OutputFormat
    n_best: int | None
    scores: bool
    is_linked: bool
    """Whether word links are written."""

    @property
    def is_plain(self) -> bool:
        """Whether a line of input gives a line that is its translation alone."""
        return self.form == "text" and self.n_best is None and not self.scores

    def header(self) -> Iterator[bytes]:
        """The header of a table."""
        if self.form == "tsv":
            yield b"line\trank\tscore\tlog_probability\ttext\n"

    def line(self, translation: Translation, number: int) -> Iterator[bytes]:
        """The output for one line of input."""
        return self.translations(translation, number, self.links(translation, number))

    def links(self, translation: Translation, number: int) -> list[Links | None]:
        """The word links of each hypothesis of a line; None if it is too long, or if no alignments are written."""
        links: list[Links | None] = []
        for rank in range(len(translation.hypotheses)):
            is_aligned = self.is_linked and translation.is_aligned(rank)
            links.append(translation.word_links(rank) if is_aligned else None)
            if self.is_linked and not is_aligned:
                logger.warning("Line %d is too long for word links: it gets none.", number)
        return links

    def translations(self, translation: Translation, number: int, links: Sequence[Links | None]) -> Iterator[bytes]:
        """The output for one line of input, with its links."""
        lines: Iterable[str]
        match self.form:
            case "text":
                lines = self._text(translation, number)
            case "tsv":
                lines = [
                    f"{number}\t{rank}\t{item.score:.4f}\t{item.log_probability:.4f}\t{item.text}"
                    for rank, item in enumerate(translation.hypotheses, start=1)
                ]
            case "jsonl":
                lines = [self._json(translation, number, links)]
        for line in lines:
            yield line.encode("utf-8", "replace") + b"\n"

    def pharaoh(self, links: Sequence[Links | None]) -> Iterator[bytes]:
        """The links of each hypothesis as `i-j`; in the text format also empty lines for missing hypotheses."""
        from nmt.alignment.link_files import format_pharaoh

        missing = (self.n_best or 1) - len(links) if self.form == "text" else 0
        for each in [*links, *[None] * missing]:
            yield format_pharaoh(each or frozenset()).encode() + b"\n"

    def _text(self, translation: Translation, number: int) -> Iterator[str]:
        ranked = [(f"{hypothesis.score:.4f}", hypothesis.text) for hypothesis in translation.hypotheses]
        for score, text in islice(chain(ranked, repeat(_NOTHING)), self.n_best or 1):
            yield "\t".join([str(number)] * bool(self.n_best) + [score] * bool(self.n_best or self.scores) + [text])

    def _json(self, translation: Translation, number: int, links: Sequence[Links | None]) -> str:
        hypotheses = [
            {
                "text": item.text,
                "score": _finite(item.score),
                "log_probability": _finite(item.log_probability),
                "alignment": None if each is None else sorted(each),
            }
            for item, each in zip(translation.hypotheses, links, strict=True)
        ]
        return json.dumps({"line": number, "source": translation.source, "hypotheses": hypotheses}, ensure_ascii=False)


def _finite(value: float) -> float | None:
    """A rounded number for JSON; None if it is not finite."""
    return round(value, 4) if math.isfinite(value) else None


def score(
    model: Model,
    source: SourceText,
    target: TargetText,
    to: To = None,
    normalize: Annotated[bool, option("Divide by the number of tokens, end mark included.", "", "--normalize")] = False,
    device: Device = "auto",
    precision: Precision = "fp32",
    threads: Threads = None,
    batch_tokens: ScoredTokens = 8192,
    window: Window = None,
    quiet: Quiet = False,
) -> None:
    """Print the log-probability of each given translation.

    Examples:
      nmt score runs/bahdanau -s test.en -t test.de
      nmt score runs/bahdanau -s test.en.gz -t test.de.gz --normalize > scores.txt

    Details:

    Logarithms are natural. The mean per token and the perplexity of the whole text follow on stderr. A pair of more
    than 67 million source tokens times target tokens is not scored; its line is nan.
    """
    set_up(quiet=quiet, threads=threads)
    pairs = read_parallel(source, target)
    translator = build_translator(
        load_models([model], device),
        precision=precision,
        batch_tokens=batch_tokens,
        alignments=False,
        to=to,
        window=window,
    )
    summary = _print_scores(translator.stream_scores(pairs), normalize=normalize)
    if not quiet:
        typer.echo(summary, err=True)


def _print_scores(translations: Iterable[Translation], *, normalize: bool) -> str:
    """Print one line per pair, and return the summary."""
    lines, tokens, total = 0, 0, 0.0
    for lines, translation in enumerate(translations, start=1):  # noqa: B007 -- counted for the summary
        best = translation.hypotheses[0]
        length = max(len(best.token_log_probs), 1)
        sys.stdout.write(f"{best.log_probability / length if normalize else best.log_probability:.4f}\n")
        sys.stdout.flush()
        if not math.isnan(best.log_probability):  # too long
            tokens, total = tokens + length, total + best.log_probability
    mean = total / max(tokens, 1)
    figures = f"log-probability {mean:.4f} per token, perplexity {perplexity(math.exp(min(-mean, 700)))}"
    return f"{counted(lines, 'line')}, {counted(tokens, 'token')}: {figures}"
