#!/bin/sh
# Begins the run in FOLDER, or continues it if it is there: for services, which are started again and again.
#
#   serve.sh FOLDER PRESET [OPTIONS OF souls serve]
#
# REDIS_URL_FILE names a file with the address of Redis, password included; without it the learner starts its own.
# WHEN_FINISHED=wait keeps the process after the run has finished: containers that end are started again at once.
set -eu

[ $# -ge 2 ] || {
    echo "serve.sh: give the folder of the run and a preset" >&2
    exit 2
}
folder=$1 preset=$2
shift 2
if grep -q '"state": "finished"' "$folder/status.json" 2> /dev/null; then
    echo "serve.sh: $folder: the run is finished; longer: souls serve --resume $folder --set run.steps=..." >&2
    [ "${WHEN_FINISHED:-end}" = wait ] || exit 0
    exec sleep infinity
fi
if [ -n "${REDIS_URL_FILE:-}" ]; then
    # Not as an argument: those can be seen by every user of the machine.
    SOULS_REDIS=$(cat "$REDIS_URL_FILE")
    export SOULS_REDIS
fi
if [ -f "$folder/config.toml" ]; then
    exec souls serve --resume "$folder" --plain "$@"
fi
exec souls serve "$preset" --run "$folder" --plain "$@"
