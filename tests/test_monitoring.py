"""Prometheus and Grafana for runs: their files, checked by the real promtool and a real Prometheus with a real run."""

import contextlib
import itertools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from soulsai.telemetry.metrics import METRICS, RUN_METRICS
from soulsai.telemetry.prometheus import CONTENT_TYPE, RunReading, exposition

MONITORING = Path(__file__).parents[1] / "deploy" / "monitoring"
SERVER = MONITORING.parent / "server"
GRAFANA = MONITORING / "grafana"
DASHBOARDS = sorted(GRAFANA.glob("*.json"))
DECLARED = {each.prometheus: each for each in (METRICS | RUN_METRICS).values()}
SOULS = [sys.executable, "-c", "from soulsai.cli.main import main; main()"]
VARIABLES = {"$run": ".+", "$__rate_interval": "30s"}
OFTEN = {"scrape_interval": "2s", "scrape_timeout": "2s", "evaluation_interval": "2s"}
LIMIT_S = 240.0

needs_promtool = pytest.mark.skipif(
    not shutil.which("promtool"), reason="promtool is not installed (Debian: apt install prometheus)"
)
needs_prometheus = pytest.mark.skipif(
    not shutil.which("prometheus"), reason="prometheus is not installed (Debian: apt install prometheus)"
)


def board(file):
    return json.loads(file.read_text(encoding="utf-8"))


def panels(file):
    return board(file)["panels"]


def expressions(file):
    """All queries of a dashboard, with the title of their panel."""
    return [(panel["title"], target["expr"]) for panel in panels(file) for target in panel.get("targets", ())]


def rules():
    groups = yaml.safe_load((MONITORING / "alerts.yml").read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def names_in(expression):
    """The names of our metrics in an expression."""
    return set(re.findall(r"\bsouls_[a-zA-Z0-9_]+", re.sub(r'"[^"]*"', "", expression)))


def filled(expression):
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    assert "$" not in expression
    return expression


ALL = [
    pytest.param(expression, id=f"{file.stem}: {title} {number}")
    for file in DASHBOARDS
    for number, (title, expression) in enumerate(expressions(file))
]


# ---- The files


def test_there_is_something_to_check():
    assert [file.name for file in DASHBOARDS] == ["fleet-health.json", "training.json"]
    assert len(ALL) > 50
    assert len(rules()) >= 5


@pytest.mark.parametrize("file", DASHBOARDS, ids=lambda file: file.stem)
def test_panels_have_ids_of_their_own_and_do_not_overlap(file):
    found = panels(file)
    assert len({panel["id"] for panel in found}) == len(found)
    taken = {}
    for panel in found:
        place = panel["gridPos"]
        assert place["x"] >= 0
        assert place["w"] > 0
        assert place["x"] + place["w"] <= 24
        cells = itertools.product(
            range(place["x"], place["x"] + place["w"]), range(place["y"], place["y"] + place["h"])
        )
        for cell in cells:
            assert cell not in taken, f"{panel['title']} lies on {taken[cell]}"
            taken[cell] = panel["title"]


@pytest.mark.parametrize("file", DASHBOARDS, ids=lambda file: file.stem)
def test_panels_say_what_they_show_and_where_it_comes_from(file):
    source = yaml.safe_load((GRAFANA / "datasource.yaml").read_text())["datasources"][0]
    (variable,) = board(file)["templating"]["list"]
    assert variable["datasource"]["uid"] == source["uid"]
    assert names_in(variable["query"]["query"]) <= DECLARED.keys()
    for panel in panels(file):
        assert panel["title"]
        if panel["type"] == "row":
            continue
        assert panel["description"]
        assert panel["fieldConfig"]["defaults"]["unit"]
        assert panel["datasource"] == {"type": "prometheus", "uid": source["uid"]}
        assert panel["targets"]
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
        assert all(target["datasource"]["uid"] == source["uid"] for target in panel["targets"])
        assert all('run=~"$run"' in target["expr"] for target in panel["targets"])


def test_dashboards_tell_each_other_apart():
    boards = [board(file) for file in DASHBOARDS]
    assert len({each["uid"] for each in boards}) == len({each["title"] for each in boards}) == len(boards)


@pytest.mark.parametrize("expression", ALL)
def test_dashboards_use_declared_metrics_and_labels(expression):
    assert names_in(expression)
    for name in names_in(expression):
        assert name in DECLARED
    for name, inside in re.findall(r"\b(souls_\w+)\{([^}]*)\}", expression):
        assert set(re.findall(r"(\w+)\s*[=!]~?", inside)) <= set(DECLARED[name].prometheus_labels)


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_alerts_use_declared_metrics_and_say_what_to_do(rule):
    assert names_in(rule["expr"]) or rule["expr"].startswith("up{")
    assert names_in(rule["expr"]) <= DECLARED.keys()
    assert rule["annotations"]["summary"]
    assert rule["annotations"]["description"]
    assert rule["labels"]["severity"] in ("warning", "critical")


def test_every_metric_has_a_place_on_a_dashboard():
    shown = {name for file in DASHBOARDS for _, expression in expressions(file) for name in names_in(expression)}
    assert DECLARED.keys() <= shown


def test_provisioned_files_are_where_grafana_looks():
    compose = yaml.safe_load((MONITORING / "compose.yaml").read_text())["services"]["grafana"]["volumes"]
    places = dict(text.split(":")[:2] for text in compose)
    (provider,) = yaml.safe_load((GRAFANA / "dashboards.yaml").read_text())["providers"]
    for file in DASHBOARDS:
        assert places[f"./grafana/{file.name}"] == f"{provider['options']['path']}/{file.name}"
    assert places["./grafana/datasource.yaml"].startswith("/etc/grafana/provisioning/datasources/")
    assert places["./grafana/dashboards.yaml"].startswith("/etc/grafana/provisioning/dashboards/")


def test_the_server_for_friends_shows_the_same_files():
    services = yaml.safe_load((SERVER / "compose.yaml").read_text())["services"]
    places = {}
    for name in ("prometheus", "grafana"):
        for source, target, *mode in (text.split(":") for text in services[name]["volumes"]):
            if source.startswith("../"):
                assert mode == ["ro"]
                places[(SERVER / source).resolve()] = target
    (provider,) = yaml.safe_load((GRAFANA / "dashboards.yaml").read_text())["providers"]
    for file in DASHBOARDS:
        assert places.pop(file) == f"{provider['options']['path']}/{file.name}"
    assert places.pop(GRAFANA / "dashboards.yaml").startswith("/etc/grafana/provisioning/dashboards/")
    assert places.pop(MONITORING / "alerts.yml") == "/etc/prometheus/alerts.yml"
    assert places == {}
    assert list(SERVER.rglob("*.json")) == [] or (SERVER / "state").exists()  # no copies of the dashboards
    home = services["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert home == f"{provider['options']['path']}/training.json"
    ours, theirs = (
        yaml.safe_load((folder / "datasource.yaml").read_text()) for folder in (GRAFANA, SERVER / "grafana")
    )
    (ours,), (theirs,) = ours["datasources"], theirs["datasources"]
    assert theirs["uid"] == ours["uid"]
    assert theirs["url"] == "http://prometheus:9090"
    config = yaml.safe_load((SERVER / "prometheus.yaml").read_text())
    assert theirs["jsonData"]["timeInterval"] == config["global"]["scrape_interval"]


def test_the_server_for_friends_asks_its_page_with_the_token():
    compose = yaml.safe_load((SERVER / "compose.yaml").read_text())
    config = yaml.safe_load((SERVER / "prometheus.yaml").read_text())
    jobs = {job["job_name"]: job for job in config["scrape_configs"]}
    (target,) = jobs["souls"]["static_configs"][0]["targets"]
    name, port = target.split(":")
    page = compose["services"][name]
    assert page["command"][-2:] == ["--port", port]
    token = jobs["souls"]["authorization"]["credentials_file"]
    assert token == page["environment"]["PAGE_TOKEN_FILE"]
    assert Path(token).name in compose["services"]["prometheus"]["secrets"]
    for job in jobs.values():
        (target,) = job["static_configs"][0]["targets"]
        assert target.split(":")[0] in compose["services"].keys() | {"localhost"}


def test_the_containers_listen_on_this_machine_only():
    services = yaml.safe_load((MONITORING / "compose.yaml").read_text())["services"]
    assert "--web.listen-address=127.0.0.1:9090" in services["prometheus"]["command"]
    assert services["grafana"]["environment"]["GF_SERVER_HTTP_ADDR"] == "127.0.0.1"
    source = yaml.safe_load((GRAFANA / "datasource.yaml").read_text())["datasources"][0]
    assert source["url"] == "http://127.0.0.1:9090"
    for service in services.values():
        assert "ports" not in service
        data = [text for text in service["volumes"] if not text.endswith(":ro")]
        assert all(text.startswith("./state/") for text in data)


def test_prepare_makes_a_password_that_only_its_owner_reads_and_overwrites_nothing(tmp_path):
    def prepare():
        return subprocess.run(
            [MONITORING / "prepare.sh"],
            env=os.environ | {"SOULS_STATE": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=60,
        )

    done = prepare()
    assert done.returncode == 0, done.stderr
    secret = tmp_path / "state" / "secrets" / "grafana_admin"
    assert re.fullmatch(r"[0-9a-f]{64}", secret.read_text())
    assert secret.read_text() not in done.stdout + done.stderr
    assert secret.stat().st_mode & 0o077 == 0
    compose = yaml.safe_load((MONITORING / "compose.yaml").read_text())
    sources = [text.split(":")[0] for service in compose["services"].values() for text in service["volumes"]]
    sources += [entry["file"] for entry in compose["secrets"].values()]
    for source in sources:
        assert ((tmp_path if source.startswith("./state/") else MONITORING) / source).exists()
    again = prepare()
    assert again.returncode == 1
    assert "never overwritten" in again.stderr


def test_the_readme_names_files_and_commands_that_exist():
    text = (MONITORING / "README.md").read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s#]+)\)", text):
        assert target.startswith("http") or (MONITORING / target).exists()
    blocks = re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(blocks[0].strip().splitlines()) == 3  # Grafana in three commands
    for name in re.findall(r"(?:^|\s)((?:grafana/)?[\w*-]+\.(?:ya?ml|json|sh))\b", "\n".join(blocks)):
        assert list(MONITORING.glob(name)), name


# ---- promtool


def promtool(*words, folder=MONITORING):
    return subprocess.run(["promtool", *map(str, words)], capture_output=True, text=True, timeout=LIMIT_S, cwd=folder)


def copied(folder):
    for name in ("prometheus.yml", "alerts.yml", "alerts_test.yml"):
        shutil.copy(MONITORING / name, folder / name)


@needs_promtool
def test_the_config_and_the_rules_are_valid():
    done = promtool("check", "config", "prometheus.yml")
    assert done.returncode == 0, done.stderr
    assert f"{len(rules())} rules found" in done.stdout
    assert promtool("check", "rules", "alerts.yml").returncode == 0


@needs_promtool
def test_the_variant_with_a_token_is_valid(tmp_path):
    copied(tmp_path)
    text = (tmp_path / "prometheus.yml").read_text()
    with_token = re.sub(r"^  # (- job_name|  )", r"  \1", text, flags=re.MULTILINE)
    assert with_token != text
    (tmp_path / "prometheus.yml").write_text(with_token)
    jobs = {job["job_name"]: job for job in yaml.safe_load(with_token)["scrape_configs"]}
    token = tmp_path / jobs["souls-elsewhere"]["authorization"]["credentials_file"]
    assert promtool("check", "config", "prometheus.yml", folder=tmp_path).returncode != 0  # there is no token yet
    token.write_text("token")
    assert promtool("check", "config", "prometheus.yml", folder=tmp_path).returncode == 0


def server_config(folder, token):
    """The config of the server for friends, its files in a folder of this machine."""
    shutil.copy(MONITORING / "alerts.yml", folder / "alerts.yml")
    (folder / "page_token").write_text(token)
    text = (SERVER / "prometheus.yaml").read_text()
    assert text.count("/run/secrets/") == 1
    return yaml.safe_load(text.replace("/run/secrets/", f"{folder}/"))


@needs_promtool
def test_the_config_of_the_server_for_friends_is_valid(tmp_path):
    config = server_config(tmp_path, "token")
    (tmp_path / "prometheus.yaml").write_text(yaml.safe_dump(config))
    done = promtool("check", "config", "prometheus.yaml", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"{len(rules())} rules found" in done.stdout
    for name in ("alerts.yml", "page_token"):
        (tmp_path / name).rename(tmp_path / "away")
        assert promtool("check", "config", "prometheus.yaml", folder=tmp_path).returncode != 0
        (tmp_path / "away").rename(tmp_path / name)


@needs_promtool
def test_the_alerts_fire_when_they_should():
    done = promtool("test", "rules", "alerts_test.yml")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@needs_promtool
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("> 0.05", "> 0.2"),
        ('state="silent"', 'state="left"'),
        ("unless on", "and on"),
        ("souls_fleet_workers == 0", "souls_fleet_workers < 0"),
        ("changes(souls_run_steps_total[5m]) == 0", "changes(souls_run_steps_total[5m]) > 100"),
        ('"running|paused"', '"killed"'),
        ("up{job", "1 - up{job"),
        ('state="frozen"', 'state="playing"'),
        ("[30m]) > 3", "[30m]) > 30"),
        ("unreadable_total[10m]) > 0", "unreadable_total[10m]) >= 0"),
        ("> 100", "> 10"),
    ],
)
def test_a_wrong_alert_would_be_noticed(old, new, tmp_path):
    copied(tmp_path)
    text = (tmp_path / "alerts.yml").read_text()
    assert old in text
    (tmp_path / "alerts.yml").write_text(text.replace(old, new))
    assert promtool("test", "rules", "alerts_test.yml", folder=tmp_path).returncode != 0


def test_every_alert_is_tested():
    tests = yaml.safe_load((MONITORING / "alerts_test.yml").read_text())["tests"]
    fired = {case["alertname"] for test in tests for case in test["alert_rule_test"] if case.get("exp_alerts")}
    silent = {case["alertname"] for test in tests for case in test["alert_rule_test"] if not case.get("exp_alerts")}
    assert fired == silent == {rule["alert"] for rule in rules()}


# ---- A real Prometheus, a real run, the real page


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def fetched(url):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=60) as answer:
        return answer.read().decode()


def wait_for(done, what):
    until_s = time.monotonic() + LIMIT_S
    while True:
        with contextlib.suppress(OSError, ValueError):
            if found := done():
                return found
        assert time.monotonic() < until_s, f"{what} did not happen within {LIMIT_S:.0f} s"
        time.sleep(0.2)


@contextlib.contextmanager
def running(words, log, **options):
    """A process that is ended, by its own id, when the block is left."""
    with (
        log.open("wb") as stream,
        subprocess.Popen(words, stdout=stream, stderr=subprocess.STDOUT, **options) as process,
    ):
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()


class Everything(BaseHTTPRequestHandler):
    """A run that has every metric there is, growing from look to look."""

    looks = itertools.count(1)

    def do_GET(self):
        text = exposition([everything(float(next(self.looks)))])
        self.send_response(200)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args):
        pass


def everything(value):
    values = {each.prefix + "some" if each.prefix else name: value for name, each in METRICS.items()}
    worker = dict.fromkeys(
        ("lag", "steps_per_s", "episodes", "seen_s", "restarts", "sent", "stored", "in_flight"), value
    )
    worker |= {"worker": "alice.1.abcdef", "state": "playing", "dropped": {"stale": value}}
    gateway = dict.fromkeys(("connections", "accepted", "bytes", "passed"), value)
    gateway |= {"dropped": {"chunks": value}, "refused": {"silent": value}}
    fleet = {"workers": [worker], "unreadable": {"mallory": value}, "gateway": gateway}
    return RunReading('every"thing\n', "running", int(value), 1000, values, time.time(), fleet)


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory):
    """A Prometheus that has looked several times at the page of a real run, and at a run with every metric."""
    from soulsai.config import config_to_toml, load_preset, with_settings

    home = tmp_path_factory.mktemp("monitoring")
    settings = ["run.steps=100000000", "run.threads=1", "fight.number=8", "network.hidden=[16]", "ppo.minibatch=64",
                "run.evaluate_every_steps=2000", "run.evaluation_fights=3"]  # fmt: skip
    (home / "tiny.toml").write_text(config_to_toml(with_settings(load_preset("smoke"), settings)))
    page, port = free_port(), free_port()
    train = [*SOULS, "train", str(home / "tiny.toml"), "--run", str(home / "runs" / "mine"), "--plain", "--accept-all"]
    with contextlib.ExitStack() as held:
        full = held.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), Everything))
        threading.Thread(target=full.serve_forever, daemon=True).start()
        held.callback(full.shutdown)
        held.enter_context(running(train, home / "train.log"))
        metrics = home / "runs" / "mine" / "metrics.jsonl"
        wait_for(lambda: "win_rate/evaluation" in metrics.read_text(), f"a row of {metrics} with an evaluation")
        dashboard = [*SOULS, "dashboard", str(home / "runs"), "--port", str(page)]
        held.enter_context(running(dashboard, home / "dashboard.log"))
        wait_for(lambda: "souls_policy_kl" in fetched(f"http://127.0.0.1:{page}/metrics"), "the page with the run")

        config = yaml.safe_load((MONITORING / "prometheus.yml").read_text())
        config["global"] |= OFTEN
        config["rule_files"] = [str(MONITORING / "alerts.yml")]
        jobs = {job["job_name"]: job for job in config["scrape_configs"]}
        jobs["souls"]["static_configs"] = [{"targets": [f"127.0.0.1:{page}", f"127.0.0.1:{full.server_port}"]}]
        jobs["prometheus"]["static_configs"] = [{"targets": [f"127.0.0.1:{port}"]}]
        (home / "prometheus.yml").write_text(yaml.safe_dump(config))
        words = [
            "prometheus", f"--config.file={home / 'prometheus.yml'}", f"--storage.tsdb.path={home / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ]  # fmt: skip
        held.enter_context(running(words, home / "prometheus.log"))
        url = f"http://127.0.0.1:{port}"
        wait_for(lambda: len(ask(url, "count_over_time(souls_run_steps_total[1m]) >= 5")) == 2, "five looks at both")
        yield url, f"http://127.0.0.1:{page}/metrics"


def ask(url, expression):
    """The series that an expression gives; an error of Prometheus fails the test."""
    query = urllib.parse.urlencode({"query": expression})
    answer = json.loads(fetched(f"{url}/api/v1/query?{query}"))
    assert answer["status"] == "success", answer
    return answer["data"]["result"]


@needs_prometheus
@pytest.mark.slow
def test_a_real_prometheus_takes_in_the_real_page(prometheus):
    url, page = prometheus

    def told():
        return set(re.findall(r"^# TYPE (souls_\w+) ", fetched(page), re.MULTILINE))

    def known():
        return {series["metric"]["__name__"] for series in ask(url, '{__name__=~"souls_.+", run="mine"}')}

    wait_for(lambda: [series["value"][1] for series in ask(url, "up")] == ["1"] * 3, "all three being up")
    assert {"souls_policy_kl", "souls_reward", "souls_win_rate_evaluation_ratio", "souls_time_ratio"} <= told()
    wait_for(lambda: known() == told(), "all that the page tells being known")
    about = json.loads(fetched(f"{url}/api/v1/targets/metadata?limit=10000"))["data"]
    types = {entry["metric"]: (entry["type"], entry["help"]) for entry in about if entry["metric"] in DECLARED}
    assert types.keys() == DECLARED.keys()
    assert all(types[name][0] == each.kind and types[name][1].startswith(each.text) for name, each in DECLARED.items())


@needs_prometheus
@pytest.mark.slow
def test_the_run_moves_on(prometheus):
    url, _ = prometheus
    (state,) = wait_for(lambda: ask(url, 'souls_run_state{run="mine"}'), "the state")
    assert state["metric"]["state"] == "running"
    wait_for(lambda: ask(url, 'increase(souls_updates_total{run="mine"}[30s]) > 0'), "updates")
    wait_for(lambda: ask(url, 'increase(souls_run_steps_total{run="mine"}[30s]) > 0'), "steps")
    wait_for(lambda: ask(url, 'souls_run_row_age_seconds{run="mine"} < 30'), "a new row")


@needs_prometheus
@pytest.mark.slow
def test_every_query_of_the_dashboards_has_an_answer(prometheus):
    url, page = prometheus
    of_this_run = set(re.findall(r"^# TYPE (souls_\w+) ", fetched(page), re.MULTILINE))
    answered = 0
    for file in DASHBOARDS:
        for title, expression in expressions(file):
            about, asked = f"{file.stem}: {title}: an answer to {expression}", filled(expression)
            wait_for(lambda asked=asked: ask(url, asked), about)
            if names_in(expression) <= of_this_run:
                asked = filled(expression.replace("$run", "mine"))
                wait_for(lambda asked=asked: ask(url, asked), f"{about} for the real run")
                answered += 1
    assert answered > 20


@needs_prometheus
@pytest.mark.slow
def test_all_alerts_are_evaluated_without_an_error(prometheus):
    url, _ = prometheus

    def evaluated():
        groups = json.loads(fetched(f"{url}/api/v1/rules"))["data"]["groups"]
        found = [rule for group in groups for rule in group["rules"]]
        return found if all(rule["health"] != "unknown" for rule in found) else None

    def inactive():
        return {rule["name"] for rule in evaluated() or () if rule["state"] == "inactive"}

    found = wait_for(evaluated, "a look at all rules")
    assert {rule["name"] for rule in found} == {rule["alert"] for rule in rules()}
    assert {rule["health"] for rule in found} == {"ok"}
    assert not any(rule.get("lastError") for rule in found)
    wait_for(lambda: {"SoulsPageDown", "SoulsRunBroken", "SoulsNoWorkers"} <= inactive(), "three that have no cause")


@needs_promtool
@needs_prometheus
@pytest.mark.slow
def test_promtool_has_nothing_to_say_against_the_page(prometheus):
    _, page = prometheus
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=fetched(page), capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@needs_prometheus
@pytest.mark.slow
def test_the_server_for_friends_takes_in_its_page(tmp_path):
    """With the token that both were given, and not with another."""
    token, page, port = "as-made-by-prepare", free_port(), free_port()
    runs = tmp_path / "runs"
    runs.mkdir()
    config = server_config(tmp_path, token)
    config["global"] |= OFTEN
    (friend,) = (job for job in config["scrape_configs"] if job["job_name"] == "souls")
    friend["static_configs"] = [{"targets": [f"127.0.0.1:{page}"]}]
    (tmp_path / "other_token").write_text("another-token")
    text = yaml.safe_dump(friend).replace("page_token", "other_token")
    config["scrape_configs"] = [friend, yaml.safe_load(text) | {"job_name": "stranger"}]
    (tmp_path / "prometheus.yaml").write_text(yaml.safe_dump(config))
    dashboard = [*SOULS, "dashboard", str(runs), "--host", "0.0.0.0", "--port", str(page)]
    words = [
        "prometheus", f"--config.file={tmp_path / 'prometheus.yaml'}", f"--storage.tsdb.path={tmp_path / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]  # fmt: skip
    with (
        running(dashboard, tmp_path / "page.log", env=os.environ | {"SOULS_DASHBOARD_TOKEN": token}),
        running(words, tmp_path / "prometheus.log"),
    ):
        wait_for(lambda: fetched(f"http://127.0.0.1:{page}/healthz") == "ok", "the page")
        url = f"http://127.0.0.1:{port}"
        for job, up in (("souls", 1), ("stranger", 0)):
            asked = f'count_over_time(up{{job="{job}"}}[1m]) > 3 and up == {up}'
            assert wait_for(lambda asked=asked: ask(url, asked), f"looks of {job}")

        def taken_in():
            targets = json.loads(fetched(f"{url}/api/v1/targets"))["data"]["activeTargets"]
            found = {target["labels"]["job"]: target for target in targets}
            stranger = found["stranger"]
            return found["souls"]["health"] == "up" and stranger["health"] == "down" and "401" in stranger["lastError"]

        wait_for(taken_in, "the right answer to both tokens")
