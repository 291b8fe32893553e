"""Runs properties of the tests for long, guided by coverage where Atheris is installed.

    pip install -e '.[test]' -r .ci/fuzz/requirements.txt
    python .ci/fuzz/guided.py [PROPERTY ...] [--seconds N] [--corpus DIR]

A property is FILE::FUNCTION below `tests/`, a Hypothesis test that takes no fixture; without any, all of
PROPERTIES run, one after the other, `--seconds` each. What Atheris finds worth keeping is put into the
corpus, and the next run goes on from there. Without Atheris, Hypothesis makes the examples by chance.

Exit code 1 if a property failed. The bytes that did it are in Hypothesis's database: `python -m pytest
tests/FILE` fails with them too, and says the smallest example.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"

PROPERTIES = (
    "fuzz/test_scenario_files.py::test_any_bytes_load_or_are_told_of_in_one_line",
    "fuzz/test_scenario_files.py::test_a_file_with_bytes_changed_loads_or_is_told_of_in_one_line",
    "fuzz/test_scenario_files.py::test_a_record_with_any_values_changed_loads_or_is_told_of_in_one_line",
    "fuzz/test_arguments.py::test_argument_text_is_read_as_strict_json_or_has_one_fault",
    "fuzz/test_arguments.py::test_the_arguments_of_a_reference_are_right_by_both_checkers",
    "fuzz/test_arguments.py::test_whether_two_argument_objects_agree_does_not_depend_on_which_is_expected",
    "fuzz/test_answers.py::test_a_stream_says_the_same_however_its_bytes_are_cut",
    "fuzz/test_answers.py::test_any_stream_is_an_answer_or_a_named_failure",
    "fuzz/test_answers.py::test_any_body_is_an_answer_or_a_named_failure",
    "scenarios/test_matcher.py::test_agrees_with_the_path_listing_on_any_reference",
    "scenarios/test_matcher.py::test_the_minimal_path_is_the_first_of_the_shortest_paths",
    "scenarios/test_arguments.py::test_never_raises_and_always_says_something_known",
    "scenarios/test_arguments.py::test_rouge_l_equals_the_package_to_the_bit",
    "scenarios/strict/test_arguments.py::test_nothing_raises_whatever_schema_and_arguments_are",
    "scoring/test_published.py::test_scoring_never_raises",
    "scoring/test_strict_properties.py::test_what_the_released_scorer_takes_with_the_very_arguments_is_right",
)
OURS = ("scenarios", "scoring", "proxy")
"""Packages whose branches guide Atheris."""

EXECUTED = re.compile(r"stat::number_of_executed_units:\s*(\d+)")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("properties", nargs="*", default=PROPERTIES, metavar="PROPERTY")
    parser.add_argument("--seconds", type=float, default=60.0, help="for each property (default: 60)")
    parser.add_argument("--corpus", type=Path, default=ROOT / ".hypothesis" / "corpus")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        run(asked.properties[0], asked.seconds, asked.corpus)
        return 0
    failed = 0
    for name in asked.properties:
        failed += not apart(name, asked.seconds, asked.corpus)
    return 1 if failed else 0


def apart(name: str, seconds: float, corpus: Path) -> bool:
    """Runs a property in a process of its own, which Atheris ends as it likes; says how that went."""
    command = [sys.executable, __file__, "--one", name, "--seconds", str(seconds), "--corpus", str(corpus)]
    began = time.monotonic()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, errors="replace")
    executed = EXECUTED.search(done.stderr + done.stdout)
    count = f"{int(executed[1]):,} examples" if executed else "no count"
    verdict = "ok" if done.returncode == 0 else f"FAILED (exit code {done.returncode})"
    print(f"{verdict}: {name}: {count} in {time.monotonic() - began:.0f} s", flush=True)
    if done.returncode:
        print("\n".join((done.stdout + done.stderr).splitlines()[-60:]), flush=True)
    return done.returncode == 0


def run(name: str, seconds: float, corpus: Path) -> None:
    try:
        import atheris
    except ImportError:
        by_chance(found(name), seconds)
        return
    with atheris.instrument_imports(include=list(OURS)):
        test = found(name)
    folder = corpus / re.sub(r"\W+", "-", name)
    folder.mkdir(parents=True, exist_ok=True)
    options = (f"-max_total_time={seconds:.0f}", "-print_final_stats=1", "-timeout=60", "-max_len=8192")
    crashes = f"-artifact_prefix={folder.parent}/failed-"
    atheris.Setup([sys.argv[0], *options, crashes, str(folder)], test.hypothesis.fuzz_one_input)
    atheris.Fuzz()


def by_chance(test: Callable[[], None], seconds: float) -> None:
    """Rounds of ten thousand examples, until the time is over."""
    end, count = time.monotonic() + seconds, 0
    checks = list(HealthCheck)
    each = settings(max_examples=10_000, deadline=None, suppress_health_check=checks)(test)
    for rounds in itertools.count(1):
        each()
        count = rounds * 10_000
        if time.monotonic() >= end:
            break
    print(f"stat::number_of_executed_units: {count}")


def found(name: str) -> Any:
    """The test of this name, as pytest would import it."""
    sys.path[:0] = [str(ROOT), str(TESTS)]
    import conftest  # noqa: F401  (registers the profiles that tests ask for)

    path, _, function = name.partition("::")
    spec = importlib.util.spec_from_file_location(Path(path).stem, TESTS / path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path}: no such file below tests/")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return getattr(module, function)


if __name__ == "__main__":
    raise SystemExit(main())
