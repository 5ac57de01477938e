#!/bin/sh
# Makes what Prometheus and Grafana need: a password for Grafana, and folders for their data.
#
#   prepare.sh            once; nothing is ever overwritten
#
# Everything is written to the folder `state` beside this file, and .env.
set -eu
umask 077

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
home=${SOULS_STATE:-$here}
state=$home/state

fail() {
    echo "prepare.sh: $*" >&2
    exit 1
}

[ $# -eq 0 ] || fail "it takes no arguments"
command -v openssl > /dev/null || fail "openssl is not installed"
[ ! -e "$state" ] || fail "$state is there already and is never overwritten; move it away to begin anew"
[ ! -e "$home/.env" ] || fail "$home/.env is there already and is never overwritten; move it away to begin anew"

rm -rf "$state.new"
mkdir -p "$state.new/secrets" "$state.new/prometheus" "$state.new/grafana"
printf %s "$(openssl rand -hex 32)" > "$state.new/secrets/grafana_admin"
# Empty unless prometheus.yml is changed to ask a page that wants a token.
: > "$state.new/dashboard_credentials"

# The containers run as whoever owns these files. Root stays out of it.
owner=$(id -u) group=$(id -g)
if [ "$owner" = 0 ]; then
    owner=10001 group=10001
    chown -R "$owner:$group" "$state.new"
fi
printf 'SOULS_UID=%s\nSOULS_GID=%s\n' "$owner" "$group" > "$home/.env"
mv "$state.new" "$state"
echo "made $state and $home/.env"
echo "the user of Grafana is admin, the password is in $state/secrets/grafana_admin"
