# %% [markdown]
# # 3. Luong et al. 2015
#
# *Effective Approaches to Attention-based Neural Machine Translation* ([arXiv](https://arxiv.org/abs/1508.04025)) turns Bahdanau's decoder
# around and asks which parts matter. The decoder first moves to its new state $h_t$, then attends with it; one more layer joins both:
#
# $$h_t = f(h_{t-1}, y_{t-1}) \qquad c_t = \sum_s a_t(s)\, \bar h_s \qquad \tilde h_t = \tanh(W_c [c_t; h_t]) \text{ (equations 3, 5)}$$
#
# From it comes the next word, $p(y_t) = \mathrm{softmax}(W_s \tilde h_t)$ (equation 6).
#
# The paper compares four scores, three windows, and one extra connection. This page takes them in turn.

# %%
import inspect
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import torch

import nmt
from nmt.model import masked_entmax15, masked_softmax, masked_sparsemax
from nmt.model.attention import Attention
from nmt.model.build import build_model
from nmt.model.readout import AttentionalReadout
from nmt.model.scores import ConcatScore, DotScore, GeneralScore, LocationScore
from nmt.model.windows import LocalMonotonicWindow, LocalPredictiveWindow

np.set_printoptions(precision=3, suppress=True)
SHORT = "NMT_TOUR_SHORT" in os.environ  # a few updates, to see that the page runs


def array(tensor: torch.Tensor) -> np.ndarray:
    values: np.ndarray = tensor.detach().double().numpy()
    return values


# %% [markdown]
# ## Four scores
#
# How well does the state $h_t$ match the word at position $s$? The paper tries four scores (section 3.1), of which a softmax makes the
# weights $a_t(s)$ (equation 7). Here is a state of three numbers, and a sentence of four words.

# %%
torch.manual_seed(1)
h, annotations = torch.randn(3).double(), torch.randn(4, 3).double()
modules = {
    "dot": DotScore(),
    "general": GeneralScore(query=3, annotation=3).double(),
    "concat": ConcatScore(query=3, annotation=3, size=5).double(),
    "location": LocationScore(query=3, max_source=10).double(),
}
by_module = {name: array(score(h[None, None], score.keys(annotations[None])))[0, 0] for name, score in modules.items()}
for name, scores in by_module.items():
    print(f"{name:9}", scores)

# %% [markdown]
# By hand, each is one line. `concat` multiplies $W_a$ with $[h_t; \bar h_s]$, the sum of a product with each half: Bahdanau's score
# in other words. `location` (equation 8) does not look at the words at all: each position has a row of $W_a$.

# %%
general, concat, location = modules["general"], modules["concat"], modules["location"]
assert isinstance(general, GeneralScore)
assert isinstance(concat, ConcatScore)
assert isinstance(location, LocationScore)
state, words = array(h), array(annotations)
W_a = np.concatenate([array(concat.query.weight), array(concat.key.weight)], axis=1)
by_hand = {
    "dot": [state @ word for word in words],
    "general": [state @ array(general.key.weight) @ word for word in words],
    "concat": [array(concat.v.weight)[0] @ np.tanh(W_a @ np.concatenate([state, word])) for word in words],
    "location": (array(location.position.weight) @ state)[:4],
}
for name, scores in by_module.items():
    assert np.allclose(by_hand[name], scores)
print("by hand and by module: the same")

# %% [markdown]
# ## Weights that are zero
#
# A softmax gives some weight to every word, however low its score. Two later papers take a threshold $\tau$ off the scores instead, and
# what falls below it gets exactly zero. $\tau$ is the number with which the weights sum to one.
#
# * **sparsemax** (Martins and Astudillo 2016): $a_t(s) = \max(e_s - \tau, 0)$
# * **1.5-entmax** (Peters, Niculae and Martins 2019): $a_t(s) = \max(e_s / 2 - \tau, 0)^2$
#
# The same scores of one sentence, normalized in three ways. They are made up: 2 where words translate each other, and noise around it.
# White is zero.

# %%
SENTENCE = "The old teacher does not open the window .".split()
TRANSLATION = "Der alte Lehrer öffnet das Fenster nicht .".split()
LINKS = [(0, 0), (1, 1), (2, 2), (3, 5), (4, 6), (5, 7), (6, 3), (6, 4), (7, 8)]  # (target, source)
torch.manual_seed(1)
made_up = 0.7 * torch.randn(len(TRANSLATION), len(SENTENCE)).double()
for target, source in LINKS:
    made_up[target, source] += 2
everywhere = torch.ones_like(made_up, dtype=torch.bool)
normalized = {
    "softmax": masked_softmax(made_up, everywhere),
    "sparsemax": masked_sparsemax(made_up, everywhere),
    "1.5-entmax": masked_entmax15(made_up, everywhere),
}
for name, alpha in normalized.items():
    assert np.allclose(alpha.sum(1), 1)
    print(f"{name:10} zeros: {100 * (alpha == 0).double().mean():.0f} %   alte: {array(alpha[1])}")
nmt.plot_alignment(
    [nmt.Alignment(array(alpha), tuple(SENTENCE), tuple(TRANSLATION)) for alpha in normalized.values()],
    title=list(normalized),
)

# %% [markdown]
# By hand, for *alte*: the scores that sparsemax keeps lie above the threshold, all others below.

# %%
row, expected = array(made_up[1]), array(normalized["sparsemax"][1])
kept = expected > 0
tau = (row[kept].sum() - 1) / kept.sum()
assert np.allclose(np.maximum(row - tau, 0), expected)
print(f"tau = {tau:.3f}, kept: {row[kept]}, the largest of the others: {row[~kept].max():.3f}")

# %% [markdown]
# In a recipe it is `model.attention.normalizer: sparsemax` or `entmax15`, with any score and any window; the Gaussian of a window is
# applied after it.
#
# ## Three windows
#
# *Global* attention reads every word at every step. *Local* attention reads the words in $[p_t - D, p_t + D]$, around a center $p_t$
# (section 3.2):
#
# * **local-m** assumes that both languages run side by side: $p_t = t$. The window holds $2D + 1$ words.
# * **local-p** predicts where to look, $p_t = S\, \sigma(v_p^\top \tanh(W_p h_t))$ (equation 9). That is a real number, so the window
#   holds $2D$ words. It prefers those near the center:
#
# $$a_t(s) = \mathrm{align}(h_t, \bar h_s) \exp\left(-\frac{(s - p_t)^2}{2 \sigma^2}\right)
# \qquad \sigma = \frac{D}{2} \qquad \text{(equation 10)}$$
#
# The same scores of ten steps over ten words, seen through each window with $D = 2$. Each row is a step. Hatched cells are outside of the
# window.

# %%
SOURCE = STEPS = 10
torch.manual_seed(3)
queries, keys = torch.randn(1, STEPS, 8), 0.5 * torch.randn(1, SOURCE, 8)
mask, positions = torch.ones(1, SOURCE, dtype=torch.bool), torch.arange(STEPS)[None]
windows: dict[str, Any] = {
    "global": None,
    "local-m": LocalMonotonicWindow(2),
    "local-p": LocalPredictiveWindow(8, half_width=2),
}
fig, axes = plt.subplots(1, 3, figsize=(10, 3.6), sharey=True, layout="constrained")
for axis, (name, window) in zip(axes, windows.items(), strict=True):
    attention = Attention(DotScore(), window)
    memory = attention.build_memory(keys, mask, torch.zeros(1, 8))
    with torch.no_grad():
        output = attention(queries, positions, memory)
    axis.patch.set(hatch="////", edgecolor="#b0b0b0")  # seen where there is no color
    read = array(output.weights[0])
    axis.imshow(np.where(read > 0, read, np.nan), cmap="Blues", vmin=0, vmax=0.7)
    if output.centers is not None:
        axis.plot(array(output.centers[0, :, 0]), range(STEPS), ".", color="#d62728", markersize=9)
    axis.set(title=name, xlabel="source position s")
    print(f"{name:8} words read per step: at most {(read > 0).sum(1).max()}")
axes[0].set_ylabel("step t")
plt.show()

# %% [markdown]
# The red dots are the centers. Those of local-p are real numbers, here of a window that has learned nothing yet. Around one of them, the
# Gaussian says how much of a weight remains:

# %%
D, center = 4, 6.3
window = LocalPredictiveWindow(8, half_width=D)
places = torch.arange(13)
factors = array(window.factor(torch.tensor([[center]]), places.view(1, 1, -1)))[0, 0]
curve = np.linspace(center - D, center + D, 200)
fig, axis = plt.subplots(figsize=(5.2, 2.8), layout="constrained")
axis.plot(curve, np.exp(-((curve - center) ** 2) / (2 * (D / 2) ** 2)), color="#b0b0b0")
axis.stem(places, factors, linefmt="#1f5ab4", markerfmt="o", basefmt=" ")
axis.axvline(center, color="#d62728", linestyle=":")
axis.set(xlabel="source position s", ylabel="factor", title=f"D = {D}, p = {center}")
axis.spines[["top", "right"]].set_visible(False)
plt.show()
print("factors:", factors)

# %% [markdown]
# As in the paper, the products are not divided by their sum again, so the weights of local-p sum to less than one.
#
# ## What a step costs
#
# Global attention computes a score for every word. A local window has the same number of words in a sentence of 50 as in one of 2,000. Here
# is the time of one step of attention for 16 hypotheses, as a search computes it.

# %%
torch.manual_seed(1)
torch.set_num_threads(1)
LENGTHS = [50, 200] if SHORT else [50, 200, 500, 1000, 2000]


def milliseconds(window: LocalPredictiveWindow | None, length: int) -> float:
    """The median of 15 steps of attention over a source of this length."""
    attention = Attention(GeneralScore(256, 256), window)
    with torch.inference_mode():
        memory = attention.build_memory(
            torch.randn(16, length, 256), torch.ones(16, length, dtype=torch.bool), torch.zeros(16, 256)
        )
        query, times = torch.randn(16, 1, 256), []
        for _ in range(15):
            start = time.perf_counter()
            attention(query, torch.zeros(16, 1, dtype=torch.long), memory)
            times.append(time.perf_counter() - start)
    return float(1000 * np.median(times))


costs = {
    "global": [milliseconds(None, length) for length in LENGTHS],
    "local-p, D = 10": [milliseconds(LocalPredictiveWindow(256, 10), length) for length in LENGTHS],
}
fig, axis = plt.subplots(figsize=(5.2, 3), layout="constrained")
for (name, values), color in zip(costs.items(), ("#1f5ab4", "#d62728"), strict=True):
    axis.plot(LENGTHS, values, marker="o", color=color, label=name)
    print(
        f"{name:16}",
        *(f"S = {length}: {value:.2f} ms" for length, value in zip(LENGTHS, values, strict=True)),
        sep="   ",
    )
axis.set(xlabel="words of the source S", ylabel="milliseconds per step", ylim=(0, None))
axis.spines[["top", "right"]].set_visible(False)
axis.legend(frameon=False)
plt.show()

# %% [markdown]
# The window costs the same at any length, and global attention ever more. In a sentence of 50 words the window costs more than it saves:
# the center must be predicted, and the words around it gathered. The sentences of most corpora are that short. Local attention is for
# documents.
#
# ## Input feeding
#
# A decoder of this kind does not know where it has looked: $h_{t+1}$ reads the word $y_t$, not the context that led to it. *Input feeding*
# gives it $\tilde h_t$ beside the word (section 3.3). In `nmt.model` that is one more matrix of the recurrence.

# %%
print(inspect.getsource(AttentionalReadout.forward))
SMALL = [
    *("model.dropout=0", "model.encoder.hidden=64", "model.decoder.hidden=128", "model.decoder.bridge=final"),
    *("model.decoder.order.kind=update-then-attend", "model.decoder.readout.kind=attentional"),
    *("model.embedding=64", "model.embedding_scale=8", "model.decoder.readout.size=64", "model.attention.score=dot"),
]
for name, feeding in (("without feeding", "false"), ("with feeding", "true")):
    config = nmt.load_recipe("quickstart", [*SMALL, f"model.decoder.order.input_feeding={feeding}"]).model
    untrained: Any = build_model(config, source_size=1000, target_size=1000)
    inputs = untrained.decoder.recurrence.inputs
    shapes = " + ".join(f"{key} {tuple(linear.weight.shape)}" for key, linear in inputs.items())
    print(f"{name:15} the GRU reads {shapes}")

# %% [markdown]
# In the paper it gains more than a point of BLEU (Table 1). What it does to eight attentions on Multi30k is in `recipes/README.md`.
#
# ## Where a trained window looks
#
# A small model with feeding and a predicted window of $D = 2$ learns the embedded sample. Of 300 test sentences, here is the longest one
# that it translates just as the grammar does. Each row is a token that it writes, the bar is the window $[p_t - D, p_t + D]$, and the dot
# is $p_t$. Hatched cells are outside of the window.

# %%
D = 2
recipe = nmt.load_recipe(
    "quickstart",
    [
        *SMALL,
        f"model.attention.window={{kind: local-p, half_width: {D}}}",
        *(f"training.updates={20 if SHORT else 800}", "training.schedule.warmup=50"),
        *("training.optimizer.rate=6e-3", "training.validation.metrics=perplexity"),
    ],
)
FOLDER = Path(tempfile.mkdtemp()) / "local-p"
nmt.train(recipe, FOLDER, device="cpu", quiet=True)
pairs = list(nmt.load_corpus("sample:test", source="en", target="de"))[: 40 if SHORT else 300]
greedy = nmt.load(FOLDER, "cpu").translate([source for source, _ in pairs], beam_size=1)
right = [source for (source, target), found in zip(pairs, greedy, strict=True) if found.text == target]
line = max(right or [pairs[0][0]], key=len)
print(f"{len(right)} of {len(pairs)} right, the longest: {line}")

bundle = nmt.Bundle.load(FOLDER)
model: Any = bundle.model.eval()
ids = torch.tensor([[*bundle.source.encode(line), 3]])  # 3 is the end mark
source_tokens = [*bundle.source.tokens(ids[0, :-1].tolist()), "</s>"]
written, weights, centers = list[str](), list[np.ndarray](), list[float]()
last = 2
with torch.no_grad():
    encoded = model.encode(ids, torch.ones_like(ids, dtype=torch.bool))
    decoder_state = model.start(encoded)
    while len(written) < 40 and last != 3:
        step = model.step(torch.tensor([last]), decoder_state, encoded, torch.tensor([0]))
        decoder_state, last = step.state, int(step.log_probs[:].argmax())
        written.append("</s>" if last == 3 else bundle.target.tokens([last])[0])
        weights.append(array(step.weights[0]))
        centers.append(float(step.centers[0, 0]))
fig, axis = plt.subplots(figsize=(6.4, 5), layout="constrained")
axis.patch.set(hatch="////", edgecolor="#b0b0b0")
seen = np.array(weights)
axis.imshow(np.where(seen > 0, seen, np.nan), cmap="Blues", vmin=0, vmax=1, aspect="auto")
axis.hlines(range(len(written)), np.array(centers) - D, np.array(centers) + D, color="#d62728", alpha=0.35, linewidth=4)
axis.plot(centers, range(len(written)), "o", color="#d62728", markersize=4)
axis.set(xlim=(-0.5, len(source_tokens) - 0.5))
axis.set_xticks(range(len(source_tokens)), source_tokens, rotation=45, ha="left")
axis.set_yticks(range(len(written)), written)
axis.xaxis.tick_top()
plt.show()
print(f"tokens read per step: at most {(seen > 0).sum(1).max()} of {len(source_tokens)}")
print(f"weight in the window, mean over the steps: {seen.sum(1).mean():.2f}")

# %% [markdown]
# ## Their Table 4 beside ours
#
# The paper compares attentions on WMT 2014 English-German (its Table 4; BLEU before unknown words are replaced). The second column is what
# `recipes/README.md` measures for the same attentions, with input feeding, on Multi30k English-German. Corpus, size and training differ, so
# only the order within a column says something.

# %%
TABLE_4 = {
    "global, location": (18.1, 33.20),
    "global, dot": (18.6, 36.22),
    "global, general": (17.3, 35.62),
    "local-m, general": (18.6, 35.52),
    "local-p, dot": (18.0, 35.44),
    "local-p, general": (19.0, 35.00),
}
print(f"{'':17} WMT, the paper   Multi30k, nmt")
for name, (theirs, ours) in TABLE_4.items():
    print(f"{name:17} {theirs:14.1f} {ours:15.1f}")

# %% [markdown]
# In both columns the content-based scores lie close together. Those of ours are within the margin of the test, so the order among
# them is no result. `location`, which cannot see the words, is clearly last in ours and not in theirs. The gain of local-p does not show on
# captions, of which a window of 20 tokens leaves little out.
#
# ## Exercises
#
# 1. With which $W_a$ is `general` the same as `dot`?
# 2. Of a window with $D = 4$, how much of a weight at distance 4 does the Gaussian leave?
# 3. Why does the last row of local-m in the picture read fewer words than the rows in the middle?
#
# ## Answers

# %%
same = GeneralScore(3, 3).double()
with torch.no_grad():
    same.key.weight.copy_(torch.eye(3))
print("1.", array(same(h[None, None], same.keys(annotations[None])))[0, 0], "dot:", by_module["dot"])
print(f"2. exp(-16 / 8) = {np.exp(-16 / 8):.3f}")
local_m = array(windows["local-m"].factor(torch.tensor([[9.0]]), torch.arange(SOURCE).view(1, 1, -1)))[0, 0]
print("3. factors of the last step:", local_m)

# %% [markdown]
# 1. With the identity matrix. The paper's `general` therefore can be at least as good, if training finds it.
# 2. About a seventh: the window ends where little is left.
# 3. The window ends with the sentence. It has $2D + 1$ places, but no words beyond the last one.
