package otlpjson

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// isReadAsTheModelReadsIt compares FromJSON with the model, and checks the length of the result.
func isReadAsTheModelReadsIt(t *testing.T, body []byte) (isTaken bool) {
	t.Helper()
	room := make([]byte, 0, ProtobufBytes(len(body)))
	got, err := FromJSON(room, body)
	want, wanted := modelFromJSON(nil, body)
	switch {
	case (err == nil) != (wanted == nil):
		t.Fatalf("%q: %v, the model says %v", body, err, wanted)
	case err != nil:
		return false
	case !bytes.Equal(got, want):
		t.Fatalf("%q is read as\n%q, the model has\n%q", body, got, want)
	case utf8.Valid(body) && len(got) > cap(room):
		t.Fatalf("%d bytes became %d: %q", len(body), len(got), body)
	}
	return true
}

// maker writes random requests that use the complete encoding. Most of them are valid.
type maker struct {
	*rand.Rand
	written []byte
	wrong   int // invalid values per thousand
}

func (m *maker) add(all ...string) {
	for _, s := range all {
		m.written = append(m.written, s...)
		if m.IntN(20) == 0 {
			m.written = append(m.written, " \t\r\n"[m.IntN(4)])
		}
	}
}

func (m *maker) one(of ...string) string { return of[m.IntN(len(of))] }

// list writes n elements between brackets.
func (m *maker) list(brackets string, n int, element func()) {
	m.add(brackets[:1])
	for i := range n {
		if i > 0 {
			m.add(",")
		}
		element()
	}
	m.add(brackets[1:])
}

// text writes a string of several pieces, so that some have a length of two bytes in protobuf.
func (m *maker) text() {
	var text strings.Builder
	for range m.IntN(4) * m.IntN(4) * m.IntN(8) {
		text.WriteString(m.one("a", "bc", "GET /", "é", "€", "😀", `\n`, `\"`, `\\`, `\/`, `\b\f\r\t`,
			`\u00e9`, `\uD83D\uDE00`, `\ud83d`, `\udE00`, `\u0000`, "\xff", "\xe2\x82", "\x7f"))
	}
	m.add(`"` + text.String() + `"`)
}

func (m *maker) number() string {
	number := m.one("0", "-0", "7", "-12", "1.5", "3.0", "1e3", "2E-2", "-5e+1", "1544712660000000000",
		"9223372036854775807", "-9223372036854775808", "18446744073709551615",
		"18446744073709551616", "4294967296", strconv.Itoa(m.Int()), strconv.FormatFloat(m.NormFloat64(), 'g',
			-1, 64))
	if m.IntN(2) == 0 {
		return `"` + number + `"`
	}
	return number
}

// any writes a value with an arbitrary type, for unknown fields or as an error.
func (m *maker) any(depth int) {
	switch m.IntN(8 - min(depth, 3)) {
	case 0:
		m.add(m.one("null", "true", "false"))
	case 1:
		m.add(m.number())
	case 2, 3, 4:
		m.text()
	case 5:
		m.list("[]", m.IntN(4), func() { m.any(depth + 1) })
	default:
		m.list("{}", m.IntN(4), func() { m.text(); m.add(":"); m.any(depth + 1) })
	}
}

func (m *maker) message(fields messageFields, depth int) {
	m.list("{}", m.IntN(5), func() {
		if m.IntN(12) == 0 {
			m.add(m.one(`"later"`, `""`, `"Key"`), ":")
			m.any(0)
			return
		}
		f := fields[m.IntN(len(fields))]
		name := f.name
		if m.IntN(30) == 0 {
			name = `\u00` + strconv.FormatInt(int64(name[0]), 16) + name[1:]
		}
		m.add(`"`+name+`"`, ":")
		switch n := 0; {
		case m.IntN(20) == 0:
			m.add("null")
		case f.encoding == asMessage && m.IntN(5) > 0, f.encoding == asString && m.IntN(9) == 0:
			if depth < 8 {
				n = 1 + m.IntN(4)
			}
			m.list("[]", n, func() { m.value(f, depth) })
		default:
			m.value(f, depth)
		}
	})
}

func (m *maker) value(f field, depth int) {
	if m.IntN(1000) < m.wrong {
		m.any(0)
		return
	}
	switch f.encoding {
	case asMessage:
		m.message(*f.fields, depth+1)
	case asString:
		m.text()
	case asHex:
		m.add(m.one(`""`, `"eee19b7ec3c1b174"`, `"5B8EFFF798038103D269B633813FC60C"`, `"\u0061b"`))
	case asBase64:
		m.add(m.one(`""`, `"AQI="`, `"AQ=="`, `"QUJD\nREVG"`, `"\/\/\/\/AQ=="`,
			`"\u0041QIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA="`))
	case asBool:
		m.add(m.one("true", "false"))
	case asDouble:
		m.add(m.one(`"NaN"`, `"-Infinity"`, `"\u0035"`, m.number()))
	default:
		m.add(m.one("-1", `"-7"`, "4294967297", strconv.Itoa(m.IntN(1<<20))))
	}
}

// mutated returns a copy of body in which some bytes are deleted, duplicated, inserted or changed.
func mutated(r *rand.Rand, body []byte) []byte {
	body = slices.Clone(body)
	for range 1 + r.IntN(3) {
		at := r.IntN(len(body) + 1)
		end := min(len(body), at+r.IntN(6))
		switch r.IntN(6) {
		case 0:
			body = slices.Delete(body, at, end)
		case 1:
			body = slices.Insert(body, at, slices.Clone(body[at:end])...)
		case 2:
			body = body[:at]
		case 3:
			if at < end {
				body[at] = byte(r.Uint32())
			}
		default:
			pieces := []string{
				`"`, `\`, `\u`, `\u12`, `\ud83d`, `\ude00`, "\x00", "\x1f", "\xff", "\xc3",
				",", ":", "[", "]", "{", "}", " ", "0", "-", "+", ".", "e", "1e400", "tru", "true", "null",
				`{"a":[]},`, `"key":"x",`, `""`, `/`, "\ufeff",
			}
			body = slices.Insert(body, at, []byte(pieces[r.IntN(len(pieces))])...)
		}
	}
	return body
}

// TestJSON_AgainstModel compares FromJSON with the model for random requests, and for
// mutations of these and of a recorded request.
func TestJSON_AgainstModel(t *testing.T) {
	sent := recordedJSON(t)
	if !isReadAsTheModelReadsIt(t, sent) {
		t.Error("a request of an SDK is not accepted")
	}
	sent = firstSpans(t, sent)
	accepted, refused := 0, 0
	for seed := range uint64(1000) {
		m := maker{Rand: rand.New(rand.NewPCG(seed, 1)), wrong: int(seed%3) * 10}
		m.message(requestFields, 0)
		for _, body := range [][]byte{m.written, mutated(m.Rand, m.written), mutated(m.Rand, sent)} {
			if isReadAsTheModelReadsIt(t, body) {
				accepted++
			} else {
				refused++
			}
		}
	}
	if accepted < 600 || refused < 600 {
		t.Errorf("%d requests were accepted and %d refused", accepted, refused)
	}
}

// TestGrammar_AgainstModel compares the grammar with the model's, case by case.
func TestGrammar_AgainstModel(t *testing.T) {
	for _, value := range []string{
		`"\ud800"`, `"\ud800\ud800\udc00"`, `"\udc00\ud800"`, `"\ud800x"`, `"\ud800\u00zz"`, `"\u12"`,
		`"\u123G"`, `"\uABCDabcd"`, `"\'"`, `"\x"`, `"\`, `"`, `"\"`, `"\\"`, `"\u005c\u0022"`,
		"\"\x00\"", "\"\x1f\"", "\"\x7f\"", "\"\n\"", "\"\xff\"", "\"\xed\xa0\x80\"", "\"\xc3\xa9\"", "\xff",
		"\x00",
		"0", "-0", "00", "01", "-", "-01", "+1", ".5", "5.", "5.0", "1e", "1e+", "1e-", "1E+09", "1e5.0",
		"0e0", "0x10", "1_000", "Infinity", "NaN", "1e999",
		"true", "tru", "truex", "true false", "TRUE", "nul", "null", "nulls", "", " ", ",", ":", "//",
		"/**/1",
		"[]", "[,]", "[1,]", "[1,,2]", "[1 2]", "[1:2]", "[1", "[", "]", "[}", "{]", "{}", "{,}", `{"a":1,}`,
		`{"a" 1}`, `{"a":}`, `{"a"}`, `{1:2}`, `{"a":1 "b":2}`, `{a:1}`, `{"a":1,"a":2}`, `{"a":{"b":[{}]}}`,
		`{"a"x1}`, `{"attributes":[{"key":"a"};{"key":"b"}]}`, `{"attributes":[];"x":1}`,
		`{"attributes":[{"key" "a"}]}`,
	} {
		for _, name := range []string{"later", "schemaUrl", "resource", "scopeSpans"} {
			for _, around := range []string{"", " ", "\t\r\n", "\v", "\u00a0"} {
				isReadAsTheModelReadsIt(t, []byte(`{"resourceSpans":[{"`+name+`":`+around+value+around+`}]}`))
			}
		}
		for _, fields := range []string{
			`{"key":%}`, `{"value":{"intValue":%}}`,
			`{"value":{"doubleValue":%}}`, `{"value":{"boolValue":%}}`, `{"value":{"bytesValue":%}}`,
			`{"key":[%,"x"]}`,
		} {
			isReadAsTheModelReadsIt(t,
				[]byte(`{"resourceSpans":[{"resource":{"attributes":[`+strings.ReplaceAll(fields, "%",
					value)+`]}}]}`))
		}
		isReadAsTheModelReadsIt(t, []byte(value))
		isReadAsTheModelReadsIt(t, []byte("{}"+value))
	}
	for depth := MaxDepth - 3; depth < MaxDepth+3; depth++ {
		for _, in := range []string{`{"later":%}`, `{"resourceSpans":[{"resource":{"later":%}}]}`} {
			for _, nested := range [][2]string{{"[", "]"}, {`{"a":`, `}`}, {`[{"x":1,"a":`, "}]"}} {
				isReadAsTheModelReadsIt(t,
					[]byte(strings.ReplaceAll(in, "%",
						strings.Repeat(nested[0], depth/len(nested[1]))+"1"+strings.Repeat(nested[1],
							depth/len(nested[1])))))
			}
		}
		open, shut := strings.Repeat(`{"arrayValue":{"values":[`, depth/2), strings.Repeat(`]}}`, depth/2)
		for _, inner := range []string{"", "{}", `{"arrayValue":{}}`} {
			isReadAsTheModelReadsIt(t,
				[]byte(`{"resourceSpans":[{"resource":{"attributes":[{"value":`+open+inner+shut+`}]}}]}`))
			isReadAsTheModelReadsIt(t,
				[]byte(`{"resourceSpans":[{"resource":{"attributes":{"later":1,"value":`+open+inner+shut+`}}}]}`))
			pairs := strings.Repeat(`{"kvlistValue":{"values":[{"key":"a","value":`, depth/3-1) +
				`{"kvlistValue":{"values":[{"key":"k","value":{"stringValue":"v"}}]}}` +
				strings.Repeat(`}]}}`, depth/3-1)
			for _, value := range []string{pairs, `{"arrayValue":{"values":[` + pairs + `]}}`} {
				isReadAsTheModelReadsIt(t,
					[]byte(`{"resourceSpans":[{"resource":{"attributes":[{"value":`+value+`}]}}]}`))
			}
		}
	}
}

// TestAttributes_AgainstModel compares FromJSON with the model for attributes like those of SDKs, with
// lengths around the limit of the fast path, and for attributes that differ from them in one byte.
func TestAttributes_AgainstModel(t *testing.T) {
	around := func(attribute string) []byte {
		return []byte(`{"resourceSpans":[{"resource":{"attributes":[` + attribute + `,{"key":"z"}]}}]}`)
	}
	for length := range 140 {
		text := strings.Repeat("x", length)
		for _, attribute := range []string{
			`{"key":"","value":{"stringValue":"` + text + `"}}`,
			`{"key":"` + text + `","value":{"stringValue":"http"}}`,
			`{"key":"` + text + `","value":{"intValue":18014398509481984}}`,
			`{"key":"k","value":{"intValue":"` + strings.Repeat("9", length%24) + `"}}`,
		} {
			isReadAsTheModelReadsIt(t, around(attribute))
		}
	}
	for _, attribute := range []string{
		`{"key":"k","value":{"stringValue":"text"}}`, `{"key":"k","value":{"intValue":"200"}}`,
		`{"key":"k","value":{"intValue":200}}`, `{"key":"k","value":{"boolValue":true}}`,
	} {
		if !isReadAsTheModelReadsIt(t, around(attribute)) {
			t.Errorf("%s is refused", attribute)
		}
		for at := range attribute {
			for _, piece := range []string{"", " ", `"`, `\`, ",", "}", "0", "\x01", "\xc3\xa9"} {
				isReadAsTheModelReadsIt(t, around(attribute[:at]+piece+attribute[at+1:]))
				isReadAsTheModelReadsIt(t, around(attribute[:at]+piece+attribute[at:]))
			}
		}
	}
}

// TestProtobufBytes_LongStrings checks ProtobufBytes for lists of long strings, whose protobuf
// is longest.
func TestProtobufBytes_LongStrings(t *testing.T) {
	for _, length := range []int{0, 1, 127, 128, 1<<14 - 1, 1 << 14, 1 << 16, 1<<21 - 1, 1 << 21} {
		text := `"` + strings.Repeat("x", length) + `",`
		body := `{"resourceSpans":{"resource":{"entityRefs":{"idKeys":[` +
			strings.Repeat(text, 1+min(120, 4<<20/(length+1))) + `""]}}}}`
		if !isReadAsTheModelReadsIt(t, []byte(body)) {
			t.Errorf("texts of %d bytes are refused", length)
		}
	}
}

// TestJSON_AllocatesNothing checks that FromJSON does not allocate if dst has enough
// capacity.
func TestJSON_AllocatesNothing(t *testing.T) {
	for _, body := range [][]byte{recordedJSON(t), []byte(exampleJSON)} {
		room := make([]byte, 0, ProtobufBytes(len(body)))
		if n := testing.AllocsPerRun(20, func() {
			if _, err := FromJSON(room, body); err != nil {
				t.Fatal(err)
			}
		}); n > 0 {
			t.Errorf("%v allocations a body of %d bytes", n, len(body))
		}
	}
}

// BenchmarkFromJSON converts a recorded request with FromJSON, and with the reference implementation.
func BenchmarkFromJSON(b *testing.B) {
	body := recordedJSON(b)
	room := make([]byte, 0, ProtobufBytes(len(body)))
	for name, read := range map[string]func(dst, body []byte) ([]byte, error){
		"scanner": FromJSON,
		"model":   modelFromJSON,
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				if _, err := read(room, body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// recordedJSON returns a recorded request of the JavaScript SDK, see package recorded.
func recordedJSON(t testing.TB) []byte {
	t.Helper()
	packed, err := os.Open("../../../lab/bench/recorded/testdata/node-json.http.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.ReadRequest(bufio.NewReader(unpacked))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(request.Body)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// firstSpans returns the first resource of a request with one span per scope, so that mutations
// change all parts of it.
func firstSpans(t *testing.T, body []byte) []byte {
	t.Helper()
	var request map[string][]map[string]json.RawMessage
	if err := json.Unmarshal(body, &request); err != nil {
		t.Fatal(err)
	}
	request["resourceSpans"] = request["resourceSpans"][:1]
	for _, of := range request["resourceSpans"] {
		var scopes []map[string]json.RawMessage
		if err := json.Unmarshal(of["scopeSpans"], &scopes); err != nil {
			t.Fatal(err)
		}
		for _, scope := range scopes {
			var spans []json.RawMessage
			if err := json.Unmarshal(scope["spans"], &spans); err != nil {
				t.Fatal(err)
			}
			scope["spans"] = append(append([]byte("["), spans[0]...), ']')
		}
		of["scopeSpans"], _ = json.Marshal(scopes)
	}
	short, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	return short
}
