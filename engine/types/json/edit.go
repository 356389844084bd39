package json

// An Edit is the outcome of changing a document.
type Edit struct {
	Doc     []byte  // the document after the edit
	Changed bool    // false: the path matched nothing to change, and Doc is the old document
	Diff    Diff    // what changed, for the binlog
	InPlace bool    // Doc is the memory of the old document; only Ranges have changed
	Ranges  []Range // set if InPlace
}

// A Range is a run of bytes in a document.
type Range struct{ Offset, Length int }

// The functions below change a document in place where the new value fits the room of the old one, and make a new document
// otherwise. REQUIRES: the caller owns doc, the value, itself a document, does not alias it, and both are valid. A path that
// may match several places is ErrPathWildcard; a result that nests too deep or gets too big is ErrTooDeep or ErrTooBig, and
// doc is then as before.

// Replace puts value in the place of what path names: JSON_REPLACE.
func Replace(doc []byte, path *Path, value []byte) (Edit, error) {
	l, err := locate(doc, path)
	if err != nil || len(l.rest) > 0 {
		return Edit{Doc: doc}, err
	}
	return l.replace(value)
}

// Insert adds value where path names a member or element that is not there: JSON_INSERT. An index past the end appends.
func Insert(doc []byte, path *Path, value []byte) (Edit, error) {
	l, err := locate(doc, path)
	if err != nil || len(l.rest) != 1 {
		return Edit{Doc: doc}, err
	}
	return l.insertMissing(value)
}

// Set is Replace of what is there and Insert of what is not: JSON_SET.
func Set(doc []byte, path *Path, value []byte) (Edit, error) {
	l, err := locate(doc, path)
	switch {
	case err != nil || len(l.rest) > 1:
		return Edit{Doc: doc}, err
	case len(l.rest) == 1:
		return l.insertMissing(value)
	}
	return l.replace(value)
}

// Remove takes away what path names: JSON_REMOVE.
func Remove(doc []byte, path *Path) (Edit, error) {
	if len(path.legs) == 0 {
		return Edit{Doc: doc}, ErrVacuousPath
	}
	l, err := locate(doc, path)
	if err != nil || len(l.rest) > 0 || l.wrapped {
		return Edit{Doc: doc}, err
	}
	return l.remove()
}

// ArrayAppend adds value at the end of the array that path names; anything else there becomes an array first:
// JSON_ARRAY_APPEND.
func ArrayAppend(doc []byte, path *Path, value []byte) (Edit, error) {
	l, err := locate(doc, path)
	if err != nil || len(l.rest) > 0 {
		return Edit{Doc: doc}, err
	}
	if l.target.IsArray() {
		return l.insert(leg{kind: legCell}, l.target.Len(), value)
	}
	return l.replaceByPair(l.target, Open(value))
}

// ArrayInsert adds value before the array element that path names: JSON_ARRAY_INSERT. A path that does not end with an
// array cell is ErrNotCell.
func ArrayInsert(doc []byte, path *Path, value []byte) (Edit, error) {
	if !path.EndsWithCell() {
		return Edit{Doc: doc}, ErrNotCell
	}
	last := len(path.legs) - 1
	l, err := locate(doc, &Path{legs: path.legs[:last], multi: path.multi})
	if err != nil || len(l.rest) > 0 || !l.target.IsArray() {
		return Edit{Doc: doc}, err
	}
	count := l.target.Len()
	at := path.legs[last].from
	return l.insert(leg{kind: legCell}, min(max(at.in(count), 0), count), value)
}

// Apply repeats a change on another copy of the document. A path that does not fit the document is a *types.CorruptError:
// the copies differ.
func Apply(doc []byte, d Diff) (Edit, error) {
	l, err := locate(doc, d.Path)
	if err != nil {
		return Edit{Doc: doc}, err
	}
	switch {
	case d.Op == OpReplace && len(l.rest) == 0:
		return l.replace(d.Value)
	case d.Op == OpRemove && len(l.rest) == 0 && len(l.steps) > 0 && !l.wrapped:
		return l.remove()
	case d.Op == OpInsert && d.Path.EndsWithCell():
		if e, err := ArrayInsert(doc, d.Path, d.Value); e.Changed || err != nil {
			return e, err
		}
	case d.Op == OpInsert && len(l.rest) == 1 && l.target.IsObject():
		return l.insertMissing(d.Value)
	}
	return Edit{Doc: doc}, corrupt("%s of %s does not fit it", d.Op, d.Path)
}

// A location is how far a path could be followed.
type location struct {
	doc     []byte
	steps   []step
	target  Value // where it ended
	rest    []leg // what could not be followed
	wrapped bool  // the last leg took a value for an array of itself
}

// A step is a container on the way and which of its children was entered.
type step struct {
	c     container
	index int
}

func locate(doc []byte, path *Path) (location, error) {
	l := location{doc: doc, target: Open(doc)}
	if path.multi {
		return l, ErrPathWildcard
	}
	for i := range path.legs {
		if !l.follow(&path.legs[i]) {
			l.rest = path.legs[i:]
			break
		}
	}
	return l, nil
}

func (l *location) follow(g *leg) bool {
	l.wrapped = false
	index, found := 0, false
	switch {
	case !l.target.IsContainer() || g.kind == legCell && l.target.IsObject():
		l.wrapped = g.kind == legCell && g.from.in(1) == 0
		return l.wrapped
	case g.kind == legMember && l.target.IsObject():
		c := l.target.open()
		index, found = c.search(g.key)
	case g.kind == legCell:
		index = g.from.in(l.target.Len())
		found = index >= 0 && index < l.target.Len()
	}
	if !found {
		return false
	}
	c := l.target.open()
	v, ok := c.value(index)
	if ok {
		l.steps = append(l.steps, step{c, index})
		l.target = v
	}
	return ok
}

// path returns the path of the steps taken, and further legs.
func (l *location) path(more ...leg) *Path {
	p := &Path{legs: make([]leg, 0, len(l.steps)+len(more))}
	for _, s := range l.steps {
		g := leg{kind: legCell, from: cell{index: uint32(s.index)}}
		if s.c.object {
			key, _ := s.c.key(s.index)
			g = leg{kind: legMember, key: append([]byte(nil), key...)}
		}
		p.legs = append(p.legs, g)
	}
	p.legs = append(p.legs, more...)
	return p
}

func (l *location) replace(value []byte) (Edit, error) {
	e := Edit{Changed: true, Diff: Diff{Op: OpReplace, Path: l.path(), Value: value}}
	v := Open(value)
	if v.nesting(len(l.steps)) > MaxDepth {
		return Edit{Doc: l.doc}, ErrTooDeep
	}
	if n := len(l.steps); n > 0 {
		parent := &l.steps[n-1]
		if ranges, ok := parent.c.put(parent.index, v); ok {
			return l.inPlace(e, &parent.c, ranges), nil
		}
	}
	return l.rebuild(e, change{replace: true, value: v})
}

// replaceByPair replaces the target by an array of two values.
func (l *location) replaceByPair(first, second Value) (Edit, error) {
	var b Builder
	b.BeginArray()
	b.Value(first)
	b.Value(second)
	b.EndArray()
	pair, err := b.Finish(nil)
	if err != nil {
		return Edit{Doc: l.doc}, err
	}
	return l.replace(pair)
}

// insertMissing adds the value that the one leg left names.
func (l *location) insertMissing(value []byte) (Edit, error) {
	g := l.rest[0]
	switch {
	case g.kind == legMember && l.target.IsObject():
		return l.insert(g, 0, value)
	case g.kind == legMember:
		return Edit{Doc: l.doc}, nil
	case l.target.IsArray():
		count := l.target.Len()
		return l.insert(g, min(max(g.from.in(count), 0), count), value)
	case g.from.fromEnd:
		return l.replaceByPair(Open(value), l.target)
	}
	return l.replaceByPair(l.target, Open(value))
}

// insert adds a value to the target: the member that g names, or at the index of an array.
func (l *location) insert(g leg, index int, value []byte) (Edit, error) {
	if g.kind == legCell {
		g.from = cell{index: uint32(index)}
	} else {
		g.key = append([]byte(nil), g.key...)
	}
	v := Open(value)
	if v.nesting(len(l.steps)+1) > MaxDepth {
		return Edit{Doc: l.doc}, ErrTooDeep
	}
	e := Edit{Changed: true, Diff: Diff{Op: OpInsert, Path: l.path(g), Value: value}}
	return l.rebuild(e, change{key: g.key, index: index, value: v})
}

func (l *location) remove() (Edit, error) {
	e := Edit{Changed: true, Diff: Diff{Op: OpRemove, Path: l.path()}}
	parent := &l.steps[len(l.steps)-1]
	return l.inPlace(e, &parent.c, parent.c.remove(parent.index)), nil
}

// inPlace completes an edit within c, whose ranges count from its own start.
func (l *location) inPlace(e Edit, c *container, ranges []Range) Edit {
	base := cap(l.doc) - cap(c.data)
	for i := range ranges {
		ranges[i].Offset += base
	}
	e.Doc, e.InPlace, e.Ranges = l.doc, true, ranges
	return e
}

// A change is what a rebuild does at the target.
type change struct {
	replace bool   // the target by value; else value is added to it
	key     []byte // of a new member
	index   int    // of a new element
	value   Value
}

// rebuild makes a new document. What is off the path is copied byte by byte.
func (l *location) rebuild(e Edit, ch change) (Edit, error) {
	var b Builder
	l.copyStep(&b, 0, &ch)
	doc, err := b.Finish(nil)
	if err != nil {
		return Edit{Doc: l.doc}, err
	}
	e.Doc = doc
	return e, nil
}

// copyStep adds what lies at a step of the path, or the changed target after the last.
func (l *location) copyStep(b *Builder, level int, ch *change) {
	if level == len(l.steps) {
		if ch.replace {
			b.copyValue(ch.value)
		} else {
			l.copyTarget(b, ch)
		}
		return
	}
	s := &l.steps[level]
	b.begin(s.c.object)
	for i := range s.c.count {
		copyKey(b, &s.c, i)
		if i == s.index {
			l.copyStep(b, level+1, ch)
		} else {
			v, _ := s.c.value(i)
			b.copyValue(v)
		}
	}
	b.end(s.c.object)
}

// copyTarget adds the target with one more value in it.
func (l *location) copyTarget(b *Builder, ch *change) {
	c := l.target.open()
	b.begin(c.object)
	for i := range c.count {
		if !c.object && i == ch.index {
			b.copyValue(ch.value)
		}
		copyKey(b, &c, i)
		v, _ := c.value(i)
		b.copyValue(v)
	}
	if c.object {
		b.Key(ch.key)
	}
	if c.object || ch.index == c.count {
		b.copyValue(ch.value)
	}
	b.end(c.object)
}

func copyKey(b *Builder, c *container, i int) {
	if c.object {
		key, _ := c.key(i)
		b.Key(key)
	}
}
