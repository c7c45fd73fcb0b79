#!/bin/bash
# Makes this machine able to build and run proctor: a container engine that answers, and the programs that the toolchain
# image, the agent CLIs and the build need. Called by `make demo`, `make test` and `make setup`.
#
# Installs only as root on Debian or Ubuntu, from the distribution's packages, and only what is missing. Elsewhere it uses
# what is there, or says exactly what is missing and how to get it, and exits with 1. Silent when there is nothing to do.
set -euo pipefail

readonly ENGINE_WAIT_S=60
here=$(dirname "${BASH_SOURCE[0]}")

# Tests point these at a folder of their own.
run_dir=${PROCTOR_SETUP_RUN_DIR:-/var/run}
log_file=${PROCTOR_SETUP_LOG:-/var/log/proctor-dockerd.log}

# Daemons live there, and an ordinary user's search path may leave it out.
PATH=$PATH:/usr/sbin:/sbin

problems=()

say() { printf 'setup: %s\n' "$*" >&2; }
problem() { problems+=("$*"); }
have() { command -v "$1" >/dev/null 2>&1; }

# May this script install packages?
can_install() {
  [ "$(id -u)" -eq 0 ] && have apt-get && [ -r /etc/os-release ] && grep -Eqi '^ID(_LIKE)?=.*(debian|ubuntu)' /etc/os-release
}

# Installs; what apt says is shown only when it fails, and then only its end.
install_packages() {
  local said
  say "installing $*"
  said=$(mktemp)
  if apt-get update -qq >"$said" 2>&1 &&
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >"$said" 2>&1; then
    rm -f "$said"
    hash -r
    return
  fi
  say 'apt-get failed; the end of what it said:'
  tail -n 3 "$said" >&2
  rm -f "$said"
  return 1
}

# Does something that speaks the engine's API listen at this address (unix://PATH, tcp://HOST:PORT or a path)?
answers() {
  case $1 in
    tcp://*) curl -fsS -m 5 -o /dev/null "http://${1#tcp://}/_ping" 2>/dev/null ;;
    unix://*) answers "${1#unix://}" ;;
    *) [ -S "$1" ] && curl -fsS -m 5 -o /dev/null --unix-socket "$1" http://localhost/_ping 2>/dev/null ;;
  esac
}

# Prints the address of an engine that answers; a DOCKER_HOST that is set is the only candidate.
find_engine() {
  local candidate
  if [ -n "${DOCKER_HOST:-}" ]; then
    answers "$DOCKER_HOST" && printf '%s\n' "$DOCKER_HOST"
    return
  fi
  for candidate in "$run_dir/docker.sock" "${XDG_RUNTIME_DIR:-/nonexistent}/docker.sock" \
    "$run_dir/podman/podman.sock" "${XDG_RUNTIME_DIR:-/nonexistent}/podman/podman.sock"; do
    if answers "$candidate"; then
      printf '%s\n' "$candidate"
      return
    fi
  done
  return 1
}

# clear_stale PIDFILE NAME — removes a pid file that a killed daemon left: the process is gone, or its number was given to
# another program. Fails when the daemon lives.
clear_stale() {
  local pid_file=$1 name=$2 pid
  [ -e "$pid_file" ] || return 0
  pid=$(tr -dc '0-9' <"$pid_file" | head -c 10)
  if [ -n "$pid" ] && [ -r "/proc/$pid/comm" ] && [ "$(cat "/proc/$pid/comm")" = "$name" ]; then
    return 1
  fi
  say "removing $pid_file, whose process is gone"
  rm -f "$pid_file"
}

# What a killed engine leaves behind would keep the next one from starting. Fails when an engine lives after all.
clear_leftovers() {
  clear_stale "$run_dir/docker.pid" dockerd || return 1
  if clear_stale "$run_dir/docker/containerd/containerd.pid" containerd; then
    rm -f "$run_dir"/docker/containerd/containerd*.sock "$run_dir"/docker/containerd/containerd*.sock.ttrpc
  else
    # Its dockerd is dead, so nobody uses it; a new dockerd would wait for its socket in vain or find it half gone.
    local pid
    pid=$(tr -dc '0-9' <"$run_dir/docker/containerd/containerd.pid")
    say "ending containerd $pid, left behind by a killed dockerd"
    kill "$pid" 2>/dev/null || true
    for _ in $(seq 50); do
      [ -d "/proc/$pid" ] || break
      sleep 0.1
    done
    rm -f "$run_dir/docker/containerd/containerd.pid"
  fi
  # Nobody listens there: connecting was tried.
  rm -f "$run_dir/docker.sock"
}

wait_for_engine() {
  local waited=0
  while [ "$waited" -lt "$ENGINE_WAIT_S" ]; do
    find_engine >/dev/null && return
    # Given the pid of the daemon, there is no use in waiting for a dead one.
    [ -z "${1:-}" ] || kill -0 "$1" 2>/dev/null || return 1
    sleep 1
    waited=$((waited + 1))
  done
  return 1
}

start_engine() {
  if [ -d /run/systemd/system ] && have systemctl; then
    say 'starting the container engine (systemctl start docker)'
    if systemctl start docker >&2 && wait_for_engine; then
      return
    fi
    problem 'the container engine does not start: see journalctl -u docker'
    return
  fi
  if ! clear_leftovers; then
    # A dockerd that lives may only be slow.
    wait_for_engine || problem "dockerd runs (pid $(cat "$run_dir/docker.pid")) but does not answer: see its log, or end it and try again"
    return
  fi
  say "starting dockerd; its log is $log_file"
  # In a session of its own, so that an interrupted make does not take the engine along.
  setsid nohup dockerd >>"$log_file" 2>&1 </dev/null &
  wait_for_engine "$!" && return
  say "the end of $log_file:"
  tail -n 5 "$log_file" >&2
  problem "dockerd does not start here: see $log_file. It needs a kernel that lets root mount and create namespaces; otherwise set DOCKER_HOST to an engine elsewhere"
}

ensure_engine() {
  find_engine >/dev/null && return
  if [ -n "${DOCKER_HOST:-}" ]; then
    problem "no container engine answers at DOCKER_HOST=$DOCKER_HOST: start it, or unset DOCKER_HOST"
    return
  fi
  if ! can_install; then
    if [ -S "$run_dir/docker.sock" ] && [ ! -w "$run_dir/docker.sock" ]; then
      problem "no permission to use $run_dir/docker.sock: sudo usermod -aG docker $(id -un), then log in again"
    elif have podman; then
      problem 'no container engine answers: start Podman'"'"'s (systemctl --user start podman.socket) or Docker, or set DOCKER_HOST'
    elif have dockerd; then
      problem 'no container engine answers: start Docker (sudo systemctl start docker) and be a member of the group docker, or set DOCKER_HOST'
    else
      problem 'no container engine answers: install one (Debian, Ubuntu: sudo apt-get install docker.io) and be a member of the group docker, or set DOCKER_HOST'
    fi
    return
  fi
  if ! have dockerd; then
    # Starting is done below; the package's own attempt fails where no init system runs.
    install_packages docker.io || {
      problem 'a container engine could not be installed: apt-get install docker.io'
      return
    }
    wait_briefly_for_package_start
  fi
  find_engine >/dev/null || start_engine
}

wait_briefly_for_package_start() {
  local _
  for _ in 1 2 3; do
    find_engine >/dev/null && return
    sleep 1
  done
}

# at_least WANTED FOUND — compares versions.
at_least() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; }

# Is there a cargo, and is it new enough? Asked in the tree, so that a pinned toolchain is what is looked at.
cargo_found() { (cd "$here/.." && cargo --version 2>/dev/null | cut -d ' ' -f 2); }
cargo_suits() { have cargo && at_least "$1" "$(cargo_found)"; }

# The package whose cargo is new enough. Debian keeps a recent one, made for building browsers, beside the release's own.
cargo_package() {
  local name version
  for name in cargo cargo-web; do
    version=$(apt-cache policy "$name" 2>/dev/null | sed -n 's/^ *Candidate: *\([0-9.]*\).*/\1/p')
    if [ -n "$version" ] && at_least "$1" "$version"; then
      printf '%s\n' "$name"
      return
    fi
  done
  return 1
}

ensure_cargo() {
  # Where rustup puts it; a fresh shell may not have it on PATH yet.
  have cargo || PATH=$PATH:${CARGO_HOME:-${HOME:-/root}/.cargo}/bin
  local wanted package
  wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$here/../Cargo.toml")
  cargo_suits "$wanted" && return
  # An old one that is there already is somebody's choice: it is not replaced.
  if ! have cargo && can_install && apt-get update -qq >/dev/null 2>&1 && package=$(cargo_package "$wanted"); then
    install_packages "$package" && cargo_suits "$wanted" && return
  fi
  if have cargo; then
    problem "cargo $(cargo_found) is too old, $wanted or later is needed: rustup update stable, or install Rust with rustup"
  else
    problem "\`cargo\` is missing, $wanted or later is needed: install Rust with rustup, or from your distribution if it is new enough"
  fi
}

# Looks for the module instead of starting it, which takes a second.
have_pip() { python3 -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec("pip") is None)' 2>/dev/null; }

# Sets `packages` to what has to be installed for the programs that are missing.
list_missing() {
  packages=()
  have curl || packages+=(curl ca-certificates)
  have cc || packages+=(gcc libc6-dev)
  have npm || packages+=(npm)
  have_pip || packages+=(python3 python3-pip)
}

ensure_programs() {
  local packages wanted
  list_missing
  wanted=(${packages[@]+"${packages[@]}"})
  if can_install; then
    # It makes the base image where no registry answers. Where it cannot be had, a registry may do.
    have mmdebstrap || wanted+=(mmdebstrap)
    if [ "${#wanted[@]}" -gt 0 ]; then
      install_packages "${wanted[@]}" || true
      list_missing
    fi
  fi
  if [ "${#packages[@]}" -gt 0 ]; then
    problem "programs are missing; on Debian and Ubuntu: sudo apt-get install ${packages[*]}"
  fi
}

main() {
  ensure_programs
  ensure_cargo
  # Without curl an engine cannot be asked; that it is missing has been said.
  if have curl; then
    ensure_engine
  fi
  if [ "${#problems[@]}" -gt 0 ]; then
    say 'this machine lacks something:'
    printf '  - %s\n' "${problems[@]}" >&2
    exit 1
  fi
}

# Sourced by its test, run otherwise.
if [ "${BASH_SOURCE[0]}" = "$0" ]; then
  main "$@"
fi
