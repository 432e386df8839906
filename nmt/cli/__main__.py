"""`python -m nmt.cli` is the `nmt` command."""

from nmt.cli import main

main()
