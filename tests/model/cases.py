"""Models that together contain every valid pair of settings."""

from __future__ import annotations

from typing import Any

from tests.pairwise import Case, pairwise_cases
from tests.reference.settings import BRIDGES, CELLS, DIRECTIONS, NORMALIZERS, ORDERS, READOUTS, SCORES, WINDOWS, small

FACTORS = {
    "score": SCORES,
    "bridge": BRIDGES,
    "window": WINDOWS,
    "order": list(ORDERS),
    "readout": READOUTS,
    "direction": DIRECTIONS,
    "tie": ["none", "target", "all"],
    "layers": [1, 2, 3],
    "decoder_layers": [1, 2, 3],
    "cell": CELLS,
    "decoder_cell": CELLS,
    "heads": [1, 2],
    "half_width": [1, 3],
    "ratio": [1.0, 0.5],
    "coverage": [False, True],
    "residual": [False, True],
    "layer_norm": [False, True],
    "embedding_scale": [1.0, 1.7],
    "lexical": [False, True],
    "normalizer": NORMALIZERS,
}


def clashes(case: Case) -> bool:
    """Whether a recipe rejects these settings, or one of them has no effect."""
    score, window = case.get("score"), case.get("window")
    direction, bridge = case.get("direction"), case.get("bridge")
    return any(
        (
            score == "none" and (case.get("heads") == 2 or window in ("local-m", "local-p")),
            score == "none" and case.get("normalizer") in ("sparsemax", "entmax15"),
            score == "none" and case.get("coverage"),
            window not in ("local-m", None) and case.get("ratio") == 0.5,
            window == "global" and case.get("half_width") == 3,
            (direction, bridge) == ("forward", "backward"),
            bridge == "copy" and differ(case, "cell", "decoder_cell"),
            bridge == "copy" and differ(case, "layers", "decoder_layers"),
            case.get("lexical") and (score in ("none", "dot") or case.get("heads") == 2),
        )
    )


def differ(case: Case, *names: str) -> bool:
    return len({case[name] for name in names if name in case}) > 1


def tree_of(case: Case, **settings: Any) -> dict[str, Any]:
    """The `model` section of a case, with further arguments of `small`."""
    return small(**case, **settings)


CASES = pairwise_cases(FACTORS, clashes)
CASE_NAMES = ["-".join(case[name] for name in ("score", "window", "normalizer", "order")) for case in CASES]
