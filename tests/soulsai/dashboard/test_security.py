"""Who is refused, and what for."""

import http.client
import socket

import pytest

from soulsai.dashboard.security import AccessCheck, is_loopback, same
from soulsai.dashboard.server import ServeOptions, token_for
from soulsai.runs.lock import hold_lock
from soulsgym.errors import MisuseError

TOKEN = "a-token-of-some-length"
LIMIT_S = 60.0
MARK = {"x-souls": "page"}


@pytest.fixture
def guarded(root, client_of):
    return client_of(root, TOKEN, loopback=False)


# ---------------------------------------------------------------- token


@pytest.mark.parametrize("path", ["/", "/api/runs", "/api/runs/one", "/metrics", "/static/main.js", "/api/events"])
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer wrong"},
        {"authorization": "Bearer "},
        {"authorization": f"Bearer {TOKEN}x"},
        {"authorization": f"Bearer {TOKEN[:-1]}"},
        {"authorization": f"Basic {TOKEN}"},
        {"authorization": TOKEN},
        {"authorization": "Bearer \xe4\xf6".encode("latin-1")},
        {"cookie": f"{AccessCheck(False, TOKEN).cookie}={TOKEN}"},
        {"cookie": f"{AccessCheck(False, TOKEN).cookie}="},
        {"cookie": f"souls_token={AccessCheck(False, TOKEN).pass_word}"},
    ],
)
def test_without_the_token_nothing_is_told(guarded, path, headers):
    answer = guarded.get(path, headers=headers)
    assert answer.status_code == 401
    assert "needs its token" in answer.json()["error"]
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert TOKEN not in answer.text
    assert "set-cookie" not in answer.headers


def test_a_wrong_token_in_the_address(guarded):
    for query in ("token=wrong", "token=", f"Token={TOKEN}", f"token={TOKEN}x", "token=%00", f"token={TOKEN}&token=x"):
        assert guarded.get(f"/?{query}").status_code == 401, query
    assert guarded.post(f"/api/runs/one/control?token={TOKEN}", headers=MARK).status_code == 401


def test_a_visitor_without_the_token_gets_a_field(guarded):
    answer = guarded.get("/", headers={"accept": "text/html,*/*"})
    assert answer.status_code == 401
    assert 'name="token"' in answer.text
    assert "form-action 'self'" in answer.headers["content-security-policy"]
    assert "not the token" not in answer.text
    wrong = guarded.get("/?token=nonsense", headers={"accept": "text/html"})
    assert "not the token of this page" in wrong.text
    assert "nonsense" not in wrong.text
    assert guarded.get(f"/?token={TOKEN}", headers={"accept": "text/html"}).status_code == 303


def test_a_program_sends_the_token_as_a_header(guarded):
    assert guarded.get("/api/runs", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
    assert guarded.get("/api/runs", headers={"authorization": f"bearer {TOKEN}"}).status_code == 200


def test_a_browser_brings_it_once_and_then_has_a_cookie(guarded):
    answer = guarded.get(f"/?token={TOKEN}&run=one")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/?run=one"
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert TOKEN not in answer.headers["set-cookie"]
    assert answer.headers["cache-control"] == "no-store"
    assert guarded.get("/?run=one").status_code == 200  # the client keeps cookies
    assert guarded.get("/api/runs").status_code == 200
    assert guarded.get(f"/?token={TOKEN}").headers["location"] == "/"
    assert guarded.get("/?token=an-old-one").headers["location"] == "/"


@pytest.mark.parametrize("path", ["//evil.example/", "/\\evil.example/", "//evil.example/%2f.."])
def test_the_way_back_leads_nowhere_else(guarded, path):
    answer = guarded.request("GET", f"http://127.0.0.1:8716{path}?token={TOKEN}")
    place = answer.headers.get("location", "/")
    assert place.startswith("/")
    assert not place.startswith(("//", "/\\"))


def test_whether_it_lives_may_be_asked_by_all(guarded):
    assert guarded.get("/healthz").text == "ok"


def test_two_servers_on_one_machine_have_two_cookies():
    assert AccessCheck(True, "a" * 12).cookie != AccessCheck(True, "b" * 12).cookie


def test_secrets_are_compared():
    assert same("abc", "abc")
    assert not same("abc", "abd")
    assert not same("", "")
    assert not same("\ud800", "abc")


def test_tokens(tmp_path):
    assert token_for(ServeOptions(tmp_path)) == ""
    assert token_for(ServeOptions(tmp_path, "localhost")) == ""
    assert len(token_for(ServeOptions(tmp_path, "0.0.0.0"))) >= 32
    assert token_for(ServeOptions(tmp_path, "0.0.0.0")) != token_for(ServeOptions(tmp_path, "0.0.0.0"))
    assert token_for(ServeOptions(tmp_path, token=TOKEN)) == TOKEN
    for bad in ("short", "ünicode-of-some-length", "with\nline-ends-in-it"):
        with pytest.raises(MisuseError, match="plain ones"):
            token_for(ServeOptions(tmp_path, token=bad))


@pytest.mark.parametrize(
    ("host", "near"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("localhost", True), ("::1", True), ("[::1]", True), ("0.0.0.0", False),
     ("::", False), ("192.168.0.1", False), ("localhost.evil.example", False), ("", False), ("2130706433", False)],
)  # fmt: skip
def test_what_only_this_machine_can_reach(host, near):
    assert is_loopback(host) is near


# ---------------------------------------------------------------- host and origin


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8716", "127.0.0.1.evil.example", "", "a b", "[::1", "@"]
)
def test_a_name_that_was_made_to_lead_here_is_refused(client, host):
    answer = client.get("/api/runs", headers={"host": host})
    assert answer.status_code == 403
    assert "this machine only" in answer.json()["error"]


@pytest.mark.parametrize("host", ["127.0.0.1:8716", "localhost:9999", "localhost", "[::1]:8716", "LOCALHOST:1"])
def test_names_of_this_machine(client, host):
    assert client.get("/api/runs", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x-souls": "other"},
        MARK | {"origin": "http://evil.example"},
        MARK | {"origin": "null"},
        MARK | {"origin": ""},
        MARK | {"origin": "https://127.0.0.1:8716"},
        MARK | {"origin": "http://127.0.0.1:8717"},
        MARK | {"sec-fetch-site": "cross-site"},
        MARK | {"sec-fetch-site": "same-site"},
    ],
)
def test_other_sites_cannot_ask_a_run(client, root, headers):
    with hold_lock(root / "one" / "lock"):
        answer = client.post("/api/runs/one/control", json={"action": "stop"}, headers=headers)
    assert answer.status_code == 403
    assert not (root / "one" / "control").exists()


def test_the_page_itself_can(client, root):
    headers = MARK | {"origin": "http://127.0.0.1:8716", "sec-fetch-site": "same-origin"}
    with hold_lock(root / "one" / "lock"):
        assert client.post("/api/runs/one/control", json={"action": "save"}, headers=headers).status_code == 202


# ---------------------------------------------------------------- size and paths


def test_long_addresses(serve_folder, root):
    page = serve_folder(root)
    with pytest.raises(OSError, match=r"400|reset|closed|Broken pipe|Remote end"):  # by the server itself
        page.get("/api/runs?" + "a" * 2_000_000)
    assert page.get("/healthz") == b"ok"


def test_large_bodies(client, root):
    with hold_lock(root / "one" / "lock"):
        body = b'{"action": "save"' + b" " * 5_000 + b"}"
        assert client.post("/api/runs/one/control", content=body, headers=MARK).status_code == 413
        parts = iter([body[:3_000], body[3_000:]])  # sent without its length
        assert client.post("/api/runs/one/control", content=parts, headers=MARK).status_code == 413
    assert not (root / "one" / "control").exists()


TRICKS = [
    "/static/../app.py",
    "/static/..%2fapp.py",
    "/static/%2e%2e/app.py",
    "/static/%2e%2e%2fapp.py",
    "/static/..%5capp.py",
    "/static/....//app.py",
    "/static//etc/passwd",
    "/static/%2fetc%2fpasswd",
    "/static/%00",
    "/api/runs/..%2f..%2fetc",
    "/api/runs/%2fetc",
    "/api/runs/..",
    "/api/runs/%00",
    "/api/runs/one/evaluations/..%2f..%2ffleet",
    "/api/runs/one/evaluations/%2fetc%2fpasswd",
    "/api/runs/one/fights/..%2f..%2fsecret",
    "/api/runs/one%2f..%2ftwo",
    "/api/runs/one/../../secret",
]


def test_paths_that_try_to_climb(serve_folder, root):
    (root.parent / "secret").write_text("hush")
    served = serve_folder(root)
    for path in TRICKS:
        place = http.client.HTTPConnection(served.url.removeprefix("http://"), timeout=LIMIT_S)
        place.request("GET", path)
        answer = place.getresponse()
        body = answer.read()
        assert answer.status in (400, 404), path
        for word in (b"hush", b"import", b"root:"):
            assert word not in body, path
        place.close()


def test_what_is_not_even_http(serve_folder, root):
    served = serve_folder(root)
    host, port = served.url.removeprefix("http://").split(":")
    for data in (b"\x16\x03\x01\x00\n\n", b"GET / HTTP/1.1\r\nHost: a\r\nHost: 127.0.0.1\r\n\r\n", b"A" * 100_000):
        with socket.create_connection((host, int(port)), timeout=LIMIT_S) as line:
            try:
                line.sendall(data)
                answer = line.recv(200)
            except ConnectionError:
                continue
            assert b" 200 " not in answer
    assert served.get("/healthz") == b"ok"


def test_every_answer_has_its_headers(client):
    for path in ("/", "/static/main.js", "/api/runs", "/nothing", "/metrics"):
        headers = client.get(path).headers
        assert "default-src 'self'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["x-frame-options"] == "DENY"


def test_other_sites_may_read_nothing(client):
    headers = client.get("/api/runs", headers={"origin": "http://evil.example"}).headers
    assert not [name for name in headers if name.startswith("access-control")]
    assert headers["cross-origin-resource-policy"] == "same-origin"


def test_passwords_of_the_fleet_stay_where_they_are(client, root):
    import json

    values = {"run": "x", "admin": "redis://admin:hush@127.0.0.1:1", "advertised": "redis://127.0.0.1:1", "ca": "",
              "own": False, "host": "", "advertise": "", "generation": 1, "passwords": {"friend": "hush"}}  # fmt: skip
    (root / "one" / "fleet.json").write_text(json.dumps(values))
    for path in ("/api/runs", "/api/runs/one", "/api/runs/one/fleet", "/metrics"):
        answer = client.get(path)
        assert answer.status_code == 200
        assert "hush" not in answer.text
