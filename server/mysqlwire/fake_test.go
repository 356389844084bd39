package mysqlwire

import (
	"context"
	"crypto/tls"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"go.uber.org/goleak"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/sql/priv"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
	_ "github.com/triremedb/trireme/engine/types/collation"
	"github.com/triremedb/trireme/internal/trace"
	"github.com/triremedb/trireme/server/auth"
)

// patience is how long anything may take that has to happen in the end: the machine that
// tests run on may stand still for a while.
const patience = 2 * time.Minute

// eventually waits for a condition.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for until := time.Now().Add(patience); !cond(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("waited in vain: " + what)
		}
	}
}

// fake is a backend whose statements are words of the tests.
type fake struct {
	next atomic.Uint64
	mu   sync.Mutex
	open map[uint64]*fakeSession
	idle atomic.Int64 // a time.Duration; 0: for ever
	big  int64        // max_allowed_packet

	prepared atomic.Int64 // statements that are not closed

	parents []string      // told by UseTrace
	waiting atomic.Int64  // statements that sleep, or wait at the gate
	gate    chan struct{} // closed when "gate" may go on
}

func (f *fake) NextID() uint64     { return f.next.Add(1) }
func (f *fake) Statistics() string { return "Uptime: 1" }

func (f *fake) Open(info session.ConnectionInfo) (Session, error) {
	if info.Schema == "missing" {
		return nil, &sqlerr.Error{Number: 1049, State: "42000", Message: "Unknown database 'missing'"}
	}
	s := &fakeSession{f: f, info: info, schema: info.Schema, interrupt: make(chan struct{}, 1)}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open[info.ID] = s
	return s, nil
}

func (f *fake) sessions() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.open)
}

type fakeSession struct {
	held, mayHold int64 // of Hold; 0: as much as is asked for
	f             *fake
	info          session.ConnectionInfo
	schema        string
	interrupt     chan struct{}
	gone          bool
	tracked       []session.Change
	batch         *types.Batch
	cols          []session.ResultColumn
}

func (s *fakeSession) ID() uint64 { return s.info.ID }

func (s *fakeSession) UseTrace(parent trace.Context, sampled bool) {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	s.f.parents = append(s.f.parents, parent.String())
}

var longText = &types.Type{Kind: types.KindLongText, Collation: types.CollationUTF8MB40900AI}

var intColumn = []session.ResultColumn{{Name: "n", Type: &types.Type{Kind: types.KindBigInt}}}

// Query: statements are parted by ';'.
func (s *fakeSession) Query(ctx context.Context, text string, w session.ResultWriter) error {
	parts := strings.Split(text, ";")
	for i, q := range parts {
		if err := s.one(strings.TrimSpace(q), nil, w, i < len(parts)-1); err != nil {
			return err
		}
	}
	return nil
}

func (s *fakeSession) one(q string, args []session.Arg, w session.ResultWriter, more bool) error {
	done := session.Outcome{More: more}
	var n int
	switch word, rest, _ := strings.Cut(q, " "); word {
	case "point":
		if s.batch == nil {
			s.cols = intColumn
			s.batch = types.NewBatch([]*types.Type{intColumn[0].Type})
			s.batch.Column(0).AppendInt64(42)
			s.batch.SetLen(1)
		}
		if err := w.Columns(s.cols); err != nil {
			return err
		}
		if err := w.Rows(s.batch); err != nil {
			return err
		}
		return w.Done(done)
	case "rows":
		_, _ = fmt.Sscan(rest, &n)
		return s.rows(n, w, done)
	case "wide":
		_, _ = fmt.Sscan(rest, &n)
		return s.wide(n, w, done)
	case "long":
		_, _ = fmt.Sscan(rest, &n)
		return s.text(strings.Repeat("x", n), w, done)
	case "echo":
		return s.text(rest, w, done)
	case "args":
		return s.echo(args, w, done)
	case "all":
		return s.all(w, done)
	case "SELECT":
		return s.rows(0, w, done)
	case "length":
		return s.text(fmt.Sprint(len(q)), w, done)
	case "insert":
		done.AffectedRows, done.LastInsertID, done.Warnings, done.Info = 3, 77, 2, "Records: 3"
		s.tracked = []session.Change{{Kind: session.ChangeGTIDs, Value: "uuid:7"},
			{Kind: session.ChangeVariable, Name: "autocommit", Value: "ON"}, {Kind: session.ChangeSchema, Value: "x"}}
		return w.Done(done)
	case "sleep":
		s.f.waiting.Add(1)
		defer s.f.waiting.Add(-1)
		select {
		case <-s.interrupt:
			return &sqlerr.Error{Number: 1317, State: "70100", Message: "Query execution was interrupted"}
		case <-time.After(patience):
		}
		return w.Done(done)
	case "gate":
		s.f.waiting.Add(1)
		<-s.f.gate
		return s.rows(1000, w, done)
	case "fail":
		return &sqlerr.Error{Number: 1146, State: "42S02", Message: "Table 'x' doesn't exist"}
	case "release":
		s.gone = true
		return w.Done(done)
	case "stuck":
		s.gone = true
		return &sqlerr.Error{Number: 1105, State: "HY000", Message: "the transaction cannot be rolled back"}
	case "broken":
		return errors.New("broken")
	case "midway":
		if err := w.Columns(intColumn); err != nil {
			return err
		}
		return &sqlerr.Error{Number: 1317, State: "70100", Message: "Query execution was interrupted"}
	case "load":
		var all []byte
		if err := w.(session.LocalFiles).LocalFile(rest, func(p []byte) error {
			all = append(all, p...)
			return nil
		}); err != nil {
			return err
		}
		done.Info = fmt.Sprintf("%d bytes", len(all))
		done.AffectedRows = uint64(len(all))
		return w.Done(done)
	case "kill":
		_, _ = fmt.Sscan(rest, &n)
		s.f.mu.Lock()
		victim := s.f.open[uint64(n)]
		s.f.mu.Unlock()
		victim.Interrupt()
		victim.info.Disconnect()
		return w.Done(done)
	case "who":
		return s.text(fmt.Sprintf("%s@%s as %s@%s in %s tls=%v ro=%v attr=%s", s.info.User, s.info.Host, s.info.AccountUser,
			s.info.AccountHost, s.schema, s.info.TLS != "", s.info.ReadOnly, s.info.Attributes["program_name"]), w, done)
	}
	return w.Done(done)
}

func (s *fakeSession) text(v string, w session.ResultWriter, o session.Outcome) error {
	if err := w.Columns([]session.ResultColumn{{Name: "s", Type: longText}}); err != nil {
		return err
	}
	b := types.NewBatch([]*types.Type{longText})
	b.AppendRow([]types.Value{types.NewString(v)})
	if err := w.Rows(b); err != nil {
		return err
	}
	return w.Done(o)
}

func (s *fakeSession) rows(n int, w session.ResultWriter, o session.Outcome) error {
	return s.many(n, intColumn, func(i int) types.Value { return types.NewInt(int64(i)) }, w, o)
}

// wide sends rows of 1000 bytes.
func (s *fakeSession) wide(n int, w session.ResultWriter, o session.Outcome) error {
	value := types.NewString(strings.Repeat("w", 1000))
	return s.many(n, []session.ResultColumn{{Name: "s", Type: longText}}, func(int) types.Value { return value }, w, o)
}

func (s *fakeSession) many(n int, cols []session.ResultColumn, value func(i int) types.Value, w session.ResultWriter, o session.Outcome) error {
	if err := w.Columns(cols); err != nil {
		return err
	}
	b := types.NewBatch([]*types.Type{cols[0].Type})
	for i := range n {
		b.AppendRow([]types.Value{value(i)})
		if b.Full() || i == n-1 {
			if err := w.Rows(b); err != nil {
				return err
			}
			b.Reset()
		}
	}
	return w.Done(o)
}

// echo sends the arguments back, each as its type.
func (s *fakeSession) echo(args []session.Arg, w session.ResultWriter, o session.Outcome) error {
	var cols []session.ResultColumn
	var list []*types.Type
	var row []types.Value
	for i, a := range args {
		cols = append(cols, session.ResultColumn{Name: fmt.Sprint(i), Type: a.Type})
		list, row = append(list, a.Type), append(row, a.Value)
	}
	if err := w.Columns(cols); err != nil {
		return err
	}
	b := types.NewBatch(list)
	b.AppendRow(row)
	if err := w.Rows(b); err != nil {
		return err
	}
	return w.Done(o)
}

func allTypes() (cols []session.ResultColumn, rows [][]types.Value) {
	add := func(name string, t types.Type, vs ...types.Value) {
		cols = append(cols, session.ResultColumn{Schema: "db", Table: "t", OrgTable: "t", Name: name, OrgName: name, Type: &t})
		for i, v := range vs {
			if len(rows) <= i {
				rows = append(rows, nil)
			}
			rows[i] = append(rows[i], v)
		}
	}
	null := types.Null
	text := types.CollationUTF8MB40900AI
	add("tiny", types.Type{Kind: types.KindTinyInt}, types.NewInt(-128), null)
	add("utiny", types.Type{Kind: types.KindTinyInt, Unsigned: true}, types.NewUint(255), null)
	add("small", types.Type{Kind: types.KindSmallInt}, types.NewInt(-32768), null)
	add("medium", types.Type{Kind: types.KindMediumInt}, types.NewInt(-8388608), null)
	add("int_", types.Type{Kind: types.KindInt, ZeroFill: true, Unsigned: true, Length: 10}, types.NewUint(7), null)
	add("big", types.Type{Kind: types.KindBigInt}, types.NewInt(-1<<63), null)
	add("ubig", types.Type{Kind: types.KindBigInt, Unsigned: true}, types.NewUint(1<<64-1), null)
	add("float_", types.Type{Kind: types.KindFloat}, types.NewFloat(1.5), null)
	add("double_", types.Type{Kind: types.KindDouble}, types.NewDouble(-2.25e100), null)
	add("date_", types.Type{Kind: types.KindDate}, types.NewDate(types.MakeDateTime(2024, 2, 29, 0, 0, 0, 0)), null)
	add("dt", types.Type{Kind: types.KindDateTime, FSP: 6},
		types.NewDateTime(types.MakeDateTime(2024, 2, 29, 1, 2, 3, 45)), null)
	add("ts", types.Type{Kind: types.KindTimestamp}, types.NewTimestamp(1_700_000_000_000_000), null)
	add("time_", types.Type{Kind: types.KindTime, FSP: 3}, types.NewTime(types.MakeDuration(true, 838, 59, 58, 500_000)), null)
	add("year_", types.Type{Kind: types.KindYear}, types.NewUint(1999), null)
	add("bits", types.Type{Kind: types.KindBit, Length: 12}, types.NewUint(0xabc), null)
	add("varchar_", types.Type{Kind: types.KindVarChar, Length: 300, Collation: text},
		types.NewString(strings.Repeat("ä", 200)), null)
	add("blob_", types.Type{Kind: types.KindBlob, Collation: types.CollationBinary}, types.NewBytes([]byte{0, 0xff}), null)
	add("enum_", types.Type{Kind: types.KindEnum, Members: []string{"a", "b"}, Collation: text}, types.NewUint(2), null)
	return cols, rows
}

func (s *fakeSession) all(w session.ResultWriter, o session.Outcome) error {
	cols, rows := allTypes()
	var list []*types.Type
	for i := range cols {
		list = append(list, cols[i].Type)
	}
	if err := w.Columns(cols); err != nil {
		return err
	}
	b := types.NewBatch(list)
	for _, r := range rows {
		b.AppendRow(r)
	}
	if err := w.Rows(b); err != nil {
		return err
	}
	return w.Done(o)
}

func (s *fakeSession) Prepare(ctx context.Context, text string) (*session.Prepared, error) {
	if text == "fail" {
		return nil, &sqlerr.Error{Number: 1064, State: "42000", Message: "You have an error in your SQL syntax"}
	}
	p := &session.Prepared{Params: strings.Count(text, "?")}
	if !strings.HasPrefix(text, "insert") {
		p.Columns = intColumn
	}
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	s.f.prepared.Add(1)
	preparedTexts[p] = strings.TrimSpace(strings.ReplaceAll(text, "?", ""))
	return p, nil
}

var preparedTexts = map[*session.Prepared]string{}

func (s *fakeSession) ExecutePrepared(ctx context.Context, p *session.Prepared, args []session.Arg, w session.ResultWriter) error {
	if len(args) != p.Params {
		return fmt.Errorf("%d arguments for %d", len(args), p.Params)
	}
	s.f.mu.Lock()
	text := preparedTexts[p]
	s.f.mu.Unlock()
	return s.one(text, args, w, false)
}

func (s *fakeSession) Use(schema string) error {
	if schema == "missing" {
		return &sqlerr.Error{Number: 1049, State: "42000", Message: "Unknown database 'missing'"}
	}
	s.schema = schema
	return nil
}

func (s *fakeSession) Reset() error { return nil }
func (s *fakeSession) ChangeUser(info session.ConnectionInfo) error {
	s.info, s.schema = info, info.Schema
	return nil
}

func (s *fakeSession) Close() error {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	delete(s.f.open, s.info.ID)
	return nil
}

func (s *fakeSession) Interrupt() {
	select {
	case s.interrupt <- struct{}{}:
	default:
	}
}
func (s *fakeSession) Gone() bool                  { return s.gone }
func (s *fakeSession) Status() session.StatusFlags { return session.StatusAutocommit }
func (s *fakeSession) TrackedChanges() []session.Change {
	t := s.tracked
	s.tracked = nil
	return t
}
func (s *fakeSession) Warnings() uint16                   { return 0 }
func (s *fakeSession) Location() *time.Location           { return time.UTC }
func (s *fakeSession) ResultCollation() types.CollationID { return types.CollationUTF8MB40900AI }
func (s *fakeSession) SetMultiStatements(bool)            {}
func (s *fakeSession) Hold(n int64) error {
	if n > 0 && s.mayHold > 0 && s.held+n > s.mayHold {
		return &sqlerr.Error{Number: 3170, State: "HY000", Message: "no room"}
	}
	s.held += n
	return nil
}

func (s *fakeSession) Limits() session.Limits {
	return session.Limits{MaxPacket: s.f.big, Idle: time.Duration(s.f.idle.Load()), NetRead: 30 * time.Second, NetWrite: time.Minute, LocalInfile: true}
}

type accounts map[string]auth.Account

func (a accounts) Account(user, _, _ string) (auth.Account, bool, error) {
	acct, ok := a[user]
	return acct, ok, nil
}

var testAccounts = accounts{
	"root":   {User: "root", Host: "%", Plugin: PluginSHA2, Hash: priv.HashSHA2([]byte("secret"), []byte("abcdefghijklmnopqrst")), Administers: func() bool { return true }},
	"app":    {User: "app", Host: "%", Plugin: PluginSHA2, Hash: priv.HashSHA2([]byte("secret"), []byte("abcdefghijklmnopqrsu"))},
	"native": {User: "native", Host: "%", Plugin: PluginNative, Hash: priv.HashNative([]byte("secret"))},
	"empty":  {User: "empty", Host: "%", Plugin: PluginSHA2},
	"late":   {User: "late", Host: "%", Plugin: PluginSHA2, Expired: true},
	"locked": {User: "locked", Host: "%", Plugin: PluginSHA2, Locked: true},
	"tls":    {User: "tls", Host: "%", Plugin: PluginNative, Hash: priv.HashNative([]byte("secret")), Require: auth.Requirement{Kind: "ANY"}},
	"odd":    {User: "odd", Host: "%", Plugin: "sha256_password", Hash: "x"},
}

type rig struct {
	*fake
	s    *Server
	addr string
	ro   string
}

// serve starts a server, and checks in the end that nothing of it is left.
func serve(t testing.TB, change func(*Options, *fake)) *rig {
	t.Helper()
	ignore := goleak.IgnoreCurrent()
	f := &fake{open: make(map[uint64]*fakeSession), big: 64 << 20}
	a, err := auth.New(auth.Options{Source: testAccounts, DelayMax: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	cert, err := auth.OpenTLS(auth.TLSOptions{Name: "localhost"})
	if err != nil {
		t.Fatal(err)
	}
	opt := Options{Backend: f, Auth: a, Version: "8.0.36-trireme-test", ConnectTimeout: patience, TLS: func() *tls.Config { return cert.Config() }}
	if change != nil {
		change(&opt, f)
	}
	r := &rig{fake: f, s: New(opt)}
	r.s.closePrepared = func(*session.Prepared) { f.prepared.Add(-1) }
	r.s.forwardTimeout = patience
	r.addr, r.ro = r.listen(t, Port{}), r.listen(t, Port{ReadOnly: true})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		r.s.Shutdown(ctx)
		if n := f.sessions(); n != 0 {
			t.Errorf("%d sessions were not closed", n)
		}
		if n := f.prepared.Load(); n != 0 {
			t.Errorf("%d statements were not closed", n)
		}
		err := errors.New("")
		for until := time.Now().Add(patience); err != nil && time.Now().Before(until); {
			err = goleak.Find(ignore, goleak.IgnoreTopFunction("database/sql.(*DB).connectionOpener"))
		}
		if err != nil {
			t.Error(err)
		}
	})
	return r
}

func (r *rig) listen(t testing.TB, port Port) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = r.s.Serve(l, port) }()
	return l.Addr().String()
}

func (r *rig) db(t testing.TB, change func(*mysql.Config)) *sql.DB {
	t.Helper()
	c := mysql.NewConfig()
	c.User, c.Passwd, c.Net, c.Addr, c.DBName = "app", "secret", "tcp", r.addr, "shop"
	c.MultiStatements = true
	if change != nil {
		change(c)
	}
	conn, err := mysql.NewConnector(c)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(conn)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func number(err error) uint16 {
	var e *mysql.MySQLError
	if errors.As(err, &e) {
		return e.Number
	}
	return 0
}
