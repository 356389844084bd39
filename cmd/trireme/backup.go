package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/triremedb/trireme/engine/binlog/log"
	"github.com/triremedb/trireme/engine/storage/file"
	triremev1 "github.com/triremedb/trireme/proto/trireme/v1"
	"github.com/triremedb/trireme/replication/backup"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/provision"
	"github.com/triremedb/trireme/server/config"
	"github.com/triremedb/trireme/server/node"
)

// runBackup is "trireme admin backup".
func runBackup(args []string) error { return runAdmin(append([]string{"backup"}, args...)) }

// backup receives a backup into a directory, or into a new one of a shelf's.
func (a *admin) backup(args []string) error {
	if (len(args) == 1) == (a.into != "") {
		fmt.Fprintln(os.Stderr, "trireme backup: it wants a new directory, or --into, a directory for one; one of them")
		return errUsage
	}
	if a.into == "" {
		if a.keep+a.keepDays > 0 {
			fmt.Fprintln(os.Stderr, "trireme backup: --keep and --keep-days go with --into")
			return errUsage
		}
		info, sum, err := a.receiveBackup(args[0])
		if err != nil {
			return err
		}
		return a.show(sum, func(w io.Writer) { printMade(w, info, sum) })
	}
	s := newShelf(a.into)
	if s.keep, s.age = int(a.keep), time.Duration(a.keepDays)*24*time.Hour; a.keep > keepMax || a.keepDays > keepMax {
		fmt.Fprintf(os.Stderr, "trireme backup: the most for --keep and --keep-days is %d\n", keepMax)
		return errUsage
	}
	var info *backup.Info
	var sum *triremev1.AdminBackupSummary
	began := time.Now()
	name, removed, err := s.add(a.ctx, func(dir string) (*backup.Info, error) {
		var err error
		info, sum, err = a.receiveBackup(dir)
		return info, err
	})
	if name == "" {
		if !errors.Is(err, errOthers) { // else nothing was tried
			a.report(nil, time.Since(began), err)
		}
		return err
	}
	var failed error
	if errors.Is(err, errOlder) {
		failed = err
	}
	a.report(info, time.Since(began), failed)
	return errors.Join(a.show(sum, func(w io.Writer) {
		row(w, "backup", filepath.Join(a.into, name))
		printMade(w, info, sum)
		row(w, "checked", "it is what was sent, and its log is whole")
		for _, old := range removed {
			row(w, "removed", old)
		}
	}), err)
}

// current reports whether only members are asked that prove to be current: a backup that takes the place of others has to
// have what those have, and of several members one is looked for that does. Who names one member and one directory has
// that member's data, which may be all that is left.
func (a *admin) current() bool { return !a.stale && (a.into != "" || len(a.all) > 1) }

// standingText says how a member stood to its group when a backup was made of it.
func standingText(s *triremev1.AdminBackupSummary) string {
	switch {
	case s.GetLeaderHeard() && s.GetBehindEntries() == 0:
		return "it heard the leader, and had all that the group had agreed on"
	case s.GetLeaderHeard():
		return fmt.Sprintf("it heard the leader, and lacked %d entries of what the group had agreed on", s.GetBehindEntries())
	case s.GetLagMs() > 0:
		return fmt.Sprintf("it heard no leader; what it has is %v old", span(uint64(s.GetLagMs())))
	}
	return "it heard no leader, or is of an older version, which does not say"
}

// keepMax is the most of --keep and --keep-days.
const keepMax = 36500

// receiveBackup receives a backup into a new directory: of the node that was dialed, or if that
// one cannot give it now, of the next.
func (a *admin) receiveBackup(dir string) (*backup.Info, *triremev1.AdminBackupSummary, error) {
	for {
		info, sum, err := a.receiveFrom(dir)
		code := status.Code(err)
		if err == nil || len(a.others) == 0 || code != codes.Unavailable && code != codes.ResourceExhausted {
			return info, sum, err
		}
		fmt.Fprintf(os.Stderr, "%v\nasking %s\n", adminError(a.addr, err), a.others[0])
		next := a.others[0]
		a.others = a.others[1:]
		if err := a.use(next); err != nil {
			return nil, nil, err
		}
	}
}

func (a *admin) receiveFrom(dir string) (*backup.Info, *triremev1.AdminBackupSummary, error) {
	w, err := backup.Create(file.OS(dir))
	if err != nil {
		return nil, nil, err
	}
	defer w.Close()
	ctx, cancel := context.WithCancel(a.ctx)
	defer cancel()
	in, err := a.client.Backup(ctx, &triremev1.AdminBackupRequest{MaxBytesPerSecond: min(uint64(a.rate), math.MaxUint64>>20) << 20,
		RequireCurrent: a.current()})
	if err != nil {
		return nil, nil, err
	}
	for {
		step, err := in.Recv()
		if errors.Is(err, io.EOF) {
			err = errors.New("the node ended the backup before it was whole: try again")
		}
		if err != nil {
			return nil, nil, err
		}
		switch s := step.GetStep().(type) {
		case *triremev1.AdminBackupResponse_Begin:
			err = w.Begin(s.Begin)
		case *triremev1.AdminBackupResponse_Data:
			_, err = w.Write(s.Data)
		case *triremev1.AdminBackupResponse_End:
			var sum backup.Sum
			copy(sum[:], s.End)
			err = w.End(sum)
		case *triremev1.AdminBackupResponse_Summary:
			info, err := finishBackup(w, s.Summary)
			if text := standingText(s.Summary); err == nil && (!s.Summary.GetLeaderHeard() || s.Summary.GetBehindEntries() > 0) {
				fmt.Fprintf(os.Stderr, "trireme: warning: the backup may lack what other members have: %s: %s\n", a.addr, text)
			}
			return info, s.Summary, err
		default:
			err = status.Error(codes.Unimplemented, "a step that this program does not know")
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", dir, err)
		}
	}
}

func finishBackup(w *backup.Writer, s *triremev1.AdminBackupSummary) (*backup.Info, error) {
	return w.Finish(backup.Info{Program: s.GetProgram(), Group: s.GetGroup(), Cluster: s.GetCluster(),
		Taken: time.UnixMicro(s.GetTakenUs()).UTC(), Snapshot: s.GetSnapshotNumber(), Last: s.GetLastNumber()})
}

// printBackup says what a backup is.
func printBackup(w io.Writer, info *backup.Info) {
	row(w, "group", info.Group)
	row(w, "cluster", info.Cluster)
	row(w, "taken", info.Taken.Format(time.RFC3339))
	row(w, "program", info.Program)
	row(w, "can be restored to", fmt.Sprintf("transactions %d to %d", info.Snapshot, info.Last))
	row(w, "size", fmt.Sprintf("%s in %d files", size(uint64(info.Bytes())), len(info.Files)))
}

// printMade says what a backup is, and of what kind of member.
func printMade(w io.Writer, info *backup.Info, s *triremev1.AdminBackupSummary) {
	printBackup(w, info)
	row(w, "member", standingText(s))
}

const restoreText = `Usage: trireme restore --from=backup [--until=GTID] [--log=directory] [--check] [--setting=value ...]
       trireme restore --list --from=directory

Makes a new group of a backup: the data directory (--datadir) of its first member, which
is started with the same settings afterwards. Other nodes join it with empty directories.
The directory is empty; the backup is not changed.

  --from      directory of the backup; DIR/latest: the newest one in DIR, which trireme backup --into has filled
  --until     last transaction to restore, a GTID or its number; without it, all
  --log       data directory of a member, or a copy: its log goes on where the backup's ends
  --check     read the whole backup, compare it with its checksums, check its log, and restore nothing
  --if-empty  where the data directory has a member's data, say so and change nothing: no error
  --result    file to which the last line is written as well, for who waits for a container's end
  --list      tell the backups in a directory that trireme backup --into has filled

Settings are those of trireme server; datadir, peer_address or report_host matter here.
`

// ownArgs takes a command's own options, switches and those with a value, out of those of a server.
func ownArgs(args, switches, valued []string) (own map[string]string, rest []string, err error) {
	own = map[string]string{}
	for i := 0; i < len(args); i++ {
		name, value, has := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		switch {
		case !strings.HasPrefix(args[i], "-"):
			rest = append(rest, args[i]) // the value of an option, or an error of its own
		case slices.Contains(switches, name) || name == "help" || name == "h":
			own[name] = "yes"
		case slices.Contains(valued, name):
			if !has {
				if i++; i == len(args) {
					return nil, nil, fmt.Errorf("--%s wants a value", name)
				}
				value = args[i]
			}
			own[name] = value
		default:
			rest = append(rest, args[i])
		}
	}
	return own, rest, nil
}

func runRestore(args []string) error {
	own, rest, err := ownArgs(args, []string{"check", "list", "if-empty"}, []string{"from", "until", "log", "result"})
	if err == nil && own["from"] == "" && own["help"]+own["h"] == "" {
		err = errors.New("--from, the directory of the backup, is missing")
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "trireme restore: %v\n\n%s", err, restoreText)
		return errUsage
	}
	if own["help"]+own["h"] != "" {
		fmt.Print(restoreText)
		return nil
	}
	if own["list"] != "" {
		return newShelf(own["from"]).list(os.Stdout)
	}
	if own["check"] != "" {
		b, err := openBackup(own["from"], verifyAll)
		if err != nil {
			return err
		}
		a := &admin{out: os.Stdout}
		return a.show(nil, func(w io.Writer) {
			printBackup(w, b.Info)
			row(w, "checked", "it is what was written, and its log is whole")
		})
	}
	cfg, err := config.Load(config.Sources{Args: rest, Env: os.Environ(), Variable: checkVariable})
	if err != nil {
		fmt.Fprintf(os.Stderr, "trireme restore: the configuration is not right:\n%v\n", err)
		return errUsage
	}
	endWhenTold() // what is half done is begun anew by whoever restores again

	err = group.Vacant(file.OS(cfg.String("datadir"))) // before the whole backup is read
	if own["if-empty"] != "" && errors.Is(err, group.ErrHasData) {
		return result(own["result"], fmt.Sprintf("there are data already in %s: nothing is restored", cfg.String("datadir")))
	}
	if err != nil {
		return err
	}
	b, err := openBackup(own["from"], func(b *backup.Backup) error {
		number, err := (&node.Restore{Backup: b, Until: own["until"]}).Number()
		if err != nil {
			return err
		}
		if b.DataAlone(number) {
			return b.VerifyData(nil)
		}
		return b.Verify(nil)
	})
	if err != nil {
		return err
	}
	last, err := restore(cfg, b, own["until"], own["log"])
	if err != nil {
		return err
	}
	text := fmt.Sprintf("restored to transaction %d of %s, from the backup of %s", last, b.Info.Group, b.Info.Taken.UTC().Format(time.RFC3339))
	if err := result(own["result"], text); err != nil {
		return err
	}
	dir, _ := filepath.Abs(cfg.String("datadir"))
	fmt.Printf("a new group's first member is in %s\nStart it with the same settings; other nodes join it with empty directories.\n", dir)
	return nil
}

// result says what has come of a restore.
func result(name, text string) error {
	fmt.Println(text)
	if name == "" {
		return nil
	}
	return os.WriteFile(name, []byte(text+"\n"), 0o600)
}

func verifyAll(b *backup.Backup) error { return b.Verify(nil) }

// openBackup opens a backup, and has it verified.
func openBackup(from string, verify func(*backup.Backup) error) (*backup.Backup, error) {
	if _, err := os.Stat(from); filepath.Base(from) == "latest" && errors.Is(err, fs.ErrNotExist) {
		shelf := newShelf(filepath.Dir(from))
		name, err := shelf.latest()
		if err != nil {
			return nil, err
		}
		from = filepath.Join(shelf.dir, name)
		fmt.Printf("the newest backup is %s\n", from)
	}
	b, err := backup.Open(file.OS(from))
	if err == nil {
		err = verify(b)
	}
	if errors.Is(err, backup.ErrNoBackup) {
		if others, listed := newShelf(filepath.Dir(from)).whole(); listed == nil && len(others) > 0 {
			err = fmt.Errorf("%w; beside it there are %s", err, strings.Join(others, ", "))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	return b, nil
}

func restore(cfg *config.Config, b *backup.Backup, until, logDir string) (last uint64, err error) {
	r := &node.Restore{Backup: b, Until: until, Watch: func(p provision.Progress) {
		fmt.Fprintf(os.Stderr, "%s: %d of %d tables, %d rows\n", p.Phase, p.TablesDone, p.Tables, p.RowsDone)
	}}
	if logDir != "" {
		l, group, done, openErr := openLog(logDir)
		if errors.Is(openErr, log.ErrMissingFile) {
			// What a node's log needs then is not what who has lost a group needs: it may be the last copy.
			where, _, _ := strings.Cut(openErr.Error(), ";")
			return 0, fmt.Errorf("--log: %s. Keep it, and name the directory of another member's data, or leave --log out to restore up to transaction %d",
				where, b.Info.Last)
		}
		if openErr != nil {
			return 0, fmt.Errorf("--log: %w", openErr)
		}
		defer func() {
			if closed := l.Close(); err == nil { // else it is of the log that is no more, or says the same of it
				err = closed
			}
			err = errors.Join(err, done())
		}()
		if g := uuidText(group); g != b.Info.Group {
			return 0, fmt.Errorf("--log: it is the log of group %s, and the backup is of group %s", g, b.Info.Group)
		}
		r.More = []*log.Log{l}
	}
	return r.Run(cfg)
}
