#!/bin/sh
# Makes the password of Redis, once, as two files for a Secret of Kubernetes.
#
#   prepare.sh FOLDER
#   kubectl create secret generic souls-redis --from-file=FOLDER/redis_url --from-file=FOLDER/users.acl
set -eu
umask 077

[ $# -eq 1 ] || {
    echo "prepare.sh: give the folder to write to" >&2
    exit 2
}
folder=$1
[ ! -e "$folder/users.acl" ] || {
    echo "prepare.sh: $folder/users.acl: is there already; remove the folder for another password" >&2
    exit 2
}
mkdir -p "$folder"
password=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
digest=$(printf %s "$password" | sha256sum | cut -d ' ' -f 1)
printf %s "redis://admin:$password@souls-redis:6379" > "$folder/redis_url"
{
    echo "user default off resetpass ~* &* +@all"
    echo "user admin on #$digest ~* &* +@all"
} > "$folder/users.acl"
