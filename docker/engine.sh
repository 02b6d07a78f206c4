#!/usr/bin/env bash
# engine.sh start FOLDER | stop FOLDER: a Docker engine of our own, all of it in FOLDER, where none
# runs (a bare CI machine; root). The engine comes from the system's packages (Debian: docker.io).
# It writes no firewall rule: ports are published on 127.0.0.1 by its proxy, and containers reach
# each other but nothing outside. `start` prints the line that tells clients where it is:
#   eval "$(docker/engine.sh start FOLDER)"
set -euo pipefail
[ $# -eq 2 ] || { sed -n '2,5s/^# //p' "$0" >&2; exit 2; }
mkdir -p "$2"
folder=$(cd "$2" && pwd -P)
socket=unix://$folder/docker.sock

# What the engine has left mounted in its folder (exec/netns/default, for one), the innermost first.
# Never a failure.
unmount() {
    while read -r _ _ _ _ place _; do
        place=$(printf '%b' "$place") # a space is written \040 there
        if [[ $place == "$folder"/* ]]; then echo "$place"; fi
    done </proc/self/mountinfo | sort -r | while read -r place; do
        umount "$place" || umount -l "$place" || true
    done
} 2>/dev/null

answers() { docker -H "$socket" info >/dev/null 2>&1; }

case $1 in
    start)
        command -v dockerd >/dev/null || { echo 'no dockerd: apt-get install --no-install-recommends docker.io' >&2; exit 1; }
        if ! answers; then
            setsid nohup dockerd --data-root "$folder/data" --exec-root "$folder/exec" --pidfile "$folder/pid" -H "$socket" \
                --iptables=false --ip-forward=false --ip-masq=false </dev/null >"$folder/log" 2>&1 &
            engine=$!
            for _ in $(seq 600); do
                if answers; then break; fi
                kill -0 "$engine" 2>/dev/null || { echo 'the Docker engine ended:' >&2; tail -5 "$folder/log" >&2; exit 1; }
                sleep 0.2
            done
            answers || { echo "the Docker engine does not answer; see $folder/log" >&2; exit 1; }
        fi
        echo "export DOCKER_HOST=$socket"
        ;;
    stop)
        pid=$(cat "$folder/pid" 2>/dev/null || true)
        # The file may have outlived its engine: only a process that works in this folder is ours.
        if [ -n "$pid" ] && grep -qsF "$folder/pid" "/proc/$pid/cmdline"; then
            kill "$pid" || true # it may end by itself just now
            for _ in $(seq 300); do kill -0 "$pid" 2>/dev/null || break; sleep 0.2; done
        fi
        unmount || true
        ;;
    *) echo "start or stop, not $1" >&2; exit 2 ;;
esac
