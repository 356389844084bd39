package client

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync"
	"time"

	pb "github.com/triremedb/trireme/proto/trireme/v1"
)

func init() { sql.Register("trireme", Driver{}) }

// Driver is the driver for database/sql. A data source is
//
//	trireme://user:password@host:port,host:port/schema?tls=true&read=local
//
// with these parameters: tls is false (the default), true, or skip-verify, which proves nothing of
// the server; ca, cert, key and server_name are as in [TLSFiles], and mean tls=true; read sends
// the connection's statements to any node: strong, local, or a time such as 500ms that the data
// may be behind, and writes fail; patience is as in Options.
type Driver struct{}

// Open implements driver.Driver.
func (d Driver) Open(name string) (driver.Conn, error) {
	c, err := d.OpenConnector(name)
	if err != nil {
		return nil, err
	}
	return c.Connect(context.Background())
}

// OpenConnector implements driver.DriverContext.
func (d Driver) OpenConnector(name string) (driver.Connector, error) {
	o, read, err := parseSource(name)
	if err != nil {
		return nil, err
	}
	return &Connector{o: o, read: read}, nil
}

func parseSource(name string) (o Options, read *Read, err error) {
	u, err := url.Parse(name)
	if err != nil || u.Scheme != "trireme" || u.Host == "" || u.User == nil {
		return o, nil, errors.New("client: a data source is trireme://user:password@host:port/schema")
	}
	o.Addrs, o.User, o.Schema = strings.Split(u.Host, ","), u.User.Username(), strings.TrimPrefix(u.Path, "/")
	o.Password, _ = u.User.Password()
	var files TLSFiles
	secure := ""
	for key, all := range u.Query() {
		value := all[0]
		switch key {
		case "tls":
			if secure = value; value != "true" && value != "skip-verify" && value != "false" {
				return o, nil, fmt.Errorf("client: tls=%s: it is true, false or skip-verify", value)
			}
		case "ca":
			files.CA = value
		case "cert":
			files.Cert = value
		case "key":
			files.Key = value
		case "server_name":
			files.ServerName = value
		case "read":
			r := Strong()
			if value == "local" {
				r = Local()
			} else if value != "strong" {
				bound, err := time.ParseDuration(value)
				if err != nil || bound < 0 {
					return o, nil, fmt.Errorf("client: read=%s: it is strong, local or a time such as 500ms", value)
				}
				r = Bounded(bound)
			}
			read = &r
		case "patience":
			if o.Patience, err = time.ParseDuration(value); err != nil {
				return o, nil, fmt.Errorf("client: patience=%s: it is a time such as 30s", value)
			}
		default:
			return o, nil, fmt.Errorf("client: a data source has no parameter %s", key)
		}
	}
	if secure == "true" || secure == "skip-verify" || files != (TLSFiles{}) {
		if secure == "false" {
			return o, nil, errors.New("client: tls=false: ca, cert, key and server_name go with TLS")
		}
		if o.TLS, err = files.Config(); err != nil {
			return o, nil, err
		}
		o.TLS.InsecureSkipVerify = secure == "skip-verify" //nolint:gosec // as asked for
	}
	return o, read, nil
}

// Connector opens connections of database/sql, which share a DB.
type Connector struct {
	o    Options
	read *Read

	mu sync.Mutex
	db *DB
}

// NewConnector returns a connector for sql.OpenDB. read sends statements to any node; nil: to the
// leader.
func NewConnector(o Options, read *Read) *Connector { return &Connector{o: o, read: read} }

// Driver implements driver.Connector.
func (c *Connector) Driver() driver.Driver { return Driver{} }

// Connect implements driver.Connector.
func (c *Connector) Connect(ctx context.Context) (driver.Conn, error) {
	c.mu.Lock()
	db := c.db
	c.mu.Unlock()
	if db == nil {
		opened, err := Open(ctx, c.o)
		if err != nil {
			return nil, err
		}
		c.mu.Lock()
		if c.db == nil {
			c.db = opened
			opened = nil
		}
		db = c.db
		c.mu.Unlock()
		if opened != nil {
			_ = opened.Close()
		}
	}
	k := &conn{c: c, db: db}
	if err := k.connect(ctx); err != nil {
		return nil, err
	}
	return k, nil
}

// Close ends the sessions; sql.DB.Close calls it.
func (c *Connector) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.db == nil {
		return nil
	}
	return c.db.Close()
}

// conn is a connection of database/sql: a session.
type conn struct {
	c  *Connector
	db *DB
	s  *session
	tx *Tx
}

// connect opens the session.
func (k *conn) connect(ctx context.Context) error {
	return k.db.patiently(ctx, func() error {
		open := k.db.writer
		if k.c.read != nil {
			open = k.db.reader
		}
		s, err := open(ctx)
		if err == nil {
			if k.s != nil {
				k.s.reading(false) // it has ended
			}
			k.s = s
		}
		return err
	})
}

// Close implements driver.Conn.
func (k *conn) Close() error {
	k.s.close()
	return nil
}

// IsValid implements driver.Validator.
func (k *conn) IsValid() bool { return k.s.ended() == nil }

// ResetSession implements driver.SessionResetter.
func (k *conn) ResetSession(context.Context) error {
	if k.s.ended() != nil {
		return driver.ErrBadConn
	}
	return nil
}

// Ping implements driver.Pinger.
func (k *conn) Ping(ctx context.Context) error {
	c, err := k.s.send(false, func(m *pb.SqlSessionsRequest) { m.Kind = &pb.SqlSessionsRequest_Ping{Ping: &pb.SqlPing{}} })
	if err == nil {
		_, err = k.s.finish(ctx, c)
	}
	if err != nil && k.s.ended() != nil && ctx.Err() == nil {
		return driver.ErrBadConn
	}
	return err
}

// CheckNamedValue implements driver.NamedValueChecker: setValue knows more types than database/sql.
func (k *conn) CheckNamedValue(v *driver.NamedValue) error {
	if v.Name != "" {
		return errors.New("client: parameters have no names: use ?")
	}
	var p pb.SqlValue
	return k.db.setValue(&p, v.Value)
}

func plain(args []driver.NamedValue) []any {
	all := make([]any, len(args))
	for i := range args {
		all[i] = args[i].Value
	}
	return all
}

// Prepare implements driver.Conn.
func (k *conn) Prepare(text string) (driver.Stmt, error) { return &stmt{k, text}, nil }

// Begin implements driver.Conn.
func (k *conn) Begin() (driver.Tx, error) {
	return k.BeginTx(context.Background(), driver.TxOptions{})
}

// BeginTx implements driver.ConnBeginTx.
func (k *conn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	opt := TxOptions{ReadOnly: o.ReadOnly}
	if k.c.read != nil {
		opt.Read = *k.c.read
	}
	switch l := sql.IsolationLevel(o.Isolation); l {
	case sql.LevelDefault:
	case sql.LevelReadUncommitted:
		opt.Isolation = ReadUncommitted
	case sql.LevelReadCommitted:
		opt.Isolation = ReadCommitted
	case sql.LevelRepeatableRead:
		opt.Isolation = RepeatableRead
	case sql.LevelSerializable:
		opt.Isolation = Serializable
	default:
		return nil, fmt.Errorf("client: there is no isolation level %v", l)
	}
	tx := &Tx{db: k.db, s: k.s, token: NewToken(), bound: true}
	if _, err := tx.begin(ctx, &opt); err != nil {
		if k.s.ended() != nil && ctx.Err() == nil {
			return nil, driver.ErrBadConn // nothing has been done yet
		}
		return nil, err
	}
	k.tx = tx
	return &transaction{k, tx, ctx}, nil
}

// transaction is driver.Tx.
type transaction struct {
	k   *conn
	tx  *Tx
	ctx context.Context
}

// Commit implements driver.Tx.
func (t *transaction) Commit() error {
	t.k.tx = nil
	_, err := t.tx.Commit(context.WithoutCancel(t.ctx))
	return err
}

// Rollback implements driver.Tx.
func (t *transaction) Rollback() error {
	t.k.tx = nil
	return t.tx.Rollback(context.WithoutCancel(t.ctx))
}

// ExecContext implements driver.ExecerContext.
func (k *conn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	return k.exec(ctx, text, args, false)
}

func (k *conn) exec(ctx context.Context, text string, args []driver.NamedValue, prepare bool) (_ driver.Result, err error) {
	if k.tx != nil {
		r, err := k.tx.exec(ctx, text, plain(args), prepare)
		return execResult{r}, err
	}
	ctx, sp := k.db.begin(ctx, firstWord(text))
	defer func() { sp.end(err) }()
	st, err := k.db.statement(text, plain(args))
	if err != nil {
		return nil, err
	}
	if changes(text) && k.c.read == nil {
		token := NewToken()
		st.CommitToken = token[:]
	}
	st.Read = k.c.read.proto()
	var done *pb.SqlDone
	first, own := true, k.s.own || stateful(text) // what a session has of its own is not to be had in another
	err = k.db.patiently(ctx, func() error {
		if !first && k.s.ended() != nil {
			if err := k.connect(ctx); err != nil {
				return err
			}
		}
		timeout(ctx, st)
		var err error
		done, err = k.s.run(ctx, st, prepare)
		r := retryable(err)
		switch {
		case err == nil:
		case k.s.ended() == nil && r != Transaction, own, st.CommitToken == nil && r == SameToken && !reads(text):
			return final(err)
		}
		first = false
		st.Again = st.CommitToken != nil
		return err
	})
	if err != nil {
		return nil, err
	}
	return execResult{resultOf(done)}, nil
}

// execResult is driver.Result.
type execResult struct{ Result }

// LastInsertId implements driver.Result.
func (r execResult) LastInsertId() (int64, error) {
	return int64(r.LastInsertID), r.known()
}

// RowsAffected implements driver.Result.
func (r execResult) RowsAffected() (int64, error) { return int64(r.AffectedRows), r.known() }

func (r execResult) known() error {
	if r.Repeated {
		return errors.New("client: the statement was committed, but the answer that told of its rows was lost")
	}
	return nil
}

// QueryContext implements driver.QueryerContext.
func (k *conn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	return k.query(ctx, text, args, false)
}

func (k *conn) query(ctx context.Context, text string, args []driver.NamedValue, prepare bool) (_ driver.Rows, err error) {
	outer := ctx
	ctx, sp := k.db.begin(ctx, firstWord(text))
	defer func() { sp.end(err) }()
	st, err := k.db.statement(text, plain(args))
	if err != nil {
		return nil, err
	}
	if k.tx == nil {
		st.Read = k.c.read.proto()
	}
	timeout(ctx, st)
	rows, err := k.s.rows(ctx, st, prepare, func(*session) {})
	if err != nil {
		if k.tx != nil {
			return nil, k.tx.failed(err)
		}
		if k.s.ended() != nil && reads(text) && ctx.Err() == nil && retryable(err) != Never {
			return nil, driver.ErrBadConn // database/sql tries again in another session
		}
		return nil, err
	}
	rows.ctx = outer // the span ends before them
	return &driverRows{rows}, nil
}

// stmt is driver.Stmt.
type stmt struct {
	k    *conn
	text string
}

// Close implements driver.Stmt. Sessions keep the statement for a while.
func (s *stmt) Close() error { return nil }

// NumInput implements driver.Stmt: the server counts.
func (s *stmt) NumInput() int { return -1 }

// Exec implements driver.Stmt.
func (s *stmt) Exec(args []driver.Value) (driver.Result, error) {
	return s.ExecContext(context.Background(), named(args))
}

// Query implements driver.Stmt.
func (s *stmt) Query(args []driver.Value) (driver.Rows, error) {
	return s.QueryContext(context.Background(), named(args))
}

func named(args []driver.Value) []driver.NamedValue {
	all := make([]driver.NamedValue, len(args))
	for i, a := range args {
		all[i] = driver.NamedValue{Ordinal: i + 1, Value: a}
	}
	return all
}

// ExecContext implements driver.StmtExecContext.
func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return s.k.exec(ctx, s.text, args, true)
}

// QueryContext implements driver.StmtQueryContext.
func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.k.query(ctx, s.text, args, true)
}

// driverRows is driver.Rows.
type driverRows struct{ r *Rows }

// Columns implements driver.Rows.
func (d *driverRows) Columns() []string {
	names := make([]string, len(d.r.columns))
	for i, c := range d.r.columns {
		names[i] = c.Name
	}
	return names
}

// ColumnTypeDatabaseTypeName implements driver.RowsColumnTypeDatabaseTypeName.
func (d *driverRows) ColumnTypeDatabaseTypeName(i int) string { return d.r.Columns()[i].Type }

// ColumnTypeNullable implements driver.RowsColumnTypeNullable.
func (d *driverRows) ColumnTypeNullable(i int) (nullable, ok bool) {
	return !d.r.columns[i].NotNull, true
}

// Close implements driver.Rows.
func (d *driverRows) Close() error { return d.r.Close() }

// Next implements driver.Rows.
func (d *driverRows) Next(dest []driver.Value) error {
	if !d.r.Next() {
		if err := d.r.Err(); err != nil {
			return err
		}
		return io.EOF
	}
	for i := range dest {
		dest[i] = d.r.Value(i)
	}
	return nil
}
