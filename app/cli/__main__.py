"""``python -m app.cli`` is ``flashpoint``."""

from app.cli import main

main()
