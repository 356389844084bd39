package raftlog

import (
	"encoding/binary"
	"hash/crc32"
	"syscall"
	"testing"

	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
)

// A disk has confirmed writes of one of the files and lost them: what the member has promised is in the other one.
func TestStateLostWrites(t *testing.T) {
	for _, name := range []string{StateFileName, StateCopyName} {
		for lost := range 6 {
			simulate(t, 1, func(s *simenv.Sim) {
				fsys := simfile.New(s, 1)
				opt := stateOptions(fsys, s)
				sf := must(CreateState(opt, State{}))
				var was [][]byte
				for i := range uint64(6) {
					was = append(was, must(file.ReadWhole(fsys, name, 1<<20)))
					ok(sf.Set(State{Term: 10 + i, Vote: i, LogFile: uint32(i), Commit: 100 * i}))
				}
				want := sf.Get()
				ok(sf.Close())
				ok(file.WriteWhole(fsys, name, was[lost]))
				read, lostOf, err := ReadState(opt)
				assert(err == nil && read == want && (lostOf > 0) == (name == StateFileName), "as read it is %+v, want %+v, %d are lost, %v", read, want, lostOf, err)
				assert(string(must(file.ReadWhole(fsys, name, 1<<20))) == string(was[lost]), "reading has changed %s", name)
				sf = must(OpenState(opt))
				assert(sf.Get() == want, "%s as before %d writes: %+v, want %+v", name, 6-lost, sf.Get(), want)
				assert((sf.Lost() > 0) == (name == StateFileName), "it says that %d are lost", sf.Lost())
				ok(sf.SetVote(99, 1))
				ok(sf.Close())
				for _, name := range []string{StateFileName, StateCopyName} { // each has it all again
					fsys := fsys.KillImage()
					opt := stateOptions(fsys, s)
					other := must(file.ReadWhole(fsys, name, 1<<20))
					ok(file.WriteWhole(fsys, StateFileName, other))
					ok(file.WriteWhole(fsys, StateCopyName, other))
					sf := must(OpenState(opt))
					assert(sf.Get().Term == 99 && sf.Get().Commit == want.Commit, "%s: %+v", name, sf.Get())
					ok(sf.Close())
				}
			})
		}
	}
}

// A copy that is missing, damaged or foreign is made anew, and is none of a new file's; a start needs no space for it.
func TestStateCopyIsMadeAnew(t *testing.T) {
	simulate(t, 1, func(s *simenv.Sim) {
		fsys := simfile.New(s, 1)
		opt := stateOptions(fsys, s)
		state := State{Term: 3, Vote: 2, LogFile: 4, Commit: 5}
		ok(must(CreateState(opt, state)).Close())
		content := func(name string) string { return string(must(file.ReadWhole(fsys, name, 1<<20))) }
		change := func(fn func(b []byte)) func() {
			return func() {
				b := []byte(content(StateCopyName))
				fn(b)
				ok(file.WriteWhole(fsys, StateCopyName, b))
			}
		}
		for what, spoil := range map[string]func(){
			"missing": func() { ok(fsys.Remove(StateCopyName)) },
			"empty":   func() { ok(file.WriteWhole(fsys, StateCopyName, nil)) },
			"flipped": change(func(b []byte) { b[slotSpacing+50] ^= 1 }),
			"foreign": change(func(b []byte) {
				b[40], b[32] = 250, 99 // much newer, too
				binary.LittleEndian.PutUint32(b[72:], crc32.Checksum(b[:72], castagnoli))
			}),
		} {
			spoil()
			sf := must(OpenState(opt))
			assert(sf.Get() == state && sf.Lost() == 0, "%s: %+v", what, sf.Get())
			ok(sf.Close())
			assert(content(StateCopyName)[:slotSpacing] == content(StateFileName)[:slotSpacing], "%s: the copy is another", what)
		}
		ok(fsys.Remove(StateCopyName))
		in := fsys.Inject(simfile.Fault{Ops: simfile.OpWrite, Name: StateCopyName + "*", Err: file.ErrNoSpace})
		sf := must(OpenState(opt))
		ok(sf.SetVote(4, 1))
		ok(sf.Close())
		in.Stop()
		assert(in.Hits() > 0, "no fault")
		sf = must(OpenState(opt))
		assert(sf.Get().Term == 4, "%+v", sf.Get())
		ok(sf.SetVote(90, 1))
		ok(sf.Close())
		ok(fsys.Remove(StateFileName))
		sf = must(CreateState(opt, State{Term: 1}))
		assert(sf.Get() == State{Term: 1}, "a new file has what an old copy says: %+v", sf.Get())
		ok(sf.Close())
	})
}

// Starts that are cut short between the two files do not look like a disk that loses writes.
func TestStateStartsCutShort(t *testing.T) {
	simulate(t, 1, func(s *simenv.Sim) {
		fsys := simfile.New(s, 1)
		opt := stateOptions(fsys, s)
		ok(must(CreateState(opt, State{Term: 1})).Close())
		for range 5 {
			in := fsys.Inject(simfile.Fault{Ops: simfile.OpWrite, Skip: 1, Times: 1, Err: syscall.EIO})
			_, err := OpenState(opt)
			assert(err != nil && in.Hits() == 1, "the start is not cut short: %v", err)
			in.Stop()
		}
		sf := must(OpenState(opt))
		assert(sf.Lost() <= 1 && sf.Get() == State{Term: 1}, "%d states are lost, %+v", sf.Lost(), sf.Get())
		ok(sf.Close())
	})
}
