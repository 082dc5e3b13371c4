"""Between commands: notes of jobs that have ended behind a chat."""

import unittest
from typing import Any

from support import PlaceTest, part


class Notes(PlaceTest):
    def test_a_chat_without_heavy_commands_never_asks(self) -> None:
        daemon = self.daemon()
        chats = part("chats").Chats()
        self.assertIsNone(chats.pre_llm_call(session_id="chat", is_first_turn=True))
        self.assertIsNone(chats.pre_llm_call(session_id="chat", is_first_turn=False))
        chats.on_session_end(session_id="chat")
        chats.on_session_finalize(session_id="chat")
        self.assertEqual(daemon.asked, [])

    def test_notes_go_into_the_turn(self) -> None:
        answers: list[dict[str, Any]] = [{"notes": ["first", "second"], "pending": 0}, {"notes": [], "pending": 0}]
        self.daemon(notes=lambda _: answers.pop(0))
        chats = part("chats").Chats()
        chats.on_heavy("chat")
        chats.on_background("chat")
        self.assertEqual(chats.pre_llm_call(session_id="chat"), {"context": "[headroom]\nfirst\nsecond"})
        self.assertIsNone(chats.pre_llm_call(session_id="chat"))

    def test_a_chat_that_goes_on_after_a_restart_asks_once(self) -> None:
        daemon = self.daemon(notes=lambda _: {"notes": ["from before"], "pending": 0})
        chats = part("chats").Chats()
        self.assertEqual(
            chats.pre_llm_call(session_id="old", is_first_turn=False), {"context": "[headroom]\nfrom before"}
        )
        self.assertIsNone(chats.pre_llm_call(session_id="old", is_first_turn=False))
        self.assertEqual(daemon.methods().count("notes"), 1)

    def test_the_end_of_a_chat_is_told(self) -> None:
        daemon = self.daemon(session=lambda _: {})
        chats = part("chats").Chats()
        chats.on_heavy("chat")
        chats.on_session_end(session_id="chat")
        chats.on_session_finalize(session_id=None, old_session_id="chat")
        self.assertEqual(
            [params["event"] for method, params in daemon.asked if method == "session"], ["end", "finalize"]
        )
        chats.on_session_end(session_id="chat")
        self.assertEqual(daemon.methods().count("session"), 2)

    def test_no_daemon_no_notes(self) -> None:
        chats = part("chats").Chats()
        chats.on_background("chat")
        self.assertIsNone(chats.pre_llm_call(session_id="chat"))
        chats.on_session_end(session_id="chat")


if __name__ == "__main__":
    unittest.main()
