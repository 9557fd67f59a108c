#!/usr/bin/env python3
"""Starts a server and has Schemathesis try every operation of its document, as a player and as nobody.

    tests/schemathesis/run.py [EXAMPLES]

EXAMPLES is for each operation; 30 unless it is said. TAVOLA is the server's binary (target/debug/tavola), ARGS are more arguments
for Schemathesis, AS=player or AS=nobody does only one of the two runs. Needs what requirements.txt lists; `make schemathesis` makes
an environment with it. The server has a PostgreSQL of its own, which is gone afterwards. The exit status is not 0 if anything
was found.
"""

import json
import os
import pathlib
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def start(directory, port, *arguments):
    """A server without limits, ready."""
    binary = os.environ.get("TAVOLA", str(ROOT / "target/debug/tavola"))
    environment = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    environment["TAVOLA_ADDR"] = f"127.0.0.1:{port}"
    for name in ("TOKEN", "ADDRESS", "MOVES", "REGISTRATIONS"):
        environment[f"TAVOLA_LIMIT_{name}"] = "0"
    log = open(directory / "server.log", "a")
    command = [binary, "serve", "--data-dir", str(directory / "data"), *arguments]
    server = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if server.poll() is not None:
            sys.exit("the server has ended:\n" + (directory / "server.log").read_text())
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5).read()
            return server
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    sys.exit("the server is not ready after a minute")


def stop(server):
    server.send_signal(signal.SIGTERM)
    server.wait(60)


def furnish(hooks):
    """A player with games in every state, so that what is tried gets beyond 404. The player's token, its id, and ids by kind."""

    def done(method, path, body, token):
        status, answer = hooks.ask(method, path, body, token)
        if status >= 400:
            sys.exit(f"{method} {path}: {answer}")
        return answer

    def player(name):
        answer = done("POST", "/v1/players", {"name": name}, None)
        return answer["player"]["id"], answer["token"]

    (me, token), (peer, other), (third, _) = player("Ada"), player("Bob"), player("Cleo")
    slugs = [ruleset["slug"] for ruleset in done("GET", "/v1/rulesets", None, None)["items"]]
    games, codes = [], []

    def game(owner, **new):
        answer = done("POST", "/v1/games", new, owner)
        games.append(answer["id"])
        return answer

    for slug in slugs:
        # Open, one's own and another's; private; going on; over.
        game(token, ruleset=slug)
        game(other, ruleset=slug)
        codes.append(game(token, ruleset=slug, visibility="private", seats=2)["invite"])
        codes.append(game(other, ruleset=slug, visibility="private", seats=2)["invite"])
        for resigns in (False, False, True):
            active = game(token, ruleset=slug, seats=2, rated=resigns)["id"]
            done("POST", f"/v1/games/{active}/seats", {}, other)
            for _ in range(4):
                mover = token if done("GET", f"/v1/games/{active}/legal-moves", None, token)["moves"] else other
                legal = done("GET", f"/v1/games/{active}/legal-moves", None, mover)["moves"]
                done("POST", f"/v1/games/{active}/moves", legal[0], mover)
            if resigns:
                done("POST", f"/v1/games/{active}/resignation", None, other)
    inviting = game(other, ruleset=slugs[0])["id"]
    done("POST", f"/v1/games/{inviting}/invitations", {"player": me}, other)
    own = done("GET", "/v1/me/token", None, token)["id"]
    tokens = [done("POST", "/v1/me/tokens", {"name": "spare", "scopes": ["read"]}, token)["id"] for _ in range(10)]
    addresses = [f"https://127.0.0.1:9/{number}" for number in range(9)]
    webhooks = [done("POST", "/v1/me/webhooks", {"url": url}, token)["id"] for url in addresses]
    delivery = done("POST", f"/v1/me/webhooks/{webhooks[0]}/ping", None, token)["id"]
    words = {"names": ["Ada", "Bob"], "problems": ["illegal-move", "not-found"], "numbers": [0, 1, 2, 3]}
    kinds = {"games": games, "players": [me, peer, third], "codes": codes, "tokens": tokens, "webhooks": webhooks}
    return token, own, {**kinds, "deliveries": [delivery], **words}


def configuration(ids):
    """Which values of parameters are tried besides made-up ones."""
    text = (HERE / "schemathesis.toml").read_text()
    dictionaries = "".join(
        # An array of texts and numbers is written alike in JSON and TOML.
        f"[dictionaries.{name}]\nvalues = {json.dumps(values)}\n"
        for name, values in ids.items()
    )
    return text + "\n" + dictionaries


def main():
    examples = sys.argv[1] if len(sys.argv) > 1 else "30"
    directory = pathlib.Path(tempfile.mkdtemp(prefix="tavola-schemathesis-"))
    # PostgreSQL does not run as root: then it is another account that has to get in.
    directory.chmod(0o711)
    port = free_port()
    # Only here is an address of this machine allowed to a webhook. The server that is tried sends nothing to anywhere.
    server = start(directory, port, "--allow-private-webhooks")
    failed = []
    try:
        os.environ["TAVOLA_BASE"] = f"http://127.0.0.1:{port}"
        sys.path.insert(0, str(HERE))
        import hooks

        token, own, ids = furnish(hooks)
        stop(server)
        server = start(directory, port)
        (directory / "schemathesis.toml").write_text(configuration(ids))
        for who in os.environ.get("AS", "player nobody").split():
            environment = {**os.environ, "PYTHONPATH": str(HERE), "SCHEMATHESIS_HOOKS": "hooks"}
            if who == "player":
                environment |= {"TAVOLA_TOKEN": token, "TAVOLA_TOKEN_ID": own, "TAVOLA_WEBHOOK_ID": ids["webhooks"][0]}
            command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(directory / "schemathesis.toml")]
            command += ["run", f"http://127.0.0.1:{port}/openapi.json", "--max-examples", examples]
            command += shlex.split(os.environ.get("ARGS", ""))
            print(f"== as {who}", flush=True)
            if subprocess.run(command, env=environment, cwd=directory).returncode != 0:
                failed.append(who)
    finally:
        stop(server)
        log = (directory / "server.log").read_text()
        shutil.rmtree(directory)
    errors = [line for line in log.splitlines() if "ERROR" in line]
    if errors:
        print("the server's log has errors:", *errors[:20], sep="\n")
    sys.exit(1 if failed or errors else 0)


if __name__ == "__main__":
    main()
