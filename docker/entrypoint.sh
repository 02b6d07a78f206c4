#!/bin/sh
# Understands what the official images do: MYSQL_ROOT_PASSWORD, MYSQL_ALLOW_EMPTY_PASSWORD,
# MYSQL_DATABASE, MYSQL_USER, MYSQL_PASSWORD (and the same with MARIADB_, or with _FILE for a file
# that holds the value), /docker-entrypoint-initdb.d/*.sql (one statement a line: the servers read
# them as part of an init file), server options as arguments, and another program as the first
# argument.
set -eu
home=/opt/server
data=/var/lib/mysql
first=/tmp/first-start.sql
. "$home/accounts.sh" # $loader, $server, accounts, everywhere: written by docker/build.py from the table of servers

# value NAME: of MYSQL_NAME or MARIADB_NAME, or what the file says that NAME_FILE names
value() {
    eval "given=\${MYSQL_$1:-\${MARIADB_$1:-}} file=\${MYSQL_$1_FILE:-\${MARIADB_$1_FILE:-}}"
    if [ -n "$file" ]; then cat "$file"; else printf '%s' "$given"; fi
}

quoted() { printf '%s' "$1" | sed "s/[\\\\']/\\\\&/g"; }

case "${1:-}" in
    mysqld | mariadbd) shift ;;
    '' | -*) ;;
    *)
        if [ -x "$home/root/usr/bin/$1" ]; then program=$home/root/usr/bin/$1; shift; exec $loader "$program" "$@"; fi
        exec "$@"
        ;;
esac

rm -f "$first"
if [ ! -e "$data/.accounts-made" ]; then
    password=$(value ROOT_PASSWORD)
    if [ -z "$password$(value ALLOW_EMPTY_PASSWORD)$(value ALLOW_EMPTY_ROOT_PASSWORD)" ]; then
        echo 'no password for root: set MYSQL_ROOT_PASSWORD, or MYSQL_ALLOW_EMPTY_PASSWORD=1' >&2
        exit 1
    fi
    umask 077
    {
        echo 'SET sql_log_bin = 0;'
        accounts "$(quoted "$password")"
        everywhere root "$(quoted "$password")" '*.*'
        database=$(value DATABASE) user=$(value USER)
        if [ -n "$database" ]; then printf 'CREATE DATABASE IF NOT EXISTS `%s`;\n' "$database"; fi
        if [ -n "$user" ] && [ "$user" != root ]; then everywhere "$(quoted "$user")" "$(quoted "$(value PASSWORD)")" "\`${database:-%}\`.*"; fi
        echo 'SET sql_log_bin = 1;'
        if [ -n "$database" ]; then printf 'USE `%s`;\n' "$database"; fi
        for script in /docker-entrypoint-initdb.d/*.sql; do
            if [ -e "$script" ]; then sed '/^ *\(--.*\)\{0,1\}$/d' "$script"; fi
        done
    } > "$first"
    touch "$data/.accounts-made"
    # testcontainers waits for this text twice in what is written to standard error: official images
    # start a temporary server first.
    echo "[entrypoint] data directory: ready for connections, no temporary server is needed" >&2
    exec $server "--defaults-file=$home/my.cnf" "--init-file=$first" "$@"
fi
exec $server "--defaults-file=$home/my.cnf" "$@"
