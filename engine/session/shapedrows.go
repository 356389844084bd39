package session

import (
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sql/priv"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/types"
)

// FileCounter counts the work on the files of the node's directory: a *file.Disk.
type FileCounter interface {
	Stats() *file.Stats // of all files, also of those that are gone
	Files() []file.FileCounts
	ResetFiles()
}

func shapedTables() map[string]func(q *virtualRows) error {
	list := map[string]func(q *virtualRows) error{
		"mysql.time_zone_name": rowsZoneNames, "mysql.time_zone": rowsZones,
		"sys.sys_config": rowsSysConfig,
	}
	maps.Copy(list, innodbTables())
	for name, rows := range map[string]func(q *virtualRows) error{
		"accounts": func(q *virtualRows) error { return rowsClients(q, byAccount) },
		"users":    func(q *virtualRows) error { return rowsClients(q, byUser) },
		"hosts":    func(q *virtualRows) error { return rowsClients(q, byHost) },

		"table_io_waits_summary_by_table":           func(q *virtualRows) error { return rowsTableIO(q, false) },
		"table_io_waits_summary_by_index_usage":     func(q *virtualRows) error { return rowsTableIO(q, true) },
		"file_summary_by_instance":                  rowsFiles,
		"file_summary_by_event_name":                rowsFileEvents,
		"events_waits_summary_global_by_event_name": rowsWaits,
		"memory_summary_global_by_event_name":       rowsMemory,

		"events_statements_current": rowsCurrentStatements,
		"events_statements_summary_global_by_event_name": func(q *virtualRows) error {
			q.statementSums(nil, q.s.m.clients.everything())
			return nil
		},
		"events_statements_summary_by_account_by_event_name": func(q *virtualRows) error { return rowsClientStatements(q, byAccount) },
		"events_statements_summary_by_user_by_event_name":    func(q *virtualRows) error { return rowsClientStatements(q, byUser) },
		"events_statements_summary_by_host_by_event_name":    func(q *virtualRows) error { return rowsClientStatements(q, byHost) },
		"events_statements_summary_by_thread_by_event_name":  rowsThreadStatements,
		"events_errors_summary_global_by_error":              rowsErrors,
		"events_transactions_current":                        rowsCurrentTransactions,

		"setup_instruments": rowsInstruments, "setup_consumers": rowsConsumers, "setup_actors": func(q *virtualRows) error {
			q.row("%", "%", "%", "YES", "NO")
			return nil
		},
		"setup_threads": func(q *virtualRows) error {
			q.row("thread/sql/one_connection", "YES", "NO", "user", 0, nil)
			return nil
		},
		"variables_info": rowsVariablesInfo, "processlist": rowsPerfProcesses, "threads": rowsThreads,
		"session_connect_attrs":         func(q *virtualRows) error { return rowsAttributes(q, true) },
		"session_account_connect_attrs": func(q *virtualRows) error { return rowsAttributes(q, false) },
	} {
		list[perfSchema+"."+name] = rows
	}
	return list
}

// resets are the tables of performance_schema that TRUNCATE begins anew.
var resets = map[string]func(s *Session){
	digestTable:                             func(s *Session) { s.m.digests.forget() },
	"accounts":                              func(s *Session) { s.m.clients.forget(byAccount) },
	"users":                                 func(s *Session) { s.m.clients.forget(byUser) },
	"hosts":                                 func(s *Session) { s.m.clients.forget(byHost) },
	"table_io_waits_summary_by_table":       func(s *Session) { s.eng.Tables.Usages.Reset() },
	"table_io_waits_summary_by_index_usage": func(s *Session) { s.eng.Tables.Usages.Reset() },
	"file_summary_by_instance":              resetFiles,
	"file_summary_by_event_name":            resetFiles,
	"events_errors_summary_global_by_error": func(s *Session) { s.m.errors.forget() },
}

func resetFiles(s *Session) {
	if f := s.m.opt.FileCounts; f != nil {
		f.ResetFiles()
	}
}

func rowsZoneNames(q *virtualRows) error {
	for i, name := range expr.ZoneNames() {
		q.row(name, i+1)
	}
	return nil
}

func rowsZones(q *virtualRows) error {
	for i := range expr.ZoneNames() {
		q.row(i+1, "N")
	}
	return nil
}

func rowsSysConfig(q *virtualRows) error {
	q.row("statement_truncate_len", "64", nil, nil)
	return nil
}

func rowsClients(q *virtualRows, what int) error {
	for _, c := range q.s.m.clients.read(what) {
		q.row(append(c.columns(what), c.current, c.total, 0, 0)...)
	}
	return nil
}

// untimed are the columns of summaries for counts of which no times are taken.
func untimed(row []any, counts ...uint64) []any {
	for _, n := range counts {
		row = append(row, n, 0, 0, 0, 0)
	}
	return row
}

func usageColumns(row []any, n table.UsageCounts) []any {
	read, written := n[table.Fetched], n[table.Inserted]+n[table.Updated]+n[table.Deleted]
	return untimed(row, read+written, read, written, n[table.Fetched], n[table.Inserted], n[table.Updated], n[table.Deleted])
}

// rowsTableIO lists the tables that were in use since the engine was opened, with their indexes or without.
func rowsTableIO(q *virtualRows, byIndex bool) error {
	usages := q.s.eng.Tables.Usages
	tables, rest := usages.Read()
	err := q.s.eng.Catalog.Tables(nil, func(d *record.Table) error {
		counts, ok := tables[d.ID]
		if !ok || strings.HasPrefix(d.Name, tempPrefix) {
			return nil
		}
		if err := q.s.interrupted(); err != nil {
			return err
		}
		sum, none := table.UsageCounts{}, counts[0]
		for _, n := range counts {
			for i := range n {
				sum[i] += n[i]
			}
		}
		if !byIndex {
			q.row(usageColumns([]any{"TABLE", d.Schema, d.Name}, sum)...)
			return nil
		}
		for i := range d.Indexes {
			ix := &d.Indexes[i]
			n := counts[ix.ID]
			if ix.Name == dict.HiddenIndex {
				for k := range none {
					none[k] += n[k]
				}
				continue
			}
			q.row(usageColumns([]any{"TABLE", d.Schema, d.Name, ix.Name}, n)...)
		}
		q.row(usageColumns([]any{"TABLE", d.Schema, d.Name, nil}, none)...)
		return nil
	})
	if rest != (table.UsageCounts{}) && byIndex {
		q.row(usageColumns([]any{nil, nil, nil, nil}, rest)...)
	} else if rest != (table.UsageCounts{}) {
		q.row(usageColumns([]any{nil, nil, nil}, rest)...)
	}
	return err
}

// fileEvent is the instrument that stands for files of a kind.
func fileEvent(name string) string {
	base := path.Base(name)
	switch {
	case strings.HasPrefix(base, "doublewrite"):
		return "wait/io/file/innodb/innodb_dblwr_file"
	case strings.HasSuffix(base, ".trd"):
		return "wait/io/file/innodb/innodb_data_file"
	case strings.Contains(name, "redo"):
		return "wait/io/file/innodb/innodb_log_file"
	case strings.Contains(name, "binlog"):
		return "wait/io/file/sql/binlog"
	}
	return "wait/io/file/sql/misc"
}

// fileCounts are the counts of the files of the node's directory.
func (q *virtualRows) fileCounts() []file.FileCounts {
	if q.s.m.opt.FileCounts == nil {
		return nil
	}
	return q.s.m.opt.FileCounts.Files()
}

func fileColumns(row []any, f *file.FileCounts) []any {
	row = untimed(row, f.Reads+f.Writes+f.Syncs, f.Reads)
	row = append(row, f.ReadBytes)
	row = untimed(row, f.Writes)
	row = append(row, f.WriteBytes)
	return untimed(row, f.Syncs)
}

func rowsFiles(q *virtualRows) error {
	dir := q.s.m.opt.Backend.Server().Datadir
	for i, f := range q.fileCounts() {
		name, event := "", "wait/io/file/sql/misc"
		if f.Name != "" {
			name, event = path.Join(dir, f.Name), fileEvent(f.Name)
		}
		q.row(fileColumns([]any{cutText(name, 512), event, i + 1}, &f)...)
	}
	return nil
}

// fileEvents adds the files up by instrument.
func (q *virtualRows) fileEvents() (names []string, sums map[string]file.FileCounts) {
	sums = map[string]file.FileCounts{}
	for _, f := range q.fileCounts() {
		event := fileEvent(f.Name)
		n := sums[event]
		n.Reads, n.ReadBytes, n.Writes, n.WriteBytes, n.Syncs = n.Reads+f.Reads, n.ReadBytes+f.ReadBytes, n.Writes+f.Writes, n.WriteBytes+f.WriteBytes, n.Syncs+f.Syncs
		sums[event] = n
	}
	return slices.Sorted(maps.Keys(sums)), sums
}

func rowsFileEvents(q *virtualRows) error {
	names, sums := q.fileEvents()
	for _, name := range names {
		n := sums[name]
		q.row(fileColumns([]any{name}, &n)...)
	}
	return nil
}

const tableEvent = "wait/io/table/sql/handler"

// rowsWaits lists what waits are counted: those for files and tables.
func rowsWaits(q *virtualRows) error {
	names, sums := q.fileEvents()
	for _, name := range names {
		n := sums[name]
		q.row(untimed([]any{name}, n.Reads+n.Writes+n.Syncs)...)
	}
	total := uint64(0)
	for _, n := range q.s.eng.Tables.Usages.Total() {
		total += n
	}
	q.row(untimed([]any{tableEvent}, total)...)
	return nil
}

// rowsMemory lists what is known of memory. Allocations are counted of what is allocated once only.
func rowsMemory(q *virtualRows) error {
	add := func(name string, count int, bytes int64) {
		q.row(name, count, 0, bytes*int64(count), 0, 0, count, count, 0, bytes, nil)
	}
	stats := q.s.eng.Stats()
	add("memory/innodb/buf_buf_pool", 1, q.s.eng.Pool.Size())
	add("memory/innodb/lock0lock", 0, stats.Locks.Memory)
	add("memory/sql/TABLE_SHARE::mem_root", 0, stats.Catalog.Bytes)
	add("memory/temptable/physical_ram", 0, q.s.m.memory.Used())
	return nil
}

// statementSums adds rows of a summary of statements by kind.
func (q *virtualRows) statementSums(of []any, kinds kindSums) {
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		n := kinds[kind]
		row := append(slices.Clone(of), statementEvent(kind), n.Count, picoseconds(n.TotalTime), picoseconds(n.LeastTime), picoseconds(n.TotalTime)/max(n.Count, 1),
			picoseconds(n.LongestTime), 0, n.Errors, n.Warnings, n.RowsAffected, n.RowsSent, n.RowsRead, 0, 0, 0, 0, 0, 0, n.Scans, 0, 0, 0, 0, n.Scans, 0, 0, 0, 0, 0)
		q.row(row...)
	}
}

// statementEvent is the instrument of statements of a kind.
func statementEvent(kind statementKind) string {
	if comNames[kind] == "" {
		return "statement/sql/other"
	}
	return "statement/sql/" + strings.TrimPrefix(comNames[kind], "Com_")
}

func rowsClientStatements(q *virtualRows, what int) error {
	for _, c := range q.s.m.clients.read(what) {
		q.statementSums(c.columns(what), c.kinds)
	}
	return nil
}

func rowsThreadStatements(q *virtualRows) error {
	for _, s := range q.s.m.all() {
		q.statementSums([]any{s.id}, s.counts.sums())
	}
	return nil
}

// eventNumbers are the numbers of the statements that sessions run: how many they have run, and one.
func (q *virtualRows) eventNumbers() map[uint64]uint64 {
	numbers := map[uint64]uint64{}
	for _, s := range q.s.m.all() {
		numbers[s.id] = 1
		for _, n := range s.counts.sums() {
			numbers[s.id] += n.Count
		}
	}
	return numbers
}

// runningMax is how long the text of a statement may be that is read to find its kind.
const runningMax = 16 << 10

// runningEvent is the instrument of a statement that runs.
func runningEvent(text string) string {
	if len(text) <= runningMax {
		if list, err := ast.Parse(text, 0); err == nil && len(list) > 0 {
			return statementEvent(statementKindOf(list[0]))
		}
	}
	return statementEvent(comOther)
}

// rowsCurrentStatements lists the statements that run.
func rowsCurrentStatements(q *virtualRows) error {
	numbers := q.eventNumbers()
	for _, p := range q.s.m.Processes() {
		if p.Info == "" {
			continue
		}
		if err := q.s.interrupted(); err != nil {
			return err
		}
		q.row(p.ID, numbers[p.ID], nil, runningEvent(p.Info), nil, nil, nil, picoseconds(p.Time), 0, cutText(p.Info, 1024), nil, nil, orNull(p.Schema), nil, nil, nil, nil,
			nil, nil, nil, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, nil, nil, 0, nil, 0, 0, 0, "PRIMARY")
	}
	return nil
}

func rowsCurrentTransactions(q *virtualRows) error {
	numbers := q.eventNumbers()
	for _, t := range q.s.m.Transactions() {
		access := "READ WRITE"
		if t.ReadOnly {
			access = "READ ONLY"
		}
		id := any(nil)
		if t.ID != 0 {
			id = t.ID
		}
		q.row(t.Session, numbers[t.Session], nil, "transaction", "ACTIVE", id, nil, nil, nil, nil, nil, nil, nil, nil, picoseconds(t.Age), access, t.Isolation, yesNo(t.OneOnly))
	}
	return nil
}

// rowsInstruments lists what is counted, and whether times are taken.
func rowsInstruments(q *virtualRows) error {
	add := func(name, timed string) { q.row(name, "YES", timed, "", nil, 0, nil) }
	for _, name := range []string{"wait/io/file/innodb/innodb_data_file", "wait/io/file/innodb/innodb_dblwr_file", "wait/io/file/innodb/innodb_log_file",
		"wait/io/file/sql/binlog", "wait/io/file/sql/misc", tableEvent} {
		add(name, "NO")
	}
	for kind := range comKinds {
		if kind != comStmtExecute {
			add(statementEvent(kind), "YES")
		}
	}
	add("transaction", "YES")
	for _, name := range []string{"memory/innodb/buf_buf_pool", "memory/innodb/lock0lock", "memory/sql/TABLE_SHARE::mem_root", "memory/temptable/physical_ram"} {
		q.row(name, "YES", nil, "", nil, 0, nil)
	}
	return nil
}

func rowsConsumers(q *virtualRows) error {
	digests := yesNo(q.s.m.digests.max > 0)
	for _, c := range [][2]string{{"events_stages_current", "NO"}, {"events_stages_history", "NO"}, {"events_stages_history_long", "NO"}, {"events_statements_cpu", "NO"},
		{"events_statements_current", "YES"}, {"events_statements_history", "NO"}, {"events_statements_history_long", "NO"}, {"events_transactions_current", "YES"},
		{"events_transactions_history", "NO"}, {"events_transactions_history_long", "NO"}, {"events_waits_current", "NO"}, {"events_waits_history", "NO"},
		{"events_waits_history_long", "NO"}, {"global_instrumentation", "YES"}, {"thread_instrumentation", "YES"}, {"statements_digest", digests}} {
		q.row(c[0], c[1])
	}
	return nil
}

func rowsVariablesInfo(q *virtualRows) error {
	sources := map[Origin]string{OriginDefault: "COMPILED", OriginConfigured: "GLOBAL", OriginSet: "DYNAMIC", OriginGroup: "PERSISTED"}
	for _, g := range q.s.m.Globals() {
		if q.s.seeVariable(variables[g.Name]) != nil {
			continue
		}
		q.row(g.Name, sources[g.Origin], nil, nil, nil, nil, nil, nil)
	}
	return nil
}

func rowsPerfProcesses(q *virtualRows) error {
	q.processes(func(p *Process) {
		q.row(p.ID, p.User, p.Host, orNull(p.Schema), p.Command, int64(p.Time/time.Second), orNull(p.State), orNull(p.Info), "PRIMARY")
	})
	return nil
}

func rowsThreads(q *virtualRows) error {
	tls := map[uint64]string{}
	for _, s := range q.s.m.all() {
		switch of := s.whose(); {
		case of.TLS != "":
			tls[s.id] = "SSL/TLS"
		case of.Door == "mysql":
			tls[s.id] = "TCP/IP"
		}
	}
	q.processes(func(p *Process) {
		q.row(p.ID, "thread/sql/one_connection", "FOREGROUND", p.ID, p.User, p.Host, orNull(p.Schema), p.Command, int64(p.Time/time.Second), orNull(p.State), orNull(p.Info),
			nil, nil, "YES", "NO", orNull(tls[p.ID]), nil, nil, "PRIMARY", 0, 0, 0, 0, "NO")
	})
	return nil
}

// rowsAttributes lists the connection attributes of the sessions, or of those of the session's own account.
func rowsAttributes(q *virtualRows, all bool) error {
	for _, s := range q.s.m.all() {
		info := s.whose()
		if !all && (info.AccountUser != q.s.info.AccountUser || info.AccountHost != q.s.info.AccountHost) {
			continue
		}
		for i, name := range slices.Sorted(maps.Keys(info.Attributes)) {
			q.row(s.id, cutText(name, 32), cutText(info.Attributes[name], 1024), i)
		}
	}
	return nil
}

// innodbTables are the tables of information_schema about tables and indexes as they lie on disk.
func innodbTables() map[string]func(q *virtualRows) error {
	list := map[string]func(q *virtualRows) error{}
	for name, rows := range map[string]func(q *virtualRows, t *listed){
		"TABLES": rowsInnodbTable, "INDEXES": rowsInnodbIndexes, "COLUMNS": rowsInnodbColumns, "FIELDS": rowsInnodbFields, "FOREIGN": rowsInnodbForeign,
		"FOREIGN_COLS": rowsInnodbForeignColumns, "TABLESPACES": rowsInnodbSpace, "TABLESPACES_BRIEF": rowsInnodbSpaceBrief, "DATAFILES": rowsInnodbDatafile,
	} {
		list[infoSchema+".INNODB_"+name] = func(q *virtualRows) error {
			return q.s.eng.Catalog.Tables(nil, func(d *record.Table) error {
				if strings.HasPrefix(d.Name, tempPrefix) {
					return nil
				}
				return q.openListed(d.ID, func(t *listed) error {
					if t.open != nil && t.open.Where.Space != 0 {
						rows(q, t)
					}
					return q.err
				})
			})
		}
	}
	list[infoSchema+".INNODB_BUFFER_POOL_STATS"] = rowsBufferPool
	list[infoSchema+".INNODB_TEMP_TABLE_INFO"] = nil
	return list
}

func innodbName(d *record.Table) string { return d.Schema + "/" + d.Name }

func rowsInnodbTable(q *virtualRows, t *listed) {
	q.row(t.def.ID, innodbName(t.def), nil, len(t.def.Columns), uint64(t.open.Where.Space), "Dynamic", 0, "Single", nil, nil)
}

func rowsInnodbIndexes(q *virtualRows, t *listed) {
	for i := range t.def.Indexes {
		ix := &t.def.Indexes[i]
		kind, name := 0, ix.Name
		switch {
		case i == 0 && name == dict.HiddenIndex:
			kind, name = 1, "GEN_CLUST_INDEX"
		case i == 0:
			kind = 3
		case ix.Unique:
			kind = 2
		}
		q.row(ix.ID, name, t.def.ID, kind, len(ix.Parts), uint64(t.open.Where.Roots[ix.ID]), uint64(t.open.Where.Space), nil)
	}
}

func rowsInnodbColumns(q *virtualRows, t *listed) {
	for i := range t.def.Columns {
		c := &t.def.Columns[i]
		if c.Hidden || c.DroppedIn != 0 {
			continue
		}
		q.row(t.def.ID, c.Name, i, nil, nil, nil, bit(c.AddedIn > record.FirstRowVersion), nil)
	}
}

func rowsInnodbFields(q *virtualRows, t *listed) {
	for i := range t.def.Indexes {
		ix := &t.def.Indexes[i]
		for n, p := range ix.Parts {
			if c := t.def.Column(p.Column); c != nil && !c.Hidden {
				q.row(decimal(ix.ID), c.Name, n)
			}
		}
	}
}

func decimal(n uint64) types.Value { return types.NewUint(n) }

func rowsInnodbForeign(q *virtualRows, t *listed) {
	for i := range t.def.ForeignKeys {
		k := &t.def.ForeignKeys[i]
		q.row(cutText(t.def.Schema+"/"+k.Name, 129), cutText(innodbName(t.def), 129), cutText(k.RefSchema+"/"+k.RefTable, 129), len(k.Columns), nil)
	}
}

func rowsInnodbForeignColumns(q *virtualRows, t *listed) {
	for i := range t.def.ForeignKeys {
		k := &t.def.ForeignKeys[i]
		for n, id := range k.Columns {
			if c := t.def.Column(id); c != nil {
				q.row(cutText(t.def.Schema+"/"+k.Name, 129), c.Name, k.RefColumns[n], n+1)
			}
		}
	}
}

func rowsInnodbSpace(q *virtualRows, t *listed) {
	bytes := int64(t.open.Space().SizePages()) * pageSize
	q.row(uint64(t.open.Where.Space), innodbName(t.def), nil, "Dynamic", pageSize, 0, "Single", nil, bytes, nil, 0, nil, nil, "N", "normal")
}

// spacePath is where the file of a tablespace lies below the node's directory.
func (q *virtualRows) spacePath(t *listed) string {
	return "./" + q.s.eng.Spaces.Name(t.open.Where.Space)
}

func rowsInnodbSpaceBrief(q *virtualRows, t *listed) {
	q.row(decimal(uint64(t.open.Where.Space)), innodbName(t.def), q.spacePath(t), nil, "Single")
}

func rowsInnodbDatafile(q *virtualRows, t *listed) {
	q.row(decimal(uint64(t.open.Where.Space)), q.spacePath(t))
}

// rowsBufferPool is the pool's only instance. What is not counted is NULL.
func rowsBufferPool(q *virtualRows) error {
	b := q.s.eng.Pool.Stats()
	q.row(0, b.PagesTotal, b.PagesFree, b.PagesTotal-b.PagesFree, b.PagesOld, b.PagesDirty, 0, nil, nil, nil, b.MadeYoung, nil, nil, nil, b.Reads+b.ReadAhead, nil, b.Written,
		nil, nil, nil, nil, nil, nil, nil, b.ReadAhead, nil, nil, nil, nil, nil, 0, 0)
	return nil
}

// toolStatus adds status variables that monitoring tools ask for and that follow from other counts.
func (q *virtualRows) toolStatus(stats *storage.Stats, add func(name string, value int64)) {
	m := q.s.m
	rows := q.s.eng.Tables.Usages.Total()
	add("Innodb_rows_read", int64(rows[table.Fetched]))
	add("Innodb_rows_inserted", int64(rows[table.Inserted]))
	add("Innodb_rows_updated", int64(rows[table.Updated]))
	add("Innodb_rows_deleted", int64(rows[table.Deleted]))
	b, r := &stats.Buffer, &stats.Redo
	add("Innodb_pages_read", int64(b.Reads+b.ReadAhead))
	add("Innodb_buffer_pool_pages_flushed", int64(b.Written))
	add("Innodb_buffer_pool_bytes_data", int64(b.PagesTotal-b.PagesFree)*pageSize)
	add("Innodb_buffer_pool_bytes_dirty", int64(b.PagesDirty)*pageSize)
	add("Innodb_log_writes", r.Writes)
	add("Innodb_log_waits", r.LogWaits)
	add("Innodb_os_log_written", r.WriteBytes)
	add("Innodb_os_log_fsyncs", r.Syncs)
	if waits := int64(stats.Locks.Waits); waits > 0 {
		add("Innodb_row_lock_time_avg", stats.Locks.WaitTime.Milliseconds()/waits)
	} else {
		add("Innodb_row_lock_time_avg", 0)
	}
	if m.opt.FileCounts != nil {
		all := m.opt.FileCounts.Stats()
		add("Innodb_data_reads", all.Reads.Load())
		add("Innodb_data_read", all.ReadBytes.Load())
		add("Innodb_data_writes", all.Writes.Load())
		add("Innodb_data_written", all.WriteBytes.Load())
		add("Innodb_data_fsyncs", all.Syncs.Load())
	}
}

// truncateMade is TRUNCATE of a table of performance_schema: its counts begin anew. Error: 1142 of others, and without DROP.
func (s *Session) truncateMade(name string) error {
	v := virtualTable(perfSchema, name)
	if v != nil {
		name = v.Def.Name
	}
	a := s.privileges()
	reset := resets[name]
	if a.TableMask(perfSchema, name)&priv.Drop == 0 || v != nil && reset == nil {
		return sqlerr.New(sqlerr.TableAccessDeniedError, "DROP", a.ID.Name, s.info.Host, name)
	}
	if v == nil {
		return sqlerr.New(sqlerr.NoSuchTable, perfSchema, name)
	}
	if err := s.connect(); err != nil {
		return err
	}
	reset(s)
	return nil
}
