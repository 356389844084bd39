package group

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/triremedb/trireme/engine/binlog/body"
	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/binlog/log"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/replication/apply"
	"github.com/triremedb/trireme/replication/bodies"
	"github.com/triremedb/trireme/replication/commit"
	"github.com/triremedb/trireme/replication/provision"
	"github.com/triremedb/trireme/replication/raftlog"
	"github.com/triremedb/trireme/replication/transport"
)

// core is a running node between two states of its directory: all that is opened
// and closed together. A node that gets its data anew gets a new core.
type core struct {
	opt       *Options
	env       env.Env
	log       *slog.Logger
	transport transport.Transport
	data      file.FS

	engine     *storage.Engine
	binlog     *log.Log
	raftlog    *raftlog.Storage
	state      *raftlog.StateFile
	sessions   *txn.Manager
	pipeline   *commit.Pipeline
	applier    *apply.Applier
	bodies     *bodies.Store
	tokens     *commit.Tokens
	source     *provision.Source
	worker     *table.Worker // for the node's own state; of the applying task
	membership membership
	removal    removal
	limits     limits
	backups    backups
	recovery   *recovery

	inbox     *inbox
	processes processes
	raft      *raftTask
	writer    *writer
	finisher  *finisher
	tasks     *env.Group
	wake      *env.Group // tells sessions that the node has failed

	incarnation uint64
	leaseClock  func() time.Duration
	rotating    atomic.Uint64 // index from which on the next rotation may be asked for
	required    uint8         // what requireFormat has said; of the housekeeping task once it runs

	role      atomic.Pointer[role]
	serving   atomic.Uint64 // term in which sessions may write
	lostAt    atomic.Int64  // when leadership was lost last, on the monotonic clock
	served    atomic.Bool   // it ever was other than 0
	diskFull  atomic.Bool
	room      atomic.Pointer[room] // nil: nobody has asked the disk
	readsFail atomic.Bool          // reads of pages have failed of late
	// undelivered is since when this member's entries have got to no majority, which answers it; 0: they do, or it does not lead.
	undelivered atomic.Int64
	logHeld     atomic.Bool // more of the log is kept than LogKeep, for snapshots
	// slowestMatch is the index up to which all members have the log, as the leader
	// knows it; 0: not known.
	slowestMatch atomic.Uint64
	committed    atomic.Uint64 // index
	accepted     atomic.Uint64 // index of the newest entry that Raft has taken into its log
	// agreed is the index up to which Raft says that the group has agreed. Others may have
	// applied the log up to there when this node has not.
	agreed atomic.Uint64
	// applied is the index up to which the engine has applied the log, for Raft's task, which does not
	// wait for a commit as who asks the engine may.
	applied atomic.Uint64
	// restored is the end of the log as it was found; 0: what was applied before the
	// start is applied again.
	restored atomic.Uint64
	opened   time.Duration             // when
	lastTime entryTime                 // of the last entry applied, by the leader's clock in it
	fresh    atomic.Pointer[freshness] // told by the leader last; nil: nothing
	// freshBefore is the last word before that whose entries are here.
	freshBefore atomic.Pointer[freshness]
	words       words
	undated     atomic.Bool // the leader is of an older program, whose words have no date
	behind      behind
	failure     atomic.Pointer[error]
	onFail      func(error)
	onSnap      func(from uint64)

	waitMu   sync.Mutex
	waiters  []*appliedWait
	stopped  bool
	idle     env.Parker // of the housekeeping task
	purging  env.Parker // of the task that purges the log
	forgets  env.Parker // of the task that has old commit tokens forgotten
	measures env.Parker // of the task that asks the disk for its room
}

// membershipKey is where the membership is kept in the catalogue's local area.
const membershipKey = "group/membership"

// openCore recovers the engine and the log and starts the tasks.
func openCore(opt *Options, id *identity, data file.FS, tr transport.Transport, onFail func(error), onSnap func(uint64)) (*core, error) {
	c := &core{opt: opt, env: opt.Env, log: opt.Log, transport: tr, data: data, onFail: onFail, onSnap: onSnap,
		incarnation: opt.Env.Uint64(), leaseClock: opt.LeaseClock, idle: opt.Env.NewParker(), purging: opt.Env.NewParker(), forgets: opt.Env.NewParker(), measures: opt.Env.NewParker(),
		tasks: env.NewGroup(opt.Env), wake: env.NewGroup(opt.Env)}
	c.role.Store(&role{})
	c.recovery = newRecovery(opt)
	if err := c.recovery.watched(func() error { return c.open(id) }); err != nil {
		return nil, errors.Join(err, c.closeParts())
	}
	// Before Raft hands out entries: changes of membership among them change the peers.
	tr.SetPeers(peersOf(c.membership.roster.members))
	for _, peer := range c.membership.roster.removed {
		tr.RemovePeer(peer)
	}
	c.start()
	return c, nil
}

func (c *core) open(id *identity) error {
	so := c.opt.Storage
	so.FS, so.Env, so.Recovery = c.data, c.env, &c.recovery.engine
	def(&so.RollbackLater, 10_000) // changes, some 50 ms
	err := noRivals(c.opt.FS)
	if err != nil {
		return err
	}
	if c.engine, err = storage.Open(so); err != nil {
		return err
	}
	_, pos := c.engine.Applied()
	c.committed.Store(pos.Index) // what is applied is committed
	c.applied.Store(pos.Index)
	c.worker = c.engine.Tables.NewWorker()
	c.worker.Applying = true
	c.tokens = commit.NewTokens(c.engine, c.opt.TokenLife)
	if err := c.loadMembership(id); err != nil {
		return err
	}
	if c.removal.left, err = readLeft(c.opt.FS, id); err != nil {
		return err
	}
	if err := c.openLog(id); err != nil {
		return err
	}
	c.inbox = newInbox(c.env, c.opt.InboxMax)
	c.writer, c.finisher = newWriter(c), newFinisher(c)
	po := c.opt.Commit
	po.Env, po.Engine, po.Proposer, po.Tokens, po.Bodies, po.Fail = c.env, c.engine, c, c.tokens, commitBodies{c.bodies}, c.fail
	c.pipeline = commit.New(po)
	to := c.opt.Session
	// Files of transactions lie beside the log, which renames those of large ones.
	to.Env, to.Engine, to.FS, to.Log, to.Large = c.env, c.engine, c.data, c.pipeline, largeMaker{c}
	to.BeforeSchema = func(stop func() bool) bool { return c.applier.AwaitAhead(stop) }
	if c.opt.Sabotage == AnswerEarly {
		to.Log = hasty{c.pipeline}
	}
	if c.sessions, err = txn.NewManager(to); err != nil {
		return err
	}
	if err := c.sessions.Suspend(ErrNotLeader); err != nil {
		return err
	}
	if c.applier, err = apply.New(apply.Options{Env: c.env, Engine: c.engine, Workers: c.opt.Workers, MemoryMax: c.opt.PendingMax,
		Trace: c.opt.Trace, Member: c.opt.ID, OpenBody: c.openBody, Damaged: c.damagedBody, AheadEnded: (*body.File).Release, OnFull: c.giveRoom, Extra: c.extra,
		OnApplied: func(index, _ uint64) { c.lastTime.publish(); c.nowApplied(index); c.appliedTo() }, OnStop: c.fail}); err != nil {
		return err
	}
	if c.source, err = c.openSource(id); err != nil {
		return err
	}
	c.backups.group = id.group
	if err := c.loadSettings(); err != nil {
		return err
	}
	return c.openRaft()
}

// loadMembership reads who is in the group: as the engine knows it, or as the group
// was founded.
func (c *core) loadMembership(id *identity) error {
	b, found, err := c.engine.Catalog.GetState(nil, dict.Local, []byte(membershipKey))
	if err != nil {
		return err
	}
	c.membership.roster = id.founded
	if found {
		c.membership.roster, err = decodeRoster(b)
	}
	return err
}

// openLog opens the log and Raft's state. A log is made only for a group that has
// just been founded: were it made for another reason, what the node has acknowledged
// would be forgotten.
func (c *core) openLog(id *identity) error {
	_, pos := c.engine.Applied()
	var err error
	if c.state, err = openState(c.opt, id); err != nil {
		return err
	}
	lo := logOptions(c.opt, id, c.data)
	c.openBodies(&lo)
	lo.Checked = c.recovery.logChecked
	given, err := readGiven(c.data)
	if err != nil {
		return err
	}
	lo.Known = max(pos.Index, c.state.Get().Commit, given)
	c.binlog, err = log.Open(lo)
	if errors.Is(err, log.ErrNoLog) && pos.Index == 0 && c.state.Get().Term == 0 {
		c.binlog, err = log.Create(lo, log.Start{})
	}
	if errors.Is(err, log.ErrNoLog) {
		err = fmt.Errorf("group: %w, but this member has taken part up to term %d: its files are missing; "+
			"put them back, or empty the node's directory and let it join as a new member", err, c.state.Get().Term)
	}
	if err != nil {
		return err
	}
	if torn := c.binlog.TornEnd(); torn != nil {
		c.log.Warn("the end of the binlog was torn when the node stopped, and is cut off; nobody was told that it is durable",
			"file", torn.File, "offset", torn.Offset, "bytes", torn.Bytes, "first_entry", torn.Index, "transaction_before", torn.Number,
			"found", torn.What, "reason", torn.Why)
	}
	if err := raftlog.Missing(c.binlog, c.state.Get(), pos.Index, given); err != nil { // before anything is written
		return err
	}
	c.restored.Store(c.binlog.LastIndex())
	c.recovery.opened(c.engine, pos.Index, c.binlog.LastIndex())
	c.opened = c.env.Monotonic()
	c.requireFormat()
	if err := c.keepTerm(); err != nil {
		return err
	}
	c.raftlog, err = raftlog.New(raftlog.Config{Log: c.binlog, State: c.state, Applied: pos.Index, Given: given,
		ConfState: c.membership.roster.state, Snapshot: c.snapshotPoint,
		Load:   func(index uint64) { c.tasks.Go("log reader", func() { c.raftlog.Load(index) }) },
		Leads:  func() bool { return c.raft.raft.BasicStatus().RaftState == raft.StateLeader },
		Survey: func() { c.tasks.Go("log survey", func() { c.raftlog.Survey(c.isStopped) }) }})
	return err
}

// keepTerm lets the state file know the term of the newest entry. One that has forgotten it is an
// older copy, but in a directory that was given its log by another member before it took part in an
// election. What it has promised in that term is not known: it votes for nobody else there.
func (c *core) keepTerm() error {
	term, err := c.binlog.Term(c.binlog.LastIndex())
	st := c.state.Get()
	if err != nil || term <= st.Term {
		return nil // a log without entries does not know the term before them
	}
	if st.Term != 0 {
		c.log.Warn("the state file is older than the log: an old copy of it was put back, or the log came from another member; "+
			"what this member has promised since in terms without an entry is forgotten", "term", st.Term, "log_term", term)
	}
	return c.state.SetVote(term, c.opt.ID)
}

// nowApplied notes how far the engine has applied the log. The applier may say so a moment after the finisher has gone on.
func (c *core) nowApplied(index uint64) {
	for was := c.applied.Load(); was < index && !c.applied.CompareAndSwap(was, index); was = c.applied.Load() {
	}
}

// snapshotPoint tells Raft what a member that needs a snapshot would get. The data go
// another way, and may be newer.
func (c *core) snapshotPoint() (index uint64, state *raftpb.ConfState, ok bool) {
	index = c.applied.Load() // Raft's task does not wait for the engine
	c.membership.mu.Lock()
	defer c.membership.mu.Unlock()
	return index, c.membership.roster.state, index >= c.binlog.FirstIndex()
}

// openState opens Raft's state of a directory that a node is started in.
func openState(opt *Options, id *identity) (*raftlog.StateFile, error) {
	st, err := raftlog.OpenState(stateOptions(opt, id))
	if err != nil {
		return nil, err
	}
	if err := lostStates(st.Lost()); err != nil {
		opt.Log.Error(err.Error())
	}
	return st, nil
}

var errLostStates = errors.New("group: the disk has lost writes that it had confirmed")

// lostStates says that the disk is not to be trusted, if it has lost states that were durable. A start writes them again.
func lostStates(lost uint64) error {
	if lost <= 1 { // the last write may have been cut short
		return nil
	}
	return fmt.Errorf("%w: %d of the file named %s, and its copy had them: look at the disk", errLostStates, lost, raftlog.StateFileName)
}

func stateOptions(opt *Options, id *identity) raftlog.StateOptions {
	return raftlog.StateOptions{FS: opt.FS, Env: opt.Env, Group: id.group, Member: id.id}
}

// logOptions places the log beside the engine, in the directory of the data: they come
// into use, and go, together.
func logOptions(opt *Options, id *identity, data file.FS) log.Options {
	return log.Options{FS: data, Env: opt.Env, Group: id.group, Preallocate: opt.LogPreallocate, Cache: opt.LogCache,
		Newest: uint8(opt.LogFormat.Max)}
}

// committedMax is how many bytes of committed entries Raft gives out and reads at a time, on its
// own task. The finisher may hold as much.
const committedMax = 4 << 20

func (c *core) openRaft() error {
	_, pos := c.engine.Applied()
	node, err := raft.NewRawNode(&raft.Config{
		ID:                        c.opt.ID,
		ElectionTick:              c.opt.ElectionTicks,
		HeartbeatTick:             1,
		Storage:                   c.raftlog,
		Applied:                   pos.Index,
		AsyncStorageWrites:        true,
		MaxSizePerMsg:             c.opt.MessageMax,
		MaxCommittedSizePerReady:  committedMax,
		MaxUncommittedEntriesSize: c.opt.UncommittedMax,
		MaxInflightMsgs:           4096,
		MaxInflightBytes:          c.opt.InflightMax,
		CheckQuorum:               true,
		PreVote:                   true,
		ReadOnlyOption:            raft.ReadOnlySafe,
		Logger:                    raftLogger{c.log},
		DisableProposalForwarding: true,
		StepDownOnRemoval:         true,
	})
	if err != nil {
		return err
	}
	status := node.BasicStatus()
	c.raft = &raftTask{n: c, env: c.env, in: c.inbox, raft: node, commit: status.HardState.Commit, tick: c.opt.Tick, nextTick: c.env.Monotonic() + c.opt.Tick}
	// From the first message on one of a lower term is a former leader's.
	c.raft.role.term = status.HardState.GetTerm()
	c.role.Store(&role{term: c.raft.role.term})
	c.raft.lease.counts = promiseLength(c.opt.Tick, c.opt.ElectionTicks)
	c.raft.lease.length = leaseLength(c.raft.lease.counts)
	c.raft.bounds.last, c.raft.known.unread = c.binlog.LastIndex(), c.binlog.LastIndex()
	c.accepted.Store(c.raft.bounds.last)
	c.raft.longest.fsys, c.raft.longest.run = c.opt.FS, func(write func()) { c.tasks.Go("promise", write) }
	if err := c.raft.longest.read(); err != nil {
		return err
	}
	return c.raft.begin()
}

func (c *core) start() {
	c.tasks.Go("raft", c.raft.run)
	c.tasks.Go("log writer", c.writer.run)
	c.tasks.Go("finisher", c.finisher.run)
	c.tasks.Go("commit", c.pipeline.Run)
	c.tasks.Go("housekeeping", c.housekeep)
	c.tasks.Go("log purge", c.purge)
	c.tasks.Go("commit tokens", c.forgetTokens)
	c.tasks.Go("recovery", c.watchRecovery)
	if c.opt.DiskSpace != nil {
		c.tasks.Go("room", c.watchRoom)
	}
}

// close ends the tasks and closes everything.
func (c *core) close() error {
	c.stop(ErrStopped)
	c.tasks.Wait()
	c.wake.Wait()
	return c.closeParts()
}

// yield gives up the lease and lets the others know, so that they need not wait for its end.
func (c *core) yield() {
	done, term := c.env.NewParker(), uint64(0)
	if !c.inbox.call(func() { term = c.raft.yield(); done.Unpark() }) {
		return
	}
	if done.Park(); term != 0 {
		c.sayYielded(term)
	}
}

// stop tells the tasks to end.
func (c *core) stop(reason error) {
	c.waitMu.Lock()
	c.stopped = true
	for _, w := range c.waiters {
		w.answer(reason)
	}
	c.waiters = nil
	c.waitMu.Unlock()
	c.inbox.close()
	c.writer.close()
	c.finisher.close()
	c.pipeline.Close(reason)
	c.applier.Cancel() // the finisher may wait for it
	c.sessions.Cancel()
	c.idle.Unpark()
	c.purging.Unpark()
	c.forgets.Unpark()
	c.measures.Unpark()
}

func (c *core) closeParts() error {
	var errs []error
	if c.source != nil {
		c.source.Close()
	}
	if c.sessions != nil {
		c.sessions.Shut(ErrStopped)
		errs = append(errs, c.sessions.Close())
	}
	if c.applier != nil {
		errs = append(errs, c.applier.Stop())
	}
	if c.pipeline != nil {
		c.pipeline.Drop()
	}
	if c.bodies != nil {
		c.bodies.Close()
	}
	if c.state != nil {
		errs = append(errs, c.state.Close())
	}
	if c.binlog != nil {
		errs = append(errs, c.binlog.Close())
	}
	if c.engine != nil {
		errs = append(errs, c.engine.Close())
	}
	return errors.Join(errs...)
}

// fail stops the node for good: something is not as it must be, and going on would
// be a guess. Only the first reason counts.
func (c *core) fail(err error) {
	if err == nil || !c.failure.CompareAndSwap(nil, &err) {
		return
	}
	if errors.Is(err, ErrRemoved) {
		c.log.Info("this member has left the group and stops", "reason", err)
	} else {
		c.log.Error("this node stops", "reason", err)
	}
	c.stop(err)
	c.onFail(err)
	c.wake.Go("failure", func() {
		c.tasks.Wait()
		c.sessions.Shut(err)
		c.pipeline.Drop()
	})
}

func (c *core) setRole(r role) {
	c.role.Store(&r)
	c.opt.Changed()
}

func (c *core) currentRole() role { return *c.role.Load() }

func (c *core) setServing(term uint64) {
	c.serving.Store(term)
	if term != 0 {
		c.served.Store(true)
	}
	c.opt.Changed()
}

// writable reports whether sessions may write. The finisher may be held up and not have come
// to the end of a term that is lost.
func (c *core) writable() bool { return c.writableIn(c.serving.Load()) }

func (c *core) writableIn(term uint64) bool {
	r := c.currentRole()
	return r.leads && r.term == term
}

func (c *core) setDiskFull(full bool) { c.diskFull.Store(full) }

// isFull reports whether something that the group has agreed on, or is about to, finds no space on the disk: the log, what is
// applied, or a body that the log waits for.
func (c *core) isFull() bool { return c.diskFull.Load() || c.applier.Full() || c.bodies.Full() }

// setCommitted notes up to where the group has agreed.
func (c *core) setCommitted(e *raftpb.Entry) {
	c.committed.Store(e.GetIndex())
	c.binlog.SetCommitted(e.GetIndex())
}

// resign is called by the Raft task when leadership is lost, which it had in the term was.
func (c *core) resign(was uint64, now role, reason error) {
	c.setRole(now)
	c.lostAt.Store(int64(c.env.Monotonic()))
	c.pipeline.Resign(reason)
	c.bodies.Resign(was)
	c.finisher.resign(reason)
}

// updatePeers tells the transport who has come or gone.
func (c *core) updatePeers(cc raftpb.ConfChangeI) {
	members := c.membership.current()
	for _, ch := range cc.AsV2().GetChanges() {
		at := slices.IndexFunc(members, func(m Member) bool { return m.ID == ch.GetNodeId() })
		switch {
		case ch.GetNodeId() == c.opt.ID:
		case at < 0:
			c.transport.RemovePeer(ch.GetNodeId())
		default:
			c.transport.AddPeer(members[at].ID, members[at].Addr)
		}
	}
	// One that is replaced stays until the group leaves the joint configuration, by an entry that
	// names nobody.
	for _, id := range c.membership.gone() {
		c.transport.RemovePeer(id)
	}
}

// Propose implements commit.Proposer.
func (c *core) Propose(p *commit.Proposal) error {
	r := &proposal{term: p.Term, p: p, reply: reply{parker: c.env.NewParker()}}
	if !c.inbox.propose(r) {
		return ErrStopped
	}
	if len(p.Data) > inlineMax || !c.raft.turn() {
		c.inbox.kick()
	}
	return r.wait()
}

// File implements commit.Proposer: an entry opens a new file when the open one is
// full. Entries on their way are not counted, so that files are somewhat longer than
// the limit; the next rotation waits until this one is in the log.
func (c *core) File() (opens bool, version uint8) {
	tail := c.binlog.Tail()
	if tail.Last < c.rotating.Load() || tail.Size < c.limits.logFileSize.Load() {
		return false, tail.Version
	}
	c.rotating.Store(tail.Last + uint64(max(c.opt.Commit.Outstanding, c.opt.Commit.OutstandingMax, commit.DefaultOutstandingMax)) + 8)
	return true, c.nextVersion(tail.Version)
}

// Opens implements commit.Proposer.
func (c *core) Opens() (version uint8) { return c.nextVersion(c.binlog.Tail().Version) }

// extra makes what the node stores with an entry that the applier commits:
// membership, and commit tokens.
func (c *core) extra(a *apply.Applied) (*trx.Trx, error) {
	for c.opt.Sabotage == HoldApplier && !c.isStopped() {
		env.Sleep(c.env, 10*time.Millisecond)
	}
	if a.Envelope.Kind != 0 {
		c.lastTime.next = freshness{a.Envelope.Time, a.Index}
	}
	if a.Opaque {
		state, err := c.membership.applied(a.Index)
		if err != nil {
			return nil, err
		}
		return c.persist(func() (*trx.Trx, error) { return c.putState(dict.Local, membershipKey, state) })
	}
	if a.Envelope.Kind == entry.Settings {
		if a.Envelope.Codec != entry.Plain {
			return nil, fmt.Errorf("group: the settings at index %d are compressed", a.Index)
		}
		return c.persist(func() (*trx.Trx, error) { return c.storeSetting(a.Data[entry.EnvelopeSize:]) })
	}
	var uses []commit.Use
	for _, t := range a.Tokens {
		uses = append(uses, commit.Use{Token: t.Token, Number: t.Number, Time: a.Envelope.Time})
	}
	return c.remember(uses, expireBefore(&a.Envelope, a.Data))
}

func (c *core) remember(uses []commit.Use, before int64) (*trx.Trx, error) {
	return c.persist(func() (*trx.Trx, error) { return c.tokens.Remember(uses, before) })
}

// persist makes a transaction of the node's own. It belongs to an entry of the log, so
// that on a full disk it waits for space: nothing is left out.
func (c *core) persist(make func() (*trx.Trx, error)) (*trx.Trx, error) {
	var full fullDisk
	for {
		t, err := make()
		if !errors.Is(err, file.ErrNoSpace) {
			full.over(c)
			return t, err
		}
		if !full.wait(c, c.isStopped) {
			return nil, ErrStopped
		}
	}
}

// putState makes a transaction that sets a value of the catalogue's areas.
func (c *core) putState(area dict.Area, key string, value []byte) (*trx.Trx, error) {
	t := c.engine.Trx.Begin(trx.Options{HighPriority: true})
	c.worker.Use(t)
	if err := c.engine.Catalog.PutState(c.worker, area, []byte(key), value); err != nil {
		if undo := c.worker.Rollback(); undo != nil {
			return nil, errors.Join(err, undo)
		}
		c.engine.Trx.End(t)
		return nil, err
	}
	return t, nil
}
