"""A PostgreSQL of the test's own, which can be killed as a crash would kill it, and stopped in the middle of its work."""

import asyncio
import glob
import os
import pwd
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "common"))
from wire import free_port  # noqa: E402: found by the line before

DATABASE = "tavola"
# The server programs on most systems; the newest comes last.
PLACES = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql@*/bin", "/usr/local/pgsql/bin")
# How long PostgreSQL may take to accept connections: it recovers from a crash first.
START = 60.0


def programs():
    """The folder of PostgreSQL's server programs."""
    named = os.environ.get("TAVOLA_PG_BIN")
    found = sorted((folder for place in PLACES for folder in glob.glob(place)),
                   key=lambda folder: [int(part) for part in folder.replace("-", "/").split("/") if part.isdigit()])
    on_path = os.path.dirname(os.path.realpath(shutil.which("initdb") or ""))
    for folder in filter(None, [named, *reversed(found), on_path]):
        if os.path.exists(os.path.join(folder, "initdb")):
            return folder
    raise SystemExit("no initdb is found: install PostgreSQL's server, or say where it is by TAVOLA_PG_BIN")


class Cluster:
    """A cluster in a folder of its own, with `fsync` on as it is by default. Root runs it as another account, as it must."""

    def __init__(self, folder, log, settings=None):
        self.folder, self.log, self.bin, self.port = folder, log, programs(), free_port()
        self.data, self.process, self.settings = os.path.join(folder, "data"), None, settings or {}
        self.account = None
        if os.geteuid() == 0:
            names = {entry.pw_name: entry for entry in pwd.getpwall()}
            self.account = names.get("postgres") or names["nobody"]

    def url(self, port=None):
        """How a server reaches it, by a proxy's port perhaps."""
        return f"postgres://postgres@127.0.0.1:{port or self.port}/{DATABASE}"

    def become(self):
        """In a new process: the account that it is run as, and a group of its own, so that Ctrl-C is for the test."""
        os.setsid()
        if self.account:
            os.setgid(self.account.pw_gid)
            os.setgroups([self.account.pw_gid])
            os.setuid(self.account.pw_uid)

    def run(self, program, *arguments):
        """Runs one of its programs to its end."""
        with open(self.log, "ab") as log:
            subprocess.run([os.path.join(self.bin, program), *arguments], stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                           preexec_fn=self.become, check=True, cwd="/")

    async def create(self):
        """Makes it and its database, and starts it."""
        if self.account:
            os.chown(self.folder, self.account.pw_uid, self.account.pw_gid)
        # Small segments, so that a small disk has room for some.
        self.run("initdb", "-D", self.data, "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "--wal-segsize=1")
        settings = {"listen_addresses": "127.0.0.1", "port": self.port, "unix_socket_directories": self.folder,
                    "max_connections": 60, **self.settings}
        with open(os.path.join(self.data, "postgresql.auto.conf"), "a", encoding="utf-8") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())
        await self.start()
        await self.sql(f"create database {DATABASE}", "postgres")

    async def start(self):
        """Starts it and waits until it accepts connections."""
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([os.path.join(self.bin, "postgres"), "-D", self.data], stdout=log, stderr=log,
                                            stdin=subprocess.DEVNULL, preexec_fn=self.become, cwd="/")
        until = time.perf_counter() + START
        while not await self.accepts():
            if self.process.poll() is not None or time.perf_counter() > until:
                raise SystemExit(f"PostgreSQL does not start, see {self.log}")
            await asyncio.sleep(0.02)

    async def accepts(self):
        """Whether it accepts connections."""
        asked = await asyncio.create_subprocess_exec(
            os.path.join(self.bin, "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port), "-d", "postgres",
            "-U", "postgres")
        return await asked.wait() == 0

    def is_running(self):
        """Whether its first process lives."""
        return self.process is not None and self.process.poll() is None

    async def kill(self):
        """What a crash of the machine leaves of it: nothing but what is on disk."""
        first = self.process.pid
        # Frozen first, or it would start others for those that die.
        os.kill(first, signal.SIGSTOP)
        children = [pid for pid, parent in processes() if parent == first]
        for pid in [first, *children]:
            os.kill(pid, signal.SIGKILL)
        self.process.wait()
        while {pid for pid, _ in processes()} & set(children):
            await asyncio.sleep(0.01)

    async def stop(self):
        """Stops it in order."""
        if self.is_running():
            self.process.send_signal(signal.SIGINT)
            while self.process.poll() is None:
                await asyncio.sleep(0.02)

    def psql(self, database):
        return [os.path.join(self.bin, "psql"), "-XqAt", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", str(self.port),
                "-U", "postgres", "-d", database]

    async def sql(self, statement, database=DATABASE):
        """The lines that a statement answers with."""
        with open(self.log, "ab") as log:
            asked = await asyncio.create_subprocess_exec(
                *self.psql(database), "-c", statement, stdout=asyncio.subprocess.PIPE, stderr=log)
        lines = (await asked.communicate())[0].decode().splitlines()
        if asked.returncode:
            raise RuntimeError(f"psql fails at {statement}, see {self.log}")
        return lines

    async def fill_log(self):
        """Writes more into its write-ahead log than it has room for, once the disk is full."""
        await asyncio.sleep(2)
        try:
            await self.sql("select pg_logical_emit_message(false, 'faults', repeat('x', 16000000))")
        except RuntimeError:
            # That is what becomes of it.
            pass

    async def lock(self, table):
        """Locks a table against everybody, also readers; answers what frees it."""
        session = await asyncio.create_subprocess_exec(
            *self.psql(DATABASE), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE)
        session.stdin.write(f"begin;\nlock table {table};\n\\echo locked\n".encode())
        if (await asyncio.wait_for(session.stdout.readline(), 20)).strip() != b"locked":
            raise RuntimeError(f"{table} cannot be locked")

        async def free():
            session.stdin.write(b"rollback;\n")
            session.stdin.close()
            await session.wait()
        return free

    async def freeze(self):
        """Stops the processes that serve connections in the middle of what they do; answers what lets them go on."""
        pids = [int(pid) for pid in await self.sql(
            f"select pid from pg_stat_activity where datname = '{DATABASE}' and backend_type = 'client backend' "
            "and pid <> pg_backend_pid()")]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)

        async def thaw():
            for pid in pids:
                try:
                    os.kill(pid, signal.SIGCONT)
                except ProcessLookupError:
                    pass
        return thaw


def processes():
    """Every process with its parent, those aside that have ended already."""
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,stat="], stdout=subprocess.PIPE, check=True, text=True).stdout
    rows = [line.split() for line in listed.splitlines()]
    return [(int(row[0]), int(row[1])) for row in rows if not row[2].startswith("Z")]
