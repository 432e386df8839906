"""`python -m nmt.cli` is the `nmt` command, for instance under `torchrun`."""

from nmt.cli import main

main()
