"""The recipe's settings of training: optimizer, schedule, validation, and what is added to the loss."""

from typing import Annotated, Literal, Self

from pydantic import AliasChoices, BeforeValidator, Field, model_validator

from nmt.recipe.section import BY_KIND, BeamSize, Fraction, Positive, Section, Size, default_kind, short_form


class AdamConfig(Section):
    kind: Literal["adam", "adamw"] = "adam"
    rate: Positive = 1e-3
    betas: Annotated[tuple[Fraction, Fraction], Field(strict=False)] = (0.9, 0.999)
    epsilon: Positive = 1e-8
    weight_decay: Annotated[float, Field(ge=0)] = 0.0


class AdadeltaConfig(Section):
    """Steps by the ratio of decayed root mean squares of updates and gradients (Zeiler 2012)."""

    kind: Literal["adadelta"] = "adadelta"
    rate: Positive = 1.0
    """Factor of the steps; the paper has none."""
    rho: Fraction = 0.95
    epsilon: Positive = 1e-6
    weight_decay: Annotated[float, Field(ge=0)] = 0.0


class SgdConfig(Section):
    kind: Literal["sgd"] = "sgd"
    rate: Positive = 1.0
    momentum: Fraction = 0.0
    weight_decay: Annotated[float, Field(ge=0)] = 0.0


class ConstantScheduleConfig(Section):
    kind: Literal["constant"] = "constant"
    warmup: Annotated[int, Field(ge=0)] = 0
    """Number of updates in which the rate rises linearly from 0."""


class InverseSqrtScheduleConfig(Section):
    """rate x min(u / warmup, sqrt(warmup / u)) at update u."""

    kind: Literal["inverse-sqrt"] = "inverse-sqrt"
    warmup: Size = 1000


class CosineScheduleConfig(Section):
    """A half cosine from the rate to `final` times the rate at the last update."""

    kind: Literal["cosine"] = "cosine"
    warmup: Annotated[int, Field(ge=0)] = 0
    final: Fraction = 0.0


class PlateauScheduleConfig(Section):
    """Multiply the rate by `factor` after `patience` validations in a row without a better score."""

    kind: Literal["plateau"] = "plateau"
    warmup: Annotated[int, Field(ge=0)] = 0
    factor: Annotated[float, Field(gt=0, lt=1)] = 0.5
    patience: Size = 2


class HalvingScheduleConfig(Section):
    """Halve the rate every `every` epochs once `start` epochs are done (Luong et al. 2015, 4.1)."""

    kind: Literal["halving"] = "halving"
    warmup: Annotated[int, Field(ge=0)] = 0
    start: Annotated[int, Field(ge=0)] = 5
    every: Positive = 1.0


OptimizerConfig = Annotated[AdamConfig | AdadeltaConfig | SgdConfig, BY_KIND, default_kind("adam")]
ScheduleConfig = Annotated[
    ConstantScheduleConfig
    | InverseSqrtScheduleConfig
    | CosineScheduleConfig
    | PlateauScheduleConfig
    | HalvingScheduleConfig,
    BY_KIND,
    default_kind("constant"),
]


Metric = Literal["bleu", "chrf", "perplexity"]
AllReduce = Literal["fp32", "bf16"]


def _listed(value: object) -> object:
    """Accept a single name as a list of one."""
    if isinstance(value, str):
        return (value,)
    return tuple(value) if isinstance(value, list) else value


class ValidationConfig(Section):
    """When and how to validate in training, and when to stop."""

    every: Size | None = None
    """Updates between validations; null is once per epoch."""
    metrics: Annotated[
        tuple[Metric, ...],
        BeforeValidator(_listed, json_schema_input_type=Metric | list[Metric]),
        Field(min_length=1, validation_alias=AliasChoices("metrics", "metric")),  # `metric` in recipes of 0.1
    ] = ("bleu",)
    """The metrics that select the best model, one name or a list: the first decides, the others break ties, and perplexity breaks the
    rest. BLEU and chrF are computed by decoding the validation text, and compared with two decimals. BLEU below 1 is noise and counts
    as 0; where BLEU is equal, chrF decides."""
    beam_size: BeamSize = 1
    patience: Size | None = 10
    """Stop after this many validations in a row without a better score; null never stops early."""
    keep_best: Size = 1
    """How many of the best checkpoints to keep. If more than one, their mean is validated at the end, as the last weights (with `ema`
    their moving average) always are, and becomes the model if it is better than each of them."""


class GuidedAlignmentConfig(Section):
    """Add the cross-entropy of the attention against given word links to the loss (Chen et al. 2016; Mi et al. 2016)."""

    links: str
    """The links: a file with one line `i-j i-j ...` per pair of data.train (source-target word from 0, between plain spaces of the text
    as it is, before data.normalization; characters in text without spaces), `hmm` for those that `nmt links` finds in data.train, or
    `gold` for those of the sample. Pairs that data.concatenation and data.copying make of others have none."""
    weight: Positive = 0.5
    """Weight of the attention's cross-entropy per linked token, relative to that per predicted token."""
    decay: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Factor of the weight after every epoch."""


class PretrainedConfig(Section):
    """The model to start from: fine-tuning, or transfer to another language pair (Zoph et al. 2016)."""

    model: str
    """Its folder. Its `model` settings must be the same, but for dropout and whatever else leaves the shapes as they are."""
    subwords: Literal["same", "new"] = "same"
    """`same` uses its subword models. `new` trains others, or uses the files of `subwords`, and takes over the embeddings of the
    tokens that both have (Kocmi and Bojar 2020)."""


class LinearDecayConfig(Section):
    """min(1, max(floor, offset - slope u))."""

    kind: Literal["linear"] = "linear"
    floor: Fraction = 0.25
    """Least probability, at which the decay ends; epsilon in the paper."""
    offset: Positive = 1.0
    """k in the paper. Above 1, the first updates use only the reference."""
    slope: Positive = 1e-4
    """Decrease per update; c in the paper."""


class ExponentialDecayConfig(Section):
    """base^u."""

    kind: Literal["exponential"] = "exponential"
    base: Annotated[float, Field(gt=0, lt=1)] = 0.9999
    """k in the paper."""


class InverseSigmoidDecayConfig(Section):
    """scale / (scale + exp(u / scale)): near 1 at first, 1/2 at update scale x ln(scale)."""

    kind: Literal["inverse-sigmoid"] = "inverse-sigmoid"
    scale: Annotated[float, Field(ge=1)] = 1000.0
    """k in the paper, in updates. Larger values decay more slowly."""


ScheduledSamplingConfig = Annotated[
    LinearDecayConfig | ExponentialDecayConfig | InverseSigmoidDecayConfig, BY_KIND, default_kind("inverse-sigmoid")
]


class TrainingConfig(Section):
    epochs: Size = 30
    updates: Size | None = None
    """Stop after this many updates, even within an epoch."""
    batch_tokens: Size = 4096
    """Target tokens per batch, padding included."""
    batch_sentences: Size | None = None
    """Sentence pairs per batch (80 in Bahdanau et al. 2015, 128 in Luong et al. 2015), instead of `batch_tokens`, which then limits
    the batches of validation alone."""
    sort_within: Size | None = None
    """Sort the pairs by length within every this many batches, in the order of the corpus (20 in Bahdanau et al. 2015, B.2); null
    sorts the whole corpus and shuffles the batches. Needs `batch_sentences`."""
    shuffle: Literal["every-epoch", "once"] = "every-epoch"
    """When to shuffle: before every epoch, or only before training (Bahdanau et al. 2015, B.2)."""
    normalization: Literal["tokens", "sentences"] = "tokens"
    """What the loss of an update is averaged over: target tokens, or sentence pairs, as in both papers. Its gradient is some 15 to 30
    times larger over sentences, which changes what `clip_norm` and the rate of SGD mean."""
    accumulate: Size = 1
    """Batches per update, whose gradients are summed."""
    all_reduce: AllReduce = "fp32"
    """The type in which several processes send their gradients; bf16 halves what crosses a slow network, and rounds."""
    optimizer: OptimizerConfig = AdamConfig()
    schedule: ScheduleConfig = ConstantScheduleConfig()
    clip_norm: Positive | None = 1.0
    label_smoothing: Fraction = 0.1
    pretrained: Annotated[PretrainedConfig | None, short_form(str, "model", schema=str | PretrainedConfig | None)] = (
        None
    )
    """Start from the weights of another model, named by its folder; null starts from random ones."""
    guided_alignment: GuidedAlignmentConfig | None = None
    """Train the attention on word links too; null is off."""
    scheduled_sampling: ScheduledSamplingConfig | None = None
    """Teacher forcing ratio as a function of update u: the probability of feeding the reference token rather than one sampled from
    the model (Bengio et al. 2015, 2.4); null always feeds the reference."""
    ema: Fraction | None = None
    """Decay of an exponential moving average of the weights, which is validated and saved instead of them; null is off."""
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    """Precision of matrix products; auto is bf16 where that is faster, and fp16 on older GPUs."""
    compile: Literal["auto"] | bool = "auto"
    """Whether PyTorch compiles the steps of the model (`torch.compile`), which takes a minute at the start; auto does so on NVIDIA GPUs
    from Volta on that have Triton. On a CPU the toolkit's own kernels are faster."""
    validation: ValidationConfig = ValidationConfig()
    log_every: Size = 50
    """Updates between lines of the log."""
    tensorboard: bool = False

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.batch_sentences is None and self.sort_within is not None:
            raise ValueError(
                "sort_within counts batches of a number of sentences: set batch_sentences or leave sort_within out"
            )
        return self
