#!/bin/sh
# Builds a release twice, of the same files in two places, once with the build
# cache of this machine and once with an empty one, and compares the bytes. It
# takes minutes, so `make test` does not run it; `make dist-check` does.
set -eu
GO=${GO:-go}
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
build() { # place cache
	mkdir -p "$1"
	git ls-files -z --cached --others --exclude-standard | xargs -0 tar -cf - | tar -xf - -C "$1"
	(cd "$1" && GOCACHE=$2 make -s dist GO="$GO" VERSION="$VERSION" EPOCH="$EPOCH" >/dev/null)
}
build "$room/one" "$($GO env GOCACHE)"
build "$room/another/and/deeper" "$room/cache"
cmp "$room/one/dist/SHA256SUMS" "$room/another/and/deeper/dist/SHA256SUMS"
cat "$room/one/dist/SHA256SUMS"
echo "both builds gave the same bytes"
