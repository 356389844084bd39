package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/triremedb/trireme/engine/binlog/log"
	"github.com/triremedb/trireme/engine/storage/file"
	triremev1 "github.com/triremedb/trireme/proto/trireme/v1"
	"github.com/triremedb/trireme/replication/backup"
	"github.com/triremedb/trireme/replication/provision"
	"github.com/triremedb/trireme/server/config"
	"github.com/triremedb/trireme/server/node"
)

// runBackup is "trireme admin backup".
func runBackup(args []string) error { return runAdmin(append([]string{"backup"}, args...)) }

// backup receives a backup into a directory.
func (a *admin) backup(args []string) (err error) {
	w, err := backup.Create(file.OS(args[0]))
	if err != nil {
		return err
	}
	defer w.Close()
	ctx, cancel := context.WithCancel(a.ctx)
	defer cancel()
	in, err := a.client.Backup(ctx, &triremev1.AdminBackupRequest{MaxBytesPerSecond: uint64(a.rate) << 20})
	if err != nil {
		return err
	}
	for {
		step, err := in.Recv()
		if errors.Is(err, io.EOF) {
			err = errors.New("the node ended the backup before it was whole: try again")
		}
		if err != nil {
			return err
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
			return a.finishBackup(w, s.Summary)
		default:
			err = status.Error(codes.Unimplemented, "a step that this program does not know")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
	}
}

func (a *admin) finishBackup(w *backup.Writer, s *triremev1.AdminBackupSummary) error {
	info, err := w.Finish(backup.Info{Program: s.GetProgram(), Group: s.GetGroup(), Cluster: s.GetCluster(),
		Taken: time.UnixMicro(s.GetTakenUs()).UTC(), Snapshot: s.GetSnapshotNumber(), Last: s.GetLastNumber()})
	if err != nil {
		return err
	}
	return a.show(s, func(w io.Writer) { printBackup(w, info) })
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

const restoreText = `Usage: trireme restore --from=backup [--until=GTID] [--log=directory] [--check] [--setting=value ...]

Makes a new group of a backup: the data directory (--datadir) of its first member, which
is started with the same settings afterwards. Other nodes join it with empty directories.
The directory is empty; the backup is not changed.

  --from    directory of the backup
  --until   last transaction to restore, a GTID or its number; without it, all
  --log     data directory of a member, or a copy: its log goes on where the backup's ends
  --check   read the whole backup, compare it with its checksums, and restore nothing

Settings are those of trireme server; datadir, peer_address or report_host matter here.
`

// restoreArgs takes the command's own options out of those of a server.
func restoreArgs(args []string) (own map[string]string, rest []string, err error) {
	own = map[string]string{}
	for i := 0; i < len(args); i++ {
		name, value, valued := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		switch {
		case !strings.HasPrefix(args[i], "-"):
			rest = append(rest, args[i]) // the value of an option, or an error of its own
		case name == "check" || name == "help" || name == "h":
			own[name] = "yes"
		case name == "from" || name == "until" || name == "log":
			if !valued {
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
	own, rest, err := restoreArgs(args)
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
	b, err := backup.Open(file.OS(own["from"]))
	if err != nil {
		return fmt.Errorf("%s: %w", own["from"], err)
	}
	if err := b.Verify(nil); err != nil {
		return fmt.Errorf("%s: %w", own["from"], err)
	}
	if own["check"] != "" {
		a := &admin{out: os.Stdout}
		return a.show(nil, func(w io.Writer) {
			printBackup(w, b.Info)
			row(w, "checked", "it is what was written")
		})
	}
	cfg, err := config.Load(config.Sources{Args: rest, Env: os.Environ(), Variable: checkVariable})
	if err != nil {
		fmt.Fprintf(os.Stderr, "trireme restore: the configuration is not right:\n%v\n", err)
		return errUsage
	}
	return restore(cfg, b, own["until"], own["log"])
}

func restore(cfg *config.Config, b *backup.Backup, until, logDir string) (err error) {
	r := &node.Restore{Backup: b, Until: until, Watch: func(p provision.Progress) {
		fmt.Fprintf(os.Stderr, "%s: %d of %d tables, %d rows\n", p.Phase, p.TablesDone, p.Tables, p.RowsDone)
	}}
	if logDir != "" {
		l, group, done, openErr := openLog(logDir)
		if openErr != nil {
			return fmt.Errorf("--log: %w", openErr)
		}
		defer func() { err = errors.Join(err, l.Close(), done()) }()
		if g := uuidText(group); g != b.Info.Group {
			return fmt.Errorf("--log: it is the log of group %s, and the backup is of group %s", g, b.Info.Group)
		}
		r.More = []*log.Log{l}
	}
	last, err := r.Run(cfg)
	if err != nil {
		return err
	}
	dir, _ := filepath.Abs(cfg.String("datadir"))
	fmt.Printf("restored to transaction %d of %s: a new group's first member is in %s\n"+
		"Start it with the same settings; other nodes join it with empty directories.\n", last, b.Info.Group, dir)
	return nil
}
