package table

import (
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/types"
)

// rowGatherer holds the rows of a leaf that a scan has found and not decoded yet:
// they are decoded a column at a time, while the leaf is latched.
type rowGatherer struct {
	external []int // wanted columns whose values can lie off-page
	keyed    bool  // the rows' keys are needed
	rows     []record.Row
	keys     []byte // of rows, where the leaf has a prefix
	versions []byte // of rows whose version is not the one in the leaf
}

// versionBytes is how many bytes of older versions are gathered before they are
// decoded.
const versionBytes = 64 << 10

func (g *rowGatherer) start(t *Table, r *Range) {
	g.external, g.keyed = g.external[:0], r.Keys
	for _, c := range r.Columns {
		g.keyed = g.keyed || t.touches[0][c]
		if t.Schema.MayBeExternal[c] {
			g.external = append(g.external, c)
		}
	}
	g.reset()
}

func (g *rowGatherer) reset() {
	g.rows, g.keys, g.versions = g.rows[:0], g.keys[:0], g.versions[:0]
}

// readRows is readLeaf for the clustered index.
func (s *Scanner) readRows(batch *types.Batch) (stop bool, err error) {
	c, g := &s.w.look, &s.gather
	step, end := 1, c.LeafLen()
	if s.r.Backward {
		step, end = -1, -1
	}
	inside := s.leafInside(c.Pos(), end-step)
	below := s.w.e.Trx.VisibleBelow()
	prefix := c.Prefix()
	last := -1
	for i := c.Pos(); i != end; i += step {
		if len(g.rows) >= batch.Room() {
			break
		}
		suffix, flags, value := c.At(i)
		if !inside {
			s.row = append(append(s.row[:0], prefix...), suffix...)
			if s.beyond(s.row) {
				s.state, stop = scanEnd, true
				break
			}
		}
		last = i
		if len(value) < record.HeaderSize || record.TrxID(value) >= below {
			if value, err = s.gatherVersion(batch, value, flags); err != nil {
				g.reset()
				return true, err
			}
			if value == nil {
				continue
			}
		} else if flags&record.FlagDeleted != 0 {
			continue
		}
		key := suffix
		if g.keyed && len(prefix) > 0 {
			from := len(g.keys)
			g.keys = append(append(g.keys, prefix...), suffix...)
			key = g.keys[from:len(g.keys):len(g.keys)]
		}
		row, err := s.t.Schema.Row(key, value)
		if err != nil {
			g.reset()
			return true, err
		}
		if g.isExternal(&row) {
			s.pending.is, stop = true, true
			s.pending.key = append(append(s.pending.key[:0], prefix...), suffix...)
			s.pending.value = append(s.pending.value[:0], value...)
			break
		}
		g.rows = append(g.rows, row)
	}
	if last >= 0 {
		s.last = c.AppendKey(s.last[:0], last)
		if s.state != scanEnd {
			s.state = scanOn
		}
	}
	err = s.decodeRows(batch)
	return stop || batch.Full() || err != nil, err
}

func (g *rowGatherer) isExternal(row *record.Row) bool {
	for _, c := range g.external {
		if row.IsExternal(c) {
			return true
		}
	}
	return false
}

// gatherVersion returns the version of a row that the snapshot sees, nil if it sees
// none, in memory that stays as it is until the rows are decoded.
func (s *Scanner) gatherVersion(batch *types.Batch, value []byte, flags byte) ([]byte, error) {
	g := &s.gather
	version, deleted, err := s.w.visible(s.t, s.snap, value, flags)
	if err != nil || deleted {
		return nil, err
	}
	if &version[0] == &value[0] {
		return value, nil
	}
	if len(g.versions) >= versionBytes {
		if err := s.decodeRows(batch); err != nil {
			return nil, err
		}
	}
	from := len(g.versions)
	g.versions = append(g.versions, version...)
	return g.versions[from:len(g.versions):len(g.versions)], nil
}

// decodeRows appends the gathered rows to the batch.
func (s *Scanner) decodeRows(batch *types.Batch) error {
	g := &s.gather
	defer g.reset()
	for n, col := range s.r.Columns {
		if _, err := record.AppendColumn(&batch.Vecs[n], g.rows, col); err != nil {
			return err
		}
	}
	batch.SetLen(batch.Len() + len(g.rows))
	if s.r.Keys {
		for i := range g.rows {
			s.noteKey(g.rows[i].Key)
		}
	}
	return nil
}
