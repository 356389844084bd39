package console

import (
	stdjson "encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/json"
)

// counting is a session that accounts for so much.
type counting struct {
	Session
	held, most, limit int64
	fails             int64 // which one is refused
	asked             int64
}

func (c *counting) Hold(n int64) error {
	if n > 0 {
		c.asked++
	}
	if n > 0 && (c.limit != 0 && c.held+n > c.limit || c.asked == c.fails) {
		return errors.New("no room")
	}
	c.held += n
	c.most = max(c.most, c.held)
	return nil
}

func (c *counting) Location() *time.Location { return time.UTC }

// TestLongCells: the text of a value of which only the beginning is shown is accounted for while there is one, and a string has no copy.
func TestLongCells(t *testing.T) {
	document, err := json.Parse(nil, []byte("[\""+strings.Repeat("x", 4<<20)+"\"]"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		of    types.Type
		value []byte
		held  bool
	}{
		"JSON":      {types.Type{Kind: types.KindJSON}, document, true},
		"converted": {types.Type{Kind: types.KindLongText, Collation: types.CollationLatin1Swedish}, []byte(strings.Repeat("x", 4<<20)), true},
		"string":    {types.Type{Kind: types.KindLongText, Collation: types.CollationUTF8MB40900AI}, []byte(strings.Repeat("é", 2<<20)), false},
	} {
		s := &counting{}
		r := &results{most: 10, location: time.UTC, session: s}
		if err := r.Columns([]session.ResultColumn{{Name: "c", Type: &c.of}, {Name: "d", Type: &c.of}}); err != nil {
			t.Fatal(err)
		}
		b := types.NewBatch([]*types.Type{&c.of, &c.of})
		b.Column(0).AppendBytes(c.value)
		b.Column(1).AppendBytes(c.value)
		b.SetLen(1)
		if err := r.Rows(b); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if (s.most >= int64(len(c.value))) != c.held || s.held != 0 || cap(r.scratch) > keptCell || len(r.current.Cut) != 2 || r.size > 4*cellBytes {
			t.Errorf("%s: at most %d bytes are held, %d in the end, %d kept; %d of %d bytes are shown", name, s.most, s.held, cap(r.scratch), r.size, len(c.value))
		}
		s.limit = 1 << 20
		if err := r.Rows(b); (err != nil) != c.held || s.held != 0 {
			t.Errorf("%s: %v, %d bytes are held", name, err, s.held)
		}
		wantRows(t, r, name)
	}
}

// wantRows fails the test unless an answer has as many rows as it says, all of them whole, and tells of no cuts in others.
func wantRows(t *testing.T, r *results, name string) {
	t.Helper()
	var answer struct {
		Results []struct {
			Rows  [][]string
			Count int
			Cut   []cut
		}
	}
	if err := stdjson.Unmarshal(r.encode(), &answer); err != nil || len(answer.Results) != 1 {
		t.Fatalf("%s: %v: %.200s", name, err, r.encode())
	}
	one := answer.Results[0]
	if len(one.Rows) != one.Count || slices.ContainsFunc(one.Cut, func(c cut) bool { return c.Row >= one.Count }) || r.size != len(r.all[0].rows) {
		t.Errorf("%s: %d rows of %d bytes and not %d, cut are %v", name, len(one.Rows), r.size, one.Count, one.Cut)
	}
}

// TestRowsThatEnd: of a row that there is no memory for nothing is left, be it for a value that is shown or for its key; rows before it
// are there.
func TestRowsThatEnd(t *testing.T) {
	short := types.Type{Kind: types.KindLongText, Collation: types.CollationUTF8MB40900AI}
	long := types.Type{Kind: types.KindLongText, Collation: types.CollationLatin1Swedish}
	for name, fails := range map[string]int64{"a value": 1, "its key": 2} {
		s := &counting{}
		r := &results{most: 10, location: time.UTC, session: s, keyNames: []string{"long"}}
		if err := r.Columns([]session.ResultColumn{{Name: "short", OrgName: "short", Type: &short}, {Name: "long", OrgName: "long", Type: &long}}); err != nil {
			t.Fatal(err)
		}
		b := types.NewBatch([]*types.Type{&short, &long})
		for _, value := range []string{"one", strings.Repeat("x", 1<<20)} {
			b.Column(0).AppendBytes([]byte(strings.Repeat("y", 2*cellBytes)))
			b.Column(1).AppendBytes([]byte(value))
		}
		b.SetLen(2)
		s.fails = fails
		if err := r.Rows(b); err == nil || s.held != 0 {
			t.Errorf("%s: %v, %d bytes are held", name, err, s.held)
		}
		if wantRows(t, r, name); r.current.Count != 1 || len(r.current.Cut) != 1 {
			t.Errorf("%s: %d rows, cut are %v", name, r.current.Count, r.current.Cut)
		}
	}
}
