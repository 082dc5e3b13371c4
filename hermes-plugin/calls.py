"""A tool call on its way: made lighter before anybody approves it, admitted before it runs, accounted for after.

Whatever goes wrong here, the command runs exactly once, as it would without this plugin; or it is refused in words.
"""

import contextvars
import os
import sys
import threading
import time
import types
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import host, link, result, settings, telling
from .client import CalledOffError, Connection, DaemonError, LostError
from .first_filter import may_be_heavy

PREPARE_PATIENCE_S = 3.0
END_PATIENCE_S = 10.0
#: The queue answers before the host gives up; this is for a daemon that does not.
ADMIT_MARGIN_S = 4.0
LONGEST_WAIT_S = 86_400.0
#: A daemon says more often than that that somebody waits.
LONGEST_SILENCE_S = 30.0
MOST_REMEMBERED = 512
#: Daemons that may be lost while a call waits for its turn; after that it runs as it would without one.
MOST_LOST = 3

NextCall = Callable[..., Any]


@dataclass
class Admission:
    """A call that may run. Closing its connection says that the agent is gone."""

    connection: Connection
    job: str | None
    call_id: str
    home: str


class RefusedError(Exception):
    """The command must not be started; ``text`` is its result."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class HostIsolationError(RuntimeError):
    """This process is not the one that runs the tools."""


class Calls:
    """One for each time the plugin is loaded."""

    def __init__(self, ctx: Any, on_background: Callable[[str], None], on_heavy: Callable[[str], None]) -> None:
        self._ctx = ctx
        self._on_background = on_background
        self._on_heavy = on_heavy
        self._lock = threading.Lock()
        #: Texts that the daemon has found light although the first filter could not tell.
        self._light: OrderedDict[str, None] = OrderedDict()

    # -- before approval ---------------------------------------------------------------------------------

    def tool_request(self, tool_name: str = "", args: Any = None, **more: Any) -> dict[str, Any] | None:
        """The arguments with a lighter command; ``None`` leaves them as they are."""
        if tool_name != "terminal" or not isinstance(args, dict):
            return None
        command = args.get("command")
        if not isinstance(command, str) or not self._is_asked_about(command):
            return None
        home = host.hermes_home()
        params = {
            "command": command,
            "cwd": host.working_directory(args, str(more.get("task_id") or "")),
            "env": link.wanted_variables(),
        }
        try:
            with link.open_connection(home, starts=True) as connection:
                # The first connection of a process learns only now what the daemon wants to know.
                params["env"] = link.wanted_variables()
                prepared = connection.request("prepare", params, PREPARE_PATIENCE_S)
        except DaemonError:
            return None  # said when the command runs
        if prepared.get("heavy") is not True:
            self._remember_light(command)
            return None
        lighter = prepared.get("command")
        if not isinstance(lighter, str) or not lighter or lighter == command:
            return None
        return {"args": {**args, "command": lighter}, "source": "headroom", "reason": "needs less memory"}

    def _is_asked_about(self, command: str) -> bool:
        with self._lock:
            if command in self._light:
                return False
        return may_be_heavy(command) or settings.asks_about_everything(self._ctx, host.hermes_home())

    def _remember_light(self, command: str) -> None:
        with self._lock:
            self._light[command] = None
            if len(self._light) > MOST_REMEMBERED:
                self._light.popitem(last=False)

    # -- after approval ----------------------------------------------------------------------------------

    def tool_execution(
        self, tool_name: str = "", args: Any = None, next_call: NextCall | None = None, **more: Any
    ) -> Any:
        """The tool's own result, with what is known about its job where it was heavy."""
        if not callable(next_call):
            # Returned, anything would be taken for the tool's result; raised, it makes Hermes run the tool by itself.
            telling.warn("isolation", telling.ISOLATED)
            raise HostIsolationError(telling.ISOLATED)
        command = args.get("command") if isinstance(args, dict) else None
        is_code = tool_name == "execute_code"
        is_ours = is_code or (tool_name == "terminal" and isinstance(command, str) and self._is_asked_about(command))
        if not is_ours or _handled.get():
            return next_call(args)
        token = _handled.set(True)
        try:
            return self._run(str(command or ""), is_code, args, next_call, more)
        finally:
            _handled.reset(token)

    def _run(self, command: str, is_code: bool, args: dict[str, Any], next_call: NextCall, ids: dict[str, Any]) -> Any:
        trouble = None
        admission = None
        try:
            admission = self._admit(command, is_code, args, ids)
        except RefusedError as refused:
            return refused.text
        except DaemonError as error:
            text = f"{error}. {error.fix}".strip().rstrip(".")
            trouble = telling.warn(error.code or "daemon", text)
        if admission is None:
            done = next_call(args)
            return result.with_headroom(done, trouble)
        session = str(ids.get("session_id") or "")
        self._on_heavy(session)
        try:
            done = next_call(args)
        except BaseException:
            admission.connection.close()
            raise
        told = {"job": admission.job, "call_id": admission.call_id, **result.outcome(done)}
        if told["background"]:
            self._on_background(session)
        return result.with_headroom(done, _end(admission, told))

    def _admit(self, command: str, is_code: bool, args: dict[str, Any], ids: dict[str, Any]) -> Admission | None:
        """``None`` for a light one. Raises RefusedError, or DaemonError when nobody can be asked."""
        began = time.monotonic()
        deadline_s = host.tool_deadline_s()
        home = host.hermes_home()
        call_id = str(ids.get("tool_call_id") or f"{os.getpid()}-{threading.get_ident()}-{began}")
        params = {
            "command": command,
            "cwd": host.working_directory(args, str(ids.get("task_id") or "")),
            "session_id": str(ids.get("session_id") or ""),
            "call_id": call_id,
            "tool": "execute_code" if is_code else "terminal",
            "background": bool(args.get("background")),
            "agent_pid": os.getpid(),
            "backend": host.backend(),
            "deadline_s": deadline_s,
        }
        try:
            connection, answer = _ask_to_admit(home, params, began, deadline_s)
        except CalledOffError:
            text = "The command was called off while it waited for its turn. Nothing was run."
            raise RefusedError(result.refusal(text, exit_code=result.INTERRUPTED)) from None
        except DaemonError:
            if _is_too_late(began, deadline_s):
                raise RefusedError(
                    result.refusal("The command's time was over while it waited. Nothing was run.")
                ) from None
            raise
        if answer.get("heavy") is not True:
            connection.close()
            return None
        if answer.get("admitted") is not True:
            connection.close()
            headroom = answer.get("headroom")
            message = str(answer.get("message") or "refused: the machine is busy. Nothing was run.")
            raise RefusedError(result.refusal(message, headroom if isinstance(headroom, dict) else None))
        if _is_too_late(began, deadline_s) or host.is_interrupted():
            # The host has given this call up: whatever ran now would run behind everybody's back.
            connection.close()
            raise RefusedError(result.refusal("The command's time was over before its turn came. Nothing was run."))
        job = answer.get("job")
        return Admission(connection, job if isinstance(job, str) else None, call_id, home)


def _is_too_late(began: float, deadline_s: float | None) -> bool:
    return deadline_s is not None and time.monotonic() - began > deadline_s - ADMIT_MARGIN_S


def _ask_to_admit(
    home: str, params: dict[str, Any], began: float, deadline_s: float | None
) -> tuple[Connection, dict[str, Any]]:
    """The answer, and the connection that must stay open. A daemon that dies meanwhile is followed by another one:
    whoever waits must not start all at once. Raises DaemonError, CalledOffError."""
    for lost in range(MOST_LOST):
        try:
            connection = link.open_connection(home, starts=True)
        except LostError:
            continue  # it was just leaving
        left_s = LONGEST_WAIT_S if deadline_s is None else deadline_s - ADMIT_MARGIN_S - (time.monotonic() - began)
        # What it asked for is known since the greeting.
        asked = {**params, "env": link.wanted_variables()}
        if deadline_s is not None:
            asked["deadline_s"] = max(1.0, deadline_s - (time.monotonic() - began))
        try:
            answer = connection.request("admit", asked, max(0.0, left_s), host.is_interrupted, LONGEST_SILENCE_S)
            return connection, answer
        except LostError:
            connection.close()
            if lost == MOST_LOST - 1:
                raise
        except BaseException:
            connection.close()
            raise
    raise DaemonError("the daemon goes away again and again", "See why: hermes-headroom daemon --foreground")


def _end(admission: Admission, told: dict[str, Any]) -> dict[str, Any] | None:
    """The account; asked of the next daemon when the one that admitted is gone. ``None`` where nobody knows."""
    try:
        with admission.connection as connection:
            return _headroom(connection.request("end", told, END_PATIENCE_S))
    except DaemonError:
        pass
    try:
        with link.open_connection(admission.home, starts=True) as connection:
            return _headroom(connection.request("end", told, END_PATIENCE_S))
    except DaemonError as error:
        telling.logger.warning("headroom: nothing is known about a job that has ended: %s", error)
        return None


def _headroom(answer: dict[str, Any]) -> dict[str, Any] | None:
    headroom = answer.get("headroom")
    return headroom if isinstance(headroom, dict) else None


def _shared_mark() -> contextvars.ContextVar[bool]:
    """Says that a call is being handled. Shared by every copy of this plugin in the process: Hermes loads one for
    each home, and all of them see each call."""
    name = "_hermes_headroom_shared"
    shared = sys.modules.get(name)
    if shared is None:
        fresh = types.ModuleType(name)
        fresh.handled = contextvars.ContextVar("headroom_handled", default=False)  # type: ignore[attr-defined]
        shared = sys.modules.setdefault(name, fresh)
    return shared.handled  # type: ignore[no-any-return]


_handled = _shared_mark()
