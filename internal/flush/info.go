package flush

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
)

// info is one reading of the agent's GET /info.
type info struct {
	features Features
	state    string // what the agent's Datadog-Agent-State header says of this body
	version  string // of the agent
}

// maxInfoBytes bounds what is read of /info; a real one has some 4 KB.
const maxInfoBytes = 1 << 20

// info asks the agent what it wants. An agent without /info is old enough to
// have no statistics endpoint either, which is an answer and no error.
func (h *httpAgent) info(ctx context.Context) (info, error) {
	req, err := h.request(ctx, http.MethodGet, "/info")
	if err != nil {
		return info{}, err
	}
	resp, err := h.afterSecond.RoundTrip(req)
	if err != nil {
		return info{}, fmt.Errorf("read agent info: %w", err)
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return info{}, nil
	default:
		return info{}, fmt.Errorf("read agent info: %w", responseError(resp.Status, readSaid(resp)))
	}
	h.asks.Store(false) // it may be another agent than before
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxInfoBytes+1))
	switch {
	case err != nil:
		return info{}, fmt.Errorf("read agent info: %w", err)
	case len(body) > maxInfoBytes:
		return info{}, errors.New("read agent info: more than 1 MiB; is this an agent?")
	}
	return parseInfo(body)
}

func parseInfo(body []byte) (info, error) {
	var said struct {
		Version            string          `json:"version"`
		Endpoints          []string        `json:"endpoints"`
		PeerTags           []string        `json:"peer_tags"`
		SpanKinds          json.RawMessage `json:"span_kinds_stats_computed"`
		IgnoreResources    []string        `json:"ignore_resources"`
		ClientDropP0s      bool            `json:"client_drop_p0s"`
		FilterTags         *tagFilters     `json:"filter_tags"`
		FilterTagsRegex    *tagFilters     `json:"filter_tags_regex"`
		ObfuscationVersion uint64          `json:"obfuscation_version"`
		Config             struct {
			MaxRequestBytes int `json:"max_request_bytes"`
		} `json:"config"`
	}
	if err := json.Unmarshal(body, &said); err != nil {
		return info{}, fmt.Errorf("read agent info: %w", err)
	}
	kinds, err := spanKinds(said.SpanKinds)
	if err != nil {
		return info{}, fmt.Errorf("read agent info: %w", err)
	}
	sum := sha256.Sum256(body)
	return info{
		state:   hex.EncodeToString(sum[:]),
		version: said.Version,
		features: Features{
			Stats:              slices.Contains(said.Endpoints, "/v0.6/stats"),
			PeerTags:           said.PeerTags,
			SpanKinds:          kinds,
			IgnoreResources:    said.IgnoreResources,
			DropsP0s:           said.ClientDropP0s,
			FiltersTags:        said.FilterTags.any() || said.FilterTagsRegex.any(),
			ObfuscationVersion: said.ObfuscationVersion,
			MaxRequestBytes:    max(0, said.Config.MaxRequestBytes),
		},
	}, nil
}

// tagFilters are the tags that a trace's root must or must not have.
type tagFilters struct {
	Require []string `json:"require"`
	Reject  []string `json:"reject"`
}

func (f *tagFilters) any() bool { return f != nil && len(f.Require)+len(f.Reject) > 0 }

// spanKinds sorts the kinds, which the agent lists in random order. Null means
// that it computes none by kind; an agent that does not know the field computes
// them, as tracers assume too.
func spanKinds(said json.RawMessage) (kinds []string, err error) {
	if said == nil {
		return slices.Clone(defaultSpanKinds), nil
	}
	if err := json.Unmarshal(said, &kinds); err != nil {
		return nil, err
	}
	slices.Sort(kinds)
	return kinds, nil
}
