"""Run the `nmt` command by `python -m nmt`, or as `torchrun -m nmt`."""

from nmt.cli import main

main()
