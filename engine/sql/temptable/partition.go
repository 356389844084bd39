package temptable

import (
	"github.com/triremedb/trireme/engine/types"
)

const (
	partitionBits = 4
	// NumPartitions is how many parts rows are scattered over at a time.
	NumPartitions = 1 << partitionBits
	// MaxDepth is how often parts can be scattered again before the bits of a hash run
	// out; the lowest are those of hash tables.
	MaxDepth = 6

	pendingBytes = 256 << 10 // of a part in memory, beyond which it is written
)

// Partitions scatter rows over parts of a temporary file by hashes of their keys: rows
// with equal keys come to the same part.
type Partitions struct {
	cfg   *Config
	types []*types.Type
	file  *Spill
	depth int
	parts [NumPartitions]part
	sel   [NumPartitions][]uint32
	mem   charge
}

type part struct {
	pending *types.Batch
	blocks  []Extent
	rows    int64
}

// NewPartitions returns empty parts. depth, from 0, says which bits of the hashes
// count.
func NewPartitions(cfg *Config, columns []*types.Type, depth int, what string) (*Partitions, error) {
	f, err := NewSpill(cfg, what)
	if err != nil {
		return nil, err
	}
	p := &Partitions{cfg: cfg, types: columns, file: f, depth: depth, mem: charge{a: cfg.Memory}}
	return p, nil
}

// Of is the part of a row whose key has the hash.
func (p *Partitions) Of(hash uint64) int {
	return int(hash >> (64 - partitionBits*(p.depth+1)) & (NumPartitions - 1))
}

// Add adds the selected rows of a batch; hashes are those of the batch's rows.
func (p *Partitions) Add(b *types.Batch, sel []uint32, hashes []uint64) error {
	for i := range p.sel {
		p.sel[i] = p.sel[i][:0]
	}
	if sel == nil {
		for i, h := range hashes[:b.Len()] {
			n := p.Of(h)
			p.sel[n] = append(p.sel[n], uint32(i))
		}
	}
	for _, i := range sel {
		n := p.Of(hashes[i])
		p.sel[n] = append(p.sel[n], i)
	}
	for i := range p.parts {
		if len(p.sel[i]) > 0 {
			if err := p.add(&p.parts[i], b, p.sel[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *Partitions) add(t *part, b *types.Batch, sel []uint32) error {
	if t.pending == nil {
		t.pending = &types.Batch{Vecs: make([]types.Vector, len(p.types))}
		for c, typ := range p.types {
			t.pending.Vecs[c].Init(typ)
		}
	}
	for len(sel) > 0 {
		n := min(len(sel), types.BatchRows-t.pending.Len())
		before := t.pending.MemoryBytes()
		t.pending.Gather(b, sel[:n])
		sel = sel[n:]
		t.rows += int64(n)
		after := t.pending.MemoryBytes()
		p.mem.set(p.mem.n + after - before)
		if t.pending.Len() >= types.BatchRows || after > pendingBytes {
			if err := p.flush(t); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *Partitions) flush(t *part) error {
	x, err := p.file.Write(t.pending)
	if err != nil {
		return err
	}
	t.blocks = append(t.blocks, x)
	if n := t.pending.MemoryBytes(); n > pendingBytes { // give the memory of long strings back
		p.mem.set(p.mem.n - n)
		t.pending = nil
		return nil
	}
	t.pending.Reset()
	return nil
}

// Finish ends the adding.
func (p *Partitions) Finish() error {
	for i := range p.parts {
		t := &p.parts[i]
		if t.pending != nil && t.pending.Len() > 0 {
			if err := p.flush(t); err != nil {
				return err
			}
		}
		t.pending = nil
	}
	p.mem.set(0)
	return nil
}

// Rows is the number of rows of part i.
func (p *Partitions) Rows(i int) int64 { return p.parts[i].rows }

// Blocks is the number of blocks of part i.
func (p *Partitions) Blocks(i int) int { return len(p.parts[i].blocks) }

// Read replaces the rows of a batch by those of a block of part i.
//
// REQUIRES: Finish was called.
func (p *Partitions) Read(i, block int, b *types.Batch) error {
	return p.file.Read(p.parts[i].blocks[block], b)
}

// Depth is the depth that the parts were made with.
func (p *Partitions) Depth() int { return p.depth }

// Close gives memory and file back. It may be called more than once, and on nil.
func (p *Partitions) Close() error {
	if p == nil {
		return nil
	}
	p.parts = [NumPartitions]part{}
	p.mem.set(0)
	return p.file.Close()
}
