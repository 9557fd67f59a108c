"""A proxy between two that speak TCP, which cuts their connections in the middle of what they say, or keeps it back."""

import asyncio
import random
import socket
import struct


class Proxy:
    """Passes everything on, unless it is told otherwise. `cutting`: with this probability a connection is cut at the next thing
    that is said on it, after a part of it."""

    def __init__(self, name, target, seed):
        self.name, self.target, self.chance = name, target, random.Random(f"{seed}/{name}")
        self.cutting, self.cuts = 0.0, {"requests": 0, "answers": 0}
        self.passing = asyncio.Event()
        self.passing.set()
        self.port, self.server, self.tasks, self.ends = None, None, set(), set()

    async def start(self):
        """Listens, at the same port each time."""
        self.server = await asyncio.start_server(self.accept, "127.0.0.1", self.port or 0)
        self.port = self.server.sockets[0].getsockname()[1]

    def refuse(self):
        """Takes no more connections, as when nobody listens at all."""
        self.server.close()

    async def close(self):
        self.refuse()
        self.passing.set()
        for end in self.ends:
            end.transport.abort()
        if self.tasks:
            await asyncio.wait(self.tasks)

    async def accept(self, reader, writer):
        self.tasks.add(asyncio.current_task())
        ends = {writer}
        try:
            from_other, other = await asyncio.open_connection("127.0.0.1", self.target)
            ends.add(other)
            self.ends |= ends
            both = [asyncio.ensure_future(self.pump(reader, other, "requests")),
                    asyncio.ensure_future(self.pump(from_other, writer, "answers"))]
            # Each end closes the whole connection, as those do who speak HTTP or to PostgreSQL.
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            for task in both:
                task.cancel()
            await asyncio.wait(both)
        except OSError:
            # Nobody is there: then nobody is here either.
            pass
        finally:
            self.tasks.discard(asyncio.current_task())
            self.ends -= ends
            for end in ends:
                self.abort(end)

    async def pump(self, reader, writer, kind):
        try:
            while True:
                said = await reader.read(1 << 16)
                await self.passing.wait()
                if not said:
                    # What was said before may be on its way still.
                    await writer.drain()
                    return
                if self.chance.random() < self.cutting:
                    self.cuts[kind] += 1
                    part = said[:self.chance.randrange(len(said))]
                    if part:
                        writer.write(part)
                        await writer.drain()
                    return
                writer.write(said)
                await writer.drain()
        except OSError:
            return

    def abort(self, writer):
        """Ends a connection; half of the time by a reset, as a machine does that knows nothing of it."""
        if self.cutting and self.chance.random() < 0.5:
            peer = writer.get_extra_info("socket")
            if peer is not None:
                try:
                    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                except OSError:
                    pass
            writer.transport.abort()
        else:
            # What is still to be said is said.
            writer.close()
