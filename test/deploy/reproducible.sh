#!/bin/sh
# Builds a release twice, of the same files in two places with two empty build
# caches, and compares the bytes. It takes a few minutes, so `make test` does
# not run it; `make dist-check` does.
set -eu
GO=${GO:-go}
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
for place in one another/and/deeper; do
	mkdir -p "$room/$place/src"
	git ls-files -z --cached --others --exclude-standard | xargs -0 tar -cf - | tar -xf - -C "$room/$place/src"
	(cd "$room/$place/src" && GOCACHE="$room/$place/cache" make -s dist GO="$GO" VERSION="$VERSION" EPOCH="$EPOCH" >/dev/null)
	cp "$room/$place/src/dist/SHA256SUMS" "$room/sums-$(dirname "$place/x" | tr / -)"
done
cmp "$room/sums-one" "$room/sums-another-and-deeper"
cat "$room/sums-one"
echo "both builds gave the same bytes"
