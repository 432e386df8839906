"""Run the `nmt` command by `python -m nmt.cli`."""

from nmt.cli import main

main()
