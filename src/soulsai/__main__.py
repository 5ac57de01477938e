"""`python -m soulsai` is `souls`."""

from soulsai.cli.main import main

main()
