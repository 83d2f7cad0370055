package otlp

import (
	"math"
	"strconv"

	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

// AppendValue appends the value of an attribute as text. A list is none.
func (r *Request) AppendValue(dst []byte, t *spantable.Tag) []byte {
	switch t.Value {
	case spantable.IsText:
		return append(dst, r.Bytes(t.Text())...)
	case spantable.IsInteger:
		return strconv.AppendInt(dst, int64(t.Bits), 10)
	case spantable.IsBool:
		return strconv.AppendBool(dst, t.Bits == 1)
	case spantable.IsNumber:
		return appendNumber(dst, math.Float64frombits(t.Bits))
	}
	return dst
}

// appendNumber appends a number as OpenTelemetry writes one as text, which is as in JSON.
func appendNumber(dst []byte, n float64) []byte {
	if abs := math.Abs(n); abs == 0 || abs >= 1e-6 && abs < 1e21 || math.IsNaN(n) || math.IsInf(n, 0) {
		return strconv.AppendFloat(dst, n, 'f', -1, 64)
	}
	dst = strconv.AppendFloat(dst, n, 'e', -1, 64)
	if end := len(dst); string(dst[end-4:end-1]) == "e-0" {
		dst = append(dst[:end-2], dst[end-1]) // the exponent has no zero before it
	}
	return dst
}
