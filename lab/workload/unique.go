package workload

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// unique generates a new key for every span: all four labels, or one of them, end in digits
// that are incremented. The labels of a batch are substrings of one string, so that they need
// one allocation together. The generator does not modify that string later, because its user
// can keep the labels.
type unique struct {
	seed  uint16
	ends  []int // offsets, in a span's text, of the ends of the incremented labels
	count uint32
	text  []byte
	keys  []span.Key
	tags  []string
}

const (
	serviceLabel   = "service-"
	operationLabel = "operation."
	resourceLabel  = "GET /resource/"
	hostLabel      = "peer.hostname:host-"
	zeros          = "000000000000"
	uniqueLabels   = serviceLabel + zeros + operationLabel + zeros + resourceLabel + zeros + hostLabel + zeros
	uniqueDigits   = len(zeros) // four digits of seed, eight of counter

	serviceEnd   = len(serviceLabel) + uniqueDigits
	operationEnd = serviceEnd + len(operationLabel) + uniqueDigits
	resourceEnd  = operationEnd + len(resourceLabel) + uniqueDigits
	uniqueBytes  = len(uniqueLabels)
)

// everyLabel increments all labels, for adversarial.
var everyLabel = []int{serviceEnd, operationEnd, resourceEnd, uniqueBytes}

func (u *unique) all() []span.Key { return nil }

func (u *unique) fill(batch []Snapshot) {
	if len(u.keys) < len(batch) {
		u.keys, u.tags = make([]span.Key, len(batch)), make([]string, len(batch))
		u.text = bytes.Repeat([]byte(uniqueLabels), len(batch))
	}
	for i := range batch {
		u.number(u.text[i*uniqueBytes : (i+1)*uniqueBytes])
	}
	text := string(u.text[:len(batch)*uniqueBytes])
	for i := range batch {
		labels := text[i*uniqueBytes : (i+1)*uniqueBytes]
		u.tags[i] = labels[resourceEnd:]
		u.keys[i] = span.Key{
			Service:   labels[:serviceEnd],
			Operation: labels[serviceEnd:operationEnd],
			Resource:  labels[operationEnd:resourceEnd],
			Type:      "http", Kind: "client", TraceRoot: span.TraceRootFalse,
			PeerTags: u.tags[i : i+1 : i+1],
		}
		batch[i] = Snapshot{Key: &u.keys[i], Index: -1}
	}
}

// number writes the next digits into the incremented labels.
func (u *unique) number(labels []byte) {
	var number [8]byte
	binary.BigEndian.PutUint64(number[:], uint64(u.seed)<<32|uint64(u.count))
	u.count++
	for _, end := range u.ends {
		hex.Encode(labels[end-uniqueDigits:end], number[2:])
	}
}
