#!/bin/sh
# Builds a release twice from the same files in different directories, once with this machine's build
# cache and once with an empty one, and compares the bytes. The second one is signed with a new key and
# verified with sigstore's library. This takes minutes, so `make dist-check` runs it instead of `make
# test`.
set -eu
GO=${GO:-go}
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
build() { # place cache key
	mkdir -p "$1"
	git ls-files -z --cached --others --exclude-standard | xargs -0 tar -cf - | tar -xf - -C "$1"
	(cd "$1" && GOCACHE=$2 make -s dist GO="$GO" VERSION="$VERSION" EPOCH="$EPOCH" COMMIT="$COMMIT" SIGN_KEY="$3" >/dev/null)
}
openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$room/key.pem" 2>/dev/null
openssl pkey -in "$room/key.pem" -pubout -out "$room/public.pem"
build "$room/one" "$($GO env GOCACHE)" ""
build "$room/another/and/deeper" "$room/cache" "$room/key.pem"
cmp "$room/one/dist/SHA256SUMS" "$room/another/and/deeper/dist/SHA256SUMS"
cat "$room/one/dist/SHA256SUMS"
echo "both builds gave the same bytes"
cd test/release
DIST=$room/another/and/deeper/dist PUBLIC_KEY=$room/public.pem $GO test -count=1 -tags dist -run '^TestDist_IsSigned$' .
