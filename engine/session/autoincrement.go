package session

import "github.com/triremedb/trireme/engine/types"

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
	switch {
	case a.first != 0:
		row[t.info.auto] = autoValue(t, a.first)
		a.first = 0
	case a.increment != 1:
		tbl := t.open.Table()
		offset := a.offset
		if offset > a.increment {
			offset = 1 // as MySQL ignores it
		}
		for {
			from := tbl.NextAuto()
			v := offset
			if from > offset {
				v = offset + (from-offset+a.increment-1)/a.increment*a.increment
			}
			if got := tbl.ReserveAuto(v - from + 1); got <= v && v < got+(v-from+1) {
				row[t.info.auto] = autoValue(t, v)
				break
			}
		}
	case a.block > 1:
		if a.left == 0 {
			a.next1, a.left = t.open.Table().ReserveAuto(a.block), a.block
		}
		if a.next1 != 0 {
			row[t.info.auto] = autoValue(t, a.next1)
		}
		a.next1++
		a.left--
	default:
		return nil
	}
	v, err := s.toColumn(t.info, t.info.auto, row[t.info.auto], nil, false)
	if err != nil {
		return newError(1467, "HY000", "Failed to read auto-increment value from storage engine")
	}
	row[t.info.auto] = v
	return nil
}

func autoValue(t *target, v uint64) types.Value {
	if t.info.types[t.info.auto].Unsigned {
		return types.NewUint(v)
	}
	return types.NewInt(int64(v))
}
