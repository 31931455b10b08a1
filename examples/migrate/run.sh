#!/bin/sh
# Moving house: an assistant's export file goes into gateway A, from there as a bundle into gateway B, and from B back into A,
# with a report of what was verified on the way. Runs offline in a folder of its own, which it removes.
#
#   examples/migrate/run.sh [EXPORT]        (default: the synthetic ChatGPT export in examples/exports)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
export_file=${1:-$here/../exports/chatgpt}
oap=${OAP_MEMORY:-}
if [ -z "$oap" ]; then
    cargo build --quiet --manifest-path "$here/../../Cargo.toml" -p oap-gateway
    oap=$here/../../target/debug/oap-memory
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
a() { "$oap" --home "$work/a" "$@"; }
b() { "$oap" --home "$work/b" "$@"; }
did() { "$oap" --home "$work/$1" --json config show | sed -n 's/.*"\(did:key:[A-Za-z0-9]*\)".*/\1/p' | head -n 1; }
say() { printf '\n== %s\n' "$1"; }

say "two houses"
a init --did did:key --key-file "$work/a.key" >/dev/null
b init --did did:key --key-file "$work/b.key" >/dev/null
echo "A is $(did a)"
echo "B is $(did b)"

say "the assistant's export into A: first what would happen, then for good"
a import "$export_file" --dry-run || true
# Records that cannot be read are reported and end with status 1; the rest goes in.
a import "$export_file" --label moved || true

say "A as a bundle, and the bundle verified offline"
a export "$work/memory.bundle" --zstd
a verify "$work/memory.bundle"

say "into B, with A's history; again, without change"
b import "$work/memory.bundle" --former-did "$(did a)"
b import "$work/memory.bundle" --former-did "$(did a)"

say "from B, with the whole way that each item came, and back into A: nothing lost, nothing doubled"
b export "$work/back.bundle"
b verify "$work/back.bundle"
a import "$work/back.bundle" --former-did "$(did b)"

say "a forged line is refused, and the rest is told apart from it"
sed 's/bakery/brewery/' "$work/back.bundle" > "$work/forged.bundle"
if a verify "$work/forged.bundle"; then
    echo "the forged bundle was believed" >&2
    exit 1
fi

say "both houses are sound"
a doctor
b doctor
