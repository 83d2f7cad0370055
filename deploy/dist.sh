#!/bin/sh
# Builds the content of a release in dist/: an archive for each architecture, the chart, the
# manifests, the image, the Python and Node.js clients, the licenses, the provenance of all of them, and their
# checksums. The same commit gives the same bytes on any machine with the same Go version: entries
# are sorted, have no owner, and have the time of the commit. The Makefile sets VERSION, EPOCH,
# COMMIT, REGISTRY and GO, and has built the binaries.
#
# With SIGN_KEY each file gets a signature file in sigstore's format, made with that key. With
# SIGN=keyless cosign makes it, with the identity of the workflow that runs this script.
set -eu
export VERSION EPOCH REGISTRY="${REGISTRY:-}"
export LC_ALL=C TZ=UTC
pack() { # archive directory...
	archive=$1
	shift
	tar --dereference --sort=name --mtime="@$EPOCH" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX \
		--format=ustar -cf - "$@" | gzip -n -9 >"$archive"
}
bill() { # module program, of one architecture
	(cd "$1" && GOWORK=off $GO mod graph) | dist/parts/sbom "$VERSION" "dist/linux-$arch/$2"
}

host=dist/linux-$($GO env GOARCH)
for arch in amd64 arm64; do
	name=spanstatsd_${VERSION}_linux_$arch
	to=dist/parts/$name
	rm -rf "$to"
	mkdir -p "$to/completions" "$to/man/man1"
	cp "dist/linux-$arch/spanstatsd" "dist/linux-$arch/spanstatsd-lab" LICENSE THIRD_PARTY_LICENSES README.md CHANGELOG.md deploy/systemd/spanstatsd.service deploy/systemd/spanstatsd.socket deploy/systemd/spanstatsd.sysusers "$to/"
	cp -R docs "$to/"
	for program in spanstatsd spanstatsd-lab; do
		for shell in bash zsh fish; do
			"$host/$program" completion "$shell" >"$to/completions/$program.$shell"
		done
		"$host/$program" man "$to/man/man1"
	done
	bill . spanstatsd >"$to/sbom.cdx.json"
	bill lab spanstatsd-lab >"$to/sbom-lab.cdx.json"
	cp "$to/sbom.cdx.json" "dist/$name.sbom.cdx.json"
	cp "$to/sbom-lab.cdx.json" "dist/$name.sbom-lab.cdx.json"
	pack "dist/$name.tar.gz" -C dist/parts "$name"
done
sh deploy/chart.sh "dist/spanstatsd_${VERSION}_chart.tgz"
pack "dist/spanstatsd_${VERSION}_deploy.tar.gz" deploy
dist/parts/image -version "$VERSION" -epoch "$EPOCH" -out "dist/spanstatsd_${VERSION}_image.tar"
cp THIRD_PARTY_LICENSES "dist/spanstatsd_${VERSION}_THIRD_PARTY_LICENSES"
sh deploy/clients.sh
files="dist/spanstatsd_${VERSION}_* dist/spanstatsd_opentelemetry-*.whl dist/spanstatsd-opentelemetry-*.tgz"
rm -f dist/*.sigstore.json "dist/spanstatsd_${VERSION}_provenance.json"
dist/parts/sign -version "$VERSION" -commit "$COMMIT" -go "$($GO env GOVERSION)" ${BUILDER:+-builder "$BUILDER"} \
	-provenance "dist/spanstatsd_${VERSION}_provenance.json" $files
(cd dist && sha256sum $(echo "$files" | sed 's,dist/,,g') >SHA256SUMS)
if [ -n "${SIGN_KEY:-}" ]; then
	dist/parts/sign dist/SHA256SUMS $files
elif [ "${SIGN:-}" = keyless ]; then
	for file in dist/SHA256SUMS $files; do
		cosign sign-blob --yes --bundle "$file.sigstore.json" "$file"
	done
fi
rm -rf dist/parts
