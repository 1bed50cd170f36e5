"""`python -m gradient_dd.cli` is `gradient-dd`."""

from gradient_dd.cli import main

main()
