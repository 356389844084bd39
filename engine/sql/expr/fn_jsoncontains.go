package expr

import (
	"math/bits"
	"slices"

	"github.com/triremedb/trireme/engine/types/json"
)

// A jsonComparer compares the values of documents with each other, which may take very long for one row: it counts that
// as work, and looks values up in order where there are many.
type jsonComparer struct {
	x   *Context
	err error // that the statement is to end
}

const (
	// compareWork is what comparing two values counts for, besides their bytes.
	compareWork = 16
	// manyPairs is from how many pairs of elements on it is worth to put those of one side in order.
	manyPairs = 1 << 10
	// valueBytes is what a value takes in a list.
	valueBytes = 32
)

// elements calls f with every value of a container until f returns false or the statement is to end, and reports
// whether neither happened.
func (c *jsonComparer) elements(v json.Value, f func(json.Value) bool) bool {
	for i := range v.Len() {
		if e, ok := v.Index(i); ok && (!f(e) || c.err != nil) {
			return false
		}
	}
	return true
}

// members calls f with each member of a and what b has by that name, if ok, until f returns false or the statement is to
// end, and reports whether neither happened.
func (c *jsonComparer) members(a, b json.Value, f func(v, other json.Value, ok bool) bool) bool {
	for i := range a.Len() {
		key, _ := a.Key(i)
		v, _ := a.Index(i)
		other, ok := b.Member(key)
		if c.err == nil {
			c.err = c.x.Worked(compareWork + len(key))
		}
		if c.err != nil || !f(v, other, ok) || c.err != nil {
			return false
		}
	}
	return true
}

// work counts the comparison of two values.
func (c *jsonComparer) work(a, b json.Value) bool {
	if c.err == nil {
		c.err = c.x.Worked(compareWork + min(a.Size(), b.Size()))
	}
	return c.err == nil
}

// equal reports whether two values are equal in SQL's eyes.
func (c *jsonComparer) equal(a, b json.Value) bool { return c.work(a, b) && json.Compare(a, b) == 0 }

// contains is JSON_CONTAINS: an array contains what all its candidate's elements are contained in, an object the
// members, anything else its equal.
func (c *jsonComparer) contains(target, candidate json.Value) bool {
	switch {
	case target.IsObject() && candidate.IsObject():
		return c.members(candidate, target, func(want, have json.Value, ok bool) bool { return ok && c.contains(have, want) })
	case target.IsArray() && candidate.IsArray():
		if candidate.Len() > bits.Len(uint(target.Len())) && target.Len()*candidate.Len() > manyPairs {
			return c.containsMany(target, candidate)
		}
		return c.elements(candidate, func(want json.Value) bool { return c.arrayContains(target, want) })
	case target.IsArray():
		return c.arrayContains(target, candidate)
	case target.IsContainer() || candidate.IsContainer():
		c.work(json.Value{}, json.Value{})
		return false
	}
	return c.equal(target, candidate)
}

func (c *jsonComparer) arrayContains(array, want json.Value) bool {
	return !c.elements(array, func(have json.Value) bool { return !c.contains(have, want) }) && c.err == nil
}

// containsMany is contains of two long arrays. A scalar is contained in an array if it is one of those in it, or in
// arrays in it, and so on; only what is no scalar is compared with each element.
func (c *jsonComparer) containsMany(target, candidate json.Value) bool {
	held := holding{x: c.x}
	defer held.done()
	var scalars, others []json.Value
	c.scalars(&held, &scalars, target)
	c.elements(target, func(have json.Value) bool {
		return !have.IsContainer() || c.add(&held, &others, have)
	})
	if !c.sort(scalars) {
		return false
	}
	return c.elements(candidate, func(want json.Value) bool {
		if !want.IsContainer() {
			return c.search(scalars, want)
		}
		return slices.ContainsFunc(others, func(have json.Value) bool { return c.err == nil && c.contains(have, want) })
	})
}

// scalars adds to a list those of an array and of the arrays in it.
func (c *jsonComparer) scalars(held *holding, list *[]json.Value, array json.Value) bool {
	return c.elements(array, func(e json.Value) bool {
		switch {
		case e.IsArray():
			return c.scalars(held, list, e)
		case e.IsObject():
			return true
		}
		return c.add(held, list, e)
	})
}

func (c *jsonComparer) add(held *holding, list *[]json.Value, v json.Value) bool {
	if c.err == nil {
		c.err = held.add(2 * valueBytes)
	}
	*list = append(*list, v)
	return c.err == nil
}

// sort puts values in order, and reports whether that is done.
func (c *jsonComparer) sort(list []json.Value) bool {
	slices.SortFunc(list, func(a, b json.Value) int {
		if !c.work(a, b) {
			return 0 // in any order: nobody asks any more
		}
		return json.Compare(a, b)
	})
	return c.err == nil
}

// search reports whether a value is in a list that is in order.
func (c *jsonComparer) search(list []json.Value, v json.Value) bool {
	_, found := slices.BinarySearchFunc(list, v, func(e, v json.Value) int {
		c.work(e, v)
		return json.Compare(e, v)
	})
	return found && c.err == nil
}

// memberOf is MEMBER OF: anything but an array is an array of itself.
func (c *jsonComparer) memberOf(v, array json.Value) bool {
	if !array.IsArray() {
		return c.equal(v, array)
	}
	return !c.elements(array, func(e json.Value) bool { return !c.equal(e, v) }) && c.err == nil
}

// overlaps is JSON_OVERLAPS: arrays with an element in common, objects with a member in common.
func (c *jsonComparer) overlaps(a, b json.Value) bool {
	switch {
	case a.IsObject() && b.IsObject():
		return !c.members(a, b, func(v, other json.Value, ok bool) bool { return !ok || !c.equal(v, other) }) && c.err == nil
	case a.IsArray() && b.IsArray():
		if a.Len()*b.Len() > manyPairs {
			return c.overlapMany(a, b)
		}
		return !c.elements(a, func(e json.Value) bool { return !c.memberOf(e, b) }) && c.err == nil
	case a.IsArray():
		return c.memberOf(b, a)
	}
	return c.memberOf(a, b)
}

// overlapMany is overlaps of two arrays, of which the shorter one is put in order.
func (c *jsonComparer) overlapMany(a, b json.Value) bool {
	if a.Len() < b.Len() {
		a, b = b, a
	}
	held := holding{x: c.x}
	defer held.done()
	var list []json.Value
	c.elements(b, func(e json.Value) bool { return c.add(&held, &list, e) })
	return c.sort(list) && !c.elements(a, func(e json.Value) bool { return !c.search(list, e) }) && c.err == nil
}
