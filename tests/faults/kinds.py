"""What can fail. Each fault begins, lasts and ends in its function, which answers when it was over."""

import asyncio
import os
import signal
import time


class Fault:
    """A kind of fault. `breaks`: clients may lose connections by it; `loses`: and answers to moves that were played;
    `rounds`: at most so many."""

    def __init__(self, letter, name, strike, breaks=False, loses=False, rounds=None):
        self.letter, self.name, self.strike = letter, f"{letter}  {name}", strike
        self.breaks, self.loses, self.rounds = breaks, loses, rounds


async def kill_server(stage, number):
    await stage.server.end(signal.SIGKILL)
    await asyncio.sleep(0.3 * number)
    since = time.perf_counter()
    await stage.server.start()
    return since


async def kill_postgresql(stage, number):
    await stage.cluster.kill()
    stage.load.tally.died += 1
    # A proxy that accepts what is refused behind it would not be the same.
    stage.back.refuse()
    # Longer than a request waits for a connection, and so short that most get theirs.
    await asyncio.sleep((7, 0.2, 2)[number % 3])
    await stage.cluster.start()
    since = time.perf_counter()
    await stage.back.start()
    return since


def cut(proxies):
    """Cuts connections at random for some seconds."""
    async def strike(stage, _):
        chosen = [getattr(stage, name) for name in proxies]
        before = {proxy: dict(proxy.cuts) for proxy in chosen}
        for proxy in chosen:
            proxy.cutting = 0.05
        await asyncio.sleep(4)
        for proxy in chosen:
            proxy.cutting = 0.0
            for kind, count in proxy.cuts.items():
                stage.checks[f"cut in the middle of {kind}, {proxy.name}"](
                    count > before[proxy][kind], f"no {kind} were cut at the {proxy.name}")
        return time.perf_counter()
    return strike


async def fill_disk(stage, number):
    """Fills it to the last byte for some seconds; in every other round PostgreSQL's log too, without which it cannot live."""
    path, load = os.path.join(stage.cluster.folder, "ballast"), stage.load
    before = load.tally.reads
    with open(path, "wb", buffering=0) as ballast:
        until = time.perf_counter() + 5
        looking = asyncio.ensure_future(load.crowd(8, 5))
        filling = asyncio.ensure_future(stage.cluster.fill_log()) if number % 2 == 1 else None
        # Again and again: what the database gives back is taken too.
        while time.perf_counter() < until:
            size = 1 << 20
            while size:
                try:
                    ballast.write(bytes(size))
                except OSError:
                    size //= 2
            await asyncio.sleep(0.05)
        await looking
        if filling:
            await filling
    if stage.cluster.is_running():
        stage.checks["reads go on while the disk is full"](load.tally.reads > before, "nobody was told anything")
    os.unlink(path)
    if not stage.cluster.is_running():
        # It had no room for its log; what it was in the midst of then is for its recovery.
        load.tally.died += 1
        await stage.cluster.start()
    return time.perf_counter()


async def exhausted(stage, seconds, crowd):
    """More requests than there are connections, none of which is given back; what the server says of itself meanwhile."""
    load, until = stage.load, time.perf_counter() + seconds
    ready, began = [], time.perf_counter()

    async def probe_ready():
        while time.perf_counter() < until:
            answer = await load.try_once("GET", "/readyz")
            ready.append(answer.status if answer else None)
            await asyncio.sleep(0.2)

    async def probe_health():
        while time.perf_counter() < until:
            since = time.perf_counter()
            answer = await load.try_once("GET", "/healthz")
            took = time.perf_counter() - since
            stage.checks["/healthz answers at once"](
                answer is not None and answer.status == 200 and took < 1, f"{answer and answer.status} in {took:.2f} s")
            await asyncio.sleep(0.2)
    await asyncio.gather(probe_ready(), probe_health(), load.crowd(crowd, seconds))
    stage.checks["/readyz says that it is not ready"](503 in ready, f"{ready} in {time.perf_counter() - began:.0f} s")


async def lock_rows(stage, _):
    free = await stage.cluster.lock("positions")
    try:
        await exhausted(stage, 7, 40)
    finally:
        await free()
    return time.perf_counter()


async def freeze_postgresql(stage, _):
    thaw = await stage.cluster.freeze()
    try:
        await exhausted(stage, 7, 40)
    finally:
        await thaw()
    return time.perf_counter()


async def silence_network(stage, _):
    """Longer than a request may take: those that have a connection are given up too."""
    stage.back.passing.clear()
    try:
        await exhausted(stage, 34, 40)
    finally:
        stage.back.passing.set()
    return time.perf_counter()


async def stop(stage, flying):
    """Stops the server in order; what was on its way is answered."""
    began = time.perf_counter()
    try:
        await asyncio.wait_for(stage.server.end(signal.SIGTERM), 30)
    except asyncio.TimeoutError:
        await stage.server.end(signal.SIGKILL)
    took, status = time.perf_counter() - began, stage.server.process.returncode
    stage.checks["SIGTERM ends it in 10 s, with status 0"](took < 10 and status == 0, f"in {took:.1f} s with status {status}")
    await stage.load.until(lambda: all(request.became is not None for request in flying), 5)
    for request in flying:
        stage.checks["requests in flight are answered at the end"](
            isinstance(request.became, int), f"a request that was sent before the end became {request.became}")


async def stop_server(stage, number):
    # Whatever is younger may not have arrived.
    flying = [request for request in stage.load.flying.values() if time.perf_counter() - request.began > 0.1]
    await stop(stage, flying)
    return await start_again(stage)


async def stop_waiting_server(stage, number):
    free = await stage.cluster.lock("positions")
    await asyncio.sleep(0.6)
    flying = [request for request in stage.load.flying.values() if time.perf_counter() - request.began > 0.2]
    stopping = asyncio.ensure_future(stop(stage, flying))
    await asyncio.sleep(1)
    await free()
    await stopping
    return await start_again(stage)


async def stop_hanging_server(stage, number):
    thaw = await stage.cluster.freeze()
    await asyncio.sleep(1)
    flying = [request for request in stage.load.flying.values() if time.perf_counter() - request.began > 0.2]
    try:
        await stop(stage, flying)
    finally:
        await thaw()
    return await start_again(stage)


async def start_again(stage):
    since = time.perf_counter()
    await stage.server.start()
    return since


FAULTS = [
    Fault("a", "the server is killed", kill_server, breaks=True),
    Fault("b", "PostgreSQL is killed", kill_postgresql),
    Fault("c", "clients are cut off", cut(["front"]), breaks=True, loses=True),
    Fault("c", "PostgreSQL is cut off", cut(["back"]), loses=True),
    Fault("c", "both are cut off", cut(["front", "back"]), breaks=True, loses=True),
    Fault("d", "the disk is full", fill_disk),
    Fault("e", "a table is locked", lock_rows),
    Fault("e", "PostgreSQL hangs", freeze_postgresql),
    Fault("e", "the network is silent", silence_network, rounds=1),
    Fault("f", "SIGTERM", stop_server, breaks=True),
    Fault("f", "SIGTERM, a table is locked", stop_waiting_server, breaks=True),
    Fault("f", "SIGTERM, PostgreSQL hangs", stop_hanging_server, breaks=True, rounds=1),
]
