package storage

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
)

// ErrBusy says that commits kept coming while something was read that knows no
// snapshots.
var ErrBusy = errors.New("storage: commits go on; try again when there are fewer")

// countersTries is how often CounterHash looks for a moment without commits.
const countersTries = 20

// CounterHash is SHA-256 over the AUTO_INCREMENT counters and hidden row ids of all
// tables, as the commits up to now have left them, in the order of the tables'
// numbers, and the CSN and position at which they were so. It is equal on all members
// there, but for one that has crashed in the commit of an entry of very many tables and has
// not applied it again. (Counters have no versions, so that StateHash, which is as of any CSN, has to
// leave them out.) Error: [ErrBusy], those of reading.
func (e *Engine) CounterHash() (sum [sha256.Size]byte, csn uint64, pos trx.Position, err error) {
	for range countersTries {
		csn, pos = e.Trx.Applied()
		if sum, err = e.hashCounters(); err != nil {
			return sum, 0, pos, err
		}
		if now, at := e.Trx.Applied(); now == csn && at == pos {
			return sum, csn, pos, nil
		}
		e.opt.Env.Yield()
	}
	return sum, 0, pos, ErrBusy
}

func (e *Engine) hashCounters() (sum [sha256.Size]byte, err error) {
	ids, err := e.userTables()
	if err != nil {
		return sum, err
	}
	slices.Sort(ids)
	h := sha256.New()
	for _, id := range ids {
		handle, err := e.Catalog.OpenTableByID(nil, id)
		if errors.Is(err, table.ErrNoTable) {
			continue // dropped meanwhile: the CSN has changed
		}
		if err != nil {
			return sum, err
		}
		auto, row, err := handle.Table().Counters()
		handle.Release()
		if err != nil {
			return sum, err
		}
		for _, v := range []uint64{id, auto, row} {
			h.Write(binary.LittleEndian.AppendUint64(nil, v))
		}
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}
