package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// documents lists the documents with installation instructions.
var documents = []string{
	"../../README.md", "../../docs/install.md", "../../deploy/kubernetes/README.md",
	"../../deploy/helm/spanstatsd/README.md",
}

// TestDocuments_NameOfImage checks the image name for any version, so that the documented
// push command can be copied.
func TestDocuments_NameOfImage(t *testing.T) {
	make := exec.Command("make", "--no-print-directory", "-n", "image", "VERSION=7.8.9")
	make.Dir = "../.."
	steps, err := make.Output()
	if err != nil {
		t.Fatal(err)
	}
	built := regexp.MustCompile(`-out (\S+)`).FindSubmatch(steps)
	if built == nil {
		t.Fatalf("make image writes no file: %s", steps)
	}
	named := 0
	for _, document := range documents {
		for _, name := range regexp.MustCompile(`\bdist/\S*image\S*\.tar\b`).FindAllString(string(readFile(t,
			document)), -1) {
			named++
			if name != string(built[1]) {
				t.Errorf("%s names %s, and make image builds %s", document, name, built[1])
			}
		}
	}
	if named == 0 {
		t.Error("no document names the image")
	}
}

// TestInstallSteps_MatchUnit executes the documented steps for a host installation
// into a directory, and looks for the program, the unit and the manual page there.
func TestInstallSteps_MatchUnit(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"usr/local/bin", "etc/sysusers.d", "etc/systemd/system"} { // that a host has
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	_, section, _ := strings.Cut(string(readFile(t, "../../docs/install.md")), "\n## On a host\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for line := range strings.Lines(section) {
		step, isStep := strings.CutPrefix(strings.TrimRight(line, "\n"), "    ")
		if !isStep || strings.HasPrefix(step, "system") { // what only a running systemd can do
			continue
		}
		step = regexp.MustCompile(` /(usr|etc)/`).ReplaceAllString(step, " "+root+"/$1/")
		cmd := exec.Command("sh", "-c", strings.ReplaceAll(step, "bin/spanstatsd ", binary+" "))
		cmd.Dir = "../.."
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v, %s", line, err, out)
		}
	}
	unit := string(readFile(t, filepath.Join(root, "etc/systemd/system/spanstatsd.service")))
	program := regexp.MustCompile(`(?m)^ExecStart=(\S+)`).FindStringSubmatch(unit)
	page := regexp.MustCompile(`(?m)^Documentation=.*man:([a-z-]+)\(([0-9])\)`).FindStringSubmatch(unit)
	if program == nil || page == nil {
		t.Fatalf("the unit has no program or no documentation page: %s", unit)
	}
	for _, file := range []string{
		program[1],
		"/usr/local/share/man/man" + page[2] + "/" + page[1] + "." + page[2],
	} {
		if info, err := os.Stat(filepath.Join(root, file)); err != nil || info.Size() == 0 {
			t.Errorf("the unit links to %s: %v", file, err)
		}
	}
}
