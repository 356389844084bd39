package console

import (
	"errors"
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
}

func (c *counting) Hold(n int64) error {
	if n > 0 && c.limit != 0 && c.held+n > c.limit {
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
	}
}
