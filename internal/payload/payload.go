package payload

// Payload is a ClientStatsPayload as it stood on the wire.
type Payload struct {
	Hostname, Env, Version, Lang, TracerVersion, RuntimeID string
	AgentAggregation, Service, ContainerID                 string
	GitCommitSha, ImageTag, ProcessTags                    string

	Sequence, ProcessTagsHash uint64
	Tags                      []string
	Stats                     []Bucket
}

// Bucket is a ClientStatsBucket.
type Bucket struct {
	Start, Duration uint64
	AgentTimeShift  int64
	Stats           []Group
}

// Group is a ClientGroupedStats: what was counted of the spans with these labels.
type Group struct {
	Labels
	Hits, Errors, TopLevelHits, Duration uint64
	OkSummary, ErrorSummary              []byte
}

// Labels stand beside the counts on the wire.
type Labels struct {
	Service, Name, Resource, Type, DBType, SpanKind string
	GRPCStatusCode, HTTPMethod, HTTPEndpoint        string
	ServiceSource                                   string `msgpack:"srv_src"`

	HTTPStatusCode uint32
	Synthetics     bool
	IsTraceRoot    int32

	PeerTags, AdditionalMetricTags, SpanDerivedPrimaryTags []string
}
