package extsort

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"path"

	"github.com/triremedb/trireme/engine/storage/file"
)

// A run is a sequence of blocks:
//
//	offset size field
//	0      4    bytes of entries
//	4      4    CRC32C of the entries, begun with the block's offset in the file
//	8           entries: uvarint length of the key, of the value, key, value
//
// Blocks follow each other without a gap; no entry crosses from one to the next.

const chunkHeader = 8

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// run is where a run lies in its file.
type run struct{ from, end int64 }

// runFile is a temporary file without a name.
type runFile struct {
	f   file.File
	end int64
}

func createRunFile(opt Options) (*runFile, error) {
	if err := opt.FS.MkdirAll(opt.Dir); err != nil {
		return nil, fmt.Errorf("extsort: %w", err)
	}
	name := path.Join(opt.Dir, fmt.Sprintf("sort-%016x", opt.Env.Uint64()))
	f, err := opt.FS.Open(name, file.OpenOptions{Exclusive: true})
	if err != nil {
		return nil, fmt.Errorf("extsort: %w", err)
	}
	if err := opt.FS.Remove(name); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("extsort: %w", err)
	}
	return &runFile{f: f}, nil
}

func (f *runFile) close() error { return f.f.Close() }

// runWriter writes one run.
type runWriter struct {
	s        *Sorter
	f        *runFile
	from, at int64
	buf      []byte // of one block
}

func (w *runWriter) add(key, value []byte) error {
	if len(w.buf)+2*binary.MaxVarintLen32+len(key)+len(value) > cap(w.buf) && len(w.buf) > chunkHeader {
		if err := w.flush(); err != nil {
			return err
		}
	}
	w.buf = binary.AppendUvarint(w.buf, uint64(len(key)))
	w.buf = binary.AppendUvarint(w.buf, uint64(len(value)))
	w.buf = append(append(w.buf, key...), value...)
	return nil
}

func (w *runWriter) flush() error {
	binary.LittleEndian.PutUint32(w.buf, uint32(len(w.buf)-chunkHeader))
	binary.LittleEndian.PutUint32(w.buf[4:], checksum(w.at, w.buf[chunkHeader:]))
	if _, err := w.f.f.WriteAt(w.buf, w.at); err != nil {
		return fmt.Errorf("extsort: writing a run: %w", err)
	}
	w.at += int64(len(w.buf))
	w.s.stats.Bytes += int64(len(w.buf))
	w.buf = w.buf[:chunkHeader]
	return nil
}

func (w *runWriter) finish() (run, error) {
	if len(w.buf) > chunkHeader {
		if err := w.flush(); err != nil {
			return run{}, err
		}
	}
	w.f.end = w.at
	return run{w.from, w.at}, nil
}

func checksum(at int64, entries []byte) uint32 {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(at))
	return crc32.Update(crc32.Update(0, castagnoli, b[:]), castagnoli, entries)
}

// runReader reads one run.
type runReader struct {
	f          *runFile
	at, end    int64 // what of the run is not read yet
	block      []byte
	rest       []byte // of the block's entries
	prefix     uint64
	key, value []byte // the entry at hand
}

// advance goes to the next entry; ok is false at the end.
func (r *runReader) advance() (ok bool, err error) {
	if len(r.rest) == 0 {
		if r.at == r.end {
			return false, nil
		}
		if err := r.load(); err != nil {
			return false, err
		}
	}
	keyLen, n := binary.Uvarint(r.rest)
	valLen, m := binary.Uvarint(r.rest[max(n, 0):])
	if n <= 0 || m <= 0 || keyLen > MaxEntry || valLen > MaxEntry || int(keyLen+valLen) > len(r.rest)-n-m {
		return false, ErrCorrupt
	}
	b := r.rest[n+m:]
	r.key, r.value, r.rest = b[:keyLen:keyLen], b[keyLen:keyLen+valLen:keyLen+valLen], b[keyLen+valLen:]
	r.prefix = prefixOf(r.key)
	return true, nil
}

// load reads the next block.
func (r *runReader) load() error {
	b := r.block[:min(int64(len(r.block)), r.end-r.at)]
	if len(b) <= chunkHeader {
		return ErrCorrupt
	}
	if _, err := r.f.f.ReadAt(b, r.at); err != nil {
		return fmt.Errorf("extsort: reading a run: %w", err)
	}
	n := binary.LittleEndian.Uint32(b)
	if n == 0 || int64(n) > int64(len(b)-chunkHeader) {
		return ErrCorrupt
	}
	entries := b[chunkHeader : chunkHeader+n]
	if binary.LittleEndian.Uint32(b[4:]) != checksum(r.at, entries) {
		return ErrCorrupt
	}
	r.rest = entries
	r.at += int64(chunkHeader + n)
	return nil
}

// merger gives the entries of several runs in order. It is a heap of readers by
// their entry at hand.
type merger struct {
	heap  []*runReader
	begun bool
}

func newMerger(f *runFile, runs []run, block int) (*merger, error) {
	m := &merger{}
	for _, r := range runs {
		rd := &runReader{f: f, at: r.from, end: r.end, block: make([]byte, block)}
		ok, err := rd.advance()
		if err != nil {
			return nil, err
		}
		if ok {
			m.heap = append(m.heap, rd)
		}
	}
	for i := len(m.heap)/2 - 1; i >= 0; i-- {
		m.sink(i)
	}
	return m, nil
}

func (m *merger) less(i, j int) bool {
	a, b := m.heap[i], m.heap[j]
	if a.prefix != b.prefix {
		return a.prefix < b.prefix
	}
	return bytes.Compare(a.key, b.key) < 0
}

func (m *merger) sink(i int) {
	for {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(m.heap); c++ {
			if m.less(c, least) {
				least = c
			}
		}
		if least == i {
			return
		}
		m.heap[i], m.heap[least] = m.heap[least], m.heap[i]
		i = least
	}
}

// next returns the least entry. It stays valid until the next call: only then its
// reader goes on.
func (m *merger) next() (key, value []byte, ok bool, err error) {
	if m.begun && len(m.heap) > 0 {
		more, err := m.heap[0].advance()
		if err != nil {
			return nil, nil, false, err
		}
		if !more {
			last := len(m.heap) - 1
			m.heap[0] = m.heap[last]
			m.heap = m.heap[:last]
		}
		m.sink(0)
	}
	m.begun = true
	if len(m.heap) == 0 {
		return nil, nil, false, nil
	}
	return m.heap[0].key, m.heap[0].value, true, nil
}
