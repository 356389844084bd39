package session

import (
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/types"
)

// rowGroup holds back rows of an INSERT, which are added in one go then. None is held back
// that could see one before it: an expression over rows, a made-up value that has to
// be above given ones.
type rowGroup struct {
	most   int // rows; 0: each is added alone
	rows   [][]types.Value
	made   []bool // by row: it has a new AUTO_INCREMENT value
	warned []int  // by row: conditions of the statement up to it

	width  int
	memory []types.Value
}

// Bounds of a group: rows, and their values in all, for which a session keeps 32 KiB.
const (
	groupRows   = 64
	groupValues = 1024
)

// start prepares for rows of so many columns.
func (g *rowGroup) start(width int) {
	g.width, g.most = width, min(groupRows, groupValues/width)
	if need := g.most * width; cap(g.memory) < need {
		g.memory = make([]types.Value, need)
	}
	g.empty()
}

// blank returns the memory of the next row.
func (g *rowGroup) blank() []types.Value {
	at := len(g.rows) * g.width
	row := g.memory[at : at+g.width : at+g.width]
	clear(row)
	return row
}

func (g *rowGroup) add(row []types.Value, made bool, warned int) {
	g.rows, g.made, g.warned = append(g.rows, row), append(g.made, made), append(g.warned, warned)
}

func (g *rowGroup) empty() { g.rows, g.made, g.warned = g.rows[:0], g.made[:0], g.warned[:0] }

// release gives up the values.
func (g *rowGroup) release() {
	if g.most > 0 {
		clear(g.memory)
		g.empty()
		g.most = 0
	}
}

// startGroup prepares for rows that may wait for each other: none of which is passed over
// or changes another, and from none of which anything is worked out.
func (n *inserter) startGroup() {
	p, s := n.p, n.s
	if n.several && !p.ignore && !p.replace && len(p.update) == 0 && !p.refers && !p.info.evaluates() &&
		(len(p.info.parents) == 0 || !s.opt.foreignKeys) && len(p.info.columns) <= groupValues/2 {
		s.work.group.start(len(p.info.columns))
	}
}

// fresh reports whether no row waits: memory for those before the next one may be given up.
func (n *inserter) fresh() bool { return len(n.s.work.group.rows) == 0 }

// next returns the memory of the next row and counts it; m is the scratch memory that is not
// for rows.
func (n *inserter) next(m expr.Mark) []types.Value {
	s, g := n.s, &n.s.work.group
	if n.fresh() {
		s.x.Release(m)
	}
	if g.most == 0 {
		return n.blank()
	}
	n.records++
	s.work.store.Row = n.records
	if n.fresh() && n.records > 1 {
		s.work.store.Reset()
	}
	return g.blank()
}

// put adds a row, at once or with those that follow. err says that it could not be made.
func (n *inserter) put(row []types.Value, err error) error {
	s, g := n.s, &n.s.work.group
	if err == nil && g.most > 0 {
		made := n.takesAuto(row)
		if !made || n.step.reserves() {
			if made {
				err = n.step.next(s, n.t, row)
			}
			if err == nil {
				g.add(row, made, s.diag.count())
				if len(g.rows) == g.most || s.x.Held() {
					err = n.addGroup()
				}
				return err
			}
		}
	}
	if earlier := n.addGroup(); earlier != nil {
		return earlier
	}
	if err != nil {
		if n.ignored(err) {
			return nil
		}
		return err
	}
	return n.add(row)
}

// addGroup adds the rows that wait.
func (n *inserter) addGroup() error {
	s, g := n.s, &n.s.work.group
	if len(g.rows) == 0 {
		return nil
	}
	failed, err := s.txn.InsertRows(n.t.open, g.rows, s.opt.sqlMode&modeNoAutoValueOnZero != 0)
	if err != nil {
		s.diag.cut(g.warned[failed])
		return duplicateError(err, n.t.info, g.rows[failed])
	}
	s.trx.wrote = true
	n.changed = true
	n.out.AffectedRows += uint64(len(g.rows))
	for i, row := range g.rows {
		n.noteID(row, g.made[i])
	}
	g.empty()
	return s.interrupted()
}
