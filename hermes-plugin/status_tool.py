"""The tool ``headroom_status``: what the model may ask before it starts something large."""

import json
from typing import Any

from .commands import program_text

NAME = "headroom_status"

SCHEMA: dict[str, Any] = {
    "name": NAME,
    "description": (
        "Memory, running and waiting heavy jobs of this machine, and the memory cap that the next job would get. "
        "With a command: whether it is heavy, and how it would be run."
    ),
    "parameters": {
        "type": "object",
        "properties": {"command": {"type": "string", "description": "A shell command to explain; nothing is run."}},
        "required": [],
    },
}


def handle(args: Any = None, **_: Any) -> str:
    """JSON: the snapshot, and ``explain`` of the command where one is given."""
    answer: dict[str, Any] = {"status": _json(["status", "--json"])}
    command = args.get("command") if isinstance(args, dict) else None
    if isinstance(command, str) and command.strip():
        answer["explain"] = _json(["explain", "--json", "--", command])
    return json.dumps(answer, ensure_ascii=False)


def _json(words: list[str]) -> Any:
    text = program_text(words)
    try:
        return json.loads(text)
    except ValueError:
        return {"error": text}
