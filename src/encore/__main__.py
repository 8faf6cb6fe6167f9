"""``python -m encore``: the same as the console script."""

from encore.core.cli import main

main()
