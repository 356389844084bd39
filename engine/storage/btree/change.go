package btree

import "bytes"

// The methods of this file change the leaf that the cursor holds in X. They
// cannot fail: the caller has asked Fits or FitsUpdate first and, if there was no
// room, left, called [Tree.MakeRoom] and come back. Keys and values passed in must
// not alias the leaf.

// Fits reports whether an entry of these lengths can be inserted in this leaf.
func (c *Cursor) Fits(keyLen, valueLen int) bool { return c.n.fits(keyLen, valueLen) }

// FitsUpdate reports whether the entry's value can become valueLen bytes long.
func (c *Cursor) FitsUpdate(valueLen int) bool { return c.n.fitsUpdate(c.i, valueLen) }

// edit prepares a change of the leaf.
func (c *Cursor) edit() *editor {
	c.mustBeLatched()
	c.kept = true
	c.pc.p = c.page
	c.ed.node = c.n
	return &c.ed
}

// Insert adds an entry at the cursor, which stands on it then.
//
// REQUIRES: the leaf is held in X, from SeekLeaf(key) that did not find it, and
// the entry fits.
func (c *Cursor) Insert(key []byte, flags byte, value []byte) {
	c.mustBeLatched()
	c.checkPlace(key, len(value))
	c.edit().insert(c.i, key, flags, value)
}

// checkPlace panics if key does not belong where the cursor stands: that would
// corrupt the index.
func (c *Cursor) checkPlace(key []byte, valueLen int) {
	n, i := c.n, c.i
	if len(key) > MaxKey || len(key)+valueLen > MaxEntry || !n.fits(len(key), valueLen) {
		panic("btree: Insert of an entry that does not fit")
	}
	if i < 0 || i > n.count() || !bytes.HasPrefix(key, n.prefix()) {
		panic("btree: Insert in the wrong leaf")
	}
	suffix := key[n.prefixLen():]
	switch {
	case i > 0 && bytes.Compare(n.suffix(i-1), suffix) >= 0,
		i < n.count() && bytes.Compare(suffix, n.suffix(i)) >= 0:
		panic("btree: Insert in the wrong place")
	case i == 0 && bytes.Compare(key, c.lo) < 0,
		i == n.count() && !c.hiOpen && bytes.Compare(key, c.hi) >= 0:
		panic("btree: Insert in the wrong leaf")
	}
}

// mustBeOnEntry panics if there is no entry at the cursor.
func (c *Cursor) mustBeOnEntry() {
	if !c.Valid() {
		panic("btree: the cursor is not on an entry")
	}
}

// Update replaces flags and value of the entry.
//
// REQUIRES: Valid, the leaf is held in X, FitsUpdate.
func (c *Cursor) Update(flags byte, value []byte) {
	c.mustBeOnEntry()
	if !c.n.fitsUpdate(c.i, len(value)) {
		panic("btree: Update to a value that does not fit")
	}
	c.edit().update(c.i, flags, value)
}

// PatchValue overwrites the bytes of the value from off on.
//
// REQUIRES: Valid, the leaf is held in X, off+len(b) <= len(Value()).
func (c *Cursor) PatchValue(off int, b []byte) {
	c.mustBeOnEntry()
	c.edit().patch(c.i, off, b)
}

// SetFlags replaces the entry's flags byte.
//
// REQUIRES: Valid, the leaf is held in X.
func (c *Cursor) SetFlags(b byte) {
	c.mustBeOnEntry()
	c.edit().setFlags(c.i, b)
}

// Remove takes the entry out. The cursor stands on the one after it then, or at
// the leaf's end.
//
// REQUIRES: Valid, the leaf is held in X.
func (c *Cursor) Remove() {
	c.mustBeOnEntry()
	c.edit().remove(c.i)
}

// Thin reports, after a Remove, whether it is worth calling [Tree.Shrink] for the
// leaf once it is released: it is empty, or less than thin percent are left. For
// one that stays thin since its neighbours are full, it says so only now and then.
func (c *Cursor) Thin() bool {
	n := c.n.count()
	return n == 0 || (n < 8 || n%8 == 0) && c.n.used()*100 < capacity*thin
}

// Used is what the leaf's entries take of [LeafCapacity].
func (c *Cursor) Used() int { return c.n.used() }

// LeafCapacity is what the entries of a leaf can take, in bytes.
const LeafCapacity = capacity

// PageMaxTrx is the leaf's newest transaction, as RaiseMaxTrx left it.
func (c *Cursor) PageMaxTrx() uint64 { return c.n.maxTrx() }

// RaiseMaxTrx sets the leaf's newest transaction unless it is newer already.
//
// REQUIRES: the leaf is held in X.
func (c *Cursor) RaiseMaxTrx(id uint64) {
	if id <= c.n.maxTrx() {
		return
	}
	c.edit().setMaxTrx(id)
}
