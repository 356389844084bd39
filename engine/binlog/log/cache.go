package log

// recent is an entry in memory and what came before it.
type recent struct {
	data   []byte
	term   uint64
	offset int64
	number uint64 // of the last transaction before
	time   int64
	chain  uint32 // checksum of the record before
	typ    uint8
}

// recentSize is what a recent takes besides its data.
const recentSize = 64

// cache holds the newest entries: those from first to next - 1, entry i at ring[i mod
// len]. It never holds more than limit bytes.
type cache struct {
	limit       int64
	bytes       int64
	ring        []recent // its length is a power of two
	first, next uint64
}

func (c *cache) at(index uint64) *recent { return &c.ring[index&uint64(len(c.ring)-1)] }

// has reports whether entry index is in memory.
func (c *cache) has(index uint64) bool { return index >= c.first && index < c.next }

// push adds the entry behind the newest one.
func (c *cache) push(index uint64, r *recent) {
	size := int64(len(r.data)) + recentSize
	if size > c.limit {
		c.reset(index + 1)
		return
	}
	if index != c.next {
		c.reset(index)
	}
	for c.bytes+size > c.limit {
		c.drop(c.first)
		c.first++
	}
	if c.next-c.first == uint64(len(c.ring)) {
		c.grow()
	}
	*c.at(index) = *r
	c.next = index + 1
	c.bytes += size
}

func (c *cache) drop(index uint64) {
	r := c.at(index)
	c.bytes -= int64(len(r.data)) + recentSize
	*r = recent{}
}

func (c *cache) grow() {
	old := *c
	c.ring = make([]recent, max(64, 2*len(old.ring)))
	for i := old.first; i < old.next; i++ {
		*c.at(i) = *old.at(i)
	}
}

// truncate drops the entries from index on.
func (c *cache) truncate(index uint64) {
	for c.next > max(index, c.first) {
		c.next--
		c.drop(c.next)
	}
	if c.next > index {
		c.first, c.next = index, index
	}
}

// purge drops the entries before index.
func (c *cache) purge(index uint64) {
	for c.first < min(index, c.next) {
		c.drop(c.first)
		c.first++
	}
}

// reset drops everything; the next entry will be index.
func (c *cache) reset(index uint64) {
	c.truncate(0)
	c.first, c.next = index, index
}
