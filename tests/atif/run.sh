#!/usr/bin/env bash
# Validates exports in ATIF by the validator of the format's own project (`make test-atif`, part of `make ci`): it installs Python
# packages into target/, of the project's package only the validator and its models.
#
# usage: tests/atif/run.sh [TRIAL|FILE ...]    without arguments: the fixtures of traces/, and the demo if it has been run
set -euo pipefail
cd "$(dirname "$0")/../.."

HARBOR=0.26.0
PYDANTIC=2.13.4
PROCTOR=${PROCTOR:-target/debug/proctor}
ROOM=target/atif

[ -x "$PROCTOR" ] || { echo "there is no $PROCTOR: cargo build -p proctor" >&2; exit 3; }
if [ ! -f "$ROOM/ready-2-$HARBOR-$PYDANTIC" ]; then
    rm -rf "$ROOM" && mkdir -p "$ROOM"
    python3 -m pip install --quiet --target "$ROOM/site" --disable-pip-version-check "pydantic==$PYDANTIC"
    # The package wants a newer Python than Debian has; its models do not.
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --python-version 3.13 \
        --dest "$ROOM" "harbor==$HARBOR"
    python3 - "$ROOM" <<'EOF'
import pathlib, sys, zipfile
room = pathlib.Path(sys.argv[1])
with zipfile.ZipFile(next(room.glob("harbor-*.whl"))) as wheel:
    wanted = [name for name in wheel.namelist() if name.startswith("harbor/models/trajectories/") or name == "harbor/utils/trajectory_validator.py"]
    wheel.extractall(room / "peer", wanted)
EOF
    touch "$ROOM/ready-2-$HARBOR-$PYDANTIC"
fi

if [ $# -eq 0 ]; then
    set -- traces/tests/fixtures/*.jsonl
    for trial in runs/demo/trials/*/*/*/*/; do [ -d "$trial" ] && set -- "$@" "$trial"; done
fi
OUT=$(mktemp -d)
trap 'rm -rf "$OUT"' EXIT
count=0
for subject in "$@"; do
    count=$((count + 1))
    "$PROCTOR" trace export --format atif "$subject" -o "$OUT/$count.json"
done
PYTHONPATH="$ROOM/peer:$ROOM/site" python3 - "$OUT" <<'EOF'
import pathlib, sys
from harbor.utils.trajectory_validator import TrajectoryValidator
paths = sorted(pathlib.Path(sys.argv[1]).glob("*.json"))
failed = 0
for path in paths:
    validator = TrajectoryValidator()
    if not validator.validate(path):
        failed += 1
        print(path.name, *validator.get_errors(), sep="\n  ")
print(f"{len(paths) - failed} of {len(paths)} trajectories are valid")
sys.exit(1 if failed or not paths else 0)
EOF
