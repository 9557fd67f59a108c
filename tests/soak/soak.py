#!/usr/bin/env python3
"""Plays many games at two servers of one database while players leave, streams are cut and servers are killed, and checks
that every game ends, that every stream tells what the servers tell, that no acknowledged move is lost, and that every turn
is announced once. Needs nothing but Python 3.8 and an empty database in DATABASE_URL: `make soak`.

    cargo run --bin testdb -- python3 tests/soak/soak.py [--games 200] [--seed 1]

A check that has nothing to check fails. The exit status is 0 if all hold.
"""

import argparse
import asyncio
import collections
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from datetime import datetime

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "common"))
from checks import Check, print_checks  # noqa: E402: found by the line before
from wire import Lost, Receiver, Server  # noqa: E402

# How long a game may stand still: longer than a clock of 60 s and the time in which it must be noticed.
STALL = 150.0
# How long messages may take: a delivery that a killed server had begun is begun again after two minutes.
QUIET, LATEST = 4.0, 300.0
OVER = ("finished", "aborted")
DEAL_OUT = {"player_left", "invitation_declined", "invitation_withdrawn", "invitation_expired"}


def when(text):
    """Seconds of a time as the API writes it, which Python 3.8 cannot read with any number of digits."""
    whole, _, part = text.rstrip("Z").partition(".")
    return datetime.fromisoformat(whole + "+00:00").timestamp() + float(f"0.{part or 0}")


def plans(count, rulesets, players, chance):
    """What is to happen in each game. The last one is played alone."""
    kinds = [(r["slug"], seats) for r in rulesets for seats in range(r["seats"]["min"], r["seats"]["max"] + 1)]
    made = 0
    while made < count:
        alone, silent = made == count - 1, made % 25 == 3
        ruleset, seats = ("leopard", 2) if alone else kinds[made % len(kinds)]
        happens = lambda share: chance.random() < share and not alone
        # Most games are short, so that there are many.
        short = {"leonardo": {"turn_limit": chance.randrange(20, 120)}, "leopard": {"hands": 1}}.get(ruleset, {})
        clock = {"kind": "per_move", "seconds": 60} if silent or happens(0.1) else None
        if clock is None and happens(0.15):
            clock = {"kind": "bank", "seconds": 600, "increment": 5}
        table = chance.sample(players, seats)
        plan = argparse.Namespace(
            number=made, players=table, alone=alone, clock=clock, ruleset=ruleset, seats=seats,
            options=short if happens(0.8) else {},
            private=happens(0.25), after_end=happens(0.15), rotate=happens(0.3), think=0.06 if alone else 0.03,
            called_off=happens(0.02) and not silent, early=seats < 4 and ruleset != "leopard" and happens(0.08), returns=happens(0.1),
            silent=chance.choice(table) if silent else None, silent_from=chance.randrange(8),
            leavers=[(p, chance.randrange(80)) for p in table if happens(0.5)] if happens(0.4) and not silent else [],
            abort_at=chance.randrange(40) if happens(0.05) and not silent else None, rematch=made < count - 2 and happens(0.08),
            spectated_from=chance.randrange(30) if happens(0.5) else 0,
        )
        made += 2 if plan.rematch and not plan.called_off else 1
        yield plan


class Follower:
    """Follows a stream, at one server and then at the other, as server-sent events and as NDJSON in turn."""

    def __init__(self, run, path, token, about):
        self.run, self.path, self.token, self.about = run, path, token, about
        self.chance = random.Random(f"{run.seed}/{about}")
        self.last_id, self.ids, self.task = None, set(), run.spawn(self.follow())

    async def follow(self):
        for turn in itertools.count(self.chance.randrange(4)):
            server, began = self.run.servers[turn % 2], time.perf_counter()
            cut_after = min(20, 0.5 + self.chance.expovariate(1 / 6))
            events, none = server.follow(self.path, self.token, turn // 2 % 2 == 1, self.last_id, cut_after), True
            async for at, event in events:
                none = False
                if not isinstance(event, dict):
                    self.run.checks["answers as documented"](
                        event.status == 503, f"{self.about}: a stream is answered with {event.status} {event.code}")
                    continue
                self.run.arrivals.append((event["game_id"], event["version"], server, began, at))
                self.receive(event)
            by_reader = time.perf_counter() - began >= cut_after
            self.run.counts["streams cut by their reader" if by_reader else "streams ended otherwise"] += 1
            await asyncio.sleep(0.2 if none else 0.02)

    def receive(self, event):
        first, resumed = self.last_id is None, event["type"] not in ("snapshot", "resync")
        self.run.checks["events: none twice, none missed"](
            first != resumed and event["id"] not in self.ids and self.follows(event),
            lambda: f"{self.about}: {event['type']} {event['id']} of {event['game_id']} after {self.last_id}")
        self.last_id = event["id"]
        self.ids.add(event["id"])
        self.fold(event)

    def stop(self):
        self.task.cancel()


class GameFollower(Follower):
    """Folds the events of a game into the game."""

    game, place = None, (-1, -1)

    def follows(self, event):
        """Whether it is the next event, for all that its id tells: versions have no gaps, and their events an order."""
        version, _, index = event["id"].partition(".")
        place, before = (int(version), int(index or 65535)), self.place
        self.place = place
        return before == (-1, -1) or (place > before and place[0] - before[0] <= 1 and place[0] == event["version"])

    def fold(self, event):
        self.game = event["game"] if event["type"] == "snapshot" else {**self.game, **event["changes"]}


class Player(Follower):
    """A player, who follows all their games by one stream, and learns from it alone that it is their turn."""

    def __init__(self, run, registration, name):
        self.id, self.name = registration["player"]["id"], name
        self.games, self.places, self.acted, self.busy, self.webhook = {}, {}, {}, set(), None
        super().__init__(run, "/v1/me/events", registration["token"], name)

    def follows(self, event):
        """Whether it is the next event of its game: each comes once, and of the versions none is left out."""
        if event["type"] == "snapshot":
            self.places = {game["id"]: (game["version"], set(), True) for game in event["games"]}
            return True
        place = self.places.get(event["game_id"])
        what = (event["type"], event.get("seat"), event.get("player", {}).get("id"))
        version, seen, after_snapshot = place or (event["version"], set(), False)
        same = event["version"] == version
        self.places[event["game_id"]] = (event["version"], (seen if same else set()) | {what}, False)
        # What happens while a snapshot is taken comes once more. Who is not of the game any more is told just that.
        return (after_snapshot or self.is_out(event) or (same and what not in seen) or event["version"] == version + 1)

    def fold(self, event):
        if event["type"] == "snapshot":
            self.games = {game["id"]: game for game in event["games"]}
            return
        name = event["game_id"]
        # Without changes: by the time it was read they could not know of the game any more, which was private.
        if self.is_out(event) or "changes" not in event:
            self.games.pop(name, None)
            self.places.pop(name, None)
            return
        game = self.games[name] = {**self.games.get(name, {}), **event["changes"]}
        if name in self.run.tables:
            self.run.tables[name].progress(game)
        self.consider(name)

    def is_out(self, event):
        """Whether it is the event after which they have nothing to do with the game any more."""
        return event["type"] in DEAL_OUT and event["player"]["id"] == self.id

    def to_move(self, name):
        """Whether it is their turn, as far as they know, and they have not moved yet."""
        game = self.games.get(name)
        # The last move ends the turns; that the game is over is the event after it.
        if not game or not game["to_move"] or self.acted.get(name, -1) >= game["version"]:
            return False
        seat = next(seat for seat in game["seats"] if seat["seat"] == game["to_move"]["seat"])
        return seat["player"]["id"] == self.id and seat["status"] == "playing"

    def consider(self, name):
        """Begins to move, if it is their turn and they are not at it yet."""
        if self.to_move(name) and name not in self.busy:
            self.busy.add(name)
            self.run.spawn(self.play(name))

    async def play(self, name):
        table = await self.run.table(name)
        while self.to_move(name):
            if table.plan.silent is self and self.games[name]["moves_count"] >= table.plan.silent_from:
                table.fell_silent = True
                break
            await asyncio.sleep(self.chance.expovariate(1 / table.plan.think))
            if not await self.move(table, name):
                break
        self.busy.discard(name)

    async def move(self, table, name):
        """One move; answers whether it is worth while to look again at once."""
        path, chance, run = f"/v1/games/{name}", self.chance, self.run
        legal = (await run.ask(chance, "GET", path + "/legal-moves", self.token)).body
        if not legal["moves"]:
            # The game is ahead of the stream: others have moved, or the player has left meanwhile.
            return False
        body = chance.choice(legal["moves"])
        headers = {"If-Match": f'"{legal["version"]}"'} if chance.random() < 0.7 else {}
        answer = await run.ask(chance, "POST", path + "/moves", self.token, body, headers, lose=0.06, twice=0.03)
        if answer.status == 201:
            self.acted[name] = max(self.acted.get(name, -1), legal["version"])
            table.acknowledged.append((body, answer.body["move"]))
            if answer.first_try:
                run.sent[name, answer.body["move"]["version"]] = (*answer.first_try, table.plan.alone)
            return True
        expected = answer.code in ("stale-version", "not-your-turn", "game-not-active", "has-left")
        run.checks["answers as documented"](expected, f"{self.about}: a move is answered with {answer.body}")
        return answer.code == "stale-version"


class Table:
    """A game, what is to happen in it and what has."""

    def __init__(self, run, plan, game, players):
        self.run, self.plan, self.id, self.players = run, plan, game["id"], players
        self.path, self.invite, self.known = f"/v1/games/{self.id}", game["invite"], None
        self.acknowledged, self.followers, self.events, self.over = [], [], [], asyncio.Event()
        self.moves, self.version, self.moved_at, self.fell_silent = 0, -1, time.perf_counter(), False
        self.chance = random.Random(f"{run.seed}/game {plan.number}")
        self.started = asyncio.Event()

    def progress(self, game):
        """Notes what a player has heard of it."""
        if game["version"] > self.version:
            self.version, self.moves, self.moved_at = game["version"], game["moves_count"], time.perf_counter()
        if game["status"] != "open":
            self.started.set()
        if game["status"] in OVER:
            self.over.set()

    async def ask(self, player, method, path, body=None, good=(200, 201), codes=()):
        """One command of a player, whose answer must be a good one or a problem of these codes."""
        answer = await self.run.ask(self.chance, method, self.path + path, player.token, body, lose=0.1, twice=0.1)
        self.run.checks["answers as documented"](
            answer.status in good or answer.code in codes, f"{method} {self.path}{path} is answered with {answer.body}")
        return answer

    def watch(self, player):
        """Follows the game as one of its players, or as a spectator."""
        code = f"?invite={self.invite}" if self.invite and not player else ""
        about = f"{self.plan.ruleset} {self.id} as {player.name if player else 'spectator'}"
        follower = GameFollower(self.run, f"{self.path}/events{code}", player.token if player else None, about)
        self.followers.append((follower, player, code))

    async def fill(self):
        """Brings the players to the table."""
        creator, *others = self.players
        if self.plan.private and self.plan.rotate:
            self.invite = (await self.ask(creator, "POST", "/invite")).body["invite"]
        if self.plan.called_off and self.plan.seats > 1:
            self.watch(None)
            await self.ask(creator, "POST", "/abort", codes=("game-not-open",))
            return
        if self.plan.returns and len(others) > 1:
            await self.ask(others[0], "POST", "/seats", {"invite": self.invite} if self.invite else {})
            await self.ask(others[0], "DELETE", "/seats/me", codes=("not-seated",))
        self.watch(creator if self.chance.random() < 0.5 else None)
        await asyncio.gather(*(self.come(player) for player in others))
        if self.plan.early:
            await self.ask(creator, "POST", "/start")
        self.run.spawn(self.look_on())

    async def come(self, player):
        """Takes a seat: invited by name or not; some decline, and come nevertheless."""
        by_name = self.chance.random() < 0.5
        if by_name:
            await self.ask(self.players[0], "POST", "/invitations", {"player": player.id}, codes=("player-seated",))
            heard = await self.run.until(lambda: self.id in player.games, 30)
            self.run.checks["invitations heard of"](heard, f"{player.about}: no invitation to {self.id}")
            if self.chance.random() < 0.2:
                await self.ask(player, "DELETE", "/invitations/me", good=(204,), codes=("not-invited", "not-found"))
                by_name = False
        body = {"entropy": player.name}
        if self.invite and not by_name:
            found = await self.run.ask(self.chance, "GET", f"/v1/invites/{self.invite}", player.token)
            self.run.checks["answers as documented"](found.body.get("id") == self.id, "an invite code finds nothing")
            body["invite"] = self.invite
        await self.ask(player, "POST", "/seats", body)

    async def look_on(self):
        """Who comes later to look on, and who leaves."""
        await self.started.wait()
        plan = self.plan
        for player, moves in plan.leavers:
            self.run.spawn(self.leave(player, moves))
        if plan.abort_at is not None:
            self.run.spawn(self.abort())
        await self.run.until(lambda: self.moves >= plan.spectated_from or self.over.is_set(), 600)
        for player in [None, self.chance.choice(self.players)]:
            if player not in [follower[1] for follower in self.followers]:
                self.watch(player)
        self.known = True

    async def leave(self, player, moves):
        if await self.run.until(lambda: self.moves >= moves or self.over.is_set(), 600) and not self.over.is_set():
            left = await self.ask(player, "POST", "/resignation", codes=("game-not-active", "has-left"))
            self.run.counts["resignations"] += left.status == 200

    async def abort(self):
        await self.run.until(lambda: self.moves >= self.plan.abort_at or self.over.is_set(), 600)
        codes = ("game-not-active", "has-left")
        await self.ask(self.players[0], "POST", "/abort", codes=codes)
        if len(self.players) > 1:
            await self.ask(self.players[0], "DELETE", "/abort", codes=codes)
        await asyncio.gather(*(self.ask(player, "POST", "/abort", codes=codes) for player in self.players))

    async def play(self):
        """Fills the table and waits until the game is over, and is known to be to all who follow it."""
        if self.plan.seats + self.plan.early == 1 or self.players is not self.plan.players:
            self.watch(self.players[0])
            self.run.spawn(self.look_on())
        else:
            await self.fill()
        while not self.over.is_set():
            await self.run.until(self.over.is_set, 1)
            if time.perf_counter() - self.moved_at > STALL:
                break
        game = (await self.run.ask(self.chance, "GET", self.path, self.players[0].token)).body
        ended = self.over.is_set() and game["status"] in OVER
        self.run.checks["games that ended"](ended, lambda: f"{self.path} stands still at {game['version']}: "
                                            f"{game['status']}, {game['to_move']}, known is {self.version}")
        reason = game["outcome"]["reason"] if game["outcome"] else f"{game['status']} before the start"
        self.run.outcomes[reason] += 1
        if self.plan.rematch and ended and game["started_at"]:
            await self.rematch()
        await self.verify()

    async def rematch(self):
        """All want one at once, and get the same."""
        asked = [self.ask(player, "POST", "/rematch", {"entropy": player.name}) for player in self.players]
        answers = [answer.body for answer in await asyncio.gather(*asked) if answer.status < 300]
        self.run.checks["answers as documented"](len({game["id"] for game in answers}) == 1, f"{self.path}: two rematches")
        game = max(answers, key=lambda game: game["version"])
        again = argparse.Namespace(**{**vars(self.plan), "number": f"{self.plan.number} again", "rematch": False,
                                      "called_off": False, "silent": None, "spectated_from": 0})
        table = Table(self.run, again, {**game, "invite": next(filter(None, (g["invite"] for g in answers)), None)},
                      list(self.players))
        self.run.tables[table.id] = table
        for player in self.players:
            table.progress(player.games.get(table.id, game))
            player.consider(table.id)
        self.run.spawn(table.play(), main=True)

    async def verify(self):
        """Compares what has been told with what is."""
        run = self.run
        await run.until(lambda: self.known or self.plan.called_off, 30)
        for follower, player, code in self.followers:
            token = player.token if player else None
            for _ in range(200):
                game = (await run.ask(self.chance, "GET", self.path + code, token)).body
                if follower.game and follower.game["version"] >= game["version"]:
                    break
                await asyncio.sleep(0.2)
            differ = [name for name in game if (follower.game or {}).get(name, "-") != game[name]]
            run.checks["game streams = GET game"](
                follower.game == game, lambda: f"{follower.about} at {game['version']}: " + "; ".join(
                    f"{name} is {json.dumps((follower.game or {}).get(name))[:200]} not {json.dumps(game[name])[:200]}"
                    for name in differ))
            follower.stop()
        self.events = await run.pages(self.path + "/events", self.players[0], "after")
        if game["started_at"] is None:
            return
        moves = await run.pages(self.path + "/moves", self.players[0], "after")
        by_version = {move["version"]: move for move in moves}
        for body, move in self.acknowledged:
            logged = by_version.get(move["version"], {})
            same = all(logged.get(name) == move[name] for name in ("number", "seat", "at")) and logged["move"] == body
            run.checks["acknowledged moves in the log"](same, f"{self.path}: {move} is logged as {logged}")
        own, seats = 0, {}
        for event in self.events:
            run.counts["deadlines put off"] += event["type"] == "clock_credited"
            if event["type"] == "move_played":
                own += seats[event["seat"]]["status"] == "playing"
            seats = {seat["seat"]: seat for seat in event["changes"].get("seats", seats.values())}
            if event["type"] == "player_timed_out":
                late = when(event["at"]) - when(deadline)
                run.checks["nobody timed out too early"](late >= 0, f"{self.path}: timed out at {event['at']}")
                run.lateness.append(late)
            deadline = (event["changes"]["to_move"] or {}).get("deadline")
        versions = {move["version"] for _, move in self.acknowledged}
        run.checks["moves of players all acknowledged, once"](
            own == len(versions) == len(self.acknowledged) and len(moves) == game["moves_count"] == len(by_version),
            f"{self.path}: {own} moves of players, {len(self.acknowledged)} acknowledged, {len(versions)} versions")
        run.counts["moves"] += len(moves)
        run.counts["of them by bots for leavers"] += len(moves) - own
        if game["status"] == "finished":
            record = await run.ask(self.chance, "GET", self.path + "/record", self.players[0].token)
            name = os.path.join(run.folder, f"{self.id}.json")
            with open(name, "w", encoding="utf-8") as file:
                json.dump(record.body, file)
            run.records.append(name)

    def expected(self):
        """The messages that this game must have caused, by what its log says."""
        before, seats = None, []
        for version, events in itertools.groupby(self.events, lambda event: event["version"]):
            for event in events:
                seats, to_move = event["changes"].get("seats", seats), event["changes"]["to_move"]
                if event["type"] in ("game_started", "game_finished", "game_aborted"):
                    yield from ((seat["player"]["id"], event["type"], self.id, version, None) for seat in seats)
                elif event["type"] == "player_invited":
                    yield event["player"]["id"], event["type"], self.id, version, None
            now = to_move["seat"] if to_move else None
            if now is not None and now != before:
                seat = next(seat for seat in seats if seat["seat"] == now)
                if seat["status"] == "playing":
                    yield seat["player"]["id"], "your_turn", self.id, version, now
            before = now


class Run:
    """The whole."""

    def __init__(self, options, folder):
        self.options, self.seed, self.folder = options, options.seed, folder
        self.checks, self.counts = collections.defaultdict(Check), collections.Counter()
        self.outcomes, self.statuses = collections.Counter(), collections.Counter()
        self.tables, self.arrivals, self.sent, self.records, self.lateness = {}, [], {}, [], []
        self.tasks, self.main, self.havoc_ends = set(), set(), asyncio.Event()
        self.servers = [Server(name, options.binary, os.path.join(folder, f"server-{name}.log")) for name in "AB"]
        self.receiver = Receiver(self.seed)

    def spawn(self, work, main=False):
        """Does something besides. What fails there is the run's failure."""
        task = asyncio.ensure_future(work)
        for tasks in [self.tasks, self.main] if main else [self.tasks]:
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        task.add_done_callback(self.note_failure)
        return task

    def note_failure(self, task):
        if not task.cancelled() and task.exception():
            self.checks["the script itself"](False, repr(task.exception()))
            task.get_loop().call_exception_handler({"message": "the soak test", "exception": task.exception()})

    @staticmethod
    async def until(true, seconds):
        """Waits until something is true, so long at most; answers whether it is."""
        end = time.perf_counter() + seconds
        while not true() and time.perf_counter() < end:
            await asyncio.sleep(0.02)
        return true()

    async def table(self, name):
        """The game of that id, of which a player can hear before whoever created it has the answer."""
        await self.until(lambda: name in self.tables, 60)
        return self.tables[name]

    async def ask(self, chance, method, path, token=None, body=None, headers=(), lose=0.0, twice=0.0):
        """Asks one of the servers until there is an answer. What is lost on the way, by itself or on purpose (`lose`: with this
        probability), or is answered with 503, is asked again, of the other one; with the same Idempotency-Key. `twice`: with this
        probability both are asked at once."""
        if method == "POST":
            headers = {"Idempotency-Key": str(uuid.UUID(int=chance.getrandbits(128), version=4)), **dict(headers)}
        order = chance.sample(self.servers, 2)
        if chance.random() < twice:
            other = self.spawn(self.ask_quietly(order[1], method, path, token, body, headers))
            await asyncio.sleep(0)
        else:
            other = None
        lose_after = chance.expovariate(1 / 0.02) if chance.random() < lose else None
        for attempt in itertools.count():
            server, began = order[attempt % 2], time.perf_counter()
            try:
                answer = await server.ask(method, path, token, body, headers, lose_after if attempt == 0 else None)
                self.statuses[answer.status] += 1
                if answer.status != 503:
                    break
            except Lost:
                self.counts["answers cut off on purpose" if lose_after and attempt == 0 else "answers lost otherwise"] += 1
            if attempt > 400:
                raise RuntimeError(f"no answer to {method} {path}")
            await asyncio.sleep(min(0.3, 0.02 * attempt))
        if other:
            await other
        if answer.headers.get("idempotent-replayed"):
            self.counts["answers replayed by their key"] += 1
        alone = attempt == 0 and not other
        answer.first_try = (server, began, time.perf_counter()) if alone else None
        self.checks["answers as documented"](answer.status < 500, f"{method} {path} is answered with {answer.body}")
        return answer

    async def ask_quietly(self, server, *request):
        """The second of two equal requests, whatever becomes of it."""
        self.counts["requests sent to both servers at once"] += 1
        try:
            await server.ask(*request)
        except Lost:
            pass

    async def pages(self, path, player, after):
        """All items of a list."""
        items, place = [], ""
        while place is not None:
            cursor = f"&{after}={place}" if place else ""
            path_of_page = f"{path}{'&' if '?' in path else '?'}limit=100{cursor}"
            page = (await self.ask(random, "GET", path_of_page, player.token)).body
            items += page["items"]
            place = page[f"next_{after}"]
        return items

    async def register(self, name, chance):
        """A player with a webhook."""
        answer = await self.ask(chance, "POST", "/v1/players", body={"name": name, "kind": "bot"})
        player = Player(self, answer.body, name)
        if self.webhooks:
            url = f"http://127.0.0.1:{self.receiver.port}/{player.id}"
            hook = await self.ask(chance, "POST", "/v1/me/webhooks", player.token, {"url": url})
            if hook.status != 201:
                raise SystemExit(f"no webhook: {hook.body}")
            self.receiver.secrets[player.id], player.webhook = hook.body["secret"], hook.body["id"]
        return player

    async def havoc(self):
        """Kills a server now and then and starts it again; never both."""
        chance = random.Random(f"{self.seed}/havoc")
        for turn in itertools.count():
            await self.until(self.havoc_ends.is_set, chance.uniform(2, 6))
            if self.havoc_ends.is_set():
                break
            if turn == 4 and self.options.blackout:
                await self.blackout()
            server, gently = chance.choice(self.servers), chance.random() < 0.2
            self.counts["servers stopped by SIGTERM" if gently else "servers killed"] += 1
            await server.end(signal.SIGTERM if gently else signal.SIGKILL)
            await asyncio.sleep(chance.uniform(0.1, 2))
            await server.start()

    async def blackout(self):
        """No server runs for a while: deadlines are put off."""
        await asyncio.gather(*(server.end() for server in self.servers))
        await asyncio.sleep(self.options.blackout)
        await asyncio.gather(*(server.start() for server in self.servers))

    async def game(self, plan):
        creator, chance = plan.players[0], random.Random(f"{self.seed}/open {plan.number}")
        body = {"ruleset": plan.ruleset, "options": plan.options, "seats": plan.seats + plan.early, "clock": plan.clock,
                "visibility": "private" if plan.private else "public",
                "spectators": "after_end" if plan.after_end else "live"}
        answer = await self.ask(chance, "POST", "/v1/games", creator.token, body, lose=0.1, twice=0.1)
        if answer.status != 201:
            raise SystemExit(f"no game: {answer.body}")
        table = self.tables[answer.body["id"]] = Table(self, plan, answer.body, plan.players)
        await table.play()

    async def play(self):
        """Plays all games, many at once, those with a silent player besides, and the last one alone."""
        chance = random.Random(self.seed)
        rulesets = (await self.ask(chance, "GET", "/v1/rulesets")).body["items"]
        self.webhooks = "/v1/me/webhooks" in (await self.ask(chance, "GET", "/openapi.json")).body["paths"]
        names = [f"soak-{self.seed}-{number}" for number in range(max(8, self.options.games // 4))]
        self.players = await asyncio.gather(*(self.register(name, random.Random(name)) for name in names))
        *waiting, last = plans(self.options.games, rulesets, self.players, chance)
        havoc = self.spawn(self.havoc())
        for plan in [plan for plan in waiting if plan.silent]:
            self.spawn(self.game(plan), main=True)
        queue = iter([plan for plan in waiting if not plan.silent])

        async def work():
            for plan in queue:
                await self.game(plan)

        for _ in range(self.options.at_once):
            self.spawn(work(), main=True)
        while self.main:
            await asyncio.sleep(0.2)
        self.havoc_ends.set()
        await havoc
        await asyncio.sleep(3)
        await self.game(last)

    async def verify(self):
        """What can only be compared in the end."""
        self.checks["as many games as were wanted"](len(self.tables) == self.options.games, f"{len(self.tables)} games")
        for player in self.players:
            for _ in range(50):
                games = {game["id"]: game for game in await self.pages("/v1/games?player=me", player, "cursor")}
                if all(player.games.get(name, {}).get("version") == game["version"] for name, game in games.items()):
                    break
                await asyncio.sleep(0.2)
            known = {name: game for name, game in player.games.items() if name in games or game["status"] not in OVER}
            self.checks["/me streams = list of games"](
                known == games and set(player.games) == set(games),
                lambda: f"{player.name}: differs in " + ", ".join(
                    f"{name}" for name in {*known, *games} if known.get(name) != games.get(name)))
            turns = await self.pages("/v1/me/turns", player, "cursor")
            self.checks["no turn is left over"](not turns, f"{player.name}: {len(turns)} turns")
        done = subprocess.run([self.options.binary, "verify", *self.records], stdout=subprocess.PIPE, text=True)
        for line in done.stdout.splitlines():
            self.checks["records verify"](done.returncode == 0, line)
        for server in self.servers:
            with open(server.log, encoding="utf-8", errors="replace") as log:
                bad = [line for line in log if " ERROR " in line or "panicked" in line]
            self.checks["no errors in the servers' logs"](not bad, lambda: f"server {server.name}: {bad[:3]}")
        await self.verify_webhooks()

    async def verify_webhooks(self):
        got, began = self.receiver.messages, time.perf_counter()
        expected = collections.Counter(key for table in self.tables.values() for key in table.expected())
        if self.webhooks:
            await self.until(lambda: not expected.keys() - got.keys() or time.perf_counter() - began > LATEST, LATEST)
            await self.until(lambda: time.perf_counter() - self.receiver.last > QUIET, LATEST)
        for key in {*expected, *got} if self.webhooks else ():
            check = "turns announced exactly once" if key[1] == "your_turn" else "other messages exactly once"
            ids = len(got.get(key, ()))
            self.checks[check](ids == expected[key] == 1, f"{key}: {ids} messages, expected {expected[key]}")
        # Also those that have nothing to check are in the report.
        for name in ("turns announced exactly once", "other messages exactly once", "nobody timed out too early"):
            self.checks[name].count += 0
        messages = sum(map(len, got.values()))
        self.checks["webhooks signed, bodies the same"].count = messages
        self.checks["webhooks signed, bodies the same"].faults = self.receiver.faults
        self.counts["webhook messages"] = messages
        self.counts["webhook attempts that failed on purpose"] = self.receiver.failed
        self.counts["webhook messages that came again"] = self.receiver.repeats

    def latencies(self, alone):
        """Seconds from the sending of a move to its answer, and to its event at the same and at the other server."""
        rows = {"its answer": [], "its event at the same server": [], "its event at the other server": []}
        for server, began, answered, was_alone in self.sent.values():
            if was_alone == alone:
                rows["its answer"].append(answered - began)
        for name, version, server, connected, at in self.arrivals:
            asked, began, _, was_alone = self.sent.get((name, version), (None, 0, 0, None))
            calm = all(each.was_up(began - 1, at) for each in self.servers) and connected < began - 1
            if was_alone == alone and calm:
                rows[f"its event at the {'same' if server is asked else 'other'} server"].append(at - began)
        return rows

    def report(self, seconds):
        """Prints the table; answers whether all checks hold."""
        print(f"\n{len(self.tables)} games of {len(self.players)} players, seed {self.seed}, in {seconds:.0f} s")
        counts = {"events read": len(self.arrivals), **dict(sorted(self.counts.items()))}
        counts.update({f"answers {status}": self.statuses[status] for status in (409, 412, 503)})
        counts.update({f"games ended by {reason}": n for reason, n in sorted(self.outcomes.items())})
        for name, count in counts.items():
            print(f"  {name:<44}{count:>8}")
        if self.lateness:
            print(f"  {'most seconds from a deadline to its time-out':<44}{max(self.lateness):>8.2f}")
        for alone, what in [(False, "all games at once"), (True, "the last game, played alone")]:
            print(f"milliseconds from a move to ..., {what:<29}{'median':>8}{'p95':>8}{'max':>8}{'n':>8}")
            for name, values in self.latencies(alone).items():
                values.sort()
                marks = [values[int(share * (len(values) - 1))] * 1000 for share in (0.5, 0.95, 1)] if values else []
                print(f"  {name:<60}" + "".join(f"{mark:>8.1f}" for mark in marks) + f"{len(values):>8}")
        return print_checks(self.checks)


async def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1, help="decides who plays, leaves, is killed; not how fast the machine is")
    parser.add_argument("--binary", default="target/debug/tavola")
    parser.add_argument("--at-once", type=int, default=16, help="how many games are played at once")
    parser.add_argument("--blackout", type=float, default=0, help="kill both servers for so many seconds, once")
    parser.add_argument("--keep", help="a folder for the servers' logs and the games' records")
    options = parser.parse_args()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="tavola-soak-") as folder:
        if options.keep:
            os.makedirs(options.keep, exist_ok=True)
        run = Run(options, options.keep or folder)
        await run.receiver.start()
        try:
            # One after the other: the first brings the database up to date.
            for server in run.servers:
                await server.start()
            await run.play()
            await run.verify()
        finally:
            for server in run.servers:
                if server.process and server.process.poll() is None:
                    await server.end(signal.SIGTERM)
            run.receiver.close()
        good = run.report(time.perf_counter() - began)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
