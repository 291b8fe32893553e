#!/usr/bin/env bash
# Are there published advisories against what the program needs to run, in the versions that are installed?
#
#   bash .ci/audit.sh PYTHON    # of an environment with the program in it, and with `packaging`
#
# Fails only for an advisory. Where none can be asked for (no network, an index without them) it says so; one
# package is asked for first, as it takes long to make an environment to ask from.
set -euo pipefail
python=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$python" - >"$work/needed.txt" <<'PYTHON'
from importlib.metadata import distribution

from packaging.requirements import Requirement

needed, found = ["wildtoolbench-proxy"], {}
while needed:
    package = distribution(needed.pop())
    for requirement in map(Requirement, package.requires or ()):
        wanted = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if wanted and requirement.name not in found:
            found[requirement.name] = distribution(requirement.name).version
            needed.append(requirement.name)
print("\n".join(f"{name}=={version}" for name, version in sorted(found.items())))
PYTHON

if ! "$python" - "$(grep '^aiohttp==' "$work/needed.txt")" <<'PYTHON'
import sys
from urllib.request import urlopen

url = f"https://pypi.org/pypi/{sys.argv[1].replace('==', '/')}/json"
try:
    urlopen(url, timeout=20).close()
except OSError as error:
    print(f".ci/audit.sh: advisories cannot be asked for here: {url}: {error}")
    raise SystemExit(1)
PYTHON
then exit 0; fi
python3 -m venv "$work/audit"
if ! "$work/audit/bin/pip" install --quiet --disable-pip-version-check 'pip-audit>=2.7,<3' 2>"$work/pip.log"; then
  echo ".ci/audit.sh: pip-audit cannot be installed, so advisories were not looked for"
  exit 0
fi
"$work/audit/bin/pip-audit" --requirement "$work/needed.txt" --no-deps --disable-pip --progress-spinner off \
  --format json >"$work/audit.json" 2>"$work/audit.log" || true

"$python" - "$work/audit.json" "$work/audit.log" <<'PYTHON'
import json
import sys
from pathlib import Path

report, log = map(Path, sys.argv[1:])
try:
    packages = json.loads(report.read_text("utf-8"))["dependencies"]
except ValueError:
    said = log.read_text("utf-8").strip().splitlines()
    print(f".ci/audit.sh: advisories cannot be asked for here: {said[-1] if said else 'no answer'}")
    raise SystemExit(0)
asked = [it for it in packages if "skip_reason" not in it]
print(f".ci/audit.sh: {len(asked)} of {len(packages)} packages were looked up")
if not asked:
    print(f".ci/audit.sh: advisories cannot be asked for here: {packages[0]['skip_reason']}")
bad = [(it["name"], it["version"], vuln) for it in asked for vuln in it["vulns"]]
for name, version, vuln in bad:
    print(f"{name} {version}: {vuln['id']}, mended in {', '.join(vuln['fix_versions']) or 'no version'}")
raise SystemExit(1 if bad else 0)
PYTHON
