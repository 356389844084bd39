package config

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
)

// Memory is how the memory of a node's process is divided.
type Memory struct {
	// Limit is what all of it may use, 0 if nobody says; Origin says who does: a setting or
	// a file.
	Limit  int64
	Origin string
	// Pool is the buffer pool, and that of temporary tables, with what describes their pages. It is mapped, and Go knows
	// nothing of it.
	Pool int64
	// Heap is the soft limit of what Go manages: heap, stacks, its own tables.
	Heap int64
	// Statements is what the statements of sessions may keep in memory together, a part of
	// Heap: temptable_max_ram, unless that is set.
	Statements int64
	// Definitions is what table definitions in the cache may take, a part of Heap.
	Definitions int64
	// Tight says that Pool leaves less than Heap and what has to be left aside.
	Tight bool
}

const (
	// What is left aside of the limit is a tenth, and at least asideLeast: the program, what
	// the system keeps for sockets and files.
	asideShare = 10
	asideLeast = 32 * mib
	// heapLeast, with the redo in memory, is what Go's heap has in any case: a limit that
	// cannot be met costs time without end, and helps nobody.
	heapLeast = 64 * mib
	// What statements may have is a third of the heap, and statementLeast in any case. With more the garbage collector, which begins at the
	// latest when the heap is full, would find little garbage each time.
	statementShare = 3
	statementLeast = 16 * mib
	// Definitions in the table cache have an eighth of the heap, and definitionLeast in any case: a table of 500 columns takes 160 KiB.
	definitionShare = 8
	definitionLeast = 8 * mib
	// frameShare: what describes a page is less than this part of it.
	frameShare = 200
)

// Memory divides what the process may use: memory_limit, or what its container may. root is
// the root of the file system. The error says that the buffer pool does not fit.
func (c *Config) Memory(root fs.FS) (Memory, error) {
	pool := c.Int("innodb_buffer_pool_size")
	pages := pool + c.Int("temporary_pool_size")
	m := Memory{Limit: c.Int("memory_limit"), Origin: "memory_limit", Pool: pages + pages/frameShare}
	if m.Limit == 0 {
		m.Limit, m.Origin = c.containerMemory(root)
	}
	if m.Limit == 0 {
		left := machineMemory(root) - m.Pool
		m.Statements, m.Definitions = max(left/statementShare, statementLeast), max(left/definitionShare, definitionLeast)
		return m, nil
	}
	if m.Pool >= m.Limit {
		s := byName["memory_limit"]
		return m, fmt.Errorf("innodb_buffer_pool_size is %s, but all memory of the process is limited to %s (%s): "+
			"lower the former (half of the latter is a start), or raise the limit", s.show(pool), s.show(m.Limit), m.Origin)
	}
	least := heapLeast + c.Int("innodb_log_buffer_size")
	m.Heap = m.Limit - m.Pool - max(m.Limit/asideShare, asideLeast)
	if m.Heap < least {
		m.Heap, m.Tight = least, true
	}
	m.Statements, m.Definitions = max(m.Heap/statementShare, statementLeast), max(m.Heap/definitionShare, definitionLeast)
	return m, nil
}

// shareMost is the largest part of the memory, in percent, that may be asked for.
const shareMost = 90

// shares makes bytes of what was given as parts of the memory.
func (l *loader) shares() {
	root := l.src.Root
	if root == nil {
		root = os.DirFS("/")
	}
	for name, v := range l.c.values {
		digits, is := strings.CutSuffix(v.text, "%")
		s := byName[name]
		if !is || !s.OfMemory {
			continue
		}
		percent, _ := strconv.ParseInt(digits, 10, 64)
		limit, origin := l.c.Int("memory_limit"), "memory_limit"
		if limit == 0 {
			limit, origin = l.c.containerMemory(root)
		}
		if limit == 0 {
			limit, origin = machineMemory(root), "the machine's memory"
		}
		n := limit * percent / 100 &^ (mib - 1)
		if err := s.limits(n, s.show); err != nil {
			l.fail("%s: %s of %s (%s) %w", v.origin, v.text, s.show(limit), origin, err)
			n = s.Min
		}
		l.c.values[name] = value{strconv.FormatInt(n, 10), v.origin}
	}
}

// machineMemory is what the machine has; 0: it does not tell.
func machineMemory(root fs.FS) int64 {
	b, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		var n int64
		if _, err := fmt.Sscanf(line, "MemTotal: %d kB", &n); err == nil {
			return n * kib
		}
	}
	return 0
}

// containerMemory is the limit on memory of the node's container, and who says so; 0: there is none.
func (c *Config) containerMemory(root fs.FS) (limit int64, origin string) {
	switch {
	case c.container > 0:
		return c.container, "the container's limit"
	case c.container < 0:
		return 0, ""
	}
	return ContainerMemory(root)
}

// ContainerMemory is the least limit on memory of the control groups (versions 1 and 2) that
// this process is in, and the file that has it; 0: there is none.
func ContainerMemory(root fs.FS) (limit int64, file string) {
	b, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0, ""
	}
	for line := range strings.Lines(string(b)) {
		// number:controllers:path; version 2 has the number 0 and no controllers
		number, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, dir, ok := strings.Cut(rest, ":")
		if !ok {
			continue
		}
		var n int64
		var of string
		switch {
		case number == "0" && controllers == "":
			n, of = groupLimit(root, "sys/fs/cgroup", dir, "memory.max", "memory.high")
		case listed(controllers, "memory"):
			n, of = groupLimit(root, "sys/fs/cgroup/memory", dir, "memory.limit_in_bytes")
		}
		if n > 0 && (limit == 0 || n < limit) {
			limit, file = n, of
		}
	}
	return limit, file
}

func listed(list, name string) bool {
	for one := range strings.SplitSeq(list, ",") {
		if one == name {
			return true
		}
	}
	return false
}

// groupLimit is the least limit of a group and of those that it lies in. A container may see
// its own group at the mount, whatever its path outside is: what is not there is passed over.
func groupLimit(root fs.FS, mount, dir string, names ...string) (limit int64, file string) {
	dir = path.Clean("/" + dir)
	for {
		for _, name := range names {
			at := path.Join(mount, dir, name)
			if n := readLimit(root, at); n > 0 && (limit == 0 || n < limit) {
				limit, file = n, "/"+at
			}
		}
		if dir == "/" {
			return limit, file
		}
		dir = path.Dir(dir)
	}
}

// unlimited is from where on a number means none: version 1 has one near the largest.
const unlimited = 1 << 60

// readLimit is the limit in a file; 0: none.
func readLimit(root fs.FS, name string) int64 {
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return 0
	}
	text := string(bytes.TrimSpace(b))
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 || n >= unlimited {
		return 0 // "max" among others
	}
	return n
}
