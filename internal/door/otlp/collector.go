package otlp

import "github.com/spanstatsd/spanstatsd/internal/door/destination"

// Collector is where requests go on to: another that takes OTLP. Its zero value is none.
type Collector struct{ destination.URL }

// protocol is what it speaks, by the scheme of its URL.
var protocol = destination.Protocol{
	Flag: "otlp-forward",
	Schemes: map[string]destination.Scheme{
		"http": {Port: "4318"}, "https": {IsTLS: true, Port: "443"}, "grpc": {IsGRPC: true, Port: "4317"},
		"grpcs": {IsGRPC: true, IsTLS: true, Port: "443"},
	},
	Give: "http://host:4318, grpc://host:4317, https://, grpcs:// or unix:///path",
}

// ParseCollector reads a URL.
func ParseCollector(text string) (c Collector, err error) {
	c.URL, err = protocol.Parse(text)
	return c, err //nolint:wrapcheck // it says what to do
}

// TrustIn has its certificate checked by the authorities of a file.
func (c *Collector) TrustIn(file string) error {
	return protocol.TrustIn(&c.URL, file) //nolint:wrapcheck // the same
}

// target is a signal's path there.
func (c *Collector) target(s signal) string {
	if c.IsGRPC() {
		return signals[s].grpc
	}
	return c.Base + signals[s].http
}
