# %% [markdown]
# # 1. Attention from nothing
#
# A decoder is about to write a word. It has read a sentence of four words, and each of them left two numbers behind. Which of the four
# should it look at? Attention answers with four weights that sum to one. This page computes them by hand, in NumPy, and then with the
# modules of `nmt.model`, which give the same numbers.
#
# The equations are those of [Bahdanau et al. 2015](https://arxiv.org/abs/1409.0473), section 3.1:
#
# $$e_{ij} = a(s_{i-1}, h_j) \qquad \alpha_{ij} = \frac{\exp e_{ij}}{\sum_k \exp e_{ik}} \qquad c_i = \sum_j \alpha_{ij} h_j$$

# %%
import matplotlib.pyplot as plt
import numpy as np
import torch

from nmt.model.attention import Attention
from nmt.model.scores import AdditiveScore, DotScore

np.set_printoptions(precision=3, suppress=True)

# %% [markdown]
# ## Annotations: what the encoder left behind
#
# The paper calls the vector $h_j$ of word $j$ its *annotation*. A real one has two thousand numbers; two can be drawn.

# %%
words = ["the", "cat", "sees", "dogs"]
annotations = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0], [-1.0, 1.0]])

fig, axes = plt.subplots(figsize=(4.5, 3.6))
for word, (x, y) in zip(words, annotations, strict=True):
    axes.annotate("", (x, y), (0, 0), arrowprops={"arrowstyle": "-|>", "color": "#1f5ab4"})
    axes.annotate(word, (x, y), (4, 4), textcoords="offset points")
axes.set(xlim=(-1.6, 1.8), ylim=(-0.3, 2.5), title="Four annotations", aspect="equal")
axes.spines[["top", "right"]].set_visible(False)
plt.show()

# %% [markdown]
# ## A weighted mean
#
# Suppose that somebody tells us the weights. Then the *context* is a mean of the annotations in which each counts as much as its weight.

# %%
given = np.array([0.2, 0.3, 0.3, 0.2])
context = given @ annotations
for word, weight, annotation in zip(words, given, annotations, strict=True):
    print(f"{weight} x {annotation}   {word}")
print("sum:", context)

# %% [markdown]
# No word is chosen and none is lost. That is what "soft" attention means, and why it can be trained: move a weight a little, and the
# context moves a little.
#
# ## Scores become weights: softmax
#
# Nobody tells the decoder the weights. It computes a *score* for each word, any number at all, and softmax makes weights of them:
# positive, and 1 in sum. Which scores give the weights from above? Their logarithms, up to a constant, which softmax does not see.


# %%
def softmax(scores: np.ndarray) -> np.ndarray:
    exponentials: np.ndarray = np.exp(scores - scores.max())  # the same result, and no overflow
    weights: np.ndarray = exponentials / exponentials.sum()
    return weights


scores = np.log(given)
print("scores: ", scores)
print("weights:", softmax(scores))
print("shifted:", softmax(scores + 5))

# %% [markdown]
# ## Where scores come from: a query meets keys
#
# The decoder's state $s_{i-1}$ is the *query*: what it is looking for. Each word has a *key* to be compared with it, and a *value* to be
# read. In both papers the value is the annotation itself. The simplest comparison is the product of query and annotation
# ([Luong et al. 2015](https://arxiv.org/abs/1508.04025), `dot`): large where both point the same way.

# %%
query = np.array([0.5, 1.0])
dot_scores = annotations @ query
dot_weights = softmax(dot_scores)
for word, score, weight in zip(words, dot_scores, dot_weights, strict=True):
    print(f"{word:5} score {score:4.1f}   weight {weight:.3f}   {'#' * round(40 * weight)}")
print("context:", dot_weights @ annotations)

# %% [markdown]
# Bahdanau's score is a small network instead: $e_{ij} = v^\top \tanh(W s_{i-1} + U h_j)$. The part $U h_j$ is the key. It does not depend
# on the query, so it is computed once per sentence.

# %%
W, U, v = np.array([[1.0, 0.0], [0.0, -1.0]]), np.array([[1.0, 1.0], [0.5, -0.5]]), np.array([2.0, 1.0])
keys = annotations @ U.T
additive_scores = np.tanh(W @ query + keys) @ v
print("keys:\n", keys)
print("scores: ", additive_scores)
print("weights:", softmax(additive_scores))

# %% [markdown]
# ## The same numbers from `nmt.model`
#
# `Attention` takes a score. `build_memory` computes the keys once; the call takes queries [sentences, steps, size] and gives weights and
# contexts.


# %%
def attend(
    attention: Attention, annotations: np.ndarray, mask: list[bool] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Weights and context of the query; without a mask, all positions are words."""
    is_word = torch.tensor([mask or [True] * len(annotations)])
    memory = attention.build_memory(torch.tensor(annotations)[None], is_word, torch.zeros(1, 2).double())
    output = attention(torch.tensor(query)[None, None], torch.tensor([[0]]), memory)
    return output.weights[0, 0].detach().numpy(), output.contexts[0, 0].detach().numpy()


dot = Attention(DotScore(), None).double()
weights, context = attend(dot, annotations)
print("dot:     ", weights, "context", context)
assert np.allclose(weights, dot_weights)
assert np.allclose(context, dot_weights @ annotations)

# %% [markdown]
# In `AdditiveScore`, `query` is $W$, `key` is $U$ and `v` is $v$. With our numbers in them, the module gives our weights.

# %%
score = AdditiveScore(query=2, annotation=2, size=2).double()
with torch.no_grad():
    score.query.weight.copy_(torch.tensor(W))
    score.query.bias.zero_()
    score.key.weight.copy_(torch.tensor(U))
    score.v.weight.copy_(torch.tensor(v)[None])
additive = Attention(score, None)
weights, context = attend(additive, annotations)
print("additive:", weights, "context", context)
assert np.allclose(weights, softmax(additive_scores))

# %% [markdown]
# ## Attention reads a set
#
# Put the words in another order. Each keeps its weight, and the context is the same: attention knows which words there are, not where they
# stand. Where they stand is known to the annotations, because a recurrent encoder reads in order (or because positions are added, as in a
# Transformer).

# %%
order = [2, 0, 3, 1]
shuffled_weights, shuffled_context = attend(dot, annotations[order])
print([words[place] for place in order], shuffled_weights, "context", shuffled_context)
assert np.allclose(shuffled_weights, dot_weights[order])
assert np.allclose(shuffled_context, dot_weights @ annotations)

# %% [markdown]
# ## Padding must get no weight
#
# Sentences of different lengths share a batch, so the shorter ones are padded, here with two vectors of zeros. A score of a zero vector is
# 0, and softmax gives $e^0$ its share. Without a mask, the padding takes weight from the words, and more of it the longer the longest
# sentence of the batch is: a sentence would be translated differently in other company.

# %%
padded = np.concatenate([annotations, np.zeros((2, 2))])
masked_weights, masked_context = attend(dot, padded, mask=[True] * 4 + [False] * 2)
careless_weights, careless_context = attend(dot, padded)
print("with the mask:   ", masked_weights, "context", masked_context)
print("without the mask:", careless_weights, "context", careless_context)
print(f"weight lost to padding: {careless_weights[4:].sum():.3f}")
assert np.allclose(masked_context, dot_weights @ annotations)

fig, axes = plt.subplots(1, 2, figsize=(8, 2.6), sharey=True)
for axis, bars, title in zip(axes, (masked_weights, careless_weights), ("With the mask", "Without it"), strict=True):
    axis.bar([*words, "PAD", "PAD "], bars, color=["#1f5ab4"] * 4 + ["#d62728"] * 2)
    axis.set_title(title)
    axis.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("weight")
plt.show()

# %% [markdown]
# The mask sets the score of padding to minus infinity before softmax, whose exponential is 0. Setting the *weights* to 0 afterwards would
# leave a sum below 1.
#
# ## One query after the other
#
# A decoder asks again for every word that it writes, each time with another state. The weights of all queries, one row each, are the
# *alignment*. This is the picture that `nmt plot` draws.

# %%
queries = np.array([[2.0, -1.0], [0.0, 2.0], [1.5, 1.5], [-2.0, 0.5]])
alignment = np.array([softmax(annotations @ state) for state in queries])
print(alignment)

fig, axis = plt.subplots(figsize=(3.4, 3.2))
axis.imshow(alignment, cmap="Blues", vmin=0, vmax=1)
axis.set_xticks(range(4), words)
axis.set_yticks(range(4), [f"query {number}" for number in range(1, 5)])
axis.xaxis.tick_top()
plt.show()

# %% [markdown]
# ## Exercises
#
# 1. Multiply the query by 10 before the dot score. What happens to the weights? And by 0?
# 2. Give `dogs` the annotation of `cat`. How do the weights of the two compare, and what does the context lose?
# 3. Which query makes the dot score prefer `the` to all other words?
#
# ## Answers

# %%
print("1.", softmax(10 * dot_scores), softmax(0 * dot_scores))
twins = annotations[[0, 1, 2, 1]]
print("2.", softmax(twins @ query), "context", softmax(twins @ query) @ twins)
print("3.", softmax(annotations @ np.array([3.0, -3.0])))

# %% [markdown]
# 1. A larger query is more certain: nearly all weight goes to the largest score. A query of zeros has no preference, so the context is the
#    plain mean: attention without a question.
# 2. They get equal weights, and nothing tells the decoder which of the two it read.
# 3. One that points towards `the` and away from the others, for example (3, -3).
