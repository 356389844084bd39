package record

import "github.com/triremedb/trireme/engine/types"

// RowSize is what a row without off-page values counts for towards MaxInlineRow,
// in bytes: the value that AppendRow would build, and what the key takes beyond
// the room that every key has.
func (s *Schema) RowSize(values []types.Value) int {
	size := s.current.data
	for i := range s.current.columns {
		if s.current.columns[i].kind == locVariable {
			size += len(values[i].Bytes())
		}
	}
	pk := s.Keys[0]
	if !pk.checkSize || size+s.boundOf(pk, values, nil) <= MaxEntry {
		return size
	}
	key, err := s.AppendRowKey(nil, values)
	if err != nil {
		return size // inserting the row meets the same error
	}
	return size + max(0, len(key)-freeKey)
}

// UpdatedSize is RowSize of the row that AppendUpdated would build.
func (s *Schema) UpdatedSize(old Row, changes []Change) (int, error) {
	size := s.current.data + max(0, len(old.Key)-freeKey)
	for i := range s.current.columns {
		if s.current.columns[i].kind != locVariable {
			continue
		}
		if c := changeOf(changes, i); c != nil {
			size += max(len(c.External), len(c.Value.Bytes()))
			continue
		}
		f, err := old.Field(i)
		if err != nil {
			return 0, err
		}
		size += len(f.Bytes)
	}
	return size, nil
}
