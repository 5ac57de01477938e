#!/bin/sh
# Writes an invitation to the run in FOLDER to FILE, once.
#
#   invite.sh FOLDER NAME FILE
set -eu
umask 077

[ $# -eq 3 ] || {
    echo "invite.sh: give the folder of the run, a name, and the file to write" >&2
    exit 2
}
folder=$1 name=$2 file=$3
[ ! -s "$file" ] || exit 0
souls invite "$name" "$folder" > "$file.told"
sed -n -e 's|.*\(rediss\{0,1\}://[^ ]*\).*|\1|p' -e 's|.*\(wss://[^ ]*\).*|\1|p' "$file.told" | head -n 1 > "$file.new"
rm "$file.told"
[ -s "$file.new" ] || {
    echo "invite.sh: souls invite has told no address" >&2
    exit 1
}
mv "$file.new" "$file"
