package raftlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"path"
	"slices"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
)

// State is what a member must never forget.
type State struct {
	Term, Vote uint64
	// LogFile is a file of the log that is there, durably, with entries in it; 0: none is
	// known. A log that ends before it has lost files.
	LogFile uint32
	// Commit is an index that was committed and is in the log, durably; 0: none is known. A
	// log that ends before it has lost entries.
	Commit uint64
}

// The state file is two slots, written in turn, each in a sector of its own. Integers
// are little-endian.
//
//	 0  8  magic
//	 8  4  format version
//	12  4  LogFile
//	16 16  group id
//	32  8  member id
//	40  8  sequence; its lowest bit names the slot
//	48  8  term
//	56  8  vote
//	64  8  Commit
//	72  4  CRC-32C of bytes 0 to 71
//	76 12  zeros (format version 2: Commit, and a CRC-32C of bytes 0 to 83)
//	88  8  sequence, again
//	96  4  CRC-32C of bytes 88 to 95
//
// Older programs of format version 1 write the first 76 bytes, and leave the rest. Where this
// program has Commit they have an index that the log must reach before the member votes, so
// that they read a file with a commit index. Bytes 88 to 99 tell whose index it is: it is a
// Commit where the sequence stands there again. Format version 2 is read and not written: the
// programs of format version 1 refuse it.
//
// Both slots are good from the beginning on, and a sector is written whole or not: a bad
// one is damage. The other one may lack a vote that was given, so that it cannot stand in.
//
// A write that the disk has confirmed and lost leaves slots that are good and old, and a member
// that has forgotten its vote elects two leaders in one term. Each state is therefore written,
// and synced, to a copy of the file first, which has the same slots: the newest state of both
// counts. A copy that is missing, damaged, or another member's (programs that know of none have
// left it) is made anew.
const (
	stateMagic   = "TRIRAFT\x00"
	stateVersion = 1 // as it is written
	stateRead    = 2
	stateSize    = 100
	stateSizeOld = 76 // of the older programs of format version 1
	slotSpacing  = 4096

	// StateFileName is the name of the state file.
	StateFileName = "raft.state"
	// StateCopyName is the name of its copy.
	StateCopyName = StateFileName + ".copy"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// The errors that callers tell apart.
var (
	// ErrNoState: there is no state file.
	ErrNoState = errors.New("raftlog: there is no state file, which says whom the member has voted for: put it back, or empty the node's " +
		"directory and let it join as a new member")
	// ErrExists: CreateState found one.
	ErrExists = errors.New("raftlog: there is a state file already")
	// ErrDamaged: the state file is not what was written.
	ErrDamaged = errors.New("raftlog: the state file is damaged. The member cannot know whom it voted for: " +
		"empty its data directory and let it be provisioned from another member")
	// ErrWrongMember: the state file belongs to another member or group.
	ErrWrongMember = errors.New("raftlog: the state file is that of another member: put this member's back, or empty the node's directory and " +
		"let it join as a new member")
	// ErrNewerFormat: a newer version of the program wrote the state file.
	ErrNewerFormat = errors.New("raftlog: the state file's format is newer than this program")
)

// StateOptions says where the state file lies and whose it is. FS and Env are required.
type StateOptions struct {
	FS  file.FS
	Env env.Env
	// Dir is an existing directory; "." by default.
	Dir string
	// Group and Member are the ids of the group and of the member in it.
	Group  [16]byte
	Member uint64
}

func (o *StateOptions) path() string { return path.Join(o.Dir, StateFileName) }

func (o *StateOptions) copyPath() string { return path.Join(o.Dir, StateCopyName) }

func (o *StateOptions) dir() string { return path.Clean(o.Dir) }

// StateFile is an open state file. One task writes; Get may be called by any.
type StateFile struct {
	opt      StateOptions
	turn     *env.Mutex // held while the file is written
	f        file.File
	copy     file.File // nil: there was no space for one at the start
	sequence uint64
	older    State // what the slot says that is written next
	state    guarded
	lost     uint64 // states that the copy had and the file had lost
}

// CreateState makes a state file with the given contents, durably. Error: ErrExists.
func CreateState(opt StateOptions, s State) (*StateFile, error) {
	name := opt.path()
	if there, err := opt.FS.Exists(name); err != nil || there {
		if err == nil {
			err = fmt.Errorf("%w: %s", ErrExists, name)
		}
		return nil, err
	}
	b := make([]byte, 2*slotSpacing)
	encodeState(b, &opt, 2, s)
	encodeState(b[slotSpacing:], &opt, 1, s)
	if err := file.WriteWhole(opt.FS, opt.copyPath(), b); err != nil { // never an older one beside the file
		return nil, err
	}
	if err := file.WriteWhole(opt.FS, name, b); err != nil {
		return nil, err
	}
	return OpenState(opt)
}

// OpenState opens the state file and makes durable what it says. Errors: ErrNoState,
// ErrDamaged, ErrWrongMember, ErrNewerFormat.
func OpenState(opt StateOptions) (*StateFile, error) {
	name := opt.path()
	f, err := opt.FS.Open(name, file.OpenOptions{})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", ErrNoState, name)
	}
	if err != nil {
		return nil, err
	}
	sf := &StateFile{opt: opt, turn: env.NewMutex(opt.Env), f: f}
	err = sf.load()
	if err == nil {
		err = sf.openCopy()
	}
	if err == nil {
		// The process before may have ended between a write and its sync, with
		// the name not durable or the slot not.
		err = opt.FS.SyncDir(opt.dir())
	}
	if err == nil {
		// The copy last, lest starts that are cut short have it run ahead.
		err = sf.writeTo(sf.Get(), sf.f, sf.copy)
	}
	if err != nil {
		return nil, errors.Join(err, sf.release())
	}
	return sf, nil
}

// ReadState reads what OpenState would find, and changes nothing. lost is [StateFile.Lost]. Errors: those of OpenState.
func ReadState(opt StateOptions) (state State, lost uint64, err error) {
	read := func(name string) (slots, error) {
		f, err := opt.FS.Open(name, file.OpenOptions{ReadOnly: true})
		if err != nil {
			return slots{}, err
		}
		s, err := readSlots(f, &opt)
		return s, errors.Join(err, f.Close())
	}
	s, err := read(opt.path())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return State{}, 0, fmt.Errorf("%w: %s", ErrNoState, opt.path())
	case err != nil:
		return State{}, 0, fmt.Errorf("%s: %w", opt.path(), err)
	}
	if second, err := read(opt.copyPath()); err == nil && second.sequence > s.sequence {
		return second.newest, second.sequence - s.sequence, nil
	}
	return s.newest, 0, nil
}

// slots are what a state file says.
type slots struct {
	sequence      uint64
	newest, older State
}

// load reads the file.
func (sf *StateFile) load() error {
	s, err := readSlots(sf.f, &sf.opt)
	if err != nil {
		return fmt.Errorf("%s: %w", sf.opt.path(), err)
	}
	sf.take(s)
	return nil
}

func (sf *StateFile) take(s slots) {
	sf.sequence, sf.older = s.sequence, s.older
	sf.state.set(s.newest)
}

func readSlots(f file.File, opt *StateOptions) (all slots, err error) {
	b := make([]byte, 2*slotSpacing)
	n, err := f.ReadAt(b, 0)
	if err != nil && err != io.EOF {
		return all, err
	}
	for i := range 2 {
		seq, s, err := decodeState(b[min(n, i*slotSpacing):min(n, (i+1)*slotSpacing)], opt)
		if err == nil && seq%2 != uint64(i) {
			err = fmt.Errorf("%w (a slot lies in the place of the other)", ErrDamaged)
		}
		if err != nil {
			return all, err
		}
		if i == 0 || seq > all.sequence {
			all = slots{seq, s, all.newest}
		} else {
			all.older = s
		}
	}
	return all, nil
}

// openCopy opens the copy, and takes from it what the file has lost. Without space for one there is
// none until the next start, which needs no space.
func (sf *StateFile) openCopy() error {
	name := sf.opt.copyPath()
	f, err := sf.opt.FS.Open(name, file.OpenOptions{})
	if err == nil {
		var s slots
		if s, err = readSlots(f, &sf.opt); err == nil {
			sf.copy = f
			if s.sequence > sf.sequence {
				sf.lost = s.sequence - sf.sequence
				sf.take(s)
			}
			return nil
		}
		_ = f.Close()
	}
	b := make([]byte, 2*slotSpacing)
	newest := sf.sequence % 2
	encodeState(b[newest*slotSpacing:], &sf.opt, sf.sequence, sf.Get())
	encodeState(b[(1-newest)*slotSpacing:], &sf.opt, sf.sequence-1, sf.older)
	if err = file.WriteWhole(sf.opt.FS, name, b); err == nil {
		sf.copy, err = sf.opt.FS.Open(name, file.OpenOptions{})
	}
	if errors.Is(err, file.ErrNoSpace) {
		return nil
	}
	return err
}

// Lost is how many states the file had lost at the start and the copy had; 1 may also be one that was
// being written when the process ended.
func (sf *StateFile) Lost() uint64 { return sf.lost }

func encodeState(b []byte, opt *StateOptions, sequence uint64, s State) {
	le := binary.LittleEndian
	copy(b, stateMagic)
	le.PutUint32(b[8:], stateVersion)
	le.PutUint32(b[12:], s.LogFile)
	copy(b[16:], opt.Group[:])
	le.PutUint64(b[32:], opt.Member)
	le.PutUint64(b[40:], sequence)
	le.PutUint64(b[48:], s.Term)
	le.PutUint64(b[56:], s.Vote)
	le.PutUint64(b[64:], s.Commit)
	le.PutUint32(b[72:], crc32.Checksum(b[:72], castagnoli))
	le.PutUint64(b[88:], sequence)
	le.PutUint32(b[96:], crc32.Checksum(b[88:96], castagnoli))
}

func decodeState(b []byte, opt *StateOptions) (sequence uint64, s State, err error) {
	le := binary.LittleEndian
	switch {
	case len(b) < stateSizeOld || string(b[:8]) != stateMagic:
		return 0, s, fmt.Errorf("%w (a slot is missing)", ErrDamaged)
	case le.Uint32(b[72:]) != crc32.Checksum(b[:72], castagnoli): // newer formats have it there too
		return 0, s, fmt.Errorf("%w (a slot's checksum is wrong)", ErrDamaged)
	case le.Uint32(b[8:]) > stateRead:
		return 0, s, fmt.Errorf("%w: version %d, known are versions up to %d", ErrNewerFormat, le.Uint32(b[8:]), stateRead)
	case string(b[16:32]) != string(opt.Group[:]) || le.Uint64(b[32:]) != opt.Member:
		return 0, s, fmt.Errorf("%w: member %x of group %x, this is member %x of group %x",
			ErrWrongMember, le.Uint64(b[32:]), b[16:32], opt.Member, opt.Group)
	}
	s = State{Term: le.Uint64(b[48:]), Vote: le.Uint64(b[56:]), LogFile: le.Uint32(b[12:])}
	sequence = le.Uint64(b[40:])
	s.Commit, err = decodeCommit(b, sequence)
	return sequence, s, err
}

// decodeCommit finds the commit index in a slot that is good otherwise.
func decodeCommit(b []byte, sequence uint64) (uint64, error) {
	le := binary.LittleEndian
	b = append(slices.Clip(b), make([]byte, max(0, stateSize-len(b)))...)
	if le.Uint32(b[8:]) == stateRead {
		if le.Uint32(b[84:]) != crc32.Checksum(b[:84], castagnoli) {
			return 0, fmt.Errorf("%w (a slot's commit index has a wrong checksum)", ErrDamaged)
		}
		return le.Uint64(b[76:]), nil
	}
	again := b[88:stateSize]
	if bytes.Equal(again, make([]byte, len(again))) {
		return 0, nil // only older programs have written here
	}
	if le.Uint32(again[8:]) != crc32.Checksum(again[:8], castagnoli) {
		return 0, fmt.Errorf("%w (the checksum of a slot's second sequence is wrong)", ErrDamaged)
	}
	if le.Uint64(again) != sequence {
		return 0, nil // an older program wrote it last
	}
	return le.Uint64(b[64:]), nil
}

// Get returns the state that is durable.
func (sf *StateFile) Get() State { return sf.state.get() }

// Set makes s the state, durably; a state that is there already costs nothing. Error:
// file.ErrNoSpace, and nothing has changed; after any other the file is not used again.
func (sf *StateFile) Set(s State) error {
	sf.turn.Lock()
	defer sf.turn.Unlock()
	return sf.set(s)
}

func (sf *StateFile) set(s State) error {
	if err := sf.state.err(); err != nil {
		return err
	}
	if s == sf.Get() {
		return nil
	}
	return sf.write(s)
}

// SetVote makes term and vote durable and leaves the rest.
func (sf *StateFile) SetVote(term, vote uint64) error {
	sf.turn.Lock()
	defer sf.turn.Unlock()
	s := sf.Get()
	s.Term, s.Vote = term, vote
	return sf.set(s)
}

// SetLogFile makes LogFile durable and leaves the rest.
func (sf *StateFile) SetLogFile(number uint32) error {
	sf.turn.Lock()
	defer sf.turn.Unlock()
	s := sf.Get()
	s.LogFile = number
	return sf.set(s)
}

// SetCommit makes the commit index durable and leaves the rest.
func (sf *StateFile) SetCommit(index uint64) error {
	sf.turn.Lock()
	defer sf.turn.Unlock()
	s := sf.Get()
	s.Commit = index
	return sf.set(s)
}

// write makes s durable in the copy and in the file. If the file fails, the copy's state counts at the
// next start: a vote that was not given is only not given then either, and the rest is true.
func (sf *StateFile) write(s State) error { return sf.writeTo(s, sf.copy, sf.f) }

// writeTo writes s to the files in this order.
func (sf *StateFile) writeTo(s State, files ...file.File) error {
	for _, f := range files {
		if f == nil {
			continue
		}
		if err := sf.put(f, s); err != nil {
			return err
		}
	}
	sf.sequence++
	sf.older = sf.Get()
	sf.state.set(s)
	return nil
}

// put writes the next state to one of the files, durably.
func (sf *StateFile) put(f file.File, s State) error {
	var b [stateSize]byte
	at := int64((sf.sequence+1)%2) * slotSpacing
	encodeState(b[:], &sf.opt, sf.sequence+1, s)
	_, err := f.WriteAt(b[:], at)
	if err == nil {
		return sf.sync(f)
	}
	// It may have got half way, and a bad slot is taken for damage: try to put
	// back what was there.
	encodeState(b[:], &sf.opt, sf.sequence-1, sf.older)
	if _, werr := f.WriteAt(b[:], at); werr == nil {
		if serr := sf.sync(f); serr != nil {
			return serr
		}
	}
	err = fmt.Errorf("raftlog: state file: %w", err)
	if errors.Is(err, file.ErrNoSpace) {
		return err
	}
	return sf.state.fail(err)
}

// sync syncs one of the files. A failed sync is final.
func (sf *StateFile) sync(f file.File) error {
	err := f.Sync()
	if err == nil {
		return nil
	}
	if errors.Is(err, file.ErrNoSpace) {
		err = errors.New(err.Error())
	}
	return sf.state.fail(fmt.Errorf("raftlog: state file: %w", err))
}

// Close releases the file. Everything in it is durable.
func (sf *StateFile) Close() error {
	sf.turn.Lock()
	defer sf.turn.Unlock()
	sf.state.fail(fs.ErrClosed)
	return sf.release()
}

func (sf *StateFile) release() error {
	err := sf.f.Close()
	if sf.copy != nil {
		err = errors.Join(err, sf.copy.Close())
	}
	return err
}
