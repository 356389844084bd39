// Package metrics writes a node's numbers as Prometheus reads them: text of version 0.0.4.
//
//	w := metrics.NewWriter()
//	w.Set("trireme_node_ready", 1)
//	stats.Each(w.Stat)
//	_, err := w.WriteTo(out)
//
// # Invariants
//
//   - What can be told is in Metrics, with its kind and unit, and docs/metrics.md has all of it.
//   - Labels have few values: nothing that clients choose becomes one.
//   - A number without a value, or one that is not known, is left out; so are those that a newer
//     engine tells and Metrics does not have.
package metrics

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Kind is what a number is to Prometheus.
type Kind uint8

const (
	Gauge     Kind = iota // of the moment
	Counter               // it only rises, from 0 at the start
	Histogram             // how many observations were up to each limit
)

func (k Kind) String() string { return [...]string{"gauge", "counter", "histogram"}[k] }

// Metric is a number that a node tells.
type Metric struct {
	Name  string
	Stat  string // its name in SHOW STATUS, if it has one
	Kind  Kind
	Scale float64 // of the stat
	Help  string
}

var byName, byStat = func() (names, stats map[string]*Metric) {
	names, stats = map[string]*Metric{}, map[string]*Metric{}
	for i := range Metrics {
		m := &Metrics[i]
		names[m.Name] = m
		if m.Stat != "" {
			stats[m.Stat] = m
		}
	}
	return names, stats
}()

// ContentType is that of what Writer writes.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// Writer gathers numbers.
type Writer struct{ samples map[*Metric][]string }

// NewWriter returns a writer without numbers.
func NewWriter() *Writer { return &Writer{map[*Metric][]string{}} }

// Set gives a metric its value, with pairs of label names and values. It panics if there is no
// such metric.
func (w *Writer) Set(name string, value float64, labels ...string) {
	m := byName[name]
	if m == nil {
		panic("metrics: no metric " + name)
	}
	w.samples[m] = append(w.samples[m], name+labelText(labels)+" "+number(value))
}

// Stat gives the metric of a number of SHOW STATUS its value. Negative ones are unknown.
func (w *Writer) Stat(stat string, value int64) {
	if m := byStat[stat]; m != nil && value >= 0 {
		w.Set(m.Name, float64(value)*m.Scale)
	}
}

// Observed gives a histogram: counts[i] observations were at most limits[i] and above the limit
// before; the last count is of those above all limits.
func (w *Writer) Observed(name string, limits []float64, counts []uint64, sum float64) {
	m := byName[name]
	if m == nil || m.Kind != Histogram {
		panic("metrics: no histogram " + name)
	}
	var below uint64
	for i, limit := range limits {
		below += counts[i]
		w.samples[m] = append(w.samples[m], name+"_bucket"+labelText([]string{"le", number(limit)})+" "+strconv.FormatUint(below, 10))
	}
	below += counts[len(limits)]
	w.samples[m] = append(w.samples[m], name+`_bucket{le="+Inf"} `+strconv.FormatUint(below, 10), name+"_sum "+number(sum), name+"_count "+strconv.FormatUint(below, 10))
}

// On is 1 for true.
func On(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// WriteTo implements io.WriterTo.
func (w *Writer) WriteTo(out io.Writer) (int64, error) {
	var b bytes.Buffer
	for i := range Metrics {
		m := &Metrics[i]
		if len(w.samples[m]) == 0 {
			continue
		}
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", m.Name, strings.ReplaceAll(m.Help, "\\", `\\`), m.Name, m.Kind)
		for _, s := range w.samples[m] {
			b.WriteString(s + "\n")
		}
	}
	return b.WriteTo(out)
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

var labelEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func labelText(labels []string) string {
	if len(labels) == 0 {
		return ""
	}
	var parts []string
	for i := 0; i+1 < len(labels); i += 2 {
		parts = append(parts, labels[i]+`="`+labelEscapes.Replace(labels[i+1])+`"`)
	}
	return "{" + strings.Join(parts, ",") + "}"
}
