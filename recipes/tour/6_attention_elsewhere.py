# %% [markdown]
# # 6. Attention elsewhere
#
# Nothing in attention is about translation. A decoder asks anew for every word that it writes. A classifier asks once per text, and always
# the same, so its query can be a parameter that is learned (Yang et al. 2016). This page teaches two classifiers on the *same* texts, one
# to find colors, the other animals, and looks at what each has learned to read.

# %%
import os
import random

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from nmt.model import AdditiveScore, Encoder, masked_softmax
from nmt.recipe import DropoutConfig, EncoderConfig

SHORT = "NMT_TOUR_SHORT" in os.environ  # a few updates, to see that the page runs
COLORS = ["red", "green", "blue", "yellow", "white"]
ANIMALS = ["dog", "cat", "horse", "cow", "bird", "fish"]
OTHERS = [f"word{number}" for number in range(200)]
WORDS = ["PAD", *COLORS, *ANIMALS, *OTHERS]

# %% [markdown]
# ## Texts
#
# A text has 10 to 16 words without any order. Up to two of them are colors and up to two are animals; the rest means nothing. Its labels
# are the words of one kind that it has. Shorter texts are padded.

# %%
author = random.Random(1)


def write_text() -> list[str]:
    telling = author.sample(COLORS, author.randint(0, 2)) + author.sample(ANIMALS, author.randint(0, 2))
    text = telling + author.sample(OTHERS, author.randint(10, 16) - len(telling))
    return author.sample(text, len(text))


def encode(texts: list[list[str]]) -> Tensor:
    longest = max(map(len, texts))
    return torch.tensor([[WORDS.index(word) for word in [*text, *["PAD"] * (longest - len(text))]] for text in texts])


def labels(texts: list[list[str]], names: list[str]) -> Tensor:
    return torch.tensor([[float(name in text) for name in names] for text in texts])


train_texts, test_texts = ([write_text() for _ in range(count)] for count in (1500, 300))
example = next(text for text in test_texts if len(set(text) & set(COLORS)) == 2 and len(set(text) & set(ANIMALS)) == 2)
print(" ".join(example))

# %% [markdown]
# ## The classifier
#
# Encoder, score and masked softmax are those of translation. New is the query $q$, a parameter:
#
# $$\alpha_j = \mathrm{softmax}_j\, v^\top \tanh(W q + U h_j) \qquad c = \sum_j \alpha_j h_j$$
#
# $$p(\mathrm{label}) = \sigma(w^\top \tanh(V c))$$
#
# With `reads="mean"` it has no attention: the context is the mean of all annotations.

# %%
SIZE = 24


class Classifier(nn.Module):
    def __init__(self, label_count: int, reads: str = "attention") -> None:
        super().__init__()
        self.reads = reads
        self.embedding = nn.Embedding(len(WORDS), SIZE)
        self.encoder = Encoder(EncoderConfig(hidden=SIZE), embedding=SIZE, dropout=DropoutConfig(annotations=0))
        self.score = AdditiveScore(2 * SIZE, 2 * SIZE, SIZE)
        self.query = nn.Parameter(0.1 * torch.randn(2 * SIZE))
        self.output = nn.Sequential(nn.Linear(2 * SIZE, SIZE), nn.Tanh(), nn.Linear(SIZE, label_count))

    def forward(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """The logit of each label, and the weight of each word."""
        mask = ids != WORDS.index("PAD")
        annotations = self.encoder(self.embedding(ids), mask).annotations
        scores = self.score(self.query.expand(len(ids), 1, -1), self.score.keys(annotations))
        if self.reads == "mean":
            scores = torch.zeros_like(scores)
        weights = masked_softmax(scores, mask.unsqueeze(1))
        return self.output((weights @ annotations).squeeze(1)), weights.squeeze(1)


def learn(names: list[str], reads: str = "attention") -> Classifier:
    torch.manual_seed(1)
    model = Classifier(len(names), reads)
    ids, gold = encode(train_texts), labels(train_texts, names)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(1 if SHORT else 8):
        for rows in torch.randperm(len(ids)).split(32):
            loss = binary_cross_entropy_with_logits(model(ids[rows])[0], gold[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model.eval()


def share_right(model: Classifier, names: list[str]) -> float:
    """The share of test texts of which every label is right."""
    with torch.no_grad():
        answers = model(encode(test_texts))[0] > 0
    return float((answers == labels(test_texts, names).bool()).all(1).float().mean())


color_reader, animal_reader = learn(COLORS), learn(ANIMALS)
print(f"colors:  {share_right(color_reader, COLORS):.1%} of the test texts right")
print(f"animals: {share_right(animal_reader, ANIMALS):.1%} of the test texts right")

# %% [markdown]
# ## What each of them reads
#
# The same text, read twice. The weights follow the question: each classifier has learned to look at the words that answer its own.


# %%
def weights_of(model: Classifier, text: list[str]) -> np.ndarray:
    with torch.no_grad():
        read: np.ndarray = model(encode([text]))[1][0].numpy()
    return read


fig, axes = plt.subplots(2, 1, figsize=(8, 4.2), sharex=True, layout="constrained")
for axis, model, names, title in zip(
    axes, (color_reader, animal_reader), (COLORS, ANIMALS), ("asked for colors", "asked for animals"), strict=True
):
    axis.bar(
        range(len(example)),
        weights_of(model, example),
        color=["#d62728" if word in names else "#1f5ab4" for word in example],
    )
    axis.set(title=title, ylabel="weight", ylim=(0, 1))
    axis.spines[["top", "right"]].set_visible(False)
axes[1].set_xticks(range(len(example)), example, rotation=45, ha="right")
plt.show()

# %% [markdown]
# Over all test texts that have such words, how much of the weight is on them? Chance is the share of these words among all.


# %%
def weight_on(model: Classifier, names: list[str]) -> tuple[float, float]:
    """The mean weight on words of these names, and what equal weights would give."""
    texts = [text for text in test_texts if set(text) & set(names)]
    marks = [np.array([word in names for word in text]) for text in texts]
    read = [weights_of(model, text)[own].sum() for text, own in zip(texts, marks, strict=True)]
    return float(np.mean(read)), float(np.mean([own.mean() for own in marks]))


for title, model, names in (("colors", color_reader, COLORS), ("animals", animal_reader, ANIMALS)):
    read, chance = weight_on(model, names)
    print(f"asked for {title}: {read:.0%} of the weight on {title}; equal weights: {chance:.0%}")
other, _ = weight_on(color_reader, ANIMALS)
print(f"asked for colors: {other:.0%} of the weight on animals")

# %% [markdown]
# ## Without attention
#
# The mean of the annotations knows every word a little. It can learn this task too, a recurrent encoder is strong enough, but it must carry
# the few telling words through an average of many, and it cannot say what it read.

# %%
averaging = learn(COLORS, reads="mean")
print(f"colors, mean of the annotations: {share_right(averaging, COLORS):.1%} of the test texts right")
print(f"colors, attention:               {share_right(color_reader, COLORS):.1%}")

# %% [markdown]
# ## And beyond texts
#
# What is read need not be words. In `recipes/captioning` a convolutional network looks at a picture and leaves an annotation in each cell
# of a grid; the decoder of this toolkit writes a caption and attends to the cells (Xu et al. 2015), softly or one cell at a time. Beside it
# a network draws pictures through a window that it moves (Gregor et al. 2015). `recipes/classification` has the programs of this page for
# tables of your own.
#
# ## Exercises
#
# 1. What do the weights of a text without any color look like for the one who is asked for colors?
# 2. Is a large weight a reason? Take the word with the largest weight out of the example and see whether its label goes.
#
# ## Answers

# %%
plain = next(text for text in test_texts if not set(text) & set(COLORS))
print(
    f"1. largest weight without a color: {weights_of(color_reader, plain).max():.2f}, with: {weights_of(color_reader, example).max():.2f}"
)
largest = example[int(weights_of(color_reader, example).argmax())]
rest = [word for word in example if word != largest]
with torch.no_grad():
    before, after = (color_reader(encode([text]))[0][0].sigmoid() for text in (example, rest))
for name, one, other in zip(COLORS, before.tolist(), after.tolist(), strict=True):
    print(f"2. {name:7} {one:.2f} with '{largest}', {other:.2f} without")

# %% [markdown]
# 1. Compare the two numbers. Weights must sum to one, so with nothing to find they go somewhere: they are no evidence of a color.
# 2. Here it is one: the label goes with the word. That is worth testing, as done here. Attention shows where a model looked, not why it
#    decided.
