package points

import "github.com/spanstatsd/spanstatsd/internal/span"

// Dialect is what metrics and their attributes are called.
type Dialect string

const (
	Spanmetrics Dialect = "spanmetrics" // as the Collector's connector of that name
	Datadog     Dialect = "datadog"     // as Datadog's tracers; of attributes
	Tempo       Dialect = "tempo"       // as the metrics generator of Grafana's Tempo; of labels
)

// The names that the attributes of an outcome have.
const (
	statusName   = "status.code"
	topLevelName = "datadog.span.top_level"
)

// instanceName is the attribute that tells daemons apart.
const instanceName = "collector.instance.id"

// dialect writes the series of a key. It has one user at a time.
type dialect interface {
	// metrics are the names of those that count spans and durations. Where the first is
	// empty, the count of durations says both.
	metrics() (calls, durations string)

	// key writes the attributes that all spans of a key have, none with a name that
	// outcome uses.
	key(to *attributes, origin *span.Origin, key *span.Key)

	// outcome writes those that only some spans of that key have. Of all that have the
	// attributes of a key, isTopLevel says whether each was top-level.
	outcome(to *attributes, isError, isTopLevel bool)

	// ofInstance is the instance of the daemon, "" where it is no attribute.
	ofInstance() string
}
