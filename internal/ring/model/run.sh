#!/bin/sh
# Checks the model of the ring's protocol with spin: the model must pass, and
# each of its mutants must fail. Takes half a minute.
set -eu

model=$(cd "$(dirname "$0")" && pwd)/ring.pml
for tool in spin gcc; do
	if ! command -v "$tool" >/dev/null; then
		echo "$tool is missing; on Debian: apt-get install -y spin gcc" >&2
		exit 2
	fi
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# check MACROS sets errors to what spin found and leaves the search in log. A
# search that broke off or was cut short is no verdict.
check() {
	spin -a "$@" "$model" >log 2>&1 || broken
	gcc -O2 -DSAFETY -DCOLLAPSE -o pan pan.c >>log 2>&1 || broken
	./pan -m100000 >log 2>&1 || broken
	if grep -q 'Error:\|max search depth too small\|out of memory' log; then broken; fi
	errors=$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' log)
	[ -n "$errors" ] || broken
}

broken() {
	cat log >&2
	exit 2
}

failed=0
for scene in -DCLAIMS -DREPORT; do
	check "$scene"
	if [ "$errors" = 0 ]; then
		echo "ok    $scene: $(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' log) states"
	else
		echo "FAIL  $scene:"
		cat log
		failed=1
	fi
done
for mutant in $(grep -o 'MUTANT_[A-Z_]*[A-Z]' "$model" | sort -u); do
	check -DCLAIMS -D"$mutant"
	if [ "$errors" = 0 ]; then check -DREPORT -D"$mutant"; fi
	if [ "$errors" = 0 ]; then
		echo "FAIL  $mutant was not noticed"
		failed=1
	else
		echo "ok    $mutant: $(sed -n 's/^pan:1: \(.*\) (at depth.*/\1/p' log)"
	fi
done
exit "$failed"
