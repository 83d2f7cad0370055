package deploy

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// componentAddress is the documented address of a component. The test replaces it with the directory
// above.
const componentAddress = "https://github.com/spanstatsd/spanstatsd//" +
	"deploy/kubernetes/components/sidecar?ref=main"

// TestInstallPage_Sidecar writes the files shown in docs/install.md for a sidecar and applies them as
// documented, except that the component comes from this repository. The pod must keep every promise, be
// scraped, and need no CRD.
func TestInstallPage_Sidecar(t *testing.T) {
	page := string(readFile(t, "../../docs/install.md"))
	_, section, found := strings.Cut(page, "\n## Kubernetes: as a sidecar\n")
	section, _, _ = strings.Cut(section, "\n## ")
	if !found || strings.Count(section, componentAddress) != 1 {
		t.Fatal("docs/install.md has no section about a sidecar, or it does not name the component once")
	}
	// Kustomize accepts only relative component paths, so the component is copied.
	copied := t.TempDir()
	if err := os.CopyFS(copied, os.DirFS(kubernetes)); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(copied, "overlays", "readme")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	files := regexp.MustCompile("(?s)```yaml\n# (\\S+)\n(.*?)```").FindAllStringSubmatch(section, -1)
	if len(files) != 2 {
		t.Fatalf("%d files", len(files))
	}
	for _, file := range files {
		body := strings.ReplaceAll(file[2], componentAddress, "../../components/sidecar")
		if err := os.WriteFile(filepath.Join(dir, file[1]), []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	text, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	m, err := decode(text)
	if err != nil || len(m.pods) != 1 || len(m.monitors)+len(m.rules) > 0 {
		t.Fatal(err, m)
	}
	m.keepPromises(t)
	if daemon, native := daemonOf(&m.pods[0].pod.Spec); !native ||
		daemon.Image != "your-registry.example/spanstatsd:0.1.0" {
		t.Errorf("the daemon is %s, native %t", daemon.Image, native)
	}
}
