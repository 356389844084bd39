package node

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport"
	"github.com/triremedb/trireme/server/config"
)

// Regroup says what becomes of a member's directory whose group has lost its majority.
type Regroup struct {
	// Until is the last transaction that is kept, a GTID or its number; empty: all.
	Until   string
	Removed bool // also if the member was removed from its group
	Check   bool // look, and change nothing
	// Found is told what there is, before anything is changed; nil: nobody is.
	Found func(*group.Survey)
}

// Regrouped is what has become of it.
type Regrouped struct {
	Group  transport.GroupID
	Member uint64
	Aside  string // where the old member's log and files are, in the directory
}

// Run makes the data directory of a configuration that of the first member of a new group, see [group.Regroup].
func (r *Regroup) Run(cfg *config.Config) (made Regrouped, err error) {
	e := env.Real()
	g := &group.Regroup{FS: file.OS(cfg.String("datadir")), Env: e, Removed: r.Removed,
		Storage: storage.Options{BufferPoolSize: cfg.Int("innodb_buffer_pool_size")}}
	if cfg.String("peer_address") != "" || cfg.String("report_host") != "" {
		g.Addr = peerAddress(cfg)
	}
	var of string
	if of, g.Until, err = parseUntil(r.Until); err != nil {
		return made, err
	}
	g.Group, g.Member = freshGroup(e)
	s, err := g.Prepare()
	if s != nil && r.Found != nil {
		r.Found(s)
	}
	if err != nil {
		return made, err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	if old := transport.GroupID(s.Group).String(); of != "" && !strings.EqualFold(of, old) {
		return made, fmt.Errorf("%s is a transaction of group %s, and this member is of group %s", r.Until, of, old)
	}
	if r.Check {
		return made, nil
	}
	err = g.Run()
	made.Group, made.Member = g.Identity()
	made.Aside = g.Aside()
	return made, err
}

// freshGroup draws the ids of a new group and its first member.
func freshGroup(e env.Env) (group [16]byte, member uint64) {
	for member == 0 || member > 1<<63-1 {
		member = e.Uint64() >> 1
	}
	for i := range group {
		group[i] = byte(e.Uint64())
	}
	return group, member
}

// parseUntil reads a transaction: a GTID, or its number; empty: none.
func parseUntil(text string) (group string, number uint64, err error) {
	if text == "" {
		return "", 0, nil
	}
	digits := text
	if source, n, ok := strings.Cut(text, ":"); ok {
		group, digits = source, n
	}
	if number, err = strconv.ParseUint(digits, 10, 64); err != nil || number == 0 {
		return "", 0, fmt.Errorf("%q is no transaction: it is a GTID, as 8e0c2d5a-…-11d2:18230, or its number", text)
	}
	return group, number, nil
}
