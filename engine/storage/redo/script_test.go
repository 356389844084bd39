package redo

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/page"
)

// TestScripts runs testdata. The commands:
//
//	create                   makes a log and opens it
//	log NAME len=N           logs a group of N bytes, header included
//	reserve NAME len=N       takes its LSNs; fill NAME publishes it
//	spin N len=M             logs N groups, with a checkpoint after each
//	flush | checkpoint NAME  up to the end of the group
//	stop                     closes the log
//	kill                     ends the process: the file stays as it is
//	open [capacity=N]        recovers; prints the groups that the scan saw
//	resize N                 while the log is open
//	damage NAME|slot0|slot0a flips a bit of the group's payload, of a header block's
//	                         two copies or of one
//	bytes NAME               says whether the file holds the whole group, and of which epoch
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if strings.Contains(path, "fuzz") {
			return
		}
		s := &script{groups: map[string]scanned{}}
		defer func() {
			if s.l != nil {
				ok(s.l.Close())
			}
		}()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return s.run(t, d) })
	})
}

type script struct {
	fs     *simfile.FS
	l      *Log
	groups map[string]scanned
}

func (s *script) options() Options {
	opt := tiny(s.fs, fixedRandom{env.Real()})
	opt.FlushInterval = time.Hour
	return opt
}

// fixedRandom makes the epochs, and so the checksums, the same in every run.
type fixedRandom struct{ env.Env }

func (fixedRandom) Uint64() uint64 { return 42 }

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	name := ""
	if len(d.CmdArgs) > 0 {
		name = d.CmdArgs[0].Key
	}
	g := s.groups[name]
	switch d.Cmd {
	case "create":
		s.fs = simfile.New(env.Real(), 1)
		s.l = must(create(s.options()))
	case "log", "reserve":
		var n int
		d.ScanArgs(t, "len", &n)
		return s.log(name, n, d.Cmd == "log")
	case "spin":
		var count, n int
		d.ScanArgs(t, "len", &n)
		if _, err := fmt.Sscan(name, &count); err != nil {
			return err.Error()
		}
		for range count {
			s.log("spin", n, true)
			ok(s.l.Checkpoint(s.l.Published()))
		}
	case "fill":
		s.l.Fill(g.start, g.payload)
		s.l.Publish(g.start, g.end)
	case "flush":
		ok(s.l.FlushTo(g.end))
	case "checkpoint":
		ok(s.l.Checkpoint(g.end))
	case "stop":
		ok(s.l.Close())
		s.l = nil
		return ""
	case "kill":
		ok(s.l.writeTo(s.l.published.Load()))
		image := s.fs.KillImage()
		s.l.Fail(errors.New("killed"))
		_ = s.l.Close()
		s.l, s.fs = nil, image
		return ""
	case "open":
		capacity := 0
		d.MaybeScanArgs(t, "capacity", &capacity)
		return s.open(int64(capacity))
	case "resize":
		var n int64
		if _, err := fmt.Sscan(name, &n); err != nil {
			return err.Error()
		}
		if err := s.l.resize(n); err != nil {
			return err.Error()
		}
		return fmt.Sprintf("capacity %d", s.l.Capacity())
	case "damage":
		return s.damage(name)
	case "bytes":
		return s.bytes(name)
	default:
		return "unknown command"
	}
	return s.state()
}

func (s *script) log(name string, n int, publish bool) string {
	payload := append([]byte(name), bytes.Repeat([]byte{'.'}, n-GroupHeaderSize-len(name))...)
	start, end := s.l.Reserve(len(payload))
	s.groups[name] = scanned{start, end, payload}
	if publish {
		s.l.Fill(start, payload)
		s.l.Publish(start, end)
	}
	return fmt.Sprintf("%s [%d,%d)", name, start, end)
}

func (s *script) state() string {
	return fmt.Sprintf("checkpoint %d, bound %d, flushed %d, published %d, current %d", s.l.CheckpointLSN(),
		s.l.bound.Load(), s.l.Flushed(), s.l.Published(), s.l.Current())
}

func (s *script) open(capacity int64) string {
	opt := s.options()
	if capacity != 0 {
		opt.Capacity = capacity
	}
	var b strings.Builder
	l, found, err := reopen(opt)
	for _, g := range found {
		fmt.Fprintf(&b, "%s [%d,%d)\n", strings.Trim(string(g.payload), "."), g.start, g.end)
	}
	if err != nil {
		return b.String() + strings.TrimSpace(err.Error())
	}
	s.l = l
	return b.String() + s.state()
}

func (s *script) damage(name string) string {
	switch {
	case strings.HasPrefix(name, "slot"):
		block := int64(name[4] - '0')
		damage(s.fs, block*blockSize+60)
		if !strings.HasSuffix(name, "a") {
			damage(s.fs, block*blockSize+copyOffset+60)
		}
	default:
		off, _ := s.shape().place(s.groups[name].start + GroupHeaderSize)
		damage(s.fs, off)
	}
	return ""
}

func (s *script) shape() shape {
	f := must(s.fs.Open("redo/"+fileName, file.OpenOptions{}))
	defer f.Close()
	return must(readSlots(f)).shape
}

func (s *script) bytes(name string) string {
	f := must(s.fs.Open("redo/"+fileName, file.OpenOptions{}))
	defer f.Close()
	slot := must(readSlots(f))
	g := s.groups[name]
	b := make([]byte, g.end-g.start)
	for i := range b {
		off, _ := slot.place(g.start + page.LSN(i))
		must(f.ReadAt(b[i:i+1], off))
	}
	if !bytes.Equal(b[GroupHeaderSize:], g.payload) {
		return "overwritten"
	}
	found := binary.LittleEndian.Uint32(b[4:])
	for i := range uint32(8) {
		if checksum(slot.epoch+i, g.start, g.payload) == found {
			return fmt.Sprintf("whole, epoch of the checkpoint + %d", i)
		}
	}
	return "damaged"
}

// Damage to any byte below the bound is reported; anywhere above it the log ends
// with the last group before.
func TestDamageAnywhere(t *testing.T) {
	for at := page.LSN(0); at < 700; at += 3 {
		fsys := simfile.New(env.Real(), 1)
		opt := tiny(fsys, env.Real())
		opt.FlushInterval = time.Hour
		l := must(create(opt))
		var ends []page.LSN
		for i := range 7 {
			_, end := add(l, payloadOf(uint64(i), 100-GroupHeaderSize))
			ends = append(ends, end)
			if i == 3 {
				ok(l.FlushTo(end))
				ok(l.saveBound())
			}
		}
		ok(l.FlushTo(ends[6]))
		image := fsys.KillImage()
		bound := l.bound.Load()
		ok(l.Close())
		off, _ := l.shape.place(StartLSN + at)
		damage(image, off)
		opt.FS = image
		l, found, err := reopen(opt)
		var corrupt *CorruptError
		if errors.As(err, &corrupt) {
			if uint64(StartLSN+at) >= bound {
				t.Fatalf("byte %d: %v", at, err)
			}
			if corrupt.LSN != StartLSN+at/100*100 || corrupt.Bound != page.LSN(bound) || corrupt.File != "redo/redo.log" {
				t.Fatalf("byte %d: %v", at, err)
			}
			continue
		}
		ok(err)
		if uint64(StartLSN+at) < bound || len(found) != int(at/100) {
			t.Fatalf("byte %d is damaged, %d groups found", at, len(found))
		}
		ok(l.Close())
	}
}

// Open of arbitrary bytes is an error or an open log, never a panic.
func FuzzOpen(f *testing.F) {
	f.Add(uint64(3), uint64(8192), uint64(0), []byte("\x09\x00\x00\x00abcdA........"))
	f.Fuzz(func(t *testing.T, seq, ckpt, ahead uint64, log []byte) {
		e := env.Real()
		fsys := simfile.New(e, 1)
		opt := tiny(fsys, e)
		ok(must(create(opt)).Close())
		h := must(fsys.Open("redo/"+fileName, file.OpenOptions{}))
		s := must(readSlots(h))
		s.sequence, s.checkpoint, s.flushed = seq, page.LSN(ckpt), page.LSN(ckpt+ahead)
		ok(s.write(h, seq%2))
		log = log[:min(len(log), 4096)]
		if len(log) >= GroupHeaderSize+1 { // make the first checksum good
			binary.LittleEndian.PutUint32(log[4:], checksum(s.epoch, s.checkpoint, log[GroupHeaderSize:]))
		}
		off, _ := s.place(s.checkpoint)
		off = min(off, headerSize+s.capacity-int64(len(log)))
		must(h.WriteAt(log, off))
		ok(h.Close())
		var c collector
		if l, err := open(opt, c.scan); err == nil {
			ok(l.Close())
		}
	})
}

func FuzzSlot(f *testing.F) {
	b := make([]byte, slotSize)
	s := slot{shape: shape{8192, MinCapacity}, checkpoint: 9000, flushed: 9000, sequence: 5, epoch: 7}
	s.encode(b)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < slotSize {
			return
		}
		b = b[:slotSize]
		for _, fix := range []bool{false, true} {
			if fix {
				copy(b, slotMagic)
				binary.LittleEndian.PutUint32(b[8:], slotVersion)
				binary.LittleEndian.PutUint32(b[72:], crc32.Checksum(b[:72], castagnoli))
			}
			if s, problem := decodeSlot(b); problem == "" {
				again := make([]byte, slotSize)
				s.encode(again)
				if !bytes.Equal(again, b) {
					t.Fatalf("%x\n%x", b, again)
				}
				if off, run := s.place(s.flushed); off < headerSize || run < 1 || off+run > headerSize+s.capacity {
					t.Fatalf("place %d, %d", off, run)
				}
			}
		}
	})
}
