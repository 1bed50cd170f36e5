"""`python -m gradient_dd.cli` runs `gradient-dd`."""

from gradient_dd.cli import main

main()
