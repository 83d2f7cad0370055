#!/bin/sh
# Packs the chart into the named file as for a release: with VERSION, and with the image at
# REGISTRY if that is set. The same input gives the same bytes.
set -eu
export LC_ALL=C TZ=UTC
parts=$(mktemp -d)
trap 'rm -rf "$parts"' EXIT
chart=$parts/spanstatsd
cp -R deploy/helm/spanstatsd "$chart"
if semantic=$(echo "$VERSION" | grep -xE 'v?[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?'); then
	sed -i -e "s/^version: .*/version: ${semantic#v}/" -e "s/^appVersion: .*/appVersion: ${semantic#v}/" \
		-e "s/^\( *image: spanstatsd\):.*/\1:${semantic#v}/" "$chart/Chart.yaml"
fi
if [ -n "${REGISTRY:-}" ]; then
	sed -i "s|^  repository: spanstatsd\$|  repository: $REGISTRY/spanstatsd|" "$chart/values.yaml"
	sed -i "s|^\( *image: \)spanstatsd:|\1$REGISTRY/spanstatsd:|" "$chart/Chart.yaml"
fi
tar --sort=name --mtime="@$EPOCH" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --format=ustar \
	-C "$parts" -cf - spanstatsd | gzip -n -9 >"$1"
