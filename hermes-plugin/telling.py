"""What is wrong with headroom itself is said once: in the log, and with the next heavy command."""

import logging
import threading
from typing import Any

logger = logging.getLogger("hermes_headroom")

ISOLATED = "plugins.isolation: host keeps headroom from the commands, which run without boxes. Set it to in_process"

_lock = threading.Lock()
_said: set[str] = set()


def warn(kind: str, text: str) -> dict[str, Any] | None:
    """A ``headroom`` object that says it, the first time; ``None`` afterwards."""
    with _lock:
        if kind in _said:
            return None
        _said.add(kind)
    logger.warning("headroom: %s", text)
    return {
        "memory_cap_mb": 0,
        "swap_cap_mb": 0,
        "isolated": False,
        "mode": "off",
        "oom_killed": False,
        "note": f"headroom does not protect this machine now: {text}",
    }


def forget() -> None:
    """For tests, and for a plugin that is loaded anew."""
    with _lock:
        _said.clear()
