"""The plugin as a package of its own, a daemon that does what a test says, and a place with neither."""

import importlib.util
import json
import os
import shutil
import socket
import sys
import tempfile
import threading
import types
import unittest
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

PLUGIN = Path(__file__).resolve().parents[2] / "hermes-plugin"


def load(name: str = "headroom_plugin") -> types.ModuleType:
    """The plugin's package, as Hermes loads it: by its directory, under a name of Hermes' own."""
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(
        name, PLUGIN / "__init__.py", submodule_search_locations=[str(PLUGIN)]
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def part(name: str, package: str = "headroom_plugin") -> types.ModuleType:
    load(package)
    return importlib.import_module(f"{package}.{name}")


class Silence(Exception):
    """Raised by an answer: nothing is said, the connection stays open."""


class HangUp(Exception):
    """Raised by an answer: the connection is closed."""


Answer = Callable[[dict[str, Any]], Any]


def hello(_: dict[str, Any]) -> dict[str, Any]:
    return {"protocol": 1, "version": "0.1.0", "pid": os.getpid(), "environment": ["NODE_OPTIONS"]}


class FakeDaemon:
    """Listens, and answers each method as it is told. What it was asked is in ``asked``."""

    def __init__(self, path: str, **answers: Answer) -> None:
        self.answers: dict[str, Answer] = {"hello": hello, **answers}
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.closed = threading.Event()
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        self._server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._server.bind(path)
        self._server.listen(8)
        threading.Thread(target=self._accept, daemon=True).start()

    def methods(self) -> list[str]:
        return [method for method, _ in self.asked]

    def of(self, method: str) -> dict[str, Any]:
        return next(params for asked, params in self.asked if asked == method)

    def close(self) -> None:
        # Shut down first: a thread that waits for a connection keeps the socket open.
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        # A method that nobody has answered for is one that hangs up.
        with suppress(HangUp, KeyError, OSError, ValueError), client, client.makefile("rwb") as stream:
            for line in stream:
                self._answer(json.loads(line), stream)
        self.closed.set()

    def _answer(self, request: dict[str, Any], stream: Any) -> None:
        self.asked.append((request["method"], request["params"]))
        try:
            result = self.answers[request["method"]](request["params"])
        except Silence:
            return
        for said in result if isinstance(result, types.GeneratorType) else [result]:
            self._say(request, said, stream)

    def _say(self, request: dict[str, Any], said: Any, stream: Any) -> None:
        if isinstance(said, bytes):
            stream.write(said)
        else:
            is_message = isinstance(said, dict) and "jsonrpc" in said
            key = "error" if isinstance(said, dict) and "code" in said else "result"
            message = said if is_message else {"jsonrpc": "2.0", "id": request["id"], key: said}
            stream.write(json.dumps(message).encode() + b"\n")
        stream.flush()


class PlaceTest(unittest.TestCase):
    """A runtime directory, a Hermes home and an environment of its own for each test."""

    def setUp(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="headroom-plugin-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        os.chmod(self.folder, 0o700)
        self.home = os.path.join(self.folder, "home")
        os.mkdir(self.home)
        kept = dict(os.environ)
        self.addCleanup(lambda: (os.environ.clear(), os.environ.update(kept)))
        for name in [name for name in os.environ if name.startswith("HEADROOM_")]:
            del os.environ[name]
        # Nothing is installed here unless a test says so.
        os.environ.update(
            XDG_RUNTIME_DIR=self.folder,
            HERMES_HOME=self.home,
            HEADROOM_CLI="/nowhere/hermes-headroom",
            PATH="/usr/bin:/bin",
        )
        part("link").forget_failures()
        part("telling").forget()

    def daemon(self, **answers: Answer) -> FakeDaemon:
        daemon = FakeDaemon(os.path.join(self.folder, "hermes-headroom/daemon.sock"), **answers)
        self.addCleanup(daemon.close)
        return daemon

    def calls(self) -> Any:
        """What Hermes calls for a tool, with a host that can do nothing of its own."""
        return part("calls").Calls(object(), on_background=self.backgrounds.append, on_heavy=self.heavies.append)

    @property
    def backgrounds(self) -> list[str]:
        return self.__dict__.setdefault("_backgrounds", [])

    @property
    def heavies(self) -> list[str]:
        return self.__dict__.setdefault("_heavies", [])


@contextmanager
def host_module(name: str, **functions: Any) -> Iterator[None]:
    """A module of Hermes that is loaded for as long."""
    module = types.ModuleType(name)
    for key, value in functions.items():
        setattr(module, key, value)
    before = sys.modules.get(name)
    sys.modules[name] = module
    try:
        yield
    finally:
        if before is None:
            del sys.modules[name]
        else:
            sys.modules[name] = before


class Tool:
    """The tool below the plugin: counts how often it runs."""

    def __init__(self, result: Any = '{"output": "done", "exit_code": 0, "error": null}') -> None:
        self.result = result
        self.runs: list[Any] = []

    def __call__(self, args: Any) -> Any:
        self.runs.append(args)
        if isinstance(self.result, BaseException):
            raise self.result
        return self.result
