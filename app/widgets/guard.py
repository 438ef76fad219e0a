"""A page that cannot be shown says so in one sentence; a traceback goes to the log, never to a reader."""

from __future__ import annotations

import logging
from collections.abc import Callable

from app.widgets.answer import banner
from core.errors import FlashpointError, Unavailable

log = logging.getLogger(__name__)


def guarded(page: Callable[[], None]) -> None:
    """Draw a page or a part of one; what is away or wrong becomes a banner where the part would be."""
    try:
        page()
    except Unavailable as error:
        banner(f"{error} Nothing is lost; this page works again when it answers.")
    except FlashpointError as error:
        banner(str(error))
    except Exception as error:
        log.exception("a page failed")
        banner(f"This part of the page failed ({type(error).__name__}); the server's log holds the details.")
