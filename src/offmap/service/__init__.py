"""HTTP: models that score, and worlds whose groups people review."""

from offmap.service.app import create_app
from offmap.service.settings import Limits, Settings

__all__ = ["Limits", "Settings", "create_app"]
