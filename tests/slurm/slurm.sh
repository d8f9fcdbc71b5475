#!/usr/bin/env bash
# slurm.sh - `lrnn sweep --slurm` under a real Slurm: one node on loopback, started here and ended again. A task is
# killed and queued again, one runs out of its time and goes on, the whole is what one process makes. Needs Debian's
# slurm-wlm and munge, and root, whom slurmd wants to be. Exit 0: all held; 1: something did not, named; 2: no Slurm.
#
#   tests/slurm/slurm.sh LRNN       make test-slurm
set -euo pipefail
lrnn=$(readlink -f "${1:-./lrnn}")
for program in slurmctld slurmd munged sbatch squeue scontrol scancel; do
    PATH=$PATH:/usr/sbin command -v "$program" >/dev/null || {
        echo "slurm.sh: no $program; apt-get install slurm-wlm munge" >&2
        exit 2
    }
done
[ "$(id -u)" -eq 0 ] || { echo "slurm.sh: slurmd runs as root alone" >&2; exit 2; }
PATH=$PATH:/usr/sbin
work=$(mktemp -d /tmp/lrnn-slurm.XXXXXX)
daemons=()
end() {
    local status=$? i
    scancel --user root >/dev/null 2>&1 || true
    for ((i = ${#daemons[@]} - 1; i >= 0; i--)); do kill "${daemons[i]}" 2>/dev/null || true; done
    sleep 1
    [ "$status" -eq 0 ] || tail -n 20 "$work"/*.log "$work"/out/slurm/*.log >&2 2>/dev/null || true
    rm -rf "$work"
}
trap end EXIT

say() { printf '%(%H:%M:%S)T %s\n' -1 "$*"; }
die() { say "FAILED: $*"; exit 1; }

# wait_for SECONDS WHAT COMMAND...: until the command succeeds.
wait_for() {
    local left=$1 what=$2
    shift 2
    until "$@" >/dev/null 2>&1; do
        [ $((left -= 1)) -gt 0 ] || die "waited too long for $what"
        sleep 1
    done
    say "$what"
}

# A port of loopback that nobody listens on, below those that the system gives away.
free_port() {
    local port
    while port=$((20000 + RANDOM % 10000)) && (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do :; done
    echo "$port"
}

# --- a cluster of one node --------------------------------------------------------------------------------------------
host=$(hostname -s)
dd if=/dev/urandom of="$work/key" bs=1 count=128 status=none
chmod 400 "$work/key"
chmod 755 "$work"
control_port=$(free_port)
while node_port=$(free_port) && [ "$node_port" -eq "$control_port" ]; do :; done
mkdir -p "$work/munge" "$work/state" "$work/spool"
munged --foreground --force --socket="$work/munge/socket" --key-file="$work/key" --pid-file="$work/munge/pid" \
    --seed-file="$work/munge/seed" --log-file="$work/munge.log" >"$work/munged.log" 2>&1 &
daemons+=($!)
cat >"$work/slurm.conf" <<END
ClusterName=loopback
SlurmctldHost=$host(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket=$work/munge/socket
CryptoType=crypto/munge
SlurmUser=root
SlurmctldPort=$control_port
SlurmdPort=$node_port
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
ReturnToService=2
MinJobAge=600
KillWait=20
SchedulerParameters=requeue_setup_env_fail,bf_interval=1,sched_interval=1
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=60 State=UP
END
export SLURM_CONF=$work/slurm.conf
slurmctld -D >"$work/slurmctld.log" 2>&1 &
daemons+=($!)
slurmd -D >"$work/slurmd.log" 2>&1 &
daemons+=($!)
node_is_idle() { sinfo -h -o %t | grep idle >/dev/null; }
wait_for 60 "Slurm $(sinfo --version | cut -d' ' -f2): one node is idle" node_is_idle

# --- the sweep --------------------------------------------------------------------------------------------------------
# Each run takes some seconds, so that one can be killed at work.
steps=${STEPS:-8000}
# shellcheck disable=SC2054 # the commas are the task's
sweep=(sweep s3:n_train=2000,n_val=100,n_test=100 --profile smoke --models 'lru:state=32 lstm:hidden=32' --seeds 2
    --lr 0.001 --steps "$steps" --stop-at 2 --checkpoint-every 1s --no-speed --no-plots)
say "lrnn sweep ... --slurm 2: 4 runs, $steps steps each"
job=$("$lrnn" "${sweep[@]}" -j 1 --out "$work/out" --slurm 2 --sbatch='--cpus-per-task=1')
say "job $job"
records() { find "$work/out/runs" -name '*.json' 2>/dev/null | wc -l; }
checkpoints() { find "$work/out/checkpoints" -name '*.ckpt' 2>/dev/null | wc -l; }
log() { cat "$work/out/slurm/${job}_$1.log"; }
has_checkpoint() { [ "$(checkpoints)" -ge 2 ]; }
wait_for 60 "each task has a checkpoint" has_checkpoint

sleep 2
# Task 1 is requeued while it works, as for a job of more weight; task 2 hears that its time is nearly over.
scontrol requeue "${job}_1"
saved() {
    log "$1" | grep 'running runs save their checkpoints' >/dev/null && log "$1" | grep 'stopped with' >/dev/null
}
wait_for 60 "task 1 has saved on SIGTERM" saved 1
scancel --batch --signal=USR1 "${job}_2"
wait_for 60 "task 2 has saved on SIGUSR1" saved 2
restarted() { scontrol show job "${job}_$1" | grep 'Restarts=1' >/dev/null; }
wait_for 60 "task 1 is in the queue again" restarted 1
wait_for 60 "task 2 is in the queue again, by itself" restarted 2
[ "$(records)" -lt 4 ] || die "nothing was interrupted; STEPS=$((2 * steps)) takes longer"
done_all() { [ "$(records)" -eq 4 ] && [ -z "$(squeue -h)" ]; }
wait_for 900 "all runs have a record" done_all
"$lrnn" status "$work/out"
"$lrnn" "${sweep[@]}" --out "$work/out" >"$work/table" 2>"$work/said"
cat "$work/table"
grep -q '4 of 4 runs are on record' "$work/said" || die "the same command does runs again"
resumed=$(cat "$work"/out/runs/*/*.json | sed -n 's/^ "resumed": \([1-9][0-9]*\),*$/\1/p' | wc -l)
[ "$resumed" -ge 2 ] || die "$resumed runs have gone on from a checkpoint, expected 2"
say "$resumed runs went on from their checkpoints"

# --- one that nobody interrupted makes the same -----------------------------------------------------------------------
numbers() { grep -h -E '^ "(run_id|steps|(train|val|test)_loss|test_acc)": ' "$1"/runs/*/*.json; }
"$lrnn" "${sweep[@]}" --quiet --out "$work/alone" >/dev/null
numbers "$work/out" >"$work/a"
numbers "$work/alone" >"$work/b"
cmp "$work/a" "$work/b" || die "the interrupted sweep has other numbers than one that nobody interrupted"
say "the same bits as of a sweep that nobody interrupted"
"$lrnn" compare "$work/out" "$work/alone"
say "all held"
