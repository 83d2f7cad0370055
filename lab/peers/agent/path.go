package agent

import (
	"strconv"
	"strings"

	"github.com/DataDog/datadog-agent/pkg/obfuscate"
	pb "github.com/DataDog/datadog-agent/pkg/proto/pbgo/trace"
	"github.com/DataDog/datadog-agent/pkg/trace/traceutil/normalize"
	"github.com/spanstatsd/spanstatsd/lab/workload"
)

// NewPath returns a function that does everything that the agent does with decoded spans until
// they are counted: it replaces invalid UTF-8, normalizes service, operation, type,
// peer.service and status, and obfuscates SQL resources. This modifies the spans, so they can
// be counted only once.
func NewPath(spans []workload.Snapshot) (count func(), err error) {
	return newPath(spans, workload.AdditionalTags[:], newTreatment())
}

// newTreatment returns the function that processes a span before it is counted.
func newTreatment() func(*pb.Span) {
	obfuscator := obfuscate.NewObfuscator(obfuscate.Config{})
	return func(s *pb.Span) {
		repair(s)
		s.Service, _ = normalize.NormalizeService(s.Service, "go")
		s.Name, _ = normalize.NormalizeName(s.Name)
		s.Type = normalize.TruncateUTF8(s.Type, maxType)
		if peer := s.Meta["peer.service"]; peer != "" {
			s.Meta["peer.service"], _ = normalize.NormalizePeerService(peer)
		}
		if status, ok := s.Meta["http.status_code"]; ok && !isStatus(status) {
			delete(s.Meta, "http.status_code")
		}
		if s.Type == "sql" {
			if query, err := obfuscator.ObfuscateSQLStringForDBMS(s.Resource, ""); err == nil {
				s.Resource = query.Query
			} else {
				s.Resource = "Non-parsable SQL query"
			}
		}
		s.Resource = normalize.TruncateUTF8(s.Resource, maxResource)
	}
}

// Limits of the agent, which it does not export.
const (
	maxType     = 100
	maxResource = 5000
)

// repair does the same as the agent's decoder with each text.
func repair(s *pb.Span) {
	s.Service, s.Name = strings.ToValidUTF8(s.Service, "\uFFFD"), strings.ToValidUTF8(s.Name, "\uFFFD")
	s.Resource, s.Type = strings.ToValidUTF8(s.Resource, "\uFFFD"), strings.ToValidUTF8(s.Type, "\uFFFD")
	for name, value := range s.Meta {
		if valid := strings.ToValidUTF8(value, "\uFFFD"); valid != value {
			s.Meta[name] = valid
		}
	}
}

// isStatus reports whether the agent keeps a status.
func isStatus(status string) bool {
	code, err := strconv.ParseUint(status, 10, 32)
	return err == nil && code >= 100 && code < 600
}
