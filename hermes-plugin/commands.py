"""``/headroom`` in a chat, and ``hermes headroom`` in a terminal: both run the program and pass its text on."""

import argparse
import os
import subprocess
import sys
from typing import Any

from . import host, launcher
from .launcher import LaunchError

PATIENCE_S = 60.0
LONGEST_TEXT = 8000

USAGE = "/headroom [status|events|explain COMMAND|selftest]"


def program_text(words: list[str]) -> str:
    """What the program prints. Never raises."""
    try:
        done = subprocess.run(
            [*launcher.command(), *words],
            env=launcher.environment(host.hermes_home()),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    except (LaunchError, OSError, subprocess.SubprocessError) as error:
        return f"headroom: {error}"
    return done.stdout.strip()[:LONGEST_TEXT]


def slash(raw_args: str = "") -> str:
    """The answer to ``/headroom …``."""
    words = str(raw_args or "").split(maxsplit=1)
    name = words[0] if words else "status"
    rest = words[1] if len(words) > 1 else ""
    match name:
        case "status" | "selftest":
            return program_text([name])
        case "events":
            return program_text(["events", "-n", rest if rest.isdigit() else "10"]) or "No events yet."
        case "explain" if rest:
            return program_text(["explain", "--", rest])
        case _:
            return f"Usage: {USAGE}"


def set_up(parser: argparse.ArgumentParser) -> None:
    """Options of ``hermes headroom``."""
    parser.add_argument("what", nargs="?", default="status", choices=["status", "events", "explain", "selftest"])
    parser.add_argument("text", nargs=argparse.REMAINDER, help="explain: the command")


def run(options: Any) -> int:
    """``hermes headroom …``: the program itself, at this terminal."""
    words = [options.what]
    text = [word for word in options.text if word != "--"]
    if options.what == "explain":
        words += ["--", *text]
    try:
        done = subprocess.run([*launcher.command(), *words], env=_terminal_environment(), check=False)
    except (LaunchError, OSError) as error:
        print(f"headroom: {error}", file=sys.stderr)
        return 1
    return done.returncode


def _terminal_environment() -> dict[str, str]:
    passed = launcher.environment(host.hermes_home())
    passed.pop("NO_COLOR", None)
    for name in ("TERM", "COLORTERM", "NO_COLOR"):
        if name in os.environ:
            passed[name] = os.environ[name]
    return passed
