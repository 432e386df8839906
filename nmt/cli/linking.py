"""`nmt links`: link the words of parallel text without a model."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from nmt.cli import options
from nmt.cli.aligning import LinkRow, write_links
from nmt.cli.options import argument, file_option, flag, log_to_stderr, option, read_gold_links
from nmt.cli.streams import check_not_input, read_joined, read_parallel
from nmt.errors import UsageError
from nmt.runtime.progress import timed, with_progress
from nmt.runtime.wording import counted

if TYPE_CHECKING:
    from nmt.alignment.statistical.aligner import HMMAligner

_log = logging.getLogger(__name__)

FEW = 1000
"""Fewer lines cause a warning: the AER on the Hansards is 30 % for 37 lines, 11 % for 1,000, 8 % for 10,000."""
_LEARNING = "Learning"
_BOTH, _AGREE = "Directions", "what both agree on"


def links(
    joined: Annotated[
        Path | None, argument("Text of lines `source ||| target`; - is stdin.", "FILE", default="-s and -t")
    ] = None,
    source: Annotated[Path | None, file_option("Source text, one sentence per line.", "--source", "-s")] = None,
    target: Annotated[Path | None, file_option("Its translation, line by line.", "--target", "-t")] = None,
    output: options.LinksOutput = None,
    more_source: Annotated[Path | None, file_option("More source text, to learn from.", panel=_LEARNING)] = None,
    more_target: Annotated[Path | None, file_option("Its translation, line by line.", panel=_LEARNING)] = None,
    save: Annotated[Path | None, file_option("Save what was learned, for --aligner.", panel=_LEARNING)] = None,
    aligner: Annotated[Path | None, file_option("Link by what --save wrote; learn nothing.", panel=_LEARNING)] = None,
    confidence: Annotated[bool, flag("--confidence", "Write the probability of each link too: `i-j:0.97`.")] = False,
    direction: Annotated[
        Literal["forward", "reverse"] | None,
        option("forward: at most one link a target word; reverse: a source word.", "NAME", default=_AGREE, panel=_BOTH),
    ] = None,
    symmetrize: Annotated[
        Literal["intersection", "union", "grow-diag-final-and"] | None,
        option("How to join the links of both.", "NAME", default=_AGREE, panel=_BOTH),
    ] = None,
    gold: options.Gold = None,
    gold_order: options.GoldOrder = "source-target",
    bootstrap: options.Bootstrap = 1000,
    quiet: options.Quiet = False,
) -> None:
    """Link the words of parallel text without a model.

    Examples:
      nmt links -s train.en -t train.fr --save en-fr.links > train.align
      nmt links text.en-fr --direction forward > forward.align

    Details:

    Each pair gets a line `i-j ...`: source word i is linked to target word j, counted from 0. Words are what
    plain spaces separate, compared in the form of data.normalization: nfc; in text written without spaces (Chinese,
    Japanese, Thai, ...) they are the characters. A pair with a blank side or more than 200 words on a side gets an empty
    line. With --gold, precision, recall and alignment error rate (AER) are printed instead. Gold links are in Pharaoh format
    (`i-j` sure, `ipj` or `i?j` possible) or NAACL format.

    Two hidden Markov models (Vogel et al. 1996), one per direction, are trained jointly (Liang et al. 2006). What they learn
    of a word also counts for words with the same first four letters, and words spelled alike are preferred at the start.
    Words are linked if the geometric mean of both posteriors, the confidence of the link, is at least one half. Fewer
    than 1,000 lines are too few: a warning says so.

    --direction gives the links of one model: forward links each target word to the source word of the largest posterior, or
    to none, reverse the other way round. --symmetrize joins both: intersection, union or grow-diag-final-and.

    To train attention on such links, set training.guided_alignment.links in a recipe to the file, or to hmm for links of
    its own training text.
    """
    texts = [path for path in (joined, source, target) if path is not None]
    refused = {
        "Give the text as -s FILE and -t FILE, or as one FILE of lines `source ||| target`.": len(texts)
        != (1 if joined else 2),
        "--symmetrize joins both directions: leave out --direction and --confidence.": symmetrize
        and (direction or confidence),
        "More text has two sides too: give --more-source and --more-target, or neither.": (more_source is None)
        != (more_target is None),
        "--aligner learns nothing: leave out --more-source, --more-target and --save.": aligner
        and (more_source or save),
    }
    if message := next((message for message, holds in refused.items() if holds), None):
        raise UsageError(message)
    for written in (output, save):
        check_not_input(written, (*texts, more_source, more_target, gold, aligner))
    log_to_stderr(quiet=quiet)
    from nmt.alignment.link_files import format_confident, format_pharaoh
    from nmt.alignment.statistical.aligner import splits_of
    from nmt.text.scripts import split_characters

    pairs = list(read_joined(*texts) if joined else read_parallel(*texts))
    gold_links = read_gold_links(gold, len(pairs), gold_order)
    more = list(read_parallel(more_source, more_target)) if more_source and more_target else []
    fitting = _load(aligner) if aligner else _learn([*pairs, *more], quiet=quiet)
    others = splits_of(more) if more else fitting.splits
    for name, split, own, other in zip(("source", "target"), fitting.splits, splits_of(pairs), others, strict=True):
        if split is split_characters:
            _log.warning("The %s is written without spaces: its words are its characters.", name)
        if own is not other:
            _log.warning(
                "The %s to be linked has %s between words, what is learned from has %s: split both alike, or most links are wrong.",
                name,
                *("no spaces" if each is split_characters else "spaces" for each in (own, other)),
            )
    if save is not None:
        from nmt.alignment.aligner_file import save_aligner  # which needs torch

        save_aligner(fitting, save)
    if symmetrize:
        linked = fitting.joined_links(pairs, symmetrize)
    else:
        linked = fitting.directed_links(pairs, direction) if direction else fitting.confident_links(pairs)
    progress = with_progress(linked, "linking", total=len(pairs), quiet=quiet)
    form = format_confident if confidence else format_pharaoh

    def rows() -> Iterator[LinkRow]:
        for pair, found in zip(pairs, timed(progress, "linked", quiet=quiet), strict=True):
            source_words, target_words = (split(line) for line, split in zip(pair, fitting.splits, strict=True))
            yield form(found), frozenset(found), (len(source_words), len(target_words))

    write_links(rows(), output, gold_links, bootstrap=bootstrap)


def _load(path: Path) -> HMMAligner:
    from nmt.alignment.aligner_file import load_aligner  # which needs torch

    return load_aligner(path)


def _learn(text: Sequence[tuple[str, str]], *, quiet: bool) -> HMMAligner:
    """Learn from a text, with progress. Warns if it is short."""
    from nmt.alignment.statistical.aligner import HMMAligner
    from nmt.alignment.statistical.hmm import ROUNDS

    aligner = HMMAligner.learn(text, with_progress(range(ROUNDS), "learning", total=ROUNDS, quiet=quiet))
    if aligner.lines < FEW:
        _log.warning(
            "Too little text to learn from: %s with words on both sides, where 1,000 or more are needed for links that are "
            "mostly right. Give more by --more-source and --more-target.",
            counted(aligner.lines, "line"),
        )
    return aligner
