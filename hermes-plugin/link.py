"""The way to the daemon: connected, greeted, and started first where nobody listens.

A daemon that cannot be had, or that does not answer, is left alone for a while: a command waits for it once, and not
the next ones too.
"""

import os
import threading
import time

from . import launcher, paths
from .client import PROTOCOL, Connection, DaemonError, LostError
from .launcher import LaunchError

#: The version of the package that this plugin belongs to.
VERSION = "0.1.0"

GREETING_PATIENCE_S = 3.0
#: After a start or a greeting that failed nobody tries again for so long.
DOWN_FOR_S = 30.0

_lock = threading.Lock()
#: Why it could not be had, and until when nobody tries again.
_down: DaemonError | None = None
_down_until = 0.0
#: Names of variables that the daemon wants to know, as it last said.
_wanted: tuple[str, ...] = ()


def open_connection(hermes_home: str, *, starts: bool) -> Connection:
    """A greeted connection. Raises DaemonError."""
    path = paths.socket_path()
    if path is None:
        raise DaemonError(
            "its runtime directory belongs to somebody else", "See: hermes-headroom selftest", "E_RUNTIME"
        )
    _check_down()
    try:
        connection = Connection(path)
    except DaemonError:
        if not starts:
            raise
        _start(hermes_home)
        connection = Connection(path)
    try:
        _greet(connection, hermes_home)
    except BaseException as error:
        connection.close()
        # One that is just leaving hangs up; one that is silent stays so.
        if isinstance(error, DaemonError) and not isinstance(error, LostError):
            _mark_down(error)
        raise
    return connection


def wanted_variables() -> dict[str, str]:
    """Those variables of this process that the daemon looks at."""
    return {name: os.environ[name] for name in _wanted if name in os.environ}


def is_listening() -> bool:
    """Whether a daemon seems to be there; nothing is started."""
    path = paths.socket_path()
    return path is not None and os.path.exists(path)


def forget_failures() -> None:
    """For tests, and for a plugin that is loaded anew."""
    global _down
    with _lock:
        _down = None


def _check_down() -> None:
    with _lock:
        if _down is not None and time.monotonic() < _down_until:
            raise DaemonError(str(_down), _down.fix, _down.code)


def _mark_down(error: DaemonError) -> None:
    global _down, _down_until
    with _lock:
        _down, _down_until = error, time.monotonic() + DOWN_FOR_S


def _start(hermes_home: str) -> None:
    try:
        launcher.start_daemon(hermes_home)
    except LaunchError as error:
        failed = DaemonError(str(error), code="E_LAUNCH")
        _mark_down(failed)
        raise failed from error


def _greet(connection: Connection, hermes_home: str) -> None:
    global _wanted
    own = {name: value for name, value in os.environ.items() if name.startswith("HEADROOM_")}
    hello = {
        "protocol": PROTOCOL,
        "version": VERSION,
        "client": "hermes-plugin",
        "hermes_home": os.path.abspath(hermes_home),
        "environment": own,
    }
    answer = connection.request("hello", hello, GREETING_PATIENCE_S)
    wanted = answer.get("environment")
    if isinstance(wanted, list):
        _wanted = tuple(str(name) for name in wanted)
