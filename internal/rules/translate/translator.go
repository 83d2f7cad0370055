package translate

import (
	"github.com/spanstatsd/spanstatsd/internal/decode/otlp"
	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

// Translator turns requests into what the agent's own OTLP ingest makes of them.
type Translator struct {
	*vocabulary
	naming
	tags    collected
	memo    memo
	groups  groups
	counted int
}

// New makes a translator of the tags that the agent's rules ask for. It fails where they need
// more attributes than can be read.
func New(wanted *spantable.Names) (*Translator, error) {
	v, err := newVocabulary(wanted)
	if err != nil {
		return nil, err
	}
	return &Translator{vocabulary: v}, nil
}

// tagBytes is for how many bytes of a request there may be one tag: a resource may give each of
// its tags to each span.
const tagBytes = 2

// Bytes is the most that a Translator takes, with a request of that length and the table that it
// becomes, and so many bytes more for each span.
func Bytes(body, perSpan int) int {
	perSpan += groupBytes
	return otlp.Bytes(body, perSpan) + spantable.LimitsOf(body, tagBytes).Bytes(0) + memoBytes
}

// Names are those of the attributes that are read.
func (t *Translator) Names() (ofSpans, ofResources *spantable.Names) { return t.ofSpans, t.ofResources }

// Translate fills a table with what becomes of a request. isCounted says that statistics of all
// of it were made before, unless a resource says otherwise. With an error the table is empty, and
// the request fails with it.
func (t *Translator) Translate(r *otlp.Request, isCounted bool, to *spantable.Table) error {
	t.request, t.to, t.counted = r, to, 0
	to.Reset(r.Body, spantable.LimitsOf(len(r.Body), tagBytes))
	t.memo.begin()
	for i := range r.Resources {
		of := &r.Resources[i]
		t.selectProcess(of)
		if of.IsCounted = t.isCounted(isCounted); of.IsCounted {
			first, last := r.SpansOf(of)
			t.counted += last - first
			continue
		}
		t.addResource(of)
		if err := to.Err(); err != nil {
			to.Reset(nil, to.Limits)
			r.Fail(err)
			return err
		}
	}
	return nil
}

// Counted is how many spans of the last request are in no trace, because statistics of them were
// made before.
func (t *Translator) Counted() int { return t.counted }

// isCounted says whether statistics of the selected resource's spans were made before: what it
// says itself goes before what its request says, as in the agent's receiver.
func (t *Translator) isCounted(said bool) bool {
	if !t.process.Set.Has(attrComputed) {
		return said
	}
	value := t.to.String(t.asked.said(attrComputed))
	return value != "" && value != "false"
}

// keptByDefault is the priority of a trace of which nobody says whether it is kept.
const keptByDefault = 1

// addResource makes traces of the spans of the selected resource, which become one sender's.
func (t *Translator) addResource(of *otlp.Resource) {
	first, last := t.request.SpansOf(of)
	if first == last {
		return
	}
	sender := t.sender()
	var ofSender ofTrace
	t.groups.group(t.request.Places[first:last])
	begin := uint32(0)
	for _, end := range t.groups.ends {
		group := spantable.Group{First: uint32(len(t.to.Spans)), Priority: keptByDefault, HasPriority: true}
		group.TraceLow = t.request.Places[first+int(t.groups.order[begin])].TraceLow
		var says ofTrace
		for _, at := range t.groups.order[begin:end] {
			if t.to.Err() == nil {
				says.addMissing(t.addSpan(first + int(at)))
			}
		}
		group.Origin = says.origin
		t.to.AddGroup(group)
		says.addMissing(ofSender)
		ofSender, begin = says, end
	}
	if sender.Version, sender.Commit = ofSender.version, ofSender.commit; sender.Env.Len == 0 {
		sender.Env = ofSender.env
	}
	t.to.Senders = append(t.to.Senders, sender)
}
