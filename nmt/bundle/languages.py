"""The pairs of languages that a model translates between."""

from collections.abc import Sequence

from nmt.errors import UsageError
from nmt.recipe import DataConfig, Direction
from nmt.runtime.wording import listed
from nmt.text.languages import base_language, closest_code


def choose_direction(data: DataConfig, to: str | None) -> Direction:
    """The source and the target language, of which `to` names the target; it may be left out if the model has only one.

    Raises:
        UsageError: the model has several target languages and none is named, or not the one that is.
    """
    known = listed(data.targets)
    if to is None and len(data.targets) > 1:
        raise UsageError(f"This model translates to {known}: say to which one, as in --to {data.targets[0]}.")
    target = data.targets[0] if to is None else _meant(to, data.targets)
    if target is None:
        raise UsageError(f"This model translates to {known}, not to {to}.")
    return next(direction for direction in data.directions if direction[1] == target)


def _meant(code: str, targets: Sequence[str]) -> str | None:
    """The target language that a code or name means."""
    same = (target for target in targets if base_language(target) == base_language(code))
    return closest_code(code, targets) or next(same, None)


def describe_directions(data: DataConfig) -> str:
    """All pairs of languages in words: `es to gn, es to bzd`."""
    return ", ".join(f"{source} to {target}" for source, target in data.directions)
