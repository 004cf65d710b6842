"""The page served to this machine: one address, one answer."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LOOPBACK = "127.0.0.1"


def server_of(text: str, port: int = 0) -> ThreadingHTTPServer:
    """Return a server of the page, bound to the loopback interface; 0 is any port that is free.

    Examples
    --------
    >>> with server_of("<!doctype html>") as server:
    ...     server.server_address[0]
    '127.0.0.1'
    """
    body = text.encode("utf-8")

    class Handler(BaseHTTPRequestHandler):
        """Answers with the page, to those who asked for this machine by its own name."""

        def do_GET(self) -> None:
            """Send the page."""
            self._answer(send=True)

        def do_HEAD(self) -> None:
            """Send what it is."""
            self._answer(send=False)

        def _answer(self, *, send: bool) -> None:
            # another name would be a foreign page that leads here
            here = (self.headers.get("Host") or "").rsplit(":", 1)[0] in (LOOPBACK, "localhost")
            found = here and self.path.split("?")[0] == "/"
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body) if found else 0))
            self.send_header("Cache-Control", "no-store")
            self.send_header("X-Content-Type-Options", "nosniff")
            self.end_headers()
            if found and send:
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Write nothing."""

    return ThreadingHTTPServer((LOOPBACK, port), Handler)
