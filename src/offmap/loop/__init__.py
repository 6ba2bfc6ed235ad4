"""The open-world loop: unknown rows are grouped, named by a person, learnt, and the promise is renewed."""

from offmap.loop.acts import StaleActError
from offmap.loop.views import ActView, AuditRow, GroupView, Status
from offmap.loop.world import OpenWorld

__all__ = ["ActView", "AuditRow", "GroupView", "OpenWorld", "StaleActError", "Status"]
