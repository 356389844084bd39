package catalog

import (
	"slices"
	"strconv"
	"strings"

	"github.com/triremedb/trireme/engine/storage/record"
)

// A constraint that comes to a large table is in force as soon as it is there: nobody can write a row
// that does not satisfy it. The rows from before are read after that, beside everybody. Until
// they have been, the constraint has a mark among the table's options, so that it can be
// taken back, with an index that came with it, if a row does not satisfy it or the statement comes to no end.
//
// A mark's name is attrUnverified, a kind and the name of constraint or index. Its value
// is what is to be done and the tag of the statement.
const (
	unverifiedCheck = attrUnverified + "check."
	unverifiedKey   = attrUnverified + "fk."
	unverifiedIndex = attrUnverified + "index."
)

const (
	markDrop    = "drop "
	markRelease = "release " // a check that was there, NOT ENFORCED
)

// OnlyConstrains reports whether a change adds or enforces constraints, with indexes perhaps, and
// does nothing else.
func (ch *Change) OnlyConstrains() bool {
	if ch.Rebuild || len(ch.Checks)+len(ch.ForeignKeys) == 0 {
		return false
	}
	t := ch.Constrained(ch.Table, "")
	TakeBack(t, "")
	for _, counter := range []string{attrNext, attrNextFK} {
		setOption(t, counter, ch.Old.Options[counter])
	}
	return sameDefinition(ch.Old, t)
}

// Follows reports whether a definition is that from before the change, with its indexes: nobody has
// changed it meanwhile.
func (ch *Change) Follows(now *record.Table) bool {
	t := now.Clone()
	t.Indexes = slices.DeleteFunc(t.Indexes, func(ix record.Index) bool {
		return slices.ContainsFunc(ch.Add, func(a record.Index) bool { return a.Name == ix.Name })
	})
	return now.ID == ch.Old.ID && len(t.Indexes)+len(ch.Add) == len(now.Indexes) && sameDefinition(ch.Old, t)
}

// SameNames reports whether what new foreign keys and indexes name is called now as it was in the
// statement. What a check names cannot get another name.
func (ch *Change) SameNames(now *record.Table) bool {
	called := func(id uint32) bool {
		c := now.Column(id)
		return c != nil && c.Name == ch.Table.Column(id).Name
	}
	for i := range ch.Add {
		if slices.ContainsFunc(ch.Add[i].Parts, func(p record.Part) bool { return !called(p.Column) }) {
			return false
		}
	}
	for _, name := range ch.ForeignKeys {
		i, j := findForeignKey(ch.Table, name), findForeignKey(now, name)
		if i < 0 || j < 0 {
			return false
		}
		was, is := &ch.Table.ForeignKeys[i], &now.ForeignKeys[j]
		if was.RefSchema != is.RefSchema || was.RefTable != is.RefTable || !slices.Equal(was.RefColumns, is.RefColumns) ||
			slices.ContainsFunc(is.Columns, func(id uint32) bool { return !called(id) }) {
			return false
		}
	}
	return true
}

// Constrained is a definition with the constraints of the change: marked, and its indexes too, as what
// rows may not satisfy. The tag is the statement's own.
func (ch *Change) Constrained(t *record.Table, tag string) *record.Table {
	t = t.Clone()
	before := Checks(ch.Old)
	for _, c := range ch.Checks {
		what := markDrop
		if slices.ContainsFunc(before, func(b Check) bool { return b.Name == c.Name }) {
			what = markRelease
		}
		setCheck(t, c)
		setOption(t, unverifiedCheck+c.Name, what+tag)
	}
	for i := range ch.Table.ForeignKeys {
		k := ch.Table.ForeignKeys[i]
		if !slices.Contains(ch.ForeignKeys, k.Name) {
			continue
		}
		if findForeignKey(t, k.Name) < 0 {
			t.ForeignKeys = append(t.ForeignKeys, k)
		}
		setOption(t, unverifiedKey+k.Name, markDrop+tag)
	}
	for i := range ch.Add {
		setOption(t, unverifiedIndex+ch.Add[i].Name, markDrop+tag)
	}
	return t
}

// Count lets the numbers of nameless constraints go on behind those of the change, once they are there to stay.
func (ch *Change) Count(t *record.Table) {
	for _, counter := range []string{attrNext, attrNextFK} {
		was, _ := strconv.ParseUint(t.Options[counter], 10, 32)
		if n, _ := strconv.ParseUint(ch.Table.Options[counter], 10, 32); n > was {
			setOption(t, counter, ch.Table.Options[counter])
		}
	}
}

// Marks is how many marks Constrained makes.
func (ch *Change) Marks() int { return len(ch.Checks) + len(ch.ForeignKeys) + len(ch.Add) }

// Tags are those of the marks that a definition has.
func Tags(t *record.Table) (tags []string) {
	for name, v := range t.Options {
		if strings.HasPrefix(name, attrUnverified) {
			_, tag, _ := strings.Cut(v, " ")
			tags = append(tags, tag)
		}
	}
	slices.Sort(tags)
	return tags
}

// marked are the names of a statement's marks, in order.
func marked(t *record.Table, tag string) (names []string) {
	for name, v := range t.Options {
		if strings.HasPrefix(name, attrUnverified) && strings.HasSuffix(v, " "+tag) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Verify takes a statement's marks out of a definition: the rows satisfy the constraints. It
// returns how many there were.
func Verify(t *record.Table, tag string) int {
	names := marked(t, tag)
	for _, name := range names {
		delete(t.Options, name)
	}
	return len(names)
}

// TakeBack undoes what of a definition has a statement's marks.
func TakeBack(t *record.Table, tag string) {
	for _, mark := range marked(t, tag) {
		what := t.Options[mark]
		delete(t.Options, mark)
		if name, ok := strings.CutPrefix(mark, unverifiedKey); ok {
			t.ForeignKeys = slices.DeleteFunc(t.ForeignKeys, func(k record.ForeignKey) bool { return k.Name == name })
		} else if name, ok := strings.CutPrefix(mark, unverifiedIndex); ok {
			t.Indexes = slices.DeleteFunc(t.Indexes, func(ix record.Index) bool { return ix.Name == name })
		} else if name := strings.TrimPrefix(mark, unverifiedCheck); strings.HasPrefix(what, markDrop) {
			setOption(t, attrCheck+name, "")
		} else {
			release(t, name)
		}
	}
}

// release makes a check one that is NOT ENFORCED.
func release(t *record.Table, name string) {
	for _, c := range Checks(t) {
		if c.Name == name {
			c.Enforced = false
			setCheck(t, c)
		}
	}
}

// sweepMarks takes marks out of the definition that a change leads to where there is nothing to take back
// any more, or where the change itself sees to it.
func (ch *Change) sweepMarks(t *record.Table) {
	checks := Checks(t)
	for mark := range t.Options {
		var there bool
		if name, ok := strings.CutPrefix(mark, unverifiedKey); ok {
			there = findForeignKey(t, name) >= 0 && !slices.Contains(ch.ForeignKeys, name)
		} else if name, ok := strings.CutPrefix(mark, unverifiedIndex); ok {
			there = slices.ContainsFunc(t.Indexes, func(ix record.Index) bool { return ix.Name == name })
		} else if name, ok := strings.CutPrefix(mark, unverifiedCheck); ok {
			there = slices.ContainsFunc(checks, func(c Check) bool { return c.Name == name && c.Enforced && !slices.Contains(ch.Checks, c) })
		} else {
			continue
		}
		if !there {
			delete(t.Options, mark)
		}
	}
}

// moveMark lets a mark follow the name of its constraint.
func moveMark(t *record.Table, kind, from, to string) {
	mark := t.Options[kind+from]
	setOption(t, kind+from, "")
	setOption(t, kind+to, mark)
}

// forgetMarks is for a table that is made as another one: it has no rows.
func forgetMarks(t *record.Table) {
	for name := range t.Options {
		if strings.HasPrefix(name, attrUnverified) {
			delete(t.Options, name)
		}
	}
}
