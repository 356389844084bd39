package exec

import (
	"bytes"
	"sort"

	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/types"
)

// memTable is a table of the fake storage: rows in memory, indexes made when read.
type memTable struct {
	def  *record.Table
	keys *record.Schema
	rows [][]types.Value
}

// memStorage is a fake Storage; it finds tables by name.
type memStorage struct {
	tables map[string]*memTable
	locked int // rows given by locking scans and not unlocked
}

func (s *memStorage) NewScan() Scan { return &memScan{s: s} }

func (s *memStorage) Get(t *plan.Table, key []byte, l *plan.Lock, columns []int, b *types.Batch) (bool, error) {
	m := s.tables[t.Def.Name]
	for _, row := range m.rows {
		if bytes.Equal(m.key(0, row), key) {
			for i, c := range columns {
				b.Vecs[i].Append(row[c])
			}
			b.EndRow()
			if l != nil {
				s.locked++
			}
			return true, nil
		}
	}
	return false, nil
}

// key is a row's entry in an index: the index's parts and then the clustered key.
func (m *memTable) key(index int, row []types.Value) []byte {
	var values []types.Value
	k := m.keys.Keys[index]
	for _, p := range k.Parts {
		values = append(values, row[p.Column])
	}
	key := k.AppendKey(nil, values...)
	if index > 0 {
		key = append(key, m.key(0, row)...)
	}
	return key
}

type memScan struct {
	s    *memStorage
	m    *memTable
	r    table.Range
	rows [][]types.Value
	last [][]types.Value
}

func (c *memScan) Start(t *plan.Table, r table.Range) error {
	c.m, c.r, c.rows, c.last = c.s.tables[t.Def.Name], r, nil, nil
	for _, row := range c.m.rows {
		key := c.m.key(r.Index, row)
		low, high := bytes.Compare(cut(key, r.Low), r.Low), bytes.Compare(cut(key, r.High), r.High)
		if r.Low != nil && (low < 0 || low == 0 && r.LowOpen) || r.High != nil && (high > 0 || high == 0 && r.HighOpen) {
			continue
		}
		c.rows = append(c.rows, row)
	}
	sort.SliceStable(c.rows, func(i, j int) bool {
		d := bytes.Compare(c.m.key(r.Index, c.rows[i]), c.m.key(r.Index, c.rows[j]))
		if r.Backward {
			d = -d
		}
		return d < 0
	})
	return nil
}

func cut(key, bound []byte) []byte { return key[:min(len(key), len(bound))] }

func (c *memScan) Next(b *types.Batch) (bool, error) {
	b.Reset()
	c.last = c.last[:0]
	for len(c.rows) > 0 && b.Len() < 3 {
		row := c.rows[0]
		c.rows = c.rows[1:]
		for i, col := range c.r.Columns {
			b.Vecs[i].Append(row[col])
		}
		b.EndRow()
		if c.r.Wanted != nil {
			if want, err := c.wanted(b); err != nil || !want {
				b.Truncate(b.Len() - 1)
				if err != nil {
					return false, err
				}
				continue
			}
		}
		c.last = append(c.last, row)
		if c.r.Locking {
			c.s.locked++
		}
	}
	return len(c.rows) > 0, nil
}

func (c *memScan) wanted(b *types.Batch) (bool, error) {
	one := &types.Batch{Vecs: make([]types.Vector, len(b.Vecs))}
	for i := range b.Vecs {
		one.Vecs[i].Init(b.Vecs[i].Type())
	}
	one.AppendFrom(b, b.Len()-1)
	return c.r.Wanted(one)
}

func (c *memScan) Key(i int) []byte { return c.m.key(0, c.last[i]) }
func (c *memScan) Unlock(int)       { c.s.locked-- }
