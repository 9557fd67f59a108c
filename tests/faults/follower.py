"""Readers of the streams of games, who must hear everything once, whatever breaks."""

import asyncio
import itertools


class Follower:
    """Follows a game by a stream, until it is over, and folds its events into the game."""

    def __init__(self, load, name, token):
        self.load, self.name, self.token = load, name, token
        self.game, self.last, self.ids = None, None, set()
        load.spawn(self.follow())

    async def follow(self):
        path = f"/v1/games/{self.name}/events"
        for turn in itertools.count():
            events = self.load.server.follow(path, self.token, turn % 2 == 1, self.last, 3600.0)
            async for _, event in events:
                if isinstance(event, dict):
                    self.receive(event)
                else:
                    self.load.judge(event, f"the stream {path}")
                if self.game and self.game["status"] != "active":
                    break
            await events.aclose()
            if self.game and self.game["status"] != "active":
                return await self.compare()
            await asyncio.sleep(0.1)

    def receive(self, event):
        begins = event["type"] == "snapshot"
        follows = begins == (self.last is None) and event["type"] != "resync" and event["id"] not in self.ids
        if not begins and self.game:
            follows = follows and event["version"] - self.game["version"] in (0, 1)
        self.load.checks["streams miss nothing and tell nothing twice"](
            follows, lambda: f"{event['type']} {event['id']} of {self.name} comes after {self.last}")
        self.last = event["id"]
        self.ids.add(event["id"])
        self.game = event["game"] if begins else {**(self.game or {}), **event.get("changes", {})}

    async def compare(self):
        """What was heard is what is, once nobody moves. Streams look by themselves every five seconds."""
        game = (await self.load.ask("GET", f"/v1/games/{self.name}", self.token)).body
        came = await self.load.until(lambda: self.game and self.game["version"] >= game["version"], 20)
        self.load.checks["streams tell what the server tells"](
            came and self.game == game,
            lambda: f"{self.name} is at {game['version']}, its stream at {self.game and self.game['version']}")
