package group

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/binlog/log"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/replication/provision"
	"github.com/triremedb/trireme/replication/raftlog"
)

// Restore says what is to be restored, and as whom. All but Until are required, Logs before Run.
type Restore struct {
	FS      file.FS
	Env     env.Env
	Storage storage.Options // FS and Env are set by Run
	Archive *provision.Archive
	// Logs are the log behind the archive's snapshot, as the old group had it: the backup's,
	// and others that go on behind it. None is needed to restore to the snapshot.
	Logs []*log.Log
	// Until is the last transaction to restore; 0: all that the log has.
	Until uint64

	// The new group, and the member that it begins with.
	Group  [16]byte
	Member uint64
	Addr   string

	locked   io.Closer
	receiver atomic.Pointer[provision.Receiver]
}

// ErrUntil says that the transaction to restore to is not in the backup.
var ErrUntil = errors.New("that transaction is not in the backup")

// ErrHasData says that a directory holds a member's data: nothing is restored into it.
var ErrHasData = errors.New("group: the directory to restore into is not empty, it has a member's data: name an empty one, so that no data are lost")

// Vacant reports whether a directory could be restored into, as [Restore.Prepare] would find it: it holds nothing, or
// what a restore that was cut short has left. Error: [ErrHasData]; another one if there is something else.
func Vacant(fsys file.FS) error {
	names, err := fsys.List(".")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if slices.Contains(names, identityName) {
		return ErrHasData
	}
	return vacant(names)
}

// vacant looks at the names in a directory.
func vacant(names []string) error {
	again := slices.Contains(names, restoringName)
	for _, name := range names {
		switch {
		case name == planName:
			return errors.New("group: the directory to restore into is not empty, trireme regroup was cut short in it: run that again, it goes on where it was, or name an empty one")
		case name == lockName || strings.HasPrefix(name, restoringName) || name == "lost+found":
		case name == identityName || !again:
			return fmt.Errorf("group: the directory to restore into is not empty (%s is there): name an empty one, so that no data are lost", name)
		}
	}
	return nil
}

// restoringName is a file that is there from a restore's beginning to its end: what it
// has left half done may be thrown away, and no node starts there before the directory is a member's.
const restoringName = "restoring"

// RestoreScratch is a directory in the new member's for the caller of a restore: a log in it goes at the latest when
// the member starts.
const RestoreScratch = restoringName + ".log"

// errRestoring says that a restore was cut short.
var errRestoring = errors.New("group: a restore into this directory was cut short: run trireme restore again, or empty the directory")

// tidyRestored removes what a restore has left in a directory with these names, if it was cut short when that was a
// member's already.
func tidyRestored(fsys file.FS, e env.Env, names []string) error {
	left := false
	if slices.Contains(names, RestoreScratch) {
		left = true
		if err := log.Destroy(log.Options{FS: fsys, Env: e, Dir: RestoreScratch}); err != nil {
			return err
		}
		if err := fsys.Remove(RestoreScratch); err != nil {
			return err
		}
	}
	if slices.Contains(names, restoringName) {
		left = true
		if err := fsys.Remove(restoringName); err != nil {
			return err
		}
	}
	if !left {
		return nil
	}
	return fsys.SyncDir(".")
}

// Prepare takes the directory, which is empty, or one in which a restore was cut short.
// Close gives it back.
func (r *Restore) Prepare() error {
	if err := r.FS.MkdirAll("."); err != nil {
		return err
	}
	var err error
	if r.locked, err = r.FS.Lock(lockName); err != nil {
		return fmt.Errorf("group: the directory to restore into: %w", err)
	}
	if err = r.prepare(); err != nil {
		return errors.Join(err, r.Close())
	}
	return nil
}

// Close gives the directory back.
func (r *Restore) Close() error { return r.locked.Close() }

// Run makes a member's directory from a backup: the snapshot's data, and behind them the
// log up to the last transaction wanted, which it returns. It is the only member of a new
// group, which has its own id, so that it never takes part in the old one; changes of the
// old group's membership are left out of the log. The member does what the log says when it
// is opened. The directory is a member's only when Run has returned.
//
// REQUIRES: Prepare.
func (r *Restore) Run() (last uint64, err error) {
	if last, err = r.until(); err != nil {
		return 0, err
	}
	home, err := provision.OpenHome(r.FS)
	if err != nil {
		return 0, err
	}
	id := r.identity()
	term, err := r.receive(home, id, last)
	if err != nil {
		return 0, err
	}
	if err := home.Swap(nil); err != nil {
		return 0, err
	}
	st, err := raftlog.CreateState(stateOptions(&Options{FS: r.FS, Env: r.Env}, id), raftlog.State{Term: term})
	if err == nil {
		err = st.Close()
	}
	if err == nil {
		err = id.write(r.FS)
	}
	if err == nil {
		err = r.FS.Remove(restoringName)
	}
	if err == nil {
		err = r.FS.SyncDir(".")
	}
	return last, err
}

// receive makes the data and the log, and returns the last term in it.
func (r *Restore) receive(home *provision.Home, id *identity, last uint64) (term uint64, err error) {
	m := r.Archive.Manifest()
	receiver, err := provision.NewReceiver(provision.ReceiverOptions{Home: home, Env: r.Env, Group: m.Group, Storage: r.Storage,
		Open: r.Archive.Open, GiveUp: 1, Retry: 1,
		Install: func(eng *storage.Engine, w *table.Worker, _ *provision.Manifest) error {
			return eng.Catalog.PutState(w, dict.Local, []byte(membershipKey), id.founded.encode())
		},
		Attach: func(ctx context.Context, data file.FS, m *provision.Manifest) error {
			opt := logOptions(&Options{Env: r.Env}, id, data)
			err := log.Destroy(opt)
			if err == nil {
				term, err = r.copyLog(ctx, opt, m, last)
			}
			return err
		}})
	if err == nil {
		r.receiver.Store(receiver)
		_, err = receiver.Run()
	}
	return term, err
}

// Progress says how far Run is with the data; ok is false before it begins with them.
func (r *Restore) Progress() (p provision.Progress, ok bool) {
	if v := r.receiver.Load(); v != nil {
		return v.Progress(), true
	}
	return p, false
}

// Stop makes Run return [provision.ErrStopped] soon, once it has begun with the data.
func (r *Restore) Stop() {
	if v := r.receiver.Load(); v != nil {
		v.Stop()
	}
}

func (r *Restore) identity() *identity {
	return &identity{group: r.Group, id: r.Member, founded: roster{members: []Member{{ID: r.Member, Addr: r.Addr}},
		state: &raftpb.ConfState{Voters: []uint64{r.Member}}}}
}

// until is the last transaction to restore.
func (r *Restore) until() (uint64, error) {
	m := r.Archive.Manifest()
	newest, at := m.CSN, m.Position
	for _, l := range r.Logs {
		switch {
		case l.FirstIndex() > at.Index+1:
			return 0, fmt.Errorf("group: the log is needed from entry %d on, but the one that is to follow begins with entry %d: the files before it were purged; "+
				"name the log of a member that has more, or restore a newer backup", at.Index+1, l.FirstIndex())
		case l.LastIndex() < at.Index:
			return 0, fmt.Errorf("group: the log that is to follow is older than what it would follow: it ends with entry %d (transaction %d), and the backup has all "+
				"up to entry %d (transaction %d); restore without it, or name the log of a member that has more", l.LastIndex(), l.LastNumber(), at.Index, newest)
		}
		term, err := l.Term(at.Index)
		if err != nil {
			return 0, err
		}
		if term != at.Term {
			return 0, fmt.Errorf("group: a log has term %d at entry %d, where term %d is before it: it is of another history", term, at.Index, at.Term)
		}
		newest = max(newest, l.LastNumber())
		at = trx.Position{Index: l.LastIndex(), Term: l.LastTerm()}
	}
	switch {
	case r.Until == 0:
		return newest, nil
	case r.Until < m.CSN:
		return 0, fmt.Errorf("group: %w: transaction %d is before the backup's data, which are as of %d; an older backup has it", ErrUntil, r.Until, m.CSN)
	case r.Until > newest:
		return 0, fmt.Errorf("group: %w: it ends with transaction %d, and %d comes later", ErrUntil, newest, r.Until)
	}
	return r.Until, nil
}

// prepare makes sure that nothing is in the directory but what an earlier run has left.
func (r *Restore) prepare() error {
	names, err := r.FS.List(".")
	if err != nil {
		return err
	}
	if err := vacant(names); err != nil {
		return err
	}
	again := slices.Contains(names, restoringName)
	for _, name := range names {
		if name == raftlog.StateFileName || strings.HasPrefix(name, raftlog.StateFileName+".") {
			if err := r.FS.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	f, err := r.FS.Open(restoringName, file.OpenOptions{Create: true})
	if err == nil {
		err = errors.Join(f.Sync(), f.Close())
	}
	if err == nil {
		err = r.FS.SyncDir(".")
	}
	if err != nil || !again {
		return err
	}
	// Whatever is received is begun anew: an archive gives each file from its beginning.
	home, err := provision.OpenHome(r.FS)
	if err != nil {
		return err
	}
	return home.Discard()
}

// copyLog makes the new group's log, from the snapshot to the last transaction, and
// returns the last term in it.
func (r *Restore) copyLog(ctx context.Context, opt log.Options, m *provision.Manifest, until uint64) (term uint64, err error) {
	return copyLog(ctx, opt, log.Start{Index: m.Position.Index, Term: m.Position.Term, Number: m.CSN}, until, r.Logs...)
}

// copyLog makes a new group's log that begins at start, of what logs of the old group have behind
// that, up to the last transaction wanted. It returns the last term in it.
func copyLog(ctx context.Context, opt log.Options, start log.Start, until uint64, from ...*log.Log) (term uint64, err error) {
	bodies := &copiedBodies{fs: opt.FS}
	opt.Bodies = bodies
	l, err := log.Create(opt, start)
	if err != nil {
		return 0, err
	}
	c := logCopy{until: until, index: start.Index, term: start.Term, number: start.Number, whole: start.Number, bodies: bodies}
	if c.unpack, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(entry.MaxBody)); err == nil {
		defer c.unpack.Close()
		for i := 0; i < len(from) && err == nil && !c.over; i++ {
			err = c.run(ctx, from[i], l)
		}
	}
	var damage *log.CorruptError
	if errors.As(err, &damage) {
		err = &brokenLog{damage, c.whole}
	}
	if err == nil {
		err = l.Sync()
	}
	if err = errors.Join(err, l.Close()); err == nil && c.number != until {
		err = fmt.Errorf("group: the log leads to transaction %d, not to %d", c.number, until)
	}
	return c.term, err
}

// brokenLog is damage of a log that is copied.
type brokenLog struct {
	*log.CorruptError
	last uint64 // transaction before the damage
}

func (e *brokenLog) Error() string {
	return fmt.Sprintf("group: the log of the old group is damaged: %s\nIt can be read up to transaction %d: to go on without what comes later, give --until=%d; "+
		"another member's log may be whole", e.Where(), e.last, e.last)
}

func (e *brokenLog) Unwrap() error { return e.CorruptError }

// logCopy copies entries of a log into another one.
type logCopy struct {
	until  uint64
	unpack *zstd.Decoder
	bodies *copiedBodies
	over   bool   // all that is wanted is there
	index  uint64 // of the last entry copied
	term   uint64 // its
	number uint64 // of the last transaction copied, or that is being copied
	whole  uint64 // of the last one that is known to be whole
}

// copyBytes is how much of the log is copied at a time.
const copyBytes = 4 << 20

func (c *logCopy) run(ctx context.Context, from, to *log.Log) error {
	first := to.LastIndex() < to.FirstIndex()
	for c.index < from.LastIndex() && !c.over {
		if err := ctx.Err(); err != nil {
			return err
		}
		entries, err := readSome(from, c.index+1)
		var damage *log.CorruptError
		if errors.As(err, &damage) && c.number == c.until {
			return nil // what is damaged comes behind what is wanted
		}
		if err != nil {
			return err
		}
		var out []log.Entry
		for _, e := range entries {
			if c.over, err = c.change(&e, first); err != nil {
				return fmt.Errorf("group: entry %d of the old group's log: %w", e.Index, err)
			}
			if c.over {
				break
			}
			if err := c.largeBody(&e, from); err != nil {
				return err
			}
			out = append(out, e)
			first, c.index, c.term, c.whole = false, e.Index, e.Term, c.number
			if c.bodies.id != (entry.StreamID{}) {
				break // it is to be appended before another one is copied
			}
		}
		if err := to.Append(out); err != nil {
			return err
		}
	}
	return nil
}

// largeBody copies the body of a large transaction, which its entry is appended with.
func (c *logCopy) largeBody(e *log.Entry, from *log.Log) error {
	if !isLarge(e) {
		return nil
	}
	if err := c.bodies.fetch(from, e.Index); err != nil {
		return fmt.Errorf("group: the large transaction of entry %d: %w", e.Index, err)
	}
	return nil
}

// isLarge reports whether an entry is a large transaction, whose body lies behind it.
func isLarge(e *log.Entry) bool {
	return e.Type == log.Normal && len(e.Data) > 0 && entry.Kind(e.Data[0]) == entry.Large
}

// change makes an entry fit for the new group, and cuts off the transactions that are not
// wanted; over says that none of it is.
func (c *logCopy) change(e *log.Entry, first bool) (over bool, err error) {
	if e.Type != log.Normal {
		e.Type, e.Data = log.Normal, nil // a change of the old group's membership
		return false, nil
	}
	if len(e.Data) == 0 {
		return false, nil
	}
	env, body, err := entry.Parse(e.Data)
	if err != nil {
		return false, err
	}
	counts := (env.Kind == entry.Transactions || env.Kind == entry.Large) && env.Term == e.Term
	switch {
	case counts && env.First > c.until:
		return true, nil
	case counts:
		c.number = min(env.Last(), c.until)
	}
	if first && env.Rotate() && env.Kind != entry.Large { // the log's first file is there already
		e.Data = append([]byte(nil), e.Data...)
		env.Flags &^= entry.FlagRotate
		env.FileVersion = 0
		env.Put(e.Data)
	}
	if counts && env.Last() > c.until {
		e.Data, err = c.cut(&env, body)
	}
	return false, err
}

// cut returns the entry without the transactions behind the last one wanted.
func (c *logCopy) cut(env *entry.Envelope, body []byte) ([]byte, error) {
	body, err := env.Unpack(c.unpack, body, nil)
	if err != nil {
		return nil, err
	}
	out := make([]byte, entry.EnvelopeSize, entry.EnvelopeSize+len(body))
	short := *env
	short.Codec, short.Count = entry.Plain, 0
	r := entry.NewReader(env, body)
	for {
		var t entry.Txn
		more, err := r.Next(&t)
		if err != nil {
			return nil, err
		}
		if !more || t.Number > c.until {
			break
		}
		out = entry.AppendTxn(out, &t, env.Time)
		short.Count++
	}
	short.RawLength = uint32(len(out) - entry.EnvelopeSize)
	short.Put(out)
	return out, nil
}
