package reportfile

import (
	"fmt"
	"html"
	"path/filepath"
	"strings"
)

// Bar is a ratio that was measured, and the one that was to be reached: 0 is none.
type Bar struct {
	Name          string
	Ratio, Target float64
}

// Plot is a picture of ratios, as SVG: a bar for each, red if it misses its target, and a mark at that.
func Plot(bars []Bar) string {
	const left, width, height, limit = 190, 560, 24, 20
	most := 4.0
	for _, x := range bars {
		most = max(most, x.Ratio)
	}
	most = min(most, limit)
	at := func(ratio float64) float64 { return left + min(ratio, most)/most*width }
	var b strings.Builder
	bottom := len(bars)*height + 10
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="13">`+"\n", left+width+70, bottom+30)
	b.WriteString(`<rect width="100%" height="100%" fill="white"/>` + "\n")
	for x := 0.0; x <= most; x++ {
		fmt.Fprintf(&b, `<path d="M%.1f 6V%d" stroke="#ddd"/><text x="%.1f" y="%d" text-anchor="middle">%.0f</text>`+"\n", at(x), bottom, at(x), bottom+18, x)
	}
	for i, x := range bars {
		y, color := 8+i*height, "#4a7db5"
		if x.Ratio < x.Target {
			color = "#c0504d"
		}
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text>`, left-8, y+14, html.EscapeString(x.Name))
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`, left, y+2, at(x.Ratio)-left, height-8, color)
		fmt.Fprintf(&b, `<text x="%.1f" y="%d">%.2fx</text>`+"\n", at(x.Ratio)+5, y+14, x.Ratio)
		if x.Target > 0 {
			fmt.Fprintf(&b, `<path d="M%.1f %dv%d" stroke="black" stroke-width="2"/>`+"\n", at(x.Target), y, height-4)
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// Picture is the name of a report's picture, which lies beside it.
func Picture(report string) string {
	return strings.TrimSuffix(report, filepath.Ext(report)) + ".svg"
}
