"""A real Slurm on this machine for a test: accounting, three made-up nodes with GPUs, no systemd.

Everything is in one folder and on loopback; `stop` ends all that was started, jobs included.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

PROGRAMS = ("munged", "mariadbd", "mariadb-install-db", "slurmdbd", "slurmctld", "slurmd", "sacct")
WAIT_S = 60.0
"""How long one of the programs may take until it answers."""

SLURM_CONF = """\
ClusterName=lab
SlurmctldHost=localhost
SlurmctldPort={ctld}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={root}/munge.sock
SlurmctldPidFile={root}/ctld.pid
SlurmdPidFile={root}/%n.pid
SlurmdSpoolDir={root}/spool-%n
StateSaveLocation={root}/state
SlurmctldLogFile={root}/slurmctld.log
SlurmdLogFile={root}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MailProg=/bin/true
SlurmdParameters=config_overrides
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
KillWait=1
InactiveLimit=0
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_interval=1,sched_min_interval=0,batch_sched_delay=0
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=localhost
AccountingStoragePort={dbd}
AccountingStoragePass={root}/munge.sock
AccountingStorageTRES=gres/gpu,gres/gpu:a100,gres/gpu:h100
NodeName=gpu1 NodeAddr=127.0.0.1 Port={gpu1} CPUs=8 RealMemory=8000 Gres=gpu:a100:2
NodeName=gpu2 NodeAddr=127.0.0.1 Port={gpu2} CPUs=8 RealMemory=8000 Gres=gpu:a100:2
NodeName=hgx1 NodeAddr=127.0.0.1 Port={hgx1} CPUs=8 RealMemory=8000 Gres=gpu:h100:4
PartitionName=gpu Nodes=gpu[1-2] Default=YES MaxTime=7-0 DefaultTime=10
PartitionName=h100 Nodes=hgx1 MaxTime=UNLIMITED DefaultTime=UNLIMITED
"""
GRES_CONF = """\
AutoDetect=off
NodeName=gpu[1-2] Name=gpu Type=a100 File={root}/card[0-1]
NodeName=hgx1 Name=gpu Type=h100 File={root}/card[0-3]
"""
SLURMDBD_CONF = """\
DbdHost=localhost
DbdPort={dbd}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={root}/munge.sock
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={db}
StorageUser=slurm
StoragePass=slurm
LogFile={root}/slurmdbd.log
PidFile={root}/dbd.pid
"""
GRANTS = """\
create database slurm_acct_db;
create user 'slurm'@'localhost' identified by 'slurm';
grant all on slurm_acct_db.* to 'slurm'@'localhost';
create user 'slurm'@'127.0.0.1' identified by 'slurm';
grant all on slurm_acct_db.* to 'slurm'@'127.0.0.1';
"""
NODES = ("gpu1", "gpu2", "hgx1")


def why_not() -> str:
    """Why no Slurm can be started here, "" if one can."""
    if os.geteuid() != 0:
        return "starts a real Slurm: as root only"
    missing = [name for name in PROGRAMS if shutil.which(name, path=_path()) is None]
    told = "slurmctld, slurmd, slurmdbd, slurm-client, munge and mariadb-server"
    return f"starts a real Slurm: no {missing[0]} here (Debian has {told})" if missing else ""


def _path() -> str:
    return f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


class RealSlurm:
    """A cluster that `start` brings up within seconds and `stop` takes down.

    Parameters
    ----------
    root: an empty folder that every user may enter; all files of the cluster are there.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        names = ("ctld", "dbd", "db", *NODES)
        self.ports = dict(zip(names, _free_ports(len(names)), strict=True))
        self.environment = {
            **os.environ, "PATH": _path(), "SLURM_CONF": str(root / "slurm.conf"), "TZ": "UTC",
        }  # fmt: skip
        self.running: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Bring it up.

        Raises
        ------
        RuntimeError: when a program does not answer, with the end of its log.
        """
        self._write()
        root = self.root
        self._launch(
            "munged", "--foreground", "--force", f"--socket={root}/munge.sock",
            f"--pid-file={root}/munged.pid", f"--key-file={root}/munge.key",
            f"--log-file={root}/munged.log", f"--seed-file={root}/munge.seed",
        )  # fmt: skip
        data = f"--datadir={root}/mysql"
        self.call("mariadb-install-db", "--no-defaults", "--user=root", data, "--skip-test-db")
        self._launch(
            "mariadbd", "--no-defaults", "--user=root", data, "--bind-address=127.0.0.1",
            f"--port={self.ports['db']}", f"--socket={root}/db.sock", f"--pid-file={root}/db.pid",
            "--innodb-buffer-pool-size=64M", "--innodb-lock-wait-timeout=900",
            "--innodb-flush-log-at-trx-commit=0", "--skip-name-resolve=0",
        )  # fmt: skip
        sql = ("mariadb", "--no-defaults", f"--socket={root}/db.sock")
        self.until(lambda: self._answers(*sql, "-e", "select 1"), "mariadbd")
        self.call(*sql, "-e", GRANTS)
        self._launch("slurmdbd", "-D", SLURM_CONF=str(root / "slurmdbd.conf"))
        self.until(lambda: self._answers("sacctmgr", "-n", "show", "cluster"), "slurmdbd")
        self.call("sacctmgr", "-i", "add", "cluster", "lab")
        self._launch("slurmctld", "-D", "-i")
        for node in NODES:
            self._launch("slurmd", "-D", "-N", node)
        self.until(lambda: self._idle() == len(NODES), "slurmctld")

    def _write(self) -> None:
        root, values = self.root, {"root": self.root, **self.ports}
        for name in ("state", "mysql", *(f"spool-{node}" for node in NODES)):
            (root / name).mkdir()
        for k in range(4):
            (root / f"card{k}").touch()  # plain files do as GPUs
        (root / "munge.key").write_bytes(secrets.token_bytes(128))
        (root / "slurm.conf").write_text(SLURM_CONF.format(**values))
        (root / "gres.conf").write_text(GRES_CONF.format(**values))
        (root / "slurmdbd.conf").write_text(SLURMDBD_CONF.format(**values))
        for name in ("munge.key", "slurmdbd.conf"):
            (root / name).chmod(0o600)
        version = self.call("slurmctld", "-V").split()[1].split(".")
        # 22.05 has no word for "no cgroups", but does nothing with v1 when nothing uses it
        plugin = "cgroup/v1" if int(version[0]) < 23 else "disabled"
        (root / "cgroup.conf").write_text(f"CgroupPlugin={plugin}\n")

    def call(self, *command: str) -> str:
        """What a command prints.

        Raises
        ------
        RuntimeError: when it fails, with what it says.
        """
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=WAIT_S,
            check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr or done.stdout}")
        return done.stdout

    def _launch(self, *command: str, **environment: str) -> None:
        with (self.root / f"{command[0]}.out").open("ab") as out:
            started = subprocess.Popen(
                command, env={**self.environment, **environment}, stdin=subprocess.DEVNULL,
                stdout=out, stderr=out, start_new_session=True, cwd=self.root,
            )  # fmt: skip
        self.running.append(started)

    def _answers(self, *command: str) -> bool:
        done = subprocess.run(command, env=self.environment, capture_output=True, check=False)
        return done.returncode == 0

    def _idle(self) -> int:
        done = subprocess.run(
            ("sinfo", "-h", "-N", "-t", "idle", "-o", "%N"), env=self.environment,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        return len(set(done.stdout.split()))

    def until(self, what: Callable[[], bool], name: str) -> None:
        """Wait until something is so that the program `name` is to bring about.

        Raises
        ------
        RuntimeError: when it does not come to be, with the end of the program's log.
        """
        latest = time.monotonic() + WAIT_S
        while not what():
            if time.monotonic() > latest:
                logs = [self.root / f"{name}{end}" for end in (".log", ".out")]
                said = "\n".join(log.read_text()[-800:] for log in logs if log.exists())
                raise RuntimeError(f"gave up on {name}: {said}")
            time.sleep(0.1)

    def stop(self) -> None:
        """End everything, the last that was started first."""
        for process in reversed(self.running):
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for pid in self.left():  # jobs, and the steps that watch them
            with suppress(ProcessLookupError):  # it has just ended by itself
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.root, ignore_errors=True)

    def left(self) -> list[int]:
        """Processes that know of this cluster by their environment."""
        wanted = str(self.root).encode()
        found = []
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit() and int(folder.name) != os.getpid():
                try:
                    known = wanted in (folder / "environ").read_bytes()
                except OSError:
                    continue  # it has ended
                if known:
                    found.append(int(folder.name))
        return found


def _free_ports(count: int) -> list[int]:
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in held]
    for s in held:
        s.close()
    return ports
