package otel

// AttributeNames are those of the attributes that labels are made of.
var AttributeNames = attributeNames[1:]

// RememberedOrigins is how many a counter remembers.
func RememberedOrigins(c *Counter) int { return len(c.origins.known) }
