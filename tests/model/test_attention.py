"""Scores, windows, weights and context against the equations, and what must hold for any of them."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck
from torch.func import functional_call

from nmt import recipe
from nmt.model.attention import Attention, Memory, MultiHeadAttention, at_least_fp32, build_attention, masked_softmax
from nmt.ragged import Ragged
from tests.reference import attention as reference
from tests.reference.settings import ATTENTIONS, SCORE_SIZES, small

BATCH, SOURCE, ANNOTATION = 3, 7, 4
LENGTHS = (7, 1, 3)  # 7 words are more than twice a window of D = 1, which is then cut out, and of no wider one
SCORES = ("additive", "dot", "general", "concat", "location")
COVERING = ("additive", "concat")


def attention_of(settings: dict) -> Attention | MultiHeadAttention:
    """An attention in float64 whose every weight, biases included, is random."""
    torch.manual_seed(1)
    chosen = recipe.AttentionConfig.model_validate(settings["attention"])
    annotation = 2 * settings["encoder"]["hidden"]
    attention = build_attention(chosen, query=settings["decoder"]["hidden"], annotation=annotation)
    for weight in attention.parameters():
        torch.nn.init.normal_(weight, std=0.7)
    return attention.double()


def mask_of(lengths: tuple[int, ...]) -> Tensor:
    return torch.arange(max(lengths)).unsqueeze(0) < torch.tensor(lengths).unsqueeze(1)


def annotations_of(lengths: tuple[int, ...], annotation: int = ANNOTATION) -> Tensor:
    mask = mask_of(lengths)
    return torch.randn(*mask.shape, annotation, dtype=torch.float64) * mask.unsqueeze(-1)


def remembered(attention: Attention | MultiHeadAttention, lengths: tuple[int, ...] = LENGTHS) -> Memory:
    summary = torch.randn(len(lengths), ANNOTATION, dtype=torch.float64)
    return attention.remember(annotations_of(lengths), mask_of(lengths), summary)


def covered(memory: Memory) -> tuple[Memory, Tensor]:
    """The memory after some steps, and the weight that each word has had in them."""
    mask = memory.mask[:: memory.heads]
    coverage = 2 * torch.rand(mask.shape, dtype=torch.float64) * mask
    return replace(memory, coverage=coverage.repeat_interleave(memory.heads, 0)), coverage


def weights_of(module: torch.nn.Module) -> dict[str, np.ndarray]:
    return {name: value.detach().numpy() for name, value in module.state_dict().items()}


def query_of(settings: dict, rows: int = BATCH) -> Tensor:
    return torch.randn(rows, settings["decoder"]["hidden"], dtype=torch.float64)


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("half_width", [1, 3])
@pytest.mark.parametrize(("score", "window"), ATTENTIONS)
def test_weights_and_context_follow_the_equations(score: str, window: str, half_width: int, heads: int) -> None:
    heads = 1 if score == "none" else heads
    settings = small(score=score, window=window, half_width=half_width, heads=heads, coverage=score in COVERING)
    attention = attention_of(settings)
    whole, summaries, query = annotations_of(LENGTHS), annotations_of(LENGTHS)[:, 0], query_of(settings)
    memory, coverage = covered(attention.remember(whole, mask_of(LENGTHS), summaries))
    for step in (0, 2, 7):
        context, weights = attention(query, torch.full((BATCH,), step), memory)
        for row, length in enumerate(LENGTHS):
            annotations, seen = whole[row, :length].numpy(), coverage[row, :length].numpy()
            given = (query[row].numpy(), step, annotations, summaries[row].numpy(), seen)
            expected_context, alpha = reference.attend(*given, settings["attention"], weights_of(attention))
            np.testing.assert_allclose(context[row].detach(), expected_context, rtol=0, atol=1e-10)
            np.testing.assert_allclose(weights[row, :length].detach(), alpha, rtol=0, atol=1e-10)


def test_weights_and_context_fit_on_paper() -> None:
    attention = attention_of(small(score="dot", annotation=2))
    annotations = torch.eye(2, dtype=torch.float64).unsqueeze(0)
    memory = attention.remember(annotations, torch.ones(1, 2, dtype=torch.bool), torch.zeros(1, 2, dtype=torch.float64))
    query = torch.tensor([[math.log(3), 0.0]], dtype=torch.float64)
    context, weights = attention(query, torch.zeros(1, dtype=torch.long), memory)
    assert weights.tolist() == [[pytest.approx(0.75), pytest.approx(0.25)]]
    assert context.tolist() == [[pytest.approx(0.75), pytest.approx(0.25)]]


GRADIENTS = [
    *((score, window, 1, 1, False) for score, window in ATTENTIONS),  # D = 1 is cut out, D = 2 masked
    *(("general", window, 2, 1, False) for window in ("local-m", "local-p")),
    *((score, window, 1, 2, False) for score, window in ATTENTIONS if score != "none"),
    *((score, window, 1, heads, True) for score, window in ATTENTIONS if score in COVERING for heads in (1, 2)),
]


@pytest.mark.parametrize(("score", "window", "half_width", "heads", "coverage"), GRADIENTS)
def test_gradients_are_those_of_the_function(
    score: str, window: str, half_width: int, heads: int, coverage: bool
) -> None:
    settings = small(score=score, window=window, half_width=half_width, heads=heads, coverage=coverage)
    attention = attention_of(settings)
    whole, summary, query = annotations_of(LENGTHS), annotations_of(LENGTHS)[:, 0], query_of(settings)
    names = [name for name, _ in attention.named_parameters()]

    def attend(query: Tensor, annotations: Tensor, coverage: Tensor, *weights: Tensor) -> tuple[Tensor, Tensor]:
        return functional_call(both, dict(zip(prefixed, weights, strict=True)), (query, annotations, coverage))

    class Both(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = attention

        def forward(self, query: Tensor, annotations: Tensor, coverage: Tensor) -> tuple[Tensor, Tensor]:
            memory = self.attention.remember(annotations, mask_of(LENGTHS), summary)
            memory = replace(memory, coverage=coverage.repeat_interleave(heads, 0))
            context, weights = self.attention(query, torch.arange(BATCH), memory)
            touched = 0 * (query.sum() + annotations.sum() + coverage.sum())
            return context + touched, weights + touched

    both, prefixed = Both(), [f"attention.{name}" for name in names]
    inputs = [query, whole, torch.rand(BATCH, SOURCE, dtype=torch.float64), *attention.parameters()]
    given = tuple(value.detach().requires_grad_() for value in inputs)
    assert gradcheck(attend, given, fast_mode=heads > 1 or coverage)


attentions = st.sampled_from([pair for pair in ATTENTIONS if pair[0] != "none"])


@hypothesis_settings(deadline=None)
@given(
    attentions,
    st.lists(st.integers(1, 9), min_size=1, max_size=4),
    st.integers(1, 4),
    st.integers(0, 12),
    st.sampled_from([1, 2, 4]),
    st.integers(0, 2**16),
)
def test_weights_are_a_share_of_the_real_words(
    pair: tuple[str, str], lengths: list[int], half_width: int, step: int, heads: int, seed: int
) -> None:
    score, window = pair
    settings = small(score=score, window=window, half_width=half_width, heads=heads, coverage=score in COVERING)
    attention = attention_of(settings)
    torch.manual_seed(seed)
    (memory, _), query = covered(remembered(attention, tuple(lengths))), query_of(settings, len(lengths))
    with torch.no_grad():
        _, weights = attention(query, torch.full((len(lengths),), step), memory)
    assert (weights >= 0).all()
    assert (weights[~mask_of(tuple(lengths))] == 0).all()
    totals = weights.sum(1)
    if score == "location":  # a window whose every position lies beyond W_a's rows has nothing to weigh
        assert (totals <= 1 + 1e-12).all()
        assert (weights[:, SCORE_SIZES["location"]["max_source"] :] == 0).all()
    elif window == "local-p":
        assert (totals <= 1 + 1e-12).all()
        assert (totals > 0).all()
    else:
        torch.testing.assert_close(totals, torch.ones_like(totals), rtol=0, atol=1e-12)


def looking_everywhere(attention: Attention, query: Tensor, position: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
    """Context and weights of a local window that scores every position and then masks: what gathering must come to."""
    center = attention.window.center(query, position, memory.mask)
    factor = attention.window.factor(memory.positions, center)
    weights = masked_softmax(attention.score(query, memory), memory.mask & (factor > 0)) * factor
    return torch.einsum("ns,nsa->na", weights, memory.annotations), weights


@hypothesis_settings(deadline=None)
@given(
    st.sampled_from([pair for pair in ATTENTIONS if pair[1] != "global"]),
    st.lists(st.integers(1, 20), min_size=1, max_size=4),
    st.integers(1, 3),
    st.sampled_from([0.5, 1.0, 1.7]),
    st.integers(0, 12),
    st.integers(0, 2**16),
)
def test_reading_the_window_alone_comes_to_the_same_as_masking_the_rest(
    pair: tuple[str, str], lengths: list[int], half_width: int, ratio: float, step: int, seed: int
) -> None:
    score, window = pair
    settings = small(score=score, window=window, half_width=half_width, ratio=ratio, coverage=score in COVERING)
    attention = attention_of(settings)
    torch.manual_seed(seed)
    (memory, _), query = covered(remembered(attention, tuple(lengths))), 3 * query_of(settings, len(lengths))
    position = torch.full((len(lengths),), step)
    with torch.no_grad():
        context, weights = attention(query, position, memory)
        expected_context, expected = looking_everywhere(attention, query, position, memory)
    torch.testing.assert_close(weights, expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(context, expected_context, rtol=0, atol=1e-12)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("window", ["local-m", "local-p"])
@pytest.mark.parametrize("half_width", [1, 2, 3])
def test_a_span_holds_every_position_that_counts(window: str, half_width: int, share: float) -> None:
    chosen = attention_of(small(window=window, half_width=half_width)).window
    for size in range(1, 20):
        center = torch.tensor([size * share])
        (first,), width = chosen.span(center, size)
        counted = chosen.factor(torch.arange(size).unsqueeze(0), center)[0].nonzero().flatten().tolist()
        assert width == (2 * half_width + 1 if size > 2 * (2 * half_width + 1) else size)
        assert 0 <= first <= size - width
        assert set(counted) <= set(range(int(first), int(first) + width))


@pytest.mark.parametrize("coverage", [False, True])
def test_a_local_window_scores_no_more_than_its_own_width(coverage: bool) -> None:
    attention = attention_of(small(window="local-p", half_width=1, coverage=coverage))
    scored: list[tuple[int, ...]] = []
    attention.score.register_forward_hook(lambda module, given, made: scored.append(tuple(made.shape)))
    memory, _ = covered(remembered(attention, (9, 4)))
    attention(torch.randn(2, 5, dtype=torch.float64), torch.tensor([0, 3]), memory)
    assert scored == [(2, 3)]


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("window", ["local-m", "local-p"])
def test_a_window_as_wide_as_the_sentence_is_global_times_the_gaussian(score: str, window: str) -> None:
    settings = small(score=score, window=window, half_width=SOURCE)
    local, everywhere = attention_of(settings), attention_of(small(score=score))
    everywhere.load_state_dict({name: value for name, value in local.state_dict().items() if "window" not in name})
    memory, query, position = remembered(local), query_of(settings), torch.tensor([0, 2, 9])
    _, expected = everywhere(query, position, memory)
    if window == "local-p":
        away = torch.arange(SOURCE).unsqueeze(0) - local.window.center(query, position, memory.mask).unsqueeze(1)
        expected = expected * torch.exp(-(away**2) / (2 * (SOURCE / 2) ** 2))
    _, weights = local(query, position, memory)
    torch.testing.assert_close(weights, expected, rtol=0, atol=1e-12)


def test_the_monotonic_window_moves_with_the_step_and_stops_at_the_last_word() -> None:
    attention = attention_of(small(window="local-m", half_width=1))
    memory = remembered(attention, (5, 3))
    query = torch.randn(2, 5, dtype=torch.float64)
    seen = [(attention(query, torch.full((2,), step), memory)[1] > 0).int().tolist() for step in (0, 1, 3, 8)]
    assert [long for long, _ in seen] == [[1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [0, 0, 1, 1, 1], [0, 0, 0, 1, 1]]
    assert [short for _, short in seen] == [[1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [0, 1, 1, 0, 0], [0, 1, 1, 0, 0]]


@pytest.mark.parametrize(
    ("ratio", "centers"),
    [(1.0, [0, 1, 2, 3, 4, 5]), (2.0, [0, 2, 4, 6, 8, 8]), (0.5, [0, 0, 1, 2, 2, 2]), (0.1, [0, 0, 0, 0, 0, 0])],
)
def test_the_ratio_says_how_fast_the_monotonic_window_moves(ratio: float, centers: list[int]) -> None:
    window = attention_of(small(window="local-m", ratio=ratio)).window
    mask = torch.ones(6, 9, dtype=torch.bool)
    assert window.center(torch.zeros(6, 5), torch.arange(6), mask).tolist() == centers


def test_coverage_lets_a_score_turn_from_what_has_been_read() -> None:
    attention = attention_of(small(coverage=True))
    memory, query = remembered(attention, (4,)), torch.randn(1, 5, dtype=torch.float64)
    with torch.no_grad():
        attention.score.v.weight.fill_(1)
        attention.score.coverage.weight.fill_(-3)
        fresh = replace(memory, coverage=torch.zeros(1, 4, dtype=torch.float64))
        read = replace(memory, coverage=torch.tensor([[0.0, 1.0, 0.0, 0.0]], dtype=torch.float64))
        before, after = (attention(query, torch.tensor([1]), each)[1][0] for each in (fresh, read))
    assert after[1] < before[1]
    assert all(after[j] > before[j] for j in (0, 2, 3))


@pytest.mark.parametrize("window", ["global", "local-m"])
def test_the_heads_of_equal_projections_are_one_attention_on_each_share(window: str) -> None:
    attention = attention_of(small(score="dot", window=window, heads=2))
    with torch.no_grad():
        for projection in (attention.query, attention.annotation):
            projection.weight.copy_(torch.eye(ANNOTATION))
    whole, query, position = annotations_of(LENGTHS), query_of(small(score="dot")), torch.tensor([0, 1, 2])
    context, weights = attention(query, position, attention.remember(whole, mask_of(LENGTHS), whole[:, 0]))
    one, parts = attention_of(small(score="dot", window=window)), []
    for share in (slice(0, 2), slice(2, 4)):
        memory = one.remember(whole[..., share], mask_of(LENGTHS), whole[:, 0])
        parts.append(one(query[:, share], position, memory))
    torch.testing.assert_close(context, torch.cat([part[0] for part in parts], 1), rtol=0, atol=1e-12)
    torch.testing.assert_close(weights, (parts[0][1] + parts[1][1]) / 2, rtol=0, atol=1e-12)


def test_rows_may_be_at_different_steps() -> None:
    attention = attention_of(small(window="local-m"))
    memory = remembered(attention, (5, 5))
    query = torch.randn(2, 5, dtype=torch.float64)
    _, together = attention(query, torch.tensor([0, 4]), memory)
    _, first = attention(query, torch.tensor([0, 0]), memory)
    _, last = attention(query, torch.tensor([4, 4]), memory)
    torch.testing.assert_close(together, torch.stack([first[0], last[1]]), rtol=0, atol=0)


def test_a_location_window_beyond_the_known_positions_weighs_nothing_and_stays_finite() -> None:
    settings = small(score="location", window="local-m", half_width=1)  # W_a has 6 rows
    attention = attention_of(settings)
    memory, query = remembered(attention, (10,)), query_of(settings, 1).requires_grad_()
    context, weights = attention(query, torch.tensor([9]), memory)
    assert weights.sum() == 0
    assert (context == 0).all()
    context.sum().backward()
    assert query.grad.isfinite().all()


def test_the_softmax_holds_extreme_scores() -> None:
    scores = torch.tensor([[1e4, -1e4, 1e4, 5.0], [-1e30, -1e30, float("-inf"), 1e30]])
    allowed = torch.tensor([[True, True, True, True], [True, True, True, False]])
    assert masked_softmax(scores, allowed).tolist() == [[0.5, 0, 0.5, 0], [0.5, 0.5, 0, 0]]


def test_a_row_that_allows_nothing_gets_no_weight() -> None:
    scores = torch.tensor([[1.0, 2.0], [3.0, 3.0]], requires_grad=True)
    weights = masked_softmax(scores, torch.tensor([[False, False], [True, True]]))
    assert weights.tolist() == [[0, 0], [0.5, 0.5]]
    (weights * torch.tensor([1.0, 2.0])).sum().backward()
    assert scores.grad.tolist() == [[0, 0], [-0.25, 0.25]]


@pytest.mark.parametrize(
    ("given_type", "kept"),
    [("bfloat16", "float32"), ("float16", "float32"), ("float32", "float32"), ("float64", "float64")],
)
def test_softmax_inputs_have_at_least_the_digits_of_fp32(given_type: str, kept: str) -> None:
    assert at_least_fp32(torch.zeros(1, dtype=getattr(torch, given_type))).dtype == getattr(torch, kept)


@pytest.mark.parametrize(
    ("score", "heads"), [("additive", 1), ("general", 1), ("none", 1), ("additive", 2), ("dot", 4)]
)
def test_selecting_rows_of_a_memory_picks_and_repeats_them(score: str, heads: int) -> None:
    memory = remembered(attention_of(small(score=score, heads=heads)))
    picked = memory.select(torch.tensor([2, 0, 2]))
    assert torch.equal(picked.summary, memory.summary[[2, 0, 2]])
    for name in ("annotations", "keys", "mask", "positions"):
        ours, theirs = (getattr(each, name).unflatten(0, (BATCH, heads)) for each in (picked, memory))
        assert torch.equal(ours, theirs[[2, 0, 2]])
    assert picked.heads == heads


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize(("score", "window"), ATTENTIONS)
def test_several_queries_read_one_memory_as_if_each_had_its_own(score: str, window: str, heads: int) -> None:
    heads = 1 if score == "none" else heads
    settings = small(score=score, window=window, half_width=1, heads=heads, coverage=score in COVERING)
    attention = attention_of(settings)
    memory, sharing = remembered(attention), (-1, 2)
    query, position = query_of(settings, 2 * BATCH), torch.tensor([0, 2, 7, 1, 3, 3])
    own, coverage = covered(memory.select(torch.arange(BATCH).repeat_interleave(2)))
    wanted = attention(query, position, own)
    shared = replace(memory, coverage=coverage.unflatten(0, sharing).repeat_interleave(heads, 0))
    found = attention.of_steps(query.unflatten(0, sharing), position.unflatten(0, sharing), shared)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one.flatten(0, 1), other, rtol=0, atol=1e-12)


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize(("score", "window"), ATTENTIONS)
def test_hypotheses_read_one_memory_as_if_each_had_its_own(score: str, window: str, heads: int) -> None:
    heads = 1 if score == "none" else heads
    for coverage in {False, score in COVERING}:
        settings = small(score=score, window=window, half_width=1, heads=heads, coverage=coverage)
        attention = attention_of(settings)
        for sentences in ((0, 0, 0, 2), (0, 0, 1, 1, 2), (0, 1, 2), (1, 1)):
            memory, group = remembered(attention), torch.tensor(sentences)
            query = query_of(settings, len(group))
            asking, position, own = Ragged(group, BATCH), torch.arange(len(group)) * 2, memory.select(group)
            if coverage:
                own, had = covered(own)
                memory = replace(memory, coverage=asking.spread(had).repeat_interleave(heads, 0))
            found = attention.of_hypotheses(query, position, asking, memory)
            for one, other in zip(found, attention(query, position, own), strict=True):
                torch.testing.assert_close(one, other, rtol=0, atol=1e-12)
