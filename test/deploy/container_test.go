//go:build container

package deploy

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
	"github.com/spanstatsd/spanstatsd/lab/standin"
)

// applicationUser is any user other than the daemon's.
const applicationUser = 1000

// publishesTo is set in the process of this test binary that acts as the application: see publishFrom.
const publishesTo = "TEST_PUBLISHES_TO"

func init() {
	if socket := os.Getenv(publishesTo); socket != "" {
		os.Exit(publishOnce(socket))
	}
}

// TestContainer runs the image's root file system with the environment of the sidecar manifest: alone,
// read-only, as its user. An application of another user publishes, with the socket directory mounted
// read-only as in the examples. The agent must count its spans, and a pod's stop signal must cause a
// graceful shutdown.
func TestContainer(t *testing.T) {
	if os.Getuid() != 0 {
		t.Fatal("a container without a runtime needs root: run `make test-container` as root")
	}
	root, shared := imageRoot(t), sharedDirectory(t)
	agent, err := standin.Start(standin.Config{Network: "unix", Address: filepath.Join(shared, "agent")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { agent.Close() })
	if err := os.Chmod(filepath.Join(shared, "agent"), 0o777); err != nil {
		t.Fatal(err)
	}
	addr := freeAddress(t)
	daemon, log := startContainer(t, root, shared, "DD_TRACE_AGENT_URL=unix:///var/run/spanstatsd/agent",
		"SPANSTATSD_HTTP_ADDR="+addr)
	if out, err := exec.Command(binary, "wait", "ready", "--url",
		"http://"+addr).CombinedOutput(); err != nil {
		t.Fatalf("%v, %s\n%s", err, out, log)
	}
	for path, want := range map[string]int{
		"/readyz": http.StatusOK, "/livez": http.StatusOK,
		"/metrics": http.StatusOK,
	} {
		response, err := http.Get("http://" + addr + path)
		if err != nil || response.StatusCode != want {
			t.Errorf("%s: %v, %v", path, response, err)
		}
	}
	confinedProcess(t, daemon.Process.Pid)
	publishFrom(t, shared)
	if err := daemon.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := daemon.Wait(); err != nil {
		t.Errorf("shutdown: %v\n%s", err, log)
	}
	if hits := agent.Totals().Hits; hits != 100 || !strings.Contains(log.String(), `"balanced":true`) {
		t.Errorf("the agent counted %d of 100 spans\n%s", hits, log)
	}
}

// sharedDirectory returns a directory like an emptyDir: writable for everyone.
func sharedDirectory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "em")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

// startContainer runs the image with container.sh, with the environment of the manifest and additional
// variables.
func startContainer(t *testing.T, root, shared string, environment ...string) (*exec.Cmd, *strings.Builder) {
	t.Helper()
	daemon, _ := daemonOf(&overlay(t, "sidecar").pods[0].pod.Spec)
	args := append([]string{"container.sh", root, shared, "/var/run/spanstatsd", "/spanstatsd"},
		daemon.Args...)
	cmd := exec.Command("sh", args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, environment...)
	for _, e := range daemon.Env {
		if e.ValueFrom == nil {
			cmd.Env = append(cmd.Env, e.Name+"="+e.Value)
		}
	}
	log := &strings.Builder{}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, log
}

// confinedProcess checks the process's privileges in the kernel.
func confinedProcess(t *testing.T, pid int) {
	t.Helper()
	status := string(readFile(t, fmt.Sprintf("/proc/%d/status", pid)))
	for _, want := range []string{
		`(?m)^Name:\s+spanstatsd$`, `(?m)^Uid:\s+65532\s+65532\s+65532\s+65532$`,
		`(?m)^Gid:\s+65532\s+65532\s+65532\s+65532$`,
		`(?m)^Groups:\s*$`, `(?m)^CapEff:\s+0+$`, `(?m)^CapPrm:\s+0+$`, `(?m)^NoNewPrivs:\s+1$`,
	} {
		if !regexp.MustCompile(want).MatchString(status) {
			t.Errorf("the process does not match %s:\n%s", want, status)
		}
	}
	mounts := string(readFile(t, fmt.Sprintf("/proc/%d/mountinfo", pid)))
	if !regexp.MustCompile(`(?m)^\d+ \d+ \S+ \S+ / ro[, ]`).MatchString(mounts) {
		t.Errorf("the root is not read-only:\n%s", mounts)
	}
}

// publishFrom runs the application: this test binary as another user, with the socket directory mounted
// read-only, so that even root can't write there.
func publishFrom(t *testing.T, shared string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	room := sharedDirectory(t)
	application, directory := filepath.Join(room, "application"), filepath.Join(room, "mounted")
	if err := os.WriteFile(application, readFile(t, self), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(directory, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("unshare", "--mount", "--propagation", "private", "sh", "-euc", `mount --bind "$1" "$2"
mount -o remount,bind,ro "$2"
if touch "$2/file" 2>/dev/null; then echo "the directory can be written"; exit 1; fi
exec setpriv --reuid="$4" --regid="$4" --clear-groups "$3"`, "sh", shared, directory, application,
		strconv.Itoa(applicationUser))
	cmd.Env = append(os.Environ(), publishesTo+"="+filepath.Join(directory, "spans.sock"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("an application with another user: %v, %s", err, out)
	}
}

// publishOnce is the application.
func publishOnce(socket string) int {
	c, err := client.Open(client.Config{Socket: socket, Origin: client.Origin{Service: "shop"}})
	if err == nil {
		for range 100 {
			c.Publish([]client.Snapshot{{
				Key: client.Key{Service: "shop", Operation: "op", Resource: "r"},
				End: time.Now(),
			}})
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		err = c.Close(ctx)
	}
	if err != nil || c.Stats().Sent != 100 {
		fmt.Println(err, c.Stats())
		return 1
	}
	return 0
}
