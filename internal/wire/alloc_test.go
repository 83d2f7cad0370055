package wire

import (
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

func TestHotPath_AllocatesNothing(t *testing.T) {
	key := span.Key{
		Service:        "shop",
		Operation:      "http.request",
		Resource:       "GET /cart",
		PeerTags:       []string{"peer.service:cart"},
		AdditionalTags: []string{"tier:gold"},
	}
	raw := AppendKey(nil, &key)
	buffer := make([]byte, 0, 4096)
	message := func(dst []byte) []byte {
		dst = BeginSpans(dst)
		dst = AppendWhole(dst, raw, 300, 1<<60, span.Error, 1)
		dst = AppendWhole(dst, raw, 1<<40, 1<<60, span.Error, 0.5)
		dst = AppendNumbered(dst, 300, 300, 1<<60, span.TopLevel, 1)
		EndSpans(dst, 0, 3)
		return dst
	}
	spans := message(nil)
	define := AppendDefinition(BeginDefine(nil), 7, raw)
	EndDefine(define, 0, 1)
	hello := AppendHello(nil, &Hello{Version: Version, Client: "example/1.0"})
	var s Snapshot
	for name, run := range map[string]func(){
		"read key": func() {
			if err := ReadKey(&reused, raw); err != nil {
				t.Error(err)
			}
		},
		"append spans":  func() { message(buffer) },
		"append key":    func() { AppendKey(buffer, &key) },
		"append define": func() { EndDefine(AppendDefinition(BeginDefine(buffer), 7, raw), 0, 1) },
		"walk spans": func() {
			_, body, _ := Split(spans[HeaderLen:])
			walker, _ := WalkSpans(body)
			for walker.Next(&s) {
			}
			if walker.Err() != nil {
				t.Error(walker.Err())
			}
		},
		"walk define": func() {
			_, body, _ := Split(define[HeaderLen:])
			walker, _ := WalkDefine(body)
			if _, _, ok := walker.Next(); !ok {
				t.Error(walker.Err())
			}
		},
		"validate": func() {
			if err := validate("check message", hello[HeaderLen+2:]); err != nil {
				t.Error(err)
			}
		},
	} {
		if allocs := testing.AllocsPerRun(100, run); allocs != 0 {
			t.Errorf("%s allocates %v times", name, allocs)
		}
	}
}
