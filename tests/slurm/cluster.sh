#!/bin/bash
# A Slurm cluster of one node on this machine, without systemd and beside any Slurm that may be here already:
#
#   cluster.sh start FOLDER    starts munged, slurmctld and slurmd; prints the line that makes sbatch and squeue use them
#   cluster.sh stop FOLDER     ends what `start` has started there, by pid, and nothing else
#
# All files lie in FOLDER, which is made if need be; `start` over the remains of a killed cluster clears them first. As root
# on Debian or Ubuntu what is missing is installed from the distribution's packages; elsewhere it is said, with exit status 1.
set -euo pipefail

readonly IDLE_WAIT_S=60
readonly STOP_WAIT_S=20
# Last started, first stopped.
readonly DAEMONS=(munged slurmctld slurmd)

# Daemons live there, and an ordinary user's search path may leave it out.
PATH=$PATH:/usr/sbin:/sbin

say() { printf 'slurm: %s\n' "$*" >&2; }
die() {
  say "$*"
  exit 1
}
have() { command -v "$1" >/dev/null 2>&1; }

missing_programs() {
  local program
  for program in munged mungekey slurmctld slurmd sbatch squeue scancel sinfo scontrol; do
    have "$program" || printf '%s ' "$program"
  done
}

ensure_programs() {
  [ -n "$(missing_programs)" ] || return 0
  if [ "$(id -u)" -eq 0 ] && have apt-get && grep -Eqi '^ID(_LIKE)?=.*(debian|ubuntu)' /etc/os-release; then
    say 'installing slurm-wlm munge'
    local said
    said=$(mktemp)
    # What apt says is shown only when it fails, and then only its end.
    if ! { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends slurm-wlm munge; } >"$said" 2>&1; then
      tail -n 3 "$said" >&2
    fi
    rm -f "$said"
    hash -r
  fi
  [ -z "$(missing_programs)" ] ||
    die "Slurm is missing ($(missing_programs)); on Debian and Ubuntu: sudo apt-get install slurm-wlm munge"
}

# Is the process that this pid file names alive, and still the daemon of that name?
lives() {
  local name=$1 pid
  pid=$(tr -dc '0-9' 2>/dev/null <"$folder/$name.pid" | head -c 10) || return 1
  # The alternatives system may call it slurmd-wlm.
  [ -n "$pid" ] && [[ "$(cat "/proc/$pid/comm" 2>/dev/null)" == "$name"* ]] &&
    tr '\0' '\n' <"/proc/$pid/cmdline" | grep -qF "$folder"
}

# Ends one daemon, if it lives, and removes its pid file.
end() {
  local name=$1 pid waited=0
  if lives "$name"; then
    pid=$(tr -dc '0-9' <"$folder/$name.pid")
    kill "$pid" 2>/dev/null || true
    while lives "$name" && [ "$waited" -lt $((STOP_WAIT_S * 10)) ]; do
      sleep 0.1
      waited=$((waited + 1))
    done
    ! lives "$name" || kill -KILL "$pid" 2>/dev/null || true
  fi
  rm -f "$folder/$name.pid"
}

# Processes of the cluster's jobs, found by their environment: its configuration, and the number of a job.
job_processes() {
  local environment pid
  for environment in /proc/[0-9]*/environ; do
    pid=${environment#/proc/}
    pid=${pid%/environ}
    if tr '\0' '\n' 2>/dev/null <"$environment" | grep -qxF "SLURM_CONF=$SLURM_CONF" &&
      { grep -qa '^slurmstepd' "/proc/$pid/cmdline" || tr '\0' '\n' <"$environment" | grep -q '^SLURM_JOB_ID='; } 2>/dev/null; then
      printf '%s\n' "$pid"
    fi
  done
}

stop() {
  local index pids
  # The daemons first, so that nothing begins while jobs are ended; killed daemons cannot do that any more.
  for ((index = ${#DAEMONS[@]} - 1; index >= 0; index--)); do
    end "${DAEMONS[index]}"
  done
  mapfile -t pids < <(job_processes)
  [ "${#pids[@]}" -eq 0 ] || kill -KILL "${pids[@]}" 2>/dev/null || true
}

# Two ports that nobody listens on now.
free_ports() {
  local port found=()
  for port in $(shuf -i 20000-30000 -n 200); do
    grep -qi "$(printf ':%04X ' "$port")" /proc/net/tcp /proc/net/tcp6 2>/dev/null || found+=("$port")
    [ "${#found[@]}" -lt 2 ] || break
  done
  printf '%s\n' "${found[@]}"
}

write_configuration() {
  local ports host processors
  mapfile -t ports < <(free_ports)
  host=$(hostname -s)
  # Several array tasks run at once on a machine with one processor too.
  processors=$(nproc)
  [ "$processors" -gt 1 ] || processors=2
  cat >"$folder/slurm.conf" <<END
ClusterName=proctor
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=${ports[0]}
SlurmdPort=${ports[1]}
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
CredType=cred/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.own.pid
SlurmdPidFile=$folder/slurmd.own.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
# No control groups and no accounting: they would need more of the machine than a test may ask for.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,sched_min_interval=100000,defer_batch
ReturnToService=2
KillWait=10
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
NodeName=$host NodeAddr=127.0.0.1 CPUs=$processors State=UNKNOWN
END
}

# launch NAME COMMAND… — in a session of its own, so that an interrupted make does not take it along.
launch() {
  local name=$1
  shift
  setsid nohup "$@" >>"$folder/$name.out" 2>&1 </dev/null &
  printf '%s\n' "$!" >"$folder/$name.pid"
}

# await NAME COMMAND… — until the command succeeds; a daemon that has died is not waited for.
await() {
  local name=$1 waited=0
  shift
  until "$@" >/dev/null 2>&1; do
    if [ "$waited" -ge $((IDLE_WAIT_S * 5)) ] || { [ "$waited" -gt 5 ] && ! lives "$name"; }; then
      say "$name does not come up; the end of what it said:"
      tail -n 5 "$folder/$name.out" "$folder/$name.log" >&2 2>/dev/null || true
      stop
      exit 1
    fi
    sleep 0.2
    waited=$((waited + 1))
  done
}

node_is_idle() { [ "$(sinfo --noheader --format=%T | tr -d '*~# ')" = idle ]; }

start() {
  ensure_programs
  stop
  # What an earlier cluster knew of jobs and sockets is not this one's.
  rm -rf "${folder:?}"/{state,spool,munge.socket,munge.socket.lock,munge.key,munge.seed,slurm.conf} "$folder"/*.{log,out}
  mkdir "$folder/state" "$folder/spool"
  chmod 0755 "$folder" "$folder/state" "$folder/spool"
  write_configuration
  mungekey --create --keyfile="$folder/munge.key"

  # Forced: it would refuse a folder below one that others may write, as a temporary one is.
  launch munged munged --foreground --force --socket="$folder/munge.socket" --key-file="$folder/munge.key" \
    --seed-file="$folder/munge.seed" --log-file="$folder/munged.log" --pid-file="$folder/munged.own.pid" --num-threads=2
  await munged test -S "$folder/munge.socket"
  launch slurmctld slurmctld -D -c -f "$folder/slurm.conf"
  await slurmctld scontrol ping
  launch slurmd slurmd -D -f "$folder/slurm.conf"
  await slurmd node_is_idle
  printf 'export SLURM_CONF=%q\n' "$SLURM_CONF"
}

[ $# -eq 2 ] || die 'usage: cluster.sh start|stop FOLDER'
case $1 in
  start) mkdir -p "$2" ;;
  stop) [ -d "$2" ] || exit 0 ;;
  *) die 'usage: cluster.sh start|stop FOLDER' ;;
esac
folder=$(cd "$2" && pwd -P)
export SLURM_CONF=$folder/slurm.conf
"$1"
