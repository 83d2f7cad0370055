package otel

// AttributeNames are those of the attributes that labels are made of.
var AttributeNames = attributeNames[1:]

// SourceLength is how many bytes the last span's key is found by.
func (c *Counter) SourceLength() uint32 { return c.keys.memory.Length() }
