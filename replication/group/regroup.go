package group

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"time"

	"go.etcd.io/raft/v3/raftpb"
	"strings"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/binlog/log"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/replication/provision"
	"github.com/triremedb/trireme/replication/raftlog"
)

// Regroup makes the directory of one member of a group that has lost its majority that of the only
// member of a new group, in place (decision 0035). FS, Env, Group and Member are required.
//
// [Regroup.Prepare] looks and changes no more than a start of the node would, [Regroup.Run] does it. From
// its first write to its last the file "regrouping" is there: a node refuses to start, and Run goes on.
// What made the directory the old member's is moved aside, see [Regroup.Aside]; nothing of it is removed.
type Regroup struct {
	FS      file.FS
	Env     env.Env
	Storage storage.Options // FS and Env are set here
	// Until is the last transaction to keep; 0: all that the log has.
	Until uint64
	// Removed goes on although the member is none of its group any more, or not yet. The group may have
	// written without it.
	Removed bool

	// The new group, and the member that it begins with.
	Group  [16]byte
	Member uint64
	Addr   string // empty: where the old group knew it

	locked io.Closer
	home   *provision.Home
	plan   *regroupPlan
	begun  bool // the plan is that of an earlier run
}

// Survey is what there is in the directory of a member that is stopped.
type Survey struct {
	Group  [16]byte
	Member Member   // as its group knows it
	Others []Member // of its group
	Left   bool     // it is no member: it was removed, or the group has not taken it in yet

	Applied LogPoint // up to where the data are
	Known   LogPoint // up to where the log is known to be committed
	Last    LogPoint // where the log ends, as far as it can be read
	Damage  error    // why no more of it can be read; nil: it is whole
	State   error    // why what the member knew of the log cannot be read, or what its disk has lost of that; a new group needs neither. nil: it is whole

	// Receiving: newer data of another member were being received, and are not all there.
	Receiving bool
	// Resumes: an earlier run was cut short. The rest but Until, Group and Addr is not known then.
	Resumes bool

	Until    LogPoint // up to where the new group will have everything
	Addr     string   // where it will be reached
	LogBytes uint64   // of entries that will be copied
}

// LogPoint is an entry of the log, the last transaction up to there, and the leader's clock in the entry;
// zero where no clock is known.
type LogPoint struct {
	Index, Number uint64
	Time          time.Time
}

// errRegrouping says that a regroup was cut short.
var errRegrouping = errors.New("group: trireme regroup was cut short in this directory: run it again, it goes on where it was")

// Prepare takes the directory and says what is in it. With an error the survey has what was found so far, or
// is nil. The directory is the caller's until Close.
func (r *Regroup) Prepare() (*Survey, error) {
	there, err := r.FS.Exists(".")
	if err == nil && !there {
		err = errors.New("group: there is no such directory")
	}
	if err == nil {
		err = r.foreign()
	}
	if err != nil {
		return nil, err
	}
	if r.locked, err = r.FS.Lock(lockName); err != nil {
		return nil, fmt.Errorf("group: the member's directory: %w: stop the node first", err)
	}
	s, err := r.look()
	if err != nil {
		err = errors.Join(err, r.Close())
	}
	return s, err
}

// Close gives the directory back.
func (r *Regroup) Close() error { return r.locked.Close() }

func (r *Regroup) look() (*Survey, error) {
	var err error
	if r.plan, err = readPlan(r.FS); err != nil {
		return nil, err
	}
	if r.begun = r.plan != nil; r.begun {
		return r.lookAgain()
	}
	id, err := readIdentity(r.FS)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, r.nobody()
	}
	if errors.Is(err, errIdentity) {
		return nil, errors.New("group: the file named member, which says whose directory this is, is damaged: " +
			"put it back from a copy, take another member's directory, or restore a backup")
	}
	if err != nil {
		return nil, err
	}
	if r.home, err = OpenHome(r.FS, r.Env); err != nil {
		return nil, err
	}
	s := &Survey{Group: id.group, Member: Member{ID: id.id}}
	half, complete := r.home.Receiving()
	s.Receiving = half || complete
	if _, received := r.home.Received(); !received && len(id.founded.members) == 0 {
		return s, errNoData
	}
	if names, err := r.home.Data().List("."); errors.Is(err, fs.ErrNotExist) || err == nil && len(names) == 0 {
		return s, fmt.Errorf("%w (%s is missing, or empty)", errNoData, r.home.Dir())
	}
	return s, r.survey(s, id)
}

var errNoData = errors.New("group: this member has no data of its own: it was to be given them by the others; " +
	"name the directory of a member that has data, or restore a backup")

// nobody says what a directory is that belongs to no member.
func (r *Regroup) nobody() error {
	for _, c := range []struct{ name, what string }{
		{restoringName, "a restore into this directory was cut short: run trireme restore again"},
		{discardedName, strings.TrimPrefix(errDiscarded.Error(), "group: ")},
		{raftlog.StateFileName, "the file named member, which says whose directory this is, is missing: put it back, or restore a backup"},
	} {
		if there, err := r.FS.Exists(c.name); err != nil || there {
			return errors.Join(err, errors.New("group: "+c.what))
		}
	}
	return errNoMember
}

var errNoMember = errors.New("group: this is not the directory of a member: it belongs to no group")

// foreign makes sure that nothing is written, not even a lock, where there is nothing of a member's.
func (r *Regroup) foreign() error {
	for _, name := range []string{identityName, planName, restoringName, raftlog.StateFileName} {
		if there, err := r.FS.Exists(name); err != nil || there {
			return err
		}
	}
	return errNoMember
}

// lookAgain is look for a run that goes on.
func (r *Regroup) lookAgain() (*Survey, error) {
	p := r.plan
	s := &Survey{Group: p.old, Member: Member{ID: p.member}, Resumes: true, Addr: p.to.founded.members[0].Addr, Until: LogPoint{Number: p.until}}
	switch {
	case r.Until != 0 && r.Until != p.until:
		return s, fmt.Errorf("group: the run that was cut short goes to transaction %d: run it without another one, or with that", p.until)
	case r.Addr != "" && r.Addr != s.Addr:
		return s, fmt.Errorf("group: the run that was cut short is for the address %s: run it with that; when it is done, run it once more with the other", s.Addr)
	}
	var err error
	r.home, err = provision.OpenHome(r.FS)
	return s, err
}

// survey reads the engine, the log and Raft's state.
func (r *Regroup) survey(s *Survey, id *identity) error {
	state, err := r.readState(id)
	if s.State = err; err != nil && !errors.Is(err, raftlog.ErrDamaged) && !errors.Is(err, raftlog.ErrNoState) && !errors.Is(err, errLostStates) {
		return err
	}
	// The log before the engine: opening that one where there is nothing would make one. Before the engine has said
	// how far it is nothing is taken for a torn end, and cut off.
	opt := r.logOptions(id.group, "")
	opt.Known = math.MaxUint64
	l, damage, err := openSalvaged(opt, 0)
	if err != nil {
		return err
	}
	defer func() { closeSalvaged(l) }()
	members, err := r.readEngine(s, id)
	if err != nil {
		return err
	}
	given, err := readGiven(r.home.Data())
	s.State = errors.Join(s.State, err)
	committed := max(state.Commit, given)
	if damage != nil && l != nil {
		closeSalvaged(l)
		opt.Known = max(s.Applied.Index, committed)
		if l, damage, err = openSalvaged(opt, s.Applied.Index+1); err != nil {
			return err
		}
	}
	s.Damage = damage
	s.tell(members)
	if s.Addr = r.Addr; s.Addr == "" {
		s.Addr = s.Member.Addr
	}
	r.readLog(s, l, uint64(state.LogFile), committed)
	if err := r.judge(s); err != nil {
		return err
	}
	term := state.Term
	if l != nil {
		term = max(term, l.LastTerm())
	}
	r.plan = &regroupPlan{old: id.group, member: id.id, until: s.Until.Number, term: term, to: identity{group: r.Group, id: r.Member,
		founded: roster{members: []Member{{ID: r.Member, Addr: s.Addr}}, state: &raftpb.ConfState{Voters: []uint64{r.Member}}}}}
	return nil
}

func (r *Regroup) readState(id *identity) (raftlog.State, error) {
	st, lost, err := raftlog.ReadState(stateOptions(&Options{FS: r.FS, Env: r.Env}, id))
	if err != nil {
		return raftlog.State{}, err
	}
	return st, lostStates(lost)
}

// logOptions place a log of a group: that in use, or one below a directory.
func (r *Regroup) logOptions(group [16]byte, below string) log.Options {
	o := log.Options{FS: r.home.Data(), Env: r.Env, Group: group, Preallocate: -1}
	if below != "" {
		o.FS, o.Dir = r.FS, below+"/"+r.logDir()
	}
	return o
}

// logDir is the directory of the log in the member's.
func (r *Regroup) logDir() string { return r.home.Dir() + "/" + logDirName }

// logDirName is where a log lies in the directory of the data.
const logDirName = "binlog"

// openSalvaged opens a log, or as much of it as can be read: damage says why that is not all from the entry need on, and l
// is nil if it is nothing.
func openSalvaged(opt log.Options, need uint64) (l *log.Log, damage, err error) {
	l, err = log.Open(opt)
	var corrupt *log.CorruptError
	switch {
	case errors.As(err, &corrupt):
		damage = errors.New(corrupt.Where())
	case errors.Is(err, log.ErrMissingFile):
		damage = errors.New("files in the middle of it are missing")
	case errors.Is(err, log.ErrNoLog):
		return nil, errors.New("there is none"), nil
	default:
		return l, nil, err
	}
	opt.Salvage, opt.Needed = true, need
	if l, err = log.Open(opt); err != nil {
		return nil, damage, nil
	}
	switch err := l.Err(); {
	case errors.As(err, &corrupt): // of the last file; an earlier one may be damaged as well
		damage = errors.New(corrupt.Where())
	case err == nil && l.FirstIndex() <= need:
		damage = nil // only files of which nothing is needed
	}
	return l, damage, nil
}

// closeSalvaged closes what openSalvaged has opened, if anything. It was only read, and one with damage would say so
// again.
func closeSalvaged(l *log.Log) {
	if l != nil {
		_ = l.Close()
	}
}

// withEngine opens the engine for fn.
func (r *Regroup) withEngine(fn func(eng *storage.Engine) error) (err error) {
	o := r.Storage
	o.FS, o.Env, o.PurgeTasks = r.home.Data(), r.Env, -1
	eng, err := storage.Open(o)
	if err != nil {
		return fmt.Errorf("%w\ngroup: the data of this member cannot be opened: if no other member has any, restore a backup", err)
	}
	return errors.Join(fn(eng), eng.Close())
}

// readEngine reads how far the data are, and who is in the group.
func (r *Regroup) readEngine(s *Survey, id *identity) (members roster, err error) {
	members = id.founded
	err = r.withEngine(func(eng *storage.Engine) error {
		number, pos := eng.Applied()
		s.Applied = LogPoint{Index: pos.Index, Number: number}
		b, found, err := eng.Catalog.GetState(nil, dict.Local, []byte(membershipKey))
		if err == nil && found {
			members, err = decodeRoster(b)
		}
		return err
	})
	return members, err
}

// tell takes over who is in the group.
func (s *Survey) tell(members roster) {
	s.Left = true
	for _, m := range members.members {
		if m.ID == s.Member.ID {
			s.Member, s.Left = m, false
		} else {
			s.Others = append(s.Others, m)
		}
	}
}

// readLog reads what the log has behind the data, checking all of it. A file and an entry are known to have been there.
func (r *Regroup) readLog(s *Survey, l *log.Log, file, committed uint64) {
	s.Last, s.Known = s.Applied, s.Applied
	if l == nil {
		return
	}
	var corrupt *log.CorruptError
	newest, _ := l.Newest()
	switch first, last := l.FirstIndex(), l.LastIndex(); {
	case first > s.Applied.Index+1:
		s.Damage = fmt.Errorf("the log begins with entry %d, and the data are as of entry %d: the entries between are missing", first, s.Applied.Index)
		return
	case last < s.Applied.Index:
		s.Damage = fmt.Errorf("the log ends with entry %d, and the data are as of entry %d", last, s.Applied.Index)
		return
	case last < committed && s.Damage == nil:
		s.Damage = fmt.Errorf("the log ends with entry %d, and this member knew that entry %d is committed: entries are missing", last, committed)
	case newest < file && s.Damage == nil:
		s.Damage = fmt.Errorf("the log ends with %s, and %s was there: files are missing", log.FileName(newest), log.FileName(file))
	}
	if at := s.Applied.Index; at >= l.FirstIndex() {
		if e, err := l.Read(at, at+1, 1); err == nil {
			s.Applied.pass(&e[0])
			s.Last, s.Known = s.Applied, s.Applied
		}
	}
	for s.Last.Index < l.LastIndex() {
		entries, err := readSome(l, s.Last.Index+1)
		if err != nil {
			if s.Damage = err; errors.As(err, &corrupt) {
				s.Damage = errors.New(corrupt.Where())
			}
			return
		}
		for i := range entries {
			e := &entries[i]
			stored, err := verifyLarge(l, e)
			if err != nil {
				if s.Damage = err; errors.As(err, &corrupt) {
					s.Damage = errors.New(corrupt.Where())
				}
				return
			}
			s.Left = s.Left || removes(e, s.Member.ID)
			if err := s.Last.pass(e); err != nil {
				s.Damage = fmt.Errorf("entry %d: %w", e.Index, err)
				return
			}
			s.LogBytes += uint64(len(e.Data)) + log.RecordOverhead + uint64(stored)
			if e.Index <= committed {
				s.Known = s.Last
			}
			if s.Until.Index == 0 && s.Last.Number >= r.Until {
				s.Until = LogPoint{Index: e.Index, Number: r.Until, Time: s.Last.Time}
			}
		}
	}
}

// verifyLarge checks the body of an entry that is a large transaction, and returns the bytes that it takes.
func verifyLarge(l *log.Log, e *log.Entry) (stored int64, err error) {
	if !isLarge(e) {
		return 0, nil
	}
	b, err := l.OpenBody(e.Index)
	if err != nil {
		return 0, err
	}
	return b.Stored, errors.Join(b.Verify(), b.Close())
}

// readSome reads entries from an index on. Where some are damaged it reads one at a time, so that those
// before them are read.
func readSome(l *log.Log, from uint64) ([]log.Entry, error) {
	entries, err := l.Read(from, l.LastIndex()+1, copyBytes)
	var damage *log.CorruptError
	if errors.As(err, &damage) {
		entries, err = l.Read(from, from+1, 1)
	}
	return entries, err
}

// pass goes on behind an entry.
func (p *LogPoint) pass(e *log.Entry) error {
	p.Index = e.Index
	if e.Type != log.Normal || len(e.Data) == 0 {
		return nil
	}
	env, _, err := entry.Parse(e.Data)
	if err != nil {
		return err
	}
	if env.Term == e.Term {
		p.Time = time.UnixMicro(env.Time).UTC()
		if env.Count > 0 {
			p.Number = max(p.Number, env.Last())
		}
	}
	return nil
}

// judge decides up to where to go, or why it cannot be done.
func (r *Regroup) judge(s *Survey) error {
	switch {
	case s.Left && !r.Removed:
		return errors.New("group: this node is not a member of its group: it was removed, or it was not taken in yet. The group may have gone on without it: " +
			"name the directory of one that was a member to the last. If there is none left, and no newer backup, --removed takes this one")
	case r.Until == 0 && s.Damage != nil:
		return fmt.Errorf("group: the log is damaged: %w\nIt can be read up to transaction %d, and the data alone have all up to %d. To go on without what comes later, give --until=%d. "+
			"Look first whether another member's directory, or a backup, has more", s.Damage, s.Last.Number, s.Applied.Number, s.Last.Number)
	case r.Until == 0:
		s.Until = s.Last
	case r.Until < s.Applied.Number:
		return fmt.Errorf("group: transaction %d is in the data already, as are all up to %d: they cannot be taken back in place. "+
			"To go back further restore a backup, with --until", r.Until, s.Applied.Number)
	case r.Until > s.Last.Number:
		return fmt.Errorf("group: this member has transactions up to %d, not %d", s.Last.Number, r.Until)
	case r.Until == s.Applied.Number:
		s.Until = s.Applied
	}
	if s.Addr == "" {
		return errors.New("group: where the member is to be reached is not known: give --peer-address")
	}
	return nil
}
