package group

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/triremedb/trireme/engine/binlog/log"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/replication/provision"
	"github.com/triremedb/trireme/replication/transport"
)

// attachLog gives data that were received their log: the group's own files, from the
// one that holds the snapshot's position on, as another member has them up to where
// they are committed.
//
// Who cannot be reached, or breaks off, says nothing about the data. They are given up for others
// only if every donor, and with them every other member, has said that its log does not go with them, or if some have and for
// as long as others are worth waiting for ([logPatience]) nobody had one that does. After any other error they stay, and attaching them again
// goes on with the files of the log that are there.
func (p *provisioning) attachLog(ctx context.Context, data file.FS, m *provision.Manifest) error {
	n := p.n
	if err := p.suits(m); err != nil {
		return err
	}
	opt := logOptions(&n.opt, n.id, data)
	if p.fetching.of != m.Position {
		p.fetching = fetching{of: m.Position}
	}
	donors := p.donors()
	if len(donors) == 0 {
		return fmt.Errorf("group: %w: nobody is known who could give this member its log", ErrNoQuorum)
	}
	var errs []error
	var never []transport.Call // whose log does not go with the data for good
	not := 0                   // how many have none that does by now
	for _, call := range donors {
		err := p.fetchLog(ctx, call, opt, m)
		if err == nil && n.opt.Sabotage != ForgetCommit {
			err = writeGiven(data, p.copied.Index)
		}
		switch {
		case err == nil:
			p.fetching = fetching{}
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, file.ErrNoSpace), errors.Is(err, ErrContradicts):
			return err
		case misses(err, log.ErrCompacted) || errors.Is(err, errOtherTerm) || errors.Is(err, errTooShort):
			never = append(never, call)
			not++
		case misses(err, log.ErrUnavailable) || isDamaged(err):
			not++
		}
		errs = append(errs, fmt.Errorf("%s: %w", &call, err))
	}
	err := errors.Join(errs...)
	if (len(never) < len(donors) || p.unheard(m, never)) && !p.fetching.tooLong(n.opt.Env, not > 0, data) {
		return fmt.Errorf("group: getting the log of the data that were received: %w", err)
	}
	p.mu.Lock()
	p.serves = nil // another one may have one that goes with its data
	p.mu.Unlock()
	return fmt.Errorf("%w: nobody has its log: %w", provision.ErrSnapshotGone, err)
}

// unheard reports whether there are members besides this one and those that were heard. A member that is not connected
// is no donor, and may have the log.
func (p *provisioning) unheard(m *provision.Manifest, heard []transport.Call) bool {
	as, err := decodeRoster(m.Membership)
	if err != nil {
		return false
	}
	c, err := p.n.running()
	return slices.ContainsFunc(as.members, func(mb Member) bool {
		return mb.ID != p.n.id.id && (err != nil || !c.membership.left(mb.ID)) &&
			!slices.ContainsFunc(heard, func(call transport.Call) bool { return call.To == mb.ID || call.To == 0 && call.Addr == mb.Addr })
	})
}

// fetching is how far a member is with the log of the data that it has received.
type fetching struct {
	of trx.Position // the snapshot's
	// kept: of the log there are whole files, behind which the next ones belong, and of that one maybe a part.
	kept bool
	// without is since when somebody says that its log does not go with the data, and nobody had one that
	// does: on the monotonic clock, plus 1; 0: nobody has said so. It is looked for with patience then.
	without, patience time.Duration
}

// logPatience is how long a log that goes with received tables of some bytes is looked for at those who
// cannot be reached, when others have none: about as long as receiving new data takes. Who is away may never
// come back, and the member that waits may be the one that a majority lacks.
func logPatience(bytes int64) time.Duration {
	const least, longest, perSecond = 10 * time.Second, 5 * time.Minute, 16 << 20
	return max(time.Duration(min(bytes/perSecond, int64(longest/time.Second)))*time.Second, least)
}

// tooLong reports whether the time is up to look for the log; said: somebody says that it has none.
func (f *fetching) tooLong(e env.Env, said bool, data file.FS) bool {
	now := e.Monotonic()
	if f.without == 0 && said {
		f.without, f.patience = now+1, logPatience(storage.TablesSize(data))
	}
	return f.without != 0 && now-f.without >= f.patience
}

// misses reports whether a log has answered with an error, the donor's or what has come of it. Those of the donor
// travel as their texts.
func misses(err, with error) bool {
	var f *transport.Failure
	return errors.Is(err, with) || errors.As(err, &f) && strings.Contains(f.Text, with.Error())
}

// isDamaged reports whether what has come is no log.
func isDamaged(err error) bool {
	var c *log.CorruptError
	return errors.As(err, &c)
}

var (
	errMalformedAnswer = errors.New("group: malformed answer")
	errOtherTerm       = errors.New("group: the log is of another history than the snapshot")
	errTooShort        = errors.New("group: the log ends before the leader's begins")
)

// brokenOff is an error of the donor or its network. What has come before is as it should be.
type brokenOff struct{ error }

func (e *brokenOff) Unwrap() error { return e.error }

// fetchLog copies the files of a donor's log that are not here yet, and notes the last entry's position.
func (p *provisioning) fetchLog(ctx context.Context, call transport.Call, opt log.Options, m *provision.Manifest) error {
	w := watchDonor(ctx, p.n.opt.Env)
	defer w.end()
	f := logFetch{donor: w, transport: p.n.transport, call: call}
	first, err := f.first(m.Position.Index)
	if err != nil {
		return err
	}
	if !p.fetching.kept {
		if err := log.Destroy(opt); err != nil {
			return err
		}
	}
	err = f.files(opt, first)
	var broken *brokenOff
	if p.fetching.kept = errors.As(err, &broken); err != nil {
		return err
	}
	l, err := log.Open(opt)
	if err != nil {
		return err
	}
	term, err := l.Term(m.Position.Index)
	if err == nil && term != m.Position.Term {
		err = fmt.Errorf("%w: it has term %d at index %d, the snapshot %d", errOtherTerm, term, m.Position.Index, m.Position.Term)
	}
	if err == nil {
		err = p.agrees(w.ctx, l, m)
	}
	if err == nil {
		err = p.continues(l)
	}
	p.copied = trx.Position{Index: l.LastIndex(), Term: l.LastTerm()}
	if first := p.leadersFirst(); err == nil && p.copied.Index+1 < first {
		err = fmt.Errorf("%w: at index %d, and the leader has no log before %d", errTooShort, p.copied.Index, first)
	}
	return errors.Join(err, l.Close())
}

// agrees compares a log that came with that of the member whose data it is to follow, which may be another one than gave the log: entries of
// one index and term are not the same if a member has voted twice. A member that does not answer, or has purged its log meanwhile, says nothing.
func (p *provisioning) agrees(ctx context.Context, l *log.Log, m *provision.Manifest) error {
	p.mu.Lock()
	serves := p.serves
	p.mu.Unlock()
	if serves == nil {
		return nil
	}
	call := *serves
	call.Kind, call.Timeout = askIdentity, donorAsk
	call.Payload = binary.LittleEndian.AppendUint64(nil, m.Position.Index)
	answer, err := p.n.transport.Ask(ctx, call)
	if err != nil || len(answer) != identitySize {
		return ctx.Err()
	}
	own, err := l.FindIdentity(m.Position.Index)
	if its := decodeIdentity(answer); err == nil && own != its {
		err = fmt.Errorf("%w: up to entry %d it has other ones than the member that gave the snapshot: two members may have led in one term",
			errOtherTerm, m.Position.Index)
	}
	return err
}

// identitySize is how many bytes an identity takes in an answer: its term, 8 bytes, and its checksum, 4.
const identitySize = 12

func decodeIdentity(b []byte) log.Identity {
	return log.Identity{Term: binary.LittleEndian.Uint64(b), Checksum: binary.LittleEndian.Uint32(b[8:])}
}

// identityOf answers which entry the log has at an index.
func (c *core) identityOf(payload []byte) ([]byte, error) {
	if len(payload) != 8 {
		return nil, errMalformedAnswer
	}
	id, err := c.binlog.FindIdentity(binary.LittleEndian.Uint64(payload))
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(nil, id.Term), id.Checksum), err
}

// continues compares the log that came with this member's own, up to where the group had agreed on both. Data that belong to another past of the
// group are not replaced: nobody else may have them. Where the one ends before the other begins nothing can be compared.
func (p *provisioning) continues(l *log.Log) error {
	c, err := p.n.running()
	if p.unproven = nil; err != nil {
		return nil // it has no data
	}
	at := min(c.decided(), c.binlog.LastIndex(), l.LastIndex())
	own, err := c.binlog.FindIdentity(at)
	var its log.Identity
	if err == nil {
		its, err = l.FindIdentity(at)
	}
	switch {
	case errors.Is(err, log.ErrCompacted):
		number, _ := c.engine.Applied()
		p.unproven = &unproven{number: number, index: c.decided(), begins: l.FirstIndex()}
		return nil
	case err != nil:
		return err
	case own == its:
		return nil
	}
	err = fmt.Errorf("%w: this member was to get its data anew, and the log that came with them has other transactions than its own up to entry %d. %s",
		ErrContradicts, at, contradictsAdvice)
	c.fail(err)
	return err
}

// logFetch copies the files of a log from a donor.
type logFetch struct {
	donor     *donorWatch
	transport transport.Transport
	call      transport.Call
}

// first asks which file an entry is in.
func (f *logFetch) first(index uint64) (number uint64, err error) {
	call := f.call
	call.Kind, call.Payload = askLogFile, binary.LittleEndian.AppendUint64(nil, index)
	answer, err := f.transport.Ask(f.donor.ctx, call)
	if err == nil && len(answer) != 8 {
		err = errMalformedAnswer
	}
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(answer), nil
}

// files copies the files from a number on, but for those that are there.
func (f *logFetch) files(opt log.Options, number uint64) error {
	im, err := log.NewImport(opt)
	if err != nil {
		return err
	}
	defer im.Close()
	if last, _ := im.Last(); last != 0 {
		number = max(number, last+1)
	}
	for ; ; number++ {
		if end, err := f.file(im, number); end || err != nil {
			return err
		}
	}
}

// file copies one file and reports whether it is the last one. The stream is
// its size, 8 bytes, whether it is closed, 1 byte, and its bytes.
func (f *logFetch) file(im *log.Import, number uint64) (last bool, err error) {
	call := f.call
	call.Kind, call.Payload = bulkLogFile, binary.LittleEndian.AppendUint64(nil, number)
	f.donor.wait(true)
	bulk, err := f.transport.OpenBulk(f.donor.ctx, call)
	f.donor.wait(false)
	if err != nil {
		return false, f.donor.why(err)
	}
	r := transport.ToReader(&watchedReader{bulk, f.donor})
	defer func() { _ = r.Close() }()
	var head [9]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return false, err
	}
	there, err := im.Begin(number, int64(binary.LittleEndian.Uint64(head[:])))
	if err != nil {
		return false, err
	}
	if _, err := io.CopyN(io.Discard, r, there); err != nil { // of an earlier attempt; Finish verifies it with the rest
		return false, err
	}
	if _, err := io.Copy(im, r); err != nil {
		return false, err
	}
	return head[8] == 0, im.Finish()
}

// donorWatch gives a donor up that is silent for provision.DefaultStall while something is waited for: a
// donor whose disk hangs gives signs of life, and other donors may be well.
type donorWatch struct {
	ctx    context.Context
	cancel context.CancelFunc
	env    env.Env
	wake   env.Parker
	task   *env.Group
	// waits is since when something is waited for, on the monotonic clock in nanoseconds, plus 1; 0: it is not.
	waits         atomic.Int64
	stalled, over atomic.Bool
}

// donorWatchEvery is how often a donor is looked at.
const donorWatchEvery = time.Second

func watchDonor(ctx context.Context, e env.Env) *donorWatch {
	w := &donorWatch{env: e, wake: e.NewParker(), task: env.NewGroup(e)}
	w.ctx, w.cancel = context.WithCancel(ctx)
	w.task.Go("log fetch watch", func() {
		for !w.over.Load() {
			w.wake.ParkFor(donorWatchEvery)
			since := w.waits.Load()
			if since > 0 && e.Monotonic()-time.Duration(since-1) >= provision.DefaultStall {
				w.stalled.Store(true)
				w.cancel()
			}
		}
	})
	return w
}

func (w *donorWatch) end() {
	w.over.Store(true)
	w.wake.Unpark()
	w.task.Wait()
	w.cancel()
}

func (w *donorWatch) wait(on bool) {
	if !on {
		w.waits.Store(0)
		return
	}
	w.waits.Store(int64(w.env.Monotonic()) + 1)
}

// why is err, or that the donor was given up.
func (w *donorWatch) why(err error) error {
	if w.stalled.Load() {
		err = fmt.Errorf("the donor was silent for %v", provision.DefaultStall)
	}
	return &brokenOff{err}
}

// watchedReader notes when the donor is waited for.
type watchedReader struct {
	transport.BulkReader
	donor *donorWatch
}

func (r *watchedReader) Next() ([]byte, error) {
	r.donor.wait(true)
	defer r.donor.wait(false)
	chunk, err := r.BulkReader.Next()
	if err != nil && err != io.EOF {
		err = r.donor.why(err)
	}
	return chunk, err
}

// logFileOf answers which file holds an entry, or begins behind it.
func (c *core) logFileOf(payload []byte) ([]byte, error) {
	if len(payload) != 8 {
		return nil, errMalformedAnswer
	}
	index := binary.LittleEndian.Uint64(payload)
	if index+1 == c.binlog.FirstIndex() {
		index++ // the log begins right behind the snapshot, and knows the term before
	}
	pos, err := c.binlog.Position(index)
	return binary.LittleEndian.AppendUint64(nil, pos.File), err
}

// sendLogFile sends a file as far as it is committed.
func (c *core) sendLogFile(payload []byte, w transport.BulkWriter) error {
	if len(payload) != 8 {
		return errMalformedAnswer
	}
	x, err := c.binlog.Export(binary.LittleEndian.Uint64(payload))
	if err != nil {
		return err
	}
	defer func() { _ = x.Close() }()
	head := binary.LittleEndian.AppendUint64(nil, uint64(x.Size))
	if x.Closed {
		head = append(head, 1)
	} else {
		head = append(head, 0)
	}
	if err := w.Send(head); err != nil {
		return err
	}
	return sendExport(w, x)
}

// sendExport sends the bytes of a file.
func sendExport(w provision.ChunkWriter, x *log.Export) error {
	_, err := io.CopyBuffer(chunkWriter{w}, struct{ io.Reader }{io.NewSectionReader(x, 0, x.Size)}, make([]byte, 256<<10))
	return err
}

// chunkWriter writes to a stream.
type chunkWriter struct{ provision.ChunkWriter }

func (w chunkWriter) Write(b []byte) (int, error) { return len(b), w.Send(b) }
