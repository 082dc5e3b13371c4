"""The longest silence of a gateway: of a thread, and of the event loop that serves its chats."""

import asyncio
import json
import os
import threading
import time

EVERY_S = 0.02
#: Made by a test that wants to count anew.
ANEW = os.path.join(os.environ.get("BED_FOLDER", "/tmp"), "heartbeat.anew")
FILE = os.path.join(os.environ.get("BED_FOLDER", "/tmp"), "heartbeat.json")

_longest = {"thread_ms": 0, "loop_ms": 0, "beats": 0}
_lock = threading.Lock()
_loops = set()


def _beat(kind, last):
    now = time.monotonic()
    with _lock:
        _longest["beats"] += 1
        _longest[kind] = max(_longest[kind], round((now - last) * 1000))
    return now


def _thread():
    last = time.monotonic()
    written = 0.0
    while True:
        time.sleep(EVERY_S)
        last = _beat("thread_ms", last)
        if last - written > 0.2:
            written = last
            if os.path.exists(ANEW):
                os.unlink(ANEW)
                _longest.update(thread_ms=0, loop_ms=0)
            with open(FILE + ".new", "w", encoding="utf-8") as file:
                json.dump(_longest, file)
            os.replace(FILE + ".new", FILE)


async def _loop():
    last = time.monotonic()
    while True:
        await asyncio.sleep(EVERY_S)
        last = _beat("loop_ms", last)


def _pre_gateway_dispatch(**_):
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return
    if loop not in _loops:
        _loops.add(loop)
        loop.create_task(_loop())


def register(ctx):
    threading.Thread(target=_thread, daemon=True, name="heartbeat").start()
    ctx.register_hook("pre_gateway_dispatch", _pre_gateway_dispatch)
