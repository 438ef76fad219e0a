"""The measuring kit: what a suite file needs to ask its question. The kit times; an author never does."""

from .agree import close
from .authoring import Needs, Skipped, Suite, SuiteError, Unsupported, Variants, prepared

__all__ = ["Needs", "Skipped", "Suite", "SuiteError", "Unsupported", "Variants", "close", "prepared"]
