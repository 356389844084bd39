//go:build oracles

package oracle

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/triremedb/trireme/e2e/servers"
)

var (
	mysqlDSN = flag.String("oracle.mysql", os.Getenv("MYSQL"), "data source name of a MySQL 9.7 for TestMySQL, such as root@unix(/run/mysqld/mysqld.sock)/")
	oursDSN  = flag.String("oracle.ours", "", "data source name of a server of ours that runs; empty: TestMySQL starts one")
	workers  = flag.Int("oracle.workers", 2, "connections to each of both")
	schema   = flag.String("oracle.schema", "oracle", "what the names of schemas begin with")
	minutes  = flag.Duration("oracle.time", 0, "when to end; 0: after oracle.n statements")
	examples = flag.Int("oracle.examples", 6000, "differences to make smaller; others are counted")
	out      = flag.String("oracle.out", "", "file for the differences")
	meta     = flag.Bool("oracle.meta", true, "compare types of columns")
	warn     = flag.Bool("oracle.warnings", true, "compare numbers of warnings")
)

// modes are the sql_modes that blocks of statements run under. PAD_CHAR_TO_FULL_LENGTH does
// nothing here.
var modes = []string{
	"ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION",
	"ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION",
	"", "", "STRICT_ALL_TABLES", "NO_ZERO_DATE", "NO_ZERO_IN_DATE", "STRICT_TRANS_TABLES,NO_ZERO_DATE", "ERROR_FOR_DIVISION_BY_ZERO",
	"ANSI_QUOTES,PIPES_AS_CONCAT", "NO_UNSIGNED_SUBTRACTION", "REAL_AS_FLOAT", "HIGH_NOT_PRECEDENCE", "TIME_TRUNCATE_FRACTIONAL",
	"ALLOW_INVALID_DATES", "NO_BACKSLASH_ESCAPES", "TRADITIONAL",
}

// pair is a connection to each server; statements go to both at once.
type pair struct {
	ours, theirs *wire
	db           string
}

// both runs a statement on both.
func both(p *pair, f func(w *wire) (*answer, error)) (a, b *answer, err error) {
	var bErr error
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		b, bErr = f(p.theirs)
	}()
	a, err = f(p.ours)
	wg.Wait()
	if err != nil {
		return nil, nil, fmt.Errorf("ours: %w", err)
	}
	if bErr != nil {
		return nil, nil, fmt.Errorf("MySQL: %w", bErr)
	}
	return a, b, nil
}

func (p *pair) query(s string) (a, b *answer, err error) {
	return both(p, func(w *wire) (*answer, error) { return w.query(s) })
}

// must runs a statement that has to have the same outcome on both.
func (p *pair) must(t *testing.T, s string) {
	a, b, err := p.query(s)
	if err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	if a.number != b.number || a.number != 0 {
		t.Fatalf("%s: ours %d %s, MySQL %d %s", s, a.number, a.message, b.number, b.message)
	}
}

// found is a class of differences.
type found struct {
	name, example, mode string
	n                   int
}

type report struct {
	sync.Mutex
	classes map[string]*found
	counts  map[string]int
	reduced int
	done    int
}

func TestMySQL(t *testing.T) {
	if *mysqlDSN == "" {
		t.Fatal("-oracle.mysql names no MySQL: make test-mysql MYSQL=..")
	}
	ours := *oursDSN
	if ours == "" {
		ours = servers.Test(t, servers.Options{}).Nodes[0].DSN("", nil)
	}
	r := &report{classes: map[string]*found{}, counts: map[string]int{}}
	begun := time.Now()
	var wg sync.WaitGroup
	for i := range *workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			r.work(t, i, ours, begun)
		}()
	}
	wg.Wait()
	r.show(t, begun)
}

// work compares blocks of statements: each has tables of its own seed and an sql_mode.
func (r *report) work(t *testing.T, i int, ours string, begun time.Time) {
	p := &pair{db: fmt.Sprintf("%s%d", *schema, i)}
	connect := func() bool {
		var err error
		if p.ours, err = dial(ours); err != nil {
			t.Error(err)
			return false
		}
		if p.theirs, err = dial(*mysqlDSN); err != nil {
			t.Error(err)
			return false
		}
		return true
	}
	if !connect() {
		return
	}
	for block := 0; ; block++ {
		s := *seed + uint64(block**workers+i)
		m := newMaker(s)
		p.setup(t, m)
		for q := range 3000 {
			if *minutes > 0 && time.Since(begun) > *minutes || *minutes == 0 && r.count() >= *count {
				p.must(t, "DROP DATABASE "+p.db)
				return
			}
			if q%150 == 0 {
				p.mode(t, m)
			}
			k := weights[m.IntN(len(weights))]
			if *only != "" {
				k = m.pick(strings.Split(*only, ",")...)
			}
			x := kinds2[k](m)
			kind, detail, err := p.compare(x)
			if err != nil {
				r.add("lost connection: "+err.Error(), x.root.String(), "", s)
				if !connect() {
					return
				}
				p.must(t, "USE "+p.db)
				p.mode(t, m)
				continue
			}
			r.one(p, x, s, kind, detail)
		}
	}
}

func (r *report) count() int {
	r.Lock()
	defer r.Unlock()
	return r.done
}

func (p *pair) setup(t *testing.T, m *maker) {
	for _, s := range []string{"SET NAMES utf8mb4", "SET sql_mode = ''", "SET time_zone = '+00:00'", "DROP DATABASE IF EXISTS " + p.db, "CREATE DATABASE " + p.db, "USE " + p.db} {
		p.must(t, s)
	}
	for i, name := range []string{"t1", "t2", "t3"} {
		p.must(t, m.create(name, true))
		p.must(t, "INSERT IGNORE INTO "+name+" VALUES "+m.rows(1, []int{30, 12, 4}[i]))
		a, b, err := p.query("SELECT * FROM " + name)
		if err != nil {
			t.Fatal(err)
		}
		p.alike(t, name, a, b)
	}
	// The same without indexes, and one that is changed.
	p.must(t, m.create("t0", false))
	p.must(t, "INSERT INTO t0 SELECT * FROM t1")
	p.must(t, m.create("w", false))
	p.must(t, "INSERT INTO w SELECT * FROM t2")
}

// alike removes rows that were not stored alike.
func (p *pair) alike(t *testing.T, name string, a, b *answer) {
	for i := range b.rows {
		for j, c := range b.rows[i] {
			if o := a.rows[i][j]; o.null != c.null || !bytes.Equal(o.text, c.text) {
				t.Errorf("%s.%s, row %s: ours %q, MySQL %q", name, b.fields[j].name, b.rows[i][0].text, o.text, c.text)
				p.must(t, "DELETE FROM "+name+" WHERE id = "+string(b.rows[i][0].text))
			}
		}
	}
}

func (p *pair) mode(t *testing.T, m *maker) {
	p.must(t, "SET sql_mode = '"+m.pick(modes...)+"'")
	p.must(t, "SET timestamp = "+m.pick("1700000000.123456", "951782400", "1735689599.999999"))
	p.must(t, "SET time_zone = '"+m.pick("+00:00", "+00:00", "-05:30", "+02:00")+"'")
	p.must(t, "SET collation_connection = "+m.pick("utf8mb4_0900_ai_ci", "utf8mb4_0900_ai_ci", "utf8mb4_general_ci", "utf8mb4_bin"))
	p.must(t, "SET div_precision_increment = "+m.pick("4", "4", "4", "0", "10"))
}

// compare runs a sample; kind is "" where both agree.
func (p *pair) compare(x *sample) (kind, detail string, err error) {
	if x.kind == "self" {
		return p.self(x)
	}
	for _, s := range x.before {
		if _, _, err := p.query(s); err != nil {
			return "", "", err
		}
	}
	var a, b *answer
	s := x.root.String()
	if x.prepared {
		var list []param
		x.root.walk(func(n *node) {
			if n.param != nil {
				list = append(list, *n.param)
			}
		})
		a, b, err = both(p, func(w *wire) (*answer, error) {
			st, err := w.prepare(s)
			if err != nil || st.number != 0 {
				return st, err
			}
			a, err := w.execute(st.id, list)
			if err == nil {
				err = w.forget(st.id)
			}
			return a, err
		})
	} else {
		a, b, err = p.query(s)
	}
	if err != nil {
		return "", "", err
	}
	kind, detail = differ(a, b, x.ordered, x.loose)
	for _, s := range x.after {
		a, b, err := p.query(s)
		if err != nil {
			return "", "", err
		}
		k, d := differ(a, b, true, false)
		if kind == "" && k != "" {
			kind, detail = "after "+k, d
		}
	}
	return kind, detail, nil
}

// valueErrors are errors of values: whether a row meets one may depend on the plan.
var valueErrors = []uint16{1690, 1292, 1525, 3140, 3141, 3143, 3146, 3147, 3156, 1366, 1411, 1441, 3685, 3696, 3751, 1365, 1264, 3903}

// differ says in which way two answers differ.
func differ(a, b *answer, ordered, loose bool) (kind, detail string) {
	if a.number != b.number {
		detail = fmt.Sprintf("ours: %s; MySQL: %s", brief(a), brief(b))
		if loose && (slices.Contains(valueErrors, a.number) || slices.Contains(valueErrors, b.number)) {
			return "", ""
		}
		switch {
		case a.number == 1064 || a.number == 1235 || a.number == 1105 || a.number == 1815:
			return fmt.Sprint("refused ", a.number), detail
		case b.number == 0:
			return fmt.Sprint("false error ", a.number), detail
		case a.number == 0:
			return fmt.Sprint("missing error ", b.number), detail
		}
		return fmt.Sprint("error ", a.number, " for ", b.number), detail
	}
	if a.number != 0 {
		return "", ""
	}
	if len(a.fields) != len(b.fields) || a.affected != b.affected || len(a.rows) != len(b.rows) {
		return "count", fmt.Sprintf("ours: %s; MySQL: %s", brief(a), brief(b))
	}
	x, y := lines(a), lines(b)
	if !ordered {
		sort.Strings(x)
		sort.Strings(y)
	}
	for i := range x {
		if x[i] != y[i] && decimalsOnly(b.fields, x[i], y[i]) {
			return "scale", fmt.Sprintf("ours: %s; MySQL: %s", x[i], y[i])
		}
		if x[i] != y[i] && !(ordered && nearly(b.fields, a.rows[i], b.rows[i])) && !(!ordered && nearlyText(x[i], y[i])) {
			return "value", fmt.Sprintf("ours: %s; MySQL: %s", x[i], y[i])
		}
	}
	if *meta {
		for i := range a.fields {
			f, g := a.fields[i], b.fields[i]
			if f.kind != g.kind || f.decimals != g.decimals || f.flags&flagUnsigned != g.flags&flagUnsigned {
				return "type", fmt.Sprintf("ours: %s; MySQL: %s", f, g)
			}
		}
	}
	if *warn && a.warnings != b.warnings {
		return "warnings", fmt.Sprintf("ours: %d; MySQL: %d", a.warnings, b.warnings)
	}
	return "", ""
}

func (f field) String() string {
	return fmt.Sprintf("type %d, unsigned %v, %d decimals, length %d, charset %d", f.kind, f.flags&flagUnsigned != 0, f.decimals, f.length, f.charset)
}

// nearly: the last digit of a floating-point number depends on the mathematical library and
// on the order of additions.
func nearly(fields []field, a, b []cell) bool {
	for i := range a {
		if a[i].null != b[i].null || !bytes.Equal(a[i].text, b[i].text) && !((fields[i].kind == 5 || fields[i].kind == 4) && near(string(a[i].text), string(b[i].text))) {
			return false
		}
	}
	return true
}

// decimalsOnly reports whether rows differ only by zeros behind the point, which docs/sql.md lists.
func decimalsOnly(fields []field, a, b string) bool {
	x, y := strings.Split(a, "|"), strings.Split(b, "|")
	if len(x) != len(fields) || len(y) != len(fields) {
		return false
	}
	for i := range x {
		if x[i] != y[i] && strings.TrimRight(strings.TrimRight(x[i], "0"), ".") != strings.TrimRight(strings.TrimRight(y[i], "0"), ".") {
			return false
		}
	}
	return true
}

func near(a, b string) bool {
	x, err := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	return err == nil && err2 == nil && x != y && math.Abs(x-y) <= 1e-13*math.Abs(x)
}

func nearlyText(a, b string) bool {
	x, y := strings.Split(a, "|"), strings.Split(b, "|")
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		if x[i] != y[i] && !near(x[i], y[i]) {
			return false
		}
	}
	return true
}

func lines(a *answer) []string {
	out := make([]string, len(a.rows))
	var b strings.Builder
	for i, r := range a.rows {
		b.Reset()
		for j, c := range r {
			if j > 0 {
				b.WriteByte('|')
			}
			if c.null {
				b.WriteString("NULL")
			} else {
				b.Write(c.text)
			}
		}
		out[i] = b.String()
	}
	return out
}

func brief(a *answer) string {
	switch {
	case a.number != 0:
		return fmt.Sprintf("error %d %s", a.number, a.message)
	case a.fields == nil:
		return fmt.Sprintf("%d affected, %d warnings", a.affected, a.warnings)
	}
	l := lines(a)
	return fmt.Sprintf("%d rows %.200q", len(l), l[:min(len(l), 6)])
}

// one counts a sample, and makes one that differs smaller.
func (r *report) one(p *pair, x *sample, seed uint64, kind, detail string) {
	r.Lock()
	r.done++
	r.counts[x.kind]++
	if kind != "" {
		r.reduced++
	}
	full := r.reduced > *examples
	r.Unlock()
	if kind == "" {
		return
	}
	if full {
		r.add(kind+" of "+x.kind+": not made smaller", x.root.String(), detail, seed)
		return
	}
	reduce(x.root, func() bool {
		k, d, err := p.compare(x)
		if err != nil || k != kind {
			return false
		}
		detail = d
		return true
	}, 150)
	mode := ""
	if a, _, err := p.query("SELECT CONCAT_WS(' ', @@sql_mode, @@time_zone, @@collation_connection, @@div_precision_increment)"); err == nil && len(a.rows) == 1 {
		mode = string(a.rows[0][0].text)
	}
	text := x.root.String()
	x.root.walk(func(n *node) {
		if n.param != nil {
			text += "; " + n.param.show
		}
	})
	r.add(kind+": "+x.root.class(), text+"\n    "+detail+"\n    ["+mode+"]", "", seed)
}

func (r *report) add(class, example, detail string, seed uint64) {
	r.Lock()
	defer r.Unlock()
	c := r.classes[class]
	if c == nil {
		c = &found{name: class, example: fmt.Sprintf("%s\n    %s", example, detail)}
		r.classes[class] = c
	}
	c.n++
}

func (r *report) show(t *testing.T, begun time.Time) {
	var list []*found
	kinds := map[string]int{}
	total := 0
	for _, c := range r.classes {
		list = append(list, c)
		k, _, _ := strings.Cut(c.name, ":")
		kinds[k] += c.n
		total += c.n
	}
	slices.SortFunc(list, func(a, b *found) int {
		if a.n != b.n {
			return b.n - a.n
		}
		return strings.Compare(a.name, b.name)
	})
	w := os.Stdout
	if *out != "" {
		f, err := os.Create(*out)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		w = f
	}
	for i, c := range list {
		if *out == "" && i >= *most {
			break
		}
		fmt.Fprintf(w, "%d  %s\n    %s\n", c.n, c.name, c.example)
	}
	t.Logf("seed %d: %d statements in %v %v, %d differ in %d classes: %v", *seed, r.done, time.Since(begun).Round(time.Second), r.counts, total, len(list), kinds)
	if total > 0 {
		t.Fail()
	}
}
