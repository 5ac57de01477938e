#!/bin/sh
# For services, shows the runs in FOLDER in the live page, to whoever knows its token.
#
#   page.sh FOLDER [OPTIONS OF souls dashboard]
#
# PAGE_TOKEN_FILE names the file with the token.
set -eu

[ $# -ge 1 ] || {
    echo "page.sh: give the folder of the runs" >&2
    exit 2
}
file=${PAGE_TOKEN_FILE-}
[ -n "$file" ] || {
    echo "page.sh: set PAGE_TOKEN_FILE to the file with the token of the page" >&2
    exit 2
}
[ -s "$file" ] || {
    echo "page.sh: $file: there is no token in it; make one with prepare.sh" >&2
    exit 1
}
# Not as an argument: those can be seen by every user of the machine.
SOULS_DASHBOARD_TOKEN=$(cat "$file")
export SOULS_DASHBOARD_TOKEN
echo "page.sh: shows the runs in $1; the token is in $file" >&2
# What it would print is its address with the token, which has no place in a log. Mistakes are still told.
exec souls dashboard "$@" > /dev/null
