"""The load: games of all rulesets, played at once, in which every request is repeated under its key until it is answered."""

import asyncio
import collections
import itertools
import os
import random
import sys
import time
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "common"))
from follower import Follower  # noqa: E402: found by the line before, or in this folder
from wire import Lost  # noqa: E402

# The longest that an answer may take: the server's limit for a request and a little for a machine with much to do.
LONGEST = 33.0
# How long after a fault everything may need to go on.
RECOVERY = 60.0
PAUSE = 0.2
SHORT = {"leonardo": {"turn_limit": 30}, "quintis-fontis": {"turn_limit": 30}, "leopard": {"hands": 1}}


class Tally:
    """What happened in the rounds of one fault."""

    def __init__(self):
        self.sent = self.acknowledged = self.repeated = self.replayed = self.cut = self.reads = 0
        self.refused = self.refused_after = 0
        self.longest, self.first, self.all, self.rounds, self.died = 0.0, [], [], 0, 0


class Flying:
    """A request that is on its way; what became of it."""

    def __init__(self, began):
        self.began, self.became = began, None


class Table:
    """Some players who play one game after the other."""

    def __init__(self, load, number, kind, players):
        self.load, self.kind, self.players = load, kind, players
        self.chance = random.Random(f"{load.seed}/table {number}")
        self.idle, self.last_move, self.game, self.follower = False, 0.0, None, None
        self.followed, self.played = number % 3 == 0, 0

    def token(self, seat):
        taken = next(taken for taken in self.game["seats"] if taken["seat"] == seat)
        return next(player["token"] for player in self.players if player["player"]["id"] == taken["player"]["id"])

    async def gate(self):
        """Waits while the load is held, for what is compared then must not change."""
        if not self.load.running.is_set():
            self.idle = True
            await self.load.running.wait()
            self.idle = False

    async def post(self, path, token, body):
        await self.gate()
        answer = await self.load.ask("POST", path, token, body, str(uuid.UUID(int=self.chance.getrandbits(128), version=4)))
        self.load.checks["answers as documented"](
            answer.status in (200, 201), lambda: f"POST {path} is answered with {answer.status} {answer.body}")
        return answer

    async def play(self):
        ruleset, seats = self.kind
        while True:
            body = {"ruleset": ruleset, "seats": seats, "options": SHORT.get(ruleset, {})}
            created = await self.post("/v1/games", self.players[0]["token"], body)
            path = f"/v1/games/{created.body['id']}"
            self.load.log[created.body["id"]] = []
            for player in self.players[1:]:
                await self.post(path + "/seats", player["token"], {})
            await self.gate()
            self.game = (await self.load.ask("GET", path, self.players[0]["token"])).body
            self.load.checks["games start"](self.game["status"] == "active", lambda: f"{path} is {self.game['status']}")
            self.load.started.append(self.game["id"])
            if self.followed:
                self.follower = Follower(self.load, self.game["id"], self.players[0]["token"])
            while self.game["status"] == "active":
                await self.gate()
                await self.move(path)
            self.load.finished.append(self.game["id"])
            self.played += 1

    async def move(self, path):
        """One move, sent until it is acknowledged; some are sent once more then."""
        load, game = self.load, self.game
        seat = game["to_move"]["seat"]
        token = self.token(seat)
        legal = await load.ask("GET", path + "/legal-moves", token)
        load.checks["reads tell what was acknowledged"](
            legal.status == 200 and legal.body["version"] == game["version"],
            lambda: f"{path} was at {game['version']}, and then {legal.status} {legal.body}"[:300])
        body, key = self.chance.choice(legal.body["moves"]), str(uuid.UUID(int=self.chance.getrandbits(128), version=4))
        load.tally.sent += 1
        answer = await load.ask("POST", path + "/moves", token, body, key, is_move=True)
        number = game["moves_count"] + 1
        # Nobody else moves here: whatever was lost, this very move has to be the next one.
        good = answer.status == 201 and answer.body["move"]["number"] == number and answer.body["move"]["move"] == body
        load.checks["moves acknowledged, as the next of their game"](
            good, lambda: f"{path}, move {number}: {answer.status} {answer.body}"[:500])
        if not good:
            raise RuntimeError(f"the game {path} cannot go on")
        load.tally.acknowledged += 1
        mover = next(taken["player"]["id"] for taken in game["seats"] if taken["seat"] == seat)
        load.log[game["id"]].append((number, answer.body["move"]["version"], seat, body, (mover, key)))
        self.game, self.last_move = answer.body["game"], time.perf_counter()
        if self.chance.random() < 0.1:
            again = await load.ask("POST", path + "/moves", token, body, key, is_move=True)
            load.tally.repeated += 1
            load.checks["repeats answered as the first time"](
                again.status == 201 and again.headers.get("idempotent-replayed") == "true" and again.body == answer.body,
                lambda: f"{path}, move {number} again: {again.status} {again.headers} {again.body}"[:500])


class Load:
    """All that is played at one server."""

    def __init__(self, server, seed, checks, tables):
        self.server, self.seed, self.checks, self.size = server, seed, checks, tables
        self.chance = random.Random(f"{seed}/load")
        self.running, self.tasks, self.tables = asyncio.Event(), set(), []
        # By game, what was acknowledged: number, version, seat, move, and the player with their key.
        self.log, self.started, self.finished = {}, [], []
        self.tally, self.flying, self.broken = Tally(), {}, None
        # Whether connections may break now, and since when all should be well again.
        self.may_break, self.lifted = False, None
        self.numbers = itertools.count()
        self.statuses = collections.Counter()

    def spawn(self, work):
        task = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self.note_failure)
        return task

    def note_failure(self, task):
        self.tasks.discard(task)
        if not task.cancelled() and task.exception():
            self.broken = task.exception()

    async def ask(self, method, path, token=None, body=None, key=None, is_move=False):
        """Asks until there is an answer other than 503."""
        headers = {"Idempotency-Key": key} if key else {}
        first = time.perf_counter()
        for attempt in itertools.count():
            answer = await self.try_once(method, path, token, body, headers)
            if answer is not None and answer.status != 503:
                break
            if time.perf_counter() - first > 3 * RECOVERY:
                raise RuntimeError(f"{method} {path} is not answered for {3 * RECOVERY} s")
            await asyncio.sleep(PAUSE)
        replayed = answer.headers.get("idempotent-replayed") == "true"
        if is_move and attempt:
            self.tally.repeated += 1
            self.tally.replayed += replayed
        return answer

    async def try_once(self, method, path, token=None, body=None, headers=()):
        """One request; no answer if its connection breaks."""
        number, flying = next(self.numbers), Flying(time.perf_counter())
        self.flying[number] = flying
        answer = None
        try:
            answer = await self.server.ask(method, path, token, body, headers)
            flying.became = answer.status
        except Lost as lost:
            flying.became = "lost"
            self.tally.cut += 1
            if not self.may_break:
                self.checks["no connection breaks that nobody broke"](False, str(lost))
        finally:
            del self.flying[number]
            seconds = time.perf_counter() - flying.began
            self.tally.longest = max(self.tally.longest, seconds)
            self.checks["nothing takes longer than it may"](
                seconds < LONGEST, lambda: f"{method} {path} took {seconds:.1f} s and became {flying.became}")
        if answer is not None:
            self.judge(answer, f"{method} {path}")
        return answer

    def judge(self, answer, what):
        """Counts an answer; whatever fails has to be a 503 of the right form."""
        self.statuses[answer.status] += 1
        if answer.status < 500:
            return
        if self.lifted is None:
            self.tally.refused += 1
        else:
            self.tally.refused_after += 1
        retry, problem = answer.headers.get("retry-after", ""), answer.body or {}
        self.checks["errors are 503 with Retry-After"](
            answer.status == 503 and retry.isdigit() and int(retry) > 0
            and answer.headers.get("content-type") == "application/problem+json"
            and problem.get("code") == "unavailable" and problem.get("status") == 503,
            lambda: f"{what} is answered with {answer.status} {answer.headers} {problem}")

    async def register(self, name):
        answer = await self.ask("POST", "/v1/players", body={"name": name, "kind": "bot"}, key=str(uuid.uuid4()))
        if answer.status != 201:
            raise SystemExit(f"no player: {answer.body}")
        return answer.body

    async def begin(self):
        """Brings the players to their tables."""
        rulesets = (await self.ask("GET", "/v1/rulesets")).body["items"]
        kinds = [(r["slug"], seats) for r in rulesets for seats in range(r["seats"]["min"], r["seats"]["max"] + 1)]
        for number in range(self.size):
            kind = kinds[number % len(kinds)]
            names = [f"faults-{self.seed}-{number}-{seat}" for seat in range(kind[1])]
            players = await asyncio.gather(*(self.register(name) for name in names))
            self.tables.append(Table(self, number, kind, players))
            self.spawn(self.tables[-1].play())

    def end(self):
        for task in list(self.tasks):
            task.cancel()

    async def until(self, true, seconds):
        """Waits until something is true, so long at most; answers whether it is. A table that broke ends everything."""
        end = time.perf_counter() + seconds
        while not true() and time.perf_counter() < end:
            if self.broken:
                raise self.broken
            await asyncio.sleep(0.01)
        return true()

    async def go(self):
        """Plays on, until everybody has moved: what comes then comes in the midst of play."""
        since = time.perf_counter()
        self.lifted = None
        self.running.set()
        await self.until(lambda: all(table.last_move > since for table in self.tables), RECOVERY)

    async def recovered(self, since):
        """Waits until each table has had a move acknowledged since then; notes how long the first and the last one took."""
        self.lifted = since
        good = await self.until(lambda: all(table.last_move > since for table in self.tables), RECOVERY)
        self.checks["all goes on by itself"](good, lambda: f"after {RECOVERY:.0f} s stand still: " + ", ".join(
            table.game["id"] if table.game else "?" for table in self.tables if table.last_move <= since))
        if good:
            self.tally.all.append(time.perf_counter() - since)

    async def first_move(self, since):
        """How long the first move took that was acknowledged since then."""
        if await self.until(lambda: any(table.last_move > since for table in self.tables), RECOVERY):
            self.tally.first.append(time.perf_counter() - since)

    async def hold(self):
        """Lets what is on its way come to its end and nothing new begin."""
        self.running.clear()
        still = await self.until(lambda: all(table.idle for table in self.tables), RECOVERY)
        self.checks["nothing hangs"](still, lambda: f"not answered after {RECOVERY:.0f} s: {len(self.flying)} requests")

    async def crowd(self, size, seconds):
        """So many who only look on, and ask again and again."""
        until = time.perf_counter() + seconds

        async def look():
            while time.perf_counter() < until:
                name = self.chance.choice(self.started)
                answer = await self.try_once("GET", f"/v1/games/{name}")
                self.tally.reads += answer is not None and answer.status == 200
                await asyncio.sleep(0.02 if answer is not None and answer.status == 200 else PAUSE)
        await asyncio.gather(*(look() for _ in range(size)))
