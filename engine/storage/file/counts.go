package file

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
)

// CountsMax is how many files are counted one by one. Further ones are counted together, without a name.
const CountsMax = 32_768

// fileCounts counts the work on files by their names, for as long as they exist.
type fileCounts struct {
	mu     sync.Mutex
	byName map[string]*fileCount
	rest   fileCount
}

// fileCount has base as of the last reset, which the mutex of fileCounts guards.
type fileCount struct {
	reads, readBytes, writes, writeBytes, syncs atomic.Uint64
	base                                        FileCounts
}

// FileCounts is what was done with a file.
type FileCounts struct {
	Name                                        string // empty: of files that are counted together
	Reads, ReadBytes, Writes, WriteBytes, Syncs uint64
}

// of returns the counts of a file, which are new if it has none.
func (c *fileCounts) of(name string) *fileCount {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.byName[name]
	switch {
	case f != nil:
		return f
	case len(c.byName) >= CountsMax:
		return &c.rest
	case c.byName == nil:
		c.byName = map[string]*fileCount{}
	}
	f = &fileCount{}
	c.byName[name] = f
	return f
}

func (c *fileCounts) forget(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.byName, name)
}

func (c *fileCounts) rename(from, to string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.byName[from]; f != nil {
		delete(c.byName, from)
		c.byName[to] = f
	}
}

// read returns what was counted since the last reset.
func (f *fileCount) read(name string) FileCounts {
	b := &f.base
	return FileCounts{Name: name, Reads: f.reads.Load() - b.Reads, ReadBytes: f.readBytes.Load() - b.ReadBytes, Writes: f.writes.Load() - b.Writes,
		WriteBytes: f.writeBytes.Load() - b.WriteBytes, Syncs: f.syncs.Load() - b.Syncs}
}

// Files returns the counts of the files that were opened and still exist, by name.
func (d *Disk) Files() []FileCounts {
	c := &d.files
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]FileCounts, 0, len(c.byName)+1)
	for name, f := range c.byName {
		list = append(list, f.read(name))
	}
	if rest := c.rest.read(""); rest.Reads+rest.Writes+rest.Syncs > 0 {
		list = append(list, rest)
	}
	slices.SortFunc(list, func(a, b FileCounts) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// ResetFiles makes Files begin from 0.
func (d *Disk) ResetFiles() {
	c := &d.files
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]*fileCount, 0, len(c.byName)+1)
	all = append(all, &c.rest)
	for _, f := range c.byName {
		all = append(all, f)
	}
	for _, f := range all {
		f.base = FileCounts{Reads: f.reads.Load(), ReadBytes: f.readBytes.Load(), Writes: f.writes.Load(), WriteBytes: f.writeBytes.Load(), Syncs: f.syncs.Load()}
	}
}
