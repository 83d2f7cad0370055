package translate

// AttributeNames are those of the attributes that are always read.
var AttributeNames = attrNames[1:]

// Given is how many tags each span is given by the resource and by the scope that were read last.
func Given(t *Translator) (ofResource, ofScope int) { return len(t.ofResource), len(t.ofScope) }
