package crashtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// row is a row of the test table but for its key.
type row struct {
	name string
	code int64 // unique; noCode: NULL
	val  int64
	bio  string
}

const noCode = -1

func (r row) String() string {
	bio := r.bio
	if len(bio) > 12 {
		bio = fmt.Sprintf("%s..%d", bio[:12], len(bio))
	}
	return fmt.Sprintf("%q %d %d %q", r.name, r.code, r.val, bio)
}

// rows is the content of the tables: by table, then by primary key.
type rows []map[int64]row

func newRows(tables int) rows {
	r := make(rows, tables)
	for i := range r {
		r[i] = map[int64]row{}
	}
	return r
}

func (r rows) clone() rows {
	c := make(rows, len(r))
	for i := range r {
		c[i] = maps.Clone(r[i])
	}
	return c
}

// change is a row's new content in a transaction, nil if it is deleted.
type change struct {
	table int
	id    int64
	row   *row
}

func (r rows) apply(changes []change) {
	for _, c := range changes {
		if c.row == nil {
			delete(r[c.table], c.id)
		} else {
			r[c.table][c.id] = *c.row
		}
	}
}

// model knows what every CSN should look like.
type model struct {
	base    rows
	baseCSN uint64
	commits [][]change // of baseCSN+1, baseCSN+2, ...
	now     rows       // after everything in the log, what is in doubt included
	durable uint64     // a CSN that must survive
}

func newModel() *model {
	return &model{base: newRows(tables + ddlTables), now: newRows(tables + ddlTables)}
}

// commit notes the changes of the next CSN, which it returns.
func (m *model) commit(changes []change) uint64 {
	m.commits = append(m.commits, changes)
	return m.last()
}

// last is the last CSN.
func (m *model) last() uint64 { return m.baseCSN + uint64(len(m.commits)) }

// at returns the content as of a CSN.
func (m *model) at(csn uint64) rows {
	r := m.base.clone()
	for _, c := range m.commits[:csn-m.baseCSN] {
		r.apply(c)
	}
	return r
}

// restart forgets what a crash has undone, and returns it: the last CSN is csn now.
func (m *model) restart(csn uint64) (lost [][]change) {
	lost = m.commits[csn-m.baseCSN:]
	m.base = m.at(csn)
	m.baseCSN, m.commits, m.now = csn, nil, m.base.clone()
	m.durable = csn
	return lost
}

// diff describes how got differs from want.
func diff(got, want map[int64]row) string {
	var b strings.Builder
	keys := map[int64]bool{}
	for id := range got {
		keys[id] = true
	}
	for id := range want {
		keys[id] = true
	}
	for _, id := range slices.Sorted(maps.Keys(keys)) {
		g, there := got[id]
		w, expected := want[id]
		switch {
		case !there:
			fmt.Fprintf(&b, "  %d is missing: want %v\n", id, w)
		case !expected:
			fmt.Fprintf(&b, "  %d should not be there: %v\n", id, g)
		case g != w:
			fmt.Fprintf(&b, "  %d is %v, want %v\n", id, g, w)
		}
	}
	return b.String()
}
