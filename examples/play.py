#!/usr/bin/env python3
"""Plays a whole game between random players over HTTP; needs nothing but Python 3.8.

    examples/play.py [--url http://127.0.0.1:8080] [--seats 2] [--seed 1] RULESET

Prints the game's id, its length and its outcome. Every move is sent with If-Match and an Idempotency-Key, as a client should,
and what is too much for the server's limits waits for as long as it says.
"""

import argparse
import json
import random
import sys
import time
import urllib.error
import urllib.request
import uuid


def call(url, method, path, token=None, body=None, headers=None):
    """One request; answers the status and the JSON body. Asked too much, the server says when to come again (429)."""
    request = urllib.request.Request(url + path, method=method, headers=dict(headers or {}))
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    if body is not None:
        request.add_header("Content-Type", "application/json")
        request.data = json.dumps(body).encode()
    while True:
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code != 429:
                return error.code, json.load(error)
            time.sleep(int(error.headers["Retry-After"]))


def must(expected, answer):
    """The body of an answer that has the expected status; anything else ends the program."""
    status, body = answer
    if status != expected:
        sys.exit(f"expected {expected}, got {status}: {json.dumps(body, ensure_ascii=False)}")
    return body


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("ruleset")
    arguments.add_argument("--url", default="http://127.0.0.1:8080")
    arguments.add_argument("--seats", type=int, default=2)
    arguments.add_argument("--options", type=json.loads, default={})
    arguments.add_argument("--seed", type=int)
    given = arguments.parse_args()
    chance = random.Random(given.seed)

    tokens = []
    for seat in range(given.seats):
        name = f"player-{uuid.uuid4().hex[:12]}"
        tokens.append(must(201, call(given.url, "POST", "/v1/players", body={"name": name, "kind": "bot"}))["token"])
    wanted = {"ruleset": given.ruleset, "seats": given.seats, "options": given.options}
    game = must(201, call(given.url, "POST", "/v1/games", tokens[0], wanted))
    path = f"/v1/games/{game['id']}"
    for token in tokens[1:]:
        game = must(201, call(given.url, "POST", path + "/seats", token, {}))

    while game["status"] == "active":
        token = tokens[game["to_move"]["seat"]]
        legal = must(200, call(given.url, "GET", path + "/legal-moves", token))
        headers = {"If-Match": f'"{legal["version"]}"', "Idempotency-Key": str(uuid.uuid4())}
        game = must(201, call(given.url, "POST", path + "/moves", token, chance.choice(legal["moves"]), headers))["game"]

    print(game["id"], game["status"], f"{game['moves_count']} moves", json.dumps(game["outcome"]))


if __name__ == "__main__":
    main()
