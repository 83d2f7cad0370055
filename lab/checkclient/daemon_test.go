package checkclient

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/daemon"
	exporter "github.com/spanstatsd/spanstatsd/internal/export/agent"
	"github.com/spanstatsd/spanstatsd/internal/wire"
	"github.com/spanstatsd/spanstatsd/lab/standin"
)

// startDaemon starts a real daemon that exports to a mock agent, and returns the path of its
// socket.
func startDaemon(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	agent, err := standin.Start(standin.Config{
		Network: "unix", Address: filepath.Join(dir, "a"),
		Weighted: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { agent.Close() })
	config := daemon.DefaultConfig()
	config.HTTPAddr, config.Version, config.Log = "127.0.0.1:0", "test", slog.New(slog.DiscardHandler)
	config.Ingest.Socket.Path = filepath.Join(dir, "s")
	if config.Agent.URL, err = exporter.ParseURL(agent.URL()); err != nil {
		t.Fatal(err)
	}
	config.Aggregate.Drainers = 1
	d, err := daemon.New(config)
	if err != nil {
		t.Fatal(err)
	}
	d.Start()
	t.Cleanup(func() { d.Stop() })
	return config.Ingest.Socket.Path
}

// byesOf connects to path, writes sent, and returns the bye messages of the response.
func byesOf(t *testing.T, path string, sent []byte) (byes []wire.Bye) {
	t.Helper()
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	_, _ = conn.Write(sent) // the daemon may close the connection before the end
	_ = conn.CloseWrite()
	answers, _ := io.ReadAll(conn) // a connection reset ends the response too
	for len(answers) > 0 {
		length := int(wire.FrameLength(answers))
		kind, body, err := wire.Split(answers[wire.HeaderLen : wire.HeaderLen+length])
		if err != nil {
			t.Fatal(err)
		}
		if kind == wire.TypeBye {
			bye, err := wire.DecodeBye(body)
			if err != nil {
				t.Fatal(err)
			}
			byes = append(byes, bye)
		}
		answers = answers[wire.HeaderLen+length:]
	}
	return byes
}

// TestBye_SameAsDaemon: for every golden vector, with and without a hello before it,
// and for every wrong client, the check replies with the same bye reason and text as a daemon, or
// with no bye if the daemon sends none.
func TestBye_SameAsDaemon(t *testing.T) {
	file, err := os.ReadFile("../../internal/wire/testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct{ Name, Frame string }
	if err := json.Unmarshal(file, &vectors); err != nil {
		t.Fatal(err)
	}
	running, check := startDaemon(t), serve(t, 0, func(c *Config) { c.Quiet = true })
	compare := func(name string, sent []byte) {
		want, got := byesOf(t, running, sent), byesOf(t, check.path, sent)
		if g, w := asJSON(t, got), asJSON(t, want); g != w {
			t.Errorf("%s: the check reports\n%s, a daemon\n%s", name, g, w)
		}
	}
	for _, v := range vectors {
		frame, err := hex.DecodeString(v.Frame)
		if err != nil {
			t.Fatal(err)
		}
		compare(v.Name+" after a hello", append(hello(), frame...))
		compare(v.Name, frame)
	}
	for _, c := range wrongClients {
		if c.name != "nothing" { // an empty connection; only the check reports one
			compare(c.name, bytes.Join(c.frames, nil))
		}
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestBye_NotAfterDisconnectInFrame: a client that disconnects within a frame is sent no
// bye.
func TestBye_NotAfterDisconnectInFrame(t *testing.T) {
	for name, path := range map[string]string{"daemon": startDaemon(t), "check": serve(t, 0, nil).path} {
		if byes := byesOf(t, path, append(hello(), batch(webKey())[:20]...)); len(byes) != 0 {
			t.Errorf("the %s sends %+v", name, byes)
		}
	}
}
