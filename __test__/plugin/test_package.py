"""The package: what it needs, what it registers, what a light command costs it."""

import ast
import os
import sys
import unittest
from pathlib import Path
from typing import Any

from support import PLUGIN, PlaceTest, load, part


class Host:
    """A host as old as can be: it has nothing beyond what every release has."""

    def __init__(self) -> None:
        self.registered: list[str] = []

    def register_middleware(self, kind: str, _: Any) -> None:
        self.registered.append(kind)

    def register_hook(self, name: str, callback: Any) -> None:
        self.registered.append(name)

    def register_tool(self, name: str, **_: Any) -> None:
        self.registered.append(name)

    def register_command(self, name: str, handler: Any, **_: Any) -> None:
        self.registered.append(f"/{name}")


class NewerHost(Host):
    def register_cli_command(self, name: str, *_: Any) -> None:
        self.registered.append(f"hermes {name}")

    def on_unload(self, _: Any) -> None:
        self.registered.append("on_unload")


class Package(PlaceTest):
    def test_only_the_standard_library(self) -> None:
        for path in sorted(PLUGIN.glob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                names = []
                if isinstance(node, ast.Import):
                    names = [alias.name for alias in node.names]
                elif isinstance(node, ast.ImportFrom) and node.level == 0:
                    names = [node.module or ""]
                for name in names:
                    self.assertIn(name.split(".")[0], sys.stdlib_module_names, path.name)

    def test_registers_with_an_old_and_with_a_new_host(self) -> None:
        old, new = Host(), NewerHost()
        load().register(old)
        load().register(new)
        self.assertIn("tool_execution", old.registered)
        self.assertIn("/headroom", old.registered)
        self.assertEqual(set(new.registered) - set(old.registered), {"hermes headroom", "on_unload"})

    def test_registering_starts_nothing(self) -> None:
        daemon = self.daemon()
        load().register(NewerHost())
        self.assertEqual(daemon.asked, [])

    def test_a_light_command_opens_nothing(self) -> None:
        socket_class = part("client").socket.socket

        def forbidden(*_: Any, **__: Any) -> None:
            raise AssertionError("a socket was opened")

        part("client").socket.socket = forbidden
        self.addCleanup(setattr, part("client").socket, "socket", socket_class)
        calls = self.calls()
        for command in ("ls -la", "git status && cat README.md", "echo 'npm' | wc -c; sed -n 1,5p x", "cd /; pwd"):
            if "npm" in command:
                continue
            self.assertIsNone(calls.tool_request(tool_name="terminal", args={"command": command}))
            self.assertEqual(
                calls.tool_execution(tool_name="terminal", args={"command": command}, next_call=str),
                str({"command": command}),
            )


class UserPatterns(PlaceTest):
    def test_patterns_of_ones_own_are_asked_about(self) -> None:
        settings = part("settings")
        settings._kept.clear()
        daemon = self.daemon(prepare=lambda _: {"heavy": False})
        calls = self.calls()
        calls.tool_request(tool_name="terminal", args={"command": "ls"})
        self.assertEqual(daemon.methods(), [])
        settings._kept.clear()
        Path(self.home, "config.yaml").write_text(
            "plugins: {entries: {headroom: {settings: {extra_heavy_patterns: [ls]}}}}", encoding="utf-8"
        )
        calls.tool_request(tool_name="terminal", args={"command": "ls"})
        self.assertIn("prepare", daemon.methods())

    def test_a_host_that_knows_settings_is_asked(self) -> None:
        settings = part("settings")
        settings._kept.clear()

        class Configured:
            def get_config(self, key: str, default: Any) -> Any:
                return ["x"] if key == "extra_heavy_patterns" else default

        self.assertTrue(settings.asks_about_everything(Configured(), self.home))
        settings._kept.clear()
        os.environ["HEADROOM_EXTRA_HEAVY_PATTERNS"] = "x"
        self.assertTrue(settings.asks_about_everything(object(), self.home))
        settings._kept.clear()


class Commands(PlaceTest):
    def program(self, text: str) -> None:
        path = Path(self.folder, "program")
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(0o755)
        os.environ["HEADROOM_CLI"] = str(path)

    def test_slash_passes_words_on_and_builds_no_shell_text(self) -> None:
        self.program('printf "<%s>" "$@"')
        slash = part("commands").slash
        self.assertEqual(slash(""), "<status>")
        self.assertEqual(slash("explain npm test; $(reboot)"), "<explain><--><npm test; $(reboot)>")
        self.assertEqual(slash("events 3"), "<events><-n><3>")
        self.assertEqual(slash("events x"), "<events><-n><10>")
        self.assertIn("Usage", slash("frobnicate"))
        self.assertIn("Usage", slash("explain"))

    def test_slash_says_what_is_missing(self) -> None:
        self.assertIn("not installed", part("commands").slash("status"))

    def test_only_what_it_needs_of_the_environment_is_given(self) -> None:
        os.environ["SECRET_TOKEN"] = "canary"
        self.program("env")
        self.assertNotIn("canary", part("commands").slash("status"))


if __name__ == "__main__":
    unittest.main()
