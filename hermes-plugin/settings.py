"""The few settings that must be known before the daemon is asked."""

import os
import sys
import threading
import time
from typing import Any

#: A change takes effect after so long.
KEPT_S = 5.0
LARGEST_CONFIG_BYTES = 1_048_576

_lock = threading.Lock()
_kept: dict[str, tuple[float, bool]] = {}


def asks_about_everything(ctx: Any, hermes_home: str) -> bool:
    """Whether the user has patterns of their own, so that the first filter knows nothing for certain."""
    now = time.monotonic()
    with _lock:
        kept = _kept.get(hermes_home)
        if kept is not None and now - kept[0] < KEPT_S:
            return kept[1]
    answer = bool(os.environ.get("HEADROOM_EXTRA_HEAVY_PATTERNS")) or bool(_patterns(ctx, hermes_home))
    with _lock:
        _kept[hermes_home] = (now, answer)
    return answer


def _patterns(ctx: Any, hermes_home: str) -> Any:
    get_config = getattr(ctx, "get_config", None)
    if callable(get_config):
        try:
            return get_config("extra_heavy_patterns", None)
        except Exception:  # noqa: BLE001 -- a host's function may raise anything
            return None
    return _from_file(os.path.join(hermes_home, "config.yaml"))


def _from_file(path: str) -> Any:
    """By Hermes' own reader of YAML, and only where the file speaks of us at all."""
    yaml = sys.modules.get("yaml")
    try:
        if os.path.getsize(path) > LARGEST_CONFIG_BYTES:
            return None
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if "extra_heavy_patterns" not in text:
            return None
        if yaml is None:
            return True  # ask the daemon, which can read it
        found: Any = yaml.safe_load(text)
        for key in ("plugins", "entries", "headroom", "settings", "extra_heavy_patterns"):
            found = found.get(key) if isinstance(found, dict) else None
        return found
    except Exception:  # noqa: BLE001 -- a broken file is the daemon's to report
        return None
