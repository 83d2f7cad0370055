package health

import (
	"encoding/json"
	"net/http"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/ingest"
)

// Status is the daemon at this moment, for a program to read.
type Status struct {
	Version string          `json:"version"`
	Ready   bool            `json:"ready"`
	Books   Books           `json:"books"`
	Tracers []ingest.Tracer `json:"tracers"`

	Partitions aggregate.PartitionStats `json:"partitions"`
}

func (s *Server) status(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	// An error means that who asked has left.
	_ = encoder.Encode(Status{
		Version: s.config.Version, Ready: s.ready.Load(),
		Books: s.config.Sources.Books(), Tracers: s.config.Sources.Ingest.Tracers(),
		Partitions: s.config.Sources.Aggregate.Stats().Partitions,
	})
}
