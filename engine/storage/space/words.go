package space

import (
	"fmt"

	"github.com/triremedb/trireme/engine/storage/mtr"
)

// Words is the number of 8-byte words on page 0 that belong to who owns the
// tablespace; they are zero at first.
const Words = 8

const offWords = 128

// Word reads a word.
func (s *Space) Word(i int) (uint64, error) {
	if i < 0 || i >= Words {
		panic(fmt.Sprintf("space: word %d", i))
	}
	m := mtr.New(s.reg.pool)
	m.BeginRead()
	defer m.Commit()
	p, err := m.Get(s.ID(0), mtr.S)
	if err != nil {
		return 0, err
	}
	return le.Uint64(p.Data[offWords+8*i:]), nil
}

// RaiseWords makes words greater: each becomes the greater of what it is and what
// is given. It latches page 0 like an allocation, in the caller's
// mini-transaction, and fails before it changes anything.
func (s *Space) RaiseWords(m *mtr.Mtr, words []uint64) error {
	p, err := m.Get(s.ID(0), mtr.X)
	if err != nil {
		return err
	}
	for i, v := range words {
		if v > le.Uint64(p.Data[offWords+8*i:]) {
			m.WriteU64(p, offWords+8*i, v)
		}
	}
	return nil
}
