package standin

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"net/http"
)

// Info is what GET /info says, in the agent's own form.
type Info struct {
	Version            string     `json:"version"`
	Endpoints          []string   `json:"endpoints"`
	ClientDropP0s      bool       `json:"client_drop_p0s"`
	PeerTags           []string   `json:"peer_tags"`
	SpanKinds          []string   `json:"span_kinds_stats_computed"`
	IgnoreResources    []string   `json:"ignore_resources,omitempty"`
	ObfuscationVersion int        `json:"obfuscation_version"`
	Config             InfoConfig `json:"config"`
}

// InfoConfig is the part of /info that shows the agent's configuration.
type InfoConfig struct {
	DefaultEnv      string `json:"default_env"`
	MaxRequestBytes int    `json:"max_request_bytes"`
}

// maxRequestBytes is what the agent reads of a body.
const maxRequestBytes = 25 << 20

//go:embed info.json
var defaultInfo []byte

// DefaultInfo is what an agent says that nobody has configured, in the release whose
// behaviour this package follows.
func DefaultInfo() (i Info) {
	if err := json.Unmarshal(defaultInfo, &i); err != nil {
		panic("BUG: info.json: " + err.Error())
	}
	return i
}

// render is the body of /info, and the state header that goes with it.
func (i Info) render() (body []byte, state string) {
	body, err := json.MarshalIndent(i, "", "\t")
	if err != nil {
		panic("BUG: info: " + err.Error()) // strings, numbers and lists of them
	}
	sum := sha256.Sum256(body)
	return body, hex.EncodeToString(sum[:])
}

// say writes the headers of every answer.
func (i *Info) say(h http.Header) {
	_, state := i.render()
	h.Set("Datadog-Agent-Version", i.Version)
	h.Set("Datadog-Agent-State", state)
}
