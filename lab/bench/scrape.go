package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/status"
)

// metrics are the samples of one scrape, by name and labels as in the text format.
type metrics map[string]float64

// ask gets a path from the daemon's HTTP server.
func ask(ctx context.Context, within time.Duration, base, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base+path, nil)
	if err != nil {
		return nil, fmt.Errorf("ask daemon: %w", err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask daemon: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("ask daemon for %s: %s", path, answer.Status)
	}
	return io.ReadAll(answer.Body)
}

// scrape reads /metrics. The text format has one sample per line; the daemon's label values
// contain no spaces.
func scrape(base string) (metrics, error) {
	text, err := ask(context.Background(), limit, base, "/metrics")
	if err != nil {
		return nil, err
	}
	m := metrics{}
	for line := range strings.Lines(string(text)) {
		at := strings.LastIndexByte(line, ' ')
		if strings.HasPrefix(line, "#") || at < 0 {
			continue
		}
		if m[line[:at]], err = strconv.ParseFloat(strings.TrimSpace(line[at:]), 64); err != nil {
			return nil, fmt.Errorf("parse metric: %w", err)
		}
	}
	return m, nil
}

// since returns the increase of each counter. The difference of a gauge has no meaning.
func (m metrics) since(earlier metrics) metrics {
	grown := make(metrics, len(m))
	for name, value := range m {
		grown[name] = value - earlier[name]
	}
	return grown
}

// by returns the samples of a metric with one label, by the label's value.
func (m metrics) by(name string) map[string]uint64 {
	values := map[string]uint64{}
	for sample, value := range m {
		if rest, found := strings.CutPrefix(sample, name+`{`); found {
			_, label, _ := strings.Cut(rest, `="`)
			values[strings.TrimSuffix(label, `"}`)] = uint64(value)
		}
	}
	return values
}

// bucket counts the values up to its bound and above the previous bound.
type bucket struct {
	bound float64
	count uint64
}

// histogram returns the buckets of a metric, ordered by their bounds.
func (m metrics) histogram(name string) (buckets []bucket) {
	for sample, value := range m {
		rest, found := strings.CutPrefix(sample, name+`_bucket{le="`)
		if !found {
			continue
		}
		if bound, err := strconv.ParseFloat(strings.TrimSuffix(rest, `"}`), 64); err == nil {
			buckets = append(buckets, bucket{bound, uint64(value)})
		}
	}
	slices.SortFunc(buckets, func(a, b bucket) int { return cmp.Compare(a.bound, b.bound) })
	for i := len(buckets) - 1; i > 0; i-- {
		buckets[i].count -= buckets[i-1].count // the text format has cumulative counts
	}
	return buckets
}

func readAccounting(base string) (status.Accounting, error) {
	var s status.Status
	text, err := ask(context.Background(), limit, base, "/status")
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	return s.Accounting, err
}
