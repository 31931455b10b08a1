#!/bin/sh
# Probing: our own gateway, which must pass; the witness in Python, written without a look at the gateway's sources, which must pass too; and a
# tiny one (tiny.py), which must not. Runs offline on loopback, in a folder of its own, which it removes. The witness needs a Python
# with `cryptography` (WITNESS_PYTHON, or python3) and is left out without one.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
oap=${OAP_MEMORY:-}
if [ -z "$oap" ]; then
    cargo build --quiet --manifest-path "$here/../../Cargo.toml" -p oap-gateway
    oap=$here/../../target/debug/oap-memory
fi
work=$(mktemp -d)
servers=
trap 'kill $servers 2>/dev/null || true; wait; rm -rf "$work"' EXIT
say() { printf '\n== %s\n' "$1"; }
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
# Until somebody listens there; half a minute at most.
listens() { python3 -c 'import socket, sys, time
for _ in range(300):
    try: socket.create_connection(("127.0.0.1", int(sys.argv[1]))).close(); sys.exit(0)
    except OSError: time.sleep(0.1)
sys.exit("nobody listens")' "$1"; }

say "our own gateway, over TLS, with its owner's side"
port=$(free_port)
"$oap" --home "$work/own" init --did "did:web:localhost%3A$port" --key-file "$work/own.key" >/dev/null
"$oap" --home "$work/own" --allow-local-dids serve --listen "127.0.0.1:$port" >"$work/own.log" 2>&1 &
servers=$!
listens "$port"
"$oap" --home "$work/own" --allow-local-dids probe "https://localhost:$port" --own --worlds 1

python=${WITNESS_PYTHON:-python3}
if "$python" -c 'import cryptography' 2>/dev/null; then
    say "the witness, with a setup program that sets its clock"
    port=$(free_port)
    witness=$here/../../conformance/witness
    "$python" "$witness/serve.py" "$port" "$work/owner.sock" --did web --tls "$work/witness.pem" \
        --still "$(python3 -c 'import time; print(time.time_ns() // 1_000_000)')" &
    servers="$servers $!"
    listens "$port"
    WITNESS_OWNER="$work/owner.sock" "$oap" --home "$work/own" probe "https://localhost:$port" --trust-ca "$work/witness.pem" \
        --setup "$witness/setup.py" --worlds 1 >"$work/witness.txt" || failed=$?
    cat "$work/witness.txt"
    [ -z "${failed:-}" ] || exit "$failed"
    grep -q "^its clock was set" "$work/witness.txt" || {
        echo "the clock of the witness was not set" >&2
        exit 1
    }
else
    say "the witness: left out, $python has no cryptography"
fi

say "the tiny one, with a setup program"
port=$(free_port)
python3 "$here/tiny.py" "$port" &
servers="$servers $!"
listens "$port"
if TINY_URL="http://127.0.0.1:$port" "$oap" --home "$work/own" probe "http://127.0.0.1:$port" \
    --setup "$here/setup.py" --junit "$work/report.xml" >"$work/tiny.txt"; then
    echo "the tiny gateway passed" >&2
    exit 1
fi
cat "$work/tiny.txt"
grep -q "^FAILED projection" "$work/tiny.txt" && grep -q "<failure message" "$work/report.xml" || {
    echo "what is wrong with the tiny gateway was not found" >&2
    exit 1
}
say "the same as JUnit"
head -c 600 "$work/report.xml"
echo
