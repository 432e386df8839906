"""What `tools/benchmark.py` is made of. Never imported by nmt."""
