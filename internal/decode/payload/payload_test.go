package payload_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/decode/payload"
	"github.com/vmihailenco/msgpack/v5"
)

type object = map[string]any

func encode(t testing.TB, v any) []byte {
	t.Helper()
	body, err := msgpack.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// buckets returns a payload with two buckets of two groups and one, after change has modified it.
func buckets(t testing.TB, change func(payload, bucket, group object)) []byte {
	t.Helper()
	group := object{"Service": "s", "Hits": 3, "OkSummary": []byte{1, 2}, "PeerTags": []string{"a:b", "c:d"}}
	bucket := object{
		"Stats": []any{group, object{"Hits": uint64(1) << 63}}, "Start": 20, "Duration": 10,
		"AgentTimeShift": -1,
	}
	message := object{"Hostname": "h", "Tags": []string{"t"}}
	if change != nil {
		change(message, bucket, group)
	}
	message["Stats"] = []any{bucket, object{"Start": 30, "Duration": 10, "Stats": []any{object{"Hits": 2}}}}
	return encode(t, message)
}

// gather decodes a payload with a Visitor and collects its buckets.
func gather(body []byte, maxTags int) (*payload.Payload, error) {
	var all []payload.Bucket
	var groups []payload.Group
	p, err := payload.Visitor{
		MaxTags: maxTags,
		OnGroup: func(g *payload.Group) error { groups = append(groups, *g); return nil },
		OnBucket: func(b *payload.Bucket) error {
			b.Stats, groups = groups, nil
			all = append(all, *b)
			return nil
		},
	}.Decode(body)
	if err == nil {
		p.Stats = all
	}
	return p, err
}

func TestVisitor_MatchesDecode(t *testing.T) {
	body := buckets(t, nil)
	want, err := payload.Decode(body)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := gather(body, 3); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

// TestWalk_UnknownFieldsAreErrors checks that unknown fields and too many tags are errors.
func TestWalk_UnknownFieldsAreErrors(t *testing.T) {
	for name, change := range map[string]func(payload, bucket, group object){
		"new of a payload": func(p, _, _ object) { p["New"] = nil },
		"new of a bucket":  func(_, b, _ object) { b["New"] = []any{} },
		"new of a group":   func(_, _, g object) { g["New"] = 1 },
		"a fourth tag":     func(p, _, _ object) { p["Tags"] = []string{"t", "u"} },
	} {
		if p, err := gather(buckets(t, change), 3); !errors.Is(err, payload.ErrLossy) {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
}

// TestWalk_StopsAtError checks that a Visitor stops at an error and returns it.
func TestWalk_StopsAtError(t *testing.T) {
	full, visits := errors.New("full"), 0
	visit := func() error {
		if visits++; visits == 3 {
			return full
		}
		return nil
	}
	_, err := payload.Visitor{
		MaxTags: 3, OnGroup: func(*payload.Group) error {
			return visit()
		}, OnBucket: func(*payload.Bucket) error { return visit() },
	}.Decode(buckets(t, nil))
	if !errors.Is(err, full) || visits != 3 {
		t.Errorf("%v after %d visits", err, visits)
	}
}

// FuzzWalk compares a Visitor with Decode.
func FuzzWalk(f *testing.F) {
	f.Add(buckets(f, nil))
	f.Add([]byte{0x80})
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := gather(body, 1000)
		if err != nil {
			return
		}
		want, err := payload.Decode(body)
		if err != nil || len(got.Stats) != len(want.Stats) || got.Hostname != want.Hostname {
			t.Fatalf("%+v, %+v: %v", got, want, err)
		}
		for i := range got.Stats {
			if len(got.Stats[i].Stats) != len(want.Stats[i].Stats) ||
				got.Stats[i].Start != want.Stats[i].Start {
				t.Errorf("bucket %d: %+v, want %+v", i, got.Stats[i], want.Stats[i])
			}
		}
	})
}
