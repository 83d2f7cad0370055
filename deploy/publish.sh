#!/bin/sh
# Publishes the content of dist/ from `make dist`: image and chart to a registry, and everything
# to a release of the repository. The Makefile sets VERSION and REGISTRY. Needs skopeo, helm and
# gh, which the workflow's machine has.
set -eu
version=${VERSION#v}
: "${REGISTRY:?set REGISTRY, such as registry.example/spanstatsd}"
if [ -n "${REGISTRY_PASSWORD:-}" ]; then
	printf %s "$REGISTRY_PASSWORD" | skopeo login --username "$REGISTRY_USER" --password-stdin "${REGISTRY%%/*}"
	printf %s "$REGISTRY_PASSWORD" | helm registry login --username "$REGISTRY_USER" --password-stdin "${REGISTRY%%/*}"
fi
skopeo copy --all "oci-archive:dist/spanstatsd_${VERSION}_image.tar" "docker://$REGISTRY/spanstatsd:$version"
helm push "dist/spanstatsd_${VERSION}_chart.tgz" "oci://$REGISTRY/charts"
awk -v head="## [$version]" 'index($0, "## ") == 1 { is = index($0, head) == 1; next } is' CHANGELOG.md |
	gh release create "$VERSION" --verify-tag --title "$VERSION" --notes-file - dist/SHA256SUMS* dist/spanstatsd_"${VERSION}"_* dist/spanstatsd_opentelemetry-* dist/spanstatsd-opentelemetry-*
