package ast

import "github.com/triremedb/trireme/engine/sqlerr"

// parseAhead parses statements that the grammar lacks or knows in part only. It
// returns neither statement nor error for those that the grammar is to parse.
func parseAhead(t text) (Statement, error) {
	r := newReader(t)
	parse := (*reader).selectInto
	switch {
	case r.tok.kind == tWord:
		if parse = ahead[upper(r.raw())]; parse == nil {
			return nil, nil
		}
		r.advance()
	case !r.isOp("("):
		return nil, nil
	}
	s := parse(r)
	if s == nil && r.err == nil {
		return nil, nil
	}
	r.finish()
	return s, r.err
}

// ahead are the parsers by first word, which has been read. A nil result without an
// error leaves the statement to the grammar.
var ahead map[string]func(*reader) Statement

func init() {
	ahead = map[string]func(*reader) Statement{
		"BEGIN":      (*reader).begin,
		"START":      (*reader).start,
		"COMMIT":     func(r *reader) Statement { r.accept("WORK"); return &Commit{Completion: r.completion()} },
		"ROLLBACK":   (*reader).rollback,
		"SAVEPOINT":  func(r *reader) Statement { return &Savepoint{Name: r.name()} },
		"RELEASE":    func(r *reader) Statement { r.need("SAVEPOINT"); return &Release{Name: r.name()} },
		"USE":        func(r *reader) Statement { return &Use{Schema: r.name()} },
		"PREPARE":    (*reader).prepare,
		"EXECUTE":    (*reader).execute,
		"DEALLOCATE": func(r *reader) Statement { r.need("PREPARE"); return &Deallocate{Name: r.name()} },
		"KILL":       (*reader).kill,
		"LOCK":       (*reader).lock,
		"INSTALL":    func(r *reader) Statement { return r.component(false) },
		"UNINSTALL":  func(r *reader) Statement { return r.component(true) },
		"UNLOCK":     (*reader).unlock,
		"ANALYZE":    func(r *reader) Statement { return r.maintain(Analyze) },
		"OPTIMIZE":   func(r *reader) Statement { return r.maintain(Optimize) },
		"CHECK":      func(r *reader) Statement { return r.maintain(CheckTable) },
		"REPAIR":     func(r *reader) Statement { return r.maintain(Repair) },
		"CHECKSUM":   func(r *reader) Statement { return r.maintain(Checksum) },
		"FLUSH":      (*reader).flush,
		"RESET":      (*reader).reset,
		"PURGE":      (*reader).purge,
		"SHUTDOWN":   func(r *reader) Statement { return &Shutdown{} },
		"RESTART":    func(r *reader) Statement { return &Shutdown{Restart: true} },
		"HANDLER":    (*reader).handler,
		"CACHE":      (*reader).cacheIndex,
		"LOAD":       (*reader).load,
		"GET":        (*reader).getDiagnostics,
		"SIGNAL":     func(r *reader) Statement { return r.signal(false) },
		"RESIGNAL":   func(r *reader) Statement { return r.signal(true) },
		"HELP":       func(r *reader) Statement { return &Help{Topic: r.nameOrString()} },
		"SHOW":       (*reader).show,
		"EXPLAIN":    (*reader).explain,
		"DESCRIBE":   (*reader).explain,
		"DESC":       (*reader).explain,
		"SET":        (*reader).set,
		"GRANT":      (*reader).grant,
		"REVOKE":     (*reader).revoke,
		"RENAME":     (*reader).rename,
		"CREATE":     (*reader).create,
		"ALTER":      (*reader).alter,
		"DROP":       (*reader).drop,
		"SELECT":     (*reader).selectInto,
		"WITH":       (*reader).selectInto,
		"TABLE":      (*reader).selectInto,
		"VALUES":     (*reader).selectInto,
		"INSERT":     func(r *reader) Statement { return r.insert(false) },
		"REPLACE":    func(r *reader) Statement { return r.insert(true) },
	}
	for _, w := range []string{"XA", "CHANGE", "STOP",
		"CLONE", "IMPORT", "BINLOG"} {
		ahead[w] = func(r *reader) Statement { r.failWith(unsupported(w)); return nil }
	}
}

func (r *reader) begin() Statement {
	r.accept("WORK")
	return &Begin{}
}

func (r *reader) start() Statement {
	switch {
	case r.accept("TRANSACTION"):
	case r.oneOf("REPLICA", "SLAVE", "GROUP_REPLICATION"):
		r.failWith(unsupported("START REPLICA"))
		return nil
	default:
		r.fail()
		return nil
	}
	b := &Begin{}
	for first := true; first && !r.atEnd() || r.acceptOp(","); first = false {
		switch {
		case r.accept("WITH", "CONSISTENT", "SNAPSHOT"):
			b.ConsistentSnapshot = true
		case r.accept("READ", "ONLY"):
			b.ReadOnly = true
		case r.accept("READ", "WRITE"):
			b.ReadWrite = true
		default:
			r.fail()
		}
	}
	if b.ReadOnly && b.ReadWrite {
		r.failWith(syntaxError(r.sql, len(r.sql), 0))
	}
	return b
}

// completion reads [AND [NO] CHAIN] [[NO] RELEASE].
func (r *reader) completion() Completion {
	c := CompletionDefault
	if r.accept("AND") {
		c = CompletionChain
		if r.accept("NO") {
			c = CompletionNone
		}
		r.need("CHAIN")
	}
	if r.accept("NO", "RELEASE") {
		if c == CompletionDefault {
			c = CompletionNone
		}
	} else if r.is("RELEASE") {
		if c == CompletionChain {
			r.fail()
		}
		r.accept("RELEASE")
		c = CompletionRelease
	}
	return c
}

func (r *reader) rollback() Statement {
	r.accept("WORK")
	if r.accept("TO") {
		r.accept("SAVEPOINT")
		return &Rollback{Savepoint: r.name()}
	}
	return &Rollback{Completion: r.completion()}
}

func (r *reader) prepare() Statement {
	p := &Prepare{Name: r.name()}
	r.need("FROM")
	if r.tok.kind == tUserVar {
		p.Var = r.userVar()
	} else {
		p.SQL = r.str()
	}
	return p
}

func (r *reader) execute() Statement {
	e := &Execute{Name: r.name()}
	if r.accept("USING") {
		e.Using = append(e.Using, r.userVar())
		for r.acceptOp(",") {
			e.Using = append(e.Using, r.userVar())
		}
	}
	return e
}

func (r *reader) kill() Statement {
	k := &Kill{Query: r.accept("QUERY")}
	if !k.Query {
		r.accept("CONNECTION")
	}
	k.ID = r.exprRest()
	return k
}

func (r *reader) lock() Statement {
	if r.accept("INSTANCE") {
		r.need("FOR", "BACKUP")
		return &InstanceLock{}
	}
	if !r.oneOf("TABLES", "TABLE") {
		r.fail()
	}
	l := &LockTables{}
	for first := true; first || r.acceptOp(","); first = false {
		t := TableLock{Table: r.tableName()}
		if r.accept("AS") || !r.is("READ") && !r.is("WRITE") {
			t.Alias = r.name()
		}
		switch {
		case r.accept("READ"):
			t.Local = r.accept("LOCAL")
		default:
			r.need("WRITE")
			t.Write = true
		}
		l.Locks = append(l.Locks, t)
	}
	return l
}

func (r *reader) unlock() Statement {
	if r.accept("INSTANCE") {
		return &InstanceLock{Unlock: true}
	}
	if !r.oneOf("TABLES", "TABLE") {
		r.fail()
	}
	return &UnlockTables{}
}

// maintenance are the options of maintaining statements.
var maintenance = [...][]string{
	{"QUICK"}, {"FAST"}, {"MEDIUM"}, {"EXTENDED"}, {"CHANGED"}, {"USE_FRM"}, {"FOR", "UPGRADE"},
}

func (r *reader) maintain(k MaintainKind) Statement {
	if k != CheckTable && k != Checksum {
		r.oneOf("NO_WRITE_TO_BINLOG", "LOCAL")
	}
	if !r.oneOf("TABLE", "TABLES") {
		r.fail()
	}
	m := &Maintain{Kind: k, Tables: r.tableNames()}
	if k == Analyze && (r.is("UPDATE") || r.is("DROP")) {
		r.failWith(unsupported("histograms"))
	}
	for found := k != Analyze && k != Optimize; found; {
		found = false
		for _, words := range maintenance {
			if r.accept(words...) {
				found = true
				option := words[0]
				if len(words) > 1 {
					option += " " + words[1]
				}
				m.Options = append(m.Options, option)
			}
		}
	}
	return m
}

func (r *reader) flush() Statement {
	r.oneOf("NO_WRITE_TO_BINLOG", "LOCAL")
	f := &Flush{}
	if r.oneOf("TABLES", "TABLE") {
		f.What = "TABLES"
		if !r.atEnd() && !r.is("WITH") && !r.is("FOR") {
			f.Tables = r.tableNames()
		}
		f.ReadLock = r.accept("WITH", "READ", "LOCK")
		if !f.ReadLock && f.Tables != nil {
			f.Export = r.accept("FOR", "EXPORT")
		}
		return f
	}
	for _, words := range [...][]string{
		{"PRIVILEGES"}, {"STATUS"}, {"HOSTS"}, {"LOGS"}, {"BINARY", "LOGS"}, {"ENGINE", "LOGS"}, {"ERROR", "LOGS"},
		{"GENERAL", "LOGS"}, {"SLOW", "LOGS"}, {"RELAY", "LOGS"}, {"OPTIMIZER_COSTS"}, {"USER_RESOURCES"},
	} {
		if r.accept(words...) {
			f.What = words[0]
			if len(words) > 1 {
				f.What += " " + words[1]
			}
			return f
		}
	}
	r.fail()
	return nil
}

func (r *reader) reset() Statement {
	s := &Reset{}
	switch {
	case r.accept("BINARY", "LOGS", "AND", "GTIDS"), r.accept("MASTER"):
		s.What = "BINARY LOGS AND GTIDS"
	case r.oneOf("REPLICA", "SLAVE"):
		s.What = "REPLICA"
		r.accept("ALL")
	case r.accept("PERSIST"):
		s.What = "PERSIST"
		s.IfExists = r.accept("IF", "EXISTS")
		if s.IfExists || !r.atEnd() {
			s.Name = r.name()
			if r.acceptOp(".") {
				s.Name += "." + r.name()
			}
		}
	default:
		r.fail()
	}
	return s
}

// component reads INSTALL COMPONENT and UNINSTALL COMPONENT.
func (r *reader) component(uninstall bool) Statement {
	what := "INSTALL"
	if uninstall {
		what = "UNINSTALL"
	}
	if r.is("PLUGIN") {
		r.failWith(unsupported(what + " PLUGIN"))
		return nil
	}
	r.need("COMPONENT")
	c := &Component{Uninstall: uninstall, URNs: []string{r.str()}}
	for r.acceptOp(",") {
		c.URNs = append(c.URNs, r.str())
	}
	if r.is("SET") {
		r.failWith(unsupported(what + " COMPONENT .. SET"))
	}
	return c
}

func (r *reader) purge() Statement {
	if !r.oneOf("BINARY", "MASTER") {
		r.fail()
	}
	r.need("LOGS")
	p := &PurgeLogs{}
	if r.accept("TO") {
		p.To = r.str()
		return p
	}
	r.need("BEFORE")
	p.Before = r.exprRest()
	return p
}

// explain parses EXPLAIN, DESCRIBE and DESC.
func (r *reader) explain() Statement {
	e := &Explain{Analyze: r.accept("ANALYZE")}
	if r.accept("FORMAT") {
		r.needOp("=")
		name := r.nameOrString()
		e.Format = upper(name)
		switch e.Format {
		case "TRADITIONAL", "TREE", "JSON":
		default:
			r.failWith(sqlerr.New(sqlerr.UnknownExplainFormat, name))
		}
	}
	if r.accept("INTO") {
		e.Into = r.userVar()
	}
	if r.accept("FOR", "CONNECTION") {
		e.Connection = r.number()
		return e
	}
	if r.accept("FOR", "SCHEMA") || r.accept("FOR", "DATABASE") {
		e.Schema = r.name()
	}
	if r.err != nil {
		return nil
	}
	switch {
	case r.is("SELECT"), r.is("INSERT"), r.is("REPLACE"), r.is("UPDATE"), r.is("DELETE"), r.is("WITH"), r.is("TABLE"),
		r.is("VALUES"), r.isOp("("):
		var err error
		e.Statement, err = parseText(r.from(r.tok.start))
		if err != nil {
			r.failWith(err)
		}
		r.tok = token{kind: tEOF, start: len(r.sql), end: len(r.sql)}
		return e
	case e.Analyze || e.Format != "" || e.Into != "" || e.Schema != "":
		r.fail()
		return nil
	}
	s := &Show{Kind: ShowColumns, Table: r.tableName()}
	if r.tok.kind == tString {
		s.Like = r.literal()
	} else if !r.atEnd() {
		s.Column = r.name()
	}
	return s
}

// from returns the text from a position on, blank before it: positions stay.
func (r *reader) from(at int) text {
	t := r.text
	t.clean = blank(t.clean, 0, at)
	return t
}
