package span

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// This file implements normalization in the simplest way, without fast paths. Normalize must return the same keys.

func referenceText(s string, limit int) string {
	if len(s) > limit+utf8.UTFMax {
		s = s[:limit+utf8.UTFMax]
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	for end := len(s); ; end-- {
		if end <= limit && (end == len(s) || utf8.RuneStart(s[end])) {
			return s[:end]
		}
	}
}

func referenceOperation(name string) string {
	isLetter := func(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }
	name = referenceText(name, MaxOperation)
	first := strings.IndexFunc(name, isLetter)
	if first < 0 {
		return unnamedOperation
	}
	name = name[first:]
	stays := true
	for i, c := range []byte(name) {
		isLetterOrDigit := isLetter(rune(c)) || c >= '0' && c <= '9'
		stays = stays && (isLetterOrDigit || (c == '.' || c == '_') && name[i-1] != '_')
	}
	if stays {
		return strings.TrimSuffix(name, "_")
	}
	var out []byte
	for _, c := range []byte(name) {
		last := byte('.')
		if len(out) > 0 {
			last = out[len(out)-1]
		}
		switch {
		case isLetter(rune(c)) || c >= '0' && c <= '9' || c == '.' && last != '_':
			out = append(out, c)
		case c == '.':
			out[len(out)-1] = '.'
		case last != '.' && last != '_':
			out = append(out, '_')
		}
	}
	return strings.TrimSuffix(string(out), "_")
}

func referenceService(name, lang string) string {
	out := ""
	pending := false
	for _, r := range referenceText(name, MaxService) {
		if low := unicode.ToLower(r); unicode.IsUpper(r) && utf8.RuneLen(low) == utf8.RuneLen(r) {
			r = low
		}
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune(":./-", r) {
			pending = true
			continue
		}
		if pending {
			out, pending = out+"_", false
		}
		out += string(r)
	}
	if out == "" {
		if lang != "" {
			lang += "-"
		}
		return "unnamed-" + lang + "service"
	}
	return out
}

func referenceTags(tags []string, limit int) []string {
	var out []string
	for _, tag := range tags[:min(len(tags), limit)] {
		out = append(out, referenceText(tag, MaxLabel))
	}
	slices.Sort(out)
	return out
}

// referenceMasked normalizes additional tags: like in the agent, a value of over 200 bytes is replaced rather than
// truncated.
func referenceMasked(tags []string) []string {
	var out []string
	for _, tag := range tags[:min(len(tags), MaxAdditionalTags)] {
		tag = referenceText(tag, 402)
		if at := strings.IndexByte(tag, ':'); at < 0 || at > 200 {
			tag = referenceText(tag, 200)
		} else if len(tag)-at-1 > 200 {
			tag = tag[:at] + ":tracer_blocked_value"
		}
		out = append(out, tag)
	}
	slices.Sort(out)
	return out
}

func referenceKey(k *Key, lang string) Key {
	n := Key{
		Service: referenceService(k.Service, lang), Operation: referenceOperation(k.Operation),
		Resource: referenceText(k.Resource, MaxResource), Type: referenceText(k.Type, MaxType),
		Kind: referenceText(k.Kind, MaxLabel), TraceRoot: k.TraceRoot, HTTPStatus: k.HTTPStatus,
		PeerTags: referenceTags(k.PeerTags, MaxPeerTags), HTTPMethod: referenceText(k.HTTPMethod, MaxLabel),
		HTTPEndpoint:  referenceText(k.HTTPEndpoint, MaxLabel),
		GRPCStatus:    referenceText(k.GRPCStatus, MaxLabel),
		ServiceSource: referenceText(k.ServiceSource, MaxLabel), Synthetics: k.Synthetics,
		AdditionalTags: referenceMasked(k.AdditionalTags),
	}
	if n.Resource == "" {
		n.Resource = n.Operation
	}
	if n.TraceRoot > TraceRootFalse {
		n.TraceRoot = TraceRootNotSet
	}
	return n
}

// checkNormalize compares the result of Normalize, and the change that it reports, with the reference.
func checkNormalize(t *testing.T, k *Key, lang string) {
	t.Helper()
	want := referenceKey(k, lang)
	got := *k
	got.PeerTags, got.AdditionalTags = slices.Clone(k.PeerTags), slices.Clone(k.AdditionalTags)
	sorted := *k // reordered tags do not count as a change
	sorted.PeerTags, sorted.AdditionalTags = slices.Sorted(slices.Values(k.PeerTags)),
		slices.Sorted(slices.Values(k.AdditionalTags))
	changed := got.Normalize(lang)
	if len(got.PeerTags)+len(want.PeerTags) == 0 {
		got.PeerTags, want.PeerTags = nil, nil
	}
	if len(got.AdditionalTags)+len(want.AdditionalTags) == 0 {
		got.AdditionalTags, want.AdditionalTags = nil, nil
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v\nbecame %+v\n  want %+v", *k, got, want)
	}
	differs := string(sorted.AppendCanonical(nil)) != string(want.AppendCanonical(nil))
	if changed != differs {
		t.Fatalf("%+v\nbecame %+v, changed: %v", *k, got, changed)
	}
}

func TestNormalize_AgreesWithReference(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 9))
	alphabets := [...]string{
		"abcdefghijklmnopqrstuvwxyz0123456789-./:", "abcXYZ019_.", "a_.", "aZ é中\xff\xc3", "\xff\xfe\x80",
		"İKſ🍣\u2028a",
	}
	text := func() string {
		runes := []rune(alphabets[rnd.IntN(len(alphabets))])
		alphabet := alphabets[rnd.IntN(len(alphabets))]
		length := rnd.IntN(1 + rnd.IntN(260))
		out := make([]byte, 0, length)
		for len(out) < length {
			if rnd.IntN(4) == 0 {
				out = append(out, alphabet[rnd.IntN(len(alphabet))])
			} else {
				out = append(out, string(runes[rnd.IntN(len(runes))])...)
			}
		}
		return string(out)
	}
	texts := func(most int) (list []string) {
		for range rnd.IntN(1 + rnd.IntN(most)) {
			list = append(list, text())
		}
		return list
	}
	for range 20_000 {
		k := Key{
			Service: text(), Operation: text(), Resource: text(), Type: text(), Kind: text(),
			HTTPMethod: text(), HTTPEndpoint: text(), GRPCStatus: text(), ServiceSource: text(),
			TraceRoot: TraceRoot(rnd.IntN(5)), HTTPStatus: rnd.Uint32N(3), Synthetics: rnd.IntN(2) == 0,
			PeerTags: texts(70), AdditionalTags: texts(7),
		}
		if rnd.IntN(50) == 0 {
			k.Resource = strings.Repeat(k.Resource, 5000/(1+len(k.Resource))+1)
		}
		checkNormalize(t, &k, [...]string{"", "go"}[rnd.IntN(2)])
	}
}

func FuzzNormalize(f *testing.F) {
	f.Add("shop", "http.request", "GET /", "tag:v", "go")
	f.Add("Shop Front", "a_.b", "\xff", "a", "")
	f.Fuzz(func(t *testing.T, service, operation, resource, tag, lang string) {
		checkNormalize(t, &Key{
			Service: service, Operation: operation, Resource: resource, Type: resource, Kind: tag,
			PeerTags:       []string{tag, resource, service},
			AdditionalTags: []string{tag, operation, tag, service, resource},
		}, lang)
	})
}
