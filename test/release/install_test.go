package release

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	modzip "golang.org/x/mod/zip"
)

// TestGoInstall_LatestVersion installs the daemon with the go command alone: outside of any
// module, from a module proxy. The proxy has the tracked files of the work tree as v0.2.0. Dependencies
// come from the module cache, so the network is not used.
func TestGoInstall_LatestVersion(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, ".git")); err != nil {
		t.Skip("NOT RUN: go install of the module, because this is not a Git work tree")
	}
	self := module.Version{Path: "github.com/spanstatsd/spanstatsd", Version: "v0.2.0"}
	proxy := t.TempDir()
	writeVersion(t, proxy, root, ".", self)

	home := t.TempDir()
	goCommand(t, proxy, home, "install", self.Path+"/cmd/spanstatsd@latest")
	out, err := exec.Command(filepath.Join(home, "bin", "spanstatsd"), "version").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "spanstatsd v0.2.0 go") {
		t.Errorf("spanstatsd version: %v, %q; want the version of the module", err, out)
	}
}

// TestGoGet_SpanProcessor adds the span processor to a program as its author does, from a module proxy that has both
// modules as v0.2.0.
func TestGoGet_SpanProcessor(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, ".git")); err != nil {
		t.Skip("NOT RUN: go get of the span processor, because this is not a Git work tree")
	}
	const processor = "clients/otel-go"
	self := module.Version{Path: "github.com/spanstatsd/spanstatsd", Version: "v0.2.0"}
	nested := module.Version{Path: self.Path + "/" + processor, Version: self.Version}
	proxy, home := t.TempDir(), t.TempDir()
	writeVersion(t, proxy, root, ".", self)
	writeVersion(t, proxy, root, processor, nested)
	download := exec.Command("go", "mod", "download")
	download.Dir = filepath.Join(root, processor)
	if out, err := download.CombinedOutput(); err != nil {
		t.Fatalf("go mod download: %v\n%s", err, out)
	}
	program := []byte("package main\n\nimport spanstatsd \"" + nested.Path + "\"\n\n" +
		"func main() { _, _ = spanstatsd.NewSpanProcessor(spanstatsd.Config{}) }\n")
	if err := os.WriteFile(filepath.Join(home, "main.go"), program, 0o600); err != nil {
		t.Fatal(err)
	}
	goCommand(t, proxy, home, "mod", "init", "example.com/shop")
	goCommand(t, proxy, home, "get", nested.Path)
	goCommand(t, proxy, home, "build", "-o", filepath.Join(home, "shop"), ".")
	if out, err := exec.Command(filepath.Join(home, "shop")).CombinedOutput(); err != nil {
		t.Errorf("run the program: %v\n%s", err, out)
	}
}

// goCommand runs the go command outside of this repository, with a module proxy of files. The module cache is another
// one, because the shared one would keep this v0.2.0 for later runs.
func goCommand(t *testing.T, proxy, home string, args ...string) {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = home
	cmd.Env = append(os.Environ(),
		"GOPROXY=file://"+proxy+",file://"+filepath.Join(goEnv(t, "GOMODCACHE"), "cache", "download"),
		"GOMODCACHE="+filepath.Join(home, "modules"), "GOBIN="+filepath.Join(home, "bin"),
		"GOFLAGS=-modcacherw -trimpath", "GONOSUMDB=*", "GOSUMDB=off", "GOPRIVATE=", "GONOPROXY=", "GOWORK=off",
	)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// writeVersion adds a version of the module in a directory of the repository to a module proxy in files. Like the go
// command, modzip.Create leaves out symbolic links and nested modules.
func writeVersion(t *testing.T, proxy, repository, directory string, v module.Version) {
	t.Helper()
	root := filepath.Join(repository, directory)
	tracked, err := exec.Command("git", "-C", root, "ls-files", "-z").Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	var files []modzip.File
	for name := range strings.SplitSeq(strings.TrimSuffix(string(tracked), "\x00"), "\x00") {
		if _, err := os.Lstat(filepath.Join(root, name)); err == nil { // not deleted in the work tree
			files = append(files, trackedFile{root, name})
		}
	}
	var archive bytes.Buffer
	if err := modzip.Create(&archive, v, files); err != nil {
		t.Fatalf("create the module's archive: %v", err)
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(proxy, filepath.FromSlash(v.Path), "@v")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"list":              []byte(v.Version + "\n"),
		v.Version + ".info": []byte(`{"Version": "` + v.Version + `"}`),
		v.Version + ".mod":  mod,
		v.Version + ".zip":  archive.Bytes(),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// trackedFile is a file of the work tree, as modzip.Create reads it.
type trackedFile struct{ root, name string }

func (f trackedFile) Path() string                 { return f.name }
func (f trackedFile) Lstat() (os.FileInfo, error)  { return os.Lstat(filepath.Join(f.root, f.name)) }
func (f trackedFile) Open() (io.ReadCloser, error) { return os.Open(filepath.Join(f.root, f.name)) }

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		t.Fatalf("go env %s: %v", name, err)
	}
	return strings.TrimSpace(string(out))
}
