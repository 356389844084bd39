package temptable

import (
	"encoding/binary"

	"github.com/triremedb/trireme/engine/types"
)

// sortBound is the last of the first rows that a sorter with a limit has seen: what
// is not below it is not wanted.
type sortBound struct {
	is   bool
	null bool   // the first key column is NULL
	lead uint64 // else, and if it is of fixed size, its word
	row  *types.Batch
}

// prune throws away the rows beyond the limit and sets the bound. Errors: those of a statement that is to end.
func (s *Sorter) prune() error {
	s.sort()
	if s.err != nil {
		return s.err
	}
	n := int(s.limit)
	var last uint32
	if s.word {
		last = s.pruneWords(n)
	} else {
		s.items = s.items[:n]
		last = s.items[n-1].row
	}
	s.bound.is = true
	seg, at := s.rows.segs[last>>segmentBits], int(last&segmentMask)
	if !s.word {
		if s.bound.row == nil {
			s.bound.row = &types.Batch{Vecs: make([]types.Vector, len(s.types))}
			for i, t := range s.types {
				s.bound.row.Vecs[i].Init(t)
			}
		}
		s.bound.row.Reset()
		s.bound.row.AppendFrom(seg, at)
	}
	v := &seg.Vecs[s.keys[0].Column]
	s.bound.null = v.IsNull(at)
	if !s.bound.null && s.kinds[0].fixed() {
		s.bound.lead = appendWords(s.leads[:0], v, s.kinds[0], s.keys[0].Desc, []uint32{uint32(at)})[0]
	}
	s.compact()
	return nil
}

// pruneWords cuts items and NULLs down to n together, and returns the last row.
func (s *Sorter) pruneWords(n int) uint32 {
	if s.keys[0].Desc {
		if len(s.items) >= n {
			s.items, s.nulls = s.items[:n], s.nulls[:0]
			return s.items[n-1].row
		}
		s.nulls = s.nulls[:n-len(s.items)]
		return s.nulls[len(s.nulls)-1]
	}
	if len(s.nulls) >= n {
		s.items, s.nulls = s.items[:0], s.nulls[:n]
		return s.nulls[n-1]
	}
	s.items = s.items[:n-len(s.nulls)]
	return s.items[len(s.items)-1].row
}

// compact moves the rows and keys that are left together.
func (s *Sorter) compact() {
	ids := make([]uint32, 0, len(s.items)+len(s.nulls))
	for _, it := range s.items {
		ids = append(ids, it.row)
	}
	ids = append(ids, s.nulls...)
	tmp := types.NewBatch(s.types)
	moved := make([]uint32, 0, len(ids))
	for at := 0; at < len(ids); {
		tmp.Reset()
		n := 0
		for ; at < len(ids) && !tmp.Full(); at++ {
			tmp.AppendFrom(s.rows.segs[ids[at]>>segmentBits], int(ids[at]&segmentMask))
			n++
		}
		moved = s.other.AppendIDs(tmp, nil, moved)
	}
	s.rows, s.other = s.other, s.rows
	s.other.Reset()
	old := s.chunks
	if !s.word {
		s.chunks, s.heads, s.owed = nil, false, 0
	}
	for i := range s.items {
		it := &s.items[i]
		it.row = moved[i]
		if !s.word {
			c := old[it.key/sortChunk][it.key%sortChunk:]
			size := binary.LittleEndian.Uint32(c)
			n, whole := size&^headBit, size&headBit == 0
			if !whole {
				s.owed += s.keySize(s.rows.segs[it.row>>segmentBits], int(it.row&segmentMask))
			}
			it.key = s.keepKey(c[4:4+n], whole)
		}
	}
	copy(s.nulls, moved[len(s.items):])
}

// below selects the rows that are below the bound.
func (s *Sorter) below(b *types.Batch, sel []uint32) []uint32 {
	v := &b.Vecs[s.keys[0].Column]
	desc := s.keys[0].Desc
	kept := s.kept[:0]
	switch {
	case !s.kinds[0].fixed():
		return s.belowKey(b, sel)
	case !v.HasNulls() && !s.bound.null:
		s.leads = appendWords(s.leads[:0], v, s.kinds[0], desc, sel)
		lead := s.bound.lead
		if !s.word {
			lead++ // ties are decided by the rest of the key
			if lead == 0 {
				return s.belowKey(b, sel)
			}
		}
		for k, w := range s.leads {
			if w < lead {
				kept = append(kept, sel[k])
			}
		}
	case s.word:
		s.leads = appendWords(s.leads[:0], v, s.kinds[0], desc, sel)
		for k, i := range sel {
			null := v.IsNull(int(i))
			if null != s.bound.null && null != desc || !null && !s.bound.null && s.leads[k] < s.bound.lead {
				kept = append(kept, i)
			}
		}
	default:
		return s.belowKey(b, sel)
	}
	s.kept = kept
	if s.word || len(kept) == 0 {
		return kept
	}
	return s.belowKey(b, kept)
}

// belowKey selects the rows that are below the bound's row. They are compared as they
// are: the first characters tell most of them apart, where a key takes all of them. sel
// may be s.kept.
func (s *Sorter) belowKey(b *types.Batch, sel []uint32) []uint32 {
	kept := s.kept[:0]
	for _, i := range sel {
		if s.compareRows(b, int(i), s.bound.row, 0) < 0 {
			kept = append(kept, i)
		}
	}
	s.kept = kept
	return kept
}
