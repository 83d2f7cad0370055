package bench

import (
	"fmt"
	"io"
	"math"
	"strings"
)

// plot is a chart of some lines over a logarithmic axis.
type plot struct {
	title, x, y string
	series      []series
}

type series struct {
	name   string
	points []point
}

type point struct{ x, y float64 }

// The chart's measures, in pixels.
const (
	plotWidth, plotHeight = 720, 360
	plotLeft, plotRight   = 70, 30
	plotTop, plotBottom   = 50, 60
)

// Colours that stay apart for whoever sees few of them.
var plotColours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7"}

// write draws it as SVG.
func (p *plot) write(w io.Writer) error {
	left, right, top := p.bounds()
	atX := func(x float64) float64 {
		return plotLeft + (math.Log10(x)-left)/(right-left)*(plotWidth-plotLeft-plotRight)
	}
	atY := func(y float64) float64 { return plotHeight - plotBottom - y/top*(plotHeight-plotTop-plotBottom) }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", plotWidth, plotHeight)
	b.WriteString(`<rect width="100%" height="100%" fill="#ffffff"/>` + "\n")
	text := func(x, y float64, anchor, said string) {
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="%s" fill="#222222">%s</text>`+"\n", x, y, anchor, said)
	}
	line := func(x1, y1, x2, y2 float64) {
		fmt.Fprintf(&b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#dddddd"/>`+"\n", x1, y1, x2, y2)
	}
	text(plotWidth/2, 20, "middle", p.title)
	text(plotWidth/2, plotHeight-12, "middle", p.x)
	text(plotLeft, plotTop-12, "middle", p.y)
	for _, y := range ticks(top) {
		line(plotLeft, atY(y), plotWidth-plotRight, atY(y))
		text(plotLeft-8, atY(y)+4, "end", thousands(y))
	}
	for x := range p.distinctX() {
		line(atX(x), plotTop, atX(x), plotHeight-plotBottom)
		text(atX(x), plotHeight-plotBottom+18, "middle", thousands(x))
	}
	for i, s := range p.series {
		colour := plotColours[i%len(plotColours)]
		var path []string
		for _, at := range s.points {
			path = append(path, fmt.Sprintf("%.1f,%.1f", atX(at.x), atY(at.y)))
			fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="3.5" fill="%s"/>`+"\n", atX(at.x), atY(at.y), colour)
		}
		fmt.Fprintf(&b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="1.5"/>`+"\n", strings.Join(path, " "), colour)
		fmt.Fprintf(&b, `<text x="%d" y="%d" fill="%s">%s</text>`+"\n", plotLeft+20+i*200, plotTop-12, colour, s.name)
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// bounds are the ends of the horizontal axis as logarithms, and the top of the
// vertical one, which begins at 0.
func (p *plot) bounds() (left, right, top float64) {
	left, right = math.Inf(1), math.Inf(-1)
	for _, s := range p.series {
		for _, at := range s.points {
			left, right = min(left, math.Log10(at.x)), max(right, math.Log10(at.x))
			top = max(top, at.y)
		}
	}
	if left == right {
		left, right = left-0.5, right+0.5
	}
	steps := ticks(top)
	return left, right, max(steps[len(steps)-1], top)
}

// distinctX is where the points stand.
func (p *plot) distinctX() map[float64]bool {
	all := map[float64]bool{}
	for _, s := range p.series {
		for _, at := range s.points {
			all[at.x] = true
		}
	}
	return all
}

// ticks are five to eleven round numbers from 0 to a value or just beyond it.
func ticks(top float64) (values []float64) {
	if top <= 0 {
		return []float64{0, 1}
	}
	power, step := math.Pow(10, math.Floor(math.Log10(top))), 0.0
	for _, part := range []float64{2, 1, 0.5, 0.2} {
		if step = power * part; top/step >= 4 {
			break
		}
	}
	for i := 0; float64(i-1)*step < top; i++ {
		values = append(values, float64(i)*step)
	}
	return values
}
