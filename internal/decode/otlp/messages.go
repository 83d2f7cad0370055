package otlp

// MaxDepth is how deep messages are looked at that are nested in an attribute, an event or a link. A
// list in a list takes two. What is deeper says nothing to anybody, and is stepped over as it is.
const MaxDepth = 64

// message is a kind of message of which nothing is read, but which has to be one.
type message uint8

const (
	noMessage message = iota // a text, or what we have no name for
	messageEntity
	messageKeyValue
	messageAnyValue
	messageArray
	messageKeyValues
	messageEvent
	messageLink
	messages
)

// partsRoom is more than the highest number of a field with a message in it.
const partsRoom = 8

// parts are the messages in messages, by the numbers of their fields.
var parts = [messages][partsRoom]message{
	messageKeyValue:  {2: messageAnyValue},
	messageAnyValue:  {5: messageArray, 6: messageKeyValues},
	messageArray:     {1: messageAnyValue},
	messageKeyValues: {1: messageKeyValue},
	messageEvent:     {3: messageKeyValue},
	messageLink:      {4: messageKeyValue},
}

// isMessage says whether what lies from a place to the end of b is written as a message of a
// kind, with all that is in it.
func isMessage(b []byte, at int, m message) bool {
	var around [MaxDepth]struct {
		end int
		of  message
	}
	depth, end := 0, len(b)
	for {
		for at == end {
			if depth == 0 {
				return true
			}
			depth--
			end, m = around[depth].end, around[depth].of
		}
		f, next := readField(b[:end], at)
		if next == 0 {
			return false
		}
		part := noMessage
		if f.tag&7 == asBytes && number(f.tag) < partsRoom {
			part = parts[m][number(f.tag)]
		}
		if part != noMessage && depth < MaxDepth {
			around[depth].end, around[depth].of = end, m
			depth++
			at, end, m = f.at, next, part
			continue
		}
		at = next
	}
}
