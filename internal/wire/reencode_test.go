package wire

import (
	"fmt"

	"github.com/spanstatsd/spanstatsd/internal/wire/msgpack"
)

// reencode decodes a message and encodes it again as a frame. A flush is treated as a request if it contains only the
// fields of a request.
func reencode(dst, message []byte) ([]byte, error) {
	kind, body, err := Split(message)
	if err != nil {
		return nil, err
	}
	switch kind {
	case TypeDefine:
		return reencodeDefine(dst, body)
	case TypeSpans:
		return reencodeSpans(dst, body)
	case TypeHello:
		m, err := DecodeHello(body)
		return AppendHello(dst, &m), err
	case TypeWelcome:
		m, err := DecodeWelcome(body)
		return AppendWelcome(dst, &m), err
	case TypeFeatures:
		m, err := DecodeFeatures(body)
		return AppendFeatures(dst, &m), err
	case TypeLost:
		m, err := DecodeLost(body)
		return AppendLost(dst, m), err
	case TypeFlush:
		m, err := DecodeFlush(body)
		if body[0] == msgpack.FixMap|1 && !m.OK && m.Error == "" {
			return AppendFlush(dst, &m), err
		}
		return AppendFlushAnswer(dst, &m), err
	case TypeBye:
		m, err := DecodeBye(body)
		return AppendBye(dst, &m), err
	}
	return nil, fmt.Errorf("no encoder for %s", kind)
}

func reencodeSpans(dst, body []byte) ([]byte, error) {
	walker, err := WalkSpans(body)
	if err != nil {
		return nil, err
	}
	start := len(dst)
	dst = BeginSpans(dst)
	var s Snapshot
	for walker.Next(&s) {
		if s.Numbered {
			dst = AppendNumbered(dst, s.Number, s.Duration, s.End, s.Flags, s.Weight)
			continue
		}
		key, err := reencodeKey(s.Key)
		if err != nil {
			return nil, err
		}
		dst = AppendWhole(dst, key, s.Duration, s.End, s.Flags, s.Weight)
	}
	EndSpans(dst, start, walker.Len())
	return dst, walker.Err()
}

func reencodeDefine(dst, body []byte) ([]byte, error) {
	walker, err := WalkDefine(body)
	if err != nil {
		return nil, err
	}
	start, count := len(dst), 0
	dst = BeginDefine(dst)
	for number, raw, ok := walker.Next(); ok; number, raw, ok = walker.Next() {
		key, err := reencodeKey(raw)
		if err != nil {
			return nil, err
		}
		dst = AppendDefinition(dst, number, key)
		count++
	}
	EndDefine(dst, start, count)
	return dst, walker.Err()
}

func reencodeKey(raw []byte) ([]byte, error) {
	k, err := decodeKey(raw)
	return AppendKey(nil, &k), err
}
