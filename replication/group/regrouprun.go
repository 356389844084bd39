package group

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"math"
	"path"
	"slices"

	"github.com/triremedb/trireme/engine/binlog/log"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/replication/raftlog"
	"github.com/triremedb/trireme/replication/transport"
)

// asidePrefix begins the name of the directory with what a regroup has moved aside; the old group's id follows.
const asidePrefix = "before-regroup."

// Aside is where the old member's log, its file "member" and Raft's state are after Run, in the member's
// directory. The log lies there as in a member's directory, so that tools read it.
func (r *Regroup) Aside() string { return asidePrefix + transport.GroupID(r.plan.old).String() }

// Identity is who the member is after Run: its group and its id.
func (r *Regroup) Identity() (group [16]byte, member uint64) { return r.plan.to.group, r.plan.to.id }

// Run does what Prepare has announced, or goes on with a run that was cut short. Whatever happens on the way,
// the directory is the old member's as it was, or Run can be called again, or it is the new one's.
//
// REQUIRES: Prepare has returned no error.
func (r *Regroup) Run() error {
	if !r.begun {
		if err := r.begin(); err != nil {
			return err
		}
	}
	// It was not whole, so that nobody can go on with it: who would give the rest is not in the new group.
	err := r.home.Discard()
	if err == nil && !r.plan.moved {
		err = r.moveAside()
	}
	if err == nil {
		err = r.build()
	}
	if err == nil {
		err = r.FS.Remove(planName)
	}
	if err == nil {
		err = r.FS.SyncDir(".")
	}
	if errors.Is(err, file.ErrNoSpace) {
		err = fmt.Errorf("%w; make room and run it again, it goes on where it was", err)
	}
	return err
}

// begin writes down what is going to be done. From here on no node starts in the directory.
func (r *Regroup) begin() error {
	there, err := r.FS.Exists(r.Aside())
	if err == nil && there {
		err = fmt.Errorf("group: %s is there already, from another run: move it elsewhere", r.Aside())
	}
	if err != nil {
		return err
	}
	return r.plan.write(r.FS)
}

// moveAside moves what is the old member's out of the way. Nothing new is made before all of it is there:
// whatever a crash leaves in the two places is the old member's.
func (r *Regroup) moveAside() error {
	to := r.Aside()
	if err := r.FS.MkdirAll(path.Join(to, r.logDir())); err != nil {
		return err
	}
	for _, dir := range []string{".", to, path.Join(to, r.home.Dir())} {
		if err := r.FS.SyncDir(dir); err != nil {
			return err
		}
	}
	// Without it programs that know nothing of a plan start no node here.
	if err := moveFiles(r.FS, ".", to, identityName); err != nil {
		return err
	}
	names, err := r.FS.List(r.logDir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(names) > 0 {
		if err := moveFiles(r.FS, r.logDir(), path.Join(to, r.logDir()), names...); err != nil {
			return err
		}
	}
	if err := moveFiles(r.FS, r.home.Dir(), path.Join(to, r.home.Dir()), givenName); err != nil { // it is of the old log
		return err
	}
	if err := moveFiles(r.FS, ".", to, raftlog.StateFileName, raftlog.StateCopyName, rivalsName); err != nil {
		return err
	}
	p := *r.plan
	p.moved = true
	if err := p.write(r.FS); err != nil {
		return err
	}
	r.plan = &p
	return nil
}

// moveFiles moves files, those that are not there any more excepted, and makes that durable.
func moveFiles(fsys file.FS, from, to string, names ...string) error {
	for _, name := range names {
		err := fsys.Rename(path.Join(from, name), path.Join(to, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return errors.Join(fsys.SyncDir(to), fsys.SyncDir(from))
}

// build makes the new member of the old one's data and log. What an earlier run has made of it is made anew.
func (r *Regroup) build() error {
	for _, name := range []string{identityName, raftlog.StateFileName, raftlog.StateCopyName} {
		if err := r.FS.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := r.FS.SyncDir("."); err != nil {
		return err
	}
	var start log.Start
	err := r.withEngine(func(eng *storage.Engine) error {
		number, pos := eng.Applied()
		start = log.Start{Index: pos.Index, Term: pos.Term, Number: number}
		return storeMembership(eng, r.plan.to.founded)
	})
	if err == nil {
		err = r.makeLog(start)
	}
	if err != nil {
		return err
	}
	st, err := raftlog.CreateState(stateOptions(&Options{FS: r.FS, Env: r.Env}, &r.plan.to), raftlog.State{Term: max(r.plan.term, start.Term)})
	if err == nil {
		err = st.Close()
	}
	if err == nil {
		err = addReplaced(r.FS, r.plan.old)
	}
	if err == nil {
		err = r.plan.to.write(r.FS)
	}
	return err
}

// replacedName is a file with the ids of the groups that were lost and that this one has been made of, the newest
// last, and their CRC-32C before. A node with an empty directory that finds members of both joins this one.
const replacedName = "replaced"

// maxReplaced is how many are remembered.
const maxReplaced = 64

func readReplaced(fsys file.FS) (groups []transport.GroupID, err error) {
	b, err := file.ReadWhole(fsys, replacedName, 4+16*maxReplaced)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if errors.Is(err, file.ErrTooLong) || err == nil && (len(b)%16 != 4 || binary.LittleEndian.Uint32(b) != crc32.Checksum(b[4:], castagnoli)) {
		err = fmt.Errorf("group: the file named %s is damaged: remove it, unless members of a group that was lost may still run: then stop those first", replacedName)
	}
	if err != nil {
		return nil, err
	}
	for b = b[4:]; len(b) > 0; b = b[16:] {
		groups = append(groups, transport.GroupID(b))
	}
	return groups, nil
}

// addReplaced notes another group.
func addReplaced(fsys file.FS, group [16]byte) error {
	groups, err := readReplaced(fsys)
	if err != nil {
		return err
	}
	groups = slices.DeleteFunc(groups, func(g transport.GroupID) bool { return g == group })
	groups = append(groups[max(0, len(groups)-maxReplaced+1):], group)
	b := make([]byte, 4)
	for _, g := range groups {
		b = append(b, g[:]...)
	}
	binary.LittleEndian.PutUint32(b, crc32.Checksum(b[4:], castagnoli))
	return file.WriteWhole(fsys, replacedName, b)
}

// makeLog makes the new group's log, which begins behind the data. Its files go on with the numbers of the old
// ones, so that a position in those is none in these.
func (r *Regroup) makeLog(start log.Start) error {
	opt := r.logOptions(r.plan.to.group, "")
	if err := log.Destroy(opt); err != nil {
		return err
	}
	if err := opt.FS.MkdirAll("."); err != nil {
		return err
	}
	aside := r.logOptions(r.plan.old, r.Aside())
	aside.Known = math.MaxUint64 // it stays as it is
	old, _, err := openSalvaged(aside, start.Index+1)
	if err != nil {
		return err
	}
	var from []*log.Log
	if old != nil {
		defer closeSalvaged(old)
		newest, _ := old.Newest()
		start.File, start.Version = newest+1, old.Tail().Version
		// Else only the data are kept: they may have transactions of the entry behind the log's beginning, which is copied whole.
		if old.FirstIndex() <= start.Index+1 && old.LastIndex() > start.Index && readable(old, start.Index+1) {
			from = append(from, old)
			if start.Number, err = old.Number(start.Index); err != nil {
				return err
			}
		}
	}
	_, err = copyLog(context.Background(), opt, start, r.plan.until, from...)
	return err
}

// readable reports whether an entry of a log can be read.
func readable(l *log.Log, index uint64) bool {
	_, err := l.Read(index, index+1, 1)
	return err == nil
}

// storeMembership makes the engine know another membership.
func storeMembership(eng *storage.Engine, members roster) error {
	w, t := eng.Tables.NewWorker(), eng.Trx.Begin(trx.Options{})
	w.Use(t)
	if err := eng.Catalog.PutState(w, dict.Local, []byte(membershipKey), members.encode()); err != nil {
		return errors.Join(err, w.Rollback())
	}
	if !t.HasChanges() {
		eng.Trx.End(t)
		return nil
	}
	t.StartCommit()
	_, pos := eng.Applied()
	if err := eng.Trx.CommitGroup([]trx.Commit{{Trx: t}}, pos); err != nil {
		return err
	}
	eng.Catalog.Committed(t)
	eng.Trx.End(t)
	return nil
}

// regroupPlan is what a regroup does, as the file "regrouping" says from its beginning to its end.
type regroupPlan struct {
	old    [16]byte // group
	member uint64   // of the old group
	until  uint64   // the last transaction
	term   uint64   // that the old member knew
	moved  bool     // the old member's files have been moved aside
	to     identity
}

const planName = "regrouping"

var (
	planMagic = [8]byte{'T', 'R', 'I', 'R', 'E', 'G', 'R', '1'}
	errPlan   = errors.New("group: the file named regrouping, which says what trireme regroup was doing here, is damaged: restore a backup, or take another member's directory")
)

// readPlan reads the file; nil says that there is none.
//
//	 0  8  magic with the format version
//	 8  4  CRC-32C of what follows
//	12 16  the old group
//	28  8  member of it
//	36  8  last transaction to keep
//	44  8  Raft's term
//	52  1  1: the old member's files have been moved aside
//	53 16  the new group
//	69  8  member of it
//	77     its membership
func readPlan(fsys file.FS) (*regroupPlan, error) {
	b, err := file.ReadWhole(fsys, planName, identityMax)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case errors.Is(err, file.ErrTooLong):
		return nil, errPlan
	case err != nil:
		return nil, err
	}
	le := binary.LittleEndian
	if len(b) < 77 || [8]byte(b) != planMagic || le.Uint32(b[8:]) != crc32.Checksum(b[12:], castagnoli) {
		return nil, errPlan
	}
	p := &regroupPlan{old: [16]byte(b[12:]), member: le.Uint64(b[28:]), until: le.Uint64(b[36:]), term: le.Uint64(b[44:]), moved: b[52] != 0,
		to: identity{group: [16]byte(b[53:]), id: le.Uint64(b[69:])}}
	if p.to.founded, err = decodeRoster(b[77:]); err != nil || len(p.to.founded.members) != 1 {
		return nil, errPlan
	}
	return p, fsys.SyncDir(".") // a process that was killed may have renamed it and no more
}

// write makes the file, whole or not at all.
func (p *regroupPlan) write(fsys file.FS) error {
	le := binary.LittleEndian
	b := append(planMagic[:8:8], 0, 0, 0, 0)
	b = append(b, p.old[:]...)
	b = le.AppendUint64(le.AppendUint64(le.AppendUint64(b, p.member), p.until), p.term)
	b = append(b, 0)
	if p.moved {
		b[52] = 1
	}
	b = append(b, p.to.group[:]...)
	b = le.AppendUint64(b, p.to.id)
	b = append(b, p.to.founded.encode()...)
	le.PutUint32(b[8:], crc32.Checksum(b[12:], castagnoli))
	return file.WriteWhole(fsys, planName, b)
}
