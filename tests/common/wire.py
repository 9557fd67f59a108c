"""What scripts speak to servers through: servers as processes, HTTP/1.1, streams of events, a receiver of webhooks."""

import asyncio
import base64
import hashlib
import hmac
import json
import os
import random
import signal
import socket
import subprocess
import time

# What breaks when a server is killed or a connection is cut.
BROKEN = (OSError, EOFError, asyncio.TimeoutError, asyncio.IncompleteReadError)
# A server keeps a connection for 5 s; one that is older than this may be gone by the time it is used.
FRESH = 3.0


class Lost(Exception):
    """The connection broke before the answer was there: nobody knows what has become of the request."""


class Answer:
    """What a server has answered: the status, the headers in lower case, the body as JSON."""

    def __init__(self, status, headers, body):
        self.status, self.headers = status, headers
        self.body = json.loads(body) if body else None

    @property
    def code(self):
        """The code of the problem, if it is one."""
        return self.body.get("code") if self.status >= 400 and self.body else None


def free_port():
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A server process that can be killed and started again, and the connections to it. `settings` are variables of its
    environment besides the usual ones; `door` is the port to connect to, if it is another than its own: that of a proxy."""

    def __init__(self, name, binary, log, settings=None, door=None):
        self.name, self.binary, self.log, self.port = name, binary, log, free_port()
        self.settings, self.door = settings or {}, door
        self.process, self.idle = None, []
        # The times between which it was up; the last one has no end.
        self.spans = []

    async def start(self):
        """Starts it and waits until it serves."""
        settings = {
            "TAVOLA_ADDR": f"127.0.0.1:{self.port}",
            "TAVOLA_ALLOW_PRIVATE_WEBHOOKS": "true",
            **{f"TAVOLA_LIMIT_{name}": "0" for name in ("TOKEN", "ADDRESS", "MOVES", "REGISTRATIONS")},
            **self.settings,
        }
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([self.binary], env={**os.environ, **settings}, stdout=log, stderr=log)
        until = time.perf_counter() + 60
        while True:
            try:
                if (await self.ask("GET", "/readyz")).status == 200:
                    break
            except Lost:
                pass
            if self.process.poll() is not None or time.perf_counter() > until:
                raise SystemExit(f"server {self.name} does not start, see {self.log}")
            await asyncio.sleep(0.05)
        self.spans.append([time.perf_counter(), float("inf")])

    async def end(self, number=signal.SIGKILL):
        """Sends it a signal and waits until it is gone."""
        if self.spans:
            self.spans[-1][1] = time.perf_counter()
        self.process.send_signal(number)
        while self.process.poll() is None:
            await asyncio.sleep(0.02)

    def was_up(self, since, until):
        """Whether it served all this time."""
        return any(first <= since and until <= last for first, last in self.spans)

    async def connect(self):
        """A connection, one that has been used before if there is one."""
        while self.idle:
            reader, writer, since = self.idle.pop()
            if time.perf_counter() - since < FRESH and not reader.at_eof() and not writer.is_closing():
                return reader, writer
            writer.transport.abort()
        return await asyncio.open_connection("127.0.0.1", self.door or self.port, limit=1 << 20)

    async def send(self, method, path, token=None, body=None, headers=()):
        """Sends a request; answers the connection on which its answer comes."""
        reader, writer = await self.connect()
        lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{self.port}"]
        lines += [f"{name}: {value}" for name, value in dict(headers).items()]
        if token:
            lines.append(f"Authorization: Bearer {token}")
        data = b"" if body is None else json.dumps(body).encode()
        if data:
            lines.append("Content-Type: application/json")
        if data or method == "POST":
            lines.append(f"Content-Length: {len(data)}")
        writer.write("\r\n".join([*lines, "", ""]).encode() + data)
        return reader, writer

    async def ask(self, method, path, token=None, body=None, headers=(), lose_after=None):
        """One request. `lose_after`: cuts the connection after so many seconds, so that the answer is lost."""
        writer = None
        try:
            reader, writer = await self.send(method, path, token, body, headers)
            if lose_after is not None:
                await writer.drain()
                await asyncio.sleep(lose_after)
                raise EOFError("cut on purpose")
            answer = await asyncio.wait_for(read_answer(reader), 40)
            self.idle.append((reader, writer, time.perf_counter()))
            return answer
        except BROKEN as error:
            if writer:
                writer.transport.abort()
            raise Lost(f"{method} {path} at {self.name}: {error!r}") from error

    async def follow(self, path, token, lines, after, cut_after):
        """The events of a stream, each with the time of its arrival, until the connection breaks, the server ends the stream,
        or `cut_after` seconds are over. `lines`: as NDJSON, else as server-sent events. A refusal is yielded as an answer."""
        writer = cut = None
        headers = {"Accept": "application/x-ndjson" if lines else "text/event-stream"}
        if after and lines:
            path += ("&" if "?" in path else "?") + "after=" + after
        elif after:
            headers["Last-Event-ID"] = after
        try:
            reader, writer = await self.send("GET", path, token, headers=headers)
            cut = asyncio.get_running_loop().call_later(cut_after, writer.transport.abort)
            status, headers = await read_head(reader)
            if status != 200:
                yield time.perf_counter(), Answer(status, headers, await read_body(reader, headers))
                return
            rest, end = b"", b"\n" if lines else b"\n\n"
            while chunk := await read_chunk(reader):
                *frames, rest = (rest + chunk).split(end)
                for frame in filter(None, frames):
                    event = json.loads(frame) if lines else read_frame(frame.decode())
                    if event:
                        yield time.perf_counter(), event
        except BROKEN:
            return
        finally:
            if cut:
                cut.cancel()
            if writer:
                writer.transport.abort()


def read_frame(frame):
    """A server-sent event; none if it is a comment."""
    fields = dict(line.split(": ", 1) for line in frame.split("\n") if not line.startswith(":"))
    if not fields:
        return None
    event = json.loads(fields["data"])
    assert (fields["id"], fields["event"]) == (event["id"], event["type"]), frame
    return event


async def read_head(reader):
    """The status, or the path of a request, and the headers in lower case."""
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").rstrip("\r\n").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    word = first.split(" ")[1]
    return int(word) if word.isdigit() else word, headers


async def read_chunk(reader):
    """A part of a body that comes in chunks; empty at its end."""
    size = int(await reader.readuntil(b"\r\n"), 16)
    return (await reader.readexactly(size + 2))[:-2]


async def read_body(reader, headers):
    """A whole body."""
    if headers.get("transfer-encoding") != "chunked":
        return await reader.readexactly(int(headers.get("content-length", 0)))
    body = b""
    while chunk := await read_chunk(reader):
        body += chunk
    return body


async def read_answer(reader):
    """A whole answer."""
    status, headers = await read_head(reader)
    return Answer(status, headers, await read_body(reader, headers) if status not in (204, 304) else b"")


class Receiver:
    """Receives webhooks; of the players' requests some fail, as receivers do."""

    def __init__(self, seed):
        self.chance, self.secrets = random.Random(f"{seed}/receiver"), {}
        # By player and message: id -> body. The same message can come again, with the same id.
        self.messages, self.repeats, self.failed, self.faults = {}, 0, 0, []
        self.last = time.perf_counter()

    async def start(self):
        self.server = await asyncio.start_server(self.receive, "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]

    async def receive(self, reader, writer):
        try:
            while True:
                path, headers = await read_head(reader)
                body = await read_body(reader, headers)
                self.keep(path.rsplit("/", 1)[1], headers, body)
                # What fails has been received all the same, as when an answer is lost: its repetition must have the same id.
                fate = self.chance.random()
                self.failed += fate < 0.06
                if fate < 0.03:
                    break
                status = "500 Internal Server Error" if fate < 0.06 else "204 No Content"
                writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode())
                await writer.drain()
        except BROKEN:
            pass
        finally:
            writer.transport.abort()

    def keep(self, player, headers, body):
        """Verifies a message and notes it."""
        self.last = time.perf_counter()
        name, stamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
        key = base64.b64decode(self.secrets[player][len("whsec_"):])
        mac = hmac.new(key, f"{name}.{stamp}.".encode() + body, hashlib.sha256).digest()
        if "v1," + base64.b64encode(mac).decode() not in headers.get("webhook-signature", "").split(" "):
            self.faults.append(f"{name}: the signature is wrong")
        if not stamp.isdigit() or abs(time.time() - int(stamp)) > 60:
            self.faults.append(f"{name}: sent at {stamp}")
        message = json.loads(body)
        data = message["data"]
        turn = data["seat"] if message["type"] == "your_turn" else None
        known = self.messages.setdefault((player, message["type"], data["game_id"], data["version"], turn), {})
        self.repeats += name in known
        if known.setdefault(name, body) != body:
            self.faults.append(f"{name}: has come with two bodies")

    def close(self):
        self.server.close()
