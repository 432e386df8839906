"""The pairs of languages that a model translates between."""

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
    target: str | None = data.targets[0]
    if to is not None:
        same = (code for code in data.targets if base_language(code) == base_language(to))
        target = closest_code(to, data.targets) or next(same, None)
    if target is None:
        raise UsageError(f"This model translates to {known}, not to {to}.")
    return next(direction for direction in data.directions if direction[1] == target)


def describe_directions(data: DataConfig) -> str:
    """All pairs of languages in words: `es to gn, es to bzd`."""
    return ", ".join(f"{source} to {target}" for source, target in data.directions)
