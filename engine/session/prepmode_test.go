package session_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/types"
)

// TestPreparedModes: a prepared statement is what it was in the mode in which it was prepared, for its
// session and for no other.
func TestPreparedModes(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct{ mode, text, first, second string }{
		{"ANSI_QUOTES", `SELECT "note" FROM orders WHERE id = ? AND N'x' = 'x'`, "note", "b"},
		{"PIPES_AS_CONCAT", `SELECT note || id FROM orders WHERE id = ? AND N'x' = 'x'`, "1", "b1"},
	} {
		_, r, a := traceRig(t, false)
		b := r.Open(session.ConnectionInfo{Schema: "shop", User: "root", Host: "localhost", AccountUser: "root", AccountHost: "%"})
		r.Exec(a, "INSERT INTO orders VALUES (1, 'b')")
		for _, s := range []struct {
			of     *session.Session
			early  bool
			result string
		}{{a, true, c.first}, {b, false, c.second}} {
			if !s.early {
				r.Exec(s.of, "SET sql_mode = '"+c.mode+"'")
			}
			p, err := s.of.Prepare(ctx, c.text)
			if err != nil {
				t.Fatal(err)
			}
			if s.early {
				r.Exec(s.of, "SET sql_mode = '"+c.mode+"'")
			}
			w := &firstCell{}
			if err := s.of.ExecutePrepared(ctx, p, []session.Arg{{Value: types.NewInt(1)}}, w); err != nil {
				t.Fatal(err)
			}
			if w.text != s.result {
				t.Errorf("%s, prepared early: %v: %q, not %q", c.text, s.early, w.text, s.result)
			}
		}
	}
}

// firstCell is a ResultWriter that keeps one value.
type firstCell struct{ text string }

func (w *firstCell) Columns([]session.ResultColumn) error { return nil }

func (w *firstCell) Rows(b *types.Batch) error {
	if v := b.Row(nil, 0)[0]; v.Class() == types.ClassInt {
		w.text = strconv.FormatInt(v.Int(), 10)
	} else {
		w.text = string(v.Bytes())
	}
	return nil
}

func (w *firstCell) Done(session.Outcome) error { return nil }
