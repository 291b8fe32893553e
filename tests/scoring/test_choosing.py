"""Which run is meant: by its id, its name, the beginning of its id, or `newest`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support import logs

from proxy.log.writer import LogWriter
from scoring.choosing_cli import choose_runs
from scoring.errors_cli import InputError

IDS = ("20261130-1000-aaaa", "20261130-1100-bbbb", "20261201-0900-cccc")


@pytest.fixture
def log(tmp_path: Path) -> Callable[..., Path]:
    def written(name: str, *ids: str) -> Path:
        with LogWriter.open(tmp_path / name) as log:
            for number, run_id in enumerate(ids):
                log.put(logs.run(run_id, created_at=float(number)))
        return tmp_path / name

    return written


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (IDS[1], [IDS[1]]),
        ("20261130-11", [IDS[1]]),
        ("20261201", [IDS[2]]),
        ("newest", [IDS[2]]),
    ],
)
def test_a_run_is_told_by_a_beginning_of_its_id_or_as_the_newest(
    wanted: str, found: list[str], log: Callable[..., Path]
) -> None:
    assert [run.id for _, run in choose_runs([log("a.db", *IDS)], [wanted])] == found


def test_the_newest_of_several_logs_is_that_of_each(log: Callable[..., Path]) -> None:
    paths = log("a.db", *IDS[:2]), log("b.db", *IDS[1:])
    assert [run.id for _, run in choose_runs(paths, ["newest"])] == [IDS[1], IDS[2]]


@pytest.mark.parametrize(
    ("wanted", "said"),
    [("20261130", "several runs begin with '20261130'"), ("2027", "unknown run '2027'")],
)
def test_what_no_run_or_several_begin_with_is_refused_with_the_runs_and_their_dates(
    wanted: str, said: str, log: Callable[..., Path]
) -> None:
    with pytest.raises(InputError) as refused:
        choose_runs([log("a.db", *IDS)], [wanted])
    first, *listed = refused.value.message.splitlines()
    assert first.startswith(said) and first.endswith("; choose one of these:")
    assert [line.split()[0] for line in listed] == list(IDS)
    assert all("1970-01-01" in line for line in listed)
