"""Where the daemon of this user listens: the same rule as the daemon's own."""

import os
import stat

NAME = "hermes-headroom"
SOCKET = "daemon.sock"


def socket_path() -> str | None:
    """The socket, whether or not somebody listens there; ``None`` when its directory must not be trusted."""
    directory = _runtime_dir()
    if not _is_private(directory):
        return None
    return os.path.join(directory, SOCKET)


def _runtime_dir() -> str:
    uid = os.getuid()
    for parent in (os.environ.get("XDG_RUNTIME_DIR", ""), f"/run/user/{uid}"):
        if os.path.isabs(parent) and _is_own_directory(parent, 0o022):
            return os.path.join(parent, NAME)
    return f"/tmp/{NAME}-{uid}"


def _is_private(directory: str) -> bool:
    """A directory that is not there yet is made by the daemon, which looks at it again."""
    return not os.path.lexists(directory) or _is_own_directory(directory, 0o077)


def _is_own_directory(path: str, forbidden_bits: int) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & forbidden_bits
