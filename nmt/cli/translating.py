"""`nmt translate`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from nmt.cli import options, streams
from nmt.cli.clustering import translate_files
from nmt.cli.options import argument, file_option, flag, option
from nmt.cli.streams import STANDARD
from nmt.cli.translation_writer import OutputFormat, TranslationWriter, is_cut, show_alignment, warn_of_cut
from nmt.errors import UsageError
from nmt.runtime.progress import is_watched, with_progress
from nmt.runtime.wording import escaped


def translate(
    models: Annotated[list[Path], argument("Model (folder, .zip, hf:owner/name); several: an ensemble.", "MODEL")],
    source: Annotated[
        Path, file_option("Text, a table (column en), or sacrebleu:SET/PAIR.", "--input", "-i", default="stdin")
    ] = STANDARD,
    output: Annotated[
        Path, file_option("File (.gz, .xz, .zst, .bz2); unfinished: FILE.part.", "--output", "-o", default="stdout")
    ] = STANDARD,
    to: options.To = None,
    form: Annotated[
        OutputFormat, option("text, tsv (a table), jsonl (objects) or moses.", "NAME", "--format")
    ] = "text",
    n_best: Annotated[
        int | None, option("Write the N best, as `line TAB score TAB text`.", "N", default="the best", min=1)
    ] = None,
    alignments: Annotated[Path | None, file_option("Write links `source-target`, from 0; - shows them.")] = None,
    prefix: Annotated[
        Path | None, file_option("What each translation must begin with, a line each; may be blank.", "--prefix")
    ] = None,
    terms: Annotated[
        Path | None, file_option("Lines `source TAB translation` to be used wherever the source occurs.", "--terms")
    ] = None,
    split_sentences: options.SplitSentences = None,
    beam_size: options.BeamSize = None,
    length_penalty: options.LengthPenalty = None,
    mbr_samples: options.MbrSamples = None,
    sampled: Annotated[
        bool, flag("--sample", "Draw random translations; --n-best is their number per line.", panel="Search")
    ] = False,
    replace_unknown: options.ReplaceUnknown = False,
    lexicon: options.Lexicon = None,
    settings: options.DecodingSettings = None,
    shortlist: options.ShortlistFile = None,
    device: options.Device = "auto",
    precision: options.Precision = "fp32",
    threads: options.Threads = None,
    batch_tokens: options.BatchTokens = None,
    window: options.Window = None,
    engine: Annotated[
        Literal["local", "ray"], options.machine_option("local, or ray: cluster, -i 'IN/*' -o OUT.", "NAME")
    ] = "local",
    quiet: options.Quiet = False,
) -> None:
    """Translate text line by line.

    Examples:
      echo "A man is riding a horse." | nmt translate runs/bahdanau
      nmt translate runs/a runs/b -i test.en -o test.de --beam-size 10

    Details:

    Settings of decoding without a flag are --set decoding.horizon, prune, coverage_penalty, max_ratio, keep_numbers, mbr_temperature
    and mbr_beta; and sampling.temperature, sampling.top_k and sampling.seed (1), which imply --sample: a sample depends only on
    the seed and the line number. Their values are those of a recipe; null is none.
    --engine ray uses the cluster at $RAY_ADDRESS, or this machine.
    """
    decoding = options.decoding_settings(
        settings,
        sampled=sampled,
        beam_size=beam_size,
        length_penalty=length_penalty,
        mbr_samples=mbr_samples,
        n_best=n_best,
        split_sentences=split_sentences,
    )
    is_typed = streams.is_conversation(source, output)
    is_shown = is_typed and alignments == STANDARD
    links_path = None if is_shown else alignments
    _check_files(output, links_path, (source, lexicon, prefix, terms))
    if engine == "ray" and (
        alignments or prefix or threads or window or device != "auto" or STANDARD in (source, output)
    ):
        raise UsageError(
            "--engine ray translates files into a folder: name both with -i and -o, and leave out --alignments, --prefix, "
            "--threads, --window and --device."
        )
    options.set_up(quiet=quiet, threads=threads)
    from nmt.bundle.languages import choose_direction
    from nmt.data.lines import read_lines
    from nmt.decoding.unknown import read_lexicon

    bundles = options.load_models(models, device)
    direction = choose_direction(bundles[0].recipe.data, to)
    if alignments is not None:
        options.need_attention(bundles[0], models[0])
    is_linked = alignments is not None or (form == "jsonl" and bundles[0].recipe.model.has_attention)
    build = partial(
        options.build_translator,
        precision=precision,
        shortlist=shortlist and shortlist.absolute(),
        batch_tokens=batch_tokens,
        alignments=is_linked,
        replace_unknown=options.unknown_words(bundles[0], models[0], lexicon, replace=replace_unknown),
        terms=terms and read_lexicon(terms, of_words=False),
        to=to,
        window=1 if window is None and streams.is_terminal(source) else window,  # a typed line is translated at once
        **decoding,
    )
    translator = build(bundles)
    if translator.ranks_by_risk and (n_best or 1) > 1 and not quiet:
        typer.echo("The lists are ranked by expected chrF (--mbr), not by their scores.", err=True)
    writer = TranslationWriter(form, n_best=n_best, is_linked=is_linked)
    if engine == "ray":
        translate_files(source, output, models, build, writer, direction, quiet=quiet)
        return
    with ExitStack() as stack:
        if is_typed and not quiet:
            names = " and ".join(map(str, models))
            languages = " to ".join(map(escaped, direction))
            typer.echo(f"{names}: {languages}. Type a line to translate it; Ctrl-D ends.", err=True)
        texts = (
            streams.typed_lines(f"{escaped(direction[0])}> ")
            if is_typed
            else stack.enter_context(streams.open_texts(source, direction))
        )
        text_file = stack.enter_context(streams.open_output(output, keep_part=True))
        links_file = links_path and stack.enter_context(streams.open_output(links_path, keep_part=True))
        is_hidden = not is_watched(quiet=quiet) or streams.is_terminal(source) or text_file.isatty()
        total = None if is_hidden else streams.count_lines(source)
        results = translator.stream(texts, prefix=read_lines(prefix) if prefix else "")
        translations = with_progress(results, "translating", total=total, quiet=is_hidden)
        text_file.writelines(writer.header())
        cut = 0
        for number, translation in enumerate(translations, start=1):
            links = writer.links(translation, number)
            text_file.writelines(writer.translations(translation, number, links))
            text_file.flush()
            if links_file:
                links_file.writelines(writer.pharaoh(links))
                links_file.flush()
            for rank in range(len(translation.hypotheses) if is_shown else 0):
                show_alignment(translation, rank)
            cut += is_cut(translation)
    warn_of_cut(cut)


def _check_files(output: Path, links: Path | None, inputs: Sequence[Path | None]) -> None:
    """Raise UsageError if an output is an input, or both outputs go to the same place."""
    for path in (output, links):
        streams.check_not_input(path, inputs)
    if links == output:
        raise UsageError(
            "Translations and --alignments cannot go to the same place: name another file for one of them."
        )
