package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"golang.org/x/term"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/triremedb/trireme/engine/sqlerr"
	triremev1 "github.com/triremedb/trireme/proto/trireme/v1"
)

// adminCommand is something that operators ask of a node.
type adminCommand struct {
	words   string // "members add"
	args    string // "<id> <host:port>"; those in [] may be left out
	flags   string // the options that it knows beside those of all
	summary string
	run     func(a *admin, args []string) error
}

func adminCommands() []adminCommand {
	return []adminCommand{
		{"status", "", "", "how the group and its members stand", (*admin).status},
		{"watch", "", "interval", "the same again and again", (*admin).watch},
		{"members add", "<id> <host:port>", "replica", "make a learner of a node, or give a member another address, where it runs already", (*admin).membersAdd},
		{"members promote", "<id>", "force", "let a learner vote", (*admin).membersPromote},
		{"members remove", "<id>", "force", "take a member out of the group for good", (*admin).membersRemove},
		{"members replace", "<id> <id>", "force", "put a learner, the second, in the place of a voter", (*admin).membersReplace},
		{"transfer", "[id]", "", "hand leadership to another member", (*admin).transfer},
		{"drain", "", "undo wait", "make the node ready to be stopped", (*admin).drain},
		{"settings", "[pattern]", "changed", "what the node is set to, and by whom", (*admin).settings},
		{"settings set", "<name> <value>", "", "SET GLOBAL", (*admin).settingsSet},
		{"sessions", "", "active limit", "the sessions of clients", (*admin).sessions},
		{"kill", "<session>", "statement", "end a session, or its statement", (*admin).kill},
		{"transactions", "", "limit", "the transactions of sessions, the oldest first", (*admin).transactions},
		{"large", "", "limit", "large transactions that run, and what each member has of them", (*admin).large},
		{"locks", "", "limit", "who waits for whose locks", (*admin).locks},
		{"statements", "[schema]", "limit order", "statements that differ in values only, and what they cost", (*admin).statements},
		{"tables", "[schema]", "limit", "tables with their sizes, the largest first", (*admin).tables},
		{"binlog list", "", "", "the files of the node's log", (*admin).binlogList},
		{"binlog purge", "<file>", "", "remove the files before one", (*admin).binlogPurge},
		{"backup", "[directory]", "rate into keep keep-days stale", "copy the database, and the log from there on, into a new directory", (*admin).backup},
	}
}

func adminText() string {
	var b strings.Builder
	b.WriteString("Asks a node by its gRPC port, and follows it to the leader where only that one can do what is asked.\n\nCommands:\n")
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	for _, c := range adminCommands() {
		_, _ = fmt.Fprintf(w, "  %s %s\t%s\n", c.words, c.args, c.summary)
	}
	_ = w.Flush() // to memory
	b.WriteString("\nPatterns have % and _ as those of LIKE. The account needs MySQL's privileges: docs/operations-admin.md.")
	return b.String()
}

// admin is a connection to a node and how its answers are shown.
type admin struct {
	client             triremev1.AdminClient
	conn               *grpc.ClientConn
	dial               func(addr string) (*grpc.ClientConn, error)
	ctx                context.Context
	addr               string
	json               bool
	timeout, interval  time.Duration
	wait               time.Duration
	force, undo        bool
	replica, statement bool
	active, changed    bool
	limit, rate        uint
	into               string
	keep, keepDays     uint
	stale              bool
	all, others        []string // addresses of nodes; others are those that follow the dialed one's
	order              string
	out                io.Writer
}

func adminFlags() (*flag.FlagSet, *admin, *adminLogin) {
	f := flags("admin [options] <command>", adminText())
	a, l := &admin{out: os.Stdout}, &adminLogin{}
	f.StringVar(&a.addr, "grpc", "127.0.0.1:17000", "gRPC `addresses` of nodes, parted by commas; the first that answers is asked")
	f.StringVar(&l.user, "user", "root", "who you are")
	f.StringVar(&l.password, "password", os.Getenv("MYSQL_PWD"), "your `password`; it is asked for if there is none (also MYSQL_PWD)")
	f.StringVar(&l.file, "password-file", "", "`file` whose first line is the password")
	l.ssl.add(f, " (TLS but to this machine)")
	f.StringVar(&l.format, "o", "table", "table or json")
	f.DurationVar(&a.timeout, "timeout", time.Minute, "how long a call may take")
	f.DurationVar(&a.interval, "interval", time.Second, "watch: the time between two answers")
	f.DurationVar(&a.wait, "wait", 0, "drain: wait that long until another member leads and no client is connected")
	f.BoolVar(&a.force, "force", false, "members: do it although the group may take no writes for a while")
	f.BoolVar(&a.replica, "replica", false, "members add: it stays a learner, and serves reads")
	f.BoolVar(&a.undo, "undo", false, "drain: take it back")
	f.BoolVar(&a.changed, "changed", false, "settings: only those that somebody has set")
	f.BoolVar(&a.active, "active", false, "sessions: only those that do something")
	f.BoolVar(&a.statement, "statement", false, "kill: only the statement that the session runs")
	f.StringVar(&a.order, "order", "time", "statements: what comes first: time, count, max, average, rows or errors")
	f.UintVar(&a.limit, "limit", 0, "lists: how many `lines` at most; 0: 1000")
	f.UintVar(&a.rate, "rate", 0, "backup: at most so many `MiB` a second; 0: no limit")
	f.StringVar(&a.into, "into", "", "backup: `directory` in which the backup gets a directory of its own, named by the time")
	f.UintVar(&a.keep, "keep", 0, "backup: with --into, remove all but the newest `N` when the new one is whole; 0: remove none")
	f.UintVar(&a.keepDays, "keep-days", 0, "backup: with --into, remove those older than `days`, beyond the newest --keep; 0: whatever their age")
	f.BoolVar(&a.stale, "stale", false, "backup: with --into, or of several nodes, take it also of one that hears no leader, or is behind")
	return f, a, l
}

// commonFlags are those that every command knows.
const commonFlags = "grpc user password password-file o timeout " + sslFlagNames

// adminLogin is who calls, and how.
type adminLogin struct {
	user, password, file, format string
	ssl                          sslFlags
}

func runAdmin(args []string) error {
	f, a, l := adminFlags()
	if err := parse(f, args); err != nil {
		return err
	}
	c, rest := findAdmin(f.Args())
	if c == nil {
		if f.NArg() == 0 {
			return misuse(f, "what to do is missing")
		}
		return misuse(f, "there is no command %q", strings.Join(f.Args(), " "))
	}
	if least, most := argCount(c.args); len(rest) < least || len(rest) > most {
		return misuse(f, "it is: trireme admin %s %s", c.words, c.args)
	}
	var alien string
	f.Visit(func(g *flag.Flag) {
		if !slices.Contains(strings.Fields(commonFlags+" "+c.flags), g.Name) {
			alien = g.Name
		}
	})
	switch {
	case alien != "":
		return misuse(f, "%s does not know -%s", c.words, alien)
	case l.format != "table" && l.format != "json":
		return misuse(f, "-o=%s: it is table or json", l.format)
	case a.timeout <= 0, a.interval < 100*time.Millisecond, a.interval > time.Hour:
		return misuse(f, "-timeout is more than nothing, -interval 100ms to 1h")
	}
	a.json = l.format == "json"
	if err := a.connect(f, l); err != nil {
		return err
	}
	defer func() { _ = a.conn.Close() }()
	var stop context.CancelFunc
	a.ctx, stop = signal.NotifyContext(a.ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	return adminError(a.addr, c.run(a, rest))
}

// findAdmin finds the command that the words begin with, the longest.
func findAdmin(words []string) (found *adminCommand, rest []string) {
	all := adminCommands()
	for i := range all {
		name := strings.Fields(all[i].words)
		if len(words) >= len(name) && slices.Equal(words[:len(name)], name) && (found == nil || len(all[i].words) > len(found.words)) {
			found, rest = &all[i], words[len(name):]
		}
	}
	return found, rest
}

// argCount is how many words a command takes.
func argCount(args string) (least, most int) {
	for _, a := range strings.Fields(args) {
		most++
		if a[0] != '[' {
			least++
		}
	}
	return least, most
}

// connect dials the first of the nodes that answers.
func (a *admin) connect(f *flag.FlagSet, l *adminLogin) error {
	password, err := findPassword(l.password, l.file, term.IsTerminal(int(os.Stdin.Fd())), l.user)
	if err != nil {
		return err
	}
	mode, err := l.ssl.resolve()
	if err != nil {
		return misuse(f, "%v", err)
	}
	a.ctx = metadata.AppendToOutgoingContext(context.Background(), "authorization",
		"Basic "+base64.StdEncoding.EncodeToString([]byte(l.user+":"+password)))
	a.dial = func(addr string) (*grpc.ClientConn, error) {
		creds, err := l.ssl.credentials(mode, addr)
		if err != nil {
			return nil, err
		}
		return grpc.NewClient("passthrough:"+addr, grpc.WithTransportCredentials(creds), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(256<<20)),
			grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 20 * time.Second}))
	}
	var d net.Dialer
	addrs := strings.Split(strings.ReplaceAll(a.addr, " ", ""), ",")
	a.all = addrs
	for i, addr := range addrs {
		a.addr, a.others = addr, addrs[i+1:]
		if i < len(addrs)-1 {
			ctx, cancel := context.WithTimeout(a.ctx, 2*time.Second)
			c, err := d.DialContext(ctx, "tcp", a.addr)
			cancel()
			if err != nil {
				continue
			}
			_ = c.Close()
		}
		break
	}
	return a.use(a.addr)
}

// credentials are how a node at an address is talked to. Who has a certificate shows it to this machine too.
func (s *sslFlags) credentials(mode, addr string) (credentials.TransportCredentials, error) {
	host, _, _ := net.SplitHostPort(addr)
	ip := net.ParseIP(host)
	if here := host == "localhost" || ip != nil && ip.IsLoopback(); mode == sslDisabled || mode == sslPreferred && here && s.cert == "" {
		return insecure.NewCredentials(), nil
	}
	c, err := s.config(mode, host)
	if err != nil {
		return nil, err
	}
	return credentials.NewTLS(c), nil
}

func (a *admin) use(addr string) error {
	conn, err := a.dial(addr)
	if err != nil {
		return err
	}
	if a.conn != nil {
		_ = a.conn.Close()
	}
	a.addr, a.conn, a.client = addr, conn, triremev1.NewAdminClient(conn)
	return nil
}

// adminDetail is what an error says of itself.
func adminDetail(err error) *triremev1.AdminError {
	for _, d := range status.Convert(err).Details() {
		if e, ok := d.(*triremev1.AdminError); ok {
			return e
		}
	}
	return nil
}

// adminError is an error as people read it.
func adminError(addr string, err error) error {
	if err == nil || errors.Is(err, errFailed) {
		return err
	}
	if d := adminDetail(err); d != nil {
		text := fmt.Sprintf("ERROR %d (%s): %s", d.GetNumber(), d.GetSqlState(), d.GetMessage())
		if d.GetAdvice() != "" {
			text += "\n" + d.GetAdvice()
		}
		return errors.New(text)
	}
	switch st := status.Convert(err); st.Code() {
	case codes.Unavailable:
		return fmt.Errorf("%s does not answer: %s\nis the node there, and is that its grpc_port (--grpc)? Nodes on other machines want TLS (--tls=required)", addr, st.Message())
	case codes.Unimplemented:
		return fmt.Errorf("the node at %s does not know this call: it is of another version", addr)
	case codes.DeadlineExceeded:
		return fmt.Errorf("%s has not answered in time (--timeout)", addr)
	case codes.Canceled:
		return errors.New("interrupted")
	}
	return err
}

// call makes a call of the node that was named: what it does, or tells, is of that one.
func call[Q, R any](a *admin, fn func(triremev1.AdminClient) func(context.Context, Q, ...grpc.CallOption) (R, error), req Q) (R, error) {
	ctx, cancel := context.WithTimeout(a.ctx, a.timeout)
	defer cancel()
	return fn(a.client)(ctx, req)
}

// leaderPatience is how long a leader is looked for that a call needs: a group elects one within seconds.
const leaderPatience = 10 * time.Second

// callLeader makes a call that is about the group, and makes it again of the leader if only that one can answer it. While no leader is known
// the nodes are asked in turn. Of a node that is gone it cannot know whether it has done what it was asked for: it asks another one
// only where that does no harm (repeats).
func callLeader[Q, R any](a *admin, repeats bool, fn func(triremev1.AdminClient) func(context.Context, Q, ...grpc.CallOption) (R, error), req Q) (R, error) {
	end, turn, follows := time.Now().Add(min(leaderPatience, a.timeout)), 0, false
	for {
		r, err := call(a, fn, req)
		d := adminDetail(err)
		gone := d == nil && status.Code(err) == codes.Unavailable && (repeats || strings.Contains(err.Error(), "Error while dialing")) && (follows || len(a.all) > 1)
		next := d.GetLeaderAddress()
		switch {
		case err == nil || time.Now().After(end) || a.ctx.Err() != nil:
			return r, err
		case next != "" && next != a.addr:
			if follows { // they name each other, or it has led
				time.Sleep(leaderPause)
			}
			follows = true
			fmt.Fprintf(os.Stderr, "asking the leader at %s\n", next)
		case gone || d.GetNumber() == uint32(sqlerr.OptionPreventsStatement):
			time.Sleep(leaderPause)
			if next = a.addr; len(a.all) > 0 {
				next = a.all[turn%len(a.all)]
			}
			turn++
		default:
			return r, err
		}
		if err := a.use(next); err != nil {
			return r, err
		}
	}
}

// leaderPause is how long to wait until the next node is asked for a leader.
const leaderPause = 200 * time.Millisecond

// show writes an answer: as it is for programs, else as fn has it.
func (a *admin) show(m proto.Message, fn func(w io.Writer)) error {
	if a.json {
		return a.showJSON(m, "  ")
	}
	w := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	fn(w)
	return w.Flush()
}

func (a *admin) showJSON(m proto.Message, indent string) error {
	b, err := protojson.MarshalOptions{EmitUnpopulated: true, UseProtoNames: true}.Marshal(m)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if indent == "" {
		err = json.Compact(&out, b)
	} else {
		err = json.Indent(&out, b, "", indent)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(a.out, out.String())
	return err
}

// row writes a line of a table. An empty value is a dash.
func row(w io.Writer, values ...any) {
	for i, v := range values {
		text := fmt.Sprint(v)
		if text == "" {
			text = "-"
		}
		if i > 0 {
			text = "\t" + text
		}
		_, _ = io.WriteString(w, text) // the table's error comes with its Flush
	}
	_, _ = io.WriteString(w, "\n")
}

// number reads an id.
func number(what, text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no %s: it is a whole number", text, what)
	}
	return n, nil
}

// size is a number of bytes for people.
func size(n uint64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}
	v, i := float64(n), 0
	for ; v >= 1024 && i < len(units)-1; i++ {
		v /= 1024
	}
	if i == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", v, units[i])
}

// span is a time in milliseconds for people.
func span(ms uint64) string {
	return (time.Duration(ms) * time.Millisecond).String()
}

// line makes one line of a text.
func line(text string, most int) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > most {
		text = string(r[:most-1]) + "…"
	}
	return text
}
