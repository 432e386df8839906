"""JoeyNMT 2.3.0."""

from __future__ import annotations

import re
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from .measuring import MeasurementError, run
from .peers import Decoded, Environment, Trained
from .shared_model import EMBEDDING, ENCODER, HIDDEN
from .text import Text

_WINDOW = re.compile(r"^(\S+ \S+),(\d{3}) .*Step:\s*(\d+),.*Tokens per Sec:\s*([\d.]+)", re.MULTILINE)
_SECONDS = re.compile(r"Generation took ([\d.]+)")


def windows(log: str) -> tuple[list[float], float | None]:
    """Target tokens per second of each logged window, and the mean number of target tokens per update, by the clock of the log."""
    records = [
        (datetime.fromisoformat(f"{when}.{thousandths}"), int(step), float(rate))
        for when, thousandths, step, rate in _WINDOW.findall(log)
    ]
    if not records:
        raise MeasurementError("JoeyNMT logged no speed; its log ends: " + " / ".join(log.strip().splitlines()[-2:]))
    tokens = sum(rate * (end - start).total_seconds() for (start, _, _), (end, _, rate) in pairwise(records))
    updates = records[-1][1] - records[0][1]
    return [rate for *_, rate in records], tokens / updates if updates else None


def seconds(log: str) -> float:
    """Seconds of translating, without loading the model."""
    match = _SECONDS.search(log)
    if not match:
        raise MeasurementError(
            "JoeyNMT reported no time; its output ends: " + " / ".join(log.strip().splitlines()[-2:])
        )
    return float(match[1])


class Joey:
    name = "JoeyNMT 2.3.0"
    attentions = {"additive": "bahdanau", "general": "luong"}  # noqa: RUF012
    batches = "the longest side of any sentence, its special token included, times the number of sentences, which are not sorted by length."

    def __init__(self, folder: Path, threads: int, device: str = "cpu") -> None:
        self.folder, self.threads, self.uses_gpu = folder, threads, device == "cuda"
        self.environment = Environment(
            folder / "joey",
            installs=(
                ("torch=={torch}",),
                ("joeynmt==2.3.0", "importlib_metadata", "sentencepiece==0.2.0"),
            ),
            edits=(("joeynmt/builders.py", '"verbose": False,', ""),),
        )

    def set_up(self) -> None:
        self.environment.set_up()

    def model(self, family: str, text: Text, *, updates: int, batch_tokens: int) -> Path:
        run = f"joey-{self.attentions[family]}-{batch_tokens}x{updates}-{text.key}"
        return self.folder / "runs" / run / "model"

    def train(self, family: str, text: Text, *, updates: int, batch_tokens: int) -> Trained:
        attention = self.attentions[family]
        model = self.model(family, text, updates=updates, batch_tokens=batch_tokens)
        out = model.parent
        out.mkdir(parents=True, exist_ok=True)
        config = self.config(out, text, attention, updates=updates, batch_tokens=batch_tokens)
        process = run(
            [self.environment.program("python"), "-m", "joeynmt", "train", config, "--skip-test"],
            threads=self.threads,
            what=f"{self.name} {attention}",
        )
        log = process.output + process.errors
        (out / "log").write_text(log, encoding="utf-8")
        return Trained(model, *windows(log), process.peak)

    def decode(self, model: Path, family: str, text: Text, source: Path, *, beam: int) -> Decoded:
        config = self.config(model.parent, text, self.attentions[family], beam=beam)
        process = run(
            [self.environment.program("python"), "-m", "joeynmt", "translate", config],
            threads=self.threads,
            what=f"{self.name}, beam {beam}",
            stdin=source,
        )
        output = model.with_name(f"beam{beam}.{text.target}")
        output.write_text(process.output, encoding="utf-8")
        return Decoded(seconds(process.errors), process.seconds, process.peak, output)

    def config(
        self, out: Path, text: Text, attention: str, *, updates: int = 0, batch_tokens: int = 4096, beam: int = 1
    ) -> Path:
        """Write the settings of a training run, or of a beam search if `updates` is 0."""
        vocabulary = out / "vocabulary"
        pad, unknown, begin, end = text.special_tokens
        special_tokens = [unknown, pad, begin, end]  # the order of JoeyNMT, which looks tokens up by name
        vocabulary.write_text("\n".join([*special_tokens, *text.tokens]) + "\n", encoding="utf-8")
        path = out / ("config.yaml" if updates else f"beam{beam}.yaml")

        def side(language: str) -> str:
            return (
                f'{{lang: "{language}", max_length: 100, lowercase: False, normalize: False, level: "bpe", '
                f'voc_limit: 100000, voc_min_freq: 1, voc_file: "{vocabulary}", tokenizer_type: "sentencepiece", '
                f'tokenizer_cfg: {{model_file: "{text.subwords}", model_type: "unigram", character_coverage: 1.0}}}}'
            )

        rnn = (
            f'type: "recurrent", rnn_type: "gru", embeddings: {{embedding_dim: {EMBEDDING}, scale: False, dropout: 0.3}}, '
            "dropout: 0.3, num_layers: 1"
        )
        path.write_text(
            f"""\
name: "{attention}"
joeynmt_version: "2.3.0"
model_dir: "{out}/model"
use_cuda: {self.uses_gpu}
fp16: False
random_seed: 42
data:
    train: "{text.folder}/train"
    dev: "{text.folder}/few"
    test: "{text.folder}/test"
    dataset_type: "plain"
    src: {side(text.source)}
    trg: {side(text.target)}
    special_symbols: {{unk_token: "{unknown}", pad_token: "{pad}", bos_token: "{begin}", eos_token: "{end}",
        unk_id: 0, pad_id: 1, bos_id: 2, eos_id: 3}}
testing: {{n_best: 1, beam_size: {beam}, beam_alpha: 1.0, batch_size: 64, batch_type: "sentence", eval_metrics: ["bleu"],
    max_output_length: 100, sacrebleu_cfg: {{tokenize: "13a"}}}}
training: {{optimizer: "adam", learning_rate: 0.001, clip_grad_norm: 1.0, loss: "crossentropy", label_smoothing: 0.0,
    batch_size: {batch_tokens}, batch_type: "token", normalization: "tokens", scheduling: "plateau", patience: 3,
    decrease_factor: 0.5, epochs: 1000, updates: {updates}, validation_freq: 1000000, logging_freq: 5,
    early_stopping_metric: "bleu", overwrite: True, shuffle: True, print_valid_sents: [0], keep_best_ckpts: 1}}
model:
    initializer: "xavier_uniform"
    init_rnn_orthogonal: True
    tied_embeddings: False
    tied_softmax: False
    encoder: {{{rnn}, hidden_size: {ENCODER}, bidirectional: True}}
    decoder: {{{rnn}, hidden_size: {HIDDEN}, hidden_dropout: 0.3, input_feeding: True, init_hidden: "bridge",
        attention: "{attention}"}}
""",
            encoding="utf-8",
        )
        return path
