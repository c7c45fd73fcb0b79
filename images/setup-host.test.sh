#!/bin/bash
# Tests the parts of setup-host.sh that decide, in a folder of their own: no engine is started or stopped.
set -euo pipefail

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export PROCTOR_SETUP_RUN_DIR=$scratch/run PROCTOR_SETUP_LOG=$scratch/log
unset DOCKER_HOST XDG_RUNTIME_DIR
# shellcheck source=setup-host.sh
source "$(dirname "$0")/setup-host.sh"

passed=0 failed=0
check() {
  local name=$1
  shift
  if "$@" >"$scratch/output" 2>&1; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED: $name"
    sed 's/^/  /' "$scratch/output"
  fi
}
fresh() {
  rm -rf "$scratch/run"
  mkdir -p "$scratch/run/docker/containerd"
  problems=()
}
# A process of the given name, whose pid is then in $pid. A copy, since a script's name would be its interpreter's.
start_named() {
  cp "$(command -v sleep)" "$scratch/$1"
  "$scratch/$1" 60 &
  pid=$!
  until [ "$(cat "/proc/$pid/comm")" = "$1" ]; do sleep 0.01; done
}
gone() { [ ! -e "$1" ]; }
is_there() { [ -e "$1" ]; }
fails() { ! "$@"; }

# Set by start_named.
pid=
sleep 0 &
dead=$!
wait "$dead"

fresh
check 'nothing left behind is nothing to do' clear_leftovers

fresh
echo "$dead" >"$run_dir/docker.pid"
echo "$dead" >"$run_dir/docker/containerd/containerd.pid"
touch "$run_dir/docker.sock" "$run_dir/docker/containerd/containerd.sock" "$run_dir/docker/containerd/containerd.sock.ttrpc"
check 'pid files of dead processes are cleared' clear_leftovers
for left in docker.pid docker.sock docker/containerd/containerd.pid docker/containerd/containerd.sock docker/containerd/containerd.sock.ttrpc; do
  check "$left is removed" gone "$run_dir/$left"
done

fresh
echo "$$" >"$run_dir/docker.pid"
check 'a number that another program has now is stale' clear_leftovers
check 'its pid file is removed' gone "$run_dir/docker.pid"

fresh
echo 'not a number' >"$run_dir/docker.pid"
check 'a pid file without a number is stale' clear_leftovers

fresh
start_named dockerd
echo "$pid" >"$run_dir/docker.pid"
touch "$run_dir/docker.sock"
check 'a living dockerd is left alone' fails clear_leftovers
check 'with its pid file' is_there "$run_dir/docker.pid"
check 'with its socket' is_there "$run_dir/docker.sock"
check 'and it lives' kill -0 "$pid"
kill "$pid"
wait "$pid" 2>/dev/null || true

fresh
start_named containerd
echo "$pid" >"$run_dir/docker/containerd/containerd.pid"
check 'a containerd without its dockerd is ended' clear_leftovers
wait "$pid" 2>/dev/null || true
check 'and is gone' fails kill -0 "$pid"

fresh
touch "$run_dir/docker.sock"
check 'a file is no engine' fails find_engine
export DOCKER_HOST=unix://$scratch/nothing
check 'DOCKER_HOST is the only candidate' fails find_engine
ensure_engine
check 'and is named when nothing answers there' grep -q "DOCKER_HOST=unix://$scratch/nothing" <<<"${problems[*]}"
unset DOCKER_HOST

check 'versions: equal' at_least 1.88 1.88
check 'versions: newer by number, not by letter' at_least 1.88 1.100.0
check 'versions: older' fails at_least 1.88 1.87.9

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
