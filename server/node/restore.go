package node

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/triremedb/trireme/engine/binlog/log"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/replication/backup"
	"github.com/triremedb/trireme/replication/provision"
	"github.com/triremedb/trireme/server/config"
)

// Restore says what is restored, and up to where.
type Restore struct {
	Backup *backup.Backup // verified
	// Until is the last transaction that is restored, a GTID or its number; empty: all.
	Until string
	More  []*log.Log // that go on where the backup's log ends
	Watch func(provision.Progress)
}

// Run makes the data directory of a configuration from a backup: that of the first member
// of a new group, to which other nodes can be added as to any. It returns the last
// transaction that is there.
func (r *Restore) Run(cfg *config.Config) (last uint64, err error) {
	until, err := r.Number()
	if err != nil {
		return 0, err
	}
	e := env.Real()
	fs := file.OS(cfg.String("datadir"))
	o := backup.Options{Data: fs, Env: e, Storage: groupOptions(cfg, e, fs, slog.New(slog.DiscardHandler)).Storage,
		Until: until, More: r.More, Addr: peerAddress(cfg), Watch: r.Watch}
	o.Group, o.Member = freshGroup(e)
	if last, err = r.Backup.Restore(o); errors.Is(err, backup.ErrDamaged) {
		err = fmt.Errorf("%w; use another backup", err)
	}
	return last, err
}

// Number is the transaction to restore to; 0: all.
func (r *Restore) Number() (uint64, error) {
	of, number, err := parseUntil(r.Until)
	if err == nil && of != "" && !strings.EqualFold(of, r.Backup.Info.Group) {
		err = fmt.Errorf("%s is a transaction of group %s, and the backup is of group %s", r.Until, of, r.Backup.Info.Group)
	}
	return number, err
}
