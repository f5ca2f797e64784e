"""Tells once what was done to the input of the session shown: resampled sound, words without a pronunciation …"""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from app.model.playhead import Playhead
from app.window.notices import Notices

if TYPE_CHECKING:
    from app.model.playhead import Snapshot
    from profiler.session.reader import Session

AT_ONCE = 3  # Sentences in one notice; the words view, `asrscope show` and the report have them all


class InputNotes(QObject):
    """Follows a playhead; a note that came up before in the same session is not shown again."""

    def __init__(self, playhead: Playhead, notices: Notices) -> None:
        super().__init__(playhead)
        self._notices = notices
        self._seen: set[str] = set()
        self._counted = (0, 0)
        playhead.opened.connect(self._opened)
        playhead.changed.connect(self._follow)

    def _opened(self, _session: Session) -> None:
        self._seen, self._counted = set(), (0, 0)

    def _follow(self, snapshot: Snapshot) -> None:
        session = snapshot.session
        general = session.meta.get("notes") or []
        counted = (len(general), len(session.utterances))
        if counted == self._counted:
            return
        new = [*general[self._counted[0] :]]
        for utterance in session.utterances[self._counted[1] :]:
            new += [
                f"{utterance.name}: {note}" for note in utterance.notes if note not in self._seen
            ]
            self._seen.update(utterance.notes)
        self._counted = counted
        if new:
            more = self.tr("and {0} more").format(len(new) - AT_ONCE)
            self._notices.info("\n".join([*new[:AT_ONCE], *([more] if len(new) > AT_ONCE else [])]))
