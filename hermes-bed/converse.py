"""A real Hermes that is told what to do by lines of JSON, and says by lines of JSON what came of it.

In: ``{"id", "session", "say": TEXT}`` a turn of that chat; ``{"id", "session", "call": TOOL, "args": {…}}`` one tool
call without a model; ``{"session", "interrupt": true}`` as ``/stop`` does; ``{"session", "close": true}``.
Out: ``{"ready": PID}``, then for each id ``{"id", "final", "tools", "interrupted"}``, ``{"id", "result"}`` or
``{"id", "error"}``. Chats run beside one another, a turn of one chat after the other. Ends with its input.
"""

import json
import os
import queue
import sys
import threading
import traceback

# Whatever Hermes prints is not an answer.
answers = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")
os.dup2(2, 1)
_writing = threading.Lock()


def answer(**fields):
    with _writing:
        answers.write(json.dumps(fields) + "\n")


class Chat:
    def __init__(self, session):
        from run_agent import AIAgent

        self.session = session
        self.history = []
        self.waiting = queue.SimpleQueue()
        self.agent = AIAgent(
            base_url=os.environ["BED_MODEL_URL"],
            api_key="dummy",
            provider="custom",
            model="fake-model",
            enabled_toolsets=["terminal", "code_execution"],
            quiet_mode=True,
            skip_context_files=True,
            skip_memory=True,
            session_id=session,
            platform="cli",
            max_iterations=8,
        )
        threading.Thread(target=self.work, daemon=True, name=f"chat {session}").start()

    def work(self):
        while (asked := self.waiting.get()) is not None:
            try:
                self.turn(asked)
            except BaseException:
                answer(id=asked["id"], error=traceback.format_exc())

    def turn(self, asked):
        known = len(self.history)
        done = self.agent.run_conversation(asked["say"], conversation_history=self.history, task_id=self.session)
        self.history = done["messages"]
        answer(
            id=asked["id"],
            final=done.get("final_response"),
            interrupted=bool(done.get("interrupted")),
            tools=[message["content"] for message in self.history[known:] if message["role"] == "tool"],
        )


def call(asked):
    import model_tools

    try:
        ids = {"task_id": asked["session"], "session_id": asked["session"], "turn_id": "turn"}
        result = model_tools.handle_function_call(asked["call"], asked["args"], tool_call_id=str(asked["id"]), **ids)
        answer(id=asked["id"], result=result)
    except BaseException:
        answer(id=asked["id"], error=traceback.format_exc())


def main():
    from hermes_cli.plugins import discover_plugins

    discover_plugins()
    chats = {}
    answer(ready=os.getpid())
    for line in sys.stdin:
        asked = json.loads(line)
        session = asked["session"]
        if "call" in asked:
            threading.Thread(target=call, args=(asked,), daemon=True).start()
            continue
        if session not in chats:
            chats[session] = Chat(session)
        chat = chats[session]
        if asked.get("interrupt"):
            chat.agent.interrupt()
        elif asked.get("close"):
            chat.waiting.put(None)
        else:
            chat.waiting.put(asked)


main()
os._exit(0)
