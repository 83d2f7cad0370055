package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
)

// info is one reading of the agent's GET /info.
type info struct {
	features Features
	state    string // what the agent's Datadog-Agent-State header says of this body
	version  string // of the agent
}

// parseInfo reads the body of /info.
func parseInfo(body []byte) (info, error) {
	var said struct {
		Features
		Version         string     `json:"version"`
		Endpoints       []string   `json:"endpoints"`
		FilterTags      tagFilters `json:"filter_tags"`
		FilterTagsRegex tagFilters `json:"filter_tags_regex"`
		Config          struct {
			MaxRequestBytes int `json:"max_request_bytes"`
		} `json:"config"`
	}
	// Null means that the agent computes none by kind; one that does not know the
	// field computes them, as tracers assume too.
	said.SpanKinds = slices.Clone(defaultSpanKinds)
	if err := json.Unmarshal(body, &said); err != nil {
		return info{}, fmt.Errorf("read agent info: %w", err)
	}
	slices.Sort(said.SpanKinds) // which the agent lists in random order
	said.Stats = slices.Contains(said.Endpoints, "/v0.6/stats")
	said.FiltersTags = said.FilterTags.any() || said.FilterTagsRegex.any()
	said.Features.MaxRequestBytes = max(0, said.Config.MaxRequestBytes)
	sum := sha256.Sum256(body)
	return info{features: said.Features, state: hex.EncodeToString(sum[:]), version: said.Version}, nil
}

// tagFilters are the tags that a trace's root must or must not have.
type tagFilters struct {
	Require []string `json:"require"`
	Reject  []string `json:"reject"`
}

func (f tagFilters) any() bool { return len(f.Require)+len(f.Reject) > 0 }
