"""Finds the program of the package, and starts the daemon with it."""

import json
import os
import shutil
import subprocess
import threading
from pathlib import Path

OLDEST_NODE = (20, 19)
PASSED_ON = ("PATH", "HOME", "LANG", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "HERMES_HOME", "XDG_STATE_HOME")
#: A small machine that is busy takes seconds to start Node twice.
START_PATIENCE_S = 20.0
#: Beside PATH, which a service often has none of.
USUAL_PLACES = ("~/.local/bin", "~/.npm-global/bin", "~/.local/share/npm/bin", "/usr/local/bin", "/usr/bin")
#: Written by ``hermes-headroom hermes install``.
WRITTEN = Path(__file__).with_name("launcher.json")

INSTALL = "Install it: npm install -g hermes-headroom"

_lock = threading.Lock()


class LaunchError(Exception):
    """The program cannot be found or does not start; the text says what to do."""


def command() -> list[str]:
    """The words that start the program, without its own. Raises LaunchError."""
    words = _from_environment() or _from_file() or _from_path()
    if words is None:
        raise LaunchError(f"the program hermes-headroom is not installed. {INSTALL}")
    return words


def environment(hermes_home: str) -> dict[str, str]:
    """All that the program needs to know of this process."""
    passed = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    return {**passed, "HERMES_HOME": hermes_home, "NO_COLOR": "1"}


def start_daemon(hermes_home: str) -> None:
    """Returns when the daemon listens. Several threads or processes may do so at once. Raises LaunchError."""
    with _lock:
        words = command()
        _check_node(words)
        try:
            done = subprocess.run(
                [*words, "daemon"],
                env=environment(hermes_home),
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                start_new_session=True,
                timeout=START_PATIENCE_S,
                check=False,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise LaunchError(f"the daemon does not start: {error}") from error
    if done.returncode != 0:
        last = done.stderr.decode(errors="replace").strip().splitlines()[:1]
        raise LaunchError(f"the daemon does not start: {last[0] if last else done.returncode}")


def _from_environment() -> list[str] | None:
    program = os.environ.get("HEADROOM_CLI", "")
    return _with_node(program) if program else None


def _from_file() -> list[str] | None:
    try:
        written = json.loads(WRITTEN.read_text(encoding="utf-8"))
        node, cli = str(written["node"]), str(written["cli"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if not os.path.exists(cli):
        return None
    # A Node that was updated since has another path.
    return [node, cli] if os.access(node, os.X_OK) else _with_node(cli)


def _from_path() -> list[str] | None:
    places = os.pathsep.join([os.environ.get("PATH", ""), *map(os.path.expanduser, USUAL_PLACES)])
    found = shutil.which("hermes-headroom", path=places)
    return _with_node(os.path.realpath(found)) if found else None


def _with_node(program: str) -> list[str] | None:
    if not os.path.exists(program):
        return None
    if not program.endswith((".js", ".mjs", ".cjs")):
        return [program]
    places = os.pathsep.join([os.environ.get("PATH", ""), *map(os.path.expanduser, USUAL_PLACES)])
    node = shutil.which("node", path=places)
    if node is None:
        raise LaunchError("Node.js is not installed; 20.19 or newer is needed")
    return [node, program]


_checked: set[str] = set()


def _check_node(words: list[str]) -> None:
    node = words[0]
    if len(words) < 2 or node in _checked:
        return
    try:
        told = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=5, check=False).stdout
        version = tuple(int(part) for part in told.strip().lstrip("v").split(".")[:2])
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise LaunchError(f"{node} does not tell its version: {error}") from error
    if version < OLDEST_NODE:
        raise LaunchError(f"{node} is {told.strip()}; Node.js 20.19 or newer is needed")
    _checked.add(node)
