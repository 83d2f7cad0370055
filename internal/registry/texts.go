package registry

import (
	"strconv"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/mask"
)

// resolveStatus returns the ID of an HTTP status code, or absentID if the key has none. The number of different
// status codes is limited, as for other labels, because clients can send any number.
func (a *admitter) resolveStatus(status uint32) labelID {
	text := ""
	if status != 0 {
		start := len(a.scratch)
		a.scratch = strconv.AppendUint(a.scratch, uint64(status), 10)
		text = stringOf(a.scratch[start:])
	}
	id := a.resolveText(span.LabelHTTPStatus, text)
	if id == blockedID {
		return absentID // a status code is a number, so tracer_blocked_value can't replace it
	}
	return id
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
	if a.config.Masking == MaskNever {
		return a.collapseText(l, sent)
	}
	return a.resolveOverBudget(l, sent)
}

// addSentText adds the hash of a text of the key, as the client sent it, to the hashes that identify the key.
func (a *admitter) addSentText(hash uint64) {
	a.sentTexts = append(a.sentTexts, hash)
	a.maskedTexts = append(a.maskedTexts, hash)
}

// resolveOverBudget returns the ID of the mask, such as "GET /users/{id}", of a value that got no slot. It
// returns blockedID if the value has no mask, or if there are too many masks.
func (a *admitter) resolveOverBudget(l span.Label, sent labelValue) labelID {
	masked, hasMask := a.maskOf(l, sent.text)
	if !hasMask {
		return a.collapseText(l, sent)
	}
	masked.isOnlyMask = true // limits it to the slots that masks can take
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

// replaceByMask replaces the text that was added last by its mask, and returns the ID of the mask. It returns
// blockedID if the budget of the label has no slot for the mask.
func (a *admitter) replaceByMask(l span.Label, masked labelValue) labelID {
	lastText := len(a.maskedTexts) - 1
	a.maskedTexts[lastText] = masked.hash
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
	if !isMaskable(l) {
		return labelValue{}, false
	}
	maskText, hasMask := a.appendMask(text)
	maxBytes := min(l.MaxBytes(), max(len(text), maxLongerMask))
	if !hasMask || len(maskText) > maxBytes {
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
