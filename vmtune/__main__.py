"""``python -m vmtune``: the same as the ``vmtune`` command."""

from vmtune.client.cli import main

main()
