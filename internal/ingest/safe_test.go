package ingest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

func TestAllowedUsers(t *testing.T) {
	own := uint32(os.Getuid())
	for _, test := range []struct {
		allow  []uint32
		reason string
	}{
		{nil, ""},
		{[]uint32{own + 1, own}, ""},
		{[]uint32{own + 1, own + 2}, "not_allowed"},
	} {
		h := start(t, func(c *Config, _ *aggregate.Config) { c.AllowUIDs = test.allow })
		if test.reason == "" {
			h.connect("shop").settle()
			continue
		}
		if reason := h.dial().farewell(); reason != test.reason {
			t.Errorf("allowed %v: closed with %q", test.allow, reason)
		}
		if stats := h.Stats(); stats.Faults["not_allowed"] != 1 || stats.Received != 0 {
			t.Errorf("allowed %v: faults %v", test.allow, stats.Faults)
		}
	}
}

func TestPeerIsWhoTheKernelSays(t *testing.T) {
	h := start(t, nil)
	h.connect("shop")
	for _, conn := range h.connections() {
		if conn.peer.uid != uint32(os.Getuid()) || conn.peer.pid != int32(os.Getpid()) {
			t.Errorf("the peer is %+v", conn.peer)
		}
		if tracers := h.Tracers(); len(tracers) != 1 || tracers[0].UID != conn.peer.uid ||
			tracers[0].PID != conn.peer.pid || tracers[0].Service != "shop" || tracers[0].Client != "test" {
			t.Errorf("status says %+v", tracers)
		}
		if conn.peer.container != containerOf(int32(os.Getpid())) {
			t.Errorf("the peer's container is %q", conn.peer.container)
		}
	}
}

func TestContainerInCgroup(t *testing.T) {
	id := strings.Repeat("0123456789abcdef", 4)
	for cgroup, want := range map[string]string{
		"0::/": "",
		"":     "",
		"0::/user.slice/user-0.slice/session-3.scope": "",
		"12:memory:/docker/" + id:                     id,
		"0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod2d3da189_6407_48e3_9ab6_78188d75e609.slice/cri-containerd-" + id + ".scope\n": id,
		"1:name=systemd:/\n11:cpu:/kubepods/besteffort/pod3d274242-8ee0-11e9-a8a6-1e68d864ef1a/" + id + "\n":                                               id,
		"9:cpu:/ecs/" + id[:32] + "-1234567890":          id[:32] + "-1234567890",
		"9:cpu:/garden/6f265890-5165-7fab-6b52-18d1":     "6f265890-5165-7fab-6b52-18d1",
		"9:cpu:/garden/6f265890-5165-7fab-6b52-18d1aaaa": "",
	} {
		if got := containerIn(cgroup); got != want {
			t.Errorf("%q: %q, want %q", cgroup, got, want)
		}
	}
}

// TestContainerOfThePeer goes to an origin that names none of its own.
func TestContainerOfThePeer(t *testing.T) {
	c := &conn{admission: admission{server: &Server{}}, peer: peer{container: "seen"}}
	c.originate(span.Origin{})
	if c.origin.ContainerID != "seen" {
		t.Errorf("the container is %q", c.origin.ContainerID)
	}
	for _, said := range []span.Origin{{ContainerID: "own"}, {EntityID: "in-1234"}} {
		c.originate(said)
		if c.origin.ContainerID != said.ContainerID {
			t.Errorf("%+v became %+v", said, c.origin)
		}
	}
}

// TestFloodIsHeldToItsRate floods one connection over its rate while another
// one's every span arrives.
func TestFloodIsHeldToItsRate(t *testing.T) {
	h := start(t, func(c *Config, _ *aggregate.Config) { c.MaxByteRate = 200_000 })
	flood, healthy := h.connect("flood"), h.connect("healthy")
	go func() {
		frame := spans(200, key("flood"))
		for {
			if _, err := flood.Write(frame); err != nil {
				return
			}
		}
	}()
	for h.Stats().ReadsThrottled == 0 {
		time.Sleep(time.Millisecond)
	}
	for range 10 {
		healthy.send(spans(10, key("healthy")))
	}
	healthy.settle()
	h.stop()
	if h.rows["healthy"] != 100 {
		t.Errorf("the healthy tracer was counted %d of 100", h.rows["healthy"])
	}
}

func TestResourceIsCut(t *testing.T) {
	h := start(t, func(c *Config, _ *aggregate.Config) { c.MaxResource = 300 })
	c := h.connect("shop")
	c.send(spans(1, key(strings.Repeat("r", 300)+"one")))
	c.send(spans(1, key(strings.Repeat("r", 300)+"other")))
	c.settle()
	h.stop()
	if n := h.rows[strings.Repeat("r", 300)]; n != 2 || h.Stats().KeysNormalised != 2 {
		t.Errorf("counted %v", h.rows)
	}
}

// TestPaceIsNotTheTracersFault: a frame takes longer than the read timeout only
// because the daemon puts its reading off.
func TestPaceIsNotTheTracersFault(t *testing.T) {
	h := start(t, func(c *Config, _ *aggregate.Config) {
		c.MaxByteRate, c.ReadTimeout = 100_000, 100*time.Millisecond
	})
	c := h.connect("large")
	c.send(spans(40, key(strings.Repeat("r", 4000)))) // 160 KB
	c.settle()
	h.stop()
	if stats := h.Stats(); stats.Received != 40 || stats.ReadsThrottled == 0 {
		t.Errorf("received %d, faults %v", stats.Received, stats.Faults)
	}
}

// TestAnnouncedLengthCostsNothing: the buffer grows with what comes.
func TestAnnouncedLengthCostsNothing(t *testing.T) {
	data := append([]byte{0, 0x0f, 0xff, 0xff}, make([]byte, 1000)...)
	f := newFrames(&pieces{rnd: rand.New(rand.NewPCG(1, 1)), data: data}, 1<<20, time.Second, nil, ample())
	if _, err := f.next(); faultOf(err) != FaultHalfFrame || len(f.buf) != baseBuffer {
		t.Errorf("%v, with a buffer of %d bytes", err, len(f.buf))
	}
	f = newFrames(&pieces{rnd: rand.New(rand.NewPCG(1, 1)), data: data}, 1<<20, time.Second, nil, ample())
	if _, err := f.first(time.Second); faultOf(err) != FaultTooLarge {
		t.Errorf("a hello of a megabyte: %v", err)
	}
}

// TestRedefiningInAFullTable does what would sweep the table for each key.
func TestRedefiningInAFullTable(t *testing.T) {
	share := testShare(1 << 30)
	k := newKeys(1024, 1<<20, share)
	number := uint32(0)
	for ; ; number++ {
		raw := fmt.Appendf(nil, "%d%s", number, strings.Repeat("k", 2000))
		if !k.learn(number, raw) {
			break
		}
	}
	if k.worthSweeping() {
		t.Errorf("a sweep that frees nothing, with %d of %d bytes pinned", k.pinned, k.bytes)
	}
	k.define(0, k.numbered(1))
	if k.worthSweeping() {
		t.Error("a sweep for one key")
	}
	for n := range number / 2 {
		k.define(n, k.numbered(number-1))
	}
	before := k.bytes
	if !k.worthSweeping() {
		t.Error("no sweep for half of the table")
	}
	k.sweep(^uint64(0))
	if k.bytes > before*2/3 || share.memory.taken.Load() != int64(k.bytes) {
		t.Errorf("%d bytes after a sweep of %d, %d in all", k.bytes, before, share.memory.taken.Load())
	}
	k.release()
	if share.memory.taken.Load() != 0 {
		t.Errorf("%d bytes in all after the release", share.memory.taken.Load())
	}
}

// TestKeysOfAllConnectionsAreBounded.
func TestKeysOfAllConnectionsAreBounded(t *testing.T) {
	h := start(t, func(c *Config, _ *aggregate.Config) { c.MaxKeyBytes, c.MaxKeyBytesInAll = 1<<20, 1<<20 })
	first, second := h.connect("first"), h.connect("second")
	for i := range 300 {
		first.send(spans(1, key(strings.Repeat("a", 4000)+fmt.Sprint(i))))
		second.send(spans(1, key(strings.Repeat("b", 4000)+fmt.Sprint(i))))
	}
	first.settle()
	second.settle()
	for h.Stats().Connections > 0 {
		time.Sleep(time.Millisecond)
	}
	h.stop()
	if stats := h.Stats(); stats.KeysUncached == 0 || stats.DroppedTotal() != 0 || h.keyMemory.taken.Load() != 0 {
		t.Errorf("uncached %d, dropped %v, %d bytes held in the end", stats.KeysUncached, stats.Dropped, h.keyMemory.taken.Load())
	}
}

func TestKeyLimits(t *testing.T) {
	h := start(t, func(c *Config, _ *aggregate.Config) { c.MaxKeyBytes = minKeyBytes })
	c := h.connect("whole")
	for i := range 40 {
		c.send(spans(1, key(strings.Repeat("r", 4000)+string(rune('a'+i)))))
	}
	c.settle()
	stats := h.Stats()
	if stats.KeysDecoded != 40 || stats.KeysUncached == 0 || stats.DroppedTotal() != 0 {
		t.Errorf("decoded %d, uncached %d, dropped %v", stats.KeysDecoded, stats.KeysUncached, stats.Dropped)
	}
	c = h.connect("numbered")
	for i := range uint32(40) {
		if _, err := c.Write(define(i, key(strings.Repeat("n", 4000)+string(rune('a'+i))))); err != nil {
			break
		}
	}
	if reason := c.farewell(); reason != "too_many_keys" {
		t.Errorf("closed with %q", reason)
	}
}

func TestKeysAreNormalisedAndCounted(t *testing.T) {
	h := start(t, nil)
	c := h.connect("shop")
	for _, service := range []string{"Shop A", "shop a", "shop+a", "shop_a"} {
		c.send(spans(1, wire.AppendKey(nil, &span.Key{Service: service, Operation: "op", Resource: "r"})))
	}
	c.settle()
	if keys := h.aggregator.Stats().Aggregates; keys != 1 {
		t.Errorf("%d aggregates for four spellings of one service", keys)
	}
	if n := h.Stats().KeysNormalised; n != 3 {
		t.Errorf("%d keys normalised, want 3", n)
	}
}

func TestLockKeepsASecondDaemonOff(t *testing.T) {
	path := filepath.Join(shortDir(t), "s")
	first, err := listen(Socket{Path: path, Mode: 0o600})
	if err != nil {
		t.Fatal(err)
	}
	// The first daemon's socket is gone, but not the daemon.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := listen(Socket{Path: path, Mode: 0o600}); err == nil || !strings.Contains(err.Error(), "holds its lock") {
		t.Errorf("a second daemon got %v", err)
	}
	first.Close()
	second, err := listen(Socket{Path: path, Mode: 0o600})
	if err != nil {
		t.Fatal(err)
	}
	second.Close()
	target := path + ".target"
	if err := os.Remove(path + ".lock"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, path+".lock"); err != nil {
		t.Fatal(err)
	}
	if _, err := listen(Socket{Path: path, Mode: 0o600}); err == nil {
		t.Error("a lock that is a link was followed")
	}
	if _, err := os.Lstat(target); err == nil {
		t.Error("a file was made through a link")
	}
}

func TestDirectoryIsMadeWithItsMode(t *testing.T) {
	dir := filepath.Join(shortDir(t), "made")
	owner := &Owner{UID: os.Getuid(), GID: os.Getgid()}
	l, err := listen(Socket{
		Path: filepath.Join(dir, "s"), Mode: 0o606, Owner: owner, DirectoryMode: 0o750, DirectoryOwner: owner,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for path, want := range map[string]os.FileMode{dir: 0o750, filepath.Join(dir, "s"): 0o606} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has %v, %v; want %v", path, info.Mode(), err, want)
		}
	}
	if _, err := net.Dial("unix", filepath.Join(dir, "s")); err != nil {
		t.Error(err)
	}
}
