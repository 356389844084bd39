package simfile

import (
	"io/fs"
	"path"
	"sort"
)

// tree is the names of a file system: as they are, and as they are on disk.
type tree struct {
	cur     map[string]*inode
	disk    map[string]*inode
	pending []nameOp // what cur has and disk has not, oldest first
}

// nameOp is one directory operation. A creation has only to, a removal only from.
type nameOp struct {
	from, to string
	ino      *inode
}

func newTree() tree {
	root := &inode{dir: true, named: true}
	return tree{
		cur:  map[string]*inode{".": root},
		disk: map[string]*inode{".": root},
	}
}

func (op nameOp) apply(m map[string]*inode) {
	if op.from != "" {
		delete(m, op.from)
	}
	if op.to != "" {
		m[op.to] = op.ino
	}
}

// durableWith reports whether a sync of dir makes op durable. A rename between
// directories needs that of the target.
func (op nameOp) durableWith(dir string) bool {
	if op.to != "" {
		return path.Dir(op.to) == dir
	}
	return path.Dir(op.from) == dir
}

func (t *tree) do(op nameOp) {
	op.apply(t.cur)
	t.pending = append(t.pending, op)
}

// parent checks that name is valid and lies in an existing directory.
func (t *tree) parent(name string) error {
	if !fs.ValidPath(name) {
		return fs.ErrInvalid
	}
	ino := t.cur[path.Dir(name)]
	switch {
	case ino == nil:
		return fs.ErrNotExist
	case !ino.dir:
		return errNotDir
	}
	return nil
}

// file returns the file or directory called name.
func (t *tree) lookup(name string) (*inode, error) {
	if err := t.parent(name); err != nil {
		return nil, err
	}
	ino := t.cur[name]
	if ino == nil {
		return nil, fs.ErrNotExist
	}
	return ino, nil
}

// directory returns the directory called name.
func (t *tree) directory(name string) (*inode, error) {
	ino, err := t.lookup(name)
	if err == nil && !ino.dir {
		err = errNotDir
	}
	return ino, err
}

// list returns the sorted base names in dir.
func (t *tree) list(dir string) []string {
	names := []string{}
	for name := range t.cur {
		if name != "." && path.Dir(name) == dir {
			names = append(names, path.Base(name))
		}
	}
	sort.Strings(names)
	return names
}

// chains splits the pending operations into sets that share no name, directly or
// through others. Each is a list of indexes into pending, ascending. Within a
// chain the order of operations matters, between chains it does not.
func (t *tree) chains() [][]int {
	chainOf := map[string]int{} // name -> chain
	var chains [][]int
	for i, op := range t.pending {
		into := -1
		for _, name := range [...]string{op.from, op.to} {
			c, ok := chainOf[name]
			if name == "" || !ok || c == into {
				continue
			}
			if into < 0 {
				into = c
				continue
			}
			chains[into] = append(chains[into], chains[c]...)
			chains[c] = nil
			for n, nc := range chainOf {
				if nc == c {
					chainOf[n] = into
				}
			}
		}
		if into < 0 {
			into = len(chains)
			chains = append(chains, nil)
		}
		chains[into] = append(chains[into], i)
		for _, name := range [...]string{op.from, op.to} {
			if name != "" {
				chainOf[name] = into
			}
		}
	}
	whole := chains[:0]
	for _, c := range chains {
		if c != nil {
			sort.Ints(c)
			whole = append(whole, c)
		}
	}
	return whole
}

// syncDir makes durable the operations in dir, and with them the earlier ones
// that they build on.
func (t *tree) syncDir(dir string) {
	done := make([]bool, len(t.pending))
	for _, chain := range t.chains() {
		last := -1
		for i, at := range chain {
			if t.pending[at].durableWith(dir) {
				last = i
			}
		}
		for _, at := range chain[:last+1] {
			t.pending[at].apply(t.disk)
			done[at] = true
		}
	}
	rest := t.pending[:0]
	for i, op := range t.pending {
		if !done[i] {
			rest = append(rest, op)
		}
	}
	clear(t.pending[len(rest):])
	t.pending = rest
}
