"""What must be true whenever the load is held: the log has what was acknowledged and nothing else, and the state follows."""

import asyncio
import hashlib
import itertools
import json
import os
import subprocess
import uuid


def kept_under(player, key):
    """What the database finds a player's key by."""
    half = hashlib.sha256(key.encode()).digest()[:16]
    return uuid.UUID(bytes=hashlib.sha256(uuid.UUID(player).bytes + half).digest()[:16])


class Audit:
    """Compares what the clients know with what the server tells and what the database holds."""

    def __init__(self, load, cluster, binary, folder):
        self.load, self.cluster, self.binary, self.folder = load, cluster, binary, folder
        self.verified = set()

    async def run(self):
        await self.log()
        await self.positions()
        await self.replays()
        await self.records()
        await asyncio.gather(*(table.follower.compare() for table in self.load.tables if table.follower))

    async def log(self):
        """Every acknowledged move is there once, under its key, and none that nobody sent."""
        check, rows = self.load.checks["the log is what was acknowledged, each once"], {}
        lines = await self.cluster.sql(
            "select json_build_array(m.game_id, m.number, m.version, m.seat, m.move) from moves m order by m.game_id, m.number")
        for line in lines:
            name, *row = json.loads(line)
            rows.setdefault(name, []).append(row)
        lines = await self.cluster.sql(
            "select json_build_array(k.id, k.move_number) from idempotency_keys k where k.move_number is not null")
        kept = sorted(json.loads(line) for line in lines)
        sent = sorted([str(kept_under(player, key)), number]
                      for moves in self.load.log.values() for number, *_, (player, key) in moves)
        check(kept == sent, lambda: f"keys of moves: {len(sent)} acknowledged, {len(kept)} kept, not both: "
              f"{[key for key in kept if key not in sent][:3]} {[key for key in sent if key not in kept][:3]}")
        for name in {*rows, *self.load.log}:
            known = [list(row) for *row, _ in self.load.log.get(name, [])]
            logged = rows.get(name, [])
            pairs = itertools.zip_longest(known, logged)
            for number, (one, other) in enumerate(pairs, 1):
                check(one == other, lambda: f"{name}, move {number}: acknowledged {one}, logged {other}")

    async def positions(self):
        """Where games stand is where their logs end."""
        lines = await self.cluster.sql(
            "select json_build_array(p.game_id, p.version, p.moves_count, max(m.version), count(m.*), max(m.number)) "
            "from positions p join moves m using (game_id) group by p.game_id")
        for line in lines:
            name, version, count, last, logged, number = json.loads(line)
            self.load.checks["positions are where the logs end"](
                version == last and count == logged == number,
                f"{name} stands at version {version} after {count} moves; the log has {logged} up to {number}, version {last}")

    async def replays(self):
        """The state that is kept of every game that runs is the one to which its log leads, for each of its players."""
        async def compare(table):
            game = table.game
            if game is None or game["status"] != "active":
                return
            for player in table.players:
                path = f"/v1/games/{game['id']}"
                kept = await self.load.ask("GET", path, player["token"])
                replayed = await self.load.ask("GET", f"{path}/states/{game['moves_count']}", player["token"])
                self.load.checks["states of running games = replays of their logs"](
                    kept.body["version"] == game["version"] and replayed.status == 200
                    and kept.body["state"] == replayed.body["state"],
                    f"{path} at {game['version']} as {player['player']['name']}")
        await asyncio.gather(*(compare(table) for table in self.load.tables))

    async def records(self):
        """The records of the games that have finished since the last time verify: seeds, every move, outcome."""
        files = {}
        for name in set(self.load.finished) - self.verified:
            record = await self.load.ask("GET", f"/v1/games/{name}/record")
            path = os.path.join(self.folder, f"{name}.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(record.body, file)
            files[path] = len(record.body["moves"])
            self.load.checks["records have all moves"](
                len(record.body["moves"]) == len(self.load.log[name]), f"the record of {name} has {files[path]} moves")
            self.verified.add(name)
        if files:
            done = subprocess.run(
                [self.binary, "verify", *files], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for line in done.stdout.splitlines():
                self.load.checks["records of finished games verify"](done.returncode == 0, line)
            if not done.stdout:
                self.load.checks["records of finished games verify"](False, done.stderr)
