package wire

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire/msgpack"
	library "github.com/vmihailenco/msgpack/v5"
)

// bodyOf returns the body of a frame.
func bodyOf(t testing.TB, frame []byte) []byte {
	t.Helper()
	_, body, err := Split(frame[HeaderLen:])
	if err != nil {
		t.Fatalf("split: %v", err)
	}
	return body
}

// roundTrip checks that decoding an appended message returns the message.
func roundTrip[M any](t *testing.T, m M, frame []byte, decode func([]byte) (M, error)) {
	t.Helper()
	got, err := decode(bodyOf(t, frame))
	if err != nil || !reflect.DeepEqual(got, m) {
		t.Errorf("decoded %+v, error %v, want %+v", got, err, m)
	}
}

func TestColdMessages_RoundTrip(t *testing.T) {
	long := strings.Repeat("long ", 20_000)
	features := Features{
		Stats: true, PeerTags: []string{"a", ""}, SpanKinds: []string{"server"},
		IgnoreResources: []string{"^/x$"}, ObfuscationVersion: 2,
	}
	hello := Hello{
		Version: 1, Client: long, Settled: true, Earlier: "k-1",
		Origin: span.Origin{Service: "\xff not UTF-8", ProcessTags: long},
	}
	roundTrip(t, hello, AppendHello(nil, &hello), DecodeHello)
	welcome := Welcome{
		Version: 1, Daemon: "d", MaxFrame: MinMaxFrame, MaxBatch: MinMaxBatch, MaxKeys: 0,
		Features: features,
		Settled:  true,
		Interval: 10_000_000_000,
		Token:    "k-2",
		Earlier:  []uint64{0, 0, 1 << 40, 1},
	}
	roundTrip(t, welcome, AppendWelcome(nil, &welcome), DecodeWelcome)
	announcement := Announcement{Features: features, Settled: 1 << 40}
	roundTrip(t, announcement, AppendFeatures(nil, &announcement), DecodeFeatures)
	roundTrip(t, Announcement{}, AppendFeatures(nil, &Announcement{}), DecodeFeatures)
	lost := Lost{"": 0, "closed": MaxLostSpans, "buffer_full": 7}
	roundTrip(t, lost, AppendLost(nil, lost), DecodeLost)
	roundTrip(t, Lost{}, AppendLost(nil, nil), DecodeLost)
	flush := Flush{ID: 1 << 63, OK: true, Error: "e"}
	roundTrip(t, flush, AppendFlushAnswer(nil, &flush), DecodeFlush)
	roundTrip(t, Flush{ID: flush.ID}, AppendFlush(nil, &flush), DecodeFlush)
	bye := Bye{Reason: "version", Detail: long, Versions: []uint64{1, 1 << 40}}
	roundTrip(t, bye, AppendBye(nil, &bye), DecodeBye)
	roundTrip(t, Bye{}, AppendBye(nil, &Bye{}), DecodeBye)
}

func TestFields_UnknownAreSkipped(t *testing.T) {
	later := []byte("\xa5later\x82\xa1a\x93\x01\xc0\xcb\x00\x00\x00\x00\x00\x00\x00\x00\x07\xc4\x01\xff")
	for _, v := range loadVectors(t) {
		kind, body, err := Split(v.bytesOf(t)[HeaderLen:])
		if !v.Canonical || err != nil || kind == TypeSpans || kind == TypeDefine || kind == TypeLost {
			continue
		}
		want, err := coldMeaning(kind, body)
		if err != nil {
			t.Fatalf("%s: %v", v.Name, err)
		}
		extended := append(bytes.Clone(body), later...)
		extended[0]++ // one more entry in a fixmap
		got, err := coldMeaning(kind, extended)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s with another field means %v, error %v, want %v", v.Name, got, err, want)
		}
	}
}

// A field without a struct tag would not be transmitted.
func TestFields_HaveStructTags(t *testing.T) {
	for _, message := range []any{span.Origin{}, Hello{}, Welcome{}, Features{}, Flush{}, Bye{}} {
		for _, field := range reflect.VisibleFields(reflect.TypeOf(message)) {
			name, _ := fieldName(field)
			if name == "-" && field.Name == "Attributes" {
				continue // never transmitted
			}
			if got := strings.ReplaceAll(name, "_", ""); got != strings.ToLower(field.Name) {
				t.Errorf("%T.%s is called %q", message, field.Name, name)
			}
		}
	}
}

func TestList_LongIsCutByWriter(t *testing.T) {
	for _, c := range []struct {
		name         string
		list         []string
		wantElements int
	}{
		{"elements", make([]string, 5000), maxListElements},
		{"bytes", slicesOf(strings.Repeat("x", 1000), 100), maxListBytes / 1000},
		{"one element", []string{strings.Repeat("x", maxListBytes+1)}, 0},
		{"fits", slicesOf(strings.Repeat("x", 64), 1024), 1024},
	} {
		got, err := DecodeFeatures(bodyOf(t,
			AppendFeatures(nil, &Announcement{Features: Features{IgnoreResources: c.list}})))
		if err != nil || len(got.IgnoreResources) != c.wantElements {
			t.Errorf("%s: %d elements, error %v, want %d", c.name, len(got.IgnoreResources), err,
				c.wantElements)
		}
	}
}

func slicesOf(s string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = s
	}
	return list
}

func TestList_LongIsRefusedByReader(t *testing.T) {
	list := slicesOf(strings.Repeat("x", 65), 1024)
	body, err := library.Marshal(map[string]any{"peer_tags": list})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := DecodeFeatures(body); !errors.Is(err, ErrMalformed) {
		t.Errorf("error %v, want ErrMalformed", err)
	}
}

func TestLost_MaximumReasons(t *testing.T) {
	lost := Lost{}
	for i := range MaxLost {
		lost[fmt.Sprint(i)] = 1
	}
	roundTrip(t, lost, AppendLost(nil, lost), DecodeLost)
	lost["one more"] = 1
	if _, err := DecodeLost(bodyOf(t, AppendLost(nil, lost))); !errors.Is(err, ErrMalformed) {
		t.Errorf("error %v, want ErrMalformed", err)
	}
}

// The largest messages of a daemon are within the limit that clients accept.
func TestDaemonMessages_FitDefaultFrame(t *testing.T) {
	list := slicesOf(strings.Repeat("x", 64), 1024)
	frame := AppendWelcome(nil,
		&Welcome{Features: Features{PeerTags: list, SpanKinds: list, IgnoreResources: list}})
	if len(frame) > DefaultMaxFrame {
		t.Errorf("a welcome can have %d bytes", len(frame))
	}
}

// checkValid compares the validator with the library's way to skip a value.
func checkValid(t *testing.T, body []byte) {
	t.Helper()
	err := validate("check", body)
	deep := msgpack.NewReader(body)
	if deep.SkipWithin(len(body)); err != nil && !deep.Failed() && deep.Unread() == 0 {
		return // rejected only because of its nesting
	}
	reader := bytes.NewReader(body)
	skipped := library.NewDecoder(reader).Skip() == nil && reader.Len() == 0
	if skipped != (err == nil) {
		t.Errorf("%x: error %v, but the library skips it: %v", body, err, skipped)
	}
}

// The test checks every lead byte, followed by enough, too many and too few bytes.
func TestValidate_AgreesWithLibrary(t *testing.T) {
	for lead := range 256 {
		for length := range 64 {
			for _, fill := range []byte{0, 1, 2} {
				checkValid(t, append([]byte{byte(lead)}, bytes.Repeat([]byte{fill}, length)...))
			}
		}
	}
}
