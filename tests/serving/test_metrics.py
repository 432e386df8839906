"""The text format of Prometheus."""

from nmt.serving.metrics import Counter, Gauge, Histogram, exposition


def test_the_exposition() -> None:
    counter, plain = Counter("c", "Counts.", ("a", "b")), Counter("p", "Plain.")
    counter.add("x", 'say "hi"\n\\')
    counter.add("x", 'say "hi"\n\\', amount=2)
    histogram = Histogram("h", "Spread.", (1, 2.5), ("k",))
    for value in (0.5, 1, 2, 9):
        histogram.observe(value, "v")
    assert exposition([counter, plain, Gauge("g", "Now.", lambda: 7), histogram]).splitlines() == [
        "# HELP c Counts.",
        "# TYPE c counter",
        'c{a="x",b="say \\"hi\\"\\n\\\\"} 3',
        "# HELP p Plain.",
        "# TYPE p counter",
        "p 0",
        "# HELP g Now.",
        "# TYPE g gauge",
        "g 7",
        "# HELP h Spread.",
        "# TYPE h histogram",
        'h_bucket{k="v",le="1"} 2',
        'h_bucket{k="v",le="2.5"} 3',
        'h_bucket{k="v",le="+Inf"} 4',
        'h_sum{k="v"} 12.5',
        'h_count{k="v"} 4',
    ]
