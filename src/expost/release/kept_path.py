"""Private state on disk: encrypted under the curator's key, and bound to the release it belongs to.

AES-256 in Galois counter mode, with a fresh nonce for every file. The id of the release is authenticated with the
content, so that a file opens beside its own release only, and only with the key it was sealed with; whatever else was
changed in it, it does not open at all.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from expost.whole import write_whole

_KEY_BYTES, _NONCE_BYTES = 32, 12
_MARK = b"expost sealed 1\n"
_KEY_MARK = "expost key 1 "


def write_key(path: str | os.PathLike[str]) -> None:
    """Write a new key to a new file that its owner alone may read."""
    text = _KEY_MARK + secrets.token_bytes(_KEY_BYTES).hex() + "\n"
    write_private(Path(path), text.encode("ascii"))


def write_private(file: Path, content: bytes) -> None:
    """Write a file that is not there yet and that its owner alone may read, completely or not at all."""
    write_whole(file, content, mode=0o600)


def read_key(path: str | os.PathLike[str]) -> bytes:
    """Return the key in a file; say what is wrong with it, and never what is in it."""
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"there is no key {file}; expost key makes one")
    if os.name == "posix" and file.stat().st_mode & 0o077:
        raise ValueError(f"the key {file} can be read by others; chmod 600 {file}, and make a new one if they may have")
    try:
        text = file.read_text(encoding="ascii")
        key = bytes.fromhex(text.removeprefix(_KEY_MARK).strip()) if text.startswith(_KEY_MARK) else b""
    except ValueError:
        key = b""
    if len(key) != _KEY_BYTES:
        raise ValueError(f"{file} is not a key; expost key makes one")
    return key


def seal(content: bytes, key: bytes, release_id: str) -> bytes:
    """Encrypt, bound to a release."""
    nonce = secrets.token_bytes(_NONCE_BYTES)
    return _MARK + nonce + AESGCM(key).encrypt(nonce, content, _about(release_id))


def unseal(sealed: bytes, key: bytes, release_id: str) -> bytes:
    """Decrypt; a ``ValueError`` if key or release are others, or anything was changed."""
    nonce, content = sealed[len(_MARK) : len(_MARK) + _NONCE_BYTES], sealed[len(_MARK) + _NONCE_BYTES :]
    if not sealed.startswith(_MARK) or len(nonce) != _NONCE_BYTES:
        raise ValueError("it is no sealed file of this version")
    try:
        return AESGCM(key).decrypt(nonce, content, _about(release_id))
    except InvalidTag:
        pass
    raise ValueError("it does not open: it belongs to another release, the key is another, or it was changed")


def _about(release_id: str) -> bytes:
    return _MARK + release_id.encode()
