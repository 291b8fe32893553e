#!/usr/bin/env bash
# Do the lower bounds of the dependencies hold? Installs the oldest versions that `pyproject.toml` allows, in an
# environment of its own, plays the demo there, and runs the quick part of the tests. These need newer versions of
# some (the extra `test` says which), so they come second, with the rest as old as may be.
#
#   bash .ci/lowest.sh [TESTS...]    # by default the folders named below
#
# Not a part of `.ci/run`: the bounds change seldom, and this takes minutes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/clone"
git ls-files -z --cached --others --exclude-standard |
  while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done |
  tar --null -cf - -T - | tar -xf - -C "$work/clone"
if [ -d ../shared ]; then ln -s "$(cd ../shared && pwd)" "$work/shared"; fi
cd "$work/clone"

# Each `NAME>=LOWEST,<NEXT` becomes `NAME==LOWEST`.
python3 - "$work" <<'PYTHON'
import re
import sys
import tomllib
from pathlib import Path

project = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]
name_of = lambda requirement: re.match(r"[\w.-]+", requirement)[0]
needed = project["dependencies"]
lowest = [re.sub(r">=([^,]+).*", r"==\1", requirement) for requirement in needed]
tests = project["optional-dependencies"]["test"]
newer = set(map(name_of, tests))
tests += [it for it in lowest if name_of(it) not in newer]
for name, requirements in (("lowest", lowest), ("tests", tests)):
    (Path(sys.argv[1]) / f"{name}.txt").write_text("\n".join(requirements) + "\n", "utf-8")
PYTHON
cat "$work/lowest.txt"

python3 -m venv .venv
install=(.venv/bin/pip install --quiet --disable-pip-version-check)
"${install[@]}" -r "$work/lowest.txt" 'setuptools>=77'
"${install[@]}" --no-build-isolation --no-deps -e .
.venv/bin/pip check
.venv/bin/wildproxy demo --folder "$work/demo"

"${install[@]}" -r "$work/tests.txt"
if [ "$#" -eq 0 ]; then
  set -- tests/scenarios tests/scoring tests/proxy/wire tests/proxy/test_app.py tests/proxy/test_recording.py \
    tests/proxy/test_provider.py tests/proxy/test_mcp_mode.py tests/proxy/log
fi
.venv/bin/python -m pytest -q -n "${PYTEST_XDIST_AUTO_NUM_WORKERS:-2}" "$@"
