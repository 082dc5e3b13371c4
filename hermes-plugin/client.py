"""One conversation with the daemon: JSON-RPC, a message a line, every wait bounded."""

import json
import select
import socket
import time
from collections.abc import Callable
from typing import Any, Self

PROTOCOL = 1
LONGEST_LINE = 4 * 1024 * 1024
CONNECT_PATIENCE_S = 1.0
#: How often a wait looks whether it was called off.
LOOK_EVERY_S = 0.1


class DaemonError(Exception):
    """The daemon is not there, does not answer, or refuses. ``fix`` says what a person can do."""

    def __init__(self, message: str, fix: str = "", code: str = "") -> None:
        super().__init__(message)
        self.fix = fix
        self.code = code


class LostError(DaemonError):
    """The daemon was there and is gone: another one may take over."""


class CalledOffError(Exception):
    """Whoever waits does not want the answer any more."""


class Connection:
    """Not for several threads at once. Closing it takes back what was asked and not answered."""

    def __init__(self, path: str) -> None:
        self._rest = b""
        self._asked = 0
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.settimeout(CONNECT_PATIENCE_S)
            self._socket.connect(path)
        except OSError as error:
            self._socket.close()
            raise DaemonError(f"the daemon cannot be reached: {error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def request(
        self,
        method: str,
        params: dict[str, Any],
        patience_s: float,
        is_called_off: Callable[[], bool] = lambda: False,
        silence_s: float = float("inf"),
    ) -> dict[str, Any]:
        """The result. Raises DaemonError (LostError after so long without a sign of life), or CalledOffError when
        ``is_called_off`` says so."""
        self._asked += 1
        message = {"jsonrpc": "2.0", "id": self._asked, "method": method, "params": params}
        until = time.monotonic() + patience_s
        try:
            self._socket.settimeout(CONNECT_PATIENCE_S)
            self._socket.sendall(json.dumps(message).encode() + b"\n")
            while True:
                answer = self._read(until, is_called_off, silence_s)
                if isinstance(answer, dict) and answer.get("id") == self._asked:
                    return _result(answer)
        except OSError as error:
            raise LostError(f"the daemon is gone: {error}") from error
        except ValueError as error:
            raise DaemonError(f"the daemon's answer is not understood: {error}") from error

    def _read(self, until: float, is_called_off: Callable[[], bool], silence_s: float) -> Any:
        silent_until = time.monotonic() + silence_s
        while b"\n" not in self._rest:
            now = time.monotonic()
            left_s = min(until, silent_until) - now
            if now >= until:
                raise DaemonError("the daemon does not answer")
            if left_s <= 0:
                raise LostError("the daemon has become silent")
            if is_called_off():
                raise CalledOffError
            if not select.select([self._socket], [], [], min(left_s, LOOK_EVERY_S))[0]:
                continue
            piece = self._socket.recv(65536)
            if not piece:
                raise LostError("the daemon has closed the connection")
            self._rest += piece
            if len(self._rest) > LONGEST_LINE:
                raise DaemonError("the daemon's answer is too long")
        line, self._rest = self._rest.split(b"\n", 1)
        return json.loads(line)


def _result(answer: dict[str, Any]) -> dict[str, Any]:
    error = answer.get("error")
    if error is None:
        result = answer.get("result")
        return result if isinstance(result, dict) else {}
    data = error.get("data") or {}
    raise DaemonError(str(error.get("message")), str(data.get("fix") or ""), str(data.get("code") or ""))
