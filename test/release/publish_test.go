package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPublish_IsComplete runs deploy/publish.sh with fake programs that record their arguments. It
// must publish the image, the chart, and each file of `make dist`, with the changelog section of the
// version.
func TestPublish_IsComplete(t *testing.T) {
	dir := t.TempDir()
	programs, calls := filepath.Join(dir, "programs"), filepath.Join(dir, "calls")
	for _, path := range []string{programs, filepath.Join(dir, "dist")} {
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, program := range []string{"skopeo", "helm", "gh"} {
		script := "#!/bin/sh\necho " + program + " \"$@\" >>" + calls +
			"\ncase \"$*\" in *--password-stdin*|*--notes-file*)" +
			" sed 's/^/input: /' >>" + calls + "; echo >>" + calls + "; esac\n"
		if err := os.WriteFile(filepath.Join(programs, program), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	files := []string{
		"SHA256SUMS", "SHA256SUMS.sigstore.json", "spanstatsd_v0.1.0_chart.tgz",
		"spanstatsd_v0.1.0_image.tar",
		"spanstatsd_v0.1.0_image.tar.sigstore.json", "spanstatsd_v0.1.0_provenance.json",
		"spanstatsd_opentelemetry-0.1.0-py3-none-any.whl",
		"spanstatsd_opentelemetry-0.1.0-py3-none-any.whl.sigstore.json",
		"spanstatsd-opentelemetry-0.1.0.tgz", "spanstatsd-opentelemetry-0.1.0.tgz.sigstore.json",
	}
	for _, file := range append(slices.Clone(files), "spanstatsd_v0.0.9_chart.tgz") {
		if err := os.WriteFile(filepath.Join(dir, "dist", file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	changes := "# Changelog\n\n## [Unreleased]\n\nnot yet\n\n## [0.1.0] - today\n\nthis one\n\n## [0.0.9] - before\n\nan old one\n"
	if err := os.WriteFile(filepath.Join(dir, "CHANGELOG.md"), []byte(changes), 0o600); err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs("../../deploy/publish.sh")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", script)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + programs + ":" + os.Getenv("PATH"), "VERSION=v0.1.0", "REGISTRY=registry.example/us",
		"REGISTRY_USER=u", "REGISTRY_PASSWORD=secret",
	}
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	text, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"skopeo login --username u --password-stdin registry.example\ninput: secret",
		"helm registry login --username u --password-stdin registry.example\ninput: secret",
		"skopeo copy --all oci-archive:dist/spanstatsd_v0.1.0_image.tar docker://registry.example/us/spanstatsd:0.1.0",
		"helm push dist/spanstatsd_v0.1.0_chart.tgz oci://registry.example/us/charts",
		"gh release create v0.1.0 ", "input: this one", "dist/" + strings.Join(files, " dist/"),
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no program was called with %q:\n%s", want, text)
		}
	}
	for _, not := range []string{"old one", "not yet", "0.0.9"} {
		if strings.Contains(string(text), not) {
			t.Errorf("a program was called with %q:\n%s", not, text)
		}
	}
}

// TestChangelog_HasVersionOfChart: the chart has the version of the next release.
func TestChangelog_HasVersionOfChart(t *testing.T) {
	chart, err := os.ReadFile("../../deploy/helm/spanstatsd/Chart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	changes, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(chart)) {
		if version, is := strings.CutPrefix(line, "version: "); is {
			if !strings.Contains(string(changes), "\n## ["+strings.TrimSpace(version)+"] - 20") {
				t.Errorf("CHANGELOG.md has no section of %s", version)
			}
			return
		}
	}
	t.Error("Chart.yaml has no version")
}
