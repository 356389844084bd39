package cache

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/binlog/body"
	"github.com/triremedb/trireme/engine/binlog/event"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/types"
	_ "github.com/triremedb/trireme/engine/types/collation"
	"github.com/triremedb/trireme/internal/race"
)

// tableOf is (id INT PRIMARY KEY, n BIGINT, v LONGBLOB).
func tableOf(t *testing.T, id uint64) *event.Layout {
	t.Helper()
	def := &record.Table{ID: id, Schema: "shop", Name: fmt.Sprintf("t%d", id), Version: 1, RowVersion: 1, NextColumn: 4,
		Columns: []record.Column{{ID: 1, Name: "id", AddedIn: 1, Type: types.Type{Kind: types.KindInt, NotNull: true}},
			{ID: 2, Name: "n", AddedIn: 1, Type: types.Type{Kind: types.KindBigInt}},
			{ID: 3, Name: "v", AddedIn: 1, Type: types.Type{Kind: types.KindLongBlob}}},
		Indexes: []record.Index{{Name: "PRIMARY", Unique: true, Parts: []record.Part{{Column: 1}}}}}
	l, err := event.NewLayout(def, event.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// describe says what a change of a row is.
func describe(kind event.Type, table uint64, id, n types.Value, v types.Value) string {
	return fmt.Sprintf("%v t%d %v %v %d", kind, table, id, n, len(v.Bytes()))
}

// rowWriter writes random rows by event.Rows and remembers them.
type rowWriter struct {
	t      *testing.T
	rng    *rand.Rand
	rows   event.Rows
	c      *Cache
	tables []*event.Layout
	wrote  []string
}

// change makes a change to a random table, to the same one mostly.
func (w *rowWriter) change() {
	l := w.tables[max(0, w.rng.IntN(20)-17)]
	id, n := types.NewInt(int64(w.rng.IntN(1000))), types.NewInt(w.rng.Int64N(1000))
	size := [...]int{10, 200, 200, 3000, 100_000}[w.rng.IntN(5)]
	v := types.NewBytes([]byte(strings.Repeat("x", w.rng.IntN(size))))
	var err error
	kind := event.TypeWriteRows + event.Type(max(0, w.rng.IntN(12)-9))
	switch kind {
	case event.TypeWriteRows:
		err = w.rows.Insert(l, []types.Value{id, n, v})
		w.wrote = append(w.wrote, describe(kind, l.Table().ID, id, n, v))
	case event.TypeUpdateRows:
		err = w.rows.Update(l, []types.Value{id, types.Null, types.Null}, []record.Change{{Column: 1, Value: n}, {Column: 2, Value: v}})
		w.wrote = append(w.wrote, describe(kind, l.Table().ID, id, n, v))
	case event.TypeDeleteRows:
		err = w.rows.Delete(l, []types.Value{id, n, v})
		w.wrote = append(w.wrote, describe(kind, l.Table().ID, id, types.Null, types.Null))
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// read decodes the events of a frame.
func (w *rowWriter) read(events []byte) (all []string) {
	w.t.Helper()
	r := event.NewReader(events)
	var e event.Event
	var rows event.RowReader
	var open *event.Layout
	for {
		more, err := r.Next(&e)
		if err != nil {
			w.t.Fatal(err)
		}
		if !more {
			break
		}
		id, err := e.TableID()
		if err != nil {
			w.t.Fatal(err)
		}
		if e.Type == event.TypeTableMap {
			if open != nil {
				w.t.Fatal("a table map before the end of the last one's rows")
			}
			if open = w.tables[id-1]; !open.Matches(&e) {
				w.t.Fatal("a table map of another table")
			}
			continue
		}
		if open == nil {
			w.t.Fatal("rows without a table map")
		}
		if err := open.Read(&e, &rows); err != nil {
			w.t.Fatal(err)
		}
		for {
			more, err := rows.Next()
			if err != nil {
				w.t.Fatal(err)
			}
			if !more {
				break
			}
			key, after := rows.Before, rows.After
			if key == nil {
				key = after
			}
			if after == nil {
				after = make([]types.Value, 3)
			}
			all = append(all, describe(e.Type, id, key[0], after[1], after[2]))
		}
		if event.Closes(e.Raw) {
			open = nil
		}
	}
	if open != nil {
		w.t.Fatal("a frame ends within a statement")
	}
	return all
}

// Whatever tables, statements and savepoints there are, the frames give row by row what was
// written, each of them alone.
func TestRowsInFrames(t *testing.T) {
	for seed := range race.Fewer(uint64(12), 3) {
		rig(t, seed, func(disk *simfile.FS, opt Options) {
			rng := rand.New(rand.NewPCG(seed, 6))
			g := newGroup(t, 1+rng.Int64N(2<<20))
			opt.Large = g
			w := &rowWriter{t: t, rng: rng, c: New(opt), tables: []*event.Layout{tableOf(t, 1), tableOf(t, 2), tableOf(t, 3)}}
			w.rows.Reset(w.c)
			type savepoint struct {
				mark Mark
				rows int
			}
			var savepoints []savepoint
			for w.c.Size() < 4<<20 {
				w.rows.Begin(99)
				begin := savepoint{w.c.Mark(), len(w.wrote)}
				if rng.IntN(20) == 0 {
					savepoints = append(savepoints, begin)
				}
				for range rng.IntN([...]int{3, 30, 300}[rng.IntN(3)]) {
					w.change()
				}
				back := begin
				switch p := rng.IntN(40); {
				case p > 2:
					if err := w.rows.End(); err != nil {
						t.Fatal(err)
					}
					continue
				case p == 0 && len(savepoints) > 0:
					i := rng.IntN(len(savepoints))
					back = savepoints[i]
					savepoints = savepoints[:i+1]
				}
				w.rows.Discard()
				w.c.Truncate(back.mark)
				w.wrote = w.wrote[:back.rows]
			}
			checkRows(t, disk, w)
			if err := w.c.Close(); err != nil {
				t.Fatal(err)
			}
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// checkRows seals the body and reads it.
func checkRows(t *testing.T, disk *simfile.FS, w *rowWriter) {
	t.Helper()
	b, err := w.c.Seal()
	if err != nil {
		t.Fatal(err)
	}
	l := b.Finish()
	if s := b.Status(); s.Frames < 5 || s.Frames > 20 {
		t.Fatalf("%d frames of %d bytes", s.Frames, s.Plain)
	}
	f, err := disk.Open(b.Name, file.OpenOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	z, err := body.NewDecoder()
	if err != nil {
		t.Fatal(err)
	}
	r := body.NewReader(f, &l, z)
	rest := w.wrote
	for {
		_, events, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got := w.read(events)
		for i := range got {
			if len(rest) <= i || got[i] != rest[i] {
				t.Fatalf("row %s is none that was written", got[i])
			}
		}
		rest = rest[len(got):]
	}
	if len(rest) > 0 {
		t.Fatalf("%d rows are missing", len(rest))
	}
}
