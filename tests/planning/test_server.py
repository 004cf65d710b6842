"""The server: this machine only, one page."""

from __future__ import annotations

import http.client
import threading

import pytest

from expost.planning.explorer import server_of


@pytest.fixture
def port():
    with server_of("<!doctype html>ε") as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("method", "path", "host", "status"),
    [
        ("GET", "/", "127.0.0.1", 200),
        ("HEAD", "/", "localhost", 200),
        ("GET", "/etc/passwd", "127.0.0.1", 404),
        ("GET", "/", "evil.example", 404),
        ("POST", "/", "127.0.0.1", 501),
    ],
)
def test_one_page_for_this_machine(port, method, path, host, status):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(method, path, headers={"Host": f"{host}:{port}"})
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    assert answer.status == status
    assert (body == "<!doctype html>ε") == (status == 200 and method == "GET")
