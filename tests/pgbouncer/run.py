#!/usr/bin/env python3
"""Runs servers behind a real PgBouncer: with pool_mode = session they have to work, streams of events from server to server
included; with transaction and statement they have to refuse to start and say why. Needs Python 3.8, `pgbouncer` and an empty
database in DATABASE_URL: `make pgbouncer`.

    cargo run --bin testdb -- python3 tests/pgbouncer/run.py

The exit status is 0 if all holds.
"""

import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BINARY = os.environ.get("TAVOLA", os.path.join(ROOT, "target/debug/tavola"))
# How often each way to mix sessions up is tried: what is noticed by luck would slip through now and then.
TRIES = 5


def free_port():
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def listens(port):
    """Whether somebody listens there."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_for(what, holds, seconds=30.0):
    """Waits until something holds."""
    until = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > until:
            sys.exit(f"FAILED: {what} took longer than {seconds} s")
        time.sleep(0.02)


class PgBouncer:
    """A pooler before the database of DATABASE_URL."""

    def __init__(self, **settings):
        database = urllib.parse.urlsplit(os.environ["DATABASE_URL"])
        host = urllib.parse.parse_qs(database.query).get("host", [database.hostname])[0]
        port = database.port or 5432
        self.port = free_port()
        self.folder = tempfile.mkdtemp(prefix="tavola-pgbouncer-")
        lines = ["[databases]", f"tavola = host={host} port={port} dbname={database.path[1:]} user={database.username}", "[pgbouncer]"]
        settings = {
            "listen_addr": "127.0.0.1", "listen_port": self.port, "unix_socket_dir": "", "auth_type": "any",
            "ignore_startup_parameters": "extra_float_digits", "logfile": f"{self.folder}/log", **settings,
        }
        lines += [f"{name} = {value}" for name, value in settings.items()]
        with open(f"{self.folder}/ini", "w") as file:
            file.write("\n".join(lines) + "\n")
        command = ["pgbouncer", "-q", f"{self.folder}/ini"]
        if os.geteuid() == 0:
            # It does not run as root; the cluster's sockets are for the account that runs that.
            owner = os.stat(host).st_uid if host.startswith("/") else pwd.getpwnam("nobody").pw_uid
            shutil.chown(self.folder, owner)
            command += ["-u", pwd.getpwuid(owner).pw_name]
        self.process = subprocess.Popen(command)
        wait_for("the start of PgBouncer", lambda: listens(self.port))
        self.url = f"postgres://tavola@127.0.0.1:{self.port}/tavola"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder)


class Server:
    """A server behind a pooler."""

    def __init__(self, url):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        environment = {**os.environ, "DATABASE_URL": url, "TAVOLA_ADDR": f"127.0.0.1:{self.port}", "TAVOLA_LOG": "warn"}
        self.process = subprocess.Popen([BINARY], env=environment, stdout=subprocess.DEVNULL)
        wait_for("the start of a server", lambda: self.process.poll() is not None or listens(self.port))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=10)

    def call(self, method, path, token=None, body=None):
        """One request that has to succeed; its JSON."""
        headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)


def check(what, holds):
    """Says what was checked, and ends if it does not hold."""
    print(f"{'ok' if holds else 'FAILED'}: {what}", flush=True)
    if not holds:
        sys.exit(1)


def works():
    """Two servers behind session pooling: whole games, and an event that goes from one to the other."""
    with PgBouncer(pool_mode="session", default_pool_size=60) as pooler, Server(pooler.url) as one, Server(pooler.url) as other:
        for ruleset in ("leonardo", "quintis-fontis", "leopard", "siggil"):
            played = subprocess.run([sys.executable, f"{ROOT}/examples/play.py", "--url", one.url, ruleset], stdout=subprocess.DEVNULL)
            check(f"session: a whole game of {ruleset}", played.returncode == 0)
        token = one.call("POST", "/v1/players", body={"name": f"Ada {os.getpid()}"})["token"]
        game = one.call("POST", "/v1/games", token, {"ruleset": "siggil", "seats": 1})["id"]
        request = urllib.request.Request(f"{other.url}/v1/games/{game}/events", headers={"Accept": "application/x-ndjson"})
        with urllib.request.urlopen(request, timeout=10) as stream:
            check("session: a stream at the other server begins", json.loads(stream.readline())["type"] == "snapshot")
            waits = []
            for _ in range(5):
                move = one.call("GET", f"/v1/games/{game}/legal-moves", token)["moves"][0]
                one.call("POST", f"/v1/games/{game}/moves", token, move)
                begun = time.monotonic()
                while json.loads(stream.readline() or "null")["type"] != "move_played":
                    pass
                waits.append(time.monotonic() - begun)
        # Without LISTEN it would look every five seconds, so that five in a row would take longer.
        check(f"session: it hears of moves by LISTEN, after {max(waits) * 1000:.0f} ms at most", sum(waits) < 2.5)


def refused(**settings):
    """Servers behind a pooler that keeps no sessions do not start."""
    with PgBouncer(**settings) as pooler:
        for _ in range(TRIES):
            environment = {**os.environ, "DATABASE_URL": pooler.url, "TAVOLA_ADDR": "127.0.0.1:0"}
            try:
                ended = subprocess.run([BINARY], env=environment, capture_output=True, text=True, timeout=10)
            except subprocess.TimeoutExpired:
                check(f"{settings}: refused (it runs)", False)
            if ended.returncode != 1 or "does not keep sessions" not in ended.stderr:
                check(f"{settings}: refused (status {ended.returncode}: {ended.stderr})", False)
        check(f"{settings}: refused {TRIES} times", True)


def main():
    works()
    for mode in ("transaction", "statement"):
        for robin in (0, 1):
            for size in (1, 2, 10):
                refused(pool_mode=mode, server_round_robin=robin, default_pool_size=size, min_pool_size=size)


main()
