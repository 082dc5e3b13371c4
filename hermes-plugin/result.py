"""Results of tools as Hermes passes them: a text of JSON, or whatever an older release had."""

import json
from typing import Any

#: The end of what was printed is where a program says why it gave up.
TAIL_CHARS = 4096
TIMED_OUT = 124
INTERRUPTED = 130


def read(result: Any) -> dict[str, Any] | None:
    """The result's fields; ``None`` for what is no JSON object."""
    if isinstance(result, dict):
        return result
    if not isinstance(result, str) or not result.lstrip().startswith("{"):
        return None
    try:
        fields = json.loads(result)
    except ValueError:
        return None
    return fields if isinstance(fields, dict) else None


def with_headroom(result: Any, headroom: dict[str, Any] | None) -> Any:
    """The same result with what is known about its job; unchanged where it has no place for that."""
    fields = read(result)
    if fields is None or headroom is None:
        return result
    merged = {**fields, "headroom": headroom}
    return merged if isinstance(result, dict) else json.dumps(merged, ensure_ascii=False)


def outcome(result: Any) -> dict[str, Any]:
    """What the daemon is told about how a command ended."""
    fields = read(result) or {}
    code = fields.get("exit_code")
    output = fields.get("output")
    is_number = isinstance(code, int) and not isinstance(code, bool)
    if runs_on(fields):
        return {"background": True, "process": str(fields.get("session_id") or "") or None}
    return {
        "background": False,
        "exit_code": code if is_number else None,
        "timed_out": code == TIMED_OUT and "timed out" in str(output or "")[-TAIL_CHARS:],
        "interrupted": code == INTERRUPTED,
        "output_tail": output[-TAIL_CHARS:] if isinstance(output, str) else None,
    }


def runs_on(fields: dict[str, Any]) -> bool:
    """The command goes on behind the chat: asked for, or because it took too long."""
    name = fields.get("session_id")
    return isinstance(name, str) and name.startswith("proc_")


def refusal(message: str, headroom: dict[str, Any] | None = None, exit_code: int = -1) -> str:
    """A result for a command that was not started."""
    fields: dict[str, Any] = {"output": "", "exit_code": exit_code, "error": message, "status": "blocked"}
    if headroom is not None:
        fields["headroom"] = headroom
    return json.dumps(fields, ensure_ascii=False)
