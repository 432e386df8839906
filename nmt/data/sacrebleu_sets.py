"""The test sets of sacreBLEU (`sacrebleu -t wmt14`), through its library, which downloads and keeps them."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt.errors import DataError
from nmt.runtime.wording import did_you_mean, reason

if TYPE_CHECKING:
    from collections.abc import Collection

PREFIX = "sacrebleu:"


def sacrebleu_files(locator: str, source: str, target: str) -> tuple[Path, Path]:
    """The files of both sides of `sacrebleu:wmt14/en-de`; the first reference, if there are several.

    A test set is read in both directions, so `sacrebleu:wmt14/en-de` also serves de-en.

    Raises:
        DataError: sacreBLEU has no such test set or language pair, or cannot download it.
    """
    name, _, pair = locator.removeprefix(PREFIX).rpartition("/")
    test_set = _test_set(locator, name, pair)
    if pair not in test_set.langpairs:
        raise DataError(f"sacreBLEU's {name} has no {pair}{_nearest(pair, test_set.langpairs)}")
    if sorted(pair.split("-")) != sorted((source, target)):
        raise DataError(f"{locator} is in {' and '.join(pair.split('-'))}, not in {source} and {target}.")
    try:
        first, second = test_set.get_source_file(pair), test_set.get_reference_files(pair)[0]
    except SystemExit:  # its way to refuse a wrong checksum, after a line on stderr
        raise DataError(f"sacreBLEU refused what it downloaded for {name}; the line above says why.") from None
    except Exception as error:  # noqa: BLE001 -- sacreBLEU has no errors of its own, and its parsers raise any
        raise DataError(
            f"sacreBLEU cannot provide {locator}: {reason(error)}; on a machine without a connection, copy the folder "
            f"~/.sacrebleu of another, or name one with SACREBLEU."
        ) from None
    return (Path(first), Path(second)) if pair.startswith(f"{source}-") else (Path(second), Path(first))


def describe_test_set(locator: str) -> dict[str, str]:
    """What sacreBLEU says of a test set, `sacrebleu:wmt14` or `sacrebleu:wmt14/en-de`. Raises DataError if there is none."""
    from sacrebleu.dataset import DATASETS

    whole = locator.removeprefix(PREFIX)
    name, _, pair = whole.rpartition("/")
    test_set: Any = DATASETS.get(whole) or _test_set(locator, name, pair)
    rows = {"name": f"{PREFIX}{test_set.name}", "title": test_set.description, "pairs": ", ".join(test_set.langpairs)}
    return rows | {"source": " ".join(test_set.data), "citation": " ".join((test_set.citation or "not given").split())}


def _test_set(locator: str, name: str, pair: str) -> Any:
    from sacrebleu.dataset import DATASETS

    whole = f"{name}/{pair}".strip("/")
    if whole in DATASETS:
        pairs = DATASETS[whole].langpairs
        raise DataError(f"{locator} needs a language pair, as in {PREFIX}{whole}/{next(iter(pairs))}.")
    if test_set := DATASETS.get(name):
        return test_set
    raise DataError(f"sacreBLEU has no test set '{name or whole}'{_nearest(name or whole, DATASETS)}")


def _nearest(name: str, names: "Collection[str]") -> str:
    return did_you_mean(name, names, f"; it has {', '.join(names)}.")
