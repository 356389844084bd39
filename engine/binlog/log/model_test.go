package log

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
)

// rendered is what a file of a log must hold.
type rendered struct {
	number, first uint64
	bytes         []byte
}

// firstFile is of the oldest format, so that others come after it.
var firstFile = Start{Version: entry.FirstVersion}

// render lays out a log from its entries and bodies alone. The first one has index 1.
func render(entries []Entry, all bodies) []rendered {
	h := firstFile.header(&Options{Group: testGroup})
	at := place{file: 1, offset: headerSize, index: 1}
	b := make([]byte, headerSize)
	h.encode(b)
	files := []rendered{{1, 1, b}}
	var began []termStart
	full := false
	for i := range entries {
		e := &entries[i]
		f := &files[len(files)-1]
		c, problem := inspect(e.Type, e.Term, len(e.Data), e.Data)
		assert(problem == "", "entry %d: %s", e.Index, problem)
		if c.rotate || full {
			version := h.version
			if c.rotate {
				version = max(version, c.version)
			}
			h = header{version: version, group: testGroup, number: f.number + 1, first: e.Index, termBefore: at.term, numberBefore: at.number,
				sizeBefore: int64(len(f.bytes)), chainBefore: at.chain, termCount: uint32(len(began)),
				terms: began[max(0, len(began)-maxTerms):]}
			b := make([]byte, headerSize)
			h.encode(b)
			files = append(files, rendered{h.number, h.first, b})
			f = &files[len(files)-1]
			began = nil
		}
		if e.Term != at.term {
			began = append(began, termStart{e.Index, e.Term})
		}
		var crc uint32
		f.bytes, crc = appendRecord(f.bytes, e, at.chain)
		f.bytes = append(f.bytes, e.Data...)
		if full = c.large != nil; full {
			f.bytes = append(f.bytes, make([]byte, int(c.large.Offset)-len(f.bytes))...)
			f.bytes = append(f.bytes, all[c.large.ID]...)
		}
		at = at.after(record{crc: crc, length: len(e.Data), index: e.Index, term: e.Term}, c)
	}
	return files
}

// model is what a log was told over all its lives.
type model struct {
	sim *simenv.Sim
	rng *rand.Rand

	entries   []Entry // entry i is entries[i-1]
	durable   uint64  // a sync has returned for entries up to here
	committed uint64
	// other is the branch that an unfinished Append was to take back.
	other []Entry
	// purged: files below were removed; mayPurge: their removal was begun.
	purged, mayPurge uint64
	term             uint64
	crashes          int
	refused          int // appends for which there was no space, or no body

	bodies bodies
	lacks  bool // now and then a body is not there
}

func newModel(s *simenv.Sim, seed uint64) *model {
	return &model{sim: s, rng: rand.New(rand.NewPCG(seed, 1)), term: 1, purged: 1, mayPurge: 1,
		bodies: bodies{}}
}

func (m *model) last() uint64 { return uint64(len(m.entries)) }

// more makes entries behind entry after.
func (m *model) more(after uint64) []Entry {
	mk := maker{index: after, term: m.term}
	for i := after; i > 0 && mk.number == 0; i-- {
		if e := &m.entries[i-1]; e.Type == Normal && len(e.Data) > 0 {
			env, _, err := entry.Parse(e.Data)
			ok(err)
			if env.Term == e.Term {
				mk.number = env.Last()
			}
		}
	}
	var entries []Entry
	for range 1 + m.rng.IntN(5) {
		switch m.rng.IntN(14) {
		case 0:
			entries = append(entries, mk.empty())
		case 1:
			mk.index++
			entries = append(entries, Entry{Index: mk.index, Term: mk.term, Type: ConfChangeV2, Data: []byte{1, 2, byte(mk.index)}})
		case 2:
			e := mk.next(2, 10, 0) // lost its leader
			mk.number -= 2
			entry1, _, err := entry.Parse(e.Data)
			ok(err)
			entry1.Term--
			entry1.Put(e.Data)
			entries = append(entries, e)
		case 3:
			entries = append(entries, mk.large(m.bodies, 1+m.rng.IntN(3), m.rng.IntN(900)))
		default:
			size := m.rng.IntN(900)
			switch m.rng.IntN(40) {
			case 0:
				size = directSize + m.rng.IntN(1000)
			case 1, 2:
				size = 20_000
			}
			var flags uint8
			if m.rng.IntN(10) == 0 {
				flags = entry.FlagRotate
				mk.version = uint8(mk.index % (entry.LargeVersion + 1)) // 0 stands for the first
			}
			entries = append(entries, mk.next(uint32(m.rng.IntN(4)), size, flags))
		}
	}
	return entries
}

// append appends to the log and to the model. It returns the log's error.
func (m *model) append(l *Log) error {
	after := m.last()
	if m.rng.IntN(8) == 0 && after > m.committed {
		after = m.committed + m.rng.Uint64N(after-m.committed)
		m.term++
	} else if m.rng.IntN(10) == 0 {
		m.term++
	}
	return m.put(l, after, m.more(after))
}

// put appends entries behind entry after.
func (m *model) put(l *Log, after uint64, entries []Entry) error {
	if after < m.last() {
		m.other = m.entries
		m.durable = min(m.durable, after)
	}
	before := m.entries
	m.entries = append(m.entries[:after:after], entries...)
	err := l.Append(entries)
	if (errors.Is(err, file.ErrNoSpace) || errors.Is(err, ErrNoBody)) && l.Err() == nil {
		m.refusedAt(l, before, after, errors.Is(err, ErrNoBody))
		return nil
	}
	if err == nil {
		m.other = nil
		assert(l.LastIndex() == m.last(), "the log ends at %d, not %d", l.LastIndex(), m.last())
		m.durable = max(m.durable, l.SyncedIndex())
	}
	return err
}

// refusedAt takes down how far the log has got with an append that has failed: it is as before,
// or ends where a large transaction begins or ends.
func (m *model) refusedAt(l *Log, before []Entry, after uint64, noBody bool) {
	last := l.LastIndex()
	isLarge := func(i uint64) bool {
		return i > after && i <= m.last() && len(m.entries[i-1].Data) > 0 && entry.Kind(m.entries[i-1].Data[0]) == entry.Large
	}
	switch {
	case isLarge(last+1) || isLarge(last) && !noBody:
		m.entries = m.entries[:last]
	default:
		assert(!noBody && (last == after || last == uint64(len(before))), "the log ends at %d, %d or %d were right", last, after, len(before))
		m.entries = before[:last]
	}
	m.refused++
	m.other, m.durable = nil, max(min(m.durable, last), l.SyncedIndex())
	ok(m.is(l, l.fs, m.entries))
}

func (m *model) sync(l *Log) error {
	err := l.Sync()
	if err == nil {
		m.durable = m.last()
		assert(l.SyncedIndex() == m.last(), "synced up to %d", l.SyncedIndex())
		if m.committed < m.last() {
			m.committed += m.rng.Uint64N(m.last() - m.committed + 1)
		}
		l.SetCommitted(m.committed)
	}
	return err
}

func (m *model) purge(l *Log) error {
	keep := m.rng.Uint64N(m.committed + 1)
	m.mayPurge = max(m.mayPurge, keep)
	_, err := l.Purge(Retention{Keep: keep, MaxBytes: 1})
	if err == nil {
		m.purged = l.FirstIndex()
	}
	return err
}

// life works with the log until it fails or has done enough.
func (m *model) life(l *Log, steps int) error {
	for range steps {
		var err error
		switch n := m.rng.IntN(20); {
		case n < 10:
			err = m.append(l)
		case n < 16:
			err = m.sync(l)
		case n < 18:
			m.read(l)
		case n == 18:
			err = m.purge(l)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// read looks at entries somewhere.
func (m *model) read(l *Log) {
	first, last := l.FirstIndex(), l.LastIndex()
	if first > last {
		return
	}
	lo := first + m.rng.Uint64N(last-first+1)
	hi := lo + 1 + m.rng.Uint64N(last-lo+1)
	got, err := l.Read(lo, hi, m.rng.Uint64N(5000))
	if errors.Is(err, file.ErrCrashed) {
		return
	}
	ok(err)
	assert(len(got) > 0 && sameEntries(got, m.entries[lo-1:][:len(got)]), "entries from %d to %d differ", lo, hi-1)
}

// recovered checks what an Open has found.
func (m *model) recovered(l *Log, fsys file.FS) {
	last := l.LastIndex()
	assert(last >= m.durable, "the log ends at %d, %d was durable", last, m.durable)
	assert(l.SyncedIndex() == last, "synced %d, last %d", l.SyncedIndex(), last)
	names := must(fsys.List("binlog"))
	assert(len(names) == len(l.Files())+1, "the directory holds %v", names) // and the side mark
	for _, branch := range [][]Entry{m.entries, m.other} {
		if last <= uint64(len(branch)) && m.is(l, fsys, branch[:last]) == nil {
			m.entries, m.other, m.durable = branch[:last], nil, last
			l.SetCommitted(m.committed)
			return
		}
	}
	panic(fmt.Sprintf("the log's %d entries are not what was appended: %v", last, m.is(l, fsys, m.entries[:min(last, m.last())])))
}

// is compares the log and its files with entries.
func (m *model) is(l *Log, fsys file.FS, entries []Entry) error {
	want := render(entries, m.bodies)
	files := l.Files()
	first := files[0].FirstIndex
	if first < m.purged || first > max(m.mayPurge, 1) {
		return fmt.Errorf("first is %d, purged up to %d, asked for %d", first, m.purged, m.mayPurge)
	}
	for len(want) > 0 && want[0].number < files[0].Number {
		want = want[1:]
	}
	if len(want) != len(files) {
		return fmt.Errorf("%d files, not %d", len(files), len(want))
	}
	for i, f := range files {
		if err := sameFile(l, fsys, f, &want[i], i+1 < len(files)); err != nil {
			return err
		}
	}
	for lo := first; lo <= uint64(len(entries)); {
		got, err := l.Read(lo, uint64(len(entries))+1, 1<<20)
		if err != nil || !sameEntries(got, entries[lo-1:][:len(got)]) {
			return fmt.Errorf("entries from %d on differ (%v)", lo, err)
		}
		lo += uint64(len(got))
	}
	return m.lookups(l, entries)
}

// lookups checks the log's indexes.
func (m *model) lookups(l *Log, entries []Entry) error {
	number := uint64(0)
	for i := range entries {
		e := &entries[i]
		before := number
		if e.Type == Normal && len(e.Data) > 0 {
			if env, _, _ := entry.Parse(e.Data); env.Term == e.Term && env.Count > 0 {
				number = env.Last()
			}
		}
		if e.Index < l.FirstIndex() || m.rng.IntN(8) != 0 && i+3 < len(entries) {
			continue
		}
		if term := must(l.Term(e.Index)); term != e.Term {
			return fmt.Errorf("entry %d has term %d", e.Index, term)
		}
		if n := must(l.Number(e.Index)); n != number {
			return fmt.Errorf("after entry %d the number is %d, not %d", e.Index, n, number)
		}
		if len(e.Data) > 0 && entry.Kind(e.Data[0]) == entry.Large && e.Type == Normal {
			readBody(l, m.bodies, e.Index)
			ok(l.VerifyFile(must(l.Position(e.Index)).File))
		}
		if pos := must(l.Position(e.Index)); must(l.Find(pos)) != e.Index {
			return fmt.Errorf("position %v is not found", pos)
		}
		for n := before + 1; n <= number; n++ {
			if index := must(l.IndexOf(n)); index != e.Index {
				return fmt.Errorf("transaction %d is in entry %d, not %d", n, index, e.Index)
			}
		}
	}
	return nil
}

// sameFile compares a file with what it must hold: a closed one in every byte.
func sameFile(l *Log, fsys file.FS, f FileInfo, want *rendered, followed bool) error {
	h, err := fsys.Open("binlog/"+f.Name, file.OpenOptions{ReadOnly: true})
	ok(err)
	defer h.Close()
	got, err := io.ReadAll(io.NewSectionReader(h, 0, must(h.Size())))
	ok(err)
	if !followed {
		clear(got[markOffset:termsOffset])
		if !allZero(got[f.Size:]) {
			return fmt.Errorf("%s has bytes behind its end", f.Name)
		}
		got = got[:f.Size]
	}
	if f.Number != want.number || f.FirstIndex != want.first || !bytes.Equal(got, want.bytes) {
		return fmt.Errorf("%s (number %d from entry %d, %d bytes) is not number %d from entry %d, %d bytes",
			f.Name, f.Number, f.FirstIndex, len(got), want.number, want.first, len(want.bytes))
	}
	return nil
}

// large has a log take large transactions.
func (m *model) large(fsys *simfile.FS, opt Options) Options {
	opt.Newest = entry.LargeVersion
	opt.Bodies = &stage{fs: fsys, all: m.bodies, lacks: func() bool { return m.lacks && m.rng.IntN(5) == 0 }}
	return opt
}

// start opens the log, or makes it.
func (m *model) start(fsys *simfile.FS, opt Options) (*Log, error) {
	opt = m.large(fsys, opt)
	l, err := Open(opt)
	if errors.Is(err, ErrNoLog) {
		assert(m.durable == 0 && m.purged == 1, "the log is gone")
		l, err = Create(opt, firstFile)
	}
	if err != nil {
		return nil, err
	}
	m.recovered(l, fsys)
	return l, nil
}
