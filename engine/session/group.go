package session

import "github.com/triremedb/trireme/engine/types"

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

// Bounds of a group: rows, and their values in all.
const (
	groupRows   = 64
	groupValues = 4096
)

// start prepares for rows of so many columns.
func (g *rowGroup) start(width int, several bool) {
	g.width, g.most = width, 0
	if several {
		g.most = min(groupRows, groupValues/width)
	}
	if need := max(g.most, 1) * width; cap(g.memory) < need {
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
	clear(g.memory)
	g.empty()
}

// mayGroup reports whether rows are added several at a time: if none of them is passed over
// or changes another, and nothing is worked out from one.
func (n *inserter) mayGroup() bool {
	p, s := n.p, n.s
	return n.several && !p.ignore && !p.replace && len(p.update) == 0 && !p.info.evaluates() && (len(p.info.parents) == 0 || !s.opt.foreignKeys)
}

// grouped reports whether a row may wait for others.
func (n *inserter) grouped(row []types.Value) bool {
	return n.s.work.group.most > 1 && (!n.takesAuto(row) || n.step.reserves())
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
	n.out.AffectedRows += uint64(len(g.rows))
	for i, row := range g.rows {
		n.noteID(row, g.made[i])
	}
	g.empty()
	return s.interrupted()
}
