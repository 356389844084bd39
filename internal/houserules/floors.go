package houserules

import (
	"fmt"
	"strings"
)

// plan is the house, lowest floor first. A package may import packages of lower
// floors only; rooms on one floor do not know each other. An entry stands for its
// directory and all below it; the longest entry counts. Packages of one entry may
// import each other.
var plan = [][]string{
	{"internal/race"},
	{"internal/trace"},
	{"internal/turn"},
	{"engine/env"},
	{"engine/sqlerr"},
	{"engine/types"},
	{"engine/storage/file"},
	{"engine/storage/extsort"},
	{"engine/storage/page"},
	{"engine/storage/redo"},
	{"engine/storage/buffer"},
	{"engine/storage/mtr"},
	{"engine/storage/space"},
	{"engine/storage/record"},
	{"engine/storage/btree"},
	{"engine/storage/undo"},
	{"engine/storage/lock"},
	{"engine/storage/trx"},
	{"engine/storage/lob"},
	{"engine/storage/changebuffer"},
	{"engine/storage/table"},
	{"engine/storage/dict", "engine/storage/purge"},
	{"engine/storage"},
	{"engine/binlog/entry"},
	{"engine/binlog/body"},
	{"engine/binlog/event"},
	{"engine/binlog/body"},
	{"engine/binlog/cache"},
	{"engine/binlog/log"},
	{"engine/txn"},
	{"engine/sql/ast"},
	{"engine/sql/catalog"},
	{"engine/sql/pattern"},
	{"engine/sql/priv"},
	{"engine/sql/expr"},
	{"engine/sql/joinorder"},
	{"engine/sql/plan"},
	{"engine/sql/temptable"},
	{"engine/sql/window"},
	{"engine/sql/exec"},
	{"engine/session"},
	{"engine"},
	{"proto", "internal/socket", "internal/process"},
	{"replication/raftlog", "replication/transport"},
	{"replication/discovery"},
	{"replication/commit", "replication/apply", "replication/bodies"},
	{"replication/provision"},
	{"replication/group"},
	{"replication/backup"},
	{"e2e/history"},
	{"replication/simgroup"},
	{"server/config", "server/auth", "server/audit", "server/metrics", "server/tracing", "server/kubernetes"},
	{"server/sqlapi", "server/adminapi", "server/mysqlwire", "server/memcached", "server/console", "server/users"},
	{"server/node"},
	{"client"},
	{"cmd/trireme"},
	{"e2e/servers"},
	{"bench", "e2e"},
	{"internal/houserules"},
}

// simulations are packages that serve tests, besides those whose name ends in
// "test": nothing that ships imports them.
var simulations = []string{
	"engine/env/simenv",
	"engine/storage/file/simfile",
	"replication/simgroup",
	"internal/race",
}

// place returns the floor of a package and the plan's entry for it, or -1.
func place(dir string) (floor int, entry string) {
	floor = -1
	for i, rooms := range plan {
		for _, room := range rooms {
			if within(dir, room) && len(room) > len(entry) {
				floor, entry = i, room
			}
		}
	}
	return floor, entry
}

// floors: a room imports only rooms on lower floors. Tests may import any.
func floors(s *source) []string {
	dir := s.dir()
	if dir == "." {
		return nil
	}
	floor, entry := place(dir)
	if floor < 0 {
		return []string{fmt.Sprintf("%s: package %s is not in the plan of the house; "+
			"place it in internal/houserules/floors.go", s.name, dir)}
	}
	if s.test {
		return nil
	}
	var findings []string
	for name, spec := range s.imports() {
		target, ours := strings.CutPrefix(name, Module+"/")
		if !ours {
			continue
		}
		to, toEntry := place(target)
		switch {
		case to < 0:
			findings = append(findings, s.at(spec, "%s is not in the plan of the house", target))
		case entry != toEntry && to >= floor:
			findings = append(findings, s.at(spec, "%s may not import %s, which is not below it", dir, target))
		case isTestOnly(target) && !isTestOnly(dir) && !s.program():
			findings = append(findings, s.at(spec, "%s is for tests only", target))
		}
	}
	return findings
}

func isTestOnly(dir string) bool {
	for _, s := range simulations {
		if within(dir, s) {
			return true
		}
	}
	return strings.HasSuffix(dir, "test")
}
