#!/bin/sh
# Workers of a fleet on a cluster with Slurm: as many jobs as the array has, each with a worker for every core.
#
#   sbatch --array=1-10 deploy/slurm/workers.sh FOLDER [OPTIONS OF souls join]
#
# FOLDER is that of the run that learner.sh serves. A worker that finds no learner for half an hour ends its job.
#SBATCH --job-name=souls-worker
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=2G
#SBATCH --time=24:00:00
#SBATCH --signal=B:TERM@60
#SBATCH --requeue
#SBATCH --output=%x-%A_%a.log
set -eu

[ $# -ge 1 ] || {
    echo "workers.sh: give the folder of the run" >&2
    exit 2
}
tools=${SOULS_DEPLOY:-${SLURM_SUBMIT_DIR:-.}/deploy}
folder=$1
shift
exec "$tools/join.sh" "$folder.invitation" --workers "${SLURM_CPUS_PER_TASK:-1}" --patience 30 "$@"
