package json

import "github.com/triremedb/trireme/engine/types"

func init() { types.RegisterJSON(codec{}) }

// codec serves package types.
type codec struct{}

func (codec) Parse(dst, text []byte) ([]byte, error) { return Parse(dst, text) }

func (codec) AppendText(dst, doc []byte) ([]byte, error) {
	v := Open(doc)
	if !v.Exists() {
		return dst, corrupt("no value")
	}
	return v.AppendText(dst), nil
}

func (codec) Compare(a, b []byte) int              { return Compare(Open(a), Open(b)) }
func (codec) AppendSortKey(dst, doc []byte) []byte { return Open(doc).AppendSortKey(dst) }
func (codec) Hash(seed uint64, doc []byte) uint64  { return Open(doc).Hash(seed) }
