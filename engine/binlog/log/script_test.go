package log

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/triremedb/trireme/engine/binlog/body"
	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
)

// TestScripts runs testdata. The commands:
//
//	create [index=I term=T number=N version=V newest=W]   makes a log on an empty disk
//	append term=T [at=I] [count=N] [size=S] [trx=K] [rotate] [version=V] [type=Y] [time=seconds]
//	                           N entries (1) of K transactions (0) and S bytes of body (10)
//	append term=T [at=I] [size=S] large [lacks] [copy]   a large transaction of two frames of S bytes of events;
//	                           its body is missing, or cannot be renamed
//	append term=T [at=I] empty   an entry without data
//	body I                     what OpenBody finds
//	sync [soon] | commit I | close | open    a sync is long after the one before, or soon after it
//	kill | power               ends the process, or the machine too: the files stay as they are
//	side | forget side         shows the side mark; leaves it as it was when it was made
//	tear I                     zeros from the middle of the record of entry I to the end of its file
//	flip I | flip F offset=O   damages the data of entry I, or a byte of file F
//	zero F offset=O count=N    a sector that was not written, or a part of it
//	remove F | remove side | mark F sequence=S offset=O | unmark F sequence=S   takes a file away;
//	                           writes a sync mark, or takes one away
//	newest V                   the program knows format versions up to V from now on
//	versions                   of all files
//	version F | group F        makes the file's header that of another version or group
//	terms | read lo hi | index number | hash F | verify F
//	purge keep=I [bytes=B] [age=seconds]
//	full on|off                the disk takes no more, or does again
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if strings.Contains(path, "fuzz") {
			return
		}
		s := &script{}
		defer func() {
			if s.l != nil {
				_ = s.l.Close()
			}
		}()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return s.run(t, d) })
	})
}

type script struct {
	fs     *simfile.FS
	l      *Log
	number map[uint64]uint64 // last transaction up to each entry
	newest uint8
	clock  clock
	bodies bodies
	lacks  bool
}

// clock stands at an hour after 1970, and runs when the script says so.
type clock struct {
	env.Env
	runs time.Duration
}

func (*clock) Now() time.Time             { return time.Unix(3600, 0) }
func (c *clock) Monotonic() time.Duration { return c.runs }

func (s *script) options() Options {
	s.clock.Env = env.Real()
	opt := options(s.fs, &s.clock)
	opt.Cache = -1
	opt.Newest = s.newest
	opt.Bodies = &stage{fs: s.fs, all: s.bodies, lacks: func() bool { return s.lacks }}
	return opt
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	var err error
	switch d.Cmd {
	case "create":
		start := Start{}
		d.MaybeScanArgs(t, "index", &start.Index)
		d.MaybeScanArgs(t, "term", &start.Term)
		d.MaybeScanArgs(t, "number", &start.Number)
		d.MaybeScanArgs(t, "version", &start.Version)
		s.newest = 0
		d.MaybeScanArgs(t, "newest", &s.newest)
		s.bodies = bodies{}
		s.fs, s.number = simfile.New(env.Real(), 1), map[uint64]uint64{start.Index: start.Number}
		s.l, err = Create(s.options(), start)
	case "append":
		err = s.append(t, d)
	case "sync":
		if !d.HasArg("soon") {
			s.clock.runs += markTime
		}
		err = s.l.Sync()
	case "commit":
		s.l.SetCommitted(arg(t, d, 0))
	case "close":
		err = s.l.Close()
	case "open":
		var l *Log
		if l, err = Open(s.options()); err == nil {
			s.l = l
		}
	case "newest":
		s.newest = uint8(arg(t, d, 0))
		return ""
	case "versions":
		var b strings.Builder
		for _, f := range s.l.Files() {
			fmt.Fprintln(&b, f.Name, f.Version)
		}
		return b.String()
	case "full":
		s.fs.SetCapacity(0)
		if d.CmdArgs[0].Key == "on" {
			s.fs.SetCapacity(s.fs.Used())
		}
	case "purge":
		var r Retention
		var age int
		d.MaybeScanArgs(t, "keep", &r.Keep)
		d.MaybeScanArgs(t, "bytes", &r.MaxBytes)
		d.MaybeScanArgs(t, "age", &age)
		r.MaxAge = time.Duration(age) * time.Second
		_, err = s.l.Purge(r)
	case "kill", "power", "zero", "tear", "flip", "forget", "remove", "mark", "unmark", "version", "group":
		s.hurt(t, d)
		return ""
	default:
		return s.ask(t, d)
	}
	if err != nil {
		return err.Error()
	}
	if torn := s.l.TornEnd(); torn != nil && d.Cmd == "open" {
		return s.state() + torn.String()
	}
	return s.state()
}

func arg(t *testing.T, d *datadriven.TestData, i int) (n uint64) {
	if _, err := fmt.Sscan(d.CmdArgs[i].Key, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

func (s *script) append(t *testing.T, d *datadriven.TestData) error {
	count, size, trx, at, typ, seconds := 1, 10, 0, s.l.LastIndex()+1, 0, int64(0)
	mk := maker{}
	d.ScanArgs(t, "term", &mk.term)
	d.MaybeScanArgs(t, "at", &at)
	d.MaybeScanArgs(t, "count", &count)
	d.MaybeScanArgs(t, "size", &size)
	d.MaybeScanArgs(t, "trx", &trx)
	d.MaybeScanArgs(t, "type", &typ)
	d.MaybeScanArgs(t, "time", &seconds)
	d.MaybeScanArgs(t, "version", &mk.version)
	mk.index, mk.number = at-1, s.number[at-1]
	var flags uint8
	if d.HasArg("rotate") {
		flags = entry.FlagRotate
	}
	var entries []Entry
	numbers := map[uint64]uint64{}
	for range count {
		var e Entry
		switch {
		case d.HasArg("large"):
			e = mk.large(s.bodies, 2, size)
		case d.HasArg("empty"):
			e = mk.empty()
		default:
			e = mk.next(uint32(trx), size, flags)
		}
		if seconds != 0 {
			binary.LittleEndian.PutUint64(e.Data[32:], uint64(seconds)*1e6)
		}
		e.Type = uint8(typ)
		flags = 0
		numbers[mk.index] = mk.number
		entries = append(entries, e)
	}
	if s.lacks = d.HasArg("lacks"); d.HasArg("copy") {
		defer renamesFail(s.fs).Stop()
	}
	err := s.l.Append(entries)
	if err == nil {
		for i, n := range numbers {
			s.number[i] = n
		}
	}
	return err
}

// state shows the log and its files.
func (s *script) state() string {
	var b strings.Builder
	fmt.Fprintf(&b, "entries %d to %d, synced %d, committed %d, transactions to %d\n",
		s.l.FirstIndex(), s.l.LastIndex(), s.l.SyncedIndex(), s.l.Committed(), s.l.LastNumber())
	for _, f := range s.l.Files() {
		fmt.Fprintf(&b, "%s: %d bytes, entries %d to %d, transactions %d to %d", f.Name, f.Size, f.FirstIndex, f.LastIndex, f.FirstNumber, f.LastNumber)
		if f.Closed {
			b.WriteString(", closed")
		}
		h := s.open(f.Name)
		block := make([]byte, headerSize)
		must(h.ReadAt(block, 0))
		if m, blank, _ := decodeMarks(block, f.Number); !blank {
			fmt.Fprintf(&b, ", mark %d: %d before entry %d", m.sequence, m.offset, m.index)
		}
		if size := must(h.Size()); size != f.Size {
			fmt.Fprintf(&b, ", file of %d", size)
		}
		ok(h.Close())
		b.WriteByte('\n')
	}
	return b.String()
}

func (s *script) open(name string) file.File {
	return must(s.fs.Open("binlog/"+name, file.OpenOptions{}))
}

// hurt does to the files what a crash or a bad disk does.
func (s *script) hurt(t *testing.T, d *datadriven.TestData) {
	switch d.Cmd {
	case "kill":
		s.fs = s.fs.KillImage()
		return
	case "power":
		s.fs.SyncAll()
		s.fs = s.fs.CrashImage()
		return
	}
	if d.Cmd == "forget" {
		forgetSide(s.fs)
		return
	}
	if d.Cmd == "remove" && d.HasArg("side") {
		ok(s.fs.Remove("binlog/" + SyncedMark))
		return
	}
	var pos Position
	if d.Cmd == "tear" || d.Cmd == "flip" && !d.HasArg("offset") {
		pos = must(s.l.Position(arg(t, d, 0)))
		pos.Offset += recordHeader + entry.EnvelopeSize
	} else {
		pos.File = arg(t, d, 0)
		d.MaybeScanArgs(t, "offset", &pos.Offset)
	}
	if d.Cmd == "remove" {
		ok(s.fs.Remove("binlog/" + FileName(pos.File)))
		return
	}
	f := s.open(FileName(pos.File))
	defer f.Close()
	b := make([]byte, headerSize)
	switch d.Cmd {
	case "zero":
		var n int
		d.ScanArgs(t, "count", &n)
		must(f.WriteAt(make([]byte, n), pos.Offset))
	case "tear":
		must(f.WriteAt(make([]byte, must(f.Size())-pos.Offset), pos.Offset))
	case "flip":
		must(f.ReadAt(b[:1], pos.Offset))
		b[0] ^= 4
		must(f.WriteAt(b[:1], pos.Offset))
	case "mark", "unmark":
		m := mark{offset: pos.Offset}
		d.ScanArgs(t, "sequence", &m.sequence)
		if d.Cmd == "mark" {
			m.encode(b, pos.File)
		}
		must(f.WriteAt(b[:markSize], m.at()))
	case "version", "group":
		must(f.ReadAt(b, 0))
		b[map[string]int{"version": 8, "group": 20}[d.Cmd]]++
		binary.LittleEndian.PutUint32(b[headerCRC:], headerChecksum(b))
		must(f.WriteAt(b, 0))
	}
}

// ask runs the commands that only look.
func (s *script) ask(t *testing.T, d *datadriven.TestData) string {
	var answer any
	var err error
	switch d.Cmd {
	case "terms":
		var terms []uint64
		for i := s.l.FirstIndex() - 1; i <= s.l.LastIndex(); i++ {
			terms = append(terms, must(s.l.Term(i)))
		}
		answer = terms
	case "read":
		var entries []Entry
		entries, err = s.l.Read(arg(t, d, 0), arg(t, d, 1), MaxRead)
		var text []string
		for _, e := range entries {
			text = append(text, fmt.Sprintf("%d/%d:%d", e.Index, e.Term, len(e.Data)))
		}
		answer = strings.Join(text, " ")
	case "index":
		answer, err = s.l.IndexOf(arg(t, d, 0))
	case "body":
		var b *Body
		if b, err = s.l.OpenBody(arg(t, d, 0)); err == nil {
			answer = fmt.Sprintf("%d bytes at %d, %d events in %d frames, %v", b.Stored, b.Offset, b.Events, b.Frames, b.Damaged(body.Verify(b, &b.LargeBody)))
			ok(b.Close())
		}
	case "hash":
		answer, err = s.l.HashFile(arg(t, d, 0))
		answer = fmt.Sprintf("%x", answer)
	case "side":
		side, err := openSide(&Options{FS: s.fs, Dir: "binlog", Group: testGroup})
		ok(err)
		if side.f == nil {
			return "it is missing"
		}
		ok(side.f.Close())
		if side.at.file == 0 {
			return "nothing is known"
		}
		return fmt.Sprintf("%s, offset %d, before entry %d, %s", FileName(side.at.file), side.at.offset, side.at.index, side.of)
	case "verify":
		answer, err = "good", s.l.VerifyFile(arg(t, d, 0))
	default:
		t.Fatalf("unknown command %s", d.Cmd)
	}
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(answer)
}
