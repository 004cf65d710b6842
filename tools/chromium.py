"""Print the path of a Chromium that the browser tests can use: this machine's, or one that is downloaded.

    python tools/chromium.py

Tried in this order: EXPOST_CHROMIUM, a browser on the path, one that Playwright has or can download, Debian's package
where that may be installed. Needs playwright (``pip install -e ".[browser]"``).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome", "chromium-headless-shell", "msedge")
PACKAGE = "chromium-headless-shell"
PATIENCE = 240  # seconds that a download may take


def stated() -> str | None:
    """Return what the caller asks for."""
    return os.environ.get("EXPOST_CHROMIUM") or None


def downloaded() -> str | None:
    """Return Playwright's browser, downloading it if need be."""
    from playwright.sync_api import sync_playwright

    command = [sys.executable, "-m", "playwright", "install", "chromium"]
    try:
        subprocess.run(command, check=True, timeout=PATIENCE, stdout=sys.stderr)
    except (subprocess.SubprocessError, OSError):
        print("Playwright could not download a browser", file=sys.stderr)
        return None
    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).is_file() else None


def on_the_path() -> str | None:
    """Return a browser of this machine."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


def packaged() -> str | None:
    """Install Debian's package, where that is allowed, and return it."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return None
    command = ["apt-get", "install", "-y", "-q", "--no-install-recommends", PACKAGE]
    subprocess.run(command, check=False, stdout=sys.stderr)
    return shutil.which(PACKAGE)


def main() -> int:
    """Print the first that is found."""
    for way in (stated, on_the_path, downloaded, packaged):
        found = way()
        if found:
            print(found)
            return 0
    print("no Chromium: install one (apt install chromium), or set EXPOST_CHROMIUM to its path", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
