package log

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"io/fs"
	"math"

	"github.com/triremedb/trireme/engine/storage/file"
)

// The side mark is a file of the node's own beside those of the log. After each sync the
// place up to which the log is durable is written to it, and never synced: a process that is
// killed leaves it exact, since what was written is read as long as power was not lost. After
// a loss of power it is some older one of the places that were written. DESIGN.md says what
// follows from either.
//
// It is two slots, in sectors of their own, written in turn. Integers are little-endian.
//
//	 0  8  magic
//	 8  4  format version
//	12  4  checksum of the record before the place
//	16 16  group id
//	32  8  sequence; its lowest bit names the slot
//	40  8  number of the file; 0: nothing is known
//	48  8  offset
//	56  8  index of the entry that begins there, or will
//	64 36  boot id
//	100 4  CRC-32C of bytes 0 to 99
const (
	// SyncedMark is the name of the side mark's file, in the log's directory.
	SyncedMark = "synced.mark"

	sideMagic   = "TRISYNC\x00"
	sideVersion = 1
	sideSize    = 104
	bootIDSize  = 36
)

// sideMark is the open side mark. Guarded by Log.turn.
type sideMark struct {
	f        file.File // nil: there was no room to make it
	boot     string    // of this run of the machine
	sequence uint64
	// at is what the newest slot says, and of is the boot id in it.
	at place
	of string
	// doubtful: a slot cannot be read, or is not the one that must be there, and may have been the newest.
	doubtful bool
	// lost says what is wrong with a mark that no crash has left so: the newest place is not known, not even as a
	// lower bound. Empty: nothing. It is asked at the start.
	lost string
	// most is the furthest place that some slot may name: one whose write has failed, and
	// one that cannot be read now, may do so too.
	most place
	buf  [sideSize]byte
}

// behind reports whether p lies behind q in the log.
func (p place) behind(q place) bool {
	return p.file > q.file || p.file == q.file && p.offset > q.offset
}

// sameEnd reports whether both are the same boundary, as far as a mark tells.
func (p place) sameEnd(q place) bool {
	return p.file == q.file && p.offset == q.offset && p.index == q.index && p.chain == q.chain
}

// openSide opens the side mark, and changes nothing: a start that refuses the log for what the mark does not say has to
// find the same the next time.
func openSide(opt *Options) (sideMark, error) {
	s := sideMark{boot: opt.FS.BootID()}
	f, err := opt.FS.Open(opt.path(SyncedMark), file.OpenOptions{})
	if errors.Is(err, fs.ErrNotExist) {
		s.lost = "is missing"
		return s, nil
	}
	if err != nil {
		return s, err
	}
	s.f = f
	s.read(opt)
	return s, nil
}

// read reads the slots. Both are there from the beginning on, durably, and a sector is written whole or not: a bad
// one is damage, and may have been the newest. Programs from before that was so made the file with one slot.
func (s *sideMark) read(opt *Options) {
	var b [2 * sectorSize]byte
	n, err := s.f.ReadAt(b[:], 0)
	if err != nil && err != io.EOF {
		n, s.most, s.doubtful, s.lost = 0, place{file: math.MaxUint64}, true, "cannot be read"
	}
	var sequences [2]uint64
	for i := range 2 {
		slot := b[min(n, i*sectorSize):min(n, (i+1)*sectorSize)]
		sequence, at, of, ok := decodeSide(slot, opt)
		if !ok || sequence%2 != uint64(i) {
			if !allZero(slot) {
				s.most, s.doubtful, s.lost = place{file: math.MaxUint64}, true, "is damaged"
			}
			continue
		}
		sequences[i] = sequence
		if at.behind(s.most) {
			s.most = at
		}
		if sequence > s.sequence {
			s.sequence, s.at, s.of = sequence, at, of
		}
	}
	older := min(sequences[0], sequences[1])
	// The other slot was written just before the newest one.
	s.doubtful = s.doubtful || s.sequence != 0 && older != s.sequence-1
	if older == 0 && s.sequence != 1 && s.lost == "" {
		s.lost = "is damaged"
	}
}

// renew puts right a side mark that is not there, or is damaged, durably, so that a crash cannot be why it is so at
// the next start. The log is durable up to at. What may be in a file that says nothing is not to be found beside newer slots some day.
func (s *sideMark) renew(opt *Options, at place) error {
	switch {
	case s.f != nil && s.lost == "" && s.sequence != 0:
		return nil
	case s.f != nil && s.sequence != 0: // the other slot is the bad one
		err := s.put(&opt.Group, at)
		if err == nil {
			return s.f.Sync()
		}
		if !errors.Is(err, file.ErrNoSpace) {
			return err
		}
	}
	err := s.remove(opt)
	if err == nil {
		err = s.create(opt, at)
	}
	if errors.Is(err, file.ErrNoSpace) {
		return s.remove(opt) // it is tried again when there is something to say
	}
	return err
}

// create makes the file.
func (s *sideMark) create(opt *Options, at place) (err error) {
	if s.f, err = opt.FS.Open(opt.path(SyncedMark), file.OpenOptions{Create: true}); err != nil {
		return err
	}
	for range 2 {
		if err := s.put(&opt.Group, at); err != nil {
			return err
		}
	}
	if err := s.f.Sync(); err != nil {
		return err
	}
	return opt.FS.SyncDir(opt.Dir)
}

// remove removes the file, durably: the log goes on without it.
func (s *sideMark) remove(opt *Options) error {
	var err error
	if s.f != nil {
		err = s.f.Close()
	}
	*s = sideMark{boot: opt.FS.BootID()}
	return errors.Join(err, removeSide(opt))
}

func decodeSide(b []byte, opt *Options) (sequence uint64, at place, boot string, ok bool) {
	le := binary.LittleEndian
	if len(b) < sideSize || string(b[:8]) != sideMagic || le.Uint32(b[8:]) != sideVersion ||
		le.Uint32(b[100:]) != crc32.Checksum(b[:100], castagnoli) || string(b[16:32]) != string(opt.Group[:]) {
		return 0, at, "", false
	}
	at = place{file: le.Uint64(b[40:]), offset: int64(le.Uint64(b[48:])), index: le.Uint64(b[56:]), chain: le.Uint32(b[12:])}
	for end := 64; end < 64+bootIDSize && b[end] != 0; end++ {
		boot = string(b[64 : end+1])
	}
	return le.Uint64(b[32:]), at, boot, true
}

// put writes a slot for at.
func (s *sideMark) put(group *[16]byte, at place) error {
	b, le := s.buf[:], binary.LittleEndian
	clear(b)
	copy(b, sideMagic)
	le.PutUint32(b[8:], sideVersion)
	le.PutUint32(b[12:], at.chain)
	copy(b[16:], group[:])
	le.PutUint64(b[32:], s.sequence+1)
	le.PutUint64(b[40:], at.file)
	le.PutUint64(b[48:], uint64(at.offset))
	le.PutUint64(b[56:], at.index)
	copy(b[64:64+bootIDSize], s.boot)
	le.PutUint32(b[100:], crc32.Checksum(b[:100], castagnoli))
	if at.behind(s.most) {
		s.most = at
	}
	if _, err := s.f.WriteAt(b, int64((s.sequence+1)%2)*sectorSize); err != nil {
		return err
	}
	s.sequence++
	s.at, s.of, s.doubtful, s.lost = at, s.boot, false, ""
	return nil
}

// exact reports whether the side mark names the very place up to which the log was durable
// when its process ended, since power was not lost in between. It is asked at the start.
func (s *sideMark) exact() bool {
	return s.at.file != 0 && s.boot != "" && s.of == s.boot && !s.doubtful
}

// noteSynced writes the side mark. A full disk is no reason to fail: recovery is less sharp
// without it. What cannot be written over goes, on a file system that asks for space for that: the
// place in it would be taken for the newest one.
func (l *Log) noteSynced() error {
	s := &l.side
	if s.at.sameEnd(l.synced) && s.of == s.boot {
		return nil
	}
	if s.f == nil {
		return s.renew(&l.opt, l.synced)
	}
	err := s.put(&l.opt.Group, l.synced)
	if errors.Is(err, file.ErrNoSpace) {
		return s.remove(&l.opt)
	}
	return err
}

// lowerSide makes durable that nothing behind at is said to be durable, before it is taken
// back. Both slots say so: either may be the one that is read some day.
func (l *Log) lowerSide(at place) error {
	s := &l.side
	if s.f == nil || !s.most.behind(at) {
		return nil
	}
	for range 2 {
		err := s.put(&l.opt.Group, at)
		if errors.Is(err, file.ErrNoSpace) { // without the file nothing is said
			return s.remove(&l.opt)
		}
		if err != nil {
			return err
		}
	}
	if err := s.f.Sync(); err != nil {
		return err
	}
	s.most = at
	return nil
}

// removeSide removes the side mark of a log that is not there, durably.
func removeSide(opt *Options) error {
	err := opt.FS.Remove(opt.path(SyncedMark))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return opt.FS.SyncDir(opt.Dir)
}
