package translate

// AttributeNames contains the names of the attributes that are always read.
var AttributeNames = attrNames[1:]

// Given returns how many tags the current resource and the current scope add to each span.
func Given(t *Translator) (resourceTags, scopeTags int) { return len(t.resourceTags), len(t.scopeTags) }
