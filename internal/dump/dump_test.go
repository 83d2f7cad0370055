package dump

import (
	"bytes"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 5_000_000, time.UTC)

func sample(size int) *Refusal {
	body := make([]byte, size)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(body)
	return &Refusal{
		Time: noon, Agent: "unix:///var/run/datadog/apm.socket", Spans: 17,
		Sent: http.Header{"Content-Type": {"application/msgpack"}, "Datadog-Container-Id": {"cid"}}, Body: body,
		Status: "400 Bad Request", Answer: http.Header{"Datadog-Agent-Version": {"7.85.1"}}, Said: "msgp: no\r\n\r\nHTTP/1.1 200",
	}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	for _, size := range []int{0, 1, 100_000} {
		want := sample(size)
		got, err := Read(bytes.NewReader(want.encode()))
		if err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%d bytes: got\n%+v, want\n%+v", size, got, want)
		}
	}
}

// What the agent says may be anything, and must not be taken for something else.
func TestStrangeAnswers(t *testing.T) {
	r := sample(10)
	r.Answer = http.Header{"Content-Length": {"99999"}, "Transfer-Encoding": {"chunked"}, "Connection": {"close"}, "X": {"a\r\nSpanstatsd-Spans: 3"}}
	r.Sent.Set("Spanstatsd-Spans", "1000000")
	got, err := Read(bytes.NewReader(r.encode()))
	if err != nil || got.Said != r.Said || got.Spans != 17 || len(got.Answer) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestWhatIsNoDumpIsRefused(t *testing.T) {
	whole := sample(100).encode()
	for name, text := range map[string]string{
		"nothing": "", "another file": "hello, world, this is no dump at all", "half": string(whole[:len(whole)/2]),
		"no answer":    string(whole[:bytes.Index(whole, []byte("HTTP/1.1 400"))]),
		"not our time": strings.Replace(string(whole), "Spanstatsd-Time: 2026", "Spanstatsd-Time: soon", 1),
		"negative":     strings.Replace(string(whole), "Spanstatsd-Spans: 17", "Spanstatsd-Spans: -7", 1),
	} {
		if got, err := Read(strings.NewReader(text)); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func open(t *testing.T) *Dir {
	t.Helper()
	d, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *Dir) list(t *testing.T) (names []string, bytes int64) {
	t.Helper()
	entries, err := os.ReadDir(d.path)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		names, bytes = append(names, e.Name()), bytes+info.Size()
	}
	return names, bytes
}

func TestOneDumpAPause(t *testing.T) {
	d := open(t)
	for _, step := range []struct {
		after time.Duration
		kept  bool
	}{{0, true}, {time.Second, false}, {Pause - 1, false}, {Pause, true}, {Pause + 1, false}, {3 * Pause, true}} {
		r := sample(10)
		r.Time = noon.Add(step.after)
		if file, err := d.Keep(r); (file != "") != step.kept || err != nil {
			t.Errorf("after %v: file %q, %v", step.after, file, err)
		}
	}
	if names, _ := d.list(t); len(names) != 3 {
		t.Errorf("files %v", names)
	}
}

func TestTheOldestMakesRoom(t *testing.T) {
	for name, row := range map[string]struct{ size, dumps, left int }{
		"by count": {10, MaxFiles + 3, MaxFiles}, "by bytes": {25 << 20, 4, 2},
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t)
			if err := os.WriteFile(filepath.Join(d.path, "an operator's own"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			r := sample(row.size)
			for range row.dumps {
				r.Time = r.Time.Add(Pause)
				file, err := d.Keep(r)
				if err != nil {
					t.Fatal(err)
				}
				names, bytes := d.list(t)
				if len(names) > MaxFiles+1 || bytes > MaxBytes || !slices.Contains(names, filepath.Base(file)) {
					t.Fatalf("%d files of %d bytes, with the newest: %v", len(names), bytes, slices.Contains(names, filepath.Base(file)))
				}
			}
			names, _ := d.list(t)
			if len(names) != row.left+1 || names[0] != "an operator's own" {
				t.Errorf("files %v", names)
			}
		})
	}
}

func TestFilesAreTheOwnersAndWhole(t *testing.T) {
	d := open(t)
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
	if _, err := Read(in); err != nil {
		t.Error(err)
	}
}

func TestUnusableDirectories(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, filepath.Join(file, "missing"), "/nowhere/at/all"} {
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "--debug-dir") {
			t.Errorf("%s: %v", path, err)
		}
	}
	d := open(t)
	if err := os.RemoveAll(d.path); err != nil {
		t.Fatal(err)
	}
	if file, err := d.Keep(sample(1)); err == nil {
		t.Errorf("kept in %s, which is gone", file)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(sample(20).encode())
	f.Fuzz(func(t *testing.T, file []byte) {
		if r, err := Read(bytes.NewReader(file)); err == nil && len(r.Body)+len(r.Said) > len(file) {
			t.Errorf("%d bytes gave a payload of %d", len(file), len(r.Body))
		}
	})
}
