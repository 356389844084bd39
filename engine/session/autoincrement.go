package session

import (
	"math"

	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/types"
)

// autoStep gives AUTO_INCREMENT values where the engine's next one will not do: with an
// increment or offset, after SET insert_id, and for the rows of one statement, whose
// values are consecutive.
type autoStep struct {
	increment, offset uint64
	first             uint64 // SET insert_id
	next1             uint64 // the next value of a reserved block
	left              uint64
	block             uint64 // to reserve at the first row
}

// start prepares for a statement. all says that each of its rows takes a new value, if the
// column is given at all.
func (a *autoStep) start(s *Session, p *insertPlan, rows int, all bool) {
	*a = autoStep{}
	if p.info.auto < 0 {
		return
	}
	a.increment = s.value(varAutoIncrement).n
	a.offset = s.value(varAutoOffset).n
	a.first = s.opt.insertID
	if p.rows != nil && rows > 1 && (all || !p.given[p.info.auto]) {
		a.block = uint64(rows)
	}
}

// reserves reports whether values come from a block that is reserved for the statement.
func (a *autoStep) reserves() bool { return a.first == 0 && a.increment == 1 && a.block > 1 }

// next puts the row's value in, or leaves it to the engine.
func (a *autoStep) next(s *Session, t *target, row []types.Value) error {
	var v uint64
	given := a.first != 0
	switch {
	case given:
		v, a.first = a.first, 0
	case a.increment != 1:
		tbl := t.open.Table()
		offset := a.offset
		if offset > a.increment {
			offset = 1 // as MySQL ignores it
		}
		for {
			from := tbl.NextAuto()
			v = offset
			if from > offset {
				v = offset + ((from-offset-1)/a.increment+1)*a.increment
			}
			if v < from {
				return errNoMoreAuto() // it is beyond what there is
			}
			if got := tbl.ReserveAuto(v - from + 1); got <= v && v-got < v-from+1 {
				break
			}
		}
	case a.block > 1:
		if a.left == 0 {
			a.next1, a.left = t.open.Table().ReserveAuto(a.block), a.block
		}
		if v = a.next1; v != table.NoMoreAuto {
			a.next1++
		}
		a.left--
	default:
		return nil
	}
	unsigned := t.info.types[t.info.auto].Unsigned
	if v == table.NoMoreAuto && !given || !unsigned && v > math.MaxInt64 {
		return errNoMoreAuto()
	}
	value := types.NewUint(v)
	if !unsigned {
		value = types.NewInt(int64(v))
	}
	value, err := s.toColumn(t.info, t.info.auto, value, nil, false)
	if err != nil {
		return errNoMoreAuto()
	}
	row[t.info.auto] = value
	return nil
}

// errNoMoreAuto is ER_AUTOINC_READ_FAILED.
func errNoMoreAuto() error {
	return sqlerr.New(sqlerr.AutoIncReadFailed)
}
