"""`python -m heliograph` is the command `heliograph`."""

from heliograph.cli import main

main()
