"""What a chat is told between its commands."""

import threading
from typing import Any

from . import host, link, telling
from .client import DaemonError

PATIENCE_S = 2.0
MOST_CHATS = 1024


class Chats:
    """Remembers which chats have made heavy calls: the others never cause a question."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._heavy: set[str] = set()
        #: Chats with jobs behind them whose end has not been told.
        self._waiting: set[str] = set()
        self._seen: set[str] = set()

    def on_heavy(self, session: str) -> None:
        with self._lock:
            if len(self._heavy) < MOST_CHATS:
                self._heavy.add(session)

    def on_background(self, session: str) -> None:
        with self._lock:
            self._waiting.add(session)

    def pre_llm_call(self, session_id: str = "", is_first_turn: bool = False, **_: Any) -> dict[str, str] | None:
        """Notes about jobs that have ended behind the chat, for the turn that begins."""
        with self._lock:
            waits = session_id in self._waiting
            asks = waits or session_id in self._heavy
        # A chat that goes on after a restart of the agent may have notes of which this process knows nothing.
        is_resumed = self._is_new(session_id) and not is_first_turn
        if not asks and not (is_resumed and link.is_listening()):
            return None
        try:
            with link.open_connection(host.hermes_home(), starts=waits) as connection:
                answer = connection.request("notes", {"session_id": session_id}, PATIENCE_S)
        except DaemonError:
            return None
        if not answer.get("pending"):
            with self._lock:
                self._waiting.discard(session_id)
        notes = [note for note in answer.get("notes") or [] if isinstance(note, str)]
        return {"context": "\n".join(["[headroom]", *notes])} if notes else None

    def _is_new(self, session: str) -> bool:
        """Whether this process sees the chat for the first time."""
        with self._lock:
            known = session in self._seen
            if len(self._seen) < MOST_CHATS:
                self._seen.add(session)
            return not known

    def on_session_end(self, session_id: str = "", **_: Any) -> None:
        self._tell(session_id, "end")

    def on_session_finalize(self, session_id: str | None = None, **more: Any) -> None:
        session = session_id or str(more.get("old_session_id") or "")
        self._tell(session, "finalize")
        with self._lock:
            self._heavy.discard(session)
            self._waiting.discard(session)

    def _tell(self, session: str, event: str) -> None:
        with self._lock:
            if session not in self._heavy:
                return
        try:
            with link.open_connection(host.hermes_home(), starts=False) as connection:
                connection.request("session", {"session_id": session, "event": event}, PATIENCE_S)
        except DaemonError as error:
            telling.logger.debug("headroom: %s", error)
