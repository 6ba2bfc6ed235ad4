"""The open-world loop: unknown rows are grouped, named by a person, learnt, and the promise is renewed."""

from offmap.loop.views import AuditRow, GroupView, Status
from offmap.loop.world import OpenWorld

__all__ = ["AuditRow", "GroupView", "OpenWorld", "Status"]
