package points

// The metrics of service level objectives, named by the rules of OTLP, and as Prometheus labels them.
const (
	ObjectiveEvents     = "traces.slo.events"      // spans that an objective counts
	ObjectiveGoodEvents = "traces.slo.good_events" // the good ones of these

	ObjectiveEventsTotal     = "traces_slo_events_total"
	ObjectiveGoodEventsTotal = "traces_slo_good_events_total"

	// ObjectiveName is the attribute with the name of an objective.
	ObjectiveName = "slo"
)

// ObjectiveAttributes returns the encoded attributes of the series of an objective.
func (c *Config) ObjectiveAttributes(name string) string {
	list := attributes{format: c.format()}
	list.addText(ObjectiveName, name)
	return string(list.bytes)
}

// DaemonResource returns the encoded attributes of the daemon as a resource. It is empty if c.Instance is.
func (c *Config) DaemonResource() string {
	list := attributes{format: c.format()}
	list.writeDaemon(c.Instance)
	return string(list.bytes)
}
