package dump_test

import (
	"bytes"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/export/dump"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 5_000_000, time.UTC)

func sample(size int) *dump.Refusal {
	body := make([]byte, size)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(body)
	return &dump.Refusal{
		Time: noon, Agent: "unix:///var/run/datadog/apm.socket", Spans: 17,
		RequestHeader: http.Header{"Content-Type": {"application/msgpack"}, "Datadog-Container-Id": {"cid"}},
		RequestBody:   body, Status: "400 Bad Request", ResponseHeader: http.Header{"Datadog-Agent-Version": {"7.85.1"}},
		ResponseBody: "msgp: no\r\n\r\nHTTP/1.1 200",
	}
}

func TestDump_RoundTrip(t *testing.T) {
	for _, size := range []int{0, 1, 100_000} {
		want := sample(size)
		got, err := dump.Read(bytes.NewReader(written(t, want)))
		if err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%d bytes: got\n%+v, want\n%+v", size, got, want)
		}
	}
}

// The agent's message can contain any text, which must not look like another part of the file.
func TestDump_UnusualResponses(t *testing.T) {
	r := sample(10)
	r.ResponseHeader = http.Header{
		"Content-Length": {"99999"}, "Transfer-Encoding": {"chunked"},
		"Connection": {"close"}, "X": {"a\r\nSpanstatsd-Spans: 3"},
	}
	r.RequestHeader.Set("Spanstatsd-Spans", "1000000")
	got, err := dump.Read(bytes.NewReader(written(t, r)))
	if err != nil || got.ResponseBody != r.ResponseBody || got.Spans != 17 || len(got.ResponseHeader) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestRead_InvalidIsRefused(t *testing.T) {
	complete := written(t, sample(100))
	for name, text := range map[string]string{
		"nothing": "", "another file": "hello, world, this is no dump at all",
		"truncated":    string(complete[:len(complete)/2]),
		"no response":  string(complete[:bytes.Index(complete, []byte("HTTP/1.1 400"))]),
		"invalid time": strings.Replace(string(complete), "Spanstatsd-Time: 2026", "Spanstatsd-Time: soon", 1),
		"negative":     strings.Replace(string(complete), "Spanstatsd-Spans: 17", "Spanstatsd-Spans: -7", 1),
	} {
		if got, err := dump.Read(strings.NewReader(text)); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func open(t testing.TB) (d *dump.Dir, path string) {
	t.Helper()
	path = t.TempDir()
	d, err := dump.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return d, path
}

// written returns the file of a refusal.
func written(t testing.TB, r *dump.Refusal) []byte {
	t.Helper()
	d, _ := open(t)
	name, err := d.Keep(r)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func list(t *testing.T, path string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestDir_OneDumpPerPause(t *testing.T) {
	d, path := open(t)
	for _, step := range []struct {
		after time.Duration
		kept  bool
	}{
		{0, true},
		{time.Second, false},
		{dump.Pause - 1, false},
		{dump.Pause, true},
		{dump.Pause + 1, false},
		{3 * dump.Pause, true},
	} {
		r := sample(10)
		r.Time = noon.Add(step.after)
		if file, err := d.Keep(r); (file != "") != step.kept || err != nil {
			t.Errorf("after %v: file %q, %v", step.after, file, err)
		}
	}
	if names := list(t, path); len(names) != 3 {
		t.Errorf("files %v", names)
	}
}

func TestDir_KeepsAtMostMaxFiles(t *testing.T) {
	d, path := open(t)
	r := sample(10)
	for range dump.MaxFiles + 3 {
		r.Time = r.Time.Add(dump.Pause)
		if _, err := d.Keep(r); err != nil {
			t.Fatal(err)
		}
	}
	if names := list(t, path); len(names) != dump.MaxFiles {
		t.Errorf("files %v", names)
	}
}

func TestDir_FileModeAndContent(t *testing.T) {
	d, _ := open(t)
	file, err := d.Keep(sample(1000))
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if _, err := dump.Read(in); err != nil {
		t.Error(err)
	}
}

func TestDir_Unusable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, filepath.Join(file, "missing"), "/nowhere/at/all"} {
		if _, err := dump.Open(path); err == nil || !strings.Contains(err.Error(), "--debug-dir") {
			t.Errorf("%s: %v", path, err)
		}
	}
	d, path := open(t)
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	if file, err := d.Keep(sample(1)); err == nil {
		t.Errorf("kept in %s, which does not exist", file)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(written(f, sample(20)))
	f.Fuzz(func(t *testing.T, file []byte) {
		if r, err := dump.Read(bytes.NewReader(file)); err == nil && len(r.RequestBody)+len(r.ResponseBody) > len(file) {
			t.Errorf("%d bytes gave a payload of %d", len(file), len(r.RequestBody))
		}
	})
}
