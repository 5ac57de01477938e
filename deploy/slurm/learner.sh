#!/bin/sh
# The learner of a fleet on a cluster with Slurm: begins the run in FOLDER, or continues it.
#
#   sbatch deploy/slurm/learner.sh FOLDER PRESET [OPTIONS OF souls serve]
#
# FOLDER is on a file system that all nodes share; workers.sh finds the invitation beside it. Longer than one job may
# last? Submit it several times: each begins when the one before has ended, and goes on.
#SBATCH --job-name=souls-learner
#SBATCH --dependency=singleton
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=8G
#SBATCH --time=24:00:00
#SBATCH --signal=B:TERM@300
#SBATCH --output=%x-%j.log
set -eu

[ $# -ge 2 ] || {
    echo "learner.sh: give the folder of the run and a preset" >&2
    exit 2
}
# Slurm runs a copy of this file; the others are where it was submitted, or in SOULS_DEPLOY.
tools=${SOULS_DEPLOY:-${SLURM_SUBMIT_DIR:-.}/deploy}
folder=$1 preset=$2
shift 2
invitation=$folder.invitation
rm -f "$invitation"
(
    # The address is another one on every node, so there is a new invitation for every job.
    waited=0
    until "$tools/invite.sh" "$folder" cluster "$invitation" 2> /dev/null; do
        [ "$waited" -lt 600 ] || {
            echo "learner.sh: $folder: nobody could be invited for $waited s; see the log above" >&2
            exit 1
        }
        sleep 5
        waited=$((waited + 5))
    done
) &
# In the place of this shell, which Slurm tells five minutes before the end: then it saves.
exec "$tools/serve.sh" "$folder" "$preset" --no-dashboard --host "$(hostname -f)" "$@"
