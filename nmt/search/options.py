"""The options of a search."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from nmt.errors import UsageError


@dataclass(frozen=True)
class SearchOptions:
    """How to search. The defaults are greedy search.

    Raises:
        UsageError: a number is out of range.
    """

    beam_size: int = 1
    """Most live hypotheses per sentence, K; 1 is greedy search."""
    n_best: int = 1
    """Most hypotheses to return per sentence."""
    length_penalty: float = 1.0
    """alpha of Wu et al. 2016, eq. 14."""
    coverage_penalty: float = 0.0
    """beta of the same equation."""
    horizon: int | None = None
    """Tokens within which a live hypothesis is assumed to end when an early stop is considered; None allows all up to the
    maximum length. It has no effect without a length penalty."""
    prune: float | None = None
    """Drop a continuation whose log-probability is more than this below that of the best one of its sentence and step, in nats
    (the absolute threshold of Freitag and Al-Onaizan 2017); None drops none. There may then be fewer than `n_best` hypotheses."""
    temperature: float = 1.0
    """When sampling: each token is drawn from p(y)^(1 / temperature)."""
    top_k: int | None = None
    """When sampling: renormalize over so many most probable tokens; None over all."""
    bos: int = 2
    """The start mark, the first token that is fed."""
    eos: int = 3
    """The end mark."""
    forbid: tuple[int, ...] = (0, 2)
    """Tokens that are never produced."""
    device: torch.device | None = None
    """Where the search runs; None stands for the device of the maximum lengths, which may be on the CPU."""
    check_every: int = 1
    """Steps between looks at which hypotheses have ended; results are the same. A GPU works on without waiting for the CPU in
    between, on a few more hypotheses."""

    def __post_init__(self) -> None:
        counts = {
            "beam_size": self.beam_size,
            "check_every": self.check_every,
            "horizon": self.horizon,
            "top_k": self.top_k,
        }
        amounts = {
            "length_penalty": self.length_penalty,
            "coverage_penalty": self.coverage_penalty,
            "prune": self.prune,
        }
        for least, values in ((1, counts), (0, amounts)):
            for name, value in values.items():
                if value is not None and not value >= least:
                    raise UsageError(f"{name} must be at least {least}, but is {value}.")
        if not 1 <= self.n_best <= self.beam_size:
            raise UsageError(
                f"n_best must be between 1 and beam_size, which is {self.beam_size}, but is {self.n_best}."
            )
        if not self.temperature > 0:
            raise UsageError(f"temperature must be above 0, but is {self.temperature}.")
