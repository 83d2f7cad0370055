package registry

import (
	"strconv"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/mask"
)

// resolveStatus returns the ID of an HTTP status code, or absentID if the key has none. The number of different
// status codes is limited, as for other labels, because clients can send any number.
func (a *admitter) resolveStatus(status uint32) labelID {
	id := a.resolveText(span.LabelHTTPStatus, a.statusText(status))
	if id == blockedID {
		return absentID // a status code is a number, so tracer_blocked_value can't replace it
	}
	return id
}

// statusText returns an HTTP status code as text, or "" if it is 0. The text is valid until the next key is admitted.
func (a *admitter) statusText(status uint32) string {
	if status == 0 {
		return ""
	}
	start := len(a.scratch)
	a.scratch = strconv.AppendUint(a.scratch, uint64(status), 10)
	return stringOf(a.scratch[start:])
}

// resolveText returns the ID of the text of a label, or of a mask such as "GET /users/{id}" that replaces
// the text. It returns absentID if the text is empty. It returns blockedID, the ID of
// "tracer_blocked_value", if the client sent that text, or if the label has too many different values.
func (a *admitter) resolveText(l span.Label, text string) labelID {
	switch text {
	case "":
		a.addSentText(hashOfAbsent)
		return absentID
	case span.Blocked: // replaced by the client, which has limits as well
		a.addSentText(hashOfBlocked)
		return blockedID
	}
	sent := a.newLabel(l, text)
	a.addSentText(sent.hash)
	if a.config.Masking == MaskAlways {
		return a.resolveAlwaysMasked(l, sent)
	}
	id, ok := a.idOf(&a.origin.budgets[l], sent)
	if ok {
		return id
	}
	return a.resolveOverBudget(l, sent)
}

// addSentText adds the hash of a text of the key, as the client sent it, to the hashes that identify the key.
func (a *admitter) addSentText(hash uint64) {
	a.sentTextHashes = append(a.sentTextHashes, hash)
	a.maskedTextHashes = append(a.maskedTextHashes, hash)
}

// resolveOverBudget returns the ID of the mask, such as "GET /users/{id}", of a value that got no slot of the label's
// budget. It returns blockedID if the value has no mask, or if the mask gets no slot either.
func (a *admitter) resolveOverBudget(l span.Label, sent labelValue) labelID {
	masked, hasMask := a.maskOf(l, sent.text)
	if !hasMask {
		return a.collapseText(l, sent)
	}
	masked.isOnlyMask = true // until a client sends this text; only some slots can hold masks
	return a.replaceByMask(l, masked)
}

// resolveAlwaysMasked returns the ID of the mask of a value, such as "GET /users/{id}" for "GET /users/17", or of the
// value itself if it has no mask. It returns blockedID if the label has too many different values.
func (a *admitter) resolveAlwaysMasked(l span.Label, sent labelValue) labelID {
	masked, hasMask := a.maskOf(l, sent.text)
	if hasMask {
		return a.replaceByMask(l, masked)
	}
	id, ok := a.idOf(&a.origin.budgets[l], sent)
	if !ok {
		return a.collapseText(l, sent)
	}
	return id
}

// replaceByMask replaces the value of the label l by its mask, and returns the ID of the mask. It returns
// blockedID if the budget of the label has no slot for the mask.
func (a *admitter) replaceByMask(l span.Label, masked labelValue) labelID {
	last := len(a.maskedTextHashes) - 1 // addSentText has just added the hash of the value
	a.maskedTextHashes[last] = masked.hash
	id, ok := a.idOf(&a.origin.budgets[l], masked)
	if !ok {
		return a.collapseText(l, masked)
	}
	a.admission.Masked |= setOf(l)
	return id
}

// collapseText records that a value of the label l, or its mask, was replaced by tracer_blocked_value, because the
// label has too many different values. It returns blockedID.
func (a *admitter) collapseText(l span.Label, value labelValue) labelID {
	a.admission.Collapsed |= setOf(l)
	a.countKey(&a.lostCounts[l])
	a.measureLostText(l, value)
	return blockedID
}

// maxLongerMask is the maximum length in bytes of a mask that is longer than its text.
const maxLongerMask = 100

// maskOf returns the value of the label l that replaces a text: "GET /users/{id}" replaces "GET /users/17".
// It returns false if values of the label are never replaced, if the text contains nothing to replace, or if
// the result is too long.
func (a *admitter) maskOf(l span.Label, text string) (masked labelValue, ok bool) {
	if a.config.Masking == MaskNever || !isMaskable(l) {
		return labelValue{}, false
	}
	maskText, hasMask := a.appendMask(text)
	maxBytes := max(len(text), maxLongerMask)
	isTooLong := len(maskText) > maxBytes || len(maskText) > l.MaxBytes()
	if !hasMask || isTooLong {
		return labelValue{}, false
	}
	return a.newLabel(l, maskText), true
}

// appendMask appends the mask of a text to a.scratch. It returns the mask, which is valid until the next key is
// admitted, or false if the text has none.
func (a *admitter) appendMask(text string) (maskText string, hasMask bool) {
	start := len(a.scratch)
	a.scratch, hasMask = mask.Append(a.scratch, text)
	return stringOf(a.scratch[start:]), hasMask
}
