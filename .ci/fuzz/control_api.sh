#!/usr/bin/env bash
# Sends a running proxy what its description of the control API allows, and what it does not, with all of
# Schemathesis's checks: no 5xx, no status, header or field that is not described, nothing without the token.
#
#     bash .ci/fuzz/control_api.sh [EXAMPLES]      (for each operation; default 100)
#
# Needs what requirements.txt beside it names (`st` or `schemathesis` on the path) and the package itself.
# The stream of events does not end, so it is left out here: tests/proxy/test_event_stream.py has it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
examples=${1:-100}
work=$(mktemp -d)
proxy=
ended() {
  if [ -n "$proxy" ]; then kill "$proxy" 2>/dev/null || true; fi
  rm -rf "$work"
}
trap ended EXIT

EVAL_TOKEN=$(python -c 'import secrets; print(secrets.token_urlsafe(24))')
export EVAL_TOKEN
python run_proxy.py serve --scenarios bundled --provider sim:oracle --log "$work/log.db" --port 0 \
  >"$work/said" 2>&1 &
proxy=$!
url=
for _ in $(seq 300); do
  url=$(grep -oE 'http://127\.0\.0\.1:[0-9]+' "$work/said" | head -1) && break
  kill -0 "$proxy" || { cat "$work/said"; exit 1; }
  sleep 0.2
done

# A turn that nobody plays is never answered: waiting for it would be all that is done.
cat >"$work/schemathesis.toml" <<TOML
[parameters]
"query.wait" = 0
TOML

schemathesis --config-file "$work/schemathesis.toml" run "$url/eval/openapi.json" \
  --header "Authorization: Bearer $EVAL_TOKEN" --exclude-path /eval/events --checks all --mode all \
  --max-examples "$examples" --request-timeout 30 --continue-on-failure --no-color
if grep -n Traceback "$work/said"; then exit 1; fi
