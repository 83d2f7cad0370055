package msgpack

// MaxDepth is how many maps and arrays may lie in one another in what is skipped.
const MaxDepth = 64

// Skip steps over a value of any kind.
func (r *Reader) Skip() { r.SkipWithin(MaxDepth) }

// SkipWithin steps over a value of any kind that has no more maps and arrays in one
// another than this.
func (r *Reader) SkipWithin(depth int) {
	switch lead := r.Lead(); {
	case lead < FixMap || lead >= FixNegative || lead == Nil || IsBool(lead):
		r.at++
	case IsStr(lead):
		r.Str()
	case IsBin(lead):
		r.Bin()
	case lead == Float32 || lead == Float64:
		r.Float()
	case lead >= Uint8 && lead <= Int64:
		r.Integer()
	case IsArray(lead):
		r.skipElements(r.Array(), depth)
	case IsMap(lead):
		r.skipElements(2*r.Map(), depth)
	default:
		r.ext(lead)
	}
}

func (r *Reader) skipElements(n, depth int) {
	if n > 0 && depth == 0 {
		r.Fail()
	}
	for ; n > 0 && !r.failed; n-- {
		r.SkipWithin(depth - 1)
	}
}

// ext steps over an extension, which has a byte for its type before its bytes.
func (r *Reader) ext(lead byte) {
	size := 1
	switch {
	case lead >= FixExt1 && lead <= FixExt16:
		size += 1 + 1<<(lead-FixExt1)
	case lead >= Ext8 && lead <= Ext32:
		r.sized(Ext8)
	default:
		r.Fail()
	}
	if r.failed || size > r.Left() {
		r.Fail()
		return
	}
	r.at += size
}
