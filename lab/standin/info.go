package standin

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"net/http"
)

// Info is the content of GET /info, with the agent's JSON keys.
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

// InfoConfig is the agent's configuration as shown by /info.
type InfoConfig struct {
	DefaultEnv      string `json:"default_env"`
	MaxRequestBytes int    `json:"max_request_bytes"`
}

// maxRequestBytes is the agent's limit on a body.
const maxRequestBytes = 25 << 20

//go:embed info.json
var defaultInfo []byte

// DefaultInfo returns the content of /info of an agent with default configuration, in the
// release that this package follows.
func DefaultInfo() (i Info) {
	if err := json.Unmarshal(defaultInfo, &i); err != nil {
		panic("BUG: info.json: " + err.Error())
	}
	return i
}

// render returns the body of /info, and its state header.
func (i Info) render() (body []byte, state string) {
	body, err := json.MarshalIndent(i, "", "\t")
	if err != nil {
		panic("BUG: info: " + err.Error()) // strings, numbers and lists can always be encoded
	}
	sum := sha256.Sum256(body)
	return body, hex.EncodeToString(sum[:])
}

// setHeaders sets the headers of every response.
func (i *Info) setHeaders(h http.Header) {
	_, state := i.render()
	h.Set("Datadog-Agent-Version", i.Version)
	h.Set("Datadog-Agent-State", state)
}
