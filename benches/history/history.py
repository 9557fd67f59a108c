#!/usr/bin/env python3
"""What a long history costs: pages by every filter and order, a walk through one player's games, exports, moves.

Usage: history.py TAVOLA SEEDED_URL EMPTY_URL [REPEATS [sizes|moves|pages|walk|exports]…]

TAVOLA is the binary (a release build), the URLs are those of two PostgreSQL databases of one cluster: one filled by
`tavola seed-history`, and an empty one, to compare moves. Prints tables in Markdown. Python's standard library is enough; psql
is asked for what only the database knows.
"""

import hashlib
import http.client
import json
import os
import random
import statistics
import subprocess
import sys
import time

TAVOLA, SEEDED, EMPTY = sys.argv[1:4]
REPEATS = int(sys.argv[4]) if len(sys.argv) > 4 else 20
SORTS = ["created", "-created", "finished", "-finished", "last_move", "-last_move"]
UNLIMITED = {f"TAVOLA_LIMIT_{name}": "0" for name in ["TOKEN", "ADDRESS", "MOVES", "REGISTRATIONS"]}


class Server:
    """A server of its own on a database, until the end of the block."""

    def __init__(self, database, port):
        self.port = port
        environment = {**os.environ, **UNLIMITED, "DATABASE_URL": database, "TAVOLA_ADDR": f"127.0.0.1:{port}"}
        self.process = subprocess.Popen([TAVOLA, "serve"], env=environment, stdout=subprocess.DEVNULL)
        while True:
            try:
                self.connect()
                if self.get("/readyz")[0] == 200:
                    break
            except OSError:
                time.sleep(0.02)

    def connect(self):
        self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        self.connection.connect()

    def ask(self, method, path, body=None, token=None):
        headers = {"Content-Type": "application/json"} if body is not None else {}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        text = json.dumps(body) if body is not None else None
        try:
            self.connection.request(method, path, text, headers)
        except OSError:
            # It was not used for a while, and the server has closed it.
            self.connect()
            self.connection.request(method, path, text, headers)
        answer = self.connection.getresponse()
        return answer.status, answer.read()

    def get(self, path, token=None):
        return self.ask("GET", path, token=token)

    def json(self, method, path, body=None, token=None):
        status, text = self.ask(method, path, body, token)
        assert status < 300, (method, path, status, text[:300])
        return json.loads(text)

    def memory(self):
        """Resident megabytes: now, and the most there ever were."""
        lines = open(f"/proc/{self.process.pid}/status").read().splitlines()
        values = {line.split(":")[0]: int(line.split()[1]) for line in lines if line.startswith(("VmRSS", "VmHWM"))}
        return values["VmRSS"] / 1024, values["VmHWM"] / 1024

    def cpu(self):
        fields = open(f"/proc/{self.process.pid}/stat").read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def psql(database, statement):
    output = subprocess.run(["psql", "-XqtAF", " ", database, "-c", statement], capture_output=True, text=True, check=True)
    return [line.split(" ") for line in output.stdout.strip().splitlines()]


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def filters(server, player, opponent):
    """Every filter by itself and some together, each as a query, with what may be anywhere in time."""
    oldest = server.json("GET", "/v1/games?sort=finished&limit=1&status=finished")["items"][0]["finished_at"]
    newest = server.json("GET", "/v1/games?sort=-finished&limit=1")["items"][0]["finished_at"]
    year = (int(oldest[:4]) + int(newest[:4])) // 2
    middle, late = f"{year}-12-01T00:00:00Z", newest[:10] + "T00:00:00Z"
    queries = ["", "status=finished", "status=aborted", "status=active", "rated=true", "rated=false"]
    queries += [f"ruleset={slug}" for slug in ["leonardo", "quintis-fontis", "leopard", "siggil"]]
    queries += [f"end_reason={reason}" for reason in ["completed", "turn_limit", "resignation", "timeout", "aborted"]]
    queries += ["moves_min=100", "moves_min=1000", "moves_max=3", "moves_min=60&moves_max=61"]
    queries += ["option.hands=12", "option.scoring=2008", "option.turn_limit=20", "option.target_points=20"]
    for name in ["created", "finished", "last_move"]:
        queries += [f"{name}_after={middle}", f"{name}_before={middle}", f"{name}_after={late}"]
        queries += [f"{name}_after={middle}&{name}_before={year}-12-02T00:00:00Z"]
    queries += [f"player={who}" for who in [player, opponent]]
    queries += [f"player={player}&{rest}" for rest in [
        f"opponent={opponent}", "result=won", "result=lost", "result=shared", "status=aborted", "ruleset=siggil",
        "rated=true", "end_reason=timeout", "moves_min=200", "option.hands=12", f"finished_after={late}"]]
    queries += ["ruleset=leopard&option.hands=12&rated=true", "ruleset=siggil&end_reason=timeout&rated=false",
                "ruleset=quintis-fontis&end_reason=resignation", "rated=true&moves_min=200",
                f"ruleset=leonardo&status=finished&created_after={middle}"]
    return queries


def pages(server, player, opponent):
    print("\n### A page of 20, in ms, by filter and order (first pages and pages from within)\n")
    print("| filter | " + " | ".join(SORTS) + " |\n|---|" + "---:|" * len(SORTS))
    every, worst = [], []
    for query in filters(server, player, opponent):
        cells = []
        for sort in SORTS:
            times = []
            path = f"/v1/games?{query}&sort={sort}&limit=20".replace("?&", "?")
            cursor = ""
            for _ in range(REPEATS):
                start = time.perf_counter()
                page = server.json("GET", path + cursor)
                times.append((time.perf_counter() - start) * 1000)
                cursor = f"&cursor={page['next_cursor']}" if page["next_cursor"] else ""
            every += times
            worst.append((percentile(times, 0.95), f"{query or 'all'} {sort}"))
            cells.append(f"{statistics.median(times):.1f} / {percentile(times, 0.95):.1f}")
        print(f"| {(query or 'all').replace(player, 'P').replace(opponent, 'Q')} | " + " | ".join(cells) + " |", flush=True)
    print(f"\nEach cell: median / p95. All {len(every)} pages: median {statistics.median(every):.1f} ms, "
          f"p95 {percentile(every, 0.95):.1f} ms, p99 {percentile(every, 0.99):.1f} ms, longest {max(every):.1f} ms.")
    print("Slowest by p95: " + "; ".join(f"{what.replace(player, 'P').replace(opponent, 'Q')}: {ms:.1f} ms" for ms, what in sorted(worst)[::-1][:8]))


def walk(server, player):
    print("\n### A walk through all games of one player\n")
    for sort in ["-created", "finished", "-last_move"]:
        times, seen, cursor = [], [], ""
        while True:
            start = time.perf_counter()
            page = server.json("GET", f"/v1/games?player={player}&sort={sort}&limit=100{cursor}")
            times.append((time.perf_counter() - start) * 1000)
            seen += [game["id"] for game in page["items"]]
            if not page["next_cursor"]:
                break
            cursor = f"&cursor={page['next_cursor']}"
        expected = {row[0] for row in psql(SEEDED, f"select g.id from seats s join games g on g.id = s.game_id "
                                                   f"where s.player_id = '{player}' and g.visibility = 'public'")}
        assert set(seen) == expected and len(seen) == len(expected)
        print(f"- `sort={sort}`: {len(seen)} games, each once, in {len(times)} pages of 100: median {statistics.median(times):.1f} ms, "
              f"p95 {percentile(times, 0.95):.1f} ms a page, {sum(times) / 1000:.1f} s in all", flush=True)


def read_export(server, query, stop_after=None):
    """The bytes of an export, as many as are wanted; the seconds until the first, and in all."""
    server.connect()
    start = time.perf_counter()
    server.connection.request("GET", f"/v1/games/export?{query}")
    answer = server.connection.getresponse()
    assert answer.status == 200, answer.read()
    parts, first = [], None
    while True:
        part = answer.read1(1 << 16)
        first = first or time.perf_counter() - start
        if not part:
            break
        parts.append(part)
        if stop_after and sum(map(len, parts)) > stop_after:
            break
    seconds = time.perf_counter() - start
    server.connect()
    return b"".join(parts), first, seconds


def checked(text):
    """The records of an export, if its trailer fits them."""
    body, trailer = text[:text[:-1].rfind(b"\n") + 1], json.loads(text[text[:-1].rfind(b"\n") + 1:])
    lines = body.splitlines(keepends=True)
    assert trailer["format"] == "tavola-export-trailer/1" and trailer["count"] == len(lines)
    assert trailer["sha256"] == hashlib.sha256(body).hexdigest()
    return lines


def exports(server):
    print("\n### Exports\n")
    firsts = []
    for query in ["", "ruleset=siggil", "rated=true&sort=-finished", "option.hands=12", "format=csv"]:
        for _ in range(5):
            _, first, _ = read_export(server, query, stop_after=1 << 20)
            firsts.append(first * 1000)
    print(f"- first byte: median {statistics.median(firsts):.1f} ms, longest {max(firsts):.1f} ms of {len(firsts)}")
    query = "option.hands=12"
    whole, _, seconds = read_export(server, query)
    lines = checked(whole)
    print(f"- `{query}`: {len(lines)} records, {len(whole) / 1e6:.1f} MB in {seconds:.1f} s, trailer right")
    part, _, _ = read_export(server, query, stop_after=len(whole) // 2)
    assert b"tavola-export-trailer" not in part
    had = part[:part.rfind(b"\n") + 1].splitlines(keepends=True)
    rest = checked(read_export(server, f"{query}&after={json.loads(had[-1])['game_id']}")[0])
    assert had + rest == lines
    print(f"- killed in mid-stream: no trailer, {len(had)} whole records; resumed with `after`: the other {len(rest)}, together the same bytes")
    before = server.memory()[1]
    count, size, start, tail = 0, 0, time.perf_counter(), b""
    server.connect()
    server.connection.request("GET", "/v1/games/export?ruleset=siggil")
    answer = server.connection.getresponse()
    while part := answer.read1(1 << 16):
        size += len(part)
        count += part.count(b"\n")
        tail = (tail + part)[-400:]
    trailer = json.loads(tail.splitlines()[-1])
    assert trailer["count"] == count - 1
    seconds = time.perf_counter() - start
    print(f"- `ruleset=siggil`: {count - 1} records, {size / 1e6:.0f} MB in {seconds:.0f} s; the server's memory {before:.0f} MB before, "
          f"{server.memory()[1]:.0f} MB at most")
    server.connect()


def play(server, moves):
    """Milliseconds of each of so many moves of two players, one after the other, and CPU of the server for one."""
    tag = random.randrange(10 ** 12)
    tokens = [server.json("POST", "/v1/players", {"name": f"m {tag} {seat}"})["token"] for seat in range(2)]
    times, cpu, played = [], 0.0, 0
    chance = random.Random(7)
    while len(times) < moves:
        game = server.json("POST", "/v1/games", {"ruleset": "leonardo"}, tokens[0])
        game = server.json("POST", f"/v1/games/{game['id']}/seats", {}, tokens[1])
        while game["status"] == "active" and len(times) < moves:
            token = tokens[game["to_move"]["seat"]]
            legal = server.json("GET", f"/v1/games/{game['id']}/legal-moves", token=token)["moves"]
            before, start = server.cpu(), time.perf_counter()
            game = server.json("POST", f"/v1/games/{game['id']}/moves", chance.choice(legal), token)["game"]
            times.append((time.perf_counter() - start) * 1000)
            cpu += server.cpu() - before
    return times


def moves(seeded, empty):
    print("\n### Moves, one after the other\n")
    rounds = {"empty": [], "seeded": []}
    for _ in range(6):
        for name, server in [("empty", empty), ("seeded", seeded)]:
            rounds[name].append(statistics.median(play(server, 300)))
    ratio = statistics.median(rounds["seeded"]) / statistics.median(rounds["empty"])
    for name, medians in rounds.items():
        print(f"- {name}: median {statistics.median(medians):.2f} ms (rounds {', '.join(f'{ms:.2f}' for ms in medians)})")
    print(f"- ratio {ratio:.3f}")


def sizes():
    print("\n### Sizes\n\n| table | rows | bytes a row | indexes, bytes a row |\n|---|---:|---:|---:|")
    for table in ["games", "seats", "positions", "moves", "game_events", "players", "ratings", "rating_changes"]:
        rows = psql(SEEDED, f"select c.reltuples::bigint, pg_table_size(c.oid), pg_indexes_size(c.oid) from pg_class c where c.relname = '{table}' and c.relkind = 'r'")
        if rows and int(rows[0][0]) > 0:
            count, data, indexes = map(int, rows[0])
            print(f"| {table} | {count} | {data / count:.0f} | {indexes / count:.0f} |")
    print(f"\nDatabase: {int(psql(SEEDED, 'select pg_database_size(current_database())')[0][0]) / 1e9:.2f} GB\n")
    print("| ruleset | games | moves a game | bytes a move | bytes a game without moves |\n|---|---:|---:|---:|---:|")
    for row in psql(SEEDED, """
        with m as (select g.ruleset, count(*) as moves, avg(pg_column_size(m.*)) as bytes, count(*) as games
                   from games g join moves m tablesample system (2) on m.game_id = g.id group by 1),
             b as (select g.ruleset, count(*) as games, avg(g.moves_count) as length,
                          avg(pg_column_size(g.*) + pg_column_size(p.*)
                              + (select sum(pg_column_size(s.*)) from seats s where s.game_id = g.id)
                              + (select sum(pg_column_size(e.*)) from game_events e where e.game_id = g.id)) as bytes
                   from games g tablesample system (1) join positions p on p.game_id = g.id group by 1)
        select b.ruleset, (select count(*) from games where ruleset = b.ruleset), round(b.length, 1), round(m.bytes), round(b.bytes)
        from b join m on m.ruleset = b.ruleset order by 1"""):
        print("| " + " | ".join(row) + " |")
    print("\n| index | MB | bytes an entry |\n|---|---:|---:|")
    for name, size, count in psql(SEEDED, """
        select i.indexrelid::regclass, pg_relation_size(i.indexrelid), greatest(c.reltuples, 1)::bigint
        from pg_index i join pg_class c on c.oid = i.indexrelid join pg_class t on t.oid = i.indrelid
        where t.relname in ('games', 'seats', 'positions') order by 2 desc"""):
        print(f"| {name} | {int(size) / 1e6:.0f} | {int(size) / int(count):.0f} |")


def main():
    with Server(SEEDED, 18080) as seeded, Server(EMPTY, 18081) as empty:
        most = psql(SEEDED, "select player_id, count(*) from seats group by 1 order by 2 desc limit 2")
        player, opponent = most[0][0], most[1][0]
        games = psql(SEEDED, "select count(*) from games")[0][0]
        print(f"{games} games; player P has {most[0][1]}, Q {most[1][1]}. Memory at the start: {seeded.memory()[0]:.0f} MB")
        parts = {"sizes": sizes, "moves": lambda: moves(seeded, empty), "pages": lambda: pages(seeded, player, opponent),
                 "walk": lambda: walk(seeded, player), "exports": lambda: exports(seeded)}
        for name in sys.argv[5:] or parts:
            seeded.connect()
            empty.connect()
            parts[name]()
        print(f"\nMemory of the server in the end {seeded.memory()[0]:.0f} MB, at most {seeded.memory()[1]:.0f} MB")


main()
