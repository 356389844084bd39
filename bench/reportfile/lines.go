package reportfile

import (
	"fmt"
	"html"
	"strings"
)

// Line is a value that was counted each second.
type Line struct {
	Name     string
	Values   []float64
	Baseline float64      // a dashed line; 0 is none
	Spans    [][2]float64 // seconds from and to, shaded
}

// Lines is a picture of values over time, as SVG: a panel for each line, all to the same scale.
func Lines(lines []Line) string {
	const left, width, height, gap, least = 70, 720, 130, 40, 3
	most, seconds := 1.0, 1
	for _, l := range lines {
		most, seconds = max(most, l.Baseline), max(seconds, len(l.Values))
		for _, v := range l.Values {
			most = max(most, v)
		}
	}
	x := func(second float64) float64 {
		return left + min(max(second, 0), float64(seconds))/float64(seconds)*width
	}
	var b strings.Builder
	const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`
	fmt.Fprintf(&b, svg+"\n", left+width+20, len(lines)*(height+gap)+10)
	b.WriteString(`<rect width="100%" height="100%" fill="white"/>` + "\n")
	for i, l := range lines {
		top := 20 + i*(height+gap)
		bottom := top + height
		y := func(v float64) float64 { return float64(bottom) - v/most*height }
		fmt.Fprintf(&b, `<text x="%d" y="%d" font-size="13">%s</text>`+"\n", left, top-6, html.EscapeString(l.Name))
		for _, s := range l.Spans { // a moment has to be seen too
			fmt.Fprintf(&b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="#f2b8b5"/>`+"\n",
				x(s[0]), top, max(x(s[1])-x(s[0]), least), height)
		}
		for _, v := range []float64{0, most / 2, most} {
			fmt.Fprintf(&b, `<path d="M%d %.1fh%d" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%.0f</text>`+"\n",
				left, y(v), width, left-6, y(v)+4, v)
		}
		for s := 0; s <= seconds; s += max(1, seconds/12) {
			fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">%d s</text>`+"\n", x(float64(s)), bottom+15, s)
		}
		if l.Baseline > 0 {
			fmt.Fprintf(&b, `<path d="M%d %.1fh%d" stroke="black" stroke-dasharray="5 4"/>`+"\n", left, y(l.Baseline), width)
		}
		b.WriteString(`<polyline fill="none" stroke="#4a7db5" stroke-width="1.5" points="`)
		for s, v := range l.Values {
			fmt.Fprintf(&b, "%.1f,%.1f ", x(float64(s)+0.5), y(v))
		}
		b.WriteString(`"/>` + "\n")
	}
	b.WriteString("</svg>\n")
	return b.String()
}
