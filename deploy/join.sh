#!/bin/sh
# Joins with the invitation in FILE, as soon as it is there.
#
#   join.sh FILE [OPTIONS OF souls join]
set -eu

[ $# -ge 1 ] || {
    echo "join.sh: give the file with the invitation" >&2
    exit 2
}
file=$1
shift
waited=0
until [ -s "$file" ]; do
    [ "$waited" -lt 120 ] || {
        echo "join.sh: $file: no invitation has come in $waited s; see the log of the learner" >&2
        exit 1
    }
    sleep 1
    waited=$((waited + 1))
done
# Not as an argument: those can be seen by every user of the machine.
SOULS_URL=$(cat "$file")
export SOULS_URL
exec souls join "$@"
