package session_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/internal/trace"
)

// recorder keeps spans. Of requests that have no caller it traces what all says.
type recorder struct {
	all bool

	mu    sync.Mutex
	last  byte
	spans []*trace.Span
}

func (r *recorder) Begin(parent trace.Context, _ string) trace.Context {
	if !parent.Valid() {
		if !r.all {
			return trace.Context{}
		}
		parent.Trace[0] = 0xff
	}
	return r.Child(parent)
}

func (r *recorder) Child(parent trace.Context) trace.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	parent.Span = [8]byte{r.last}
	return parent
}

func (r *recorder) Record(s *trace.Span) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spans = append(r.spans, s)
}

// take returns what has been recorded since, statements behind their parts.
func (r *recorder) take() []*trace.Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.spans
	r.spans = nil
	return all
}

// describe writes a span without its times.
func describe(s *trace.Span) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s", s.Name)
	for _, a := range s.Attributes {
		switch a.Key {
		case "trireme.session", "trireme.lock_wait_us", "db.system.name", "db.operation.name", "db.collection.name", "trireme.transaction":
			continue
		}
		if a.Text == "" {
			fmt.Fprintf(&b, " %s=%d", strings.TrimPrefix(a.Key, "trireme."), a.Number)
		} else {
			fmt.Fprintf(&b, " %s=%q", strings.TrimPrefix(a.Key, "trireme."), a.Text)
		}
	}
	if s.Error != "" {
		fmt.Fprintf(&b, " error %s", s.Error)
	}
	return b.String()
}

var caller, _, _ = trace.Parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")

func traceRig(t *testing.T, all bool) (*recorder, *sessiontest.Rig, *session.Session) {
	rec := &recorder{all: all}
	r := sessiontest.New(t, sessiontest.Options{Trace: rec})
	if _, err := r.Manager.Bootstrap(context.Background(), session.BootstrapOptions{}); err != nil {
		t.Fatal(err)
	}
	r.CreateSchema("shop")
	s := r.Open(session.ConnectionInfo{Schema: "shop", User: "root", Host: "localhost", AccountUser: "root", AccountHost: "%", Door: "mysql", MultiStatements: true})
	r.Exec(s, "CREATE TABLE orders (id INT PRIMARY KEY, note VARCHAR(100), UNIQUE KEY (note))")
	rec.take()
	return rec, r, s
}

// run runs a text as part of the caller's span; errors are the test's business.
func run(s *session.Session, text string) error {
	s.UseTrace(caller, true)
	return s.Query(context.Background(), text, sessiontest.Discard)
}

// TestTraceStatements: what spans statements of all sorts have.
func TestTraceStatements(t *testing.T) {
	rec, _, s := traceRig(t, false)
	for _, c := range []struct {
		text string
		want []string
	}{
		{"INSERT INTO orders VALUES (1, 'secret'), (2, 'other')", []string{"parse", "plan", "commit",
			`INSERT shop.orders db.namespace="shop" db.query.text="INSERT INTO ` + "`orders`" + ` VALUES (...) /* , ... */" door="mysql" rows_affected=2`}},
		{"SELECT note FROM orders WHERE id = 1", []string{"parse", "plan",
			`SELECT shop.orders db.namespace="shop" db.query.text="SELECT ` + "`note` FROM `orders` WHERE `id` = ?" + `" door="mysql" db.response.returned_rows=1 rows_examined=1`}},
		{"SELECT note FROM orders WHERE id = 2 /*traceparent='00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'*/", []string{
			`SELECT shop.orders db.namespace="shop" db.query.text="SELECT ` + "`note` FROM `orders` WHERE `id` = ?" + `" door="mysql" db.response.returned_rows=1 rows_examined=1`}},
		{"INSERT INTO orders VALUES (1, 'secret')", []string{"parse", "plan",
			`INSERT shop.orders db.namespace="shop" db.query.text="INSERT INTO ` + "`orders`" + ` VALUES (...)" db.response.status_code="1062" error.type="1062" door="mysql" error 1062 (23000)`}},
		{"SELECT secret", []string{"parse", "plan error 1054 (42S22)", "parse", "plan error 1054 (42S22)",
			`SELECT db.namespace="shop" db.query.text="SELECT ` + "`secret`" + `" db.response.status_code="1054" error.type="1054" door="mysql" error 1054 (42S22)`}},
		{"SELEC 'secret'", []string{"parse error 1064 (42000)",
			`statement db.namespace="shop" db.response.status_code="1064" error.type="1064" door="mysql" error 1064 (42000)`}},
		{"BEGIN", []string{"parse", `BEGIN db.namespace="shop" db.query.text="BEGIN" door="mysql"`}},
		{"UPDATE orders SET note = 'third' WHERE id = 2", []string{"parse", "plan",
			`UPDATE shop.orders db.namespace="shop" db.query.text="UPDATE ` + "`orders` SET `note` = ? WHERE `id` = ?" + `" door="mysql" rows_affected=1 rows_examined=1`}},
		{"COMMIT", []string{"parse", "commit", `COMMIT db.namespace="shop" db.query.text="COMMIT" door="mysql"`}},
		{"SET @a = 'secret'", []string{"parse", `SET db.namespace="shop" db.query.text="SET @a = ?" door="mysql"`}},
		{"SELECT 1; SELECT 2", []string{"parse", "plan", `SELECT db.namespace="shop" db.query.text="SELECT ?" door="mysql" db.response.returned_rows=1`,
			"plan", `SELECT db.namespace="shop" db.query.text="SELECT ?" door="mysql" db.response.returned_rows=1`}},
	} {
		_ = run(s, c.text)
		spans := slices.DeleteFunc(rec.take(), func(p *trace.Span) bool { return p.Name == "read point" }) // on a slow machine
		var got []string
		root := trace.Context{}
		for i := len(spans) - 1; i >= 0; i-- {
			p := spans[i]
			if p.Kind == trace.Server {
				if root = p.Context; p.Parent != caller.Span {
					t.Errorf("%s: %s is no part of the caller's span", c.text, p.Name)
				}
			} else if p.Parent != root.Span {
				t.Errorf("%s: %s is no part of the statement", c.text, p.Name)
			}
			if p.Trace != caller.Trace || !p.Valid() || p.End.Before(p.Start) {
				t.Errorf("%s: %+v", c.text, p)
			}
		}
		for _, p := range spans {
			d := describe(p)
			if strings.Contains(d, "secret'") || strings.Contains(d, "'secret") {
				t.Errorf("%s: a value is told: %s", c.text, d)
			}
			got = append(got, d)
		}
		if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
			t.Errorf("%s:\n%s\nshould be\n%s", c.text, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// TestTraceModes: a text's digest is that of the mode in which it was read. In another, a value may be
// what is no value there.
func TestTraceModes(t *testing.T) {
	rec, r, s := traceRig(t, false)
	ctx := context.Background()
	told := func(what string) {
		t.Helper()
		for _, p := range rec.take() {
			if d := describe(p); strings.Contains(d, "secret") {
				t.Errorf("%s: %s", what, d)
			}
		}
		for _, d := range r.Manager.Statements() {
			if strings.Contains(d.Text, "secret") {
				t.Errorf("%s: the digest %s", what, d.Text)
			}
		}
	}
	for _, text := range []string{
		`SET sql_mode = 'ANSI_QUOTES', @a = "secret"`,
		`SET sql_mode = 'ANSI_QUOTES'; SELECT "secret", id FROM orders; DO "secret"`,
		`SET sql_mode = 'NO_BACKSLASH_ESCAPES', @a = '\' secret \''`,
	} {
		r.Exec(s, "SET sql_mode = ''")
		if err := run(s, text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		told(text)
	}
	r.Exec(s, "SET sql_mode = ''")
	p, err := s.Prepare(ctx, `SELECT "secret", id FROM orders WHERE id = ?`)
	if err != nil {
		t.Fatal(err)
	}
	r.Exec(s, "SET sql_mode = 'ANSI_QUOTES'")
	s.UseTrace(caller, true)
	if err := s.ExecutePrepared(ctx, p, []session.Arg{{Value: types.NewInt(1)}}, sessiontest.Discard); err != nil {
		t.Fatal(err)
	}
	told("a prepared statement")
}

// TestTraceUnread: a text that could not be read to its end is told nowhere, whatever the error.
func TestTraceUnread(t *testing.T) {
	rec, r, s := traceRig(t, false)
	for _, text := range []string{"CHANGE REPLICATION SOURCE TO SOURCE_PASSWORD = secret", "SIGNAL secret", "SELECT 1 secret secret"} {
		for _, prepare := range []bool{false, true} {
			var err error
			if s.UseTrace(caller, true); prepare {
				_, err = s.Prepare(context.Background(), text)
			} else {
				err = run(s, text)
			}
			if err == nil {
				t.Errorf("%s: no error", text)
			}
			spans := rec.take()
			if len(spans) == 0 {
				t.Fatalf("%s: no spans", text)
			}
			for _, p := range spans {
				if d := describe(p); strings.Contains(d, "secret") {
					t.Errorf("%s: %s", text, d)
				}
			}
		}
	}
	for _, d := range r.Manager.Statements() {
		if strings.Contains(d.Text, "secret") {
			t.Errorf("the digest %s", d.Text)
		}
	}
}

// TestTraceManyParts: a statement with many queries in it has some of their spans, and tells how many
// are not there.
func TestTraceManyParts(t *testing.T) {
	rec, _, s := traceRig(t, false)
	const n = 1000
	if err := run(s, "DO "+strings.Repeat("(SELECT 1), ", n-1)+"(SELECT 1)"); err != nil {
		t.Fatal(err)
	}
	spans := rec.take()
	if len(spans) > 50 {
		t.Errorf("%d spans", len(spans))
	}
	if d := describe(spans[len(spans)-1]); !strings.HasPrefix(d, "DO db.") || !strings.Contains(d, fmt.Sprintf(" parts_left_out=%d", n+1-(len(spans)-1))) {
		t.Errorf("%d spans, the last: %s", len(spans), d)
	}
	if err := run(s, "SELECT 2"); err != nil {
		t.Fatal(err)
	}
	if spans := rec.take(); len(spans) < 2 || strings.Contains(describe(spans[len(spans)-1]), "left_out") {
		t.Errorf("the next one: %v", spans)
	}
}

// TestTraceCommit: a commit has the number of its transaction, and the log is told of its span.
func TestTraceCommit(t *testing.T) {
	rec, _, s := traceRig(t, false)
	if err := run(s, "INSERT INTO orders VALUES (1, 'a')"); err != nil {
		t.Fatal(err)
	}
	for _, p := range rec.take() {
		if p.Name == "commit" {
			if a := p.Attributes; len(a) != 1 || a[0].Key != "trireme.transaction" || uint64(a[0].Number) != s.LastGTID() {
				t.Errorf("%+v, the transaction is %d", a, s.LastGTID())
			}
			return
		}
	}
	t.Error("there is no commit")
}

// TestTracePrepared: executions are traced, each as part of what is said with it.
func TestTracePrepared(t *testing.T) {
	rec, _, s := traceRig(t, false)
	ctx := context.Background()
	s.UseTrace(caller, true)
	p, err := s.Prepare(ctx, "SELECT id FROM orders WHERE note = ?")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, of := range rec.take() {
		got = append(got, describe(of))
	}
	if want := "parse, plan, PREPARE shop.orders db.namespace=\"shop\" db.query.text=\"SELECT `id` FROM `orders` WHERE `note` = ?\" door=\"mysql\""; strings.Join(got, ", ") != want {
		t.Errorf("preparing: %q", got)
	}
	args := []session.Arg{{Value: types.NewBytes([]byte("secret"))}}
	for i, traced := range []bool{true, false, true} {
		if traced {
			s.UseTrace(caller, true)
		}
		if err := s.ExecutePrepared(ctx, p, args, sessiontest.Discard); err != nil {
			t.Fatal(err)
		}
		spans := rec.take()
		if !traced {
			if len(spans) != 0 {
				t.Errorf("%d: %d spans", i, len(spans))
			}
			continue
		}
		if len(spans) == 0 {
			t.Fatalf("%d: no spans", i)
		}
		const want = "SELECT shop.orders db.namespace=\"shop\" db.query.text=\"SELECT `id` FROM `orders` WHERE `note` = ?\" door=\"mysql\" db.response.returned_rows=0"
		if d := describe(spans[len(spans)-1]); d != want {
			t.Errorf("%d: %s", i, d)
		}
	}
}

// TestTraceChoice: what the caller has not sampled is not traced; who says nothing is asked for by
// the recorder; what was said holds for one text.
func TestTraceChoice(t *testing.T) {
	rec, _, s := traceRig(t, true)
	ctx := context.Background()
	s.UseTrace(caller, false)
	if err := s.Query(ctx, "SELECT 1", sessiontest.Discard); err != nil {
		t.Fatal(err)
	}
	if n := len(rec.take()); n != 0 {
		t.Errorf("%d spans of a caller that wants none", n)
	}
	if err := s.Query(ctx, "SELECT 1", sessiontest.Discard); err != nil {
		t.Fatal(err)
	}
	spans := rec.take()
	if len(spans) == 0 {
		t.Fatal("nothing is traced")
	}
	if last := spans[len(spans)-1]; last.Parent != [8]byte{} || last.Trace == caller.Trace {
		t.Errorf("%+v", last)
	}
}

// TestTraceWaits: a statement tells how long it has waited for others' locks, and a read for its
// read point.
func TestTraceWaits(t *testing.T) {
	rec, r, s := traceRig(t, false)
	other := r.Open(session.ConnectionInfo{Schema: "shop", User: "root", Host: "localhost", AccountUser: "root", AccountHost: "%"})
	r.Exec(s, "INSERT INTO orders VALUES (1, 'a')")
	for _, hold := range []struct{ lock, wait string }{
		{"UPDATE orders SET note = 'b' WHERE id = 1", "UPDATE orders SET note = 'c' WHERE id = 1"},
		{"SELECT * FROM orders", "ALTER TABLE orders COMMENT = 'x'"},
	} {
		r.Exec(other, "BEGIN")
		r.Exec(other, hold.lock)
		done := make(chan error)
		go func() { done <- run(s, hold.wait) }()
		for until := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			waits := false
			for _, p := range r.Manager.Processes() {
				waits = waits || strings.HasPrefix(p.State, "Waiting for")
			}
			if waits {
				break
			}
			if time.Now().After(until) {
				t.Fatal("nobody waits")
			}
		}
		r.Exec(other, "COMMIT")
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		spans := rec.take()
		if d := describe(spans[len(spans)-1]); !strings.Contains(d, " lock_waits=1") {
			t.Errorf("%s: %s", hold.wait, d)
		}
	}
	if err := run(s, "UPDATE orders SET note = 'd' WHERE id = 1"); err != nil {
		t.Fatal(err)
	}
	spans := rec.take()
	if d := describe(spans[len(spans)-1]); strings.Contains(d, "lock_waits") {
		t.Errorf("it has not waited: %s", d)
	}

	r.ReadPoint = func(session.ReadOptions) error {
		time.Sleep(time.Millisecond)
		return nil
	}
	if err := run(s, "SELECT note FROM orders"); err != nil {
		t.Fatal(err)
	}
	found := false
	for _, p := range rec.take() {
		found = found || p.Name == "read point"
	}
	if !found {
		t.Error("the wait for the read point is not told")
	}
}
