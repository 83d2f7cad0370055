package span

// The longest label of each kind, in bytes: the agent's own limits. A longer label is cut,
// never refused, because a tracer's span is worth counting even where its label is not worth
// keeping whole.
const (
	MaxService        = 100
	MaxOperation      = 100
	MaxResource       = 5000
	MaxType           = 100
	MaxLabel          = 200 // every other label, each tag, and the value of an additional one
	MaxPeerTags       = 64
	MaxAdditionalTags = 4
	// MaxOriginField bounds each field of an origin; lists get more.
	MaxOriginField = 200
	MaxProcessTags = 4096
	MaxAttributes  = 2048 // of the attributes that an origin keeps of its resource, all together
)
