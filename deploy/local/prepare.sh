#!/bin/sh
# Makes the passwords of the local trial, inside its volumes, once. Nobody needs to know them but the token of the page.
#
#   prepare.sh FOLDER_OF_REDIS FOLDER_OF_KEYS [OWNER]
set -eu
umask 077

redis=$1 keys=$2 owner=${3:-}

new_password() {
    od -An -N32 -tx1 /dev/urandom | tr -d ' \n'
}

if [ ! -f "$redis/users.acl" ]; then
    password=$(new_password)
    digest=$(printf %s "$password" | sha256sum | cut -d ' ' -f 1)
    printf %s "redis://admin:$password@redis:6379" > "$keys/redis_url"
    printf %s "$password" > "$redis/password"
    {
        echo "user default off resetpass ~* &* +@all"
        echo "user admin on #$digest ~* &* +@all"
    } > "$redis/users.acl.new"
    mv "$redis/users.acl.new" "$redis/users.acl"
fi
if [ ! -s "$keys/page_token" ]; then
    new_password > "$keys/page_token"
fi
[ -z "$owner" ] || chown -R "$owner" "$redis" "$keys"
