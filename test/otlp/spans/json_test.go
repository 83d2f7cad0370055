package spans

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/decode/otlpjson"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// withHexIDs converts the IDs of a request from protobuf JSON to OTLP JSON.
func withHexIDs(t *testing.T, v any) {
	t.Helper()
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			withHexIDs(t, one)
		}
	case map[string]any:
		for name, one := range v {
			if name != "traceId" && name != "spanId" && name != "parentSpanId" {
				withHexIDs(t, one)
				continue
			}
			id, err := base64.StdEncoding.DecodeString(one.(string))
			if err != nil {
				t.Fatal(err)
			}
			v[name] = hex.EncodeToString(id)
		}
	}
}

// TestJSON_ReadLikeLibrary checks random requests as encoded by the library, with the IDs of
// OTLP and with unknown fields.
func TestJSON_ReadLikeLibrary(t *testing.T) {
	for seed := range uint64(200) {
		request := randomRequest(rand.New(rand.NewPCG(seed, 7)))
		written, err := protojson.MarshalOptions{
			UseEnumNumbers:  true,
			EmitUnpopulated: seed%2 == 0,
		}.Marshal(request)
		if err != nil {
			t.Fatal(err)
		}
		var all any
		if err := json.Unmarshal(written, &all); err != nil {
			t.Fatal(err)
		}
		withHexIDs(t, all)
		all.(map[string]any)["later"] = []any{map[string]any{"x": []any{1, nil}}}
		if written, err = json.Marshal(all); err != nil {
			t.Fatal(err)
		}
		body, err := otlpjson.FromJSON(nil, written)
		if err != nil {
			t.Fatalf("%v: %s", err, written)
		}
		if got, _ := decode(body); !proto.Equal(got, request) {
			t.Fatalf("%s\nis read as\n%v, want\n%v", written, got, request)
		}
	}
}
