"""headroom for Hermes: heavy commands are made lighter, take turns, and run in memory-capped boxes.

Everything that decides is in the daemon; this carries. See docs/daemon-protocol.md of the package.
"""

from typing import Any

from . import commands, link, status_tool, telling
from .calls import Calls
from .chats import Chats


def register(ctx: Any) -> None:
    """Called by Hermes when it loads the plugin. Starts nothing."""
    chats = Chats()
    calls = Calls(ctx, on_background=chats.on_background, on_heavy=chats.on_heavy)
    ctx.register_middleware("tool_request", calls.tool_request)
    ctx.register_middleware("tool_execution", calls.tool_execution)
    ctx.register_hook("pre_llm_call", chats.pre_llm_call)
    ctx.register_hook("on_session_end", chats.on_session_end)
    ctx.register_hook("on_session_finalize", chats.on_session_finalize)
    ctx.register_tool(
        name=status_tool.NAME,
        toolset="terminal",
        schema=status_tool.SCHEMA,
        handler=status_tool.handle,
        description=status_tool.SCHEMA["description"],
    )
    ctx.register_command(
        "headroom",
        commands.slash,
        description="memory, heavy jobs, events",
        args_hint="status|events|explain COMMAND|selftest",
    )
    # Older releases have fewer of these.
    register_cli = getattr(ctx, "register_cli_command", None)
    if callable(register_cli):
        register_cli("headroom", "memory and heavy jobs", commands.set_up, commands.run)
    on_unload = getattr(ctx, "on_unload", None)
    if callable(on_unload):
        on_unload(_forget)


def _forget() -> None:
    telling.forget()
    link.forget_failures()
