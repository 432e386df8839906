"""What each kernel and each fast twin earns: the time of a phase without it, as a share of the time with all.

All variants are prepared first and then timed in turn, so that a change of the machine's speed meets all of them alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from .measuring import work
from .session import Section, Session

if TYPE_CHECKING:
    from nmt.runtime.device import DecodingPrecision

BATCH, SOURCE, TARGET, VOCABULARY = 40, 25, 25, 8000
ADDITIVE, GENERAL = "multi30k-en-de/bahdanau", "attention/luong-global-general-feed"
TRAINING: dict[str, tuple[str, DecodingPrecision]] = {
    "additive, fp32": (ADDITIVE, "fp32"),
    "additive, bf16": (ADDITIVE, "bf16"),
    "general, fp32": (GENERAL, "fp32"),
    "general, bf16": (GENERAL, "bf16"),
}
SEARCH: dict[str, tuple[int, DecodingPrecision, bool]] = {
    "greedy, fp32": (1, "fp32", False),
    "beam 5, fp32": (5, "fp32", False),
    "beam 5, bf16": (5, "bf16", False),
    "beam 5, int8 and lists": (5, "int8", True),
}
Patch = Callable[[], Any]


class _WithoutKernels:
    """A module of kernels none of which may be used."""

    def __init__(self, module: Any) -> None:
        self.module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self.module, name)

    def can_use(self, *_: object) -> bool:
        return False

    def multiplies_int8(self) -> bool:
        return False


def _without_kernels(module: str, name: str) -> Patch:
    """Switch off the kernels that one module uses, under the name that it knows them by."""

    def switch() -> Any:
        from importlib import import_module

        return patch(f"{module}.{name}", _WithoutKernels(getattr(import_module(module), name)))

    return switch


def _without(table: str, *names: str) -> Patch:
    """Take types, by their names, out of a table of fast twins."""

    def switch() -> Any:
        from pkgutil import resolve_name

        full: Mapping[type, Any] = resolve_name(table)
        rest = {kind: twin for kind, twin in full.items() if kind.__name__ not in names}
        return patch.dict(full, rest, clear=True)

    return switch


def _never(place: str) -> Patch:
    """A function that always answers no."""
    return lambda: patch(place, lambda *_: False)


def _no_gru_kernel() -> Any:
    return patch("nmt.fast.packed_gru.panels_of_gates", lambda _: None)


@contextmanager
def _both(*patches: Any) -> Iterator[None]:
    with ExitStack() as stack:
        for switch in patches:
            stack.enter_context(switch)
        yield


_TWINS, _PACKERS = "nmt.fast.accelerate:TRAINING_TWINS", "nmt.fast.pack:PACKERS"


def _compiled() -> Any:
    """PyTorch compiles the steps, as with `training.compile: true`."""
    import nmt.fast

    return patch.object(nmt.fast, "accelerate", partial(nmt.fast.accelerate, compiles=True))


TRAINING_DROPS: dict[str, Patch] = {
    "all of `nmt.fast`": lambda: patch.dict("os.environ", {"NMT_FAST": "0"}),
    "all, but compiled by PyTorch": _compiled,
    "`gru_step`, `gru_step_back`": _never("nmt.fast.gru.can_use"),
    "`softmax_gradient`": _never("nmt.fast.loss.can_use"),
    "`additive_attention`, its `_back`, `additive_keys_back`": _never("nmt.fast.attention.can_attend_additively"),
    "chunked cross-entropy": _without(_TWINS, "OutputLayer"),
    "dropout of 16 bits": _without(_TWINS, "Dropout"),
    "encoder layer (`FastGru`)": _without(_TWINS, "GRU"),
    "GRU cell and recurrence": _without(_TWINS, "GruCell", "Recurrence"),
    "deferred linear layers": _without(_TWINS, "Linear"),
    "packed weights of the steps": _never("nmt.fast.linear.can_pack"),
    "attention": _without(_TWINS, "Attention"),
}
SEARCH_DROPS: dict[str, Patch] = {
    "all of `nmt.fast`": lambda: patch.dict("os.environ", {"NMT_FAST": "0"}),
    "`additive_attention`": _without_kernels("nmt.fast.shared_attention", "kernels"),
    "`most_probable`, `best_continuations`": _without_kernels("nmt.fast.output", "kernels"),
    "`update_finished`": _without_kernels("nmt.fast.search", "kernels"),
    "`int8_gru_step`": _no_gru_kernel,
    "`int8_product`, `int8_gru_step`": lambda: _both(_no_gru_kernel(), _without_kernels("nmt.fast.int8", "kernels")()),
    "packed linear layers": _without(_PACKERS, "Linear", "ChunkedOutputLayer"),
    "packed encoder": _without(_PACKERS, "GRU"),
    "tables of tokens": lambda: patch("nmt.fast.pack._tabulate", lambda _: None),
}


def drop(session: Session) -> Section:
    """The time of training and of search without each kernel and each twin, in percent more than with all."""
    rows, figures = [], []
    for phase, columns, drops in (("train", TRAINING, TRAINING_DROPS), ("search", SEARCH, SEARCH_DROPS)):
        measured = {
            column: session.attempt(f"drop-one: {phase}, {column}", _column, session, phase, column)
            for column, (_, precision, *_) in columns.items()
            if precision in session.machine
        }
        figures += [{"phase": phase, "column": name, "seconds": seconds} for name, seconds in measured.items()]
        rows.append([phase, "", *measured])
        rows += [[phase, name, *(_more(seconds, name) for seconds in measured.values())] for name in drops]
    text = f"Percent more time without each: {ADDITIVE} and {GENERAL}, {BATCH} sentences of {SOURCE} tokens, the best of several windows."
    return Section("drop-one", "What each kernel and twin earns", text, ["", "without", "", "", "", ""], rows, figures)


def _more(seconds: dict[str, float | None] | None, name: str) -> str:
    if seconds is None or seconds.get(name) is None:
        return ""
    with_all, without = seconds[""], seconds[name]
    assert with_all is not None
    assert without is not None
    return f"{100 * (without / with_all - 1):+.0f}"


def _column(session: Session, phase: str, column: str) -> dict[str, float | None]:
    windows = max(session.effort.windows, 1)
    result, _ = work("drop", threads=session.threads, what=column, phase=phase, column=column, windows=windows)
    return dict(result["seconds"])


def column(phase: str, column: str, windows: int) -> dict[str, Any]:
    """The least seconds of an update or a search with all kernels and twins (under an empty name) and without each."""
    from .worker import timed

    drops = TRAINING_DROPS if phase == "train" else SEARCH_DROPS
    prepare = _update(*TRAINING[column]) if phase == "train" else _search(*SEARCH[column])
    seconds: dict[str, float | None] = {}
    runs: dict[str, tuple[Patch | None, Callable[[], None]]] = {}
    for name, switch in {"": None, **drops}.items():
        with switch() if switch else ExitStack():
            try:
                runs[name] = switch, prepare()
            except Exception as error:  # noqa: BLE001 -- what cannot be measured without it is left out
                print(f"{name}: {error}")
                seconds[name] = None
    for window in range(windows):
        for name, (switch, run) in runs.items():
            if window and name.startswith("all of"):
                continue
            with switch() if switch else ExitStack():
                best = min(timed(run, 1))
            seconds[name] = min(best, seconds.get(name) or best)
    return {"seconds": seconds}


def _model(recipe: str) -> Any:
    """A model of a shipped recipe with random weights."""
    import torch

    from nmt.model.build import build_model
    from nmt.recipe import find_recipe, load_recipe

    torch.manual_seed(1)
    config = load_recipe(find_recipe(recipe)).model
    return build_model(config, source_size=VOCABULARY, target_size=VOCABULARY)


def _random_ids(length: int) -> list[list[int]]:
    """Random sentences without special tokens, one shorter than `length` because EOS is added to them."""
    import torch

    ids: list[list[int]] = torch.randint(4, VOCABULARY, (BATCH, length - 1)).tolist()
    return ids


def _update(recipe: str, precision: DecodingPrecision) -> Callable[[], Callable[[], None]]:
    import torch

    import nmt.fast
    from nmt.data.batching import make_batch
    from nmt.runtime.device import autocast

    cpu = torch.device("cpu")
    pairs = zip(_random_ids(SOURCE), _random_ids(TARGET), strict=True)
    batch = make_batch(list(pairs))

    def prepare() -> Callable[[], None]:
        model = nmt.fast.accelerate(_model(recipe)).train()

        def update() -> None:
            with autocast(precision, cpu):
                output = model(batch, 0.1)
            torch.autograd.backward(output.loss / output.tokens)
            model.zero_grad(set_to_none=True)

        return update

    return prepare


def _search(beam: int, precision: DecodingPrecision, lists: bool) -> Callable[[], Callable[[], None]]:
    import torch

    from nmt.data.batching import pad
    from nmt.decoding.ensemble import Ensemble
    from nmt.decoding.shortlist import Shortlist
    from nmt.fast import pack_search
    from nmt.search import Search, SearchOptions
    from nmt.text.subwords import BOS, EOS, PAD

    words = pad([[*ids, EOS] for ids in _random_ids(SOURCE)])
    lengths = torch.full((BATCH,), TARGET)
    candidates = torch.randint(4, VOCABULARY, (VOCABULARY, 5))
    shortlist = Shortlist(candidates, torch.arange(4, 500), VOCABULARY) if lists else None

    def prepare() -> Callable[[], None]:
        ensemble = Ensemble(
            [_model(ADDITIVE)],
            same_source=True,
            precision=precision,
            shortlist=shortlist,
        )
        searching = pack_search(Search(SearchOptions(beam_size=beam, forbid=(PAD, BOS, EOS))))

        def search() -> None:
            with ensemble.evaluating():
                memory = ensemble.encode([words])
                searching.run(ensemble.step, ensemble.start(memory), memory, lengths)

        return search

    return prepare
