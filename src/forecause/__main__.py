"""`python -m forecause` is the command."""

from forecause.cli import main

main()
