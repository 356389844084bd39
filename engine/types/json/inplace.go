package json

// put writes v in the place of value i if it fits there: inlined, or between the payloads of its neighbours. It returns the
// ranges of the container that have changed.
func (c *container) put(i int, v Value) (ranges []Range, ok bool) {
	entry := c.data[c.valueAt(i):][:c.valueEntry()]
	ranges = []Range{{c.valueAt(i), c.valueEntry()}}
	if isInlined(v.tag, c.large) {
		entry[0] = v.tag
		putOffset(entry[1:], int(v.inlineBits()), c.large)
		return ranges, true
	}
	lo, hi := c.room(i)
	need := v.payloadSize()
	if need > hi-lo {
		return nil, false
	}
	at := lo
	if old, ok := c.offset(i); ok && old >= lo && need <= hi-old {
		at = old
	}
	entry[0] = v.tag
	putOffset(entry[1:], at, c.large)
	v.appendPayload(c.data[at:at:hi])
	return append(ranges, Range{at, need}), true
}

// inlineBits returns what stands in the entry of an inlined value, sign extended.
func (v Value) inlineBits() uint32 {
	switch v.tag {
	case tagLiteral:
		return uint32(v.data[0])
	case tagUint16, tagUint32:
		return uint32(v.Uint())
	}
	return uint32(v.Int())
}

// room returns the bytes that value i may occupy: from the end of the payload before it to the start of the one after it.
func (c *container) room(i int) (lo, hi int) {
	lo, hi = c.tablesEnd(), len(c.data)
	if c.object {
		lo = c.keysEnd()
	}
	for j := i - 1; j >= 0; j-- {
		if offset, ok := c.offset(j); ok {
			v, _ := c.value(j)
			lo = max(lo, offset+v.payloadSize())
			break
		}
	}
	for j := i + 1; j < c.count; j++ {
		if offset, ok := c.offset(j); ok {
			hi = min(hi, offset)
			break
		}
	}
	return lo, hi
}

// keysEnd returns the end of the last key of an object.
func (c *container) keysEnd() int {
	end := c.tablesEnd()
	if c.count > 0 {
		if key, ok := c.key(c.count - 1); ok {
			end = max(end, readOffset(c.data[c.keyAt(c.count-1):], c.large)+len(key))
		}
	}
	return end
}

// remove takes value i, and its key, out of the tables. Key and payload stay as free bytes.
func (c *container) remove(i int) []Range {
	first, oldEnd := c.valueAt(i), c.tablesEnd()
	if c.object {
		first = c.keyAt(i)
		keys := c.keyAt(c.count) // the value entries begin here
		copy(c.data[first:], c.data[first+c.keyEntry():keys])
		before, after := c.valueAt(i), c.valueAt(i+1)
		n := keys - c.keyEntry()
		n += copy(c.data[n:], c.data[keys:before])
		copy(c.data[n:], c.data[after:oldEnd])
	} else {
		copy(c.data[first:], c.data[c.valueAt(i+1):oldEnd])
	}
	c.count--
	putOffset(c.data, c.count, c.large)
	clear(c.data[c.tablesEnd():oldEnd])
	return []Range{{0, c.width()}, {first, oldEnd - first}}
}
