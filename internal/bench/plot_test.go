package bench

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

// A plot is well-formed, has each point, and none of them lies outside.
func TestPlot(t *testing.T) {
	p := plot{title: "t", x: "x", y: "y", series: []series{
		{"one", []point{{1, 10}, {1000, 250}}},
		{"other", []point{{30, 0}}},
	}}
	var out bytes.Buffer
	if err := p.write(&out); err != nil {
		t.Fatal(err)
	}
	circles := 0
	for decoder := xml.NewDecoder(bytes.NewReader(out.Bytes())); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in %s", err, out.String())
		}
		if start, is := token.(xml.StartElement); is && start.Name.Local == "circle" {
			circles++
		}
	}
	if circles != 3 || strings.Contains(out.String(), "NaN") || strings.Contains(out.String(), "Inf") {
		t.Errorf("%d circles: %s", circles, out.String())
	}
	if !strings.Contains(out.String(), `cx="70.0"`) || !strings.Contains(out.String(), `cx="690.0"`) {
		t.Errorf("the ends of the axis have no point: %s", out.String())
	}
}

func TestTicks(t *testing.T) {
	for _, top := range []float64{0, 0.3, 1, 7, 10, 99, 250, 4096, 1e6} {
		steps := ticks(top)
		if len(steps) < 2 || len(steps) > 11 || top > 0 && len(steps) < 5 || steps[0] != 0 || steps[len(steps)-1] < top {
			t.Errorf("up to %v: %v", top, steps)
		}
	}
}
