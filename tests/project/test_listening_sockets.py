"""Which sockets a session of the project's settings listens on: those of loopback alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

import pytest
import yaml

from tests.support.pipelines import ROOT
from windows_pipeline.settings import SETTINGS_VARIABLE, Settings, load_settings

_SCRIPT = """
from pathlib import Path
from windows_pipeline.compat.spark_session import start_session
from windows_pipeline.settings import load_settings

session = start_session(load_settings(Path.cwd()))
numbers = session.sparkContext.parallelize(range(2), 2).map(lambda number: number + 1)
assert numbers.sum() == 3
assert session.sparkContext.getConf().get("spark.authenticate") == "true"
assert session.range(2).mapInPandas(lambda batches: batches, "id bigint").count() == 2
print("started", flush=True)
input()
"""
"""It has Python workers started, and leaves them there, until its input ends."""
_OF_SOCKETS = [Path("/proc/net/tcp"), Path("/proc/net/tcp6")]
_LISTENS = "0A"
_ON_LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}

Address = IPv4Address | IPv6Address


@pytest.mark.skipif(not _OF_SOCKETS[0].exists(), reason="the system has no /proc/net/tcp")
def test_a_local_session_listens_on_loopback_alone(tmp_path: Path) -> None:
    with session_of_settings(tmp_path) as process:
        found = listening(process.pid)
    programs = {name for name, _ in found}
    assert "java" in programs
    assert any(name.startswith("python") for name in programs)
    assert [(name, str(address)) for name, address in found if not address.is_loopback] == []


@pytest.mark.parametrize(
    ("master", "authenticated"),
    [
        ("local", "true"),
        ("local[*]", "true"),
        ("local[2,3]", "true"),
        ("local-cluster[1,1,1024]", "false"),
    ],
)
def test_a_local_master_has_its_driver_on_loopback_without_a_ui(
    master: str, authenticated: str
) -> None:
    conf = settings_of({"spark.master": master}).spark_conf()
    assert conf.items() >= {**_ON_LOOPBACK, "spark.ui.enabled": "false"}.items()
    assert conf["spark.authenticate"] == authenticated


def test_settings_may_say_otherwise() -> None:
    own = {
        "spark.master": "local[*]",
        "spark.driver.host": "driver.example",
        "spark.driver.bindAddress": "192.0.2.1",
        "spark.ui.enabled": "true",
    }
    assert settings_of(own).spark_conf().items() >= own.items()


@pytest.mark.parametrize(
    "where", [{"spark.master": "spark://master.example:7077"}, {"spark.remote": "sc://server"}]
)
def test_where_executors_are_elsewhere_spark_chooses_the_addresses(where: dict[str, str]) -> None:
    conf = settings_of(where).spark_conf()
    assert not conf.keys() & {*_ON_LOOPBACK, "spark.ui.enabled", "spark.authenticate"}


def settings_of(spark: dict[str, str]) -> Settings:
    return load_settings(ROOT).model_copy(update={"spark": spark})


@contextmanager
def session_of_settings(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process, the leader of a session of processes, with a session of Spark at work."""
    settings = yaml.safe_load((ROOT / "settings.yaml").read_text())
    (folder / "settings.yaml").write_text(yaml.safe_dump(settings))
    others = {name: value for name, value in os.environ.items() if name != SETTINGS_VARIABLE}
    process = subprocess.Popen(
        [sys.executable, "-c", _SCRIPT],
        cwd=folder,
        env={**others, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        assert "started\n" in iter(process.stdout.readline, "")
        yield process
    finally:
        process.communicate()
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def listening(leader: int) -> list[tuple[str, Address]]:
    """The programs of a session of processes, with the addresses that each listens on."""
    addresses = dict(listening_sockets())
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            name, fields = (folder / "stat").read_text().split("(", 1)[1].rsplit(") ", 1)
            if int(fields.split()[3]) != leader:
                continue
            opened = [str(file.readlink()) for file in (folder / "fd").iterdir()]
            found += [(name, addresses[link]) for link in opened if link in addresses]
    return found


def listening_sockets() -> Iterator[tuple[str, Address]]:
    """All of the machine: how a file descriptor links to each, and its address."""
    for table in _OF_SOCKETS:
        for line in table.read_text().splitlines()[1:]:
            _, local, _, state, *others = line.split()
            if state == _LISTENS:
                yield f"socket:[{others[5]}]", address_of(local.split(":")[0])


def address_of(text: str) -> Address:
    """An address as /proc has it: hexadecimal words of 32 bits, in the machine's byte order."""
    words = [int(text[at : at + 8], 16) for at in range(0, len(text), 8)]
    address = ip_address(b"".join(word.to_bytes(4, sys.byteorder) for word in words))
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
