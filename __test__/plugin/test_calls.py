"""A heavy call: whatever the daemon does, the command runs once or is refused in words."""

import json
import os
import threading
import time
import unittest
from typing import Any

from support import FakeDaemon, HangUp, PlaceTest, Silence, Tool, hello, host_module, load, part

HEADROOM = {"memory_cap_mb": 100, "swap_cap_mb": 0, "isolated": True, "mode": "cgroup2", "oom_killed": False}
PLAIN = {"output": "done", "exit_code": 0, "error": None}


def light(_: Any) -> dict[str, Any]:
    return {"heavy": False}


def admitted(_: Any) -> dict[str, Any]:
    return {"heavy": True, "admitted": True, "job": "1-2-3", "cap_mb": 100, "queued_s": 0}


def ended(_: Any) -> dict[str, Any]:
    return {"headroom": HEADROOM}


def silent(_: Any) -> Any:
    raise Silence


def hangs_up(_: Any) -> Any:
    raise HangUp


def slowly(every_s: float, times: int, answer: Any) -> Any:
    """Says for a while that somebody waits, then answers."""

    def say(params: Any) -> Any:
        for _ in range(times):
            yield {"jsonrpc": "2.0", "method": "waiting", "params": {"call_id": "call", "reason": "busy"}}
            time.sleep(every_s)
        yield answer(params)

    return say


class Case(PlaceTest):
    def execute(self, command: str = "npm test", tool: Tool | None = None, **more: Any) -> tuple[dict[str, Any], Tool]:
        tool = tool or Tool()
        ids = {"session_id": "chat", "task_id": "task", "tool_call_id": "call", **more}
        done = self.calls().tool_execution(tool_name="terminal", args={"command": command}, next_call=tool, **ids)
        return json.loads(done), tool


class Admitted(Case):
    def test_the_result_gains_the_account(self) -> None:
        daemon = self.daemon(admit=admitted, end=ended)
        done, tool = self.execute()
        self.assertEqual(done, {**PLAIN, "headroom": HEADROOM})
        self.assertEqual(tool.runs, [{"command": "npm test"}])
        self.assertEqual(daemon.methods(), ["hello", "admit", "end"])
        self.assertEqual(daemon.of("admit")["agent_pid"], os.getpid())
        self.assertEqual(daemon.of("end")["exit_code"], 0)
        self.assertEqual(self.heavies, ["chat"])

    def test_a_light_one_is_left_alone(self) -> None:
        self.daemon(admit=light)
        done, tool = self.execute()
        self.assertEqual(done, PLAIN)
        self.assertEqual(len(tool.runs), 1)

    def test_what_the_first_filter_knows_is_never_asked_about(self) -> None:
        daemon = self.daemon(admit=admitted)
        done, _ = self.execute("ls -l; git status")
        self.assertEqual(done, PLAIN)
        self.assertEqual(daemon.asked, [])

    def test_only_wanted_variables_are_told(self) -> None:
        os.environ.update(NODE_OPTIONS="--x", SECRET_TOKEN="canary")
        daemon = self.daemon(admit=admitted, end=ended)
        self.execute()
        self.assertEqual(daemon.of("admit")["env"], {"NODE_OPTIONS": "--x"})
        self.assertNotIn("canary", repr(daemon.asked))

    def test_a_background_job_is_remembered_for_its_chat(self) -> None:
        daemon = self.daemon(admit=admitted, end=ended)
        self.execute(tool=Tool('{"output": "started", "exit_code": 0, "session_id": "proc_1"}'))
        self.assertEqual(self.backgrounds, ["chat"])
        self.assertEqual(daemon.of("end")["process"], "proc_1")

    def test_a_result_that_is_no_object_is_left_as_it_is(self) -> None:
        for result in ("plain text", "", None, '["list"]', "{broken"):
            with self.subTest(result=result):
                daemon = FakeDaemon(os.path.join(self.folder, "hermes-headroom/daemon.sock"), admit=admitted, end=ended)
                done = self.calls().tool_execution(
                    tool_name="terminal", args={"command": "npm test"}, next_call=Tool(result), session_id="chat"
                )
                self.assertEqual(done, result)
                daemon.close()
                os.unlink(os.path.join(self.folder, "hermes-headroom/daemon.sock"))

    def test_an_error_of_the_tool_goes_through_and_the_daemon_hears_it(self) -> None:
        daemon = self.daemon(admit=admitted, end=ended)
        with self.assertRaisesRegex(ValueError, "of the tool"):
            self.execute(tool=Tool(ValueError("of the tool")))
        self.assertTrue(daemon.closed.wait(5))

    def test_a_copy_of_the_plugin_in_the_same_process_leaves_the_call_to_the_first(self) -> None:
        load("headroom_again")
        daemon = self.daemon(admit=admitted, end=ended)
        inner = Tool()
        again = part("calls", "headroom_again").Calls(object(), on_background=print, on_heavy=print)
        done = self.calls().tool_execution(
            tool_name="terminal",
            args={"command": "npm test"},
            next_call=lambda args: again.tool_execution(tool_name="terminal", args=args, next_call=inner),
            session_id="chat",
        )
        self.assertEqual(json.loads(done), {**PLAIN, "headroom": HEADROOM})
        self.assertEqual(daemon.methods().count("admit"), 1)
        self.assertEqual(len(inner.runs), 1)


class FailsOpen(Case):
    """The daemon cannot be had: the command runs, and that is said once."""

    def check(self, why: str) -> None:
        first, tool = self.execute()
        self.assertEqual(len(tool.runs), 1)
        self.assertEqual({**first, "headroom": None}, {**PLAIN, "headroom": None})
        self.assertIn(why, first["headroom"]["note"])
        self.assertFalse(first["headroom"]["isolated"])
        second, tool = self.execute()
        self.assertEqual(len(tool.runs), 1)
        self.assertEqual(second, PLAIN)

    def test_no_program(self) -> None:
        self.check("not installed")

    def test_a_program_that_fails(self) -> None:
        program = os.path.join(self.folder, "program")
        with open(program, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\necho what is wrong >&2\nexit 3\n")
        os.chmod(program, 0o755)
        os.environ["HEADROOM_CLI"] = program
        self.check("what is wrong")

    def test_a_foreign_runtime_directory(self) -> None:
        os.mkdir(os.path.join(self.folder, "hermes-headroom"), 0o777)
        os.chmod(os.path.join(self.folder, "hermes-headroom"), 0o777)
        self.check("belongs to somebody else")

    def test_nonsense(self) -> None:
        self.daemon(hello=lambda _: b"\xff{]\n")
        self.check("not understood")

    def test_an_answer_without_end(self) -> None:
        client = part("client")
        longest, client.LONGEST_LINE = client.LONGEST_LINE, 1000
        self.addCleanup(setattr, client, "LONGEST_LINE", longest)
        self.daemon(hello=lambda _: b"x" * 70_000)
        self.check("too long")

    def test_another_protocol(self) -> None:
        error = {"code": -32001, "message": "other protocol", "data": {"code": "E_PROTOCOL", "fix": "Update it."}}
        self.daemon(hello=lambda _: error)
        self.check("Update it")

    def test_a_refused_request(self) -> None:
        error = {"code": -32000, "message": "the disk is full", "data": {"code": "E_STATE"}}
        self.daemon(admit=lambda _: error)
        self.check("the disk is full")

    def test_hangs_up_at_the_greeting(self) -> None:
        self.daemon(hello=hangs_up)
        self.check("goes away again and again")

    def test_hangs_up_at_the_admission(self) -> None:
        daemon = self.daemon(admit=hangs_up)
        self.check("closed the connection")
        self.assertEqual(daemon.methods().count("admit"), 2 * part("calls").MOST_LOST)

    def test_hangs_up_before_the_account(self) -> None:
        self.daemon(admit=admitted, end=hangs_up)
        done, tool = self.execute()
        self.assertEqual(done, PLAIN)
        self.assertEqual(len(tool.runs), 1)

    def test_a_daemon_that_was_lost_is_followed_by_another(self) -> None:
        answers = iter([hangs_up, admitted])
        self.daemon(admit=lambda params: next(answers)(params), end=ended)
        done, tool = self.execute()
        self.assertEqual(done, {**PLAIN, "headroom": HEADROOM})
        self.assertEqual(len(tool.runs), 1)

    def test_a_daemon_that_falls_silent_is_left_by_who_waits(self) -> None:
        calls, link = part("calls"), part("link")
        for module, name, seconds in ((calls, "LONGEST_SILENCE_S", 0.6), (link, "GREETING_PATIENCE_S", 0.3)):
            self.addCleanup(setattr, module, name, getattr(module, name))
            setattr(module, name, seconds)
        greetings = iter([hello, silent])
        self.daemon(hello=lambda params: next(greetings, silent)(params), admit=silent)
        self.check("does not answer")

    def test_signs_of_life_keep_a_call_waiting(self) -> None:
        calls = part("calls")
        self.addCleanup(setattr, calls, "LONGEST_SILENCE_S", calls.LONGEST_SILENCE_S)
        calls.LONGEST_SILENCE_S = 0.6
        self.daemon(admit=slowly(0.3, 5, admitted), end=ended)
        done, _ = self.execute()
        self.assertEqual(done["headroom"], HEADROOM)

    def test_silence_costs_one_wait(self) -> None:
        link = part("link")
        patience, link.GREETING_PATIENCE_S = link.GREETING_PATIENCE_S, 0.3
        self.addCleanup(setattr, link, "GREETING_PATIENCE_S", patience)
        daemon = self.daemon(hello=silent)
        self.check("does not answer")
        self.assertEqual(daemon.methods(), ["hello"])


class Refuses(Case):
    """The command must not run."""

    def test_the_queue_says_no(self) -> None:
        refusal = {
            "heavy": True,
            "admitted": False,
            "message": "refused: busy",
            "headroom": {**HEADROOM, "note": "busy"},
        }
        daemon = self.daemon(admit=lambda _: refusal)
        done, tool = self.execute()
        self.assertEqual(tool.runs, [])
        self.assertEqual(done["error"], "refused: busy")
        self.assertEqual(done["status"], "blocked")
        self.assertEqual(done["headroom"]["note"], "busy")
        self.assertTrue(daemon.closed.wait(5))

    def test_called_off_while_it_waits(self) -> None:
        daemon = self.daemon(admit=silent)
        called_off = threading.Event()
        threading.Timer(0.3, called_off.set).start()
        with host_module("tools.interrupt", is_interrupted=called_off.is_set):
            done, tool = self.execute()
        self.assertEqual(tool.runs, [])
        self.assertIn("called off", done["error"])
        self.assertTrue(daemon.closed.wait(5), "its place in the queue is given back")

    def test_called_off_in_the_moment_of_its_admission(self) -> None:
        daemon = self.daemon(admit=admitted)
        with host_module("tools.interrupt", is_interrupted=lambda: "admit" in daemon.methods()):
            _, tool = self.execute()
        self.assertEqual(tool.runs, [])

    def test_a_daemon_that_answers_when_the_host_has_given_up(self) -> None:
        calls = part("calls")
        margin, calls.ADMIT_MARGIN_S = calls.ADMIT_MARGIN_S, 1.0
        self.addCleanup(setattr, calls, "ADMIT_MARGIN_S", margin)
        os.environ["HERMES_CONCURRENT_TOOL_TIMEOUT_S"] = "2"

        def late(params: Any) -> Any:
            time.sleep(1.8)
            return admitted(params)

        daemon = self.daemon(admit=late)
        done, tool = self.execute()
        self.assertEqual(tool.runs, [])
        self.assertIn("Nothing was run", done["error"])
        self.assertLessEqual(daemon.of("admit")["deadline_s"], 2)

    def test_a_daemon_that_hangs_past_the_deadline(self) -> None:
        calls = part("calls")
        margin, calls.ADMIT_MARGIN_S = calls.ADMIT_MARGIN_S, 0.5
        self.addCleanup(setattr, calls, "ADMIT_MARGIN_S", margin)
        os.environ["HERMES_CONCURRENT_TOOL_TIMEOUT_S"] = "1.2"
        self.daemon(admit=silent)
        done, tool = self.execute()
        self.assertEqual(tool.runs, [])
        self.assertIn("Nothing was run", done["error"])


class Prepares(PlaceTest):
    def request(self, command: str = "npm test", calls: Any = None) -> Any:
        return (calls or self.calls()).tool_request(tool_name="terminal", args={"command": command, "workdir": "/srv"})

    def test_a_lighter_text_replaces_the_command_and_nothing_else(self) -> None:
        daemon = self.daemon(prepare=lambda _: {"heavy": True, "command": "X=1 npm test", "changes": ["set X"]})
        changed = self.request()
        self.assertEqual(changed["args"], {"command": "X=1 npm test", "workdir": "/srv"})
        self.assertEqual(daemon.of("prepare")["cwd"], "/srv")

    def test_the_same_text_changes_nothing(self) -> None:
        self.daemon(prepare=lambda _: {"heavy": True, "command": "npm test", "changes": []})
        self.assertIsNone(self.request())

    def test_a_text_found_light_is_asked_about_once(self) -> None:
        daemon = self.daemon(prepare=light)
        calls = self.calls()
        for _ in range(3):
            self.assertIsNone(self.request("npm --version", calls))
        self.assertEqual(daemon.methods().count("prepare"), 1)

    def test_no_daemon_no_change(self) -> None:
        self.assertIsNone(self.request())

    def test_a_wrong_answer_no_change(self) -> None:
        for command in (None, 5, "", ["x"]):
            with self.subTest(command=command):
                daemon = FakeDaemon(
                    os.path.join(self.folder, "hermes-headroom/daemon.sock"),
                    prepare=lambda _, command=command: {"heavy": True, "command": command},
                )
                self.assertIsNone(self.request())
                daemon.close()
                os.unlink(os.path.join(self.folder, "hermes-headroom/daemon.sock"))

    def test_other_tools_and_odd_arguments_are_none_of_its_business(self) -> None:
        calls = self.calls()
        for tool, args in (("read_file", {"command": "npm test"}), ("terminal", None), ("terminal", {"command": 5})):
            self.assertIsNone(calls.tool_request(tool_name=tool, args=args))


class PluginHost(PlaceTest):
    def test_it_raises_so_that_hermes_runs_the_tool_by_itself(self) -> None:
        with self.assertRaises(part("calls").HostIsolationError):
            self.calls().tool_execution(
                tool_name="terminal", args={"command": "npm test"}, next_call={"__callable__": 1}
            )

    def test_light_ones_too(self) -> None:
        with self.assertRaises(part("calls").HostIsolationError):
            self.calls().tool_execution(tool_name="terminal", args={"command": "ls"}, next_call=None)


if __name__ == "__main__":
    unittest.main()
