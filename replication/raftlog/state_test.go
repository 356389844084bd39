package raftlog

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
)

// stateModel knows which state must be there, and which may be.
type stateModel struct{ is, may State }

// live opens the state file and changes it some times.
func (m *stateModel) live(s *simenv.Sim, fsys *simfile.FS, rng *rand.Rand) error {
	sf, err := OpenState(stateOptions(fsys, s))
	if errors.Is(err, ErrNoState) && m.is == (State{}) {
		sf, err = CreateState(stateOptions(fsys, s), State{})
	}
	if err != nil {
		return err
	}
	got := sf.Get()
	assert(got == m.is || got == m.may, "the state is %+v, it was %+v, perhaps %+v", got, m.is, m.may)
	m.is, m.may = got, got
	for range 10 {
		next := m.is
		switch rng.IntN(5) {
		case 4:
			next.Commit += rng.Uint64N(3)
			m.may = next
			err = sf.SetCommit(next.Commit)
		case 0: // as it is
		case 1:
			next.LogFile = rng.Uint32N(5)
			m.may = next
			err = sf.SetLogFile(next.LogFile)
		case 2:
			next.Term, next.Vote = next.Term+1, rng.Uint64N(3)
			m.may = next
			err = sf.SetVote(next.Term, next.Vote)
		case 3:
			next.Term += 3
			m.may = next
			err = sf.Set(next)
		}
		if errors.Is(err, file.ErrNoSpace) {
			assert(sf.Get() == m.is && sf.state.err() == nil, "a full disk changes the state")
			continue
		}
		if err != nil {
			assert(sf.Set(State{Term: 999}) != nil, "the file is used after %v", err)
			_ = sf.Close()
			return err
		}
		assert(sf.Get() == next, "the state is %+v, not %+v", sf.Get(), next)
		m.is, m.may = next, next
	}
	return sf.Close()
}

// Power is lost at every change of a life in turn, and again.
func TestStateCrash(t *testing.T) {
	for seed := range uint64(10) {
		for k, crashed := int64(1), true; crashed; k++ {
			simulate(t, seed, func(s *simenv.Sim) {
				rng := rand.New(rand.NewPCG(seed, 1))
				m := &stateModel{}
				fsys := simfile.New(s, seed*1000+uint64(k))
				for at := k; at > 0; at /= 2 {
					fsys.CrashAt(at)
					err := m.live(s, fsys, rng)
					assert(err == nil || errors.Is(err, file.ErrCrashed), "%v", err)
					if at == k {
						crashed = fsys.Crashed()
					}
					if rng.IntN(3) == 0 {
						fsys = fsys.KillImage()
					} else {
						fsys = fsys.CrashImage()
					}
				}
				ok(m.live(s, fsys, rng))
			})
		}
	}
}

// Writes and syncs fail; the next process goes on with what it finds and has it durable.
func TestStateFailures(t *testing.T) {
	for seed := range uint64(200) {
		simulate(t, seed, func(s *simenv.Sim) {
			rng := rand.New(rand.NewPCG(seed, 1))
			m := &stateModel{}
			fsys := simfile.New(s, seed)
			ok(m.live(s, fsys, rng))
			fault := simfile.Fault{Ops: []simfile.Op{simfile.OpWrite, simfile.OpSync}[rng.IntN(2)], Skip: rng.IntN(8), Times: 1, Err: syscall.EIO}
			if fault.Ops == simfile.OpWrite && rng.IntN(2) == 0 {
				fault.Err = file.ErrNoSpace
			}
			in := fsys.Inject(fault)
			err := m.live(s, fsys, rng)
			assert(err == nil || errors.Is(err, fault.Err) || in.Hits() > 0, "%v", err)
			in.Stop()
			if rng.IntN(2) == 0 {
				fsys = fsys.CrashImage()
			}
			sf := must(OpenState(stateOptions(fsys, s)))
			got := sf.Get()
			assert(got == m.is || got == m.may, "the state is %+v, it was %+v, perhaps %+v", got, m.is, m.may)
			sf = must(OpenState(stateOptions(fsys.CrashImage(), s)))
			assert(sf.Get() == got, "what Open found is not durable")
		})
	}
}

// A full disk is no failure as long as what was there can be put back; a sync that fails in that is.
func TestStatePutBackFails(t *testing.T) {
	simulate(t, 1, func(s *simenv.Sim) {
		fsys := simfile.New(s, 1)
		sf := must(CreateState(stateOptions(fsys, s), State{Term: 1}))
		full := simfile.Fault{Ops: simfile.OpWrite, Times: 1, Err: file.ErrNoSpace}
		fsys.Inject(full)
		assert(errors.Is(sf.Set(State{Term: 2}), file.ErrNoSpace) && sf.state.err() == nil, "a full disk")
		ok(sf.Set(State{Term: 2}))
		for _, lost := range []error{syscall.EIO, file.ErrNoSpace} {
			sf := must(OpenState(stateOptions(fsys, s)))
			fsys.Inject(full)
			fsys.Inject(simfile.Fault{Ops: simfile.OpSync, Times: 1, Err: lost})
			err := sf.Set(State{Term: 3})
			assert(err != nil && !errors.Is(err, file.ErrNoSpace), "the state goes on after a failed sync: %v", err)
			assert(sf.Set(State{Term: 4}) != nil, "the file is used after %v", err)
			_ = sf.Close()
		}
		ok(sf.Close())
	})
}

// A state file that is damaged, foreign or newer is refused, each with its error.
func TestStateRefused(t *testing.T) {
	simulate(t, 1, func(s *simenv.Sim) {
		refused(simfile.New(s, 1), s, State{Term: 3, Vote: 2})
		refused(simfile.New(s, 2), s, State{Term: 3, Vote: 2, Commit: 9})
	})
}

func refused(fsys *simfile.FS, s *simenv.Sim, state State) {
	opt := stateOptions(fsys, s)
	ok(must(CreateState(opt, state)).Close())
	_, err := CreateState(opt, State{})
	assert(errors.Is(err, ErrExists), "%v", err)
	f := must(fsys.Open(StateFileName, file.OpenOptions{}))
	good := make([]byte, 2*slotSpacing)
	must(f.ReadAt(good, 0))
	for _, slot := range []int{0, slotSpacing} {
		for i := range stateSize {
			if stateSizeOld <= i && i < 88 {
				continue // says nothing
			}
			b := append([]byte(nil), good...)
			b[slot+i] ^= 1
			must(f.WriteAt(b, 0))
			_, err := OpenState(opt)
			assert(errors.Is(err, ErrDamaged), "byte %d: %v", slot+i, err)
		}
		b := append([]byte(nil), good...)
		b[slot+8] = stateRead + 1
		binary.LittleEndian.PutUint32(b[slot+72:], crc32.Checksum(b[slot:][:72], castagnoli))
		must(f.WriteAt(b, 0))
		_, err := OpenState(opt)
		assert(errors.Is(err, ErrNewerFormat), "%v", err)
	}
	ok(f.Truncate(slotSpacing))
	_, err = OpenState(opt)
	assert(errors.Is(err, ErrDamaged), "%v", err)
	must(f.WriteAt(append(append([]byte(nil), good[slotSpacing:]...), good[:slotSpacing]...), 0))
	_, err = OpenState(opt)
	assert(errors.Is(err, ErrDamaged), "slots in each other's place: %v", err)
	must(f.WriteAt(good, 0))
	ok(must(OpenState(opt)).Close())
	other := opt
	other.Member++
	_, err = OpenState(other)
	assert(errors.Is(err, ErrWrongMember), "%v", err)
	other = opt
	other.Group[3]++
	_, err = OpenState(other)
	assert(errors.Is(err, ErrWrongMember), "%v", err)
}

// older is a slot as older programs of the first format write it: without what follows, and
// with an index that the log must reach before the member votes.
func older(opt *StateOptions, sequence, voteFrom uint64, s State) []byte {
	b := make([]byte, slotSpacing)
	s.Commit = voteFrom
	encodeState(b, opt, sequence, s)
	return b[:stateSizeOld]
}

// Older programs read a file with a commit index, and write it; what they leave there of a
// commit index is none.
func TestStateOlderPrograms(t *testing.T) {
	simulate(t, 1, func(s *simenv.Sim) {
		fsys := simfile.New(s, 1)
		opt := stateOptions(fsys, s)
		ok(must(CreateState(opt, State{Term: 3})).Close())
		f := must(fsys.Open(StateFileName, file.OpenOptions{}))
		// One that had only older programs.
		must(f.WriteAt(make([]byte, 2*slotSpacing), 0))
		must(f.WriteAt(older(&opt, 2, 0, State{Term: 3}), 0))
		must(f.WriteAt(older(&opt, 3, 55, State{Term: 4, Vote: 1, LogFile: 6}), slotSpacing))
		sf := must(OpenState(opt))
		assert(sf.Get() == State{Term: 4, Vote: 1, LogFile: 6}, "%+v", sf.Get())
		ok(sf.SetCommit(7))
		for turn := range uint64(3) {
			ok(sf.SetVote(5+turn, 2))
			ok(sf.Close())
			for slot := range uint64(2) {
				b := make([]byte, stateSizeOld)
				must(f.ReadAt(b, int64(slot*slotSpacing)))
				le := binary.LittleEndian
				assert(le.Uint32(b[8:]) == 1 && le.Uint32(b[72:]) == crc32.Checksum(b[:72], castagnoli), "an older program refuses %x", b)
				assert(le.Uint64(b[64:]) == 7, "it would vote from index %d on", le.Uint64(b[64:]))
			}
			for i := range 1 + turn {
				sequence := sf.sequence + 1 + i
				must(f.WriteAt(older(&opt, sequence, 7, sf.Get()), int64(sequence%2)*slotSpacing))
			}
			sf = must(OpenState(opt))
			assert(sf.Get() == State{Term: 5 + turn, Vote: 2, LogFile: 6}, "%+v", sf.Get())
			ok(sf.SetCommit(7))
			ok(sf.Close())
			sf = must(OpenState(opt))
			assert(sf.Get().Commit == 7, "%+v", sf.Get())
		}
		ok(sf.Close())
	})
}

// A file of the second format is read, and written in the first.
func TestStateSecondFormat(t *testing.T) {
	simulate(t, 1, func(s *simenv.Sim) {
		fsys := simfile.New(s, 1)
		opt := stateOptions(fsys, s)
		state := State{Term: 3, Vote: 1, LogFile: 2}
		ok(must(CreateState(opt, state)).Close())
		f := must(fsys.Open(StateFileName, file.OpenOptions{}))
		le := binary.LittleEndian
		for slot := range int64(2) {
			b := older(&opt, uint64(4+slot), 0, state)
			le.PutUint32(b[8:], 2)
			le.PutUint32(b[72:], crc32.Checksum(b[:72], castagnoli))
			b = le.AppendUint64(b, 9)
			b = le.AppendUint32(b, crc32.Checksum(b, castagnoli))
			must(f.WriteAt(b, slot*slotSpacing))
		}
		state.Commit = 9
		for range 2 {
			sf := must(OpenState(opt))
			assert(sf.Get() == state, "%+v", sf.Get())
			ok(sf.Close())
		}
		b := make([]byte, 1)
		must(f.ReadAt(b, 8))
		first := b[0]
		must(f.ReadAt(b, slotSpacing+8))
		assert(first == 1 && b[0] == 1, "format versions %d and %d", first, b[0])
		// Its commit index has a checksum.
		must(f.WriteAt([]byte{2}, 8))
		_, err := OpenState(opt)
		assert(errors.Is(err, ErrDamaged), "%v", err)
	})
}

// Any bytes are a state file or refused.
func FuzzState(f *testing.F) {
	opt := stateOptions(nil, nil)
	good := make([]byte, 2*slotSpacing)
	encodeState(good, &opt, 2, State{Term: 1})
	encodeState(good[slotSpacing:], &opt, 1, State{})
	f.Add(good, good[slotSpacing:])
	f.Add(good[:stateSize], good[slotSpacing:][:stateSize-1])
	f.Add([]byte{}, []byte(stateMagic))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		fsys := simfile.New(env.Real(), 1)
		h := must(fsys.Open(StateFileName, file.OpenOptions{Create: true}))
		must(h.WriteAt(a, 0))
		must(h.WriteAt(b, slotSpacing))
		sf, err := OpenState(stateOptions(fsys, env.Real()))
		if err != nil {
			if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrWrongMember) && !errors.Is(err, ErrNewerFormat) {
				t.Fatal(err)
			}
			return
		}
		ok(sf.SetVote(7, 7))
		ok(sf.Close())
		if s := must(OpenState(stateOptions(fsys, env.Real()))).Get(); s.Term != 7 || s.Vote != 7 {
			t.Fatalf("%+v", s)
		}
	})
}
