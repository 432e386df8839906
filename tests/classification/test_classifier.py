"""The classifier of `recipes/classification`: its weights follow the equations, and padding changes nothing."""

import math

import pytest
import torch
from classifier import Classifier, Examples, fit, predict
from reading import ATTENTIONS, HierarchicalReader, LearnedQueries, ScaledDotScore
from torch import Tensor
from words import PADDING, UNKNOWN, encode, encode_sentences, read_text

from nmt.model import AdditiveScore, EncoderOutput

WORDS = {"a": 2, "b": 3, "c": 4}
IDS = torch.tensor([[2, 3, 4, 2, 3], [4, 2, PADDING, PADDING, PADDING]])


def encoded(width: int) -> EncoderOutput:
    mask = IDS != PADDING
    return EncoderOutput(torch.randn(2, 5, width) * mask.unsqueeze(-1), mask, torch.randn(2, 1, width), None)


def every(vectors: Tensor) -> Tensor:
    """A mask without padding."""
    return torch.ones(vectors.shape[:2], dtype=torch.bool)


def softmax(scores: list[float]) -> list[float]:
    total = sum(map(math.exp, scores))
    return [math.exp(score) / total for score in scores]


def scaled_dot(query: Tensor, annotation: Tensor) -> float:
    return float(sum(q * h for q, h in zip(query.tolist(), annotation.tolist(), strict=True))) / math.sqrt(len(query))


def test_scaled_dot_attention_follows_its_equation_in_each_head() -> None:
    torch.manual_seed(0)
    attention, source = LearnedQueries(ScaledDotScore(), 6, heads=2), encoded(6)
    context, weights = attention(source)
    for text, length in enumerate((5, 2)):
        for head, query in enumerate(attention.queries):
            expected = softmax([scaled_dot(query, h) for h in source.annotations[text, :length]])
            assert weights[text, head].tolist() == pytest.approx(expected + [0.0] * (5 - length), abs=1e-6)
            summed = sum(a * h for a, h in zip(expected, source.annotations[text], strict=False))
            assert torch.allclose(context[text, 6 * head : 6 * (head + 1)], torch.as_tensor(summed), atol=1e-6)


def test_additive_attention_is_the_word_attention_of_yang_et_al() -> None:
    """u_t = tanh(U h_t + b), alpha_t = softmax_t(u_t . u_w), with b = W q and u_w = v."""
    torch.manual_seed(0)
    score = AdditiveScore(6, 6, 6)
    attention, source = LearnedQueries(score, 6), encoded(6)
    bias = score.query(attention.queries[0])
    hidden = torch.tanh(source.annotations[0] @ score.key.weight.T + bias)
    expected = torch.softmax(hidden @ score.v.weight[0], dim=0)
    assert torch.allclose(attention(source)[1][0, 0], expected, atol=1e-6)


@pytest.mark.parametrize("hierarchical", [False, True])
@pytest.mark.parametrize("attention", ATTENTIONS)
def test_a_text_or_document_is_classified_alike_alone_and_beside_a_longer_one(
    attention: str, hierarchical: bool
) -> None:
    torch.manual_seed(1)
    model = Classifier(len(WORDS), 2, attention=attention, hierarchical=hierarchical)
    both, alone = IDS, IDS[1:, :2]
    if hierarchical:
        short, long = [["a", "b"], ["c"]], [["a"], ["b", "c", "a"], [], ["c"]]
        both, alone = encode_sentences([long, short], WORDS), encode_sentences([short], WORDS)
    (probabilities, weights), (probabilities_alone, weights_alone) = predict(model, both), predict(model, alone)
    assert torch.allclose(probabilities[1:], probabilities_alone, atol=1e-6)
    within = weights[1:, :, : alone.shape[1]]
    assert torch.allclose(within[..., : alone.shape[-1]], weights_alone, atol=1e-6)
    assert torch.allclose(weights.flatten(2).sum(-1), torch.tensor(float(attention != "last")))
    assert not weights[both.unsqueeze(1).expand_as(weights) == PADDING].any()


def test_unknown_words_and_empty_texts_have_an_id() -> None:
    assert encode([["a", "x"], []], WORDS).tolist() == [[2, UNKNOWN], [UNKNOWN, PADDING]]
    assert encode_sentences([[], [["a"], ["b"]]], WORDS).tolist() == [[[UNKNOWN], [PADDING]], [[2], [3]]]


def test_a_document_is_read_sentence_by_sentence() -> None:
    """s_i is what the words of sentence i give, v what the sentences give; a word has its share of its sentence's weight."""
    torch.manual_seed(1)
    reader = HierarchicalReader(6, attention="additive", encoder="gru")
    lengths = [[4, 2, 3], [1, 4]]
    vectors, mask = torch.randn(2, 3, 4, 6), torch.zeros(2, 3, 4, dtype=torch.bool)
    for document, row in enumerate(lengths):
        for place, length in enumerate(row):
            mask[document, place, :length] = True
    context, weights = reader(vectors, mask)
    for document, row in enumerate(lengths):
        sentences = [vectors[document, place, None, :length] for place, length in enumerate(row)]
        read, within = zip(*(reader.words(sentence, every(sentence)) for sentence in sentences), strict=True)
        expected, of_sentences = reader.sentences(torch.stack(read, 1), every(torch.stack(read, 1)))
        assert torch.allclose(context[document], expected[0], atol=1e-6)
        for place, length in enumerate(row):
            share = of_sentences[0, :, place, None] * within[place][0]
            assert torch.allclose(weights[document, :, place, :length], share, atol=1e-6)
        assert not weights[document, 0][~mask[document]].any()
        assert torch.allclose(weights[document].sum(), torch.tensor(1.0))


def test_a_text_is_cut_into_sentences_and_to_its_first_words() -> None:
    text = "Dr. Smith came. We ate well! He left early."
    assert read_text(text, 6, "en") == [["Dr.", "Smith", "came."], ["We", "ate", "well!"]]
    assert read_text(text, 4, "en") == [["Dr.", "Smith", "came."], ["We"]]
    assert read_text(text, 4) == [["Dr.", "Smith", "came.", "We"]]
    assert read_text(" ", 4, "en") == read_text("", 4) == []


def test_training_keeps_the_epoch_that_is_best_on_the_validation_texts() -> None:
    """Texts are of class 1 if they have `c`; validation says the opposite, so each epoch is worse than the one before."""
    torch.manual_seed(0)
    ids = torch.randint(2, 5, (64, 4))
    labels = (ids == 4).any(1, keepdim=True).repeat(1, 2)
    model, reports = Classifier(len(WORDS), 2, attention="additive"), list[str]()
    fit(model, Examples(ids, labels), Examples(ids, ~labels), epochs=4, report=reports.append)
    losses = [float(line.split("loss ")[1].split(" ")[0]) for line in reports]
    final = torch.nn.functional.binary_cross_entropy(predict(model, ids)[0], (~labels).float())
    assert len(losses) == 4
    assert max(losses) > min(losses) + 0.01
    assert float(final) == pytest.approx(min(losses), abs=1e-3)
