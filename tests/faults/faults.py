#!/usr/bin/env python3
"""Plays games at a server while it and all that it depends on fail, and checks that no acknowledged move is lost, none is
played twice, nothing hangs, errors are 503 with Retry-After, and that everything goes on by itself. `make faults`, or

    python3 tests/faults/faults.py [--only a,b,c,d,e,f] [--rounds 3] [--seed 1] [--tables 24] [--small-disk FOLDER]

The faults:
  a  the server is killed with SIGKILL and started again
  b  PostgreSQL is killed with SIGKILL, all its processes, and started again; the server stays
  c  connections are cut in the middle of requests and of answers: those of clients, those to PostgreSQL, and both
  d  the disk is full; PostgreSQL has one of 96 MB for it, a tmpfs, for which the script has to be root. Others name the folder
     where they have mounted one: `--small-disk`
  e  no connection to PostgreSQL is to be had: a table stays locked; PostgreSQL's processes stop; the network goes silent
  f  the server is stopped with SIGTERM: in the midst of play, while requests wait for a lock, and while PostgreSQL hangs

Needs Python 3.8, `ps`, and PostgreSQL's server programs. The server is TAVOLA_BIN, else the release build if there is one, else
the debug build. A check that has nothing to check fails. The exit status is 0 if all hold. Five to ten minutes.
"""

import argparse
import asyncio
import collections
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "common"))
from checks import Check, print_checks  # noqa: E402: found by the line before, or in this folder
from audit import Audit  # noqa: E402
from cluster import Cluster  # noqa: E402
from kinds import FAULTS  # noqa: E402
from load import Load, Tally  # noqa: E402
from proxy import Proxy  # noqa: E402
from wire import Server  # noqa: E402

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir)
# Fewer than there are tables, so that some wait for others.
CONNECTIONS = 8
# What every run has to have checked.
ALWAYS = ("the log is what was acknowledged, each once", "positions are where the logs end",
          "states of running games = replays of their logs", "records of finished games verify",
          "repeats answered as the first time", "streams tell what the server tells")


class Stage:
    """A cluster, a server, a proxy before each, and the load."""

    def __init__(self, name, folder, options, checks, small=None):
        self.name, self.options, self.checks, self.folder = name, options, checks, os.path.join(folder, name)
        os.makedirs(os.path.join(self.folder, "records"))
        os.chmod(folder, 0o755)
        settings = {"max_wal_size": "8MB", "min_wal_size": "2MB"} if small else {}
        home = small or os.path.join(self.folder, "cluster")
        os.makedirs(home, exist_ok=True)
        self.cluster = Cluster(home, os.path.join(folder, f"{name}-postgresql.log"), settings)
        self.back = Proxy("back", self.cluster.port, options.seed)
        self.log = os.path.join(folder, f"{name}-server.log")
        self.server = self.front = self.load = self.audit = None

    async def start(self):
        await self.cluster.create()
        await self.back.start()
        settings = {"DATABASE_URL": self.cluster.url(self.back.port), "TAVOLA_DB_CONNECTIONS": str(CONNECTIONS)}
        self.server = Server(self.name, self.options.binary, self.log, settings)
        self.front = Proxy("front", self.server.port, self.options.seed)
        await self.front.start()
        self.server.door = self.front.port
        await self.server.start()
        self.load = Load(self.server, self.options.seed, self.checks, self.options.tables)
        self.audit = Audit(self.load, self.cluster, self.options.binary, os.path.join(self.folder, "records"))
        self.load.running.set()
        await self.load.begin()

    async def end(self):
        """Ends all that was started, whatever is left of it."""
        if self.load:
            self.load.end()
        if self.server and self.server.process and self.server.process.poll() is None:
            await self.server.end()
        for proxy in filter(None, [self.front, self.back]):
            if proxy.server:
                await proxy.close()
        if self.cluster.is_running():
            await self.cluster.kill()

    def read_log(self):
        """What the server's log must not have."""
        with open(self.log, encoding="utf-8", errors="replace") as log:
            bad = [line for line in log if "panicked" in line or "the database failed" in line or "cannot be read" in line]
        self.checks["no faults of its own in the server's log"](not bad, lambda: f"{self.log}: {bad[:3]}")


def small_disk(options, folder):
    """A folder on a disk that is soon full, and what gives it back."""
    if options.small_disk:
        return options.small_disk, lambda: None
    if os.geteuid() != 0:
        raise SystemExit("to fill a disk the script mounts a small one, for which it has to be root; otherwise mount one and "
                         "name it by --small-disk, or leave this fault out: --only a,b,c,e,f")
    place = os.path.join(folder, "small")
    os.makedirs(place)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96m", "tmpfs", place]).returncode:
        raise SystemExit("no small disk can be mounted here: name one by --small-disk, or leave this out: --only a,b,c,e,f")
    return place, lambda: subprocess.run(["umount", place], check=True)


async def play(stage, faults, options, tallies):
    """All rounds of these faults on a stage."""
    load = stage.load
    for fault in faults:
        await load.hold()
        tally = load.tally = tallies[fault.name] = Tally()
        for number in range(options.rounds if fault.rounds is None else min(fault.rounds, options.rounds)):
            load.may_break = False
            await load.go()
            load.may_break = fault.breaks
            since = await fault.strike(stage, number)
            await asyncio.gather(load.first_move(since), load.recovered(since))
            load.may_break = False
            await load.hold()
            await stage.audit.run()
            tally.rounds += 1
        stage.checks["faults that were felt"](tally.refused + tally.cut, f"{fault.name}: nobody noticed")
        if fault.loses:
            stage.checks["lost answers that were given again"](tally.replayed, f"{fault.name}: not one of them")
        print(f"{fault.name}: {tally.rounds} rounds", file=sys.stderr, flush=True)
    # To the end of a game of every ruleset at least, so that there are records.
    load.tally = Tally()
    await load.go()
    rulesets = {table.kind[0] for table in load.tables}
    await load.until(lambda: {table.kind[0] for table in load.tables if table.played} == rulesets, 120)
    await load.hold()
    await stage.audit.run()
    stage.read_log()


def print_tallies(tallies):
    columns = ("rounds", "died", "sent", "acked", "repeated", "replayed", "503", "503 after", "cut", "reads", "longest", "first move",
               "(most)", "all on", "(most)")
    print(f"{'fault':<32}" + "".join(f"{column:>11}" for column in columns))
    for name, t in tallies.items():
        seconds = [t.longest]
        for values in (t.first, t.all):
            seconds += [statistics.median(values), max(values)] if values else [float("nan")] * 2
        cells = [t.rounds, t.died, t.sent, t.acknowledged, t.repeated, t.replayed, t.refused, t.refused_after, t.cut, t.reads]
        print(f"{name:<32}" + "".join(f"{cell:>11}" for cell in cells) + "".join(f"{value:>10.2f}s" for value in seconds))
    print("died: how often PostgreSQL did. sent, acked: moves. repeated: requests for a move that were sent again; replayed: "
          "those of them\nwhose first answer was lost. 503 after: those after the fault was over. reads: answers to those who "
          "only looked on during it.\nfirst move, all on: from its end to the first acknowledged move, and until every game has "
          "one; median of the rounds, and the most.\n")


def binary():
    """The server to test."""
    named = os.environ.get("TAVOLA_BIN")
    builds = [os.path.join(ROOT, "target", profile, "tavola") for profile in ("release", "debug")]
    for path in filter(None, [named, *builds]):
        if os.path.exists(path):
            return os.path.abspath(path)
    raise SystemExit("there is no server to test: cargo build --release --bin tavola, or name one by TAVOLA_BIN")


async def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="a,b,c,d,e,f", help="which faults, by their letters")
    parser.add_argument("--rounds", type=int, default=3, help="how often each; those that take long only once")
    parser.add_argument("--seed", type=int, default=1, help="decides what is played and cut; not how fast the machine is")
    parser.add_argument("--tables", type=int, default=24, help="how many games are played at once")
    parser.add_argument("--small-disk", help="an empty folder on a file system of about 96 MB, for the full disk")
    parser.add_argument("--keep", help="a folder for logs and records, which stay there")
    options = parser.parse_args()
    options.binary, letters = binary(), options.only.split(",")
    unknown = set(letters) - {fault.letter for fault in FAULTS}
    if unknown or options.rounds < 1 or options.tables < 1:
        parser.error(f"no such fault: {', '.join(unknown)}" if unknown else "a round and a table is the least")
    began, checks, tallies = time.perf_counter(), collections.defaultdict(Check), {}
    for name in ALWAYS:
        checks[name].count = 0
    folder = options.keep or tempfile.mkdtemp(prefix="tavola-faults-")
    os.makedirs(folder, exist_ok=True)
    # Also then what was started is ended.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asyncio.current_task().cancel)
    print(f"testing {options.binary}, logs in {folder}", file=sys.stderr, flush=True)
    try:
        for name, on_small in (("faults", False), ("disk", True)):
            faults = [fault for fault in FAULTS if fault.letter in letters and (fault.letter == "d") == on_small]
            if not faults:
                continue
            small, give_back = small_disk(options, folder) if on_small else (None, lambda: None)
            stage = Stage(name, folder, options, checks, small)
            try:
                await stage.start()
                await play(stage, faults, options, tallies)
            except Exception as error:
                # The figures up to there say where.
                checks["the games can go on"](False, repr(error))
            finally:
                await stage.end()
                give_back()
    finally:
        if not options.keep:
            shutil.rmtree(folder)
    print(f"\n{len(tallies)} faults, seed {options.seed}, {options.tables} games at once, in {time.perf_counter() - began:.0f} s")
    print_tallies(tallies)
    return 0 if print_checks(checks) else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
