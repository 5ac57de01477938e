"""A Hugging Face Hub on this machine: as much of its HTTP API as uploading and fetching a model repository needs."""

import base64
import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

TOKEN = "hf_right"
BINARY = (".npz", ".safetensors")


class FakeHub:
    """Repositories as dicts from place to content; `requests` are the paths that were asked for."""

    def __init__(self):
        self.repos, self.objects, self.requests = {}, {}, []
        self.fail_with = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"hub": self}))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()


def commit_of(files):
    return hashlib.sha1(b"".join(name.encode() + data for name, data in sorted(files.items()))).hexdigest()


class Handler(BaseHTTPRequestHandler):
    """One request; a path that is not known is answered with 404."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def __getattr__(self, name):
        if name.startswith("do_"):  # of any method
            return self._answer
        raise AttributeError(name)

    def _answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = unquote(urlsplit(self.path).path)
        self.hub.requests.append(f"{self.command} {path}")
        if self.hub.fail_with:
            self._send(self.hub.fail_with, {"error": "broken"})
            return
        for method, pattern, function in ROUTES:
            found = re.fullmatch(pattern, path)
            if found and method == self.command.replace("HEAD", "GET"):
                if (
                    method != "GET"
                    and self.headers.get("Authorization") != f"Bearer {TOKEN}"
                    and "/objects/" not in path
                ):
                    self._send(401, {"error": "no token"})
                else:
                    function(self, body, *found.groups())
                return
        self._send(404, {"error": "not found"}, {"X-Error-Code": "RepoNotFound"})

    def _send(self, status, content, headers=()):
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in dict(headers).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def create(self, body):
        asked = json.loads(body)
        name = f"{asked['organization']}/{asked['name']}" if asked.get("organization") else asked["name"]
        if name in self.hub.repos:
            self._send(409, {"url": f"{self.hub.url}/{name}"})
            return
        self.hub.repos[name] = {".gitattributes": b"*.npz filter=lfs\n"}
        self._send(200, {"url": f"{self.hub.url}/{name}", "id": name})

    def info(self, body, repo, revision=None):
        if repo not in self.hub.repos:
            self._send(404, {"error": "Repository not found"}, {"X-Error-Code": "RepoNotFound"})
        elif revision not in (None, "main", commit_of(self.hub.repos[repo])):
            self._send(404, {"error": "no revision"}, {"X-Error-Code": "RevisionNotFound"})
        else:
            files = self.hub.repos[repo]
            siblings = [{"rfilename": name, "size": len(data)} for name, data in files.items()]
            self._send(200, {"id": repo, "modelId": repo, "sha": commit_of(files), "private": False, "tags": [],
                             "downloads": 0, "likes": 0, "siblings": siblings})  # fmt: skip

    def tree(self, body, repo, revision):
        files = self.hub.repos.get(repo, {})
        self._send(200, [{"type": "file", "path": name, "size": len(data), "oid": hashlib.sha1(data).hexdigest()}
                         for name, data in files.items()])  # fmt: skip

    def validate(self, body):
        good = json.loads(body)["content"].startswith("---\n")
        self._send(200 if good else 400, {"errors": [] if good else [{"message": "no header"}], "warnings": []})

    def preupload(self, body, repo, revision):
        files = [
            {"path": file["path"], "uploadMode": "lfs" if file["path"].endswith(BINARY) else "regular",
             "shouldIgnore": False, "oid": None}
            for file in json.loads(body)["files"]
        ]  # fmt: skip
        self._send(200, {"files": files})

    def batch(self, body, repo):
        objects = [
            {"oid": each["oid"], "size": each["size"],
             "actions": {"upload": {"href": f"{self.hub.url}/objects/{each['oid']}"}}}
            for each in json.loads(body)["objects"]
        ]  # fmt: skip
        self._send(200, {"transfer": "basic", "objects": objects}, {"Content-Type": "application/vnd.git-lfs+json"})

    def put(self, body, oid):
        assert hashlib.sha256(body).hexdigest() == oid
        self.hub.objects[oid] = body
        self._send(200, {})

    def commit(self, body, repo, revision):
        files = self.hub.repos[repo]
        for line in body.decode().splitlines():
            entry = json.loads(line)
            value = entry["value"]
            if entry["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif entry["key"] == "lfsFile":
                files[value["path"]] = self.hub.objects[value["oid"]]
            elif entry["key"] == "deletedFile":
                files.pop(value["path"])
        oid = commit_of(files)
        self._send(200, {"success": True, "commitOid": oid, "commitUrl": f"{self.hub.url}/{repo}/commit/{oid}"})

    def resolve(self, body, repo, revision, name):
        data = self.hub.repos.get(repo, {}).get(name)
        if data is None:
            self._send(404, {"error": "no file"}, {"X-Error-Code": "EntryNotFound"})
        else:
            etag = hashlib.sha256(data).hexdigest()
            self._send(200, data, {"ETag": f'"{etag}"', "X-Repo-Commit": revision})


REPO = r"([\w.-]+/[\w.-]+)"
ROUTES = (
    ("POST", "/api/repos/create", Handler.create),
    ("GET", f"/api/models/{REPO}", Handler.info),
    ("GET", rf"/api/models/{REPO}/revision/(\w+)", Handler.info),
    ("GET", rf"/api/models/{REPO}/tree/(\w+)", Handler.tree),
    ("POST", rf"/api/models/{REPO}/preupload/(\w+)", Handler.preupload),
    ("POST", "/api/validate-yaml", Handler.validate),
    ("POST", rf"/{REPO}\.git/info/lfs/objects/batch", Handler.batch),
    ("PUT", r"/objects/(\w+)", Handler.put),
    ("POST", rf"/api/models/{REPO}/commit/(\w+)", Handler.commit),
    ("GET", rf"/{REPO}/resolve/(\w+)/(.+)", Handler.resolve),
)
