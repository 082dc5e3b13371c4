"""What is read from Hermes itself, beyond its plugin interface. Everything here may be missing in some release."""

import os
import sys
from collections.abc import Callable
from typing import Any

#: Hermes gives up on a tool call after so long, unless it is told otherwise.
USUAL_DEADLINE_S = 420.0
DEADLINE_VARIABLE = "HERMES_CONCURRENT_TOOL_TIMEOUT_S"


def hermes_home() -> str:
    """The profile that this process, or this turn, belongs to."""
    own = _function("hermes_constants", "get_hermes_home")
    try:
        home = str(own()) if own else ""
    except Exception:  # noqa: BLE001 -- a host's function may raise anything
        home = ""
    return home or os.environ.get("HERMES_HOME") or os.path.expanduser("~/.hermes")


def working_directory(args: dict[str, Any], task_id: str) -> str | None:
    """Where a command of this task will run; ``None`` where that is not known."""
    config = terminal_config()
    places = (
        args.get("workdir"),
        _called("tools.terminal_tool", "get_session_cwd", task_id),
        getattr(_called("tools.terminal_tool", "get_active_env", task_id), "cwd", None),
        config.get("cwd"),
    )
    for place in places:
        if isinstance(place, str) and place:
            path = os.path.expanduser(place)
            return path if os.path.isabs(path) else None
    return None


def backend() -> str:
    """``local``, or where else commands run."""
    return str(terminal_config().get("env_type") or os.environ.get("TERMINAL_ENV") or "local")


def terminal_config() -> dict[str, Any]:
    found = _called("tools.terminal_tool", "_get_env_config")
    return found if isinstance(found, dict) else {}


def is_interrupted() -> bool:
    """Whether the user has called off what this thread does."""
    return bool(_called("tools.interrupt", "is_interrupted"))


def tool_deadline_s() -> float | None:
    """How long this tool call may take, all in all; ``None`` for ever."""
    resolve = _function("agent.deadline", "resolve_timeout")
    if resolve is None:
        return _deadline_from_environment()
    limits = []
    for key in ("tools.sequential_call", "tools.concurrent_batch"):
        try:
            limits.append(resolve(key, default=USUAL_DEADLINE_S, env_var=DEADLINE_VARIABLE))
        except Exception:  # noqa: BLE001 -- see above
            limits.append(_deadline_from_environment())
    known = [float(limit) for limit in limits if limit]
    return min(known) if known else None


def _deadline_from_environment() -> float | None:
    try:
        seconds = float(os.environ.get(DEADLINE_VARIABLE, "") or USUAL_DEADLINE_S)
    except ValueError:
        seconds = USUAL_DEADLINE_S
    return seconds if seconds > 0 else None


def _function(module: str, name: str) -> Callable[..., Any] | None:
    # What is not loaded is not in use; loading it here could cost a second, or fail.
    found = getattr(sys.modules.get(module), name, None)
    return found if callable(found) else None


def _called(module: str, name: str, *args: Any) -> Any:
    function = _function(module, name)
    if function is None:
        return None
    try:
        return function(*args)
    except Exception:  # noqa: BLE001 -- see above
        return None
