#!/bin/sh
# Makes what the server stack needs and nobody else may know: certificates, passwords, and the file of Redis users.
#
#   prepare.sh HOST...                  once; HOST are the names and IP addresses by which friends reach this machine
#   prepare.sh --certificate HOST...    later: a new certificate for other names, by the same authority
#   prepare.sh --token                  later: a new token for the live page, should others know the old one
#
# Everything is written to the folder `state` beside this file, and .env. The first of these never overwrites anything there.
set -eu
umask 077

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
home=${SOULS_STATE:-$here}
state=$home/state
new=$home/state.new
days=3650

fail() {
    echo "prepare.sh: $*" >&2
    exit 1
}

# The names a certificate holds for. `redis` is what the other containers call it.
names_of() {
    names="DNS:redis,DNS:localhost,IP:127.0.0.1"
    for host in "$@"; do
        case $host in
            '' | -* | *[!A-Za-z0-9.:-]*) fail "'$host' is neither a host name nor an IP address" ;;
            *:*) names="$names,IP:$host" ;;
            *[!0-9.]*) names="$names,DNS:$host" ;;
            *) names="$names,IP:$host" ;;
        esac
    done
    echo "$names"
}

make_authority() {
    cat > "$1/ca.cnf" <<'END'
[req]
distinguished_name = name
x509_extensions = extensions
prompt = no
[name]
CN = Souls fleet authority
[extensions]
basicConstraints = critical, CA:TRUE, pathlen:0
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
END
    openssl ecparam -name prime256v1 -genkey -noout -out "$1/ca.key"
    openssl req -x509 -new -sha256 -key "$1/ca.key" -days "$days" -config "$1/ca.cnf" -out "$1/ca.crt"
}

# make_certificate FOLDER_OF_THE_AUTHORITY FOLDER NAMES
make_certificate() {
    cat > "$1/server.cnf" <<END
[req]
distinguished_name = name
prompt = no
[name]
CN = Souls fleet
[extensions]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth
subjectAltName = $3
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
END
    openssl ecparam -name prime256v1 -genkey -noout -out "$2/server.key.new"
    openssl req -new -sha256 -key "$2/server.key.new" -config "$1/server.cnf" -out "$1/server.csr"
    openssl x509 -req -sha256 -in "$1/server.csr" -CA "$1/ca.crt" -CAkey "$1/ca.key" -days "$days" \
        -set_serial "0x$(openssl rand -hex 16 | sed 's/^./4/')" \
        -extfile "$1/server.cnf" -extensions extensions -out "$2/server.crt.new" 2> "$1/openssl.log" ||
        fail "openssl did not sign: $(cat "$1/openssl.log")"
    mv "$2/server.key.new" "$2/server.key"
    mv "$2/server.crt.new" "$2/server.crt"
    rm -f "$1/server.csr" "$1/server.cnf" "$1/openssl.log"
}

owner_of() {
    find "$1" -prune -exec ls -ln {} + | awk '{ print $3 ":" $4 }'
}

digest_of() {
    openssl dgst -sha256 "$1" | sed 's/.*= *//'
}

new_password() {
    printf %s "$(openssl rand -hex 32)" > "$1"
}

# Redis gets the digests of the passwords, not the passwords.
make_users() {
    new_password "$1/secrets/redis_admin"
    new_password "$1/secrets/redis_metrics"
    new_password "$1/secrets/grafana_admin"
    new_password "$1/secrets/page_token"
    {
        echo "user default off resetpass ~* &* +@all"
        echo "user admin on #$(digest_of "$1/secrets/redis_admin") ~* &* +@all"
        echo "user metrics on #$(digest_of "$1/secrets/redis_metrics") resetchannels -@all" \
            "+ping +info +auth +hello +client|setname +latency|latest"
    } > "$1/redis/users.acl"
    printf %s "rediss://admin:$(cat "$1/secrets/redis_admin")@redis:6380" > "$1/secrets/redis_url"
    # The exporter reads its password from a table of addresses.
    printf '{"rediss://redis:6380": "%s"}\n' "$(cat "$1/secrets/redis_metrics")" > "$1/secrets/redis_metrics.json"
}

command -v openssl > /dev/null || fail "openssl is not installed"
[ $# -gt 0 ] || fail "name the hosts by which friends reach this machine, e.g. prepare.sh souls.example.org 203.0.113.7"

if [ "$1" = --certificate ]; then
    shift
    [ $# -gt 0 ] || fail "--certificate: name the hosts it is to hold for"
    [ -f "$state/authority/ca.key" ] || fail "$state: there is no authority yet; run prepare.sh without --certificate"
    make_certificate "$state/authority" "$state/redis" "$(names_of "$@")"
    if [ "$(id -u)" = 0 ]; then
        chown "$(owner_of "$state/redis/users.acl")" "$state/redis/server.key" "$state/redis/server.crt"
    fi
    echo "made a certificate for $*; now: docker compose restart redis"
    exit 0
fi

if [ "$1" = --token ]; then
    [ $# -eq 1 ] || fail "--token takes nothing more"
    [ -f "$state/redis/users.acl" ] || fail "$state: there are no secrets yet; run prepare.sh without --token"
    new_password "$state/secrets/page_token.new"
    if [ "$(id -u)" = 0 ]; then
        chown "$(owner_of "$state/redis/users.acl")" "$state/secrets/page_token.new"
    fi
    mv "$state/secrets/page_token.new" "$state/secrets/page_token"
    echo "made $state/secrets/page_token; now: docker compose up --detach --force-recreate page prometheus"
    exit 0
fi

[ ! -e "$state" ] || fail "$state is there already and is never overwritten; move it away to begin anew"
[ ! -e "$home/.env" ] || fail "$home/.env is there already and is never overwritten; move it away to begin anew"
names=$(names_of "$@")
rm -rf "$new"
mkdir -p "$new/authority" "$new/redis" "$new/secrets" "$new/runs" "$new/prometheus" "$new/grafana"
make_authority "$new/authority"
make_certificate "$new/authority" "$new/redis" "$names"
cp "$new/authority/ca.crt" "$new/redis/ca.crt"
make_users "$new"

# The containers run as whoever owns these files. Root stays out of it.
owner=$(id -u) group=$(id -g)
if [ "$owner" = 0 ]; then
    owner=10001 group=10001
    chown -R "$owner:$group" "$new"
fi
case $1 in *:*) host="[$1]" ;; *) host=$1 ;; esac
cat > "$home/.env" <<END
SOULS_UID=$owner
SOULS_GID=$group
SOULS_HOST=$host
SOULS_PORT=6380
SOULS_RUN=fleet
SOULS_PRESET=clipped-dqn
END
mv "$new" "$state"
echo "made $state and $home/.env"
echo "friends need $state/redis/ca.crt, which is no secret; everything else there is one"
