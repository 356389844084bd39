package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport"
	"github.com/triremedb/trireme/server/config"
	"github.com/triremedb/trireme/server/node"
)

const regroupText = `Usage: trireme regroup [--check] [--until=GTID] [--removed] [--setting=value ...]

For a group whose majority is lost for good: makes the data directory (--datadir) of one
member, which is stopped, that of the only member of a new group, in place. It goes on with
all transactions that this member has. What only the lost members had is lost.
First back it up: trireme backup, if the member still runs, or a copy of the directory.

  --check    say what is there and up to which transaction it would go, and change nothing but
             what a start of the node would (it recovers)
  --until    last transaction to keep, a GTID or its number; without it, all
  --removed  go on although the node is not a member of its group any more, or not yet

Settings are those of trireme server; datadir matters here, and peer_address if the member is
to be reached at another address than before. A run that was cut short goes on when it is
started again; until then no node starts in the directory. The old log is kept beside.
`

func runRegroup(args []string) error {
	own, rest, err := ownArgs(args, []string{"check", "removed"}, []string{"until"})
	if err != nil {
		fmt.Fprintf(os.Stderr, "trireme regroup: %v\n\n%s", err, regroupText)
		return errUsage
	}
	if own["help"]+own["h"] != "" {
		fmt.Print(regroupText)
		return nil
	}
	cfg, err := config.Load(config.Sources{Args: rest, Env: os.Environ(), Variable: checkVariable})
	if err != nil {
		fmt.Fprintf(os.Stderr, "trireme regroup: the configuration is not right:\n%v\n", err)
		return errUsage
	}
	dir, err := filepath.Abs(cfg.String("datadir"))
	if err != nil {
		return err
	}
	a := &admin{out: os.Stdout}
	r := &node.Regroup{Until: own["until"], Removed: own["removed"] != "", Check: own["check"] != "", Found: func(s *group.Survey) {
		_ = a.show(nil, func(w io.Writer) { printSurvey(w, dir, s) })
	}}
	made, err := r.Run(cfg)
	if errors.Is(err, file.ErrNoSpace) {
		err = fmt.Errorf("%w: make room and run it again", err)
	}
	if err != nil {
		return err
	}
	if r.Check {
		fmt.Println("Nothing was changed. Without --check this becomes the first member of a new group.")
		return nil
	}
	fmt.Printf(`It is member %d, the only one, of the new group %s.
The old log and what said whose directory it was are in %s: remove that when the new group is as you want it.
Start the node with its settings. Other nodes join it with EMPTY directories: those of the old group are refused.
With discovery=etcd give the new group another cluster_name, or remove the old one's keys.
`, made.Member, made.Group, filepath.Join(dir, made.Aside))
	return nil
}

// printSurvey says what there is in a member's directory, and what will become of it.
func printSurvey(w io.Writer, dir string, s *group.Survey) {
	row(w, "directory", dir)
	row(w, "group", transport.GroupID(s.Group))
	if s.Resumes {
		row(w, "member", s.Member.ID)
		row(w, "resumes", "a run that was cut short")
		row(w, "goes up to", fmt.Sprintf("%s:%d", transport.GroupID(s.Group), s.Until.Number))
		row(w, "address", s.Addr)
		return
	}
	row(w, "member", memberText(s))
	for _, m := range s.Others {
		row(w, "other member", fmt.Sprintf("%d at %s", m.ID, m.Addr))
	}
	row(w, "data", pointText(s.Applied))
	row(w, "log", pointText(s.Last))
	row(w, "known committed", pointText(s.Known))
	if s.Damage != nil {
		row(w, "damaged", s.Damage)
	}
	if s.State != nil {
		row(w, "note", fmt.Sprintf("%v (a new group does not need it)", s.State))
	}
	if s.Receiving {
		row(w, "note", "newer data that others were sending did not arrive whole: they will be removed")
	}
	if s.Until.Index == 0 {
		return // it cannot be done
	}
	row(w, "goes up to", fmt.Sprintf("%s:%d%s", transport.GroupID(s.Group), s.Until.Number, timeText(s.Until.Time)))
	if from, to := s.Known.Number+1, s.Until.Number; from <= to {
		row(w, "in doubt", fmt.Sprintf("transactions %d to %d: this member cannot know whether they were committed. They are kept, since they may have been acknowledged", from, to))
	}
	if s.Until.Number < s.Last.Number {
		row(w, "left out", fmt.Sprintf("transactions %d to %d", s.Until.Number+1, s.Last.Number))
	}
	row(w, "address", addressText(s))
	row(w, "room needed", size(s.LogBytes))
}

func memberText(s *group.Survey) string {
	text := fmt.Sprintf("%d at %s, which votes", s.Member.ID, s.Member.Addr)
	switch {
	case s.Left:
		text = fmt.Sprintf("%d, which is not in the group: it was removed, or not taken in yet", s.Member.ID)
	case s.Member.Learner:
		text = fmt.Sprintf("%d at %s, which does not vote: commits did not wait for it, so that it may lack more than one that does", s.Member.ID, s.Member.Addr)
	}
	return text
}

func addressText(s *group.Survey) string {
	if s.Member.Addr == "" || s.Member.Addr == s.Addr {
		return s.Addr
	}
	return fmt.Sprintf("%s: start it there, and not at %s any more. Others will look for it at the new address", s.Addr, s.Member.Addr)
}

func pointText(p group.LogPoint) string {
	return fmt.Sprintf("up to transaction %d, entry %d%s", p.Number, p.Index, timeText(p.Time))
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return ", of " + t.Format(time.RFC3339)
}
