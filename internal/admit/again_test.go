package admit

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// TestLastKey_SameBufferOtherMessage: the messages of a connection use the same buffer, so a key
// must not be confused with the previous one because it has the same address.
func TestLastKey_SameBufferOtherMessage(t *testing.T) {
	h := newHarness(t, nil)
	h.aggregator.Start()
	p := h.NewPublisher(span.Origin{Service: "shop"})
	buffer := make([]byte, 1<<10)
	for i := range 40 { // at first new resources, then new keys of these
		k := span.Key{
			Service: "shop", Operation: "op", Resource: fmt.Sprint("resource ", 10+i%20),
			Type: fmt.Sprint(i / 20),
		}
		body := spans(1, wire.AppendKey(nil, &k))
		copy(buffer, body)
		if reason, ok := h.offer(p, buffer[:len(body)]); !ok {
			t.Fatalf("refused as %s", reason)
		}
	}
	h.stop(p)
	for i := range 20 {
		if resource := fmt.Sprint("resource ", 10+i); h.rows[resource] != 2 {
			t.Errorf("%d spans of %s", h.rows[resource], resource)
		}
	}
}

// TestLastKey_WithoutResource: a key without resource gets its own operation, although
// the previous key had no resource either.
func TestLastKey_WithoutResource(t *testing.T) {
	h := newHarness(t, nil)
	h.aggregator.Start()
	p := h.NewPublisher(span.Origin{Service: "shop"})
	const keys = 40
	reason, ok := h.offer(p, bodyOf(keys, func(i int, frame []byte) []byte {
		k := span.Key{Service: "shop", Operation: fmt.Sprint("operation.", i%2), Type: fmt.Sprint(i / 2)}
		return wire.AppendWhole(frame, wire.AppendKey(nil, &k), 1000, time.Now().UnixNano(), 0, 1)
	}))
	if !ok {
		t.Fatalf("refused as %s", reason)
	}
	h.stop(p)
	if h.rows["operation.0"] != keys/2 || h.rows["operation.1"] != keys/2 {
		t.Errorf("the rows are %v", h.rows)
	}
}

// TestLastKey_LongerNormalizedResourceIsCut: a resource that normalization lengthens is cut again when its key is
// found in the registry's cache.
func TestLastKey_LongerNormalizedResourceIsCut(t *testing.T) {
	h := newHarness(t, func(c *Config, a *aggregate.Config) {
		c.MaxResource = 200
		a.Budgets[span.LabelResource] = 3
		a.Masking = registry.MaskNever
	})
	h.aggregator.Start()
	p := h.NewPublisher(span.Origin{Service: "shop"})
	const keys = 256 + 100
	reason, ok := h.offer(p, bodyOf(keys, func(i int, frame []byte) []byte {
		k := span.Key{
			Service: "shop", Operation: "op", Resource: strings.Repeat("\xfc ", 70),
			Type: fmt.Sprint(i % 16), Kind: fmt.Sprint(i / 16 % 8), Synthetics: i >= 256,
		}
		if i%3 == 0 {
			k.Resource = fmt.Sprint("resource ", i)
		}
		return wire.AppendWhole(frame, wire.AppendKey(nil, &k), 1000, time.Now().UnixNano(), 0, 1)
	}))
	if !ok {
		t.Fatalf("refused as %s", reason)
	}
	h.stop(p)
	if want := uint64(keys - (keys+2)/3); h.rows[strings.Repeat("\uFFFD ", 50)] != want {
		t.Errorf("%d spans of it, in %v", want, h.rows)
	}
}

// TestLastKey_NormalizedLabel: the normalized text of one key is in a buffer that the next
// key reuses.
func TestLastKey_NormalizedLabel(t *testing.T) {
	services := map[string]uint64{}
	h := newHarness(t, func(_ *Config, a *aggregate.Config) {
		a.Deliver = func(s *aggregate.Sealed) {
			for part := range s.Parts {
				services[s.Keys[part.Key].Key.Service] += part.Counts().Spans
			}
			s.Delivery.Resolve(nil)
			s.Release()
		}
	})
	h.aggregator.Start()
	p := h.NewPublisher(span.Origin{Service: "shop"})
	const keys = 100
	reason, ok := h.offer(p, bodyOf(keys, func(i int, frame []byte) []byte {
		k := span.Key{
			Service: "SHOP", Operation: fmt.Sprintf("op %d", i%7),
			Resource: fmt.Sprint("GET /page/", i),
		}
		return wire.AppendWhole(frame, wire.AppendKey(nil, &k), 1000, time.Now().UnixNano(), 0, 1)
	}))
	if !ok {
		t.Fatalf("refused as %s", reason)
	}
	p.Close()
	h.aggregator.Stop()
	if len(services) != 1 || services["shop"] != keys {
		t.Errorf("the services are %v", services)
	}
}
