package workload

import (
	"reflect"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// drawn returns the keys of the first spans of a workload, with copies of their lists of tags.
func drawn(t *testing.T, name string, seed uint64, spans int) (keys []span.Key) {
	t.Helper()
	g, err := New(name, seed)
	if err != nil {
		t.Fatal(err)
	}
	batch := make([]Snapshot, 64)
	for len(keys) < spans {
		g.Fill(batch, 1)
		for i := range batch {
			k := *batch[i].Key
			k.PeerTags, k.AdditionalTags = append([]string(nil), k.PeerTags...), append([]string(nil),
				k.AdditionalTags...)
			keys = append(keys, k)
		}
	}
	return keys
}

// changing returns one text per key: the values of the labels that are not the same in all
// keys.
func changing(keys []span.Key) (texts []string) {
	texts = make([]string, len(keys))
	for l := range span.EndOfLists {
		of := func(k *span.Key) string { return strings.Join(*k.Tags(l), ",") }
		if l < span.FirstList {
			of = func(k *span.Key) string { return *k.Text(l) }
		}
		for i := range keys {
			if of(&keys[i]) != of(&keys[0]) {
				for j := range keys {
					texts[j] += of(&keys[j])
				}
				break
			}
		}
	}
	return texts
}

// TestFlood_UniqueKeysOfManyLengths: keys of a flood are unique and have many different
// lengths. The exceptions are fixed, with one length, and statuses, which differ only in a
// number.
func TestFlood_UniqueKeysOfManyLengths(t *testing.T) {
	for _, shape := range Shapes() {
		t.Run(shape, func(t *testing.T) {
			keys := drawn(t, Flood(shape, 100), 3, 2048)
			distinct, lengths := map[string]bool{}, map[int]int{}
			for i := range keys {
				distinct[string(wire.AppendKey(nil, &keys[i]))] = true
			}
			texts := changing(keys)
			for _, text := range texts {
				lengths[len(text)]++
			}
			if least := len(keys) * 9 / 10; len(distinct) < least {
				t.Errorf("%d distinct keys of %d", len(distinct), len(keys))
			}
			switch most := len(keys) / 4; {
			case shape == "status":
				if texts[0] != "" {
					t.Errorf("%q changes", texts[0])
				}
			case shape == Adversarial:
				exactly(t, "lengths", len(lengths), 1)
			default:
				for length, n := range lengths {
					if n > most {
						t.Errorf("%d of %d keys have %d bytes", n, len(keys), length)
					}
				}
			}
		})
	}
}

// TestFlood_ShapesNeedNormalization: normalization changes the keys of the shapes made for it.
// Keys of other shapes change at most in the order of tags.
func TestFlood_ShapesNeedNormalization(t *testing.T) {
	normalized := map[string]bool{
		"operations": true, "services": true, "capitals": true, "unicode": true, "invalid-utf8": true,
		"additional": true, "long": true, "many-tags": true,
	}
	for _, shape := range Shapes() {
		changed := 0
		keys := drawn(t, Flood(shape, 100), 5, 512)
		for i := range keys {
			if keys[i].Normalize("go") {
				changed++
			}
		}
		if normalized[shape] != (changed > len(keys)/20) {
			t.Errorf("%s: normalizing changes %d of %d keys", shape, changed, len(keys))
		}
	}
	for shape, tags := range map[string]int{"tags": 16, "many-tags": 256} {
		if keys := drawn(t, Flood(shape, 100), 1, 1); len(keys[0].PeerTags) != tags {
			t.Errorf("%s has %d peer tags", shape, len(keys[0].PeerTags))
		}
	}
}

// TestFlood_MixedWithRegularKeys: a mixed flood has its share of all spans. All
// regular keys occur, the first most often.
func TestFlood_MixedWithRegularKeys(t *testing.T) {
	names, honest := map[string]int{}, Honest("urls")
	for i := range honest {
		names[string(wire.AppendKey(nil, &honest[i]))] = i
	}
	for _, percent := range []int{5, 50} {
		const spans = 1 << 16
		came, flooded := make([]int, len(honest)), 0
		keys := drawn(t, Flood("urls", percent), 1, spans)
		for i := range keys {
			if at, is := names[string(wire.AppendKey(nil, &keys[i]))]; is {
				came[at]++
			} else {
				flooded++
			}
		}
		near(t, "share of the flood", float64(flooded)/spans, float64(percent)/100)
		for i, n := range came {
			if n == 0 || n > came[0] {
				t.Errorf("of %d%%: the honest key %d came %d times, the first one %d", percent, i, n, came[0])
			}
		}
	}
	exactly(t, "honest keys", len(names), HonestKeys)
}

func TestFlood_Seeds(t *testing.T) {
	for _, shape := range Shapes() {
		for _, percent := range []int{50, 100} {
			name := Flood(shape, percent)
			first, same, other := drawn(t, name, 1, 128), drawn(t, name, 1, 128), drawn(t, name, 2, 128)
			if !reflect.DeepEqual(first, same) {
				t.Errorf("%s: one seed made two different batches", name)
			}
			if reflect.DeepEqual(first, other) {
				t.Errorf("%s: two seeds made the same batch", name)
			}
		}
	}
}

// TestFlood_LabelsAreNotReused: the generator does not overwrite the strings of earlier
// labels.
func TestFlood_LabelsAreNotReused(t *testing.T) {
	for _, shape := range Shapes() {
		g, _ := New(Flood(shape, 100), 1)
		batch := make([]Snapshot, 3)
		g.Fill(batch, 0)
		k := *batch[2].Key
		k.PeerTags, k.AdditionalTags = append([]string(nil), k.PeerTags...), append([]string(nil),
			k.AdditionalTags...)
		before := string(wire.AppendKey(nil, &k))
		g.Fill(batch, 0)
		if after := string(wire.AppendKey(nil, &k)); after != before {
			t.Errorf("%s: %q became %q", shape, before, after)
		}
	}
}

// TestFlood_Names: each flood has a unique name, and the error for an unknown name lists the
// known ones.
func TestFlood_Names(t *testing.T) {
	for _, shape := range Shapes() {
		for _, percent := range []int{1, 5, 100} {
			s, got, err := parseFlood(Flood(shape, percent))
			if err != nil || s.name != shape || got != percent {
				t.Errorf("%s is read as %v of %d%%, %v", Flood(shape, percent), s, got, err)
			}
		}
	}
	for name, want := range map[string]string{
		"flood:":          "there are urls, sql",
		"flood:steady":    "there are urls, sql",
		"flood:urls:":     "write 1% to 100%",
		"flood:urls:0%":   "write 1%",
		"flood:urls:101%": "write 1%", "flood:urls:5": "write 1%", "flood": "nor flood: and one of urls",
	} {
		if _, err := New(name, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want it to say %q", name, err, want)
		}
	}
	if !UsesNumbers("flood:numbered") || !UsesNumbers("flood:numbered:5%") || UsesNumbers("flood:urls") ||
		UsesNumbers("numbered") || UsesNumbers(Stable) {
		t.Error("only numbered floods use numbers")
	}
	if !IsHostile("many-tags") || !IsHostile("status") || IsHostile("urls") || IsHostile("steady") {
		t.Error("of these only many-tags and status are hostile")
	}
}
