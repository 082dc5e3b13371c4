"""The first look at a command, in the agent's own process.

Most commands are light. When no word of a command can be the name of a heavy tool it is light for certain,
and nothing is asked of the daemon. The words come from the tool table (``heavy_words.py``).
"""

import re

from .heavy_words import HEAVY_PHRASES, HEAVY_WORDS

_PARTS = re.compile(r"[a-z0-9+]+").findall  # ``gcc`` of ``x86_64-linux-gnu-gcc-13``
_WHOLE = re.compile(r"[a-z0-9+._-]+").findall  # ``apt-get``, ``setup.py``
_QUOTES = str.maketrans("", "", "'\"\\")


def may_be_heavy(text: str) -> bool:
    """False only when the text is light for certain (a user's own patterns aside)."""
    plain = text.replace("\\\n", "").translate(_QUOTES).lower()
    if not (HEAVY_WORDS.isdisjoint(_PARTS(plain)) and HEAVY_WORDS.isdisjoint(_WHOLE(plain))):
        return True
    # ``$'\x6dake'``: what it stands for is not looked at here.
    if "$'" in text:
        return True
    return any(phrase in plain for phrase in HEAVY_PHRASES)
