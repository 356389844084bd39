package adminapi

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"math"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/triremedb/trireme/engine/binlog/log"
	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/types"
	triremev1 "github.com/triremedb/trireme/proto/trireme/v1"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/provision"
)

// backupStall is how long a client may leave a piece of its backup unread. As long as a
// backup is made the node keeps the snapshot's versions and the log behind it.
const backupStall = time.Minute

// Backup implements the contract.
func (s *Server) Backup(req *triremev1.AdminBackupRequest, out grpc.ServerStreamingServer[triremev1.AdminBackupResponse]) error {
	_, err := serve(out.Context(), s, rightBackup, req, func(*Caller) (struct{}, error) { return struct{}{}, s.backup(req, out) })
	return err
}

// ReportBackup implements the contract.
func (s *Server) ReportBackup(ctx context.Context, req *triremev1.AdminReportBackupRequest) (*triremev1.AdminReportBackupResponse, error) {
	return serve(ctx, s, rightReport, req, func(*Caller) (*triremev1.AdminReportBackupResponse, error) {
		if err := s.lead(); err != nil {
			return nil, err
		}
		if req.GetSizeBytes() > math.MaxInt64 || req.GetDurationUs() > math.MaxInt64/1000 {
			return nil, badArgument("a backup has at most %d bytes and takes at most %d us", int64(math.MaxInt64), math.MaxInt64/1000)
		}
		if req.GetError() != "" {
			s.opt.Log.Warn("a backup has failed", "error", types.CutUTF8(req.GetError(), reportMax))
			return &triremev1.AdminReportBackupResponse{}, s.opt.Group.BackupFailed()
		}
		took := time.Duration(req.GetDurationUs()) * time.Microsecond
		return &triremev1.AdminReportBackupResponse{}, s.opt.Group.BackupSucceeded(int64(req.GetSizeBytes()), took)
	})
}

// reportMax is how much of a report's error goes to the log.
const reportMax = 1 << 10

func (s *Server) backup(req *triremev1.AdminBackupRequest, out grpc.ServerStreamingServer[triremev1.AdminBackupResponse]) error {
	select {
	case s.backups <- struct{}{}:
	default:
		return &Error{Code: codes.ResourceExhausted, Message: "a backup is being made from this node", Advice: "wait until it is done, or ask another member"}
	}
	b := &sentBackup{out: out, sum: sha256.New(), rate: req.GetMaxBytesPerSecond(), began: time.Now(), steps: make(chan struct{}, 1),
		aborted: make(chan struct{})}
	done := make(chan error, 1)
	go func() { // the call's end ends this, too; then the place is free
		err := s.sendBackup(out.Context(), b, req.GetRequireCurrent())
		<-s.backups
		done <- err
	}()
	stall := time.NewTimer(backupStall)
	defer stall.Stop()
	for {
		select {
		case err := <-done:
			return backupError(err)
		case <-b.steps:
			stall.Reset(backupStall)
		case <-b.aborted:
			return &Error{Code: codes.Aborted, Message: "the backup's snapshot was open for too long, or is closed since the member's data are", Advice: "begin anew, from another member if this one is stopped"}
		case <-stall.C:
			return &Error{Code: codes.Aborted, Message: "the client has taken nothing of its backup for " + backupStall.String(), Advice: "begin anew, with a disk that is fast enough"}
		}
	}
}

// backupError says what to do about an error of a backup.
func backupError(err error) error {
	var damage *log.CorruptError
	if errors.As(err, &damage) {
		return &Error{Code: codes.Unavailable, Message: "the log of this member is damaged: " + damage.Where(),
			Advice: "ask another member; then empty this node's directory and let it get its data from the others"}
	}
	var badPage *page.CorruptError
	if errors.As(err, &badPage) && !badPage.Newer {
		return &Error{Code: codes.Unavailable, Message: "the data of this member are damaged: " + err.Error(),
			Advice: "ask another member; then replace this node's disk, and let it get its data from the others"}
	}
	var told *provision.RemoteError
	if errors.As(err, &told) {
		code := codes.Aborted
		if told.Kind == provision.ErrBusy || told.Kind == provision.ErrBehind || told.Kind == provision.ErrDonor {
			code = codes.Unavailable
		}
		return &Error{Code: code, Message: told.Text, Advice: "try again, or ask another member"}
	}
	return err
}

const (
	// currentPatience is how long a member that has to be current may take for it: to hear a leader, and to apply
	// what the group had agreed on. One that takes longer is behind.
	currentPatience = 20 * time.Second
	// standingPatience is how long a member looks for a leader that gives a backup with or without one.
	standingPatience = 5 * time.Second
)

// standing finds out how the node stands to its group, and refuses if that is not as the client demands.
func (s *Server) standing(ctx context.Context, current bool) (group.Standing, error) {
	patience := standingPatience
	if current {
		patience = currentPatience
	}
	st, err := s.opt.Group.Standing(ctx, patience)
	if err != nil || !current || st.Current() {
		return st, err
	}
	e := &Error{Code: codes.Unavailable, Message: "this member hears no leader: the group may have written without it, so that a backup of it may lack what others have",
		Advice: "ask another member; if none is left, trireme backup --stale takes what this one has"}
	if st.Heard {
		e.Message = fmt.Sprintf("this member is behind: after %v it lacks %d entries of those that the group had agreed on", patience, st.Behind)
	}
	return st, e
}

func (s *Server) sendBackup(ctx context.Context, b *sentBackup, current bool) error {
	st, err := s.standing(ctx, current)
	if err != nil {
		return err
	}
	m, last, err := s.opt.Group.Backup(ctx, func(name string) (provision.ChunkWriter, error) {
		if err := b.end(); err != nil {
			return nil, err
		}
		b.open = true
		return b, b.send(&triremev1.AdminBackupResponse{Step: &triremev1.AdminBackupResponse_Begin{Begin: name}})
	})
	if err == nil {
		err = b.end()
	}
	if err != nil {
		return err
	}
	sum := &triremev1.AdminBackupSummary{Group: uuid(m.Group), Cluster: s.opt.Config.String("cluster_name"), Program: s.opt.Program,
		TakenUs: m.Time, SnapshotNumber: m.CSN, LastNumber: last, LeaderHeard: st.Heard, BehindEntries: st.Behind, LagMs: -1}
	if st.Age >= 0 {
		sum.LagMs = st.Age.Milliseconds()
	}
	return b.send(&triremev1.AdminBackupResponse{Step: &triremev1.AdminBackupResponse_Summary{Summary: sum}})
}

// sentBackup is a backup that is being sent. One task sends.
type sentBackup struct {
	out   grpc.ServerStreamingServer[triremev1.AdminBackupResponse]
	sum   hash.Hash
	open  bool // a file has begun
	rate  uint64
	began time.Time // of the sending; later by as long as nothing was to be sent
	sent  uint64
	steps chan struct{} // told of each that was taken

	abort   sync.Once
	aborted chan struct{}
}

// Abort implements provision.ChunkWriter: the end of the call ends a send that waits.
func (b *sentBackup) Abort() { b.abort.Do(func() { close(b.aborted) }) }

// Send implements provision.ChunkWriter.
func (b *sentBackup) Send(chunk []byte) error {
	_, _ = b.sum.Write(chunk)
	b.sent += uint64(len(chunk))
	if b.rate > 0 {
		for wait := b.pause(time.Now()); wait > 0; wait = b.pause(time.Now()) {
			b.step()
			select {
			case <-b.out.Context().Done():
				return b.out.Context().Err()
			case <-time.After(min(wait, backupStall/2)):
			}
		}
	}
	return b.send(&triremev1.AdminBackupResponse{Step: &triremev1.AdminBackupResponse_Data{Data: chunk}})
}

// rateCredit is how much of the time in which less was sent than might have been is made up for.
const rateCredit = time.Second

// pause is how long, at a moment, what counts as sent has to wait for its turn: never so long that more than the rate is sent, whatever the
// snapshot, a log that was only read or a client that was slow took before.
func (b *sentBackup) pause(now time.Time) time.Duration {
	due := sendingTime(b.sent, b.rate)
	if late := now.Sub(b.began) - due; late > rateCredit {
		b.began = b.began.Add(late - rateCredit)
	}
	return due - now.Sub(b.began)
}

// sendingTime is how long so many bytes take at a rate of bytes a second, at most what a Duration can say.
func sendingTime(n, rate uint64) time.Duration {
	took := float64(n) / float64(rate) * float64(time.Second)
	if took >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(took)
}

// end ends the file that was begun, if one was.
func (b *sentBackup) end() error {
	if !b.open {
		return nil
	}
	b.open = false
	err := b.send(&triremev1.AdminBackupResponse{Step: &triremev1.AdminBackupResponse_End{End: b.sum.Sum(nil)}})
	b.sum.Reset()
	return err
}

func (b *sentBackup) send(step *triremev1.AdminBackupResponse) error {
	err := b.out.Send(step)
	b.step()
	return err
}

func (b *sentBackup) step() {
	select {
	case b.steps <- struct{}{}:
	default:
	}
}
