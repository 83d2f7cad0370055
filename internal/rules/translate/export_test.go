package translate

// AppendTagValue is tried value by value.
var AppendTagValue = appendTagValue

// AttributeNames are those of the attributes that are always read.
var AttributeNames = attrNames[1:]

// RememberedBytes is how much a translator remembers of the spans of a request.
func RememberedBytes(t *Translator) int { return len(t.memo.sources) }
